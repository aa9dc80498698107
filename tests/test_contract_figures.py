"""Every figure printed in the contract, from the data it was printed for."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_oner as po
from tests import oracle
from tests.shared import SHARED, needs_shared
from tests.textbook import NOMINAL, NUMERIC

# Condition of each feature's best split, and its "std" score on the 668 training rows.
TITANIC = [
    ("Sex", 0, 0.40787530982063946),
    ("Pclass", 2, 0.46048261885806596),
    ("LogFare", 2.4390808375825834, 0.4620823937736597),
    ("Age", 6.0, 0.478316717508991),
    ("SibSp", 4, 0.4783740258817434),
    ("Embarked", 0, 0.47883342573147836),
    ("Parch", 0, 0.4805296527841601),
]
FEATURES = ["Sex", "Embarked", "Age", "SibSp", "Parch", "LogFare", "Pclass"]


def titanic_training_rows() -> pl.LazyFrame:
    """Clean the raw CSV and take the 668 rows that numpy's seed 42 leaves for training.

    Nulls become the column's commonest value, the smallest among equals; Sex and Embarked become
    their rank among the sorted names; the fare is taken as ``log1p``.
    """
    n_rows, n_test = 891, 223
    order = np.random.RandomState(42).permutation(n_rows)
    raw = pl.scan_csv(SHARED / "data" / "titanic_train.csv")
    commonest = pl.selectors.all().drop_nulls().mode().sort().first()
    return (
        raw.with_columns(pl.selectors.all().fill_null(commonest))
        .with_columns(
            pl.col("Sex", "Embarked").rank("dense").cast(pl.Int64) - 1,
            LogFare=pl.col("Fare").log1p(),
        )
        .select(pl.all().gather(pl.lit(pl.Series(order[n_test:]))))
        .select("Survived", *FEATURES)
    )


@needs_shared
@pytest.mark.parametrize("lazy", [False, True])
def test_titanic_table(lazy: bool) -> None:
    rows = titanic_training_rows()
    frame: Any = rows if lazy else rows.collect()
    assert rows.collect().height == 668
    table = po.best_splits(frame, "Survived", criterion="std").lazy().collect()
    assert table["feature"].to_list() == [feature for feature, _, _ in TITANIC]
    assert table["threshold"].to_list() == [float(threshold) for _, threshold, _ in TITANIC]
    expected = [score for _, _, score in TITANIC]
    assert table["score"].to_list() == pytest.approx(expected, abs=1e-12, rel=0)
    conditions = [f"{name} <= {cut}".removesuffix(".0") for name, cut, _ in TITANIC]
    assert table["condition"].to_list() == conditions


@needs_shared
@pytest.mark.parametrize(("feature", "threshold", "score"), TITANIC)
def test_titanic_split_of_each_feature(feature: str, threshold: float, score: float) -> None:
    rows = titanic_training_rows().collect()
    split = po.best_split(rows, "Survived", feature, criterion="std")
    assert split.threshold == threshold
    assert split.score == pytest.approx(score, abs=1e-12, rel=0)
    by_expression = rows.select(
        pl.col(feature).oner.best_split("Survived", criterion="std")  # type: ignore[attr-defined]
    ).to_series()[0]
    assert by_expression["threshold"] == threshold
    assert by_expression["score"] == pytest.approx(score, abs=1e-12, rel=0)


@needs_shared
@pytest.mark.parametrize(("feature", "threshold", "score"), TITANIC)
def test_titanic_by_the_oracle(feature: str, threshold: float, score: float) -> None:
    rows = titanic_training_rows().collect()
    split = oracle.best_ordered(rows[feature].to_list(), rows["Survived"].to_list(), "std")
    assert split is not None
    assert split.left_max == threshold
    assert float(split.score) == pytest.approx(score, abs=1e-12, rel=0)


@needs_shared
def test_raw_titanic_picks_sex() -> None:
    raw = pl.read_csv(SHARED / "data" / "titanic_train.csv")
    with pytest.warns(po.IdentifierWarning) as caught:
        model = po.fit(raw, "Survived")
    (warning,) = caught
    assert "Name" in str(warning.message)
    assert "Ticket" in str(warning.message)
    assert model.feature == "Sex"
    assert (chosen(model).n_correct, chosen(model).n_rows) == (701, 891)
    told = raw.select(wrong=model.predict() != pl.col("Survived"))["wrong"].sum()
    assert told == chosen(model).n_errors == model.n_errors == 190


def chosen(model: po.OneRule) -> po.Rule:
    assert model.rule is not None
    return model.rule


# --- socks ---

BASKETS = pl.DataFrame(
    {
        "basket": [1, 1, 1, 2, 2, 2, 2],
        "sock": ["red", "blue", "red", "blue", "red", "blue", "blue"],
    }
)


def test_gini_of_two_baskets_of_socks() -> None:
    per_basket = BASKETS.group_by("basket", maintain_order=True).agg(
        gini=pl.col("sock").oner.gini()  # type: ignore[attr-defined]
    )
    assert per_basket["gini"].to_list() == pytest.approx([4 / 9, 3 / 8], abs=1e-15)
    together = BASKETS.select(
        pl.col("sock").oner.gini(by="basket")  # type: ignore[attr-defined]
    ).item()
    assert together == pytest.approx(17 / 42, abs=1e-15)
    split = po.best_split(BASKETS, "sock", "basket", criterion="gini")
    assert split.score == pytest.approx(17 / 42, abs=1e-15)


# --- weather ---


def predictions(rule: po.Rule) -> dict[Any, Any]:
    return {value: case.prediction for case in rule.cases for value in case.values or ()}


@pytest.mark.parametrize(
    ("feature", "expected", "n_errors"),
    [
        ("outlook", {"sunny": "no", "overcast": "yes", "rainy": "yes"}, 4),
        ("temperature", {"hot": "no", "mild": "yes", "cool": "yes"}, 5),
        ("humidity", {"high": "no", "normal": "yes"}, 4),
        ("windy", {False: "yes", True: "no"}, 5),
    ],
)
def test_nominal_weather(feature: str, expected: dict[Any, Any], n_errors: int) -> None:
    model = po.fit(pl.DataFrame(NOMINAL), "play")
    rule = {rule.feature: rule for rule in model.rules}[feature]
    assert predictions(rule) == expected
    assert rule.n_errors == n_errors
    assert model.feature == "outlook"


@pytest.mark.parametrize(
    ("feature", "min_bucket", "cuts", "n_errors"),
    [
        ("temperature", 1, [64.5, 66.5, 70.5, 73.5, 77.5, 80.5, 84], 1),
        ("temperature", 3, [77.5], 5),
        ("humidity", 3, [82.5, 95.5], 3),
    ],
)
def test_numeric_weather(feature: str, min_bucket: int, cuts: list[float], n_errors: int) -> None:
    model = po.fit(pl.DataFrame(NUMERIC), "play", feature, min_bucket=min_bucket)
    assert list(chosen(model).cuts) == cuts
    assert chosen(model).n_errors == n_errors


def test_numeric_weather_predicts_yes_up_to_77_5() -> None:
    model = po.fit(pl.DataFrame(NUMERIC), "play", "temperature", min_bucket=3)
    assert [case.prediction for case in chosen(model).cases] == ["yes", "no"]
    on_the_cut = pl.DataFrame({"temperature": [77, 78]})
    assert on_the_cut.select(model.predict()).to_series().to_list() == ["yes", "no"]


def test_min_bucket_is_six_by_default() -> None:
    frame = pl.DataFrame(NUMERIC)
    assert po.fit(frame, "play").ranking.equals(po.fit(frame, "play", min_bucket=6).ranking)
    assert not po.fit(frame, "play").ranking.equals(po.fit(frame, "play", min_bucket=1).ranking)
