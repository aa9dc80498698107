"""How good predictions are: rows -> counts per (segment, actual, predicted) -> figures.

The rows are read once, by one group-by; every figure is a native expression over the small table of
counts that it leaves. So a LazyFrame gives a LazyFrame, and the data may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from statistics import NormalDist
from typing import Any, Literal, Protocol, get_args

import polars as pl

from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    MissingPackageError,
    OneRError,
    OptionError,
    WeightError,
    check_choice,
)
from polars_oner.frame import UNSUPPORTED, as_lazy, canonical, column, like, require_column
from polars_oner.target import row_weight
from polars_oner.typing import FrameT

Task = Literal["classes", "numbers"]
TASKS: tuple[Task, ...] = get_args(Task)


class Predictor(Protocol):
    """What evaluation asks of a model: the target it was learned on and its prediction."""

    @property
    def target(self) -> str:
        """Name of the target column."""

    def predict(self, name: str = ...) -> pl.Expr:
        """Give the predicted target value, under the given name."""


Model = Predictor | pl.Expr | str
Probabilities = str | pl.Expr | Mapping[Any, str | pl.Expr]


def evaluate(
    frame: FrameT,
    model: Model,
    target: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    weights: str | None = None,
    confidence: float = 0.95,
    proba: Probabilities | None = None,
    task: Task | None = None,
) -> FrameT:
    """Measure predictions against the target, for the whole frame or per segment.

    Parameters
    ----------
    frame
        The rows to judge by, eager or lazy.
    model
        A model of this library, the name of a prediction column, or an expression that predicts.
    target
        The column that holds the truth; the model's own target when None.
    by
        Segment columns: one row of figures for each combination of their values. NaN counts as
        null there.
    weights
        Column of row weights, finite and not negative. Weight 0 means that the row is absent; whole
        weights equal repeated rows, and the counts then stay Int64. With Float64 weights the counts
        are sums of weights, and the interval takes them for numbers of rows.
    confidence
        Coverage of the interval around the accuracy, between 0 and 1.
    proba
        Probabilities of classes, for ``log_loss`` and ``auc``: a mapping from class to column name
        or expression. If it names one class, all others share the rest of the probability. A single
        column or expression is the second class of a Boolean target (True) or of an Enum with two
        categories; other targets need the mapping, as their second class depends on the rows. By
        default the model's ``predict_proba()``, where it has one.
    task
        ``"classes"`` or ``"numbers"``. By default a float or Decimal on either side means numbers,
        anything else (integers too) classes.

    Returns
    -------
    DataFrame or LazyFrame
        As ``frame``. One row, or one per segment, ordered by segment; the segment columns lead.
        Figures that do not exist (no rows, one class only, zero baseline error) are null.

        For classes:

        - ``n_rows`` Int64: rows with a target; ``n_target_missing``: rows without, left out of all
          other figures; ``n_unpredicted``: rows with a target whose prediction is null. They are
          errors, belong to no predicted class and stay in every denominator.
        - ``n_correct`` Int64; ``accuracy`` Float64 in [0, 1], with Wilson's interval
          ``accuracy_lower`` to ``accuracy_upper`` [1]_.
        - ``baseline``: share of the segment's commonest class, the accuracy of always naming it.
        - ``error_rate_reduction``: (baseline error - error) / baseline error, at most 1, negative
          for predictions worse than the baseline. `with_p_value` adds its p-value.
        - ``balanced_accuracy``: mean recall of the classes that occur. ``kappa``: Cohen's [2]_, at
          most 1, 0 for chance agreement. ``macro_f1``: mean F1 of the classes that occur or are
          predicted.
        - ``log_loss`` and ``auc``, only with probabilities. ``log_loss``: mean of -ln of the
          probability given to the class that occurred, 0 or more, lower is better; infinite
          where that was 0. ``auc``: chance that a row of a class has a higher probability of it
          than a row outside, ties counting half [3]_; with several classes the mean over those that
          occur (one against the rest). Both are null where a row with a target lacks a probability,
          or has one outside [0, 1].

        For numbers: ``n_rows``, ``n_target_missing``, ``n_unpredicted`` as above, then over the
        rows that have both target and prediction (null and NaN are missing) ``rmse``, ``mae`` (both
        in the target's unit, lower is better) and ``r2``, 1 minus squared error over squared
        deviation from the segment's own mean. All in Float64. The deviation comes from a running
        variance, not from sums of squares: a mean 1e9 times the deviation leaves ``r2`` right to
        1e-7, a mean 1e6 times it to 1e-10.

    Raises
    ------
    MissingColumnError
        A named column is absent.
    ColumnRoleError
        A column is named in two roles, or a segment has the name of a result column.
    DtypeError
        Target and prediction cannot be compared, or a column's dtype cannot serve its role.
    OptionError
        An option is outside what is allowed, or ``target`` is needed and absent.
    WeightError
        A weight is missing, negative, NaN or infinite. A lazy plan cannot raise this class; it
        fails with ``polars.exceptions.InvalidOperationError`` and the same text when collected.

    Notes
    -----
    The memory taken grows with the distinct (segment, actual, predicted) triples for classes, with
    the distinct probabilities too for ``auc``, and with the distinct (segment, weight) pairs for
    numbers.

    References
    ----------
    .. [1] E. B. Wilson (1927), "Probable inference, the law of succession, and statistical
       inference", Journal of the American Statistical Association 22, 209-212.
    .. [2] J. Cohen (1960), "A coefficient of agreement for nominal scales", Educational and
       Psychological Measurement 20, 37-46.
    .. [3] J. A. Hanley and B. J. McNeil (1982), "The meaning and use of the area under a receiver
       operating characteristic (ROC) curve", Radiology 143, 29-36.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.evaluation import evaluate
    >>> df = pl.DataFrame(
    ...     {
    ...         "month": [1, 1, 1, 1, 2, 2],
    ...         "play": ["yes", "no", "yes", "yes", "no", "yes"],
    ...         "guess": ["yes", "no", "no", "yes", "yes", "yes"],
    ...     }
    ... )
    >>> evaluate(df, "guess", "play", by="month").select(
    ...     "month", "n_rows", "n_correct", "accuracy", "baseline"
    ... )
    shape: (2, 5)
    ┌───────┬────────┬───────────┬──────────┬──────────┐
    │ month ┆ n_rows ┆ n_correct ┆ accuracy ┆ baseline │
    │ ---   ┆ ---    ┆ ---       ┆ ---      ┆ ---      │
    │ i64   ┆ i64    ┆ i64       ┆ f64      ┆ f64      │
    ╞═══════╪════════╪═══════════╪══════════╪══════════╡
    │ 1     ┆ 4      ┆ 3         ┆ 0.75     ┆ 0.75     │
    │ 2     ┆ 2      ┆ 1         ┆ 0.5      ┆ 0.5      │
    └───────┴────────┴───────────┴──────────┴──────────┘

    Numbers:

    >>> evaluate(pl.DataFrame({"y": [1.0, 2.0, 3.0], "guess": [1.0, 2.0, 4.0]}), "guess", "y")
    shape: (1, 6)
    ┌────────┬──────────────────┬───────────────┬─────────┬──────────┬─────┐
    │ n_rows ┆ n_target_missing ┆ n_unpredicted ┆ rmse    ┆ mae      ┆ r2  │
    │ ---    ┆ ---              ┆ ---           ┆ ---     ┆ ---      ┆ --- │
    │ i64    ┆ i64              ┆ i64           ┆ f64     ┆ f64      ┆ f64 │
    ╞════════╪══════════════════╪═══════════════╪═════════╪══════════╪═════╡
    │ 3      ┆ 0                ┆ 0             ┆ 0.57735 ┆ 0.333333 ┆ 0.5 │
    └────────┴──────────────────┴───────────────┴─────────┴──────────┴─────┘
    """
    question = _ask(frame, model, target, by, weights)
    if _task(question, task) == "numbers":
        if proba is not None:
            raise OptionError.from_range("proba", proba, "absent where the target is a number")
        return _answer(frame, question, _number_figures(question))
    labels = _label_dtype(question)
    probabilities = _probabilities(model, question, labels, proba)
    cells = _cells(question, probabilities)
    if probabilities:
        cells = _with_probability_sums(cells, question, labels, probabilities)
    figures = _class_figures(_class_counts(cells, question, labels), question, probabilities)
    return _answer(frame, question, _with_rates(figures, confidence))


def class_report(
    frame: FrameT,
    model: Model,
    target: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    weights: str | None = None,
) -> FrameT:
    """Give precision, recall and F1 of each class, for the whole frame or per segment.

    Parameters
    ----------
    frame, model, target, by, weights
        As in `evaluate`.

    Returns
    -------
    DataFrame or LazyFrame
        As ``frame``. One row per class that occurs or is predicted in a segment, ordered by
        segment, then class order. The segment columns, then ``class`` (the target's dtype; String
        for a Categorical or where target and prediction differ in their kind of text, Int128 where
        they differ in their kind of integer), ``n_actual``, ``n_predicted``, ``n_correct`` Int64
        (Float64 with float weights), ``precision`` (null for a class never predicted), ``recall``
        (null for one that does not occur), ``f1`` Float64 in [0, 1]. Rows without a target are left
        out; a null prediction is of no class.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError, WeightError
        As in `evaluate`; also if target or prediction is a float.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.evaluation import class_report
    >>> df = pl.DataFrame({"y": ["a", "a", "b", "b"], "guess": ["a", "b", "b", "b"]})
    >>> class_report(df, "guess", "y")
    shape: (2, 7)
    ┌───────┬──────────┬─────────────┬───────────┬───────────┬────────┬──────────┐
    │ class ┆ n_actual ┆ n_predicted ┆ n_correct ┆ precision ┆ recall ┆ f1       │
    │ ---   ┆ ---      ┆ ---         ┆ ---       ┆ ---       ┆ ---    ┆ ---      │
    │ str   ┆ i64      ┆ i64         ┆ i64       ┆ f64       ┆ f64    ┆ f64      │
    ╞═══════╪══════════╪═════════════╪═══════════╪═══════════╪════════╪══════════╡
    │ a     ┆ 2        ┆ 1           ┆ 1         ┆ 1.0       ┆ 0.5    ┆ 0.666667 │
    │ b     ┆ 2        ┆ 3           ┆ 2         ┆ 0.666667  ┆ 1.0    ┆ 0.8      │
    └───────┴──────────┴─────────────┴───────────┴───────────┴────────┴──────────┘
    """
    question = _ask(frame, model, target, by, weights)
    labels = _label_dtype(question)
    counts = (
        _class_counts(_cells(question), question, labels)
        .filter(pl.col("class").is_not_null(), pl.col("n_actual") + pl.col("n_predicted") > 0)
        .select(
            *question.keys,
            "class",
            "n_actual",
            "n_predicted",
            "n_correct",
            _ratio(pl.col("n_correct"), pl.col("n_predicted")).alias("precision"),
            _ratio(pl.col("n_correct"), pl.col("n_actual")).alias("recall"),
            _f1().alias("f1"),
        )
    )
    return _answer(frame, question, counts, "class")


def confusion(
    frame: FrameT,
    model: Model,
    target: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    weights: str | None = None,
) -> FrameT:
    """Count each pair of actual and predicted class, for the whole frame or per segment.

    Parameters
    ----------
    frame, model, target, by, weights
        As in `evaluate`.

    Returns
    -------
    DataFrame or LazyFrame
        As ``frame``. One row per pair that occurs in a segment, ordered by segment, actual and
        predicted class, a null prediction last. The segment columns, then ``actual`` (the target's
        dtype), ``predicted`` (the prediction's), ``n`` Int64 (Float64 with float weights) and
        ``share`` Float64, of the segment's rows that have a target. Rows without one are left out.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError, WeightError
        As in `evaluate`; also if target or prediction is a float.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.evaluation import confusion
    >>> df = pl.DataFrame({"y": ["a", "a", "b", "b"], "guess": ["a", "b", "b", "b"]})
    >>> confusion(df, "guess", "y")
    shape: (3, 4)
    ┌────────┬───────────┬─────┬───────┐
    │ actual ┆ predicted ┆ n   ┆ share │
    │ ---    ┆ ---       ┆ --- ┆ ---   │
    │ str    ┆ str       ┆ i64 ┆ f64   │
    ╞════════╪═══════════╪═════╪═══════╡
    │ a      ┆ a         ┆ 1   ┆ 0.25  │
    │ a      ┆ b         ┆ 1   ┆ 0.25  │
    │ b      ┆ b         ┆ 2   ┆ 0.5   │
    └────────┴───────────┴─────┴───────┘
    """
    question = _ask(frame, model, target, by, weights)
    _label_dtype(question)
    n = pl.col("n")
    pairs = (
        _cells(question)
        .filter(pl.col("actual").is_not_null())
        .select(
            *question.keys,
            "actual",
            "predicted",
            "n",
            (n / question.within(n.sum())).alias("share"),
        )
    )
    return _answer(frame, question, pairs, "actual", "predicted")


def with_p_value(table: pl.DataFrame) -> pl.DataFrame:
    """Add to a class table of `evaluate` the p-value of its accuracy against its baseline.

    The exact one-sided binomial test: the chance of ``n_correct`` or more right among ``n_rows``,
    if each were right with probability ``baseline``. It takes the baseline for known, as the model
    evaluation of R's package OneR does. scipy computes it, which a lazy plan cannot call: a
    LazyFrame of figures is collected first.

    Parameters
    ----------
    table
        What `evaluate` gave for classes: one row per segment.

    Returns
    -------
    DataFrame
        The table and ``p_value`` Float64 in [0, 1]; null where ``n_rows`` is 0.

    Raises
    ------
    MissingPackageError
        scipy is not installed.
    OneRError
        The counts are not whole numbers, as with fractional weights.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26, 404-413.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.evaluation import evaluate, with_p_value
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1, 1], "guess": [0, 0, 0, 1, 1, 0]})
    >>> with_p_value(evaluate(df, "guess", "y")).select("accuracy", "baseline", "p_value")
    shape: (1, 3)
    ┌──────────┬──────────┬──────────┐
    │ accuracy ┆ baseline ┆ p_value  │
    │ ---      ┆ ---      ┆ ---      │
    │ f64      ┆ f64      ┆ f64      │
    ╞══════════╪══════════╪══════════╡
    │ 0.833333 ┆ 0.5      ┆ 0.109375 │
    └──────────┴──────────┴──────────┘
    """
    if not isinstance(table, pl.DataFrame):
        msg = f"expected a table of evaluate as DataFrame, not {type(table).__name__}: collect it"
        raise TypeError(msg)
    for name in ("n_correct", "n_rows", "baseline"):
        require_column(table.schema, name)
    try:
        from scipy.stats import binom
    except ImportError as error:
        raise MissingPackageError.from_extra("scipy", "stats", "with_p_value") from error
    counts = table.select(pl.col("n_correct", "n_rows").cast(pl.Float64))
    if not counts.equals(counts.select(pl.all().round())):
        msg = "no binomial p-value: fractional weights leave counts that are not whole numbers"
        raise OneRError(msg)
    tail = binom.sf(
        counts["n_correct"].to_numpy() - 1,
        counts["n_rows"].to_numpy(),
        table["baseline"].to_numpy(),
    )
    p_value = pl.Series(tail, dtype=pl.Float64)
    return table.with_columns(pl.when(pl.col("n_rows") > 0).then(p_value).alias("p_value"))


@dataclass(frozen=True)
class _Question:
    """Who is compared with whom, checked against the schema.

    ``actual`` and ``predicted`` are the dtypes of the target and of the prediction.
    """

    frame: pl.LazyFrame
    target: str
    prediction: pl.Expr
    actual: pl.DataType
    predicted: pl.DataType
    segments: tuple[str, ...]
    weights: str | None

    @property
    def keys(self) -> tuple[str, ...]:
        """Internal names of the segment columns, which no name of the user's can meet."""
        return tuple(f"segment_{i}" for i in range(len(self.segments)))

    def rows(self, **more: pl.Expr) -> pl.LazyFrame:
        """Give the rows that are present, under internal names, with further columns at wish."""
        schema = self.frame.collect_schema()
        segments = {
            key: canonical(column(name), schema[name]) if schema[name].is_float() else column(name)
            for key, name in zip(self.keys, self.segments, strict=True)
        }
        rows = self.frame.select(
            actual=column(self.target),
            predicted=self.prediction,
            weight=row_weight(schema, self.weights),
            **segments,
            **more,
        )
        # A missing weight is no absent row but a bad one, which the guard must see.
        return rows if self.weights is None else rows.filter(pl.col("weight").ne_missing(0))

    def bad_weight(self) -> pl.Expr:
        """Tell which of the rows have a weight that is missing, negative, NaN or infinite."""
        weight = pl.col("weight")
        return weight.is_null() | ~(weight.is_finite() & (weight >= 0))

    def within(self, value: pl.Expr) -> pl.Expr:
        """Take a value over the segment, or over all rows if there are none."""
        return value.over(self.keys) if self.keys else value

    def per_segment(self, table: pl.LazyFrame, *figures: pl.Expr) -> pl.LazyFrame:
        """Aggregate a table to one row per segment, or to one row."""
        return table.group_by(self.keys).agg(figures) if self.keys else table.select(figures)


