"""Class rules: for each class the range or the values of every feature within it; most matches win.

One pass over the source finds them all, class sizes included: smallest and largest value of each
ordered feature per class, distinct values of each nominal one. Together they are a conjunction per
class that all its training rows pass where they have a value.

References
----------
HyperPipes in Weka. Witten, I. H., Frank, E. (2005). *Data Mining*, 2nd ed., section 10.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import polars as pl

from polars_oner import report
from polars_oner.counts import Tally, shared_pass
from polars_oner.criteria import require_classes
from polars_oner.errors import ColumnRoleError, EmptyTargetError, check_choice
from polars_oner.expression import guarded, is_one_of, literal
from polars_oner.frame import (
    Column,
    Roles,
    as_lazy,
    canonical,
    column,
    resolve,
)
from polars_oner.intervals import tie_order
from polars_oner.serialize import Model
from polars_oner.target import class_target, row_weight
from polars_oner.typing import CLASS_RULE_TIES, ClassRuleTies, Engine, Kind

_MOST_VALUES = 20
"""A printed set of values shows this many, and says how many more there are."""

_MATCHES = pl.UInt32


@dataclass(frozen=True, eq=False)
class ClassTests(Model):
    """One feature's tests, one for each class in which the feature has a value.

    Attributes
    ----------
    feature, dtype, kind
        The column, its dtype, and whether it is tested by range or by value.
    table
        ``class`` UInt32, the index of the class; for an ordered feature ``lower`` and ``upper``, the
        ends of the range, both within it; for a nominal one ``value``, one row per value, ascending.
        In the feature's dtype, a Categorical's values as text.
    """

    feature: str
    dtype: pl.DataType
    kind: Kind
    table: pl.DataFrame

    def by_class(self) -> dict[int, pl.Expr]:
        """Give the test of each class that has one: False or null where it does not match."""
        x = column(self.feature)
        if self.kind == "nominal":
            groups = self.table.group_by("class", maintain_order=True)
            return {code: is_one_of(x, rows["value"]) for (code,), rows in groups}
        lower, upper = self.table["lower"], self.table["upper"]
        return {
            # NaN is above every number, so the upper end keeps it out.
            code: (x >= literal(lower[i : i + 1], self.dtype))
            & (x <= literal(upper[i : i + 1], self.dtype))
            for i, code in enumerate(self.table["class"])
        }

    def texts(self) -> pl.DataFrame:
        """Write the tests in words.

        Returns
        -------
        DataFrame
            One row per class that has a test: ``class`` UInt32; ``condition`` String; ``lower``,
            ``upper`` String, null for a nominal feature; ``values`` List(String), null for an ordered
            one.
        """
        if self.kind == "nominal":
            values = pl.Series("values", report.value_texts(self.table["value"]), dtype=pl.String)
            groups = self.table.select("class", values).group_by("class", maintain_order=True)
            null = pl.lit(None, pl.String)
            shown = pl.col("values").list.head(_MOST_VALUES).list.join(", ")
            n_more = pl.col("values").list.len().cast(pl.Int64) - _MOST_VALUES
            more = (
                pl.when(n_more > 0).then(pl.format(", ... ({} more)", n_more)).otherwise(pl.lit(""))
            )
            return groups.agg("values").select(
                "class",
                (shown + more).alias("condition"),
                null.alias("lower"),
                null.alias("upper"),
                "values",
            )
        ends = {
            end: pl.Series(report.value_texts(self.table[end]), dtype=pl.String)
            for end in ("lower", "upper")
        }
        one = pl.col("lower") == pl.col("upper")
        return pl.DataFrame({"class": self.table["class"], **ends}).select(
            "class",
            pl.when(one)
            .then(pl.format("= {}", "lower"))
            .otherwise(pl.format(">= {} and <= {}", "lower", "upper"))
            .alias("condition"),
            "lower",
            "upper",
            pl.lit(None, pl.List(pl.String)).alias("values"),
        )


@dataclass(frozen=True, eq=False)
class ClassRules(Model):
    """For each class a test per feature; a row goes to the class with the most matching tests.

    Attributes
    ----------
    target, classes
        The target, and its classes in class order and in its dtype.
    class_counts
        Training rows of each class.
    n_target_missing
        Rows without a target, which were left out.
    ties
        Which of several classes with equally many matches wins.
    tests
        The tests of each feature.
    """

    target: str
    classes: pl.Series
    class_counts: pl.Series
    n_target_missing: int
    ties: ClassRuleTies
    tests: tuple[ClassTests, ...]

    @property
    def target_dtype(self) -> pl.DataType:
        """The dtype of the target and of predictions."""
        return self.classes.dtype

    @property
    def n_rows(self) -> int | float:
        """Training rows with a target."""
        total: int | float = self.class_counts.to_numpy().sum().item()
        return total

    @property
    def n_tests(self) -> int:
        """Number of tests; a class has none for a feature that is missing in all of its rows."""
        return sum(tests.table["class"].n_unique() for tests in self.tests)

    @property
    def default(self) -> Any:
        """The commonest class, the first in class order among equals: for rows that match nothing."""
        return self.classes[self._default]

    @property
    def _default(self) -> int:
        return int(tie_order(self.class_counts.to_numpy(), "frequent")[0])

    @property
    def tested(self) -> tuple[Column, ...]:
        """The columns that the prediction reads, as they were learned."""
        return tuple(Column(test.feature, test.dtype, test.kind) for test in self.tests)

    def predict(self, name: str = "prediction") -> pl.Expr:
        """Give the expression that predicts: the class with the most matching tests.

        Returns
        -------
        Expr
            In the target's dtype, named ``name``. A missing cell matches nothing. A row that matches
            nothing at all gets the default. On columns of other dtypes the query raises.
        """
        order = tie_order(self.class_counts.to_numpy(), self.ties)
        n = len(order)
        # Matches first and priority second in one number, so that a single maximum finds both; the
        # default with no match stands above all classes without one.
        radix = n + 1
        matches = self._matches()
        places = [
            matches[code] * radix + (n - 1 - place)
            for place, code in enumerate(order.tolist())
            if code in matches
        ]
        first = column(self.tests[0].feature).is_null()
        # Without any test, a column in the expression still gives it the length of the frame.
        nothing = pl.lit(n, _MATCHES) if places else first.cast(_MATCHES) * 0 + n
        best = pl.max_horizontal(nothing, *places) % radix
        outcomes = self.classes.gather([*reversed(order.tolist()), self._default])
        return self._guarded(pl.lit(outcomes).gather(best)).alias(name)

    def expr(self) -> pl.Expr:
        """Give the same as `predict`, under its default name."""
        return self.predict()

    def hits(self, name: str = "hits") -> pl.Expr:
        """Give the number of matching tests of every class.

        Returns
        -------
        Expr
            A struct named ``name`` with a UInt32 field for each class, in class order, that bears the
            class as text.
        """
        matches = self._matches()
        none = pl.lit(0, _MATCHES)
        labels = self.classes.cast(pl.String)
        fields = [matches.get(i, none).alias(label) for i, label in enumerate(labels)]
        return self._guarded(pl.struct(fields)).alias(name)

    def _matches(self) -> dict[int, pl.Expr]:
        """Count the matching tests of each class that has any."""
        # Narrow counts are added faster; they cannot wrap.
        narrow = pl.UInt8 if len(self.tests) < 256 else _MATCHES
        found: dict[int, list[pl.Expr]] = {}
        for tests in self.tests:
            for code, test in tests.by_class().items():
                found.setdefault(code, []).append(test.cast(narrow))
        return {code: pl.sum_horizontal(found[code]).cast(_MATCHES) for code in sorted(found)}

    def _guarded(self, expression: pl.Expr) -> pl.Expr:
        columns = (Column(tests.feature, tests.dtype, tests.kind) for tests in self.tests)
        return reduce(guarded, columns, expression)

    def to_frame(self) -> pl.DataFrame:
        """Give the tests as a table.

        Returns
        -------
        DataFrame
            One row per class and feature, in their orders: ``class`` in the target's dtype;
            ``feature`` String; ``condition`` String, the test in words; ``lower``, ``upper`` String,
            the ends of an ordered feature's range, both within it; ``values`` List(String), a nominal
            feature's values, ascending. Null where the class has no such test. The ends and values
            themselves are in ``tests``.
        """
        n = len(self.classes)
        codes = pl.DataFrame({"class": pl.Series(range(n), dtype=pl.UInt32)})
        parts = [
            codes.join(tests.texts(), on="class", how="left", maintain_order="left").select(
                "class",
                pl.lit(i).alias("place"),
                pl.lit(tests.feature).alias("feature"),
                "condition",
                "lower",
                "upper",
                "values",
            )
            for i, tests in enumerate(self.tests)
        ]
        table = pl.concat(parts).sort("class", "place").drop("place")
        return table.with_columns(self.classes.gather(table["class"]).alias("class"))

    def __str__(self) -> str:
        lines = [self._title]
        for (label, n_rows), tests in zip(self._headings(), self._conditions(), strict=True):
            lines.append(f"{label} ({n_rows} rows):")
            width = max(len(name) for name, _ in tests)
            lines += [f"  {name.ljust(width)}  {condition}" for name, condition in tests]
        return "\n".join([*lines, self._policy])

    def _repr_html_(self) -> str:
        rows = [
            (label, str(n_rows), *(condition for _, condition in tests))
            for (label, n_rows), tests in zip(self._headings(), self._conditions(), strict=True)
        ]
        header = ("class", "rows", *(tests.feature for tests in self.tests))
        return report.html_table(self._title, header, rows, self._policy)

    @property
    def _title(self) -> str:
        rows = f"{self.n_rows} rows"
        if self.n_target_missing:
            rows += f", {self.n_target_missing} more without a target"
        return f"class rules for {report.text_of(self.target)} ({rows})"

    @property
    def _policy(self) -> str:
        ties = "the commoner class" if self.ties == "frequent" else "the first class"
        (default,) = report.value_texts(self.classes[self._default : self._default + 1])
        return f"most matches win; ties -> {ties}; no match -> {default}"

    def _headings(self) -> list[tuple[str, int | float]]:
        return list(zip(report.value_texts(self.classes), self.class_counts, strict=True))

    def _conditions(self) -> list[list[tuple[str, str]]]:
        """List each class's features and conditions."""
        cells = self.to_frame().select("feature", pl.col("condition").fill_null("no value")).rows()
        width = len(self.tests)
        return [
            [(report.text_of(name), condition) for name, condition in cells[i : i + width]]
            for i in range(0, len(cells), width)
        ]


