"""``python -m polars_oner``: what people see, what programs read, and bad input."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_oner as po
from polars_oner import weather
from polars_oner.command import main
from tests.shared import SHARED, needs_shared

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process and give what it prints; it must succeed and be quiet."""

    def call(*arguments: object) -> str:
        assert main([str(argument) for argument in arguments]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return call


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command on bad input: status 2, one line on standard error, and nothing else."""

    def call(*arguments: object) -> str:
        try:
            status: Any = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        assert status == 2
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert captured.err.startswith("polars_oner: ")
        return captured.err.removeprefix("polars_oner: ").strip()

    return call


def weather_file(folder: Path, name: str, frame: pl.DataFrame | None = None) -> Path:
    path = folder / name
    table = weather.numeric() if frame is None else frame
    write: dict[str, Callable[[Path], object]] = {
        ".csv": table.write_csv,
        ".tsv": lambda file: table.write_csv(file, separator="\t"),
        ".gz": lambda file: file.write_bytes(gzip.compress(table.write_csv().encode())),
        ".parquet": table.write_parquet,
        ".arrow": table.write_ipc,
        ".ndjson": table.write_ndjson,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write[path.suffix](path)
    return path


def cases_of(document: dict[str, Any], feature: str) -> list[tuple[Any, ...]]:
    (rule,) = (rule for rule in document["rules"] if rule["feature"] == feature)
    return [tuple(case.values()) for case in rule["cases"]]


# --- the report ---

NOMINAL_REPORT = """\
weather, nominal: 14 rows
play: no 5, yes 9; always yes is right in 0.6429

Each value or interval, its class, and how many of its rows have it:
  column       case      class  right  in all
  outlook      overcast  yes      4/4   10/14
               rainy     yes      3/5
               sunny     no       3/5
  humidity     high      no       4/7   10/14
               normal    yes      6/7
  temperature  cool      yes      3/4    9/14
               hot       no       2/4
               mild      yes      4/6
  windy        false     yes      6/8    9/14
               true      no       3/6

Ranking of the columns by their rules:
  column       cases  errors  accuracy  leave one out
  outlook          3       4    0.7143         0.5000  chosen
  humidity         2       4    0.7143         0.7143
  temperature      3       5    0.6429         0.5000
  windy            2       5    0.6429         0.4286

Best split of each column by gini:
  goes left                       score    gain  left  right  missing
  outlook in {"rainy", "sunny"}  0.3571  0.1020    10      4
  humidity in {"high"}           0.3673  0.0918     7      7
  windy in {true}                0.4286  0.0306     6      8
  temperature in {"hot"}         0.4429  0.0163     4     10

The one rule:
1R for play (14 rows)
outlook:
  overcast      -> yes  4/4
  rainy         -> yes  3/5
  sunny         -> no   3/5
  anything else -> yes
10/14 correct, 4 errors
"""


def test_the_weather_table_without_a_file(run: Run) -> None:
    nominal, numeric = run().split("weather, numeric")
    assert nominal.rstrip() == NOMINAL_REPORT.rstrip()
    # The textbook's cuts, at the textbook's bucket of 3.
    for line in (
        "humidity     <= 82.5             yes      6/7   11/14",
        "             > 82.5 and <= 95.5  no       4/6",
        "temperature  <= 77.5             yes     7/10    9/14",
    ):
        assert line in numeric


def test_options_reach_the_weather_table(run: Run) -> None:
    assert "64.5" in run("--min-bucket", 1, "--features", "temperature")
    assert "windy: false 8, true 6" in run("--target", "windy")


def test_options_are_those_of_the_functions(run: Run, tmp_path: Path) -> None:
    frame = weather.numeric().with_columns(rain=pl.Series([None, None, 1, 2, 3, 4, 5] * 2))
    path = weather_file(tmp_path, "w.parquet", frame)
    options = ("--min-bucket", 2, "--ties", "first", "--choose", "loo", "--identifiers", "keep")
    splits = ("--criterion", "entropy", "--missing", "right", "--min-leaf", 2, "--cut", "midpoint")
    columns = ("--features", "temperature,rain,outlook", "--nominal", "rain")
    engine = ("--engine", "streaming", "--significance")
    arguments = (path, "--target", "play", "--json", *options, *splits, *columns, *engine)
    document = json.loads(run(*arguments))
    names = ["temperature", "rain", "outlook"]
    model = po.fit(
        frame,
        "play",
        names,
        min_bucket=2,
        ties="first",
        choose="loo",
        identifiers="keep",
        significance=True,
        nominal=["rain"],
    )
    assert po.OneRule.from_dict(document["model"]) == model
    table = po.best_splits(
        frame,
        "play",
        names,
        criterion="entropy",
        missing="right",
        min_leaf=2,
        cut="midpoint",
        nominal=["rain"],
    )
    assert document["splits"] == table.to_dicts()
    text = run(*(argument for argument in arguments if argument != "--json"))
    assert "Best split of each column by entropy:" in text
    assert "p_value" in text


def test_weights(run: Run, tmp_path: Path) -> None:
    frame = weather.nominal().with_columns(w=pl.lit(2))
    path = weather_file(tmp_path, "w.csv", frame)
    assert "outlook      overcast  yes      8/8   20/28" in run(
        path, "--target", "play", "--weights", "w"
    )


def test_long_columns_are_cut_short(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame({"name": [f"n{i}" for i in range(40)], "y": ["a", "b"] * 20})
    path = weather_file(tmp_path, "names.csv", frame)
    text = run(path, "--target", "y", "--cases", 3)
    assert "n0" in text
    assert "... 37 more" in text
    assert "identifier" in text
    assert "Note: not chosen" in text
    assert "... 37 more" not in run(path, "--target", "y", "--cases", 40)


def test_many_classes_and_missing_targets_are_counted(run: Run, tmp_path: Path) -> None:
    classes = [*(f"c{i:02}" for i in range(20)), None]
    frame = pl.DataFrame({"x": range(21), "y": classes})
    text = run(weather_file(tmp_path, "c.parquet", frame), "--target", "y", "--min-bucket", 1)
    assert "20 rows (1 without a target left out)" in text
    assert "c11 1, and 8 more classes" in text


def test_columns_that_cannot_be_tested_are_listed(run: Run, tmp_path: Path) -> None:
    frame = weather.nominal().with_columns(days=pl.lit([1, 2]))
    text = run(weather_file(tmp_path, "w.parquet", frame), "--target", "play")
    assert text.count("dtype List(Int64) cannot be tested") == 2


# --- files ---


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "arrow", "ndjson"])
def test_formats(suffix: str, run: Run, tmp_path: Path) -> None:
    document = json.loads(
        run(weather_file(tmp_path, f"w.{suffix}"), "--target", "play", "--json", "--min-bucket", 3)
    )
    assert cases_of(document, "humidity") == [
        ("<= 82.5", "yes", 6, 7),
        ("> 82.5 and <= 95.5", "no", 4, 6),
        ("> 95.5", "yes", 1, 1),
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_several_files_are_one_data_set(suffix: str, run: Run, tmp_path: Path) -> None:
    table = weather.numeric()
    parts = [table[:5], table[5:6], table[6:]]
    files = [weather_file(tmp_path / "in", f"{i}.{suffix}", part) for i, part in enumerate(parts)]
    (tmp_path / "in" / "_SUCCESS").touch()
    whole = json.loads(run(weather_file(tmp_path, f"w.{suffix}"), "--target", "play", "--json"))
    for names in (files, [tmp_path / "in"], [tmp_path / "in" / "*"], [files[2], *files[:2]]):
        if names == [tmp_path / "in" / "*"]:
            names[0] = tmp_path / "in" / f"*.{suffix}"
        document = json.loads(run(*names, "--target", "play", "--json"))
        assert {**document, "data": ""} == {**whole, "data": ""}


def test_folders_of_parquet_can_name_a_column(run: Run, tmp_path: Path) -> None:
    for day, part in enumerate(weather.numeric().iter_slices(7)):
        weather_file(tmp_path / f"half={day}", "part.parquet", part)
    assert "half" in run(tmp_path, "--target", "play")


def test_a_mark_in_the_header_names_the_target(run: Run, tmp_path: Path) -> None:
    path = weather_file(tmp_path, "w.csv", weather.nominal().rename({"play": "*play"}))
    document = json.loads(run(path, "--json"))
    assert document["target"] == "play"
    assert document["feature"] == "outlook"


def test_csv_dtypes_and_missing_cells(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    late = "".join(f"{i},2024-01-{i % 28 + 1:02},{'ab'[i % 2]},{i % 2}\n" for i in range(2000))
    path.write_text(f'n,day,who,y\n{late}NA,NA,NA,1\n,,"",1\n2.5,2024-02-01,?,NA\n')
    document = json.loads(run(path, "--target", "y", "--json"))
    model = po.OneRule.from_dict(document["model"])
    dtypes = {rule.feature: rule.dtype for rule in model.rules}
    assert dtypes == {"n": pl.Float64(), "day": pl.Date(), "who": pl.String()}
    assert model.n_target_missing == 1
    assert cases_of(document, "who") == [
        ("a", 0, 1000, 1000),
        ("b", 1, 1000, 1000),
        ("missing", 1, 2, 2),
    ]
    other = json.loads(run(path, "--target", "y", "--json", "--null", "?", "--null", "x"))
    assert ("NA", "1", 1, 1) in cases_of(other, "who")


def test_semicolons(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    weather.nominal().write_csv(path, separator=";")
    assert "outlook" in run(path, "--separator", ";", "--target", "play")


def test_names_with_commas(run: Run, tmp_path: Path) -> None:
    frame = weather.nominal().rename({"windy": 'wind, "so"'})
    path = weather_file(tmp_path, "w.parquet", frame)
    document = json.loads(
        run(path, "--target", "play", "--json", "--features", '"wind, ""so""", outlook')
    )
    assert {row["feature"] for row in document["ranking"]} == {'wind, "so"', "outlook"}


