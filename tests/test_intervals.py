"""Holte's walk against a plain loop over the values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polars_oner.intervals import Intervals, in_chunks, majorities, tie_order, walk
from polars_oner.typing import TIES, Ties
from tests import oracle

Table = list[tuple[int, dict[int, int]]]
"""Values, ascending, each with its rows per class."""


def count_table(table: Table) -> pl.DataFrame:
    rows = [(value, label, n) for value, counts in table for label, n in sorted(counts.items())]
    schema = {"value": pl.Int64, "class": pl.UInt32, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def as_rows(table: Table) -> tuple[list[int], list[int]]:
    rows = [(v, label) for v, counts in table for label, n in counts.items() for _ in range(n)]
    return [value for value, _ in rows], [label for _, label in rows]


def described(found: Intervals) -> list[tuple[Any, Any, dict[int, int]]]:
    counts: list[dict[int, int]] = [{} for _ in range(len(found.first))]
    for case, label, n in found.counts.iter_rows():
        counts[case][label] = n
    return list(zip(found.first, found.last, counts, strict=True))


def by_oracle(
    table: Table, min_bucket: int, ties: Ties, classes: Sequence[int]
) -> list[tuple[int, int, dict[int, int]]]:
    x, y = as_rows(table)
    rule = oracle.one_rule(x, y, "ordered", min_bucket=min_bucket, ties=ties, classes=classes)
    result = []
    for case in rule.cases:
        inside = [label for value, label in zip(x, y, strict=True) if value in case.values]
        result.append((case.values[0], case.values[-1], dict(sorted(oracle.count(inside).items()))))
    return result


counts_of_value = st.dictionaries(st.integers(0, 3), st.integers(1, 4), min_size=1)
tables = st.dictionaries(st.integers(-50, 50), counts_of_value, min_size=1, max_size=25).map(
    lambda table: sorted(table.items())
)


@given(tables, st.integers(1, 8), st.sampled_from(TIES), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_walk_equals_the_loop_in_chunks_of_any_size(
    table: Table, min_bucket: int, ties: Ties, n_rows: int
) -> None:
    _, y = as_rows(table)
    classes = sorted(set(y))
    coded = [(value, {classes.index(c): n for c, n in counts.items()}) for value, counts in table]
    totals = np.array([y.count(label) for label in classes])
    found = walk(in_chunks(count_table(coded), n_rows), tie_order(totals, ties), min_bucket)
    assert described(found) == by_oracle(coded, min_bucket, ties, range(len(classes)))


@pytest.mark.parametrize("n_classes", [2, 5, 300])
@pytest.mark.parametrize("min_bucket", [1, 3, 12])
def test_runs_of_values_of_one_class_are_taken_as_the_loop_does(
    n_classes: int, min_bucket: int
) -> None:
    rng = np.random.default_rng(n_classes + min_bucket)
    table: Table = []
    for value in range(400):
        last = next(iter(table[-1][1])) if table and rng.random() < 0.7 else None
        label = int(rng.integers(n_classes)) if last is None else last
        counts = {label: int(rng.integers(1, 3))}
        if rng.random() < 0.1:
            counts[int(rng.integers(n_classes))] = int(rng.integers(1, 3))
        table.append((value, counts))
    totals = np.zeros(n_classes, dtype=np.int64)
    for _, counts in table:
        for label, n in counts.items():
            totals[label] += n
    for ties in TIES:
        expected = by_oracle(table, min_bucket, ties, range(n_classes))
        for n_rows in (7, 1000):
            chunks = in_chunks(count_table(table), n_rows)
            assert described(walk(chunks, tie_order(totals, ties), min_bucket)) == expected


def test_an_interval_may_span_many_chunks() -> None:
    table: Table = [(value, {0: 1}) for value in range(20)] + [(20, {1: 9}), (21, {0: 9})]
    found = walk(in_chunks(count_table(table), 2), np.arange(2), 3)
    assert described(found) == [(0, 19, {0: 20}), (20, 20, {1: 9}), (21, 21, {0: 9})]


def test_the_last_interval_may_be_short() -> None:
    table: Table = [(1, {0: 3}), (2, {1: 1})]
    assert described(walk([count_table(table)], np.arange(2), 3)) == [
        (1, 1, {0: 3}),
        (2, 2, {1: 1}),
    ]


def test_a_bucket_may_fill_up_with_a_class_that_was_behind() -> None:
    # Class 0 leads with two rows until class 1 is first to reach three, and so names the interval.
    table: Table = [(1, {0: 2}), (2, {1: 3}), (3, {1: 1}), (4, {0: 1})]
    found = walk([count_table(table)], np.arange(2), 3)
    assert described(found) == [(1, 3, {0: 2, 1: 4}), (4, 4, {0: 1})]


def test_no_values_give_no_intervals() -> None:
    found = walk(in_chunks(count_table([])), np.arange(2), 6)
    assert described(found) == []
    assert found.first.dtype == pl.Int64


def test_an_empty_chunk_changes_nothing() -> None:
    table = count_table([(1, {0: 3}), (2, {1: 3})])
    plain = walk([table], np.arange(2), 1)
    assert described(walk([table[:0], table[:1], table[:0], table[1:]], np.arange(2), 1)) == (
        described(plain)
    )


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([2**53, 2**53 + 1, 2**63 - 1]),
        pl.Series([float("-inf"), 0.0, float("inf")]),
        pl.Series([1, 2, 3]).cast(pl.Date),
        pl.Series([1, 2, 3]).cast(pl.Datetime("ns", "Europe/Berlin")),
        pl.Series([1, 2, 3]).cast(pl.Time),
        pl.Series(["1.10", "1.11", "1.12"]).cast(pl.Decimal(10, 2)),
        pl.Series(["lo", "mid", "hi"], dtype=pl.Enum(["lo", "mid", "hi"])),
    ],
    ids=lambda values: str(values.dtype),
)
def test_values_keep_their_dtype(values: pl.Series) -> None:
    table = pl.DataFrame(
        {"value": values, "class": pl.Series([0, 0, 1], dtype=pl.UInt32), "n": [2, 2, 2]}
    )
    found = walk(in_chunks(table, 1), np.arange(2), 1)
    assert found.first.equals(values.gather([0, 2]))
    assert found.last.equals(values.gather([1, 2]))


@given(tables, st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_chunks_are_the_table_cut_between_values(table: Table, n_rows: int) -> None:
    whole = count_table(table)
    chunks = list(in_chunks(whole, n_rows))
    assert pl.concat(chunks).equals(whole)
    assert all(above["value"][0] > below["value"][-1] for below, above in pairwise(chunks))


@pytest.mark.parametrize(
    ("ties", "order"), [("rare", [2, 0, 1, 3]), ("frequent", [1, 3, 0, 2]), ("first", [0, 1, 2, 3])]
)
def test_tie_order_goes_by_size_then_class_order(ties: Ties, order: list[int]) -> None:
    assert tie_order(np.array([5, 8, 2, 8]), ties).tolist() == order


def test_majorities_take_the_lowest_rank_of_equal_counts() -> None:
    most, winner = majorities(
        np.array([0, 3]), np.array([2, 0, 1, 1, 0]), np.array([4, 4, 1, 2, 1])
    )
    assert most.tolist() == [4, 2]
    assert winner.tolist() == [0, 1]


def test_fractional_weights_fill_a_bucket() -> None:
    table = count_table([(1, {0: 1}), (2, {0: 1}), (3, {1: 1}), (4, {1: 1})])
    found = walk([table.with_columns(pl.col("n") * 1.5)], np.arange(2), 3.0)
    assert found.last.to_list() == [2, 4]
    assert found.counts["n"].to_list() == [3.0, 3.0]


def test_ten_thousand_values_take_no_loop_per_value() -> None:
    # Counts beyond 32 bits must not wrap, and each class change is an interval of its own.
    n = 10_000
    table = pl.DataFrame(
        {
            "value": np.arange(n),
            "class": (np.arange(n) % 2).astype(np.uint32),
            "n": np.full(n, 2**40),
        }
    )
    found = walk(in_chunks(table, 1000), np.arange(2), 6)
    assert len(found.first) == n
    assert found.counts["n"].sum() == n * 2**40
