"""One split per segment, for ten thousand segments."""

from __future__ import annotations

from typing import Any

import polars as pl

import polars_oner
from benchmarks import splitting
from benchmarks.data import Source, segments
from benchmarks.work import OURS, Answer, Contender, Demand, Work

SORT = "sort by segment and value"
OVER = "Polars sort + over + group_by"


def _prepare(source: Source) -> pl.DataFrame:
    return splitting.in_memory(source, ["store", "x0", "y"])


def _ours(frame: pl.DataFrame) -> pl.DataFrame:
    return polars_oner.best_splits(frame, "y", ["x0"], by="store")


def _over(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort once, run totals within segments, keep the lowest score: the same by hand."""
    ascending = frame.lazy().select(
        "store", x=pl.col("x0"), n=pl.lit(1, pl.Int64), ones=pl.col("y").cast(pl.Int64)
    )
    totals = pl.col("n", "ones").sum().over("store")
    n_left, left_ones = pl.col("n_left"), pl.col("ones_left")
    n_right, right_ones = pl.col("n_all") - n_left, pl.col("ones_all") - left_ones
    score = (
        2
        * (
            left_ones * (n_left - left_ones) / n_left
            + right_ones * (n_right - right_ones) / n_right
        )
        / pl.col("n_all")
    )
    return (
        ascending.sort("store", "x")
        .with_columns(
            pl.col("n", "ones").cum_sum().over("store").name.suffix("_left"),
            totals.name.suffix("_all"),
        )
        .filter(
            (pl.col("x") != pl.col("x").shift(-1)) | (pl.col("store") != pl.col("store").shift(-1)),
            n_left < pl.col("n_all"),
        )
        .select("store", "x", score=score)
        .group_by("store")
        .agg(threshold=pl.col("x").min_by("score"), score=pl.col("score").min())
        .collect(engine="streaming")
    )


def _answer(table: pl.DataFrame) -> Answer:
    found = table.filter(pl.col("score").is_not_null()).sort("store")
    return {
        "segments": found.height,
        "threshold": float(found["threshold"].sum()),
        "score": float(found["score"].sum()),
    }


def _sorted(frame: pl.DataFrame) -> Any:
    return frame.sort("store", "x0")


WORKS = (
    Work(
        name="segments",
        title="best split of 1 column in each segment of 1,000 rows",
        data=segments,
        rows=10_000_000,
        columns=1,
        contenders=(
            Contender(OURS, _prepare, _ours, _answer, role="ours", package=OURS),
            Contender(OVER, _prepare, _over, _answer),
            Contender(SORT, _prepare, _sorted, lambda _: {}, role="floor", exact=False),
        ),
        demands=(Demand(SORT, at_most=1.7),),
    ),
)
"""Ten thousand stumps in one query."""
