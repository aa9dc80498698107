"""Every bound is a lower bound: brute force over all that a cut in a bin could do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import polars as pl
import pytest

from polars_oner.bounds import class_bound, number_bound
from polars_oner.criteria import ClassCriterion, NumberCriterion
from polars_oner.typing import ClassCriterionName, NumberCriterionName

REDUCE: dict[ClassCriterionName, Any] = {"gini": "sum", "entropy": "sum", "error": "max"}
ROUNDING = 1e-9

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def class_mass(name: str, counts: Sequence[int]) -> float:
    """Give rows times impurity of a side, straight from the definitions."""
    n = sum(counts)
    if n == 0:
        return 0.0
    shares = [count / n for count in counts]
    return (
        n
        * {
            "gini": 1 - sum(p * p for p in shares),
            "entropy": -sum(p * math.log2(p) for p in shares if p),
            "error": 1 - max(shares),
        }[name]
    )


def number_mass(name: str, y: Numbers) -> float:
    if name == "variance":
        return len(y) * float(np.var(y)) if len(y) else 0.0
    return len(y) * float(np.std(y, ddof=1)) if len(y) > 1 else 0.0


def class_bounds(name: ClassCriterionName, bins: Sequence[Sequence[Sequence[int]]]) -> list[float]:
    """Bound several bins at once; each is given as the counts left of it, in it, right of it."""
    n_classes = len(bins[0][0])
    sides = [[f"{side}{k}" for k in range(n_classes)] for side in "lir"]
    rows = [[n for side in parts for n in side] for parts in bins]
    table = pl.DataFrame(rows, schema=[*chain(*sides)], orient="row")
    left, inside, right = ([pl.col(c) for c in side] for side in sides)
    total = pl.sum_horizontal(*left, *inside, *right)
    criterion = ClassCriterion(name, REDUCE[name])
    bound = class_bound(criterion, left, inside, right, total, shared=lambda _, value: value)
    return table.select(table[:, 0].alias("row"), bound=bound)["bound"].to_list()


def best_class_cut(name: str, parts: Sequence[Sequence[int]]) -> float:
    """Try every part of the bin that any order of its rows could send left."""
    left, inside, right = parts
    return min(
        class_mass(name, [a + part for a, part in zip(left, go, strict=True)])
        + class_mass(name, [c + b - part for c, b, part in zip(right, inside, go, strict=True)])
        for go in product(*(range(b + 1) for b in inside))
    )


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5])
def test_class_bounds_hold(name: ClassCriterionName, n_classes: int) -> None:
    generator = np.random.default_rng(n_classes)
    most = [9, 9, 5, 4, 3][n_classes - 1]
    bins: list[list[list[int]]] = []
    for scale in (1, 6, 40):
        for _ in range(60):
            drawn = [
                generator.integers(0, size + 1, n_classes) * (generator.random(n_classes) < 0.8)
                for size in (scale, most, scale)
            ]
            bins.append([side.tolist() for side in drawn])
    bins = [parts for parts in bins if sum(map(sum, parts)) > 0]
    for parts, bound in zip(bins, class_bounds(name, bins), strict=True):
        assert bound <= best_class_cut(name, parts) + ROUNDING, parts


@pytest.mark.parametrize("name", REDUCE)
def test_two_class_bounds_are_reached(name: ClassCriterionName) -> None:
    """With two classes the rows of a bin can stand in an order that reaches the bound."""
    bins = [[[5, 1], [3, 2], [0, 7]], [[0, 0], [4, 4], [9, 9]], [[2, 2], [1, 0], [2, 3]]]
    for parts, bound in zip(bins, class_bounds(name, bins), strict=True):
        assert bound == pytest.approx(best_class_cut(name, parts), abs=1e-9)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_error_bound_is_reached_with_many_classes(n_classes: int) -> None:
    generator = np.random.default_rng(0)
    bins = [generator.integers(0, 5, (3, n_classes)).tolist() for _ in range(40)]
    for parts, bound in zip(bins, class_bounds("error", bins), strict=True):
        assert bound == pytest.approx(best_class_cut("error", parts), abs=1e-9)


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_class_bounds_close_the_bins_of_noise(name: ClassCriterionName, n_classes: int) -> None:
    """On bins of noise the bounds come near what any cut reaches, so that most bins can go."""
    generator = np.random.default_rng(n_classes)
    n_bins, rows = 1000, 100
    counts = generator.multinomial(rows, [1 / n_classes] * n_classes, n_bins)
    through = counts.cumsum(axis=0)
    whole = through[-1]
    bins = [
        [(after - here).tolist(), here.tolist(), (whole - after).tolist()]
        for here, after in zip(counts, through, strict=True)
    ]
    before = class_mass(name, whole.tolist())
    bounds = np.array(class_bounds(name, bins))
    ends = [
        class_mass(name, after.tolist()) + class_mass(name, (whole - after).tolist())
        for after in through[:-1]
    ]
    assert (bounds > 0.98 * before).all()
    assert (bounds <= before + ROUNDING * before).all()
    # Bins of a thousandth of all rows cannot gain much more than the best of their ends.
    assert (bounds > min(ends)).mean() > (0.3 if name == "error" else 0.6)


def number_bounds(
    name: NumberCriterionName, bins: Sequence[Sequence[Numbers]], low: float, high: float
) -> list[float]:
    names = [[f"{side}{m}" for m in "nsq"] for side in "lir"]
    rows = [[m for y in parts for m in (len(y), y.sum(), (y * y).sum())] for parts in bins]
    table = pl.DataFrame(rows, schema=dict.fromkeys(chain(*names), pl.Float64), orient="row")
    left, inside, right = ([pl.col(c) for c in side] for side in names)
    bound = number_bound(NumberCriterion(name), left, inside, right, low, high)
    return table.select(table[:, 0].alias("row"), bound=bound)["bound"].to_list()


def best_number_cut(name: str, parts: Sequence[Numbers]) -> float:
    """Try every part of the bin that any order of its rows could send left."""
    left, inside, right = parts
    masses = []
    for mask in product((False, True), repeat=len(inside)):
        go = np.array(mask, dtype=bool)
        masses.append(
            number_mass(name, np.concatenate([left, inside[go]]))
            + number_mass(name, np.concatenate([inside[~go], right]))
        )
    return min(masses)


TARGETS: dict[str, Callable[[np.random.Generator, int], Numbers]] = {
    "normal": lambda g, n: g.normal(size=n),
    "binary": lambda g, n: g.integers(0, 2, n).astype(np.float64),
    "skewed": lambda g, n: np.round(g.exponential(1, n), 1),
    "heavy": lambda g, n: g.standard_cauchy(n) ** 3,
    "constant": lambda g, n: np.full(n, 2.0),
}


@pytest.mark.parametrize("name", ["variance", "std"])
@pytest.mark.parametrize("target", TARGETS)
def test_number_bounds_hold(name: NumberCriterionName, target: str) -> None:
    generator = np.random.default_rng(len(target))
    bins = []
    for _ in range(60):
        sizes = generator.integers([0, 1, 0], [8, 7, 8])
        parts = [TARGETS[target](generator, int(n)) for n in sizes]
        whole = np.concatenate(parts)
        # All shifted and scaled to one range, as one search has one target.
        scale = np.ptp(whole) or 1.0
        bins.append([(y - whole.min()) / scale - 0.3 for y in parts])
    bounds = number_bounds(name, bins, -0.3, 0.7)
    for parts, bound in zip(bins, bounds, strict=True):
        # A NaN bound counts as none.
        assert not bound > best_number_cut(name, parts) + ROUNDING, parts


@pytest.mark.parametrize(("name", "share"), [("variance", 0.98), ("std", 0.95)])
def test_number_bounds_close_the_bins_of_noise(name: NumberCriterionName, share: float) -> None:
    generator = np.random.default_rng(0)
    n_bins, rows = 2000, 50
    y = generator.normal(size=n_bins * rows)
    y -= y.mean()
    edges = range(rows * 10, len(y), rows * 37)
    bins = [(y[:at], y[at : at + rows], y[at + rows :]) for at in edges]
    bounds = np.array(number_bounds(name, bins, y.min(), y.max()))
    before = number_mass(name, y)
    assert (bounds > share * before).all()
    assert (bounds < before).all()


def test_variance_uses_the_spread_inside_a_bin() -> None:
    """Rows that are all alike leave no choice but how many go left, and the bound sees it."""
    generator = np.random.default_rng(1)
    left, right = generator.normal(size=200), generator.normal(size=200)
    inside = np.full(40, 0.1)
    low, high = -4.0, 4.0
    (bound,) = number_bounds("variance", [(left, inside, right)], low, high)
    cuts = [
        number_mass("variance", np.concatenate([left, inside[:j]]))
        + number_mass("variance", np.concatenate([inside[j:], right]))
        for j in range(len(inside) + 1)
    ]
    assert bound == pytest.approx(min(cuts), rel=1e-6)


@pytest.mark.parametrize("name", ["gini", "entropy", "error"])
def test_the_work_of_a_bound_grows_with_the_classes_alone(name: ClassCriterionName) -> None:
    """Were it to grow with their square, 60 classes would take gigabytes."""

    def columns_read(n_classes: int) -> int:
        left, inside, right = ([pl.col(f"{s}{k}") for k in range(n_classes)] for s in "lir")
        made: dict[str, pl.Expr] = {}

        def shared(name: str, value: pl.Expr) -> pl.Expr:
            made[name] = value
            return pl.col(name)

        criterion = ClassCriterion(name, REDUCE[name])
        bound = class_bound(criterion, left, inside, right, pl.col("total"), shared=shared)
        return sum(len(e.meta.root_names()) for e in (bound, *made.values()))

    assert columns_read(40) <= 2.2 * columns_read(20)
