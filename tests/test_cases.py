"""The shared cases: bug reports and questions about comparable tools, each with its right answer.

Each case has one check here, found by the case's id. Where a case rests on another convention than
the contract, the check says so and follows the contract.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import math
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import polars_oner as po
from tests.shared import SHARED, needs_shared

CASES = SHARED / "cases" / "cases.jsonl"

Case = dict[str, Any]
Check = Callable[[Case], None]
CHECKS: dict[str, Check] = {}


def check(case_id: str) -> Callable[[Check], Check]:
    """Make a function the check of one case."""

    def register(function: Check) -> Check:
        assert case_id not in CHECKS
        CHECKS[case_id] = function
        return function

    return register


def load() -> dict[str, Case]:
    if not CASES.is_file():
        return {}
    lines = CASES.read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def codec() -> ModuleType:
    """Import the decoder that lies beside the cases."""
    spec = importlib.util.spec_from_file_location("codec", SHARED / "cases" / "codec.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def frame_of(columns: dict[str, Any], dtypes: dict[str, str] | None = None) -> pl.DataFrame:
    return cast("pl.DataFrame", codec().frame(columns, dtypes))


def frame(case: Case) -> pl.DataFrame:
    return frame_of(case["input"], case.get("dtypes"))


def to_predict(case: Case) -> pl.DataFrame:
    return frame_of(case["params"]["predict_on"], case.get("dtypes"))


def decoded(value: object) -> Any:
    return codec().dec(value)


@needs_shared
@pytest.mark.parametrize("case_id", load())
def test_case(case_id: str) -> None:
    CHECKS[case_id](load()[case_id])


@needs_shared
def test_every_case_has_a_check_and_every_check_a_case() -> None:
    assert set(CHECKS) == set(load())


def check_split(split: po.Split, expected: dict[str, Any], x: pl.Series) -> None:
    """Hold a split to what a case expects, and its threshold to the training values."""
    for name in ("left_max", "right_min", "n_left", "n_right", "n_missing", "n_target_missing"):
        if name in expected:
            assert getattr(split, name) == decoded(expected[name]), name
    if not isinstance(expected.get("score", {}), dict):
        assert split.score == pytest.approx(expected["score"], rel=1e-12, abs=1e-15)
    assert split.left_max is not None
    assert split.right_min is not None
    assert split.left_max <= split.threshold < split.right_min
    sides = pl.DataFrame([x.alias(split.feature or "")]).select(split.goes_left()).to_series()
    present = x.is_not_null() & x.is_not_nan() if x.dtype.is_float() else x.is_not_null()
    assert sides.filter(present).to_list() == [
        value <= split.left_max for value in x.filter(present)
    ]


def predictions(frame: pl.DataFrame, model: po.Split | po.OneRule | po.ClassRules) -> list[Any]:
    return frame.with_columns(model.predict("told"))["told"].to_list()


def rule_of(model: po.OneRule) -> po.Rule:
    assert model.rule is not None
    return model.rule


def rule_as_dict(rule: po.Rule) -> dict[Any, Any]:
    """Read a nominal rule: each value's class, ``"<missing>"`` for the missing case."""
    read: dict[Any, Any] = {}
    for case in rule.cases:
        if case.is_missing:
            read["<missing>"] = case.prediction
        else:
            assert case.values is not None
            (value,) = case.values
            read[value] = case.prediction
    return read


# --- missing cells ---


@check("miss-01")
def nan_is_missing(case: Case) -> None:
    data = frame(case)
    split = po.best_split(data, "y", criterion="gini", missing="drop")
    check_split(split, case["expected"], data["x"])
    told = predictions(data, split)
    assert told[4] == told[5]


@check("miss-03")
def missing_has_its_own_case(case: Case) -> None:
    model = po.fit(frame(case), "y")
    expected = case["expected"]
    assert model.feature == expected["column"]
    assert rule_as_dict(rule_of(model)) == expected["rules"]
    assert rule_of(model).n_correct == expected["n_correct"]
    assert predictions(to_predict(case), model) == expected["predict"]


