"""One feature's rule: cases, counts, cuts, text and expression, against the oracle."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polars_oner.counts import count_values
from polars_oner.errors import OptionError
from polars_oner.frame import resolve
from polars_oner.rule import Case, Rule, learn_rule
from polars_oner.target import class_target
from polars_oner.typing import TIES, Kind, Ties
from tests import oracle
from tests.textbook import NOMINAL, NUMERIC


def learn(
    frame: pl.DataFrame,
    feature: str = "x",
    target: str = "y",
    *,
    nominal: bool = False,
    **options: Any,
) -> Rule:
    chosen = {"nominal": [feature]} if nominal else {}
    roles = resolve(frame.schema, target, [feature], enum_kind="nominal", **chosen)
    seen = class_target(frame.lazy(), target, roles.target_dtype)
    counts = count_values(frame, roles.features, seen)[feature]
    return learn_rule(roles.features[0], counts, seen, **options)


def described(rule: Rule) -> list[tuple[Any, Any, Any]]:
    return [(case.prediction, case.n_correct, case.n_rows) for case in rule.cases]


cells = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([math.nan, 0.5, math.inf]))
rows = st.lists(st.tuples(cells, st.sampled_from(["a", "b", "c"])), min_size=1, max_size=40)


@given(rows, st.integers(1, 7), st.sampled_from(TIES), st.sampled_from(["ordered", "nominal"]))
@settings(max_examples=200, deadline=None)
def test_rule_is_the_oracle_s(
    table: list[tuple[float | None, str]], min_bucket: int, ties: Ties, kind: Kind
) -> None:
    x, y = [value for value, _ in table], [label for _, label in table]
    frame = pl.DataFrame({"x": x, "y": y}, schema={"x": pl.Float64, "y": pl.String}, strict=False)
    rule = learn(frame, nominal=kind == "nominal", min_bucket=min_bucket, ties=ties)
    expected = oracle.one_rule(x, y, kind, min_bucket=min_bucket, ties=ties)
    assert described(rule) == [(c.prediction, c.n_correct, c.n_rows) for c in expected.cases]
    assert (rule.n_rows, rule.n_errors) == (expected.n_rows, expected.n_errors)
    assert rule.classes[rule.default] == expected.default
    cuts = zip(rule.cuts, expected.boundaries, strict=True) if kind == "ordered" else ()
    for cut, (left_max, right_min) in cuts:
        assert left_max <= cut < right_min
    told = frame.select(rule.predict("p"))["p"]
    assert (told != frame["y"]).sum() == rule.n_errors
    assert Rule.from_dict(json.loads(json.dumps(rule.to_dict(), allow_nan=False))) == rule
    assert [by_hand(str(rule), value) for value in x] == told.to_list()
    per_case = rule.counts.group_by("case").agg(pl.col("n").sum()).sort("case")["n"]
    assert per_case.to_list() == [case.n_rows for case in rule.cases]


def by_hand(text: str, value: float | None) -> str:
    """Apply a printed rule to a number as a reader would."""
    missing = value is None or math.isnan(value)
    otherwise = None
    for line in text.splitlines()[1:-1]:
        condition, outcome = line.strip().split(" -> ")
        condition, label = condition.strip(), outcome.split()[0]
        if condition == "anything else":
            otherwise = label
        elif condition == "missing":
            if missing:
                return label
        elif not missing and value is not None and holds(condition, value):
            return label
    assert otherwise is not None
    return otherwise


def holds(condition: str, value: float) -> bool:
    if condition == "any value":
        return True
    tests = re.findall(r"(<=|>) (\S+)", condition)
    if not tests:
        return value == float(condition)
    return all(value <= float(n) if sign == "<=" else value > float(n) for sign, n in tests)


# --- textbook ---


def test_the_printed_rule_of_a_nominal_feature() -> None:
    rule = learn(pl.DataFrame(NOMINAL), "outlook", "play")
    assert str(rule) == (
        "outlook:\n"
        "  overcast      -> yes  4/4\n"
        "  rainy         -> yes  3/5\n"
        "  sunny         -> no   3/5\n"
        "  anything else -> yes\n"
        "10/14 correct, 4 errors"
    )


def test_the_printed_rule_of_an_ordered_feature() -> None:
    rule = learn(pl.DataFrame(NUMERIC), "humidity", "play", min_bucket=3)
    assert rule.cuts == [82.5, 95.5]
    assert str(rule) == (
        "humidity:\n"
        "  <= 82.5            -> yes  6/7\n"
        "  > 82.5 and <= 95.5 -> no   4/6\n"
        "  > 95.5             -> yes  1/1\n"
        "  missing            -> yes\n"
        "11/14 correct, 3 errors"
    )


def test_rates() -> None:
    rule = learn(pl.DataFrame(NOMINAL), "outlook", "play")
    assert (rule.n_cases, rule.n_rows, rule.n_correct, rule.n_errors) == (3, 14, 10, 4)
    assert rule.accuracy == 10 / 14
    assert rule.error_rate == 4 / 14
    assert rule.cases[1] == Case("rainy", ("rainy",), None, None, False, "yes", 3, 5)
    assert rule.cases[1].n_errors == 2
    assert rule.cases[1].error_rate == 0.4


def test_the_frame_of_a_rule() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 4, 4, 4, None], "y": list("aaabbbb")})
    table = learn(frame, min_bucket=3).to_frame()
    assert table.schema == pl.Schema(
        {
            "feature": pl.String(),
            "condition": pl.String(),
            "value": pl.Int64(),
            "lower": pl.Int64(),
            "upper": pl.Int64(),
            "prediction": pl.String(),
            "n_correct": pl.Int64(),
            "n_rows": pl.Int64(),
        }
    )
    assert table.rows() == [
        ("x", "<= 2.5", None, None, 2, "a", 3, 3),
        ("x", "> 2.5", None, 2, None, "b", 3, 3),
        ("x", "missing", None, None, None, "b", 1, 1),
    ]


# --- corners ---


def test_adjacent_floats_are_told_apart() -> None:
    x = [1.0000000000000002] * 2 + [1.0000000000000004] * 2
    frame = pl.DataFrame({"x": x, "y": [0, 0, 1, 1]})
    rule = learn(frame, min_bucket=1)
    assert rule.cuts == [1.0000000000000002]
    assert frame.select(rule.predict("p"))["p"].to_list() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "x",
    [
        pl.Series([2**53, 2**53 + 1]),
        pl.Series([2**64 - 2, 2**64 - 1], dtype=pl.UInt64),
        pl.Series([2.0, math.inf]),
        pl.Series([-math.inf, math.inf]),
        pl.Series([-math.inf, -5.0]),
        pl.Series(["0.11", "0.12"]).cast(pl.Decimal(10, 2)),
        pl.Series([0, 1], dtype=pl.Int32).cast(pl.Date),
        pl.Series([10**18 + 1, 10**18 + 2]).cast(pl.Datetime("ns", "UTC")),
        pl.Series([1, 2]).cast(pl.Duration("us")),
        pl.Series([1, 2]).cast(pl.Time),
    ],
    ids=str,
)
def test_neighbours_are_told_apart_in_every_dtype(x: pl.Series) -> None:
    frame = pl.DataFrame({"x": pl.concat([x, x]), "y": ["a", "b", "a", "b"]})
    rule = learn(frame, min_bucket=1)
    assert frame.select(rule.predict("p"))["p"].to_list() == ["a", "b", "a", "b"]
    assert len(rule.cuts) == 1
    assert Rule.from_dict(json.loads(json.dumps(rule.to_dict(), allow_nan=False))) == rule


def test_all_missing_is_one_case() -> None:
    frame = pl.DataFrame({"x": pl.Series([None] * 3, dtype=pl.Float64), "y": ["a", "b", "b"]})
    for nominal in (False, True):
        rule = learn(frame, nominal=nominal)
        assert described(rule) == [("b", 2, 3)]
        assert rule.cases[0].is_missing
        assert rule.cuts == []
        new = pl.DataFrame({"x": [1.0, None]})
        assert new.select(rule.predict("p"))["p"].to_list() == ["b", "b"]


def test_missing_and_unseen_rows_without_a_case_get_the_default() -> None:
    frame = pl.DataFrame({"x": ["u", "v", "v"], "y": ["a", "b", "b"]})
    told = pl.DataFrame({"x": ["u", "w", None]}).select(learn(frame).predict("p"))
    assert told["p"].to_list() == ["a", "b", "b"]


def test_a_categorical_rule_keeps_its_text() -> None:
    frame = pl.DataFrame({"x": ["v", "u"], "y": ["a", "b"]}).cast(pl.Categorical)
    rule = learn(frame)
    assert [case.condition for case in rule.cases] == ["u", "v"]
    assert frame.select(rule.predict("p"))["p"].equals(frame["y"].alias("p"))


def test_names_and_values_that_could_be_misread_are_quoted() -> None:
    frame = pl.DataFrame({"a: b": ["missing", None, "1", "1"], "y": ["no", "yes", "2", "2"]})
    text = str(learn(frame, "a: b"))
    assert text.splitlines()[:4] == [
        '"a: b":',
        '  "1"           -> "2"  2/2',
        '  "missing"     -> no   1/1',
        "  missing       -> yes  1/1",
    ]
    assert "&quot;missing&quot;" in learn(frame, "a: b")._repr_html_()


# --- given cuts ---


def test_given_cuts_replace_the_walk() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 4, None], "y": ["a", "a", "b", "b", "a"]})
    rule = learn(frame, cuts=pl.Series([0, 3]))
    assert rule.cuts == [0, 3]
    assert described(rule) == [("a", 0, 0), ("a", 2, 3), ("b", 1, 1), ("a", 1, 1)]
    assert math.isnan(rule.cases[0].error_rate)
    assert rule.n_errors == 1
    told = pl.DataFrame({"x": [-5, 3, 4, None]}).select(rule.predict("p"))
    assert told["p"].to_list() == ["a", "a", "b", "a"]
    assert str(rule).splitlines()[1].startswith("  <= 0")


def test_no_given_cuts_are_one_interval() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", "a", "b"]})
    rule = learn(frame, cuts=pl.Series([], dtype=pl.Float64))
    assert [case.condition for case in rule.cases] == ["any value"]
    assert described(rule) == [("a", 2, 3)]


# --- probabilities ---


def shares(rule: Rule, frame: pl.DataFrame, **options: Any) -> list[dict[Any, float]]:
    proba = rule.predict_proba(**options)
    columns = [frame.select(expression).to_series().to_list() for expression in proba.values()]
    return [dict(zip(proba, row, strict=True)) for row in zip(*columns, strict=True)]


@given(
    st.lists(
        st.tuples(st.sampled_from([None, 1, 2, 3, 5]), st.sampled_from("abc")),
        min_size=1,
        max_size=15,
    ),
    st.booleans(),
    st.sampled_from([0.0, 1, 0.5]),
)
@settings(max_examples=100, deadline=None)
def test_probabilities_are_the_shares_of_the_rows_told_apart(
    rows: list[tuple[int | None, str]], nominal: bool, smoothing: float
) -> None:
    frame = pl.DataFrame(rows, schema={"x": pl.Int64, "y": pl.String}, orient="row")
    rule = learn(frame, nominal=nominal, min_bucket=2)
    classes = sorted(set(frame["y"]))
    asked = pl.concat([frame, pl.DataFrame({"x": [None, 4, 99], "y": ["a"] * 3})])

    def case_of(value: int | None) -> int | None:
        for i, case in enumerate(rule.cases):
            if value is None or case.is_missing:
                if value is None and case.is_missing:
                    return i
            elif case.values is not None:
                if case.values == (value,):
                    return i
            elif (case.lower is None or case.lower < value) and (
                case.upper is None or value <= case.upper
            ):
                return i
        return None

    for row, told in zip(asked["x"], shares(rule, asked, smoothing=smoothing), strict=True):
        case = case_of(row)
        like = [y for x, y in rows if case is None or case_of(x) == case]
        n = len(like) + smoothing * len(classes)
        expected = {label: (like.count(label) + smoothing) / n for label in classes}
        assert told == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "x",
    [
        pl.Series(["u", "1", None, "u"]),
        pl.Series(["u", "v", None, "u"], dtype=pl.Categorical),
        pl.Series(["u", "v", None, "u"], dtype=pl.Enum(["v", "u", "w"])),
        pl.Series([True, False, None, True]),
        pl.Series([3, -1, None, 3], dtype=pl.Int8),
        pl.Series([0.5, -0.0, math.nan, 0.5]),
        pl.Series([1, 2, None, 1], dtype=pl.Int32).cast(pl.Date),
        pl.Series([None, None, None, None], dtype=pl.String),
    ],
    ids=lambda x: str(x.dtype),
)
def test_probabilities_by_value_in_every_dtype(x: pl.Series) -> None:
    frame = pl.DataFrame({"x": x, "y": [1, 2, 3, 2]})
    rule = learn(frame, nominal=True)
    told = [tuple(row.values()) for row in shares(rule, frame)]
    if x.null_count() == 4:
        assert told == [(0.25, 0.5, 0.25)] * 4
    else:
        assert told == [(0.5, 0.5, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.0)]


def test_probabilities_are_named_native_and_stream() -> None:
    frame = pl.DataFrame({"x": ["u", "v", "u"], "y": ["no", "yes", "yes"]})
    proba = learn(frame).predict_proba()
    assert list(proba) == ["no", "yes"]
    plan = frame.lazy().select(*proba.values())
    assert plan.collect_schema() == {"no": pl.Float64, "yes": pl.Float64}
    assert plan.collect(engine="streaming").rows() == [(0.5, 0.5), (0.0, 1.0), (0.5, 0.5)]
    for expression in proba.values():
        restored = pl.Expr.deserialize(expression.meta.serialize())
        assert frame.select(restored).equals(frame.select(expression))
        assert "python" not in expression.meta.tree_format(return_as_string=True).lower()
    with pytest.raises(pl.exceptions.PolarsError):
        pl.DataFrame({"x": [1]}).select(proba["no"])


def test_an_interval_without_training_rows_has_the_shares_of_all() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 9], "y": ["a", "a", "b", "b"]})
    rule = learn(frame, cuts=pl.Series([3, 6]))
    told = shares(rule, pl.DataFrame({"x": [1, 5, 9]}))
    assert told == [{"a": 2 / 3, "b": 1 / 3}, {"a": 0.5, "b": 0.5}, {"a": 0.0, "b": 1.0}]


def test_probabilities_of_many_intervals() -> None:
    frame = pl.DataFrame({"x": range(200), "y": [i % 2 for i in range(200)]})
    rule = learn(frame, min_bucket=1)
    assert rule.n_cases == 200
    assert [told[1] for told in shares(rule, frame)] == frame["y"].to_list()


@pytest.mark.parametrize("smoothing", [-1, math.inf, math.nan, "1", True])
def test_bad_smoothing(smoothing: Any) -> None:
    rule = learn(pl.DataFrame({"x": [1, 2], "y": [0, 1]}))
    with pytest.raises(OptionError, match="smoothing must be a finite number of at least 0"):
        rule.predict_proba(smoothing=smoothing)
