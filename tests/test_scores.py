"""Candidates and the best of them, straight from count tables."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from polars_oner.criteria import ClassCriterion, NumberCriterion
from polars_oner.scores import EXHAUSTIVE, Search, candidates, first_best, with_left_values
from polars_oner.typing import MISSING, Missing

GINI = ClassCriterion("gini", "sum")


def table(rows: list[tuple[Any, int, int]], **extra: Any) -> pl.LazyFrame:
    columns = {"value": pl.Int64, "class": pl.UInt32, "n": pl.Int64}
    return pl.LazyFrame(rows, schema=columns, orient="row").with_columns(exact=pl.lit(value=True))


COUNTS = table([(None, 0, 2), (None, 1, 1), (1, 0, 3), (2, 0, 1), (2, 1, 2), (5, 1, 4)])


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("drop", [(1, 2, 3, 7, None), (2, 5, 6, 4, None)]),
        ("left", [(1, 2, 6, 7, "left"), (2, 5, 9, 4, "left")]),
        ("right", [(1, 2, 3, 10, "right"), (2, 5, 6, 7, "right")]),
        ("best", [(1, 2, 6, 7, "left"), (2, 5, 9, 4, "left"), (5, None, 10, 3, "apart")]),
    ],
)
def test_where_missing_rows_go(missing: Missing, expected: list[Any]) -> None:
    found = candidates(COUNTS, Search(GINI, "ordered", missing)).collect()
    assert found.select("value", "next", "n_left", "n_right", "goes").rows() == expected
    assert found["n_missing"].to_list() == [3] * found.height


def test_scores_of_both_sides_by_hand() -> None:
    found = candidates(COUNTS, Search(GINI, "ordered", "left")).collect()
    (row, _) = found.rows(named=True)
    # 5 no and 1 yes; 1 no and 6 yes; all: 6 no and 7 yes.
    left, right = 1 - (25 + 1) / 36, 1 - (1 + 36) / 49
    assert row["score_left"] == pytest.approx(left, abs=1e-15)
    assert row["score_right"] == pytest.approx(right, abs=1e-15)
    assert row["score"] == pytest.approx((6 * left + 7 * right) / 13, abs=1e-15)
    assert row["before"] == pytest.approx(1 - (36 + 49) / 169, abs=1e-15)


@pytest.mark.parametrize("missing", MISSING)
def test_no_missing_rows_no_side_for_them(missing: Missing) -> None:
    counts = COUNTS.filter(pl.col("value").is_not_null())
    for has_missing in (True, False):
        search = Search(GINI, "ordered", missing, has_missing=has_missing)
        found = candidates(counts, search).collect()
        assert found.select("value", "n_left", "n_right", "goes").rows() == [
            (1, 3, 7, None),
            (2, 6, 4, None),
        ]


@pytest.mark.parametrize(("leaf", "cuts"), [(1, [1, 2]), (4, [2]), (5, []), (99, [])])
def test_min_leaf(leaf: int, cuts: list[int]) -> None:
    found = candidates(COUNTS, Search(GINI, "ordered", "drop", min_leaf=leaf)).collect()
    assert found["value"].to_list() == cuts


def test_lumps_hold_no_candidate() -> None:
    lumped = COUNTS.with_columns(
        exact=pl.col("value") != 2, value=pl.when(pl.col("value") != 2).then("value")
    ).with_columns(exact=pl.col("exact").fill_null(value=True))
    found = candidates(lumped, Search(GINI, "ordered", "drop")).collect()
    assert found.is_empty()


@pytest.mark.parametrize("criterion", [GINI, ClassCriterion("error", "max")])
def test_the_first_of_equals_is_taken(criterion: ClassCriterion) -> None:
    counts = table([(1, 0, 1), (2, 1, 1), (3, 0, 1), (4, 1, 1)])
    best = first_best(candidates(counts, Search(criterion, "ordered")), ()).collect()
    assert best["value"].to_list() == [1]


def sets_of(counts: pl.LazyFrame, search: Search) -> list[Any]:
    found = with_left_values(candidates(counts, search), counts, search).collect()
    return [sorted(values) for values in found["left_values"].to_list()]


def test_two_classes_are_scanned_by_their_share() -> None:
    counts = table([(1, 0, 1), (1, 1, 1), (2, 1, 3), (3, 0, 3), (4, 0, 2), (4, 1, 1)])
    for n_classes in (2, None):
        sets = sets_of(counts, Search(GINI, "nominal", n_classes=n_classes))
        assert sets == [[3], [3, 4], [1, 3, 4]]


def test_more_classes_try_every_set_once() -> None:
    counts = table([(1, 0, 1), (2, 1, 1), (3, 2, 1), (4, 0, 2)])
    sets = sets_of(counts, Search(GINI, "nominal", n_classes=3))
    # Each set holds the first value, so that none is tried from both sides.
    assert sorted(map(tuple, sets)) == sorted(
        [(1,), (1, 2), (1, 3), (1, 4), (1, 2, 3), (1, 2, 4), (1, 3, 4)]
    )


def test_beyond_twelve_values_each_stands_against_the_rest() -> None:
    for n_values in (EXHAUSTIVE, EXHAUSTIVE + 1):
        counts = table([(i, i % 3, 1) for i in range(n_values)])
        sets = sets_of(counts, Search(GINI, "nominal", n_classes=3))
        if n_values == EXHAUSTIVE:
            assert len(sets) == 2 ** (n_values - 1) - 1
        else:
            assert sets == [[i] for i in range(n_values)]


def test_a_number_target_is_scanned_by_its_mean() -> None:
    moments = pl.LazyFrame(
        {"value": [1, 2, 3], "n": [2, 2, 2], "s": [4.0, -6.0, 2.0], "q": [8.0, 18.0, 2.0]}
    ).with_columns(exact=pl.lit(value=True))
    assert sets_of(moments, Search(NumberCriterion("variance"), "nominal")) == [[2], [2, 3]]


def test_segments_are_apart() -> None:
    counts = pl.concat([COUNTS.with_columns(by0=pl.lit(segment)) for segment in ("a", None)]).sort(
        "by0", "value", "class"
    )
    search = Search(GINI, "ordered", "best", by=("by0",))
    found = candidates(counts, search).collect()
    alone = candidates(COUNTS, Search(GINI, "ordered", "best")).collect()
    for segment in (pl.col("by0") == "a", pl.col("by0").is_null()):
        assert found.filter(segment).drop("by0").equals(alone)
    assert first_best(candidates(counts, search), ("by0",)).collect().height == 2
