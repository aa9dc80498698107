"""Run contenders by turns, each in its own process, and make tables of what came out."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.child import Measurement, Spec
from benchmarks.work import Contender, Demand, Work, difference

ROOT = Path(__file__).resolve().parents[1]

RUNS = {
    "work": pl.String,
    "rows": pl.Int64,
    "columns": pl.Int64,
    "contender": pl.String,
    "repetition": pl.Int64,
    "seconds": pl.Float64,
    "memory_mb": pl.Float64,
    "peak_mb": pl.Float64,
    "remark": pl.String,
}
"""One row per measurement; ``seconds`` is null where ``remark`` says why there is none."""

DIFFER = "answers differ"
"""How the remark on a contender begins whose answer should equal ours and does not."""

Log = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    work
        The work.
    rows, columns
        Its size.
    names
        The contenders; all if empty.
    """

    work: Work
    rows: int
    columns: int
    names: tuple[str, ...] = ()

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """The contenders that take part."""
        return tuple(
            one for one in self.work.contenders if not self.names or one.name in self.names
        )


def run(plans: Iterable[Plan], *, repeat: int, timeout: float, log: Log) -> pl.DataFrame:
    """Measure all contenders of all plans.

    Within a plan the contenders take turns, forwards and backwards, so that a drift of the machine
    falls on all of them. One that fails is not tried again.

    Parameters
    ----------
    plans
        What to run.
    repeat
        How often.
    timeout
        Seconds that a process may take, preparing included.
    log
        Told what goes on.

    Returns
    -------
    DataFrame
        One row per measurement, see `RUNS`.
    """
    rows: list[dict[str, Any]] = []
    for plan in plans:
        rows.extend(_run_plan(plan, repeat, timeout, log))
    return pl.DataFrame(rows, schema=RUNS)


def _run_plan(plan: Plan, repeat: int, timeout: float, log: Log) -> list[dict[str, Any]]:
    work = plan.work
    log(f"{work.name}: {work.title}, {plan.rows:,} rows x {plan.columns:,} columns")
    source = work.data(plan.rows, plan.columns)
    source.warm()
    rows: list[dict[str, Any]] = []
    answers: dict[str, Any] = {}
    given_up: set[str] = set()
    for repetition in range(repeat):
        order = plan.contenders if repetition % 2 == 0 else plan.contenders[::-1]
        for contender in order:
            if contender.name in given_up:
                continue
            found = contender.missing() or _measure(plan, contender, timeout)
            row: dict[str, Any] = {
                "work": work.name,
                "rows": plan.rows,
                "columns": plan.columns,
                "contender": contender.name,
                "repetition": repetition,
            }
            if isinstance(found, str):
                given_up.add(contender.name)
                row["remark"] = found
                log(f"  {contender.name}: {found}")
            else:
                answers[contender.name] = found.answer
                row |= {
                    "seconds": found.seconds,
                    "memory_mb": found.memory_mb,
                    "peak_mb": found.peak_mb,
                }
                log(f"  {contender.name}: {found.seconds:.3f} s, {found.memory_mb:.0f} MB")
            rows.append(row)
    differences = _differences(plan, answers)
    for row in rows:
        row.setdefault("remark", differences.get(row["contender"]))
    return rows


def _differences(plan: Plan, answers: dict[str, Any]) -> dict[str, str]:
    """Say of contenders whose answer should equal ours where it does not."""
    mine = answers.get(plan.work.ours.name)
    if mine is None:
        return {}
    found = {}
    for contender in plan.contenders:
        if contender.exact and contender.name in answers:
            differs = difference(mine, answers[contender.name])
            if differs is not None:
                found[contender.name] = f"{DIFFER}: {differs}"
    return found


