"""One feature's counts become its 1R rule: a class for every value, or for every interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from polars_oner import report
from polars_oner.expression import predict_intervals, predict_values
from polars_oner.frame import Column, canonical_dtype
from polars_oner.intervals import (
    Indices,
    Intervals,
    group_starts,
    in_chunks,
    majorities,
    tie_order,
    tie_ranks,
    walk,
)
from polars_oner.probability import class_names, class_shares, number_values
from polars_oner.serialize import Model
from polars_oner.target import ClassTarget
from polars_oner.thresholds import exact_values, midpoint, midpoint_value
from polars_oner.typing import Kind, Ties


@dataclass(frozen=True)
class Case:
    """One case of a rule: a value, an interval or the missing rows, and what it predicts.

    Attributes
    ----------
    condition
        The case in words, as printed.
    values
        The one value of a nominal case; None for an interval and for the missing rows.
    lower, upper
        Ends of an interval ``(lower, upper]``; None where it is open.
    is_missing
        Whether this is the case of the missing rows.
    prediction
        The class.
    n_correct, n_rows
        Training rows of that class, and of all classes.
    """

    condition: str
    values: tuple[Any] | None
    lower: Any
    upper: Any
    is_missing: bool
    prediction: Any
    n_correct: int | float
    n_rows: int | float

    @property
    def n_errors(self) -> int | float:
        """Training rows that the case gets wrong."""
        return self.n_rows - self.n_correct

    @property
    def error_rate(self) -> float:
        """Share of the training rows that the case gets wrong; NaN for a case without rows."""
        return self.n_errors / self.n_rows if self.n_rows else float("nan")


@dataclass(frozen=True, eq=False)
class Rule(Model):
    """The 1R rule of one feature.

    Attributes
    ----------
    feature, dtype, kind
        The column it tests, its dtype, and whether by value or by interval.
    classes
        The classes of the target, in class order and in the target's dtype.
    default
        The index of the class that rows without a case get.
    table
        One row per case: values ascending or intervals upwards, then the missing rows if there were
        any. ``value`` (nominal), or ``upper``, ``left``, ``right`` (ordered: the cut above the case
        and the training values next to it), in the feature's dtype; ``is_missing`` Boolean;
        ``class`` UInt32; ``n_correct``, ``n_rows``.
    counts
        One row per case and class that occurs in it: ``case``, ``class`` UInt32; ``n``.
    """

    feature: str
    dtype: pl.DataType
    kind: Kind
    classes: pl.Series
    default: int
    table: pl.DataFrame
    counts: pl.DataFrame

    @property
    def n_cases(self) -> int:
        """Number of cases, the missing one included."""
        return self.table.height

    @property
    def n_rows(self) -> int | float:
        """Training rows with a target."""
        return _total(self.table["n_rows"])

    @property
    def n_correct(self) -> int | float:
        """Training rows that the rule gets right."""
        return _total(self.table["n_correct"])

    @property
    def n_errors(self) -> int | float:
        """Training rows that the rule gets wrong."""
        return self.n_rows - self.n_correct

    @property
    def accuracy(self) -> float:
        """Share of the training rows that the rule gets right."""
        return self.n_correct / self.n_rows

    @property
    def error_rate(self) -> float:
        """Share of the training rows that the rule gets wrong."""
        return self.n_errors / self.n_rows

    @property
    def cuts(self) -> list[Any]:
        """The cuts of an ordered feature as they read: 64.5 between the integers 64 and 65."""
        if self.kind == "nominal":
            return []
        inner = self._intervals[:-1]
        pairs = zip(exact_values(inner["left"]), exact_values(inner["right"]), strict=True)
        return [left if right is None else midpoint_value(left, right) for left, right in pairs]

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases one by one."""
        frame = self.to_frame()
        values, lower, upper = (exact_values(frame[name]) for name in ("value", "lower", "upper"))
        one_by_one = [None if value is None else (value,) for value in values]
        return tuple(
            Case(*case)
            for case in zip(
                frame["condition"],
                one_by_one,
                lower,
                upper,
                self.table["is_missing"],
                frame["prediction"],
                frame["n_correct"],
                frame["n_rows"],
                strict=True,
            )
        )

    @property
    def conditions(self) -> list[str]:
        """Each case in words."""
        if self.kind == "nominal":
            return report.value_texts(self.table["value"])
        inner = self._intervals[:-1]
        right = inner["right"].fill_null(inner["left"])
        texts = report.interval_texts(report.cut_texts(inner["left"], right, self.dtype))
        found = texts if len(self._intervals) else []
        return [*found, *[report.MISSING] * int(self.table["is_missing"].sum())]

    @property
    def _intervals(self) -> pl.DataFrame:
        return self.table.filter(~pl.col("is_missing"))

    @property
    def _missing(self) -> int:
        """The class of missing rows: their own case's, or the default."""
        missing = self.table.filter("is_missing")["class"]
        return int(missing[0]) if len(missing) else self.default

    @property
    def tested(self) -> tuple[Column, ...]:
        """The columns that the prediction reads, as they were learned."""
        return (Column(self.feature, self.dtype, self.kind),)

    def predict(self, name: str = "prediction") -> pl.Expr:
        """Give the expression that applies the rule: the class of each row, in the target's dtype.

        A value that was not seen, and a missing one if none was, gets the default. On a column of
        another dtype the query raises.
        """
        feature = Column(self.feature, self.dtype, self.kind)
        cases = self._intervals
        codes = cases["class"].to_list()
        if self.kind == "nominal":
            prediction = predict_values(
                feature,
                cases["value"],
                codes,
                self.classes,
                missing=self._missing,
                default=self.default,
            )
        else:
            prediction = predict_intervals(
                feature,
                cases["upper"][:-1],
                codes or [self.default],
                self.classes,
                missing=self._missing,
            )
        return prediction.alias(name)

    def expr(self) -> pl.Expr:
        """Give the same as `predict`, under its default name."""
        return self.predict()

    def predict_proba(self, *, smoothing: float = 0.0) -> dict[Any, pl.Expr]:
        """Give the share of each class among the training rows of a row's case.

        Parameters
        ----------
        smoothing
            Rows ``a`` to add to each of the ``k`` classes: ``(n_class + a) / (n_rows + a * k)``
            (Laplace 1774 has ``a = 1``).

        Returns
        -------
        dict of Expr
            By class, in class order: Float64, named by the class as text. A row without a case, and
            a case without training rows, has the shares of all training rows.

        Raises
        ------
        OptionError
            ``smoothing`` is negative or not finite.

        References
        ----------
        Laplace, P. S. (1774). Memoir on the probability of the causes of events. Translated in
        *Statistical Science* 1 (1986), 364-378.
        """
        n = self.counts["n"].to_numpy()
        per_case = np.zeros((self.n_cases + 1, len(self.classes)), dtype=n.dtype)
        per_case[self.counts["case"].to_numpy(), self.counts["class"].to_numpy()] = n
        overall = per_case.sum(axis=0)
        per_case[per_case.sum(axis=1) == 0] = overall
        shares, case = class_shares(per_case, smoothing), self._case()
        return {
            label: pl.lit(pl.Series(shares[:, i])).gather(case).alias(text)
            for i, (label, text) in enumerate(zip(*class_names(self.classes), strict=True))
        }

    def _case(self) -> pl.Expr:
        """Give the number of a row's case, that of the cases for a row without one."""
        feature, cases = Column(self.feature, self.dtype, self.kind), self._intervals
        numbers = pl.int_range(self.n_cases + 1, dtype=pl.UInt32, eager=True)
        missing = cases.height if self.table["is_missing"].any() else self.n_cases
        if self.kind == "ordered":
            codes = range(cases.height) if cases.height else [self.n_cases]
            return predict_intervals(feature, cases["upper"][:-1], codes, numbers, missing=missing)
        return number_values(feature, cases["value"], missing=missing, default=self.n_cases)

    def to_frame(self) -> pl.DataFrame:
        """Give the cases as a table.

        Returns
        -------
        DataFrame
            One row per case, in their order: ``feature``, ``condition`` String; ``value``, ``lower``,
            ``upper`` in the feature's dtype (null where they do not apply or an interval is open);
            ``prediction`` in the target's dtype; ``n_correct``, ``n_rows``.
        """
        null = pl.lit(None, dtype=canonical_dtype(self.dtype))
        ordered = self.kind == "ordered"
        upper = pl.col("upper") if ordered else null
        below = pl.when(~pl.col("is_missing")).then(upper.shift())
        return self.table.select(
            pl.lit(self.feature).alias("feature"),
            pl.Series("condition", self.conditions, dtype=pl.String),
            (null if ordered else pl.col("value")).alias("value"),
            below.alias("lower"),
            upper.alias("upper"),
            self.classes.gather(self.table["class"]).alias("prediction"),
            "n_correct",
            "n_rows",
        )

    def __str__(self) -> str:
        return report.block(report.text_of(self.feature), self._lines(), self._summary())

    def _repr_html_(self) -> str:
        header = (self.feature, "class", "correct")
        return report.html_table(self.feature, header, self._lines(), self._summary())

    def _lines(self) -> list[tuple[str, str, str]]:
        labels = report.value_texts(self.classes)
        codes, n_correct, n_rows = self.table["class", "n_correct", "n_rows"]
        lines = [
            (condition, labels[code], report.share(right, whole))
            for condition, code, right, whole in zip(
                self.conditions, codes, n_correct, n_rows, strict=True
            )
        ]
        if self.kind == "nominal":
            lines.append((report.OTHERWISE, labels[self.default], ""))
        elif not self.table["is_missing"].any():
            lines.append((report.MISSING, labels[self.default], ""))
        return lines

    def _summary(self) -> str:
        word = "error" if self.n_errors == 1 else "errors"
        return f"{report.share(self.n_correct, self.n_rows)} correct, {self.n_errors} {word}"


