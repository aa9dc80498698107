"""Predicting: the expressions of the models against the same rules written by hand.

The models are learned from some of the rows. The rules by hand are read off their predictions, so that
they are the same rules whatever the models look like inside: missing values get the default too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

import polars_oner
from benchmarks.data import Source, distinct, nominal, numbers
from benchmarks.work import OURS, Answer, Contender, Demand, Work

BY_HAND = "when/then by hand"

SAMPLE = 50_000

Input = tuple[pl.DataFrame | pl.LazyFrame, pl.Expr]


def _sample(source: Source) -> pl.DataFrame:
    return pl.scan_parquet(source.files).head(SAMPLE).collect()


def _split(source: Source) -> Any:
    return polars_oner.best_split(_sample(source), "y", source.features)


def _intervals(source: Source) -> Any:
    sample = _sample(source)
    return polars_oner.fit(sample, "y", ["x0"], min_bucket=max(sample.height // 50, 6))


def _values(source: Source) -> Any:
    return polars_oner.fit(_sample(source), "y", ["s2"])


def _class_rules(source: Source) -> Any:
    return polars_oner.class_rules(_sample(source), "y", ["s2", "s3", "x0", "x1"])


def _threshold_by_hand(split: Any, sample: pl.DataFrame) -> pl.Expr:
    """Write the test, and which class has most rows where it holds and where it does not."""
    x = pl.col(split.feature)
    sides = [sample.filter(x <= split.threshold), sample.filter(x > split.threshold)]
    left, right = (_default(side) for side in sides)
    return _chain([(x <= split.threshold, left), (x.is_not_nan(), right)], sample)


def _cuts_by_hand(model: Any, sample: pl.DataFrame) -> pl.Expr:
    """Write ``x <= cut`` tests, a cut midway between the neighbours that are told apart."""
    x = pl.col(model.feature)
    seen = sample.select(model.feature, label=model.predict()).unique().sort(model.feature)
    ends = seen.filter(pl.col("label") != pl.col("label").shift(-1))
    starts = seen.filter(pl.col("label") != pl.col("label").shift(1))
    tests = [
        (x <= left + (right - left) / 2, label)
        for left, right, label in zip(
            ends[model.feature], starts[model.feature], ends["label"], strict=True
        )
    ]
    return _chain([*tests, (x.is_not_nan(), seen["label"][-1])], sample)


def _sets_by_hand(model: Any, sample: pl.DataFrame) -> pl.Expr:
    """Write one ``is_in`` per class."""
    x = pl.col(model.feature)
    seen = sample.select(model.feature, label=model.predict()).unique()
    groups = seen.group_by("label", maintain_order=True).agg(model.feature)
    tests = [(x.is_in(values), label) for label, values in groups.iter_rows()]
    return _chain(tests, sample)


def _matches_by_hand(model: Any, sample: pl.DataFrame) -> pl.Expr:
    """Count the tests that a row passes for each class, and take the class with most."""
    del model
    classes = sample["y"].value_counts().sort("count", "y", descending=[True, False])["y"]
    matches = {}
    for label in classes:
        of_class = sample.filter(pl.col("y") == label)
        tests = [pl.col(x).is_in(of_class[x].unique()) for x in ("s2", "s3")] + [
            pl.col(x).is_between(of_class[x].min(), of_class[x].max()) for x in ("x0", "x1")
        ]
        matches[label] = pl.sum_horizontal(test.cast(pl.UInt32) for test in tests)
    most = pl.max_horizontal(matches.values())
    return _chain([(n == most, label) for label, n in matches.items()], sample)


def _default(frame: pl.DataFrame) -> Any:
    return frame["y"].mode().sort()[0]


def _chain(tests: Sequence[tuple[pl.Expr, Any]], sample: pl.DataFrame) -> pl.Expr:
    """Write when/then for each test; where none holds, the commonest class."""
    chain = pl.lit(_default(sample), sample.schema["y"])
    for test, label in reversed(tests):
        chain = pl.when(test).then(pl.lit(label, sample.schema["y"])).otherwise(chain)
    return chain.alias("prediction")


def _in_memory(state: Input) -> pl.DataFrame:
    frame, expression = state
    return frame.lazy().select(expression).collect()


def _streamed(state: Input) -> pl.DataFrame:
    frame, expression = state
    counted = frame.lazy().select(expression).group_by("prediction").len()
    return counted.collect(engine="streaming")


def _answer(frame: pl.DataFrame) -> Answer:
    """Count how often each class is predicted."""
    if "len" not in frame.columns:
        frame = frame.group_by("prediction").len()
    return {str(label): n for label, n in frame.sort("prediction").iter_rows()}


def _work(
    name: str,
    title: str,
    data: Callable[[int, int], Source],
    learn: Callable[[Source], Any],
    write: Callable[[Any, pl.DataFrame], pl.Expr],
    *,
    columns: int = 1,
    memory: bool = True,
) -> Work:
    def rows(source: Source) -> pl.DataFrame | pl.LazyFrame:
        # Only what the prediction reads lies in memory: the target does not.
        scan = pl.scan_parquet(source.files)
        return scan.drop("y").collect() if memory else scan

    def by_model(source: Source) -> Input:
        return rows(source), learn(source).predict()

    def by_hand(source: Source) -> Input:
        return rows(source), write(learn(source), _sample(source))

    run = _in_memory if memory else _streamed
    return Work(
        name=name,
        title=title,
        data=data,
        rows=10_000_000,
        columns=columns,
        contenders=(
            Contender(OURS, by_model, run, _answer, role="ours", package=OURS, note="predict()"),
            Contender(BY_HAND, by_hand, run, _answer, role="floor"),
        ),
        demands=(Demand(BY_HAND, at_most=1.2),),
    )


WORKS = (
    _work("predict-split", "predict by a split, in memory", numbers, _split, _threshold_by_hand),
    _work(
        "predict-split-parquet",
        "predict by a split and count, Parquet",
        numbers,
        _split,
        _threshold_by_hand,
        memory=False,
    ),
    _work(
        "predict-intervals",
        "predict by 1R intervals, in memory",
        distinct,
        _intervals,
        _cuts_by_hand,
    ),
    _work(
        "predict-values",
        "predict by 1R over 30 text values, in memory",
        nominal,
        _values,
        _sets_by_hand,
        columns=2,
    ),
    _work(
        "predict-class-rules",
        "predict by class rules of 2 text and 2 number columns, in memory",
        nominal,
        _class_rules,
        _matches_by_hand,
        columns=2,
    ),
)
"""Ten million predictions each."""
