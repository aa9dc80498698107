"""The best binary split of each column: tables of splits, and the best of all.

The functions here settle the roles of the columns, get the count tables and hand them to the scores.
A table from a LazyFrame, and any table by segment, is one query plan from the rows to the result.
Where the library executes (eager tables, `best_split`) the counts come from `refine`, which reads the
source a fixed number of times for all features together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_oner.counts import Measure, count_plan
from polars_oner.criteria import TIE, ClassCriterion, Criterion, criterion_for
from polars_oner.errors import ColumnRoleError, check_choice, check_positive
from polars_oner.frame import Column, Roles, as_lazy, canonical, column, is_missing, like, resolve
from polars_oner.refine import split_counts
from polars_oner.scores import EXHAUSTIVE, Search, candidates, first_best, with_left_values
from polars_oner.split import Split, split_from_counts
from polars_oner.target import (
    ClassTarget,
    NumberTarget,
    center,
    class_target,
    deviation,
    number_target,
    row_weight,
    with_target,
)
from polars_oner.thresholds import as_number, as_text, in_quotes, threshold
from polars_oner.typing import (
    CUTS,
    MISSING,
    STRATEGIES,
    CriterionName,
    Cut,
    Engine,
    FrameT,
    Missing,
    Strategy,
)

_c = pl.col
_EMPTY_ROW = pl.LazyFrame(
    schema={
        "feature": pl.String,
        "condition": pl.String,
        "threshold": pl.Float64,
        "n_left": pl.Int64,
        "n_right": pl.Int64,
        "n_missing": pl.Int64,
        "missing_goes": pl.String,
        "score": pl.Float64,
        "gain": pl.Float64,
        "reason": pl.String,
        "before": pl.Float64,
        "position": pl.Int32,
    }
)
"""The schema of the rows of a table of splits, for tables that have none."""

_ROWS_AT_A_TIME = 64
"""Features whose best splits are found together: the plans of all would take hundreds of MB."""

_RESULT_COLUMNS = tuple(_EMPTY_ROW.collect_schema())[:-2]
_SCORE_COLUMNS = ("threshold", "n_left", "n_right", "score_left", "score_right", "score")


@dataclass(frozen=True)
class _Task:
    """A checked call: what is to be split by what, and how."""

    roles: Roles
    criterion: Criterion
    missing: Missing
    min_leaf: int
    cut: Cut
    by: tuple[str, ...]
    weights: str | None

    def search(self, feature: Column, *, n_classes: int | None, has_missing: bool) -> Search:
        """Describe how this feature's candidates are scored."""
        return Search(
            self.criterion,
            feature.kind,
            self.missing,
            self.min_leaf,
            tuple(f"by{i}" for i in range(len(self.by))),
            n_classes,
            has_missing,
        )


