"""Impurity of a column and its best split as expressions, for `select`, `group_by().agg` and `over`.

An expression is built without a schema, does not know the classes, and can bind no intermediate
result to a name. So the rows of a group are made one list, and each step is one ``list.eval`` over it:
a small frame whose columns are fields of a struct, worked out once and read by the next step. The
formulas are those of `criteria`.

A dtype that a criterion cannot read is found when the query runs: Polars then raises an
``InvalidOperationError`` that quotes our message.
"""

from __future__ import annotations

import polars as pl
import polars.selectors as cs
from polars.selectors import Selector

from polars_oner.criteria import (
    TIE,
    ClassCriterion,
    Criterion,
    NumberCriterion,
    criterion_for,
)
from polars_oner.errors import OneRError, check_positive, quoted
from polars_oner.frame import column
from polars_oner.typing import CLASS_CRITERIA, NUMBER_CRITERIA, CriterionName

_CLASSES = ~(
    cs.float() | cs.decimal() | cs.nested() | cs.binary() | cs.by_dtype(pl.Null, pl.Object)
)
_NUMBERS = cs.numeric() | cs.boolean()
_ORDERED = cs.numeric() | cs.temporal() | cs.enum()


def gini(y: pl.Expr | str, *, by: pl.Expr | str | None = None) -> pl.Expr:
    """Give the Gini impurity of a column of classes.

    Parameters
    ----------
    y
        The classes, as an expression or a literal column name. Missing ones (null) are left out. A
        selector gives one result for each of its columns.
    by
        A column, by expression or literal name, that divides the rows: the result is then the mean
        of the parts' impurities, weighted by their rows. That is the score of a multi-way split.
        Rows with a missing value of ``by`` (null or NaN) are one part together.

    Returns
    -------
    Expr
        One Float64 per group, ``1 - sum(p**2)`` over the class shares p: 0 is pure, below 1. Null if
        no row has a class. Named as ``y``.

    Raises
    ------
    OneRError
        ``by`` is given, and it or ``y`` may stand for several columns.

    See Also
    --------
    entropy, error_rate, std_score

    References
    ----------
    Breiman, L., Friedman, J., Olshen, R., Stone, C. (1984). *Classification and Regression Trees*,
    chapter 4.

    Examples
    --------
    Socks in two baskets:

    >>> import polars as pl
    >>> from polars_oner.impurity import gini
    >>> socks = pl.DataFrame({"basket": list("AAABBBB"), "color": list("rbrbrbb")})
    >>> socks.group_by("basket").agg(gini("color")).sort("basket")
    shape: (2, 2)
    ┌────────┬──────────┐
    │ basket ┆ color    │
    │ ---    ┆ ---      │
    │ str    ┆ f64      │
    ╞════════╪══════════╡
    │ A      ┆ 0.444444 │
    │ B      ┆ 0.375    │
    └────────┴──────────┘
    >>> round(socks.select(gini("color", by="basket")).item() * 42, 12)
    17.0
    """
    return _impurity(y, "gini", by)


def entropy(y: pl.Expr | str, *, by: pl.Expr | str | None = None) -> pl.Expr:
    """Give the entropy of a column of classes, in bits.

    Parameters
    ----------
    y, by
        As for `gini`.

    Returns
    -------
    Expr
        One Float64 per group, ``-sum(p log2 p)`` over the class shares p: 0 is pure. Null if no row
        has a class. Named as ``y``.

    Raises
    ------
    OneRError
        ``by`` is given, and it or ``y`` may stand for several columns.

    References
    ----------
    Quinlan, J. R. (1986). "Induction of decision trees", *Machine Learning* 1.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.impurity import entropy
    >>> pl.DataFrame({"y": ["a", "b", "b", "a", None]}).select(entropy("y")).item()
    1.0
    """
    return _impurity(y, "entropy", by)


def error_rate(y: pl.Expr | str, *, by: pl.Expr | str | None = None) -> pl.Expr:
    """Give the share of rows outside the commonest class.

    Parameters
    ----------
    y, by
        As for `gini`. With ``by`` this is the training error of 1R on a nominal feature.

    Returns
    -------
    Expr
        One Float64 per group in [0, 1): 0 is pure. Null if no row has a class. Named as ``y``.

    Raises
    ------
    OneRError
        ``by`` is given, and it or ``y`` may stand for several columns.

    References
    ----------
    Holte, R. (1993). "Very simple classification rules perform well on most commonly used
    datasets", *Machine Learning* 11.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.impurity import error_rate
    >>> pl.DataFrame({"y": [1, 2, 2, 2]}).select(error_rate("y")).item()
    0.25
    """
    return _impurity(y, "error", by)


