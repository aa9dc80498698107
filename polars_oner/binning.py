"""Coarse bins of an ordered feature, which tell with little work where a value lies.

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

from polars_oner.frame import Column, column

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
"""Numbers of bins."""

_ALL_BUT_SIGN = np.int64(np.iinfo(np.int64).max)
_CACHED_ROWS = 1 << 15
"""Rows handled at a time, so that what is computed of them stays in the processor's cache."""

_GUESS = 1 << 12
"""Codes around a computed edge among which the true one is looked for first."""


def encode(values: Floats) -> Codes:
    """Give the codes of floats: integers in the same order. Both zeros have code 0."""
    bits = (values + 0.0).view(np.int64)
    # Negative floats ascend as their bits descend.
    return bits ^ ((bits >> 63) & _ALL_BUT_SIGN)


def decode(codes: Codes) -> Floats:
    """Give the floats of codes."""
    return (codes ^ ((codes >> 63) & _ALL_BUT_SIGN)).view(np.float64)


FIRST, LAST = (int(code) for code in encode(np.array([-np.inf, np.inf])))


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
        guess = np.clip(start, FIRST, LAST).astype(np.int64) if self.by_code else encode(start)
        low, high = guess - _GUESS, guess + _GUESS
        is_low = (low > FIRST) & (low < high) & ~self._reaches(low, bins)
        is_high = (high < LAST) & (low < high) & self._reaches(high, bins)
        low, high = np.where(is_low, low, FIRST), np.where(is_high, high, LAST + 1)
        while (low < high).any():
            middle = (low & high) + ((low ^ high) >> 1)
            reached = self._reaches(middle, bins)
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + 1, high))
        return low

    def _reaches(self, codes: Codes, bins: Codes) -> npt.NDArray[np.bool_]:
        reached: npt.NDArray[np.bool_] = self(decode(np.clip(codes, FIRST, LAST))) >= bins
        return reached | (codes > LAST)


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
        low, high = np.append(code, code + 1), np.append(code, LAST)
        return CodeRanges.divide(np.append(FIRST, low), np.append(code - 1, high), 1)
    candidates: list[Bins] = []
    codes = encode(finite).astype(np.float64)
    for scaled, share in ((finite, 0.0), (finite, 0.001), (codes, 0.0)):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            low, high = np.quantile(scaled, [share, 1 - share])
            scale = (n - 2) / (high - low)
        if np.isfinite(scale) and scale > 0:
            candidates.append(EqualWidth(float(low), float(scale), n, by_code=scaled is codes))
    if not candidates:
        # Values as close as neighbouring floats can be: they are told apart later.
        return CodeRanges.divide(np.array([FIRST]), np.array([LAST]), n)

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