def split_scores(
    frame: FrameT,
    target: str,
    feature: str,
    *,
    criterion: CriterionName = "gini",
    missing: Missing = "best",
    min_leaf: int = 1,
    cut: Cut = "value",
    by: str | Sequence[str] | None = None,
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
) -> FrameT:
    """Score every candidate split of one feature.

    Parameters
    ----------
    frame
        The rows. From a LazyFrame comes one query plan; building it reads only the schema.
    target
        The column to predict. Rows where it is missing are left out.
    feature
        The column to cut.
    criterion
        ``"gini"``, ``"entropy"`` (bits) and ``"error"`` read the target as classes, ``"std"`` and
        ``"variance"`` as numbers (Booleans as 0 and 1).
    missing
        Where rows with a missing feature go: ``"left"``, ``"right"``, to the better of the two or
        against all others (``"best"``), or out of the score (``"drop"``).
    min_leaf
        Rows that each side must have.
    cut
        Whether ``threshold`` is the last value that goes left or the middle of the gap.
    by
        Segment columns: each segment is split by itself.
    nominal, ordered
        Names whose kind overrides that of their dtype.
    weights
        Column of non-negative, finite row weights; a row of weight 0 is absent.

    Returns
    -------
    DataFrame or LazyFrame
        One row per candidate, ascending; the segment columns lead. ``threshold`` has the feature's
        dtype, for a nominal feature it is the List of values that go left; it is null where the
        missing rows stand against all others. ``n_left``, ``n_right`` Int64 (Float64 with float
        weights), the missing rows on the side they go to; ``score_left``, ``score_right``, ``score``
        Float64, lower is better.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError
        A column or option does not fit; raised before any data is read.

    Notes
    -----
    The sets of a nominal feature with more than two classes are tried exhaustively up to 12 values
    (2047 sets), each value against the rest beyond. Of a set and its complement one is tried: the one
    that holds the first value, or with two classes or a number target the one of lower mean goes
    left. With ``missing="left"`` or ``"right"`` the other would put the missing rows with the other
    values; ``"best"`` tries both.

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"x": [1, 2, 3, 4], "y": ["no", "no", "yes", "no"]})
    >>> df.oner.split_scores("y", "x").select("threshold", "n_left", "n_right", "score")
    shape: (3, 4)
    ┌───────────┬────────┬─────────┬──────────┐
    │ threshold ┆ n_left ┆ n_right ┆ score    │
    │ ---       ┆ ---    ┆ ---     ┆ ---      │
    │ i64       ┆ i64    ┆ i64     ┆ f64      │
    ╞═══════════╪════════╪═════════╪══════════╡
    │ 1         ┆ 1      ┆ 3       ┆ 0.333333 │
    │ 2         ┆ 2      ┆ 2       ┆ 0.25     │
    │ 3         ┆ 3      ┆ 1       ┆ 0.333333 │
    └───────────┴────────┴─────────┴──────────┘
    """
    task = _checked(
        frame,
        target,
        [feature],
        criterion,
        missing,
        min_leaf,
        cut,
        by,
        nominal,
        ordered,
        weights,
        _SCORE_COLUMNS,
    )
    (which,) = task.roles.features
    counts = _planned_counts(as_lazy(frame), which, task)
    n_classes = _two_classes(task)
    search = task.search(which, n_classes=n_classes, has_missing=True)
    scored = candidates(counts, search)
    shown: pl.Expr
    if which.kind == "ordered":
        apart = _c("goes").eq_missing(pl.lit("apart"))
        shown = pl.when(~apart).then(threshold(_c("value"), _c("next"), which.dtype, cut))
    else:
        scored = with_left_values(scored, counts, search)
        shown = _c("left_values")
    table = scored.select(*search.by, shown.alias("threshold"), *_SCORE_COLUMNS[1:])
    return like(table.rename(dict(zip(search.by, task.by, strict=True))), frame)