@check("miss-05")
def rows_without_target(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    split = po.best_split(data, "y", criterion="gini", missing="drop")
    check_split(split, expected, data["x"])
    assert split.n_left + split.n_right == expected["n_rows_used"]


# --- numbers ---


@check("inf-01")
def infinities(case: Case) -> None:
    data = frame(case)
    for feature, target in case["params"]["pairs"]:
        for cut in ("value", "midpoint"):
            split = po.best_split(data, target, feature, criterion="gini", missing="drop", cut=cut)
            check_split(split, case["expected"][feature], data[feature])
            assert split.threshold < math.inf


@check("prec-01")
def neighbouring_floats(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    for cut in ("value", "midpoint"):
        split = po.best_split(data, "y", criterion="gini", cut=cut)
        check_split(split, expected, data["x"])
        assert split.threshold == expected["threshold_exact"]
        assert predictions(to_predict(case), split) == expected["predict"]


@check("prec-03")
def tiny_target(case: Case) -> None:
    data = frame(case)
    split = po.best_split(data, "y", criterion="std")
    check_split(split, case["expected"], data["x"])
    scaled = po.best_split(data.with_columns(pl.col("y") * 1e9), "y", criterion="std")
    assert (scaled.left_max, scaled.right_min) == (split.left_max, split.right_min)


@check("int-02")
def boolean_sums(case: Case) -> None:
    # "std_ddof0", the weighted root of the mean square, is not among the contract's criteria.
    data, scores = frame(case), case["expected"]["score"]
    names = {"gini": "gini", "entropy": "entropy", "misclassification": "error", "std_ddof1": "std"}
    assert set(scores) == {*names, "std_ddof0"}
    for name, criterion in names.items():
        split = po.best_split(data, "y", criterion=cast("Any", criterion))
        check_split(split, {**case["expected"], "score": scores[name]}, data["x"])


@check("int-04")
def decimals(case: Case) -> None:
    data = frame(case)
    for cut in ("value", "midpoint"):
        split = po.best_split(data, "y", criterion="gini", missing="drop", cut=cut)
        check_split(split, case["expected"], data["x"])
        assert predictions(to_predict(case), split) == case["expected"]["predict"]


# --- degenerate input ---


@check("degen-01")
def columns_of_nulls(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    table = po.best_splits(data, "y", criterion="gini", missing="drop")
    assert table["feature"][0] == expected["best"]["column"]
    assert set(table["feature"][1:]) == set(expected["no_split"])
    rest = table[1:]
    assert rest["score"].null_count() == rest["threshold"].null_count() == rest.height
    assert rest["reason"].null_count() == 0
    assert dict(rest.select("feature", "n_missing").iter_rows()) == expected["n_missing"]
    split = po.best_split(data, "y", criterion="gini", missing="drop")
    assert split.feature == "x"
    check_split(split, expected["best"], data["x"])


@check("degen-03")
def a_single_row(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    model = po.fit(data, "y", min_bucket=1)
    assert rule_of(model).n_correct == expected["n_correct"]
    assert rule_of(model).accuracy == expected["accuracy"]
    assert predictions(to_predict(case), model) == expected["predict"]
    split = po.best_split(data, "y")
    assert split.feature is None
    assert split.threshold is None
    assert split.score is None
    assert predictions(to_predict(case), split) == expected["predict"]
    numbers = po.best_splits(data.with_columns(y=pl.lit(1.0)), "y", criterion="std")
    assert numbers["score"].to_list() == [None]


# --- targets ---


@check("type-01")
def prediction_has_the_dtype_of_the_target(case: Case) -> None:
    # The third row is missing and no training row was: the default, first class at 2:2.
    data, expected = frame(case), case["expected"]
    third = {"b": False, "i": -1, "s": "ja", "e": "lo", "c": "hi"}
    # The case says lo for "c" too, but its own rule is "ascending", and hi < lo as text.
    new = frame_of(case["params"]["predict_on"])
    for target, first_two in expected["predict_first_two"].items():
        for model in (po.best_split(data, target, "x"), po.fit(data, target, "x", min_bucket=1)):
            told = new.select(model.predict()).to_series()
            assert told.dtype == data[target].dtype
            assert told.to_list() == [*first_two, third[target]]


@check("type-03")
def three_classes(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    names = {"gini": "gini", "entropy": "entropy", "misclassification": "error"}
    for name, criterion in names.items():
        split = po.best_split(data, "y", criterion=cast("Any", criterion))
        check_split(split, {**expected, "score": expected["score"][name]}, data["x"])
    with pytest.raises(po.OneRError, match=r"'y'.*String"):
        po.best_split(data, "y", criterion="std")
    bins = po.discretize(data, "y", "x", min_bucket=1)
    assert_cuts(bins, expected["discretize"]["cuts_between"])


# --- ties ---


@check("tie-01")
def equal_features(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    found = {
        repr(po.best_split(data, "y", criterion="gini")) for _ in range(case["params"]["repeat"])
    }
    assert len(found) == 1
    split = po.best_split(data, "y", criterion="gini")
    assert split.feature == expected["column"]
    check_split(split, expected, data["b_copy"])
    check_split(po.best_split(data, "y", "neg", criterion="gini"), expected["neg"], data["neg"])


@check("tie-03")
def equal_classes(case: Case) -> None:
    # The case's policy is the first class; the contract's default, the rarer class and then class
    # order, comes to the same here, since both classes are equally common.
    expected = case["expected"]
    for dtype, key in ((pl.String(), "string"), (pl.Enum(["yes", "no"]), "enum")):
        data = frame(case).with_columns(pl.col("y").cast(dtype))
        for order in itertools.permutations(range(data.height)):
            model = po.fit(data[list(order)], "y")
            assert rule_as_dict(rule_of(model)) == expected[key]["rules"]
            assert model.default == expected[key]["default"]
            assert rule_of(model).n_correct == expected["n_correct"]


# --- weights ---


@check("weight-01")
def zero_weight_is_absent(case: Case) -> None:
    data = frame(case)
    features = ["x"]
    for cut in ("value", "midpoint"):
        split = po.best_split(data, "y", features, criterion="gini", weights="w", cut=cut)
        check_split(split, case["expected"], data.filter(pl.col("w") > 0)["x"])
        without = po.best_split(
            data.filter(pl.col("w") > 0).drop("w"), "y", features, criterion="gini", cut=cut
        )
        assert split.threshold == without.threshold
        assert split.score == without.score
    whole = data.with_columns(w=pl.Series([3, 1, 2, 1, 0]))
    copies = whole.select(pl.exclude("w").repeat_by("w").explode(empty_as_null=False))
    weighted = po.best_split(whole, "y", features, criterion="gini", weights="w")
    repeated = po.best_split(copies, "y", features, criterion="gini")
    assert (weighted.n_left, weighted.n_right, weighted.score, weighted.threshold) == (
        repeated.n_left,
        repeated.n_right,
        repeated.score,
        repeated.threshold,
    )


# --- names and errors ---


@check("name-01")
def names_that_collide(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    best = po.best_split(data, "y", criterion="gini")
    assert best.feature == expected["best"]
    names = [name for name in data.columns if name != "y"]
    neutral = dict(zip(names, (f"x{i}" for i in range(1, 8)), strict=True))
    table = po.best_splits(data, "y", criterion="gini")
    renamed = po.best_splits(data.rename(neutral), "y", criterion="gini")
    numbers = ["threshold", "n_left", "n_right", "n_missing", "missing_goes", "score", "gain"]
    assert table.select(numbers).equals(renamed.select(numbers))
    assert [neutral[name] for name in table["feature"]] == renamed["feature"].to_list()
    for name, per_column in expected["per_column"].items():
        split = po.best_split(data, "y", name, criterion="gini")
        if per_column is None:
            assert split.score is None
        else:
            check_split(split, per_column, data[name])
    model = po.fit(data, "y", min_bucket=1)
    assert rule_of(model).n_errors == 0
    assert predictions(data, model) == data["y"].to_list()


@check("name-03")
def target_among_the_features(case: Case) -> None:
    data = frame(case)
    assert po.best_splits(data, "y")["feature"].to_list() == ["x"]
    for function in (po.best_split, po.best_splits, po.fit, po.rank, po.class_rules):
        call = cast("Callable[..., object]", function)
        for features in (["x", "y"], ["y"]):
            with pytest.raises(ValueError, match="target 'y' is also listed as a feature"):
                call(data, "y", features)
        with pytest.raises(ValueError, match="'x' is listed twice"):
            call(data, "y", ["x", "x"])


@check("name-04")
def absent_target(case: Case) -> None:
    data = frame(case)
    for source in (data, data.lazy()):
        for function in (po.best_split, po.best_splits, po.fit, po.rank, po.class_rules):
            call = cast("Callable[..., object]", function)
            with pytest.raises(pl.exceptions.ColumnNotFoundError, match="Survived") as raised:
                call(source, "survived")
            assert "'survived'" in str(raised.value)
    split = po.best_split(data, "Survived")
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="Age"):
        data.drop("Age").select(split.predict())


@check("unseen-01")
def unseen_values(case: Case) -> None:
    # How many rows met no case is for the caller to ask: the values of the cases are public.
    expected = case["expected"]
    model = po.fit(frame(case), "y", identifiers="keep")
    assert rule_as_dict(rule_of(model)) == expected["rules"]
    assert model.default == expected["default"]
    new = to_predict(case)
    assert predictions(new, model) == expected["predict"]
    seen = [value for case in rule_of(model).cases for value in case.values or ()]
    n_unmatched = new.filter(~pl.col("x").is_in(seen).fill_null(value=False)).height
    assert n_unmatched == expected["count_unmatched"]


# --- dtypes of features ---


@check("order-01")
def enum_order(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    split = po.best_split(data, "y", criterion="gini")
    assert split.score == expected["score"]
    assert (split.left_max, split.right_min) == ("M", "L")
    sides = data.select("size", left=split.goes_left())
    assert set(sides.filter("left")["size"]) == set(expected["left_set"])
    assert set(sides.filter(~pl.col("left"))["size"]) == set(expected["right_set"])
    text = po.best_split(data.with_columns(pl.col("size").cast(pl.String)), "y", criterion="gini")
    assert text.kind == "nominal"
    left, right = text.left_values, text.right_values
    assert left is not None
    assert right is not None
    assert {frozenset(left), frozenset(right)} == {
        frozenset(expected["left_set"]),
        frozenset(expected["right_set"]),
    }


@check("temporal-01")
def dates_and_times(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    for feature in ("d", "t", "u"):
        for cut in ("value", "midpoint"):
            split = po.best_split(data, "y", feature, criterion="gini", cut=cut)
            check_split(split, expected[feature], data[feature])
            assert predictions(data, split) == expected["predict"]
        scores = po.split_scores(data, "y", feature)
        assert scores.schema["threshold"] == data.schema[feature]


# --- 1R ---


@check("oner-01")
def errors_are_counted_by_rows(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    model = po.fit(data, "y", min_bucket=1)
    assert model.feature == expected["column"]
    assert {rule.feature: rule.n_correct for rule in model.rules} == expected["n_correct"]
    assert rule_of(model).accuracy == expected["accuracy"]
    # "b" holds one - and one 0: the first class is -, the one rarer in the training target is 0.
    assert rule_as_dict(rule_of(po.fit(data, "y", ties="first"))) == expected["rules"]
    assert rule_as_dict(rule_of(model)) == {"a": "+", "b": "0"}
    assert model.default == expected["default"]


@check("oner-03")
def identifiers(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    with pytest.warns(po.IdentifierWarning, match="id"):
        model = po.fit(data, "y", min_bucket=1)
    assert model.feature != "id"
    assert {rule.feature: rule.n_correct for rule in model.rules}["id"] == 12
    naive = po.fit(data, "y", min_bucket=1, identifiers="keep")
    assert naive.feature == expected["min_bucket_1"]["naive_column"]
    new = pl.DataFrame({"id": ["id99"]})
    assert predictions(new, naive) == ["n"]
    coarse = po.fit(data, "y", expected["min_bucket_3"]["features"], min_bucket=3)
    assert coarse.feature == expected["min_bucket_3"]["column"]
    rules = {rule.feature: rule for rule in coarse.rules}
    assert {name: rule.n_correct for name, rule in rules.items()} == expected["min_bucket_3"][
        "n_correct"
    ]
    check_intervals(rules["num"], expected["min_bucket_3"]["num_intervals"], data["num"])


@check("oner-05")
def walk_over_distinct_values(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    model = po.fit(data, "y", min_bucket=3)
    assert model.feature == expected["column"]
    check_intervals(rule_of(model), expected["intervals"], data["t"])
    assert rule_of(model).n_correct == expected["n_correct"]
    assert model.default == expected["default"]


def check_intervals(rule: po.Rule, expected: list[dict[str, Any]], x: pl.Series) -> None:
    edges = [-math.inf, *rule.cuts, math.inf]
    found = []
    for case, (low, high) in zip(rule.cases, itertools.pairwise(edges), strict=True):
        inside = x.filter((x > low) & (x <= high))
        assert len(inside) == case.n_rows
        found.append(
            {"lo": inside.min(), "hi": inside.max(), "n": case.n_rows, "cls": case.prediction}
        )
    assert found == expected


# --- class rules ---


@check("class-01")
def class_rules(case: Case) -> None:
    # The case's policy for ties is the first class. By the contract's default, the commoner one, it
    # comes to the same, 3:3; a row that matches nothing ties all classes.
    data, expected = frame(case), case["expected"]
    for ties in ("first", "frequent"):
        rules = po.class_rules(data, "y", ties=ties)
        assert predictions(to_predict(case), rules) == ["a", "b", "a", "b", "a", "a"]
    assert expected["default"].endswith("'a'")


# --- discretisation ---


def assert_cuts(bins: po.Bins, expected: list[list[Any]]) -> None:
    """Hold each cut to its gap: ``low <= cut < high``."""
    assert len(bins.cuts) == len(expected)
    for cut, (low, high) in zip(bins.cuts, expected, strict=True):
        assert low <= cut < high


@check("disc-02")
def at_most_max_bins(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    free = po.discretize(data, "y", "x", min_bucket=1)
    assert_cuts(free, expected["no_limit"]["cuts_between"])
    for method in ("1r", "tree"):
        for most in (1, 2, 3):
            bins = po.discretize(
                data, "y", "x", method=cast("Any", method), min_bucket=1, max_bins=most
            )
            assert len(bins.cuts) < most
            assert list(bins.cuts) == sorted(set(bins.cuts))
    with pytest.raises(ValueError, match="max_bins"):
        po.discretize(data, "y", "x", min_bucket=1, max_bins=0)


@check("disc-04")
def special_codes(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    special = case["params"]["special_values"]["x"]
    bins = po.discretize(data, "y", "x", method="tree", max_bins=2, special=special)
    assert_cuts(bins, expected["cuts_between"])
    labels = data.select(bins.expr()).to_series().to_list()
    by_bin: dict[Any, set[Any]] = {}
    for mine, theirs in zip(labels, expected["bin_of_row"], strict=True):
        by_bin.setdefault(theirs, set()).add(mine)
    assert all(len(mine) == 1 for mine in by_bin.values())
    assert len(set().union(*by_bin.values())) == len(by_bin) == 5
    # A declared code that never occurs makes no crash.
    absent = po.discretize(data, "y", "x", method="tree", max_bins=2, special=[*special, -5])
    assert data.vstack(pl.DataFrame({"x": [-5], "y": [0]})).select(absent.expr()).height == 9


# --- expressions ---


@check("pred-01")
def expression_alone(case: Case) -> None:
    data, expected = frame(case), case["expected"]
    program = (
        "import io, sys, polars as pl\n"
        "data = pl.read_json(io.StringIO(sys.argv[1]))\n"
        "expr = pl.Expr.deserialize(io.StringIO(sys.argv[2]), format='json')\n"
        "print(data.select(expr).to_series().to_list())\n"
        "assert not any('oner' in name for name in sys.modules)\n"
    )
    for model in (po.best_split(data, "y", "x"), po.fit(data, "y", "x", min_bucket=1)):
        expr = model.predict()
        assert set(expr.meta.root_names()) == {"x"}
        assert expr.meta.output_name() not in data.columns
        assert model.predict(name="told").meta.output_name() == "told"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the JSON form is marked unstable by its owner
            text = expr.meta.serialize(format="json")
        assert "python" not in text.lower()
        told = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, data.write_json(), text],
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        assert told.stdout.strip() == str(expected["predict"])


# --- scans ---


def write_files(case: Case, directory: Path, row_group_size: int | None = None) -> list[Path]:
    paths = []
    for file in case["input"]["files"]:
        path = directory / file["path"]
        data = frame_of(file["columns"], file.get("dtypes"))
        data.write_parquet(path, row_group_size=row_group_size)
        paths.append(path)
    return paths


@check("scan-01")
def files_that_differ(case: Case) -> None:
    with tempfile.TemporaryDirectory() as directory:
        paths = write_files(case, Path(directory))
        for order in (paths, paths[::-1]):
            plain = pl.scan_parquet(order)
            for call in (po.best_split, po.fit):
                with pytest.raises(pl.exceptions.SchemaError, match=r"Float64|Int64"):
                    cast("Callable[..., object]", call)(plain, "y", ["a"])
            wide = pl.concat([pl.scan_parquet(path) for path in order], how="vertical_relaxed")
            split = po.best_split(wide, "y", ["a"], criterion="gini")
            assert (split.left_max, split.right_min, split.score) == (2.0, 2.5, 0.0)


@check("scan-04")
def values_spread_over_files(case: Case) -> None:
    expected = case["expected"]
    results = set()
    for row_group_size in case["params"]["row_group_size"]:
        with tempfile.TemporaryDirectory() as directory:
            paths = write_files(case, Path(directory), row_group_size)
            for order in itertools.permutations(paths):
                scan = pl.scan_parquet(list(order))
                for engine in case["params"]["engines"]:
                    split = po.best_split(
                        scan, "y", criterion="gini", missing="drop", engine=engine
                    )
                    results.add(repr(split))
            eager = pl.concat([pl.read_parquet(path) for path in paths])
    split = po.best_split(eager, "y", criterion="gini", missing="drop")
    check_split(split, expected, eager["x"])
    assert results == {repr(split)}


@check("scan-05")
def passes_do_not_grow_with_features(case: Case) -> None:
    (file,) = case["input"]["files"]
    data = frame_of(file["columns"])
    n_passes = 0

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        nonlocal n_passes
        n_passes += 1
        batch = data if predicate is None else data.filter(predicate)
        batch = batch if with_columns is None else batch.select(with_columns)
        yield batch if n_rows is None else batch.head(n_rows)

    scan = register_io_source(source, schema=data.schema)
    counts = {}
    for features in (["c00"], [name for name in data.columns if name != "y"]):
        n_passes = 0
        table = po.best_splits(scan, "y", features)
        rank = po.rank(scan, "y", features)
        assert isinstance(table, pl.LazyFrame)
        assert isinstance(rank, pl.LazyFrame)
        assert n_passes == 0
        po.best_split(scan, "y", features, criterion="gini")
        counts["best_split", len(features)] = n_passes
        n_passes = 0
        po.fit(scan, "y", features)
        counts["fit", len(features)] = n_passes
        n_passes = 0
        po.class_rules(scan, "y", features)
        counts["class_rules", len(features)] = n_passes
    most = case["expected"]["max_passes_over_the_source"]
    assert max(counts.values()) <= most, counts
    for name in ("best_split", "fit", "class_rules"):
        assert counts[name, 8] <= max(counts[name, 1], most)


# --- the namespace ---


@check("api-01")
def registering_twice_is_silent(case: Case) -> None:
    # In a process of its own: reloading here would make a second set of the package's classes.
    program = (
        "import importlib, warnings\n"
        "warnings.simplefilter('error')\n"
        "import polars as pl, polars_oner, polars_oner.namespaces\n"
        "importlib.reload(polars_oner.namespaces)\n"
        "importlib.reload(polars_oner)\n"
        "frame = pl.DataFrame({'x': [1]})\n"
        "assert frame.oner and frame.lazy().oner and pl.col('x').oner\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert case["expected"]["warnings"] == 0
