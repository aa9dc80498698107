"""Prediction expressions: exact in every dtype, an error on any other, native throughout."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.exceptions import PolarsError

from polars_oner.errors import DtypeError, MissingColumnError
from polars_oner.expression import (
    check_dtype,
    guarded,
    interval_index,
    is_between,
    is_one_of,
    literal,
    predict_intervals,
    predict_values,
)
from polars_oner.frame import Column, is_missing
from polars_oner.typing import Engine, Kind

BERLIN = pl.Datetime("ns", "Europe/Berlin")
POOL = pl.Categorical(pl.Categories("letters", "tests", pl.UInt8))
SIZES = pl.Enum(["S", "M", "L", "XL"])
NS = 1_700_000_000_123_456_789

ORDERED: dict[str, pl.Series] = {
    "Int8": pl.Series([-128, -1, 0, 1, 127], dtype=pl.Int8),
    "Int64": pl.Series([-(2**63), 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1]),
    "UInt64": pl.Series([0, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], dtype=pl.UInt64),
    "Int128": pl.Series([-(2**100), 0, 2**100, 2**100 + 1, 2**101], dtype=pl.Int128),
    "Float32": pl.Series([0.1, 0.2, 0.3, 1e30, math.inf], dtype=pl.Float32),
    "Float64": pl.Series([-math.inf, -0.0, 1.0000000000000002, 1.0000000000000004, math.inf]),
    "Decimal": pl.Series(["0.10", "0.11", "0.12", "9.99", "9999999999.99"]).cast(pl.Decimal(38, 2)),
    "Date": pl.Series([-1, 0, 1, 2, 20_000], dtype=pl.Int32).cast(pl.Date),
    "Datetime": pl.Series([-2, -1, NS, NS + 1, NS + 2]).cast(pl.Datetime("us")),
    "Datetime ns zone": pl.Series([-2, -1, NS, NS + 1, NS + 2]).cast(BERLIN),
    "Duration": pl.Series([-1, 0, NS, NS + 1, NS + 2]).cast(pl.Duration("ns")),
    "Time": pl.Series([0, 1, 2, 3, 86_399_999_999_999]).cast(pl.Time),
    "Enum": pl.Series(["S", "S", "M", "L", "XL"], dtype=SIZES),
}
NOMINAL = {
    **ORDERED,
    "String": pl.Series(["", "a", "b", "null", "ß\n"]),
    "Categorical": pl.Series(["", "a", "b", "null", "ß\n"], dtype=pl.Categorical),
    "Categorical pool": pl.Series(["", "a", "b", "null", "ß\n"], dtype=POOL),
    "Boolean": pl.Series([False, False, True, True, True]),
}
CLASSES = pl.Series(["no", "perhaps", "yes"])


def order(values: pl.Series) -> list[int]:
    """Rank values by their own order, as plain integers that a plain oracle compares."""
    return values.rank("dense").to_list()


def with_missing(values: pl.Series) -> pl.Series:
    nan = [pl.Series([math.nan], dtype=values.dtype)] if values.dtype.is_float() else []
    return pl.concat([values, pl.Series([None], dtype=values.dtype), *nan])


def evaluate(expr: pl.Expr, x: pl.Series, engine: Engine = "auto") -> list[Any]:
    """Evaluate an expression as it comes out of its serialized form."""
    sent = pl.Expr.deserialize(expr.meta.serialize())
    return (
        x.rename("x")
        .to_frame()
        .lazy()
        .select(sent.alias("p"))
        .collect(engine=engine)["p"]
        .to_list()
    )


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("name", ORDERED)
def test_intervals_are_closed_on_the_right(name: str, missing: int, engine: Engine) -> None:
    values = ORDERED[name]
    cuts = values.gather([1, 3])
    expr = predict_intervals(
        Column("x", values.dtype, "ordered"), cuts, [0, 1, 0], CLASSES, missing=missing
    )
    rank = order(values)
    expected = [CLASSES[[0, 1, 0][bisect_left([rank[1], rank[3]], r)]] for r in rank]
    x = with_missing(values)
    n_missing = len(x) - len(values)
    assert evaluate(expr, x, engine) == [*expected, *[CLASSES[missing]] * n_missing]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize(
    "dtype",
    [
        pl.Int64(),
        pl.Float64(),
        pl.Float32(),
        pl.Decimal(20, 2),
        BERLIN,
        pl.Duration("ms"),
        pl.Time(),
    ],
    ids=str,
)
def test_many_cuts_give_what_few_would(dtype: pl.DataType, engine: Engine) -> None:
    values = pl.Series(range(400)).cast(dtype)
    cuts, codes = values.gather_every(2)[:150], [i % 3 for i in range(151)]
    expr = predict_intervals(Column("x", dtype, "ordered"), cuts, codes, CLASSES, missing=1)
    expected = [CLASSES[codes[bisect_left(range(0, 300, 2), i)]] for i in range(400)]
    x = with_missing(values)
    assert evaluate(expr, x, engine) == [*expected, *["perhaps"] * (len(x) - 400)]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("missing", [0, 2])
@pytest.mark.parametrize("name", NOMINAL)
def test_values_are_looked_up(name: str, missing: int, engine: Engine) -> None:
    values = NOMINAL[name]
    known = values.unique(maintain_order=True)[:-1]
    feature = Column("x", values.dtype, "nominal")
    codes = [1, 0, 2, 1][: len(known)]
    expr = predict_values(feature, known, codes, CLASSES, missing=missing, default=0)
    position = {r: i for i, r in enumerate(dict.fromkeys(order(values)))}
    by_rank = {r: codes[i] if i < len(codes) else 0 for r, i in position.items()}
    x = with_missing(values)
    expected = [CLASSES[by_rank[r]] for r in order(values)]
    n_missing = len(x) - len(values)
    assert evaluate(expr, x, engine) == [*expected, *[CLASSES[missing]] * n_missing]


def test_many_values_of_one_class() -> None:
    values = pl.Series([f"v{i}" for i in range(5000)])
    codes = [i % 2 for i in range(5000)]
    feature = Column("x", pl.String(), "nominal")
    expr = predict_values(feature, values, codes, CLASSES, missing=2, default=0)
    assert evaluate(expr, pl.concat([values, pl.Series(["new", None])])) == [
        *(CLASSES[code] for code in codes),
        "no",
        "yes",
    ]


@pytest.mark.parametrize(
    "classes",
    [
        pl.Series([False, True]),
        pl.Series([-1, 2], dtype=pl.Int8),
        pl.Series([2**63, 2**64 - 1], dtype=pl.UInt64),
        pl.Series(["lo", "hi"], dtype=pl.Enum(["lo", "mid", "hi"])),
        pl.Series(["lo", "hi"], dtype=pl.Categorical),
        pl.Series(["lo", "hi"], dtype=POOL),
        pl.Series([dt.date(2024, 2, 29), dt.date(2024, 3, 1)]),
        pl.Series([NS, NS + 1]).cast(BERLIN),
    ],
    ids=lambda classes: str(classes.dtype),
)
@pytest.mark.parametrize("n_cuts", [1, 200])
def test_predictions_have_the_dtype_of_the_classes(classes: pl.Series, n_cuts: int) -> None:
    x = pl.Series("x", [0, 1, n_cuts, None])
    codes = [0] + [1] * n_cuts
    cuts = pl.Series(range(n_cuts))
    feature = Column("x", pl.Int64(), "ordered")
    expr = predict_intervals(feature, cuts, codes, classes, missing=0)
    predicted = x.to_frame().select(expr.alias("p"))["p"]
    assert predicted.dtype == classes.dtype
    assert predicted.equals(classes.gather([0, 1, 1, 0]))


# --- wrong dtypes ---

COLUMNS: dict[str, pl.Series] = {
    **{name: values.head(2) for name, values in NOMINAL.items()},
    "Decimal other scale": pl.Series(["0.125"]).cast(pl.Decimal(10, 3)),
    "Datetime ms": pl.Series([1]).cast(pl.Datetime("ms")),
    "Duration us": pl.Series([1]).cast(pl.Duration("us")),
    "Enum other labels": pl.Series(["a"], dtype=pl.Enum(["a", "S", "M", "L", "XL"])),
    "Binary": pl.Series([b"S"]),
}
INTEGERS = {"Int8", "Int64", "UInt64", "Int128"}
DECIMALS = {"Decimal", "Decimal other scale"}
FLOATS = {"Float32", "Float64"}
TEXT = {"String", "Categorical"}


def admitted(learned: str, kind: Kind) -> set[str]:
    """Name the columns on which a feature of this dtype keeps its meaning."""
    if learned == "Categorical pool":
        return {"Categorical pool", "String"}
    for family in (INTEGERS, TEXT):
        if learned in family:
            return family
    if learned in DECIMALS:
        return DECIMALS | INTEGERS
    if learned in FLOATS:
        return FLOATS | INTEGERS if kind == "ordered" else FLOATS
    return {learned}


def learned_features() -> list[tuple[str, Kind]]:
    ordered: list[tuple[str, Kind]] = [(name, "ordered") for name in ORDERED]
    return [*ordered, *((name, "nominal") for name in NOMINAL)]


@pytest.mark.parametrize(("learned", "kind"), learned_features())
def test_a_column_of_another_dtype_is_an_error(learned: str, kind: Kind) -> None:
    values = NOMINAL[learned]
    feature = Column("x", values.dtype, kind)
    known = values.unique(maintain_order=True)
    if kind == "ordered":
        exprs = [
            predict_intervals(feature, known[:1], [0, 1], CLASSES, missing=0),
            predict_intervals(feature, known[:0], [1], CLASSES, missing=1),
        ]
    else:
        exprs = [
            predict_values(feature, known[:1], [1], CLASSES, missing=0, default=0),
            predict_values(feature, known[:1], [0], CLASSES, missing=0, default=0),
        ]
    allowed = admitted(learned, kind)
    for name, column in COLUMNS.items():
        frame = column.rename("x").to_frame()
        for expr in exprs:
            if name in allowed:
                assert frame.select(expr).height == frame.height
                check_dtype(frame.schema, [feature])
                continue
            for engine in ("in-memory", "streaming"):
                with pytest.raises(PolarsError):
                    frame.lazy().select(expr).collect(engine=engine)
            with pytest.raises(DtypeError, match=r"'x' has dtype .* learned on"):
                check_dtype(frame.schema, [feature])


def test_a_wrong_dtype_is_an_error_before_any_row_is_read() -> None:
    expr = predict_values(
        Column("x", pl.String(), "nominal"), pl.Series(["a"]), [1], CLASSES, missing=0, default=0
    )
    with pytest.raises(PolarsError):
        pl.LazyFrame(schema={"x": pl.Int64}).select(expr).collect_schema()


def test_widths_compare_exactly() -> None:
    float_rule = predict_intervals(
        Column("x", pl.Float64(), "ordered"), pl.Series([0.1]), [0, 1], CLASSES, missing=2
    )
    # The Float32 next to 0.1 is above it.
    assert evaluate(float_rule, pl.Series([0.1], dtype=pl.Float32)) == ["perhaps"]
    assert evaluate(float_rule, pl.Series([0, 1])) == ["no", "perhaps"]
    whole_rule = predict_intervals(
        Column("x", pl.Int64(), "ordered"), pl.Series([300]), [0, 1], CLASSES, missing=2
    )
    assert evaluate(whole_rule, pl.Series([127], dtype=pl.Int8)) == ["no"]
    assert evaluate(whole_rule, pl.Series([2**64 - 1], dtype=pl.UInt64)) == ["perhaps"]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(MissingColumnError, match=r"'Age' not found.*'age'"):
        check_dtype(pl.Schema({"age": pl.Int64()}), [Column("Age", pl.Int64(), "ordered")])


# --- what the expressions are ---


@pytest.mark.parametrize("name", ["*", "^a.*$", "len", "a b", 'quo"te', "é", "", "literal"])
@pytest.mark.parametrize("kind", ["ordered", "nominal"])
def test_any_column_name(name: str, kind: Kind) -> None:
    feature = Column(name, pl.Int64(), kind)
    frame = pl.DataFrame({name: [1, 2], "a1": [5, 6]})
    if kind == "ordered":
        expr = predict_intervals(feature, pl.Series([1]), [0, 1], CLASSES, missing=0)
    else:
        expr = predict_values(feature, pl.Series([2]), [1], CLASSES, missing=0, default=0)
    assert frame.select(expr.alias("p"))["p"].to_list() == ["no", "perhaps"]


def test_the_guard_leaves_no_trace_in_the_plan() -> None:
    feature = Column("x", pl.Float64(), "ordered")
    x = pl.col("x")
    expr = predict_intervals(feature, pl.Series([1.5]), [0, 1], CLASSES[:2], missing=0)
    by_hand = pl.when((x > 1.5) & x.is_not_nan()).then(pl.lit("perhaps")).otherwise(pl.lit("no"))
    rows = pl.LazyFrame({"x": [1.0]})
    assert rows.select(expr.alias("p")).explain() == rows.select(by_hand.alias("p")).explain()


def test_predicates_reach_the_scan(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1.0, 2.0, None]}).write_parquet(path)
    feature = Column("x", pl.Float64(), "ordered")
    expr = predict_intervals(feature, pl.Series([1.5]), [0, 1], CLASSES[:2], missing=0)
    kept = pl.scan_parquet(path).filter(expr == "perhaps")
    assert "SELECTION" in kept.explain()
    assert "FILTER" not in kept.explain()
    assert kept.collect()["x"].to_list() == [2.0]


@pytest.mark.parametrize("n_cuts", [0, 3, 100])
def test_a_single_outcome_has_the_length_of_the_frame(n_cuts: int) -> None:
    feature = Column("x", pl.Int64(), "ordered")
    cuts = pl.Series(range(n_cuts), dtype=pl.Int64)
    expr = predict_intervals(feature, cuts, [1] * (n_cuts + 1), CLASSES, missing=1)
    rows = pl.LazyFrame({"x": [1, None, 3]})
    for engine in ("in-memory", "streaming"):
        assert rows.select(expr.alias("p")).collect(engine=engine)["p"].to_list() == ["perhaps"] * 3


def test_one_root_column_and_no_python() -> None:
    feature = Column("x", pl.Int64(), "ordered")
    for n_cuts in (2, 100):
        codes = [i % 2 for i in range(n_cuts + 1)]
        expr = predict_intervals(feature, pl.Series(range(n_cuts)), codes, CLASSES, missing=2)
        assert set(expr.meta.root_names()) == {"x"}
        assert b"cloudpickle" not in expr.meta.serialize()


# --- the pieces ---


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (None, pl.Float32()),
        (2**64 - 1, pl.UInt64()),
        (-math.inf, pl.Float32()),
        (Decimal("0.10"), pl.Decimal(10, 2)),
        ("M", SIZES),
        ("a", pl.Categorical()),
        (dt.date(2024, 2, 29), pl.Date()),
        (dt.datetime(2024, 1, 1, 0, 0, 0, 1), pl.Datetime("us")),
        (dt.timedelta(days=-1, microseconds=1), pl.Duration("us")),
        (dt.time(23, 59, 59, 999_999), pl.Time()),
        (None, pl.Date()),
    ],
)
def test_literals_keep_value_and_dtype(value: Any, dtype: pl.DataType) -> None:
    found = pl.select(literal(value, dtype)).to_series()
    assert found.dtype == dtype
    assert found.to_list() == [value]


def test_literals_from_a_series_keep_nanoseconds() -> None:
    series = pl.Series([NS]).cast(BERLIN)
    assert pl.select(literal(series, BERLIN)).to_series().equals(series)


@pytest.mark.parametrize("n", [0, 1, 3, 4])
def test_sets_of_any_size(n: int) -> None:
    x = pl.Series("x", [0.0, -0.0, 1.0, 2.0, 3.0, 9.0, math.nan])
    found = x.to_frame().select(is_one_of(pl.col("x"), pl.Series(range(n), dtype=pl.Float64)))
    assert found.to_series().to_list() == [0 <= value < n for value in x]


def test_an_interval_open_at_both_ends_holds_everything() -> None:
    x = pl.col("x")
    frame = pl.DataFrame({"x": [1, 2, 3]})
    one, two = pl.lit(1), pl.lit(2)
    found = frame.with_columns(
        a=is_between(x, None, None), b=is_between(x, one, None), c=is_between(x, one, two)
    )
    assert found["a"].to_list() == [True, True, True]
    assert found["b"].to_list() == [False, True, True]
    assert found["c"].to_list() == [False, True, False]


def test_interval_numbers_and_the_missing_one() -> None:
    x = pl.Series("x", [0.5, 1.0, 1.5, math.inf, math.nan, None])
    index = interval_index(pl.col("x"), pl.Float64(), pl.Series([1.0, 2.0]))
    assert x.to_frame().select(index).to_series().to_list() == [0, 0, 1, 2, 3, 3]


def test_guarded_leaves_values_and_name_to_the_caller() -> None:
    feature = Column("x", pl.Float64(), "ordered")
    expr = guarded(is_missing(pl.col("x"), feature.dtype), feature).alias("gone")
    found = pl.DataFrame({"x": [1.0, math.nan, None]}).select(expr)
    assert found.to_dict(as_series=False) == {"gone": [False, True, True]}