def _measure(plan: Plan, contender: Contender, timeout: float) -> Measurement | str:
    """Measure in a child process; a text says why there is no measurement."""
    spec = Spec(plan.work.name, contender.name, plan.rows, plan.columns)
    command = [sys.executable, "-m", "benchmarks.child", json.dumps(asdict(spec))]
    # The C library would reserve 64 MB of address space for each thread that allocates.
    environment = {} if contender.cap is None else {"MALLOC_ARENA_MAX": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"none in {timeout:.0f} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return f"failed with {done.returncode}: {lines[-1]}"
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def table(runs: pl.DataFrame, works: dict[str, Work]) -> pl.DataFrame:
    """Sum the measurements up: one row per work and contender, in the order they were run.

    Returns
    -------
    DataFrame
        ``operation``, ``title``, ``rows``, ``columns``, ``peer``; ``seconds``, the median;
        ``ratio_to_ours`` and ``ratio_to_floor``, its seconds over those of this library and of the
        floor, the median of the ratios within each repetition; ``memory_mb`` beyond the input and
        ``peak_mb`` of the whole process, the largest; ``n``, how many measurements; ``versions``;
        ``note``.
    """
    keys = ["work", "rows", "columns", "contender"]
    rows = []
    for (name, n_rows, n_columns, contender), group in runs.group_by(keys, maintain_order=True):
        work = works[name]
        one = work.contender(contender)
        floors = [other.name for other in work.contenders if other.role == "floor"]
        same = runs.filter(work=name, rows=n_rows, columns=n_columns)
        remarks = group["remark"].drop_nulls().unique().to_list()
        rows.append(
            {
                "operation": name,
                "title": work.title,
                "rows": n_rows,
                "columns": n_columns,
                "peer": contender,
                "seconds": group["seconds"].median(),
                "ratio_to_ours": ratio(same, contender, work.ours.name),
                "ratio_to_floor": ratio(same, contender, floors[0]) if floors else None,
                "memory_mb": group["memory_mb"].max(),
                "peak_mb": group["peak_mb"].max(),
                "n": group["seconds"].count(),
                "versions": versions(one),
                "note": "; ".join(filter(None, [one.note, *remarks])),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def demands(runs: pl.DataFrame, works: dict[str, Work]) -> pl.DataFrame:
    """Hold what came out against what is wanted: one row per demand.

    Returns
    -------
    DataFrame
        ``operation``, ``rows``, ``columns``, ``wanted``, ``measured``, and ``reached``, which is
        null where there is nothing to compare.
    """
    rows = []
    keys = ["work", "rows", "columns"]
    for (name, n_rows, n_columns), group in runs.group_by(keys, maintain_order=True):
        work = works[name]
        size = {"operation": name, "rows": n_rows, "columns": n_columns}
        for demand in work.demands:
            rows.append(size | _held(group, work.ours.name, demand))
        if work.memory is not None:
            used: Any = group.filter(contender=work.ours.name)["memory_mb"].max()
            rows.append(
                size
                | {
                    "wanted": f"less than {work.memory:.0f} MB beyond the input",
                    "measured": used,
                    "reached": None if used is None else used < work.memory,
                }
            )
        for contender in work.contenders:
            if contender.cap is not None:
                seconds = group.filter(contender=contender.name)["seconds"]
                rows.append(
                    size
                    | {
                        "wanted": f"finishes within {contender.cap / 2**30:g} GiB",
                        "measured": seconds.median(),
                        "reached": seconds.count() > 0,
                    }
                )
    schema = {
        "operation": pl.String,
        "rows": pl.Int64,
        "columns": pl.Int64,
        "wanted": pl.String,
        "measured": pl.Float64,
        "reached": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema)


def _held(group: pl.DataFrame, ours: str, demand: Demand) -> dict[str, Any]:
    if demand.at_least is not None:
        measured = ratio(group, demand.against, ours)
        return {
            "wanted": f"at least {demand.at_least:g}x as fast as {demand.against}",
            "measured": measured,
            "reached": None if measured is None else measured >= demand.at_least,
        }
    measured = ratio(group, ours, demand.against)
    most = demand.at_most or 1.0
    return {
        "wanted": f"at most {most:g}x the time of {demand.against}",
        "measured": measured,
        "reached": None if measured is None else measured <= most,
    }


def ratio(runs: pl.DataFrame, above: str, below: str) -> float | None:
    """Give the median, over the repetitions, of one contender's seconds over another's."""
    sides = [
        runs.filter(contender=name).select("repetition", "seconds").drop_nulls()
        for name in (above, below)
    ]
    paired = sides[0].join(sides[1], on="repetition", suffix="_below")
    value: Any = (paired["seconds"] / paired["seconds_below"]).median()
    return None if value is None else float(value)


def versions(contender: Contender) -> str:
    """Name the package that does a contender's work, with its version."""
    distribution = packages_distributions().get(contender.package, [contender.package])[0]
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return contender.package


def write(runs: pl.DataFrame, works: dict[str, Work], out: Path) -> str:
    """Write the table as Parquet and, with the demands, as Markdown; give the Markdown.

    Parameters
    ----------
    runs
        The measurements.
    works
        The pieces of work by name.
    out
        Path of the files; its suffix is replaced.
    """
    summary = table(runs, works)
    held = demands(runs, works)
    machine = (
        f"Python {platform.python_version()}, Polars {pl.__version__}, {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores. Seconds are medians of up to "
        f"{runs['repetition'].n_unique()} measurements; ratios are medians of the ratios within each "
        "repetition."
    )
    text = "\n\n".join(
        [
            "# Benchmarks",
            machine,
            markdown(summary.drop("title", "n")),
            "## Wanted and measured",
            markdown(held),
        ]
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    summary.write_parquet(out.with_suffix(".parquet"))
    out.with_suffix(".md").write_text(text + "\n")
    return text


def markdown(frame: pl.DataFrame) -> str:
    """Lay a frame out as a Markdown table."""
    lines = [frame.columns, ["---"] * frame.width]
    lines += [[_cell(value) for value in row] for row in frame.iter_rows()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value).replace("|", "\\|")


def sized(
    work: Work, *, quick: bool, rows: int | None, columns: int | None, names: Sequence[str] = ()
) -> Plan:
    """Plan a work at the size that counts, at a quick one, or at a given one."""
    n_rows = work.quick_rows if quick else work.rows
    n_columns = (work.quick_columns or work.columns) if quick else work.columns
    return Plan(work, rows or n_rows, columns or n_columns, tuple(names))