def _ask(
    frame: pl.DataFrame | pl.LazyFrame,
    model: Model,
    target: str | None,
    by: str | Sequence[str] | None,
    weights: str | None,
) -> _Question:
    lazy = as_lazy(frame)
    schema = lazy.collect_schema()
    target = _target(model, target)
    actual = require_column(schema, target)
    prediction = _prediction(model, target, schema)
    predicted = lazy.select(prediction).collect_schema()
    if len(predicted) != 1:
        raise OptionError.from_range("model", model, "an expression that gives one column")
    question = _Question(
        lazy,
        target,
        prediction,
        actual,
        predicted.dtypes()[0],
        _segments(schema, by),
        _weights(schema, weights),
    )
    if isinstance(frame, pl.DataFrame) and weights is not None:
        n_bad = question.rows().select(question.bad_weight().sum()).collect().item()
        if n_bad:
            raise WeightError.from_column(weights, n_bad)
    return question


def _target(model: Model, target: str | None) -> str:
    target = getattr(model, "target", None) if target is None else target
    # An expression has no attribute of that name, and a column's name none either.
    if not isinstance(target, str):
        raise OptionError.from_range("target", target, "named, as a prediction does not tell it")
    return target


def _prediction(model: Model, target: str, schema: pl.Schema) -> pl.Expr:
    if isinstance(model, pl.Expr):
        return model
    if isinstance(model, str):
        if model == target:
            raise ColumnRoleError.role_clash(target, "target", "prediction")
        require_column(schema, model)
        return column(model)
    if not callable(getattr(model, "predict", None)):
        raise OptionError.from_range("model", model, "a model, a column name or an expression")
    prediction = model.predict()
    for name in prediction.meta.root_names():
        require_column(schema, name)
    return prediction


