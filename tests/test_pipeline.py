"""Pipelines as users build them: scan, filter, derive, learn, predict, sink; nothing is held on the way."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_oner as po
from polars_oner.typing import CRITERIA, CriterionName
from tests.plans import holds_python, nodes_that_hold_a_column

ENGINES: tuple[Literal["auto", "in-memory", "streaming"], ...] = ("auto", "in-memory", "streaming")


def sales(n: int = 6000) -> pl.DataFrame:
    generator = np.random.default_rng(0)
    price = np.round(generator.gamma(2.0, 20.0, n), 2)
    units = generator.integers(1, 9, n)
    store = generator.choice(["north", "south", "west"], n)
    late = generator.random(n) < np.where(price * units > 150, 0.7, 0.2)
    late |= (store == "west") & (generator.random(n) < 0.1)
    holes = pl.Series(generator.random(n) < 0.05)
    return pl.DataFrame(
        {"price": price, "units": units, "store": store, "late": late}
    ).with_columns(
        price=pl.when(~holes).then("price"),
        day=pl.date(2024, 1, 1) + pl.duration(days=pl.lit(pl.Series(generator.integers(0, 90, n)))),
        year=pl.Series(generator.integers(2022, 2025, n)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sales")
    for i, piece in enumerate(sales().iter_slices(2000)):
        piece.write_parquet(path / f"part{i}.parquet", row_group_size=500)
    return path


def prepared(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.filter(pl.col("year") >= 2023).with_columns(
        amount=pl.col("price") * pl.col("units")
    )


def test_from_many_files_to_a_sunk_prediction(folder: Path, tmp_path: Path) -> None:
    rows = prepared(pl.scan_parquet(folder / "*.parquet"))
    in_memory = prepared(sales().lazy()).collect()
    for learn in (po.best_split, po.fit, po.class_rules):
        model: Any = learn(rows, "late", ["amount", "units", "store"])
        again: Any = learn(in_memory, "late", ["amount", "units", "store"])
        assert repr(model) == repr(again)
        told = prepared(pl.scan_parquet(folder / "*.parquet")).with_columns(model.predict())
        assert not holds_python(told)
        assert nodes_that_hold_a_column(told) == []
        sink = tmp_path / "told.parquet"
        told.sink_parquet(sink, engine="streaming")
        sunk = pl.read_parquet(sink)
        assert sunk.schema["prediction"] == pl.Boolean
        assert_frame_equal(sunk, in_memory.with_columns(model.predict()), check_row_order=False)
        # Class rules with such ranges have many ties, which the commoner class wins.
        assert sunk["prediction"].n_unique() == (1 if isinstance(model, po.ClassRules) else 2)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_plans_of_tables_hold_no_python(folder: Path, criterion: CriterionName) -> None:
    rows = pl.scan_parquet(folder / "*.parquet")
    tables = [
        po.best_splits(rows, "late", criterion=criterion),
        po.best_splits(rows, "late", criterion=criterion, by="store", weights="units"),
        po.split_scores(rows, "late", "price", criterion=criterion),
        po.split_scores(rows, "late", "store", criterion=criterion, cut="midpoint"),
    ]
    for table in tables:
        assert not holds_python(table)
        assert table.collect_schema() == table.collect().schema


def test_plans_of_models_hold_no_python(folder: Path) -> None:
    rows = pl.scan_parquet(folder / "*.parquet")
    split = po.best_split(rows, "late")
    plans: list[pl.LazyFrame] = [
        po.predict(rows, split),
        po.predict(rows, po.fit(rows, "late")),
        po.predict(rows, po.class_rules(rows, "late")),
        po.evaluate(rows, split, "late"),
        po.confusion(rows, split, "late"),
        rows.select(split.predict(), split.goes_left()),
        rows.select(po.discretize(rows, "late", "price").expr()),
        rows.group_by("store").agg(
            pl.col("late").oner.gini(),  # type: ignore[attr-defined]
            best=pl.col("price").oner.best_split("late"),  # type: ignore[attr-defined]
        ),
    ]
    for plan in plans:
        assert not holds_python(plan)
    # The test can fail:
    doubled = pl.col("price").map_batches(lambda x: x * 2, return_dtype=pl.Float64)
    assert holds_python(rows.with_columns(doubled))


def test_predictions_reach_the_scan(folder: Path) -> None:
    rows = pl.scan_parquet(folder / "*.parquet")
    split = po.best_split(rows, "late", "units")
    plan = rows.filter(split.goes_left()).explain(engine="streaming")
    assert "SELECTION" in plan
    assert "FILTER" not in plan
    plan = rows.filter(split.predict()).explain(engine="streaming")
    assert "SELECTION" in plan
    assert "FILTER" not in plan


def test_only_what_a_model_uses_is_read(folder: Path) -> None:
    rows = pl.scan_parquet(folder / "*.parquet")
    split = po.best_split(rows, "late", "units")
    assert "PROJECT 1/6 COLUMNS" in rows.select(split.predict()).explain()
    assert "PROJECT 2/6 COLUMNS" in po.split_scores(rows, "late", "price").explain()


class Source:
    """Rows whose reads are counted, and the columns that were asked for."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.reads: list[list[str] | None] = []

    def scan(self) -> pl.LazyFrame:
        return register_io_source(self._read, schema=self.frame.schema)

    def _read(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        self.reads.append(with_columns)
        for piece in self.frame.iter_slices(1000):
            rows = piece if with_columns is None else piece.select(with_columns)
            yield rows if predicate is None else rows.filter(predicate)


def test_building_a_table_reads_nothing() -> None:
    source = Source(sales(500))
    tables: list[pl.LazyFrame] = [
        po.best_splits(source.scan(), "late"),
        po.best_splits(source.scan(), "late", criterion="std", by=["store", "year"]),
        po.split_scores(source.scan(), "late", "store"),
        po.rank(source.scan(), "late"),
    ]
    for table in tables:
        table.collect_schema()
    assert source.reads == []
    tables[2].collect()
    assert source.reads
    for columns in source.reads:
        assert columns is not None
        assert set(columns) <= {"store", "late"}


def test_errors_come_before_any_read() -> None:
    source = Source(sales(10))
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"target": "lat"}, po.MissingColumnError),
        ({"features": ["price", "price"]}, po.ColumnRoleError),
        ({"features": "late"}, po.ColumnRoleError),
        ({"criterion": "giny"}, po.OptionError),
        ({"criterion": "gini", "target": "price"}, po.DtypeError),
        ({"min_leaf": 0}, po.OptionError),
        ({"missing": "mean"}, po.OptionError),
        ({"cut": "middle"}, po.OptionError),
        ({"strategy": "fast"}, po.OptionError),
        ({"weights": "heft"}, po.MissingColumnError),
    ]
    for options, error in wrong:
        for learn in (po.best_splits, po.best_split):
            with pytest.raises(error):
                learn(source.scan(), **{"target": "late", **options})
    assert source.reads == []


