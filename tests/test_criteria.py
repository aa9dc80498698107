"""Criteria by hand, by numpy and by scipy; exact where counts are, safe where numbers are far away."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import polars_oner as po
from polars_oner.criteria import ClassCriterion, NumberCriterion, criterion_for
from polars_oner.typing import (
    CLASS_CRITERIA,
    NUMBER_CRITERIA,
    ClassCriterionName,
    CriterionName,
    NumberCriterionName,
)

REDUCE: dict[ClassCriterionName, Any] = {"gini": "sum", "entropy": "sum", "error": "max"}
SIDES = [[3, 1], [1, 1, 1], [5], [0, 7], [10, 0, 3, 2], [1] * 20, [10**9, 1]]


def by_definition(name: ClassCriterionName, counts: list[int]) -> float:
    shares = np.array(counts) / sum(counts)
    if name == "entropy":
        return float(stats.entropy(shares, base=2))
    if name == "gini":
        return 1 - float((shares**2).sum())
    return 1 - float(shares.max())


@pytest.mark.parametrize("name", CLASS_CRITERIA)
@pytest.mark.parametrize("counts", SIDES, ids=str)
def test_class_criteria_by_definition(name: ClassCriterionName, counts: list[int]) -> None:
    criterion = ClassCriterion(name, REDUCE[name])
    columns = {f"c{k}": [n] for k, n in enumerate(counts)}
    mass = criterion.side_mass([pl.col(c) for c in columns], pl.lit(sum(counts)))
    found = pl.DataFrame(columns).select(mass).item() / sum(counts)
    assert found == pytest.approx(by_definition(name, counts), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", CLASS_CRITERIA)
def test_pure_and_empty_sides_score_exactly_zero(name: ClassCriterionName) -> None:
    criterion = ClassCriterion(name, REDUCE[name])
    table = pl.DataFrame({"a": [0, 7, 0, 123_456_789], "b": [0, 0, 3, 0]})
    mass = table.select(criterion.side_mass([pl.col("a"), pl.col("b")], pl.lit(200_000_000)))
    assert mass.to_series().to_list() == [0.0] * 4


@pytest.mark.parametrize("name", NUMBER_CRITERIA)
@pytest.mark.parametrize("shift", [0.0, 0.5, -3.0])
def test_number_criteria_are_numpy_s(name: NumberCriterionName, shift: float) -> None:
    generator = np.random.default_rng(0)
    for n in (1, 2, 3, 50):
        y = generator.normal(size=n)
        moments = pl.DataFrame({"n": n, "s": (y - shift).sum(), "q": ((y - shift) ** 2).sum()})
        mass = NumberCriterion(name).mass(pl.col("n"), pl.col("s"), pl.col("q"))
        ddof = 1 if name == "std" and n > 1 else 0
        expected = y.std(ddof=ddof) if name == "std" else y.var()
        assert moments.select(mass).item() / n == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", NUMBER_CRITERIA)
def test_a_side_of_no_row_or_one_scores_zero(name: NumberCriterionName) -> None:
    moments = pl.DataFrame({"n": [0, 1], "s": [0.0, 3.0], "q": [0.0, 9.0]})
    mass = NumberCriterion(name).mass(pl.col("n"), pl.col("s"), pl.col("q"))
    assert moments.select(mass).to_series().to_list() == [0.0, 0.0]


def test_socks_by_hand() -> None:
    socks = pl.DataFrame({"basket": [1, 1, 1, 2, 2, 2, 2], "red": [1, 0, 1, 0, 1, 0, 0]})
    expected = Fraction(3, 7) * Fraction(4, 9) + Fraction(4, 7) * Fraction(3, 8)
    assert expected == Fraction(17, 42)
    scores = po.split_scores(socks, "red", "basket")
    assert scores.select("score_left", "score_right", "score").row(0) == pytest.approx(
        (4 / 9, 3 / 8, 17 / 42), abs=1e-15
    )
    (gain,) = po.best_splits(socks, "red")["gain"]
    assert gain == pytest.approx(float(Fraction(24, 49) - expected), abs=1e-15)


def test_std_of_a_binary_target_counts_with_ddof_one() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 2, 2], "y": [True, False, True, True, True]})
    (row,) = po.split_scores(frame, "y", "x", criterion="std").rows(named=True)
    left = np.std([1, 0, 1], ddof=1)
    assert row["score_left"] == pytest.approx(left, rel=1e-15)
    assert row["score_right"] == 0.0
    assert row["score"] == pytest.approx(0.6 * left, rel=1e-15)


def numpy_scores(x: Any, y: Any, criterion: CriterionName) -> list[float]:
    scores = []
    for cut in np.unique(x)[:-1]:
        sides = [y[x <= cut], y[x > cut]]
        spread = [
            (side.std(ddof=1) if len(side) > 1 else 0.0) if criterion == "std" else side.var()
            for side in sides
        ]
        scores.append(sum(len(s) * v for s, v in zip(sides, spread, strict=True)) / len(y))
    return scores


@pytest.mark.parametrize("criterion", NUMBER_CRITERIA)
@pytest.mark.parametrize(
    ("center", "scale"), [(0.0, 1.0), (1e9, 1.0), (-1e9, 1.0), (0.0, 1e-9), (5.0, 1e-9), (0, 1e150)]
)
def test_a_target_far_from_zero_scores_to_nine_digits(
    criterion: CriterionName, center: float, scale: float
) -> None:
    generator = np.random.default_rng(1)
    x = generator.integers(0, 12, 400)
    deviation = generator.normal(size=400) + (x > 4)
    # What the column holds is the rounded sum: numpy gets the same, moved back exactly.
    y = center + scale * deviation
    frame = pl.DataFrame({"x": x, "y": y})
    expected = numpy_scores(x, (y - center) / scale, criterion)
    unit = scale if criterion == "std" else scale**2
    for frames in (frame, frame.lazy()):
        scores: Any = po.split_scores(frames, "y", "x", criterion=criterion)  # type: ignore[type-var]
        found = scores.lazy().collect()["score"].to_numpy() / unit
        assert found == pytest.approx(expected, rel=1e-9)
        table: Any = po.best_splits(frames, "y", criterion=criterion)  # type: ignore[type-var]
        assert table.lazy().collect()["score"][0] / unit == pytest.approx(min(expected), rel=1e-9)
    split = po.best_split(frame, "y", criterion=criterion, strategy="refine")
    assert split.score is not None
    assert split.score / unit == pytest.approx(min(expected), rel=1e-9)


def test_whole_numbers_far_from_zero_are_subtracted_exactly() -> None:
    y = [2**62, 2**62 + 1, 2**62 + 4, 2**62 + 5]
    for dtype in (pl.Int64, pl.UInt64, pl.Int128):
        frame = pl.DataFrame({"x": [1, 2, 3, 4], "y": pl.Series(y, dtype=dtype)})
        table = po.best_splits(frame, "y", criterion="variance")
        assert table.select("condition", "score").row(0) == ("x <= 2", 0.25)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pl.Boolean, [True, True, True, False]),
        (pl.Int8, [127, 127, -128, -128]),
        (pl.UInt8, [255, 255, 0, 1]),
        (pl.UInt32, [2**32 - 1, 2**32 - 1, 0, 1]),
        (pl.Int32, [2**31 - 1, 2**31 - 1, -(2**31), 0]),
        (pl.Float32, [3e38, 3e38, 1.0, 2.0]),
        (pl.Decimal(10, 2), [Decimal("99.5"), Decimal("99.25"), Decimal(1), Decimal(2)]),
    ],
)
def test_narrow_targets_do_not_wrap(dtype: Any, values: list[Any]) -> None:
    y = np.array([float(v) for v in pl.Series(values, dtype=dtype)] * 300)
    x = np.arange(len(y)) % 4
    frame = pl.DataFrame({"x": x, "y": pl.Series(values * 300, dtype=dtype)})
    found = po.split_scores(frame, "y", "x", criterion="variance")["score"].to_list()
    assert found == pytest.approx(numpy_scores(x, y, "variance"), rel=1e-9, abs=1e-12 * y.var())


def test_narrow_weights_and_many_rows_do_not_wrap() -> None:
    frame = pl.DataFrame(
        {
            "x": [1, 2, 3, 4],
            "y": pl.Series([0, 0, 1, 1], dtype=pl.UInt8),
            "w": pl.Series([2**29 + 1] * 4, dtype=pl.UInt32),
        }
    )
    table = po.best_splits(frame, "y", "x", weights="w")
    assert table.select("n_left", "n_right", "score").row(0) == (2**30 + 2, 2**30 + 2, 0.0)
    split = po.best_split(frame, "y", "x", weights="w")
    assert split.left is not None
    assert split.left.counts == (2**30 + 2, 0)
    small = pl.DataFrame(
        {"x": [0, 1] * 300, "y": [0, 1] * 300, "w": pl.Series([100] * 600, dtype=pl.Int8)}
    )
    assert po.best_splits(small, "y", "x", weights="w")["n_left"].item() == 30_000


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_mirrored_counts_tie_exactly(criterion: CriterionName) -> None:
    """Cuts that differ but in the order of their sides or classes score the same to the last bit."""
    generator = np.random.default_rng(0)
    for n_classes in (2, 3, 7):
        half = generator.integers(0, n_classes, 50)
        y = np.concatenate([half, half[::-1]])
        frame = pl.DataFrame({"x": np.arange(100), "y": y})
        scores = po.split_scores(frame, "y", "x", criterion=criterion)["score"]
        assert scores.to_list() == scores.reverse().to_list()
        (cut,) = po.best_splits(frame, "y", criterion=criterion)["threshold"]
        assert cut == scores.arg_min()
        renamed = frame.with_columns(y=(pl.col("y") + 1) % n_classes)
        again = po.split_scores(renamed, "y", "x", criterion=criterion)["score"]
        assert again.to_list() == scores.to_list()


def test_thirds_tie() -> None:
    # 1/3 is no float: sums of shares would order these two columns by their rounding.
    rows = {"a": [1, 1, 1, 2, 2, 2], "b": [2, 2, 2, 1, 1, 1], "y": [0, 0, 1, 0, 1, 1]}
    table = po.best_splits(pl.DataFrame(rows), "y", criterion="entropy")
    assert table["feature"].to_list() == ["a", "b"]
    assert table["score"][0] == table["score"][1]


@pytest.mark.parametrize(
    ("criterion", "dtype", "words"),
    [
        ("gini", pl.Float64, ["'gini'", "'y'", "Float64", "'std', 'variance'"]),
        ("error", pl.Decimal(10, 2), ["'error'", "'y'", "Decimal", "'std', 'variance'"]),
        ("std", pl.String, ["'std'", "'y'", "String", "'gini', 'entropy', 'error'"]),
        ("variance", pl.Date, ["'variance'", "Date", "'gini', 'entropy', 'error'"]),
        ("entropy", pl.List(pl.Int64), ["'entropy'", "List(Int64)"]),
    ],
)
def test_a_criterion_that_cannot_read_the_target(
    criterion: CriterionName, dtype: Any, words: list[str]
) -> None:
    empty = pl.LazyFrame(schema={"x": pl.Int64, "y": dtype})
    with pytest.raises(po.DtypeError) as caught:
        po.best_splits(empty, "y", criterion=criterion)
    for word in words:
        assert word in str(caught.value)


def test_an_unknown_criterion() -> None:
    with pytest.raises(po.OptionError, match="must be one of 'gini', 'entropy', 'error', 'std'"):
        criterion_for("giny", "y", pl.Int64())
