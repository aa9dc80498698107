"""Codes ascend with values, bins with codes, and what a bin is said to hold it holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_oner as po
from polars_oner import binning
from polars_oner.binning import Bins, CodeRanges, EqualWidth, Runs, as_float, choose_bins, in_cache
from polars_oner.binning import decode as to_floats
from polars_oner.binning import encode as to_codes
from polars_oner.frame import Column

ODD = [
    *(-math.inf, -1.7976931348623157e308, -1e300, -1.5, -2.3e-308, -5e-324, -0.0),
    *(0.0, 5e-324, 1e-310, 0.1, 1.0, math.nextafter(1.0, 2.0), 2.0**53, 1e300, math.inf),
]
FLOATS = st.one_of(st.sampled_from(ODD), st.floats(allow_nan=False))


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


@given(st.lists(FLOATS, min_size=1, max_size=50))
def test_codes_keep_values_and_their_order(values: list[float]) -> None:
    x = array(values)
    codes = to_codes(x)
    assert (to_floats(codes) == x).all()
    for i in range(len(x)):
        assert ((codes < codes[i]) == (x < x[i])).all()
        assert ((codes == codes[i]) == (x == x[i])).all()


def test_neighbouring_floats_have_neighbouring_codes() -> None:
    for value in (1.0, -1.0, 1e300, 5e-324, -3.7):
        here, above = to_codes(array([value, math.nextafter(value, math.inf)]))
        assert above - here == 1
    # Nothing has the code of -0.0.
    below, zero, above = to_codes(array([-5e-324, -0.0, 5e-324]))
    assert (below, zero, above) == (-2, 0, 1)


@st.composite
def samples(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["odd", "normal", "cauchy", "zeros", "outlier", "seconds", "one"]))
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    n = draw(st.integers(0, 60))
    normal = generator.normal(size=n)
    made: dict[str, Any] = {
        "odd": generator.choice(array([*ODD, math.nan]), n),
        "normal": normal,
        "cauchy": generator.standard_cauchy(n) ** 3,
        "zeros": np.where(generator.random(n) < 0.9, 0.0, normal),
        "outlier": np.append(normal, 1e300),
        "seconds": 1.7e9 + generator.integers(0, 1000, n),
        "one": np.full(n, 3.0),
    }
    x = array(made[kind])
    return array(np.where(generator.random(len(x)) < 0.1, math.nan, x))


def holds_what_it_says(bins: Bins, values: Any, *, whole: bool = True) -> None:
    """Check that bins ascend with values, and that ranges hold just the values of their bin."""
    x = np.unique(array([*values, *ODD]))
    x = x[~np.isnan(x)]
    places = bins(x)
    assert (np.diff(places[places > 0]) >= 0).all()
    assert places.max() <= bins.n
    assert places.min() >= (1 if whole else 0)
    taken = np.unique(places[places > 0])
    low, high = bins.ranges(taken.astype(np.int64))
    assert (low <= high).all()
    assert (high[:-1] < low[1:]).all()
    codes = to_codes(x)
    for number, start, end in zip(taken, low, high, strict=True):
        assert ((places == number) == ((codes >= start) & (codes <= end))).all()
        # -0.0 is no value, and its code lies in no bin but that of 0.
        ends = to_floats(np.array([c for c in (start, end) if c != -1]))
        assert (bins(ends) == number).all()
    assert bins(array([math.nan])).tolist() == [0] or not whole


@given(sample=samples(), n=st.sampled_from([8, 64, 1024]), other=samples())
@settings(max_examples=150, deadline=None)
def test_chosen_bins_hold_all_values(sample: Any, n: int, other: Any) -> None:
    bins = choose_bins(sample, n)
    holds_what_it_says(bins, [*sample, *other])
    assert bins(array([math.nan, math.nan])).tolist() == [0, 0]
    assert bins.n <= 2 * n + 2


def test_bins_tell_most_values_of_a_sample_apart() -> None:
    generator = np.random.default_rng(0)
    normal = generator.normal(size=5000)
    odd: list[Any] = [
        normal,
        np.exp(5 * normal),
        generator.standard_cauchy(5000) ** 3,
        np.where(generator.random(5000) < 0.99, 0.0, normal),
        1.7e9 + generator.integers(0, 10**6, 5000),
        np.append(normal, 1e300),
    ]
    for sample in odd:
        bins = choose_bins(sample, 1 << 12)
        distinct = np.unique(sample)
        assert len(np.unique(bins(distinct))) > 0.02 * len(distinct)


def test_a_sample_wider_than_a_float_can_say() -> None:
    # The gap between the two largest values overflows.
    for sample in ([-1.7e308, 1.7e308], [-1.7e308, -1.6e308, *[1.7e308, 1.6e308] * 2, 0.0]):
        bins = choose_bins(array(sample), 64)
        holds_what_it_says(bins, sample)
        assert len(np.unique(bins(array(sample)))) > 1


@pytest.mark.parametrize("value", [1e-300, 1.0, 2.0**60, -1e300, 0.0])
def test_a_sample_of_neighbouring_floats(value: float) -> None:
    sample = array([value, math.nextafter(value, math.inf)])
    bins = choose_bins(sample, 64)
    holds_what_it_says(bins, sample)
    frame = pl.DataFrame({"x": np.repeat(sample, 200_000)}).with_columns(y=pl.col("x") > value)
    split = po.best_split(frame, "y")
    assert (split.threshold, split.score) == (value, 0.0)


def test_equal_width_steps_over_overflow() -> None:
    bins = EqualWidth(-1.7e308, 1e-300, 100)
    assert bins(array([-math.inf, -1.7e308, 1.7e308, math.inf])).tolist() == [1, 1, 100, 100]
    holds_what_it_says(bins, [])


@given(st.lists(FLOATS, min_size=2, max_size=12, unique=True), st.sampled_from([1, 16, 300]))
@settings(deadline=None)
def test_divided_runs_hold_their_values_alone(values: list[float], n: int) -> None:
    codes = np.unique(to_codes(array(values)))
    codes = codes[: len(codes) // 2 * 2].reshape(-1, 2)
    if not len(codes):
        return
    low, high = codes[:, 0].copy(), codes[:, 1].copy()
    bins = CodeRanges.divide(low, high, n)
    holds_what_it_says(bins, values, whole=False)
    x = array([*values, *ODD])
    inside = ((to_codes(x)[:, None] >= low) & (to_codes(x)[:, None] <= high)).any(axis=1)
    assert ((bins(x) > 0) == inside).all()
    # About n bins a run, and one a code if there are fewer.
    assert bins.n <= len(low) * 2 * n
    narrow = CodeRanges.divide(np.array([5]), np.array([8]), 16)
    assert narrow.n == 4
    assert [part.tolist() for part in narrow.ranges(np.arange(1, 5))] == [[5, 6, 7, 8]] * 2


@given(
    ends=st.lists(FLOATS, min_size=2, max_size=24, unique=True),
    values=st.lists(FLOATS, max_size=30),
    touching=st.booleans(),
    sample=samples(),
    cached_rows=st.sampled_from([1, 10, 1 << 15]),
)
@settings(deadline=None)
def test_found_is_what_lies_in_the_runs(
    ends: list[float], values: list[float], touching: bool, sample: Any, cached_rows: int
) -> None:
    codes = np.unique(to_codes(array(ends)))
    if touching:
        low, high = codes[:-1], codes[1:] - 1
    else:
        low, high = codes[: len(codes) // 2 * 2].reshape(-1, 2).T
    if not len(low):
        return
    x = array([*values, *ends, *ODD, math.nan])
    with np.errstate(over="ignore"):
        x = np.concatenate([x, np.nextafter(x, math.inf), np.nextafter(x, -math.inf)])
    runs = Runs(low, high, choose_bins(sample, 64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "_CACHED_ROWS", cached_rows)
        told = runs.find(pl.Series(x))
    at = to_codes(x)[:, None]
    expected = ((at >= low) & (at <= high)).any(axis=1) & ~np.isnan(x)
    assert told.tolist() == np.flatnonzero(expected).tolist()
    assert not len(runs.find(pl.Series([], dtype=pl.Float64)))


@pytest.mark.parametrize("lengths", [[], [7], [3, 3, 3], [1] * 9, [20, 1, 20]])
def test_pieces_in_cache_make_up_the_column(lengths: list[int]) -> None:
    starts = np.cumsum([0, *lengths])
    chunks = [pl.Series(np.arange(n) + float(at)) for at, n in zip(starts, lengths, strict=False)]
    values = pl.concat(chunks, rechunk=False) if chunks else pl.Series([], dtype=pl.Float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "_CACHED_ROWS", 5)
        pieces = [(at, part.tolist()) for at, part in in_cache(values)]
    assert all(part == [at + i for i in range(len(part))] for at, part in pieces)
    assert [value for _, part in pieces for value in part] == values.to_list()
    assert all(0 < len(part) <= 5 for _, part in pieces)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pl.Int64(), [-(2**63), -(2**53) - 1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
        (pl.UInt64(), [0, 1, 2**64 - 2, 2**64 - 1]),
        (pl.Int128(), [-(2**100), 0, 2**100, 2**100 + 1]),
        (pl.Float32(), [-math.inf, -3e38, 1e-45, 1.0, 1.0000001, math.inf]),
        (pl.Decimal(38, 10), ["-9999999999999999999999999999.5", "0", "0.0000000001", "7"]),
        (pl.Date(), [-1000, 0, 1]),
        (pl.Datetime("ns"), [-(2**62), 0, 1, 2**62]),
        (pl.Duration("ms"), [-1, 0, 10**12]),
        (pl.Time(), [0, 1, 86_399_999_999_999]),
    ],
)
def test_no_dtype_has_its_order_reversed(dtype: pl.DataType, values: list[Any]) -> None:
    if dtype.is_temporal():
        physical = pl.Int32() if isinstance(dtype, pl.Date) else pl.Int64()
        x = pl.Series("x", values, dtype=physical).cast(dtype)
    elif dtype.is_decimal():
        x = pl.Series("x", values).cast(dtype)
    else:
        x = pl.Series("x", values, dtype=dtype)
    rows = x.extend(pl.Series([None], dtype=dtype)).to_frame()
    floats = rows.select(as_float(Column("x", dtype, "ordered"))).to_series()
    assert floats.dtype == pl.Float64
    assert floats.head(-1).is_sorted()
    assert floats.head(-1).n_unique() >= 3
    assert math.isnan(floats.to_numpy()[-1])