def std_score(y: pl.Expr | str, *, by: pl.Expr | str | None = None) -> pl.Expr:
    """Give the sample standard deviation of a numeric or Boolean column (ddof 1).

    Parameters
    ----------
    y, by
        As for `gini`, for numbers; missing is null or NaN.

    Returns
    -------
    Expr
        One Float64 per group, at least 0. A part of one row scores 0; null if no row has a value.
        Named as ``y``. A large mean costs no digits: deviations are taken from it before any square.

    Raises
    ------
    OneRError
        ``by`` is given, and it or ``y`` may stand for several columns.

    References
    ----------
    Breiman, L., Friedman, J., Olshen, R., Stone, C. (1984). *Classification and Regression Trees*,
    chapter 8.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.impurity import std_score
    >>> frame = pl.DataFrame({"y": [0, 2, 7, 9], "g": ["a", "a", "b", "b"]})
    >>> frame.select(std_score("y", by="g").round(6)).item()
    1.414214
    """
    return _impurity(y, "std", by)


def best_split(
    x: pl.Expr | str,
    y: pl.Expr | str,
    *,
    criterion: CriterionName = "gini",
    min_leaf: int = 1,
) -> pl.Expr:
    """Find the test ``x <= threshold`` that leaves the target least mixed.

    The same split as ``best_split`` of a frame with ``missing="drop"``: rows without ``x`` or without
    ``y`` (null, or NaN) are left out.

    Parameters
    ----------
    x
        An ordered feature (numbers, times, Enum), as an expression or a literal column name.
    y
        The target, likewise: classes, or numbers for the criteria ``"std"`` and ``"variance"``.
    criterion
        How mixed a side is: ``"gini"``, ``"entropy"``, ``"error"``, ``"std"`` or ``"variance"``.
    min_leaf
        The fewest rows on a side.

    Returns
    -------
    Expr
        One struct per group, named as ``x``: ``threshold``, the largest value of the left side, in
        the dtype of ``x``; ``score`` Float64, the row-weighted mean over both sides, lower is better;
        ``n_left``, ``n_right`` Int64. All are null if no test leaves ``min_leaf`` rows on each side.
        Among tests that tie, the smallest threshold.

    Raises
    ------
    OptionError
        The criterion is unknown, or ``min_leaf`` is no whole number of at least 1.
    OneRError
        ``x`` or ``y`` may stand for several columns.

    References
    ----------
    Breiman, L., Friedman, J., Olshen, R., Stone, C. (1984). *Classification and Regression Trees*.

    Examples
    --------
    One stump per segment in one query:

    >>> import polars as pl
    >>> from polars_oner.impurity import best_split
    >>> frame = pl.DataFrame(
    ...     {
    ...         "store": ["A", "A", "A", "B", "B", "B"],
    ...         "price": [1.0, 2.0, 3.0, 5.0, 7.0, 9.0],
    ...         "sold": ["yes", "yes", "no", "yes", "no", "no"],
    ...     }
    ... )
    >>> stumps = frame.group_by("store").agg(best_split("price", "sold"))
    >>> stumps.unnest("price").sort("store")
    shape: (2, 5)
    ┌───────┬───────────┬───────┬────────┬─────────┐
    │ store ┆ threshold ┆ score ┆ n_left ┆ n_right │
    │ ---   ┆ ---       ┆ ---   ┆ ---    ┆ ---     │
    │ str   ┆ f64       ┆ f64   ┆ i64    ┆ i64     │
    ╞═══════╪═══════════╪═══════╪════════╪═════════╡
    │ A     ┆ 2.0       ┆ 0.0   ┆ 2      ┆ 1       │
    │ B     ┆ 5.0       ┆ 0.0   ┆ 1      ┆ 2       │
    └───────┴───────────┴───────┴────────┴─────────┘
    """
    check_positive("min_leaf", min_leaf)
    chosen = _criterion(criterion)
    feature, target = _one_column(x, "x"), _one_column(y, "y")
    rows = _together(x=feature, y=target).list.eval(
        pl.element().filter(
            _is_present(_f("x")) & _is_present(_f("y")),
            _require_dtype(_f("x"), _ORDERED, "best_split needs an ordered feature"),
            _readable(_f("y"), chosen),
        )
    )
    if isinstance(chosen, ClassCriterion):
        sides = _class_sides(rows, chosen)
    else:
        sides = _number_sides(rows, chosen)
    n_left, n_right = _f("n_left"), _f("n") - _f("n_left")
    candidates = sides.list.eval(
        pl.struct(
            _f("x").alias("threshold"),
            ((_f("left") + _f("right")) / _f("n")).alias("score"),
            n_left,
            n_right.alias("n_right"),
            # All rows stand on the left of the last one.
            (_f("left").last() / _f("n")).alias("before"),
        ).filter(
            (_f("x") != _f("x").shift(-1)).fill_null(value=False),
            n_left >= min_leaf,
            n_right >= min_leaf,
        )
    )
    best = pl.element().filter(_f("score") <= _f("score").min() + TIE * _f("before")).first()
    fields = ("threshold", "score", "n_left", "n_right")
    return _named(candidates.list.agg(pl.struct(best.struct.field(*fields))), feature)


