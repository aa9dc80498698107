"""The pieces of prediction expressions: literals, value sets, intervals, and a guard on the dtype.

A prediction is one plain expression over one column: a test per class, joined by ``when/then``. It
holds no Python, streams, serializes, and reaches a Parquet scan as a predicate.

Polars compares some dtypes that have nothing to say to each other (a Boolean with 2.5, a time of day
with an integer) and calls an Enum unequal to every label it lacks. Such a column would match nothing
and all its rows would get the default. So each expression carries a *guard*: an operation that only
the right dtypes admit, in a branch that is never taken. Polars resolves dtypes before it drops that
branch: a wrong column is an error, a right one costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any

import polars as pl

from polars_oner.errors import DtypeError
from polars_oner.frame import Column, column, is_missing, require_column

_FEW_VALUES = 3
"""Up to this many values are compared one by one; a hash set is faster for more (measured)."""

_FEW_CUTS = 64
"""Up to this many cuts are compared one by one; a search per row is faster for more (measured)."""


def literal(value: Any, dtype: pl.DataType) -> pl.Expr:
    """Write a value as a literal of exactly this dtype.

    Parameters
    ----------
    value
        A Python value, or a Series that holds nothing else: Python's own times lose nanoseconds.
    dtype
        The literal's dtype, kept whatever it is compared with.
    """
    if dtype.is_temporal():
        # Polars reads a Python time in microseconds; the integer behind it has the column's unit.
        series = value if isinstance(value, pl.Series) else pl.Series([value], dtype=dtype)
        return pl.lit(series.cast(dtype).to_physical().item(), dtype=pl.Int64).cast(dtype)
    return pl.lit(value.item() if isinstance(value, pl.Series) else value, dtype=dtype)


def is_one_of(values: pl.Expr, members: pl.Series) -> pl.Expr:
    """Test whether values belong to a set, given as distinct values without null.

    A missing value gives null or False; where that matters, test for it apart.
    """
    if 0 < len(members) <= _FEW_VALUES:
        return any_of(
            values == literal(members[i : i + 1], members.dtype) for i in range(len(members))
        )
    return values.is_in(pl.lit(members.implode()))


def is_between(values: pl.Expr, lower: pl.Expr | None, upper: pl.Expr | None) -> pl.Expr:
    """Test whether values lie in ``(lower, upper]``; an end that is None is open.

    Null gives null. NaN is above every number, so it passes if only ``lower`` is given.
    """
    above = None if lower is None else values > lower
    below = None if upper is None else values <= upper
    if above is not None and below is not None:
        return above & below
    return next((test for test in (above, below) if test is not None), pl.lit(value=True))


def any_of(tests: Iterable[pl.Expr]) -> pl.Expr:
    """Join tests, at least one, by "or"."""
    return reduce(or_, tests)


def guarded(prediction: pl.Expr, feature: Column) -> pl.Expr:
    """Make an expression an error on a column of another dtype than its feature was learned on.

    What passes is what compares exactly: integers of any width for integers, floats of either width
    for floats (and integers, if the feature is ordered), Decimals and integers for Decimals, String and
    Categorical (of one pool) for each other; otherwise the same dtype, with its categories, unit and
    time zone. Whether a column of dtype Null passes is left to Polars; if so, all its rows are missing.
    """
    never = pl.lit(value=False)
    return pl.when(never).then(pl.when(_guard(feature)).then(None)).otherwise(prediction)


def check_dtype(schema: Mapping[str, pl.DataType], features: Iterable[Column]) -> None:
    """Raise unless a frame has all columns of a model, in dtypes that its guards admit.

    Raises
    ------
    MissingColumnError
        A column is absent.
    DtypeError
        A column has a dtype on which the model would not mean anything.
    """
    for feature in features:
        came = require_column(pl.Schema(schema), feature.name)
        rows = pl.LazyFrame(schema={feature.name: came})
        try:
            rows.select(_guard(feature)).collect_schema()
        except pl.exceptions.PolarsError as error:
            raise DtypeError.at_prediction(feature.name, came, feature.dtype) from error


def predict_values(
    feature: Column,
    values: pl.Series,
    codes: Sequence[int],
    classes: pl.Series,
    *,
    missing: int,
    default: int,
) -> pl.Expr:
    """Map the values of a nominal feature to classes.

    Parameters
    ----------
    feature
        The column.
    values
        Distinct values without null; a Categorical's as text.
    codes
        For each value, the index of its class.
    classes
        The classes, in the target's dtype.
    missing, default
        The class of missing rows, and of values that are not among ``values``.
    """
    x = column(feature.name)
    table = pl.DataFrame({"value": values, "code": pl.Series(codes, dtype=pl.UInt32)})
    groups = table.filter(pl.col("code") != default).partition_by("code", maintain_order=True)
    tests = {group["code"][0]: is_one_of(x, group["value"]) for group in groups}
    if missing != default:
        absent = is_missing(x, feature.dtype)
        tests[missing] = any_of([absent, tests[missing]]) if missing in tests else absent
    return guarded(_pick(tests, default, classes), feature)


def predict_intervals(
    feature: Column, cuts: pl.Series, codes: Sequence[int], classes: pl.Series, *, missing: int
) -> pl.Expr:
    """Map the intervals of an ordered feature to classes.

    Parameters
    ----------
    feature
        The column.
    cuts
        Upper ends of all intervals but the last, ascending, in the feature's dtype; a value on a cut
        belongs below it.
    codes
        For each interval, one more than there are cuts, the index of its class.
    classes
        The classes, in the target's dtype.
    missing
        The class of missing rows.
    """
    x = column(feature.name)
    if len(cuts) > _FEW_CUTS:
        outcomes = classes.gather([*codes, missing])
        return guarded(pl.lit(outcomes).gather(interval_index(x, feature.dtype, cuts)), feature)
    ends: list[pl.Expr | None] = [
        None,
        *(literal(cuts[i : i + 1], feature.dtype) for i in range(len(cuts))),
        None,
    ]
    # Null passes no test, so rows that pass none are given the class of the missing ones; the class of
    # one more needs no test of its cuts, for what is in none of the others and not missing is in it.
    *_, last_class = dict.fromkeys(codes)
    untested = missing if missing in codes else last_class
    tests: dict[int, list[pl.Expr]] = {}
    for code, run in groupby(range(len(codes)), key=lambda i: codes[i]):
        if code == untested:
            continue
        first, *_, last = [*run] * 2
        test = is_between(x, ends[first], ends[last + 1])
        if last == len(cuts) and feature.dtype.is_float():
            test &= x.is_not_nan()
        tests.setdefault(code, []).append(test)
    if untested != missing:
        tests[untested] = [x.is_not_nan() if feature.dtype.is_float() else x.is_not_null()]
    return guarded(_pick({c: any_of(t) for c, t in tests.items()}, missing, classes), feature)


def interval_index(values: pl.Expr, dtype: pl.DataType, cuts: pl.Series) -> pl.Expr:
    """Number the intervals ``(cut, next cut]`` from 0; missing values get the number after the last.

    Exact in every ordered dtype: the cuts keep theirs.
    """
    present = values.fill_nan(None) if dtype.is_float() else values
    index = present.bin_intervals(cuts, labels=False, right_closed=True)
    return index.fill_null(pl.lit(len(cuts) + 1, dtype=pl.UInt32))


def _pick(tests: Mapping[int, pl.Expr], otherwise: int, classes: pl.Series) -> pl.Expr:
    """Chain one test per class; a row that passes none gets the class ``otherwise``."""
    result = literal(classes[otherwise : otherwise + 1], classes.dtype)
    for code, test in reversed(list(tests.items())):
        chosen = literal(classes[code : code + 1], classes.dtype)
        result = pl.when(test).then(chosen).otherwise(result)
    return result


def _guard(feature: Column) -> pl.Expr:
    """Give an operation that resolves only for dtypes on which the feature keeps its meaning."""
    x, dtype = column(feature.name), feature.dtype
    if isinstance(dtype, (pl.String, pl.Categorical)):
        # An Enum of other labels is text too, but a set of Categorical values refuses it.
        return x.is_in(_no_values(dtype if isinstance(dtype, pl.Categorical) else pl.Categorical()))
    if isinstance(dtype, (pl.Boolean, pl.Enum)) or dtype.is_temporal():
        # Sets of lists are strict down to categories and unit; sets of values convert them.
        return pl.concat_list(x).is_in(_no_values(pl.List(dtype)))
    # Only numbers have a sign, and of those only Decimals have no float as quotient.
    quotient = (x.sign() / x).is_in(_no_values(pl.Float64()))
    if dtype.is_integer():
        return quotient & x.is_in(_no_values(dtype))
    if dtype.is_float() and feature.kind == "ordered":
        return quotient
    return x.is_in(_no_values(dtype))


def _no_values(dtype: pl.DataType) -> pl.Expr:
    return pl.lit(pl.Series([[]], dtype=pl.List(dtype)))