def learn_rule(
    feature: Column,
    counts: pl.DataFrame | Iterator[pl.DataFrame],
    target: ClassTarget,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    cuts: pl.Series | None = None,
) -> Rule:
    """Make a feature's rule from its counts.

    Parameters
    ----------
    feature
        The feature.
    counts
        Its count table, ascending: ``value`` (null for missing), ``class``, ``n`` (> 0). That of an
        ordered feature may come in consecutive pieces, the first with all missing rows, so that it
        need not be held as a whole.
    target
        The classes and their totals, which decide ties and the default.
    min_bucket
        Rows that the majority class of an interval needs (`walk`).
    ties
        Which of several tied classes wins (`tie_order`).
    cuts
        Cuts of an ordered feature, ascending, in its dtype, in place of those that the walk finds.
        An interval without training rows then predicts the default.
    """
    order = tie_order(target.counts, ties)
    pieces = iter([counts]) if isinstance(counts, pl.DataFrame) else counts
    first = next(pieces)
    missing = first.filter(pl.col("value").is_null())
    present = first.filter(pl.col("value").is_not_null())
    if feature.kind == "nominal":
        cases, found = _by_value(present)
    elif cuts is None:
        chunks = chain.from_iterable(in_chunks(piece) for piece in chain([present], pieces))
        cases, found = _by_interval(walk(chunks, order, min_bucket), feature.dtype)
    else:
        cases, found = _by_cut(present, cuts)
    n_present = cases.height
    if missing.height:
        cases = pl.concat([cases, cases.clear(1)])
        found = pl.concat(
            [found, missing.select(pl.lit(n_present, pl.UInt32).alias("case"), "class", "n")]
        )
    default = int(np.argmax(target.counts))
    return Rule(
        feature.name,
        feature.dtype,
        feature.kind,
        target.classes.cast(target.dtype).alias("class"),
        default,
        cases.with_columns(
            pl.Series("is_missing", np.arange(cases.height) >= n_present),
            *_outcomes(found, cases.height, order, default),
        ),
        found,
    )


