"""Rules learned on all folds but some, tried on those: nothing but counts, no row is seen again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from polars_oner.choice import Figures, independence, leave_one_out
from polars_oner.errors import OptionError
from polars_oner.folds import FoldCounts, FoldTables
from polars_oner.intervals import (
    Counts,
    Indices,
    group_starts,
    in_chunks,
    majorities,
    tie_order,
    tie_ranks,
    walk,
)
from polars_oner.learning import Options
from polars_oner.target import ClassTarget
from polars_oner.thresholds import midpoint
from polars_oner.typing import AtCut, Unseen

_MOST_THREADS = 4
"""Each thread holds the counts of a feature once more."""

_NO_CLASS = -1
"""Predicts nothing that any row could have."""


@dataclass(frozen=True)
class Trial:
    """How a rule is applied to rows that it was not learned from.

    ``first`` is the class of values that were not seen, and of missing ones if none was; None for
    the default. ``at_cut`` says on which side of a cut a value that equals it lies.
    """

    first: int | None = None
    at_cut: AtCut = "below"

    @classmethod
    def of(cls, target: ClassTarget, unseen: Unseen, at_cut: AtCut) -> Trial:
        """Settle the first class; an Enum's first label may be one that no row has."""
        if unseen == "default":
            return cls(None, at_cut)
        declared = target.dtype.categories if isinstance(target.dtype, pl.Enum) else target.classes
        occurs = declared[0] == target.classes.cast(declared.dtype)[0]
        return cls(0 if occurs else _NO_CLASS, at_cut)


@dataclass(frozen=True)
class HeldOut:
    """A rule learned without some folds, as far as trying it needs it.

    Attributes
    ----------
    counts
        Its counts in training: ``case``, ``class``, ``n``.
    bounds
        For an ordered feature, how many of the distinct values lie below each cut.
    outcome
        The class of each case; those of missing rows last.
    figures
        What the choice among features needs, learned from the same rows.
    """

    counts: pl.DataFrame
    bounds: Indices | None
    outcome: Indices
    figures: Figures

    def n_errors(self, feature: FoldCounts, fold: int) -> int | float:
        """Count the rows of a fold that the rule gets wrong."""
        value, codes, n, missing = feature.only(fold)
        case = value if self.bounds is None else np.searchsorted(self.bounds, value, side="right")
        wrong = n[self.outcome[case] != codes].sum()
        told = np.arange(len(missing)) == self.outcome[-1]
        total: int | float = (wrong + missing[~told].sum()).item()
        return total


def learn_without(
    feature: FoldCounts,
    left_out: Sequence[int],
    target: ClassTarget,
    n_rows: Counts,
    options: Options,
    trial: Trial,
) -> HeldOut:
    """Learn a feature's rule from all folds but some.

    Parameters
    ----------
    feature
        The feature's counts per fold.
    left_out
        The folds that are not learned from.
    target
        The target over all folds.
    n_rows
        Rows of each class in each fold, of shape (folds, classes).
    options
        How to learn.
    trial
        How the rule will be applied.
    """
    totals = np.delete(n_rows, list(left_out), axis=0).sum(axis=0)
    order, default = tie_order(totals, options.ties), int(np.argmax(totals))
    value, codes, n, missing = feature.without(left_out)
    bounds, empty = None, default
    unseen = default if trial.first is None else trial.first
    if feature.feature.kind == "nominal":
        case, n_cases, empty = value, len(feature.values), unseen
    elif len(value) == 0:
        case, n_cases, bounds = value, 1, np.zeros(0, dtype=np.intp)
    else:
        cells = pl.DataFrame({"value": value, "class": codes.astype(np.uint32), "n": n})
        cutter = options.cutters.get(feature.feature.name)
        if cutter is None:
            found = walk(in_chunks(cells), order, options.min_bucket)
            case, codes, n = (found.counts[name].to_numpy() for name in ("case", "class", "n"))
            codes = codes.astype(np.intp)
            bounds = _bounds_of_gaps(feature.values, found.last[:-1], found.first[1:], trial.at_cut)
        else:
            table = cells.with_columns(value=feature.values.gather(value))
            seen = ClassTarget(target.name, target.dtype, target.classes, totals, target.n_missing)
            cut_points = cutter(table, seen)
            # In training nothing may change sides, whatever is done with values on a cut later.
            sides = _bounds(feature.values, cut_points, "below")
            bounds = _bounds(feature.values, cut_points, trial.at_cut)
            case, codes, n = _add_up(np.searchsorted(sides, value, side="right"), codes, n)
        n_cases = len(bounds) + 1
    some = np.flatnonzero(missing)
    case = np.concatenate([case, np.full(len(some), n_cases)])
    codes, n = np.concatenate([codes, some]), np.concatenate([n, missing[some]])
    starts = group_starts(case)
    most, winner = majorities(starts, tie_ranks(order)[codes], n)
    outcome = np.full(n_cases + 1, empty, dtype=np.intp)
    outcome[n_cases] = unseen
    outcome[case[starts]] = order[winner]
    counts = pl.DataFrame(
        {"case": case.astype(np.uint32), "class": codes.astype(np.uint32), "n": n}
    )
    figures: Figures = {
        "feature": feature.feature.name,
        "n_errors": (n.sum() - most.sum()).item(),
        "identifier": False,
    }
    if feature.feature.kind == "nominal":
        sizes = np.add.reduceat(n, starts)[case[starts] < n_cases]
        figures["identifier"] = bool(2 * (sizes == 1).sum() > n.sum())
    if options.choose == "chi2":
        figures["p_value"] = independence(counts)
    if options.choose == "loo":
        figures["loo_accuracy"] = leave_one_out(counts, totals, options.ties) / totals.sum()
    return HeldOut(counts, bounds, outcome, figures)


