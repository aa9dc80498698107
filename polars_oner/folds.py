"""Rows dealt to folds, and every feature counted per fold in the one shared pass.

Rows are lined up by class and then by a seeded hash of their content, and dealt to the folds in turn,
as cards are. A row's place in that line does not depend on where it stands in the frame: equal rows
stand together, and since nothing tells them apart it does not matter which of them goes where. They
are spread over the folds as evenly as the classes are. (Folds made of the hash itself would keep equal
rows together, and a table of few nominal columns, which has nothing but equal rows, would be held out
in whole values.)

Counting per fold costs what counting costs: the fold travels within the class's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.counts import count_values
from polars_oner.criteria import require_classes
from polars_oner.errors import OneRError, OptionError, check_positive
from polars_oner.frame import Column, Roles, as_lazy, canonical, column, is_missing
from polars_oner.intervals import Counts, Indices, group_starts
from polars_oner.target import ClassTarget, class_target, row_weight
from polars_oner.typing import Engine


@dataclass(frozen=True)
class Folding:
    """How rows get their folds, checked; the fields are the keywords of `cross_validate`."""

    n_folds: int = 10
    seed: int = 0
    stratify: bool = True
    column: str | None = None

    def __post_init__(self) -> None:
        check_positive("folds", self.n_folds)
        if self.n_folds == 1:
            raise OptionError.from_range("folds", self.n_folds, "at least 2")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise OptionError.from_range("seed", self.seed, "a whole number of at least 0")
        if not isinstance(self.stratify, bool):
            raise OptionError.from_range("stratify", self.stratify, "True or False")

    def check_column(self, schema: pl.Schema) -> None:
        """Raise unless the values of the fold column can name folds."""
        if self.column is not None:
            allowed = ("integers", "Boolean", "text", "dates")
            require_classes(self.column, schema[self.column], "the choice of folds", allowed)


@dataclass(frozen=True)
class FoldCounts:
    """A feature's counts per fold.

    A *cell* is a value and a class that occurs there; cells ascend by value, then class.

    Attributes
    ----------
    feature
        The feature.
    values
        Its distinct values, ascending, missing not among them.
    value, codes
        Per cell the position in ``values``, and the class.
    starts
        The first row of each cell.
    fold, n
        Per row, one for each cell and fold that has any of it: the fold and the count.
    missing
        The counts of the missing rows, of shape (folds, classes).
    """

    feature: Column
    values: pl.Series
    value: Indices
    codes: Indices
    starts: Indices
    fold: Indices
    n: Counts
    missing: Counts

    @classmethod
    def from_table(
        cls, feature: Column, table: pl.DataFrame, n_folds: int, n_classes: int
    ) -> FoldCounts:
        """Take a count table whose ``class`` holds class and fold, ``class * n_folds + fold``."""
        absent = table.filter(pl.col("value").is_null())
        missing = np.zeros((n_classes, n_folds), dtype=table["n"].to_numpy().dtype)
        missing.reshape(-1)[absent["class"].to_numpy()] = absent["n"].to_numpy()
        present = table.filter(pl.col("value").is_not_null()) if absent.height else table
        codes, fold = np.divmod(present["class"].to_numpy(), np.uint32(n_folds))
        value = present["value"].rle_id().to_numpy()
        n = present["n"].to_numpy()
        of_cell = group_starts(value.astype(np.int64) * n_classes + codes)
        of_value = group_starts(value)
        return cls(
            feature,
            present["value"].gather(of_value),
            value[of_cell].astype(np.intp),
            codes[of_cell].astype(np.intp),
            of_cell,
            fold.astype(np.intp),
            n,
            missing.T,
        )

    def per_fold(self) -> Counts:
        """Give the rows of each class in each fold, of shape (folds, classes)."""
        sizes = np.diff(self.starts, append=len(self.n))
        codes = self.codes if len(self.codes) == len(self.n) else np.repeat(self.codes, sizes)
        return self.missing + _per_fold(self.fold, codes, self.n, *self.missing.shape)

    def total(self) -> pl.DataFrame:
        """Give the count table of all folds together."""
        n_missing = self.missing.sum(axis=0)
        seen = np.flatnonzero(n_missing)
        n = self.n if len(self.starts) == len(self.n) else np.add.reduceat(self.n, self.starts)
        return pl.DataFrame(
            {
                "value": pl.concat([self.values.clear(len(seen)), self.values.gather(self.value)]),
                "class": np.concatenate([seen, self.codes]).astype(np.uint32),
                "n": np.concatenate([n_missing[seen], n]),
            }
        )

    def without(self, left_out: Sequence[int]) -> tuple[Indices, Indices, Counts, Counts]:
        """Give the counts of all folds but some: value, class and n of cells, n of missing rows."""
        kept = np.ones(len(self.missing), dtype=bool)
        kept[list(left_out)] = False
        missing = self.missing[kept].sum(axis=0)
        if len(self.starts) == len(self.n):
            some = np.flatnonzero(kept[self.fold])
            return self.value[some], self.codes[some], self.n[some], missing
        n = np.add.reduceat(np.where(kept[self.fold], self.n, 0), self.starts)
        some = np.flatnonzero(n)
        return self.value[some], self.codes[some], n[some], missing

    def only(self, fold: int) -> tuple[Indices, Indices, Counts, Counts]:
        """Give the counts of one fold, like `without`."""
        rows = np.flatnonzero(self.fold == fold)
        cells = rows
        if len(self.starts) < len(self.n):
            cells = np.searchsorted(self.starts, rows, side="right") - 1
        return self.value[cells], self.codes[cells], self.n[rows], self.missing[fold]


@dataclass(frozen=True)
class FoldTables:
    """What cross-validation needs of the data.

    Attributes
    ----------
    labels
        The folds, ascending.
    n_rows
        Rows of each class in each fold, of shape (folds, classes).
    features
        The counts of every feature, in the order of the columns.
    """

    labels: pl.Series
    n_rows: Counts
    features: tuple[FoldCounts, ...]


@dataclass(frozen=True)
class _FoldedTarget(ClassTarget):
    """A target whose code holds the class and the fold."""

    fold: pl.Expr
    n_folds: int

    def code(self) -> pl.Expr:
        return super().code() * self.n_folds + self.fold.cast(pl.UInt32)


def count_folds(
    frame: pl.DataFrame | pl.LazyFrame,
    roles: Roles,
    target: ClassTarget,
    folding: Folding,
    *,
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> FoldTables:
    """Give each row a fold and count every feature per fold: two passes over the source.

    Raises
    ------
    OptionError
        There are fewer than two folds with rows, or rows without a fold.
    OneRError
        A query gives its rows in another order each time, so that they cannot be dealt.
    """
    n_classes = len(target.classes)
    if folding.column is None:
        dealt, name, weights, expected = _deal(frame, roles, target, folding, weights, engine)
        labels, fold = pl.Series("fold", np.arange(len(expected))), pl.col(name)
        frame = dealt.collect() if isinstance(frame, pl.DataFrame) else dealt
    else:
        kept = as_lazy(frame).filter(~is_missing(column(target.name), target.dtype))
        dtype = kept.collect_schema()[folding.column]
        named = class_target(kept, folding.column, dtype, weights=weights, engine=engine)
        if named.n_missing:
            msg = f"fold column {folding.column!r} has no value in {named.n_missing} rows"
            raise OptionError(msg)
        labels, fold, expected = named.classes.cast(dtype).alias("fold"), named.code(), None
    if len(labels) < 2:
        msg = f"cross-validation needs rows in at least two folds, not {len(labels)}"
        raise OptionError(msg)
    folded = _FoldedTarget(
        target.name,
        target.dtype,
        target.classes,
        target.counts,
        target.n_missing,
        fold,
        len(labels),
    )
    tables = count_values(
        frame, roles.features, folded, weights=weights, engine=engine, progress=progress
    )
    features = tuple(
        FoldCounts.from_table(feature, tables[feature.name], len(labels), n_classes)
        for feature in roles.features
    )
    n_rows = features[0].per_fold()
    if expected is not None and not np.allclose(n_rows, expected):
        msg = (
            "the query gives its rows in another order each time it runs, so they cannot be dealt "
            "to folds; collect it first, or name a fold_column"
        )
        raise OneRError(msg)
    return FoldTables(labels, n_rows, features)


def _deal(
    frame: pl.DataFrame | pl.LazyFrame,
    roles: Roles,
    target: ClassTarget,
    folding: Folding,
    weights: str | None,
    engine: Engine,
) -> tuple[pl.LazyFrame, str, str | None, Counts]:
    """Deal the rows to folds.

    Returns
    -------
    LazyFrame
        The frame and what follows. A row of a whole weight is dealt like as many rows; where that
        takes it to several folds, it stands there once for each.
    str
        The column that holds the fold.
    str or None
        The column that holds the weight.
    ndarray
        Rows of each class in each fold that has any.
    """
    lazy = as_lazy(frame)
    schema = lazy.collect_schema()
    used = {target.name: target.dtype, **{each.name: each.dtype for each in roles.features}}
    content = pl.struct(
        canonical(column(name), dtype).alias(str(i)) for i, (name, dtype) in enumerate(used.items())
    )
    weight = row_weight(schema, weights)
    present = ~is_missing(column(target.name), target.dtype) & (weight > 0)
    rows = lazy.select(
        present.alias("present"),
        pl.when(present).then(target.code()).alias("class"),
        content.hash(folding.seed).alias("hash"),
        weight.alias("weight"),
    ).collect(engine=engine)
    kept = rows["present"].to_numpy()
    some = rows if kept.all() else rows.filter("present")
    codes, n = some["class"].to_numpy(), some["weight"].to_numpy()
    n_classes, n_folds = len(target.classes), folding.n_folds
    order = _line(codes, some["hash"].to_numpy(), n_classes if folding.stratify else 1)
    row, place, fold, part = _free_names(schema, 4)
    if weights is None or n.dtype.kind == "f":
        dealt_to = np.empty(len(order), dtype=np.uint32)
        dealt_to[order] = np.arange(len(order), dtype=np.uint32) % np.uint32(n_folds)
        dealt = _attach(frame, _of_all(fold, dealt_to, kept), row)
        expected = _per_fold(dealt_to, codes, n, n_folds, n_classes)
        return dealt, fold, weights, _with_rows(expected)
    # A row of weight w stands for the places from its own up to w - 1 further.
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.cumsum(n[order]) - n[order]
    steps = np.minimum(n, n_folds)
    of_part = np.repeat(np.arange(len(n)), steps)
    step = np.arange(len(of_part)) - np.repeat(np.cumsum(steps) - steps, steps)
    shares = n[of_part] // n_folds + (step < n[of_part] % n_folds)
    fold_of_part = (places[of_part] + step) % n_folds
    expected = _per_fold(fold_of_part, codes[of_part], shares, n_folds, n_classes)
    dealt = (
        _attach(frame, _of_all(place, places, kept), row)
        .filter(present)
        .with_columns(pl.int_ranges(0, pl.min_horizontal(weight, n_folds)).alias(part))
        .explode(part, empty_as_null=False)
        .with_columns(
            ((pl.col(place) + pl.col(part)) % n_folds).alias(fold),
            (weight // n_folds + (pl.col(part) < weight % n_folds)).alias(part),
        )
    )
    return dealt, fold, part, _with_rows(expected)


def _line(codes: npt.NDArray[np.uint32], hashes: npt.NDArray[np.uint64], n_strata: int) -> Indices:
    """Line rows up by class, unless there is one stratum, and then by hash."""
    if n_strata == 1:
        return np.argsort(hashes)
    # One key of both: as many bits for the class as it needs, the others for the hash.
    bits = np.uint64((n_strata - 1).bit_length())
    return np.argsort((codes.astype(np.uint64) << (np.uint64(64) - bits)) | (hashes >> bits))


def _per_fold(
    fold: npt.NDArray[np.integer[Any]],
    codes: npt.NDArray[np.integer[Any]],
    n: Counts,
    n_folds: int,
    n_classes: int,
) -> Counts:
    """Add up the rows of each class in each fold, of shape (folds, classes)."""
    cells = np.bincount(fold * n_classes + codes, weights=n, minlength=n_folds * n_classes)
    found = cells.reshape(n_folds, n_classes)
    return found if n.dtype.kind == "f" else found.astype(np.int64)


def _with_rows(n_rows: Counts) -> Counts:
    """Drop the folds without rows: rows are dealt from the first fold on."""
    return n_rows[: np.count_nonzero(n_rows.any(axis=1))]


def _free_names(schema: pl.Schema, n_names: int) -> list[str]:
    """Give column names that the frame does not have."""
    free = (name for i in count() if (name := f"fold_{i}") not in schema)
    return list(islice(free, n_names))


def _of_all(name: str, values: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> pl.Series:
    """Spread what the kept rows have over all rows."""
    if kept.all():
        return pl.Series(name, values)
    found = np.zeros(len(kept), dtype=values.dtype)
    found[kept] = values
    return pl.Series(name, found)


def _attach(frame: pl.DataFrame | pl.LazyFrame, values: pl.Series, row: str) -> pl.LazyFrame:
    """Add a column; to a query by the number of each row, which takes the name ``row``."""
    if isinstance(frame, pl.DataFrame):
        return frame.with_columns(values).lazy()
    return frame.with_row_index(row).with_columns(
        pl.lit(values).gather(pl.col(row)).alias(values.name)
    )
