"""Draw how time and memory grow: ``python -m benchmarks.growth``.

Rows grow from 1e5 to 1e8 in one column, columns from 1 to 1,000 in 200,000 rows, both from Parquet.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import splitting
from benchmarks.__main__ import RESULTS
from benchmarks.registry import WORKS
from benchmarks.runner import Plan, run
from benchmarks.work import OURS

ROWS = (100_000, 1_000_000, 10_000_000, 100_000_000)
COLUMNS = (1, 3, 10, 30, 100, 300, 1_000)
COLUMN_ROWS = 200_000

SHOWN = (OURS, splitting.SORT, splitting.SUM)


def plans(max_rows: int, max_columns: int) -> list[Plan]:
    """Plan both series."""
    by_rows = [Plan(WORKS["parquet-1"], rows, 1, SHOWN) for rows in ROWS if rows <= max_rows]
    by_columns = [
        Plan(WORKS["parquet-20-every"], COLUMN_ROWS, columns, SHOWN)
        for columns in COLUMNS
        if columns <= max_columns
    ]
    return by_rows + by_columns


def draw(runs: pl.DataFrame, file: Path) -> None:
    """Draw seconds and memory against rows and against columns.

    Parameters
    ----------
    runs
        Measurements of the plans of `plans`.
    file
        The picture.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    median = runs.group_by("work", "rows", "columns", "contender").agg(
        pl.col("seconds").median(), pl.col("memory_mb").max()
    )
    series = {
        "rows": median.filter(work="parquet-1"),
        "columns": median.filter(pl.col("work") != "parquet-1"),
    }
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained", sharey="row")
    for column, (along, part) in enumerate(series.items()):
        for row, (value, label) in enumerate([("seconds", "seconds"), ("memory_mb", "memory, MB")]):
            _panel(axes[row][column], part, along, value)
            axes[row][column].set_xlabel(along)
            axes[row][column].set_ylabel(label)
    axes[0][0].set_title("1 float column, Parquet")
    axes[0][1].set_title(f"{COLUMN_ROWS:,} rows, every column, Parquet")
    axes[0][0].legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _panel(axes: Any, part: pl.DataFrame, along: str, value: str) -> None:
    for name in SHOWN:
        line = part.filter(contender=name).drop_nulls(value).sort(along)
        axes.plot(line[along].to_list(), line[value].to_list(), marker="o", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--max-rows", type=int, default=ROWS[-1], help="most rows (1e8)")
    parser.add_argument("--max-columns", type=int, default=COLUMNS[-1], help="most columns (1000)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (3)")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds per process (1800)")
    parser.add_argument(
        "--out", type=Path, default=RESULTS / "growth", help="the files, as .png and .parquet"
    )
    options = parser.parse_args(arguments)
    runs = run(
        plans(options.max_rows, options.max_columns),
        repeat=options.repeat,
        timeout=options.timeout,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    runs.write_parquet(options.out.with_suffix(".parquet"))
    draw(runs, options.out.with_suffix(".png"))
    print(options.out.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