def best_splits(
    frame: FrameT,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    criterion: CriterionName = "gini",
    missing: Missing = "best",
    min_leaf: int = 1,
    cut: Cut = "value",
    by: str | Sequence[str] | None = None,
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    strategy: Strategy = "auto",
    engine: Engine = "auto",
    progress: bool = False,
) -> FrameT:
    """Find the best split of every feature.

    Parameters
    ----------
    frame
        The rows. From a LazyFrame comes one query plan; building it reads only the schema.
    target, criterion, missing, min_leaf, cut, nominal, ordered, weights
        As in `split_scores`.
    features
        The columns to split; all that can be tested when None. Columns that cannot are listed with
        a reason if they were not named, and raise if they were.
    by
        Segment columns: one split of each feature per segment, in the same query.
    strategy
        How the counts of an eager frame are found: by every distinct value (``"exhaustive"``), by
        coarse bins of which only those that can hold the best split are looked at again
        (``"refine"``), or as the sizes suggest (``"auto"``). The answer is the same.
    engine
        The Polars engine, where this executes.
    progress
        Show a progress bar on standard error, where this executes (needs tqdm).

    Returns
    -------
    DataFrame or LazyFrame
        One row per feature, lowest score first, equal scores in the order of the columns; within
        each segment if ``by`` is given, whose columns then lead. ``feature``; ``condition``, the
        test for going left, as text; ``threshold`` Float64, null if the feature is nominal, temporal
        or an Enum; ``n_left``, ``n_right``, the rows scored, and ``n_missing`` Int64 (Float64 with
        float weights); ``missing_goes`` ``"left"`` or ``"right"``, null if no value is missing or
        they are dropped; ``score``; ``gain``, the score of the unsplit rows minus ``score``;
        ``reason``, why a feature has no split (then the score is null and the row comes last), or
        that not every set of values was tried.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError
        A column or option does not fit; raised before any data is read.
    EmptyTargetError
        No row has a target, where this executes; in a plan that is the ``reason``.

    Notes
    -----
    A plan for many nominal columns is long where the schema does not tell that the target has two
    classes at most (Boolean, Enum), for it forms sets in every way. The streaming engine takes seconds
    for 20 of them, ``collect(engine="in-memory")`` a fraction of one: the tables of counts are small.

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"x": [1, 2, 3, 4], "z": list("abab"), "y": ["no", "no", "yes", "yes"]})
    >>> df.oner.best_splits("y").select("feature", "condition", "score", "gain")
    shape: (2, 4)
    ┌─────────┬────────────┬───────┬──────┐
    │ feature ┆ condition  ┆ score ┆ gain │
    │ ---     ┆ ---        ┆ ---   ┆ ---  │
    │ str     ┆ str        ┆ f64   ┆ f64  │
    ╞═════════╪════════════╪═══════╪══════╡
    │ x       ┆ x <= 2     ┆ 0.0   ┆ 0.5  │
    │ z       ┆ z in {"a"} ┆ 0.5   ┆ 0.0  │
    └─────────┴────────────┴───────┴──────┘
    """
    check_choice("strategy", strategy, STRATEGIES)
    task = _checked(
        frame, target, features, criterion, missing, min_leaf, cut, by, nominal, ordered, weights
    )
    if isinstance(frame, pl.LazyFrame):
        table: FrameT = _planned_table(frame, task)
        return table
    seen = _look_at_target(frame, task, engine)
    if task.by:
        # The sort holds all rows anyway, and the in-memory engine sorts faster.
        plan_engine: Engine = "in-memory" if engine == "auto" else engine
        return _planned_table(frame.lazy(), task, frame, seen).collect(engine=plan_engine)
    tables = _learned_counts(frame, task, seen, strategy, engine, progress, best_only=False)
    return _table(_found_rows(tables, task, seen), task, as_lazy(frame)).collect(engine="in-memory")


def best_split(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    criterion: CriterionName = "gini",
    missing: Missing = "best",
    min_leaf: int = 1,
    cut: Cut = "value",
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    ranking: bool = False,
    strategy: Strategy = "auto",
    engine: Engine = "auto",
    progress: bool = False,
) -> Split:
    """Find the one split that leaves the target least mixed. This executes.

    The source is read at most three times for up to 128 features, and once more for each refinement
    of values that crowd together. Wider tables are read in blocks of 128 columns, each column as
    often, since the batches of one pass over all would not fit in bounded memory.

    Parameters
    ----------
    frame
        The rows, eager or lazy.
    target, features, criterion, missing, min_leaf, cut, nominal, ordered, weights
        As in `best_splits`.
    ranking
        Whether to find the best split of every feature exactly and keep the table of them, that of
        `best_splits`, as ``ranking`` of the result. Otherwise features are dropped as soon as they
        cannot win.
    strategy, engine, progress
        As in `best_splits`.

    Returns
    -------
    Split
        The best split; one without a feature, which predicts the default, if no feature has a
        candidate. Equal scores: the earlier column, in it the smallest threshold. A column that
        names each row splits the training rows perfectly and no others: name the features, or let
        `fit` find such columns.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError
        A column or option does not fit; raised before any data is read.
    EmptyTargetError
        No row has a target.

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"x": [1, 2, 3, 4], "y": ["no", "no", "yes", "yes"]})
    >>> split = df.oner.best_split("y")
    >>> split.feature, split.threshold, split.score
    ('x', 2, 0.0)
    >>> df.select(split.predict()).to_series().to_list()
    ['no', 'no', 'yes', 'yes']
    """
    check_choice("strategy", strategy, STRATEGIES)
    task = _checked(
        frame, target, features, criterion, missing, min_leaf, cut, None, nominal, ordered, weights
    )
    if not ranking:
        # Columns that cannot be tested cannot win either.
        task = replace(task, roles=replace(task.roles, skipped=()))
    seen = _look_at_target(frame, task, engine)
    tables = _learned_counts(frame, task, seen, strategy, engine, progress, best_only=not ranking)
    table = _table(_found_rows(tables, task, seen), task, as_lazy(frame)).collect(
        engine="in-memory"
    )
    found = table.filter(_c("score").is_not_null())["feature"].head(1).to_list()
    by_name = {feature.name: feature for feature in task.roles.features}
    if found:
        feature, counts = by_name[found[0]], tables[found[0]]
        search = _search(task, feature, seen, counts)
        chosen = first_best(candidates(counts.lazy(), search), search.by)
        if feature.kind == "nominal":
            chosen = with_left_values(chosen, counts.lazy(), search)
        split = split_from_counts(feature, chosen.collect(), counts, seen, task.criterion, cut)
    else:
        split = split_from_counts(None, None, None, seen, task.criterion, cut)
    return replace(split, ranking=table) if ranking else split


