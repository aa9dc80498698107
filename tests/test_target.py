"""The target's classes or spread, weights, and codes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import polars_oner as po
from polars_oner.target import class_target, number_target, with_target

LEVELS = ["low", "mid", "high", "never"]


def classes(values: Any, dtype: Any = None, **options: Any) -> Any:
    y = pl.Series("y", values, dtype=dtype)
    return class_target(y.to_frame().lazy(), "y", y.dtype, **options)


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (pl.Boolean(), [True, False, True, None], [False, True]),
        (pl.Int8(), [3, -100, 3, None], [-100, 3]),
        (pl.Int64(), [2**62, -(2**62), 5], [-(2**62), 5, 2**62]),
        (pl.UInt64(), [2**64 - 1, 0], [0, 2**64 - 1]),
        (pl.Int128(), [2**100, -1], [-1, 2**100]),
        (pl.String(), ["b", "", "a", "B", None], ["", "B", "a", "b"]),
        (pl.String(), ["twelve bytes", "thirteen byte", "thirteen bytf", "", "äöüäöü"], None),
        (pl.String(), [chr(ord("a") + 7 * i % 20) for i in range(20)], None),
        (pl.Categorical(), [chr(ord("a") + 7 * i % 20) for i in range(20)], None),
        (pl.Enum(LEVELS), ["high", "low", "mid"], ["low", "mid", "high"]),
        (pl.Categorical(), ["z", "a", "m"], ["a", "m", "z"]),
        (pl.Date(), [dt.date(2024, 1, 2), dt.date(2024, 1, 1)], None),
        (pl.Datetime("us"), [dt.datetime(2024, 1, 1, microsecond=i) for i in (1, 0)], None),
        (pl.Duration("us"), [dt.timedelta(microseconds=1), dt.timedelta(-1)], None),
        (pl.Time(), [dt.time(0, 0, 0, 1), dt.time(0)], None),
    ],
)
def test_classes_in_order_and_their_codes(
    dtype: pl.DataType, values: list[Any], expected: list[Any] | None
) -> None:
    target = classes(values, dtype)
    present = [v for v in values if v is not None]
    assert target.classes.to_list() == (expected or sorted(set(present)))
    assert target.n_missing == len(values) - len(present)
    assert target.n_rows == len(present)
    assert target.counts.tolist() == [present.count(c) for c in target.classes.to_list()]
    frame = pl.DataFrame({"y": pl.Series(values, dtype=dtype)}).filter(pl.col("y").is_not_null())
    codes = frame.select(target.code()).to_series()
    assert codes.dtype == pl.UInt32
    assert [target.classes[code] for code in codes] == present


def test_times_that_print_alike_are_two_classes() -> None:
    y = pl.Series("y", [1, 2, 1]).cast(pl.Time)
    target = class_target(y.to_frame().lazy(), "y", y.dtype)
    assert target.counts.tolist() == [2, 1]
    assert y.to_frame().select(target.code()).to_series().to_list() == [0, 1, 0]


def test_hours_that_repeat_are_two_classes() -> None:
    # 2020-10-25 02:00 comes twice in Berlin.
    y = pl.Series("y", [1_603_584_000, 1_603_587_600]) * 1_000_000
    y = y.cast(pl.Datetime("us", "Europe/Berlin"))
    target = class_target(y.to_frame().lazy(), "y", y.dtype)
    assert y.to_frame().select(target.code()).to_series().to_list() == [0, 1]


def test_one_class_alone_has_code_zero() -> None:
    for value in (True, False, 7, "x"):
        target = classes([value, value])
        assert pl.DataFrame({"y": [value]}).select(target.code()).item() == 0


def test_no_rows_with_a_target() -> None:
    with pytest.raises(po.EmptyTargetError, match="all 2 values of 'y' are missing"):
        classes([None, None], pl.Int64)
    with pytest.raises(po.EmptyTargetError, match="no rows: the frame is empty"):
        classes([], pl.Int64)
    empty = pl.Series("y", [math.nan, None], dtype=pl.Float64)
    with pytest.raises(po.EmptyTargetError, match="all 2 values of 'y' are missing"):
        number_target(empty.to_frame().lazy(), "y", empty.dtype)


# --- numbers ---


def numbers(values: Any, dtype: Any = None, **options: Any) -> Any:
    y = pl.Series("y", values, dtype=dtype)
    return number_target(y.to_frame().lazy(), "y", y.dtype, **options)


def test_center_and_range() -> None:
    target = numbers([1.0, 2.0, 6.0, None, math.nan])
    assert (target.mean, target.center, target.low, target.high) == (3.0, 3.0, -2.0, 3.0)
    assert (target.n_rows, target.n_missing) == (3, 2)


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Int128])
def test_whole_numbers_have_a_whole_center(dtype: Any) -> None:
    base = 2**62
    target = numbers([base, base + 1, base + 3], dtype)
    assert isinstance(target.center, int)
    assert target.high - target.low == 3
    rows = pl.DataFrame({"y": pl.Series([base, base + 1, base + 3], dtype=dtype)})
    deviations = rows.select(target.deviation()).to_series()
    assert (deviations - deviations[0]).to_list() == [0.0, 1.0, 3.0]
    assert (deviations.min(), deviations.max()) == (target.low, target.high)


def test_booleans_and_decimals_are_numbers() -> None:
    assert numbers([True, False, True, True]).mean == 0.75
    assert numbers([Decimal("0.10"), Decimal("0.30")]).mean == pytest.approx(0.2)


@pytest.mark.parametrize("values", [[1.0, math.inf], [-math.inf, 2.0], [math.inf, -math.inf]])
def test_an_infinite_target_has_no_spread(values: list[float]) -> None:
    with pytest.raises(po.OneRError, match="target 'y' has infinite values"):
        numbers(values)
    with pytest.raises(po.OneRError, match="target 'y' has infinite values"):
        po.best_split(pl.DataFrame({"x": [1, 2], "y": values}), "y", criterion="std")


# --- weights ---


def weighted(y: list[Any], w: Any, dtype: Any = None) -> pl.DataFrame:
    return pl.DataFrame({"x": range(len(y)), "y": y, "w": pl.Series(w, dtype=dtype)})


def test_weights_count_as_rows() -> None:
    frame = weighted(["a", "b", "a", None], [2, 3, 0, 5])
    target = class_target(frame.lazy(), "y", pl.String(), weights="w")
    assert target.counts.tolist() == [2, 3]
    assert target.counts.dtype == "int64"
    assert target.n_missing == 5
    assert with_target(frame.lazy(), "y", pl.String(), "w").collect().height == 2


def test_a_class_of_weight_zero_is_absent() -> None:
    target = class_target(weighted(["a", "b"], [1, 0]).lazy(), "y", pl.String(), weights="w")
    assert target.classes.to_list() == ["a"]
    with pytest.raises(po.EmptyTargetError):
        class_target(weighted(["a", "b"], [0, 0]).lazy(), "y", pl.String(), weights="w")


def test_the_mean_is_weighted() -> None:
    frame = weighted([1.0, 5.0], [3.0, 1.0])
    target = number_target(frame.lazy(), "y", pl.Float64(), weights="w")
    assert (target.mean, target.n_rows) == (2.0, 4.0)


@pytest.mark.parametrize("bad", [None, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("criterion", ["gini", "std"])
def test_unusable_weights_raise(bad: float | None, criterion: Any) -> None:
    frame = weighted([0, 1, 1], [1.0, bad, 2.0], pl.Float64)
    with pytest.raises(po.WeightError, match="weights column 'w' has 1 values"):
        po.best_split(frame, "y", "x", criterion=criterion, weights="w")
