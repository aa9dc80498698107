"""The benchmarks run on tiny data, and contenders that are exact agree."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchmarks import child, data, growth, one_rule, runner, splitting
from benchmarks.__main__ import main
from benchmarks.registry import WORKS
from benchmarks.work import Answer, Contender, Work, difference

ROWS = 3_000
COLUMNS = 4

PAIRS = [
    pytest.param(work, contender, id=f"{work.name}: {contender.name}")
    for work in WORKS.values()
    for contender in work.contenders
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let the data sets lie elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("data")
        patch.setattr(data, "DATA", path)
        # For the processes that measure.
        patch.setenv(data.FOLDER_VARIABLE, str(path))
        yield path


def source(work: Work) -> data.Source:
    return work.data(ROWS, min(work.columns, COLUMNS))


@pytest.mark.parametrize(("work", "contender"), PAIRS)
@pytest.mark.usefixtures("folder")
def test_contender_agrees_with_ours(work: Work, contender: Contender) -> None:
    missing = contender.missing()
    if missing is not None:
        pytest.skip(missing)
    found = contender.find(source(work))
    if contender.exact and contender.role != "ours":
        assert difference(work.ours.find(source(work)), found) is None


@pytest.mark.parametrize(
    "contender",
    [
        splitting.sklearn_stump(),
        splitting.lightgbm_split(),
        splitting.lightgbm_split(ready=True),
        splitting.xgboost_split(),
        splitting.xgboost_split(ready=True),
    ],
    ids=lambda contender: contender.name,
)
@pytest.mark.usefixtures("folder")
def test_approximate_stump_does_the_same_work(contender: Contender) -> None:
    missing = contender.missing()
    if missing is not None:
        pytest.skip(missing)
    source = data.numbers(ROWS, COLUMNS)
    frame = splitting.in_memory(source, [*source.features, "y"])
    exact = splitting.polars_sort(memory=True).find(source)
    theirs = contender.find(source)
    assert theirs["feature"] == exact["feature"]
    lowest = exact["score"]
    # They choose among some 255 cuts, so they may lose a little, and win nothing.
    assert lowest - 1e-12 <= splitting.gini_after(frame, theirs) <= lowest * 1.01


@pytest.mark.parametrize("walk", [one_rule.plain_walk, one_rule.tuned_walk])
def test_python_walk_follows_the_textbook(walk: Callable[..., Answer]) -> None:
    values = [64, 65, 68, 69, 70, 71, 72, 72, 75, 80, 81, 83, 85]
    labels = [1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0]
    sizes = [1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]
    table = pl.DataFrame({"value": values, "class": labels, "n": sizes})
    assert walk(table, [0, 1], min_bucket=3) == {"n_cases": 2, "n_errors": 5}


@pytest.mark.usefixtures("folder")
def test_data_do_not_change_and_are_made_once() -> None:
    first = data.numbers(ROWS, 3)
    written = [file.stat().st_mtime_ns for file in first.path.iterdir()]
    again = data.numbers(ROWS, 3)
    assert [file.stat().st_mtime_ns for file in again.path.iterdir()] == written
    frame = pl.read_parquet(first.files)
    assert frame.shape == (ROWS, 4)
    # How much the columns tell: much, little, nothing.
    strong, weak, nothing = (
        abs(frame.select(pl.corr(name, "y")).item()) for name in ("x2", "x1", "x0")
    )
    assert strong > 0.3
    assert max(weak, nothing) < 0.15
    n_values = pl.read_parquet(data.distinct(ROWS, 1).files)["x0"].n_unique()
    assert n_values == ROWS


@pytest.mark.parametrize(
    ("rows", "columns", "files", "group"),
    [
        (2_000, 1, 1, 100_000),
        (10_000_000, 20, 4, 500_000),
        (200_000_000, 3, 20, 1_000_000),
        (200_000, 1_000, 1, 100_000),
    ],
)
def test_layout(rows: int, columns: int, files: int, group: int) -> None:
    assert data.layout(rows, columns) == (files, group)


def test_difference() -> None:
    assert difference({"a": 1.0, "b": {"c": "x"}}, {"a": 1.0 + 1e-12, "b": {"c": "x"}}) is None
    assert difference({"a": 1.0}, {"a": 1.1}) == "a: 1.0 against 1.1"
    assert difference({"b": {"c": "x"}}, {"b": {"c": "y"}}) == "b: c: 'x' against 'y'"
    assert difference({"a": 1}, {"b": 1}) == "['a'] against ['b']"


def test_ratios_are_paired_within_repetitions() -> None:
    runs = pl.DataFrame(
        {
            "contender": ["a", "a", "a", "b", "b", "b"],
            "repetition": [0, 1, 2, 0, 1, 2],
            "seconds": [2.0, 30.0, 4.0, 1.0, 10.0, None],
        }
    )
    # 2 and 3; the third has no partner.
    assert runner.ratio(runs, "a", "b") == 2.5
    assert runner.ratio(runs, "a", "c") is None


@pytest.mark.skipif(sys.platform != "linux", reason="the cap is read off Linux's /proc")
def test_cap_stops_a_process_that_wants_more() -> None:
    code = """
