"""The axis of an ordered feature, divided into bins that are counted, closed and divided again.

A value is placed by its *code*: the bits of the Float64 it equals, read so that they ascend with the
value. Bins are ranges of codes, so any bin but a single Float64 can be divided. (Integers beyond 2**53
share a Float64; they are told apart where rows are counted by value.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.frame import Column, canonical_dtype, column

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
"""Numbers of bins."""

_ALL_BUT_SIGN = np.int64(np.iinfo(np.int64).max)
_SHORT_STRETCH = 2.0**-12
"""Closed stretches between open cells with less than this share of the rows stay open."""

_CACHED_ROWS = 1 << 15
"""Rows handled at a time, so that what is computed of them stays in the processor's cache."""

_GUESS = 1 << 10
"""Codes around a computed edge among which the true one is looked for first."""

_c = pl.col


def encode(values: Floats) -> Codes:
    """Give the codes of floats: integers in the same order. Both zeros have code 0."""
    bits = (values + 0.0).view(np.int64)
    # Negative floats ascend as their bits descend.
    return bits ^ ((bits >> 63) & _ALL_BUT_SIGN)


def decode(codes: Codes) -> Floats:
    """Give the floats of codes."""
    return (codes ^ ((codes >> 63) & _ALL_BUT_SIGN)).view(np.float64)


_FIRST, _LAST = (int(code) for code in encode(np.array([-np.inf, np.inf])))


def as_float(feature: Column, values: pl.Expr | None = None) -> pl.Expr:
    """Give an ordered feature as Float64, which never reverses an order.

    Missing values stay null or NaN; both are NaN to numpy.
    """
    values = column(feature.name) if values is None else values
    if feature.dtype.is_temporal():
        values = values.to_physical()
    return values.cast(pl.Float64)


def in_cache(values: pl.Series) -> Iterator[tuple[int, Floats]]:
    """Give pieces of a column that a processor's cache holds, each with its place in the column.

    A column of many small chunks is put together first; else nothing is copied.
    """
    chunks = values.get_chunks()
    if len(chunks) * _CACHED_ROWS > 2 * len(values):
        chunks = [values.rechunk()]
    start = 0
    for chunk in chunks:
        whole = chunk.to_numpy()
        for at in range(0, len(whole), _CACHED_ROWS):
            part = whole[at : at + _CACHED_ROWS]
            yield start, part
            start += len(part)


class Bins(Protocol):
    """An order-preserving map from Float64 to bins 1, ..., ``n``."""

    @property
    def n(self) -> int:
        """Number of bins."""

    def __call__(self, values: Floats) -> Places:
        """Give the bin of each value; 0 for missing values and those outside all bins."""

    def ranges(self, bins: Codes) -> tuple[Codes, Codes]:
        """Give the smallest and the largest code of each bin."""


@dataclass(frozen=True)
class EqualWidth:
    """Bins of one width over a finite range; the outermost ones reach to the infinities.

    The width is one of values or, for values on many scales, of their codes.
    """

    low: float
    scale: float
    n: int
    by_code: bool = False

    def __call__(self, values: Floats) -> Places:
        """Give the bin of each value; every step of the formula keeps the order of its input."""
        with np.errstate(over="ignore"):
            z = encode(values).astype(np.float64) if self.by_code else values
            z = z - (self.low - 1.0 / self.scale)
            z *= self.scale
        np.clip(z, 1.0, self.n, out=z)
        # NaN goes through all of it, but its code is that of some number.
        lost = np.isnan(values)
        if lost.any():
            z[lost] = 0.0
        return z.astype(np.int64)

    def ranges(self, bins: Codes) -> tuple[Codes, Codes]:
        """Give the smallest and the largest code of each bin."""
        edges = self._edges(np.concatenate([bins, bins + 1]))
        return edges[: len(bins)], edges[len(bins) :] - 1

    def _edges(self, bins: Codes) -> Codes:
        """Search for the smallest code of each bin: rounding makes the formula for it unsafe."""
        with np.errstate(over="ignore"):
            start = self.low + (bins - 1) / self.scale
        guess = np.clip(start, _FIRST, _LAST).astype(np.int64) if self.by_code else encode(start)
        low, high = guess - _GUESS, guess + _GUESS
        is_low = (low > _FIRST) & (low < high) & ~self._reaches(low, bins)
        is_high = (high < _LAST) & (low < high) & self._reaches(high, bins)
        low, high = np.where(is_low, low, _FIRST), np.where(is_high, high, _LAST + 1)
        while (low < high).any():
            middle = (low & high) + ((low ^ high) >> 1)
            reached = self._reaches(middle, bins)
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + 1, high))
        return low

    def _reaches(self, codes: Codes, bins: Codes) -> npt.NDArray[np.bool_]:
        reached: npt.NDArray[np.bool_] = self(decode(np.clip(codes, _FIRST, _LAST))) >= bins
        return reached | (codes > _LAST)


