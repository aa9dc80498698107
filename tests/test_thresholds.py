"""A cut separates its neighbours in every dtype, and so does its text."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_oner as po
from polars_oner.thresholds import as_number, as_text, exact_values, midpoint_value, threshold
from polars_oner.typing import CUTS, Cut

F32 = 3.4028234663852886e38
POOLS: list[tuple[pl.DataType, list[Any]]] = [
    (pl.Int8(), [-128, -127, -1, 0, 1, 126, 127]),
    (pl.UInt8(), [0, 1, 2, 254, 255]),
    (pl.Int16(), [-(2**15), 0, 2**15 - 1]),
    (pl.Int32(), [-(2**31), -3, 0, 2**31 - 1]),
    (pl.UInt32(), [0, 7, 2**32 - 2, 2**32 - 1]),
    (pl.Int64(), [-(2**63), -(2**53) - 1, 0, 3, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 2**63 - 1]),
    (pl.UInt64(), [0, 2**53, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]),
    (pl.Int128(), [-(2**127), -5, 2**100, 2**100 + 1, 2**127 - 1]),
    (pl.UInt128(), [0, 2**64, 2**127, 2**128 - 2, 2**128 - 1]),
    (
        pl.Float64(),
        [
            *(-math.inf, -1.7976931348623157e308, -1e300, -1.5, -5e-324, 0.0, 5e-324),
            *(0.1, 0.30000000000000004, 1.0, math.nextafter(1.0, 2.0), 1e22, 1.7e308, math.inf),
        ],
    ),
    (pl.Float32(), [-math.inf, -F32, -1e-45, 0.0, 1e-45, 0.1, 1.0, 1.0000001, F32, math.inf]),
    (pl.Decimal(10, 2), [Decimal(t) for t in ("-9.99", "-0.01", "0", "0.01", "0.04", "99")]),
    (pl.Decimal(38, 30), [Decimal("-0.1"), Decimal("0.1"), Decimal(1).scaleb(-30) + 1]),
    (pl.Decimal(38, 0), [Decimal(10**36), Decimal(10**36 + 1), Decimal(10**36 + 4)]),
    (pl.Date(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 1, 1)]),
    (pl.Datetime("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)]),
    (pl.Datetime("ms"), [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1000)]),
    (pl.Enum(["S", "M", "L"]), ["S", "M", "L"]),
]  # fmt: skip
PHYSICAL: list[tuple[pl.DataType, list[int]]] = [
    (pl.Datetime("ns"), [-(2**62), -1, 0, 1, 2, 2**62 + 1]),
    (pl.Duration("ns"), [-(2**62), -1, 0, 1, 1000, 2**62]),
    (pl.Duration("us"), [-90_061_000_001, 0, 3_600_000_000, 86_400_000_001]),
    (pl.Time(), [0, 1, 999, 1000, 86_399_999_999_999]),
]


def columns() -> list[pl.Series]:
    plain = [pl.Series("x", values, dtype=dtype) for dtype, values in POOLS]
    return plain + [pl.Series("x", values).cast(dtype) for dtype, values in PHYSICAL]


COLUMNS = [pytest.param(values, id=str(values.dtype)) for values in columns()]


def gaps(values: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"left": values[:-1], "right": values[1:]})


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("values", COLUMNS)
def test_a_cut_separates_in_its_dtype(values: pl.Series, cut: Cut) -> None:
    left, right = pl.col("left"), pl.col("right")
    cuts = gaps(values).with_columns(at=threshold(left, right, values.dtype, cut))
    assert cuts.schema["at"] == values.dtype
    assert cuts.select(((left <= pl.col("at")) & (pl.col("at") < right)).all()).item()
    if cut == "value":
        assert cuts["at"].equals(cuts["left"])


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("values", COLUMNS)
def test_a_cut_as_number_separates(values: pl.Series, cut: Cut) -> None:
    dtype = values.dtype
    left, right = pl.col("left"), pl.col("right")
    numbers = gaps(values).select("left", "right", at=as_number(left, right, dtype, cut))
    assert numbers.schema["at"] == pl.Float64
    if not dtype.is_numeric():
        assert numbers["at"].is_null().all()
        return
    for low, high, at in numbers.iter_rows():
        if dtype.is_integer():
            # Python compares integers and floats exactly.
            assert at is None or low <= at < high
            assert at is not None or float(low) == float(high) or abs(low) >= 2**53
        elif dtype.is_float():
            assert low <= at < high
        else:
            assert at is None or float(low) <= at <= float(high)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("values", COLUMNS)
def test_the_text_of_a_cut_reads_back(values: pl.Series, cut: Cut) -> None:
    dtype = values.dtype
    left, right = pl.col("left"), pl.col("right")
    texts = gaps(values).select(
        left.to_physical() if dtype.is_temporal() else left,
        right.to_physical() if dtype.is_temporal() else right,
        text=as_text(left, right, dtype, cut),
    )
    for low, high, text in texts.iter_rows():
        if isinstance(dtype, pl.Enum):
            labels = dtype.categories.to_list()
            assert labels.index(low) <= labels.index(text.strip('"')) < labels.index(high)
        elif dtype.is_float():
            assert low <= float(text) < high
        elif dtype.is_numeric():
            assert Decimal(low) <= Decimal(text) < Decimal(high)
        else:
            assert low <= read(text, dtype) < high


UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
UNITS |= {"h": 3600 * 10**9, "d": 86400 * 10**9}


def read(text: str, dtype: pl.DataType) -> int:
    """Read a date, time or duration as the integer behind it."""
    if isinstance(dtype, pl.Duration):
        parts = re.findall(r"(-?\d+)(ns|us|µs|ms|s|m|h|d)", text)
        assert "".join(n + unit for n, unit in parts) == text.replace(" ", "")
        nanoseconds = sum(int(n) * UNITS[unit] for n, unit in parts)
        return nanoseconds // {"ns": 1, "us": 10**3, "ms": 10**6}[dtype.time_unit]
    form = (
        "%F"
        if isinstance(dtype, pl.Date)
        else "%T%.f"
        if isinstance(dtype, pl.Time)
        else "%F %T%.f"
    )
    parsed = pl.Series([text]).str.strptime(dtype, form)  # type: ignore[arg-type]
    return int(parsed.to_physical().item())


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("values", COLUMNS)
def test_the_split_of_two_neighbours(values: pl.Series, cut: Cut) -> None:
    for start in range(len(values) - 1):
        x = values[start : start + 2]
        frame = pl.DataFrame({"x": x, "y": [0, 1]})
        split = po.best_split(frame, "y", cut=cut)
        assert (split.left_max, split.right_min) == tuple(exact_values(x))
        if isinstance(values.dtype, pl.Enum):
            assert split.threshold == x[0]
        else:
            assert split.left_max <= split.threshold < split.right_min
        assert frame.select(split.predict())["prediction"].to_list() == [0, 1]


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2, unique=True))
@settings(deadline=None)
def test_midpoint_value_of_floats(values: list[float]) -> None:
    left, right = sorted(values)
    assert left <= midpoint_value(left, right) < right


@pytest.mark.parametrize(
    ("left", "right", "middle"),
    [
        (64, 65, 64.5),
        (64, 68, 66),
        (2**60, 2**60 + 1, 2**60),
        (-3, -2, -2.5),
        (Decimal("0.01"), Decimal("0.02"), Decimal("0.015")),
        (Decimal(10**37), Decimal(10**37 + 1), Decimal(f"{10**37}.5")),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 4), dt.date(2024, 1, 2)),
        (dt.timedelta(0), dt.timedelta(days=1), dt.timedelta(hours=12)),
        (dt.time(1), dt.time(3), dt.time(1)),
        (False, True, False),
        ("a", "c", "a"),
        (1.0, math.inf, 1.0),
        (-math.inf, math.inf, -math.inf),
        (1.6e308, 1.7e308, 1.65e308),
    ],
)
def test_midpoint_value(left: Any, right: Any, middle: Any) -> None:
    found = midpoint_value(left, right)
    assert type(found) is type(middle)
    assert found == pytest.approx(middle) if isinstance(middle, float) else found == middle


def test_exact_values_lose_no_nanoseconds() -> None:
    assert exact_values(pl.Series([1000, 2000]).cast(pl.Datetime("ns"))) == [
        dt.datetime(1970, 1, 1, 0, 0, 0, 1),
        dt.datetime(1970, 1, 1, 0, 0, 0, 2),
    ]
    assert exact_values(pl.Series([1000, 2001]).cast(pl.Datetime("ns"))) == [1000, 2001]
    assert exact_values(pl.Series([1]).cast(pl.Time)) == [1]
