"""Figures about predictions against scikit-learn, scipy, statsmodels, R and plain Python."""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.stats import binomtest
from sklearn import metrics
from statsmodels.stats.proportion import proportion_confint

from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    MissingPackageError,
    OneRError,
    OptionError,
    WeightError,
)
from polars_oner.evaluation import (
    class_report,
    confusion,
    evaluate,
    wilson_interval,
    with_p_value,
)

Run = Callable[..., pl.DataFrame]


def eager(function: Callable[..., Any], frame: pl.DataFrame, *args: Any, **options: Any) -> Any:
    return function(frame, *args, **options)


def lazy(function: Callable[..., Any], frame: pl.DataFrame, *args: Any, **options: Any) -> Any:
    plan = function(frame.lazy(), *args, **options)
    assert isinstance(plan, pl.LazyFrame)
    table = plan.collect(engine="in-memory")
    assert table.schema == plan.collect_schema()
    return table


def streaming(function: Callable[..., Any], frame: pl.DataFrame, *args: Any, **options: Any) -> Any:
    return function(frame.lazy(), *args, **options).collect(engine="streaming")


@pytest.fixture(params=[eager, lazy, streaming])
def run(request: pytest.FixtureRequest) -> Any:
    """Run a function on a frame as users do: eager, lazy, streaming."""
    return request.param


@dataclass(frozen=True)
class Stump:
    """A stand-in for the library's models."""

    target: str
    probabilities: Mapping[Any, pl.Expr] | None = None

    def predict(self, name: str = "prediction") -> pl.Expr:
        return pl.when(pl.col("x") <= 0).then(pl.lit("a")).otherwise(pl.lit("b")).alias(name)


class ProbableStump(Stump):
    def predict_proba(self) -> Mapping[Any, pl.Expr]:
        p = pl.when(pl.col("x") <= 0).then(0.75).otherwise(0.25)
        return {"a": p, "b": 1 - p}


def random_frame(n: int = 500, seed: int = 1, classes: str = "abcd") -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    labels = list(classes)
    y = rng.choice(labels, n, p=np.arange(1, len(labels) + 1) / sum(range(len(labels) + 1)))
    guess = np.where(rng.random(n) < 0.6, y, rng.choice(labels, n))
    scores = rng.integers(1, 6, (n, len(labels))).astype(float)
    scores /= scores.sum(axis=1, keepdims=True)
    return pl.DataFrame(
        {
            "y": y,
            "guess": guess,
            "g": rng.integers(0, 4, n),
            "w": rng.integers(0, 4, n),
            "u": rng.random(n),
            **{f"p_{label}": scores[:, i] for i, label in enumerate(labels)},
        }
    )


def with_holes(frame: pl.DataFrame) -> pl.DataFrame:
    row = pl.int_range(pl.len())
    return frame.with_columns(
        y=pl.when(row % 11 != 3).then("y"), guess=pl.when(row % 7 != 2).then("guess")
    )


def expected_classes(rows: pl.DataFrame, confidence: float = 0.95) -> dict[str, Any]:
    """Compute every class figure with scikit-learn and statsmodels; a null prediction is a label."""
    known = rows.drop_nulls("y")
    y, guess = known["y"].to_list(), known["guess"].fill_null("?").to_list()
    classes = sorted({*y, *guess} - {"?"})
    n, n_correct = len(y), sum(a == b for a, b in zip(y, guess, strict=True))
    baseline = max(Counter(y).values()) / n
    lower, upper = proportion_confint(n_correct, n, alpha=1 - confidence, method="wilson")
    recalls = metrics.recall_score(y, guess, labels=sorted(set(y)), average=None)
    return {
        "n_rows": n,
        "n_target_missing": rows["y"].null_count(),
        "n_unpredicted": guess.count("?"),
        "n_correct": n_correct,
        "accuracy": metrics.accuracy_score(y, guess),
        "accuracy_lower": lower,
        "accuracy_upper": upper,
        "baseline": baseline,
        "error_rate_reduction": 1 - (1 - n_correct / n) / (1 - baseline),
        "balanced_accuracy": float(np.mean(recalls)),
        "kappa": metrics.cohen_kappa_score(y, guess),
        "macro_f1": metrics.f1_score(y, guess, labels=classes, average="macro"),
    }


def close(got: Mapping[str, Any], wanted: Mapping[str, Any], tolerance: float = 1e-12) -> None:
    assert list(got) == list(wanted)
    for name, value in wanted.items():
        if value is None or isinstance(value, (str, int)):
            assert got[name] == value, name
        else:
            assert got[name] == pytest.approx(value, rel=tolerance, abs=1e-14), name


