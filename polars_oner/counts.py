"""Sufficient statistics in long form: one row per value and class of a feature.

Everything the library learns, it learns from these tables: how often each class stands at each value
or, for a numeric target, the moments of the target there. A table is one group-by. Several features
of a source that lies outside memory share one pass: batches of it are grouped as they stream by, and
the partial tables are added up, so that nothing is held but counts and a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_oner.errors import MissingPackageError
from polars_oner.frame import Column, as_lazy, canonical, column
from polars_oner.target import ClassTarget, NumberTarget, known_rows, row_weight
from polars_oner.typing import Engine

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_BATCH_CELLS = 1 << 23
"""Batches of a shared pass have about this many cells, at most twice as many."""

_LONGEST_BATCH = 1_000_000
_SHORTEST_BATCH = 1 << 12

_PARTIAL_ROWS = 1 << 20
"""Partial tables are added up when they have this many rows, or twice what the last sum had."""


_MANY_ROWS = 1 << 17
"""From this many rows a sort may beat a group-by."""

_SAMPLE = 1 << 12
"""Values looked at to decide."""

_MOST_DIFFER = 0.995
"""Share of them that differ from which the sort is taken."""


@dataclass(frozen=True)
class Measure:
    """What is summed up at each value: rows per class, or moments of a numeric target.

    ``target`` is a row's class (any dtype) or its deviation from the target's center.
    """

    target: pl.Expr
    by_class: bool

    @property
    def keys(self) -> list[str]:
        """Give the grouping columns besides the value: ``class``, or none."""
        return ["class"] if self.by_class else []

    @property
    def sums(self) -> list[str]:
        """Give the columns that add up: ``n``, and ``s`` and ``q`` for a numeric target."""
        return ["n"] if self.by_class else ["n", "s", "q"]

    def per_row(self, weight: pl.Expr) -> list[pl.Expr]:
        """Give a single row's statistics: its weight as ``n``, weighted moments, its class."""
        n = weight.alias("n")
        if self.by_class:
            return [self.target.alias("class"), n]
        s = self.target * weight
        return [n, s.alias("s"), (self.target * s).alias("q")]


def measure_of(target: ClassTarget | NumberTarget) -> Measure:
    """Give the measure of a target that has been looked at: class codes, or deviations."""
    if isinstance(target, ClassTarget):
        return Measure(target.code(), by_class=True)
    return Measure(target.deviation(), by_class=False)


def count_plan(
    rows: pl.LazyFrame,
    feature: Column,
    measure: Measure,
    *,
    by: Sequence[str] = (),
    by_runs: bool = False,
) -> pl.LazyFrame:
    """Plan the counts of one feature.

    Parameters
    ----------
    rows
        A frame with the ``by`` columns, the statistics of `Measure.per_row` and the feature under
        its own name.
    feature
        The feature to count.
    measure
        What is summed up.
    by
        Columns that split the rows into parts counted apart, such as segments or folds.
    by_runs
        Whether to sort the rows and count runs of equal ones, which only whole weights allow.
        Where most values differ that is several times faster than to group them.

    Returns
    -------
    LazyFrame
        One row per part, value and class, ascending; missing values come first. ``by``; ``value`` in
        the feature's dtype, null for missing; ``class``; ``n`` Int64 (Float64 with float weights);
        for a numeric target ``s`` and ``q`` Float64 in place of ``class``.
    """
    used = rows.select(
        *by,
        canonical(column(feature.name), feature.dtype).alias("value"),
        *measure.keys,
        *measure.sums,
    )
    return _added_up(used, [*by, "value", *measure.keys], measure.sums, by_runs=by_runs)


