"""Ways to find the best binary split: this library's, its peers' and the floor.

The features are ``x0``, ``x1``, ... and the target of all peers is the 0/1 column ``y``, on which the
squared error of a regression stump and the Gini index of a classification stump name the same split.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import polars_oner
from benchmarks.data import Source
from benchmarks.work import OURS, Answer, Contender, Role
from polars_oner.typing import CriterionName, Strategy

Frame = pl.DataFrame | pl.LazyFrame
Input = tuple[Frame, list[str]]
Matrix = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], list[str]]

SORT = "Polars streaming sort"
GROUP_BY = "Polars group_by"
SKLEARN = "scikit-learn stump"
LIGHTGBM = "LightGBM one split"
XGBOOST = "XGBoost hist one split"
DUCKDB = "DuckDB SQL"
SUM = "sum of the columns"

_THREADS = os.cpu_count() or 1

_BLOCK = 50
"""Wide tables are sorted this many columns at a time."""


def in_memory(source: Source, names: Sequence[str]) -> pl.DataFrame:
    """Read some columns of a data set, each in one piece."""
    return pl.read_parquet(source.files, columns=list(names)).rechunk()


def ours(
    *,
    every: bool = False,
    memory: bool = False,
    target: str = "y",
    criterion: CriterionName = "gini",
    strategy: Strategy = "auto",
    features: Sequence[str] | None = None,
    name: str = OURS,
    role: Role = "ours",
    cap: int | None = None,
    note: str = "",
) -> Contender:
    """Search with this library: the best split of all columns, or of every column."""

    def run(state: Input) -> Any:
        frame, names = state
        return polars_oner.best_split(
            frame, target, names, criterion=criterion, ranking=every, strategy=strategy
        )

    return Contender(
        name,
        lambda source: _input(source, memory, features, target),
        run,
        (lambda split: _every_split(split.ranking)) if every else _one_split,
        role=role,
        package=OURS,
        cap=cap,
        note=note,
    )


def floor(
    *, memory: bool = False, target: str = "y", features: Sequence[str] | None = None
) -> Contender:
    """Sum the same columns and the target."""

    def run(state: Input) -> pl.DataFrame:
        frame, names = state
        return frame.lazy().select(pl.col(*names, target).sum()).collect()

    return Contender(
        SUM,
        lambda source: _input(source, memory, features, target),
        run,
        lambda _: {},
        role="floor",
        exact=False,
    )


def polars_sort(
    *, every: bool = False, memory: bool = False, features: Sequence[str] | None = None
) -> Contender:
    """Sort each column and run totals over it: what is written first in Polars.

    Wide tables are read 50 columns at a time, for reading one by one costs more.
    """

    def run(state: Input) -> list[tuple[str, tuple[float, float]]]:
        frame, names = state
        n, ones = _totals(frame.lazy())
        found = []
        for i in range(0, len(names), _BLOCK):
            block = frame
            if isinstance(frame, pl.LazyFrame) and len(names) > _BLOCK:
                block = frame.select(*names[i : i + _BLOCK], "y").collect()
            for name in names[i : i + _BLOCK]:
                sides = block.lazy().select(
                    x=pl.col(name), n=pl.lit(1, pl.Int64), ones=pl.col("y").cast(pl.Int64)
                )
                found.append((name, _best_of(sides.sort("x"), n, ones)))
        return found

    return Contender(
        SORT,
        lambda source: _input(source, memory, features, "y"),
        run,
        lambda found: _answer(found, every),
        note="sort + cum_sum, a column at a time",
    )


def polars_group_by(*, memory: bool = False) -> Contender:
    """Count the distinct values of one column, sort those and run totals over them."""

    def run(state: Input) -> list[tuple[str, tuple[float, float]]]:
        frame, (name,) = state
        n, ones = _totals(frame.lazy())
        counts = frame.lazy().group_by(x=pl.col(name))
        sides = counts.agg(n=pl.len().cast(pl.Int64), ones=pl.col("y").sum().cast(pl.Int64))
        return [(name, _best_of(sides.sort("x"), n, ones))]

    return Contender(
        GROUP_BY,
        lambda source: _input(source, memory, None, "y"),
        run,
        lambda found: _answer(found, every=False),
        note="group_by + sort + cum_sum",
    )


def duckdb_sql(*, memory: bool = False) -> Contender:
    """Search one column in SQL, exactly."""

    def prepare(source: Source) -> Any:
        import duckdb

        connection = duckdb.connect()
        if not memory:
            return connection, f"read_parquet('{source.files}')", source.features
        table = in_memory(source, [*source.features, "y"]).to_arrow()
        connection.register("t", table)
        return connection, "t", source.features

    def run(state: Any) -> list[tuple[str, tuple[float, float]]]:
        connection, table, (name,) = state
        query = f"""
            WITH counts AS (
                SELECT {name} AS x, count(*) AS n, sum(y) AS ones FROM {table} GROUP BY x
            ), total AS (
                SELECT sum(n)::DOUBLE AS n, sum(ones)::DOUBLE AS ones FROM counts
            ), sides AS (
                SELECT
                    x,
                    (sum(n) OVER upwards)::DOUBLE AS n_left,
                    (sum(ones) OVER upwards)::DOUBLE AS left_ones
                FROM counts WINDOW upwards AS (ORDER BY x)
            )
            SELECT
                x,
                2 * (
                    left_ones * (n_left - left_ones) / n_left
                    + (ones - left_ones) * (n - n_left - ones + left_ones) / (n - n_left)
                ) / n AS score
            FROM sides, total WHERE n_left < n ORDER BY score, x LIMIT 1
        """
        return [(name, connection.execute(query).fetchone())]

    return Contender(
        DUCKDB,
        prepare,
        run,
        lambda found: _answer(found, every=False),
        package="duckdb",
        note="group by, window totals",
    )


def sklearn_stump() -> Contender:
    """Fit a tree of depth one on a ready matrix."""

    def run(state: Matrix) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        x, y, names = state
        return DecisionTreeClassifier(max_depth=1).fit(x, y).tree_, names

    def answer(found: Any) -> Answer:
        tree, names = found
        return {"feature": names[tree.feature[0]], "threshold": float(tree.threshold[0])}

    return Contender(
        SKLEARN,
        _matrix,
        run,
        answer,
        package="sklearn",
        exact=False,
        note="float32 matrix ready",
    )


def lightgbm_split(*, ready: bool = False) -> Contender:
    """Fit one round of two leaves, which chooses among at most 255 bins of a column.

    Users pay for the dataset as well as for the split, so that both are timed; ``ready`` times the
    split alone.
    """
    params = {
        "objective": "regression",
        "num_leaves": 2,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "num_threads": _THREADS,
        "verbose": -1,
    }

    def dataset(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> Any:
        import lightgbm

        return lightgbm.Dataset(x, y, params=params).construct()

    def prepare(source: Source) -> Any:
        x, y, names = _matrix(source)
        return (dataset(x, y), None, names) if ready else (x, y, names)

    def run(state: Any) -> Any:
        import lightgbm

        x, y, names = state
        data = x if ready else dataset(x, y)
        return lightgbm.train(params, data, num_boost_round=1), names

    def answer(found: Any) -> Answer:
        booster, names = found
        root = booster.dump_model()["tree_info"][0]["tree_structure"]
        return {"feature": names[root["split_feature"]], "threshold": root["threshold"]}

    return _approximate(LIGHTGBM, prepare, run, answer, "lightgbm", ready)


def xgboost_split(*, ready: bool = False) -> Contender:
    """Fit one round of depth one with histograms; ``ready`` as in `lightgbm_split`."""
    params = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": 1,
        "lambda": 0.0,
        "min_child_weight": 0.0,
        "nthread": _THREADS,
    }

    def dataset(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> Any:
        import xgboost

        return xgboost.QuantileDMatrix(x, y, nthread=_THREADS)

    def prepare(source: Source) -> Any:
        x, y, names = _matrix(source)
        return (dataset(x, y), None, names) if ready else (x, y, names)

    def run(state: Any) -> Any:
        import xgboost

        x, y, names = state
        data = x if ready else dataset(x, y)
        return xgboost.train(params, data, num_boost_round=1), names

    def answer(found: Any) -> Answer:
        booster, names = found
        root = json.loads(booster.get_dump(dump_format="json")[0])
        return {"feature": names[int(root["split"][1:])], "threshold": root["split_condition"]}

    return _approximate(XGBOOST, prepare, run, answer, "xgboost", ready)


def _approximate(
    name: str, prepare: Any, run: Any, answer: Any, package: str, ready: bool
) -> Contender:
    return Contender(
        f"{name}, dataset ready" if ready else name,
        prepare,
        run,
        answer,
        package=package,
        exact=False,
        note="approximate, " + ("split alone" if ready else "float32 matrix ready, dataset timed"),
    )


def _input(source: Source, memory: bool, features: Sequence[str] | None, target: str) -> Input:
    names = list(features or source.features)
    if memory:
        return in_memory(source, [*names, target]), names
    return pl.scan_parquet(source.files), names


def _matrix(source: Source) -> Matrix:
    frame = in_memory(source, [*source.features, "y"])
    x = frame.select(pl.col(source.features).cast(pl.Float32)).to_numpy(order="c")
    return x, frame["y"].cast(pl.Float32).to_numpy(), source.features


def _totals(frame: pl.LazyFrame) -> tuple[int, int]:
    n, ones = frame.select(n=pl.len(), ones=pl.col("y").cast(pl.Int64).sum()).collect().row(0)
    return n, ones


def _best_of(ascending: pl.LazyFrame, n: int, ones: int) -> tuple[float, float]:
    """Give the threshold and the score of the best split, from values with ``n`` and ``ones``."""
    n_left, left_ones = pl.col("n"), pl.col("ones")
    n_right, right_ones = n - n_left, ones - left_ones
    score = (
        2
        * (
            left_ones * (n_left - left_ones) / n_left
            + right_ones * (n_right - right_ones) / n_right
        )
        / n
    )
    best = (
        ascending.select(
            "x", pl.col("n", "ones").cum_sum(), last=pl.col("x") != pl.col("x").shift(-1)
        )
        .filter("last")
        .select("x", score=score)
        .bottom_k(1, by=["score", "x"])
        .collect(engine="streaming")
    )
    threshold, lowest = best.row(0)
    return threshold, lowest


def _answer(found: Iterable[tuple[str, tuple[float, float]]], every: bool) -> Answer:
    splits = {name: {"threshold": cut, "score": score} for name, (cut, score) in found}
    if every:
        return splits
    best = min(splits, key=lambda name: splits[name]["score"])
    return {"feature": best, **splits[best]}


def _one_split(split: Any) -> Answer:
    return {"feature": split.feature, "threshold": split.threshold, "score": split.score}


def _every_split(table: pl.DataFrame) -> Answer:
    return {
        row["feature"]: {"threshold": row["threshold"], "score": row["score"]}
        for row in table.iter_rows(named=True)
    }


def gini_after(frame: pl.DataFrame, found: Mapping[str, Any]) -> float:
    """Score a split that a peer found, to see what its approximation lost."""
    sides = frame.group_by(pl.col(found["feature"]) <= found["threshold"]).agg(
        n=pl.len().cast(pl.Int64), ones=pl.col("y").sum().cast(pl.Int64)
    )
    n, ones = pl.col("n"), pl.col("ones")
    value = sides.select((2 * ones * (n - ones) / n).sum() / n.sum()).item()
    return float(value)