# ---------------------------------------------------------------- classes


@pytest.mark.parametrize("holes", [False, True])
def test_class_figures_equal_scikit_learn(run: Run, holes: bool) -> None:
    frame = with_holes(random_frame()) if holes else random_frame()
    close(run(evaluate, frame, "guess", "y").row(0, named=True), expected_classes(frame))


def test_segments_lead_and_each_equals_its_own_rows(run: Run) -> None:
    frame = with_holes(random_frame()).with_columns(h=pl.col("u") < 0.5)
    table = run(evaluate, frame, "guess", "y", by=["g", "h"], confidence=0.8)
    assert table.columns[:2] == ["g", "h"]
    assert table.select("g", "h").equals(frame.select("g", "h").unique().sort("g", "h"))
    for row in table.iter_rows(named=True):
        part = frame.filter(g=row["g"], h=row["h"])
        wanted = expected_classes(part, confidence=0.8)
        close(row, {"g": row["g"], "h": row["h"], **wanted})


def test_each_call_has_one_schema() -> None:
    frame = random_frame().lazy()
    rates = dict.fromkeys(
        [
            *("accuracy", "accuracy_lower", "accuracy_upper", "baseline", "error_rate_reduction"),
            *("balanced_accuracy", "kappa", "macro_f1"),
        ],
        pl.Float64(),
    )
    counts = dict.fromkeys(["n_rows", "n_target_missing", "n_unpredicted", "n_correct"], pl.Int64())
    assert evaluate(frame, "guess", "y").collect_schema() == {**counts, **rates}
    heavy = evaluate(frame, "guess", "y", weights="u").collect_schema()
    assert heavy == {**dict.fromkeys(counts, pl.Float64()), **rates}
    probable = evaluate(frame, "guess", "y", proba={"a": "p_a"}).collect_schema()
    assert probable.names() == [*counts, *rates, "log_loss", "auc"]


def test_published_output_of_r_oner() -> None:
    # Tables printed by eval_model of R's OneR 2.x in public analyses: actual by predicted, then the
    # error rate reduction and p-value it printed. The third has a row no rule covered (UNSEEN).
    cases: list[tuple[dict[tuple[str, str | None], int], float, float]] = [
        (
            {("0", "0"): 2633, ("1", "0"): 1459, ("0", "1"): 28, ("1", "1"): 39},
            0.0073,
            0.3677,
        ),
        ({("-", "-"): 106, ("+", "-"): 87, ("-", "+"): 100, ("+", "+"): 208}, 0.0922, 0.04597),
        (
            {("0", "0"): 87, ("1", "0"): 28, ("0", "1"): 14, ("1", "1"): 24, ("0", None): 1},
            0.1731,
            0.07215,
        ),
        ({("-", "-"): 130, ("+", "-"): 102, ("-", "+"): 76, ("+", "+"): 193}, 0.1359, 0.005976),
        ({("no", "yes"): 1, ("yes", "yes"): 1}, 0.0, 0.75),
    ]
    for counts, reduction, p_value in cases:
        frame = pl.DataFrame(
            [(y, guess, n) for (y, guess), n in counts.items()], ["y", "guess", "n"], orient="row"
        )
        table = with_p_value(evaluate(frame, "guess", "y", weights="n"))
        assert table["error_rate_reduction"].item() == pytest.approx(reduction, abs=5e-5)
        assert table["p_value"].item() == pytest.approx(p_value, rel=2e-4)


def test_iris_vignette_of_r_oner() -> None:
    # The confusion matrix of the package's vignette: 144 of 150, reduction 0.94, p below 2.2e-16.
    counts = [("setosa", "setosa", 50), ("versicolor", "versicolor", 48)]
    counts += [("versicolor", "virginica", 2), ("virginica", "versicolor", 4)]
    counts += [("virginica", "virginica", 46)]
    frame = pl.DataFrame(counts, ["y", "guess", "n"], orient="row")
    table = with_p_value(evaluate(frame, "guess", "y", weights="n"))
    assert table["accuracy"].item() == 0.96
    assert table["error_rate_reduction"].item() == pytest.approx(0.94)
    assert table["p_value"].item() < 2.2e-16


def test_p_value_is_the_binomial_test_of_scipy() -> None:
    table = with_p_value(evaluate(with_holes(random_frame()), "guess", "y", by="g"))
    assert table.columns[-1] == "p_value"
    for row in table.iter_rows(named=True):
        test = binomtest(row["n_correct"], row["n_rows"], row["baseline"], alternative="greater")
        assert row["p_value"] == pytest.approx(test.pvalue, rel=1e-10)


