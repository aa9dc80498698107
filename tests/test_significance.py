"""P-values of splits against full enumeration, scipy, published tables and simulated nulls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import permutations
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests

from polars_oner import significance
from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    EmptyTargetError,
    MissingColumnError,
    MissingPackageError,
    OptionError,
)
from polars_oner.significance import (
    limit_probability,
    split_significance,
    worsley_bound,
)
from tests.oracle import best_nominal, best_ordered

Criterion = Literal["gini", "entropy", "error", "variance", "std"]
Placement = Literal["best", "left", "right", "drop"]

CRITERIA: list[Criterion] = ["gini", "entropy", "error", "variance", "std"]


def row(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    return split_significance(frame, "y", "x", **options).row(0, named=True)


def enumerated(
    x: list[Any], y: list[Any], criterion: Criterion, *, nominal: bool = False, **options: Any
) -> float:
    """Give the share of all orders of the target whose best score is as low as the one given."""
    best = best_nominal if nominal else best_ordered
    if options.get("missing") == "drop":
        y = [b for a, b in zip(x, y, strict=True) if a is not None]
        x = [a for a in x if a is not None]

    def score(target: tuple[Any, ...]) -> Any:
        split = best(x, target, criterion, **options)
        assert split is not None
        return split.score

    orders = sorted(set(permutations(y)))
    lowest = score(tuple(y))
    return float(np.mean([score(order) <= lowest for order in orders]))


# --- two outcomes: exact ---

X = [1, 2, 2, 3, 4, 5, 5]
HOLES = [None, 2, 2, 3, 4, 5, 5]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("y", [[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1, 0]])
@pytest.mark.parametrize(
    ("x", "missing", "min_leaf"),
    [(X, "drop", 1), (X, "best", 2), (HOLES, "drop", 1), (HOLES, "left", 2), (HOLES, "right", 1)],
)
def test_exact_equals_enumeration(
    criterion: Criterion, y: list[int], x: list[int | None], missing: Placement, min_leaf: int
) -> None:
    frame = pl.DataFrame({"x": x, "y": y})
    found = row(frame, criterion=criterion, missing=missing, min_leaf=min_leaf)
    expected = enumerated(x, y, criterion, missing=missing, min_leaf=min_leaf)
    assert found["method"] == "exact"
    assert found["p_value"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("y", [[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 0, 1]])
def test_both_placements_of_missing_rows_are_charged(criterion: Criterion, y: list[int]) -> None:
    found = row(pl.DataFrame({"x": HOLES, "y": y}), criterion=criterion, missing="best")
    expected = enumerated(HOLES, y, criterion, missing="best")
    assert found["method"] == "bonferroni"
    assert expected - 1e-12 <= found["p_value"] <= 2 * expected + 1e-12


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("y", [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 0, 1, 0, 1]])
def test_nominal_bounds_enumeration(criterion: Criterion, y: list[int]) -> None:
    x = list("aaabbcd")
    found = row(pl.DataFrame({"x": x, "y": y}), criterion=criterion)
    expected = enumerated(x, y, criterion, nominal=True, missing="drop")
    assert found["method"] == "bonferroni"
    assert expected - 1e-12 <= found["p_value"] <= 1


@pytest.mark.parametrize("x", [[0] * 6 + [1] * 14, list("a" * 6 + "b" * 14)])
def test_single_candidate_is_fishers_exact_test(x: list[Any]) -> None:
    y = [0] * 5 + [1] + [0] * 5 + [1] * 9  # equally many of both: two-sided in one way only
    found = row(pl.DataFrame({"x": x, "y": y}))
    assert found["p_value"] == pytest.approx(stats.fisher_exact([[5, 1], [5, 9]]).pvalue, rel=1e-9)


def test_perfect_split_has_two_orders() -> None:
    frame = pl.DataFrame({"x": range(400), "y": [0] * 200 + [1] * 200})
    expected = 2 / float(stats.hypergeom(400, 200, 200).pmf(0) ** -1)
    assert row(frame)["p_value"] == pytest.approx(expected, rel=1e-6)


def test_numbers_with_two_values_are_two_outcomes() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 20, 60), rng.integers(0, 2, 60)
    frames = [pl.DataFrame({"x": x, "y": values}) for values in (y, y == 1, 7.25 - 3.5 * y)]
    results = [row(frame, criterion="variance") for frame in frames]
    assert [result["method"] for result in results] == ["exact"] * 3
    assert results[1]["p_value"] == pytest.approx(results[0]["p_value"], rel=1e-9)
    assert results[2]["p_value"] == pytest.approx(results[0]["p_value"], rel=1e-9)
    # Gini is twice the variance of 0 and 1.
    assert row(frames[0])["p_value"] == pytest.approx(results[0]["p_value"], rel=1e-9)


def test_naive_p_value_is_too_small() -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=100) for i in range(100)}
    frame = pl.DataFrame({**columns, "y": np.arange(100) % 2})
    result = split_significance(frame, "y")
    naive = stats.chi2.sf(result["statistic"].to_numpy(), 1)
    # Pure noise: of tests at 5 %, about 5 in 100 should reject.
    assert (naive < 0.05).sum() > 40
    assert 1 <= (result["p_value"] < 0.05).sum() <= 10
    assert (result["p_value"] > naive).all()
    adjusted = multipletests(result["p_value"].to_numpy(), method="holm")[1]
    assert result["p_adjusted"].to_list() == pytest.approx(adjusted.tolist())


def test_more_than_the_exact_rows_near_the_exact_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    n = 3000
    for strength, rare in [(0.15, 0.5), (0.6, 0.03)]:
        y = rng.random(n) < rare
        frame = pl.DataFrame({"x": rng.normal(size=n) + strength * y, "y": y})
        exact = row(frame)
        monkeypatch.setattr(significance, "EXACT_ROWS", 100)
        found = row(frame)
        monkeypatch.undo()
        assert (exact["method"], found["method"]) == ("exact", "lausen-schumacher")
        assert exact["p_value"] * 0.8 < found["p_value"] < exact["p_value"] * 3


# --- approximations ---


@pytest.mark.parametrize(
    ("lower", "upper", "quantiles"),
    [
        (0.25, 0.75, [2.539, 2.829, 3.088, 3.395]),
        (0.4, 0.6, [2.263, 2.560, 2.828, 3.149]),
        (0.1, 0.9, [2.784, 3.054, 3.297, 3.588]),
        (0.4, 0.9, [2.597, 2.883, 3.138, 3.442]),
    ],
)
def test_quantiles_of_lausen_and_schumacher_table_2(
    lower: float, upper: float, quantiles: list[float]
) -> None:
    for level, quantile in zip([0.1, 0.05, 0.025, 0.01], quantiles, strict=True):
        assert limit_probability(quantile**2, 1, lower, upper) == pytest.approx(level, rel=3e-3)


def test_limit_equals_maxstat_of_r() -> None:
    # R: sapply(c(0.5, 1.5, 2, 2.5, 3, 5, 10), maxstat::pLausen92, minprop = 0.1, maxprop = 0.9)
    expected = {
        0.5: 1.0,
        1.5: 0.819678995766699,
        2.0: 0.463872768757117,
        2.5: 0.189802453892004,
        3.0: 0.0578438845691903,
        5.0: 3.25492795226314e-05,
        10.0: 3.37831711514353e-21,
    }
    for b, p_value in expected.items():
        assert limit_probability(b * b, 1, 0.1, 0.9) == pytest.approx(p_value, rel=1e-12)


def test_more_classes_follow_the_published_formula() -> None:
    # Betensky and Rabinowitz (1999), the density written as scipy's gamma.
    for n_classes, b in [(3, 12.0), (4, 18.0), (10, 40.0)]:
        density = stats.gamma.pdf(b, (n_classes - 1) / 2, scale=2)
        expected = density * ((b - n_classes + 1) * np.log(81) + 4)
        found = limit_probability(b, n_classes - 1, 0.1, 0.9)
        assert found == pytest.approx(expected, rel=1e-9)
    assert limit_probability(8.5, 9, 0.1, 0.9) == 1.0


def test_improved_bonferroni_near_the_published_value() -> None:
    # Lausen, Sauerbrei and Schumacher (1994), page 489: b = 2.5, n = 20, cuts from 5 to 15.
    assert worsley_bound(2.5**2, np.arange(5, 16), 20) == pytest.approx(0.073, abs=5e-4)


def test_improved_bonferroni_of_two_cuts_is_the_bivariate_normal() -> None:
    sizes, n = np.array([20, 45]), 100
    rho = np.sqrt(20 * 55 / (80 * 45))
    for b in (1.0, 2.0, 3.0):
        normal = stats.multivariate_normal(cov=[[1, rho], [rho, 1]])
        inside = normal.cdf([b, b], lower_limit=[-b, -b])
        assert worsley_bound(b * b, sizes, n) == pytest.approx(1 - inside, abs=1e-6)
    alone = worsley_bound(9.0, sizes[:1], n)
    assert alone == pytest.approx(stats.chi2.sf(9, 1))
    assert alone < worsley_bound(9.0, sizes, n) < 2 * alone


NULLS: dict[str, tuple[Criterion, Callable[[np.random.Generator, int], Any]]] = {
    "normal": ("variance", lambda rng, n: rng.normal(size=n)),
    "heavy": ("variance", lambda rng, n: rng.standard_cauchy(size=n)),
    "std": ("std", lambda rng, n: rng.exponential(size=n)),
    "classes": ("entropy", lambda rng, n: rng.integers(0, 3, n)),
    "gini": ("gini", lambda rng, n: np.searchsorted([0.6, 0.9], rng.random(n))),
}


@pytest.mark.parametrize("name", NULLS)
def test_type_one_errors(name: str) -> None:
    criterion, draw = NULLS[name]
    rng = np.random.default_rng(11)
    n = 80
    p_values = []
    for _ in range(6):
        free = {f"x{i}": rng.normal(size=n) for i in range(20)}
        tied = {f"t{i}": rng.integers(0, 5, n) for i in range(20)}
        frame = pl.DataFrame({**free, **tied, "y": draw(rng, n)})
        p_values += split_significance(frame, "y", criterion=criterion)["p_value"].to_list()
    # 240 tests: the bounds are three standard errors above the level.
    for level in (0.05, 0.1, 0.2):
        share = np.mean(np.array(p_values) <= level)
        assert share <= level + 3 * np.sqrt(level * (1 - level) / len(p_values))
    assert np.mean(np.array(p_values) <= 0.2) > 0.03  # not so safe that nothing is ever found


def test_statistics_equal_scipys() -> None:
    rng = np.random.default_rng(2)
    x = np.repeat([0, 1], [40, 60])
    two, three, number = rng.integers(0, 2, 100), rng.integers(0, 3, 100), rng.integers(0, 9, 100)

    def table(y: Any) -> Any:
        return stats.contingency.crosstab(x, y).count

    frame = pl.DataFrame({"x": x, "two": two, "three": three, "number": number})
    questions: list[tuple[str, Criterion]] = [
        ("two", "gini"),
        ("three", "gini"),
        ("number", "variance"),
    ]
    found = [
        split_significance(frame, target, "x", criterion=criterion)["statistic"].item()
        for target, criterion in questions
    ]
    expected = [
        stats.chi2_contingency(table(two), correction=False).statistic,
        stats.chi2_contingency(table(three), correction=False, lambda_=0).statistic,
        stats.kruskal(number[x == 0], number[x == 1]).statistic,
    ]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", ["b", "c", "f"])
def test_nominal_features(target: str) -> None:
    rng = np.random.default_rng(4)
    n = 200
    group = rng.integers(0, 5, n)
    frame = pl.DataFrame(
        {
            "noise": rng.integers(0, 5, n).astype(str),
            "signal": group.astype(str),
            "name": [f"n{i}" for i in range(n)],
            "b": (group > 2) ^ (rng.random(n) < 0.2),
            "c": np.where(rng.random(n) < 0.5, group, rng.integers(0, 3, n)),
            "f": group + rng.normal(size=n),
        }
    )
    criterion: Criterion = "variance" if target == "f" else "gini"
    result = split_significance(frame, target, ["noise", "signal", "name"], criterion=criterion)
    p_values = dict(result.select("feature", "p_value").iter_rows())
    assert set(result["method"]) == {"bonferroni"}
    assert p_values["signal"] < 1e-6
    assert p_values["noise"] > 0.05
    assert p_values["name"] > 0.999  # a perfect split of identifiers is no finding


# --- permutations ---


def test_permutations_agree_with_the_exact_value() -> None:
    rng = np.random.default_rng(6)
    n = 60
    y = rng.random(n) < 0.4
    frame = pl.DataFrame(
        {
            "a": rng.normal(size=n) + 0.8 * y,
            "b": rng.integers(0, 6, n),
            "c": rng.normal(size=n),
            "y": y,
        }
    )
    frame = frame.with_columns(c=pl.when(pl.int_range(pl.len()) % 5 > 0).then("c"))
    for criterion in CRITERIA:
        result = split_significance(frame, "y", criterion=criterion, n_permutations=999, seed=1)
        exact, shuffled = result["p_value"].to_numpy(), result["p_permutation"].to_numpy()
        assert set(result["method"]) == {"exact"}
        assert (np.abs(exact - shuffled) <= 4 * np.sqrt(exact * (1 - exact) / 999) + 1e-3).all()


def test_permutations_enumerate_small_numbers() -> None:
    x, y = [1, 2, 3, 4, 5, 6], [0.0, 1.0, 1.5, 4.0, 3.0, 9.0]
    found = row(pl.DataFrame({"x": x, "y": y}), criterion="variance", n_permutations=4999)
    expected = enumerated(x, y, "variance", missing="drop")
    assert found["p_permutation"] == pytest.approx(expected, abs=4 * np.sqrt(expected / 5000))


@pytest.mark.parametrize("x", [[1, 1, 2, 2, 3, 3, 4], list("aabbccd")])
def test_permutations_of_more_classes(x: list[Any]) -> None:
    y = ["p", "p", "q", "q", "r", "r", "r"]
    found = row(pl.DataFrame({"x": x, "y": y}), n_permutations=2999)
    nominal = isinstance(x[0], str)
    expected = enumerated(x, y, "gini", nominal=nominal, missing="drop")
    assert found["p_permutation"] == pytest.approx(expected, abs=4 * np.sqrt(expected / 3000))


def test_approximations_are_not_below_the_permutation_test() -> None:
    rng = np.random.default_rng(9)
    n = 150
    x = rng.normal(size=n)
    frame = pl.DataFrame(
        {
            "x": x,
            "f": 0.25 * x + rng.normal(size=n),
            "c": np.digitize(x + rng.normal(size=n, scale=4), [-2, 2]),
        }
    )
    questions: list[tuple[str, Criterion]] = [("f", "variance"), ("c", "entropy")]
    for target, criterion in questions:
        found = split_significance(frame, target, "x", criterion=criterion, n_permutations=999)
        p_value, shuffled = found.select("p_value", "p_permutation").row(0)
        assert shuffled / 2 <= p_value <= 8 * shuffled


def test_permutation_p_value_is_never_zero() -> None:
    frame = pl.DataFrame({"x": range(100), "y": [0] * 50 + [1] * 50})
    assert row(frame, n_permutations=19)["p_permutation"] == 1 / 20
    assert row(frame)["p_permutation"] is None


# --- the table ---


def test_depends_on_neither_row_order_nor_engine_nor_other_columns() -> None:
    rng = np.random.default_rng(10)
    n = 90
    frame = pl.DataFrame(
        {
            "x": rng.integers(0, 30, n),
            "z": rng.integers(0, 4, n).astype(str),
            "y": rng.integers(0, 2, n),
            "f": rng.integers(-50, 50, n),
        }
    )
    for target, criterion in [("y", "gini"), ("f", "variance")]:
        options: dict[str, Any] = {"criterion": criterion, "n_permutations": 49, "seed": 7}
        result = split_significance(frame, target, ["x", "z"], **options)
        shuffled = frame.sample(fraction=1, shuffle=True, seed=1)
        parts = pl.concat([shuffled[:20], shuffled[20:]], rechunk=False)
        assert_frame_equal(split_significance(parts, target, ["x", "z"], **options), result)
        for engine in ("in-memory", "streaming"):
            lazy = split_significance(parts.lazy(), target, ["x", "z"], engine=engine, **options)
            assert isinstance(lazy, pl.DataFrame)
            assert_frame_equal(lazy, result)
        alone = split_significance(frame, target, "x", **options).drop("p_adjusted")
        assert_frame_equal(result.filter(feature="x").drop("p_adjusted"), alone)


def test_stronger_signal_and_shorter_search_are_more_significant() -> None:
    x = list(range(40))
    found = []
    for n_wrong in (0, 2, 4, 6, 8):
        y = [int(i >= 20) ^ int(i % 5 == 2 and i // 5 < n_wrong) for i in x]
        found.append(row(pl.DataFrame({"x": x, "y": y}))["p_value"])
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    frame = pl.DataFrame({"x": x, "y": y})
    leaves = [row(frame, min_leaf=leaf) for leaf in (1, 5, 15, 20)]
    assert len({leaf["score"] for leaf in leaves}) == 1
    p_values = [leaf["p_value"] for leaf in leaves]
    assert p_values == sorted(p_values, reverse=True)


def test_order_adjustment_and_reasons() -> None:
    frame = pl.DataFrame(
        {
            "list": [[1]] * 8,
            "weak": [1, 5, 2, 6, 3, 7, 4, 8],
            "same": [1] * 8,
            "none": pl.Series([None] * 8, dtype=pl.Int64),
            "strong": range(8),
            "few": [1, 1, 1, 1, 1, 1, 1, 2],
            "y": [0, 0, 0, 0, 1, 1, 1, 1],
        }
    )
    result = split_significance(frame, "y", min_leaf=2)
    assert result["feature"].to_list() == ["strong", "weak", "list", "same", "none", "few"]
    assert result["reason"].to_list() == [
        None,
        None,
        "dtype List(Int64) cannot be tested",
        "only one distinct value",
        "all values are missing",
        "no split leaves 2 rows on each side",
    ]
    assert result["p_value"].null_count() == 4
    tested = result.head(2)
    expected = multipletests(tested["p_value"].to_numpy(), method="holm")[1]
    assert tested["p_adjusted"].to_list() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("criterion", CRITERIA)
def test_constant_target_is_no_finding(criterion: Criterion) -> None:
    found = row(pl.DataFrame({"x": range(5), "y": [3] * 5}), criterion=criterion, n_permutations=9)
    assert (found["p_value"], found["p_permutation"], found["statistic"]) == (1.0, 1.0, 0.0)


def test_rows_without_target_and_odd_names() -> None:
    names = ["*", "^a.*$", "value"]
    plain = pl.DataFrame({name: [1, 2, 3, 4, 5, 6] for name in names})
    frame = plain.with_columns(class_=pl.Series([0.5, 0.1, 2.0, 1.0, 3.0, None])).rename(
        {"class_": "rank"}
    )
    result = split_significance(frame, "rank", criterion="variance", n_permutations=9)
    assert result["feature"].to_list() == names
    assert result["n_rows"].to_list() == [5] * 3
    assert result["p_value"].n_unique() == 1


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"x": [1, 2], "y": [0, 1], "s": ["a", "b"]})
    for option in ("n_permutations", "seed"):
        for value in (-1, 1.5, True):
            with pytest.raises(OptionError, match=option):
                split_significance(frame, "y", **{option: value})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="min_leaf"):
        split_significance(frame, "y", min_leaf=0)
    with pytest.raises(OptionError, match="missing"):
        split_significance(frame, "y", missing="mean")  # type: ignore[arg-type]
    with pytest.raises(MissingColumnError):
        split_significance(frame, "yy")
    with pytest.raises(ColumnRoleError):
        split_significance(frame, "y", ["x", "y"])
    with pytest.raises(DtypeError):
        split_significance(frame, "s", criterion="variance")
    with pytest.raises(EmptyTargetError):
        split_significance(frame.clear(), "y")
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingPackageError, match=r"polars_oner\[stats\]"):
        split_significance(frame, "y")
