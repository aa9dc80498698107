"""Criteria: how mixed a target is on one side of a split, from counts or moments to a score.

A criterion is written once, as a function from expressions to an expression, and serves the query
plans over frames, the bounds of the adaptive search and the expression namespace alike. It gives the
*mass* of a side: the number of rows times the score of the side. Masses of two sides add up, and the
score of a split is their sum divided by all rows; lower is better, 0 is pure.

References
----------
Breiman, L., Friedman, J., Olshen, R., Stone, C. (1984). *Classification and Regression Trees*,
chapters 4 and 8 (Gini, error, variance). Quinlan, J. R. (1986). "Induction of decision trees",
*Machine Learning* 1 (entropy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from polars_oner.errors import DtypeError, check_choice
from polars_oner.typing import CLASS_CRITERIA, CRITERIA, NUMBER_CRITERIA, CriterionName

TIE = 1e-12
"""Scores closer than this share of the unsplit score are ties: rounding noise decides nothing."""

_FIXED_POINT = float(2**52)
_NOISE = 64
_RESOLUTION = 1e-14
_TINY = 5e-324
"""Stands in for 0 under a logarithm: 0 log 0 is 0."""


@dataclass(frozen=True)
class ClassCriterion:
    """A criterion over class counts.

    The mass of a side follows from its rows and one *term* per class, gathered over the classes by
    ``reduce``. Terms are whole numbers for whole counts, so their sums depend on no order, and equal
    counts give equal scores to the last bit.
    """

    name: CriterionName
    reduce: Literal["sum", "max"]
    wide: bool = False
    """Square counts in 128 bits: whole weights may sum to more than 64 bits can square."""

    def term(self, count: pl.Expr, total: pl.Expr) -> pl.Expr:
        """Give the contribution of one class: of its ``count`` on the side, of ``total`` rows in all."""
        if self.name == "gini":
            return self._squarable(count) * count
        if self.name == "entropy":
            # p log2 p in fixed point: summed as integers, the terms cannot drift.
            # Polars divides by a constant and by a column in two ways; a product is one.
            share = count * (pl.lit(1.0) / total)
            bits = share * share.clip(lower_bound=_TINY).log(2)
            # Inside a when/then Polars also evaluates rows that are masked out; those may be NaN.
            return (bits * _FIXED_POINT).round().cast(pl.Int64, strict=False)
        return count

    def mass(self, n: pl.Expr, terms: pl.Expr, total: pl.Expr) -> pl.Expr:
        """Give rows times score of a side with ``n`` rows and gathered ``terms``; 0 for no rows.

        Gini: ``n - sum(c**2) / n``. Entropy, in bits: ``n log2 n - sum(c log2 c)``. Error:
        ``n - max(c)``.
        """
        if self.name == "gini":
            # Float weights may leave a pure side a rounding below 0.
            mixed = self._squarable(n) * n - terms
            return pl.when(n > 0).then((mixed / n).clip(lower_bound=0)).otherwise(0.0)
        if self.name == "entropy":
            bits = self.term(n, total) - terms
            # Logarithms of equal counts may differ in their last bit: no mass is smaller than that.
            return pl.when(bits > _NOISE).then(bits * (total / _FIXED_POINT)).otherwise(0.0)
        return (n - terms).cast(pl.Float64).clip(lower_bound=0)

    def _squarable(self, count: pl.Expr) -> pl.Expr:
        return count.cast(pl.Int128) if self.wide else count

    def side_mass(self, counts: list[pl.Expr], total: pl.Expr) -> pl.Expr:
        """Give the mass of a side whose class counts stand in columns of their own."""
        terms = [self.term(count, total) for count in counts]
        gathered = pl.sum_horizontal(terms) if self.reduce == "sum" else pl.max_horizontal(terms)
        return self.mass(pl.sum_horizontal(counts), gathered, total)


@dataclass(frozen=True)
class NumberCriterion:
    """A criterion over the moments of a numeric target."""

    name: CriterionName

    def mass(self, n: pl.Expr, s: pl.Expr, q: pl.Expr) -> pl.Expr:
        """Give rows times score of a side from its count, sum and sum of squares; 0 for no rows.

        The sums are those of the target minus a constant near its mean, which keeps them small and
        changes neither criterion. Variance: ``q - s**2 / n`` (ddof 0, times n). Std:
        ``n sqrt((q - s**2 / n) / (n - 1))`` (ddof 1), 0 for a side of one row. A spread that is
        smaller than the rounding of the sums is 0.
        """
        spread = q - s * s / n
        # For no rows the spread is NaN, which is above every number.
        resolved = (n > 0) & (spread > q * _RESOLUTION)
        spread = pl.when(resolved).then(spread).otherwise(0.0)
        if self.name == "variance":
            return spread
        return pl.when(n > 1).then(n * (spread / (n - 1)).sqrt()).otherwise(0.0)


Criterion = ClassCriterion | NumberCriterion


def criterion_for(name: str, target: str, dtype: pl.DataType, *, wide: bool = False) -> Criterion:
    """Look a criterion up and check that it can read the target; ``wide`` for whole weights.

    Raises
    ------
    OptionError
        No criterion has that name.
    DtypeError
        A number criterion meets a target that is no number, or a class criterion a float target.
    """
    check_choice("criterion", name, CRITERIA)
    if name in NUMBER_CRITERIA:
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean)):
            raise DtypeError.target(target, dtype, f"criterion {name!r}", CLASS_CRITERIA)
        return NumberCriterion("std" if name == "std" else "variance")
    require_classes(target, dtype, f"criterion {name!r}", NUMBER_CRITERIA)
    if name == "error":
        return ClassCriterion("error", "max")
    return ClassCriterion("gini" if name == "gini" else "entropy", "sum", wide)


def require_classes(target: str, dtype: pl.DataType, what: str, allowed: tuple[str, ...]) -> None:
    """Raise unless the values of the target can be classes: any scalar but a float or Decimal."""
    nested = isinstance(dtype, (pl.List, pl.Array, pl.Struct, pl.Object, pl.Binary, pl.Null))
    if dtype.is_float() or dtype.is_decimal() or nested:
        raise DtypeError.target(target, dtype, what, allowed)
