"""1R of ordered columns: the walk over ten million distinct values, and the whole rule."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

import polars_oner
from benchmarks import splitting
from benchmarks.data import Source, ascending, distinct
from benchmarks.work import OURS, Answer, Contender, Demand, Work
from polars_oner.intervals import Intervals, in_chunks, tie_order, walk

LOOP = "Python loop"
TUNED = "Python loop, tuned"
WEKA = "Weka OneR"

MIN_BUCKET = 6

Target = Literal["y", "k"]
"""``y`` has 2 classes, ``k`` has 10."""


def plain_walk(table: pl.DataFrame, order: Sequence[int], min_bucket: int = MIN_BUCKET) -> Answer:
    """Walk over a count table value by value, as one writes it down from the text.

    Parameters
    ----------
    table
        ``value``, ``class`` and ``n``, upwards by value.
    order
        The classes, those first that win ties.
    min_bucket
        Rows that a majority class needs.
    """

    def majority(counts: list[int]) -> int:
        return max(order, key=counts.__getitem__)

    intervals: list[list[int]] = []
    for _, rows in groupby(_rows(table), key=itemgetter(0)):
        counts = [0] * len(order)
        for _, label, n in rows:
            counts[label] += n
        if intervals and (
            max(intervals[-1]) < min_bucket or majority(counts) == majority(intervals[-1])
        ):
            intervals[-1] = [a + b for a, b in zip(intervals[-1], counts, strict=True)]
        else:
            intervals.append(counts)
    return _sum_up(intervals, order)


def tuned_walk(table: pl.DataFrame, order: Sequence[int], min_bucket: int = MIN_BUCKET) -> Answer:
    """Do the same with the majority kept up to date, so that no step costs more than its row."""
    rank = [0] * len(order)
    for place, label in enumerate(order):
        rank[label] = place
    values, labels, sizes = (table[name].to_list() for name in ("value", "class", "n"))
    intervals: list[list[int]] = []
    running, majority, leading = [0] * len(order), -1, 0
    row, n_rows = 0, len(values)
    while row < n_rows:
        first, own, most = row, labels[row], sizes[row]
        row += 1
        while row < n_rows and values[row] == values[first]:
            if sizes[row] > most or (sizes[row] == most and rank[labels[row]] < rank[own]):
                own, most = labels[row], sizes[row]
            row += 1
        if leading >= min_bucket and own != majority:
            intervals.append(running)
            running, majority, leading = [0] * len(order), -1, 0
        for i in range(first, row):
            label = labels[i]
            running[label] += sizes[i]
            if running[label] > leading or (
                running[label] == leading and rank[label] < rank[majority]
            ):
                majority, leading = label, running[label]
    intervals.append(running)
    return _sum_up(intervals, order)


def _rows(table: pl.DataFrame) -> Iterator[tuple[float, int, int]]:
    return zip(*(table[name].to_list() for name in ("value", "class", "n")), strict=True)


def _sum_up(intervals: list[list[int]], order: Sequence[int]) -> Answer:
    """Count the cases, of neighbours with equal majority one, and the errors."""
    majorities = [max(order, key=counts.__getitem__) for counts in intervals]
    return {
        "n_cases": sum(1 for _ in groupby(majorities)),
        "n_errors": sum(sum(counts) - max(counts) for counts in intervals),
    }


def _count_table(frame: pl.DataFrame, target: Target) -> pl.DataFrame:
    keys = [pl.col("x0").alias("value"), pl.col(target).cast(pl.UInt32).alias("class")]
    return frame.group_by(keys).agg(n=pl.len().cast(pl.Int64)).sort("value", "class")


def _tie_order(table: pl.DataFrame) -> Any:
    totals = table.group_by("class").agg(pl.col("n").sum()).sort("class")
    return tie_order(totals["n"].to_numpy(), "rare")


def _buckets(target: Target, n_classes: int, at_least: float) -> Work:
    def prepare(source: Source) -> tuple[pl.DataFrame, list[int]]:
        # The rows lie in ascending order and no value occurs twice, so they are the counts.
        table = splitting.in_memory(source, ["x0", target]).select(
            pl.col("x0").alias("value"),
            pl.col(target).cast(pl.UInt32).alias("class"),
            pl.lit(1, pl.Int64).alias("n"),
        )
        return table, _tie_order(table).tolist()

    def ours(state: tuple[pl.DataFrame, list[int]]) -> Intervals:
        table, order = state
        return walk(in_chunks(table), np.asarray(order), MIN_BUCKET)

    def answer(found: Intervals) -> Answer:
        cases = found.counts.group_by("case").agg(most=pl.col("n").max(), n=pl.col("n").sum())
        return {
            "n_cases": cases.height,
            "n_errors": cases.select((pl.col("n") - pl.col("most")).sum()).item(),
        }

    return Work(
        name=f"buckets-{n_classes}",
        title=f"1R intervals from the counts of distinct values, {n_classes} classes",
        data=ascending,
        rows=10_000_000,
        columns=1,
        contenders=(
            Contender(
                OURS,
                prepare,
                ours,
                answer,
                role="ours",
                package=OURS,
                note="polars_oner.intervals.walk",
            ),
            Contender(LOOP, prepare, lambda state: plain_walk(*state)),
            Contender(TUNED, prepare, lambda state: tuned_walk(*state)),
        ),
        demands=(Demand(LOOP, at_least=at_least),),
    )


def _rule(target: Target, n_classes: int, *, memory: bool) -> Work:
    def prepare(source: Source) -> pl.DataFrame | pl.LazyFrame:
        if memory:
            return splitting.in_memory(source, ["x0", target])
        return pl.scan_parquet(source.files)

    def ours(frame: pl.DataFrame | pl.LazyFrame) -> Any:
        return polars_oner.fit(frame, target, ["x0"], min_bucket=MIN_BUCKET)

    def loop(frame: pl.DataFrame | pl.LazyFrame) -> Answer:
        table = _count_table(frame.lazy().select("x0", target).collect(), target)
        return tuned_walk(table, _tie_order(table).tolist())

    def sort(frame: pl.DataFrame | pl.LazyFrame) -> int:
        ascending = frame.lazy().select("x0", target).sort("x0")
        changes = ascending.select((pl.col(target) != pl.col(target).shift(1)).sum())
        return int(changes.collect(engine="streaming").item())

    contenders = [
        Contender(OURS, prepare, ours, ranked, role="ours", package=OURS, note="fit"),
        Contender(TUNED, prepare, loop, note="group_by + sort in Polars, then the loop"),
        Contender(
            splitting.SORT,
            prepare,
            sort,
            lambda _: {},
            role="floor",
            exact=False,
            note="sort the column and the target",
        ),
    ]
    if memory:
        contenders.append(
            Contender(
                WEKA,
                lambda source: _arff(source, target),
                _weka,
                exact=False,
                package="weka",
                needs=weka_missing,
                note="the time to build the model that it prints; ties its own way",
            )
        )
    return Work(
        name=f"fit-{n_classes}" + ("" if memory else "-parquet"),
        title=f"1R of 1 column of distinct values, {n_classes} classes, "
        + ("in memory" if memory else "Parquet"),
        data=distinct,
        rows=10_000_000,
        columns=1,
        contenders=tuple(contenders),
        demands=(Demand(WEKA, at_least=10),) if memory else (),
    )


def ranked(model: Any) -> Answer:
    """Tell how many cases and errors the best rule of a fitted model has."""
    best = model.ranking.row(0, named=True)
    return {"n_cases": best["n_cases"], "n_errors": best["n_errors"]}


def weka_missing() -> str | None:
    """Say what is missing of Weka: Java, or its jar files named in ``WEKA_JAR``."""
    if shutil.which("java") is None:
        return "java is not installed"
    if not os.environ.get("WEKA_JAR"):
        return "WEKA_JAR does not name Weka's jar file"
    return None


def _arff(source: Source, target: Target) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Write the data as Weka reads them; the folder goes when the process does."""
    folder = tempfile.TemporaryDirectory()
    file = Path(folder.name) / "data.arff"
    frame = splitting.in_memory(source, ["x0", target])
    labels = ",".join(str(label) for label in np.unique(frame[target].to_numpy()))
    with file.open("wb") as stream:
        head = f"@relation r\n@attribute x0 numeric\n@attribute y {{{labels}}}\n@data\n"
        stream.write(head.encode())
        frame.write_csv(stream, include_header=False)
    return folder, file


def _weka(state: tuple[object, Path]) -> Answer:
    command = ["java", "-Xmx12g", "-cp", os.environ["WEKA_JAR"], "weka.classifiers.rules.OneR"]
    options = ["-t", str(state[1]), "-B", str(MIN_BUCKET), "-no-cv", "-v"]
    found: dict[str, float] = {}
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as weka:
        # It prints the whole rule, so the lines are looked at as they come.
        for line in weka.stdout or ():
            if time := re.match(r"Time taken to build model: ([\d.]+) seconds", line):
                found["seconds"] = float(time[1])
    if not found:
        raise RuntimeError("Weka told no time")
    return found


WORKS = (
    _buckets("y", 2, at_least=6),
    _buckets("k", 10, at_least=4),
    _rule("y", 2, memory=True),
    _rule("k", 10, memory=True),
    _rule("y", 2, memory=False),
)
"""No value occurs twice; classes come in waves, with noise."""