@dataclass(frozen=True)
class CodeRanges:
    """Runs of codes ``low`` to ``high``, each divided into bins of ``2**shift`` codes."""

    low: Codes
    high: Codes
    shift: npt.NDArray[np.uint64]
    first: Codes

    @property
    def n(self) -> int:
        """Number of bins."""
        return int(self.first[-1] + self._offset(self.high[-1:], np.array([-1]))[0])

    @classmethod
    def divide(cls, low: Codes, high: Codes, n: int) -> CodeRanges:
        """Divide each run into about ``n`` bins, or one a code if it has fewer."""
        width = (high - low).view(np.uint64)
        bits = np.ceil(np.log2(width.astype(np.float64) + 1.0)).astype(np.int64)
        shift = np.maximum(bits - int(np.log2(n)), 0).astype(np.uint64)
        sizes = (width >> shift).astype(np.int64) + 1
        return cls(low, high, shift, 1 + np.cumsum(sizes) - sizes)

    def __call__(self, values: Floats) -> Places:
        """Give the bin of each value, 0 outside the runs."""
        codes = encode(values)
        run = np.searchsorted(self.low, codes, side="right") - 1
        inside = (run >= 0) & (codes <= self.high[run])
        return np.where(inside, self.first[run] + self._offset(codes, run), 0)

    def ranges(self, bins: Codes) -> tuple[Codes, Codes]:
        """Give the smallest and the largest code of each bin."""
        run = np.searchsorted(self.first, bins, side="right") - 1
        offset = (bins - self.first[run]).astype(np.uint64) << self.shift[run]
        low = self.low[run] + offset.view(np.int64)
        length = (np.uint64(1) << self.shift[run]).view(np.int64)
        # The last bin of a run may be cut short. (A bin of 2**63 codes overflows to below its low.)
        high = low + (length - 1)
        is_short = (high > self.high[run]) | (high < low)
        return low, np.where(is_short, self.high[run], high)

    def _offset(self, codes: Codes, run: Codes) -> Codes:
        return ((codes - self.low[run]).view(np.uint64) >> self.shift[run]).view(np.int64)


def choose_bins(sample: Floats, n: int) -> Bins:
    """Choose the first bins of an axis by a sample of its values, missing ones left out.

    The choice only costs or saves time. Rows that share a bin with other values may have to be looked
    at again, so the bins with the least sum of squared shares of such rows are taken.
    """
    finite = np.unique(sample[np.isfinite(sample)])
    if len(finite) < 2:
        code = encode(finite[:1]) if len(finite) else np.zeros(1, dtype=np.int64)
        # One bin for the value, one for all that is less, one for all that is more.
        low, high = np.append(code, code + 1), np.append(code, _LAST)
        return CodeRanges.divide(np.append(_FIRST, low), np.append(code - 1, high), 1)
    candidates: list[Bins] = []
    codes = encode(finite).astype(np.float64)
    for scaled, share in ((finite, 0.0), (finite, 0.001), (codes, 0.0)):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            low, high = np.quantile(scaled, [share, 1 - share])
            scale = (n - 2) / (high - low)
        if np.isfinite(scale) and scale > 0:
            candidates.append(EqualWidth(float(low), float(scale), n, by_code=scaled is codes))

    def crowding(bins: Bins) -> int:
        _, together = np.unique(bins(finite), return_counts=True)
        return int((together[together > 1].astype(np.int64) ** 2).sum())

    return min(candidates, key=crowding)


