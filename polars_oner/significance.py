"""How likely chance alone gives a split as good as the best one, the search for it admitted.

The best of many candidates looks better than it is: a chi-square test of the split that was found takes
it for the only one tried. Here its p-value is the probability that *any* candidate of the feature
does as well when the target's values are dealt to the rows at random.

Where the target has two outcomes the candidates of an ordered feature are steps of a path through a
lattice: after m rows, a of them have the second outcome. A criterion is concave in a for fixed m,
so the scores that are not as good as the best form an interval at each step, and the probability that
a random path leaves them somewhere is counted exactly, with ties and ``min_leaf`` as they are. Other
targets are tested by a maximally selected statistic and its published approximations.

References
----------
Koziol, J. A. (1991). "On maximally selected chi-square statistics", *Biometrics* 47 (exact, by paths).
Boulesteix, A.-L. (2006). "Maximally selected chi-square statistics for ordinal variables", *Biometrical
Journal* 48 (with ties). Strobl, C., Boulesteix, A.-L., Augustin, T. (2007). "Unbiased split selection for
classification trees based on the Gini index", *Computational Statistics & Data Analysis* 52 (the same for
the Gini gain). Miller, R., Siegmund, D. (1982). "Maximally selected chi square statistics", *Biometrics*
38. Lausen, B., Schumacher, M. (1992). "Maximally selected rank statistics", *Biometrics* 48. Worsley,
K. J. (1982). "An improved Bonferroni inequality and applications", *Biometrika* 69. Lausen, B.,
Sauerbrei, W., Schumacher, M. (1994). "Classification and regression trees (CART) used for the
exploration of prognostic factors measured on different scales", in *Computational Statistics*. Betensky,
R. A., Rabinowitz, D. (1999). "Maximally selected chi-square statistics for k x 2 tables", *Biometrics* 55.
Holm, S. (1979). "A simple sequentially rejective multiple test procedure", *Scandinavian Journal of
Statistics* 6. Phipson, B., Smyth, G. K. (2010). "Permutation p-values should never be zero",
*Statistical Applications in Genetics and Molecular Biology* 9.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.choice import holm, scipy_stats
from polars_oner.counts import Measure, count_plan, count_values
from polars_oner.criteria import TIE, ClassCriterion, Criterion, NumberCriterion, criterion_for
from polars_oner.errors import OptionError, check_choice, check_positive
from polars_oner.frame import Column, as_lazy, column, resolve
from polars_oner.scores import EXHAUSTIVE, Search, candidates, first_best, with_left_values
from polars_oner.split import Split, split_from_counts
from polars_oner.target import ClassTarget, NumberTarget, class_target, known_rows, number_target
from polars_oner.typing import MISSING, CriterionName, Engine, Missing

EXACT_ROWS = 10_000
"""Up to this many rows the paths are counted at every cut, beyond only near the ends."""

_EDGE = 25
"""A cut is near an end if its smaller side expects fewer rows of the rarer outcome than this."""

_MOST_VALUES = 1000
"""With more values, their sets outnumber the inverse of any probability a float can hold."""

_SCHEMA = {
    "feature": pl.String(),
    "n_rows": pl.Int64(),
    "score": pl.Float64(),
    "statistic": pl.Float64(),
    "p_value": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "p_permutation": pl.Float64(),
    "method": pl.String(),
    "reason": pl.String(),
}

_Counts = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]
_c = pl.col


def split_significance(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    features: str | Sequence[str] | None = None,
    *,
    criterion: CriterionName = "gini",
    missing: Missing = "drop",
    min_leaf: int = 1,
    n_permutations: int = 0,
    seed: int = 0,
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    engine: Engine = "auto",
) -> pl.DataFrame:
    """Test the best split of every feature against chance, admitting the search for it.

    This executes, also for a LazyFrame, since scipy computes the probabilities. It needs the extra
    ``stats``. Every row counts once: there are no weights.

    Parameters
    ----------
    frame
        The rows, eager or lazy. Those without a target are left out.
    target, criterion, min_leaf, nominal, ordered
        As in `best_splits`.
    features
        The columns to test; all that can be split when None.
    missing
        As in `best_splits`, but rows with a missing feature are left out by default. ``"best"``
        is charged for both placements of the missing rows.
    n_permutations
        How often the target is dealt to the rows at random, in one query plan per feature, which
        holds the rows that often; 0 for no permutation test.
    seed
        Seed of the permutations, which are the same for every feature and depend on nothing
        else: not on the order of the rows, the other columns, or the engine. Another release of
        Polars may shuffle otherwise.
    engine
        The Polars engine that reads the frame.

    Returns
    -------
    DataFrame
        One row per feature, smallest p-value first, equal ones in the order of the columns.
        ``feature``; ``n_rows`` Int64, the rows scored; ``score``, that of the best split;
        ``statistic``, the split's two-sided test statistic as if it had been the only candidate;
        ``p_value``, in [0, 1]; ``p_adjusted``, corrected for the number of features by Holm's method;
        ``p_permutation``, null unless asked for; ``method``, how ``p_value`` was found; ``reason``, why
        a feature has no split (then all else is null and it comes last).

    Raises
    ------
    MissingColumnError, ColumnRoleError, DtypeError, OptionError
        A column or option does not fit; raised before any data is read.
    MissingPackageError
        scipy is not installed.
    EmptyTargetError
        No row has a target.

    Notes
    -----
    The statistic is Pearson's chi-square for two classes, the likelihood ratio G for more (1 and
    classes - 1 degrees of freedom), and for a number target the squared standardised rank sum of a
    side (Kruskal and Wallis' H; 1 degree of freedom). Ranks keep the p-value right where single far
    values would not; a target of numbers takes mid-ranks for ties.

    ``method`` is one of

    - ``"exact"``: two outcomes (classes, or numbers), ordered feature. The probability that the best
      score is as low as this one, by counting paths; any criterion.
    - ``"bonferroni"``: nominal features, and two placements of missing rows. The probabilities of all
      candidates, added up; exact ones if there are two outcomes, else by the chi-square distribution.
    - ``"lausen-schumacher"``: number target, or two outcomes in more than 10000 rows. The smaller of the
      limiting distribution of the largest statistic (Miller and Siegmund; Lausen and Schumacher) and
      Worsley's improved Bonferroni bound over the cuts that there are. Two outcomes: cuts near the
      ends, where no normal distribution holds, are counted exactly.
    - ``"betensky-rabinowitz"``: more classes, ordered feature. The limiting distribution for
      chi-squares, or Bonferroni's bound over the cuts if that is smaller.

    The latter methods err on the safe side in the main. They look at the statistic of the split that
    the criterion chose, so a criterion that chooses by other things than the statistic loses power.
    ``p_permutation`` is (1 + permutations whose best score is as low) / (``n_permutations`` + 1).

    Examples
    --------
    >>> import polars as pl, polars_oner
    >>> df = pl.DataFrame({"x": range(8), "z": list("abababab"), "y": [0, 0, 0, 0, 1, 1, 1, 1]})
    >>> polars_oner.split_significance(df, "y").select("feature", "statistic", "p_value", "method")
    shape: (2, 4)
    ┌─────────┬───────────┬──────────┬────────────┐
    │ feature ┆ statistic ┆ p_value  ┆ method     │
    │ ---     ┆ ---       ┆ ---      ┆ ---        │
    │ str     ┆ f64       ┆ f64      ┆ str        │
    ╞═════════╪═══════════╪══════════╪════════════╡
    │ x       ┆ 8.0       ┆ 0.028571 ┆ exact      │
    │ z       ┆ 0.0       ┆ 1.0      ┆ bonferroni │
    └─────────┴───────────┴──────────┴────────────┘
    """
    scipy_stats("split_significance")
    check_choice("missing", missing, MISSING)
    check_positive("min_leaf", min_leaf)
    _check_whole("n_permutations", n_permutations)
    _check_whole("seed", seed)
    lazy = as_lazy(frame)
    roles = resolve(lazy.collect_schema(), target, features, nominal=nominal, ordered=ordered)
    rule = criterion_for(criterion, target, roles.target_dtype)
    look = class_target if isinstance(rule, ClassCriterion) else number_target
    seen = look(lazy, target, roles.target_dtype, engine=engine)
    tables = count_values(frame, roles.features, seen, engine=engine)
    found = []
    rows: list[dict[str, Any]] = [
        {"feature": skip.name, "reason": skip.reason} for skip in roles.skipped
    ]
    for feature in roles.features:
        best = _best(feature, tables[feature.name], seen, rule, missing, min_leaf)
        if best is None:
            rows.append(
                {"feature": feature.name, "reason": _reason(tables[feature.name], min_leaf)}
            )
        else:
            found.append(best)
    for best, sides in zip(found, _sides(lazy, found, seen, engine), strict=True):
        p_value, method = _p_value(best, sides)
        figures = {"n_rows": sides.n_rows, "score": best.score, "statistic": sides.statistic}
        rows.append({"feature": best.name, "p_value": p_value, "method": method, **figures})
    tested = [row for row in rows if "p_value" in row]
    for row, adjusted in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
        row["p_adjusted"] = adjusted
    if n_permutations:
        shares = _permuted(lazy, found, seen, n_permutations, seed, engine)
        for row, share in zip(tested, shares, strict=True):
            row["p_permutation"] = share
    rows.sort(key=lambda row: (row.get("p_value", np.inf), roles.names.index(row["feature"])))
    return pl.DataFrame(
        [[row.get(name) for name in _SCHEMA] for row in rows], schema=_SCHEMA, orient="row"
    )


def _check_whole(option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionError.from_range(option, value, "a whole number of at least 0")


@dataclass(frozen=True)
class _Best:
    """The best split of a feature, and the counts it was found in."""

    name: str
    counts: pl.DataFrame
    search: Search
    seen: ClassTarget | NumberTarget
    score: float
    before: float
    split: Split

    @property
    def limit(self) -> float:
        """The highest score that is as good as the best: scores that differ by rounding are equal."""
        return self.score + TIE * self.before


@dataclass(frozen=True)
class _Sides:
    """The target on both sides of a split.

    Attributes
    ----------
    n_rows
        Rows on both sides.
    statistic, df
        The statistic of the split and its degrees of freedom; 0 for a constant target.
    n_marked
        Rows with the second of two outcomes; None if there are more outcomes.
    """

    n_rows: int
    statistic: float
    df: int
    n_marked: int | None


def _best(
    feature: Column,
    counts: pl.DataFrame,
    seen: ClassTarget | NumberTarget,
    criterion: Criterion,
    missing: Missing,
    min_leaf: int,
) -> _Best | None:
    counts = counts.with_columns(exact=pl.lit(value=True))
    search = Search(
        criterion,
        feature.kind,
        missing,
        min_leaf,
        n_classes=len(seen.classes) if isinstance(seen, ClassTarget) else None,
        has_missing=counts["value"].null_count() > 0,
    )
    plan = first_best(candidates(counts.lazy(), search), ())
    if feature.kind == "nominal":
        plan = with_left_values(plan, counts.lazy(), search)
    chosen = plan.collect(engine="in-memory")
    if chosen.is_empty():
        return None
    split = split_from_counts(feature, chosen, counts, seen, criterion, "value")
    score, before = chosen.select("score", "before").row(0)
    return _Best(feature.name, counts, search, seen, score, before, split)


def _reason(counts: pl.DataFrame, min_leaf: int) -> str:
    """Say why a feature has no candidate, in the words of `best_splits`."""
    n_values = counts["value"].drop_nulls().n_unique()
    if n_values < 2:
        return "only one distinct value" if n_values else "all values are missing"
    return f"no split leaves {min_leaf} rows on each side"


def _sides(
    lazy: pl.LazyFrame,
    found: Sequence[_Best],
    seen: ClassTarget | NumberTarget,
    engine: Engine,
) -> list[_Sides]:
    if isinstance(seen, ClassTarget):
        return [_class_sides(best.split) for best in found]
    return _number_sides(lazy, found, seen, engine)


def _class_sides(split: Split) -> _Sides:
    """Compare the classes on both sides, by Pearson's chi-square or by G."""
    assert split.left is not None
    assert split.right is not None
    table = np.array([split.left.counts, split.right.counts], dtype=np.int64)
    table = table[:, table.sum(axis=0) > 0]
    n_rows, n_classes = int(table.sum()), table.shape[1]
    if n_classes == 1:
        return _Sides(n_rows, 0.0, 0, None)
    two = n_classes == 2
    test = scipy_stats("split_significance").chi2_contingency(
        table, correction=False, lambda_="pearson" if two else "log-likelihood"
    )
    marked = int(table[:, 1].sum()) if two else None
    return _Sides(n_rows, float(test.statistic), n_classes - 1, marked)


def _number_sides(
    lazy: pl.LazyFrame, found: Sequence[_Best], seen: NumberTarget, engine: Engine
) -> list[_Sides]:
    """Compare the ranks on both sides: ``n - 1`` times the share of their variance that is between.

    All features are looked at in one query.
    """
    if not found:
        return []
    goes = [best.split.goes_left(f"left{i}") for i, best in enumerate(found)]
    rows = known_rows(lazy, seen).select(seen.deviation().rank("average").alias("rank"), *goes)
    rows = rows.with_columns(s=_c("rank") - _c("rank").mean(), top=_c("rank") == _c("rank").max())
    rows = rows.with_columns(
        n=pl.lit(1, pl.Int64), q=_c("s") * _c("s"), top=_c("top").cast(pl.Int64)
    )
    figures = [_c("rank").n_unique().alias("n_outcomes")]
    for i, _ in enumerate(found):
        for side, which in {"left": _c(f"left{i}"), "right": ~_c(f"left{i}")}.items():
            sums = [_c(name).filter(which).sum() for name in ("n", "s", "q", "top")]
            figures.append(pl.struct(sums).alias(f"{side}{i}"))
    row = rows.select(figures).collect(engine=engine).row(0, named=True)

    def masses(*which: str) -> pl.Expr:
        moments = [
            pl.sum_horizontal(_c(side).struct.field(name) for side in which) for name in "nsq"
        ]
        return NumberCriterion("variance").mass(*moments)

    total = masses("left", "right")
    between = 1 - (masses("left") + masses("right")) / total
    shares = pl.DataFrame(
        {side: [row[f"{side}{i}"] for i, _ in enumerate(found)] for side in ("left", "right")}
    ).select(pl.when(total > 0).then(between))
    sides = []
    for i, share in enumerate(shares.to_series().to_list()):
        left, right = row[f"left{i}"], row[f"right{i}"]
        n_rows = left["n"] + right["n"]
        if share is None:
            sides.append(_Sides(n_rows, 0.0, 0, None))
            continue
        marked = left["top"] + right["top"] if row["n_outcomes"] == 2 else None
        sides.append(_Sides(n_rows, (n_rows - 1) * max(share, 0.0), 1, marked))
    return sides


def _p_value(best: _Best, sides: _Sides) -> tuple[float, str]:
    if sides.df == 0:
        return 1.0, "exact"
    lattice = None if sides.n_marked is None else _Lattice(best, sides.n_rows, sides.n_marked)
    present, n_missing = _value_counts(best)
    if best.search.kind == "nominal":
        values = np.append(present, n_missing) if n_missing else present
        return _over_sets(values, best.search, sides, lattice), "bonferroni"
    chains = _chains(present, n_missing, best.search)
    tested = [_over_cuts(sizes, sides, lattice) for sizes in chains]
    method = "bonferroni" if len(tested) > 1 and tested[0][1] == "exact" else tested[0][1]
    return min(sum(p for p, _ in tested), 1.0), method


def _value_counts(best: _Best) -> tuple[_Counts, int]:
    """Count the rows of each present value, ascending, and the missing rows if they are scored."""
    per_value = best.counts.group_by("value", maintain_order=True).agg(_c("n").sum())
    present = per_value.filter(_c("value").is_not_null())["n"].to_numpy().astype(np.int64)
    n_missing = per_value.filter(_c("value").is_null())["n"].sum()
    return present, 0 if best.search.missing == "drop" else int(n_missing)


def _chains(present: _Counts, n_missing: int, search: Search) -> list[_Counts]:
    """Give the rows on the left of every candidate; candidates of one chain contain each other."""
    up_to = np.cumsum(present)
    n_rows = up_to[-1] + n_missing
    if not n_missing or search.missing == "right":
        chains = [up_to[:-1]]
    elif search.missing == "left":
        chains = [up_to[:-1] + n_missing]
    else:
        chains = [up_to[:-1] + n_missing, up_to]  # the last of all: the missing rows alone
    leaf = search.min_leaf
    fitting = [sizes[(sizes >= leaf) & (n_rows - sizes >= leaf)] for sizes in chains]
    return [sizes for sizes in fitting if len(sizes)]


@dataclass(frozen=True)
class _Lattice:
    """The scores that a split can have when the target has two outcomes."""

    best: _Best
    n_rows: int
    n_marked: int

    def bounds(self, sizes: _Counts) -> tuple[_Counts, _Counts]:
        """Give the smallest and largest number of marked rows on the left that score worse.

        One interval per size of the left side. A score is concave in that number, so the interval
        is found by bisection from the peak; where no number scores worse it is empty.
        """
        least = np.maximum(0, self.n_marked - (self.n_rows - sizes))
        most = np.minimum(self.n_marked, sizes)
        ones = np.ones_like(sizes)
        peak = _first(
            least,
            most,
            lambda a: self.scores(sizes, np.minimum(a + ones, most)) <= self.scores(sizes, a),
        )
        worse = self.scores(sizes, peak) > self.best.limit
        low = _first(least, peak, lambda a: self.scores(sizes, a) > self.best.limit)
        after = _first(peak, most + 1, lambda a: self.scores(sizes, a) <= self.best.limit)
        return np.where(worse, low, peak + 1), np.where(worse, after - 1, peak)

    def scores(self, sizes: _Counts, marked: _Counts) -> _Numbers:
        """Score splits with so many rows, and marked rows, on the left."""
        table = pl.DataFrame({"m": sizes, "a": marked})
        rest = (pl.lit(self.n_rows) - _c("m"), pl.lit(self.n_marked) - _c("a"))
        masses = self._mass(_c("m"), _c("a")) + self._mass(*rest)
        return table.select(masses / self.n_rows).to_series().to_numpy()

    def _mass(self, n: pl.Expr, marked: pl.Expr) -> pl.Expr:
        criterion, seen = self.best.search.criterion, self.best.seen
        if isinstance(criterion, ClassCriterion):
            return criterion.side_mass([n - marked, marked], pl.lit(self.n_rows))
        assert isinstance(seen, NumberTarget)
        low, high = seen.low, seen.high
        plain = n - marked
        return criterion.mass(n, plain * low + marked * high, plain * low**2 + marked * high**2)


def _first(low: _Counts, high: _Counts, test: Any) -> _Counts:
    """Find by bisection the first number from ``low`` on that passes a test, or else ``high``."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        passes = test(middle) | (low >= high)
        high = np.where(passes, np.minimum(middle, high), high)
        low = np.where(passes, low, middle + 1)
    return high


def _over_cuts(sizes: _Counts, sides: _Sides, lattice: _Lattice | None) -> tuple[float, str]:
    """Bound the probability that some cut of a chain does as well."""
    n_rows = sides.n_rows
    if lattice is None:
        method = "lausen-schumacher" if sides.df == 1 else "betensky-rabinowitz"
        return _asymptotic(sizes, n_rows, sides.statistic, sides.df), method
    if n_rows <= EXACT_ROWS:
        return _path_probability(sizes, lattice), "exact"
    rare = min(lattice.n_marked, n_rows - lattice.n_marked) / n_rows
    start = sizes * rare < _EDGE
    end = ~start & ((n_rows - sizes) * rare < _EDGE)
    p_value = _path_probability(sizes[start], lattice)
    p_value += _path_probability(sizes[end], lattice, backwards=True)
    p_value += _asymptotic(sizes[~start & ~end], n_rows, sides.statistic, 1)
    return min(p_value, 1.0), "lausen-schumacher"


def _path_probability(sizes: _Counts, lattice: _Lattice, *, backwards: bool = False) -> float:
    """Give the probability that a random path scores as well as the best split at some size."""
    n_rows, n_marked = lattice.n_rows, lattice.n_marked
    low, high = lattice.bounds(sizes)
    if backwards:
        # Read from the end, the rows and marks on the left are those that were on the right.
        sizes = n_rows - sizes[::-1]
        low, high = n_marked - high[::-1], n_marked - low[::-1]
    return _exit_probability(sizes, low, high, n_rows, n_marked)


def _exit_probability(
    sizes: _Counts, low: _Counts, high: _Counts, n_rows: int, n_marked: int
) -> float:
    """Give the probability that a random order of the rows leaves ``low..high`` at some size.

    Rows are marked independently of each other, and the paths weighed by their chance to end with
    the right number of marks: that makes the order random, and each step a convolution. Only terms
    that are positive are added, so that small probabilities are exact too.
    """
    binomial = scipy_stats("split_significance").binom
    share = n_marked / n_rows
    steps = {
        step: binomial.pmf(np.arange(step + 1), step, share)
        for step in np.unique(np.diff(sizes, prepend=0)).tolist()
    }
    alive, first, done = np.ones(1), 0, 0
    rows, marks, chances = [], [], []
    for size, least, most in zip(sizes.tolist(), low.tolist(), high.tolist(), strict=True):
        alive = np.convolve(alive, steps[size - done])
        done = size
        here = min(max(least - first, 0), len(alive))
        there = min(max(most + 1 - first, here), len(alive))
        if here > 0 or there < len(alive):
            out = np.concatenate([np.arange(here), np.arange(there, len(alive))])
            rows.append(np.full(len(out), size))
            marks.append(first + out)
            chances.append(alive[out])
            alive, first = alive[here:there], first + here
            if not len(alive):
                break
    if not rows:
        return 0.0
    to_go, missing = n_rows - np.concatenate(rows), n_marked - np.concatenate(marks)
    paths = np.concatenate(chances) * binomial.pmf(missing, to_go, share)
    return min(float(paths.sum() / binomial.pmf(n_marked, n_rows, share)), 1.0)


def _over_sets(values: _Counts, search: Search, sides: _Sides, lattice: _Lattice | None) -> float:
    """Add up the probabilities that a set of values does as well, over all sets.

    Missing rows that are scored count as one more value, which covers any placement of them.
    """
    stats = scipy_stats("split_significance")
    n_values = len(values)
    if lattice is None:
        if search.by_mean or n_values <= EXHAUSTIVE:
            n_sets = 2.0 ** min(n_values - 1, _MOST_VALUES) - 1
        else:
            n_sets = 2.0 * n_values
        return float(min(n_sets * stats.chi2.sf(sides.statistic, sides.df), 1.0))
    if n_values > _MOST_VALUES:
        return 1.0
    # The share of all sets that have so many rows; a set and its complement are one split.
    share = np.zeros(sides.n_rows + 1)
    share[0] = 1.0
    for n in values.tolist():
        share[n:] += share[:-n].copy()
        share /= 2
    sizes = np.flatnonzero(share)
    sizes = sizes[(sizes >= search.min_leaf) & (sides.n_rows - sizes >= search.min_leaf)]
    low, high = lattice.bounds(sizes)
    drawn = stats.hypergeom(sides.n_rows, lattice.n_marked, sizes)
    chance = float((share[sizes] * (drawn.cdf(low - 1) + drawn.sf(high))).sum())
    return min(chance * 2.0 ** (n_values - 1), 1.0)


def _asymptotic(sizes: _Counts, n_rows: int, statistic: float, df: int) -> float:
    """Bound the probability that the largest statistic over nested cuts reaches a value."""
    if not len(sizes):
        return 0.0
    limit = limit_probability(statistic, df, sizes[0] / n_rows, sizes[-1] / n_rows)
    if df == 1:
        cuts = worsley_bound(statistic, sizes, n_rows)
    else:
        cuts = len(sizes) * float(scipy_stats("split_significance").chi2.sf(statistic, df))
    return min(limit, cuts, 1.0)


def limit_probability(statistic: float, df: int, lower: float, upper: float) -> float:
    """Give the limiting probability that the largest chi-square over a range of cuts reaches a value.

    ``f(b) ((b - df) log r + 4)`` with f the chi-square density and r the odds ratio of the ends of
    the range; 1 where that still grows with b, since it holds for large b only.

    Parameters
    ----------
    statistic
        The value b.
    df
        Degrees of freedom of the chi-square of a single cut.
    lower, upper
        Smallest and largest share of the rows on the left.

    References
    ----------
    Betensky and Rabinowitz (1999); for one degree of freedom Miller and Siegmund (1982), and Lausen
    and Schumacher (1992) for rank statistics.
    """
    log_ratio = np.log(upper * (1 - lower) / (lower * (1 - upper)))
    # The sign of the derivative, by the density's own (log f)' = (df / 2 - 1) / b - 1 / 2.
    factor = (statistic - df) * log_ratio + 4
    if statistic <= df or factor * ((df / 2 - 1) / statistic - 0.5) + log_ratio > 0:
        return 1.0
    density = scipy_stats("split_significance").chi2.pdf(statistic, df)
    return min(float(density * factor), 1.0)


def worsley_bound(statistic: float, sizes: _Counts, n_rows: int) -> float:
    """Bound the probability that the largest of successive chi-squares (df 1) reaches a value.

    The first cut's probability, and for every further cut that it is reached there but not at the cut
    before, from the bivariate normal distribution by Owen's T function.

    Parameters
    ----------
    statistic
        The value.
    sizes
        Rows on the left of each cut, ascending.
    n_rows
        Rows in all.

    References
    ----------
    Worsley (1982); Lausen, Sauerbrei and Schumacher (1994), who expand the bivariate terms.
    """
    stats = scipy_stats("split_significance")
    from scipy.special import owens_t

    height = np.sqrt(statistic)
    alone = 2 * stats.norm.sf(height)
    before, after = sizes[:-1].astype(float), sizes[1:].astype(float)
    correlation = np.sqrt(before * (n_rows - after) / ((n_rows - before) * after))
    near = np.sqrt((1 - correlation) / (1 + correlation))
    newly = 4 * (owens_t(height, near) + owens_t(height, 1 / near)) - alone
    return float(alone + newly.clip(0, alone).sum())


def _permuted(
    lazy: pl.LazyFrame,
    found: Sequence[_Best],
    seen: ClassTarget | NumberTarget,
    n_permutations: int,
    seed: int,
    engine: Engine,
) -> list[float]:
    """Deal the target to the rows at random and count how often the best score is as low."""
    if isinstance(seen, ClassTarget):
        pairs = [best.counts for best in found]
    else:
        measure = Measure(seen.deviation(), by_class=True)
        rows = known_rows(lazy, seen)
        plans = []
        for best in found:
            assert best.split.dtype is not None
            feature = Column("x", best.split.dtype, best.search.kind)
            columns = (column(best.name).alias("x"), *measure.per_row(pl.lit(1, pl.Int64)))
            plans.append(count_plan(rows.select(columns), feature, measure))
        pairs = pl.collect_all(plans, engine=engine)
    plans = [
        _permutation_plan(best, table.lazy(), n_permutations, seed)
        for best, table in zip(found, pairs, strict=True)
    ]
    counts = pl.collect_all(plans, engine="in-memory")
    return [(1 + int(count.item())) / (n_permutations + 1) for count in counts]


def _permutation_plan(
    best: _Best, pairs: pl.LazyFrame, n_permutations: int, seed: int
) -> pl.LazyFrame:
    """Plan a permutation test from the counts of value and outcome."""
    if best.search.missing == "drop":
        pairs = pairs.filter(_c("value").is_not_null())
    row = pl.int_range(pl.len()).repeat_by("n").explode()
    rows = pairs.select(_c("value", "class").gather(row))
    deals = pl.LazyFrame({"by0": pl.Series(range(n_permutations), dtype=pl.Int64)})
    # Sorted by keys of their own, in each permutation apart, the outcomes meet the values anew.
    outcome = _c("class").sort_by("key").over("by0")
    dealt = (
        deals.join(rows, how="cross")
        .with_columns(key=pl.int_range(pl.len()).shuffle(seed))
        .select("by0", "value", outcome)
    )
    keys = ["by0", "value"]
    if isinstance(best.seen, ClassTarget):
        keys.append("class")
        sums = [pl.len().cast(pl.Int64).alias("n")]
    else:
        y = _c("class")
        sums = [pl.len().cast(pl.Int64).alias("n"), y.sum().alias("s"), (y * y).sum().alias("q")]
    counts = dealt.group_by(keys).agg(sums).sort(keys).with_columns(exact=pl.lit(value=True))
    scored = candidates(counts, replace(best.search, by=("by0",)))
    lowest = scored.group_by("by0").agg(_c("score").min())
    return lowest.select((_c("score") <= best.limit).sum())