def test_p_value_without_rows_or_errors_of_the_baseline() -> None:
    frame = pl.DataFrame({"y": ["a", "a", None], "guess": ["a", "b", "a"], "g": [1, 1, 2]})
    table = with_p_value(evaluate(frame, "guess", "y", by="g"))
    assert table["p_value"].to_list() == [1.0, None]


def test_p_value_refuses_lazy_frames_and_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = random_frame()
    with pytest.raises(TypeError, match="LazyFrame: collect it"):
        with_p_value(evaluate(frame.lazy(), "guess", "y"))  # type: ignore[arg-type]
    with pytest.raises(OneRError, match="fractional weights"):
        with_p_value(evaluate(frame, "guess", "y", weights="u"))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="n_correct"):
        with_p_value(evaluate(frame, "p_a", "p_b"))
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(MissingPackageError, match=r"polars_oner\[stats\]"):
        with_p_value(evaluate(frame, "guess", "y"))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_wilson_interval_equals_statsmodels(confidence: float) -> None:
    counts = pl.DataFrame({"k": [0, 0, 1, 3, 7, 10, 999_999], "n": [1, 9, 1, 10, 9, 10, 1_000_000]})
    counts = counts.with_columns(k=pl.min_horizontal("k", "n"))
    lower, upper = wilson_interval(pl.col("k"), pl.col("n"), confidence)
    got = counts.select(lower=lower, upper=upper)
    wanted = proportion_confint(
        counts["k"].to_numpy(), counts["n"].to_numpy(), alpha=1 - confidence, method="wilson"
    )
    np.testing.assert_allclose(got["lower"].to_numpy(), wanted[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(got["upper"].to_numpy(), wanted[1], rtol=1e-12)
    assert got["lower"].min() == 0
    assert got["upper"].max() == 1


def test_no_rows_and_one_class(run: Run) -> None:
    frame = pl.DataFrame({"y": ["a"] * 3, "guess": ["a", "a", "b"]})
    row = run(evaluate, frame, "guess", "y").row(0, named=True)
    assert row["error_rate_reduction"] is None
    assert row["baseline"] == 1
    assert row["kappa"] == 0
    row = run(evaluate, frame, pl.lit("a"), "y").row(0, named=True)
    assert (row["accuracy"], row["kappa"], row["macro_f1"]) == (1, None, 1)
    empty = run(evaluate, frame.clear(), "guess", "y", proba={"a": pl.lit(0.5)})
    counts = ["n_rows", "n_target_missing", "n_unpredicted", "n_correct"]
    wanted = {c: 0 if c in counts else None for c in empty.columns}
    assert empty.to_dicts() == [wanted]
    assert run(evaluate, frame.clear(), "guess", "y", by="guess").is_empty()
    unknown = frame.with_columns(y=pl.lit(None, pl.String))
    row = run(evaluate, unknown, "guess", "y").row(0, named=True)
    assert (row["n_rows"], row["n_target_missing"], row["accuracy"]) == (0, 3, None)
    assert run(class_report, unknown, "guess", "y").is_empty()
    assert run(confusion, unknown, "guess", "y").is_empty()


def test_null_prediction_is_an_error(run: Run) -> None:
    frame = pl.DataFrame({"y": ["a", "a", "b"], "guess": ["a", None, None]})
    row = run(evaluate, frame, "guess", "y").row(0, named=True)
    assert (row["n_correct"], row["n_unpredicted"]) == (1, 2)
    assert row["accuracy"] == pytest.approx(1 / 3)
    assert row["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)


# ------------------------------------------------------- reports, confusion


def test_class_report_equals_scikit_learn(run: Run) -> None:
    frame = with_holes(random_frame()).with_columns(guess=pl.col("guess").replace("b", "e"))
    table = run(class_report, frame, "guess", "y", by="g")
    for (g,), part in frame.group_by("g"):
        known = part.drop_nulls("y")
        y, guess = known["y"].to_list(), known["guess"].fill_null("?").to_list()
        classes = sorted({*y, *guess} - {"?"})
        p, r, f, n = metrics.precision_recall_fscore_support(
            y, guess, labels=classes, zero_division=np.nan
        )
        got = table.filter(g=g)
        assert got["class"].to_list() == classes
        assert got["n_actual"].to_list() == n.tolist()
        assert got["n_predicted"].to_list() == [guess.count(c) for c in classes]
        for name, wanted in (("precision", p), ("recall", r)):
            np.testing.assert_allclose(got[name].cast(pl.Float64).to_numpy(), wanted, rtol=1e-14)
        hit = got["n_correct"].to_numpy() > 0
        np.testing.assert_allclose(got["f1"].to_numpy()[hit], f[hit], rtol=1e-14)
        assert (got["f1"].to_numpy()[~hit] == 0).all()


def test_confusion_counts_pairs(run: Run) -> None:
    frame = with_holes(random_frame())
    table = run(confusion, frame, "guess", "y", by="g")
    counts = Counter(frame.drop_nulls("y").select("g", "y", "guess").iter_rows())
    assert {row[:3]: row[3] for row in table.iter_rows()} == dict(counts)
    shares = table.group_by("g").agg(pl.col("share").sum())["share"]
    assert shares.to_list() == pytest.approx([1.0] * 4)
    order = sorted(counts, key=lambda k: (k[0], k[1], k[2] is None, k[2] or ""))
    assert [row[:3] for row in table.iter_rows()] == order
    whole = run(confusion, frame, "guess", "y")
    assert whole["share"].sum() == pytest.approx(1)
    matrix = metrics.confusion_matrix(
        frame.drop_nulls("y")["y"], frame.drop_nulls("y")["guess"].fill_null("?")
    )
    assert sorted(whole["n"].to_list()) == sorted(matrix[matrix > 0].tolist())


def test_class_order_is_the_enums_own(run: Run) -> None:
    size = pl.Enum(["small", "big", "huge"])
    frame = pl.DataFrame(
        {"y": ["big", "small", "huge", "big"], "guess": ["small", "big", "other", None]}
    ).with_columns(pl.col("y").cast(size))
    report = run(class_report, frame, "guess", "y")
    assert report["class"].to_list() == ["small", "big", "huge", "other"]
    pairs = run(confusion, frame, "guess", "y")
    assert pairs.rows() == [
        ("small", "big", 1, 0.25),
        ("big", "small", 1, 0.25),
        ("big", None, 1, 0.25),
        ("huge", "other", 1, 0.25),
    ]
    assert pairs.schema["actual"] == size
    same = frame.with_columns(pl.col("guess").cast(size, strict=False))
    assert run(class_report, same, "guess", "y").schema["class"] == size


@pytest.mark.parametrize(
    ("y", "guess"),
    [
        ([True, False, True], [True, True, None]),
        ([1, 2, 1], [1, 1, None]),
        ([2**63 - 1, 2**63 - 2, 2**63 - 1], [2**63 - 1, 2**63 - 1, None]),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 1)],) * 2,
        ([Decimal("1.1"), Decimal("1.2"), Decimal("1.1")], [Decimal("1.1"), Decimal("1.1"), None]),
        ([dt.timedelta(1), dt.timedelta(2), dt.timedelta(1)], [dt.timedelta(1)] * 2 + [None]),
    ],
)
def test_classes_of_many_dtypes(run: Run, y: list[Any], guess: list[Any]) -> None:
    frame = pl.DataFrame({"y": y, "guess": guess})
    table = run(evaluate, frame, "guess", "y", task="classes", proba={y[0]: pl.lit(0.5)})
    n_correct = sum(a == b for a, b in zip(y, guess, strict=True))
    assert table["n_correct"].item() == n_correct
    assert table["log_loss"].item() == pytest.approx(math.log(2))
    assert table["auc"].item() == 0.5
    report = run(class_report, frame, "guess", "y")
    assert report["class"].to_list() == sorted(set(y))
    assert report.schema["class"] == frame.schema["y"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pl.Categorical(), pl.Categorical()),
        (pl.Categorical(), pl.String()),
        (pl.Enum(["b", "a"]), pl.String()),
        (pl.Enum(["b", "a"]), pl.Enum(["a", "b", "c"])),
    ],
)
def test_kinds_of_text_compare_as_text(run: Run, left: pl.DataType, right: pl.DataType) -> None:
    frame = pl.DataFrame({"y": ["a", "b", "a"], "guess": ["a", "a", "a"]})
    frame = frame.cast({"y": left, "guess": right})
    assert run(evaluate, frame, "guess", "y")["n_correct"].item() == 2