def _segments(schema: pl.Schema, by: str | Sequence[str] | None) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by or ())
    for i, name in enumerate(names):
        dtype = require_column(schema, name)
        if name in names[:i]:
            raise ColumnRoleError.named_twice(name, "by")
        if isinstance(dtype, UNSUPPORTED):
            msg = f"segment column {name!r} has dtype {dtype}, whose values cannot be ordered"
            raise DtypeError(msg)
    return names


def _weights(schema: pl.Schema, weights: str | None) -> str | None:
    if weights is not None:
        dtype = require_column(schema, weights)
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean)):
            msg = f"weights column {weights!r} has dtype {dtype}, which is not a number"
            raise DtypeError(msg)
    return weights


def _task(question: _Question, task: Task | None) -> Task:
    """Settle whether values are classes or quantities, and refuse quantities that are none."""
    if task is None:
        fine = [t.is_float() or t.is_decimal() for t in (question.actual, question.predicted)]
        task = "numbers" if any(fine) else "classes"
    check_choice("task", task, TASKS)
    if task == "numbers":
        for dtype in (question.actual, question.predicted):
            if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean)):
                raise _mismatch(question, "numbers on both sides")
    return task


def _label_dtype(question: _Question) -> pl.DataType:
    """Give the dtype in which classes on both sides can be compared, or refuse."""
    actual, predicted = question.actual, question.predicted
    text = (pl.String, pl.Categorical, pl.Enum)
    if actual.is_float() or predicted.is_float():
        raise _mismatch(question, "classes, which floats are not (task='numbers' measures them)")
    if actual == predicted and not isinstance(actual, (pl.Categorical, *UNSUPPORTED)):
        return actual
    if isinstance(actual, text) and isinstance(predicted, text):
        return pl.String()
    if actual.is_integer() and predicted.is_integer():
        return pl.Int128()
    raise _mismatch(question, "classes of one dtype on both sides")