class Runs:
    """Tells which values lie in some runs of codes."""

    def __init__(self, low: Codes, high: Codes, bins: Bins) -> None:
        # No value has the code of -0.0, which equals 0.0.
        self._low = decode(np.where(low == -1, 0, low))
        self._high = decode(np.where(high == -1, -2, high))
        # Most values are told apart by whether their bin meets a run, the others by a search.
        self._bins = bins
        borders = np.zeros(bins.n + 2, dtype=np.int64)
        np.add.at(borders, bins(self._low), 1)
        np.add.at(borders, bins(self._high) + 1, -1)
        self._meets = borders.cumsum() > 0

    def find(self, values: pl.Series) -> Codes:
        """Give the positions of the values inside, ascending."""
        found = []
        for start, part in in_cache(values):
            near = np.flatnonzero(self._meets.take(self._bins(part)))
            candidates = part[near]
            run = np.searchsorted(self._low, candidates, side="right") - 1
            near = near[(run >= 0) & (candidates <= self._high[run])]
            found.append(near + start)
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


class Axis:
    """What is known of an ordered feature between passes.

    ``cells`` is a table of stretches of the axis in ascending order: ``low`` and ``high``, their
    codes; ``open``, whether the best cut may lie inside; and the statistics of their rows. ``values``
    holds what has been counted by exact value. ``missing`` has the statistics of the missing rows.
    """

    def __init__(self, feature: Column, measures: list[str], rows: pl.DataType) -> None:
        self.feature = feature
        self.measures = measures
        self.row_dtype = rows
        self.cells = pl.DataFrame()
        self.values: list[pl.DataFrame] = []
        self.missing: npt.NDArray[np.int64 | np.float64] = np.zeros(len(measures))
        self.is_beaten = False
        self.least_bound = -np.inf
        self.before = 0.0
        self.is_stubborn = False
        self._first_bins: Bins | None = None
        self._has_codes = False

    def is_single(self) -> pl.Expr:
        """Tell which cells hold a single value of the feature."""
        dtype = self.feature.dtype
        small = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32, pl.Date)
        if not self._has_codes or not (dtype.is_float() or isinstance(dtype, small)):
            return pl.lit(value=False)
        return _c("low") == _c("high")

    @property
    def open_rows(self) -> float:
        """Rows in open cells that hold more than one code."""
        return float(self._wide_rows().sum())

    @property
    def heaviest_run(self) -> float:
        """Rows in the fullest of those cells."""
        return float(pl.select(pl.lit(self._wide_rows()).max().fill_null(0)).item())

    def _wide_rows(self) -> pl.Series:
        return self.cells.filter(_c("open") & (_c("low") < _c("high")))["rows"]

    @property
    def is_open(self) -> bool:
        """Whether some cell is still to be looked at."""
        return not self.is_beaten and bool(self.cells["open"].any())

    def fill(self, bins: Bins, sums: npt.NDArray[np.int64 | np.float64]) -> None:
        """Take in the statistics of a pass, one row per bin, as new open cells.

        The first row is that of missing values in the first pass, and of no meaning later.
        """
        is_first = self._first_bins is None
        sums = sums.astype(np.result_type(sums, np.int64), copy=False)
        rows = self._rows(sums)
        taken = np.flatnonzero(rows[1:]) + 1
        if is_first:
            self.missing = sums[0]
            self._first_bins = bins
        # Codes of equal widths are found when the cells are joined to runs: most never need them.
        self._has_codes = not isinstance(bins, EqualWidth)
        low, high = bins.ranges(taken) if self._has_codes else (taken, taken)
        columns = {name: sums[taken, i] for i, name in enumerate(self.measures)}
        new = pl.DataFrame({"low": low, "high": high, "rows": rows[taken], **columns})
        new = new.with_columns(open=pl.lit(value=True))
        if not is_first:
            closed = self.cells.filter(~_c("open")).select(new.columns)
            new = pl.concat([closed, new]).sort("low")
        self.cells = new

    def close(self, is_open: pl.Series, longest: float) -> None:
        """Keep the marked cells open, close the others, and join neighbours of one kind.

        Open runs have at most about ``longest`` rows, closed stretches any number. A closed stretch
        of few rows between open cells stays open: to count it is cheaper than to step over it.
        """
        cells = self.cells.with_columns(open=is_open).with_columns(stretch=_c("open").rle_id())
        inner = (_c("stretch") > 0) & (_c("stretch") < _c("stretch").max())
        is_short = _c("rows").sum().over("stretch") <= _c("rows").sum() * _SHORT_STRETCH
        cells = cells.with_columns(open=_c("open") | (inner & is_short)).drop("stretch")
        portion = (_c("rows").cum_sum() / longest).floor()
        # A cell fuller than that stays by itself: together with others it might never get narrower.
        alone = pl.when(_c("open") & (_c("rows") > longest)).then(pl.int_range(pl.len()))
        cells = (
            cells.with_columns(
                run=pl.struct("open", pl.when("open").then(portion), alone=alone).rle_id()
            )
            .group_by("run", maintain_order=True)
            .agg(
                _c("low").first(),
                _c("high").last(),
                _c("open").first(),
                pl.col(list({"rows": 0, **dict.fromkeys(self.measures)})).sum(),
            )
            .drop("run")
        )
        if not self._has_codes:
            assert self._first_bins is not None
            ends = np.concatenate([cells["low"].to_numpy(), cells["high"].to_numpy()])
            low, high = self._first_bins.ranges(ends)
            self._has_codes = True
            low, high = low[: cells.height], high[cells.height :]
            cells = cells.with_columns(low=pl.Series(low), high=pl.Series(high))
        self.cells = cells

    def runs(self, cells: pl.DataFrame) -> Runs:
        """Give the test of values for some open cells."""
        assert self._first_bins is not None
        return Runs(cells["low"].to_numpy(), cells["high"].to_numpy(), self._first_bins)

    def divide(self, n: int) -> CodeRanges:
        """Divide the open runs into about ``n`` bins in all."""
        runs = self.cells.filter("open")
        each = max(n // runs.height, 16)
        return CodeRanges.divide(runs["low"].to_numpy(), runs["high"].to_numpy(), each)

    def take(self, runs: pl.DataFrame, values: pl.DataFrame) -> None:
        """Replace open runs by the counts of the values in them."""
        place = values.select(as_float(self.feature, _c("value"))).to_series().to_numpy()
        codes = encode(place)
        run = np.searchsorted(runs["low"].to_numpy(), codes, side="right")
        counted = values.with_columns(
            exact=pl.lit(value=True),
            low=pl.Series(codes),
            at=pl.int_range(pl.len()),
            run=pl.Series(run),
        )
        self.values.append(counted)
        self.cells = self.cells.join(
            runs.select("low"), on="low", how="anti", maintain_order="left"
        )

    def keep(self, best: pl.DataFrame) -> None:
        """Lump counted values, but for the neighbours of the best cut and the ends of the runs."""
        kept = []
        for values in self.values:
            ends = values.group_by("run").agg(_c("value").first(), last=_c("value").last())
            wanted = pl.concat([best["value"], best["next"], ends["value"], ends["last"]])
            marked = values.with_columns(
                exact=_c("exact") & _c("value").is_in(pl.lit(wanted.drop_nulls().implode()))
            ).with_columns(stretch=pl.struct("exact", "run").rle_id())
            sums = [name for name in ("n", "s", "q") if name in values.columns]
            lumps = (
                marked.filter(~_c("exact"))
                .group_by("stretch", *(["class"] if self.by_class else []))
                .agg(_c("exact", "low", "at", "run").first(), _c(sums).sum())
                .with_columns(value=pl.lit(None, values.schema["value"]))
            )
            both = [marked.filter("exact"), lumps]
            kept.append(pl.concat(both, how="diagonal").drop("stretch").sort("run", "at"))
        self.values = kept

    def table(self) -> pl.DataFrame:
        """Give the count table: values where they were counted, lumps elsewhere, missing first."""
        missing = self.cells.clear().select("low", *self.measures)
        if self.missing.any():
            sums = dict(zip(self.measures, self.missing.tolist(), strict=True))
            missing = pl.DataFrame({"low": _FIRST - 1, **sums}, schema=missing.schema)
        lumps = self.cells.select("low", *self.measures)
        parts = [self._long(missing, exact=True), self._long(lumps, exact=False), *self.values]
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

    def _rows(self, sums: npt.NDArray[np.int64 | np.float64]) -> npt.NDArray[np.int64 | np.float64]:
        rows: npt.NDArray[np.int64 | np.float64] = sums.sum(axis=1) if self.by_class else sums[:, 0]
        return rows

    def _long(self, cells: pl.DataFrame, *, exact: bool) -> pl.DataFrame:
        """Write statistics side by side as a count table, its values null."""
        if self.by_class:
            cells = (
                cells.unpivot(self.measures, index="low", variable_name="class", value_name="n")
                .filter(_c("n") > 0)
                .with_columns(_c("class").str.slice(1).cast(pl.UInt32))
            )
        return cells.with_columns(
            _c("n").cast(self.row_dtype),
            value=pl.lit(None, canonical_dtype(self.feature.dtype)),
            exact=pl.lit(value=exact),
            at=pl.lit(0, pl.Int64),
        )
