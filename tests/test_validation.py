"""Cross-validation by counts equals learning again without each fold, and Weka's ten-fold runs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_oner as po
from polars_oner.errors import IdentifierWarning, MissingColumnError, OneRError, OptionError
from polars_oner.typing import TIES, Ties
from tests import oracle
from tests.shared import SHARED, needs_shared
from tests.test_reference import CLASSES, load, reference, target_of
from tests.textbook import NUMERIC

WEATHER = pl.DataFrame(NUMERIC)


def mixed(n_rows: int, seed: int = 0) -> pl.DataFrame:
    """Make rows with missing cells, repeats, and an informative column of each kind."""
    rng = np.random.default_rng(seed)
    y = rng.choice(list("abc"), n_rows, p=[0.5, 0.3, 0.2])
    shift = np.searchsorted(["a", "b", "c"], y)
    frame = pl.DataFrame(
        {
            "noise": rng.normal(size=n_rows),
            "whole": rng.integers(0, 6, n_rows) + 2 * shift,
            "text": rng.choice(list("pqrst"), n_rows),
            "flag": (shift + rng.integers(0, 2, n_rows)) > 1,
            "y": y,
        }
    )
    absent = rng.random((n_rows, 5)) < 0.05
    return frame.with_columns(
        pl.when(pl.Series(~absent[:, i])).then(pl.col(name)).alias(name)
        for i, name in enumerate(frame.columns)
    )


# --- Weka ---


@needs_shared
@pytest.mark.parametrize("bucket", [6, 3, 1])
@pytest.mark.parametrize("name", CLASSES)
def test_weka_ten_folds(name: str, bucket: int) -> None:
    folds = json.loads((SHARED / "reference" / "weka_folds_seed1.json").read_text("utf-8"))
    found = po.cross_validate(
        load(name).with_columns(weka_fold=pl.Series(folds[name])),
        target_of(name),
        fold_column="weka_fold",
        min_bucket=bucket,
        ties="first",
        identifiers="keep",
        unseen="first",
        at_cut="above",
    )
    weka = reference()["datasets"][name]["weka"]["OneR"][f"B{bucket}"]["cv10_seed1"]
    assert (found.n_correct, found.n_errors) == (weka["correct"], weka["incorrect"])


# --- learning again without each fold ---


def refitted(frame: pl.DataFrame, fold: str, **options: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cross-validate the long way: filter, fit, predict the rows that were left out."""
    folds, features = [], []
    present = frame.filter(pl.col("y").is_not_null())
    for label in present[fold].unique().sort():
        test = present.filter(pl.col(fold) == label)
        train = present.filter(pl.col(fold) != label).drop(fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifierWarning)
            model = po.fit(train, "y", **options)
        errors = {
            rule.feature: test.select((rule.predict() != pl.col("y")).sum()).item()
            for rule in model.rules
        }
        n_wrong = test.select((model.predict() != pl.col("y")).sum()).item()
        n_default = (test["y"] == model.default).sum()
        folds.append((label, model.feature, test.height, n_wrong, n_default))
        features += [(label, name, n) for name, n in errors.items()]
    return (
        pl.DataFrame(folds, ["fold", "feature", "n_rows", "n_errors", "n_default"], orient="row"),
        pl.DataFrame(features, ["fold", "feature", "n_errors"], orient="row"),
    )


def check_refitted(frame: pl.DataFrame, fold: str, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierWarning)
        found = po.cross_validate(frame, "y", fold_column=fold, **options)
    folds, features = refitted(frame, fold, **options)
    assert_frame_equal(found.folds, folds, check_dtypes=False)
    assert_frame_equal(found.features, features, check_dtypes=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_bucket": 1, "ties": "first"},
        {"min_bucket": 3, "ties": "frequent", "choose": "loo"},
        {"choose": "chi2"},
        {"nominal": ["noise", "whole"], "choose": "loo"},
        {"nominal": ["noise"], "identifiers": "keep"},
        {"nominal": ["noise"]},
        *({"bins": method} for method in ("1r", "mdl", "tree", "quantile", "width")),
        *({"bins": method} for method in ("naive", "logreg", "infogain", "clusters")),
        {"bins": {"whole": "tree"}},
    ],
    ids=str,
)
def test_subtracting_a_fold_is_learning_without_it(options: dict[str, Any]) -> None:
    frame = mixed(300).with_columns(
        f=pl.Series(np.random.default_rng(1).integers(0, 6, 300)),
    )
    check_refitted(frame, "f", **options)


