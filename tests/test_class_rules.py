"""Class rules, held to the slow oracle, to Weka's HyperPipes and to hand-made examples."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.io.plugins import register_io_source

from polars_oner.class_rules import ClassRules, class_rules
from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    EmptyTargetError,
    MissingColumnError,
    OptionError,
    WeightError,
)
from polars_oner.typing import CLASS_RULE_TIES, ClassRuleTies, Engine
from tests import oracle
from tests.shared import SHARED, needs_shared
from tests.strategies import Table, chunked, shuffled, tables
from tests.textbook import NOMINAL, NUMERIC

ENGINES: tuple[Engine, ...] = ("in-memory", "streaming")
LABELS = pl.Enum(["S", "M", "L", "XL", "XXL"])


def expected_rules(table: Table) -> oracle.ClassRules:
    columns = {name: (f.column, f.rule_kind) for name, f in table.features.items()}
    return oracle.class_rules(columns, table.target.column, classes=table.target.classes)


def native(tests: ClassRules, label: Any, name: str) -> Any:
    """Read a test back as the oracle writes it."""
    code = tests.classes.to_list().index(label)
    (found,) = (t for t in tests.tests if t.feature == name)
    rows = found.table.filter(pl.col("class") == code)
    if rows.is_empty():
        return None
    if found.kind == "nominal":
        return frozenset(rows["value"].to_list())
    return rows["lower"].item(), rows["upper"].item()


def keyed(test: Any, key: Any) -> Any:
    return test if test is None or isinstance(test, frozenset) else tuple(map(key, test))


# --- against the oracle ---


@given(tables(), st.sampled_from(CLASS_RULE_TIES), st.data())
@settings(max_examples=120, deadline=None)
def test_rules_matches_and_predictions_are_those_of_the_oracle(
    table: Table, ties: ClassRuleTies, data: st.DataObject
) -> None:
    frame = table.frame
    expected = expected_rules(table)
    rules = class_rules(frame, "y", ties=ties)
    assert rules.classes.to_list() == list(expected.order)
    assert rules.class_counts.to_list() == [expected.totals[label] for label in expected.order]
    assert rules.n_target_missing == frame["y"].null_count()
    assert rules.target_dtype == frame["y"].dtype
    for label in expected.order:
        for name in table.features:
            assert native(rules, label, name) == expected.tests[label][name]
    n_tests = sum(test is not None for tests in expected.tests.values() for test in tests.values())
    assert rules.n_tests == n_tests
    other = data.draw(shuffled(frame))
    found = other.select(rules.hits(), rules.predict())
    assert found.height == other.height
    assert found["prediction"].dtype == frame["y"].dtype
    for row, (hits, prediction) in zip(other.iter_rows(named=True), found.iter_rows(), strict=True):
        assert list(hits.values()) == list(expected.matches(row).values())
        assert prediction == expected.predict(row, ties)


@given(tables(), st.data())
@settings(max_examples=40, deadline=None)
def test_order_chunks_laziness_and_engine_change_nothing(table: Table, data: st.DataObject) -> None:
    frame = table.frame
    rules = class_rules(frame, "y")
    assert class_rules(data.draw(shuffled(frame)), "y") == rules
    assert class_rules(data.draw(chunked(frame)), "y") == rules
    for engine in ENGINES:
        assert class_rules(frame, "y", engine=engine) == rules
        assert class_rules(frame.lazy(), "y", engine=engine) == rules


@given(tables(), st.data())
@settings(max_examples=40, deadline=None)
def test_whole_weights_are_repeated_rows(table: Table, data: st.DataObject) -> None:
    frame = table.frame
    weight = st.lists(st.integers(0, 3), min_size=frame.height, max_size=frame.height)
    weights = pl.Series("w", data.draw(weight))
    repeated = frame[[row for row, n in enumerate(weights) for _ in range(n)]]
    weighted = frame.with_columns(weights)
    features = list(table.features)
    if repeated["y"].null_count() == repeated.height:
        with pytest.raises(EmptyTargetError):
            class_rules(weighted, "y", weights="w")
        return
    expected = class_rules(repeated, "y", features)
    for source in (weighted, weighted.lazy()):
        found = class_rules(source, "y", weights="w")
        assert found.tests == expected.tests
        assert found.class_counts.to_list() == expected.class_counts.to_list()
        assert found.classes.to_list() == expected.classes.to_list()


@given(tables(), st.sampled_from(CLASS_RULE_TIES))
@settings(max_examples=40, deadline=None)
def test_a_model_goes_through_json(table: Table, ties: ClassRuleTies) -> None:
    rules = class_rules(table.frame, "y", ties=ties)
    back = ClassRules.from_dict(json.loads(json.dumps(rules.to_dict())))
    assert back == rules
    assert table.frame.select(back.predict()).equals(table.frame.select(rules.predict()))


# --- Weka's HyperPipes ---


def data_sets() -> list[str]:
    if not SHARED.is_dir():
        return []
    reference = json.loads((SHARED / "reference" / "reference.json").read_text("utf-8"))
    return [
        name
        for name, entry in reference["datasets"].items()
        if entry["weka"].get("HyperPipes") is not None
    ]


@needs_shared
@pytest.mark.parametrize("name", data_sets())
def test_training_counts_are_those_of_weka(name: str) -> None:
    reference = json.loads((SHARED / "reference" / "reference.json").read_text("utf-8"))
    schema = json.loads((SHARED / "data" / "schema.json").read_text("utf-8"))[name]
    entry = reference["datasets"][name]
    target = schema["target"]
    declared = pl.Enum(entry["classes_declared_order"])
    nominal = [c["name"] for c in schema["columns"] if c["type"] == "nominal"]
    frame = pl.read_parquet(SHARED / "data" / f"{name}.parquet").with_columns(
        pl.col(target).cast(pl.String).cast(declared)
    )
    nominal.remove(target)
    rules = class_rules(frame, target, ties="first", nominal=nominal)
    predictions = frame.filter(pl.col(target).is_not_null()).with_columns(rules.predict())
    correct = (predictions["prediction"] == predictions[target]).sum()
    assert correct == entry["weka"]["HyperPipes"]["train_correct"]
    first = entry["weka"]["HyperPipes"]["first20_predictions"]
    assert predictions["prediction"].head(len(first)).to_list() == first


# --- the policy ---


def test_hits_ties_and_the_default() -> None:
    frame = pl.DataFrame(
        {
            "h": [1.0, 3.0, 2.0, 6.0, 9.0, None],
            "k": ["u", "v", "u", "w", "w", "v"],
            "y": ["a", "a", "a", "b", "b", "b"],
        }
    )
    rows = pl.DataFrame(
        {"h": [3.0, 6.0, 4.5, None, 1.0, None], "k": ["u", "v", "zzz", "w", "w", None]}
    )
    for ties in CLASS_RULE_TIES:
        rules = class_rules(frame, "y", ties=ties)
        found = rows.select(rules.hits(), rules.predict())
        assert found["hits"].struct.field("a").to_list() == [2, 1, 0, 0, 1, 0]
        assert found["hits"].struct.field("b").to_list() == [0, 2, 0, 1, 1, 0]
        assert found["prediction"].to_list() == ["a", "b", "a", "b", "a", "a"]


def test_ties_between_classes_and_no_match() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 2], "y": ["a", "b", "b", "c"]})
    rows = pl.DataFrame({"x": [1, 2, 3, None]})
    frequent, first = (class_rules(frame, "y", ties=ties) for ties in CLASS_RULE_TIES)
    assert rows.select(frequent.predict())["prediction"].to_list() == ["b", "c", "b", "b"]
    assert rows.select(first.predict())["prediction"].to_list() == ["a", "c", "b", "b"]
    assert frequent.default == first.default == "b"


def test_a_feature_without_any_value() -> None:
    frame = pl.DataFrame({"x": [None, math.nan], "y": [True, False]})
    rules = class_rules(frame, "y")
    assert rules.n_tests == 0
    assert frame.select(rules.predict("p"))["p"].to_list() == [False, False]
    assert frame.select(rules.hits("h"))["h"].to_list() == [{"false": 0, "true": 0}] * 2
    assert "no value" in str(rules)


def test_many_features_do_not_wrap_the_count() -> None:
    frame = pl.DataFrame({f"x{i}": [1, 2] for i in range(300)} | {"y": ["a", "b"]})
    rules = class_rules(frame, "y")
    assert frame.select(rules.hits())["hits"].to_list() == [{"a": 300, "b": 0}, {"a": 0, "b": 300}]
    assert frame.select(rules.predict())["prediction"].to_list() == ["a", "b"]


def test_many_classes() -> None:
    rows = 4000
    frame = pl.DataFrame({"i": range(rows)}).select(
        pl.col("i").mod(97).alias("y"),
        *(
            (pl.col("i").mod(97) * (j + 3) % 101 + pl.col("i") % 3).alias(f"x{j}")
            for j in range(20)
        ),
    )
    rules = class_rules(frame, "y")
    assert rules.n_tests == 97 * 20
    assert len(rules.predict().meta.serialize()) < 2_000_000
    correct = frame.lazy().select((rules.predict() == pl.col("y")).mean()).collect().item()
    assert correct == 1.0


# --- how it reads the source ---


def counting(frame: pl.DataFrame, passes: list[int]) -> pl.LazyFrame:
    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        passes.append(1)
        for batch in frame.iter_slices(5):
            part = batch if predicate is None else batch.filter(predicate)
            yield part if with_columns is None else part.select(with_columns)

    return register_io_source(source, schema=frame.schema)


def test_one_pass_whatever_the_features() -> None:
    frame = pl.DataFrame(NUMERIC)
    for features in ("temperature", "outlook", None, ["outlook", "windy"]):
        passes: list[int] = []
        rules = class_rules(counting(frame, passes), "play", features)
        assert len(passes) == 1
        assert rules == class_rules(frame, "play", features)


def test_progress_counts_rows(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    class_rules(pl.DataFrame(NUMERIC).lazy(), "play", progress=True)
    assert "class rules" in capsys.readouterr().err


def test_the_prediction_streams_and_holds_no_python() -> None:
    frame = pl.DataFrame(NUMERIC)
    rules = class_rules(frame, "play")
    for expression in (rules.predict(), rules.hits(), rules.expr()):
        text = expression.meta.serialize(format="json")
        assert "PythonUdf" not in text
        assert "Plugin" not in text
    query = frame.lazy().select(rules.predict())
    plan = query.explain(engine="streaming", format="plain")
    assert "in-memory" not in plan.lower()
    assert query.collect(engine="streaming").equals(query.collect())
    back = pl.Expr.deserialize(rules.predict().meta.serialize())
    assert frame.select(back).equals(frame.select(rules.predict()))


# --- what it prints ---


def test_text_table_and_html() -> None:
    frame = pl.DataFrame(NUMERIC).with_columns(pl.col("temperature") + 0.5)
    rules = class_rules(frame, "play", ["temperature", "humidity", "outlook", "windy"])
    assert str(rules).splitlines() == [
        "class rules for play (14 rows)",
        "no (5 rows):",
        "  temperature  >= 65.5 and <= 85.5",
        "  humidity     >= 70 and <= 95",
        "  outlook      rainy, sunny",
        "  windy        false, true",
        "yes (9 rows):",
        "  temperature  >= 64.5 and <= 83.5",
        "  humidity     >= 65 and <= 96",
        "  outlook      overcast, rainy, sunny",
        "  windy        false, true",
        "most matches win; ties -> the commoner class; no match -> yes",
    ]
    table = rules.to_frame()
    assert table.schema == {
        "class": pl.String,
        "feature": pl.String,
        "condition": pl.String,
        "lower": pl.String,
        "upper": pl.String,
        "values": pl.List(pl.String),
    }
    assert table.height == 8
    assert table.row(0) == ("no", "temperature", ">= 65.5 and <= 85.5", "65.5", "85.5", None)
    assert table.row(2) == ("no", "outlook", "rainy, sunny", None, None, ["rainy", "sunny"])
    html = rules._repr_html_()
    assert html.count("<tr>") == 3
    assert "&gt;= 65.5 and &lt;= 85.5" in html


def test_long_sets_are_cut_in_print_alone() -> None:
    frame = pl.DataFrame({"x": [f"v{i:02}" for i in range(30)], "y": [1] * 30})
    rules = class_rules(frame, "y")
    (condition,) = rules.to_frame()["condition"]
    assert condition.endswith("v19, ... (10 more)")
    assert len(rules.to_frame()["values"][0]) == 30


@given(tables())
@settings(max_examples=30, deadline=None)
def test_every_model_prints(table: Table) -> None:
    rules = class_rules(table.frame, "y")
    assert str(rules).startswith("class rules for y")
    assert rules._repr_html_().startswith("<table>")
    assert rules.to_frame().height == len(rules.classes) * len(table.features)


# --- kinds and dtypes ---


def test_kinds_and_their_overrides() -> None:
    frame = pl.DataFrame(
        {
            "size": pl.Series(["XL", "S", "M"], dtype=LABELS),
            "code": [3.0, -0.0, math.nan],
            "when": [dt.date(2024, 1, 1), dt.date(2024, 3, 1), None],
            "money": [Decimal("1.10"), Decimal("2.20"), Decimal("1.50")],
            "y": ["a", "a", "b"],
        }
    )
    rules = class_rules(frame, "y")
    assert [t.kind for t in rules.tests] == ["nominal", "ordered", "ordered", "ordered"]
    assert native(rules, "a", "size") == frozenset({"S", "XL"})
    assert native(rules, "a", "when") == (dt.date(2024, 1, 1), dt.date(2024, 3, 1))
    assert native(rules, "a", "money") == (Decimal("1.10"), Decimal("2.20"))
    assert native(rules, "b", "code") is None
    swapped = class_rules(frame, "y", ordered=["size"], nominal=["code", "when"])
    assert native(swapped, "a", "size") == ("S", "XL")
    assert native(swapped, "a", "code") == frozenset({0.0, 3.0})
    assert frame.select(swapped.hits())["hits"].to_list() == [
        {"a": 4, "b": 0},
        {"a": 4, "b": 0},
        {"a": 2, "b": 2},
    ]


def test_odd_names() -> None:
    names = ["class", "n", "x0", "lower0", "^a.*$", "*", "weight", "value", "a b"]
    frame = pl.DataFrame({name: [i, i + 1, 5] for i, name in enumerate(names)})
    frame = frame.with_columns(pl.col("n").cast(pl.String)).with_columns(y=pl.lit("p"))
    for source in (frame, frame.lazy()):
        rules = class_rules(source, "y")
        assert [t.feature for t in rules.tests] == names
        assert frame.select(rules.hits())["hits"].to_list() == [{"p": len(names)}] * 3
        assert class_rules(source, "*").target == "*"


def test_a_wrong_dtype_at_prediction_is_an_error() -> None:
    rules = class_rules(pl.DataFrame(NOMINAL), "play")
    wrong = pl.DataFrame(NOMINAL).with_columns(windy=pl.lit(1))
    with pytest.raises(pl.exceptions.PolarsError):
        wrong.select(rules.predict())
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="windy"):
        wrong.drop("windy").select(rules.predict())


# --- errors ---


def test_errors_before_any_data_is_read() -> None:
    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        pytest.fail("the source was read")

    schema = pl.Schema(
        {"x": pl.Int64(), "l": pl.List(pl.Int64()), "f": pl.Float64(), "y": pl.Int64()}
    )
    scan = register_io_source(source, schema=schema)
    with pytest.raises(DtypeError, match="class_rules cannot use target 'f' of dtype Float64"):
        class_rules(scan, "f")
    with pytest.raises(OptionError, match="ties must be one of 'frequent', 'first', not 'rare'"):
        class_rules(scan, "y", ties=cast("ClassRuleTies", "rare"))
    with pytest.raises(MissingColumnError, match="did you mean 'y'"):
        class_rules(scan, "Y")
    with pytest.raises(ColumnRoleError, match="'y' is also listed as a feature"):
        class_rules(scan, "y", ["x", "y"])
    with pytest.raises(ColumnRoleError, match="no feature column"):
        class_rules(scan.select("l", "y"), "y")


def test_no_rows_with_a_target() -> None:
    frame = pl.DataFrame(
        {"x": [1, 2], "s": ["a", "b"], "y": pl.Series([None, None], dtype=pl.Int8)}
    )
    for source in (frame, frame.lazy()):
        with pytest.raises(EmptyTargetError, match="all 2 values of 'y' are missing"):
            class_rules(source, "y")
        with pytest.raises(EmptyTargetError, match="the frame is empty"):
            class_rules(source.clear(), "y")


def test_bad_weights() -> None:
    for bad in (-1.0, math.nan, math.inf, None):
        frame = pl.DataFrame({"x": [1, 2], "w": [1.0, bad], "y": ["a", "b"]})
        with pytest.raises(WeightError, match="'w' has 1 values"):
            class_rules(frame, "y", weights="w")
