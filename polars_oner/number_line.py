"""An ordered feature's values as numbers on a line, and from numbers back to values of its dtype."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.thresholds import midpoint

Floats = npt.NDArray[np.float64]

_DECIMAL_DIGITS = 40

_c = pl.col


@dataclass(frozen=True)
class NumberLine:
    """A feature's distinct values, and what was counted at each.

    Attributes
    ----------
    values
        The distinct values, ascending, in the feature's dtype.
    counts
        The count table; ``value`` holds the position in ``values`` instead, and ``exact`` is true.
    """

    values: pl.Series
    counts: pl.DataFrame

    @classmethod
    def from_counts(cls, counts: pl.DataFrame) -> NumberLine:
        """Take a count table, ascending by value, without missing values."""
        runs = counts["value"].rle_id()
        starts = runs.to_frame().select(pl.arg_where(runs.diff().fill_null(1) > 0)).to_series()
        table = counts.with_columns(value=runs.cast(pl.Int64), exact=pl.lit(value=True))
        return cls(counts["value"].gather(starts), table)

    @property
    def dtype(self) -> pl.DataType:
        """The feature's dtype."""
        return self.values.dtype

    @property
    def n_values(self) -> int:
        """How many distinct values there are."""
        return len(self.values)

    @cached_property
    def physical(self) -> pl.Series:
        """The numbers behind the values: an Enum's codes, days, nanoseconds, scaled Decimals."""
        return _physical(self.values)

    @cached_property
    def origin(self) -> int:
        """Where `numbers` have their zero, so that large integers lose nothing."""
        if self.dtype.is_float():
            return 0
        first, last = int(self.physical[0]), int(self.physical[-1])
        return first if last - first < 2**127 else 0

    @cached_property
    def exponent(self) -> int:
        """The power of two that is the unit of `numbers`: exact to divide by, nothing overflows."""
        if not self.dtype.is_float():
            return 0
        return math.frexp(max(abs(self.physical[0]), abs(self.physical[-1])))[1]

    @cached_property
    def numbers(self) -> Floats:
        """The values as floats, from `origin` and in units of two to the `exponent`."""
        if self.dtype.is_float():
            scaled: Floats = np.ldexp(self.physical.cast(pl.Float64).to_numpy(), -self.exponent)
            return scaled
        offset = _c("number")
        if self.origin:
            offset = offset.cast(pl.Int128) - pl.lit(self.origin, pl.Int128)
        numbers = self.physical.alias("number").to_frame()
        return numbers.select(offset.cast(pl.Float64)).to_series().to_numpy()

    @cached_property
    def n(self) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """Rows at each value."""
        starts = np.searchsorted(self.counts["value"].to_numpy(), np.arange(self.n_values))
        return np.add.reduceat(self.counts["n"].to_numpy(), starts)

    def is_finite(self, position: int) -> bool:
        """Tell whether there is a number behind a value."""
        return not self.dtype.is_float() or math.isfinite(self.physical[position])

    def exact(self, position: int) -> Fraction:
        """Give the number behind a value."""
        return Fraction(self.physical[position])

    def place(self, number: float) -> Fraction:
        """Give the number that is written so in terms of `numbers`, kept within the values.

        Rounding may have put it just beyond them, and so beyond what the dtype can hold.
        """
        exact = self.origin + Fraction(float(number)) * Fraction(2) ** self.exponent
        return min(max(exact, self.exact(0)), self.exact(-1))

    def at(self, places: Iterable[Fraction]) -> pl.Series:
        """Give values of the feature's dtype, rounded to the nearest float or down to the unit."""
        dtype = self.dtype
        if dtype.is_float():
            return pl.Series([float(place) for place in places], dtype=pl.Float64).cast(dtype)
        units = [math.floor(place) for place in places]
        if isinstance(dtype, pl.Decimal):
            context = Context(prec=_DECIMAL_DIGITS)
            decimals = [Decimal(unit).scaleb(-dtype.scale, context) for unit in units]
            return pl.Series(decimals, dtype=dtype)
        if isinstance(dtype, pl.Enum):
            return dtype.categories.gather(units).cast(dtype)
        return pl.Series(units, dtype=self.physical.dtype).cast(dtype)

    def midway(self, gaps: Iterable[tuple[int, int]]) -> pl.Series:
        """Give the middle between each two values, by their positions."""
        ends = np.array(list(gaps), dtype=np.int64).reshape(-1, 2)
        left, right = (self.values.gather(end) for end in ends.T)
        pairs = pl.DataFrame({"left": left, "right": right})
        return pairs.select(midpoint(_c("left"), _c("right"), self.dtype)).to_series()

    def n_below(self, cuts: pl.Series) -> pl.Series:
        """Count the values that are ``<=`` each cut."""
        return self.physical.search_sorted(_physical(cuts), side="right")

    def cut_points(self, cuts: pl.Series) -> pl.DataFrame:
        """Find the neighbours of cuts; drop those that are not between two values, or repeated."""
        cuts = cuts.unique().sort()
        n_below = self.n_below(cuts)
        inside = (n_below > 0) & (n_below < self.n_values)
        cuts, n_below = cuts.filter(inside), n_below.filter(inside)
        return pl.DataFrame(
            {
                "left_max": self.values.gather(n_below - 1),
                "cut": cuts,
                "right_min": self.values.gather(n_below),
            }
        )

    def class_pairs(self) -> list[tuple[tuple[float, int], tuple[float, int]]]:
        """Give each two classes with neighbouring means: the means in `numbers`, and the classes."""
        codes, n = self.counts["class"].to_numpy(), self.counts["n"].to_numpy()
        totals = np.bincount(codes, weights=n * self.numbers[self.counts["value"].to_numpy()])
        rows = np.bincount(codes, weights=n)
        means = [(float(totals[code] / rows[code]), int(code)) for code in np.flatnonzero(rows)]
        return list(pairwise(sorted(means)))

    def class_rows(self, code: int) -> Floats:
        """Give the rows of one class at each value."""
        part = self.counts.filter(_c("class") == code)
        rows = np.zeros(self.n_values)
        rows[part["value"].to_numpy()] = part["n"].to_numpy()
        return rows


def _physical(values: pl.Series) -> pl.Series:
    return values.cast(pl.UInt8) if isinstance(values.dtype, pl.Boolean) else values.to_physical()