cells = st.tuples(
    st.sampled_from([None, 1, 2, 3, 4, 9]),
    st.sampled_from([None, "u", "v", "w"]),
    st.sampled_from(["a", "b", "c", None]),
    st.integers(0, 3),
)


@given(
    st.lists(cells, min_size=2, max_size=20).filter(
        lambda rows: len({row[3] for row in rows if row[2] is not None}) > 1
    ),
    st.sampled_from(TIES),
    st.integers(1, 3),
    st.sampled_from(["first", "loo"]),
)
@settings(max_examples=60, deadline=None)
def test_small_tables(rows: list[Any], ties: Ties, min_bucket: int, choose: Any) -> None:
    schema = {"x": pl.Int64, "t": pl.String, "y": pl.String, "f": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    check_refitted(frame, "f", ties=ties, min_bucket=min_bucket, choose=choose)
    if choose == "first":
        found = po.cross_validate(
            frame, "y", fold_column="f", ties=ties, min_bucket=min_bucket, identifiers="keep"
        )
        features: dict[str, tuple[list[Any], oracle.Kind]] = {
            "x": (frame["x"].to_list(), "ordered"),
            "t": (frame["t"].to_list(), "nominal"),
        }
        told = oracle.cross_validate(
            features,
            frame["y"].to_list(),
            frame["f"].to_list(),
            min_bucket=min_bucket,
            ties=ties,
            cut=lambda a, b: (a + b) // 2,
        )
        expected = [(fold.feature, fold.n_rows, fold.n_errors) for fold in told]
        assert found.folds.select("feature", "n_rows", "n_errors").rows() == expected


def test_dtypes_of_every_order() -> None:
    base = mixed(200).select("whole", "y")
    whole = pl.col("whole")
    frame = base.select(
        "y",
        date=(whole * 40).cast(pl.Date),
        time=(whole * 3_600_000_000_000).cast(pl.Time),
        span=(whole * 1000).cast(pl.Duration("us")),
        at=(whole * 10**9).cast(pl.Datetime("ns", "UTC")),
        money=(whole.cast(pl.Decimal(10, 2)) / 3).cast(pl.Decimal(10, 2)),
        small=whole.cast(pl.UInt8),
        big=whole.cast(pl.Int128),
        half=whole.cast(pl.Float32) / 3,
        level=(whole % 5).cast(pl.String).cast(pl.Enum(list("43210"))),
        category=whole.cast(pl.String).cast(pl.Categorical),
        f=pl.Series(np.arange(200) % 4),
    )
    check_refitted(frame, "f", min_bucket=2, ordered=["level"])
    dealt = po.cross_validate(frame.drop("f"), "y", min_bucket=2)
    assert dealt.folds.height == 10


def test_choice_by_cross_validation_within_it_uses_the_other_folds() -> None:
    frame = mixed(120).with_columns(f=pl.Series(np.arange(120) % 4))
    found = po.cross_validate(frame, "y", fold_column="f", choose="cv")
    expected = []
    for fold in range(4):
        inner = po.cross_validate(frame.filter(pl.col("f") != fold), "y", fold_column="f")
        expected.append(inner.by_feature()["feature"][0])
    assert found.folds["feature"].to_list() == expected
    with pytest.raises(OptionError, match="at least three folds"):
        po.cross_validate(frame, "y", folds=2, choose="cv")


# --- what Weka does apart ---


def test_unseen_and_missing_values() -> None:
    frame = pl.DataFrame(
        {
            "x": ["u", "u", "w", None, "u", "u", "u", "u"],
            "y": ["b", "b", "b", "b", "b", "a", "b", "b"],
            "f": [0, 0, 0, 0, 1, 1, 1, 1],
        }
    )
    found = po.cross_validate(frame, "y", fold_column="f")
    assert found.folds["n_errors"].to_list() == [0, 1]
    weka = po.cross_validate(frame, "y", fold_column="f", unseen="first")
    assert weka.folds["n_errors"].to_list() == [2, 1]
    labels = pl.Enum(["never", "a", "b"])
    declared = frame.with_columns(pl.col("y").cast(labels), x=pl.lit("u"))
    declared = declared.with_columns(x=pl.when(pl.col("f") == 0).then(pl.lit("z")).otherwise("x"))
    # All of fold 1's rows are told the first label, which none has.
    found = po.cross_validate(declared, "y", fold_column="f", unseen="first")
    assert found.folds["n_errors"].to_list() == [4, 4]


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Int64, pl.Int8, pl.Decimal(5, 1), pl.Date])
def test_values_on_a_cut(dtype: Any) -> None:
    frame = pl.DataFrame(
        {"x": [2, 2, 4, 4, 3], "y": ["a", "a", "b", "b", "b"], "f": [0, 0, 0, 0, 1]}
    ).with_columns(pl.col("x").cast(dtype))
    options: dict[str, Any] = {"fold_column": "f", "min_bucket": 1}
    assert po.cross_validate(frame, "y", **options).folds["n_errors"][1] == 1
    assert po.cross_validate(frame, "y", at_cut="above", **options).folds["n_errors"][1] == 0
    # 2.5 is on no integer: 2 stays below.
    half = frame.with_columns(x=pl.Series([2, 2, 3, 3, 2]).cast(dtype))
    assert po.cross_validate(half, "y", at_cut="above", **options).folds["n_errors"][1] == 1


