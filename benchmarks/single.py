"""The best split of one column: in memory, from Parquet, and of 200 million rows."""

from __future__ import annotations

from benchmarks import splitting
from benchmarks.data import numbers
from benchmarks.work import OURS, Contender, Demand, Work

CAP = 2 << 30
"""Address space beyond the mapped files in which the search of 200 million rows has to finish."""


def _long(column: str, kind: str) -> Work:
    search = [column]
    capped: Contender = splitting.ours(
        features=search,
        name=f"{OURS}, capped",
        role="peer",
        cap=CAP,
        note="2 GiB of address space beyond mapped files",
    )
    return Work(
        name=f"long-{kind}",
        title=f"best split of one of 3 columns, Parquet ({kind})",
        data=numbers,
        rows=200_000_000,
        columns=3,
        contenders=(
            splitting.ours(features=search),
            capped,
            splitting.polars_sort(features=search),
            splitting.floor(features=search),
        ),
        demands=(Demand(splitting.SORT, at_least=3),),
        memory=1500,
        huge=True,
    )


WORKS = (
    Work(
        name="memory-1",
        title="best split of 1 column, in memory",
        data=numbers,
        rows=10_000_000,
        columns=1,
        contenders=(
            splitting.ours(memory=True),
            splitting.polars_sort(memory=True),
            splitting.polars_group_by(memory=True),
            splitting.sklearn_stump(),
            splitting.lightgbm_split(),
            splitting.lightgbm_split(ready=True),
            splitting.xgboost_split(),
            splitting.xgboost_split(ready=True),
            splitting.duckdb_sql(memory=True),
            splitting.floor(memory=True),
        ),
        demands=(
            Demand(splitting.SKLEARN, at_least=15),
            Demand(splitting.SORT, at_least=3),
            Demand(splitting.LIGHTGBM, at_least=1),
        ),
        memory=300,
    ),
    Work(
        name="parquet-1",
        title="best split of 1 column, Parquet",
        data=numbers,
        rows=10_000_000,
        columns=1,
        contenders=(
            splitting.ours(),
            splitting.polars_sort(),
            splitting.polars_group_by(),
            splitting.sklearn_stump(),
            splitting.duckdb_sql(),
            splitting.floor(),
        ),
        demands=(
            Demand(splitting.SKLEARN, at_least=8),
            Demand(splitting.SORT, at_least=1.8),
        ),
        memory=400,
    ),
    _long("x0", "noise"),
    _long("x1", "weak"),
    _long("x2", "strong"),
)
"""One column of floats, a 0/1 target, Gini."""