# --- JSON ---


def test_json_is_strict_and_one_line_for_each_data_set(run: Run) -> None:
    def no_constants(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    lines = run("--json").splitlines()
    documents = [json.loads(line, parse_constant=no_constants) for line in lines]
    assert [document["data"] for document in documents] == ["weather, nominal", "weather, numeric"]
    first = documents[0]
    assert first["class_counts"] == [{"class": "no", "n": 5}, {"class": "yes", "n": 9}]
    assert first["splits"][0]["condition"] == 'outlook in {"rainy", "sunny"}'
    assert po.OneRule.from_dict(first["model"]) == po.fit(weather.nominal(), "play", min_bucket=3)


def test_json_holds_dates_and_infinities(run: Run, tmp_path: Path) -> None:
    day = dt.date(2024, 2, 29)
    frame = pl.DataFrame({"x": [float("inf"), 1.0, float("nan")], "y": [day, day, None]})
    path = weather_file(tmp_path, "d.parquet", frame)
    document = json.loads(run(path, "--target", "y", "--json", "--min-bucket", 1))
    assert document["class_counts"] == [{"class": {"$date": "2024-02-29"}, "n": 2}]


# --- bad input ---


def test_bad_columns(complaint: Run, tmp_path: Path) -> None:
    path = weather_file(tmp_path, "w.csv")
    assert complaint(path, "--target", "plya") == "column 'plya' not found; did you mean 'play'?"
    assert "'windo' not found" in complaint(path, "--target", "play", "--features", "windo")
    assert "name the target" in complaint(path)
    twice = weather_file(tmp_path, "t.csv", weather.nominal().rename({"play": "*p", "windy": "*w"}))
    assert "'*w', '*p' all start with *" in complaint(twice)
    assert "listed as a feature" in complaint(path, "--target", "play", "--features", "play")


def test_a_number_is_no_class(complaint: Run, tmp_path: Path) -> None:
    path = weather_file(tmp_path, "f.csv", weather.numeric().with_columns(y=pl.lit(0.5)))
    assert "target 'y' of dtype Float64" in complaint(path, "--target", "y")
    assert "'std' cannot use target 'play'" in complaint(
        path, "--target", "play", "--criterion", "std"
    )


def test_bad_files(complaint: Run, tmp_path: Path) -> None:
    target = ("--target", "y")
    assert complaint(tmp_path / "no.csv", *target) == f"no such file: '{tmp_path / 'no.csv'}'"
    assert "no such file" in complaint(tmp_path / "*.csv", *target)
    assert "holds no file of a known kind" in complaint(tmp_path, *target)
    for name in ("a.csv", "a.parquet", "a.arrow", "a.ndjson"):
        (tmp_path / name).write_bytes(b"")
        assert f"cannot read {tmp_path / name}: " in complaint(tmp_path / name, *target)
        (tmp_path / name).write_bytes(bytes(range(256)))
        assert complaint(tmp_path / name, *target)
    odd = tmp_path / "a.xyz"
    odd.touch()
    assert "cannot tell the format" in complaint(odd, *target)
    assert "one data set has one format" in complaint(
        tmp_path / "a.csv", tmp_path / "a.parquet", *target
    )
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("a,y\n1,2\n1,2,3\n")
    assert "more fields" in complaint(ragged, *target)


def test_no_rows(complaint: Run, tmp_path: Path) -> None:
    empty = tmp_path / "e.csv"
    empty.write_text("x,y\n")
    assert complaint(empty, "--target", "y").startswith("no rows")
    empty.write_text("x,y\n1,\n2,\n")
    assert "all 2 values of 'y' are missing" in complaint(empty, "--target", "y")
    empty.write_text("y\na\n")
    assert "no feature column" in complaint(empty, "--target", "y")


def test_bad_options(complaint: Run) -> None:
    assert "min_bucket must be" in complaint("--min-bucket", 0)
    assert "--ties: invalid choice: 'odd'" in complaint("--ties", "odd")
    assert "--cases must be" in complaint("--cases", -1)
    assert "unrecognized arguments: --tragte" in complaint("--tragte")
    assert "separator must be" in complaint("x.csv", "--separator", "ab")


# --- as a process ---


def in_shell(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "polars_oner", *map(str, arguments)]


def test_as_a_process() -> None:
    good = subprocess.run(in_shell(), capture_output=True, text=True, check=True)
    assert good.stdout.startswith(NOMINAL_REPORT)
    assert good.stderr == ""
    bad = subprocess.run(in_shell("no.csv"), capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "polars_oner: no such file: 'no.csv'\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of this kind are those of Unix")
def test_a_reader_that_has_seen_enough() -> None:
    with subprocess.Popen(in_shell(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@needs_shared
def test_the_raw_titanic(run: Run) -> None:
    text = run(SHARED / "data" / "titanic_train.csv", "--target", "Survived")
    assert "  Sex          female" in text
    assert "701/891 correct, 190 errors" in text
    assert "'Name', 'Ticket'" in text


@needs_shared
@pytest.mark.parametrize("name", ["breast-cancer", "iris", "soybean"])
def test_shared_data_sets(name: str, run: Run) -> None:
    target = json.loads((SHARED / "data" / "schema.json").read_text())[name]["target"]
    path = SHARED / "data" / f"{name}.parquet"
    document = json.loads(run(path, "--target", target, "--json"))
    model = po.fit(pl.scan_parquet(path), target)
    assert po.OneRule.from_dict(document["model"]) == model