# --- how rows are dealt ---


def test_folds_are_even_in_all_and_per_class() -> None:
    frame = mixed(1003)
    found = po.cross_validate(frame, "y", folds=7)
    assert found.folds["fold"].to_list() == list(range(7))
    sizes = found.folds["n_rows"]
    assert sizes.max() - sizes.min() == 1  # type: ignore[operator]
    assert found.n_rows + found.n_target_missing == 1003
    n_default = found.folds["n_default"]
    assert n_default.max() - n_default.min() <= 1  # type: ignore[operator]
    loose = po.cross_validate(frame, "y", folds=7, stratify=False)
    assert loose.folds["n_rows"].max() - loose.folds["n_rows"].min() == 1  # type: ignore[operator]
    assert loose.folds["n_default"].to_list() != n_default.to_list()


def test_equal_rows_are_spread() -> None:
    frame = pl.DataFrame({"x": ["u", "v"] * 50, "y": ["a", "b"] * 50})
    found = po.cross_validate(frame, "y")
    assert found.n_errors == 0
    assert found.folds["n_rows"].to_list() == [10] * 10


def test_another_seed_deals_another_way() -> None:
    frame = mixed(300)
    one, same, other = (po.cross_validate(frame, "y", seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize("kind", ["shuffled", "chunks", "lazy", "streaming", "files", "renamed"])
def test_order_and_source_do_not_matter(kind: str, tmp_path: Path) -> None:
    frame = mixed(500)
    expected = po.cross_validate(frame, "y")
    options: dict[str, Any] = {}
    source: pl.DataFrame | pl.LazyFrame = frame
    if kind == "shuffled":
        source = frame.sample(fraction=1, shuffle=True, seed=3)
    elif kind == "chunks":
        source = pl.concat([frame[:7], frame[7:300], frame[300:]], rechunk=False)
    elif kind == "files":
        for i in range(3):
            frame[i * 200 : (i + 1) * 200].write_parquet(tmp_path / f"{2 - i}.parquet")
        source = pl.scan_parquet(tmp_path / "*.parquet")
    elif kind == "renamed":
        source = frame.with_columns(fold_0=pl.lit([1]), fold_1=pl.lit([2]))
    else:
        source = frame.lazy()
        options = {"engine": "streaming"} if kind == "streaming" else {}
    assert po.cross_validate(source, "y", **options) == expected


def test_features_of_odd_names() -> None:
    frame = mixed(200).rename({"text": "^.*$", "flag": "*", "whole": "fold_0", "noise": "value"})
    plain = po.cross_validate(mixed(200), "y")
    odd = po.cross_validate(frame, "y")
    assert odd.features["n_errors"].equals(plain.features["n_errors"])


def test_three_passes_whatever_the_features() -> None:
    frame = mixed(100)
    for features in (["text"], ["text", "noise", "whole", "flag"]):
        calls: list[int] = []

        def source(calls: list[int] = calls) -> pl.DataFrame:
            calls.append(1)
            return frame

        lazy = pl.defer(source, schema=dict(frame.schema))
        po.cross_validate(lazy, "y", features)
        assert len(calls) == 3


def test_rows_that_come_in_another_order_each_time() -> None:
    frame = mixed(200)
    calls: list[int] = []

    def source() -> pl.DataFrame:
        calls.append(1)
        return frame.sample(fraction=1, shuffle=True, seed=len(calls))

    with pytest.raises(OneRError, match="another order each time"):
        po.cross_validate(pl.defer(source, schema=dict(frame.schema)), "y")


def test_fewer_rows_than_folds() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3], "y": [0, 1, 1]})
    assert po.cross_validate(frame, "y").folds["n_rows"].to_list() == [1, 1, 1]
    with pytest.raises(OptionError, match="at least two folds"):
        po.cross_validate(frame.head(1), "y")


