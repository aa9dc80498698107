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

_CHUNK_ROWS = 1 << 20
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


def majorities(starts: Indices, ranks: Indices, n: Counts) -> tuple[Counts, Indices]:
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
    return most, np.minimum.reduceat(np.where(tied, ranks, np.iinfo(np.intp).max), starts)


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
    walker, ranks = _Walker(min_bucket), tie_ranks(order)
    for chunk in chunks:
        walker.take(chunk, ranks)
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


class _Walker:
    """The walk's state between chunks: the intervals that have ended, and the open one."""

    def __init__(self, min_bucket: float) -> None:
        self.min_bucket = min_bucket
        self.n_ended = 0
        self.ended: list[Intervals] = []
        self.open: Intervals | None = None

    def take(self, chunk: pl.DataFrame, ranks: Indices) -> None:
        """Walk on over a chunk, ending every interval whose next value is at hand."""
        starts = group_starts(chunk["value"].rle_id().to_numpy())
        firsts = lasts = chunk["value"].gather(starts)
        codes, n = ranks[chunk["class"].to_numpy()], chunk["n"].to_numpy()
        if self.open is not None:
            # The open interval comes first, as if it were one value.
            held = self.open.counts
            starts = np.concatenate([[0], starts + held.height])
            firsts = pl.concat([self.open.first, firsts])
            lasts = pl.concat([self.open.last, lasts])
            codes = np.concatenate([held["class"].to_numpy().astype(np.intp), codes])
            n = np.concatenate([held["n"].to_numpy(), n])
        heads = np.zeros(0, dtype=np.intp)
        if len(starts):
            heads = _follow(_ends(starts, codes, n, self.min_bucket))
        tails = np.append(heads, len(starts))[1:] - 1
        sizes = np.diff(starts[heads], append=len(n))
        cases = np.repeat(np.arange(len(heads), dtype=np.uint32), sizes)
        counts = pl.DataFrame({"case": cases, "class": codes.astype(np.uint32), "n": n})
        found = Intervals(firsts.gather(heads), lasts.gather(tails), _add_up(counts))
        self._end(_part(found, 0, len(heads) - 1))
        self.open = _part(found, len(heads) - 1, len(heads)) if len(heads) else None

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


def _ends(starts: Indices, codes: Indices, n: Counts, min_bucket: float) -> npt.NDArray[np.int64]:
    """Find where an interval that starts at each value would end.

    Parameters
    ----------
    starts
        The first row of each value.
    codes, n
        Class (by its rank) and count of each row.

    Returns
    -------
    ndarray
        For each value the number of the first value that the interval does not take; the number of
        values if it takes all there are.
    """
    n_values = len(starts)
    sizes = np.diff(starts, append=len(n))
    value_of_row = np.repeat(np.arange(n_values), sizes)
    by_class = np.argsort(codes, kind="stable")
    codes_c, values_c, sums_c = codes[by_class], value_of_row[by_class], np.cumsum(n[by_class])

    # The value at which the class of a row reaches min_bucket, counted from that row on ...
    before_c = sums_c - n[by_class]
    at = np.searchsorted(sums_c, before_c + min_bucket)
    within = np.minimum(at, len(n) - 1)
    reached = np.empty_like(value_of_row)
    reached[by_class] = np.where(
        (at < len(n)) & (codes_c[within] == codes_c), values_c[within], n_values
    )
    # ... so the value at which any class does, counted from a value on, is the least of those to come.
    full = np.minimum.accumulate(np.minimum.reduceat(reached, starts)[::-1])[::-1]

    # Only classes that occur at that value can have reached it there: one of them leads.
    rooted = np.flatnonzero(full < n_values)
    n_rivals = sizes[full[rooted]]
    rival_starts = np.cumsum(n_rivals) - n_rivals
    rows = np.arange(n_rivals.sum()) + np.repeat(starts[full[rooted]] - rival_starts, n_rivals)
    leaders = codes[rows]
    if len(rows) > len(rooted):
        place = np.empty_like(by_class)
        place[by_class] = np.arange(len(n))
        root = np.repeat(rooted, n_rivals)
        first = np.searchsorted(codes_c * n_values + values_c, leaders * n_values + root)
        held = sums_c[place[rows]] - before_c[first]
        leaders = majorities(rival_starts, leaders, held)[1]

    # From there on it takes the values whose own majority class leads it already.
    own = majorities(starts, codes, n)[1]
    turns = np.append(np.flatnonzero(own[1:] != own[:-1]) + 1, n_values)
    run_end = np.repeat(turns, np.diff(turns, prepend=0))
    ends = np.full(n_values, n_values)
    after = full[rooted] + 1
    onward = np.minimum(after, n_values - 1)
    taken = (after < n_values) & (own[onward] == leaders)
    ends[rooted] = np.where(taken, run_end[onward], after)
    return ends


def _follow(ends: npt.NDArray[np.int64]) -> Indices:
    """List where the intervals of the walk start, following each one's end from the first value."""
    # The one loop: a step per interval, over plain integers (0.1 s for 600,000 intervals).
    start, heads, jump, n_values = 0, [], memoryview(ends.data), len(ends)
    while start < n_values:
        heads.append(start)
        start = jump[start]
    return np.array(heads)


def _add_up(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.group_by("case", "class").agg(pl.col("n").sum()).sort("case", "class")


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
    return Intervals(found.first.gather(heads), found.last.gather(tails), _add_up(counts))
