"""The target's classes or spread, from one pass over its column alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.errors import EmptyTargetError, OneRError, WeightError
from polars_oner.frame import canonical, canonical_dtype, column, is_missing
from polars_oner.typing import Engine

_LOOKUP_SPAN = 1 << 16
"""Integer targets within this span are coded by a table look-up, others by way of their text."""

_FEW_CATEGORIES, _FEW_TEXTS = 16, 6
"""Up to this many labels are coded by comparisons: of a Categorical's numbers, or of short text."""

_SHORT_TEXT = 12
"""Bytes of text that are compared at once."""

_WIDE = (pl.UInt64, pl.Int128, pl.UInt128)


@dataclass(frozen=True)
class ClassTarget:
    """A target read as classes.

    Attributes
    ----------
    name, dtype
        The column.
    classes
        The classes that occur, in class order: an Enum's own order, otherwise ascending. A
        Categorical's classes are text here.
    counts
        Rows (or their weight) per class, in that order; Int64, or Float64 with float weights.
    n_missing
        Rows without a target (or their weight), which are left out.
    """

    name: str
    dtype: pl.DataType
    classes: pl.Series
    counts: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    n_missing: int | float

    @property
    def n_rows(self) -> int | float:
        """Rows with a target, or their weight."""
        total: int | float = self.counts.sum().item()
        return total

    def code(self) -> pl.Expr:
        """Give the expression for a row's class as UInt32 index into ``classes``."""
        values = canonical(column(self.name), self.dtype)
        if isinstance(self.dtype, pl.Boolean):
            # Either both classes occur, or the only one has code 0.
            return values.cast(pl.UInt32) if len(self.classes) > 1 else values.cast(pl.UInt32) * 0
        if isinstance(self.dtype, pl.Enum):
            return self._look_up(values.to_physical(), self.classes.to_physical())
        if self.dtype.is_integer() and not isinstance(self.dtype, _WIDE):
            codes = self.classes.cast(pl.Int64)
            if int(codes[-1]) - int(codes[0]) < _LOOKUP_SPAN:
                return self._look_up(values, codes)
        if self._is_compared:
            code = pl.lit(0, pl.UInt32)
            for i, label in enumerate(self.classes):
                is_class = column(self.name) == label
                code = pl.when(is_class).then(pl.lit(i, pl.UInt32)).otherwise(code)
            return code
        classes = self.classes
        if self.dtype.is_temporal():
            # The text of a time is not unique, and durations have none.
            values, classes = values.to_physical(), classes.to_physical()
        labels = classes.cast(pl.String)
        return values.cast(pl.String).cast(pl.Enum(labels)).to_physical().cast(pl.UInt32)

    @property
    def _is_compared(self) -> bool:
        if isinstance(self.dtype, pl.Categorical):
            return len(self.classes) <= _FEW_CATEGORIES
        if not isinstance(self.dtype, pl.String) or len(self.classes) > _FEW_TEXTS:
            return False
        return all(length <= _SHORT_TEXT for length in self.classes.str.len_bytes())

    def _look_up(self, values: pl.Expr, codes: pl.Series) -> pl.Expr:
        first, last = int(codes[0]), int(codes[-1])
        if last - first == len(codes) - 1:
            return ((values.cast(pl.Int64) - first) if first else values).cast(pl.UInt32)
        table = np.zeros(last - first + 1, dtype=np.uint32)
        table[codes.to_numpy().astype(np.int64) - first] = np.arange(len(codes), dtype=np.uint32)
        return pl.lit(pl.Series(table)).gather(values.cast(pl.Int64) - first)


@dataclass(frozen=True)
class NumberTarget:
    """A target read as quantities.

    ``center`` is subtracted before any sum is taken: the mean, rounded for whole-number targets so
    that their sums stay exact. ``low`` and ``high`` are the smallest and largest deviation from it.
    """

    name: str
    dtype: pl.DataType
    mean: float
    center: int | float
    low: float
    high: float
    n_rows: int | float
    n_missing: int | float

    def deviation(self) -> pl.Expr:
        """Give the expression for a row's target minus ``center``, as Float64."""
        return deviation(self.name, self.dtype, pl.lit(self.center))


def deviation(name: str, dtype: pl.DataType, center: pl.Expr) -> pl.Expr:
    """Give a numeric target minus a center, as Float64; whole numbers are subtracted exactly."""
    values = column(name)
    if dtype.is_integer():
        wide = pl.Int128 if isinstance(dtype, _WIDE) else pl.Int64
        return (values.cast(wide) - center.cast(wide)).cast(pl.Float64)
    return values.cast(pl.Float64) - center.cast(pl.Float64)


def center(name: str, dtype: pl.DataType) -> pl.Expr:
    """Give the center of a numeric target within a plan: its mean, rounded for whole numbers."""
    mean = canonical(column(name), dtype).cast(pl.Float64).mean()
    return mean.round() if dtype.is_integer() else mean


def with_target(
    frame: pl.LazyFrame, name: str, dtype: pl.DataType, weights: str | None = None
) -> pl.LazyFrame:
    """Keep the rows that count: those with a target and, if rows are weighted, a weight above 0."""
    frame = frame.filter(~is_missing(column(name), dtype))
    return frame if weights is None else frame.filter(column(weights) > 0)


def known_rows(
    frame: pl.LazyFrame, target: ClassTarget | NumberTarget, weights: str | None = None
) -> pl.LazyFrame:
    """Keep the rows that count, like `with_target`, even if they are known to be all.

    Polars 2.1 decodes Parquet columns on all cores if there is a predicate, on about one otherwise.
    """
    return with_target(frame, target.name, target.dtype, weights)


