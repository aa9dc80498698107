"""Hypothesis strategies: features and targets of every dtype, full of ties, gaps and odd values.

Values come from small pools, so that values repeat, classes mix and scores tie.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

import polars as pl
from hypothesis import strategies as st

from tests.oracle import Value

LEVELS = ["S", "M", "L", "XL", "XXL"]
TINY = 5e-324


@dataclass(frozen=True)
class Feature:
    """A feature's dtype and cells; ``kind`` is its kind in a binary split."""

    dtype: pl.DataType
    values: list[Any]
    kind: Literal["ordered", "nominal"]

    @property
    def rule_kind(self) -> Literal["ordered", "nominal"]:
        """Tell the kind that 1R and class rules give it: an Enum is nominal there."""
        return "nominal" if isinstance(self.dtype, pl.Enum) else self.kind

    @property
    def column(self) -> list[Any]:
        """Give the cells as the dtype holds them: a Float32 is not the decimal it was written as."""
        return self.series("x").to_list()

    @property
    def is_number(self) -> bool:
        return self.dtype.is_integer() or self.dtype.is_float()

    def series(self, name: str) -> pl.Series:
        return pl.Series(name, self.values, dtype=self.dtype, strict=True)

    def key(self, value: Value) -> Value:
        """Give what the values are ordered by: an Enum's declared order, or themselves."""
        return LEVELS.index(value) if isinstance(self.dtype, pl.Enum) else value


ORDERED_POOLS: list[tuple[pl.DataType, Sequence[Any]]] = [
    (pl.Int8(), [-128, -1, 0, 1, 2, 127]),
    (pl.Int64(), [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1]),
    (pl.Int64(), [0, 1, 2, 3, 4, 5, 6, 7]),
    (pl.UInt8(), [0, 1, 2, 254, 255]),
    (pl.UInt64(), [0, 1, 2**63, 2**64 - 2, 2**64 - 1]),
    (pl.Float64(), [-math.inf, -1e300, -1.5, -0.0, 0.0, TINY, 0.1, 0.2, 1e300, math.inf, math.nan]),
    (pl.Float64(), [1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0), 1.5, 1.25, math.nan]),
    (pl.Float32(), [-math.inf, -1.5, -0.0, 0.0, 0.5, 1.0, 1.0000001192092896, 3e38, math.nan]),
    (pl.Decimal(10, 2), [Decimal(text) for text in ("-0.01", "0.00", "0.10", "0.11", "0.12", "9")]),
    (pl.Date(), [dt.date(2024, 2, 28) + dt.timedelta(days=i) for i in range(5)]),
    (
        pl.Datetime("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999998) + dt.timedelta(microseconds=i)
         for i in range(5)],
    ),
    (pl.Duration("us"), [dt.timedelta(microseconds=i) for i in (-3, -1, 0, 1, 10**12)]),
    (pl.Time(), [dt.time(0, 0, second) for second in range(5)]),
    (pl.Enum(LEVELS), LEVELS),
]  # fmt: skip

NOMINAL_POOLS: list[tuple[pl.DataType, Sequence[Any]]] = [
    (pl.String(), ["a", "b", "c", "d", "", "A b", "'q\""]),
    (pl.Categorical(), ["zeta", "b", "c", "alpha"]),
    (pl.Boolean(), [False, True]),
]

CLASS_POOLS: list[tuple[pl.DataType, Sequence[Any]]] = [
    (pl.Boolean(), [False, True]),
    (pl.Int8(), [-1, 2]),
    (pl.Int64(), [0, 1, 2]),
    (pl.String(), ["no", "yes"]),
    (pl.String(), ["a", "b", "c", "d"]),
    (pl.Enum(LEVELS), ["M", "L", "S"]),
    (pl.Categorical(), ["z", "a", "m"]),
]

NUMBER_POOLS: list[tuple[pl.DataType, Sequence[Any]]] = [
    (pl.Boolean(), [False, True]),
    (pl.Int32(), [-3, 0, 1, 2, 100]),
    (pl.Int64(), [10**12, 10**12 + 1, 10**12 + 3]),
    (pl.UInt8(), [0, 1, 255]),
    (pl.Float64(), [0.0, -0.0, 0.25, 1.5, -2.0]),
    (pl.Float32(), [0.5, 0.75, -1.0]),
]


