"""Tables of splits: what they list, in which order and dtypes, with what reasons."""

from __future__ import annotations

import datetime as dt
import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_oner as po
from polars_oner.typing import CLASS_CRITERIA, MISSING, CriterionName, Missing, Strategy

TABLE = {
    "feature": pl.String(),
    "condition": pl.String(),
    "threshold": pl.Float64(),
    "n_left": pl.Int64(),
    "n_right": pl.Int64(),
    "n_missing": pl.Int64(),
    "missing_goes": pl.String(),
    "score": pl.Float64(),
    "gain": pl.Float64(),
    "reason": pl.String(),
}
SCORES = {
    "n_left": pl.Int64(),
    "n_right": pl.Int64(),
    "score_left": pl.Float64(),
    "score_right": pl.Float64(),
    "score": pl.Float64(),
}
MIXED = pl.DataFrame(
    {
        "i": [1, 2, 3, 4, None, 6],
        "f": [0.5, math.nan, -0.0, 2.5, math.inf, 3.0],
        "day": [dt.date(2024, 1, d) for d in (1, 2, 3, 4, 5, 6)],
        "size": pl.Series(["S", "M", "L", "S", "M", "L"], dtype=pl.Enum(["S", "M", "L"])),
        "s": ["a", "b", "a", None, "c", "c"],
        "b": [True, False, True, None, False, False],
        "list": [[1], None, [2], [3], [4], [5]],
        "same": [7] * 6,
        "gone": pl.Series([None] * 6, dtype=pl.Int64),
        "g": ["x", "x", None, None, "x", "x"],
        "w": pl.Series([1, 1, 2, 2, 1, 0], dtype=pl.UInt8),
        "y": ["no", "no", "yes", "yes", "no", "yes"],
    }
)


@pytest.mark.parametrize("criterion", ["gini", "error"])
@pytest.mark.parametrize("lazy", [False, True])
def test_schema_of_the_table(criterion: CriterionName, lazy: bool) -> None:
    choices: list[dict[str, Any]] = [
        *({}, {"by": "g"}, {"by": ["g", "b"]}, {"features": "i"}, {"min_leaf": 50})
    ]
    for options in choices:
        keys = options.get("by", [])
        schema: dict[str, pl.DataType] = {
            key: MIXED.schema[key] for key in ([keys] if isinstance(keys, str) else keys)
        }
        frame: Any = MIXED.lazy() if lazy else MIXED
        table: Any = po.best_splits(frame, "y", criterion=criterion, **options)
        assert isinstance(table, pl.LazyFrame) == lazy
        assert dict(table.collect_schema()) == {**schema, **TABLE}
        assert dict(table.lazy().collect().schema) == {**schema, **TABLE}


def test_float_weights_give_float_counts() -> None:
    frame = MIXED.with_columns(pl.col("w") * 0.5)
    for table in (po.best_splits(frame, "y", weights="w"),
                  po.best_splits(frame.lazy(), "y", weights="w").collect()):  # fmt: skip
        for name in ("n_left", "n_right", "n_missing"):
            assert table.schema[name] == pl.Float64
    assert po.best_splits(MIXED, "y", weights="w").schema["n_left"] == pl.Int64


@pytest.mark.parametrize("feature", ["i", "f", "day", "size"])
def test_schema_of_the_scores(feature: str) -> None:
    plan = po.split_scores(MIXED.lazy(), "y", feature)
    assert dict(plan.collect_schema()) == {"threshold": MIXED.schema[feature], **SCORES}
    table = po.split_scores(MIXED, "y", feature)
    assert table.schema == plan.collect_schema()
    assert table["threshold"].drop_nulls().is_sorted()
    nominal = po.split_scores(MIXED, "y", feature, nominal=[feature], by="g")
    assert nominal.schema == {
        "g": pl.String(),
        "threshold": pl.List(MIXED.schema[feature]),
        **SCORES,
    }


def test_the_table_lists_every_column_with_its_reason() -> None:
    table = po.best_splits(MIXED, "y", min_leaf=2)
    reasons = dict(table.select("feature", "reason").iter_rows())
    assert reasons == {
        **dict.fromkeys(["i", "f", "day", "size", "s", "b", "g", "w"]),
        "list": "dtype List(Int64) cannot be tested",
        "same": "only one distinct value",
        "gone": "all values are missing",
    }
    # Those without a split come last, in the order of the columns.
    assert table["feature"].to_list()[-3:] == ["list", "same", "gone"]
    missing = dict(table.select("feature", "n_missing").iter_rows())
    assert [missing[name] for name in ("i", "f", "s", "gone", "list", "g")] == [1, 1, 1, 6, 1, 2]
    blank = table.filter(pl.col("reason").is_not_null())
    for name in ("condition", "threshold", "n_left", "n_right", "missing_goes", "score", "gain"):
        assert blank[name].null_count() == 3, name


