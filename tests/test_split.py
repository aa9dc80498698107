"""`Split`: what it holds, how it predicts, and that it survives JSON."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import polars_oner as po

XS: list[tuple[pl.DataType, list[Any]]] = [
    (pl.Int8(), [-128, 0, 5, 127]),
    (pl.Int64(), [-(2**63), 2**53, 2**53 + 1, 2**63 - 1]),
    (pl.UInt64(), [0, 1, 2**64 - 2, 2**64 - 1]),
    (pl.Int128(), [-(2**100), 0, 2**100, 2**100 + 1]),
    (pl.Float64(), [-math.inf, -0.0, 0.1, math.inf]),
    (pl.Float32(), [-1.5, 0.1, 0.2, 3e38]),
    (pl.Decimal(38, 2), [Decimal("-1.25"), Decimal("0.10"), Decimal("0.11"), Decimal(10) ** 30]),
    (pl.Date(), [dt.date(2024, 1, d) for d in (1, 2, 3, 4)]),
    (pl.Datetime("us"), [dt.datetime(2024, 1, 1, 0, 0, 0, i) for i in range(4)]),
    (pl.Datetime("ms", "Europe/Berlin"), [dt.datetime(2024, 1, d) for d in (1, 2, 3, 4)]),
    (pl.Duration("us"), [dt.timedelta(microseconds=i) for i in (-5, 0, 1, 10**9)]),
    (pl.Time(), [dt.time(0, 0, 0, i) for i in range(4)]),
    (pl.Enum(["d", "c", "b", "a"]), ["d", "c", "b", "a"]),
    (pl.String(), ["a", "b", "é", ""]),
    (pl.Categorical(), ["z", "a", "m", "b"]),
]  # fmt: skip
YS: list[tuple[pl.DataType, list[Any]]] = [
    (pl.Boolean(), [False, False, True, True]),
    (pl.String(), ["no", "no", "yes", "yes"]),
    (pl.Enum(["z", "a", "never"]), ["a", "a", "z", "z"]),
    (pl.Categorical(), ["q", "q", "b", "b"]),
    (pl.Int8(), [5, 5, -5, -5]),
    (pl.UInt64(), [2**64 - 1, 2**64 - 1, 0, 0]),
    (pl.Date(), [dt.date(2024, 1, 1)] * 2 + [dt.date(2023, 1, 1)] * 2),
]
CASES = [pytest.param(*case, id=str(case[0])) for case in XS]


def learned(dtype: pl.DataType, values: list[Any], *, y: Any = None, **options: Any) -> Any:
    zone = getattr(dtype, "time_zone", None)
    x = pl.Series(values, dtype=pl.Datetime(dtype.time_unit)) if zone else None  # type: ignore[attr-defined]
    column = pl.Series(values, dtype=dtype) if x is None else x.dt.replace_time_zone(zone)
    frame = pl.DataFrame(
        {"x": column, "y": pl.Series(["no", "no", "yes", "yes"]) if y is None else y}
    )
    return frame, po.best_split(frame, "y", **options)


@pytest.mark.parametrize(("dtype", "values"), CASES)
@pytest.mark.parametrize("cut", ["value", "midpoint"])
def test_every_dtype_is_split_and_goes_through_json(
    dtype: pl.DataType, values: list[Any], cut: Any
) -> None:
    frame, split = learned(dtype, values, cut=cut)
    assert (split.n_left, split.n_right, split.score) == (2, 2, 0.0)
    again = po.Split.from_dict(json.loads(json.dumps(split.to_dict(), allow_nan=False)))
    for model in (split, again, copy.deepcopy(split), pickle.loads(pickle.dumps(split))):
        assert model == split
        assert repr(model) == repr(split)
        told = frame.select(model.predict(), model.goes_left())
        assert told["prediction"].to_list() == frame["y"].to_list()
        assert told["goes_left"].to_list() in (
            [True, True, False, False],
            [False, False, True, True],
        )
        assert model.threshold == split.threshold


@pytest.mark.parametrize(("dtype", "values"), [pytest.param(*c, id=str(c[0])) for c in YS])
def test_predictions_have_the_target_s_dtype(dtype: pl.DataType, values: list[Any]) -> None:
    y = pl.Series(values, dtype=dtype)
    frame, split = learned(pl.Int64(), [1, 2, 3, 4], y=y)
    again = po.Split.from_dict(json.loads(json.dumps(split.to_dict())))
    for model in (split, again):
        told = frame.select(model.predict("p"), model.expr())
        assert told.schema == {"p": dtype, "prediction": dtype}
        assert told["p"].to_list() == values


def test_a_number_target_is_predicted_by_means() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 4], "y": [1.0, 2.0, 10.0, 12.0]})
    split = po.best_split(frame, "y", criterion="variance")
    assert frame.select(split.predict())["prediction"].to_list() == [1.5, 1.5, 11.0, 11.0]
    single = frame.with_columns(pl.col("y").cast(pl.Float32))
    assert single.select(po.best_split(single, "y", criterion="std").predict()).schema == {
        "prediction": pl.Float32()
    }
    whole = frame.with_columns(pl.col("y").cast(pl.Int64))
    assert whole.select(po.best_split(whole, "y", criterion="std").predict()).schema == {
        "prediction": pl.Float64()
    }
    assert split.classes is None
    assert split.predict_proba() == {}


def test_exact_counts_and_derived_numbers() -> None:
    frame = pl.DataFrame({"x": [1, 2, None, 4, 5], "y": ["a", "a", "b", "b", None]})
    split = po.best_split(frame, "y")
    assert split.left is not None
    assert split.right is not None
    assert (split.left.counts, split.right.counts, split.root.counts) == ((2, 0), (0, 2), (2, 2))
    assert (split.n_missing, split.n_target_missing, split.missing_goes) == (1, 1, "right")
    assert (split.left_max, split.right_min, split.threshold) == (2, 4, 2)
    assert split.score == 0.0
    assert split.before == split.gain == 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.feature = "z"  # type: ignore[misc]


def test_missing_and_unseen_rows() -> None:
    frame = pl.DataFrame({"x": ["a", "b", "b", "a", None], "y": [0, 1, 1, 0, 1]})
    new = pl.DataFrame({"x": ["a", "b", "unseen", None]})
    split = po.best_split(frame, "y")
    assert split.missing_goes == "right"
    told = new.select(split.predict(), split.goes_left())
    assert told["prediction"].to_list() == [0, 1, 1, 1]
    assert told["goes_left"].to_list() == [True, False, None, False]
    # Missing rows without a side of their own get the default: the commonest class.
    none_missing = po.best_split(frame.head(4).vstack(frame.head(1)), "y")
    assert none_missing.missing_goes is None
    told = new.select(none_missing.predict(), none_missing.goes_left())
    assert told["prediction"].to_list() == [0, 1, 0, 0]
    assert told["goes_left"].to_list() == [True, False, None, None]
    dropped = po.best_split(frame, "y", missing="drop")
    assert new.select(dropped.predict())["prediction"].to_list() == [0, 1, 1, 1]


@pytest.mark.parametrize("missing", [None, math.nan])
def test_missing_floats(missing: float | None) -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, missing], "y": [0, 1, 1, 0]}, strict=False)
    split = po.best_split(frame, "y")
    assert split.missing_goes == "left"
    new = pl.DataFrame({"x": [None, math.nan, 1.5, math.inf, -math.inf]})
    assert split.threshold == 1.0
    assert new.select(split.goes_left())["goes_left"].to_list() == [True, True, False, False, True]
    assert new.select(split.predict())["prediction"].to_list()[:2] == [0, 0]


def test_missing_rows_apart() -> None:
    frame = pl.DataFrame({"x": [1, 2, None], "y": [0, 0, 1]})
    split = po.best_split(frame, "y")
    assert (split.threshold, split.neighbours, split.missing_goes) == (None, None, "right")
    new = pl.DataFrame({"x": [None, 99]})
    assert new.select(split.predict())["prediction"].to_list() == [1, 0]
    assert new.select(split.goes_left())["goes_left"].to_list() == [False, True]
    assert "x is not missing" in str(split)


def test_without_a_split_the_default_is_predicted() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1], "y": ["b", "a", "b"]})
    split = po.best_split(frame, "y")
    assert (split.feature, split.score, split.gain, split.threshold) == (None, None, None, None)
    assert (split.n_left, split.n_right) == (0, 0)
    assert frame.select(split.predict())["prediction"].to_list() == ["b"] * 3
    assert frame.select(split.goes_left())["goes_left"].to_list() == [None] * 3
    assert po.Split.from_dict(json.loads(json.dumps(split.to_dict()))) == split
    assert "no feature splits these rows" in str(split)
    assert split.to_frame().is_empty()


def test_equally_common_classes_go_by_class_order() -> None:
    frame = pl.DataFrame({"x": [1, 1, 2, 2, 2], "y": ["b", "a", "c", "c", "b"]})
    split = po.best_split(frame, "y")
    assert frame.select(split.predict())["prediction"].to_list()[0] == "a"


@pytest.mark.parametrize(
    ("dtype", "values", "wrong"),
    [
        (pl.Int64(), [1, 2, 3, 4], ["1", "2"]),
        (pl.Int64(), [1, 2, 3, 4], [True, False]),
        (pl.Float64(), [1.0, 2.0, 3.0, 4.0], [dt.date(2024, 1, 1)]),
        (pl.String(), ["a", "b", "c", "d"], [1, 2]),
        (pl.Date(), [dt.date(2024, 1, d) for d in (1, 2, 3, 4)], [dt.datetime(2024, 1, 1)]),
        (pl.Enum([*"abcd"]), [*"abcd"], ["a", "b"]),
    ],
)
def test_a_wrong_dtype_at_prediction_is_an_error(
    dtype: pl.DataType, values: list[Any], wrong: list[Any]
) -> None:
    _, split = learned(dtype, values)
    new = pl.DataFrame({"x": wrong})
    with pytest.raises(pl.exceptions.PolarsError):
        new.select(split.predict())
    with pytest.raises(po.DtypeError, match=r"column 'x' has dtype .+; cast the column before"):
        po.predict(new, split)
    with pytest.raises(po.MissingColumnError, match="column 'x' not found"):
        po.predict(pl.DataFrame({"z": [1]}), split)


def test_text_table_and_html() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, 4], "y": ["no", "no", "yes", "yes"]})
    split = po.best_split(frame, "y", cut="midpoint")
    assert "x <= 2.5" in str(split)
    assert "best split for y (4 rows)" in str(split)
    table = split.to_frame()
    assert table.select("condition", "n_rows").rows() == [("x <= 2.5", 2), ("x > 2.5", 2)]
    assert "&lt;= 2.5" in split._repr_html_()
    assert split.ranking is None
    ranked = po.best_split(frame, "y", ranking=True)
    assert ranked.ranking is not None
    assert ranked.ranking.equals(po.best_splits(frame, "y"))


@pytest.mark.parametrize("learn", [po.best_split, po.fit, po.class_rules])
def test_predicting_on_another_dtype_names_the_column(learn: Callable[..., Any]) -> None:
    model = learn(pl.DataFrame({"x": [1, 2, 3, 4], "y": ["a", "a", "b", "b"]}), "y")
    frame = pl.DataFrame({"x": ["1", "2"]})
    with pytest.raises(po.DtypeError, match=r"column 'x' has dtype String.*learned on Int64"):
        po.predict(frame, model)
    with pytest.raises(po.DtypeError, match=r"column 'x' has dtype String"):
        po.predict(frame.lazy(), model)


def test_text_is_no_weight() -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": ["a", "b"], "w": ["1", "2"]})
    with pytest.raises(po.WeightError, match="'w' has dtype String"):
        po.best_splits(frame, "y", weights="w")