def _total(n: pl.Series) -> int | float:
    total: int | float = n.to_numpy().sum().item()
    return total


def _by_value(present: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    found = present.select("value", pl.col("value").rle_id().alias("case"), "class", "n")
    cases = found.select(pl.col("value").unique(maintain_order=True))
    return cases, found.drop("value")


def _by_interval(intervals: Intervals, dtype: pl.DataType) -> tuple[pl.DataFrame, pl.DataFrame]:
    left, right = pl.col("left"), pl.col("right")
    cases = pl.DataFrame({"left": intervals.last, "right": intervals.first.shift(-1)})
    cut = pl.when(right.is_not_null()).then(midpoint(left, right, dtype))
    return cases.select(cut.alias("upper"), left, right), intervals.counts


def _by_cut(present: pl.DataFrame, cuts: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    upper = cuts.extend_constant(None, 1)
    case = pl.col("value").bin_intervals(cuts, labels=False, right_closed=True)
    found = present.group_by(case.alias("case"), "class").agg(pl.col("n").sum())
    cases = pl.DataFrame({"upper": upper, "left": upper, "right": upper.clear(len(upper))})
    return cases, found.sort("case", "class")


def _outcomes(
    counts: pl.DataFrame, n_cases: int, order: Indices, default: int
) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Give each case's class, correct rows and rows; a case without rows has the default class."""
    cases, n = counts["case"].to_numpy(), counts["n"].to_numpy()
    starts = group_starts(cases)
    most, ranks = majorities(starts, tie_ranks(order)[counts["class"].to_numpy()], n)
    codes = np.full(n_cases, default, dtype=np.uint32)
    n_correct, n_rows = np.zeros(n_cases, dtype=n.dtype), np.zeros(n_cases, dtype=n.dtype)
    codes[cases[starts]] = order[ranks]
    n_correct[cases[starts]] = most
    n_rows[cases[starts]] = np.add.reduceat(n, starts)
    return (
        pl.Series("class", codes),
        pl.Series("n_correct", n_correct),
        pl.Series("n_rows", n_rows),
    )
