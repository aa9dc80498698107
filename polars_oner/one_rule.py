"""`OneRule`, the frozen result of `fit`: the rules of all features, and the one that predicts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from polars_oner import report
from polars_oner.expression import guarded, literal
from polars_oner.frame import Column
from polars_oner.probability import class_names, class_shares
from polars_oner.rule import Rule
from polars_oner.serialize import Model


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

    @property
    def tested(self) -> tuple[Column, ...]:
        """The columns that the prediction reads, as they were learned."""
        return () if self.rule is None else self.rule.tested

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

    def predict_proba(self, *, smoothing: float = 0.0) -> dict[Any, pl.Expr]:
        """Give the share of each class among the rows like a row; see `Rule.predict_proba`."""
        if self.rule is not None:
            return self.rule.predict_proba(smoothing=smoothing)
        first = self.rules[0]
        feature = Column(first.feature, first.dtype, first.kind)
        shares = class_shares(self.class_counts.to_numpy()[None, :], smoothing)[0]
        return {
            label: guarded(pl.lit(share), feature).alias(text)
            for label, text, share in zip(*class_names(self.classes), shares.tolist(), strict=True)
        }

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
