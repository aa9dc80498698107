"""Values and models through JSON and back: nothing is lost, nothing needs more than JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from polars_oner.errors import OneRError
from polars_oner.serialize import FORMAT, Model, decode, encode


def through_json(value: Any) -> Any:
    """Send a value through strict JSON, read by a reader that knows only 53-bit integers."""

    def whole(text: str) -> int:
        assert abs(int(text)) <= 2**53
        return int(text)

    return decode(json.loads(json.dumps(encode(value), allow_nan=False), parse_int=whole))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.datetimes(),
    st.datetimes(timezones=st.just(ZoneInfo("Europe/Berlin")), allow_imaginary=False),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.sampled_from(["$int", "$date", "$x"])), inner),
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    """Compare with types: 1, 1.0 and True differ here."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


@given(values)
def test_plain_values_come_back(value: Any) -> None:
    assert same(through_json(value), value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324])
def test_floats_come_back_to_the_bit(value: float) -> None:
    assert np.float64(through_json(value)).tobytes() == np.float64(value).tobytes()


def test_the_second_hour_of_a_clock_set_back_comes_back() -> None:
    value = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    assert through_json(value).utcoffset() == value.utcoffset() == dt.timedelta(hours=1)


def test_numpy_scalars_are_plain_numbers() -> None:
    assert same(through_json(np.int64(3)), 3)
    assert same(through_json(np.float64(0.5)), 0.5)


SERIES = [
    pl.Series("x", [1, None, -128], dtype=pl.Int8),
    pl.Series("x", [2**64 - 1, 0], dtype=pl.UInt64),
    pl.Series("x", [-(2**120), None], dtype=pl.Int128),
    pl.Series("x", [0.1, math.nan, math.inf, None], dtype=pl.Float32),
    pl.Series("x", [0.1, math.nan, -math.inf, -0.0, None]),
    pl.Series("x", [True, None]),
    pl.Series("x", ["", 'a"\n\u2028', None]),
    pl.Series("x", ["b", None], dtype=pl.Enum(["b", "a", "unused"])),
    pl.Series("x", ["b", None], dtype=pl.Categorical),
    pl.Series("x", ["b"], dtype=pl.Categorical(pl.Categories("pool", "space", pl.UInt8))),
    pl.Series("x", ["0.10", None]).cast(pl.Decimal(38, 2)),
    pl.Series("x", [-1, None], dtype=pl.Int32).cast(pl.Date),
    pl.Series("x", [1, None]).cast(pl.Time),
    pl.Series("x", [2**62 + 1, None]).cast(pl.Datetime("ns")),
    pl.Series("x", [-1, None]).cast(pl.Datetime("ms", "Europe/Berlin")),
    pl.Series("x", [2**62 + 1, None]).cast(pl.Duration("ns")),
    pl.Series("x", [None, None], dtype=pl.Null),
    pl.Series("x", [], dtype=pl.Datetime("us")),
]


@pytest.mark.parametrize("series", SERIES, ids=lambda series: str(series.dtype))
def test_series_keep_values_and_dtype(series: pl.Series) -> None:
    back = through_json(series)
    assert back.dtype == series.dtype
    assert_series_equal(back, series, check_exact=True)
    assert through_json(series.dtype) == series.dtype


def test_frames_keep_their_columns() -> None:
    frame = pl.DataFrame([series.head(1).rename(f"c{i}") for i, series in enumerate(SERIES[:-1])])
    assert_frame_equal(through_json(frame), frame, check_exact=True)
    assert through_json(frame.clear()).schema == frame.schema


@dataclass(frozen=True, eq=False)
class Inner(Model):
    value: Any


@dataclass(frozen=True, eq=False)
class Outer(Model):
    name: str
    parts: tuple[Inner, ...]
    table: pl.DataFrame


def outer(value: Any = math.nan) -> Outer:
    return Outer("a", (Inner(value), Inner(None)), pl.DataFrame({"x": [2**60]}))


def test_models_come_back_with_their_parts() -> None:
    data = json.loads(json.dumps(outer().to_dict(), allow_nan=False))
    back = Outer.from_dict(data)
    assert back == outer()
    assert hash(back) == hash(outer())
    assert isinstance(back.parts, tuple)
    assert math.isnan(back.parts[0].value)
    assert data["format"] == FORMAT
    assert data["model"] == "Outer"


@pytest.mark.parametrize("other", [outer(1.0), outer(1), outer(True), Inner(math.nan), "a"])
def test_models_differ_where_a_field_does(other: object) -> None:
    assert outer() != other


def edited(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data = outer().to_dict()
    change(data)
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Inner(1).to_dict(), "holds a 'Inner' model, not a 'Outer'"),
        (edited(lambda data: data.update(format=99)), f"reads model format {FORMAT}, not 99"),
        (edited(lambda data: data.pop("parts")), "lacks 'parts'"),
        (edited(lambda data: data.update(name={"$what": 1})), r"unknown tag '\$what'"),
        (edited(lambda data: data.update(name={"$model": {"model": "Nope"}})), "'Nope'"),
        ({}, "format"),
    ],
)
def test_what_is_not_ours_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(OneRError, match=message):
        Outer.from_dict(data)


@pytest.mark.parametrize(
    "value",
    [object(), b"bytes", {1}, {1: 2}, pl.Series([[1]]), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
)
def test_what_cannot_be_written_says_so(value: object) -> None:
    with pytest.raises(OneRError, match="cannot be written"):
        encode(value)


def test_decimals_keep_their_digits() -> None:
    assert str(through_json(Decimal("1.10"))) == "1.10"