def _checked(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None,
    criterion: str,
    missing: Missing,
    min_leaf: int,
    cut: Cut,
    by: str | Sequence[str] | None,
    nominal: Collection[str],
    ordered: Collection[str],
    weights: str | None,
    result_columns: tuple[str, ...] = _RESULT_COLUMNS,
) -> _Task:
    check_choice("missing", missing, MISSING)
    check_choice("cut", cut, CUTS)
    check_positive("min_leaf", min_leaf)
    segments = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    schema = as_lazy(frame).collect_schema()
    roles = resolve(
        schema,
        target,
        features,
        nominal=nominal,
        ordered=ordered,
        reserved=segments if weights is None else (*segments, weights),
    )
    for name in segments:
        if segments.count(name) > 1:
            raise ColumnRoleError.named_twice(name, "by")
        if name in result_columns:
            raise ColumnRoleError.role_clash(name, "segment", "a column of the result")
    return _Task(
        roles,
        criterion_for(
            criterion,
            target,
            roles.target_dtype,
            wide=weights is not None and schema[weights].is_integer(),
        ),
        missing,
        min_leaf,
        cut,
        segments,
        weights,
    )


def _look_at_target(
    frame: pl.DataFrame | pl.LazyFrame, task: _Task, engine: Engine
) -> ClassTarget | NumberTarget:
    look = class_target if isinstance(task.criterion, ClassCriterion) else number_target
    roles = task.roles
    return look(
        as_lazy(frame), roles.target, roles.target_dtype, weights=task.weights, engine=engine
    )


def _learned_counts(
    frame: pl.DataFrame | pl.LazyFrame,
    task: _Task,
    seen: ClassTarget | NumberTarget,
    strategy: Strategy,
    engine: Engine,
    progress: bool,
    *,
    best_only: bool,
) -> dict[str, pl.DataFrame]:
    searches = {
        feature: task.search(feature, n_classes=_n_classes(task, seen), has_missing=True)
        for feature in task.roles.features
    }
    return split_counts(
        frame,
        searches,
        seen,
        weights=task.weights,
        strategy=strategy,
        best_only=best_only,
        engine=engine,
        progress=progress,
    )


def _search(
    task: _Task, feature: Column, seen: ClassTarget | NumberTarget, counts: pl.DataFrame
) -> Search:
    has_missing = not counts.filter(_c("value").is_null() & _c("exact")).is_empty()
    return task.search(feature, n_classes=_n_classes(task, seen), has_missing=has_missing)


def _found_rows(
    tables: dict[str, pl.DataFrame], task: _Task, seen: ClassTarget | NumberTarget
) -> list[pl.LazyFrame]:
    """Find the features' rows of the table of best splits, some at a time: plans take memory too."""
    by_name = {feature.name: feature for feature in task.roles.features}
    names = list(tables)
    rows = []
    for start in range(0, len(names), _ROWS_AT_A_TIME):
        plans = [
            _row(
                tables[name].lazy(),
                by_name[name],
                task.roles.names.index(name),
                _search(task, by_name[name], seen, tables[name]),
                task.cut,
            )
            for name in names[start : start + _ROWS_AT_A_TIME]
        ]
        rows += pl.collect_all(plans, engine="in-memory")
    return [row.lazy() for row in rows]


