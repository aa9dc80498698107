"""Bound and refine: the exact best split without counting every distinct value.

The first pass counts coarse bins of each axis. `verdicts` tells which bins can hold the best cut; the
rows of the others are only added up. The last pass counts the rows in the open bins by exact value. If
those bins hold too many rows, passes between divide them further. Every pass reads the source once
for all features, and the counts it ends with, exact where it matters and lumped elsewhere, go through
the same scores as those of every value: the answer is the same to the last bit.

The first pass uses bins of equal width, in values or in codes that order them (`binning`), whichever
share a sample out better; later passes divide ranges of codes, until a bin is a single Float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.axis import Axis, Cells, Sums
from polars_oner.binning import Bins, as_float, choose_bins, in_cache
from polars_oner.counts import (
    Tally,
    count_batch,
    count_plan,
    count_values,
    measure_of,
    shared_pass,
)
from polars_oner.criteria import TIE
from polars_oner.frame import Column, as_lazy, column
from polars_oner.scores import Search, candidates, first_best
from polars_oner.target import ClassTarget, NumberTarget, known_rows, row_weight
from polars_oner.typing import Engine, Strategy
from polars_oner.verdicts import judge

_FEW_ROWS = 1 << 17
"""Up to this many rows every value is counted: bins would save nothing."""

_MOST_CLASSES = 64
"""With more classes the tables of bins outgrow those of values."""

_MOST_CELLS = 1 << 21
"""Bins times classes of one feature."""

_OPEN_ROWS = 1 << 22
"""Rows in open bins that one pass may count by value, over all features; more are divided first."""

_GATHERED_ROWS = 1 << 18
"""Rows gathered for one axis before they are grouped."""

_BLOCK = 128
"""Features that share a pass. Beyond, memory would grow with the width of the table: the source is
read once per block instead, each column still once."""

_FEW_AXES = 8
"""If the best of more axes is wanted, they are judged by fewer bins."""

_LUMPED_AT_A_TIME = 32
"""Axes whose counted values are lumped together: the plans of all would take hundreds of MB."""

_SAMPLE = 1 << 13
"""Values that the first bins of an axis are chosen by."""

_SLACK = 1e-9
"""Bounds are rounded: within this share of the unsplit score they count as reached."""


Statistic = npt.NDArray[Any] | None


def split_counts(
    frame: pl.DataFrame | pl.LazyFrame,
    searches: Mapping[Column, Search],
    target: ClassTarget | NumberTarget,
    *,
    weights: str | None = None,
    strategy: Strategy = "auto",
    best_only: bool = False,
    engine: Engine = "auto",
    progress: bool = False,
) -> dict[str, pl.DataFrame]:
    """Count what the search for the best splits needs to see.

    Parameters
    ----------
    frame
        The user's frame.
    searches
        The features, each with how its candidates are scored.
    target
        The target, looked at before.
    weights
        Column of row weights.
    strategy
        ``"exhaustive"`` counts every value of every feature, ``"refine"`` only where a best cut can
        lie for all features with an order, ``"auto"`` does so if there are many rows.
    best_only
        Whether features that cannot beat the best one may be left out.
    engine, progress
        As in `shared_pass`.

    Returns
    -------
    dict of DataFrame
        Per feature the table of `counts.count_plan` with a column ``exact``; rows where it is false
        have a null value and add up a stretch of the axis in which the best cut does not lie.
    """
    binned = [
        feature
        for feature, search in searches.items()
        if strategy != "exhaustive" and _can_be_binned(feature, search, target)
    ]
    if weights is not None and _is_unbounded(as_lazy(frame).collect_schema()[weights], searches):
        binned = []
    if strategy == "auto" and target.n_rows <= _FEW_ROWS:
        binned = []
    plain = [feature for feature in searches if feature not in binned]
    if not binned:
        tables = count_values(
            frame, plain, target, weights=weights, engine=engine, progress=progress
        )
        return {
            name: table.with_columns(exact=pl.lit(value=True)) for name, table in tables.items()
        }
    passes = _Refinement(
        frame, searches, binned, target, weights, engine, progress, best_only=best_only
    )
    return passes.run()


def _can_be_binned(feature: Column, search: Search, target: ClassTarget | NumberTarget) -> bool:
    if feature.kind != "ordered" or isinstance(feature.dtype, (pl.Enum, pl.Boolean)):
        return False
    return isinstance(target, NumberTarget) or len(target.classes) <= _MOST_CLASSES


def _is_unbounded(weight: pl.DataType, searches: Mapping[Column, Search]) -> bool:
    """Tell whether sides may weigh less than one row, where `std` with ddof 1 is not concave."""
    is_whole = weight.is_integer() or isinstance(weight, pl.Boolean)
    return not is_whole and any(search.criterion.name == "std" for search in searches.values())


class _Refinement:
    """The passes over one source, and the axes that they divide."""

    def __init__(
        self,
        frame: pl.DataFrame | pl.LazyFrame,
        searches: Mapping[Column, Search],
        binned: Sequence[Column],
        target: ClassTarget | NumberTarget,
        weights: str | None,
        engine: Engine,
        progress: bool,
        *,
        best_only: bool,
    ) -> None:
        self.best_only = best_only
        self.searches = searches
        self.target = target
        self.engine = engine
        self.progress = progress
        self.measure = measure_of(target)
        lazy = as_lazy(frame)
        self.rows = known_rows(lazy, target, weights)
        self.per_row = self.measure.per_row(row_weight(lazy.collect_schema(), weights))
        self.row_dtype = self.rows.select(self.per_row).collect_schema()["n"]
        self.weights = weights
        if isinstance(target, ClassTarget):
            measures = [f"c{k}" for k in range(len(target.classes))]
        else:
            measures = ["n", "s", "q"]
        self._binned = set(binned)
        self.axes = [Axis(feature, measures, self.row_dtype) for feature in binned]
        self.names = {feature: f"x{i}" for i, feature in enumerate(searches)}

    def run(self) -> dict[str, pl.DataFrame]:
        """Count, bound and divide until every table is exact where a best cut can lie."""
        best_only = self.best_only
        tables: dict[str, pl.DataFrame] = {}
        rival = math.inf
        features = list(self.searches)
        for start in range(0, len(features), _BLOCK):
            block = features[start : start + _BLOCK]
            axes = [axis for axis in self.axes if axis.feature in block]
            plain = [feature for feature in block if feature not in self._binned]
            found = self._first_pass(axes, plain)
            rival = min(rival, self._best_of(found)) if best_only else math.inf
            rival = self._close(axes, rival)
            tables |= found
        for axis in self.axes:
            # The axes of the first blocks did not know the best cut of the last ones.
            axis.is_beaten |= best_only and axis.least_bound > rival + _SLACK * axis.before
        while heavy := self._heavy():
            open_rows = [axis.open_rows for axis in heavy]
            self._divide(heavy)
            rival = self._close(heavy, rival)
            for axis, before in zip(heavy, open_rows, strict=True):
                # Where finer bins close little, finer ones yet would not either. But rows that
                # crowd in one bin must be told apart before they can be counted in portions.
                closed_little = axis.open_rows > before / 2
                axis.is_stubborn = closed_little and axis.heaviest_run <= _OPEN_ROWS
        whole: list[Axis] = []
        while chunk := self._next_chunk():
            self._count_values(chunk)
            whole += [axis for axis in chunk if axis not in whole]
            held = sum(values.height for axis in whole for values in axis.values)
            if held > _OPEN_ROWS / 4 and self._next_chunk():
                self._lump(whole)
                whole = []
        by_name = {axis.feature.name: axis for axis in self.axes if not axis.is_beaten}
        tables |= {name: axis.table() for name, axis in by_name.items()}
        return {f.name: tables[f.name] for f in self.searches if f.name in tables}

    def _first_pass(self, axes: Sequence[Axis], plain: Sequence[Column]) -> dict[str, pl.DataFrame]:
        """Count axes by bins, and other features by value, in one pass."""
        tallies = {feature: self._tally() for feature in plain}
        bins: dict[Column, Bins] = {}
        sums: dict[Column, Sums] = {}

        def consume(batch: pl.DataFrame) -> None:
            if tallies:
                parts = count_batch(batch, [self._short(f) for f in tallies], self.measure)
                for tally, part in zip(tallies.values(), parts, strict=True):
                    tally.add(part)
            if not bins:
                for axis in axes:
                    name = self.names[axis.feature]
                    bins[axis.feature] = choose_bins(_sample(batch[name]), self._n_bins())
                    sums[axis.feature] = self._no_sums(bins[axis.feature].n)
            statistics = self._statistics(batch)
            for feature, coarse in bins.items():
                self._add(sums[feature], coarse, batch[self.names[feature]], statistics)

        columns = [as_float(axis.feature).alias(self.names[axis.feature]) for axis in axes]
        columns += [column(feature.name).alias(self.names[feature]) for feature in plain]
        features = [*(axis.feature for axis in axes), *plain]
        self._pass(features, columns, consume, "counting bins")
        for axis in axes:
            axis.fill(bins[axis.feature], sums[axis.feature].T)
        return {
            feature.name: tally.total().with_columns(exact=pl.lit(value=True))
            for feature, tally in tallies.items()
        }

    def _divide(self, axes: Sequence[Axis]) -> None:
        """Count the open runs of some axes by finer bins, in one pass."""
        bins = {axis.feature: axis.divide(self._n_bins()) for axis in axes}
        sums = {feature: self._no_sums(finer.n) for feature, finer in bins.items()}
        runs = {axis.feature: axis.runs(axis.cells.open) for axis in axes}

        def consume(batch: pl.DataFrame) -> None:
            statistics = self._statistics(batch)
            for feature, finer in bins.items():
                values = batch[self.names[feature]]
                rows = runs[feature].find(values)
                inside = [None if part is None else part[rows] for part in statistics]
                self._add(sums[feature], finer, values[rows], inside)

        columns = [as_float(feature).alias(self.names[feature]) for feature in bins]
        self._pass(list(bins), columns, consume, "dividing bins")
        for axis in axes:
            axis.fill(bins[axis.feature], sums[axis.feature].T)

    def _count_values(self, chunk: Mapping[Axis, Cells]) -> None:
        """Count the values in some open runs, in one pass: gather their rows, then group them."""
        tallies = {axis: self._tally() for axis in chunk}
        gathered: dict[Axis, list[pl.DataFrame]] = {axis: [] for axis in chunk}
        keys = [*self.measure.keys, *self.measure.sums]
        runs = {axis: axis.runs(cells) for axis, cells in chunk.items()}

        def count(axes: Sequence[Axis]) -> None:
            plans = [
                count_plan(
                    pl.concat(gathered[axis]).lazy(), self._short(axis.feature), self.measure
                )
                for axis in axes
            ]
            for axis, part in zip(axes, pl.collect_all(plans, engine="in-memory"), strict=True):
                tallies[axis].add(part)
                gathered[axis].clear()

        def consume(batch: pl.DataFrame) -> None:
            for axis in chunk:
                name = self.names[axis.feature]
                place = f"{name}_place" if f"{name}_place" in batch.columns else name
                inside = runs[axis].find(batch[place])
                if len(inside) or not (gathered[axis] or tallies[axis].parts):
                    gathered[axis].append(batch[[*keys, name]][inside])
                if sum(part.height for part in gathered[axis]) > _GATHERED_ROWS:
                    count([axis])

        columns = []
        for axis in chunk:
            name = self.names[axis.feature]
            columns.append(column(axis.feature.name).alias(name))
            if not isinstance(axis.feature.dtype, pl.Float64):
                columns.append(as_float(axis.feature).alias(f"{name}_place"))
        self._pass([axis.feature for axis in chunk], columns, consume, "counting values")
        count([axis for axis in chunk if gathered[axis]])
        for axis, cells in chunk.items():
            axis.take(cells, tallies[axis].total())

    def _pass(
        self,
        features: Sequence[Column],
        columns: list[pl.Expr],
        consume: Callable[[pl.DataFrame], None],
        label: str,
    ) -> None:
        """Read the source once, and give the rows' statistics with some columns of the features.

        They are computed on the batches. The plan itself only chooses rows and columns: then the
        engine hands over what it has read as it is, without holding more of it.
        """
        names = [self.target.name, *([self.weights] if self.weights else [])]
        names += [feature.name for feature in features]
        shared_pass(
            self.rows.select(column(name) for name in names),
            lambda batch: consume(batch.select(*self.per_row, *columns)),
            n_columns=len(names),
            n_rows=self.target.n_rows,
            label=label,
            engine=self.engine,
            progress=self.progress,
        )

    def _tally(self) -> Tally:
        return Tally(["value", *self.measure.keys], self.measure.sums)

    def _short(self, feature: Column) -> Column:
        """Give a feature under the name that it has in a batch."""
        return Column(self.names[feature], feature.dtype, feature.kind)

    def _n_bins(self) -> int:
        """Bins per axis: more with more rows, as each bin should hold few."""
        bits = round(0.55 * math.log2(max(self.target.n_rows, 2)) + 3.2)
        if isinstance(self.target, NumberTarget):
            # The bounds for moments are looser.
            bits += 2
        if self.best_only and len(self.axes) > _FEW_AXES:
            # Hardly any stays in the race, so what its bins leave open costs less than more bins of all.
            bits -= 2
        n_columns = len(self.target.classes) if isinstance(self.target, ClassTarget) else 3
        return 1 << min(max(bits, 6), int(math.log2(_MOST_CELLS / n_columns)))

    def _no_sums(self, n_bins: int) -> Sums:
        """Give sums of no rows: a row per bin, each column (for classes: the whole) in one piece."""
        shape = (n_bins + 1, len(self.axes[0].measures))
        if not self.measure.by_class:
            return np.zeros(shape, order="F")
        if self.weights is not None:
            return np.zeros(shape, dtype=np.int64 if self.row_dtype.is_integer() else np.float64)
        # Half the size stays in the processor's cache.
        is_short = self.target.n_rows < np.iinfo(np.int32).max
        return np.zeros(shape, dtype=np.int32 if is_short else np.int64)

    def _add(self, sums: Sums, bins: Bins, values: pl.Series, statistics: list[Statistic]) -> None:
        """Add the statistics of some rows to the sums of the bins that their values lie in."""
        one = sums.dtype.type(1)
        for start, part in in_cache(values):
            places = bins(part)
            rows = slice(start, start + len(part))
            terms: list[Any] = [one if term is None else term[rows] for term in statistics]
            if self.measure.by_class:
                # Bin and class together are a place in the flat sums.
                codes, weight = terms
                places *= sums.shape[1]
                places += codes
                np.add.at(sums.reshape(-1), places, weight)
                continue
            for i, term in enumerate(terms):
                np.add.at(sums[:, i], places, term)

    def _statistics(self, batch: pl.DataFrame) -> list[Statistic]:
        """Give a batch's classes and weights, or weights and moments; no weights without weights."""
        weight = batch["n"].to_numpy() if self.weights is not None else None
        if self.measure.by_class:
            return [batch["class"].to_numpy(), weight]
        return [weight, batch["s"].to_numpy(), batch["q"].to_numpy()]

    def _best_of(self, tables: Mapping[str, pl.DataFrame]) -> float:
        """Give the lowest score among the features that were counted by value."""
        by_name = {feature.name: search for feature, search in self.searches.items()}
        plans = [
            candidates(table.lazy(), by_name[name]).select(pl.col("score").min())
            for name, table in tables.items()
        ]
        scores = [table.item() for table in pl.collect_all(plans, engine="in-memory")]
        return min((score for score in scores if score is not None), default=math.inf)

    def _close(self, axes: Sequence[Axis], rival: float) -> float:
        """Close the cells that cannot hold the best cut of their axis, or of all.

        Gives the best score known, ``rival`` or better.
        """
        best_only = self.best_only
        axes = [axis for axis in axes if not axis.is_beaten and len(axis.cells)]
        search = self.searches[self.axes[0].feature]
        judged = list(judge(axes, search, self.target))
        if best_only:
            rival = min([rival, *(verdict.lowest for verdict in judged)])
        for axis, verdict in zip(axes, judged, strict=True):
            limit = rival if best_only else verdict.lowest
            axis.least_bound = verdict.bound.min()
            axis.before = verdict.before
            near, far = limit + TIE * verdict.before, limit + _SLACK * verdict.before
            if best_only and axis.least_bound > far:
                axis.is_beaten = True
                continue
            # A cut that only equals the best known loses to it if it comes later. The cell behind
            # that cut stays open: its first value is the other neighbour of the threshold.
            position = np.arange(len(axis.cells))
            at_best = min(np.flatnonzero(verdict.end <= near), default=len(axis.cells))
            may_hold = (
                (verdict.bound < limit - TIE * verdict.before)
                | ((position <= at_best) & (verdict.bound <= far))
                | (position == at_best + 1)
            )
            axis.close(axis.cells.is_open & may_hold, _OPEN_ROWS / 4)
        return rival

    def _heavy(self) -> list[Axis]:
        """Give the axes whose open runs hold too many rows to count by value in one pass."""
        open_axes = [axis for axis in self.axes if axis.is_open]
        share = _OPEN_ROWS / max(len(open_axes), 1)
        if sum(axis.open_rows for axis in open_axes) <= _OPEN_ROWS:
            return []
        return [axis for axis in open_axes if axis.open_rows > share and not axis.is_stubborn]

    def _next_chunk(self) -> dict[Axis, Cells]:
        """Give open runs, of any axes, that one pass may count by value."""
        chunk: dict[Axis, Cells] = {}
        left = float(_OPEN_ROWS)
        for axis in self.axes:
            if not axis.is_open or len(chunk) == _BLOCK:
                continue
            runs = axis.cells.open
            fits = (runs.rows.cumsum() <= left) | ~runs.is_wide
            if not fits.any() and not chunk:
                fits[0] = True
            if fits.any():
                chunk[axis] = runs[fits]
                left -= float(runs.rows[fits & runs.is_wide].sum())
        return chunk

    def _lump(self, axes: Sequence[Axis]) -> None:
        """Lump the counted values that are no neighbours of a best cut or of an open run."""
        for start in range(0, len(axes), _LUMPED_AT_A_TIME):
            some = axes[start : start + _LUMPED_AT_A_TIME]
            scored = (candidates(axis.table().lazy(), self.searches[axis.feature]) for axis in some)
            best = pl.collect_all((first_best(plan, ()) for plan in scored), engine="in-memory")
            plans = (axis.lumped(cut) for axis, cut in zip(some, best, strict=True))
            lumped = pl.collect_all(plans, engine="in-memory")
            for axis, values in zip(some, lumped, strict=True):
                axis.values = [values]


def _sample(values: pl.Series) -> npt.NDArray[np.float64]:
    step = max(len(values) // _SAMPLE, 1)
    return values.gather_every(step).to_numpy()