def _mismatch(question: _Question, wanted: str) -> DtypeError:
    return DtypeError(
        f"target {question.target!r} has dtype {question.actual} and its prediction "
        f"{question.predicted}; evaluation needs {wanted}"
    )


def _probabilities(
    model: Model, question: _Question, labels: pl.DataType, proba: Probabilities | None
) -> dict[Any, pl.Expr]:
    """Settle which expression is the probability of which class."""
    if proba is None:
        own: Callable[[], Mapping[Any, pl.Expr]] | None = getattr(model, "predict_proba", None)
        proba = own() if own is not None and not isinstance(model, pl.Expr) else {}
    elif isinstance(proba, (str, pl.Expr)):
        proba = {_second_class(question): proba}
    elif not proba:
        raise OptionError.from_range("proba", proba, "a mapping from class to column, not empty")
    schema = question.frame.collect_schema()
    found: dict[Any, pl.Expr] = {}
    for label, source in proba.items():
        try:
            pl.Series([label], dtype=labels, strict=True)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            wanted = f"a mapping from classes of dtype {labels}"
            raise OptionError.from_range("proba", label, wanted) from None
        if isinstance(source, str):
            require_column(schema, source)
        given = column(source) if isinstance(source, str) else source
        found[label] = given.cast(pl.Float64)
    return found


