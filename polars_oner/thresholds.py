"""Where to cut between two neighbouring values, exactly, and how to write it down.

A threshold ``t`` between the neighbours ``left`` and ``right`` always satisfies
``left <= t < right``, so that ``x <= t`` separates the rows just as they were counted. The middle
of a gap need not exist in the dtype: adjacent floats, adjacent integers, days, decimals of a fixed
scale, and anything next to an infinity fall back to ``left``, which is always right.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import polars as pl

from polars_oner.typing import Cut

_EXACT_FLOAT_BITS = 53
_DECIMAL_DIGITS = 40
"""Enough for the middle of two Decimals of the most digits that Polars holds, 38."""


def threshold(left: pl.Expr, right: pl.Expr, dtype: pl.DataType, cut: Cut) -> pl.Expr:
    """Give the cut between two neighbouring values, in their own dtype.

    Parameters
    ----------
    left, right
        Neighbouring distinct values, ``left < right``.
    dtype
        Their dtype.
    cut
        ``"value"`` for ``left`` itself, ``"midpoint"`` for the middle of the gap, rounded down to
        what the dtype can hold.
    """
    return left if cut == "value" else midpoint(left, right, dtype)


def midpoint(left: pl.Expr, right: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Give the middle of a gap in the dtype of its ends, or the left end where there is none."""
    if dtype.is_float() or dtype.is_decimal():
        middle, shifted = (left + right) / 2, left / 2 + right / 2
        return (
            pl.when((middle >= left) & (middle < right))
            .then(middle.cast(dtype))
            # The sum of two large values may overflow where that of their halves does not.
            .when((shifted >= left) & (shifted < right))
            .then(shifted.cast(dtype))
            .otherwise(left)
        )
    if dtype.is_integer():
        return _floor_mean(left, right).cast(dtype)
    if dtype.is_temporal():
        return _floor_mean(left.to_physical(), right.to_physical()).cast(dtype)
    return left


def as_number(left: pl.Expr, right: pl.Expr, dtype: pl.DataType, cut: Cut) -> pl.Expr:
    """Give the cut as Float64, or null where no Float64 separates (and for what is no number).

    Integers have their middle between them here: 2.5 between 2 and 3. Beyond 2**53 not every
    integer is a Float64; there the first of value and middle that separates is taken.
    """
    if not dtype.is_numeric():
        return pl.lit(None, pl.Float64)
    if not dtype.is_integer():
        return threshold(left, right, dtype, cut).cast(pl.Float64)
    value = left.cast(pl.Float64)
    middle = (value + right.cast(pl.Float64)) / 2
    middle = pl.when(_separates(middle, left, right, dtype)).then(middle)
    value = pl.when(_separates(value, left, right, dtype)).then(value)
    return pl.coalesce(value, middle) if cut == "value" else pl.coalesce(middle, value)


def as_text(left: pl.Expr, right: pl.Expr, dtype: pl.DataType, cut: Cut) -> pl.Expr:
    """Write the cut so that, read back, it separates the same rows."""
    native = threshold(left, right, dtype, cut)
    if isinstance(dtype, pl.Duration):
        return native.dt.to_string("polars")
    if isinstance(dtype, pl.Time):
        return native.dt.to_string("%T%.f")
    if isinstance(dtype, pl.Enum):
        return in_quotes(native.cast(pl.String))
    if dtype.is_integer() and cut == "midpoint":
        number = as_number(left, right, dtype, cut)
        # Of whole numbers the integer is written: a large float may be short of digits.
        halves = number != number.floor()
        return pl.when(halves).then(number.cast(pl.String)).otherwise(native.cast(pl.String))
    if dtype.is_float():
        # A Float32 is written as the Float64 it equals, which no reader rounds.
        return native.cast(pl.Float64).cast(pl.String).str.strip_suffix(".0")
    return native.cast(pl.String)


def in_quotes(text: pl.Expr) -> pl.Expr:
    """Write text in double quotes; quotes, backslashes, tabs and line breaks get a backslash."""
    for plain, escaped in (
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
    ):
        text = text.str.replace_all(plain, escaped, literal=True)
    return pl.concat_str(pl.lit('"'), text, pl.lit('"'))


def midpoint_value(left: Any, right: Any) -> Any:
    """Give the middle of a gap as a Python value to show, ``left <= middle < right``.

    Integers have their exact middle where a float can hold it (64.5 between 64 and 65), Decimals
    always; dates, times and durations the middle rounded down to their unit; anything else, and
    floats without a middle, the left end.
    """
    if isinstance(left, bool | str):
        return left
    if isinstance(left, int):
        middle = Fraction(left + right, 2)
        if middle.denominator == 1:
            return middle.numerator
        return float(middle) if abs(left) < 2 ** (_EXACT_FLOAT_BITS - 1) else left
    if isinstance(left, float):
        for middle_float in ((left + right) / 2, left / 2 + right / 2):
            if left <= middle_float < right:
                return middle_float
        return left
    if isinstance(left, Decimal):
        with localcontext(prec=_DECIMAL_DIGITS):
            return (left + right) / 2
    if isinstance(left, dt.datetime | dt.date | dt.timedelta):
        return left + (right - left) // 2
    return left


def exact_values(values: pl.Series) -> list[Any]:
    """Give the values as Python objects that lose nothing.

    Python's times count microseconds; where a column counts nanoseconds that Python would drop, the
    integers behind its values are given in their place.
    """
    dtype = values.dtype
    nanoseconds = isinstance(dtype, pl.Time) or getattr(dtype, "time_unit", None) == "ns"
    if nanoseconds:
        physical = values.to_physical()
        if (physical % 1000 != 0).any():
            return physical.to_list()
    return values.to_list()


def _floor_mean(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    # Shared bits plus half of the others: no sum that could overflow.
    return (left & right) + (left ^ right) // 2


def _separates(number: pl.Expr, left: pl.Expr, right: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    # Out of the dtype's range means out of the gap.
    floor = number.floor().cast(dtype, strict=False)
    return (floor >= left) & (floor < right)