@pytest.mark.parametrize(
    "labels",
    [
        pl.Series(["k", "l"]),
        pl.Series(["k", "l"], dtype=pl.Enum(["l", "k"])),
        pl.Series(["k", "l"], dtype=pl.Categorical),
        pl.Series([True, False]),
        pl.Series([7, -3], dtype=pl.Int8),
        pl.Series([20_000, 20_031], dtype=pl.Int32).cast(pl.Date),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_folds_of_a_column_keep_their_names(labels: pl.Series) -> None:
    frame = WEATHER.with_columns(month=pl.Series([*labels] * 7, dtype=labels.dtype))
    found = po.cross_validate(frame, "play", fold_column="month")
    assert found.folds["fold"].dtype == labels.dtype
    assert found.folds["fold"].to_list() == labels.sort().to_list()
    assert "month" not in found.features["feature"]


def test_rows_without_a_fold() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3], "y": [0, 1, None], "f": [0, 1, None]})
    assert po.cross_validate(frame, "y", fold_column="f").n_target_missing == 1
    with pytest.raises(OptionError, match="'f' has no value in 1 rows"):
        po.cross_validate(frame.with_columns(y=pl.lit(1)), "y", fold_column="f")


# --- weights ---


@pytest.mark.parametrize("kind", ["eager", "lazy"])
@pytest.mark.parametrize("options", [{}, {"stratify": False}, {"fold_column": "f"}], ids=str)
def test_whole_weights_are_repeated_rows(options: dict[str, Any], kind: str) -> None:
    rng = np.random.default_rng(5)
    frame = mixed(80).with_columns(
        w=pl.Series(rng.integers(0, 25, 80)), f=pl.Series(rng.integers(0, 5, 80))
    )
    if "fold_column" not in options:
        frame = frame.drop("f")
    repeated = frame.select(pl.exclude("w").repeat_by("w").explode(empty_as_null=False))
    expected = po.cross_validate(repeated, "y", **options)
    source = frame if kind == "eager" else frame.lazy()
    assert po.cross_validate(source, "y", weights="w", **options) == expected


def test_fractional_weights_scale() -> None:
    frame = mixed(100)
    plain = po.cross_validate(frame, "y")
    scaled = po.cross_validate(frame.with_columns(w=pl.lit(0.5)), "y", weights="w", min_bucket=3)
    assert scaled.folds["n_rows"].to_list() == [n / 2 for n in plain.folds["n_rows"]]
    assert scaled.accuracy == pytest.approx(plain.accuracy)
    assert scaled.folds.schema["n_errors"] == pl.Float64