def _second_class(question: _Question) -> object:
    dtype = question.actual
    if isinstance(dtype, pl.Boolean):
        return True
    if isinstance(dtype, pl.Enum) and len(dtype.categories) == 2:
        return dtype.categories[1]
    msg = (
        f"proba does not say whose probability it is: the target {question.target!r} of dtype "
        f"{dtype} has no fixed second class; give a mapping such as {{class: column}}"
    )
    raise OptionError(msg)


def _cells(question: _Question, probabilities: Mapping[Any, pl.Expr] | None = None) -> pl.LazyFrame:
    """Count rows per (segment, actual, predicted) and probabilities: the one pass over the data."""
    named = {f"probability_{i}": p for i, p in enumerate((probabilities or {}).values())}
    rows = question.rows(**named)
    cells = rows.group_by(*question.keys, "actual", "predicted", *named)
    if question.weights is None:
        return cells.agg(pl.len().cast(pl.Int64).alias("n"))
    counted = cells.agg(pl.col("weight").sum().alias("n"), _n_bad(question))
    return counted.with_columns(_guarded(pl.col("n"), question.weights)).drop("n_bad")


def _n_bad(question: _Question) -> pl.Expr:
    return question.bad_weight().cast(pl.Int64).sum().alias("n_bad")


def _guarded(value: pl.Expr, weights: str) -> pl.Expr:
    """Let a plan fail with our words where weights are bad.

    A plan holds no Python that could raise, but it can cast: the message is no number, so that
    casting it fails and shows it.
    """
    message = WeightError.from_column(weights, 1).args[0].replace(" has 1 ", " has ")
    failure = pl.when(pl.col("n_bad") > 0).then(pl.lit(message)).cast(pl.Int64)
    return value + failure.fill_null(0)


