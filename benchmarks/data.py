"""Made-up data sets, written once as Parquet below ``benchmarks/data`` and used again.

Everything is drawn from fixed seeds, one per row group, so that a data set is the same wherever it is
made. Nothing is larger in memory than a row group while it is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER_VARIABLE = "POLARS_ONER_BENCHMARK_DATA"
"""Environment variable that names another folder for the data sets."""

DATA = Path(os.environ.get(FOLDER_VARIABLE, Path(__file__).parent / "data"))

VERSION = 1
"""Part of each data set's name: raise it when a recipe changes, and old files are not used."""

LEVELS = (3, 10, 30, 100, 300)
"""How many values the nominal columns have."""

SEGMENT_ROWS = 1_000
"""Rows per segment."""

Columns = dict[str, npt.NDArray[np.generic] | pa.Array]


@dataclass(frozen=True)
class Source:
    """A data set to measure on.

    Attributes
    ----------
    path
        Its folder of Parquet files.
    rows, columns
        Its size; ``columns`` counts the features.
    """

    path: Path
    rows: int
    columns: int

    @property
    def files(self) -> str:
        """The glob pattern of its files."""
        return str(self.path / "*.parquet")

    @property
    def features(self) -> list[str]:
        """The names of its number columns: ``x0``, ``x1``, ..."""
        return [f"x{j}" for j in range(self.columns)]

    def warm(self) -> None:
        """Read the files once, so that measuring starts from a warm page cache."""
        for file in self.path.glob("*.parquet"):
            with file.open("rb") as stream:
                while stream.read(1 << 24):
                    pass