def test_kinds_of_integers_compare_exactly(run: Run) -> None:
    frame = pl.DataFrame({"y": [2**53, 2**53 + 1, 5], "guess": [2**53, 2**53, 5]})
    frame = frame.cast({"guess": pl.UInt64})
    assert run(evaluate, frame, "guess", "y")["n_correct"].item() == 2


def test_counts_do_not_wrap(run: Run) -> None:
    frame = pl.DataFrame({"y": [True, False], "guess": [True, True], "w": [2**31, 2**31]})
    table = run(evaluate, frame.cast({"w": pl.UInt32}), "guess", "y", weights="w")
    assert table["n_rows"].item() == 2**32
    assert table["kappa"].item() == 0


def test_odd_names(run: Run) -> None:
    names = {"y": "^a.*$", "guess": "*", "g": "segment_0", "w": "len"}
    frame = random_frame().select(*names).rename(names)
    plain = evaluate(random_frame(), "guess", "y", by="g", weights="w")
    odd = run(evaluate, frame, "*", "^a.*$", by="segment_0", weights="len")
    assert_frame_equal(odd.rename({"segment_0": "g"}), plain)
    inside = random_frame().rename({"y": "predicted", "guess": "actual", "w": "class"})
    table = run(evaluate, inside, "actual", "predicted", by="g", weights="class")
    assert_frame_equal(table, plain)


