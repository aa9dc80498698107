"""``.oner`` on DataFrame, LazyFrame and Expr: the functions of the package as methods.

A type checker cannot see registered namespaces; the functions are the typed way in.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import polars as pl

from polars_oner import discretization, impurity
from polars_oner.bins import Bins
from polars_oner.class_rules import ClassRules, class_rules
from polars_oner.discretizers import Method
from polars_oner.evaluation import (
    Model,
    Probabilities,
    Task,
    class_report,
    confusion,
    evaluate,
)
from polars_oner.learning import BinsChoice
from polars_oner.one_rule import OneRule
from polars_oner.prediction import Predictor, predict
from polars_oner.ranking import fit, rank
from polars_oner.significance import split_significance
from polars_oner.split import Split
from polars_oner.splits import best_split, best_splits, split_scores
from polars_oner.typing import (
    AtCut,
    Choose,
    ClassRuleTies,
    CriterionName,
    Cut,
    Engine,
    FrameT,
    Identifiers,
    Missing,
    Strategy,
    Ties,
    Unseen,
)
from polars_oner.validation import CrossValidation, cross_validate

_NAME = "oner"

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def _documented_by(function: Callable[..., Any]) -> Callable[[MethodT], MethodT]:
    """Give a method the docstring of the function that it calls."""

    def share(method: MethodT) -> MethodT:
        method.__doc__ = function.__doc__
        return method

    return share


class FrameNamespace(Generic[FrameT]):
    """Learning and predicting from a frame; each method is the function of its name."""

    def __init__(self, frame: FrameT) -> None:
        self._frame: FrameT = frame

    @_documented_by(split_scores)
    def split_scores(
        self,
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
        """See `polars_oner.split_scores`."""
        return split_scores(
            self._frame,
            target,
            feature,
            criterion=criterion,
            missing=missing,
            min_leaf=min_leaf,
            cut=cut,
            by=by,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
        )

    @_documented_by(best_splits)
    def best_splits(
        self,
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
        """See `polars_oner.best_splits`."""
        return best_splits(
            self._frame,
            target,
            features,
            criterion=criterion,
            missing=missing,
            min_leaf=min_leaf,
            cut=cut,
            by=by,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            strategy=strategy,
            engine=engine,
            progress=progress,
        )

    @_documented_by(best_split)
    def best_split(
        self,
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
        """See `polars_oner.best_split`."""
        return best_split(
            self._frame,
            target,
            features,
            criterion=criterion,
            missing=missing,
            min_leaf=min_leaf,
            cut=cut,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            ranking=ranking,
            strategy=strategy,
            engine=engine,
            progress=progress,
        )

    @_documented_by(split_significance)
    def split_significance(
        self,
        target: str,
        features: str | Sequence[str] | None = None,
        *,
        criterion: CriterionName = "gini",
        missing: Missing = "drop",
        min_leaf: int = 1,
        n_permutations: int = 0,
        seed: int = 0,
        nominal: Collection[str] = (),
        ordered: Collection[str] = (),
        engine: Engine = "auto",
    ) -> pl.DataFrame:
        """See `polars_oner.split_significance`."""
        return split_significance(
            self._frame,
            target,
            features,
            criterion=criterion,
            missing=missing,
            min_leaf=min_leaf,
            n_permutations=n_permutations,
            seed=seed,
            nominal=nominal,
            ordered=ordered,
            engine=engine,
        )

    @_documented_by(rank)
    def rank(
        self,
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
        """See `polars_oner.rank`."""
        return rank(
            self._frame,
            target,
            features,
            min_bucket=min_bucket,
            ties=ties,
            choose=choose,
            identifiers=identifiers,
            bins=bins,
            folds=folds,
            seed=seed,
            significance=significance,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            engine=engine,
            progress=progress,
        )

    @_documented_by(fit)
    def fit(
        self,
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
        """See `polars_oner.fit`."""
        return fit(
            self._frame,
            target,
            features,
            min_bucket=min_bucket,
            ties=ties,
            choose=choose,
            identifiers=identifiers,
            bins=bins,
            folds=folds,
            seed=seed,
            significance=significance,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            engine=engine,
            progress=progress,
        )

    @_documented_by(cross_validate)
    def cross_validate(
        self,
        target: str,
        features: str | Sequence[str] | None = None,
        *,
        folds: int = 10,
        seed: int = 0,
        stratify: bool = True,
        fold_column: str | None = None,
        min_bucket: int = 6,
        ties: Ties = "rare",
        choose: Choose = "first",
        identifiers: Identifiers = "exclude",
        bins: BinsChoice | None = None,
        unseen: Unseen = "default",
        at_cut: AtCut = "below",
        nominal: Collection[str] = (),
        ordered: Collection[str] = (),
        weights: str | None = None,
        engine: Engine = "auto",
        progress: bool = False,
    ) -> CrossValidation:
        """See `polars_oner.cross_validate`."""
        return cross_validate(
            self._frame,
            target,
            features,
            folds=folds,
            seed=seed,
            stratify=stratify,
            fold_column=fold_column,
            min_bucket=min_bucket,
            ties=ties,
            choose=choose,
            identifiers=identifiers,
            bins=bins,
            unseen=unseen,
            at_cut=at_cut,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            engine=engine,
            progress=progress,
        )

    @_documented_by(class_rules)
    def class_rules(
        self,
        target: str,
        features: str | Sequence[str] | None = None,
        *,
        ties: ClassRuleTies = "frequent",
        nominal: Collection[str] = (),
        ordered: Collection[str] = (),
        weights: str | None = None,
        engine: Engine = "auto",
        progress: bool = False,
    ) -> ClassRules:
        """See `polars_oner.class_rules`."""
        return class_rules(
            self._frame,
            target,
            features,
            ties=ties,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            engine=engine,
            progress=progress,
        )

    @overload
    def discretize(
        self,
        target: str,
        feature: str,
        *,
        method: Method = "1r",
        max_bins: int | None = None,
        min_bucket: int = 6,
        ties: Ties = "rare",
        criterion: CriterionName = "entropy",
        special: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
        nominal: Collection[str] = (),
        ordered: Collection[str] = (),
        weights: str | None = None,
        engine: Engine = "auto",
        progress: bool = False,
    ) -> Bins: ...

    @overload
    def discretize(
        self,
        target: str,
        feature: list[str] | tuple[str, ...],
        *,
        method: Method = "1r",
        max_bins: int | None = None,
        min_bucket: int = 6,
        ties: Ties = "rare",
        criterion: CriterionName = "entropy",
        special: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
        nominal: Collection[str] = (),
        ordered: Collection[str] = (),
        weights: str | None = None,
        engine: Engine = "auto",
        progress: bool = False,
    ) -> dict[str, Bins]: ...

    @_documented_by(discretization.discretize)
    def discretize(
        self,
        target: str,
        feature: str | list[str] | tuple[str, ...],
        *,
        method: Method = "1r",
        max_bins: int | None = None,
        min_bucket: int = 6,
        ties: Ties = "rare",
        criterion: CriterionName = "entropy",
        special: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
        nominal: Collection[str] = (),
        ordered: Collection[str] = (),
        weights: str | None = None,
        engine: Engine = "auto",
        progress: bool = False,
    ) -> Bins | dict[str, Bins]:
        """See `polars_oner.discretize`."""
        return discretization.discretize(
            self._frame,
            target,
            feature,
            method=method,
            max_bins=max_bins,
            min_bucket=min_bucket,
            ties=ties,
            criterion=criterion,
            special=special,
            nominal=nominal,
            ordered=ordered,
            weights=weights,
            engine=engine,
            progress=progress,
        )

    @_documented_by(evaluate)
    def evaluate(
        self,
        model: Model,
        target: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        weights: str | None = None,
        confidence: float = 0.95,
        proba: Probabilities | None = None,
        task: Task | None = None,
    ) -> FrameT:
        """See `polars_oner.evaluate`."""
        return evaluate(
            self._frame,
            model,
            target,
            by=by,
            weights=weights,
            confidence=confidence,
            proba=proba,
            task=task,
        )

    @_documented_by(class_report)
    def class_report(
        self,
        model: Model,
        target: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        weights: str | None = None,
    ) -> FrameT:
        """See `polars_oner.class_report`."""
        return class_report(self._frame, model, target, by=by, weights=weights)

    @_documented_by(confusion)
    def confusion(
        self,
        model: Model,
        target: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        weights: str | None = None,
    ) -> FrameT:
        """See `polars_oner.confusion`."""
        return confusion(self._frame, model, target, by=by, weights=weights)

    @_documented_by(predict)
    def predict(self, model: Predictor, *, name: str = "prediction") -> FrameT:
        """See `polars_oner.predict`."""
        return predict(self._frame, model, name=name)


class DataFrameNamespace(FrameNamespace[pl.DataFrame]):
    """``DataFrame.oner``: tables come back eager."""


class LazyFrameNamespace(FrameNamespace[pl.LazyFrame]):
    """``LazyFrame.oner``: tables come back lazy; learning a model executes."""


class ExprNamespace:
    """``Expr.oner``: impurity and best split of a column, in ``select``, ``agg`` and ``over``."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    @_documented_by(impurity.gini)
    def gini(self, *, by: pl.Expr | str | None = None) -> pl.Expr:
        """See `polars_oner.impurity.gini`."""
        return impurity.gini(self._expression, by=by)

    @_documented_by(impurity.entropy)
    def entropy(self, *, by: pl.Expr | str | None = None) -> pl.Expr:
        """See `polars_oner.impurity.entropy`."""
        return impurity.entropy(self._expression, by=by)

    @_documented_by(impurity.error_rate)
    def error_rate(self, *, by: pl.Expr | str | None = None) -> pl.Expr:
        """See `polars_oner.impurity.error_rate`."""
        return impurity.error_rate(self._expression, by=by)

    @_documented_by(impurity.std_score)
    def std_score(self, *, by: pl.Expr | str | None = None) -> pl.Expr:
        """See `polars_oner.impurity.std_score`."""
        return impurity.std_score(self._expression, by=by)

    @_documented_by(impurity.best_split)
    def best_split(
        self, y: pl.Expr | str, *, criterion: CriterionName = "gini", min_leaf: int = 1
    ) -> pl.Expr:
        """See `polars_oner.impurity.best_split`."""
        return impurity.best_split(self._expression, y, criterion=criterion, min_leaf=min_leaf)


def _register() -> None:
    """Register the namespaces, silently over our own, with one warning over someone else's."""
    hosts = (
        (pl.DataFrame, pl.api.register_dataframe_namespace, DataFrameNamespace),
        (pl.LazyFrame, pl.api.register_lazyframe_namespace, LazyFrameNamespace),
        (pl.Expr, pl.api.register_expr_namespace, ExprNamespace),
    )
    foreign = None
    for host, register, namespace in hosts:
        holder = getattr(host, _NAME, None)
        if isinstance(holder, type):
            if holder.__module__ != __name__:
                foreign = f"{holder.__module__}.{holder.__qualname__}"
            # Polars warns about any namespace that it finds in place.
            delattr(host, _NAME)
        register(_NAME)(namespace)
    if foreign is not None:
        warnings.warn(
            f"polars_oner takes the namespace .{_NAME}, which {foreign} had registered before",
            UserWarning,
            stacklevel=2,
        )


_register()