def _impurity(y: pl.Expr | str, name: CriterionName, by: pl.Expr | str | None) -> pl.Expr:
    criterion = _criterion(name)
    if by is None:
        target = column(y) if isinstance(y, str) else y
        rows, value, part = target.implode(), pl.element(), None
    else:
        target = _one_column(y, "y")
        rows, value, part = _together(y=target, g=_one_column(by, "by")), _f("y"), _f("g")
    rows = rows.list.eval(pl.element().filter(_is_present(value), _readable(value, criterion)))
    if isinstance(criterion, ClassCriterion):
        score = _class_score(rows, criterion, value, part)
    else:
        score = _number_score(rows, criterion, value, part)
    return score if by is None else _named(score, target)


def _class_score(
    rows: pl.Expr, criterion: ClassCriterion, value: pl.Expr, part: pl.Expr | None
) -> pl.Expr:
    if part is None:
        counts = rows.list.eval(pl.element().unique_counts().cast(pl.Int64))
        n, all_rows = pl.element(), pl.element().sum()
        total: pl.Expr = pl.when(all_rows > 0).then(all_rows)
        mass = criterion.mass(total, _all_terms(criterion, n, total), total)
        return counts.list.agg(mass / total)
    keyed = rows.list.eval(pl.struct(value, _part_key(part)))
    counts = keyed.list.eval(
        pl.struct(part, pl.len().over(value, part).cast(pl.Int64).alias("n")).filter(
            pl.element().is_first_distinct()
        )
    )
    # A sum inside a window is one of the part: all rows are summed up in a step before.
    n, total = _f("n"), _f("total")
    counts = counts.list.eval(pl.struct(part, n, n.sum().alias("total")))
    terms = _all_terms(criterion, n, total).over(part)
    mass = criterion.mass(n.sum().over(part), terms, total).filter(part.is_first_distinct())
    return counts.list.agg(mass.sum() / total.first())


def _number_score(
    rows: pl.Expr, criterion: NumberCriterion, value: pl.Expr, part: pl.Expr | None
) -> pl.Expr:
    if part is None:
        d = pl.element()
        mass = criterion.mass(pl.len().cast(pl.Int64), d.sum(), (d * d).sum())
        deviations = rows.list.eval(_deviation(value, None))
        return deviations.list.agg(pl.when(pl.len() > 0).then(mass / pl.len()))
    keyed = rows.list.eval(pl.struct(value, _part_key(part)))
    deviations = keyed.list.eval(pl.struct(part, _deviation(value, part).alias("d")))
    n, d = pl.len().over(part).cast(pl.Int64), _f("d")
    mass = criterion.mass(n, d.sum().over(part), (d * d).sum().over(part))
    return deviations.list.agg((mass / n).mean())


def _class_sides(rows: pl.Expr, criterion: ClassCriterion) -> pl.Expr:
    """Give both sides' masses, row by row in order of the feature, all up to a row on the left.

    A row of a class with k rows up to and with it moves that class's left count from k - 1 to k, so
    running sums of what that changes need no table of classes.
    """
    ordered = rows.list.eval(pl.element().sort_by(_f("x")))
    counts = ordered.list.eval(
        pl.struct(
            _f("x"),
            pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("n_left"),
            pl.len().cast(pl.Int64).alias("n"),
            _f("y").cum_count().over(_f("y")).cast(pl.Int64).alias("k"),
            pl.len().over(_f("y")).cast(pl.Int64).alias("in_class"),
        )
    )
    n, n_left, k = _f("n"), _f("n_left"), _f("k")
    with_it = _f("in_class") - k + 1
    left = _running_terms(criterion, k, n, reverse=False)
    right = _running_terms(criterion, with_it, n, reverse=True).shift(-1, fill_value=0)
    return counts.list.eval(
        pl.struct(
            _f("x"),
            n_left,
            n,
            criterion.mass(n_left, left, n).alias("left"),
            criterion.mass(n - n_left, right, n).alias("right"),
        )
    )


