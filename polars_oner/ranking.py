"""The rules of all features, from best to worst, and the one rule.

Passes over the source: one over the target, one shared by all features. Everything else, the honest
figures included, is worked out from the counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import polars as pl

from polars_oner import report
from polars_oner.counts import count_values
from polars_oner.criteria import require_classes
from polars_oner.errors import (
    ColumnRoleError,
    IdentifierWarning,
    MissingPackageError,
    OptionError,
    check_choice,
    check_positive,
    quoted,
)
from polars_oner.evaluation import wilson_interval
from polars_oner.expression import guarded, literal
from polars_oner.frame import Column, Roles, as_lazy, resolve
from polars_oner.intervals import Counts, group_starts, majorities, tie_order, tie_ranks
from polars_oner.rule import Rule, learn_rule
from polars_oner.serialize import Model
from polars_oner.target import ClassTarget, class_target
from polars_oner.typing import (
    CHOOSE,
    IDENTIFIERS,
    TIES,
    Choose,
    Engine,
    FrameT,
    Identifiers,
    Ties,
)

Cutter = Callable[[pl.DataFrame, ClassTarget], pl.Series]
"""Gives the cuts of an ordered feature from its counts, in place of Holte's intervals."""

_SCHEMA: dict[str, pl.DataType] = {
    "feature": pl.String(),
    "n_cases": pl.Int64(),
    "n_errors": pl.Int64(),
    "accuracy": pl.Float64(),
    "accuracy_lower": pl.Float64(),
    "accuracy_upper": pl.Float64(),
    "baseline": pl.Float64(),
    "loo_accuracy": pl.Float64(),
    "p_value": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "identifier": pl.Boolean(),
    "chosen": pl.Boolean(),
    "reason": pl.String(),
}

_SIGNIFICANCE = ("p_value", "p_adjusted")
"""Columns that are there if asked for."""

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Options:
    """How rules are learned and the one among them is chosen, checked.

    ``cutter`` replaces Holte's intervals; the other fields are the keywords of `fit`.
    """

    min_bucket: int
    ties: Ties
    choose: Choose
    identifiers: Identifiers
    significance: bool
    cutter: Cutter | None = None

    def __post_init__(self) -> None:
        check_positive("min_bucket", self.min_bucket)
        check_choice("ties", self.ties, TIES)
        check_choice("choose", self.choose, CHOOSE)
        check_choice("identifiers", self.identifiers, IDENTIFIERS)
        if self.significance:
            _scipy_stats("significance=True")
        if self.choose == "chi2":
            _scipy_stats("choose='chi2'")


@dataclass(frozen=True, eq=False)
class OneRule(Model):
    """The one rule: the rules of all features, and which of them predicts.

    Attributes
    ----------
    feature
        The chosen feature; None if all are identifiers. Then every row gets the default.
    target, classes
        The target, and its classes in class order and in its dtype.
    class_counts
        Training rows of each class.
    n_target_missing
        Rows without a target, which were left out.
    rules
        The rule of every feature that could be tested, in the order of the columns.
    ranking
        The table of `rank`.
    """

    feature: str | None
    target: str
    classes: pl.Series
    class_counts: pl.Series
    n_target_missing: int | float
    rules: tuple[Rule, ...]
    ranking: pl.DataFrame

    @property
    def rule(self) -> Rule | None:
        """The rule that predicts; None without a chosen feature."""
        return next((rule for rule in self.rules if rule.feature == self.feature), None)

    @property
    def target_dtype(self) -> pl.DataType:
        """The dtype of the target and of predictions."""
        return self.classes.dtype

    @property
    def default(self) -> Any:
        """The commonest class, the first in class order among equals: for rows without a case."""
        return self.classes[self.rules[0].default]

    @property
    def n_rows(self) -> int | float:
        """Training rows with a target."""
        return self.rules[0].n_rows

    @property
    def n_correct(self) -> int | float:
        """Training rows that are predicted right."""
        if self.rule is not None:
            return self.rule.n_correct
        n_default: int | float = self.class_counts[self.rules[0].default]
        return n_default

    @property
    def n_errors(self) -> int | float:
        """Training rows that are predicted wrong."""
        return self.n_rows - self.n_correct

    @property
    def accuracy(self) -> float:
        """Share of the training rows that are predicted right."""
        return self.n_correct / self.n_rows

    @property
    def error_rate(self) -> float:
        """Share of the training rows that are predicted wrong."""
        return self.n_errors / self.n_rows

    @property
    def baseline(self) -> float:
        """Share of the commonest class: the accuracy of always predicting the default."""
        n_default: int | float = self.class_counts[self.rules[0].default]
        return n_default / self.n_rows

    def predict(self, name: str = "prediction") -> pl.Expr:
        """Give the expression that predicts, in the target's dtype; see `Rule.predict`."""
        if self.rule is not None:
            return self.rule.predict(name)
        # A column in the expression gives the prediction the length of the frame.
        first = self.rules[0]
        default = literal(self.default, self.target_dtype)
        return guarded(default, Column(first.feature, first.dtype, first.kind)).alias(name)

    def expr(self) -> pl.Expr:
        """Give the same as `predict`, under its default name."""
        return self.predict()

    def to_frame(self) -> pl.DataFrame:
        """Give the chosen rule's cases as a table (`Rule.to_frame`); no row without a feature."""
        return self.rules[0].to_frame().clear() if self.rule is None else self.rule.to_frame()

    def __str__(self) -> str:
        return f"{self._title}\n{self._otherwise if self.rule is None else self.rule}"

    def _repr_html_(self) -> str:
        if self.rule is None:
            return report.html_table(self._title, (self._otherwise,), ())
        return f"<p>{escape(self._title)}</p>{self.rule._repr_html_()}"

    @property
    def _title(self) -> str:
        rows = f"{self.n_rows} rows"
        if self.n_target_missing:
            rows += f", {self.n_target_missing} more without a target"
        return f"1R for {report.text_of(self.target)} ({rows})"

    @property
    def _otherwise(self) -> str:
        label = report.value_texts(self.classes)[self.rules[0].default]
        return f"{report.OTHERWISE} -> {label}  {report.share(self.n_correct, self.n_rows)}"