def count_values(
    frame: pl.DataFrame | pl.LazyFrame,
    features: Sequence[Column],
    target: ClassTarget | NumberTarget,
    *,
    keys: Sequence[str] = (),
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> dict[str, pl.DataFrame]:
    """Count every feature in one shared pass over the frame.

    Parameters
    ----------
    frame
        The user's frame. Rows without a target are left out.
    features
        The features to count.
    target
        The target, looked at before.
    keys
        Further columns that split the counts, such as a fold; they lead the tables as ``by0``, ...
    weights
        Column of row weights.
    engine
        The Polars engine that runs the plans.
    progress
        Show rows done.

    Returns
    -------
    dict of DataFrame
        For each feature the table of `count_plan`; ``class`` is the UInt32 index into the target's
        classes.
    """
    measure = measure_of(target)
    lazy = as_lazy(frame)
    weight = row_weight(lazy.collect_schema(), weights)
    # Features travel under short internal names: the user's could be those of the statistics.
    short = [Column(f"x{i}", feature.dtype, feature.kind) for i, feature in enumerate(features)]
    parts = {f"by{i}": key for i, key in enumerate(keys)}
    rows = known_rows(lazy, target, weights).select(
        *(column(key).alias(part) for part, key in parts.items()),
        *measure.per_row(weight),
        *(
            column(feature.name).alias(alias.name)
            for feature, alias in zip(features, short, strict=True)
        ),
    )
    if isinstance(frame, pl.DataFrame):
        columns = {
            alias.name: frame[feature.name] for feature, alias in zip(features, short, strict=True)
        }
        tables = count_together(rows, short, measure, columns, by=tuple(parts), engine=engine)
    elif len(features) == 1:
        tables = count_together(rows, short, measure, {}, by=tuple(parts), engine=engine)
    else:
        tallies = [Tally([*parts, "value", *measure.keys], measure.sums) for _ in short]

        def consume(batch: pl.DataFrame) -> None:
            found = count_batch(batch, short, measure, by=tuple(parts))
            for tally, table in zip(tallies, found, strict=True):
                tally.add(table)

        shared_pass(
            rows,
            consume,
            n_columns=len(features) + len(keys) + 2,
            n_rows=target.n_rows,
            label="counting values",
            engine=engine,
            progress=progress,
        )
        tables = [tally.total() for tally in tallies]
    return {feature.name: table for feature, table in zip(features, tables, strict=True)}


def count_together(
    rows: pl.LazyFrame,
    features: Sequence[Column],
    measure: Measure,
    columns: Mapping[str, pl.Series],
    *,
    by: Sequence[str] = (),
    engine: Engine = "auto",
) -> list[pl.DataFrame]:
    """Count some features of the same rows, each in the way that suits its values.

    Parameters
    ----------
    rows, measure, by
        As in `count_plan`.
    features
        The features.
    columns
        The values of those features that are at hand to look at, by name.
    engine
        The Polars engine for what is grouped; what is sorted is so in memory.
    """
    is_whole = measure.by_class and not rows.collect_schema()["n"].is_float()
    by_runs = [f for f in features if is_whole and _mostly_differ(columns.get(f.name), f)]
    plans = {
        feature: count_plan(rows, feature, measure, by=by, by_runs=feature in by_runs)
        for feature in features
    }
    grouped = {feature: plan for feature, plan in plans.items() if feature not in by_runs}
    tables = dict(zip(grouped, pl.collect_all(grouped.values(), engine=engine), strict=True))
    # A sort takes all cores and much memory by itself: one after the other.
    tables |= {feature: plans[feature].collect(engine="in-memory") for feature in by_runs}
    return [tables[feature] for feature in features]


def count_batch(
    batch: pl.DataFrame, features: Sequence[Column], measure: Measure, *, by: Sequence[str] = ()
) -> list[pl.DataFrame]:
    """Count some features of a batch of a shared pass."""
    columns = {feature.name: batch[feature.name] for feature in features}
    # Whatever engine reads the source: this one groups text several times faster than in memory.
    return count_together(batch.lazy(), features, measure, columns, by=by, engine="streaming")


def shared_pass(
    rows: pl.LazyFrame,
    consume: Callable[[pl.DataFrame], None],
    *,
    n_columns: int,
    n_rows: float | None = None,
    label: str = "pass",
    engine: Engine = "auto",
    progress: bool = False,
) -> None:
    """Stream a plan once, batch by batch, in no particular order.

    Parameters
    ----------
    rows
        The plan. A plan that does no more than choose rows and columns gives the pieces that the
        source holds, uncopied.
    consume
        Takes each batch.
    n_columns
        How wide the batches are; sets how many rows they have.
    n_rows
        How many rows are to come, if known; for the progress bar.
    label
        What the progress bar calls this pass.
    engine
        The Polars engine.
    progress
        Show a progress bar on standard error.

    Raises
    ------
    MissingPackageError
        Progress is asked for and tqdm is not installed.
    """
    length = min(max(_BATCH_CELLS // max(n_columns, 1), _SHORTEST_BATCH), _LONGEST_BATCH)
    batches = rows.collect_batches(maintain_order=False, engine=engine)
    with progress_bar(n_rows, label) if progress else nullcontext() as bar:
        for batch in _resized(batches, length):
            consume(batch)
            if bar is not None:
                bar.update(batch.height)


def _resized(batches: Iterable[pl.DataFrame], length: int) -> Iterator[pl.DataFrame]:
    """Put batches together until they have ``length`` rows, and cut those with more than twice that."""
    held: list[pl.DataFrame] = []
    height = 0
    for batch in batches:
        height += batch.height
        held.append(batch)
        if height >= length:
            yield from pl.concat(held).iter_slices(2 * length)
            held, height = [], 0
    if held:
        yield pl.concat(held)


def progress_bar(n_rows: float | None, label: str) -> AbstractContextManager[Any]:
    """Open a progress bar over rows."""
    try:
        from tqdm import tqdm
    except ImportError:
        raise MissingPackageError.from_extra("tqdm", "progress", "progress=True") from None
    bar: AbstractContextManager[Any] = tqdm(total=n_rows, desc=label, unit="row", unit_scale=True)
    return bar


class Tally:
    """Adds partial count tables up, holding no more than about twice the final one."""

    def __init__(self, keys: Sequence[str], sums: Iterable[str]) -> None:
        self.keys = list(keys)
        self.sums = list(sums)
        self.parts: list[pl.DataFrame] = []
        self._held = 0
        self._limit = _PARTIAL_ROWS

    def add(self, table: pl.DataFrame) -> None:
        """Take in one partial table."""
        self.parts.append(table)
        self._held += table.height
        if self._held > self._limit:
            self.total()

    def total(self) -> pl.DataFrame:
        """Give the sum of all tables so far, ascending by its keys."""
        if len(self.parts) > 1:
            rows = pl.concat(self.parts)
            plan = _added_up(rows.lazy(), self.keys, self.sums, by_runs=self._by_runs(rows))
            self.parts = [plan.collect(engine="in-memory")]
        (whole,) = self.parts
        self._held = whole.height
        self._limit = max(_PARTIAL_ROWS, 2 * whole.height)
        return whole

    def _by_runs(self, rows: pl.DataFrame) -> bool:
        if "value" not in self.keys or any(rows.schema[name].is_float() for name in self.sums):
            return False
        return _mostly_differ(rows["value"], Column("value", rows.schema["value"], "ordered"))


def _added_up(
    rows: pl.LazyFrame, keys: Sequence[str], sums: Sequence[str], *, by_runs: bool
) -> pl.LazyFrame:
    """Add up the rows of equal keys, and order them by these."""
    if not by_runs:
        return rows.group_by(keys).agg(pl.col(sums).sum()).sort(keys)
    differs = (pl.col(key).ne_missing(pl.col(key).shift(-1)) for key in keys)
    is_last = pl.any_horizontal(*differs, pl.int_range(1, pl.len() + 1) == pl.len())
    totals = rows.sort(keys).with_columns(pl.col(sums).cum_sum()).filter(is_last)
    return totals.with_columns(pl.col(sums) - pl.col(sums).shift(1).fill_null(0))


def _mostly_differ(values: pl.Series | None, feature: Column) -> bool:
    """Tell by a sample whether so many of many values differ that sorting beats grouping."""
    if values is None or feature.kind != "ordered" or len(values) < _MANY_ROWS:
        return False
    if not (feature.dtype.is_numeric() or feature.dtype.is_temporal()):
        return False
    sample = values.gather_every(len(values) // _SAMPLE)
    return sample.n_unique() > _MOST_DIFFER * len(sample)
