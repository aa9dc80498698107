"""Holte's walk: the ordered values of a feature, grouped into intervals that favour one class.

The walk goes upwards through the distinct values. The open interval takes the next value while its
majority class has fewer than ``min_bucket`` rows, or while the next value's own majority class is
the same. Neighbours with equal majority are joined at the end.

No Python loop runs over the values. From a given start, a class is first to reach ``min_bucket`` rows at
a place that a search on cumulative counts finds; from there on, the interval's majority class cannot
change while it takes values of that class, so its end is the end of a run of such values. This gives
the end of an interval from *every* start at once; following them from the first value gives the walk.

The walk is an automaton that reads from left to right: it takes the counts in chunks, and what it
carries from one to the next, the open interval, acts in the next chunk as one value.

References
----------
Holte, R. C. (1993). Very simple classification rules perform well on most commonly used datasets.
*Machine Learning* 11, 63-91.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.typing import Ties

Counts = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Ranks = npt.NDArray[np.integer[Any]]
"""Classes by their place in a `tie_order`."""

_CHUNK_ROWS = 1 << 17
"""A chunk of about this many rows fits the processor's cache (measured)."""


@dataclass(frozen=True)
class Intervals:
    """Intervals of an ordered feature, upwards.

    Attributes
    ----------
    first, last
        Smallest and largest value of each interval, in the feature's dtype.
    counts
        One row per interval and class that occurs in it, ascending: ``case`` UInt32, the number of
        the interval; ``class`` UInt32; ``n`` in the dtype of the counts walked over.
    """

    first: pl.Series
    last: pl.Series
    counts: pl.DataFrame


def tie_order(totals: Counts, ties: Ties) -> Indices:
    """Order the classes so that among tied ones the first is the one that the policy takes.

    Parameters
    ----------
    totals
        Training rows of each class, in class order.
    ties
        ``"rare"`` takes the class with the fewest training rows, ``"frequent"`` that with the most,
        ``"first"`` the first in class order, which also decides between classes of equal size.
    """
    if ties == "first":
        return np.arange(len(totals))
    return np.argsort(totals if ties == "rare" else -totals, kind="stable")


def tie_ranks(order: Indices) -> Indices:
    """Give each class's place in a `tie_order`."""
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def group_starts(keys: npt.NDArray[Any]) -> Indices:
    """Find the first row of each run of equal keys."""
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])


def majorities(starts: Indices, ranks: Ranks, n: Counts) -> tuple[Counts, Ranks]:
    """Find the largest count of each group, and the rank of the class that has it.

    Parameters
    ----------
    starts
        Where each group starts; no group is empty.
    ranks
        The class of each row, by its place in `tie_order`: the lowest wins a tie.
    n
        The count of each row.
    """
    if len(starts) == len(n):
        return n, ranks
    most = np.maximum.reduceat(n, starts)
    sizes = np.diff(starts, append=len(n))
    tied = n == np.repeat(most, sizes)
    return most, np.minimum.reduceat(np.where(tied, ranks, np.iinfo(ranks.dtype).max), starts)


def walk(chunks: Iterable[pl.DataFrame], order: Indices, min_bucket: float) -> Intervals:
    """Group ordered values into intervals.

    Parameters
    ----------
    chunks
        Consecutive parts of a count table, ascending by ``value``: columns ``value`` (no nulls),
        ``class`` and ``n`` (> 0). All rows of a value lie in one chunk. At least one chunk, which may
        be empty.
    order
        The `tie_order` of the classes.
    min_bucket
        Rows that the majority class of an interval needs before the interval may end. The last
        interval may have fewer.

    Returns
    -------
    Intervals
        No interval if there was no value.
    """
    walker = _Walker(tie_ranks(order), min_bucket)
    for chunk in chunks:
        walker.take(chunk)
    return _join(walker.close(), order)


def in_chunks(table: pl.DataFrame, n_rows: int = _CHUNK_ROWS) -> Iterator[pl.DataFrame]:
    """Slice a count table into chunks for `walk`, never inside a value."""
    values, start = table["value"], 0
    while start < table.height:
        last = min(start + n_rows, table.height) - 1
        stop = int(values.search_sorted(values[last : last + 1], side="right").item())
        yield table[start:stop]
        start = stop
    if table.is_empty():
        yield table


@dataclass(frozen=True)
class _Blocks:
    """Blocks of values that an interval takes all or none of, upwards.

    ``edges`` tells where in the series of values each block begins, and where the last one ends. A
    block has one row per class that occurs in it: ``starts`` is its first row, ``codes`` and ``n`` are
    the class (by its rank) and the count of each row. ``by_class`` sorts the rows by class.
    """

    edges: Indices
    starts: Indices
    codes: Ranks
    n: Counts
    by_class: Indices

    def of_rows(self, of_blocks: Indices) -> Indices:
        """Give each row what its block has."""
        if len(self.starts) == len(self.n):
            return of_blocks
        return np.repeat(of_blocks, np.diff(self.starts, append=len(self.n)))