def class_rules(
    frame: pl.DataFrame | pl.LazyFrame,
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
    """Learn each class's range or values of every feature. This executes.

    The source is read once, whatever the number of features; with weights once more before, to check
    them.

    Parameters
    ----------
    frame
        The rows, eager or lazy.
    target
        The column to predict; its values are classes. Rows where it is missing are left out.
    features
        The columns to learn from; all but the target and ``weights`` when None.
    ties
        Which of several classes with equally many matches wins: ``"frequent"`` the one with the most
        training rows, then the first in class order; ``"first"`` the first in class order.
    nominal, ordered
        Columns whose kind overrides that of their dtype. An Enum is nominal here.
    weights
        Column of row weights, finite and not negative. Only whether a weight is 0 (the row is absent)
        matters to the tests; class sizes, which decide ties and the default, add weights up.
    engine
        The Polars engine that reads the source.
    progress
        Show rows done on standard error, where batches are read one by one.

    Returns
    -------
    ClassRules
        The model. Missing cells (null, NaN) neither widen a test nor match one; -0.0 equals 0.0.

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError
        A column or option does not fit; raised before any data is read.
    EmptyTargetError
        No row has a target.
    WeightError
        A weight is missing, negative, NaN or infinite.

    References
    ----------
    HyperPipes in Weka. Witten, I. H., Frank, E. (2005). *Data Mining*, 2nd ed., section 10.4.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.class_rules import class_rules
    >>> df = pl.DataFrame(
    ...     {
    ...         "weight": [4.5, 6.0, 30.0, 25.0],
    ...         "ears": ["pointed", "pointed", "hanging", "pointed"],
    ...         "kind": ["cat", "cat", "dog", "dog"],
    ...     }
    ... )
    >>> rules = class_rules(df, "kind")
    >>> print(rules)
    class rules for kind (4 rows)
    cat (2 rows):
      weight  >= 4.5 and <= 6
      ears    pointed
    dog (2 rows):
      weight  >= 25 and <= 30
      ears    hanging, pointed
    most matches win; ties -> the commoner class; no match -> cat
    >>> df.select(rules.hits(), rules.predict()).row(3)
    ({'cat': 1, 'dog': 2}, 'dog')
    """
    check_choice("ties", ties, CLASS_RULE_TIES)
    lazy = as_lazy(frame)
    schema = lazy.collect_schema()
    roles = resolve(
        schema,
        target,
        features,
        nominal=nominal,
        ordered=ordered,
        enum_kind="nominal",
        reserved=() if weights is None else (weights,),
    )
    require_classes(
        target, roles.target_dtype, "class_rules", ("integers", "Boolean", "text", "dates")
    )
    if not roles.features:
        raise ColumnRoleError.without_features(target)
    if weights is not None:
        class_target(lazy, target, roles.target_dtype, weights=weights, engine=engine)
        lazy = lazy.filter(column(weights) > 0)
    rows = lazy.select(
        column(roles.target).alias("class"),
        *([] if weights is None else [row_weight(schema, weights).alias("n")]),
        *(column(feature.name).alias(f"x{i}") for i, feature in enumerate(roles.features)),
    )
    # Frames in memory are read as often as one likes; elsewhere several plans share one pass.
    if isinstance(frame, pl.DataFrame) or len(_plans(rows, roles)) == 1:
        tables = pl.collect_all(_plans(rows, roles), engine=engine)
    else:
        tables = _read_batches(rows, roles, engine, progress)
    return _model(tables, roles, ties)


def _plans(rows: pl.LazyFrame, roles: Roles) -> list[pl.LazyFrame]:
    """Plan one table for all ordered features, if there are any, and then one for each nominal one.

    ``rows`` have ``class``, the i-th feature as ``x{i}`` and, if weighted, ``n``. All tables give
    ``class`` (null for rows without a target), ``n_rows`` and ``n``, their weight. The first has a
    row per class, with ``lower{i}`` and ``upper{i}``; the others a row per class and ``value``.
    """
    names = rows.collect_schema().names()
    n_rows = pl.len().cast(pl.Int64)
    sizes = {"n_rows": n_rows, "n": pl.col("n").sum() if "n" in names else n_rows}
    ends = []
    value_plans = []
    for i, feature in enumerate(roles.features):
        x = pl.col(f"x{i}")
        if feature.kind == "ordered":
            ends += [x.min().alias(f"lower{i}"), x.max().alias(f"upper{i}")]
        else:
            values = rows.with_columns(canonical(x, feature.dtype).alias("value"))
            value_plans.append(values.group_by("class", "value").agg(**sizes))
    range_plans = [rows.group_by("class").agg(*ends, **sizes)] if ends else []
    return [*range_plans, *value_plans]


def _read_batches(
    rows: pl.LazyFrame, roles: Roles, engine: Engine, progress: bool
) -> list[pl.DataFrame]:
    """Work out the same tables batch by batch in one pass, and join what the batches give."""
    ranges: list[pl.DataFrame] = []
    tallies = [
        Tally(["class", "value"], ["n_rows", "n"])
        for feature in roles.features
        if feature.kind == "nominal"
    ]

    def consume(batch: pl.DataFrame) -> None:
        # The streaming engine groups a batch by text several times faster (measured).
        tables = pl.collect_all(_plans(batch.lazy(), roles), engine="streaming")
        ranges.extend(tables[: -len(tallies)])
        for tally, table in zip(tallies, tables[-len(tallies) :], strict=True):
            tally.add(table)

    # A source without rows gives no batch.
    consume(pl.DataFrame(schema=rows.collect_schema()))
    shared_pass(
        rows,
        consume,
        n_columns=len(roles.features) + 2,
        label="class rules",
        engine=engine,
        progress=progress,
    )
    values = [tally.total() for tally in tallies]
    if not ranges:
        return values
    ends = pl.concat(ranges).group_by("class")
    joined = ends.agg(
        pl.col("n_rows", "n").sum(), pl.col("^lower.*$").min(), pl.col("^upper.*$").max()
    )
    return [joined, *values]


def _model(tables: Sequence[pl.DataFrame], roles: Roles, ties: ClassRuleTies) -> ClassRules:
    """Make the model of the tables that `_plans` gives."""
    dtype = roles.target_dtype
    tables = [table.with_columns(canonical(pl.col("class"), dtype)) for table in tables]
    # Any table tells the sizes of the classes; the first also tells the ends of ordered features.
    sizes = tables[0].group_by("class").agg(pl.col("n_rows", "n").sum()).sort("class")
    present = sizes.drop_nulls("class")
    if present.is_empty():
        raise EmptyTargetError.from_counts(roles.target, sum(sizes["n_rows"]))
    codes = present.select("class", pl.int_range(pl.len(), dtype=pl.UInt32).alias("code"))
    coded = [table.join(codes, on="class", how="inner") for table in tables]
    value_tables = iter(coded[-sum(f.kind == "nominal" for f in roles.features) :])
    tests = tuple(
        _range_tests(feature, coded[0], i)
        if feature.kind == "ordered"
        else _value_tests(feature, next(value_tables))
        for i, feature in enumerate(roles.features)
    )
    return ClassRules(
        roles.target,
        present["class"].cast(dtype),
        present["n"],
        sum(sizes["n_rows"]) - sum(present["n_rows"]),
        ties,
        tests,
    )


def _range_tests(feature: Column, table: pl.DataFrame, i: int) -> ClassTests:
    ends = table.select(
        pl.col("code").alias("class"),
        # All NaN leaves NaN, and so no range.
        canonical(pl.col(f"lower{i}"), feature.dtype).alias("lower"),
        canonical(pl.col(f"upper{i}"), feature.dtype).alias("upper"),
    )
    table = ends.drop_nulls("lower").sort("class")
    return ClassTests(feature.name, feature.dtype, feature.kind, table)


def _value_tests(feature: Column, table: pl.DataFrame) -> ClassTests:
    pairs = table.select(pl.col("code").alias("class"), "value").drop_nulls()
    return ClassTests(feature.name, feature.dtype, feature.kind, pairs.sort("class", "value"))