def _planned_counts(lazy: pl.LazyFrame, feature: Column, task: _Task) -> pl.LazyFrame:
    """Plan a feature's count table from the rows, with nothing known but the schema."""
    roles = task.roles
    schema = lazy.collect_schema()
    rows = with_target(lazy, roles.target, roles.target_dtype, task.weights)
    if isinstance(task.criterion, ClassCriterion):
        measure = Measure(canonical(column(roles.target), roles.target_dtype), by_class=True)
    else:
        middle = center(roles.target, roles.target_dtype)
        measure = Measure(deviation(roles.target, roles.target_dtype, middle), by_class=False)
    segments = tuple(f"by{i}" for i in range(len(task.by)))
    plain = Column("x", feature.dtype, feature.kind)
    rows = rows.select(
        *(column(name).alias(key) for name, key in zip(task.by, segments, strict=True)),
        column(feature.name).alias(plain.name),
        *measure.per_row(row_weight(schema, task.weights)),
    )
    if segments and feature.kind == "ordered":
        # Segments multiply the distinct values: sorting the rows as they are beats hashing them.
        counts = rows.with_columns(canonical(_c("x"), feature.dtype).alias("value")).drop("x")
        counts = counts.sort([*segments, "value"])
    else:
        counts = count_plan(rows, plain, measure, by=segments)
    counts = counts.with_columns(exact=pl.lit(value=True))
    # The sets of a nominal feature are formed from the same table at many places of the plan.
    return counts.cache() if feature.kind == "nominal" else counts


def _n_classes(task: _Task, seen: ClassTarget | NumberTarget) -> int | None:
    """Give the most classes that a segment can have; None if it may have two or more than two."""
    if isinstance(seen, NumberTarget):
        return None
    n = len(seen.classes)
    return n if n <= 2 or not task.by else None


def _two_classes(task: _Task) -> int | None:
    """Tell from the schema alone that a target has at most two classes; None if it may have more."""
    dtype = task.roles.target_dtype
    few = isinstance(dtype, pl.Enum) and len(dtype.categories) <= 2
    return 2 if few or isinstance(dtype, pl.Boolean) else None


def _planned_table(
    lazy: pl.LazyFrame,
    task: _Task,
    known: pl.DataFrame | None = None,
    seen: ClassTarget | NumberTarget | None = None,
) -> pl.LazyFrame:
    """Plan the table; a frame whose rows are known, and its target, spare some of the work."""
    n_classes = _two_classes(task) if seen is None else _n_classes(task, seen)
    rows = []
    for feature in task.roles.features:
        has_missing = True
        if known is not None:
            gap = is_missing(column(feature.name), feature.dtype).any()
            has_missing = bool(known.select(gap.alias("gap")).item())
        search = task.search(feature, n_classes=n_classes, has_missing=has_missing)
        counts = _planned_counts(lazy, feature, task)
        position = task.roles.names.index(feature.name)
        rows.append(_row(counts, feature, position, search, task.cut))
    return _table(rows, task, lazy)


