"""Properties that hold for every table, and equality with the oracle on tables of every dtype."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polars_oner as po
from tests import oracle
from tests.strategies import Feature, Table, Target, chunked, features, shuffled, tables, targets

CriterionName: TypeAlias = Literal["gini", "entropy", "error", "variance", "std"]
CLASS_CRITERIA: list[CriterionName] = ["gini", "entropy", "error"]
NUMBER_CRITERIA: list[CriterionName] = ["variance", "std"]
MISSING: list[oracle.Missing] = ["best", "left", "right", "drop"]
ENGINES: list[Literal["in-memory", "streaming"]] = ["in-memory", "streaming"]
TIES: list[oracle.Ties] = ["rare", "first", "frequent"]

few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
some = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _identifiers_may_warn() -> Iterator[None]:
    """Small tables often hold a column that looks like an identifier; that is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", po.IdentifierWarning)
        yield


def one_feature(feature: Feature, target: Target) -> pl.DataFrame:
    return pl.DataFrame([feature.series("x"), target.series("y")])


# --- binary splits against the oracle ---


def same_split(split: po.Split, expected: oracle.Split | None) -> None:
    """Hold a split of an ordered feature to the oracle's, ties included."""
    if expected is None:
        assert split.score is None
        assert split.threshold is None
        return
    assert split.score == pytest.approx(float(expected.score), rel=1e-9, abs=1e-12)
    assert (split.n_left, split.n_right) == (expected.n_left, expected.n_right)
    assert split.n_missing == expected.n_missing
    assert split.missing_goes == expected.missing_goes
    if not expected.missing_alone:
        assert split.left_max == expected.left_max
        assert split.right_min == expected.right_min


@some
@given(data=st.data(), criterion=st.sampled_from(CLASS_CRITERIA), missing=st.sampled_from(MISSING))
def test_ordered_split_is_the_oracle_s(
    data: st.DataObject, criterion: CriterionName, missing: oracle.Missing
) -> None:
    n_rows = data.draw(st.integers(1, 24))
    feature = data.draw(features(n_rows, kind="ordered"))
    target = data.draw(targets(n_rows))
    min_leaf = data.draw(st.sampled_from([1, 1, 2, 4]))
    frame = one_feature(feature, target)
    split = po.best_split(frame, "y", "x", criterion=criterion, missing=missing, min_leaf=min_leaf)
    expected = oracle.best_ordered(
        feature.column,
        target.column,
        criterion,
        missing=missing,
        min_leaf=min_leaf,
        key=feature.key,
    )
    same_split(split, expected)
    assert split.n_target_missing == frame["y"].null_count()
    if expected is not None:
        goes = frame.filter(pl.col("y").is_not_null()).select(split.goes_left()).to_series()
        if missing != "drop":
            assert goes.sum() == split.n_left


@some
@given(data=st.data(), criterion=st.sampled_from(NUMBER_CRITERIA), missing=st.sampled_from(MISSING))
def test_ordered_split_of_a_number_target(
    data: st.DataObject, criterion: CriterionName, missing: oracle.Missing
) -> None:
    """Sums of real numbers round, so of splits that tie any may be taken."""
    n_rows = data.draw(st.integers(1, 24))
    feature = data.draw(features(n_rows, kind="ordered"))
    target = data.draw(targets(n_rows, numbers=True))
    min_leaf = data.draw(st.sampled_from([1, 1, 2]))
    frame = one_feature(feature, target)
    split = po.best_split(frame, "y", "x", criterion=criterion, missing=missing, min_leaf=min_leaf)
    found = oracle.ordered_candidates(
        feature.column,
        target.column,
        criterion,
        missing=missing,
        min_leaf=min_leaf,
        key=feature.key,
    )
    best = oracle.first_lowest(found)
    if best is None:
        same_split(split, None)
        return
    whole = float(oracle.impurity([y for y in target.column if y is not None], criterion))
    near = [c for c in found if float(c.score - best.score) <= 1e-9 * whole]
    (taken,) = [
        c
        for c in near
        if (c.missing_goes, c.n_left, c.n_right)
        == (split.missing_goes, split.n_left, split.n_right)
        and (c.missing_alone or c.left_max == split.left_max)
    ]
    assert split.score == pytest.approx(float(taken.score), rel=1e-9, abs=1e-9 * whole)


