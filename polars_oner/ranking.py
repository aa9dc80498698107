"""The rules of all features, from best to worst, and the one rule.

Passes over the source: one over the target, one shared by all features. Everything else, the honest
figures included, is worked out from the counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from polars_oner.choice import (
    Figures,
    best_first,
    first_allowed,
    holm,
    independence,
    leave_one_out,
    warn_of_identifiers,
)
from polars_oner.counts import count_values
from polars_oner.errors import ColumnRoleError
from polars_oner.evaluation import wilson_interval
from polars_oner.folds import Folding, count_folds
from polars_oner.frame import Column, Roles, as_lazy
from polars_oner.held_out import Trial, cross_validated_accuracy
from polars_oner.learning import BinsChoice, Options, is_fractional, learn_rules, prepare
from polars_oner.one_rule import OneRule
from polars_oner.ordered import ordered_counts
from polars_oner.rule import Rule
from polars_oner.target import ClassTarget, class_target
from polars_oner.typing import Choose, Engine, FrameT, Identifiers, Ties

_MOST_ROWS_HELD = 1 << 24
"""Of a source outside memory with more rows than this, ordered features are counted in pieces."""

_SCHEMA: dict[str, pl.DataType] = {
    "feature": pl.String(),
    "n_cases": pl.Int64(),
    "n_errors": pl.Int64(),
    "accuracy": pl.Float64(),
    "accuracy_lower": pl.Float64(),
    "accuracy_upper": pl.Float64(),
    "baseline": pl.Float64(),
    "loo_accuracy": pl.Float64(),
    "cv_accuracy": pl.Float64(),
    "p_value": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "identifier": pl.Boolean(),
    "chosen": pl.Boolean(),
    "reason": pl.String(),
}

_SIGNIFICANCE = ("p_value", "p_adjusted")
"""Columns that are there if asked for, like ``cv_accuracy`` with ``choose="cv"``."""

_CONFIDENCE = 0.95


def fit(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    choose: Choose = "first",
    identifiers: Identifiers = "exclude",
    bins: BinsChoice | None = None,
    folds: int = 10,
    seed: int = 0,
    significance: bool = False,
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> OneRule:
    """Learn the rule of every feature and choose one. This executes.

    A nominal feature predicts the majority class of each value, an ordered one that of each interval
    that Holte's walk finds (`walk`). Missing is one more value. The source is read twice, whatever the
    number of features.

    Parameters
    ----------
    frame
        The rows, eager or lazy.
    target
        The column to predict; its values are classes. Rows where it is missing are left out.
    features
        The columns to learn from; all but the target and ``weights`` when None.
    min_bucket
        Rows that the majority class of an interval needs before the interval may end; 1 cuts at
        every change of class.
    ties
        Which of several classes with equally many rows a value or interval predicts: ``"rare"`` the
        one with the fewest training rows, ``"frequent"`` that with the most, ``"first"`` the first in
        class order, which also decides what is still tied.
    choose
        ``"first"``: the feature with the fewest errors, the earlier column among equals. ``"chi2"``:
        among equals the one with the lowest p-value. ``"loo"``: the highest accuracy when each row is
        left out in turn. ``"cv"``: the highest accuracy in cross-validation (`cross_validate`), which
        takes a second and a third look at the source.
    identifiers
        ``"exclude"`` never chooses a nominal feature where more than half of the rows have a value of
        their own, and warns; ``"keep"`` allows it.
    bins
        Other intervals than Holte's for ordered features: a method of `discretize` for all of them,
        `Bins` for the feature that they were learned on, or a mapping from feature to either.
    folds, seed
        How many folds ``choose="cv"`` makes, and the seed that deals the rows to them.
    significance
        Add p-values to the ranking; needs the extra ``stats``.
    nominal, ordered
        Columns whose kind overrides that of their dtype. An Enum is nominal here.
    weights
        Column of row weights, finite and not negative; 0 means absent.
    engine
        The Polars engine that reads the source.
    progress
        Show rows done on standard error.

    Returns
    -------
    OneRule
        The model. A feature that is missing in every row has the one case "missing" and takes part.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError
        A column or option does not fit; raised before any data is read.
    EmptyTargetError
        No row has a target.
    WeightError
        A weight is missing, negative, NaN or infinite.
    MissingPackageError
        scipy is needed and not installed.

    Warns
    -----
    IdentifierWarning
        Names the features that were left out of the choice.

    References
    ----------
    Holte, R. C. (1993). Very simple classification rules perform well on most commonly used
    datasets. *Machine Learning* 11, 63-91.

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"sky": ["blue", "grey", "blue", "grey"], "rain": [False, True, False, True]})
    >>> model = polars_oner.fit(df, "rain")
    >>> print(model)
    1R for rain (4 rows)
    sky:
      blue          -> false  2/2
      grey          -> true   2/2
      anything else -> false
    4/4 correct, 0 errors
    >>> df.select(model.predict()).to_series().to_list()
    [False, True, False, True]
    """
    options, roles = prepare(
        frame,
        target,
        features,
        Options(min_bucket, ties, choose, identifiers, significance, Folding(folds, seed)),
        bins,
        nominal,
        ordered,
        weights,
    )
    if not roles.features:
        raise ColumnRoleError.without_features(target)
    found = learn_all(frame, roles, options, weights, engine, progress)
    ranking = ranking_of(found, roles, options)
    excluded = ranking.filter("identifier")["feature"].to_list()
    if excluded and identifiers == "exclude":
        warn_of_identifiers(excluded)
    chosen = ranking.filter("chosen")["feature"]
    return OneRule(
        chosen[0] if len(chosen) else None,
        target,
        found.rules[0].classes,
        pl.Series("n", found.target.counts),
        found.target.n_missing,
        found.rules,
        ranking,
    )


def rank(
    frame: FrameT,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    choose: Choose = "first",
    identifiers: Identifiers = "exclude",
    bins: BinsChoice | None = None,
    folds: int = 10,
    seed: int = 0,
    significance: bool = False,
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> FrameT:
    """Rank the features by how well the 1R rule of each predicts the target.

    Parameters
    ----------
    frame, target, features, min_bucket, ties, choose, identifiers, bins, folds, seed
        As in `fit`.
    significance
        Add ``p_value`` and ``p_adjusted``; needs the extra ``stats``.
    nominal, ordered, weights, engine, progress
        As in `fit`.

    Returns
    -------
    DataFrame or LazyFrame
        As ``frame`` is. One row per feature, best first by ``choose``, columns that cannot be tested
        last. From a LazyFrame, nothing but the schema is read until the table is collected.

        ``feature`` String; ``n_cases`` Int64, the missing case included; ``n_errors`` Int64 (Float64
        with fractional weights); ``accuracy`` Float64, on the training rows, and its Wilson interval
        of 95%, ``accuracy_lower``, ``accuracy_upper`` Float64; ``baseline`` Float64, the share of the
        commonest class.

        ``loo_accuracy`` Float64: each row predicted by the rule of all other rows, in closed form
        from the counts. Exact for a nominal feature: a value seen once becomes an unseen one. For an
        ordered feature the intervals stay those of all rows and only their classes are learned anew,
        so the search for the cuts still flatters it; cross-validation does not. Null with fractional
        weights, which do not tell rows apart.

        With ``choose="cv"``, ``cv_accuracy`` Float64: each row predicted by the rule of the folds that
        it is not in, the cuts of ordered features learned anew each time (`cross_validate`).

        If asked for, ``p_value`` Float64: chi-square test of independence of cases and classes (too
        small for an ordered feature, whose cases were learned from the same rows); ``p_adjusted``
        Float64: the same by Holm's correction for the number of features.

        ``identifier`` Boolean: a nominal feature where more than half of the rows have a value of
        their own. ``chosen`` Boolean: the feature that `fit` takes. ``reason`` String: why a column
        could not be tested; the figures are null then.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError, MissingPackageError
        As in `fit`, when called.
    EmptyTargetError, WeightError
        As in `fit`, when collected.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. *Scandinavian Journal of
    Statistics* 6, 65-70.

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"sky": ["blue", "grey", "blue", "grey"], "rain": [False, True, False, True]})
    >>> polars_oner.rank(df, "rain").select("feature", "n_cases", "n_errors").row(0)
    ('sky', 2, 0)
    """
    options, roles = prepare(
        frame,
        target,
        features,
        Options(min_bucket, ties, choose, identifiers, significance, Folding(folds, seed)),
        bins,
        nominal,
        ordered,
        weights,
    )

    def learn() -> pl.DataFrame:
        found = learn_all(frame, roles, options, weights, engine, progress)
        return ranking_of(found, roles, options)

    if isinstance(frame, pl.DataFrame):
        return learn()
    # The walk over ordered values is sequential, so no query plan of Polars can express it: this one
    # table is a source that learns when it is read. Its schema is known beforehand.
    dtype = frame.collect_schema()[weights] if weights is not None else pl.Int64()
    return pl.defer(learn, schema=_schema(options, is_fractional(dtype)))


@dataclass(frozen=True)
class Learned:
    """The rules of all features, the target, and the accuracies in cross-validation if wanted."""

    rules: tuple[Rule, ...]
    target: ClassTarget
    cv_accuracy: Mapping[str, float]


def learn_all(
    frame: pl.DataFrame | pl.LazyFrame,
    roles: Roles,
    options: Options,
    weights: str | None,
    engine: Engine,
    progress: bool,
) -> Learned:
    """Read the source and learn the rule of every feature."""
    lazy = as_lazy(frame)
    seen = class_target(lazy, roles.target, roles.target_dtype, weights=weights, engine=engine)
    if not roles.features:
        return Learned((), seen, {})
    if options.choose != "cv":
        streamed = _too_long_to_hold(frame, roles, options, seen)
        held = [feature for feature in roles.features if feature not in streamed]
        tables: dict[str, pl.DataFrame | Iterator[pl.DataFrame]] = {}
        if held:
            tables |= count_values(
                frame, held, seen, weights=weights, engine=engine, progress=progress
            )
        if streamed:
            tables |= ordered_counts(
                lazy, streamed, seen, weights=weights, engine=engine, progress=progress
            )
        return Learned(learn_rules(roles.features, tables, seen, options), seen, {})
    per_fold = count_folds(
        frame, roles, seen, options.folding, weights=weights, engine=engine, progress=progress
    )
    tables = {counts.feature.name: counts.total() for counts in per_fold.features}
    rules = learn_rules(roles.features, tables, seen, options)
    return Learned(rules, seen, cross_validated_accuracy(per_fold, seen, options, Trial()))


def _too_long_to_hold(
    frame: pl.DataFrame | pl.LazyFrame, roles: Roles, options: Options, target: ClassTarget
) -> list[Column]:
    """Give the features whose values are counted piece by piece, since there may be so many."""
    if isinstance(frame, pl.DataFrame) or target.n_rows <= _MOST_ROWS_HELD:
        return []
    return [
        feature
        for feature in roles.features
        if feature.kind == "ordered" and feature.name not in options.cutters
    ]


def ranking_of(found: Learned, roles: Roles, options: Options) -> pl.DataFrame:
    """Make the table of `rank`."""
    target = found.target
    fractional = target.counts.dtype.kind == "f"
    rows = [_figures(rule, found, options, fractional=fractional) for rule in found.rules]
    if options.significance or options.choose == "chi2":
        p_values = [independence(rule.counts) for rule in found.rules]
        for row, p_value, adjusted in zip(rows, p_values, holm(p_values), strict=True):
            row.update(p_value=p_value, p_adjusted=adjusted)
    rows = best_first(rows, options.choose)
    chosen = first_allowed(rows, options.identifiers)
    for row in rows:
        row["chosen"] = row is chosen
    listed = [{"feature": skip.name, "reason": skip.reason} for skip in roles.skipped]
    schema = _schema(options, fractional)
    counted = {"n_rows": pl.Float64(), **schema}
    table = pl.DataFrame(
        [[row.get(name) for name in counted] for row in [*rows, *listed]],
        schema=counted,
        orient="row",
    )
    n_rows = pl.col("n_rows")
    lower, upper = wilson_interval(n_rows - pl.col("n_errors"), n_rows, _CONFIDENCE)
    return table.with_columns(accuracy_lower=lower, accuracy_upper=upper).select(*schema)


def _figures(rule: Rule, found: Learned, options: Options, *, fractional: bool) -> Figures:
    n_rows, totals = rule.n_rows, found.target.counts
    alone = rule.table.filter(~pl.col("is_missing"), pl.col("n_rows") == 1).height
    loo = None if fractional else leave_one_out(rule.counts, totals, options.ties) / n_rows
    return {
        "feature": rule.feature,
        "n_rows": n_rows,
        "n_cases": rule.n_cases,
        "n_errors": rule.n_errors,
        "accuracy": rule.accuracy,
        "baseline": totals.max().item() / n_rows,
        "loo_accuracy": loo,
        "cv_accuracy": found.cv_accuracy.get(rule.feature),
        "identifier": rule.kind == "nominal" and 2 * alone > n_rows,
    }


def _schema(options: Options, fractional: bool) -> dict[str, pl.DataType]:
    schema = dict(_SCHEMA)
    if fractional:
        schema["n_errors"] = pl.Float64()
    if not options.significance:
        for name in _SIGNIFICANCE:
            del schema[name]
    if options.choose != "cv":
        del schema["cv_accuracy"]
    return schema
