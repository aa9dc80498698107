"""`Split`, the frozen result of `best_split`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polars_oner import report
from polars_oner.criteria import Criterion
from polars_oner.expression import predict_intervals, predict_values
from polars_oner.frame import Column
from polars_oner.probability import class_names, class_shares
from polars_oner.serialize import Model
from polars_oner.target import ClassTarget, NumberTarget
from polars_oner.thresholds import as_text, exact_values, midpoint_value, threshold
from polars_oner.typing import Cut

_LEFT, _RIGHT, _DEFAULT = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Side(Model):
    """The rows on one side of a split, or all of them.

    Attributes
    ----------
    n_rows
        Rows, or their weight.
    counts
        Rows per class, in class order; None for a number target.
    mean
        Mean of a number target; None for classes.
    """

    n_rows: int | float
    counts: tuple[int | float, ...] | None
    mean: float | None

    @property
    def majority(self) -> int:
        """Index of the commonest class; the first in class order of equally common ones."""
        assert self.counts is not None
        return self.counts.index(max(self.counts))


@dataclass(frozen=True, eq=False)
class Split(Model):
    """A binary split of one feature: some rows go left, the others right.

    Attributes
    ----------
    feature, dtype, kind
        The column, its dtype, and ``"ordered"`` or ``"nominal"``; None if no column had a candidate.
    target, target_dtype, classes
        The target, its dtype, and its classes in class order (None for a number target).
    criterion
        The criterion's name.
    cut
        Whether ``threshold`` is the last value that goes left or the middle of the gap.
    neighbours
        The two distinct values around the cut, in the feature's dtype; None for a nominal feature
        and where the missing rows stand apart.
    left_values, right_values
        The values of a nominal feature on either side, ascending; None for an ordered one.
    missing_goes
        The side of the missing rows; None if the training rows had none, or they were dropped. Then
        missing rows are predicted by the default.
    left, right, root
        The rows on both sides, the missing ones where they go, and all rows with a target.
    n_missing, n_target_missing
        Rows whose feature is missing (among those with a target), and rows without a target.
    score, before
        The score of the split, and of the same rows unsplit; None without a feature.
    ranking
        The table of the best split of every feature (`best_splits`), if it was asked for.

    Notes
    -----
    A row without a side (missing, where no side was learned for it, or a value of a nominal feature
    that was not seen) gets the default: the commonest class of all rows, the first in class order of
    equally common ones, or the mean.
    """

    feature: str | None
    dtype: pl.DataType | None
    kind: str | None
    target: str
    target_dtype: pl.DataType
    classes: pl.Series | None
    criterion: str
    cut: str
    neighbours: pl.Series | None
    left_values: pl.Series | None
    right_values: pl.Series | None
    missing_goes: str | None
    left: Side | None
    right: Side | None
    root: Side
    n_missing: int | float
    n_target_missing: int | float
    score: float | None
    before: float | None
    ranking: pl.DataFrame | None = None

    @property
    def left_max(self) -> Any:
        """Largest value that goes left; None for a nominal feature."""
        return None if self.neighbours is None else exact_values(self.neighbours)[0]

    @property
    def right_min(self) -> Any:
        """Smallest value that goes right; None for a nominal feature."""
        return None if self.neighbours is None else exact_values(self.neighbours)[1]

    @property
    def threshold(self) -> Any:
        """The cut as a Python value, ``left_max <= threshold < right_min``; None if there is none."""
        if self.neighbours is None:
            return None
        if self.cut == "value":
            return self.left_max
        middle = midpoint_value(self.left_max, self.right_min)
        # Nanoseconds that Python would drop are integers here, of which there are no halves.
        is_half = self.neighbours.dtype.is_temporal() and isinstance(middle, float)
        return math.floor(middle) if is_half else middle

    @property
    def n_left(self) -> int | float:
        """Rows on the left."""
        return 0 if self.left is None else self.left.n_rows

    @property
    def n_right(self) -> int | float:
        """Rows on the right."""
        return 0 if self.right is None else self.right.n_rows

    @property
    def gain(self) -> float | None:
        """Score of the unsplit rows minus the score of the split."""
        return None if self.score is None or self.before is None else self.before - self.score

    @property
    def conditions(self) -> tuple[str, str]:
        """The tests for going left and right, as text that reads back exactly.

        A row that passes neither is missing (`missing_goes`) or has a value that was not seen.
        """
        if self.feature is None:
            return report.ANY_VALUE, ""
        feature = report.text_of(self.feature)
        if self.left_values is not None and self.right_values is not None:
            left, right = (
                f"{feature} in {{{', '.join(report.value_texts(values))}}}"
                for values in (self.left_values, self.right_values)
            )
            return left, right
        if self.neighbours is None or self.dtype is None:
            return f"{feature} is not {report.MISSING}", f"{feature} is {report.MISSING}"
        left_end, right_end = (pl.lit(self.neighbours[i : i + 1]) for i in (0, 1))
        cut: Cut = "midpoint" if self.cut == "midpoint" else "value"
        text = pl.select(as_text(left_end, right_end, self.dtype, cut)).item()
        return f"{feature} <= {text}", f"{feature} > {text}"

    def to_frame(self) -> pl.DataFrame:
        """Give the sides as a table.

        Returns
        -------
        DataFrame
            One row per side: ``side`` (``"left"``, ``"right"``), ``condition``, ``prediction`` (as
            `predict` gives it), ``n_rows``, and for classes ``n_correct``. No row without a feature.
        """
        sides = [side for side in (self.left, self.right) if side is not None]
        columns = {
            "side": pl.Series(["left", "right"][: len(sides)], dtype=pl.String),
            "condition": pl.Series(self.conditions[: len(sides)], dtype=pl.String),
            "prediction": self._outcomes[: len(sides)],
            "n_rows": pl.Series([side.n_rows for side in sides]),
        }
        if self.classes is not None:
            columns["n_correct"] = pl.Series([max(side.counts or (0,)) for side in sides])
        return pl.DataFrame(columns)

    def __str__(self) -> str:
        return report.block(self._title, self._lines(), self._summary)

    def _repr_html_(self) -> str:
        header = ("side", self.target, "correct" if self.classes is not None else "rows")
        return report.html_table(self._title, header, self._lines(), self._summary)

    @property
    def _title(self) -> str:
        rows = f"{self.root.n_rows} rows"
        if self.n_target_missing:
            rows += f", {self.n_target_missing} more without a target"
        return f"best split for {report.text_of(self.target)} ({rows})"

    @property
    def _summary(self) -> str:
        if self.score is None:
            return "no feature splits these rows"
        return f"{self.criterion} {self.score:.6g}, gain {self.gain:.6g}"

    def _lines(self) -> list[tuple[str, str, str]]:
        predictions = self._outcomes
        shown = (
            report.value_texts(predictions)
            if self.classes is not None
            else [f"{mean:.6g}" for mean in predictions]
        )
        if self.left is None or self.right is None:
            return [(report.ANY_VALUE, shown[_DEFAULT], self._support(self.root))]
        left, right = self.conditions
        lines = [(left, shown[_LEFT], self._support(self.left))]
        if self.right_values is None or not self.right_values.is_empty():
            lines.append((right, shown[_RIGHT], self._support(self.right)))
        if self.missing_goes is None:
            lines.append((report.MISSING, shown[_DEFAULT], ""))
        elif not right.endswith(f"is {report.MISSING}"):
            missing = shown[_LEFT if self.missing_goes == "left" else _RIGHT]
            lines.append((report.MISSING, missing, f"goes {self.missing_goes}"))
        if self.kind == "nominal":
            lines.append((report.OTHERWISE, shown[_DEFAULT], ""))
        return lines

    def _support(self, side: Side) -> str:
        if side.counts is None:
            return f"{side.n_rows} rows"
        return report.share(max(side.counts), side.n_rows)

    def goes_left(self, name: str = "goes_left") -> pl.Expr:
        """Give the test: True for rows that go left, False for right, null for rows without a side.

        Returns
        -------
        Expr
            Boolean, named ``name``; all null if the split has no feature.
        """
        return self._decide(pl.Series([True, False, None], dtype=pl.Boolean)).alias(name)

    @property
    def tested(self) -> tuple[Column, ...]:
        """The columns that the prediction reads, as they were learned."""
        if self.feature is None or self.dtype is None:
            return ()
        return (
            Column(self.feature, self.dtype, "ordered" if self.kind == "ordered" else "nominal"),
        )

    def predict(self, name: str = "prediction") -> pl.Expr:
        """Give the prediction: the majority class or the mean of the side a row goes to.

        Returns
        -------
        Expr
            In the target's dtype, named ``name``; for a number target Float64, or Float32 if the
            target is. Of equally common classes the first in class order.
        """
        return self._decide(self._outcomes).alias(name)

    def expr(self) -> pl.Expr:
        """Give the prediction under its default name; see `predict`."""
        return self.predict()

    @property
    def _outcomes(self) -> pl.Series:
        """What is predicted on the left, on the right, and for rows without a side."""
        sides = [self.left or self.root, self.right or self.root, self.root]
        if self.classes is not None:
            return self.classes.gather([side.majority for side in sides]).cast(self.target_dtype)
        dtype = pl.Float32 if isinstance(self.target_dtype, pl.Float32) else pl.Float64
        return pl.Series([side.mean for side in sides], dtype=dtype)

    def predict_proba(self, *, smoothing: float = 0.0) -> dict[Any, pl.Expr]:
        """Give the share of each class among the training rows of a row's side.

        Parameters
        ----------
        smoothing
            Rows ``a`` to add to each of the ``k`` classes: ``(n_class + a) / (n_rows + a * k)``.

        Returns
        -------
        dict of Expr
            By class, in class order: Float64, named by the class as text. A row without a side has
            the shares of all training rows. Empty for a number target.

        Raises
        ------
        OptionError
            ``smoothing`` is negative or not finite.
        """
        if self.classes is None:
            return {}
        sides = (self.left or self.root, self.right or self.root, self.root)
        shares = class_shares(np.array([side.counts for side in sides]), smoothing)
        names = zip(*class_names(self.classes.cast(self.target_dtype)), strict=True)
        return {
            label: self._decide(pl.Series(shares[:, i])).alias(text)
            for i, (label, text) in enumerate(names)
        }

    def _decide(self, outcomes: pl.Series) -> pl.Expr:
        """Map a row to the outcome of the left, of the right, or of neither."""
        if not self.tested:
            # As many values as the frame has rows, also where nothing else is selected.
            return pl.repeat(pl.lit(outcomes[_DEFAULT], dtype=outcomes.dtype), pl.len())
        (feature,) = self.tested
        missing = {"left": _LEFT, "right": _RIGHT, None: _DEFAULT}[self.missing_goes]
        if self.left_values is not None and self.right_values is not None:
            codes = [_LEFT] * len(self.left_values) + [_RIGHT] * len(self.right_values)
            values = pl.concat([self.left_values, self.right_values])
            return predict_values(
                feature, values, codes, outcomes, missing=missing, default=_DEFAULT
            )
        if self.neighbours is None:
            cuts, codes = pl.Series([], dtype=feature.dtype), [_LEFT]
        else:
            cuts, codes = _cut_series(self.neighbours, self.cut), [_LEFT, _RIGHT]
        return predict_intervals(feature, cuts, codes, outcomes, missing=missing)


def split_from_counts(
    feature: Column | None,
    chosen: pl.DataFrame | None,
    counts: pl.DataFrame | None,
    target: ClassTarget | NumberTarget,
    criterion: Criterion,
    cut: Cut,
) -> Split:
    """Build the result from the best candidate and the count table it was found in.

    Parameters
    ----------
    feature, chosen, counts
        The feature, its best candidate as one row, and its counts; all None if nothing splits.
    target
        The target.
    criterion, cut
        As asked for.
    """
    learned = Split(
        feature=None,
        dtype=None,
        kind=None,
        target=target.name,
        target_dtype=target.dtype,
        classes=target.classes if isinstance(target, ClassTarget) else None,
        criterion=criterion.name,
        cut=cut,
        neighbours=None,
        left_values=None,
        right_values=None,
        missing_goes=None,
        left=None,
        right=None,
        root=_all_rows(target),
        n_missing=0,
        n_target_missing=target.n_missing,
        score=None,
        before=None,
    )
    if feature is None or chosen is None or counts is None:
        return learned
    best = chosen.row(0, named=True)
    missing = pl.col("value").is_null() & pl.col("exact")
    apart = best["goes"] == "apart"
    if feature.kind == "nominal":
        left = chosen["left_values"].explode(empty_as_null=False)
        seen = counts["value"].drop_nulls().unique().sort()
        right = seen.filter(~seen.is_in(left.implode()))
        learned = replace(learned, left_values=left, right_values=right)
        goes_left = pl.col("value").is_in(pl.lit(left.implode()))
    elif apart:
        goes_left = ~missing
    else:
        learned = replace(learned, neighbours=pl.concat([chosen["value"], chosen["next"]]))
        # Rows stand in the order of their values: all before the next value go left.
        position = pl.int_range(pl.len())
        at_next = pl.col("value") == pl.lit(chosen["next"]).first()
        goes_left = position < position.filter(at_next).min()
    side = pl.when(missing).then(pl.lit(best["goes"] == "left")).otherwise(goes_left)
    used = counts.filter(~missing) if best["goes"] is None else counts
    return replace(
        learned,
        feature=feature.name,
        dtype=feature.dtype,
        kind=feature.kind,
        missing_goes="right" if apart else best["goes"],
        left=_side(used.filter(side), target),
        right=_side(used.filter(~side), target),
        n_missing=best["n_missing"],
        score=best["score"],
        before=best["before"],
    )


def _all_rows(target: ClassTarget | NumberTarget) -> Side:
    if isinstance(target, ClassTarget):
        return Side(target.n_rows, tuple(target.counts.tolist()), None)
    return Side(target.n_rows, None, target.mean)


def _side(counts: pl.DataFrame, target: ClassTarget | NumberTarget) -> Side:
    if isinstance(target, NumberTarget):
        n_rows, total = counts.select(pl.col("n").sum(), pl.col("s").sum()).row(0)
        return Side(n_rows, None, target.center + total / n_rows)
    per_class = dict(counts.group_by("class").agg(pl.col("n").sum()).iter_rows())
    sums = tuple(per_class.get(i, 0) for i in range(len(target.classes)))
    return Side(sum(sums), sums, None)


def _cut_series(neighbours: pl.Series, cut: str) -> pl.Series:
    left, right = pl.lit(neighbours[:1]), pl.lit(neighbours[1:])
    which: Cut = "midpoint" if cut == "midpoint" else "value"
    return pl.select(threshold(left, right, neighbours.dtype, which)).to_series()