def try_out(
    tables: FoldTables,
    target: ClassTarget,
    options: Options,
    trial: Trial,
    left_out: Sequence[int] = (),
) -> list[list[tuple[Figures, int | float]]]:
    """Learn every feature's rule without each fold, and count its errors there.

    Folds in ``left_out`` take no part at all.

    Returns
    -------
    list of list
        Per fold and feature: the figures of the rule, and the rows of the fold that it gets wrong.
    """
    folds = [fold for fold in range(len(tables.labels)) if fold not in left_out]

    def attempt(place: tuple[int, FoldCounts]) -> tuple[Figures, int | float]:
        fold, feature = place
        held_out = (*left_out, fold)
        rule = learn_without(feature, held_out, target, tables.n_rows, options, trial)
        return rule.figures, rule.n_errors(feature, fold)

    places = [(fold, feature) for fold in folds for feature in tables.features]
    # Nearly all the time goes to numpy and Polars, which let other threads run meanwhile.
    with ThreadPoolExecutor(min(pl.thread_pool_size(), _MOST_THREADS)) as pool:
        found = list(pool.map(attempt, places))
    n = len(tables.features)
    return [found[i * n : (i + 1) * n] for i in range(len(folds))]


def cross_validated_accuracy(
    tables: FoldTables,
    target: ClassTarget,
    options: Options,
    trial: Trial,
    left_out: Sequence[int] = (),
) -> Mapping[str, float]:
    """Give each feature's share of rows predicted right by the rule of the other folds."""
    tried = try_out(tables, target, options, trial, left_out)
    if len(tried) < 2:
        msg = "choose='cv' within cross-validation needs rows in at least three folds"
        raise OptionError(msg)
    n_rows = np.delete(tables.n_rows, list(left_out), axis=0).sum().item()
    names = [feature.feature.name for feature in tables.features]
    n_errors = [sum(n for _, n in of_feature) for of_feature in zip(*tried, strict=True)]
    return {name: (n_rows - n) / n_rows for name, n in zip(names, n_errors, strict=True)}


def _bounds(values: pl.Series, cut_points: pl.DataFrame, at_cut: AtCut) -> Indices:
    """Count the values below each cut, those on it included unless they lie above."""
    cuts = cut_points["cut"]
    below = _places(values, cuts, "right")
    if at_cut == "below" or len(cuts) == 0:
        return below
    middle = cut_points.select(_is_middle(values.dtype)).to_series().to_numpy()
    left = _places(values, cut_points["left_max"], "right")
    return np.where(middle, np.maximum(_places(values, cuts, "left"), left), below)


def _bounds_of_gaps(values: pl.Series, last: pl.Series, first: pl.Series, at_cut: AtCut) -> Indices:
    """Cut midway between neighbouring training values, given by place; see `_bounds`."""
    bounds = last.to_numpy().astype(np.intp) + 1
    # Only where a value lies between them does the place of the cut matter.
    wide = np.flatnonzero(first.to_numpy() > bounds)
    if len(wide):
        ends = pl.DataFrame(
            {"left_max": values.gather(last[wide]), "right_min": values.gather(first[wide])}
        )
        cut = midpoint(pl.col("left_max"), pl.col("right_min"), values.dtype)
        bounds[wide] = _bounds(values, ends.with_columns(cut=cut), at_cut)
    return bounds


def _places(values: pl.Series, cuts: pl.Series, side: Literal["left", "right"]) -> Indices:
    found = values.to_physical().search_sorted(cuts.to_physical(), side=side)
    return found.to_numpy().astype(np.intp)


def _is_middle(dtype: pl.DataType) -> pl.Expr:
    """Tell where a cut is the middle of its gap, not the middle rounded down to the dtype."""
    left, cut, right = pl.col("left_max"), pl.col("cut"), pl.col("right_min")
    if dtype.is_float():
        return cut.is_not_null()
    if isinstance(dtype, pl.Enum):
        return cut == right
    return (cut - left) == (right - cut)


def _add_up(case: Indices, codes: Indices, n: Counts) -> tuple[Indices, Indices, Counts]:
    table = pl.DataFrame({"case": case, "class": codes, "n": n})
    total = table.group_by("case", "class").agg(pl.col("n").sum()).sort("case", "class")
    return total["case"].to_numpy(), total["class"].to_numpy(), total["n"].to_numpy()