def test_a_leaf_too_large_is_a_reason() -> None:
    (row,) = po.best_splits(MIXED, "y", "day", min_leaf=4).rows(named=True)
    assert row["reason"] == "no split leaves 4 rows on each side"


def test_the_table_is_best_first_and_ties_keep_the_columns_order() -> None:
    frame = pl.DataFrame(
        {"b": [1, 2, 3, 4], "a": [4, 3, 2, 1], "z": [0, 0, 0, 1], "y": [0, 0, 1, 1]}
    )
    assert po.best_splits(frame, "y")["feature"].to_list() == ["b", "a", "z"]
    assert po.best_splits(frame, "y", ["z", "a", "b"])["feature"].to_list() == ["a", "b", "z"]
    assert po.best_split(frame, "y").feature == "b"
    assert po.best_split(frame, "y", ["a", "b"]).feature == "a"


def test_the_smallest_threshold_of_equals() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 4, 5, 6], "y": [0, 1, 1, 1, 1, 0]})
    table = po.best_splits(frame, "y")
    assert table["condition"].item() == "x <= 1"
    assert po.best_split(frame, "y").threshold == 1


@pytest.mark.parametrize(
    ("feature", "cut", "condition", "threshold"),
    [
        ("i", "value", "i <= 2 or i is missing", 2.0),
        ("i", "midpoint", "i <= 2.5 or i is missing", 2.5),
        ("day", "value", "day <= 2024-01-02", None),
        ("day", "midpoint", "day <= 2024-01-02", None),
        ("size", "midpoint", 'size <= "M"', None),
    ],
)
def test_conditions(feature: str, cut: Any, condition: str, threshold: float | None) -> None:
    frame = MIXED.with_columns(
        y=pl.when(pl.col(feature).is_null()).then(pl.lit("no")).otherwise("y"),
        size=pl.Series(["S", "M", "L", "L", "M", "L"], dtype=pl.Enum(["S", "M", "L"])),
    )
    for table in (
        po.best_splits(frame, "y", feature, cut=cut),
        po.best_splits(frame.lazy(), "y", feature, cut=cut).collect(),
        po.best_splits(frame, "y", feature, cut=cut, strategy="refine"),
    ):
        assert table.select("condition", "threshold").row(0) == (condition, threshold)


def test_labels_in_conditions_can_be_read_back() -> None:
    labels = ['a", "b', "back\\slash\\", "two\nlines", "tab\t", "$1"]
    frame = pl.DataFrame({"s": [*labels, "z"], "y": [0] * len(labels) + [1]})
    condition = po.best_splits(frame, "y")["condition"].item()
    assert json.loads(condition.replace("s in {", "[").replace("}", "]")) == sorted(labels)
    levels = ['"', "\\", "z"]
    ordered = frame.select(pl.Series("s", levels, dtype=pl.Enum(levels)), y=pl.Series([0, 0, 1]))
    condition = po.best_splits(ordered, "y", ordered=["s"])["condition"].item()
    assert json.loads(condition.removeprefix("s <= ")) == "\\"


@pytest.mark.parametrize("missing", MISSING)
def test_where_missing_rows_go(missing: Missing) -> None:
    frame = pl.DataFrame({"x": [1, 2, None, None, 5], "y": [0, 0, 1, 1, 1]})
    (row,) = po.best_splits(frame, "y", missing=missing).rows(named=True)
    assert row["n_missing"] == 2
    assert row["missing_goes"] == {"best": "right", "drop": None}.get(missing, missing)
    assert row["n_left"] + row["n_right"] == (3 if missing == "drop" else 5)


def test_missing_against_all_others() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, None, None], "y": [0, 0, 0, 1, 1]})
    (row,) = po.best_splits(frame, "y").rows(named=True)
    assert row["condition"] == "x is not missing"
    assert (row["threshold"], row["missing_goes"], row["score"]) == (None, "right", 0.0)
    assert po.split_scores(frame, "y", "x")["threshold"].to_list() == [1, 2, None]


# --- segments ---

SEGMENTS = pl.DataFrame(
    {
        "store": ["n", "n", "n", "n", None, None, None, "s", "s"],
        "kind": [1, 1, 1, 1, 2, 2, 2, None, None],
        "x": [1, 2, 3, 4, 10, 20, 30, 5, 5],
        "z": ["a", "b", "a", "b", "c", "d", "c", "a", "b"],
        "y": [0, 0, 1, 1, 1, 0, 0, 1, 0],
    }
)


