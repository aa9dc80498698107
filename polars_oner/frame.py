"""The user's frame and column choice become checked roles: target, features and their kinds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl
import polars.selectors as cs

from polars_oner.errors import ColumnRoleError, DtypeError, MissingColumnError
from polars_oner.typing import FrameT, Kind

UNSUPPORTED = (pl.List, pl.Array, pl.Struct, pl.Object, pl.Binary, pl.Null, pl.Unknown)


@dataclass(frozen=True)
class Column:
    """A feature: its name, dtype and the kind of test it takes."""

    name: str
    dtype: pl.DataType
    kind: Kind


@dataclass(frozen=True)
class Skipped:
    """A column that cannot be tested, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Roles:
    """What each column of the frame is used for.

    ``features`` and ``skipped`` keep the order of the frame, or the caller's if features were
    named; ``names`` is that order over both.
    """

    target: str
    target_dtype: pl.DataType
    features: tuple[Column, ...]
    skipped: tuple[Skipped, ...]
    names: tuple[str, ...]


def column(name: str) -> pl.Expr:
    """Refer to one column by its literal name, also where Polars would read a pattern."""
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        return cs.by_name(name).as_expr()
    return pl.col(name)


def is_missing(values: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Tell which values are missing: null, and NaN in a float column."""
    if dtype.is_float():
        return values.is_null() | values.is_nan()
    return values.is_null()


def canonical(values: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Write every missing value as null and -0.0 as 0.0, so that equal values group together."""
    if dtype.is_float():
        present = values.fill_nan(None)
        return pl.when(present == 0).then(pl.lit(0.0, dtype)).otherwise(present)
    if isinstance(dtype, pl.Categorical):
        return values.cast(pl.String)
    return values


def canonical_dtype(dtype: pl.DataType) -> pl.DataType:
    """Tell the dtype that `canonical` gives: its own, but text for a Categorical."""
    return pl.String() if isinstance(dtype, pl.Categorical) else dtype


def as_lazy(frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """Take either kind of frame as a query plan."""
    if not isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        msg = f"expected a polars DataFrame or LazyFrame, not {type(frame).__name__}"
        raise TypeError(msg)
    return frame.lazy()


def like(result: pl.LazyFrame, frame: FrameT) -> FrameT:
    """Give a table back as the kind of frame that was asked: eager from eager, lazy from lazy."""
    if isinstance(frame, pl.DataFrame):
        return result.collect()
    return result


def resolve(
    schema: pl.Schema,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    enum_kind: Kind = "ordered",
    reserved: Sequence[str] = (),
) -> Roles:
    """Check the column choice against the schema and settle each feature's kind.

    Parameters
    ----------
    schema
        Names and dtypes of the frame.
    target
        The column to predict; never a feature.
    features
        The columns to test; all but the target and ``reserved`` when None.
    nominal, ordered
        Columns whose kind overrides that of their dtype.
    enum_kind
        How an Enum counts: ordered in splits, nominal in 1R and class rules.
    reserved
        Columns with another role (segments, weights, folds), left out of the features.

    Raises
    ------
    MissingColumnError
        A named column is absent; the message shows near matches.
    ColumnRoleError
        The target is named as a feature, or a column is named twice or in two roles.
    DtypeError
        A feature is named whose dtype cannot be tested, or a text column is to be ordered.
    """
    nominal, ordered = _names(nominal, "nominal"), _names(ordered, "ordered")
    for name in (target, *reserved, *nominal, *ordered):
        require_column(schema, name)
    for name in ordered:
        if name in nominal:
            raise ColumnRoleError.role_clash(name, "nominal", "ordered")
    for name in reserved:
        if name == target:
            raise ColumnRoleError.role_clash(name, "target", "segment, weight or fold")
    if features is None:
        taken = {target, *reserved}
        names: tuple[str, ...] = tuple(name for name in schema if name not in taken)
    else:
        names = _names(features, "features")
    columns: list[Column] = []
    skipped: list[Skipped] = []
    for name in names:
        if name == target:
            raise ColumnRoleError.target_as_feature(target)
        if name in reserved:
            raise ColumnRoleError.role_clash(name, "feature", "segment, weight or fold")
        dtype = require_column(schema, name)
        if isinstance(dtype, UNSUPPORTED) or not _is_known(dtype):
            if features is not None:
                raise DtypeError.feature(name, dtype, "values of that kind cannot be tested")
            skipped.append(Skipped(name, f"dtype {dtype} cannot be tested"))
            continue
        columns.append(
            Column(name, dtype, _kind(name, dtype, nominal, ordered, enum_kind=enum_kind))
        )
    if not names:
        raise ColumnRoleError.without_features(target)
    return Roles(target, schema[target], tuple(columns), tuple(skipped), names)


def require_column(schema: pl.Schema, name: str) -> pl.DataType:
    """Give the dtype of a column, or raise with the nearest names."""
    if name not in schema:
        raise MissingColumnError.from_names(name, schema.names())
    return schema[name]


def _names(choice: str | Collection[str], option: str) -> tuple[str, ...]:
    names = (choice,) if isinstance(choice, str) else tuple(choice)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ColumnRoleError.named_twice(name, option)
    return names


def _is_known(dtype: pl.DataType) -> bool:
    nominal = isinstance(dtype, (pl.String, pl.Categorical, pl.Boolean, pl.Enum))
    return nominal or dtype.is_numeric() or dtype.is_temporal()


def _kind(
    name: str,
    dtype: pl.DataType,
    nominal: Collection[str],
    ordered: Collection[str],
    *,
    enum_kind: Kind,
) -> Kind:
    text = isinstance(dtype, (pl.String, pl.Categorical))
    if name in ordered:
        if text:
            raise DtypeError.feature(
                name, dtype, "text has no order to cut; cast it to an Enum that declares one"
            )
        return "ordered"
    if name in nominal or text or isinstance(dtype, pl.Boolean):
        return "nominal"
    return enum_kind if isinstance(dtype, pl.Enum) else "ordered"
