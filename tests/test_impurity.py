"""Impurity and best splits as expressions, held to the slow oracle in every context they promise."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.exceptions import InvalidOperationError

from polars_oner import impurity
from polars_oner.criteria import criterion_for
from polars_oner.errors import OneRError, OptionError
from polars_oner.impurity import best_split, entropy, error_rate, gini, std_score
from polars_oner.typing import CLASS_CRITERIA, CRITERIA, CriterionName, Engine
from tests import oracle
from tests.strategies import Feature, Target, features, tables, targets

FUNCTIONS: dict[CriterionName, Callable[..., pl.Expr]] = {
    "gini": gini,
    "entropy": entropy,
    "error": error_rate,
    "std": std_score,
}

ENGINES: tuple[Engine, ...] = ("in-memory", "streaming")

Rows = list[int]


def close(found: float | None, expected: Any) -> bool:
    if found is None or expected is None:
        return found is None and expected is None
    return math.isclose(found, float(expected), rel_tol=1e-9, abs_tol=1e-12)


def expected_impurity(y: list[Any], name: CriterionName) -> Any:
    kept = [value for value in oracle.clean(y) if value is not None]
    return oracle.impurity(kept, name) if kept else None


def parts(y: list[Any], by: list[Any]) -> list[list[Any]]:
    """Divide the target values that are present by a column; all missing cells are one part."""
    groups: dict[Any, list[Any]] = {}
    for value, part in zip(oracle.clean(y), oracle.clean(by), strict=True):
        if value is not None:
            groups.setdefault(part, []).append(value)
    return list(groups.values())


def groups_of(frame: pl.DataFrame) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    for row, group in enumerate(frame["group"].to_list()):
        found.setdefault(group, []).append(row)
    return found


def in_every_context(frame: pl.DataFrame, expression: pl.Expr, name: str) -> list[dict[int, Any]]:
    """Work the expression out per group: by ``agg`` on both engines, by ``over``, and by ``select``."""
    by_agg = [
        frame.lazy().group_by("group").agg(expression.alias("result")).collect(engine=engine)
        for engine in ENGINES
    ]
    by_over = frame.select("group", expression.over("group").alias("result"))
    results = [dict(table.iter_rows()) for table in (*by_agg, by_over)]
    results.append(
        {
            group: frame[rows].lazy().select(expression).collect()[name].item()
            for group, rows in groups_of(frame).items()
        }
    )
    return results


def pick(values: list[Any], rows: Rows) -> list[Any]:
    return [values[row] for row in rows]


@st.composite
def grouped(draw: st.DrawFn, n_rows: int, *columns: pl.Series) -> pl.DataFrame:
    group = draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    return pl.DataFrame([*columns, pl.Series("group", group)])


# --- impurity ---


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_impurity_is_that_of_the_oracle(data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(1, 16))
    name = data.draw(st.sampled_from(list(FUNCTIONS)))
    target = data.draw(targets(n_rows, numbers=name == "std"))
    frame = data.draw(grouped(n_rows, target.series("y")))
    for result in in_every_context(frame, FUNCTIONS[name]("y"), "y"):
        for group, rows in groups_of(frame).items():
            assert close(result[group], expected_impurity(pick(target.column, rows), name))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_weighted_impurity_is_that_of_the_oracle(data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(1, 16))
    name = data.draw(st.sampled_from(list(FUNCTIONS)))
    target: Target = data.draw(targets(n_rows, numbers=name == "std"))
    by: Feature = data.draw(features(n_rows))
    frame = data.draw(grouped(n_rows, target.series("y"), by.series("g")))
    for result in in_every_context(frame, FUNCTIONS[name]("y", by="g"), "y"):
        for group, rows in groups_of(frame).items():
            sides = parts(pick(target.column, rows), pick(by.column, rows))
            expected = oracle.weighted_impurity(sides, name) if sides else None
            assert close(result[group], expected)


def test_socks() -> None:
    socks = pl.DataFrame({"basket": list("AAABBBB"), "color": list("rbrbrbb")})
    by_basket = dict(socks.group_by("basket").agg(gini("color")).iter_rows())
    assert by_basket == pytest.approx({"A": 4 / 9, "B": 3 / 8}, abs=1e-15)
    assert socks.select(gini("color", by="basket")).item() == pytest.approx(17 / 42, abs=1e-15)


def test_nothing_present_scores_null() -> None:
    frame = pl.DataFrame({"y": pl.Series([None, None], dtype=pl.Int64), "g": [1, 2]})
    for function in FUNCTIONS.values():
        for rows in (frame, frame.clear()):
            assert rows.select(function("y"), function("y", by="g").alias("by")).row(0) == (
                None,
                None,
            )


def test_all_missing_parts_are_one() -> None:
    frame = pl.DataFrame({"y": ["a", "a", "b", "b"], "g": [None, math.nan, math.nan, None]})
    assert frame.select(gini("y", by="g")).item() == 0.5


def test_std_score_keeps_its_digits_on_a_large_mean() -> None:
    large = [10**18, 10**18 + 1, 10**18 + 2, 10**18 + 5]
    expected = float(oracle.impurity(large, "std"))
    frame = pl.DataFrame({"whole": large, "real": [1e9 + i for i in (0.0, 1.0, 2.0, 5.0)]})
    frame = frame.with_columns(unsigned=pl.col("whole").cast(pl.UInt64) * 18)
    found = frame.select(std_score("whole"), std_score("real"), std_score("unsigned")).row(0)
    assert found == pytest.approx((expected, expected, 18 * expected), rel=1e-12)


def test_small_integers_do_not_wrap() -> None:
    values = pl.Series("y", [-128, 127] * 300, dtype=pl.Int8)
    assert values.to_frame().select(std_score("y")).item() == pytest.approx(
        float(oracle.impurity(values.to_list(), "std"))
    )
    many = pl.DataFrame({"y": pl.int_range(200_000, eager=True) % 2 == 0})
    assert many.select(gini("y")).item() == 0.5


def test_expressions_and_literal_names() -> None:
    frame = pl.DataFrame({"*": [1, 1, 2], "^y$": ["a", "b", "b"], "y": [1, 2, 3]})
    assert frame.select(gini("*"), gini("^y$")).columns == ["*", "^y$"]
    assert frame.select(gini("*", by="^y$").alias("s")).item() == pytest.approx(1 / 3)
    assert frame.select(gini(pl.col("y") > 1, by=pl.col("y") % 2)).to_dict(as_series=False) == {
        "y": [pytest.approx(1 / 3)]
    }


def test_a_selector_gives_one_result_per_column() -> None:
    frame = pl.DataFrame({"a": [1, 1], "b": [1, 2], "c": ["x", "y"], "g": ["p", "p"]})
    assert frame.select(gini(cs.numeric())).to_dict(as_series=False) == {"a": [0.0], "b": [0.5]}
    table = frame.group_by("g").agg(entropy(cs.all()), std_score(cs.integer()).name.suffix("_std"))
    assert table.row(0) == ("p", 0.0, 1.0, 1.0, 0.0, pytest.approx(0.5**0.5))


def test_several_columns_where_one_is_needed() -> None:
    with pytest.raises(OneRError, match="y must be one column"):
        gini(cs.numeric(), by="g")
    with pytest.raises(OneRError, match="by must be one column"):
        gini("y", by=cs.numeric())
    with pytest.raises(OneRError, match=r"x must be one column, but .* may stand for several"):
        best_split(cs.numeric(), "y")
    with pytest.raises(OneRError, match="y must be one column"):
        best_split("x", pl.all())


# --- dtypes ---

SAMPLES: dict[str, pl.Series] = {
    "Int64": pl.Series([1, 2]),
    "UInt8": pl.Series([1, 2], dtype=pl.UInt8),
    "Float32": pl.Series([1.0, 2.0], dtype=pl.Float32),
    "Float64": pl.Series([1.0, 2.0]),
    "Decimal": pl.Series([Decimal("1.5"), Decimal(2)]),
    "Boolean": pl.Series([False, True]),
    "String": pl.Series(["a", "b"]),
    "Categorical": pl.Series(["a", "b"], dtype=pl.Categorical),
    "Enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
    "Date": pl.Series([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
    "Datetime": pl.Series([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]),
    "Duration": pl.Series([dt.timedelta(1), dt.timedelta(2)]),
    "Time": pl.Series([dt.time(1), dt.time(2)]),
    "Binary": pl.Series([b"a", b"b"]),
    "List": pl.Series([[1], [2]]),
    "Struct": pl.Series([{"a": 1}, {"a": 2}]),
    "Null": pl.Series([None, None]),
}
ORDERED = {"Int64", "UInt8", "Float32", "Float64", "Decimal", "Enum", "Date", "Datetime"} | {
    "Duration",
    "Time",
}


@pytest.mark.parametrize("dtype", SAMPLES)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_target_is_read_or_refused_as_in_the_frame_path(
    dtype: str, criterion: CriterionName
) -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": SAMPLES[dtype], "g": [1, 1]})
    function = FUNCTIONS.get(criterion, std_score)
    try:
        criterion_for(criterion, "y", frame["y"].dtype)
    except OneRError:
        for expression in (function("y"), best_split("x", "y", criterion=criterion)):
            for query in (
                frame.lazy().select(expression),
                frame.lazy().group_by("g").agg(expression),
            ):
                with pytest.raises((InvalidOperationError, pl.exceptions.ComputeError)) as error:
                    query.collect()
                if dtype not in ("List", "Struct"):
                    assert "cannot use this target; allowed here: '" in str(error.value)
        return
    assert frame.select(function("y")).item() is not None
    split = frame.select(best_split("x", "y", criterion=criterion)).item()
    assert split == {"threshold": 1, "score": 0.0, "n_left": 1, "n_right": 1}


@pytest.mark.parametrize("dtype", SAMPLES)
def test_a_feature_is_cut_or_refused(dtype: str) -> None:
    frame = pl.DataFrame({"x": SAMPLES[dtype], "y": ["p", "q"]})
    if dtype in ORDERED:
        table = frame.select(best_split("x", "y")).unnest("x")
        assert table["threshold"].to_list() == frame["x"].head(1).to_list()
        assert table.schema == {
            "threshold": frame["x"].dtype,
            "score": pl.Float64,
            "n_left": pl.Int64,
            "n_right": pl.Int64,
        }
        assert frame.lazy().select(best_split("x", "y")).collect_schema()["x"] == pl.Struct(
            table.schema
        )
    else:
        with pytest.raises(InvalidOperationError, match=r"ordered feature|not supported for dtype"):
            frame.select(best_split("x", "y"))


def test_infinite_targets_have_no_spread() -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": [1.0, math.inf]})
    with pytest.raises(InvalidOperationError, match="infinite"):
        frame.select(std_score("y"))
    with pytest.raises(InvalidOperationError, match="infinite"):
        frame.select(best_split("x", "y", criterion="variance"))


# --- best split ---


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_best_split_is_that_of_the_oracle(data: st.DataObject) -> None:
    criterion = data.draw(st.sampled_from(CRITERIA))
    table = data.draw(
        tables(numbers=criterion not in CLASS_CRITERIA, kind="ordered", max_features=1)
    )
    min_leaf = data.draw(st.integers(1, 3))
    feature, target = table.features["f0"], table.target
    frame = data.draw(grouped(len(target.values), *table.frame))
    expression = best_split("f0", "y", criterion=criterion, min_leaf=min_leaf)
    for result in in_every_context(frame, expression, "f0"):
        for group, rows in groups_of(frame).items():
            best = oracle.best_ordered(
                pick(feature.column, rows),
                pick(target.column, rows),
                criterion,
                missing="drop",
                min_leaf=min_leaf,
                key=feature.key,
            )
            found = result[group]
            if best is None:
                assert set(found.values()) == {None}
                continue
            assert found["threshold"] == best.left_max
            assert (found["n_left"], found["n_right"]) == (best.n_left, best.n_right)
            assert close(found["score"], best.score)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_order_of_the_rows_changes_nothing(data: st.DataObject) -> None:
    criterion = data.draw(st.sampled_from(CRITERIA))
    table = data.draw(
        tables(numbers=criterion not in CLASS_CRITERIA, kind="ordered", max_features=1)
    )
    order = data.draw(st.permutations(range(table.frame.height)))
    expression = best_split("f0", "y", criterion=criterion)
    one, other = (
        frame.select(expression).item() for frame in (table.frame, table.frame[list(order)])
    )
    assert one == other


def test_many_classes() -> None:
    rows = 3000
    frame = pl.DataFrame({"i": range(rows)}).with_columns(
        x=(pl.col("i") * 7919) % 101, y=(pl.col("i") * 31) % 37
    )
    for criterion in CLASS_CRITERIA:
        best = oracle.best_ordered(frame["x"].to_list(), frame["y"].to_list(), criterion)
        assert best is not None
        found = frame.select(best_split("x", "y", criterion=criterion)).item()
        assert found["threshold"] == best.left_max
        assert close(found["score"], best.score)


def test_options_are_checked_when_the_expression_is_built() -> None:
    with pytest.raises(OptionError, match="criterion must be one of"):
        best_split("x", "y", criterion=cast("CriterionName", "twoing"))
    for bad in (0, 1.5, True):
        with pytest.raises(OptionError, match="min_leaf"):
            best_split("x", "y", min_leaf=cast("int", bad))


def test_expressions_as_feature_and_target() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "b": [0, 0, 5, 5]})
    split = frame.select((best_split(pl.col("a") * 10, pl.col("b") > 0)).alias("s")).item()
    assert split == {"threshold": 20, "score": 0.0, "n_left": 2, "n_right": 2}


def test_no_python_in_the_plan() -> None:
    expressions = [best_split("x", "y", criterion=c) for c in CRITERIA]
    expressions += [gini("y"), std_score("x"), entropy("y", by="x"), std_score("x", by="y")]
    for expression in expressions:
        text = expression.meta.serialize(format="json")
        assert "PythonUdf" not in text
        assert "AnonymousFunction" not in text
        assert "Plugin" not in text


def test_selectors_agree_with_the_criteria() -> None:
    # The expression path learns dtypes from selectors, the frame path from functions.
    for name, sample in SAMPLES.items():
        frame = pl.DataFrame({"y": sample})
        for criterion, selector in (("gini", impurity._CLASSES), ("std", impurity._NUMBERS)):
            allowed = bool(frame.select(selector).columns)
            try:
                criterion_for(criterion, "y", sample.dtype)
            except OneRError:
                assert not allowed, name
            else:
                assert allowed, name