def layout(rows: int, columns: int) -> tuple[int, int]:
    """Give the number of files and the rows of a row group.

    10 million rows of 20 columns lie in four files of five row groups; wide rows come in fewer.
    """
    group = min(max(rows // 20, 100_000), 1_000_000, max(100_000_000 // columns, 1))
    n_groups = max(-(-rows // group), 1)
    n_files = 1 if n_groups < 4 else max(4, n_groups // 10)
    return n_files, group


def numbers(rows: int, columns: int) -> Source:
    """Make ``columns`` float columns and a 0/1 target ``y``.

    Column ``x2`` (the last one, if there are fewer) tells much about the target, every fourth column a
    little, the others nothing; these are normal, uniform and lognormal in turn.
    """
    return _make("numbers", rows, columns, lambda rng, start, n: _numbers(rng, n, columns, ("y",)))


def targets(rows: int, columns: int) -> Source:
    """Make the columns of `numbers` with two more targets: ``k`` of ten classes, ``r`` a number."""
    return _make(
        "targets", rows, columns, lambda rng, start, n: _numbers(rng, n, columns, ("y", "k", "r"))
    )


def distinct(rows: int, columns: int) -> Source:
    """Make one column ``x0`` without a repeated value, and targets of 2 and 10 classes in waves."""
    order = np.random.default_rng(VERSION).permutation(rows)
    return _make("distinct", rows, columns, lambda rng, start, n: _waves(rng, order, start, n))


def ascending(rows: int, columns: int) -> Source:
    """Make the columns of `distinct` in ascending order."""
    order = np.arange(rows)
    return _make("ascending", rows, columns, lambda rng, start, n: _waves(rng, order, start, n))


def nominal(rows: int, columns: int) -> Source:
    """Make text columns ``s0`` to ``s4`` of few values, two number columns and a target of 3 classes.

    A text value's last digit tells something about the class.
    """

    def chunk(rng: np.random.Generator, start: int, n: int) -> Columns:
        label = rng.integers(0, 3, n)
        made: Columns = {"y": _text([f"class {i}" for i in range(3)], label)}
        for j, levels in enumerate(LEVELS):
            lean = rng.random(n) < 0.1 * j
            code = np.where(lean, label + 3 * rng.integers(0, levels // 3, n), 0)
            code = np.where(lean, code, rng.integers(0, levels, n))
            made[f"s{j}"] = _text([f"value {i}" for i in range(levels)], code)
        for j in range(columns):
            made[f"x{j}"] = rng.standard_normal(n) + label * j
        return made

    return _make("nominal", rows, columns, chunk)


def segments(rows: int, columns: int) -> Source:
    """Make segments of a thousand rows each, in no order, with a threshold of their own."""
    n_segments = max(rows // SEGMENT_ROWS, 1)
    shift = np.random.default_rng(VERSION).standard_normal(n_segments)

    def chunk(rng: np.random.Generator, start: int, n: int) -> Columns:
        store = rng.integers(0, n_segments, n)
        x = rng.standard_normal(n)
        y = (x > shift[store]) ^ (rng.random(n) < 0.2)
        return {"store": store.astype(np.int32), "x0": x, "y": y.astype(np.uint8)}

    return _make("segments", rows, columns, chunk)


def _waves(rng: np.random.Generator, order: npt.NDArray[np.int64], start: int, n: int) -> Columns:
    rank = order[start : start + n]
    # A value's place among the others, moved by less than the distance to its neighbours.
    x = rank + rng.uniform(0.0, 0.5, n)
    turn = rank / len(order)
    two = rng.random(n) < 0.5 + 0.4 * np.sin(40 * turn)
    ten = np.where(rng.random(n) < 0.5, (turn * 30).astype(np.int64), rng.integers(0, 10, n))
    return {"x0": x, "y": two.astype(np.uint8), "k": (ten % 10).astype(np.uint8)}


def _numbers(rng: np.random.Generator, n: int, columns: int, names: tuple[str, ...]) -> Columns:
    signal = rng.standard_normal(n)
    y = signal + rng.standard_normal(n) > 0.3
    k = np.clip(np.floor(2 * signal + 0.5 * rng.standard_normal(n)) + 5, 0, 9)
    r = 10 + 2 * signal + rng.standard_normal(n)
    made: Columns = {"y": y.astype(np.uint8), "k": k.astype(np.uint8), "r": r}
    made = {name: made[name] for name in names}
    for j in range(columns):
        made[f"x{j}"] = _feature(rng, signal, j, columns)
    return made


def _feature(
    rng: np.random.Generator, signal: npt.NDArray[np.float64], j: int, columns: int
) -> npt.NDArray[np.float64]:
    n = len(signal)
    if j == min(2, columns - 1):
        return signal + rng.standard_normal(n)
    if j % 4 == 1:
        return 0.1 * signal + rng.standard_normal(n)
    if j % 4 == 0:
        return rng.standard_normal(n)
    if j % 4 == 2:
        return rng.uniform(0.0, 100.0, n)
    return rng.lognormal(0.0, 1.0, n)


def _text(values: list[str], codes: npt.NDArray[np.int64]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values).cast(
        pa.string()
    )


def _make(
    name: str,
    rows: int,
    columns: int,
    chunk: Callable[[np.random.Generator, int, int], Columns],
) -> Source:
    """Write a data set unless it is there; a folder appears only when it is complete."""
    path = DATA / f"{name}-v{VERSION}-{rows}x{columns}"
    if not path.exists():
        n_files, group = layout(rows, columns)
        unfinished = path.with_name(path.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        starts = list(range(0, rows, group))
        for i in range(n_files):
            part = starts[i * len(starts) // n_files : (i + 1) * len(starts) // n_files]
            _write(unfinished / f"{i:03}.parquet", part, group, rows, chunk)
        unfinished.rename(path)
    return Source(path, rows, columns)


def _write(
    file: Path,
    starts: list[int],
    group: int,
    rows: int,
    chunk: Callable[[np.random.Generator, int, int], Columns],
) -> None:
    writer: pq.ParquetWriter | None = None
    for start in starts:
        n = min(group, rows - start)
        table = pa.table(chunk(np.random.default_rng([VERSION, start]), start, n))
        if writer is None:
            text = [field.name for field in table.schema if field.type == pa.string()]
            writer = pq.ParquetWriter(
                file, table.schema, compression="zstd", use_dictionary=text or False
            )
        writer.write_table(table, row_group_size=n)
    if writer is not None:
        writer.close()
