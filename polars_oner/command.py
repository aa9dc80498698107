"""The shell command: files in, a report for people or JSON for programs out.

The report gives the rule of every column as a textbook's table does, the ranking, the best split of
every column and, last, the one rule.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, get_args

import polars as pl

from polars_oner import report, weather
from polars_oner.errors import IdentifierWarning, OneRError, check_positive
from polars_oner.one_rule import OneRule
from polars_oner.ranking import fit
from polars_oner.rule import Rule
from polars_oner.serialize import encode
from polars_oner.sources import MARK, CsvOptions, marked_target, scan
from polars_oner.splits import best_split
from polars_oner.typing import CHOOSE, CRITERIA, CUTS, IDENTIFIERS, MISSING, TIES, Engine

_NAME = "polars_oner"
_BAD_INPUT = 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141
"""Exit statuses; the last two are what a shell gives a command that such a signal ended."""

_NAMED_ENGINES: tuple[str, ...] = get_args(get_args(Engine)[0])
_HOLTES_BUCKET = 6
_TEXTBOOKS_BUCKET = 3
_MOST_CLASSES = 12
_WIDEST_CONDITION = 60
_SMALLEST_PLAIN = 0.001

_EPILOG = """\
CSV: an empty cell and NA are missing (--null changes NA), dates are recognised, and a column has the
dtype that all of its rows fit. Several files are one data set; a directory stands for the data files
in it and below. Without a file the command runs on the weather table of the textbooks, with
--min-bucket 3 as they have it.
"""

Table = list[tuple[str, ...]]


@dataclass(frozen=True)
class _Finding:
    """What was learned of one data set."""

    name: str
    model: OneRule
    splits: pl.DataFrame
    criterion: str
    notes: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_INPUT, f"{_NAME}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments
        What follows the command's name; those of the process when None.

    Returns
    -------
    int
        The exit status: 0, or 2 after one line on standard error if the input is of no use.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        check_positive("--cases", options.cases)
        for finding in _findings(options):
            print(_json(finding) if options.json else _text(finding, options.cases))
        sys.stdout.flush()
    except OneRError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # The reader has seen enough. What is still buffered goes nowhere, or it would raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (pl.exceptions.PolarsError, OSError) as error:
        # Further paragraphs tell how the call that we made could be changed.
        reason, *_ = str(error).split("\n\n")
        return _complain(f"cannot read {', '.join(options.files)}: {reason}")
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _complain(message: str) -> int:
    print(f"{_NAME}: {' '.join(message.split())}", file=sys.stderr)
    return _BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"python -m {_NAME}",
        description="Find the column that tells most about a target, and the rule.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="CSV, TSV, Parquet, IPC, NDJSON; also directories")
    add("--target", metavar="NAME", help=f"column to predict, or mark its header: {MARK}NAME")
    add("--features", type=_names, metavar="A,B", help="columns to test; all by default")
    add("--nominal", type=_names, default=(), metavar="A,B", help="columns to test by value")
    add("--ordered", type=_names, default=(), metavar="A,B", help="columns to test by interval")
    add("--weights", metavar="NAME", help="column of row weights")
    rule = parser.add_argument_group("the one rule")
    rule.add_argument(
        "--min-bucket",
        type=int,
        metavar="N",
        help="rows of its class that an interval needs (default: 6)",
    )
    rule.add_argument("--ties", choices=TIES, default="rare", help="which tied class wins")
    rule.add_argument("--choose", choices=CHOOSE, default="first", help="how the column is chosen")
    rule.add_argument(
        "--identifiers",
        choices=IDENTIFIERS,
        default="exclude",
        help="may a column be chosen most of whose values occur once",
    )
    rule.add_argument("--significance", action="store_true", help="add p-values (needs scipy)")
    split = parser.add_argument_group("the best splits")
    split.add_argument("--criterion", choices=CRITERIA, default="gini", help="what they lower")
    split.add_argument("--missing", choices=MISSING, default="best", help="where missing rows go")
    split.add_argument("--min-leaf", type=int, default=1, metavar="N", help="rows on each side")
    split.add_argument("--cut", choices=CUTS, default="value", help="the threshold to report")
    text = parser.add_argument_group("CSV")
    text.add_argument("--separator", metavar="C", help="between cells (default: , and tab in TSV)")
    text.add_argument(
        "--null",
        action="append",
        metavar="TEXT",
        help="cell that means missing, instead of NA; may be given again, '' for none",
    )
    output = parser.add_argument_group("running and output")
    output.add_argument("--json", action="store_true", help="a JSON document for each data set")
    output.add_argument(
        "--cases", type=int, default=20, metavar="N", help="cases to show of a column (default: 20)"
    )
    output.add_argument("--engine", choices=_NAMED_ENGINES, default="auto", help="Polars engine")
    output.add_argument("--progress", action="store_true", help="show rows done (needs tqdm)")
    return parser


def _names(text: str) -> tuple[str, ...]:
    """Read column names as CSV has them: a comma within a name needs double quotes around it."""
    (names,) = csv.reader([text], skipinitialspace=True)
    return tuple(names)


def _findings(options: argparse.Namespace) -> Iterator[_Finding]:
    if not options.files:
        target = options.target or weather.TARGET
        for kind, table in (("nominal", weather.nominal()), ("numeric", weather.numeric())):
            yield _learn(f"weather, {kind}", table.lazy(), target, _TEXTBOOKS_BUCKET, options)
        return
    texts = CsvOptions(options.separator, tuple(options.null or CsvOptions.missing))
    frame = scan(options.files, texts)
    target = options.target
    if target is None:
        marked = marked_target(frame.collect_schema())
        target = marked.removeprefix(MARK)
        frame = frame.rename({marked: target})
    yield _learn(", ".join(options.files), frame, target, _HOLTES_BUCKET, options)


def _learn(
    name: str, frame: pl.LazyFrame, target: str, bucket: int, options: argparse.Namespace
) -> _Finding:
    engine: Engine = options.engine
    roles = {
        "features": options.features,
        "nominal": options.nominal,
        "ordered": options.ordered,
        "weights": options.weights,
    }
    split = best_split(
        frame,
        target,
        criterion=options.criterion,
        missing=options.missing,
        min_leaf=options.min_leaf,
        cut=options.cut,
        ranking=True,
        engine=engine,
        progress=options.progress,
        **roles,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdentifierWarning)
        model = fit(
            frame,
            target,
            min_bucket=bucket if options.min_bucket is None else options.min_bucket,
            ties=options.ties,
            choose=options.choose,
            identifiers=options.identifiers,
            significance=options.significance,
            engine=engine,
            progress=options.progress,
            **roles,
        )
    assert split.ranking is not None, "it was asked for"
    notes = tuple(str(warning.message) for warning in caught)
    return _Finding(name, model, split.ranking, options.criterion, notes)


def _json(finding: _Finding) -> str:
    """Write all that the report says, and the whole model for `OneRule.from_dict`, in one line."""
    model = finding.model
    document = {
        "data": finding.name,
        "target": model.target,
        "n_rows": model.n_rows,
        "n_target_missing": model.n_target_missing,
        "class_counts": [
            {"class": name, "n": n}
            for name, n in zip(model.classes, model.class_counts, strict=True)
        ],
        "feature": model.feature,
        "notes": list(finding.notes),
        "ranking": model.ranking.to_dicts(),
        "rules": [
            {
                "feature": rule.feature,
                "n_correct": rule.n_correct,
                "n_rows": rule.n_rows,
                "cases": rule.to_frame()
                .select("condition", "prediction", "n_correct", "n_rows")
                .to_dicts(),
            }
            for rule in _by_rank(model)
        ],
        "splits": finding.splits.to_dicts(),
    }
    whole = {**{key: encode(value) for key, value in document.items()}, "model": model.to_dict()}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False)


def _text(finding: _Finding, most_cases: int) -> str:
    model = finding.model
    parts = [
        _heading(finding),
        "Each value or interval, its class, and how many of its rows have it:\n"
        + _columns(_cases(model, most_cases)),
        "Ranking of the columns by their rules:\n" + _columns(_ranking(model)),
        f"Best split of each column by {finding.criterion}:\n" + _columns(_splits(finding.splits)),
        "The one rule:\n" + str(model),
        *(f"Note: {note}" for note in finding.notes),
    ]
    return "\n\n".join(parts) + "\n"


def _heading(finding: _Finding) -> str:
    model = finding.model
    labels = report.value_texts(model.classes)
    counts = [f"{label} {n}" for label, n in zip(labels, model.class_counts, strict=True)]
    if len(counts) > _MOST_CLASSES:
        counts[_MOST_CLASSES:] = [f"and {len(counts) - _MOST_CLASSES} more classes"]
    left_out = f" ({model.n_target_missing} without a target left out)"
    return (
        f"{finding.name}: {model.n_rows} rows{left_out if model.n_target_missing else ''}\n"
        f"{report.text_of(model.target)}: {', '.join(counts)}; "
        f"always {report.value_texts(model.classes)[model.rules[0].default]} "
        f"is right in {_rate(model.baseline)}"
    )


def _cases(model: OneRule, most: int) -> Table:
    """List the rules as the textbook does, best column first."""
    rows: Table = [("column", "case", "class", "right", "in all")]
    for rule in _by_rank(model):
        shown = _rule_cases(rule)
        more = len(shown) - most
        if more > 0:
            shown[most:] = [(f"... {more} more", "", "")]
        first = (report.text_of(rule.feature), report.share(rule.n_correct, rule.n_rows))
        for name, total, case in zip(
            _once(first[0], len(shown)), _once(first[1], len(shown)), shown, strict=True
        ):
            rows.append((name, *case, total))
    return rows


def _once(text: str, n: int) -> list[str]:
    return [text, *[""] * (n - 1)]


def _rule_cases(rule: Rule) -> list[tuple[str, str, str]]:
    table = rule.to_frame()
    return [
        (_short(condition), label, report.share(n_correct, n_rows))
        for condition, label, n_correct, n_rows in zip(
            table["condition"],
            report.value_texts(table["prediction"]),
            table["n_correct"],
            table["n_rows"],
            strict=True,
        )
    ]


def _by_rank(model: OneRule) -> list[Rule]:
    rules = {rule.feature: rule for rule in model.rules}
    return [rules[name] for name in model.ranking["feature"] if name in rules]


def _ranking(model: OneRule) -> Table:
    tested = ("p_value", "p_adjusted")
    extra = [name for name in tested if name in model.ranking.columns]
    rows: Table = [("column", "cases", "errors", "accuracy", "leave one out", *extra, "")]
    for row in model.ranking.iter_rows(named=True):
        remark = "chosen" if row["chosen"] else "identifier" if row["identifier"] else row["reason"]
        rows.append(
            (
                report.text_of(row["feature"]),
                *("" if row[key] is None else str(row[key]) for key in ("n_cases", "n_errors")),
                *(_rate(row[key]) for key in ("accuracy", "loo_accuracy", *extra)),
                remark or "",
            )
        )
    return rows


def _splits(table: pl.DataFrame) -> Table:
    rows: Table = [("goes left", "score", "gain", "left", "right", "missing", "")]
    for row in table.iter_rows(named=True):
        goes = f" {row['missing_goes']}" if row["missing_goes"] else ""
        rows.append(
            (
                _short(row["condition"] or report.text_of(row["feature"])),
                _rate(row["score"]),
                _rate(row["gain"]),
                *("" if row[key] is None else str(row[key]) for key in ("n_left", "n_right")),
                f"{row['n_missing']}{goes}" if row["n_missing"] else "",
                row["reason"] or "",
            )
        )
    return rows


def _rate(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if 0 < abs(value) < _SMALLEST_PLAIN else f"{value:.4f}"


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST_CONDITION else text[: _WIDEST_CONDITION - 4] + " ..."


def _columns(rows: Table) -> str:
    """Lay out rows in columns, numbers to the right."""
    laid = []
    for cells in zip(*rows, strict=True):
        width = max(map(len, cells))
        numbers = all(not cell or cell.lstrip("-")[:1].isdigit() for cell in cells[1:])
        laid.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in cells])
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in zip(*laid, strict=True))