def cells(
    pool: Sequence[Any], n_rows: int, *, missing: bool = True
) -> st.SearchStrategy[list[Any]]:
    """Draw a column's cells, now and then without any missing one."""
    value = st.sampled_from(list(pool))
    full = st.lists(value, min_size=n_rows, max_size=n_rows)
    if not missing:
        return full
    holed = st.lists(st.one_of(value, value, value, st.none()), min_size=n_rows, max_size=n_rows)
    return st.one_of(full, holed)


@st.composite
def features(
    draw: st.DrawFn,
    n_rows: int,
    *,
    kind: Literal["ordered", "nominal", "number", "any"] = "any",
    missing: bool = True,
) -> Feature:
    """Draw a feature of one kind; ``"number"`` means ordered with an integer or float dtype."""
    ordered = [(dtype, pool, "ordered") for dtype, pool in ORDERED_POOLS]
    nominal = [(dtype, pool, "nominal") for dtype, pool in NOMINAL_POOLS]
    choices = {
        "ordered": ordered,
        "nominal": nominal,
        "number": [c for c in ordered if c[0].is_integer() or c[0].is_float()],
        "any": ordered + nominal,
    }[kind]
    dtype, pool, found = draw(st.sampled_from(choices))
    return Feature(
        dtype,
        draw(cells(pool, n_rows, missing=missing)),
        "ordered" if found == "ordered" else "nominal",
    )


@dataclass(frozen=True)
class Target:
    """A target's dtype and cells, and the order of its classes when one is declared."""

    dtype: pl.DataType
    values: list[Any]

    @property
    def column(self) -> list[Any]:
        """Give the cells as the dtype holds them."""
        return self.series("y").to_list()

    @property
    def classes(self) -> list[Any] | None:
        return LEVELS if isinstance(self.dtype, pl.Enum) else None

    def series(self, name: str) -> pl.Series:
        return pl.Series(name, self.values, dtype=self.dtype, strict=True)


@st.composite
def targets(
    draw: st.DrawFn,
    n_rows: int,
    *,
    numbers: bool = False,
    missing: bool = True,
) -> Target:
    """Draw a target with at least one value present: classes, or numbers."""
    dtype, pool = draw(st.sampled_from(NUMBER_POOLS if numbers else CLASS_POOLS))
    values = draw(cells(pool, n_rows, missing=missing))
    if all(value is None for value in values):
        values[0] = pool[0]
    return Target(dtype, values)


@dataclass(frozen=True)
class Table:
    """A target and features by name."""

    features: dict[str, Feature]
    target: Target

    @property
    def frame(self) -> pl.DataFrame:
        columns = [feature.series(name) for name, feature in self.features.items()]
        return pl.DataFrame([*columns, self.target.series("y")])


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    numbers: bool = False,
    kind: Literal["ordered", "nominal", "number", "any"] = "any",
    missing: bool = True,
    max_rows: int = 24,
    max_features: int = 3,
) -> Table:
    """Draw a whole table of 1 to ``max_rows`` rows; features are called f0, f1, ..."""
    n_rows = draw(st.integers(1, max_rows))
    n_features = draw(st.integers(1, max_features))
    return Table(
        {f"f{i}": draw(features(n_rows, kind=kind, missing=missing)) for i in range(n_features)},
        draw(targets(n_rows, numbers=numbers, missing=missing)),
    )


@st.composite
def chunked(draw: st.DrawFn, frame: pl.DataFrame) -> pl.DataFrame:
    """Draw the same rows in the same order, in several chunks."""
    cuts = sorted(draw(st.lists(st.integers(0, frame.height), max_size=3)))
    edges = [0, *cuts, frame.height]
    pieces = [frame[a:b] for a, b in pairwise(edges)]
    return pl.concat(pieces, rechunk=False)


@st.composite
def shuffled(draw: st.DrawFn, frame: pl.DataFrame) -> pl.DataFrame:
    """Draw the same rows in another order."""
    return frame[draw(st.permutations(range(frame.height)))]
