"""The oracle itself, held to figures worked out by hand or printed in textbooks."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import polars as pl
import pytest

from tests import oracle
from tests.oracle import Case, best_nominal, best_ordered, impurity, one_rule
from tests.shared import SHARED, needs_shared
from tests.textbook import NOMINAL, NUMERIC, PLAY

NAN, INF = math.nan, math.inf


def test_two_baskets_of_socks() -> None:
    first, second = ["red", "blue", "red"], ["blue", "red", "blue", "blue"]
    assert impurity(first, "gini") == Fraction(4, 9)
    assert impurity(second, "gini") == Fraction(3, 8)
    assert oracle.weighted_impurity([first, second], "gini") == Fraction(17, 42)


def test_entropy_of_the_weather_target() -> None:
    # Witten & Frank: info([9, 5]) = 0.940 bits, and 0.693 bits over the three outlooks.
    assert float(impurity(PLAY, "entropy")) == pytest.approx(0.9402859586706311, abs=1e-15)
    sides = [
        [b for a, b in zip(NOMINAL["outlook"], PLAY, strict=True) if a == outlook]
        for outlook in ("sunny", "overcast", "rainy")
    ]
    assert float(oracle.weighted_impurity(sides, "entropy")) == pytest.approx(0.693536, abs=1e-6)


def test_scores_of_one_side() -> None:
    assert impurity(["a", "a", "b"], "error") == Fraction(1, 3)
    assert impurity([1, 2, 3, 4], "variance") == Fraction(5, 4)
    assert float(impurity([1, 2, 3, 4], "std")) == pytest.approx(math.sqrt(5 / 3), abs=1e-15)
    assert impurity([7], "std") == 0
    assert impurity([], "std") == 0
    assert impurity([], "gini") == 0
    assert impurity([0.5, 0.5], "std") == 0
    # Two Booleans: sample variance of (0, 1) is 1/2.
    assert float(impurity([False, True], "std")) == pytest.approx(math.sqrt(0.5), abs=1e-15)


def test_entropy_of_equal_shares_is_whole_bits() -> None:
    assert impurity(list("abcd"), "entropy") == 2
    assert impurity(list("aabb"), "entropy") == 1
    assert impurity(list("aaa"), "entropy") == 0


def test_ordered_split_by_hand() -> None:
    # Cut 2|3: left {F, F}, right {T, F, T}: gini 3/5 * 4/9.
    split = best_ordered([1, 2, 3, 4, 5], [False, False, True, False, True], "gini")
    assert split is not None
    assert (split.left_max, split.right_min, split.n_left, split.n_right) == (2, 3, 2, 3)
    assert split.score == Fraction(4, 15)


def test_tied_cuts_take_the_smallest_threshold() -> None:
    split = best_ordered([1, 2, 3, 4, 5, 6], list("bbaacc"), "gini")
    assert split is not None
    assert (split.left_max, split.score) == (2, Fraction(1, 3))


def test_ties_of_irrational_parts_are_ties() -> None:
    # 1|6 pure and 3:3 leaves 6 bits; 3|4 as 1:2 and 3:1 leaves (3 log2 3 - 2) + (8 - 3 log2 3) = 6.
    split = best_ordered([0, 1, 1, 2, 2, 2, 2], list("fttffft"), "entropy")
    assert split is not None
    assert (split.left_max, split.n_left) == (0, 1)
    assert abs(split.score - Fraction(6, 7)) < Fraction(1, 10**49)


def test_missing_is_null_and_nan_and_minus_zero_is_zero() -> None:
    x = [1.0, 2.0, 3.0, 4.0, NAN, None]
    split = best_ordered(x, [0, 0, 1, 1, 0, 0], "gini", missing="drop")
    assert split is not None
    assert (split.n_left, split.n_right, split.n_missing) == (2, 2, 2)
    assert split.score == 0
    assert len(oracle.ordered_candidates([-0.0, 0.0, 1.0], [0, 1, 1], "gini")) == 1


def test_missing_goes_where_it_scores_best() -> None:
    x, y = [1, 2, 3, 4, None, None], [0, 0, 1, 1, 0, 0]
    best = best_ordered(x, y, "gini")
    assert best is not None
    assert (best.left_max, best.missing_goes) == (2, "left")
    assert best.score == 0
    assert (best.n_left, best.n_right) == (4, 2)
    right = best_ordered(x, y, "gini", missing="right")
    assert right is not None
    # On the right they spoil any cut: 1|2 leaves {0} and {0, 1, 1, 0, 0}: 5/6 * 12/25, while
    # 2|3 leaves {0, 0} and {1, 1, 0, 0}: 4/6 * 1/2 = 1/3, which is lower.
    assert (right.left_max, right.missing_goes, right.score) == (2, "right", Fraction(1, 3))


def test_missing_against_all_others() -> None:
    x, y = [1, 2, 1, 2, None, None], list("aaaabb")
    best = best_ordered(x, y, "gini")
    assert best is not None
    assert best.missing_alone
    assert (best.n_left, best.n_right) == (4, 2)
    assert best.score == 0
    forced = best_ordered(x, y, "gini", missing="left")
    assert forced is not None
    assert not forced.missing_alone


def test_missing_on_either_side_alike_goes_left() -> None:
    # Rows (1, 0), (1, 1), (2, 1), (2, 0) and a missing 0: two errors wherever it goes.
    tied = best_ordered([1, 2, None, 1, 2], [0, 1, 0, 1, 0], "error")
    assert tied is not None
    assert (tied.left_max, tied.missing_goes) == (1, "left")


def test_min_leaf_counts_the_rows_on_a_side() -> None:
    x, y = [1, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0, 0]
    free = best_ordered(x, y, "gini")
    assert free is not None
    assert free.left_max == 1
    held = best_ordered(x, y, "gini", min_leaf=2)
    assert held is not None
    assert held.left_max == 2
    assert best_ordered(x, y, "gini", min_leaf=4) is None


def test_nothing_to_cut() -> None:
    assert best_ordered([None, None], [0, 1], "gini") is None
    assert best_ordered([3, 3], [0, 1], "gini") is None
    assert best_nominal(["a", None], ["x", None], "gini") is None
    assert best_ordered([], [], "gini") is None


def test_rows_without_a_target_are_left_out() -> None:
    x = [3.0, 1.0, 4.0, 2.0, 6.0, 5.0, 7.0, 8.0]
    split = best_ordered(x, [1, 0, None, 0, 1, 1, NAN, 1], "gini")
    assert split is not None
    assert (split.left_max, split.right_min, split.n_left, split.n_right) == (2, 3, 2, 4)


def test_best_set_of_nominal_values() -> None:
    x, y = list("aabbccdd"), [1, 1, 0, 0, 1, 1, 0, 0]
    split = best_nominal(x, y, "gini")
    assert split is not None
    assert {frozenset(split.left), frozenset("abcd") - frozenset(split.left)} == {
        frozenset("ac"),
        frozenset("bd"),
    }
    assert split.score == 0


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "variance", "std"])
def test_scan_by_mean_finds_what_all_sets_find(criterion: oracle.Criterion) -> None:
    # Two classes: the theorem (Breiman et al. 1984, 4.2) that lets the scan stand for all sets. For
    # std on 0/1 the sides' roots are concave in the counts too, up to ddof, so more rows are given.
    draw = random.Random(1)
    for _ in range(25):
        n = draw.randint(4, 30)
        x = [draw.choice("abcde") for _ in range(n)]
        y = [draw.randint(0, 1) for _ in range(n)]
        if criterion == "std":
            x, y = x * 20, y * 20
        scan = best_nominal(x, y, criterion, search="scan")
        every = best_nominal(x, y, criterion, search="all")
        assert (scan is None) == (every is None)
        if scan is not None and every is not None:
            assert float(scan.score) == pytest.approx(float(every.score), abs=1e-12)


def test_majority_under_each_tie_rule() -> None:
    totals, order = {"no": 5, "yes": 9}, ["yes", "no"]
    tied = {"no": 2, "yes": 2}
    assert oracle.majority(tied, totals, order, "rare") == "no"
    assert oracle.majority(tied, totals, order, "first") == "yes"
    assert oracle.majority(tied, totals, order, "frequent") == "yes"
    assert oracle.majority({"no": 1, "yes": 2}, totals, order, "rare") == "yes"
    assert oracle.majority({"a": 1, "b": 1}, {"a": 1, "b": 1}, ["b", "a"], "rare") == "b"


@pytest.mark.parametrize(
    ("feature", "predictions", "n_errors"),
    [
        ("outlook", {"sunny": "no", "overcast": "yes", "rainy": "yes"}, 4),
        ("temperature", {"hot": "no", "mild": "yes", "cool": "yes"}, 5),
        ("humidity", {"high": "no", "normal": "yes"}, 4),
        ("windy", {False: "yes", True: "no"}, 5),
    ],
)
def test_nominal_weather(feature: str, predictions: dict[object, str], n_errors: int) -> None:
    rule = one_rule(NOMINAL[feature], PLAY, "nominal")
    assert {case.values[0]: case.prediction for case in rule.cases} == predictions
    assert rule.n_errors == n_errors
    assert rule.n_rows == 14


def test_nominal_weather_chooses_outlook() -> None:
    features: dict[str, tuple[list[object], oracle.Kind]] = {
        name: (x, "nominal") for name, x in NOMINAL.items() if name != "play"
    }
    assert oracle.choose(features, PLAY)[0] == "outlook"


def test_numeric_weather() -> None:
    temperature, humidity = NUMERIC["temperature"], NUMERIC["humidity"]

    def cuts(rule: oracle.Rule) -> list[float]:
        return [(a + b) / 2 for a, b in rule.boundaries]

    fine = one_rule(temperature, PLAY, "ordered", min_bucket=1)
    assert cuts(fine) == [64.5, 66.5, 70.5, 73.5, 77.5, 80.5, 84]
    coarse = one_rule(temperature, PLAY, "ordered", min_bucket=3)
    assert cuts(coarse) == [77.5]
    assert [case.prediction for case in coarse.cases] == ["yes", "no"]
    assert coarse.n_errors == 5
    damp = one_rule(humidity, PLAY, "ordered", min_bucket=3)
    assert cuts(damp) == [82.5, 95.5]
    assert [case.prediction for case in damp.cases] == ["yes", "no", "yes"]
    assert damp.n_errors == 3
    # Weka at B = 1 (ties to the first declared class): 71.5 in the place of 73.5.
    weka = one_rule(temperature, PLAY, "ordered", min_bucket=1, ties="first", classes=["yes", "no"])
    assert cuts(weka) == [64.5, 66.5, 70.5, 71.5, 77.5, 80.5, 84]


def test_missing_is_a_case_of_its_own() -> None:
    rule = one_rule(["p", "p", None, None, "q", "q", None], list("nnyynny"), "nominal")
    assert rule.cases[-1] == Case((None,), "y", 3, 3)
    assert [rule.predict(value) for value in ("p", None, "q", "zzz")] == ["n", "y", "n", "n"]


def test_unseen_and_missing_get_the_default() -> None:
    rule = one_rule(
        ["red", "red", "blue", "blue", "blue", "green"],
        ["stop", "stop", "go", "go", "go", "go"],
        "nominal",
    )
    assert [rule.predict(value) for value in ("red", "violet", None)] == ["stop", "go", "go"]


def test_intervals_are_read_up_to_the_cut() -> None:
    rule = one_rule([1, 2, 3, 4], list("nnpp"), "ordered", min_bucket=1)
    assert rule.boundaries == [(2, 3)]
    assert [rule.predict(value) for value in (-9, 2.5, 2.6, 99)] == ["n", "n", "p", "p"]


def test_identifier_like() -> None:
    assert oracle.looks_like_identifier(list("abcd"), list("xyxy"))
    assert not oracle.looks_like_identifier(list("abcc"), list("xyxy"))
    assert not oracle.looks_like_identifier(["a", "b", None, None, None], list("xyxyx"))


def test_leave_one_out_by_hand() -> None:
    # Each value's class is learned from the other row of that value; the two c rows disagree, so
    # each is predicted as the other, and the lone d gets the default of the rest.
    x, y = list("aabbccd"), list("nnyynyy")
    assert oracle.leave_one_out(x, y, "nominal") == Fraction(4, 7)


def test_identifiers_fall_to_the_baseline_when_each_row_is_left_out() -> None:
    x, y = list(range(10)), list("yyyyyyynnn")
    assert oracle.leave_one_out(x, y, "nominal") == Fraction(7, 10)


def test_cross_validation_by_hand() -> None:
    features: dict[str, tuple[list[object], oracle.Kind]] = {"x": (list("aabb"), "nominal")}
    folds = oracle.cross_validate(features, list("nyyy"), [0, 1, 0, 1])
    # Fold 0 learns a -> y, b -> y and meets (a, n), (b, y); fold 1 learns a -> n, b -> y and
    # meets (a, y), (b, y).
    assert [(fold.n_rows, fold.n_errors) for fold in folds] == [(2, 1), (2, 1)]


def test_class_rules_by_hand() -> None:
    rules = oracle.class_rules(
        {
            "h": ([1.0, 3.0, 2.0, 6.0, 9.0, None], "ordered"),
            "k": (list("uvuwwv"), "nominal"),
        },
        list("aaabbb"),
    )
    assert rules.tests == {
        "a": {"h": (1.0, 3.0), "k": frozenset("uv")},
        "b": {"h": (6.0, 9.0), "k": frozenset("vw")},
    }
    rows = [(3.0, "u"), (6.0, "v"), (4.5, "zzz"), (NAN, "w"), (1.0, "w"), (None, None)]
    matches = [rules.matches({"h": h, "k": k}) for h, k in rows]
    assert matches == [
        {"a": 2, "b": 0},
        {"a": 1, "b": 2},
        {"a": 0, "b": 0},
        {"a": 0, "b": 1},
        {"a": 1, "b": 1},
        {"a": 0, "b": 0},
    ]
    predicted = [rules.predict({"h": h, "k": k}, "first") for h, k in rows]
    assert predicted == ["a", "b", "a", "b", "a", "a"]


def test_infinities_are_the_ends_of_the_order() -> None:
    split = best_ordered([-INF, -5.0, 1.0, 2.0, INF, INF], [0, 0, 0, 0, 1, 1], "gini")
    assert split is not None
    assert (split.left_max, split.right_min) == (2.0, INF)
    assert split.score == 0


@needs_shared
@pytest.mark.parametrize(
    ("feature", "cuts"),
    [
        ("sepallength", [5.55, 6.15]),
        ("sepalwidth", [2.95, 3.35]),
        ("petallength", [2.45, 4.75]),
        ("petalwidth", [0.8, 1.75]),
    ],
)
def test_description_length_on_iris(feature: str, cuts: list[float]) -> None:
    iris = pl.read_parquet(SHARED / "data" / "iris.parquet")
    found = oracle.mdl_boundaries(iris[feature].to_list(), iris["class"].to_list())
    assert [(a + b) / 2 for a, b in found] == pytest.approx(cuts)


@needs_shared
@pytest.mark.parametrize("bucket", [6, 3, 1])
@pytest.mark.parametrize(
    "name",
    ["weather-nominal", "weather-numeric", "contact-lenses", "iris", "breast-cancer", "labor"],
)
def test_cross_validation_is_that_of_weka(name: str, bucket: int) -> None:
    reference, folds, schema = (
        json.loads((SHARED / path).read_text("utf-8"))
        for path in (
            "reference/reference.json",
            "reference/weka_folds_seed1.json",
            "data/schema.json",
        )
    )
    frame = pl.read_parquet(SHARED / "data" / f"{name}.parquet")
    target = schema[name]["target"]
    features: dict[str, tuple[list[object], oracle.Kind]] = {
        column["name"]: (
            frame[column["name"]].to_list(),
            "nominal" if column["type"] == "nominal" else "ordered",
        )
        for column in schema[name]["columns"]
        if column["name"] != target
    }
    validated = oracle.cross_validate(
        features,
        frame[target].to_list(),
        folds[name],
        min_bucket=bucket,
        ties="first",
        classes=reference["datasets"][name]["classes_declared_order"],
        unseen="first",
        strictly_below=True,
    )
    weka = reference["datasets"][name]["weka"]["OneR"][f"B{bucket}"]["cv10_seed1"]
    assert sum(fold.n_rows - fold.n_errors for fold in validated) == weka["correct"]