def row_weight(schema: pl.Schema, weights: str | None) -> pl.Expr:
    """Give the expression for a row's weight, 1 without weights: Int64 if whole, else Float64."""
    if weights is None:
        return pl.lit(1, pl.Int64)
    if not (schema[weights].is_numeric() or isinstance(schema[weights], pl.Boolean)):
        raise WeightError.from_dtype(weights, schema[weights])
    whole = schema[weights].is_integer() or isinstance(schema[weights], pl.Boolean)
    return column(weights).cast(pl.Int64 if whole else pl.Float64)


def class_target(
    frame: pl.LazyFrame,
    name: str,
    dtype: pl.DataType,
    *,
    weights: str | None = None,
    engine: Engine = "auto",
) -> ClassTarget:
    """Count the classes of the target, in one pass over its column.

    Raises
    ------
    EmptyTargetError
        No row has a target.
    WeightError
        A weight is missing, negative, NaN or infinite.
    """
    schema = frame.collect_schema()
    values = canonical(column(name), dtype).alias("class")
    if weights is None:
        # Nothing but the rows of each class: the plain group-by is the cheapest there is, and
        # cheaper by numbers than by Booleans.
        numbers = values.cast(pl.UInt8) if isinstance(dtype, pl.Boolean) else values
        n = pl.len().cast(pl.Int64)
        counts = frame.select(numbers).group_by("class").agg(n_rows=n, n=n, n_positive=n, bad=0)
        counts = counts.with_columns(pl.col("class").cast(canonical_dtype(dtype)))
    else:
        weight = row_weight(schema, weights).alias("weight")
        counts = (
            frame.select(values, weight, _bad_weight(schema, weights).alias("bad"))
            .group_by("class")
            .agg(
                pl.len().cast(pl.Int64).alias("n_rows"),
                pl.col("weight").filter(pl.col("weight") > 0).sum().alias("n"),
                (pl.col("weight") > 0).cast(pl.Int64).sum().alias("n_positive"),
                pl.col("bad").cast(pl.Int64).sum(),
            )
        )
    counted = counts.sort("class").collect(engine=engine)
    _check_weights(weights, int(counted["bad"].sum()))
    missing = counted.filter(pl.col("class").is_null()).select(pl.col("n").sum()).item()
    present = counted.filter(pl.col("class").is_not_null(), pl.col("n_positive") > 0)
    if present.is_empty():
        raise EmptyTargetError.from_counts(name, int(counted["n_rows"].sum()))
    return ClassTarget(name, dtype, present["class"], present["n"].to_numpy(), missing)


def number_target(
    frame: pl.LazyFrame,
    name: str,
    dtype: pl.DataType,
    *,
    weights: str | None = None,
    engine: Engine = "auto",
) -> NumberTarget:
    """Find the center and the range of a numeric target, in one pass over its column.

    Raises
    ------
    EmptyTargetError
        No row has a target.
    OneRError
        A target value is infinite, so that no spread exists.
    WeightError
        A weight is missing, negative, NaN or infinite.
    """
    schema = frame.collect_schema()
    summary = (
        frame.select(
            canonical(column(name), dtype).alias("target"),
            row_weight(schema, weights).alias("weight"),
            _bad_weight(schema, weights).alias("bad"),
        )
        .select(
            pl.len().cast(pl.Int64).alias("n_rows"),
            pl.col("bad").cast(pl.Int64).sum(),
            # Only the mean that is stored is weighted; any constant near it serves as the center.
            (
                _of_present(pl.col("target").cast(pl.Float64) * pl.col("weight")).sum()
                / _of_present(pl.col("weight")).sum()
            ).alias("mean"),
            _of_present(pl.col("target")).min().alias("low"),
            _of_present(pl.col("target")).max().alias("high"),
            _of_present(pl.col("weight")).sum().alias("n"),
            pl.col("weight")
            .filter(pl.col("target").is_null() & (pl.col("weight") > 0))
            .sum()
            .alias("n_missing"),
        )
        .collect(engine=engine)
        .row(0, named=True)
    )
    _check_weights(weights, summary["bad"])
    if summary["low"] is None:
        raise EmptyTargetError.from_counts(name, summary["n_rows"])
    if not np.isfinite(summary["mean"]) and not (
        np.isfinite(float(summary["low"])) and np.isfinite(float(summary["high"]))
    ):
        msg = f"target {name!r} has infinite values, so it has no spread to score"
        raise OneRError(msg)
    middle = round(summary["mean"]) if dtype.is_integer() else float(summary["mean"])
    low, high = (
        # Whole numbers are subtracted before they become floats.
        float(summary[end] - middle) if dtype.is_integer() else float(summary[end]) - middle
        for end in ("low", "high")
    )
    mean = float(summary["mean"])
    return NumberTarget(name, dtype, mean, middle, low, high, summary["n"], summary["n_missing"])


def _of_present(values: pl.Expr) -> pl.Expr:
    return values.filter(pl.col("target").is_not_null() & (pl.col("weight") > 0))


def _bad_weight(schema: pl.Schema, weights: str | None) -> pl.Expr:
    if weights is None:
        return pl.lit(value=False)
    values = column(weights)
    bad = values.is_null() | (values.cast(pl.Float64) < 0)
    return bad | ~values.is_finite() if schema[weights].is_float() else bad


def _check_weights(weights: str | None, n_bad: int) -> None:
    if weights is not None and n_bad:
        raise WeightError.from_column(weights, int(n_bad))
