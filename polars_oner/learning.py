"""What 1R is to learn and how, checked against the schema before any data is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from polars_oner.bins import Bins
from polars_oner.choice import scipy_stats
from polars_oner.criteria import require_classes
from polars_oner.discretizers import Method, discretizer
from polars_oner.errors import DtypeError, OptionError, check_choice, check_positive
from polars_oner.folds import Folding
from polars_oner.frame import Column, Roles, as_lazy, resolve
from polars_oner.rule import Rule, learn_rule
from polars_oner.target import ClassTarget
from polars_oner.typing import CHOOSE, IDENTIFIERS, TIES, Choose, Identifiers, Ties

BinsChoice = Method | Bins | Mapping[str, Method | Bins]
"""Other intervals than Holte's: a method for all ordered features, or for each its own."""

Cutter = Callable[[pl.DataFrame, ClassTarget], pl.DataFrame]
"""Gives the cuts of an ordered feature from its counts: ``left_max``, ``cut``, ``right_min``."""


@dataclass(frozen=True)
class Options:
    """How rules are learned and the one among them is chosen, checked.

    ``folding`` says how rows get folds, ``cutters`` has the ordered features that are cut in another
    way than by Holte's walk; the other fields are the keywords of `fit`.
    """

    min_bucket: int
    ties: Ties
    choose: Choose
    identifiers: Identifiers
    significance: bool = False
    folding: Folding = field(default_factory=Folding)
    cutters: Mapping[str, Cutter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_positive("min_bucket", self.min_bucket)
        check_choice("ties", self.ties, TIES)
        check_choice("choose", self.choose, CHOOSE)
        check_choice("identifiers", self.identifiers, IDENTIFIERS)
        if self.significance:
            scipy_stats("significance=True")
        if self.choose == "chi2":
            scipy_stats("choose='chi2'")


def prepare(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None,
    options: Options,
    bins: BinsChoice | None,
    nominal: Collection[str],
    ordered: Collection[str],
    weights: str | None,
) -> tuple[Options, Roles]:
    """Check columns and options against the schema: classes as target, an Enum nominal."""
    schema = as_lazy(frame).collect_schema()
    reserved = [name for name in (weights, options.folding.column) if name is not None]
    roles = resolve(
        schema,
        target,
        features,
        nominal=nominal,
        ordered=ordered,
        enum_kind="nominal",
        reserved=reserved,
    )
    require_classes(target, roles.target_dtype, "1R", ("integers", "Boolean", "text", "dates"))
    options.folding.check_column(schema)
    if options.choose == "loo" and weights is not None and is_fractional(schema[weights]):
        wanted = "'first', 'chi2' or 'cv' with fractional weights, which do not tell rows apart"
        raise OptionError.from_range("choose", options.choose, wanted)
    cutters = _cutters(bins, roles, options.min_bucket, options.ties)
    return replace(options, cutters=cutters), roles


def is_fractional(weight: pl.DataType) -> bool:
    """Tell whether counts of rows with weights of this dtype are fractional."""
    return not (weight.is_integer() or isinstance(weight, pl.Boolean))


def _cutters(
    bins: BinsChoice | None, roles: Roles, min_bucket: int, ties: Ties
) -> dict[str, Cutter]:
    """Settle which ordered features are cut in another way than by Holte's walk.

    Raises
    ------
    OptionError
        The choice names a column that is no ordered feature, an unknown method, or bins that a rule
        cannot have as cases.
    DtypeError
        Bins were learned on a column of another dtype.
    """
    features = {column.name: column for column in roles.features if column.kind == "ordered"}
    if bins is None:
        return {}
    if isinstance(bins, Bins):
        bins = {bins.feature: bins}
    elif not isinstance(bins, Mapping):
        bins = dict.fromkeys(features, bins)
    found = {}
    for name, chosen in bins.items():
        check_choice("an ordered feature in bins", name, list(features))
        if isinstance(chosen, Bins):
            found[name] = _fixed(chosen, features[name])
        else:
            found[name] = discretizer(
                roles.target, roles.target_dtype, chosen, min_bucket=min_bucket, ties=ties
            ).cut_points
    return found


def _fixed(bins: Bins, feature: Column) -> Cutter:
    if bins.dtype != feature.dtype:
        wanted = f"its bins were learned on {bins.dtype}"
        raise DtypeError.feature(feature.name, feature.dtype, wanted)
    if len(bins.special):
        msg = (
            f"bins of {feature.name!r} have special codes, which are no intervals; "
            "learn from the column that Bins.expr() makes instead"
        )
        raise OptionError(msg)
    return lambda _counts, _target: bins.cut_points


def learn_rules(
    features: Sequence[Column],
    tables: Mapping[str, pl.DataFrame | Iterator[pl.DataFrame]],
    target: ClassTarget,
    options: Options,
) -> tuple[Rule, ...]:
    """Make the rule of every feature from its counts, one feature after the other."""

    def cuts_of(feature: Column) -> pl.Series | None:
        cutter, counts = options.cutters.get(feature.name), tables[feature.name]
        if cutter is None or not isinstance(counts, pl.DataFrame):
            return None
        return cutter(counts, target)["cut"]

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
