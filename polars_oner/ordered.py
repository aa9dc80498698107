"""Counts of ordered features with more values than memory holds, in chunks upwards.

The first pass over the source is shared by all features. It counts each by value as long as the table
stays small, which for most features is all there is to do. A feature that outgrows its table is counted
by coarse bins from there on. Bins that hold too much are divided, and neighbouring ones put together
to ranges of the axis that hold no more than asked for; then a pass each counts one range after the
other by value. How many passes that takes follows from the rows of the feature and the size of a
chunk alone: all values of a pass have to be held, so sharing it among features would save none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.binning import Bins, CodeRanges, Codes, as_float, choose_bins, decode, encode
from polars_oner.counts import (
    Measure,
    Tally,
    count_batch,
    count_plan,
    measure_of,
    progress_bar,
    shared_pass,
)
from polars_oner.frame import Column, as_lazy, column, is_missing
from polars_oner.target import ClassTarget, NumberTarget, row_weight, with_target
from polars_oner.typing import Engine

CHUNK_ROWS = 1 << 23
"""Rows of a chunk: counting 8 million distinct values takes 0.9 GB in all (measured)."""

_SHARED_PART = 2
_OWN_PART = 8
"""All features together may hold this part of a chunk in the first pass, and a single one this."""

_N_BINS = 1 << 16
_FEWEST_BINS = 16
_SAMPLE = 50_000

_EXACT = 2.0**53
"""Up to here every whole number is a Float64 of its own."""


def ordered_counts(
    frame: pl.DataFrame | pl.LazyFrame,
    features: Sequence[Column],
    target: ClassTarget | NumberTarget,
    *,
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
    n_rows: int = CHUNK_ROWS,
) -> dict[str, Iterator[pl.DataFrame]]:
    """Count ordered features without holding all their values.

    Parameters
    ----------
    frame
        The user's frame. Rows without a target are left out.
    features
        The features to count, all of them ordered.
    target
        The target, looked at before.
    weights
        Column of row weights.
    engine, progress
        As in `shared_pass`.
    n_rows
        Rows that a chunk may have, the missing values aside; the first pass holds no more for all
        features together. Only values that share a Float64, which are more than one for integers
        beyond 2**53 and for decimals, stay together whatever their number.

    Returns
    -------
    dict of iterator of DataFrame
        For each feature its table of `counts.count_plan` in consecutive chunks, at least one, missing
        values first. All rows of a value lie in one chunk. The first pass is done when the call
        returns; passes for further chunks run as these are asked for.
    """
    lazy = as_lazy(frame)
    measure = measure_of(target)
    short = [Column(f"x{i}", feature.dtype, feature.kind) for i, feature in enumerate(features)]
    rows = with_target(lazy, target.name, target.dtype, weights).select(
        *measure.per_row(row_weight(lazy.collect_schema(), weights)),
        *(
            column(feature.name).alias(alias.name)
            for feature, alias in zip(features, short, strict=True)
        ),
    )
    source = _Source(rows, measure, target.n_rows, engine, progress)
    n_classes = len(target.classes) if isinstance(target, ClassTarget) else 1
    limit = n_rows // max(_SHARED_PART * len(features), _OWN_PART)
    axes = [_Axis(alias, source, max(limit, n_classes), n_classes) for alias in short]

    def consume(batch: pl.DataFrame) -> None:
        counted = [axis for axis in axes if axis.bins is None]
        for axis in axes:
            if axis.bins is not None:
                axis.place(batch)
        for axis, table in zip(counted, source.count(batch, counted), strict=True):
            axis.add(table)

    source.read(rows, consume, "counting values")
    return {feature.name: axis.chunks(n_rows) for feature, axis in zip(features, axes, strict=True)}


@dataclass(frozen=True)
class _Source:
    """The rows that count, under internal names, and how they are read."""

    rows: pl.LazyFrame
    measure: Measure
    n_rows: float
    engine: Engine
    progress: bool

    def read(self, plan: pl.LazyFrame, consume: Callable[[pl.DataFrame], None], label: str) -> None:
        """Stream a plan over the rows."""
        shared_pass(
            plan,
            consume,
            n_columns=len(plan.collect_schema()),
            n_rows=self.n_rows,
            label=label,
            engine=self.engine,
            progress=self.progress,
        )

    def count(self, batch: pl.DataFrame, axes: Sequence[_Axis]) -> list[pl.DataFrame]:
        """Count some features of a batch by value."""
        return count_batch(batch, [axis.feature for axis in axes], self.measure)

    def tally(self) -> Tally:
        """Start to add tables of counts up."""
        return Tally(["value", *self.measure.keys], self.measure.sums)


@dataclass(frozen=True)
class _Cells:
    """Stretches of an axis that hold rows, upwards, by their smallest and largest code.

    ``height`` is the most rows that a table of their counts can have.
    """

    low: Codes
    high: Codes
    height: Codes


class _Axis:
    """A feature on its way: counted by value first, by bins when the values become too many."""

    def __init__(self, feature: Column, source: _Source, limit: int, n_classes: int) -> None:
        self.feature = feature
        self.source = source
        self.limit = limit
        self.n_classes = n_classes
        self.tally = source.tally()
        self.bins: Bins | None = None
        self.heights: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def add(self, table: pl.DataFrame) -> None:
        """Take in the counts of a batch."""
        self.tally.add(table)
        if isinstance(self.feature.dtype, (pl.Enum, pl.Boolean)):
            return
        if sum(part.height for part in self.tally.parts) > self.limit:
            values = self.tally.total().select("value")
            if values.height > self.limit:
                self.tally = self.source.tally()
                floats = self._floats(values, "value")
                self.bins = choose_bins(floats[:: max(len(floats) // _SAMPLE, 1)], _N_BINS)
                self.heights = np.bincount(self.bins(floats), minlength=self.bins.n + 1)

    def place(self, batch: pl.DataFrame) -> None:
        """Take in the rows of a batch by their bins."""
        assert self.bins is not None
        places = self.bins(self._floats(batch, self.feature.name))
        self.heights += np.bincount(places, minlength=self.bins.n + 1)

    def chunks(self, n_rows: int) -> Iterator[pl.DataFrame]:
        """Give the counts in chunks, upwards, each from a pass of its own."""
        if self.bins is None:
            yield self.tally.total()
            return
        cells = self._cells(self.bins, self.heights)
        while (is_wide := (cells.height > n_rows) & (cells.low < cells.high)).any():
            cells = self._divide(cells, is_wide)
        upto, start = np.cumsum(cells.height), 0
        shown = self.source.progress
        with progress_bar(int(upto[-1]), "counting ranges") if shown else nullcontext() as bar:
            while start < len(upto):
                before = upto[start] - cells.height[start]
                stop = max(int(np.searchsorted(upto, before + n_rows, side="right")), start + 1)
                yield self._count(cells.low[start], cells.high[stop - 1], with_missing=start == 0)
                if bar is not None:
                    bar.update(int(upto[stop - 1] - before))
                start = stop

    def _cells(self, bins: Bins, heights: npt.NDArray[np.int64]) -> _Cells:
        """Turn bins, the first of which is no part of the axis, to cells."""
        taken = np.flatnonzero(heights[1:]) + 1
        low, high = bins.ranges(taken)
        # No value has the code of -0.0, which equals 0.0.
        low, high = np.where(low == -1, 0, low), np.where(high == -1, -2, high)
        is_whole = self.feature.dtype.is_integer() or self.feature.dtype.is_temporal()
        if is_whole:
            low, high = encode(np.ceil(decode(low))), encode(np.floor(decode(high)))
        is_single = low == high
        if not self.feature.dtype.is_float():
            is_single &= is_whole & (np.abs(decode(low)) < _EXACT)
        height = np.where(is_single, np.minimum(heights[taken], self.n_classes), heights[taken])
        return _Cells(low, high, height)

    def _divide(self, cells: _Cells, is_wide: npt.NDArray[np.bool_]) -> _Cells:
        """Divide some cells, in one pass."""
        each = max(_N_BINS // int(is_wide.sum()), _FEWEST_BINS)
        finer = CodeRanges.divide(cells.low[is_wide], cells.high[is_wide], each)
        heights = np.zeros(finer.n + 1, dtype=np.int64)

        def consume(batch: pl.DataFrame) -> None:
            places = finer(batch["place"].to_numpy())
            np.add(heights, np.bincount(places, minlength=len(heights)), out=heights)

        plan = self.source.rows.select(as_float(self.feature).alias("place"))
        self.source.read(plan, consume, "dividing bins")
        found = self._cells(finer, heights)
        low = np.concatenate([cells.low[~is_wide], found.low])
        upwards = np.argsort(low)
        return _Cells(
            low[upwards],
            np.concatenate([cells.high[~is_wide], found.high])[upwards],
            np.concatenate([cells.height[~is_wide], found.height])[upwards],
        )

    def _count(self, low: np.int64, high: np.int64, *, with_missing: bool) -> pl.DataFrame:
        """Count the values in a range of codes, in one pass."""
        start, end = decode(np.array([low, high])).tolist()
        place = as_float(self.feature)
        inside = place.is_between(start, end)
        if with_missing:
            inside |= is_missing(place, pl.Float64())
        # One group-by: adding up the tables of batches would take twice the time and memory.
        plan = count_plan(self.source.rows.filter(inside), self.feature, self.source.measure)
        return plan.collect(engine=self.source.engine)

    def _floats(self, rows: pl.DataFrame, name: str) -> npt.NDArray[np.float64]:
        return rows.select(as_float(self.feature, pl.col(name))).to_series().to_numpy()
