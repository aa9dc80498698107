"""The command ``python -m benchmarks``: measure side by side, write one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from benchmarks.registry import WORKS
from benchmarks.runner import DIFFER, run, sized, write
from benchmarks.work import OURS

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit status: 1 if an answer differed or ours failed."""
    options = _parser().parse_args(arguments)
    if options.list:
        for work in WORKS.values():
            print(f"{work.name:24}{work.rows:>12,} x {work.columns:<6,}{work.title}")
        return 0
    works = [
        work
        for work in WORKS.values()
        if (any(part in work.name for part in options.only))
        or (not options.only and (options.huge or options.quick or not work.huge))
    ]
    if not works:
        print(f"no work is called {' or '.join(options.only)}; see --list", file=sys.stderr)
        return 2
    plans = [
        sized(work, quick=options.quick, rows=options.rows, columns=options.columns)
        for work in works
    ]
    runs = run(
        plans,
        repeat=options.repeat or (1 if options.quick else 3),
        timeout=options.timeout,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(write(runs, WORKS, options.out))
    failed = pl.col("seconds").is_null() & (pl.col("contender") == OURS)
    differs = pl.col("remark").str.starts_with(DIFFER)
    return 1 if runs.filter(failed | differs).height else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only work whose name contains NAME (repeatable)",
    )
    parser.add_argument("--rows", type=int, help="rows, instead of each work's own")
    parser.add_argument("--columns", type=int, help="columns, instead of each work's own")
    parser.add_argument("--repeat", type=int, help="repetitions (3; quick: 1)")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    parser.add_argument("--huge", action="store_true", help="the 200 million rows too (4.6 GB)")
    parser.add_argument(
        "--timeout", type=float, default=1800, help="seconds that a process may take (1800)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS / "results",
        help="where the table goes, as .parquet and .md",
    )
    parser.add_argument("--list", action="store_true", help="list the work and stop")
    return parser


if __name__ == "__main__":
    sys.exit(main())
