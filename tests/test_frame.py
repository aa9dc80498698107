"""Roles of columns: kinds by dtype, literal names, and errors that say what was wrong."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

import polars_oner as po
from polars_oner.frame import as_lazy, canonical, canonical_dtype, column, is_missing, like, resolve
from polars_oner.typing import Kind

SCHEMA = pl.Schema(
    {
        "i": pl.Int8(),
        "u": pl.UInt64(),
        "f": pl.Float32(),
        "d": pl.Decimal(10, 2),
        "day": pl.Date(),
        "at": pl.Datetime("ns", "UTC"),
        "took": pl.Duration("ms"),
        "t": pl.Time(),
        "e": pl.Enum(["a", "b"]),
        "s": pl.String(),
        "c": pl.Categorical(),
        "b": pl.Boolean(),
        "list": pl.List(pl.Int64()),
        "array": pl.Array(pl.Int64(), 2),
        "struct": pl.Struct({"x": pl.Int64()}),
        "bytes": pl.Binary(),
        "null": pl.Null(),
        "object": pl.Object(),
        "y": pl.Int64(),
    }
)
KINDS: dict[str, Kind] = {
    **dict.fromkeys(["i", "u", "f", "d", "day", "at", "took", "t", "e"], "ordered"),
    **dict.fromkeys(["s", "c", "b"], "nominal"),
}
UNSUPPORTED = ["list", "array", "struct", "bytes", "null", "object"]


def test_kinds_follow_the_dtypes() -> None:
    roles = resolve(SCHEMA, "y")
    assert {f.name: f.kind for f in roles.features} == KINDS
    assert [f.dtype for f in roles.features] == [SCHEMA[name] for name in KINDS]
    assert [skip.name for skip in roles.skipped] == UNSUPPORTED
    for skip in roles.skipped:
        assert str(SCHEMA[skip.name]) in skip.reason
    assert roles.names == tuple(name for name in SCHEMA if name != "y")
    assert (roles.target, roles.target_dtype) == ("y", pl.Int64())


def test_an_enum_is_nominal_where_asked() -> None:
    (feature,) = resolve(SCHEMA, "y", "e", enum_kind="nominal").features
    assert feature.kind == "nominal"
    (feature,) = resolve(SCHEMA, "y", "e", ordered=["e"], enum_kind="nominal").features
    assert feature.kind == "ordered"


def test_kinds_can_be_overridden() -> None:
    roles = resolve(SCHEMA, "y", ["i", "b", "e"], nominal=["i", "e"], ordered="b")
    assert [f.kind for f in roles.features] == ["nominal", "ordered", "nominal"]
    # A name of several letters is one name.
    assert resolve(SCHEMA, "y", ["day"], nominal="day").features[0].kind == "nominal"


def test_named_features_keep_the_caller_s_order() -> None:
    assert resolve(SCHEMA, "y", ["s", "i"]).names == ("s", "i")
    assert resolve(SCHEMA, "y", "s").names == ("s",)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "Y"}, po.MissingColumnError, "column 'Y' not found; did you mean 'y'"),
        ({"features": ["i", "zzz"]}, po.MissingColumnError, "column 'zzz' not found; the frame has"),
        ({"nominal": ["dya"]}, po.MissingColumnError, "column 'dya' not found; did you mean 'day'"),
        ({"reserved": ["w"]}, po.MissingColumnError, "column 'w' not found"),
        ({"features": ["y"]}, po.ColumnRoleError, "the target 'y' is also listed as a feature"),
        ({"features": ["i", "i"]}, po.ColumnRoleError, "column 'i' is listed twice in features"),
        ({"nominal": ["i", "i"]}, po.ColumnRoleError, "column 'i' is listed twice in nominal"),
        (
            {"nominal": ["i"], "ordered": ["i"]},
            po.ColumnRoleError,
            "column 'i' is named both as nominal and as ordered",
        ),
        ({"reserved": ["y"]}, po.ColumnRoleError, "column 'y' is named both as target and as segment"),
        (
            {"features": ["i"], "reserved": ["i"]},
            po.ColumnRoleError,
            "column 'i' is named both as feature and as segment",
        ),
        ({"features": []}, po.ColumnRoleError, "no feature column besides the target 'y'"),
        ({"features": ["list"]}, po.DtypeError, "feature 'list' has dtype List"),
        ({"features": ["null"]}, po.DtypeError, "feature 'null' has dtype Null"),
        ({"features": ["s"], "ordered": ["s"]}, po.DtypeError, "text has no order to cut"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        resolve(SCHEMA, **{"target": "y", **options})
    assert message in str(caught.value)
    assert isinstance(caught.value, po.OneRError)
    assert isinstance(caught.value, ValueError)


def test_a_missing_column_is_polars_own_error_too() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        resolve(SCHEMA, "nope")
    with pytest.raises(po.ColumnRoleError, match="no feature column"):
        resolve(pl.Schema({"y": pl.Int64()}), "y")


NAMES = ["^a.*$", "*", "len", "count", "a b", 'say "x"', "it's", "", "value", "n", "^", "$", "x$"]


def test_names_are_literal() -> None:
    frame = pl.DataFrame({name: [i, i + 1] for i, name in enumerate(NAMES)})
    for i, name in enumerate(NAMES):
        assert frame.select(column(name)).to_dict(as_series=False) == {name: [i, i + 1]}


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_target_feature_segment_or_weight(name: str) -> None:
    rows = {name: [1, 2, 3, 4], "other": [0, 0, 1, 1]}
    frame = pl.DataFrame(rows)
    assert po.best_split(frame, "other").feature == name
    table = po.best_splits(frame, "other")
    assert table["condition"].to_list() == [f"{name} <= 2"]
    assert po.best_split(frame.rename({name: "x", "other": name}), name).score == 0
    grouped = frame.with_columns(x=pl.Series([2, 1, 1, 2]))
    assert po.best_splits(grouped, "x", "other", by=name).columns[0] == name
    assert po.best_split(grouped, "other", "x", weights=name).n_left == 5


def test_columns_may_be_named_as_those_of_the_count_tables() -> None:
    generous = ["class", "n", "s", "q", "exact", "by0", "x0", "x", "weight", "k", "m", "low", "c0"]
    frame = pl.DataFrame({**{name: [1, 2, 3, 4] for name in generous}, "score": [0, 0, 1, 1]})
    plain = po.best_splits(frame, "score")
    assert plain["feature"].to_list() == generous
    assert plain["score"].to_list() == [0.0] * len(generous)
    refined = po.best_splits(frame, "score", strategy="refine")
    assert refined.equals(plain)
    for criterion in ("gini", "std"):
        lazy = po.best_splits(frame.lazy(), "score", criterion=criterion, weights="n", by="k")
        assert lazy.collect().height == 4 * (len(generous) - 2)


# --- values ---


@pytest.mark.parametrize("dtype", [pl.Float32(), pl.Float64()])
def test_missing_floats_and_both_zeros(dtype: pl.DataType) -> None:
    values = pl.Series("x", [None, math.nan, -0.0, 0.0, -math.inf, math.inf], dtype=dtype)
    frame = values.to_frame()
    told = frame.select(is_missing(pl.col("x"), dtype)).to_series().to_list()
    assert told == [True, True, False, False, False, False]
    clean = frame.select(canonical(pl.col("x"), dtype)).to_series()
    assert clean.dtype == dtype
    assert [str(value) for value in clean] == ["None", "None", "0.0", "0.0", "-inf", "inf"]


def test_other_dtypes_are_left_as_they_are() -> None:
    for dtype in (pl.Int64(), pl.String(), pl.Date(), pl.Enum(["a"]), pl.Boolean()):
        frame = pl.DataFrame({"x": pl.Series([None], dtype=dtype)})
        assert frame.select(canonical(pl.col("x"), dtype)).schema == {"x": dtype}
        assert canonical_dtype(dtype) == dtype
        assert frame.select(is_missing(pl.col("x"), dtype)).item() is True


def test_a_categorical_is_read_as_text() -> None:
    frame = pl.DataFrame({"x": pl.Series(["b", "a"], dtype=pl.Categorical)})
    clean = frame.select(canonical(pl.col("x"), frame.schema["x"])).to_series()
    assert clean.to_list() == ["b", "a"]
    assert clean.dtype == canonical_dtype(frame.schema["x"]) == pl.String()


def test_frames_in_frames_out() -> None:
    frame = pl.DataFrame({"x": [1]})
    plan = as_lazy(frame)
    assert isinstance(like(plan, frame), pl.DataFrame)
    assert like(plan, plan) is plan
    with pytest.raises(TypeError, match="expected a polars DataFrame or LazyFrame, not dict"):
        as_lazy({"x": [1]})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not Series"):
        po.best_split(pl.Series([1]), "y")  # type: ignore[arg-type]
