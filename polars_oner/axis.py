"""The axis of an ordered feature: what the passes have told of it so far.

It starts as the bins of the first pass, its *cells*. Those that cannot hold the best cut are closed and
joined to stretches, the others stay open, until they have been divided or counted by value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.binning import FIRST, Bins, CodeRanges, Codes, EqualWidth, Runs, as_float, encode
from polars_oner.frame import Column, canonical_dtype

Sums = npt.NDArray[np.int64 | np.float64]
"""Class counts or moments: a row for each of these."""

Flags = npt.NDArray[np.bool_]

_SHORT_STRETCH = 2.0**-12
"""Closed stretches between open cells with less than this share of the rows stay open."""

_c = pl.col


@dataclass(frozen=True)
class Cells:
    """Stretches of an axis in ascending order.

    Attributes
    ----------
    low, high
        The first and the last code of each; until the axis is first closed, its bin twice.
    rows
        Their rows, or what these weigh.
    sums
        Their class counts or moments, a column per cell.
    is_open
        Whether the best cut may lie inside.
    """

    low: Codes
    high: Codes
    rows: Sums
    sums: Sums
    is_open: Flags

    def __len__(self) -> int:
        """Give the number of cells."""
        return len(self.low)

    def __getitem__(self, which: Flags | Codes) -> Cells:
        """Choose cells."""
        return Cells(
            self.low[which],
            self.high[which],
            self.rows[which],
            self.sums[:, which],
            self.is_open[which],
        )

    @property
    def is_wide(self) -> Flags:
        """Whether a cell has more than one code."""
        return self.low < self.high

    @property
    def open(self) -> Cells:
        """Give the open cells."""
        return self[self.is_open]

    def merged(self, other: Cells) -> Cells:
        """Put the cells of two parts of an axis in order."""
        both = Cells(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.sums, other.sums], axis=1),
            np.concatenate([self.is_open, other.is_open]),
        )
        return both[np.argsort(both.low)]

    def joined(self, starts: Codes) -> Cells:
        """Join the cells from each start up to the next."""
        ends = np.append(starts[1:], len(self)) - 1
        return Cells(
            self.low[starts],
            self.high[ends],
            np.add.reduceat(self.rows, starts),
            np.add.reduceat(self.sums, starts, axis=1),
            self.is_open[starts],
        )


class Axis:
    """What is known of an ordered feature between passes.

    Attributes
    ----------
    cells
        The stretches that are not counted by exact value.
    values
        The count tables of those that have been.
    missing
        The statistics of the missing rows.
    is_beaten
        Whether another feature's best cut is better than any of this one.
    least_bound, before
        The least bound of its cells, and the score of its unsplit rows.
    is_stubborn
        Whether finer bins would close few more rows, so that these are to be counted.
    """

    cells: Cells
    missing: Sums

    def __init__(self, feature: Column, measures: list[str], rows: pl.DataType) -> None:
        self.feature = feature
        self.measures = measures
        self.row_dtype = rows
        self.values: list[pl.DataFrame] = []
        self.is_beaten = False
        self.least_bound = -np.inf
        self.before = 0.0
        self.is_stubborn = False
        self._first_bins: Bins | None = None
        self._has_codes = False

    def is_single(self) -> Flags:
        """Tell which cells hold a single value of the feature."""
        dtype = self.feature.dtype
        small = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32, pl.Date)
        if not self._has_codes or not (dtype.is_float() or isinstance(dtype, small)):
            return np.zeros(len(self.cells), dtype=np.bool_)
        return ~self.cells.is_wide

    @property
    def open_rows(self) -> float:
        """Rows in open cells that hold more than one code."""
        return float(self._wide_rows().sum())

    @property
    def heaviest_run(self) -> float:
        """Rows in the fullest of those cells."""
        return float(self._wide_rows().max(initial=0))

    def _wide_rows(self) -> Sums:
        return self.cells.rows[self.cells.is_open & self.cells.is_wide]

    @property
    def is_open(self) -> bool:
        """Whether some cell is still to be looked at."""
        return not self.is_beaten and bool(self.cells.is_open.any())

    def fill(self, bins: Bins, sums: Sums) -> None:
        """Take in the statistics of a pass, a column per bin, as new open cells.

        The first is that of missing values in the first pass, and of no meaning later.
        """
        is_first = self._first_bins is None
        sums = sums.astype(np.result_type(sums, np.int64), order="C", copy=False)
        rows: Sums = sums.sum(axis=0) if self.by_class else sums[0]
        taken = np.flatnonzero(rows[1:]) + 1
        # Codes of equal widths are found when the cells are joined to runs: most never need them.
        self._has_codes = not isinstance(bins, EqualWidth)
        low, high = bins.ranges(taken) if self._has_codes else (taken, taken)
        cells = Cells(low, high, rows[taken], sums[:, taken], np.ones(len(taken), dtype=np.bool_))
        if is_first:
            self._first_bins = bins
            self.missing = sums[:, 0].copy()
            self.cells = cells
        else:
            self.cells = self.cells[~self.cells.is_open].merged(cells)

    def close(self, is_open: Flags, longest: float) -> None:
        """Keep the marked cells open, close the others, and join neighbours of one kind.

        Open runs have at most about ``longest`` rows, closed stretches any number. A closed stretch
        of few rows between open cells stays open: to count it is cheaper than to step over it.
        """
        cells = self.cells
        starts = _starts(is_open[1:] != is_open[:-1])
        is_short = np.add.reduceat(cells.rows, starts) <= cells.rows.sum() * _SHORT_STRETCH
        is_short[[0, -1]] = False
        is_open = is_open | np.repeat(is_short, np.diff(np.append(starts, len(cells))))
        portion = cells.rows.cumsum() // longest
        # A cell fuller than that stays by itself: together with others it might never get narrower.
        is_alone = is_open & (cells.rows > longest)
        cells = Cells(cells.low, cells.high, cells.rows, cells.sums, is_open).joined(
            _starts(
                (is_open[1:] != is_open[:-1])
                | (is_open[1:] & (portion[1:] != portion[:-1]))
                | is_alone[1:]
                | is_alone[:-1]
            )
        )
        if not self._has_codes:
            assert self._first_bins is not None
            low, high = self._first_bins.ranges(np.concatenate([cells.low, cells.high]))
            n = len(cells)
            cells = Cells(low[:n], high[n:], cells.rows, cells.sums, cells.is_open)
            self._has_codes = True
        self.cells = cells

    def runs(self, cells: Cells) -> Runs:
        """Give the test of values for some open cells."""
        assert self._first_bins is not None
        return Runs(cells.low, cells.high, self._first_bins)

    def divide(self, n: int) -> CodeRanges:
        """Divide the open runs into about ``n`` bins in all."""
        runs = self.cells.open
        return CodeRanges.divide(runs.low, runs.high, max(n // len(runs), 16))

    def take(self, runs: Cells, values: pl.DataFrame) -> None:
        """Replace open runs by the counts of the values in them."""
        place = values.select(as_float(self.feature, _c("value"))).to_series().to_numpy()
        codes = encode(place)
        counted = values.with_columns(
            exact=pl.lit(value=True),
            low=pl.Series(codes),
            at=pl.int_range(pl.len()),
            run=pl.Series(runs.low[np.searchsorted(runs.low, codes, side="right") - 1]),
        )
        self.values.append(counted)
        self.cells = self.cells[~np.isin(self.cells.low, runs.low)]

    def lumped(self, best: pl.DataFrame) -> pl.LazyFrame:
        """Plan the counted values with lumps, but for neighbours of the best cut and ends of runs.

        The result is to take the place of ``values``.
        """
        wanted = pl.concat([best["value"], best["next"]]).drop_nulls().implode()
        value = _c("value")
        is_end = (value == value.first().over("run")) | (value == value.last().over("run"))
        marked = (
            pl.concat(self.values, how="diagonal")
            .lazy()
            .sort("low", "at")
            .with_columns(exact=_c("exact") & (is_end | value.is_in(pl.lit(wanted))))
            .with_columns(stretch=pl.struct("exact", "run").rle_id())
        )
        lumps = (
            marked.filter(~_c("exact"))
            .group_by("stretch", *(["class"] if self.by_class else []))
            .agg(
                _c("low", "at", "exact", "run").first(),
                _c([name for name in ("n", "s", "q") if not self.by_class or name == "n"]).sum(),
            )
            .with_columns(value=pl.lit(None, canonical_dtype(self.feature.dtype)))
        )
        both = [marked.filter("exact"), lumps]
        return pl.concat(both, how="diagonal").drop("stretch").sort("low", "at")

    def table(self) -> pl.DataFrame:
        """Give the count table: values where they were counted, lumps elsewhere, missing first."""
        parts = [
            self._long(np.array([FIRST - 1]), self.missing[:, np.newaxis], exact=True),
            self._long(self.cells.low, self.cells.sums, exact=False),
            *self.values,
        ]
        order = ["low", "at", *(["class"] if self.by_class else [])]
        return (
            pl.concat(parts, how="diagonal_relaxed")
            .sort(order)
            .drop("low", "at", "run", strict=False)
        )

    @property
    def by_class(self) -> bool:
        """Whether classes are counted, not moments."""
        return self.measures[0] != "n"

    def _long(self, low: Codes, sums: Sums, *, exact: bool) -> pl.DataFrame:
        """Write statistics side by side as a count table, its values null."""
        columns: dict[str, npt.NDArray[np.generic]]
        if self.by_class:
            label, place = np.nonzero(sums)
            columns = {"class": label.astype(np.uint32), "n": sums[label, place]}
        else:
            place = np.flatnonzero(sums[0])
            columns = {name: sums[i, place] for i, name in enumerate(self.measures)}
        return pl.DataFrame({"low": low[place], **columns}).with_columns(
            _c("n").cast(self.row_dtype),
            value=pl.lit(None, canonical_dtype(self.feature.dtype)),
            exact=pl.lit(value=exact),
            at=pl.lit(0, pl.Int64),
        )


def _starts(is_new: Flags) -> Codes:
    """Give where runs start, from whether each element but the first starts one."""
    return np.flatnonzero(np.append(True, is_new))