class _Walker:
    """The walk's state between chunks: the intervals that have ended, and the open one."""

    def __init__(self, ranks: Indices, min_bucket: float) -> None:
        # Narrow integers are sorted by radix.
        self.ranks = ranks.astype(np.min_scalar_type(len(ranks)))
        self.min_bucket = min_bucket
        self.n_ended = 0
        self.ended: list[Intervals] = []
        self.open: Intervals | None = None

    def take(self, chunk: pl.DataFrame) -> None:
        """Walk on over a chunk, ending every interval whose next value is at hand."""
        values = chunk["value"]
        if chunk.is_empty():
            none = np.zeros(0, dtype=np.uint32)
            counts = _case_counts(none, none, chunk["n"].to_numpy())
            self._end(Intervals(values, values, counts))
            return
        held = None if self.open is None else self.open.counts
        if self.open is not None:
            values = pl.concat([self.open.first, self.open.last, values])
        blocks = _blocks(chunk, self.ranks, held)
        ends, leaders = _ends(blocks, self.min_bucket)
        heads = _follow(ends)
        # All but the last have ended; neighbours of equal majority among them are one.
        leads, is_first = leaders[heads[:-1]], np.ones(len(heads), dtype=np.bool_)
        is_first[1:-1] = leads[1:] != leads[:-1]
        heads = heads[is_first]
        first = blocks.edges[heads]
        last = np.append(first[1:], blocks.edges[-1]) - 1
        found = Intervals(values.gather(first), values.gather(last), _add_up(blocks, heads))
        self._end(_part(found, 0, len(heads) - 1))
        self.open = _part(found, len(heads) - 1, len(heads))

    def close(self) -> Intervals:
        """End the open interval and give all of them, with ranks in place of classes."""
        if self.open is not None:
            self._end(self.open)
            self.open = None
        return Intervals(
            pl.concat([part.first for part in self.ended]),
            pl.concat([part.last for part in self.ended]),
            pl.concat([part.counts for part in self.ended]),
        )

    def _end(self, part: Intervals) -> None:
        counts = part.counts.with_columns(pl.col("case") + self.n_ended)
        self.ended.append(Intervals(part.first, part.last, counts))
        self.n_ended += len(part.first)


def _blocks(chunk: pl.DataFrame, ranks: Ranks, held: pl.DataFrame | None) -> _Blocks:
    """Gather the values of a chunk into blocks, behind the counts of the open interval if there is one.

    Neighbouring values that have rows of one class only, and the same, are a block: an interval
    that takes the first of them either is led by this class then, or fills up with it on the way.
    """
    values, classes, n = chunk["value"], chunk["class"].to_numpy(), chunk["n"].to_numpy()
    begins = np.ones(len(n) + 1, dtype=np.bool_)
    begins[1:-1] = (values[1:] != values[:-1]).to_numpy()
    is_pure = begins[1:] & begins[:-1]
    is_kept = np.ones(len(n), dtype=np.bool_)
    is_kept[1:] = ~(is_pure[1:] & is_pure[:-1] & (classes[1:] == classes[:-1]))
    kept = np.flatnonzero(is_kept)
    codes, n = ranks[classes[kept]], np.add.reduceat(n, kept)
    starts = np.flatnonzero(begins[kept])
    edges = np.append(kept[starts], len(is_kept))
    if held is not None:
        # The open interval is the first block; its first and last value stand before the others.
        edges = np.concatenate([[0], edges + 2])
        starts = np.concatenate([[0], starts + held.height])
        codes = np.concatenate([held["class"].to_numpy().astype(codes.dtype), codes])
        n = np.concatenate([held["n"].to_numpy(), n])
    return _Blocks(edges, starts, codes, n, np.argsort(codes, kind="stable"))


def _ends(blocks: _Blocks, min_bucket: float) -> tuple[Indices, Ranks]:
    """Find where an interval that starts at each block would end.

    Returns
    -------
    ends
        For each block the number of the first block that the interval does not take; the number of
        blocks if it takes all there are.
    leaders
        The rank of the class that leads the interval in the end. Shorter than ``ends``: from the last
        blocks on no class reaches min_bucket.
    """
    starts, n_blocks = blocks.starts, len(blocks.starts)
    own = majorities(starts, blocks.codes, blocks.n)[1]
    full = _full(blocks, min_bucket)
    roots = np.arange(len(full))

    # Only a class that occurs in the block where one fills up can be the one.
    leaders = own[full]
    is_mixed = np.diff(starts, append=len(blocks.n))[full] > 1
    unsure = np.flatnonzero(is_mixed & (full > roots))
    if len(unsure):
        leaders[unsure] = _leaders(blocks, unsure, full[unsure])

    # From there on it takes the blocks whose own majority class leads it already.
    turns = np.append(np.flatnonzero(own[1:] != own[:-1]) + 1, n_blocks)
    run_end = np.repeat(turns, np.diff(turns, prepend=0))
    after = full + 1
    onward = np.minimum(after, n_blocks - 1)
    ends = np.full(n_blocks, n_blocks)
    ends[: len(full)] = np.where(own[onward] == leaders, run_end[onward], after)
    return ends, leaders


