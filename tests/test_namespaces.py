"""The methods behind ``.oner`` mirror the functions, and registering them is quiet."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_oner
from polars_oner import impurity
from polars_oner.class_rules import class_rules
from polars_oner.discretization import discretize
from polars_oner.evaluation import class_report, confusion, evaluate
from polars_oner.namespaces import ExprNamespace, FrameNamespace
from polars_oner.prediction import predict
from polars_oner.ranking import fit, rank
from polars_oner.significance import split_significance
from polars_oner.splits import best_split, best_splits, split_scores
from polars_oner.validation import cross_validate
from tests.textbook import NUMERIC

FRAME_FUNCTIONS: list[Callable[..., Any]] = [
    split_scores,
    best_splits,
    best_split,
    split_significance,
    rank,
    fit,
    cross_validate,
    class_rules,
    discretize,
    evaluate,
    class_report,
    confusion,
    predict,
]
EXPR_FUNCTIONS: list[Callable[..., Any]] = [
    impurity.gini,
    impurity.entropy,
    impurity.error_rate,
    impurity.std_score,
    impurity.best_split,
]
PAIRS = [(function, FrameNamespace) for function in FRAME_FUNCTIONS] + [
    (function, ExprNamespace) for function in EXPR_FUNCTIONS
]


def name_of(value: Any) -> str | None:
    return getattr(value, "__name__", None)


def in_process(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("function", "namespace"), PAIRS, ids=name_of)
def test_a_method_has_its_functions_signature_and_docs(
    function: Callable[..., Any], namespace: type
) -> None:
    method = getattr(namespace, function.__name__)
    (_, *of_function), (_, *of_method) = (
        inspect.signature(each).parameters.values() for each in (function, method)
    )
    assert of_function == of_method
    assert inspect.signature(function).return_annotation == (
        inspect.signature(method).return_annotation
    )
    assert method.__doc__ == function.__doc__


def test_there_are_no_other_methods() -> None:
    for namespace, functions in (
        (FrameNamespace, FRAME_FUNCTIONS),
        (ExprNamespace, EXPR_FUNCTIONS),
    ):
        methods = {name for name in vars(namespace) if not name.startswith("_")}
        assert methods == {function.__name__ for function in functions}


def test_every_public_function_of_a_frame_has_a_method() -> None:
    public = {
        name
        for name in getattr(polars_oner, "__all__", ())
        if inspect.isfunction(function := getattr(polars_oner, name))
        and next(iter(inspect.signature(function).parameters), "") == "frame"
    }
    assert public <= {function.__name__ for function in FRAME_FUNCTIONS}


@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_methods_give_what_functions_give(kind: str) -> None:
    frame: Any = pl.DataFrame(NUMERIC) if kind == "eager" else pl.LazyFrame(NUMERIC)
    model = fit(frame, "play", "humidity")
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "split_scores": (("play", "humidity"), {"criterion": "entropy", "min_leaf": 2}),
        "best_splits": (("play",), {"criterion": "error", "cut": "midpoint"}),
        "best_split": (("play", ["humidity", "windy"]), {"missing": "drop"}),
        "split_significance": (("play",), {"criterion": "entropy"}),
        "rank": (("play",), {"min_bucket": 3}),
        "fit": (("play",), {"ties": "first"}),
        "cross_validate": (("play",), {"folds": 3, "bins": "1r"}),
        "class_rules": (("play",), {"ties": "first", "nominal": ["humidity"]}),
        "discretize": (("play", "humidity"), {"min_bucket": 3}),
        "evaluate": ((model,), {"by": "windy"}),
        "class_report": ((model, "play"), {}),
        "confusion": ((model,), {}),
        "predict": ((model,), {"name": "told"}),
    }
    assert set(calls) == {function.__name__ for function in FRAME_FUNCTIONS}
    for function in FRAME_FUNCTIONS:
        positional, keywords = calls[function.__name__]
        expected = function(frame, *positional, **keywords)
        found = getattr(frame.oner, function.__name__)(*positional, **keywords)
        if isinstance(expected, pl.DataFrame | pl.LazyFrame):
            assert type(found) is type(expected)
            assert_frame_equal(found, expected, check_row_order=False)
        else:
            assert found == expected


def test_expressions_give_what_functions_give() -> None:
    frame = pl.DataFrame(NUMERIC)
    play: Any = pl.col("play")
    windy: Any = pl.col("windy")
    humidity: Any = pl.col("humidity")
    pairs = [
        (play.oner.gini(by="outlook"), impurity.gini("play", by="outlook")),
        (play.oner.entropy(by=pl.col("windy")), impurity.entropy("play", by="windy")),
        (play.oner.error_rate(), impurity.error_rate("play")),
        (windy.oner.std_score(), impurity.std_score("windy")),
        (
            humidity.oner.best_split("play", criterion="entropy", min_leaf=2),
            impurity.best_split("humidity", "play", criterion="entropy", min_leaf=2),
        ),
    ]
    for found, expected in pairs:
        assert_frame_equal(frame.select(found), frame.select(expected))
        assert_frame_equal(
            frame.group_by("outlook").agg(found), frame.group_by("outlook").agg(expected),
            check_row_order=False,
        )  # fmt: skip


def test_predict_names_a_missing_column() -> None:
    frame = pl.DataFrame(NUMERIC)
    model = fit(frame, "play", "humidity")
    renamed = frame.rename({"humidity": "Humidity"})
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="did you mean 'Humidity'"):
        predict(renamed, model)
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="did you mean 'Humidity'"):
        predict(renamed.lazy(), model)


def test_registering_again_is_silent() -> None:
    told = in_process(
        "import importlib, warnings\n"
        "warnings.simplefilter('error')\n"
        "import polars as pl, polars_oner.namespaces\n"
        "importlib.reload(polars_oner.namespaces)\n"
        "assert pl.DataFrame().oner and pl.LazyFrame().oner and pl.col('x').oner\n"
    )
    assert told.returncode == 0, told.stderr


def test_a_foreign_owner_is_named_once() -> None:
    told = in_process(
        "import warnings\n"
        "import polars as pl\n"
        "class Other:\n"
        "    def __init__(self, inner): pass\n"
        "pl.api.register_dataframe_namespace('oner')(Other)\n"
        "pl.api.register_expr_namespace('oner')(Other)\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import polars_oner.namespaces\n"
        "(told,) = caught\n"
        "assert 'polars_oner' in str(told.message), told.message\n"
        "assert '__main__.Other' in str(told.message), told.message\n"
        "assert pl.DataFrame().oner.fit\n"
    )
    assert told.returncode == 0, told.stderr