from benchmarks.child import cap_address_space
cap_address_space(256 << 20)
held = bytearray(64 << 20)
try:
    bytearray(512 << 20)
except MemoryError:
    print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=runner.ROOT,
        capture_output=True,
        text=True,
        check=False,
        # Polars' threads would need some of the cap for their stacks.
        env={"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.stdout == "stopped\n", done.stderr
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_command_measures_in_processes_of_its_own(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del folder
    out = tmp_path / "results"
    arguments = ["--only", "segments", "--rows", str(ROWS), "--repeat", "2", "--out", str(out)]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.rstrip() == out.with_suffix(".md").read_text().rstrip()
    table = pl.read_parquet(out.with_suffix(".parquet"))
    work = WORKS["segments"]
    assert table["peer"].to_list() == list(work.names)
    assert table["n"].to_list() == [2, 2, 2]
    ours = table.row(0, named=True)
    assert ours["ratio_to_ours"] == 1.0
    assert ours["ratio_to_floor"] > 0
    assert ours["versions"].startswith("polars_oner ")
    assert table["peak_mb"].min() > table["memory_mb"].max()  # type: ignore[operator]
    assert "at most 1.7x the time of sort by segment and value" in text


def test_command_lists_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(WORKS)
    assert main(["--only", "nothing of that name"]) == 2


def test_failures_and_differences_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    work = WORKS["segments"]
    answers = {
        name: json.dumps(
            {"seconds": 1, "peak_mb": 90, "before_mb": 50, "input_mb": 10, "answer": {"n": i}}
        )
        for i, name in enumerate(work.names)
    }

    def child_process(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        name = json.loads(command[-1])["contender"]
        if name == work.names[2]:
            return subprocess.CompletedProcess(command, -9, "", "first\nlast")
        return subprocess.CompletedProcess(command, 0, f"noise\n{answers[name]}\n", "")

    monkeypatch.setattr(subprocess, "run", child_process)
    plan = runner.Plan(work, ROWS, 1)
    monkeypatch.setattr(data.Source, "warm", lambda _: None)
    runs = runner.run([plan], repeat=2, timeout=1, log=lambda _: None)
    remarks = {row["contender"]: row["remark"] for row in runs.to_dicts()}
    assert remarks == {
        work.names[0]: None,
        work.names[1]: "answers differ: n: 0 against 1",
        work.names[2]: "failed with -9: last",
    }
    assert runs["memory_mb"].to_list() == [30.0, 30.0, None, 30.0, 30.0]
    held = runner.demands(runs, WORKS)
    assert held["reached"].to_list() == [None]


def test_measurement_is_of_the_work(folder: Path) -> None:
    del folder
    work = WORKS["memory-1"]
    measured = child.measure(work, work.contender(splitting.SUM), ROWS, 1)
    assert measured.seconds > 0
    assert measured.input_mb == pytest.approx(ROWS * 9 / 1e6)
    assert measured.peak_mb >= measured.before_mb * 0.5


def test_growth_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        {
            "work": plan.work.name,
            "rows": plan.rows,
            "columns": plan.columns,
            "contender": one.name,
            "repetition": 0,
            "seconds": plan.rows * plan.columns / 1e8,
            "memory_mb": 10.0,
            "peak_mb": 100.0,
            "remark": None,
        }
        for plan in growth.plans(1_000_000, 30)
        for one in plan.contenders
    ]
    assert len(rows) == 3 * (2 + 4)
    file = tmp_path / "growth.png"
    growth.draw(pl.DataFrame(rows, schema=runner.RUNS), file)
    assert file.read_bytes().startswith(b"\x89PNG")
