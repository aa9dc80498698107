"""Files named on the command line become one lazy frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import polars as pl

from polars_oner.errors import OneRError, OptionError, quoted

MARK = "*"
"""A column whose header starts with this is the target."""

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
_SEPARATORS = {"csv": ",", "tsv": "\t"}
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class CsvOptions:
    """How text files are read; the other formats say for themselves what a cell holds.

    Attributes
    ----------
    separator
        The character between cells; the file's own kind decides when None.
    missing
        Cells that mean "missing", beside empty ones.
    """

    separator: str | None = None
    missing: tuple[str, ...] = ("NA",)

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise OptionError.from_range("separator", self.separator, "one ASCII character")


def scan(names: Sequence[str], csv: CsvOptions) -> pl.LazyFrame:
    """Open files, directories and patterns as one data set; only its schema is read.

    Parameters
    ----------
    names
        Files in one format: CSV or TSV (also compressed), Parquet, IPC (Arrow) or NDJSON, told by
        their suffix. A directory stands for all such files in it and below; Parquet below folders
        such as ``month=1`` gets the column ``month``. Patterns are expanded.
    csv
        How text is read. The dtypes of CSV and NDJSON columns are those that every row of every
        file fits, so text is read once more for them; dates are recognised.

    Raises
    ------
    OneRError
        A name leads to no file, a suffix is unknown, or the files are of several formats.
    """
    files = [file for name in names for file in _files(name)]
    formats = {_format(file): file for file in files}
    if len(formats) > 1:
        msg = f"one data set has one format, but {quoted(map(str, formats.values()))} differ"
        raise OneRError(msg)
    (kind,) = formats
    if kind == "parquet":
        below_folders = any(Path(name).is_dir() for name in names)
        return pl.scan_parquet(files, hive_partitioning=below_folders, glob=False)
    if kind == "ipc":
        return pl.scan_ipc(files, glob=False)
    if kind == "ndjson":
        return pl.scan_ndjson(files, infer_schema_length=None)
    return pl.scan_csv(
        files,
        separator=csv.separator or _SEPARATORS[kind],
        null_values=["", *csv.missing],
        try_parse_dates=True,
        infer_schema_length=None,
        glob=False,
    )


def marked_target(schema: pl.Schema) -> str:
    """Find the one column whose header starts with ``*``.

    Raises
    ------
    OneRError
        There is none, or several.
    """
    marked = [name for name in schema if name.startswith(MARK)]
    if len(marked) == 1:
        return marked[0]
    found = f"{quoted(marked)} all start with {MARK}" if marked else f"found {quoted(schema)}"
    msg = f"name the target: --target NAME, or one header that starts with {MARK}; {found}"
    raise OneRError(msg)


def _files(name: str) -> list[Path]:
    """List the files that one name stands for, in a fixed order."""
    path = Path(name)
    if path.is_dir():
        files = sorted(
            file for file in path.rglob("*") if file.is_file() and _suffix(file) in _FORMATS
        )
        if not files:
            msg = f"directory {name!r} holds no file of a known kind: {quoted(_FORMATS)}"
            raise OneRError(msg)
        return files
    if path.exists():
        return [path]
    matches = sorted(glob(name, recursive=True))
    if not matches:
        msg = f"no such file: {name!r}"
        raise OneRError(msg)
    return [file for match in matches for file in _files(match)]


def _format(file: Path) -> str:
    suffix = _suffix(file)
    if suffix not in _FORMATS:
        msg = f"cannot tell the format of {str(file)!r}; known are {quoted(_FORMATS)}"
        raise OneRError(msg)
    return _FORMATS[suffix]


def _suffix(file: Path) -> str:
    """Tell what a file is by its name: the last suffix, or the one before that of compressed text."""
    suffix = file.suffix.lower()
    return Path(file.stem).suffix.lower() if suffix in _COMPRESSED else suffix
