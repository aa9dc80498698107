"""Count tables: exact, sorted, complete, and the same from batches as from one group-by."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from polars_oner import counts
from polars_oner.counts import Tally, count_plan, count_values
from polars_oner.frame import Column, resolve
from polars_oner.target import class_target, number_target
from polars_oner.typing import Engine

ROWS = pl.DataFrame(
    {
        "x": [2.0, -0.0, 0.0, math.nan, None, 2.0, 2.0, math.inf],
        "s": ["b", "a", "a", None, "b", "b", "c", "a"],
        "g": [1, 1, 1, 1, 2, 2, 2, 2],
        "w": [1, 2, 3, 4, 5, 6, 0, 8],
        "y": ["no", "yes", "no", "no", "yes", None, "no", "yes"],
    }
)


def features(frame: pl.DataFrame, *names: str) -> list[Column]:
    return list(resolve(frame.schema, "y", names).features)


def count(frame: pl.DataFrame, *names: str, lazy: bool = False, **options: Any) -> Any:
    target = class_target(frame.lazy(), "y", frame.schema["y"], weights=options.get("weights"))
    rows: Any = frame.lazy() if lazy else frame
    return count_values(rows, features(frame, *names), target, **options)


@pytest.mark.parametrize("lazy", [False, True])
def test_counts_by_hand(lazy: bool) -> None:
    tables = count(ROWS, "x", "s", lazy=lazy)
    assert list(tables) == ["x", "s"]
    assert tables["x"].schema == {"value": pl.Float64, "class": pl.UInt32, "n": pl.Int64}
    assert tables["x"].rows() == [
        *((None, 0, 1), (None, 1, 1), (0.0, 0, 1), (0.0, 1, 1), (2.0, 0, 2), (math.inf, 1, 1))
    ]
    assert tables["s"].rows() == [
        *((None, 0, 1), ("a", 0, 1), ("a", 1, 2), ("b", 0, 1), ("b", 1, 1), ("c", 0, 1))
    ]


@pytest.mark.parametrize("lazy", [False, True])
def test_keys_lead_and_weights_count(lazy: bool) -> None:
    table = count(ROWS, "s", "x", lazy=lazy, keys=["g"], weights="w")["s"]
    assert table.columns == ["by0", "value", "class", "n"]
    assert table.rows() == [
        *((1, None, 0, 4), (1, "a", 0, 3), (1, "a", 1, 2), (1, "b", 0, 1)),
        *((2, "a", 1, 8), (2, "b", 1, 5)),
    ]
    halves = ROWS.with_columns(pl.col("w") / 2)
    assert count(halves, "s", "x", lazy=lazy, weights="w")["s"].schema["n"] == pl.Float64


@pytest.mark.parametrize("lazy", [False, True])
def test_moments_of_a_number_target(lazy: bool) -> None:
    frame = pl.DataFrame({"x": [1, 1, 2, None], "z": [1, 2, 3, 4], "y": [10, 20, 30, 40]})
    target = number_target(frame.lazy(), "y", frame.schema["y"])
    rows: Any = frame.lazy() if lazy else frame
    table = count_values(rows, features(frame, "x", "z"), target)["x"]
    assert table.schema == {"value": pl.Int64, "n": pl.Int64, "s": pl.Float64, "q": pl.Float64}
    assert table.rows() == [(None, 1, 15.0, 225.0), (1, 2, -20.0, 250.0), (2, 1, 5.0, 25.0)]


@pytest.mark.parametrize("engine", ["auto", "in-memory", "streaming"])
def test_batches_give_what_one_group_by_gives(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    generator = np.random.default_rng(0)
    n = 5000
    frame = pl.DataFrame(
        {
            "a": generator.integers(0, 2000, n),
            "b": generator.normal(size=n).round(2),
            "c": pl.Series(generator.choice([*"xyz"], n).tolist(), dtype=pl.Categorical),
            "y": generator.integers(0, 3, n),
        }
    )
    whole = count(frame, "a", "b", "c")
    monkeypatch.setattr(counts, "_BATCH_CELLS", 500)
    monkeypatch.setattr(counts, "_SHORTEST_BATCH", 100)
    monkeypatch.setattr(counts, "_PARTIAL_ROWS", 300)
    parts = count(frame, "a", "b", "c", lazy=True, engine=engine)
    assert list(parts) == list(whole)
    for name, table in whole.items():
        assert_frame_equal(parts[name], table, check_exact=True)
    expected = Counter(zip(frame["a"], frame["y"], strict=True))
    assert {(value, k): n for value, k, n in whole["a"].iter_rows()} == expected


def test_a_tally_holds_no_more_than_twice_its_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_PARTIAL_ROWS", 10)
    tally = Tally(["value"], ["n"])
    most = 0
    for _ in range(200):
        tally.add(pl.DataFrame({"value": range(20), "n": [1] * 20}))
        most = max(most, sum(part.height for part in tally.parts))
    assert most <= 40
    assert tally.total().rows() == [(i, 200) for i in range(20)]


def test_progress_shows_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    count(ROWS, "x", "s", lazy=True, progress=True)
    assert "7.00/7.00" in capsys.readouterr().err


@given(
    values=st.lists(st.sampled_from([None, math.nan, -0.0, 0.0, 1.5, math.inf]), max_size=30),
    data=st.data(),
)
def test_runs_of_sorted_rows_count_as_groups_do(values: list[Any], data: st.DataObject) -> None:
    few = st.integers(0, 2)
    columns = {
        name: data.draw(st.lists(few, min_size=len(values), max_size=len(values)))
        for name in ("by0", "class", "n")
    }
    x = pl.Series("x", values, dtype=pl.Float64)
    rows = pl.DataFrame({"x": x, **columns}, schema_overrides=dict.fromkeys(columns, pl.Int64))
    feature, measure = (
        Column("x", pl.Float64(), "ordered"),
        counts.Measure(pl.col("y"), by_class=True),
    )
    for by in ((), ("by0",)):
        grouped, runs = (
            count_plan(rows.lazy(), feature, measure, by=by, by_runs=by_runs).collect()
            for by_runs in (False, True)
        )
        assert_frame_equal(grouped, runs)


def test_many_different_values_are_counted_by_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    n = 200_000
    frame = pl.DataFrame(
        {
            "distinct": generator.permutation(n),
            "pairs": generator.integers(0, n // 2, n),
            "few": generator.integers(0, 9, n),
            "text": pl.Series(generator.permutation(n)).cast(pl.String),
            "y": generator.integers(0, 3, n),
        }
    )
    names = frame.columns[:-1]
    columns = features(frame, *names)
    target = class_target(frame.lazy(), "y", pl.Int64())
    chosen: dict[str, bool] = {}
    real = counts.count_plan

    def noted(*args: Any, **options: Any) -> pl.LazyFrame:
        chosen[args[1].name] = options["by_runs"]
        return real(*args, **options)

    monkeypatch.setattr(counts, "count_plan", noted)
    for source in (frame, frame.lazy()):
        tables = count_values(source, columns, target)
        assert chosen == {"x0": True, "x1": False, "x2": False, "x3": False}
        for name in names:
            expected = frame.group_by(pl.col(name).alias("value"), pl.col("y").alias("class")).len()
            assert_frame_equal(
                tables[name],
                expected.sort("value", "class").select(
                    "value", pl.col("class").cast(pl.UInt32), n=pl.col("len").cast(pl.Int64)
                ),
            )
    # Sums of floats would lose digits in a running total.
    weighted = frame.with_columns(w=pl.lit(0.1))
    target = class_target(weighted.lazy(), "y", pl.Int64(), weights="w")
    tables = count_values(weighted, columns[:1], target, weights="w")
    assert chosen["x0"] is False
    assert (tables["distinct"]["n"] == 0.1).all()


@pytest.mark.parametrize("source_rows", [7, 100, 1000])
def test_batches_of_a_pass_are_neither_small_nor_large(
    monkeypatch: pytest.MonkeyPatch, source_rows: int
) -> None:
    monkeypatch.setattr(counts, "_BATCH_CELLS", 400)
    monkeypatch.setattr(counts, "_SHORTEST_BATCH", 10)
    frame = pl.DataFrame({"x": range(1000), "y": 0})
    rows = pl.concat([part.lazy() for part in frame.iter_slices(source_rows)])
    seen: list[pl.DataFrame] = []
    counts.shared_pass(rows, seen.append, n_columns=2)
    assert_frame_equal(pl.concat(seen).sort("x"), frame)
    heights = sorted(batch.height for batch in seen)
    assert heights[-1] <= 400
    assert all(height >= 200 for height in heights[1:])