def test_segment_values_missing(run: Run) -> None:
    frame = pl.DataFrame(
        {"g": [0.0, -0.0, math.nan, None], "y": [1, 1, 1, 1], "guess": [1, 0, 1, 1]}
    )
    table = run(evaluate, frame, "guess", "y", by="g")
    assert table.select("g", "n_rows").rows() == [(None, 2), (0.0, 2)]


# ----------------------------------------------------------- probabilities


def test_two_class_probabilities_equal_scikit_learn(run: Run) -> None:
    frame = random_frame(classes="ab")
    y, p = frame["y"].to_numpy() == "b", frame["p_b"].to_numpy()
    wanted = (metrics.log_loss(y, p), metrics.roc_auc_score(y, p))
    for proba in ({"b": "p_b"}, {"b": pl.col("p_b")}, {"a": "p_a"}, {"a": "p_a", "b": "p_b"}):
        table = run(evaluate, frame, "guess", "y", proba=proba)
        assert table.select("log_loss", "auc").row(0) == pytest.approx(wanted, rel=1e-12)
    ordered = frame.with_columns(pl.col("y", "guess").cast(pl.Enum(["a", "b"])))
    table = run(evaluate, ordered, "guess", "y", proba="p_b")
    assert table.select("log_loss", "auc").row(0) == pytest.approx(wanted, rel=1e-12)
    boolean = frame.with_columns(pl.col("y", "guess") == "b")
    table = run(evaluate, boolean, "guess", "y", proba=pl.col("p_b"))
    assert table.select("log_loss", "auc").row(0) == pytest.approx(wanted, rel=1e-12)


def test_multi_class_probabilities_equal_scikit_learn_per_segment(run: Run) -> None:
    frame = random_frame(2000)
    table = run(
        evaluate, frame, "guess", "y", by="g", weights="w", proba={c: f"p_{c}" for c in "abcd"}
    )
    assert len(table) == 4
    for row in table.iter_rows(named=True):
        part = frame.filter(g=row["g"])
        p = part.select("p_a", "p_b", "p_c", "p_d").to_numpy()
        loss = metrics.log_loss(part["y"], p, sample_weight=part["w"], labels=list("abcd"))
        assert row["log_loss"] == pytest.approx(loss, rel=1e-12)
        # scikit-learn has no weights for one against the rest in this form: average by hand.
        areas = [
            metrics.roc_auc_score(part["y"] == c, part[f"p_{c}"], sample_weight=part["w"])
            for c in "abcd"
        ]
        assert row["auc"] == pytest.approx(np.mean(areas), rel=1e-12)
    whole = run(evaluate, frame, "guess", "y", proba={c: f"p_{c}" for c in "abcd"})
    p = frame.select("p_a", "p_b", "p_c", "p_d").to_numpy()
    wanted = metrics.roc_auc_score(frame["y"], p, multi_class="ovr", average="macro")
    assert whole["auc"].item() == pytest.approx(wanted, rel=1e-12)


def test_probabilities_leave_the_other_figures_alone(run: Run) -> None:
    frame = with_holes(random_frame())
    plain = run(evaluate, frame, "guess", "y", by="g")
    probable = run(evaluate, frame, "guess", "y", by="g", proba={c: f"p_{c}" for c in "abcd"})
    assert_frame_equal(probable.drop("log_loss", "auc"), plain, check_exact=True)
    known = run(evaluate, frame.drop_nulls("y"), "guess", "y", proba={"a": "p_a"})
    assert_frame_equal(
        known.select("log_loss", "auc"),
        run(evaluate, frame, "guess", "y", proba={"a": "p_a"}).select("log_loss", "auc"),
    )


@pytest.mark.parametrize("bad", [None, math.nan, -0.1, 1.1])
def test_unusable_probability_leaves_its_segment_without_figures(run: Run, bad: Any) -> None:
    frame = pl.DataFrame(
        {"g": [1, 1, 2, 2, 3], "y": [0, 1, 0, 1, None], "p": [0.2, 0.7, bad, 0.7, None]}
    )
    table = run(evaluate, frame, pl.lit(1), "y", by="g", proba={1: "p"})
    loss = -(math.log(0.8) + math.log(0.7)) / 2
    assert table["log_loss"].to_list() == pytest.approx([loss, None, None])
    assert table["auc"].to_list() == [1.0, None, None]


