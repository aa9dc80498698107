"""Bins made by splitting the best first, and bins joined until few enough are left."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from polars_oner.criteria import Criterion
from polars_oner.number_line import NumberLine
from polars_oner.scores import Search, candidates, first_best

Best = dict[str, Any]
"""The best split of a bin, as `scores.candidates` tells it."""

_c = pl.col


def grown(
    line: NumberLine,
    criterion: Criterion,
    max_bins: int | None,
    accepts: Callable[[pl.DataFrame, Best], bool],
) -> pl.Series:
    """Split the bin whose best split takes most off the criterion, until none is acceptable."""
    queue: list[tuple[float, int, pl.DataFrame, Best]] = []

    def offer(*pieces: pl.DataFrame) -> None:
        for piece, best in zip(pieces, best_splits(pieces, criterion), strict=True):
            if best is not None and accepts(piece, best):
                taken_off = (best["before"] - best["score"]) * (best["n_left"] + best["n_right"])
                heapq.heappush(queue, (-taken_off, piece["value"][0], piece, best))

    gaps: list[tuple[int, int]] = []
    offer(line.counts)
    while queue and (max_bins is None or len(gaps) < max_bins - 1):
        _, _, piece, best = heapq.heappop(queue)
        gaps.append((best["value"], best["next"]))
        below = _c("value") <= best["value"]
        offer(piece.filter(below), piece.filter(~below))
    return line.midway(gaps)


def best_splits(pieces: Sequence[pl.DataFrame], criterion: Criterion) -> list[Best | None]:
    """Find the best split of each count table, all in one plan; None where there is none."""
    search = Search(criterion, "ordered", missing="drop", by=("piece",), has_missing=False)
    table = pl.concat(
        piece.lazy().with_columns(piece=pl.lit(i, pl.Int64)) for i, piece in enumerate(pieces)
    )
    best = first_best(candidates(table, search), search.by).collect()
    found = {row["piece"]: row for row in best.iter_rows(named=True)}
    return [found.get(i) for i in range(len(pieces))]


def joined(line: NumberLine, found: pl.DataFrame, max_bins: int) -> list[int]:
    """Join neighbouring bins until ``max_bins`` are left, and tell which cuts remain.

    Each time the two are joined that adds the fewest rows outside the majority class of their bin;
    of equally good pairs the lowest. Pairs that add none are joined beyond that.
    """
    ends = line.n_below(found["cut"]).to_numpy()
    bins = np.searchsorted(ends, line.counts["value"].to_numpy(), side="right")
    rows = np.zeros((found.height + 1, line.counts["class"].to_numpy().max() + 1))
    np.add.at(rows, (bins, line.counts["class"].to_numpy()), line.counts["n"].to_numpy())

    def added(first: int, second: int) -> float:
        # The rows outside the majority are all rows less the largest count.
        largest = rows[first].max() + rows[second].max() - (rows[first] + rows[second]).max()
        return float(largest)

    after = [*range(1, found.height + 1), -1]
    before = [-1, *range(found.height)]
    costs = np.array([added(first, second) for first, second in pairwise(range(len(rows)))])
    n_bins = len(rows)
    while n_bins > max_bins or costs.min() == 0:
        n_bins -= 1
        first = int(costs.argmin())
        second = after[first]
        rows[first] += rows[second]
        after[first] = after[second]
        costs[first] = np.inf
        if after[first] >= 0:
            before[after[first]] = first
            costs[second] = np.inf
            costs[first] = added(first, after[first])
        if before[first] >= 0:
            costs[before[first]] = added(before[first], first)
    # The cut below a bin remains if the bin still stands by itself.
    alive, bin_ = [], after[0]
    while bin_ >= 0:
        alive.append(bin_ - 1)
        bin_ = after[bin_]
    return alive