def _with_probability_sums(
    cells: pl.LazyFrame,
    question: _Question,
    labels: pl.DataType,
    probabilities: Mapping[Any, pl.Expr],
) -> pl.LazyFrame:
    """Replace the probabilities by sums over them, and so come back to cells without them.

    Adds ``loss``, the sum of -ln p; ``n_unscored``, rows whose probabilities are unusable; and per
    class ``wins_i``: over its rows, the number of rows outside it with a lower probability of it,
    those with the same one counting half (the Mann-Whitney statistic).
    """
    n, actual = pl.col("n"), pl.col("actual").cast(labels)
    names = [f"probability_{i}" for i in range(len(probabilities))]
    hits = [actual == pl.lit(label, labels) for label in probabilities]
    # Outside a single named class lies the rest of its probability; with several, none.
    given = 1 - pl.col(names[0]) if len(names) == 1 else pl.lit(0.0)
    for name, hit in zip(names, hits, strict=True):
        given = pl.when(hit).then(pl.col(name)).otherwise(given)
    # NaN is not between 0 and 1, null is neither.
    unusable = reduce(or_, (~pl.col(p).is_between(0, 1).fill_null(value=False) for p in names))
    zero = pl.lit(0)
    cells = cells.with_columns(
        loss=pl.when(actual.is_not_null()).then(-given.log() * n),
        n_unscored=pl.when(actual.is_not_null() & unusable).then(n).otherwise(zero),
    )
    for i, (name, hit) in enumerate(zip(names, hits, strict=True)):
        outside = pl.when(~hit).then(n).otherwise(zero)
        tied = (*question.keys, name)
        cells = (
            cells.sort(name)
            .with_columns(outside=outside)
            .with_columns(up_to=question.within(pl.col("outside").cum_sum()))
            .with_columns(
                outside=pl.col("outside").sum().over(tied), up_to=pl.col("up_to").max().over(tied)
            )
            .with_columns(
                (pl.when(hit).then(n).otherwise(zero) * (pl.col("up_to") - pl.col("outside") / 2))
                .cast(pl.Float64)
                .alias(f"wins_{i}")
            )
        )
    sums = pl.col("n", "loss", "n_unscored", *(f"wins_{i}" for i in range(len(names)))).sum()
    return cells.group_by(*question.keys, "actual", "predicted").agg(sums)


def _class_counts(cells: pl.LazyFrame, question: _Question, labels: pl.DataType) -> pl.LazyFrame:
    """Turn cells into counts per (segment, class), in no order.

    The null class holds the rows without a target and the null predictions. Each cell counts once
    for its actual and once for its predicted class; unpivoting keeps that one chain, where a join
    of two tables would read the source twice.
    """
    actual, n = pl.col("actual"), pl.col("n")
    known, of_actual = actual.is_not_null(), pl.col("role") == "actual"
    cells = cells.with_columns(pl.col("actual", "predicted").cast(labels)).with_columns(
        n_scored=pl.when(known).then(n).otherwise(0),
        n_target_missing=pl.when(known).then(0).otherwise(n),
        n_correct=pl.when(actual == pl.col("predicted")).then(n).otherwise(0),
    )
    sums = [
        c for c in cells.collect_schema() if c not in (*question.keys, "actual", "predicted", "n")
    ]
    return (
        cells.unpivot(
            on=["actual", "predicted"],
            index=[*question.keys, *sums],
            variable_name="role",
            value_name="class",
        )
        .group_by(*question.keys, "class")
        .agg(
            pl.when(of_actual).then(pl.col("n_scored")).sum().alias("n_actual"),
            pl.when(~of_actual).then(pl.col("n_scored")).sum().alias("n_predicted"),
            *(pl.when(of_actual).then(pl.col(c)).sum().alias(c) for c in sums if c != "n_scored"),
        )
    )