def test_log_loss_is_infinite_where_the_impossible_happened(run: Run) -> None:
    frame = pl.DataFrame({"y": ["a", "b", "c"], "p": [1.0, 0.0, 0.0], "q": [0.0, 1.0, 1.0]})
    table = run(evaluate, frame, pl.lit("a"), "y", proba={"a": "p", "b": "q"})
    assert table["log_loss"].item() == math.inf
    fine = run(evaluate, frame, pl.lit("a"), "y", proba={"a": "p"})
    assert (fine["log_loss"].item(), fine["auc"].item()) == (0.0, 1.0)


def test_a_models_own_probabilities(run: Run) -> None:
    frame = pl.DataFrame({"x": [-1, 0, 1, 2], "t": ["a", "b", "b", "b"]})
    plain = run(evaluate, frame, Stump("t"))
    assert plain["n_correct"].item() == 3
    assert "auc" not in plain.columns
    table = run(evaluate, frame, ProbableStump("t"))
    assert table["log_loss"].item() == pytest.approx(-(3 * math.log(0.75) + math.log(0.25)) / 4)
    assert table["auc"].item() == pytest.approx(2.5 / 3)
    assert "auc" not in run(evaluate, frame, ProbableStump("t").predict(), "t").columns


# ----------------------------------------------------------------- numbers


