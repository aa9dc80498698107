"""Bound and refine gives the exhaustive answer, on every input, in few passes."""

from __future__ import annotations

import datetime as dt
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_oner as po
from polars_oner import binning, counts, refine, verdicts
from polars_oner.axis import Axis, Cells
from polars_oner.typing import CLASS_CRITERIA, MISSING, NUMBER_CRITERIA, STRATEGIES, CriterionName

ALL_CRITERIA = (*CLASS_CRITERIA, *NUMBER_CRITERIA)
TOLERANCE = 1e-9
ROUNDING = 1e-7


def in_batches(
    most: int, rows: pl.LazyFrame, consume: Callable[[pl.DataFrame], None], **options: Any
) -> None:
    """Run a pass in batches of a few rows."""

    def piece_by_piece(batch: pl.DataFrame) -> None:
        for piece in batch.iter_slices(most) if batch.height else [batch]:
            consume(piece)

    counts.shared_pass(rows, piece_by_piece, **options)


@contextmanager
def sizes(
    *,
    open_rows: int,
    n_bins: int,
    cached_rows: int,
    stack_rows: int,
    batch_rows: int = 1 << 12,
    block: int = 128,
) -> Iterator[None]:
    """Shrink the module's constants, so that small frames are divided, chunked and stacked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "_OPEN_ROWS", open_rows)
        patch.setattr(verdicts, "_STACK_ROWS", stack_rows)
        patch.setattr(refine, "shared_pass", partial(in_batches, batch_rows))
        patch.setattr(refine, "_BLOCK", block)
        patch.setattr(refine._Refinement, "_n_bins", lambda self: n_bins)
        patch.setattr(binning, "_CACHED_ROWS", cached_rows)
        patch.setattr(counts, "_PARTIAL_ROWS", 64)
        yield


@st.composite
def drawn_sizes(draw: st.DrawFn) -> dict[str, int]:
    return {
        "open_rows": draw(st.sampled_from([16, 64, 64, 1 << 22])),
        "n_bins": draw(st.sampled_from([8, 16, 64, 256])),
        "cached_rows": draw(st.sampled_from([3, 50, 1 << 15])),
        "stack_rows": draw(st.sampled_from([1, 40, 1 << 17])),
        "batch_rows": draw(st.sampled_from([7, 60, 1 << 12])),
        "block": draw(st.sampled_from([1, 2, 128])),
    }


# --- odd columns ---

Generator = np.random.Generator
SHAPES = (
    *("normal", "heavy", "lognormal", "zeros", "few", "distinct", "constant", "outlier"),
    *("extreme", "ends", "subnormal", "holes", "float32", "small", "beyond_2_53", "uint64"),
    *("int128", "seconds", "us", "ns", "ms", "date", "duration", "time", "decimal", "sorted"),
)


def shaped(shape: str, generator: Generator, n: int) -> pl.Series:
    """Make a feature that is hard to bin in its own way."""
    normal = generator.normal(size=n)
    steps = generator.integers(0, max(n, 2), n)
    seconds = 1_700_000_000 + np.sort(steps)
    makers: dict[str, Any] = {
        "normal": lambda: normal,
        "heavy": lambda: generator.standard_cauchy(n) ** 3,
        "lognormal": lambda: np.exp(5 * normal),
        "zeros": lambda: np.where(generator.random(n) < 0.99, 0.0, normal),
        "few": lambda: generator.integers(0, 5, n).astype(float),
        "distinct": lambda: generator.permutation(n),
        "constant": lambda: np.full(n, 3.0),
        "outlier": lambda: np.where(np.arange(n) == n // 2, 1e300, normal),
        "extreme": lambda: generator.choice([-1.7e308, 1.7e308, 1e300, 0.5, -0.5, 3.0], n),
        "ends": lambda: generator.choice([-np.inf, np.inf, -0.0, 0.0, 1.0, -1.0], n),
        "subnormal": lambda: generator.choice([-0.0, 0.0, 5e-324, -5e-324, 1e-323, 1.0], n),
        "holes": lambda: np.where(generator.random(n) < 0.3, np.nan, np.where(steps < 9, -0.0, normal)),
        "float32": lambda: normal.astype(np.float32),
        "small": lambda: generator.integers(-128, 128, n).astype(np.int8),
        "beyond_2_53": lambda: 2**53 + generator.integers(0, 40, n) * generator.choice([1, 2**9], n),
        "uint64": lambda: np.uint64(2**64 - 1) - generator.integers(0, 60, n).astype(np.uint64),
        "int128": lambda: pl.Series([2**90 + int(i) % 50 for i in steps], dtype=pl.Int128),
        "seconds": lambda: seconds,
        "us": lambda: pl.Series(seconds * 1_000_000 + steps).cast(pl.Datetime("us", "UTC")),
        "ns": lambda: pl.Series(seconds * 1_000_000_000 + steps).cast(pl.Datetime("ns")),
        "ms": lambda: pl.Series(steps - 3).cast(pl.Datetime("ms")),
        "date": lambda: pl.Series(steps - 9).cast(pl.Int32).cast(pl.Date),
        "duration": lambda: pl.Series((steps - 5) * 10**15).cast(pl.Duration("ns")),
        "time": lambda: pl.Series(steps * 1001).cast(pl.Time),
        "decimal": lambda: pl.Series([Decimal(int(i)) / 100 for i in steps], dtype=pl.Decimal(30, 2)),
        "sorted": lambda: np.sort(normal) * 1e-5 - 7,
    }  # fmt: skip
    return pl.Series(makers[shape]())


def with_nulls(values: pl.Series, share: float, generator: Generator) -> pl.Series:
    keep = pl.Series(generator.random(len(values)) >= share)
    return pl.select(pl.when(keep).then(values)).to_series()


def class_labels(kind: str, x: pl.Series, n_classes: int, generator: Generator) -> pl.Series:
    n = len(x)
    rank = x.to_physical().cast(pl.Float64).fill_nan(None).rank("ordinal").fill_null(0).to_numpy()
    labels = {
        "random": generator.integers(0, n_classes, n),
        "signal": np.where(generator.random(n) < 0.7, rank * n_classes // (n + 1), 0),
        "alternating": rank % n_classes,
        "rare": (generator.random(n) < 0.03).astype(int) * (n_classes - 1),
        "missing": x.is_null().to_numpy().astype(int),
    }[kind]
    return pl.Series(labels.astype(np.int64))


def number_target(kind: str, x: pl.Series, generator: Generator) -> pl.Series:
    n = len(x)
    rank = x.to_physical().cast(pl.Float64).fill_nan(None).rank("ordinal").fill_null(0).to_numpy()
    step = (rank > n * 0.6) * 2.0
    noise = generator.normal(size=n)
    values: Any = {
        "random": noise,
        "signal": step + noise,
        "alternating": rank % 2,
        "rare": (generator.random(n) < 0.03) * 1e6,
        "far": 1e9 + step + noise,
        "counts": generator.poisson(3, n),
    }[kind]
    return pl.Series(values)


@st.composite
def problems(draw: st.DrawFn) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Draw a frame with a few odd features, and the options of a search."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([2, 5, 30, 100, 250]))
    criterion = draw(st.sampled_from(ALL_CRITERIA))
    columns: dict[str, pl.Series] = {}
    for i, shape in enumerate(draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))):
        share = draw(st.sampled_from([0.0, 0.1, 0.6]))
        columns[f"f{i}"] = with_nulls(shaped(shape, generator, n), share, generator)
    signal = columns[f"f{draw(st.integers(0, len(columns) - 1))}"]
    if draw(st.booleans()):
        columns["name"] = pl.Series(generator.choice([*"abcdef"], n).tolist())
    if criterion in CLASS_CRITERIA:
        kind = draw(st.sampled_from(["random", "signal", "alternating", "rare", "missing"]))
        columns["y"] = class_labels(kind, signal, draw(st.integers(1, 6)), generator)
    else:
        kind = draw(st.sampled_from(["random", "signal", "alternating", "rare", "far", "counts"]))
        columns["y"] = number_target(kind, signal, generator)
    if draw(st.booleans()):
        columns["y"] = with_nulls(columns["y"], 0.1, generator)
        columns["y"][0] = 1
    options: dict[str, Any] = {
        "criterion": criterion,
        "missing": draw(st.sampled_from(MISSING)),
        "min_leaf": draw(st.sampled_from([1, 1, 3, 50])),
    }
    # No order of addition changes sums of whole numbers, or of quarters.
    weights = draw(st.sampled_from([None, "whole", "quarters"]))
    if weights is not None:
        whole = generator.integers(0, 4, n)
        whole[0] = 2
        columns["w"] = pl.Series(whole if weights == "whole" else whole * 0.25)
        options["weights"] = "w"
    return pl.DataFrame(columns), options


def summary(split: po.Split) -> tuple[object, ...]:
    neighbours = None if split.neighbours is None else split.neighbours.to_list()
    left = None if split.left_values is None else split.left_values.to_list()
    return (split.feature, neighbours, left, split.missing_goes)


def same_table(exhaustive: pl.DataFrame, refined: pl.DataFrame, *, exact: bool) -> None:
    if exact:
        assert_frame_equal(exhaustive, refined, check_exact=True)
        return
    numbers = [name for name, dtype in exhaustive.schema.items() if dtype.is_float()]
    assert_frame_equal(exhaustive.drop(numbers), refined.drop(numbers))
    # Sums are rounded by the spread of the whole target, whatever that of a side is.
    before = exhaustive.select((pl.col("score") + pl.col("gain")).max()).item() or 0.0
    absolute = TOLERANCE + ROUNDING * before
    assert_frame_equal(
        exhaustive.select(numbers), refined.select(numbers), rel_tol=TOLERANCE, abs_tol=absolute
    )


def same_split(exhaustive: po.Split, refined: po.Split, *, exact: bool) -> None:
    assert summary(exhaustive) == summary(refined)
    spread = 0.0 if exact else ROUNDING * (exhaustive.before or 0.0)
    for one, other in ((exhaustive.left, refined.left), (exhaustive.right, refined.right)):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.n_rows == other.n_rows
            assert one.counts == other.counts
            if one.mean is not None:
                assert one.mean == pytest.approx(other.mean, rel=TOLERANCE, abs=TOLERANCE + spread)
    if exact:
        assert (exhaustive.score, exhaustive.before) == (refined.score, refined.before)
    elif exhaustive.score is not None:
        near = pytest.approx(refined.score, rel=TOLERANCE, abs=TOLERANCE + spread)
        assert exhaustive.score == near


@given(problem=problems(), small=drawn_sizes())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_column_is_as_by_exhaustion(
    problem: tuple[pl.DataFrame, dict[str, Any]], small: dict[str, int]
) -> None:
    frame, options = problem
    exhaustive = po.best_splits(frame, "y", strategy="exhaustive", **options)
    with sizes(**small):
        refined = po.best_splits(frame, "y", strategy="refine", **options)
    same_table(exhaustive, refined, exact=options["criterion"] in CLASS_CRITERIA)


@given(problem=problems(), small=drawn_sizes(), lazy=st.booleans())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_best_of_all_is_as_by_exhaustion(
    problem: tuple[pl.DataFrame, dict[str, Any]], small: dict[str, int], lazy: bool
) -> None:
    frame, options = problem
    rows: Any = frame.lazy() if lazy else frame
    exhaustive = po.best_split(frame, "y", strategy="exhaustive", **options)
    with sizes(**small):
        refined = po.best_split(rows, "y", strategy="refine", **options)
    same_split(exhaustive, refined, exact=options["criterion"] in CLASS_CRITERIA)


@pytest.mark.parametrize("criterion", ALL_CRITERIA)
def test_every_shape_at_once(criterion: CriterionName) -> None:
    generator = np.random.default_rng(5)
    n = 300
    columns = {shape: with_nulls(shaped(shape, generator, n), 0.05, generator) for shape in SHAPES}
    by_class = criterion in CLASS_CRITERIA
    y = (
        class_labels("signal", columns["lognormal"], 3, generator)
        if by_class
        else number_target("signal", columns["lognormal"], generator)
    )
    frame = pl.DataFrame({**columns, "y": y})
    exhaustive = po.best_splits(frame, "y", criterion=criterion, strategy="exhaustive")
    with sizes(open_rows=1000, n_bins=64, cached_rows=50, stack_rows=500):
        refined = po.best_splits(frame, "y", criterion=criterion, strategy="refine")
    same_table(exhaustive, refined, exact=by_class)


@pytest.mark.parametrize("criterion", ALL_CRITERIA)
def test_a_target_that_defeats_the_pruning(criterion: CriterionName) -> None:
    n = 1500
    frame = pl.DataFrame({"x": np.arange(n) * 0.1, "z": -np.arange(n), "y": np.arange(n) % 2})
    exhaustive = po.best_splits(frame, "y", criterion=criterion, strategy="exhaustive")
    with sizes(open_rows=100, n_bins=64, cached_rows=50, stack_rows=1 << 17):
        refined = po.best_splits(frame, "y", criterion=criterion, strategy="refine")
    same_table(exhaustive, refined, exact=criterion in CLASS_CRITERIA)


@pytest.mark.parametrize("n_features", [1, 3])
def test_a_leaf_larger_than_the_frame(n_features: int) -> None:
    columns = {f"f{i}": np.arange(40.0) + i for i in range(n_features)}
    frame = pl.DataFrame({**columns, "y": np.arange(40) % 3})
    for strategy in STRATEGIES:
        table = po.best_splits(frame, "y", min_leaf=30, strategy=strategy)
        assert table["score"].to_list() == [None] * n_features
        assert set(table["reason"]) == {"no split leaves 30 rows on each side"}
        split = po.best_split(frame, "y", min_leaf=30, strategy=strategy)
        assert split.feature is None


def test_many_classes_are_counted_by_value() -> None:
    frame = pl.DataFrame({"x": np.arange(200.0), "y": np.arange(200) // 2})
    exhaustive, refined = (
        po.best_splits(frame, "y", strategy=strategy) for strategy in ("exhaustive", "refine")
    )
    assert_frame_equal(exhaustive, refined, check_exact=True)


def test_the_first_batch_may_mislead_the_choice_of_bins() -> None:
    # The bins are chosen by what comes first: here missing values, then a far corner of the axis.
    for head in ([None] * 200, [1e-9 * i for i in range(200)], [1e12] * 200):
        x = [*head, *np.random.default_rng(0).normal(size=600).tolist()]
        frame = pl.DataFrame({"x": x}).with_columns(
            y=(pl.col("x").fill_null(9) > 0.2) ^ (pl.int_range(pl.len()) % 7 == 0)
        )
        exhaustive = po.best_splits(frame, "y", strategy="exhaustive")
        with sizes(open_rows=50, n_bins=16, cached_rows=50, stack_rows=1 << 17, batch_rows=100):
            refined = po.best_splits(frame, "y", strategy="refine")
        assert_frame_equal(exhaustive, refined, check_exact=True)


# --- passes over a source ---


class Source:
    """A counting source of rows that lie nowhere: each read makes them anew, batch by batch."""

    def __init__(self, frame: pl.DataFrame, batch: int = 1000, fail_at: int | None = None) -> None:
        self.frame = frame
        self.batch = batch
        self.fail_at = fail_at
        self.n_reads = 0
        self.n_batches = 0
        self.columns: list[list[str] | None] = []

    def scan(self) -> pl.LazyFrame:
        return register_io_source(self._read, schema=self.frame.schema)

    def _read(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        self.n_reads += 1
        self.columns.append(with_columns)
        for piece in self.frame.iter_slices(self.batch):
            self.n_batches += 1
            rows = piece if with_columns is None else piece.select(with_columns)
            yield rows if predicate is None else rows.filter(predicate)


def wide(n: int, n_features: int) -> pl.DataFrame:
    generator = np.random.default_rng(n_features)
    y = generator.integers(0, 2, n)
    columns = {f"f{i}": generator.normal(size=n) + y * 0.3 * (i % 3) for i in range(n_features)}
    return pl.DataFrame({**columns, "name": generator.choice([*"abc"], n).tolist(), "y": y})


@pytest.mark.parametrize("n_features", [1, 4, 25])
@pytest.mark.parametrize("criterion", ["gini", "variance"])
def test_three_passes_whatever_the_number_of_features(
    n_features: int, criterion: CriterionName
) -> None:
    frame = wide(20_000, n_features)
    source = Source(frame)
    refined = po.best_split(source.scan(), "y", criterion=criterion, strategy="refine")
    assert source.n_reads <= 3
    exhaustive = po.best_split(frame, "y", criterion=criterion, strategy="exhaustive")
    same_split(exhaustive, refined, exact=criterion == "gini")


def test_exhaustion_takes_two_passes() -> None:
    source = Source(wide(3000, 5))
    po.best_split(source.scan(), "y", strategy="exhaustive")
    assert source.n_reads == 2


def test_auto_refines_large_frames_only(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = wide(3000, 3)
    passes: list[int] = []
    run = refine._Refinement.run

    def noted(self: Any, **how: Any) -> Any:
        passes.append(1)
        return run(self, **how)

    monkeypatch.setattr(refine._Refinement, "run", noted)
    whole = po.best_split(frame, "y")
    assert not passes
    monkeypatch.setattr(refine, "_FEW_ROWS", 2999)
    assert repr(po.best_split(frame, "y")) == repr(whole)
    assert passes


@pytest.mark.parametrize("criterion", ["gini", "error"])
@pytest.mark.parametrize("crowded", [False, True])
def test_what_a_pass_holds_is_bounded(
    monkeypatch: pytest.MonkeyPatch, criterion: CriterionName, crowded: bool
) -> None:
    """No pass by value counts more than it may: neither of bins that stay open, nor of one bin."""
    n, most = 3000, 256
    # The first batch tells nothing of where the others crowd together.
    x = [*[None] * 200, *(1.7e15 + i for i in range(n))] if crowded else np.arange(n + 200) * 0.1
    frame = pl.DataFrame({"x": x}).with_columns(y=pl.int_range(pl.len()) % 2)
    counted: list[int] = []
    kept: list[int] = []
    take, lump = Axis.take, refine._Refinement._lump

    def take_noted(self: Axis, runs: Cells, values: pl.DataFrame) -> None:
        counted.append(int(values["n"].sum()))
        take(self, runs, values)

    def lump_noted(self: refine._Refinement, axes: list[Axis]) -> None:
        lump(self, axes)
        kept.extend(table.height for axis in axes for table in axis.values)

    monkeypatch.setattr(Axis, "take", take_noted)
    monkeypatch.setattr(refine._Refinement, "_lump", lump_noted)
    with sizes(open_rows=most, n_bins=16, cached_rows=50, stack_rows=1 << 17, batch_rows=100):
        refined = po.best_splits(frame, "y", criterion=criterion, strategy="refine")
    assert max(counted) <= 1.25 * most
    if criterion == "error":  # nearly every cut is as good as the best
        assert len(counted) > 10
        assert max(kept) <= 24 * len(counted)
    assert_frame_equal(
        refined, po.best_splits(frame, "y", criterion=criterion, strategy="exhaustive")
    )


# --- progress and interruption ---


def test_progress_counts_the_rows_of_each_pass(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    frame = wide(4000, 3)
    quiet = po.best_split(frame.lazy(), "y", strategy="refine")
    assert capsys.readouterr().err == ""
    shown = po.best_split(frame.lazy(), "y", strategy="refine", progress=True)
    assert repr(quiet) == repr(shown)
    lines = capsys.readouterr().err
    assert "counting bins" in lines
    assert "4.00k/4.00k" in lines


def test_progress_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(po.MissingPackageError, match=r"pip install 'polars_oner\[progress\]'"):
        po.best_split(wide(100, 2).lazy(), "y", strategy="refine", progress=True)


def temporary_files() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("*polars*"))


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to itself")
def test_ctrl_c_returns_promptly() -> None:
    frame = wide(400_000, 8)
    before = temporary_files()
    source = Source(frame, batch=500)  # each pass takes a while
    stopped: list[float] = []

    def interrupt() -> None:
        while source.n_reads < 2:
            time.sleep(0.001)
        stopped.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        po.best_split(source.scan(), "y", strategy="refine")
    watcher.join()
    assert time.monotonic() - stopped[0] < 2
    time.sleep(0.1)
    n_batches = source.n_batches
    time.sleep(0.2)
    assert source.n_batches == n_batches  # nothing reads on behind the scenes
    assert temporary_files() == before


def test_an_interrupt_inside_a_batch_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = wide(5000, 4)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    whole = po.best_split(frame, "y", strategy="refine")
    with monkeypatch.context() as patch:
        patch.setattr(refine._Refinement, "_add", stop)
        with pytest.raises(KeyboardInterrupt):
            po.best_split(frame.lazy(), "y", strategy="refine")
    # And nothing is left in the way of the next search.
    assert repr(po.best_split(frame.lazy(), "y", strategy="refine")) == repr(whole)


# --- what the chunks are ---


def test_dates_and_times_keep_their_unit() -> None:
    start = dt.datetime(2024, 1, 1)
    x = [start + dt.timedelta(microseconds=i) for i in range(100)]
    frame = pl.DataFrame({"x": x, "y": [i >= 61 for i in range(100)]})
    split = po.best_split(frame, "y", strategy="refine")
    assert (split.left_max, split.right_min) == (x[60], x[61])
    assert split.score == 0


def test_integers_that_share_a_float_are_told_apart() -> None:
    x = [2**62 + i for i in range(100)]
    assert len({float(value) for value in x}) == 1
    for dtype in (pl.Int64, pl.UInt64, pl.Int128):
        frame = pl.DataFrame({"x": pl.Series(x, dtype=dtype), "y": [i >= 37 for i in range(100)]})
        with sizes(open_rows=10, n_bins=16, cached_rows=50, stack_rows=1 << 17):
            split = po.best_split(frame, "y", strategy="refine")
        assert (split.left_max, split.right_min) == (x[36], x[37])
        assert math.isclose(split.score or 0.0, 0.0)


def test_whole_weights_are_added_up_exactly() -> None:
    generator = np.random.default_rng(0)
    frame = wide(3000, 2).with_columns(w=pl.Series(generator.integers(0, 2**50, 3000)))
    exhaustive, refined = (
        po.best_splits(frame, "y", ["f0", "f1"], weights="w", strategy=strategy)
        for strategy in ("exhaustive", "refine")
    )
    assert_frame_equal(refined, exhaustive)


def test_many_classes_are_as_by_exhaustion() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=20_000)
    y = (5 * x + 3 * generator.normal(size=len(x))).round().astype(int) % 50
    frame = pl.DataFrame({"x": x, "y": y})
    with sizes(open_rows=1 << 22, n_bins=4096, cached_rows=1 << 15, stack_rows=1 << 17):
        refined = po.best_splits(frame, "y", strategy="refine")
    assert_frame_equal(refined, po.best_splits(frame, "y", strategy="exhaustive"))