def answers(frame: Any, engine: Any) -> tuple[object, ...]:
    table: Any = po.best_splits(frame, "late").lazy().collect(engine=engine)
    per_store: Any = po.best_splits(frame, "late", by="store").lazy().collect(engine=engine)
    scores: Any = po.split_scores(frame, "late", "price").lazy().collect(engine=engine)
    split = po.best_split(frame, "late", strategy="refine", engine=engine)
    return (table.rows(), per_store.rows(), scores.rows(), repr(split))


def test_results_depend_on_the_rows_alone(tmp_path: Path) -> None:
    """Neither row order, nor the number of files, nor row groups, nor the engine matter."""
    frame = sales(3000)
    expected = answers(frame, "auto")
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    frame.write_parquet(tmp_path / "one.parquet", row_group_size=3000)
    shuffled.write_parquet(tmp_path / "groups.parquet", row_group_size=77)
    (tmp_path / "many").mkdir()
    for i, piece in enumerate(shuffled.iter_slices(700)):
        piece.write_parquet(tmp_path / "many" / f"{9 - i}.parquet")
    for path in ("one.parquet", "groups.parquet", "many/*.parquet"):
        for engine in ENGINES:
            assert answers(pl.scan_parquet(tmp_path / path), engine) == expected


def test_expressions_work_where_the_library_is_not(folder: Path, tmp_path: Path) -> None:
    rows = pl.scan_parquet(folder / "*.parquet")
    models: list[Any] = [
        po.best_split(rows, "late", "store"),
        po.best_split(rows, "late", "price"),
        po.best_split(rows, "late", "day"),
        po.fit(rows, "late", "price"),
        po.class_rules(rows, "late"),
    ]
    for i, model in enumerate(models):
        (tmp_path / f"{i}.expr").write_bytes(model.predict().meta.serialize())
    code = f"""
        import sys, polars as pl
        for i in range({len(models)}):
            expr = pl.Expr.deserialize(open(rf"{tmp_path}/{{i}}.expr", "rb").read())
            rows = pl.scan_parquet(r"{folder}/*.parquet")
            rows.select(expr).sink_parquet(rf"{tmp_path}/{{i}}.parquet")
        assert "polars_oner" not in sys.modules
    """
    subprocess.run([sys.executable, "-I", "-c", textwrap.dedent(code)], check=True)
    for i, model in enumerate(models):
        told = pl.read_parquet(tmp_path / f"{i}.parquet")
        assert_frame_equal(told, rows.select(model.predict()).collect())


def test_scan_errors_pass_through(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(pl.exceptions.PolarsError):
        po.best_split(pl.scan_parquet(tmp_path / "broken.parquet"), "y")
    rows = pl.LazyFrame({"x": ["1", "two"], "y": [0, 1]}).with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="two"):
        po.best_split(rows, "y")