def test_uneven_fractional_weights_leave_no_dust() -> None:
    frame = mixed(200).with_columns(
        w=pl.Series(np.random.default_rng(2).random(200)), f=pl.Series(np.arange(200) % 5)
    )
    found = po.cross_validate(frame, "y", fold_column="f", weights="w", min_bucket=1)
    for fold, feature, n_errors in found.features.iter_rows():
        test, train = (frame.filter((pl.col("f") == fold) == side) for side in (True, False))
        rules = {rule.feature: rule for rule in
                 po.fit(train.drop("f"), "y", weights="w", min_bucket=1).rules}  # fmt: skip
        wrong = rules[feature].predict() != pl.col("y")
        assert test.filter(wrong)["w"].sum() == pytest.approx(n_errors, abs=1e-9)


# --- the model ---


def test_the_result_counts_and_prints() -> None:
    frame = WEATHER.with_columns(f=pl.Series([0, 1] * 7))
    found = po.cross_validate(frame, "play", "outlook", fold_column="f")
    table = found.to_frame()
    assert table.schema == pl.Schema(
        {
            "fold": pl.Int64,
            "feature": pl.String,
            "n_rows": pl.Int64,
            "n_errors": pl.Int64,
            "accuracy": pl.Float64,
            "baseline": pl.Float64,
        }
    )
    assert found.n_correct + found.n_errors == found.n_rows == 14
    assert found.accuracy == 1 - found.error_rate == found.n_correct / 14
    assert found.std == pytest.approx(table["accuracy"].std())
    assert str(found).splitlines()[0] == "1R for play, 2 folds:"
    assert f"{found.n_correct}/14 correct" in str(found)
    assert "outlook" in found._repr_html_()
    assert po.CrossValidation.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    ranked = po.cross_validate(frame, "play", fold_column="f").by_feature()
    assert ranked.columns == ["feature", "n_errors", "accuracy", "n_chosen"]
    assert ranked["n_chosen"].sum() == 2
    assert ranked["n_errors"].is_sorted()


def test_identifiers_are_named_once_where_the_user_calls() -> None:
    frame = mixed(50).with_columns(id=pl.int_range(50).cast(pl.String))
    for call in (po.cross_validate, lambda f, y: f.oner.cross_validate(y)):
        with pytest.warns(IdentifierWarning, match="'id'") as caught:
            found = call(frame, "y")
        assert [warning.filename for warning in caught] == [__file__]
        assert "id" not in found.folds["feature"]
    only = frame.select("id", "y")
    with pytest.warns(IdentifierWarning):
        found = po.cross_validate(only, "y")
    assert found.folds["feature"].null_count() == 10
    assert found.accuracy == found.baseline
    assert "no feature" in str(found)


@needs_shared
def test_names_and_tickets_fall_to_the_baseline() -> None:
    titanic = pl.read_csv(SHARED / "data" / "titanic_train.csv")
    found = po.cross_validate(titanic, "Survived", choose="cv", identifiers="keep")
    assert found.folds["feature"].unique().to_list() == ["Sex"]
    accuracy = dict(found.by_feature().select("feature", "accuracy").rows())
    assert accuracy["Name"] == found.baseline == pytest.approx(549 / 891)
    assert accuracy["Sex"] == 701 / 891
    assert accuracy["Ticket"] < accuracy["Sex"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"folds": 1}, OptionError, "folds must be at least 2"),
        ({"folds": 2.5}, OptionError, "folds must be a whole number"),
        ({"seed": -1}, OptionError, "seed must be a whole number"),
        ({"stratify": "yes"}, OptionError, "stratify must be True or False"),
        ({"unseen": "last"}, OptionError, "unseen must be one of 'default', 'first'"),
        ({"at_cut": "left"}, OptionError, "at_cut must be one of 'below', 'above'"),
        ({"fold_column": "Windy"}, MissingColumnError, "did you mean 'windy'"),
        ({"fold_column": "play"}, OneRError, "'play' is named both as target and as"),
        ({"bins": "best"}, OptionError, "method must be one of"),
        ({"bins": {"outlook": "mdl"}}, OptionError, "an ordered feature in bins must be one of"),
    ],
)
def test_bad_calls(options: dict[str, Any], error: type[Exception], message: str) -> None:
    def no_reading(_: pl.DataFrame) -> pl.DataFrame:
        pytest.fail("data was read")

    for frame in (WEATHER, WEATHER.clear().lazy().map_batches(no_reading)):
        with pytest.raises(error, match=message):
            po.cross_validate(frame, "play", **options)