def fit(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    choose: Choose = "first",
    identifiers: Identifiers = "exclude",
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
        left out in turn.
    identifiers
        ``"exclude"`` never chooses a nominal feature where more than half of the rows have a value of
        their own, and warns; ``"keep"`` allows it.
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
    options = Options(min_bucket, ties, choose, identifiers, significance)
    roles = check_roles(frame, target, features, options, nominal, ordered, weights)
    if not roles.features:
        raise ColumnRoleError.without_features(target)
    found = _learn(frame, roles, options, weights, engine, progress)
    ranking = _ranking(*found, roles, options)
    excluded = ranking.filter("identifier")["feature"].to_list()
    if excluded and identifiers == "exclude":
        warnings.warn(
            f"not chosen, since more than half of the rows have a value of their own: "
            f"{quoted(excluded)}; identifiers='keep' allows them",
            IdentifierWarning,
            stacklevel=2,
        )
    chosen = ranking.filter("chosen")["feature"]
    rules, seen = found
    return OneRule(
        chosen[0] if len(chosen) else None,
        target,
        rules[0].classes,
        pl.Series("n", seen.counts),
        seen.n_missing,
        rules,
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
    frame, target, features, min_bucket, ties, choose, identifiers, nominal, ordered, weights
        As in `fit`.
    significance
        Add ``p_value`` and ``p_adjusted``; needs the extra ``stats``.
    engine, progress
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
    options = Options(min_bucket, ties, choose, identifiers, significance)
    roles = check_roles(frame, target, features, options, nominal, ordered, weights)

    def learn() -> pl.DataFrame:
        return _ranking(*_learn(frame, roles, options, weights, engine, progress), roles, options)

    if isinstance(frame, pl.DataFrame):
        return learn()
    # The walk over ordered values is sequential, so no query plan of Polars can express it: this one
    # table is a source that learns when it is read. Its schema is known beforehand.
    dtype = frame.collect_schema()[weights] if weights is not None else pl.Int64()
    return pl.defer(learn, schema=_schema(options, is_fractional(dtype)))


def check_roles(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None,
    options: Options,
    nominal: Collection[str],
    ordered: Collection[str],
    weights: str | None,
    *reserved: str,
) -> Roles:
    """Check columns against the schema for 1R: classes as target, an Enum nominal."""
    schema = as_lazy(frame).collect_schema()
    roles = resolve(
        schema,
        target,
        features,
        nominal=nominal,
        ordered=ordered,
        enum_kind="nominal",
        reserved=reserved if weights is None else (weights, *reserved),
    )
    require_classes(target, roles.target_dtype, "1R", ("integers", "Boolean", "text", "dates"))
    if options.choose == "loo" and weights is not None and is_fractional(schema[weights]):
        wanted = "'first' or 'chi2' with fractional weights, which do not tell rows apart"
        raise OptionError.from_range("choose", options.choose, wanted)
    return roles


def is_fractional(weight: pl.DataType) -> bool:
    """Tell whether counts of rows with weights of this dtype are fractional."""
    return not (weight.is_integer() or isinstance(weight, pl.Boolean))


def learn_rules(
    features: Sequence[Column],
    tables: Mapping[str, pl.DataFrame],
    target: ClassTarget,
    options: Options,
) -> tuple[Rule, ...]:
    """Make the rule of every feature from its counts."""

    def cuts_of(feature: Column) -> pl.Series | None:
        if options.cutter is None or feature.kind == "nominal":
            return None
        return options.cutter(tables[feature.name], target)

    return tuple(
        learn_rule(
            feature,
            tables[feature.name],
            target,
            min_bucket=options.min_bucket,
            ties=options.ties,
            cuts=cuts_of(feature),
        )
        for feature in features
    )


def leave_one_out(rule: Rule, totals: Counts, ties: Ties) -> int:
    """Count the rows that the rule of all other rows predicts right, its cases held fixed.

    Without a row of class c, a case has one row of c less. If c still has most rows there, the row is
    right; so only rows of the class that the case predicts can be right, and they all are or none is.
    Where c and another class are then tied, the tie policy decides on totals that lack the row; where
    the row was alone, the default of the other rows does.
    """
    order = tie_order(totals, ties)
    ranks, n = tie_ranks(order)[rule.counts["class"].to_numpy()], rule.counts["n"].to_numpy()
    starts = group_starts(rule.counts["case"].to_numpy())
    most, winner = majorities(starts, ranks, n)
    others = np.where(ranks == np.repeat(winner, np.diff(starts, append=len(n))), 0, n)
    second, rival = majorities(starts, ranks, others)
    winner, rival = order[winner], order[rival]
    if ties == "first":
        wins_tie = winner < rival
    else:
        ahead = totals[rival] - (totals[winner] - 1)
        wins_tie = (ahead > 0) if ties == "rare" else (ahead < 0)
        wins_tie |= (ahead == 0) & (winner < rival)
    left = most - 1
    right = (left > second) | ((left == second) & (second > 0) & wins_tie)
    right |= (left == 0) & (second == 0) & (winner == _default_without_itself(totals))
    return int(most[right].sum())


def _default_without_itself(totals: Counts) -> int:
    """Give the one class that can be the default of all rows but one of its own; -1 if none is."""
    top = int(np.argmax(totals))
    rest = totals - np.eye(len(totals), dtype=totals.dtype)[top]
    return top if rest.sum() > 0 and int(np.argmax(rest)) == top else -1


def _learn(
    frame: pl.DataFrame | pl.LazyFrame,
    roles: Roles,
    options: Options,
    weights: str | None,
    engine: Engine,
    progress: bool,
) -> tuple[tuple[Rule, ...], ClassTarget]:
    lazy = as_lazy(frame)
    seen = class_target(lazy, roles.target, roles.target_dtype, weights=weights, engine=engine)
    if not roles.features:
        return (), seen
    tables = count_values(
        frame, roles.features, seen, weights=weights, engine=engine, progress=progress
    )
    return learn_rules(roles.features, tables, seen, options), seen


def _ranking(
    rules: tuple[Rule, ...], target: ClassTarget, roles: Roles, options: Options
) -> pl.DataFrame:
    fractional = target.counts.dtype.kind == "f"
    rows = [_figures(rule, target, options.ties, fractional=fractional) for rule in rules]
    if options.significance or options.choose == "chi2":
        p_values = [_p_value(rule) for rule in rules]
        for row, p_value, adjusted in zip(rows, p_values, _holm(p_values), strict=True):
            row.update(p_value=p_value, p_adjusted=adjusted)
    best: dict[str, Callable[[dict[str, Any]], Any]] = {
        "first": lambda row: row["n_errors"],
        "chi2": lambda row: (row["n_errors"], row["p_value"]),
        "loo": lambda row: -row["loo_accuracy"],
    }
    if options.choose not in best:
        raise OptionError.from_choice("choose", options.choose, tuple(best))
    # The sort is stable: of equal features the earlier column comes first.
    rows.sort(key=best[options.choose])
    allowed = (row for row in rows if options.identifiers == "keep" or not row["identifier"])
    chosen = next(allowed, None)
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


def _figures(rule: Rule, target: ClassTarget, ties: Ties, *, fractional: bool) -> dict[str, Any]:
    n_rows = rule.n_rows
    alone = rule.table.filter(~pl.col("is_missing"), pl.col("n_rows") == 1).height
    return {
        "feature": rule.feature,
        "n_rows": n_rows,
        "n_cases": rule.n_cases,
        "n_errors": rule.n_errors,
        "accuracy": rule.accuracy,
        "baseline": target.counts.max().item() / n_rows,
        "loo_accuracy": None if fractional else leave_one_out(rule, target.counts, ties) / n_rows,
        "identifier": rule.kind == "nominal" and 2 * alone > n_rows,
    }


def _p_value(rule: Rule) -> float:
    """Test whether the cases and the classes are independent, by Pearson's chi-square."""
    table = np.zeros((rule.n_cases, len(rule.classes)))
    table[rule.counts["case"].to_numpy(), rule.counts["class"].to_numpy()] = rule.counts["n"]
    with_rows = table[table.sum(axis=1) > 0]
    test = _scipy_stats("a p-value").chi2_contingency(with_rows, correction=False)
    return float(test.pvalue)


def _holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number: the smallest times m, the next times m - 1, ..."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.array(p_values)[order] * factors).clip(max=1)
    return [float(p) for p in adjusted]


def _schema(options: Options, fractional: bool) -> dict[str, pl.DataType]:
    schema = dict(_SCHEMA)
    if fractional:
        schema["n_errors"] = pl.Float64()
    if not options.significance:
        for name in _SIGNIFICANCE:
            del schema[name]
    return schema


def _scipy_stats(what: str) -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingPackageError.from_extra("scipy", "stats", what) from None
    return stats
