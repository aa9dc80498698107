"""1R of nominal columns and class rules: what a group-by that counts costs, and no more."""

from __future__ import annotations

from typing import Any

import polars as pl

import polars_oner
from benchmarks import splitting
from benchmarks.data import LEVELS, Source, nominal
from benchmarks.one_rule import ranked
from benchmarks.work import OURS, Answer, Contender, Demand, Work

COUNT = "group_by that counts"
MLXTEND = "mlxtend OneR"

TEXTS = [f"s{j}" for j in range(len(LEVELS))]


def _scan(source: Source) -> pl.LazyFrame:
    return pl.scan_parquet(source.files)


def _frame(source: Source) -> pl.DataFrame:
    return splitting.in_memory(source, [*TEXTS, "y"])


def _fit(frame: pl.DataFrame | pl.LazyFrame) -> Any:
    return polars_oner.fit(frame, "y", TEXTS)


def _count(frame: pl.DataFrame | pl.LazyFrame) -> Answer:
    """Count the classes of every value of every column, and their fewest errors."""
    tables = pl.collect_all(
        [frame.lazy().group_by(name, "y").agg(n=pl.len().cast(pl.Int64)) for name in TEXTS],
        engine="streaming",
    )
    rules = []
    for name, table in zip(TEXTS, tables, strict=True):
        cases = table.group_by(name).agg(n_errors=pl.col("n").sum() - pl.col("n").max())
        rules.append({"n_cases": cases.height, "n_errors": int(cases["n_errors"].sum())})
    return min(rules, key=lambda rule: rule["n_errors"])


def _codes(source: Source) -> Any:
    """Give values and classes as numbers, the way mlxtend takes them."""
    frame = _frame(source).select(pl.all().rank("dense").cast(pl.Int64) - 1)
    return frame.select(TEXTS).to_numpy(), frame["y"].to_numpy()


def _mlxtend(state: tuple[Any, Any]) -> Any:
    from mlxtend.classifier import OneRClassifier

    return OneRClassifier().fit(*state)


def _mlxtend_rule(model: Any) -> Answer:
    rule = model.prediction_dict_
    return {
        "n_cases": len(rule["rules (value: class)"]),
        "n_errors": int(rule["total error"]),
    }


def _class_rules(state: tuple[pl.LazyFrame, list[str]]) -> Any:
    frame, numbers = state
    return polars_oner.class_rules(frame, "y", [*TEXTS, *numbers])


def _count_and_span(state: tuple[pl.LazyFrame, list[str]]) -> list[pl.DataFrame]:
    """Count the values of each class in each text column, and take the span of the numbers."""
    frame, numbers = state
    plans = [frame.group_by(name, "y").len() for name in TEXTS]
    spans = [
        pl.col(numbers).min().name.suffix("_min"),
        pl.col(numbers).max().name.suffix("_max"),
    ]
    return pl.collect_all([*plans, frame.group_by("y").agg(*spans)], engine="streaming")


WORKS = (
    Work(
        name="nominal",
        title=f"1R of {len(TEXTS)} text columns, Parquet",
        data=nominal,
        rows=10_000_000,
        columns=2,
        contenders=(
            Contender(OURS, _scan, _fit, ranked, role="ours", package=OURS, note="fit"),
            Contender(COUNT, _scan, _count, role="floor"),
        ),
        demands=(Demand(COUNT, at_most=1.3),),
    ),
    Work(
        name="nominal-memory",
        title=f"1R of {len(TEXTS)} text columns, in memory",
        data=nominal,
        rows=1_000_000,
        columns=2,
        contenders=(
            Contender(OURS, _frame, _fit, ranked, role="ours", package=OURS, note="fit"),
            Contender(
                MLXTEND,
                _codes,
                _mlxtend,
                _mlxtend_rule,
                package="mlxtend",
                note="integer matrix ready",
            ),
            Contender(COUNT, _frame, _count, role="floor"),
        ),
        demands=(Demand(COUNT, at_most=1.3),),
        quick_rows=20_000,
    ),
    Work(
        name="class-rules",
        title=f"class rules of {len(TEXTS)} text and 2 number columns, Parquet",
        data=nominal,
        rows=10_000_000,
        columns=2,
        contenders=(
            Contender(
                OURS,
                lambda source: (_scan(source), source.features),
                _class_rules,
                lambda _: {},
                role="ours",
                package=OURS,
            ),
            Contender(
                COUNT,
                lambda source: (_scan(source), source.features),
                _count_and_span,
                lambda _: {},
                role="floor",
                exact=False,
                note="and the span of the numbers",
            ),
        ),
        demands=(Demand(COUNT, at_most=1.3),),
    ),
)
"""Text columns of 3 to 300 values, three classes."""