def number_frame(shift: float = 0.0, n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    y = rng.normal(0, 1, n) + shift
    return pl.DataFrame(
        {
            "y": y,
            "guess": y + rng.normal(0.1, 0.5, n),
            "g": rng.integers(0, 3, n),
            "w": rng.integers(0, 5, n),
            "u": rng.random(n) * (rng.random(n) < 0.9),
        }
    )


@pytest.mark.parametrize("weights", [None, "w", "u"])
@pytest.mark.parametrize("shift", [0.0, 1e6, 1e9])
def test_number_figures_equal_scikit_learn(run: Run, shift: float, weights: str | None) -> None:
    frame = number_frame(shift)
    # An ulp of the shifted target, relative to its deviation of 1.
    tolerance = max(1e-12, shift * 2**-52)
    table = run(evaluate, frame, "guess", "y", by="g", weights=weights)
    for row in table.iter_rows(named=True):
        part = frame.filter(g=row["g"])
        y, guess = part["y"].to_numpy() - shift, part["guess"].to_numpy() - shift
        w = None if weights is None else part[weights].to_numpy()
        wanted = {
            "g": row["g"],
            "n_rows": len(y) if w is None else w.sum().item(),
            "n_target_missing": 0,
            "n_unpredicted": 0,
            "rmse": metrics.root_mean_squared_error(y, guess, sample_weight=w),
            "mae": metrics.mean_absolute_error(y, guess, sample_weight=w),
            "r2": metrics.r2_score(y, guess, sample_weight=w),
        }
        close(row, wanted, tolerance)
    whole = run(evaluate, frame, "guess", "y", weights=weights)
    y, guess = frame["y"].to_numpy() - shift, frame["guess"].to_numpy() - shift
    w = None if weights is None else frame[weights].to_numpy()
    assert whole["r2"].item() == pytest.approx(
        metrics.r2_score(y, guess, sample_weight=w), rel=tolerance
    )


def test_missing_numbers_are_counted(run: Run) -> None:
    frame = pl.DataFrame(
        {"y": [1.0, 2.0, math.nan, None, 4.0, 9.0], "guess": [1.5, 2.0, 1.0, 1.0, math.nan, None]}
    )
    table = run(evaluate, frame, "guess", "y")
    assert table.row(0)[:3] == (4, 2, 2)
    assert table["rmse"].item() == pytest.approx(math.sqrt(0.125))
    assert table["mae"].item() == 0.25
    assert table["r2"].item() == pytest.approx(0.5)
    assert run(evaluate, frame.clear(), "guess", "y").row(0) == (0, 0, 0, None, None, None)
    constant = pl.DataFrame({"y": [2.0, 2.0], "guess": [2.0, 3.0]})
    assert run(evaluate, constant, "guess", "y")["r2"].item() is None


def test_task_is_read_off_the_dtypes() -> None:
    frame = pl.DataFrame({"y": [1, 2, 3], "guess": [1, 2, 2], "mean": [1.0, 2.0, 2.0]})
    assert "accuracy" in evaluate(frame, "guess", "y").columns
    by_option = evaluate(frame, "guess", "y", task="numbers")
    assert_frame_equal(by_option, evaluate(frame, "mean", "y"))
    assert by_option["rmse"].item() == pytest.approx(math.sqrt(1 / 3))
    assert "rmse" in evaluate(frame.with_columns(pl.col("y") > 1), "mean", "y").columns


# ----------------------------------------------------------------- weights


@pytest.mark.parametrize("function", [evaluate, class_report, confusion])
@pytest.mark.parametrize("by", [None, "g"])
def test_integer_weights_equal_repeated_rows(
    run: Run, function: Callable[..., Any], by: str | None
) -> None:
    frame = with_holes(random_frame())
    # One segment is absent altogether.
    frame = frame.with_columns(w=pl.when(pl.col("g") == 2).then(0).otherwise("w"))
    repeated = frame.select(pl.exclude("w").repeat_by("w").explode()).drop_nulls("g")
    weighed = run(function, frame, "guess", "y", by=by, weights="w")
    assert_frame_equal(weighed, run(function, repeated, "guess", "y", by=by), check_exact=True)
    as_float = run(function, frame.cast({"w": pl.Float32}), "guess", "y", by=by, weights="w")
    assert_frame_equal(as_float, weighed, check_dtypes=False)


def test_weighted_figures_equal_scikit_learn(run: Run) -> None:
    frame = random_frame()
    row = run(evaluate, frame, "guess", "y", weights="u").row(0, named=True)
    y, guess, w = frame["y"].to_list(), frame["guess"].to_list(), frame["u"].to_numpy()
    score: Callable[..., float]
    for name, score in (
        ("accuracy", metrics.accuracy_score),
        ("balanced_accuracy", metrics.balanced_accuracy_score),
        ("kappa", metrics.cohen_kappa_score),
    ):
        assert row[name] == pytest.approx(score(y, guess, sample_weight=w), rel=1e-12)
    f1 = metrics.f1_score(y, guess, sample_weight=w, average="macro")
    assert row["macro_f1"] == pytest.approx(f1, rel=1e-12)
    assert row["n_rows"] == pytest.approx(w.sum())


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -1.0])
@pytest.mark.parametrize("target", ["y", "z"])
@pytest.mark.parametrize("by", [None, "g"])
def test_bad_weights_name_their_column(bad: Any, target: str, by: str | None) -> None:
    frame = pl.DataFrame(
        {
            "y": ["a", "b", None],
            "z": [1.0, 2.0, None],
            "guess": ["a", "b", "a"],
            "near": [1.0, 2.0, 1.0],
            "heavy one": [1.0, 0.0, bad],
            "g": [1, 1, 2],
        }
    )
    prediction = "guess" if target == "y" else "near"
    with pytest.raises(WeightError, match="'heavy one' has 1 values"):
        evaluate(frame, prediction, target, by=by, weights="heavy one")
    plan = evaluate(frame.lazy(), prediction, target, by=by, weights="heavy one")
    for engine in ("in-memory", "streaming"):
        with pytest.raises(pl.exceptions.InvalidOperationError, match="'heavy one' has values"):
            plan.select("n_rows").collect(engine=engine)


# ------------------------------------------------------------------ errors


