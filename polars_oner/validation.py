"""Cross-validation of 1R from counts: the training counts of a fold are those of all rows minus its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_oner import report
from polars_oner.choice import best_first, first_allowed, warn_of_identifiers
from polars_oner.errors import ColumnRoleError, check_choice
from polars_oner.folds import Folding, FoldTables, count_folds
from polars_oner.frame import Roles, as_lazy
from polars_oner.held_out import Trial, cross_validated_accuracy, try_out
from polars_oner.learning import BinsChoice, Options, prepare
from polars_oner.serialize import Model
from polars_oner.target import ClassTarget, class_target
from polars_oner.typing import (
    AT_CUT,
    UNSEEN,
    AtCut,
    Choose,
    Engine,
    Identifiers,
    Ties,
    Unseen,
)

_c = pl.col


@dataclass(frozen=True, eq=False)
class CrossValidation(Model):
    """How well 1R predicts rows that it has not seen, fold by fold.

    Attributes
    ----------
    target
        The column that was predicted.
    folds
        One row per fold, ascending: ``fold``; ``feature``, the one chosen without the fold's rows
        (null if all were identifiers); ``n_rows``; ``n_errors``; ``n_default``, the rows of the
        fold whose class is the commonest in training.
    features
        One row per fold and feature, in the order of the columns: ``fold``, ``feature``,
        ``n_errors``, whichever was chosen.
    n_target_missing
        Rows without a target, which were left out.
    """

    target: str
    folds: pl.DataFrame
    features: pl.DataFrame
    n_target_missing: int | float

    @property
    def n_rows(self) -> int | float:
        """Rows with a target, each predicted once."""
        return _total(self.folds["n_rows"])

    @property
    def n_errors(self) -> int | float:
        """Rows predicted wrong by the rule of the other folds."""
        return _total(self.folds["n_errors"])

    @property
    def n_correct(self) -> int | float:
        """Rows predicted right by the rule of the other folds."""
        return self.n_rows - self.n_errors

    @property
    def accuracy(self) -> float:
        """Share of all rows predicted right."""
        return self.n_correct / self.n_rows

    @property
    def error_rate(self) -> float:
        """Share of all rows predicted wrong."""
        return self.n_errors / self.n_rows

    @property
    def baseline(self) -> float:
        """Share of all rows that the commonest class of the other folds would get right."""
        return _total(self.folds["n_default"]) / self.n_rows

    @property
    def std(self) -> float:
        """Standard deviation of the accuracy between folds (ddof 1), as a share.

        It tells how much one fold's accuracy varies, not how sure their mean is: the folds'
        rules learn from nearly the same rows (Bengio and Grandvalet 2004, "No unbiased estimator of
        the variance of K-fold cross-validation", *JMLR* 5, 1089-1105).
        """
        return float(np.std(self.to_frame()["accuracy"].to_numpy(), ddof=1))

    def to_frame(self) -> pl.DataFrame:
        """Give the folds as a table.

        Returns
        -------
        DataFrame
            One row per fold, ascending: ``fold`` (Int64, or as the fold column), ``feature`` String,
            the one chosen; ``n_rows``, ``n_errors`` Int64 (Float64 with fractional weights);
            ``accuracy`` and ``baseline`` Float64.
        """
        return self.folds.select(
            "fold",
            "feature",
            "n_rows",
            "n_errors",
            (1 - _c("n_errors") / _c("n_rows")).alias("accuracy"),
            (_c("n_default") / _c("n_rows")).alias("baseline"),
        )

    def by_feature(self) -> pl.DataFrame:
        """Give every feature's result, had it been chosen in each fold.

        Returns
        -------
        DataFrame
            One row per feature, fewest errors first, then in the order of the columns: ``feature``
            String, ``n_errors``, ``accuracy`` Float64, and ``n_chosen`` Int64, in how many folds
            it was chosen.
        """
        chosen = self.folds.group_by("feature").agg(pl.len().cast(pl.Int64).alias("n_chosen"))
        return (
            self.features.group_by("feature", maintain_order=True)
            .agg(_c("n_errors").sum())
            .join(chosen, on="feature", how="left", maintain_order="left")
            .select(
                "feature",
                "n_errors",
                (1 - _c("n_errors") / self.n_rows).alias("accuracy"),
                _c("n_chosen").fill_null(0),
            )
            .sort("n_errors", maintain_order=True)
        )

    def __str__(self) -> str:
        return report.block(self._title, self._lines(), self._summary)

    def _repr_html_(self) -> str:
        header = ("fold", "feature", "correct")
        return report.html_table(self._title, header, self._lines(), self._summary)

    @property
    def _title(self) -> str:
        return f"1R for {report.text_of(self.target)}, {self.folds.height} folds"

    @property
    def _summary(self) -> str:
        spread = f"accuracy {self.accuracy:.4g}, {self.std:.2g} std between folds"
        right = report.share(self.n_correct, self.n_rows)
        return f"{right} correct, {spread}, baseline {self.baseline:.4g}"

    def _lines(self) -> list[tuple[str, str, str]]:
        labels = report.value_texts(self.folds["fold"])
        rows = self.folds.select("feature", "n_rows", "n_errors").iter_rows()
        return [
            (label, report.text_of(feature) if feature is not None else "no feature",
             report.share(n_rows - n_errors, n_rows))
            for label, (feature, n_rows, n_errors) in zip(labels, rows, strict=True)
        ]  # fmt: skip


def cross_validate(
    frame: pl.DataFrame | pl.LazyFrame,
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
    """Learn on all folds but one and predict that one, fold by fold. This executes.

    Everything is learned anew for each fold: intervals or bins, classes, tied classes, the default,
    and the choice of the feature. The source is read three times, whatever the number of features
    and folds: for the target, to deal the rows (or look at the fold column), and to count.

    Parameters
    ----------
    frame, target, features
        As in `fit`.
    folds
        How many folds to deal the rows to. With fewer rows, as many as there are rows.
    seed
        Another seed deals another way.
    stratify
        Spread each class evenly over the folds.
    fold_column
        A column that says which fold a row is in, in place of dealing: integers, text, dates or
        Booleans. ``folds``, ``seed`` and ``stratify`` then do nothing.
    min_bucket, ties, choose, identifiers, nominal, ordered, weights, engine, progress
        As in `fit`. ``choose="cv"`` takes the folds that are left for its own.
    bins
        As in `fit`. The cuts of a method are learned anew in each fold; those of `Bins`, which may
        have seen all rows, are kept as they are.
    unseen
        What a nominal value that training did not see, and a missing value if it saw none, is taken
        for: ``"default"``, the commonest class of the training rows, as `Rule.predict` does;
        ``"first"``, the first in class order, as Weka does.
    at_cut
        The side of a value that lies right on a cut between two training values: ``"below"``, as
        `Rule.predict` does; ``"above"``, as Weka does.

    Returns
    -------
    CrossValidation
        The errors fold by fold, and those of every feature.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError, MissingPackageError
        As in `fit`; OptionError also where fewer than two folds have rows, or a row has none.
    EmptyTargetError, WeightError
        As in `fit`.
    OneRError
        A query gives its rows in another order each time it runs.

    Warns
    -----
    IdentifierWarning
        Names the features that were left out of the choice in any fold.

    Notes
    -----
    Rows are lined up by class (if stratified) and by a seeded hash of the target and the features,
    and dealt to the folds in turn. So the folds do not depend on the order of the rows, and their
    sizes differ by one row at most, in all and per class; equal rows are spread over the folds. They
    do depend on which features are given, and on the version of Polars, whose hash this is: a fold
    column makes folds that outlive both. A row of whole weight ``w`` is dealt like ``w`` rows.

    Weka's ten-fold figures come out with its folds as ``fold_column``, the target an Enum of the
    declared order, ``ties="first"``, ``identifiers="keep"``, ``unseen="first"``, ``at_cut="above"``.

    References
    ----------
    Kohavi, R. (1995). A study of cross-validation and bootstrap for accuracy estimation and model
    selection. *IJCAI-95*, 1137-1143.

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"sky": ["blue", "grey"] * 6, "rain": [False, True] * 6})
    >>> validated = polars_oner.cross_validate(df, "rain", folds=3)
    >>> print(validated)
    1R for rain, 3 folds:
      0 -> sky  4/4
      1 -> sky  4/4
      2 -> sky  4/4
    12/12 correct, accuracy 1, 0 std between folds, baseline 0.5
    >>> validated.to_frame().row(0)
    (0, 'sky', 4, 0, 1.0, 0.5)
    """
    check_choice("unseen", unseen, UNSEEN)
    check_choice("at_cut", at_cut, AT_CUT)
    folding = Folding(folds, seed, stratify, fold_column)
    options = Options(min_bucket, ties, choose, identifiers, folding=folding)
    options, roles = prepare(frame, target, features, options, bins, nominal, ordered, weights)
    if not roles.features:
        raise ColumnRoleError.without_features(target)
    lazy = as_lazy(frame)
    seen = class_target(lazy, target, roles.target_dtype, weights=weights, engine=engine)
    tables = count_folds(
        frame, roles, seen, folding, weights=weights, engine=engine, progress=progress
    )
    found, excluded = _validate(tables, roles, seen, options, Trial.of(seen, unseen, at_cut))
    if excluded and identifiers == "exclude":
        warn_of_identifiers(excluded)
    return found


def _validate(
    tables: FoldTables, roles: Roles, target: ClassTarget, options: Options, trial: Trial
) -> tuple[CrossValidation, list[str]]:
    """Try the rules fold by fold; name the features that were identifiers in any."""
    names = [feature.name for feature in roles.features]
    chosen: list[str | None] = []
    of_chosen, of_default, n_errors = [], [], []
    identifiers: set[str] = set()
    tried = try_out(tables, target, options, trial)
    for fold, (own, attempts) in enumerate(zip(tables.n_rows, tried, strict=True)):
        figures = [of_rule for of_rule, _ in attempts]
        errors = dict(zip(names, (n for _, n in attempts), strict=True))
        if options.choose == "cv":
            inner = cross_validated_accuracy(tables, target, options, trial, (fold,))
            figures = [{**row, "cv_accuracy": inner[row["feature"]]} for row in figures]
        identifiers.update(row["feature"] for row in figures if row["identifier"])
        best = first_allowed(best_first(figures, options.choose), options.identifiers)
        n_default = own[np.argmax(tables.n_rows.sum(axis=0) - own)].item()
        of_default.append(n_default)
        chosen.append(None if best is None else best["feature"])
        of_chosen.append(own.sum().item() - n_default if best is None else errors[best["feature"]])
        n_errors += [errors[name] for name in names]
    labels, n_rows = tables.labels, tables.n_rows.sum(axis=1)
    dtype = pl.Int64 if n_rows.dtype.kind == "i" else pl.Float64
    of_folds = pl.DataFrame(
        {
            "fold": labels,
            "feature": pl.Series(chosen, dtype=pl.String),
            "n_rows": pl.Series(n_rows, dtype=dtype),
            "n_errors": pl.Series(of_chosen, dtype=dtype),
            "n_default": pl.Series(of_default, dtype=dtype),
        }
    )
    of_features = pl.DataFrame(
        {
            "fold": labels.gather(np.repeat(np.arange(len(labels)), len(names))),
            "feature": pl.Series(names * len(labels), dtype=pl.String),
            "n_errors": pl.Series(n_errors, dtype=dtype),
        }
    )
    validated = CrossValidation(target.name, of_folds, of_features, target.n_missing)
    return validated, [name for name in names if name in identifiers]


def _total(n: pl.Series) -> int | float:
    total: int | float = n.to_numpy().sum().item()
    return total