@some
@given(
    data=st.data(),
    criterion=st.sampled_from([*CLASS_CRITERIA, *NUMBER_CRITERIA]),
    missing=st.sampled_from(MISSING),
)
def test_nominal_split_is_the_oracle_s(
    data: st.DataObject, criterion: CriterionName, missing: oracle.Missing
) -> None:
    n_rows = data.draw(st.integers(1, 20))
    feature = data.draw(features(n_rows, kind="nominal"))
    target = data.draw(targets(n_rows, numbers=criterion in NUMBER_CRITERIA))
    frame = one_feature(feature, target)
    split = po.best_split(frame, "y", "x", criterion=criterion, missing=missing)
    expected = oracle.best_nominal(
        feature.column, target.column, criterion, missing=missing, classes=target.classes
    )
    if expected is None:
        assert split.score is None
        return
    assert split.score == pytest.approx(float(expected.score), rel=1e-9, abs=1e-10)
    x, y = oracle.with_target(feature.column, target.column)
    assert split.left_values is not None
    assert split.right_values is not None
    left, right = split.left_values.to_list(), split.right_values.to_list()
    assert not set(left) & set(right)
    assert {*left, *right} == {value for value in x if value is not None}
    # The set itself has the score that is claimed for it.
    sides: dict[str, list[Any]] = {"left": [], "right": []}
    for value, label in zip(x, y, strict=True):
        if value is not None:
            sides["left" if value in left else "right"].append(label)
        elif split.missing_goes is not None:
            sides[split.missing_goes].append(label)
    assert (len(sides["left"]), len(sides["right"])) == (split.n_left, split.n_right)
    score = float(oracle.weighted_impurity(list(sides.values()), criterion))
    assert split.score == pytest.approx(score, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("criterion", [*CLASS_CRITERIA, "variance"])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_or_numbers_find_the_best_of_all_sets(
    criterion: CriterionName, seed: int
) -> None:
    draw = random.Random(seed)
    n_values = draw.randint(3, 9)
    x = [draw.choice("abcdefghi"[:n_values]) for _ in range(60)]
    y = [draw.randint(0, 1) for _ in x]
    split = po.best_split(pl.DataFrame({"x": x, "y": y}), "y", criterion=criterion)
    every = oracle.best_nominal(x, y, criterion, search="all")
    assert every is not None
    assert split.score == pytest.approx(float(every.score), abs=1e-12)


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
@pytest.mark.parametrize("n_values", [5, 12, 13, 15])
def test_many_classes_try_all_sets_to_twelve_values(
    criterion: CriterionName, n_values: int
) -> None:
    draw = random.Random(n_values)
    letters = "abcdefghijklmno"[:n_values]
    x = [*letters, *(draw.choice(letters) for _ in range(20))]
    y = [draw.choice("pqr") for _ in x]
    frame = pl.DataFrame({"x": x, "y": y})
    split = po.best_split(frame, "y", criterion=criterion)
    expected = oracle.best_nominal(x, y, criterion)
    assert expected is not None
    assert split.score == pytest.approx(float(expected.score), abs=1e-12)
    if n_values > oracle.EXHAUSTIVE_VALUES:
        assert split.left_values is not None
        assert split.right_values is not None
        assert 1 in (len(split.left_values), len(split.right_values))


@some
@given(table=tables(kind="ordered", max_features=1), criterion=st.sampled_from(CLASS_CRITERIA))
def test_split_scores_list_every_candidate(table: Table, criterion: CriterionName) -> None:
    (feature,) = table.features.values()
    scores = po.split_scores(table.frame, "y", "f0", criterion=criterion, missing="drop")
    expected = oracle.ordered_candidates(
        feature.column, table.target.column, criterion, missing="drop", key=feature.key
    )
    assert scores.schema["threshold"] == feature.dtype
    assert scores["threshold"].to_list() == [c.left_max for c in expected]
    assert scores["n_left"].to_list() == [c.n_left for c in expected]
    assert scores["n_right"].to_list() == [c.n_right for c in expected]
    exact = [float(c.score) for c in expected]
    assert scores["score"].to_list() == pytest.approx(exact, abs=1e-12)


@few
@given(table=tables(), criterion=st.sampled_from(CLASS_CRITERIA), missing=st.sampled_from(MISSING))
def test_best_splits_holds_each_best_split(
    table: Table, criterion: CriterionName, missing: oracle.Missing
) -> None:
    ranked = po.best_splits(table.frame, "y", criterion=criterion, missing=missing)
    assert sorted(ranked["feature"]) == sorted(table.features)
    splits = {
        name: po.best_split(table.frame, "y", name, criterion=criterion, missing=missing)
        for name in table.features
    }
    for row in ranked.iter_rows(named=True):
        split = splits[row["feature"]]
        if split.score is None:
            assert row["score"] is None
            assert row["reason"]
            continue
        assert row["score"] == pytest.approx(split.score, abs=1e-12)
        assert row["gain"] == pytest.approx(split.gain, abs=1e-12)
        named = ("n_left", "n_right", "n_missing", "missing_goes")
        assert [row[name] for name in named] == [getattr(split, name) for name in named]
    # Best first, ties in column order, features without a candidate last.
    order = sorted(
        table.features,
        key=lambda name: (splits[name].score is None, round(splits[name].score or 0, 10)),
    )
    assert ranked["feature"].to_list() == order
    best = po.best_split(table.frame, "y", criterion=criterion, missing=missing)
    if splits[order[0]].score is None:
        assert best.feature is None
    else:
        assert best.feature == order[0]


# --- 1R and class rules against the oracle ---


def chosen(model: po.OneRule) -> po.Rule:
    assert model.rule is not None
    return model.rule


def same_rule(rule: po.Rule, expected: oracle.Rule) -> None:
    """Hold a rule to the oracle's: its cases with their classes and counts."""
    missing = [case for case in rule.cases if case.is_missing]
    wanted = [case for case in expected.cases if case.values == (None,)]
    assert [(c.prediction, c.n_correct, c.n_rows) for c in missing] == [
        (c.prediction, c.n_correct, c.n_rows) for c in wanted
    ]
    present = [case for case in rule.cases if not case.is_missing]
    others = [case for case in expected.cases if case.values != (None,)]
    if expected.kind == "nominal":
        told = {c.values: (c.prediction, c.n_correct, c.n_rows) for c in present}
        assert told == {c.values: (c.prediction, c.n_correct, c.n_rows) for c in others}
    else:
        assert [(c.prediction, c.n_correct, c.n_rows) for c in present] == [
            (c.prediction, c.n_correct, c.n_rows) for c in others
        ]
        for cut, (left_max, right_min) in zip(rule.cuts, expected.boundaries, strict=True):
            assert left_max <= cut < right_min
    assert rule.n_errors == expected.n_errors
    assert rule.n_rows == expected.n_rows


@some
@given(
    table=tables(),
    min_bucket=st.sampled_from([1, 2, 3, 6]),
    ties=st.sampled_from(TIES),
)
def test_one_rule_is_the_oracle_s(table: Table, min_bucket: int, ties: oracle.Ties) -> None:
    frame = table.frame
    model = po.fit(frame, "y", min_bucket=min_bucket, ties=ties, identifiers="keep")
    chosen, expected = oracle.choose(
        {name: (f.column, f.rule_kind) for name, f in table.features.items()},
        table.target.column,
        min_bucket=min_bucket,
        ties=ties,
        classes=table.target.classes,
        identifiers="keep",
    )
    rules = {rule.feature: rule for rule in model.rules}
    assert set(rules) == set(expected)
    for name, rule in rules.items():
        same_rule(rule, expected[name])
    assert model.feature == chosen
    assert model.default == oracle.default_class(table.target.column, table.target.classes)
    order = sorted(expected, key=lambda name: expected[name].n_errors)
    assert model.ranking["feature"].to_list() == order
    assert model.n_target_missing == frame["y"].null_count()
    # The rule's expression makes exactly the training errors that are claimed.
    told = frame.select(told=model.predict(), y="y").filter(pl.col("y").is_not_null())
    assert (told["told"] != told["y"]).sum() == model.n_errors == expected[chosen or ""].n_errors
    assert told["told"].dtype == frame["y"].dtype


@few
@given(table=tables(max_features=4))
def test_identifiers_are_the_oracle_s(table: Table) -> None:
    marked = {
        name
        for name, f in table.features.items()
        if f.rule_kind == "nominal" and oracle.looks_like_identifier(f.column, table.target.column)
    }
    if marked == set(table.features):
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = po.fit(table.frame, "y")
    told = [str(w.message) for w in caught if issubclass(w.category, po.IdentifierWarning)]
    assert model.feature not in marked
    assert len(told) == bool(marked)
    assert all(repr(name) in told[0] for name in marked)


@some
@given(table=tables(), ties=st.sampled_from(["frequent", "first"]), data=st.data())
def test_class_rules_are_the_oracle_s(
    table: Table, ties: Literal["frequent", "first"], data: st.DataObject
) -> None:
    frame = table.frame
    rules = po.class_rules(frame, "y", ties=ties)
    expected = oracle.class_rules(
        {name: (f.column, f.rule_kind) for name, f in table.features.items()},
        table.target.column,
        classes=table.target.classes,
    )
    # Columns shuffled apart make rows that no class has seen.
    mixed = frame.select(
        pl.Series(name, data.draw(st.permutations(frame[name].to_list())), dtype=frame[name].dtype)
        for name in table.features
    )
    for rows in (frame, mixed):
        told = rows.select(rules.predict()).to_series()
        assert told.dtype == frame["y"].dtype
        assert told.to_list() == [expected.predict(row, ties) for row in rows.iter_rows(named=True)]


# --- what must not matter ---


def close(some: pl.Series, others: pl.Series) -> bool:
    """Compare scores, null where there is none."""
    present = some.is_not_null()
    return present.equals(others.is_not_null()) and bool(
        np.allclose(some.filter(present), others.filter(present), rtol=1e-9, atol=1e-12)
    )


# The public functions tell eager from lazy by type; these take either.
Answer: TypeAlias = Callable[[Any], object]


def answers(engine: Literal["auto", "in-memory", "streaming"] = "auto") -> dict[str, Answer]:
    """Name every kind of answer, as something that compares."""

    def table(frame: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
        return frame.lazy().collect(engine=engine)

    return {
        "best_split": lambda f: repr(po.best_split(f, "y", engine=engine)),
        "best_splits": lambda f: table(po.best_splits(f, "y")).rows(),
        "split_scores": lambda f: table(po.split_scores(f, "y", "f0")).rows(),
        "fit": lambda f: repr(po.fit(f, "y", engine=engine)),
        "rank": lambda f: table(po.rank(f, "y")).rows(),
        "class_rules": lambda f: repr(po.class_rules(f, "y", engine=engine)),
    }


NAMES = sorted(answers())


@pytest.mark.parametrize("name", NAMES)
@few
@given(table=tables(), data=st.data())
def test_row_order_and_chunks_do_not_matter(name: str, table: Table, data: st.DataObject) -> None:
    answer = answers()[name]
    other = data.draw(chunked(data.draw(shuffled(table.frame))))
    assert answer(table.frame) == answer(other)


@pytest.mark.parametrize("name", NAMES)
@few
@given(table=tables(max_rows=12))
def test_eager_lazy_and_both_engines_agree(name: str, table: Table) -> None:
    eager = answers()[name](table.frame)
    for engine in ENGINES:
        assert answers(engine)[name](table.frame.lazy()) == eager


@few
@given(table=tables(numbers=True, max_rows=12), criterion=st.sampled_from(NUMBER_CRITERIA))
def test_engines_agree_on_number_targets(table: Table, criterion: CriterionName) -> None:
    eager = po.best_splits(table.frame, "y", criterion=criterion)
    for engine in ENGINES:
        plan = po.best_splits(table.frame.lazy(), "y", criterion=criterion)
        lazy = plan.collect(engine=engine)
        assert lazy["feature"].to_list() == eager["feature"].to_list()
        assert close(lazy["score"], eager["score"])


@few
@given(table=tables(), criterion=st.sampled_from(CLASS_CRITERIA))
def test_doubled_rows_double_the_counts(table: Table, criterion: CriterionName) -> None:
    once, twice = table.frame, pl.concat([table.frame, table.frame])
    a = po.best_splits(once, "y", criterion=criterion)
    b = po.best_splits(twice, "y", criterion=criterion)
    kept = ["feature", "condition", "threshold", "missing_goes"]
    assert a.select(kept).equals(b.select(kept))
    assert close(a["score"], b["score"])
    for name in ("n_left", "n_right", "n_missing"):
        assert (a[name] * 2).to_list() == b[name].to_list()
    rule = po.fit(once, "y", min_bucket=3, identifiers="keep")
    double = po.fit(twice, "y", min_bucket=6, identifiers="keep")
    assert rule.feature == double.feature
    assert [(c.prediction, 2 * c.n_correct, 2 * c.n_rows) for c in chosen(rule).cases] == [
        (c.prediction, c.n_correct, c.n_rows) for c in chosen(double).cases
    ]


@few
@given(table=tables(), data=st.data())
def test_whole_weights_are_repeated_rows(table: Table, data: st.DataObject) -> None:
    n_rows = table.frame.height
    weights = data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    keep = [i for i, weight in enumerate(weights) for _ in range(weight)]
    repeated = table.frame[keep]
    if repeated["y"].null_count() == repeated.height:
        return
    weighted = table.frame.with_columns(w=pl.Series(weights, dtype=pl.Int64))
    assert repr(po.best_split(weighted, "y", weights="w")) == repr(po.best_split(repeated, "y"))
    assert repr(po.fit(weighted, "y", weights="w", identifiers="keep").rule) == repr(
        po.fit(repeated, "y", identifiers="keep").rule
    )
    rules = po.class_rules(weighted, "y", weights="w")
    told = repeated.select(a=rules.predict(), b=po.class_rules(repeated, "y").predict())
    assert told["a"].equals(told["b"])


@few
@given(data=st.data(), criterion=st.sampled_from(CLASS_CRITERIA), slope=st.integers(1, 1000))
def test_an_increasing_map_keeps_the_partition(
    data: st.DataObject, criterion: CriterionName, slope: int
) -> None:
    n_rows = data.draw(st.integers(1, 24))
    feature = data.draw(features(n_rows, kind="ordered"))
    target = data.draw(targets(n_rows))
    column = oracle.clean(feature.column)
    order = sorted({value for value in column if value is not None}, key=feature.key)
    steps = [None if value is None else slope * order.index(value) - 7 for value in column]
    before = one_feature(feature, target)
    after = before.with_columns(x=pl.Series(steps, dtype=pl.Int64))
    a = po.best_split(before, "y", criterion=criterion)
    b = po.best_split(after, "y", criterion=criterion)
    for name in ("n_left", "n_right", "n_missing", "missing_goes", "score", "gain"):
        assert getattr(a, name) == getattr(b, name)
    rules = [chosen(po.fit(frame, "y", min_bucket=2, ordered=["x"])) for frame in (before, after)]
    cases = [[(c.prediction, c.n_correct, c.n_rows) for c in rule.cases] for rule in rules]
    assert cases[0] == cases[1]


@few
@given(table=tables(), criterion=st.sampled_from(CLASS_CRITERIA))
def test_renamed_classes_that_keep_their_order(table: Table, criterion: CriterionName) -> None:
    order = oracle.class_order(table.target.column, table.target.classes)
    names = {label: f"class {i}" for i, label in enumerate(order)}
    labels = [None if label is None else names[label] for label in table.target.column]
    renamed = table.frame.with_columns(y=pl.Series(labels, dtype=pl.String))
    a = po.best_splits(table.frame, "y", criterion=criterion)
    b = po.best_splits(renamed, "y", criterion=criterion)
    assert a.equals(b)
    for ties in TIES:
        left = po.fit(table.frame, "y", ties=ties, min_bucket=2, identifiers="keep")
        right = po.fit(renamed, "y", ties=ties, min_bucket=2, identifiers="keep")
        assert left.feature == right.feature
        assert [names[case.prediction] for case in chosen(left).cases] == [
            case.prediction for case in chosen(right).cases
        ]
        assert names[left.default] == right.default


ODD_NAMES = [
    "n", "s", "q", "k", "m", "class", "value", "next", "exact", "goes", "weight", "target", "bad",
    "fold", "x", "x0", "x1", "by0", "count", "len", "index", "score", "feature", "threshold",
    "position", "prediction", "literal", "", " ", "*", "^.*$", "^f0$", "a b", "'q\"", "{}", "\n",
]  # fmt: skip


@pytest.mark.parametrize("shift", range(len(ODD_NAMES)))
def test_names_carry_no_meaning(shift: int) -> None:
    """Rename features, target, segments and weights to names that the library may use itself."""
    plain = pl.DataFrame(
        {
            "f0": [1.5, None, 2.5, float("nan"), -0.0, 0.0, 2.5, 7.0],
            "f1": ["a", "b", None, "a", "c", "c", "b", "a"],
            "f2": [3, 1, 2, 2, 1, 3, None, 1],
            "u": pl.Series([None, None, None, [1], [2], None, [], []], dtype=pl.List(pl.Int64)),
            "w": [1, 2, 1, 1, 3, 1, 1, 2],
            "g": [0, 0, 0, 0, 1, 1, 1, 1],
            "y": ["p", "q", "q", "p", "r", None, "q", "p"],
        }
    )
    odd = dict(zip(plain.columns, [*ODD_NAMES[shift:], *ODD_NAMES[:shift]], strict=False))
    renamed = plain.rename(odd)
    numbers = ["n_left", "n_right", "n_missing", "missing_goes", "score", "gain"]
    a: Any
    b: Any
    a, b = (plain, renamed) if shift % 2 else (plain.lazy(), renamed.lazy())
    weights = ("w", odd["w"]) if shift % 3 else (None, None)
    ranked = [
        po.best_splits(a, "y", weights=weights[0]).lazy().collect(),
        po.best_splits(b, odd["y"], weights=weights[1]).lazy().collect(),
    ]
    assert ranked[0].select(numbers).equals(ranked[1].select(numbers))
    assert [odd[name] for name in ranked[0]["feature"]] == ranked[1]["feature"].to_list()
    ranks = [
        po.rank(a, "y", min_bucket=2, weights=weights[0]).lazy().collect(),
        po.rank(b, odd["y"], min_bucket=2, weights=weights[1]).lazy().collect(),
    ]
    assert ranks[0]["n_errors"].equals(ranks[1]["n_errors"])
    assert [odd[name] for name in ranks[0]["feature"]] == ranks[1]["feature"].to_list()
    scores = [
        po.split_scores(a, "y", "f0", weights=weights[0]).lazy().collect(),
        po.split_scores(b, odd["y"], odd["f0"], weights=weights[1]).lazy().collect(),
    ]
    assert scores[0].equals(scores[1])
    models: list[tuple[Any, Any]] = [
        (po.best_split(plain, "y"), po.best_split(renamed, odd["y"])),
        (po.fit(plain, "y", min_bucket=2), po.fit(renamed, odd["y"], min_bucket=2)),
        (po.class_rules(plain, "y"), po.class_rules(renamed, odd["y"])),
    ]
    for mine, theirs in models:
        told = plain.select(told=mine.predict())["told"]
        assert told.equals(renamed.select(told=theirs.predict())["told"])
    if odd["g"] not in po.best_splits(plain, "y").columns:
        segments = [
            po.best_splits(plain, "y", "f0", by="g"),
            po.best_splits(renamed, odd["y"], odd["f0"], by=odd["g"]),
        ]
        assert segments[0].select(numbers).equals(segments[1].select(numbers))


# --- two ways to the same answer ---


@some
@given(
    data=st.data(),
    criterion=st.sampled_from([*CLASS_CRITERIA, *NUMBER_CRITERIA]),
)
def test_expression_path_is_the_frame_path(data: st.DataObject, criterion: CriterionName) -> None:
    """The struct of the expression says nothing of missing rows: it drops them."""
    n_rows = data.draw(st.integers(1, 24))
    feature = data.draw(features(n_rows, kind="ordered"))
    target = data.draw(targets(n_rows, numbers=criterion in NUMBER_CRITERIA))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    frame = one_feature(feature, target).with_columns(g=pl.Series(groups, dtype=pl.Int64))
    best = pl.col("x").oner.best_split("y", criterion=criterion)  # type: ignore[attr-defined]
    per_group = frame.group_by("g").agg(best.alias("split")).sort("g").unnest("split")
    for (group,), part in frame.group_by("g"):
        found = per_group.row(by_predicate=pl.col("g") == group, named=True)
        if part["y"].null_count() == part.height:
            assert found["score"] is None
            continue
        split = po.best_split(part, "y", "x", criterion=criterion, missing="drop")
        if split.score is None:
            assert found["score"] is None
            continue
        assert found["score"] == pytest.approx(split.score, rel=1e-9, abs=1e-12)
        if criterion in CLASS_CRITERIA:
            assert (found["n_left"], found["n_right"]) == (split.n_left, split.n_right)
            assert found["threshold"] == split.threshold
    segments = po.best_splits(frame, "y", "x", criterion=criterion, missing="drop", by="g")
    both = per_group.join(segments, on="g", how="left", maintain_order="left")
    assert close(both["score"], both["score_right"])


@some
@given(table=tables(kind="ordered"), data=st.data())
def test_refined_search_is_the_exhaustive_one_on_small_tables(
    table: Table, data: st.DataObject
) -> None:
    criterion = data.draw(st.sampled_from(CLASS_CRITERIA))
    missing = data.draw(st.sampled_from(MISSING))
    min_leaf = data.draw(st.sampled_from([1, 2, 5]))
    exhaustive, refined = (
        po.best_splits(
            table.frame,
            "y",
            criterion=criterion,
            missing=missing,
            min_leaf=min_leaf,
            strategy=strategy,
        )
        for strategy in ("exhaustive", "refine")
    )
    assert exhaustive.equals(refined)


def shapes(generator: np.random.Generator, n: int) -> dict[str, np.ndarray[Any, Any]]:
    """Draw columns that are hard to bin."""
    normal = generator.normal(size=n)
    return {
        "normal": normal,
        "heavy": generator.standard_cauchy(n) ** 3,
        "zeros": np.where(generator.random(n) < 0.99, 0.0, normal),
        "few": generator.integers(0, 5, n),
        "distinct": generator.permutation(n),
        "outlier": np.where(np.arange(n) == n // 2, 1e300, normal),
        "infinite": np.where(generator.random(n) < 0.1, np.inf, -np.inf),
        "huge": 2**53 + generator.integers(0, n, n),
        "seconds": 1_700_000_000 + generator.integers(0, n, n),
        "holes": np.where(generator.random(n) < 0.2, np.nan, np.where(normal < 0, -0.0, normal)),
        "float32": normal.astype(np.float32),
    }


@pytest.mark.parametrize("criterion", [*CLASS_CRITERIA, *NUMBER_CRITERIA])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_refined_search_is_the_exhaustive_one_on_odd_shapes(
    criterion: CriterionName, seed: int, n_classes: int
) -> None:
    generator = np.random.default_rng(seed)
    n = 1500
    columns = shapes(generator, n)
    signal = columns["normal"] + columns["seconds"] / n * seed + generator.normal(size=n)
    edges = np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1])
    frame = pl.DataFrame({**columns, "y": np.searchsorted(edges, signal)})
    for missing in ("best", "drop"):
        exhaustive, refined = (
            po.best_splits(frame, "y", criterion=criterion, missing=missing, strategy=strategy)
            for strategy in ("exhaustive", "refine")
        )
        if criterion in CLASS_CRITERIA:
            assert exhaustive.equals(refined)
        else:
            assert exhaustive["feature"].to_list() == refined["feature"].to_list()
            assert close(exhaustive["score"], refined["score"])


# --- models ---


@few
@given(table=tables())
def test_models_go_through_json_unharmed(table: Table) -> None:
    frame = table.frame
    for model in (
        po.best_split(frame, "y"),
        po.fit(frame, "y", min_bucket=2, identifiers="keep"),
        po.class_rules(frame, "y"),
    ):
        back = type(model).from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
        assert repr(back) == repr(model)
        told = frame.select(a=model.predict(), b=back.predict())
        assert told["a"].equals(told["b"])


@few
@given(table=tables())
def test_a_split_predicts_the_majority_of_each_side(table: Table) -> None:
    frame = table.frame
    split = po.best_split(frame, "y")
    told = frame.select(told=split.predict(), left=split.goes_left(), y="y")
    assert told["told"].dtype == frame["y"].dtype
    assert told["told"].null_count() == 0
    present = told.filter(pl.col("y").is_not_null())
    if split.score is None:
        default = oracle.default_class(table.target.column, table.target.classes)
        assert set(told["told"]) == {default}
        return
    for left in (True, False):
        side = present.filter(pl.col("left") == left)
        most = side.group_by("y").len()["len"].max()
        assert (side["told"] == side["y"]).sum() == most


@few
@given(table=tables(kind="any"), bucket=st.sampled_from([1, 3]))
def test_leave_one_out_accuracy_is_brute_force(table: Table, bucket: int) -> None:
    """Nominal features exactly; intervals are those of all rows, as the closed form keeps them."""
    ranking = po.rank(table.frame, "y", min_bucket=bucket)
    for row in ranking.iter_rows(named=True):
        feature = table.features[row["feature"]]
        expected = oracle.leave_one_out(
            feature.column,
            table.target.column,
            feature.rule_kind,
            min_bucket=bucket,
            classes=table.target.classes,
        )
        assert row["loo_accuracy"] == pytest.approx(float(expected), abs=1e-12)