def test_errors_come_before_data_is_read() -> None:
    frame = pl.LazyFrame(
        {"y": ["a"], "guess": ["b"], "f": [1.0], "i": [1], "l": [[1]], "accuracy": [1]}
    )
    missing = pl.exceptions.ColumnNotFoundError
    for error, match, args, options in (
        (missing, "did you mean 'guess'", ("gues", "y"), {}),
        (missing, "'Y' not found", ("guess", "Y"), {}),
        (missing, "'x' not found", (Stump("y"),), {}),
        (missing, "x", (pl.col("x"), "y"), {}),
        (missing, "'nope'", ("guess", "y"), {"by": "nope"}),
        (missing, "'nope'", ("guess", "y"), {"weights": "nope"}),
        (missing, "'nope'", ("guess", "y"), {"proba": {"a": "nope"}}),
        (ColumnRoleError, "both as target and as prediction", ("y", "y"), {}),
        (ColumnRoleError, "listed twice in by", ("guess", "y"), {"by": ["i", "i"]}),
        (ColumnRoleError, "result column; rename", ("guess", "y"), {"by": "accuracy"}),
        (OptionError, "target must be named", ("guess",), {}),
        (OptionError, "target must be named", (pl.col("guess"),), {}),
        (OptionError, "model must be", (pl.col("guess", "i"), "y"), {}),
        (OptionError, "model must be a model", (7, "y"), {}),
        (OptionError, "confidence", ("guess", "y"), {"confidence": 95}),
        (OptionError, "confidence", ("guess", "y"), {"confidence": "high"}),
        (OptionError, "task must be one of", ("guess", "y"), {"task": "ranks"}),
        (OptionError, "mapping such as", ("guess", "y"), {"proba": "f"}),
        (OptionError, "not empty", ("guess", "y"), {"proba": {}}),
        (OptionError, "dtype String", ("guess", "y"), {"proba": {1: "f"}}),
        (OptionError, "absent where", ("f", "i"), {"proba": {1: "f"}}),
        (DtypeError, "classes of one dtype", ("i", "y"), {}),
        (DtypeError, "numbers on both sides", ("f", "y"), {}),
        (DtypeError, "numbers on both sides", ("guess", "y"), {"task": "numbers"}),
        (DtypeError, "floats are not", ("f", "i"), {"task": "classes"}),
        (DtypeError, "classes of one dtype", ("l", "i"), {}),
        (DtypeError, "segment column 'l'", ("guess", "y"), {"by": "l"}),
        (DtypeError, "weights column 'guess'", ("guess", "y"), {"weights": "guess"}),
    ):
        with pytest.raises(error, match=match):
            evaluate(frame, *args, **options)
    with pytest.raises(DtypeError, match="floats are not"):
        class_report(frame, "f", "i")
    with pytest.raises(DtypeError, match="floats are not"):
        confusion(frame, "f", "i")
    with pytest.raises(TypeError, match="DataFrame or LazyFrame"):
        evaluate({"y": [1]}, "guess", "y")  # type: ignore[type-var]


# ------------------------------------------------------------------- plans


def plans() -> dict[str, pl.LazyFrame]:
    frame = random_frame().lazy()
    numbers = number_frame().lazy()
    every = {c: f"p_{c}" for c in "abcd"}
    return {
        "evaluate": evaluate(frame, "guess", "y", by="g"),
        "weights": evaluate(frame, "guess", "y", weights="w"),
        "proba": evaluate(frame, "guess", "y", by="g", proba=every),
        "numbers": evaluate(numbers, "guess", "y", by="g", weights="w"),
        "class_report": class_report(frame, "guess", "y"),
        "confusion": confusion(frame, "guess", "y", by="g"),
    }


@pytest.mark.parametrize("name", plans())
def test_plan_reads_once_and_holds_no_python(name: str) -> None:
    plan = plans()[name]
    text = plan.explain(engine="streaming").upper()
    assert text.count("DF [") == 1
    assert "PYTHON" not in text
    assert "CACHE" not in text
    assert b"python" not in plan.serialize().lower()


def test_parquet_scan_of_several_files(tmp_path: Any) -> None:
    frame = with_holes(random_frame())
    for i in range(3):
        frame[i::3].write_parquet(tmp_path / f"{i}.parquet")
    plan = evaluate(pl.scan_parquet(tmp_path / "*.parquet"), "guess", "y", by="g", weights="w")
    wanted = evaluate(frame, "guess", "y", by="g", weights="w")
    assert_frame_equal(plan.collect(engine="streaming"), wanted, check_exact=True)


# -------------------------------------------------------------- properties

labels = st.sampled_from(["a", "b", "c", None])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(labels, labels, st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        min_size=1,
        max_size=30,
    ),
    seed=st.integers(0, 9),
)
def test_auc_by_pairs_and_row_order(
    rows: list[tuple[str | None, str | None, int, float]], seed: int
) -> None:
    frame = pl.DataFrame(
        rows,
        {"y": pl.String, "guess": pl.String, "w": pl.Int64, "p": pl.Float64},
        orient="row",
    )
    table = evaluate(frame, "guess", "y", weights="w", proba={"a": "p"})
    wins = pairs = 0.0
    for y, _, w, p in rows:
        for other, _, v, q in rows:
            if y == "a" and other not in ("a", None):
                pairs += w * v
                wins += w * v * ((p > q) + (p == q) / 2)
    assert table["auc"].item() == (pytest.approx(wins / pairs, rel=1e-12) if pairs else None)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    again = evaluate(shuffled.lazy(), "guess", "y", weights="w", proba={"a": "p"})
    assert_frame_equal(table, again.collect(engine="streaming"), rel_tol=1e-12)
    doubled = evaluate(pl.concat([frame, frame]), "guess", "y", weights="w")
    assert doubled["n_rows"].item() == 2 * table["n_rows"].item()
    assert_frame_equal(
        doubled.select("accuracy", "baseline", "kappa", "macro_f1"),
        table.select("accuracy", "baseline", "kappa", "macro_f1"),
        rel_tol=1e-12,
    )
