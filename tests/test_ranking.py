"""Ranking the rules of all features, choosing one, and the honest figures beside them."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polars_oner.bins import Bins
from polars_oner.choice import leave_one_out
from polars_oner.counts import count_values
from polars_oner.discretization import discretize
from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    EmptyTargetError,
    IdentifierWarning,
    MissingColumnError,
    MissingPackageError,
    OptionError,
)
from polars_oner.evaluation import evaluate
from polars_oner.frame import resolve
from polars_oner.one_rule import OneRule
from polars_oner.ranking import fit, rank
from polars_oner.rule import learn_rule
from polars_oner.splits import best_split
from polars_oner.target import class_target
from polars_oner.typing import TIES, Kind, Ties
from polars_oner.validation import cross_validate
from tests import oracle
from tests.shared import SHARED, needs_shared
from tests.test_reference import load, reference, target_of
from tests.textbook import NOMINAL, NUMERIC

WEATHER = pl.DataFrame(NOMINAL)

BASIC = {
    "feature": pl.String(),
    "n_cases": pl.Int64(),
    "n_errors": pl.Int64(),
    "accuracy": pl.Float64(),
    "accuracy_lower": pl.Float64(),
    "accuracy_upper": pl.Float64(),
    "baseline": pl.Float64(),
    "loo_accuracy": pl.Float64(),
    "identifier": pl.Boolean(),
    "chosen": pl.Boolean(),
    "reason": pl.String(),
}


@pytest.fixture
def titanic() -> pl.DataFrame:
    return pl.read_csv(SHARED / "data" / "titanic_train.csv")


@contextmanager
def without_scipy() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.split(".")[0] == "scipy"]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "scipy", None)
        yield


# --- the table ---


def test_the_weather_ranking() -> None:
    table = rank(WEATHER, "play")
    assert table.schema == pl.Schema(BASIC)
    assert table.select("feature", "n_cases", "n_errors", "chosen").rows() == [
        ("outlook", 3, 4, True),
        ("humidity", 2, 4, False),
        ("temperature", 3, 5, False),
        ("windy", 2, 5, False),
    ]
    assert table["accuracy"].to_list() == [10 / 14, 10 / 14, 9 / 14, 9 / 14]
    assert table["baseline"].unique().to_list() == [9 / 14]


def test_lazy_is_eager_and_reads_nothing_when_built() -> None:
    calls = []

    def source() -> pl.DataFrame:
        calls.append(1)
        return WEATHER

    lazy = rank(pl.defer(source, schema=dict(WEATHER.schema)), "play", significance=True)
    schema = lazy.collect_schema()
    assert calls == []
    for engine in ("in-memory", "streaming"):
        table = lazy.collect(engine=engine)
        assert table.equals(rank(WEATHER, "play", significance=True))
        assert table.schema == schema


def test_untestable_columns_come_last_with_a_reason() -> None:
    frame = pl.DataFrame({"l": [[1], [2]], "x": ["u", "v"], "n": [None, None], "y": [0, 1]})
    table = rank(frame, "y", identifiers="keep")
    assert table["feature"].to_list() == ["x", "l", "n"]
    assert table["reason"].to_list()[0] is None
    assert "List(Int64)" in table["reason"][1]
    assert table["n_errors"].to_list() == [0, None, None]
    assert table["chosen"].to_list() == [True, None, None]


def test_only_untestable_columns_still_make_a_table_but_no_rule() -> None:
    frame = pl.DataFrame({"l": [[1], [2]], "y": [0, 1]})
    assert rank(frame, "y")["feature"].to_list() == ["l"]
    with pytest.raises(ColumnRoleError, match="no feature"):
        fit(frame, "y")


def test_features_of_names_that_the_tables_use_inside() -> None:
    names = ["value", "class", "n", "case", "weight", "feature", "*", "^x.*$", "len", "is_missing"]
    frame = pl.DataFrame({name: ["u", "u", "v", "v"] for name in names} | {"count": [0, 0, 1, 1]})
    model = fit(frame, "count")
    assert sorted(model.ranking["feature"]) == sorted(names)
    assert model.ranking["n_errors"].sum() == 0
    for rule in model.rules:
        assert frame.select(rule.predict("p"))["p"].to_list() == [0, 0, 1, 1]


# --- choice ---


def test_the_earlier_of_equal_columns_is_chosen() -> None:
    x = ["u", "u", "v", "v"]
    frame = pl.DataFrame({"b": x, "a": x, "y": [0, 0, 1, 1]})
    assert fit(frame, "y").feature == "b"
    assert fit(frame, "y", ["a", "b"]).feature == "a"


def test_chi2_chooses_among_equal_errors_only() -> None:
    frame = pl.DataFrame(
        {
            "weak": list("uuuvvvuv"),
            "strong": list("uuuuvvvv"),
            "y": list("aaaaaabb"),
        }
    )
    table = rank(frame, "y", significance=True)
    assert table.select("feature", "n_errors").rows() == [("weak", 2), ("strong", 2)]
    assert table["p_value"][0] > table["p_value"][1]
    assert fit(frame, "y").feature == "weak"
    assert fit(frame, "y", choose="chi2").feature == "strong"
    # One error less outweighs any p-value.
    better = frame.with_columns(strong=pl.lit("u"), weak=pl.Series(list("uuuuuuvu")))
    assert rank(better, "y", choose="chi2")["feature"].to_list() == ["weak", "strong"]


@needs_shared
def test_loo_sees_through_a_column_of_names(titanic: pl.DataFrame) -> None:
    table = rank(titanic, "Survived", choose="loo", identifiers="keep")
    assert table["feature"][0] == "Sex"
    loo = dict(table.select("feature", "loo_accuracy").rows())
    # Every name is new to a rule that has not seen it; families share tickets, and their fate.
    assert loo["Name"] == table["baseline"][0] == 549 / 891
    assert loo["Ticket"] == 640 / 891 < loo["Sex"] == 701 / 891
    assert fit(titanic, "Survived", choose="loo", identifiers="keep").feature == "Sex"


def test_a_choice_that_is_not_there_says_what_is() -> None:
    with pytest.raises(OptionError, match="choose must be one of 'first', 'chi2', 'loo'"):
        rank(WEATHER, "play", choose="best")  # type: ignore[arg-type]


# --- identifiers ---


@needs_shared
def test_identifiers_are_ranked_but_not_chosen(titanic: pl.DataFrame) -> None:
    with pytest.warns(IdentifierWarning, match="'Name', 'Ticket'") as caught:
        model = fit(titanic, "Survived")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.feature == "Sex"
    assert (model.n_correct, model.n_rows) == (701, 891)
    flagged = model.ranking.filter("identifier")
    assert flagged["feature"].to_list() == ["Name", "Ticket"]
    assert flagged["n_errors"].to_list() == [0, 52]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(titanic, "Survived", identifiers="keep").feature == "Name"
        assert rank(titanic, "Survived")["feature"][0] == "Name"


def test_half_of_the_rows_is_not_more_than_half() -> None:
    frame = pl.DataFrame({"x": ["a", "b", "c", "c"], "y": [0, 1, 0, 1]})
    assert not rank(frame, "y")["identifier"][0]
    assert rank(frame.head(3), "y")["identifier"][0]
    # Missing rows have no value of their own; numbers are cut into intervals.
    assert not rank(frame.with_columns(x=pl.Series(["a", "b", None, None])), "y")["identifier"][0]
    assert not rank(frame.with_columns(x=pl.Series([1, 2, 3, 4])), "y")["identifier"][0]
    assert rank(frame.with_columns(x=pl.Series([1, 2, 3, 4])), "y", nominal=["x"])["identifier"][0]


def test_nothing_but_identifiers_predicts_the_default() -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"], "y": ["no", "yes", "yes"]})
    with pytest.warns(IdentifierWarning, match="'id'"):
        model = fit(frame, "y")
    assert model.feature is None
    assert model.rule is None
    assert model.default == "yes"
    assert (model.n_correct, model.n_errors, model.accuracy) == (2, 1, 2 / 3)
    assert frame.select(model.predict()).to_series().to_list() == ["yes"] * 3
    assert model.to_frame().is_empty()
    assert str(model) == "1R for y (3 rows)\nanything else -> yes  2/3"
    assert "yes" in model._repr_html_()
    assert OneRule.from_dict(json.loads(json.dumps(model.to_dict()))) == model


# --- leave one out ---

labels = st.sampled_from(["a", "b", "c"])
rows = st.lists(st.tuples(st.sampled_from([None, 1, 2, 3, 4]), labels), min_size=1, max_size=14)


@given(rows, st.sampled_from(TIES), st.sampled_from(["ordered", "nominal"]), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_leave_one_out_in_closed_form_is_leaving_one_out(
    table: list[tuple[int | None, str]], ties: Ties, kind: Kind, min_bucket: int
) -> None:
    x, y = [value for value, _ in table], [label for _, label in table]
    frame = pl.DataFrame({"x": x, "y": y}, schema={"x": pl.Int64, "y": pl.String})
    roles = resolve(frame.schema, "y", nominal=["x"] if kind == "nominal" else [])
    seen = class_target(frame.lazy(), "y", pl.String())
    counts = count_values(frame, roles.features, seen)["x"]
    rule = learn_rule(roles.features[0], counts, seen, min_bucket=min_bucket, ties=ties)
    expected = oracle.leave_one_out(x, y, kind, min_bucket=min_bucket, ties=ties)
    assert leave_one_out(rule.counts, seen.counts, ties) == expected * len(y)


# --- significance ---


@needs_shared
def test_statistics_are_those_of_other_packages(titanic: pl.DataFrame) -> None:
    from scipy.stats import chi2_contingency
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    features = ["Sex", "Pclass", "Embarked", "Cabin"]
    table = rank(titanic, "Survived", features, nominal=["Pclass"], significance=True)
    for name, p_value in table.select("feature", "p_value").rows():
        cells = titanic.with_columns(pl.col(name).cast(pl.String).fill_null("missing"))
        crossed = cells.pivot(
            "Survived", index=name, values="PassengerId", aggregate_function="len"
        )
        observed = crossed.drop(name).fill_null(0).to_numpy()
        assert p_value == pytest.approx(chi2_contingency(observed, correction=False)[1], rel=1e-12)
    holm = multipletests(table["p_value"].to_numpy(), method="holm")[1]
    assert table["p_adjusted"].to_numpy() == pytest.approx(holm, rel=1e-12)
    n_correct = 891 - table["n_errors"].to_numpy()
    lower, upper = proportion_confint(n_correct, 891, method="wilson")
    assert table["accuracy_lower"].to_numpy() == pytest.approx(lower, rel=1e-12)
    assert table["accuracy_upper"].to_numpy() == pytest.approx(upper, rel=1e-12)


def test_a_column_that_tells_nothing_has_a_p_value_of_one() -> None:
    frame = pl.DataFrame({"x": ["u", "u", "u"], "y": [0, 1, 1]})
    table = rank(frame, "y", significance=True)
    assert table.select("p_value", "p_adjusted").row(0) == (1.0, 1.0)


def test_without_scipy_only_what_needs_it_fails_and_at_once() -> None:
    with without_scipy():
        assert rank(WEATHER, "play")["feature"][0] == "outlook"
        lazy = pl.LazyFrame(schema=WEATHER.schema)
        for options in ({"significance": True}, {"choose": "chi2"}):
            chosen: dict[str, Any] = dict(options)
            with pytest.raises(MissingPackageError, match=r"scipy.*polars_oner\[stats\]"):
                rank(lazy, "play", **chosen)


# --- the model ---


def test_the_model_counts_and_prints() -> None:
    model = fit(WEATHER, "play")
    assert (model.feature, model.default, model.n_rows, model.n_errors) == ("outlook", "yes", 14, 4)
    assert (model.accuracy, model.error_rate, model.baseline) == (10 / 14, 4 / 14, 9 / 14)
    assert [rule.feature for rule in model.rules] == WEATHER.columns[:-1]
    assert str(model).splitlines()[:2] == ["1R for play (14 rows)", "outlook:"]
    assert "<td>sunny</td>" in model._repr_html_()
    assert model.to_frame().equals(model.rules[0].to_frame())
    assert model.class_counts.to_list() == [5, 9]
    told = WEATHER.select(model.expr())
    assert told.columns == ["prediction"]
    assert (told["prediction"] != WEATHER["play"]).sum() == 4


def test_a_model_comes_back_from_json() -> None:
    frame = pl.DataFrame(NUMERIC).with_columns(
        pl.col("play").cast(pl.Enum(["yes", "no", "unused"])),
        when=pl.datetime_range(
            pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 14), time_zone="UTC", eager=False
        ),
    )
    model = fit(frame, "play", min_bucket=3, significance=True)
    back = OneRule.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
    assert back == model
    assert back.target_dtype == frame.schema["play"]
    assert frame.select(back.predict()).equals(frame.select(model.predict()))


def test_rows_without_a_target_are_left_out_and_counted() -> None:
    frame = pl.DataFrame({"x": ["u", "v", "u"], "y": [1, None, 1]})
    model = fit(frame, "y")
    assert (model.n_rows, model.n_target_missing) == (2, 1)
    assert str(model).startswith("1R for y (2 rows, 1 more without a target)")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame(schema={"x": pl.Int64, "y": pl.String}), "frame is empty"),
        (pl.DataFrame({"x": [1], "y": pl.Series([None], dtype=pl.String)}), "all 1 values"),
    ],
)
def test_no_rows_with_a_target(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(EmptyTargetError, match=message):
        fit(frame, "y")
    lazy = rank(frame.lazy(), "y")
    with pytest.raises(Exception, match=message):
        lazy.collect()


# --- weights ---


def test_whole_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=60).round(1),
            "c": rng.choice(list("uvwz"), 60),
            "y": rng.choice(list("ab"), 60),
            "w": rng.integers(0, 4, 60),
        }
    )
    repeated = frame.select(pl.exclude("w").repeat_by("w").explode(empty_as_null=False))
    weighted = fit(frame, "y", weights="w", significance=True)
    assert weighted == fit(repeated, "y", significance=True)
    assert "w" not in weighted.ranking["feature"]


def test_fractional_weights_scale_the_counts() -> None:
    frame = WEATHER.with_columns(w=pl.lit(0.5))
    table = rank(frame, "play", weights="w")
    assert table.schema == pl.Schema({**BASIC, "n_errors": pl.Float64()})
    assert rank(frame.lazy(), "play", weights="w").collect_schema() == table.schema
    assert table["n_errors"].to_list() == [2.0, 2.0, 2.5, 2.5]
    assert table["accuracy"].to_list() == rank(WEATHER, "play")["accuracy"].to_list()
    assert table["loo_accuracy"].null_count() == 4
    with pytest.raises(OptionError, match="fractional weights"):
        rank(frame, "play", weights="w", choose="loo")


# --- errors before any data is read ---


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"min_bucket": 0}, OptionError, "min_bucket must be a whole number of at least 1"),
        ({"min_bucket": 2.5}, OptionError, "min_bucket"),
        ({"ties": "random"}, OptionError, "ties must be one of 'rare', 'first', 'frequent'"),
        ({"identifiers": "drop"}, OptionError, "identifiers must be one of 'exclude', 'keep'"),
        ({"features": ["play"]}, ColumnRoleError, "'play' is also listed as a feature"),
        ({"features": ["windy", "windy"]}, ColumnRoleError, "'windy' is listed twice"),
        ({"features": "Outlook"}, MissingColumnError, "'Outlook' not found.*'outlook'"),
        ({"ordered": ["outlook"]}, DtypeError, "text has no order"),
        ({"weights": "weigth"}, MissingColumnError, "'weigth' not found"),
    ],
)
@pytest.mark.parametrize("function", [fit, rank])
def test_bad_calls(
    function: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    unreadable = pl.LazyFrame(schema=WEATHER.schema).map_batches(no_reading)
    for frame in (WEATHER, unreadable):
        with pytest.raises(error, match=message):
            function(frame, "play", **options)


def no_reading(_: pl.DataFrame) -> pl.DataFrame:
    pytest.fail("data was read")


@pytest.mark.parametrize("dtype", [pl.Float64(), pl.Decimal(5, 2), pl.List(pl.Int64()), pl.Null()])
def test_a_target_that_has_no_classes(dtype: pl.DataType) -> None:
    lazy = pl.LazyFrame(schema={"x": pl.Int64(), "y": dtype})
    for function in (fit, rank):
        with pytest.raises(DtypeError, match=re.escape(f"'y' of dtype {dtype}")):
            function(lazy, "y")


@pytest.mark.parametrize(
    "y",
    [
        pl.Series([False, True]),
        pl.Series([-1, 2], dtype=pl.Int8),
        pl.Series(["lo", "hi"], dtype=pl.Enum(["lo", "mid", "hi"])),
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pl.Series([0, 1], dtype=pl.Int32).cast(pl.Date),
    ],
    ids=lambda y: str(y.dtype),
)
def test_targets_of_every_kind_come_back_in_their_dtype(y: pl.Series) -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": y})
    told = frame.select(fit(frame, "y", min_bucket=1).predict("y"))
    assert told["y"].dtype == y.dtype
    assert told["y"].to_list() == y.to_list()


# --- bins ---

R_RUNS: dict[str, Any] = {
    "optbin_naive_naomit_FALSE": "naive",
    "optbin_logreg_naomit_FALSE": "logreg",
    "optbin_infogain_naomit_FALSE": "infogain",
}


@needs_shared
@pytest.mark.parametrize(("run", "method"), R_RUNS.items())
@pytest.mark.parametrize("name", ["weather-numeric", "iris", "labor", "diabetes"])
def test_rules_of_bins_are_right_as_often_as_r_s(name: str, run: str, method: Any) -> None:
    """Where the bins are R's, as far as its three digits tell, so are the rules.

    Which cuts differ, and why, stands with the methods.
    """
    told = reference()["datasets"][name]["r_oner"][run]["per_attribute"]
    frame = load(name)
    n_compared = 0
    for rule in fit(frame, target_of(name), bins=method, identifiers="keep").rules:
        if rule.kind == "nominal":
            assert rule.n_correct == told[rule.feature]["correct"]
            continue
        values = frame[rule.feature].drop_nulls()
        labels = [label for label, _ in told[rule.feature]["rules"] if label.startswith("(")]
        r_cuts = [float(label.strip("(]").split(",")[1]) for label in labels[:-1]]
        cuts = rule.table["upper"].drop_nulls().to_list()
        whole = all(float(f"{value:.3g}") == value for value in values.unique())
        below = [[(values <= cut).sum() for cut in each] for each in (r_cuts, cuts)]
        if whole and below[0] == below[1]:
            n_compared += 1
            assert rule.n_correct == told[rule.feature]["correct"]
            assert rule.n_rows == told[rule.feature]["total"]
    assert n_compared >= 2


def test_bins_by_feature_and_ready_made() -> None:
    frame = pl.DataFrame(NUMERIC)
    bins = discretize(frame, "play", "humidity", method="width", max_bins=3)
    assert isinstance(bins, Bins)
    both: dict[str, Any] = {"humidity": bins, "temperature": "infogain"}
    choices: list[Any] = [None, bins, both]
    plain, one, mapped = (
        {rule.feature: rule for rule in fit(frame, "play", bins=chosen).rules} for chosen in choices
    )
    assert one["humidity"].table["upper"][:-1].to_list() == bins.cuts.to_list()
    assert one["temperature"] == plain["temperature"]
    assert mapped["humidity"] == one["humidity"]
    assert mapped["temperature"] != plain["temperature"]
    assert mapped["outlook"] == plain["outlook"]
    assert rank(frame.lazy(), "play", bins=bins).collect().equals(rank(frame, "play", bins=bins))


def test_holte_s_intervals_by_name_are_those_of_the_walk() -> None:
    frame = pl.DataFrame(NUMERIC)
    plain, named = (fit(frame, "play", min_bucket=3), fit(frame, "play", min_bucket=3, bins="1r"))
    assert named.ranking.equals(plain.ranking)


def test_bins_that_do_not_fit() -> None:
    frame = pl.DataFrame(NUMERIC)
    bins = discretize(frame, "play", "humidity", special=[95])
    with pytest.raises(OptionError, match="special codes"):
        fit(frame, "play", bins=bins)
    other = discretize(frame.with_columns(pl.col("humidity").cast(pl.Float64)), "play", "humidity")
    with pytest.raises(DtypeError, match="'humidity' has dtype Int64; its bins were learned on"):
        fit(frame, "play", bins=other)
    with pytest.raises(OptionError, match="an ordered feature in bins"):
        fit(frame, "play", bins={"outlook": "mdl"})
    with pytest.raises(OptionError, match="method must be one of"):
        fit(frame, "play", bins="best")  # type: ignore[arg-type]


# --- choice by cross-validation ---


@needs_shared
def test_cross_validation_sees_through_a_column_of_names(titanic: pl.DataFrame) -> None:
    options: dict[str, Any] = {"identifiers": "keep", "folds": 5, "seed": 3}
    table = rank(titanic, "Survived", choose="cv", **options)
    validated = cross_validate(titanic, "Survived", **options).by_feature()
    accuracy = dict(table.select("feature", "cv_accuracy").rows())
    assert accuracy == pytest.approx(dict(validated.select("feature", "accuracy").rows()))
    assert table["cv_accuracy"].is_sorted(descending=True)
    assert table.columns.index("cv_accuracy") == table.columns.index("loo_accuracy") + 1
    model = fit(titanic, "Survived", choose="cv", **options)
    assert model.feature == "Sex"
    assert accuracy["Name"] == pytest.approx(549 / 891)
    # But for the choice and its column all is as without it.
    plain = fit(titanic, "Survived", identifiers="keep")
    assert {rule.feature: rule for rule in model.rules} == {r.feature: r for r in plain.rules}
    lazy = rank(titanic.lazy(), "Survived", choose="cv", **options)
    assert lazy.collect_schema() == table.schema
    assert lazy.collect().equals(table)


# --- probabilities ---


def test_probabilities_of_models_feed_the_evaluation() -> None:
    from sklearn.metrics import log_loss, roc_auc_score

    frame = pl.DataFrame(NUMERIC)
    for model in (fit(frame, "play", min_bucket=3), best_split(frame, "play", "humidity")):
        proba = model.predict_proba(smoothing=1)
        told = frame.select(**proba)
        assert told.columns == ["no", "yes"]
        assert (told["no"] + told["yes"]).to_list() == pytest.approx([1] * 14)
        figures = evaluate(frame, model, "play", proba=proba)
        actual = frame["play"].to_list()
        assert figures["log_loss"].item() == pytest.approx(log_loss(actual, told.to_numpy()))
        auc = roc_auc_score([label == "yes" for label in actual], told["yes"].to_list())
        assert figures["auc"].item() == pytest.approx(auc)
        assert "auc" in evaluate(frame, model, "play").columns


def test_probabilities_without_a_feature_are_the_shares_of_all() -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"], "y": ["no", "yes", "yes"]})
    with pytest.warns(IdentifierWarning):
        model = fit(frame, "y")
    assert frame.select(**model.predict_proba()).rows() == [(1 / 3, 2 / 3)] * 3
    assert frame.select(**model.predict_proba(smoothing=1)).row(0) == (2 / 5, 3 / 5)


def test_probabilities_of_a_split() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 5, 5, 5], "y": list("aababb")})
    split = best_split(frame, "y", "x")
    asked = pl.DataFrame({"x": [0, 9, None]})
    assert asked.select(**split.predict_proba()).rows() == [
        (2 / 3, 1 / 3), (1 / 3, 2 / 3), (1 / 2, 1 / 2)
    ]  # fmt: skip
    nominal = best_split(frame, "y", "x", nominal=["x"])
    asked = pl.DataFrame({"x": [1, 5, 7]})
    assert asked.select(**nominal.predict_proba(smoothing=1)).rows() == [
        (3 / 5, 2 / 5), (2 / 5, 3 / 5), (1 / 2, 1 / 2)
    ]  # fmt: skip
    constant = best_split(frame.with_columns(x=pl.lit(1)), "y", "x")
    assert asked.select(**constant.predict_proba()).rows() == [(0.5, 0.5)] * 3
    number = best_split(frame.with_columns(y=pl.col("x") * 1.5), "y", "x", criterion="variance")
    assert number.predict_proba() == {}


def test_the_warning_points_at_the_caller_s_line(titanic_like: pl.DataFrame) -> None:
    for call in (fit, lambda frame, target: frame.oner.fit(target)):
        with pytest.warns(IdentifierWarning) as caught:
            call(titanic_like, "y")
        assert [warning.filename for warning in caught] == [__file__]


@pytest.fixture
def titanic_like() -> pl.DataFrame:
    return pl.DataFrame({"id": ["a", "b", "c"], "x": [1, 1, 2], "y": ["no", "yes", "yes"]})