def _class_order(name: str, dtype: pl.DataType) -> list[pl.Expr]:
    """Sort by class, also where an Enum target was compared as text; labels it lacks come last."""
    if not isinstance(dtype, pl.Enum):
        return [pl.col(name)]
    position = pl.col(name).cast(pl.String).cast(dtype, strict=False).to_physical()
    return [position.fill_null(len(dtype.categories)), pl.col(name)]


def _class_figures(
    classes: pl.LazyFrame, question: _Question, probabilities: Mapping[Any, pl.Expr]
) -> pl.LazyFrame:
    """Sum counts per class up to the counts and means of a segment."""
    n_actual, n_predicted = pl.col("n_actual"), pl.col("n_predicted")
    n_rows, a_class = n_actual.sum(), pl.col("class").is_not_null()
    figures = [
        n_rows.alias("n_rows"),
        pl.col("n_target_missing").sum(),
        pl.when(~a_class).then(n_predicted).sum().alias("n_unpredicted"),
        pl.col("n_correct").sum(),
        n_actual.max().alias("n_commonest"),
        (n_actual.cast(pl.Float64) * n_predicted.cast(pl.Float64)).sum().alias("by_chance"),
        _mean(_ratio(pl.col("n_correct"), n_actual)).alias("balanced_accuracy"),
        _mean(pl.when(a_class).then(_f1())).alias("macro_f1"),
    ]
    if probabilities:
        labels = classes.collect_schema()["class"]
        scored = pl.col("n_unscored").sum() == 0
        log_loss = _ratio(pl.col("loss").sum(), n_rows)
        areas = []
        for i, label in enumerate(probabilities):
            inside = pl.when(pl.col("class") == pl.lit(label, labels)).then(n_actual).sum()
            pairs = inside.cast(pl.Float64) * (n_rows - inside)
            areas.append(_ratio(pl.col(f"wins_{i}").sum(), pairs))
        figures += [
            pl.when(scored).then(log_loss).alias("log_loss"),
            pl.when(scored).then(pl.mean_horizontal(areas)).alias("auc"),
        ]
    return question.per_segment(classes, *figures)


def _with_rates(figures: pl.LazyFrame, confidence: float) -> pl.LazyFrame:
    """Add what follows from a segment's counts, and put the columns in order."""
    n_rows, n_correct, n_commonest = pl.col("n_rows"), pl.col("n_correct"), pl.col("n_commonest")
    lower, upper = wilson_interval(n_correct, n_rows, confidence)
    n_errors, baseline_errors = n_rows - n_correct, n_rows - n_commonest
    square, by_chance = n_rows.cast(pl.Float64) ** 2, pl.col("by_chance")
    rates = {
        "accuracy": _ratio(n_correct, n_rows),
        "accuracy_lower": lower,
        "accuracy_upper": upper,
        "baseline": _ratio(n_commonest, n_rows),
        "error_rate_reduction": _ratio(baseline_errors - n_errors, baseline_errors),
        "balanced_accuracy": pl.col("balanced_accuracy"),
        "kappa": _ratio(n_correct * n_rows.cast(pl.Float64) - by_chance, square - by_chance),
        "macro_f1": pl.col("macro_f1"),
    }
    return figures.with_columns(**rates).select(
        pl.exclude("n_commonest", "by_chance", *rates, "log_loss", "auc"),
        *rates,
        # Present only with probabilities; a pattern may match nothing.
        pl.col("^(log_loss|auc)$"),
    )


