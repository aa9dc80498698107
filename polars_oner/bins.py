"""`Bins`, the frozen result of `discretize`: a feature cut into bins, and what was counted in each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner import report
from polars_oner.criteria import NumberCriterion
from polars_oner.discretizers import Discretizer
from polars_oner.expression import is_one_of, literal, predict_intervals
from polars_oner.frame import Column, column
from polars_oner.serialize import Model
from polars_oner.target import ClassTarget, NumberTarget

_TWO = 2
_CONTINUITY = 0.5
"""Added to both counts of a bin that lacks one of the two classes, so that its evidence is finite."""

Counts = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Floats = npt.NDArray[np.float64]

_c = pl.col


@dataclass(frozen=True, eq=False)
class Bins(Model):
    """A feature cut into bins.

    The bins come in this order everywhere: the intervals upwards, the special codes as they were
    given, and the missing rows. The last one is there even if no row is missing.

    Attributes
    ----------
    feature, dtype
        The column and its dtype.
    target, target_dtype, classes
        The target, its dtype, and its classes in class order (None for a number target).
    method
        How the cuts were found.
    cut_points
        One row per cut, upwards: ``left_max``, ``cut``, ``right_min`` in the feature's dtype. The
        training values next to the cut are its neighbours, ``left_max <= cut < right_min``, and a
        row is below the cut if its value is ``<= cut``.
    special
        Codes that are bins by themselves.
    counts
        One row per bin and class that occurs in it: ``bin``, ``class`` UInt32, ``n``. For a number
        target one row per bin that has rows: ``bin``, ``n``, ``mean``, ``std`` (ddof 1).
    n_target_missing
        Rows without a target, which were left out.
    """

    feature: str
    dtype: pl.DataType
    target: str
    target_dtype: pl.DataType
    classes: pl.Series | None
    method: str
    cut_points: pl.DataFrame
    special: pl.Series
    counts: pl.DataFrame
    n_target_missing: int | float

    @property
    def cuts(self) -> pl.Series:
        """The cuts, ascending, in the feature's dtype."""
        return self.cut_points["cut"]

    @property
    def n_bins(self) -> int:
        """How many bins there are, those of special codes and of missing rows included."""
        return len(self.cuts) + len(self.special) + 2

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins in words: ``<= 2.5``, ``(2.5, 4.75]``, ``> 4.75``, ``-999``, ``missing``.

        No two are equal, and each cut reads back as the very value that separates.
        """
        cuts = report.value_texts(self.cuts)
        inner = [f"({lower}, {upper}]" for lower, upper in pairwise(cuts)]
        intervals = [f"<= {cuts[0]}", *inner, f"> {cuts[-1]}"] if cuts else [report.ANY_VALUE]
        return (*intervals, *report.value_texts(self.special), report.MISSING)

    @property
    def n_rows(self) -> int | float:
        """Training rows with a target, or their weight."""
        total: int | float = self.counts["n"].to_numpy().sum().item()
        return total

    @property
    def information_value(self) -> float | None:
        """The information value of the feature in these bins; None unless there are two classes.

        The sum over the bins of ``(p1 - p0) * woe``; see `to_frame`. 0 says that the bins tell
        nothing of the class.
        """
        if self.classes is None or len(self.classes) != _TWO:
            return None
        return float(_evidence(self._per_class())[1].sum())

    def expr(self, name: str = "bin") -> pl.Expr:
        """Give the bin of each row by its label.

        Returns
        -------
        Expr
            Enum of the `labels`, so that it sorts in the order of the bins, named ``name``. Values
            beyond those seen in training fall into the outermost bins. Never null: null, and NaN in
            a float column, is ``missing``. On a column of another dtype the query raises.
        """
        outcomes = pl.Series(self.labels, dtype=pl.Enum(self.labels))
        return _bin_of(self._column, self.cuts, self.special, outcomes).alias(name)

    def index(self, name: str = "bin") -> pl.Expr:
        """Give the bin of each row by its number, from 0 in the order of `labels`.

        Returns
        -------
        Expr
            UInt32, named ``name``; see `expr`.
        """
        return _bin_of(self._column, self.cuts, self.special, _numbers(self.n_bins)).alias(name)

    def to_frame(self) -> pl.DataFrame:
        """Give the bins as a table.

        Returns
        -------
        DataFrame
            One row per bin, in their order. ``feature`` String; ``bin`` Enum, as `expr` gives it;
            ``lower``, ``upper``, the cuts around an interval ``(lower, upper]``, and ``value``, a
            special code, all in the feature's dtype, null where they do not apply; ``n_rows``;
            ``row_rate`` Float64, the share of all rows. For classes: ``n_class``, a Struct of the
            rows per class, and ``class_rate``, a Struct of their shares of the bin (null in a bin
            without rows), both with a field per class, in class order; ``weight_of_evidence`` and
            ``information_value`` Float64, null unless there are two classes. For a number target:
            ``mean`` and ``std`` Float64 (ddof 1, 0 for one row), null in a bin without rows.

        Notes
        -----
        With ``p1`` the share of all rows of the second class that lie in the bin, and ``p0`` that of
        the first, the weight of evidence is ``ln(p1 / p0)``: above 0 the bin speaks for the second
        class (Good 1950). Scorecards that call the first class good take the negative. The
        information value is ``(p1 - p0) * ln(p1 / p0)``, never negative; its sum over the bins is
        the divergence of Kullback and Leibler between the classes, taken both ways (Siddiqi 2006).
        In a bin that lacks one class both its counts are raised by 0.5 within the logarithm. A bin
        without rows has evidence 0.

        References
        ----------
        Good, I. J. (1950). *Probability and the Weighing of Evidence*.

        Kullback, S., Leibler, R. A. (1951). On information and sufficiency. *Annals of Mathematical
        Statistics* 22, 79-86.

        Siddiqi, N. (2006). *Credit Risk Scorecards*, chapter 6.
        """
        n_cuts, n_special = len(self.cuts), len(self.special)
        none = self.cuts.clear
        n_rows = pl.Series("n_rows", self._n_rows())
        table = pl.DataFrame(
            {
                "feature": pl.repeat(self.feature, self.n_bins, eager=True),
                "bin": pl.Series(self.labels, dtype=pl.Enum(self.labels)),
                "lower": pl.concat([none(1), self.cuts, none(n_special + 1)]),
                "upper": pl.concat([self.cuts, none(n_special + 2)]),
                "value": pl.concat([none(n_cuts + 1), self.special, none(1)]),
                "n_rows": n_rows,
                "row_rate": n_rows / self.n_rows,
            }
        )
        return table.hstack(self._moments() if self.classes is None else self._shares(self.classes))

    def __str__(self) -> str:
        return report.block(self._title, self._lines(named=True), self._summary)

    def _repr_html_(self) -> str:
        return report.html_table(
            self._title, ["bin", "rows", *self._header], self._lines(named=False), self._summary
        )

    @property
    def _title(self) -> str:
        return f"{report.text_of(self.feature)} in bins ({self.method})"

    @property
    def _summary(self) -> str:
        value = self.information_value
        text = f"{self.n_rows} rows"
        return text if value is None else f"{text}, information value {value:.4g}"

    @property
    def _header(self) -> list[str]:
        return ["mean", "std"] if self.classes is None else report.value_texts(self.classes)

    def _lines(self, *, named: bool) -> list[tuple[str, ...]]:
        """Write each bin: its label, its rows, and the rows per class or the moments."""
        if self.classes is None:
            moments = self._moments().iter_rows()
            cells = [["" if x is None else f"{x:.6g}" for x in row] for row in moments]
        else:
            cells = [[str(n) for n in row] for row in self._per_class().tolist()]
        lines = []
        for label, n, row in zip(self.labels, self._n_rows().tolist(), cells, strict=True):
            if named:
                pairs = zip(self._header, row, strict=True)
                told = (f"{name}: {x}" if x else "" for name, x in pairs)
                lines.append((label, f"{n} rows", *told))
            else:
                lines.append((label, str(n), *row))
        return lines

    @property
    def _column(self) -> Column:
        return Column(self.feature, self.dtype, "ordered")

    def _n_rows(self) -> Counts:
        """Give the rows of every bin."""
        n = self.counts["n"].to_numpy()
        rows: Counts = np.zeros(self.n_bins, dtype=n.dtype)
        np.add.at(rows, self.counts["bin"].to_numpy(), n)
        return rows

    def _per_class(self) -> Counts:
        """Give the rows of every bin and class: one row per bin, one column per class."""
        assert self.classes is not None
        n = self.counts["n"].to_numpy()
        rows: Counts = np.zeros((self.n_bins, len(self.classes)), dtype=n.dtype)
        rows[self.counts["bin"].to_numpy(), self.counts["class"].to_numpy()] = n
        return rows

    def _moments(self) -> pl.DataFrame:
        """Give the mean and spread of a number target in every bin."""
        every = _numbers(self.n_bins).alias("bin").to_frame()
        known = every.join(self.counts, on="bin", how="left", maintain_order="left")
        return known.select("mean", "std")

    def _shares(self, classes: pl.Series) -> pl.DataFrame:
        """Give the rows and shares of the classes in every bin, and the evidence."""
        fields = classes.cast(pl.String).to_list()
        per_class = self._per_class()
        n_rows = per_class.sum(axis=1)
        # A bin without rows has no shares; the null stands for the whole Struct.
        rates = per_class / np.where(n_rows > 0, n_rows, 1)[:, None]
        woe, value = _evidence(per_class) if len(fields) == _TWO else (None, None)
        return pl.DataFrame(
            {
                "n_class": pl.DataFrame(per_class, schema=fields).to_struct(),
                "class_rate": pl.DataFrame(rates, schema=fields).to_struct(),
                "weight_of_evidence": woe,
                "information_value": value,
            },
            schema_overrides={"weight_of_evidence": pl.Float64, "information_value": pl.Float64},
        ).with_columns(pl.when(pl.Series(n_rows > 0)).then(_c("class_rate")).alias("class_rate"))


def learn_bins(
    feature: Column,
    counts: pl.DataFrame,
    target: ClassTarget | NumberTarget,
    options: Discretizer,
    special: pl.Series,
) -> Bins:
    """Cut one feature and count its bins.

    Parameters
    ----------
    feature
        An ordered feature.
    counts
        Its count table.
    target
        The target that was counted.
    options
        How to find the cuts.
    special
        Codes that are bins by themselves, in the feature's dtype.
    """
    ordinary = counts
    if len(special):
        ordinary = counts.filter(~is_one_of(_c("value"), special))
    cut_points = options.cut_points(ordinary, target)
    cuts = cut_points["cut"]
    number = _bin_of(
        Column("value", feature.dtype, "ordered"),
        cuts,
        special,
        _numbers(len(cuts) + len(special) + 2),
    )
    counted = counts.with_columns(number.alias("bin"))
    if isinstance(target, ClassTarget):
        counted = counted.group_by("bin", "class").agg(_c("n").sum()).sort("bin", "class")
    else:
        n, s, q = _c("n"), _c("s"), _c("q")
        std = NumberCriterion("std").mass(n, s, q) / n
        counted = (
            counted.group_by("bin")
            .agg(_c("n", "s", "q").sum())
            .select("bin", "n", (s / n + target.center).alias("mean"), std.alias("std"))
            .sort("bin")
        )
    return Bins(
        feature=feature.name,
        dtype=feature.dtype,
        target=target.name,
        target_dtype=target.dtype,
        classes=target.classes if isinstance(target, ClassTarget) else None,
        method=options.method,
        cut_points=cut_points,
        special=special,
        counts=counted,
        n_target_missing=target.n_missing,
    )


def _numbers(n_bins: int) -> pl.Series:
    return pl.int_range(n_bins, dtype=pl.UInt32, eager=True)


def _bin_of(feature: Column, cuts: pl.Series, special: pl.Series, outcomes: pl.Series) -> pl.Expr:
    """Map a feature to one outcome per bin: intervals, special codes, missing rows."""
    n_intervals = len(cuts) + 1
    result = predict_intervals(
        feature, cuts, range(n_intervals), outcomes, missing=len(outcomes) - 1
    )
    for i in range(len(special)):
        is_code = column(feature.name) == literal(special[i : i + 1], feature.dtype)
        outcome = literal(outcomes[n_intervals + i : n_intervals + i + 1], outcomes.dtype)
        result = pl.when(is_code).then(outcome).otherwise(result)
    return result


def _evidence(per_class: Counts) -> tuple[Floats, Floats]:
    """Give the weight of evidence and the information value of each bin, for two classes."""
    totals = per_class.sum(axis=0)
    lacking = (per_class == 0).any(axis=1)
    raised = per_class + np.where(lacking, _CONTINUITY, 0.0)[:, None]
    shares = per_class / totals
    woe = np.log(raised[:, 1] / totals[1]) - np.log(raised[:, 0] / totals[0])
    woe = np.where(per_class.sum(axis=1) > 0, woe, 0.0)
    value: Floats = (shares[:, 1] - shares[:, 0]) * woe
    return woe, value