def _row(
    counts: pl.LazyFrame, feature: Column, position: int, search: Search, cut: Cut
) -> pl.LazyFrame:
    """Plan a feature's row of the table of best splits, one per segment."""
    by = search.by
    best = first_best(candidates(counts, search), by)
    if feature.kind == "nominal":
        best = with_left_values(best, counts, search)
    missing = _c("value").is_null() & _c("exact")
    sums = {
        "n_counts": pl.len(),
        "all_missing": _c("n").filter(missing).sum(),
        "least": _c("value").min(),
        "most": _c("value").max(),
    }
    sets_are_tried = feature.kind == "nominal" and isinstance(search.criterion, ClassCriterion)
    if sets_are_tried:
        sums |= {
            "n_values": _c("value").drop_nulls().n_unique(),
            "n_classes": _c("class").n_unique(),
        }
    if by:
        summary = counts.group_by(by).agg(**sums)
        row = summary.join(best, on=list(by), how="left", nulls_equal=True)
    else:
        summary = counts.select(**sums)
        row = pl.concat([summary, best], how="horizontal_extend")
    apart = _c("goes") == "apart"
    if feature.kind == "ordered":
        left, right = _c("value"), _c("next")
        number = as_number(left, right, feature.dtype, cut)
        test = pl.concat_str(
            pl.lit(f"{feature.name} <= "), as_text(left, right, feature.dtype, cut)
        )
    else:
        number = pl.lit(None, pl.Float64)
        shown = pl.element().cast(pl.String)
        if isinstance(feature.dtype, (pl.String, pl.Categorical, pl.Enum)):
            shown = in_quotes(shown)
        values = _c("left_values").list.eval(shown).list.join(", ")
        test = pl.concat_str(pl.lit(f"{feature.name} in {{"), values, pl.lit("}"))
    condition = (
        pl.when(apart)
        .then(pl.lit(f"{feature.name} is not missing"))
        .when(_c("goes") == "left")
        .then(pl.concat_str(test, pl.lit(f" or {feature.name} is missing")))
        .otherwise(test)
    )
    found = _c("score").is_not_null()
    reason: pl.Expr = (
        pl.when(_c("n_counts") == 0)
        .then(pl.lit("no row has a target"))
        .when(~found & _c("least").is_null())
        .then(pl.lit("all values are missing"))
        .when(~found & (_c("least") == _c("most")))
        .then(pl.lit("only one distinct value"))
        .when(~found)
        .then(pl.lit(f"no split leaves {search.min_leaf} rows on each side"))
    )
    if sets_are_tried:
        many = (_c("n_values") > EXHAUSTIVE) & (_c("n_classes") > 2)
        text = f"more than {EXHAUSTIVE} values: each tried against the rest"
        reason = pl.when(found & many).then(pl.lit(text)).otherwise(reason)
    return row.select(
        *by,
        feature=pl.lit(feature.name),
        condition=pl.when(found).then(condition),
        threshold=pl.when(found & ~apart.fill_null(value=False)).then(number),
        n_left=_c("n_left"),
        n_right=_c("n_right"),
        n_missing=_c("all_missing"),
        missing_goes=_c("goes").replace("apart", "right"),
        score=_c("score"),
        gain=_c("before") - _c("score"),
        reason=reason,
        before=_c("before"),
        position=pl.lit(position),
    )


def _table(rows: list[pl.LazyFrame], task: _Task, lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Rank the features' rows, list those that cannot be tested, and name the segments."""
    segments = [f"by{i}" for i in range(len(task.by))]
    listed = _skipped(task, lazy, segments)
    whole = pl.concat([_EMPTY_ROW, *rows, *listed], how="diagonal_relaxed").sort(
        [*segments, "score", "position"], nulls_last=True, maintain_order=True
    )
    # Scores that differ by rounding alone are equal; between equals the earlier column is first.
    step = (_c("score") - _c("score").shift(1)) > TIE * _c("before")
    rank = step.fill_null(value=False).cast(pl.UInt32).cum_sum()
    return (
        whole.with_columns(rank=rank, last=_c("score").is_null())
        .sort([*segments, "last", "rank", "position"])
        .select(*segments, *_RESULT_COLUMNS)
        .rename(dict(zip(segments, task.by, strict=True)))
    )


def _skipped(task: _Task, lazy: pl.LazyFrame, segments: list[str]) -> list[pl.LazyFrame]:
    """List the columns that cannot be tested, with what can be said of them."""
    roles = task.roles
    rows = with_target(lazy, roles.target, roles.target_dtype, task.weights)
    keys = [column(name).alias(key) for name, key in zip(task.by, segments, strict=True)]
    weight = row_weight(lazy.collect_schema(), task.weights)
    listed = []
    for skip in roles.skipped:
        lost = rows.select(*keys, n_missing=weight * column(skip.name).is_null().cast(pl.Int64))
        total = pl.col("n_missing").sum()
        found = lost.group_by(segments).agg(total) if segments else lost.select(total)
        listed.append(
            found.with_columns(
                feature=pl.lit(skip.name),
                reason=pl.lit(skip.reason),
                position=pl.lit(roles.names.index(skip.name)),
            )
        )
    return listed
