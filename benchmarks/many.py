"""The best split of many columns: of all together, and of every one."""

from __future__ import annotations

from benchmarks import splitting
from benchmarks.data import numbers
from benchmarks.work import Demand, Work

WORKS = (
    Work(
        name="parquet-20-best",
        title="best split of all 20 columns, Parquet",
        data=numbers,
        rows=10_000_000,
        columns=20,
        contenders=(splitting.ours(), splitting.floor()),
        demands=(Demand(splitting.SUM, at_most=2.0),),
        memory=500,
    ),
    Work(
        name="parquet-20-every",
        title="best split of each of 20 columns, Parquet",
        data=numbers,
        rows=10_000_000,
        columns=20,
        contenders=(
            splitting.ours(every=True),
            splitting.polars_sort(every=True),
            splitting.floor(),
        ),
        demands=(Demand(splitting.SUM, at_most=2.5),),
        memory=500,
    ),
    Work(
        name="memory-20-every",
        title="best split of each of 20 columns, in memory",
        data=numbers,
        rows=10_000_000,
        columns=20,
        contenders=(
            splitting.ours(every=True, memory=True),
            splitting.lightgbm_split(),
            splitting.lightgbm_split(ready=True),
            splitting.xgboost_split(),
            splitting.floor(memory=True),
        ),
        demands=(Demand(splitting.LIGHTGBM, at_least=1.8),),
    ),
    Work(
        name="wide-best",
        title="best split of all 1,000 columns, Parquet",
        data=numbers,
        rows=200_000,
        columns=1_000,
        contenders=(splitting.ours(), splitting.floor()),
        demands=(Demand(splitting.SUM, at_most=3),),
        memory=500,
        quick_rows=20_000,
        quick_columns=100,
    ),
    Work(
        name="wide-every",
        title="best split of each of 1,000 columns, Parquet",
        data=numbers,
        rows=200_000,
        columns=1_000,
        contenders=(
            splitting.ours(every=True),
            splitting.polars_sort(every=True),
            splitting.floor(),
        ),
        demands=(Demand(splitting.SORT, at_least=1),),
        memory=500,
        quick_rows=20_000,
        quick_columns=100,
    ),
)
"""Many columns of floats, a 0/1 target, Gini. A stump of a peer names the best column only."""