@pytest.mark.parametrize("by", ["store", ["store"], ["kind", "store"]])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "variance"])
def test_each_segment_as_if_alone(by: Any, criterion: CriterionName) -> None:
    keys = [by] if isinstance(by, str) else by
    table = po.best_splits(SEGMENTS, "y", ["x", "z"], by=by, criterion=criterion)
    lazy = po.best_splits(SEGMENTS.lazy(), "y", ["x", "z"], by=by, criterion=criterion)
    assert_frame_equal(table, lazy.collect())
    assert table.columns[: len(keys)] == keys
    assert table.height == 6
    parts = SEGMENTS.partition_by(keys, as_dict=True)
    for key, part in parts.items():
        chosen = pl.all_horizontal(
            pl.col(name).eq_missing(value) for name, value in zip(keys, key, strict=True)
        )
        expected = po.best_splits(part, "y", ["x", "z"], criterion=criterion)
        assert_frame_equal(table.filter(chosen).drop(keys), expected)
        scores = po.split_scores(SEGMENTS, "y", "z", by=by, criterion=criterion)
        alone = po.split_scores(part, "y", "z", criterion=criterion)
        assert_frame_equal(scores.filter(chosen).drop(keys), alone)


def test_segments_are_sorted_and_no_features() -> None:
    table = po.best_splits(SEGMENTS, "y", by=["store", "kind"])
    assert table["store"].to_list() == [None, None, "n", "n", "s", "s"]
    assert set(table["feature"]) == {"x", "z"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["store", "store"]}, "column 'store' is listed twice in by"),
        ({"by": "y"}, "column 'y' is named both as target and as segment"),
        ({"by": "x", "features": ["x"]}, "column 'x' is named both as feature and as segment"),
        ({"by": "shop"}, "column 'shop' not found"),
    ],
)
def test_wrong_segments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(po.OneRError, match=message):
        po.best_splits(SEGMENTS, "y", **options)


def test_a_segment_named_as_a_column_of_the_result() -> None:
    for name in ("score", "n_left", "condition"):
        frame = SEGMENTS.rename({"store": name})
        with pytest.raises(po.ColumnRoleError, match="a column of the result"):
            po.best_splits(frame, "y", by=name)
    for name in ("score_left", "threshold"):
        frame = SEGMENTS.rename({"store": name})
        with pytest.raises(po.ColumnRoleError, match="a column of the result"):
            po.split_scores(frame, "y", "x", by=name)
    frame = SEGMENTS.rename({"store": "condition"})
    assert po.split_scores(frame, "y", "x", by="condition").columns[0] == "condition"


# --- nominal features ---


def gini(groups: list[list[int]]) -> float:
    n = sum(map(len, groups))
    return (
        sum(
            len(group) - sum(group.count(c) ** 2 for c in set(group)) / len(group)
            for group in groups
        )
        / n
    )


def test_three_classes_find_the_best_of_all_sets() -> None:
    rows = [(v, (v * 7 + i * i) % 3) for v in range(6) for i in range(1 + v % 3)]
    frame = pl.DataFrame(rows, schema=["x", "y"], orient="row").with_columns(pl.col("x").cast(str))
    (row,) = po.best_splits(frame, "y").rows(named=True)
    scores = [
        gini([[c for v, c in rows if v in left], [c for v, c in rows if v not in left]])
        for size in range(1, 6)
        for left in combinations(range(6), size)
    ]
    assert row["score"] == pytest.approx(min(scores), abs=1e-12)
    assert row["reason"] is None
    assert row["condition"].startswith('x in {"0"')


def test_beyond_twelve_values_the_result_says_so() -> None:
    frame = pl.DataFrame({"x": [f"v{i:02}" for i in range(13)] * 2, "y": [0, 1, 2, *[0] * 10] * 2})
    (row,) = po.best_splits(frame, "y").rows(named=True)
    assert row["reason"] == "more than 12 values: each tried against the rest"
    assert row["condition"] == 'x in {"v01"}'
    # Two classes need no such restriction.
    two = frame.with_columns(pl.col("y").clip(0, 1))
    (row,) = po.best_splits(two, "y").rows(named=True)
    assert row["reason"] is None
    assert row["score"] == 0.0


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_missing_is_no_member_of_a_set(criterion: CriterionName) -> None:
    frame = pl.DataFrame({"x": ["a", "a", None, "b", None], "y": [0, 0, 1, 1, 1]})
    (row,) = po.best_splits(frame, "y", criterion=criterion).rows(named=True)
    assert (row["condition"], row["missing_goes"], row["score"]) == ('x in {"a"}', "right", 0.0)


def test_categoricals_and_booleans() -> None:
    frame = pl.DataFrame(
        {
            "c": pl.Series(["z", "a", "z", "a"], dtype=pl.Categorical),
            "b": [True, False, True, True],
            "y": [0, 1, 0, 1],
        }
    )
    table = po.best_splits(frame, "y")
    assert dict(table.select("feature", "condition").iter_rows()) == {
        "c": 'c in {"z"}',
        "b": "b in {true}",
    }
    assert po.best_splits(frame, "y", "b", ordered="b")["condition"].item() == "b <= false"


