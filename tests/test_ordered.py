"""Counts in chunks: the parts put together are the whole, and no part is large."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_oner as po
from polars_oner import counts, ordered
from polars_oner.counts import count_values
from polars_oner.frame import Column
from polars_oner.intervals import in_chunks, tie_order, walk
from polars_oner.ordered import ordered_counts
from polars_oner.target import ClassTarget, class_target, number_target
from polars_oner.typing import TIES, Ties
from tests.strategies import ORDERED_POOLS


def columns_of(frame: pl.DataFrame, *names: str) -> list[Column]:
    return [Column(name, frame.schema[name], "ordered") for name in names]


def classes_of(frame: pl.DataFrame) -> ClassTarget:
    return class_target(frame.lazy(), "y", frame.schema["y"])


def chunks_of(frame: pl.DataFrame, n_rows: int, **options: Any) -> list[pl.DataFrame]:
    """Count column x in chunks, and check them against the whole table."""
    target = classes_of(frame)
    features = columns_of(frame, "x")
    whole = count_values(frame, features, target, **options)["x"]
    chunks = list(ordered_counts(frame.lazy(), features, target, n_rows=n_rows, **options)["x"])
    assert_frame_equal(pl.concat(chunks), whole)
    for below, above in pairwise(chunks):
        # As series: a datetime of Python has no nanoseconds.
        assert not below["value"][-1:].equals(above["value"][:1])
    return chunks


def n_present(chunk: pl.DataFrame) -> int:
    return chunk["value"].count()


rng = np.random.default_rng(20)
N = 3_000
ODD: dict[str, Callable[[], pl.Series]] = {
    "normal": lambda: pl.Series(rng.standard_normal(N)),
    "heavy tails": lambda: pl.Series(rng.standard_cauchy(N) ** 5),
    "mostly zero": lambda: pl.Series(np.where(rng.random(N) < 0.99, 0.0, rng.standard_normal(N))),
    "few values": lambda: pl.Series(rng.integers(0, 5, N)),
    "mostly one integer": lambda: pl.Series(
        np.where(rng.random(N) < 0.9, 7, rng.integers(0, 10**12, N))
    ),
    "an outlier": lambda: pl.Series(np.append(rng.standard_normal(N - 1), 1e300)),
    "infinities": lambda: pl.Series(
        np.concatenate([[-math.inf, math.inf] * 500, rng.standard_normal(N - 1000)])
    ),
    "missing": lambda: pl.Series(
        [[None, math.nan, 0.0, -0.0, x][i % 5] for i, x in enumerate(rng.standard_normal(N))]
    ),
    "all but a few missing": lambda: pl.Series([None] * (N - 40) + list(range(40))),
    "around zero": lambda: pl.Series(rng.integers(-50, 50, N) * 5e-324),
    "neighbours": lambda: pl.Series(1.0 + rng.integers(0, 900, N) * 2.0**-52),
    "beyond 2**53": lambda: pl.Series(2**60 + rng.integers(0, 2**14, N)),
    "the largest": lambda: pl.Series(
        [2**64 - 1 - int(i) for i in rng.integers(0, 2**13, N)], dtype=pl.UInt64
    ),
    "Float32": lambda: pl.Series(rng.standard_normal(N).astype(np.float32)),
    "time": lambda: pl.Series(1_700_000_000_000_000_000 + rng.integers(0, 10**6, N)).cast(
        pl.Datetime("ns", "Europe/Berlin")
    ),
    "dates": lambda: pl.Series(rng.integers(-700, 700, N).astype(np.int32)).cast(pl.Date),
    "Decimal": lambda: pl.Series(rng.integers(0, 10**6, N)).cast(pl.Decimal(12, 2)) / 100,
    "ascending": lambda: pl.Series(np.arange(float(N)) ** 3),
}


@pytest.fixture
def few_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "_N_BINS", 64)
    monkeypatch.setattr("polars_oner.counts._LONGEST_BATCH", 256)
    monkeypatch.setattr("polars_oner.counts._SHORTEST_BATCH", 256)


@pytest.mark.usefixtures("few_bins")
@pytest.mark.parametrize("shape", ODD)
def test_chunks_are_small_parts_of_the_whole(shape: str) -> None:
    x = ODD[shape]()
    y = pl.Series(rng.integers(0, 3, len(x)), dtype=pl.UInt8)
    chunks = chunks_of(pl.DataFrame({"x": x, "y": y}), 100)
    # Values that share a Float64 stay together: a few rows each where such integers were drawn.
    widest = 1600 if shape in ("beyond 2**53", "the largest") else 100
    assert max(map(n_present, chunks)) <= widest


def test_small_tables_are_one_chunk_of_one_pass() -> None:
    frame = pl.DataFrame({"x": [3.0, 1.0, None, math.nan, 1.0], "y": ["a", "b", "a", None, "a"]})
    (chunk,) = chunks_of(frame, ordered.CHUNK_ROWS)
    assert chunk["value"].to_list() == [None, 1.0, 1.0, 3.0]


@given(st.data(), st.sampled_from(range(len(ORDERED_POOLS))), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_every_ordered_dtype_in_chunks_of_any_size(
    data: st.DataObject, pool: int, n_rows: int
) -> None:
    dtype, values = ORDERED_POOLS[pool]
    cell = st.tuples(st.sampled_from([*values, None]), st.sampled_from([0, 1, 2, None]))
    rows = data.draw(st.lists(cell, min_size=1, max_size=30).filter(lambda rows: any(
        label is not None for _, label in rows
    )))  # fmt: skip
    frame = pl.DataFrame(
        {"x": pl.Series([x for x, _ in rows], dtype=dtype), "y": [label for _, label in rows]},
        schema_overrides={"y": pl.Int8},
    )
    chunks_of(frame, n_rows)


@pytest.mark.usefixtures("few_bins")
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("min_bucket", [1, 6])
def test_the_walk_over_chunks_is_the_walk_over_the_whole(ties: Ties, min_bucket: int) -> None:
    x = rng.integers(0, 900, N) / 7
    frame = pl.DataFrame({"x": x, "y": (x // 9).astype(int) % 3 * rng.integers(0, 2, N)})
    target = classes_of(frame)
    order = tie_order(target.counts, ties)
    features = columns_of(frame, "x")
    whole = walk(in_chunks(count_values(frame, features, target)["x"]), order, min_bucket)
    parts = walk(ordered_counts(frame, features, target, n_rows=50)["x"], order, min_bucket)
    assert parts.first.equals(whole.first)
    assert parts.last.equals(whole.last)
    assert_frame_equal(parts.counts, whole.counts)


@pytest.mark.usefixtures("few_bins")
def test_weights_are_summed_and_rows_of_weight_zero_left_out() -> None:
    frame = pl.DataFrame(
        {
            "x": rng.standard_normal(N).round(2),
            "y": rng.integers(0, 2, N),
            "w": rng.integers(0, 4, N),
        }
    )
    assert len(chunks_of(frame, 100, weights="w")) > 2


@pytest.mark.usefixtures("few_bins")
def test_a_numeric_target_is_counted_by_moments() -> None:
    frame = pl.DataFrame({"x": rng.standard_normal(N), "y": rng.integers(0, 100, N)})
    target = number_target(frame.lazy(), "y", frame.schema["y"])
    features = columns_of(frame, "x")
    whole = count_values(frame, features, target)["x"]
    chunks = list(ordered_counts(frame, features, target, n_rows=500)["x"])
    assert len(chunks) > 5
    assert_frame_equal(pl.concat(chunks), whole)


@pytest.mark.usefixtures("few_bins")
def test_features_share_the_first_pass_and_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    labels: list[str] = []
    real = counts.shared_pass

    def noted(*args: Any, **options: Any) -> None:
        labels.append(options["label"])
        real(*args, **options)

    monkeypatch.setattr(ordered, "shared_pass", noted)
    frame = pl.DataFrame(
        {
            "few": rng.integers(0, 10, N),
            "y": rng.integers(0, 2, N),
            "n": rng.standard_normal(N),
            "^a.*$": rng.integers(0, 10, N),
        }
    )
    target = classes_of(frame)
    names = ("few", "n", "^a.*$")
    features = columns_of(frame, *names)
    parts = ordered_counts(frame.lazy(), features, target, n_rows=1000)
    whole = count_values(frame, features, target)
    assert list(parts) == list(names)
    assert_frame_equal(pl.concat(parts["few"]), whole["few"])
    assert_frame_equal(pl.concat(parts["^a.*$"]), whole["^a.*$"])
    assert labels == ["counting values"]
    chunks = list(parts["n"])
    assert_frame_equal(pl.concat(chunks), whole["n"])
    assert len(chunks) > 2


@pytest.mark.usefixtures("few_bins")
def test_progress_counts_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame({"x": rng.standard_normal(N), "y": rng.integers(0, 2, N)})
    target, features = classes_of(frame), columns_of(frame, "x")
    list(ordered_counts(frame.lazy(), features, target, progress=True, n_rows=500)["x"])
    shown = capsys.readouterr().err
    assert "counting ranges: 100%" in shown


def test_a_batch_sorted_by_the_feature_does_not_mislead_the_bins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polars_oner.counts._LONGEST_BATCH", 256)
    monkeypatch.setattr("polars_oner.counts._SHORTEST_BATCH", 256)
    start = dt.datetime(2024, 1, 1)
    x = [start + dt.timedelta(microseconds=i * i) for i in range(N)]
    chunks = chunks_of(pl.DataFrame({"x": x, "y": [i % 2 for i in range(N)]}), 200)
    assert max(chunk.height for chunk in chunks) <= 200


def test_five_million_values_of_a_parquet_file(tmp_path: Path) -> None:
    n = 5_000_000
    x = rng.permutation(n) * 0.1
    frame = pl.DataFrame({"x": x, "y": (np.sin(x / 3000) + rng.random(n) > 0.5).astype(np.uint8)})
    frame.write_parquet(tmp_path / "data.parquet", row_group_size=500_000)
    target, features = classes_of(frame), columns_of(frame, "x")
    order = tie_order(target.counts, "rare")
    source = pl.scan_parquet(tmp_path / "data.parquet")
    sizes: list[int] = []

    def noted() -> Any:
        for chunk in ordered_counts(source, features, target, n_rows=1 << 21)["x"]:
            sizes.append(chunk.height)
            yield chunk

    parts = walk(noted(), order, 6)
    whole = walk(in_chunks(count_values(frame, features, target)["x"]), order, 6)
    assert max(sizes) <= 1 << 21
    assert sum(sizes) == n
    assert 3 <= len(sizes) <= 4
    assert parts.first.equals(whole.first)
    assert_frame_equal(parts.counts, whole.counts)


def test_a_long_source_gives_the_same_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame(
        {
            "x": [None if i % 17 == 0 else (i * 37 % 211) / 7 for i in range(600)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i * 13 % 90) for i in range(600)],
            "name": [f"n{i % 5}" for i in range(600)],
            "y": ["no" if (i * 37 % 211) % 50 < 21 else "yes" for i in range(600)],
        }
    )
    whole = po.fit(frame.lazy(), "y")
    monkeypatch.setattr("polars_oner.ranking._MOST_ROWS_HELD", 100)
    in_pieces = partial(ordered_counts, n_rows=16)
    monkeypatch.setattr("polars_oner.ranking.ordered_counts", in_pieces)
    assert po.fit(frame.lazy(), "y") == whole