def _number_sides(rows: pl.Expr, criterion: NumberCriterion) -> pl.Expr:
    """Give both sides' masses, row by row in order of the feature, all up to a row on the left."""
    # Equal values are ordered by target, so that float sums depend on no row order.
    ordered = rows.list.eval(pl.struct(_f("x"), _deviation(_f("y"), None).alias("d")).sort())
    n, n_left, d = pl.len().cast(pl.Int64), pl.int_range(1, pl.len() + 1, dtype=pl.Int64), _f("d")

    def behind(values: pl.Expr) -> pl.Expr:
        return values.cum_sum(reverse=True).shift(-1, fill_value=0)

    left = criterion.mass(n_left, d.cum_sum(), (d * d).cum_sum())
    right = criterion.mass(n - n_left, behind(d), behind(d * d))
    return ordered.list.eval(
        pl.struct(
            _f("x"), n_left.alias("n_left"), n.alias("n"), left.alias("left"), right.alias("right")
        )
    )


def _all_terms(criterion: ClassCriterion, n: pl.Expr, total: pl.Expr) -> pl.Expr:
    terms = criterion.term(n, total)
    return terms.sum() if criterion.reduce == "sum" else terms.max()


def _running_terms(
    criterion: ClassCriterion, count: pl.Expr, total: pl.Expr, *, reverse: bool
) -> pl.Expr:
    """Gather the terms of all classes, where each row raises the count of its class to ``count``."""
    term = criterion.term(count, total)
    if criterion.reduce == "max":
        return term.cum_max(reverse=reverse)
    return (term - criterion.term(count - 1, total)).cum_sum(reverse=reverse)


def _deviation(y: pl.Expr, part: pl.Expr | None) -> pl.Expr:
    """Give numbers minus their mean (within parts); whole numbers are subtracted exactly."""
    real, whole = y.cast(pl.Float64, strict=False), y.cast(pl.Int128, strict=False)
    mean = real.mean() if part is None else real.mean().over(part)
    deviation = (
        pl.when(pl.dtype_of(y).matches(cs.integer()))
        .then((whole - mean.round().cast(pl.Int128, strict=False)).cast(pl.Float64))
        .otherwise(real - mean)
    )
    finite = _require(real.is_finite().all(), "a target with infinite values has no spread")
    return pl.when(finite).then(deviation)


def _part_key(part: pl.Expr) -> pl.Expr:
    """Write every missing value as null, so that the missing rows are one part."""
    return pl.when(_is_present(part)).then(part).alias("g")


def _is_present(values: pl.Expr) -> pl.Expr:
    """Tell which values are neither null nor NaN, whatever their dtype.

    `is_nan` exists for numbers only. NaN is above every number but left out by `max`, unless there
    is nothing else.
    """
    any_present = values.drop_nans().count() > 0
    return (values <= values.max()).fill_null(value=False) & any_present


def _readable(y: pl.Expr, criterion: Criterion) -> pl.Expr:
    classes = isinstance(criterion, ClassCriterion)
    allowed, fitting = (_CLASSES, NUMBER_CRITERIA) if classes else (_NUMBERS, CLASS_CRITERIA)
    message = f"criterion {criterion.name!r} cannot use this target; allowed here: "
    return _require_dtype(y, allowed, message + quoted(fitting))


def _require_dtype(values: pl.Expr, allowed: Selector, message: str) -> pl.Expr:
    return _require(pl.dtype_of(values).matches(allowed), message)


def _require(condition: pl.Expr, message: str) -> pl.Expr:
    """Give true, or an error with the message where the condition fails."""
    # Polars has no expression that raises; it quotes a text that is no number.
    return pl.when(condition).then(pl.lit("1")).otherwise(pl.lit(message)).cast(pl.Int8) == 1


def _criterion(name: CriterionName) -> Criterion:
    # Every criterion reads whole numbers; what the column really is, shows when the query runs.
    return criterion_for(name, "", pl.Int64())


def _one_column(values: pl.Expr | str, role: str) -> pl.Expr:
    if isinstance(values, str):
        return column(values)
    if values.meta.has_multiple_outputs():
        msg = (
            f"{role} must be one column, but {values} may stand for several; "
            "name one, or use best_splits of the frame to compare columns"
        )
        raise OneRError(msg)
    return values


def _together(**columns: pl.Expr) -> pl.Expr:
    """Make the rows of a group one list of structs."""
    return pl.struct(values.alias(name) for name, values in columns.items()).implode()


def _f(name: str) -> pl.Expr:
    """Refer to a column of the rows in a list."""
    return pl.element().struct.field(name)


def _named(result: pl.Expr, after: pl.Expr) -> pl.Expr:
    name = after.meta.output_name(raise_if_undetermined=False)
    return result if name is None else result.alias(name)