def wilson_interval(
    n_correct: pl.Expr, n_rows: pl.Expr, confidence: float
) -> tuple[pl.Expr, pl.Expr]:
    """Give the ends of Wilson's score interval for a share, as Float64 expressions.

    Parameters
    ----------
    n_correct, n_rows
        Counts; the interval is null where there are no rows.
    confidence
        Coverage, between 0 and 1.

    Raises
    ------
    OptionError
        ``confidence`` is not between 0 and 1.

    References
    ----------
    E. B. Wilson (1927), "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22, 209-212.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.evaluation import wilson_interval
    >>> lower, upper = wilson_interval(pl.lit(8), pl.lit(10), 0.95)
    >>> pl.select(lower.round(4).alias("lower"), upper.round(4).alias("upper")).row(0)
    (0.4902, 0.9433)
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        raise OptionError.from_range("confidence", confidence, "a number between 0 and 1")
    if not 0 < confidence < 1:
        raise OptionError.from_range("confidence", confidence, "between 0 and 1, both excluded")
    square = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    share, n = _ratio(n_correct, n_rows), n_rows.cast(pl.Float64)
    middle = share + square / (2 * n)
    reach = (square * (share * (1 - share) / n + square / (4 * n * n))).sqrt()
    scale = 1 + square / n
    # Rounding may step beyond the ends by an ulp.
    return ((middle - reach) / scale).clip(0, 1), ((middle + reach) / scale).clip(0, 1)


def _number_figures(question: _Question) -> pl.LazyFrame:
    """Measure numeric predictions.

    Rows are grouped by weight too: within a group all weights are equal, so that Polars' own
    variance, which does not cancel, is the weighted one; groups are then put together about their
    common mean (Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", The
    American Statistician 37, 242-247).
    """
    weight = pl.col("weight")
    known, scored = pl.col("actual").is_not_null(), pl.col("error").is_not_null()
    groups = (
        question.rows()
        .with_columns(
            pl.col(name).cast(pl.Float64).fill_nan(None).alias(name)
            for name in ("actual", "predicted")
        )
        .with_columns(error=pl.col("actual") - pl.col("predicted"))
        .group_by(*question.keys, "weight")
        .agg(
            known.cast(pl.Int64).sum().alias("n_rows"),
            (~known).cast(pl.Int64).sum().alias("n_target_missing"),
            (known & ~scored).cast(pl.Int64).sum().alias("n_unpredicted"),
            scored.cast(pl.Int64).sum().alias("n_scored"),
            (pl.col("error") ** 2).mean().alias("squared"),
            pl.col("error").abs().mean().alias("absolute"),
            pl.when(scored).then(pl.col("actual")).mean().alias("mean"),
            pl.when(scored).then(pl.col("actual")).var(ddof=0).alias("variance"),
            _n_bad(question),
        )
    )
    if question.weights is not None:
        groups = groups.with_columns(_guarded(weight, question.weights))
    counts = pl.col("n_rows", "n_target_missing", "n_unpredicted", "n_scored")
    groups = groups.with_columns(counts * weight)
    n = pl.col("n_scored")
    total = question.within(n.sum())
    center = question.within((n * pl.col("mean")).sum()) / total
    deviation = pl.col("variance") + (pl.col("mean") - center) ** 2
    summed = question.per_segment(
        groups.with_columns(deviation=deviation),
        pl.col("n_rows", "n_target_missing", "n_unpredicted", "n_scored").sum(),
        *((n * pl.col(name)).sum().alias(name) for name in ("squared", "absolute", "deviation")),
    )
    return summed.select(
        *question.keys,
        "n_rows",
        "n_target_missing",
        "n_unpredicted",
        _ratio(pl.col("squared"), n).sqrt().alias("rmse"),
        _ratio(pl.col("absolute"), n).alias("mae"),
        (1 - _ratio(pl.col("squared"), pl.col("deviation"))).alias("r2"),
    )


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Divide; null where there is nothing to divide by."""
    return pl.when(whole > 0).then(part / whole)


def _mean(rates: pl.Expr) -> pl.Expr:
    """Average rates so that the last bit does not depend on the order in which groups came.

    Polars drops a sort below a plain sum or mean, but not below a running one.
    """
    return rates.sort().cum_sum().max() / rates.count()


def _f1() -> pl.Expr:
    return _ratio(2 * pl.col("n_correct"), pl.col("n_actual") + pl.col("n_predicted"))


def _answer(frame: FrameT, question: _Question, table: pl.LazyFrame, *order: str) -> FrameT:
    """Give the segment columns their names back, in order, as the kind of frame that came."""
    results = [name for name in table.collect_schema() if name not in question.keys]
    for name in question.segments:
        if name in results:
            msg = f"segment column {name!r} has the name of a result column; rename it"
            raise ColumnRoleError(msg)
    if question.keys or order:
        ranked = [e for name in order for e in _class_order(name, question.actual)]
        last = [False] * len(question.keys) + [True] * len(ranked)
        table = table.sort(*question.keys, *ranked, nulls_last=last)
    names = dict(zip(question.keys, question.segments, strict=True))
    return like(table.select(*(pl.col(k).alias(v) for k, v in names.items()), *results), frame)
