"""What `Bins` promise: every row in the bin it was counted in, in every dtype, and exact labels."""

from __future__ import annotations

import datetime as dt
import json
import math
import statistics
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from polars_oner.bins import Bins
from polars_oner.discretization import discretize
from polars_oner.discretizers import METHODS, Method
from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    EmptyTargetError,
    MissingColumnError,
    OptionError,
    WeightError,
)
from tests import strategies
from tests.plans import nodes_that_hold_a_column
from tests.shared import SHARED, needs_shared

OPS = ("<=", ">")


def frame(x: Any, y: Any) -> pl.DataFrame:
    return pl.DataFrame({"x": x, "y": y})


def binned(bins: Bins, data: pl.DataFrame) -> list[str]:
    labels: list[str] = data.select(bins.expr()).to_series().to_list()
    return labels


def check(bins: Bins, data: pl.DataFrame, x: str = "x", y: str = "y") -> None:
    """Hold bins to their training rows: cuts in their gaps, labels and numbers and counts alike."""
    rows = data.filter(pl.col(y).is_not_null())
    present = rows[x].drop_nulls().drop_nans() if rows[x].dtype.is_float() else rows[x].drop_nulls()
    left, cut, right = (pl.col(name) for name in bins.cut_points.columns)
    assert bins.cut_points.select(((left <= cut) & (cut < right)).all()).item()
    assert bins.cuts.is_sorted()
    assert bins.cuts.n_unique() == len(bins.cuts)
    seen = set(present.to_physical())
    assert set(bins.cut_points["left_max"].to_physical()) <= seen
    assert set(bins.cut_points["right_min"].to_physical()) <= seen
    told = rows.select(bins.expr("label"), bins.index("number"))
    assert told.schema == {"label": pl.Enum(bins.labels), "number": pl.UInt32}
    assert told["label"].to_physical().cast(pl.UInt32).to_list() == told["number"].to_list()
    assert len(set(bins.labels)) == bins.n_bins
    counted = dict(told.group_by("number").len().iter_rows())
    table = bins.to_frame()
    assert table["bin"].to_list() == list(bins.labels)
    assert table["n_rows"].to_list() == [counted.get(i, 0) for i in range(bins.n_bins)]
    if bins.classes is not None:
        by_class = rows.with_columns(told["number"]).group_by("number", y).len()
        mine = {(i, k): n for i, k, n in by_class.iter_rows()}
        for i, row in enumerate(table["n_class"].struct.unnest().iter_rows()):
            assert list(row) == [mine.get((i, k), 0) for k in bins.classes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Bins.from_dict(json.loads(json.dumps(bins.to_dict()))) == bins
    assert str(bins)
    assert bins._repr_html_().startswith("<table>")


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_every_row_lies_in_the_bin_it_was_counted_in(method: Method, data: st.DataObject) -> None:
    table = data.draw(strategies.tables(kind="ordered", max_features=1))
    pool = table.features["f0"].series("special").drop_nulls().unique()
    pool = pool.drop_nans() if pool.dtype.is_float() else pool
    special = data.draw(st.lists(st.sampled_from(pool.to_list()), max_size=2)) if len(pool) else []
    bins = discretize(
        table.frame,
        "y",
        "f0",
        method=method,
        special=special,
        min_bucket=data.draw(st.integers(1, 3)),
        max_bins=data.draw(st.sampled_from([None, 1, 2, 3, 6])),
    )
    check(bins, table.frame, "f0")


@given(strategies.tables(kind="ordered", numbers=True, max_features=1))
@settings(max_examples=60, deadline=None)
def test_number_targets(table: strategies.Table) -> None:
    bins = discretize(table.frame, "y", "f0", method="tree", criterion="variance", max_bins=3)
    check(bins, table.frame, "f0")
    rows = table.frame.filter(pl.col("y").is_not_null()).with_columns(bins.expr())
    found = bins.to_frame().filter(pl.col("n_rows") > 0)
    for label, mean, std in found.select("bin", "mean", "std").iter_rows():
        # Python's own moments are exact.
        y = [Fraction(value) for value in rows.filter(pl.col("bin") == label)["y"]]
        assert mean == pytest.approx(float(statistics.mean(y)), rel=1e-12, abs=1e-12)
        spread = float(statistics.stdev(y)) if len(y) > 1 else 0.0
        assert std == pytest.approx(spread, rel=1e-9, abs=1e-9)


# --- cases others reported ---


@needs_shared
def test_shared_cases() -> None:
    lines = (SHARED / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = {case["id"]: case for case in map(json.loads, lines)}

    case = cases["disc-02"]
    data = pl.DataFrame(case["input"])
    assert data.height == 8
    free = discretize(data, "y", "x", min_bucket=1)
    assert [list(gap) for gap in free.cut_points.select("left_max", "right_min").iter_rows()] == [
        [2, 3],
        [4, 5],
        [6, 7],
    ]
    for method in METHODS:
        assert len(discretize(data, "y", "x", method=method, max_bins=2, min_bucket=1).cuts) <= 1
        assert len(discretize(data, "y", "x", method=method, max_bins=1, min_bucket=1).cuts) == 0
        with pytest.raises(ValueError, match="max_bins"):
            discretize(data, "y", "x", method=method, max_bins=0)

    case = cases["disc-04"]
    data = pl.DataFrame(case["input"])
    special = case["params"]["special_values"]["x"]
    for given_as in (special, {"x": special}):
        bins = discretize(data, "y", "x", method="tree", max_bins=2, special=given_as)
        assert bins.labels == ("<= 15", "> 15", "-999", "-998", "missing")
        names = {0: "<= 15", 1: "> 15", "-999": "-999", "-998": "-998", "missing": "missing"}
        assert binned(bins, data) == [names[told] for told in case["expected"]["bin_of_row"]]
        check(bins, data)
    absent = discretize(data, "y", "x", method="tree", max_bins=2, special=[*special, -5])
    assert absent.to_frame().filter(pl.col("value") == -5)["n_rows"].to_list() == [0]
    assert binned(absent, pl.DataFrame({"x": [-5, None, 12]})) == ["-5", "missing", "<= 15"]

    case = cases["type-03"]
    data = pl.DataFrame(case["input"])
    bins = discretize(data, "y", "x", min_bucket=1)
    assert bins.cut_points["left_max"].to_list() == [2, 4]
    assert bins.to_frame()["n_class"].struct.unnest().rows()[:3] == [
        (0, 2, 0),
        (2, 0, 0),
        (0, 0, 2),
    ]


# --- labels and dtypes ---


@pytest.mark.parametrize(
    ("x", "dtype", "labels"),
    [
        ([1, 2, 3, 7], pl.Int8(), ["<= 2", "> 2"]),
        ([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3], pl.Int64(), [f"<= {2**53 + 1}", f"> {2**53 + 1}"]),
        ([0, 1, 2**64 - 2, 2**64 - 1], pl.UInt64(), [f"<= {2**63 - 1}", f"> {2**63 - 1}"]),
        ([0.1, 0.2, 0.3, 0.4], pl.Float64(), ["<= 0.25", "> 0.25"]),
        ([0.5, 1.0, 1.0000001192092896, 2.0], pl.Float32(), ["<= 1", "> 1"]),
        ([Decimal(n) / 10 for n in (1, 2, 4, 9)], pl.Decimal(5, 2), ["<= 0.30", "> 0.30"]),
        ([dt.date(2024, 2, day) for day in (1, 2, 6, 7)], pl.Date(), ["<= 2024-02-04", "> 2024-02-04"]),
        ([dt.time(0, 0, s) for s in (1, 2, 4, 5)], pl.Time(), ["<= 00:00:03", "> 00:00:03"]),
        ([dt.time(0, 0, 0, n) for n in (1, 2, 4, 5)], pl.Time(), [f"{t} 00:00:00.000003" for t in OPS]),
        ([dt.timedelta(hours=h) for h in (1, 2, 4, 5)], pl.Duration("us"), ["<= 3h", "> 3h"]),
        (["S", "M", "L", "XL"], pl.Enum(["S", "M", "L", "XL"]), ["<= M", "> M"]),
    ],
)  # fmt: skip
def test_labels(x: list[Any], dtype: pl.DataType, labels: list[str]) -> None:
    data = pl.DataFrame({"x": pl.Series(x, dtype=dtype), "y": ["a", "a", "b", "b"]})
    bins = discretize(data, "y", "x", min_bucket=1)
    assert bins.labels == (*labels, "missing")
    assert binned(bins, data) == [labels[0]] * 2 + [labels[1]] * 2
    check(bins, data)


def test_labels_read_back_exactly() -> None:
    x = [0.1, math.nextafter(0.1, 1), 1e300, 5e-324, 1 / 3, 123456789.123456789, 1e-7]
    data = frame(sorted(x), list("abababa"))
    bins = discretize(data, "y", "x", min_bucket=1)
    assert len(bins.cuts) == 6
    ends = [label.strip("(]").split(", ") for label in bins.labels[1:-2]]
    assert [(float(low), float(high)) for low, high in ends] == list(
        zip(bins.cuts[:-1], bins.cuts[1:], strict=True)
    )


def test_odd_labels_stay_apart() -> None:
    levels = ["missing", "any value", "a, b", "> x", "9"]
    data = pl.DataFrame({"x": pl.Series(levels, dtype=pl.Enum(levels)), "y": list("aabbb")})
    bins = discretize(data, "y", "x", min_bucket=1, special=["missing", "any value"])
    check(bins, data)
    assert bins.labels == ("any value", '"missing"', '"any value"', "missing")
    bins = discretize(data, "y", "x", min_bucket=1, method="width", special=["missing"])
    check(bins, data)


def test_nanoseconds() -> None:
    x = pl.Series("x", [1, 2, 4, 5], dtype=pl.Int64)
    for dtype in (pl.Datetime("ns"), pl.Datetime("ns", "Europe/Berlin"), pl.Duration("ns")):
        data = pl.DataFrame([x.cast(dtype), pl.Series("y", list("aabb"))])
        for method in METHODS:
            bins = discretize(data, "y", "x", method=method, max_bins=2, min_bucket=1)
            if method != "mdl":
                assert bins.cut_points["left_max"].to_physical().to_list() == [2]
            check(bins, data)


def test_booleans_if_they_are_to_be_ordered() -> None:
    data = frame([False, False, True, None], list("aabb"))
    with pytest.raises(DtypeError, match=r"feature 'x' has dtype Boolean; only features with an"):
        discretize(data, "y", "x")
    for method in METHODS:
        bins = discretize(data, "y", "x", ordered=["x"], method=method, min_bucket=1)
        check(bins, data)
    assert bins.labels == ("<= false", "> false", "missing")


def test_values_beyond_those_seen() -> None:
    data = frame([1.0, 2.0, 3.0, 4.0, -0.0], list("aabba"))
    bins = discretize(data, "y", "x", min_bucket=1)
    new = pl.DataFrame({"x": [-math.inf, -1e300, 0.0, 2.5, 2.6, math.inf, math.nan, None]})
    low, high = "<= 2.5", "> 2.5"
    assert binned(bins, new) == [low, low, low, low, high, high, "missing", "missing"]
    assert new.select(bins.index()).to_series().to_list() == [0, 0, 0, 0, 1, 1, 2, 2]


def test_zero_and_special_codes() -> None:
    data = frame([-0.0, 0.0, 1.0, 2.0, math.nan], list("abbab"))
    bins = discretize(data, "y", "x", special=[0.0, -0.0])
    assert bins.labels == ("any value", "0", "missing")
    assert bins.to_frame()["n_rows"].to_list() == [2, 2, 1]
    check(bins, data)
    bins = discretize(frame([math.inf, 1.0, 2.0], list("aab")), "y", "x", special=[math.inf])
    assert bins.labels[-2:] == ("inf", "missing")


@pytest.mark.parametrize("special", [[2.5], [None], ["a"], [300], 7, [[1]]])
def test_codes_the_column_cannot_hold(special: Any) -> None:
    data = pl.DataFrame({"x": pl.Series([1, 2], dtype=pl.Int8), "y": ["a", "b"]})
    with pytest.raises(OptionError, match="special"):
        discretize(data, "y", "x", special=special)
    with pytest.raises(OptionError, match="special"):
        discretize(frame([1.0, 2.0], ["a", "b"]), "y", "x", special=[math.nan])
    with pytest.raises(OptionError, match=r"special.*'x'.*'z'"):
        discretize(data, "y", "x", special={"z": [1]})


# --- many features, many rows ---


def test_several_features_from_one_pass() -> None:
    data = pl.DataFrame(
        {
            "class": [1.0, 2.0, 3.0, 4.0],
            "value": [4, 3, 2, 1],
            "n": [dt.date(2024, 1, day) for day in (1, 2, 3, 4)],
            "^x.*$": [1, 1, 2, 2],
            "*": [1, 5, 7, 9],
            "y": ["a", "a", "b", "b"],
        }
    )
    names = ["n", "class", "value", "^x.*$", "*"]
    found = discretize(data, "y", names, min_bucket=1)
    assert list(found) == names
    for name in names:
        assert found[name] == discretize(data, "y", name, min_bucket=1)
        assert found[name] == discretize(data.lazy(), "y", [name], min_bucket=1)[name]
        assert len(found[name].cuts) == 1
    together = data.select(found[name].index(f"{i}") for i, name in enumerate(names))
    assert together.row(0) == (0, 0, 1, 0, 0)
    lazily = discretize(data.lazy(), "y", names, min_bucket=1)
    assert lazily == found


def test_the_expression_streams_and_holds_no_python(tmp_path: Any) -> None:
    x = pl.Series("x", [i * 37 % 101 for i in range(1000)], dtype=pl.Float64)
    data = pl.DataFrame([x, (x // 20).cast(pl.Int64).alias("y")])
    for bins in (
        discretize(data, "y", "x", special=[3.0, 5.0]),
        discretize(data, "y", "x", method="width", max_bins=90),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = bins.expr().meta.serialize(format="json")
        assert "python" not in text.lower()
        assert set(bins.expr().meta.root_names()) == {"x"}
        assert bins.expr("b").meta.output_name() == "b"
        data.write_parquet(tmp_path / "rows.parquet")
        scan = pl.scan_parquet(tmp_path / "rows.parquet").select("x", bins.expr())
        assert not nodes_that_hold_a_column(scan)
        assert nodes_that_hold_a_column(scan.select(pl.col("x").rank()))
        scan.sink_parquet(tmp_path / "bins.parquet", engine="streaming")
        again = pl.read_parquet(tmp_path / "bins.parquet")
        assert_frame_equal(again, data.select("x", bins.expr()))


def test_wrong_dtypes_at_prediction() -> None:
    bins = discretize(frame([1, 2, 3, 4], list("aabb")), "y", "x", special=[9], min_bucket=1)
    for wrong in (["1"], [True], [1.5], [dt.date(2024, 1, 1)]):
        with pytest.raises(pl.exceptions.PolarsError):
            pl.DataFrame({"x": wrong}).select(bins.expr())
    assert binned(bins, pl.DataFrame({"x": pl.Series([1, 9], dtype=pl.Int8)})) == ["<= 2", "9"]


# --- evidence ---


def test_weight_of_evidence_by_hand() -> None:
    # no: 1, 4, 0 of 5 rows; yes: 3, 1, 2 of 6.
    x = [1] * 4 + [2] * 5 + [3] * 2
    y = ["no", *["yes"] * 3, *["no"] * 4, "yes", *["yes"] * 2]
    bins = discretize(frame(x, y), "y", "x", method="width", max_bins=3)
    table = bins.to_frame()
    assert table.columns == [
        *("feature", "bin", "lower", "upper", "value", "n_rows", "row_rate"),
        *("n_class", "class_rate", "weight_of_evidence", "information_value"),
    ]
    assert table["lower"].to_list() == [None, 1, 2, None]
    assert table["upper"].to_list() == [1, 2, None, None]
    assert table["n_class"].to_list()[:3] == [
        {"no": 1, "yes": 3},
        {"no": 4, "yes": 1},
        {"no": 0, "yes": 2},
    ]
    assert table["class_rate"].to_list() == [
        {"no": 0.25, "yes": 0.75},
        {"no": 0.8, "yes": 0.2},
        {"no": 0.0, "yes": 1.0},
        None,
    ]
    woe = [
        math.log((3 / 6) / (1 / 5)),
        math.log((1 / 6) / (4 / 5)),
        math.log((2.5 / 6) / (0.5 / 5)),
        0.0,
    ]
    assert table["weight_of_evidence"].to_list() == pytest.approx(woe)
    value = [(3 / 6 - 1 / 5) * woe[0], (1 / 6 - 4 / 5) * woe[1], (2 / 6) * woe[2], 0.0]
    assert table["information_value"].to_list() == pytest.approx(value)
    assert bins.information_value == pytest.approx(sum(value))
    assert table["row_rate"].to_list() == pytest.approx([4 / 11, 5 / 11, 2 / 11, 0])
    assert f"information value {sum(value):.4g}" in str(bins)


def test_evidence_is_for_two_classes() -> None:
    for y in (list("abc"), list("aaa")):
        bins = discretize(frame([1, 2, 3], y), "y", "x", method="width")
        assert bins.information_value is None
        table = bins.to_frame()
        assert table["weight_of_evidence"].dtype == pl.Float64
        assert table["information_value"].null_count() == table.height


def test_weighted_evidence() -> None:
    data = frame([1, 1, 2, 2], list("abab")).with_columns(w=pl.Series([1.5, 0.5, 1.0, 2.0]))
    bins = discretize(data, "y", "x", method="width", max_bins=2, weights="w")
    assert bins.to_frame()["n_rows"].to_list() == [2.0, 3.0, 0.0]
    assert bins.to_frame()["weight_of_evidence"][0] == pytest.approx(math.log(0.2 / 0.6))


# --- text ---


def test_printed() -> None:
    data = frame([-999, 10, 11, 20, 21, None], ["a", "a", "a", "b c", "b c", "a"])
    bins = discretize(data, "y", "x", special=[-999], min_bucket=1)
    assert str(bins).splitlines() == [
        "x in bins (1r):",
        "  <= 15   -> 2 rows  a: 2  b c: 0",
        "  > 15    -> 2 rows  a: 0  b c: 2",
        "  -999    -> 1 rows  a: 1  b c: 0",
        "  missing -> 1 rows  a: 1  b c: 0",
        "6 rows, information value 2.963",
    ]
    html = bins._repr_html_()
    assert "<td>&lt;= 15</td><td>2</td><td>2</td><td>0</td>" in html
    numbers = discretize(
        frame([1, 2, None], [1.0, 2.5, 4.0]), "y", "x", method="width", max_bins=2, criterion="std"
    )
    assert "<= 1    -> 1 rows  mean: 1    std: 0" in str(numbers)


# --- errors ---


def test_errors() -> None:
    data = pl.DataFrame(
        {"x": [1, 2], "s": ["u", "v"], "l": [[1], [2]], "y": ["a", "b"], "w": [1, -1]}
    )
    with pytest.raises(MissingColumnError, match=r"'X'.*did you mean 'x'"):
        discretize(data, "y", "X")
    with pytest.raises(ColumnRoleError):
        discretize(data, "y", ["x", "y"])
    with pytest.raises(ColumnRoleError):
        discretize(data, "y", ["x", "x"])
    with pytest.raises(ColumnRoleError):
        discretize(data, "y", [])
    with pytest.raises(
        DtypeError, match="feature 's' has dtype String; only features with an order"
    ):
        discretize(data, "y", ["x", "s"])
    with pytest.raises(
        DtypeError, match="feature 'x' has dtype Int64; only features with an order"
    ):
        discretize(data, "y", "x", nominal=["x"])
    with pytest.raises(DtypeError, match="'l'"):
        discretize(data, "y", "l")
    with pytest.raises(WeightError, match="'w'"):
        discretize(data, "y", "x", weights="w")
    with pytest.raises(EmptyTargetError):
        discretize(data.with_columns(y=pl.lit(None, pl.String)), "y", "x")


def test_schema_errors_come_before_any_reading() -> None:
    def fail(frame: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("the rows were read")

    lazy = pl.LazyFrame({"x": [1], "s": ["a"], "y": ["b"]}).map_batches(
        fail, schema={"x": pl.Int64, "s": pl.String, "y": pl.String}
    )
    with pytest.raises(DtypeError):
        discretize(lazy, "y", "s")
    with pytest.raises(OptionError):
        discretize(lazy, "y", "x", max_bins=0)
    with pytest.raises(OptionError):
        discretize(lazy, "y", "x", special=["?"])