def _full(blocks: _Blocks, min_bucket: float) -> Indices:
    """Find the block in which a class is first to reach min_bucket, counted from each block on.

    Blocks from which none does, the last so many, are left out.
    """
    by_class, n_blocks = blocks.by_class, len(blocks.starts)
    codes_c, n_c = blocks.codes[by_class], blocks.n[by_class]
    blocks_c, sums_c = blocks.of_rows(np.arange(n_blocks))[by_class], np.cumsum(n_c)
    first_c = group_starts(codes_c)
    stop_c = np.repeat(np.append(first_c[1:], len(n_c)), np.diff(first_c, append=len(n_c)))

    # The block at which the class of a row reaches min_bucket, counted from that row on ...
    at = np.searchsorted(sums_c, sums_c - n_c + min_bucket)
    reached = np.empty_like(blocks_c)
    reached[by_class] = np.where(at < stop_c, np.append(blocks_c, n_blocks)[at], n_blocks)
    # ... so the block at which any class does, counted from a block on, is the least of those to come.
    if len(reached) > n_blocks:
        reached = np.minimum.reduceat(reached, blocks.starts)
    full = np.minimum.accumulate(reached[::-1])[::-1]
    return full[: np.searchsorted(full, n_blocks)]


def _leaders(blocks: _Blocks, roots: Indices, full: Indices) -> Ranks:
    """Find the class with the most rows from each root to ``full``, among those that occur there."""
    by_class, n_blocks = blocks.by_class, len(blocks.starts)
    n_rivals = np.diff(blocks.starts, append=len(blocks.n))[full]
    starts = np.cumsum(n_rivals) - n_rivals
    rows = np.arange(n_rivals.sum()) + np.repeat(blocks.starts[full] - starts, n_rivals)
    rivals = blocks.codes[rows].astype(np.intp)
    # Sorted by class, a rival's rows from the root to the full block lie side by side.
    place = np.empty_like(by_class)
    place[by_class] = np.arange(len(place))
    before = np.concatenate([np.zeros(1, dtype=blocks.n.dtype), np.cumsum(blocks.n[by_class])])
    key = (blocks.codes.astype(np.intp) * n_blocks + blocks.of_rows(np.arange(n_blocks)))[by_class]
    first = np.searchsorted(key, rivals * n_blocks + np.repeat(roots, n_rivals))
    return majorities(starts, rivals, before[place[rows] + 1] - before[first])[1]


def _follow(ends: Indices) -> Indices:
    """List where the intervals of the walk start, following each one's end from the first block."""
    # The one loop: a step per interval, over plain integers (0.1 s for 600,000 intervals).
    start, heads, jump, n_blocks = 0, [], memoryview(ends.data), len(ends)
    while start < n_blocks:
        heads.append(start)
        start = jump[start]
    return np.array(heads)


def _add_up(blocks: _Blocks, heads: Indices) -> pl.DataFrame:
    """Add up the rows of each interval and class."""
    marks = np.zeros(len(blocks.starts), dtype=np.intp)
    marks[heads[1:]] = 1
    cases_c = blocks.of_rows(np.cumsum(marks))[blocks.by_class]
    codes_c = blocks.codes[blocks.by_class]
    first = group_starts(codes_c.astype(np.intp) * len(heads) + cases_c)
    upwards = np.argsort(cases_c[first], kind="stable")
    sums = np.add.reduceat(blocks.n[blocks.by_class], first)
    return _case_counts(cases_c[first][upwards], codes_c[first][upwards], sums[upwards])


def _case_counts(cases: npt.NDArray[Any], codes: npt.NDArray[Any], n: Counts) -> pl.DataFrame:
    return pl.DataFrame({"case": cases.astype(np.uint32), "class": codes.astype(np.uint32), "n": n})


def _part(found: Intervals, start: int, stop: int) -> Intervals:
    inside = found.counts.filter(pl.col("case").is_between(start, stop - 1))
    counts = inside.with_columns(pl.col("case") - start)
    return Intervals(found.first[start:stop], found.last[start:stop], counts)


def _join(found: Intervals, order: Indices) -> Intervals:
    """Join neighbours with equal majority, and name the classes again."""
    if len(found.first) == 0:
        return found
    cases, codes = found.counts["case"], found.counts["class"].to_numpy().astype(np.intp)
    starts = group_starts(cases.to_numpy())
    own = majorities(starts, codes, found.counts["n"].to_numpy())[1]
    is_head = np.concatenate([[True], own[1:] != own[:-1]])
    heads = np.flatnonzero(is_head)
    tails = np.append(heads[1:], len(own)) - 1
    joined = (np.cumsum(is_head) - 1).astype(np.uint32)
    counts = found.counts.with_columns(
        pl.Series("case", joined[cases.to_numpy()]),
        pl.Series("class", order[codes].astype(np.uint32)),
    )
    counts = counts.group_by("case", "class").agg(pl.col("n").sum()).sort("case", "class")
    return Intervals(found.first.gather(heads), found.last.gather(tails), counts)
