"""What the cells of an axis can still hold: a bound for each, and the scores of the cuts between.

The bounds themselves and their proofs are in `bounds`; here they meet the sums of an axis, the policy
for missing rows and the rows that a side must have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.axis import Axis
from polars_oner.bounds import Shared, class_bound, number_bound
from polars_oner.criteria import ClassCriterion
from polars_oner.scores import Search
from polars_oner.target import ClassTarget, NumberTarget

_STACK_ROWS = 1 << 17
"""Cells that are judged at a time."""


@dataclass(frozen=True)
class Verdict:
    """What is known of the cuts of an axis.

    Attributes
    ----------
    bound
        For each cell, the least score that a cut inside can have.
    end
        For each cell, the score of the cut at its upper end; infinite if that is no candidate.
    apart
        The score of the missing rows against all others; infinite if that is no candidate.
    before
        The score of the rows when they are not split.
    """

    bound: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    apart: float
    before: float

    @property
    def lowest(self) -> float:
        """Give the lowest score known."""
        return min(float(self.end.min()), self.apart)


def judge(
    axes: Sequence[Axis], search: Search, target: ClassTarget | NumberTarget
) -> Iterator[Verdict]:
    """Bound every cell of some axes, and score the cuts between them.

    Parameters
    ----------
    axes
        The axes, each with at least one cell.
    search
        How their cuts are scored.
    target
        The target, looked at before.
    """
    for stack in _stacks(axes):
        yield from _judge_together(stack, search, target)


def _stacks(axes: Sequence[Axis]) -> Iterator[list[Axis]]:
    """Group axes so that the cells of a group are judged together without taking much memory."""
    stack: list[Axis] = []
    height = 0
    for axis in axes:
        if stack and height + len(axis.cells) > _STACK_ROWS:
            yield stack
            stack, height = [], 0
        stack.append(axis)
        height += len(axis.cells)
    if stack:
        yield stack


def _judge_together(
    axes: Sequence[Axis], search: Search, target: ClassTarget | NumberTarget
) -> Iterator[Verdict]:
    measures = axes[0].measures
    policy = search.missing if any(axis.missing.any() for axis in axes) else "drop"
    # With "best" both sides are tried for the missing rows.
    placements = {
        "drop": [(False, False)],
        "left": [(True, False)],
        "right": [(False, True)],
        "best": [(True, False), (False, True)],
    }[policy]
    inside = [pl.col(name) for name in measures]
    whole = [pl.col(f"all_{name}") for name in measures]
    missing = [pl.col(f"missing_{name}") for name in measures]
    scored = whole if policy == "drop" else _plus(whole, missing)
    total = pl.col("total")
    criterion = search.criterion

    def n_of(sums: Sequence[pl.Expr]) -> pl.Expr:
        return pl.sum_horizontal(sums) if isinstance(criterion, ClassCriterion) else sums[0]

    def mass(sums: Sequence[pl.Expr]) -> pl.Expr:
        if isinstance(criterion, ClassCriterion):
            return criterion.side_mass(list(sums), total)
        return criterion.mass(*sums)

    def bound_of(left: Sequence[pl.Expr], right: Sequence[pl.Expr], shared: Shared) -> pl.Expr:
        if isinstance(criterion, ClassCriterion):
            return class_bound(criterion, left, inside, right, total, shared=shared)
        assert isinstance(target, NumberTarget)
        return number_bound(criterion, left, inside, right, target.low, target.high)

    # Steps that later ones repeat many times are columns: as expressions they would be computed
    # as often.
    columns: dict[str, pl.Expr] = {}

    def shared(i: int, name: str, value: pl.Expr) -> pl.Expr:
        columns[f"{name}{i}"] = value
        return pl.col(f"{name}{i}")

    steps: dict[str, pl.Expr] = {}
    bounds, ends = [], []
    for i in range(len(placements)):
        left = [pl.col(f"left{i}_{name}") for name in measures]
        right = [pl.col(f"right{i}_{name}") for name in measures]
        n_left, n_right = shared(i, "n_left", n_of(left)), shared(i, "n_right", n_of(right))
        n_inside = shared(i, "n_inside", n_of(inside))
        steps[f"end{i}"] = mass(_plus(left, inside)) + mass(right)
        steps[f"inner{i}"] = bound_of(left, right, partial(shared, i))
        fits = (n_left + n_inside >= search.min_leaf) & (n_right + n_inside >= search.min_leaf)
        is_cut = fits & (n_right >= search.min_leaf) & ~pl.col("last")
        ends.append(pl.when(is_cut).then(f"end{i}").otherwise(math.inf))
        inner = pl.col(f"inner{i}").fill_nan(0.0)
        bound = pl.when("single").then(f"end{i}").otherwise(inner)
        bounds.append(pl.when(fits).then(bound).otherwise(math.inf))
    apart = mass(whole) + mass(missing)
    fits = (n_of(whole) >= search.min_leaf) & (n_of(missing) >= search.min_leaf)
    is_tried = fits & (n_of(missing) > 0) & (policy == "best")
    sides = _sides(axes, placements).with_columns(n_of(scored).alias("total"))
    judged = (
        sides.with_columns(**columns)
        .with_columns(**steps)
        .select(
            bound=pl.min_horizontal(bounds) / total,
            end=pl.min_horizontal(ends) / total,
            apart=pl.when(is_tried).then(apart / total).otherwise(math.inf),
            before=mass(scored) / total,
        )
    )
    start = 0
    for axis in axes:
        part = judged.slice(start, len(axis.cells))
        start += len(axis.cells)
        arrays = part["bound"].to_numpy(), part["end"].to_numpy()
        yield Verdict(*arrays, part["apart"][0], part["before"][0])


def _sides(axes: Sequence[Axis], placements: Sequence[tuple[bool, bool]]) -> pl.DataFrame:
    """Give what lies in each cell of some axes, left of it and right of it.

    For every measure: its own name is what lies inside, ``all_...`` what lies in all cells of the
    axis, ``missing_...`` what its missing rows have, ``left0_...`` and ``right0_...`` the sides of the
    cell, with the missing rows where the first placement has them.
    """
    heights = [len(axis.cells) for axis in axes]
    last = np.zeros(sum(heights), dtype=np.bool_)
    last[np.cumsum(heights) - 1] = True
    columns = {"last": last, "single": np.concatenate([axis.is_single() for axis in axes])}
    for i, name in enumerate(axes[0].measures):
        inside = np.concatenate([axis.cells.sums[i] for axis in axes])
        through = np.concatenate([axis.cells.sums[i].cumsum() for axis in axes])
        whole = np.repeat([axis.cells.sums[i].sum() for axis in axes], heights)
        missing = np.repeat([axis.missing[i] for axis in axes], heights)
        columns |= {name: inside, f"all_{name}": whole, f"missing_{name}": missing}
        for j, (to_left, to_right) in enumerate(placements):
            columns[f"left{j}_{name}"] = through - inside + (missing if to_left else 0)
            columns[f"right{j}_{name}"] = whole - through + (missing if to_right else 0)
    return pl.DataFrame(columns)


def _plus(left: Sequence[pl.Expr], right: Sequence[pl.Expr]) -> list[pl.Expr]:
    return [a + b for a, b in zip(left, right, strict=True)]