# --- targets and weights ---


def test_rows_without_a_target_count_nowhere() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, None, None], "y": [0, 1, None, None, 0]})
    (row,) = po.best_splits(frame, "y").rows(named=True)
    assert row["n_left"] + row["n_right"] == 3
    assert row["n_missing"] == 1


@pytest.mark.parametrize("strategy", ["auto", "exhaustive", "refine"])
def test_no_rows_with_a_target(strategy: Any) -> None:
    for frame in (pl.DataFrame({"x": [1], "y": [None]}, schema={"x": pl.Int64, "y": pl.Int64}),
                  pl.DataFrame(schema={"x": pl.Int64, "y": pl.Int64})):  # fmt: skip
        for learn in (po.best_splits, po.best_split):
            with pytest.raises(po.EmptyTargetError, match="'y'"):
                learn(frame, "y", strategy=strategy)
        with pytest.raises(po.EmptyTargetError):
            po.best_splits(frame.with_columns(g=1), "y", by="g")
        # A plan cannot raise; it gives no split.
        plan = po.best_splits(frame.lazy(), "y", strategy=strategy)
        assert plan.collect()["score"].to_list() == [None]


def test_one_class_gains_nothing() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3], "y": [5, 5, 5]})
    for criterion in ("gini", "entropy", "error", "std", "variance"):
        (row,) = po.best_splits(frame, "y", criterion=criterion).rows(named=True)
        assert (row["condition"], row["score"], row["gain"]) == ("x <= 1", 0.0, 0.0)


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_one_class_with_weights_that_round(criterion: CriterionName) -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 4], "y": [1] * 4, "w": [1.1, 2.2, 3.3, 7.7]})
    for rows in (frame, frame.reverse()):
        (row,) = po.best_splits(rows, "y", criterion=criterion, weights="w").rows(named=True)
        assert row["reason"] is None
        assert row["score"] == pytest.approx(0.0, abs=1e-15)
        assert row["score"] >= 0


def test_a_weight_of_zero_is_an_absent_row() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 9], "y": [0, 0, 1, 0], "w": [1, 1, 1, 0]})
    table = po.best_splits(frame, "y", weights="w")
    assert_frame_equal(table, po.best_splits(frame.head(3).drop("w"), "y"))
    assert "w" not in table["feature"].to_list()


@pytest.mark.parametrize("strategy", ["exhaustive", "refine"])
@pytest.mark.parametrize("weight", [2**31, 2**32 - 1, 2**40])
def test_large_whole_weights_do_not_wrap(weight: int, strategy: Strategy) -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 4], "y": [0, 0, 1, 1], "w": [weight] * 4})
    table = po.best_splits(frame, "y", "x", weights="w", strategy=strategy)
    assert table.select("score", "gain", "n_left").row(0) == (0.0, 0.5, 2 * weight)
    scores = po.split_scores(frame, "y", "x", weights="w")["score"]
    assert scores.to_list() == pytest.approx([1 / 3, 0.0, 1 / 3])


def test_a_plan_says_that_no_row_has_a_target() -> None:
    rows = pl.LazyFrame(
        {"s": ["a", "b"], "x": [1.0, None], "y": pl.Series([None, None], dtype=pl.Int64)}
    )
    table = po.best_splits(rows, "y").collect()
    assert table["reason"].to_list() == ["no row has a target"] * 2
    assert po.best_splits(rows, "y", by="s", features=["x"]).collect().is_empty()


@pytest.mark.parametrize("n_values", [3, 14])
def test_segments_of_different_classes_are_as_by_themselves(n_values: int) -> None:
    """Each has two classes of the three there are, or one: the sets are those of two classes."""
    generator = np.random.default_rng(n_values)
    pairs = [["a", "b"], ["b", "c"], ["a", "c"], ["c", "c"]]
    frame = pl.concat(
        pl.DataFrame(
            {
                "g": [segment] * 60,
                "f": [f"v{i:02}" for i in generator.integers(0, n_values, 60)],
                "x": generator.integers(0, 5, 60),
                "y": generator.choice(pair, 60),
            }
        )
        for segment, pair in enumerate(pairs)
    )
    eager = po.best_splits(frame, "y", ["f", "x"], by="g")
    for table in (eager, po.best_splits(frame.lazy(), "y", ["f", "x"], by="g").collect()):
        for segment in range(len(pairs)):
            alone = po.best_splits(frame.filter(g=segment), "y", ["f", "x"])
            assert_frame_equal(table.filter(g=segment).drop("g"), alone)
    scores = po.split_scores(frame.lazy(), "y", "x", by="g").collect()
    assert scores.equals(po.split_scores(frame, "y", "x", by="g"))
