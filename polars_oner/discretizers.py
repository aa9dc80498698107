"""Ways to cut an ordered feature into bins, each a function from its count table to cut points.

No method sees a row: a count table (see `counts`) tells all they need, weights included, and missing
values take no part. What the methods have in common stands here once: the line that the values lie
on, bins grown by the best split (``"tree"`` and ``"mdl"`` differ in when they stop), and bins joined
until few enough are left.

A cut is a value of the feature's dtype between two neighbouring training values,
``left_max <= cut < right_min``; a row lies below it if its value is ``<= cut``.

References
----------
``"1r"``: Holte, R. C. (1993). Very simple classification rules perform well on most commonly used
datasets. *Machine Learning* 11, 63-91.

``"mdl"``: Fayyad, U. M., Irani, K. B. (1993). Multi-interval discretization of continuous-valued
attributes for classification learning. *IJCAI-93*, 1022-1027.

``"tree"``: Breiman, L., Friedman, J., Olshen, R., Stone, C. (1984). *Classification and Regression
Trees*; grown best-first as in Shi, H. (2007). *Best-first decision tree learning*. University of
Waikato.

``"quantile"``: Hyndman, R. J., Fan, Y. (1996). Sample quantiles in statistical packages. *The American
Statistician* 50, 361-365, their type 7.

``"naive"``, ``"logreg"``, ``"infogain"``: the methods of ``optbin``, in von Jouanne-Diedrich, H.
(2017). *OneR: One Rule Machine Learning Classification Algorithm with Enhancements*. R package 2.2.

``"clusters"``: see `clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.clusters import optimal_centers
from polars_oner.criteria import TIE, ClassCriterion, Criterion, criterion_for, require_classes
from polars_oner.errors import MissingPackageError, OptionError, check_choice, check_positive
from polars_oner.growth import Best, best_splits, grown, joined
from polars_oner.intervals import in_chunks, tie_order, walk
from polars_oner.number_line import NumberLine
from polars_oner.target import ClassTarget, NumberTarget
from polars_oner.typing import CLASS_CRITERIA, TIES, CriterionName, Ties

Method = Literal[
    "1r", "mdl", "tree", "quantile", "width", "naive", "logreg", "infogain", "clusters"
]
METHODS: tuple[Method, ...] = get_args(Method)

ANY_TARGET: tuple[Method, ...] = ("tree", "quantile", "width", "clusters")
"""Methods that do not need classes; the others read the target as classes, whatever its dtype."""

DEFAULT_BINS = 5
"""How many bins the methods in `ANY_TARGET` make unless told (as R's ``bin``)."""

_ROUNDING = Fraction(1, 10**12)
"""Sums of float weights closer than this share are equal."""

Floats = npt.NDArray[np.float64]

_c = pl.col


@dataclass(frozen=True)
class Discretizer:
    """A method with its options, checked.

    Attributes
    ----------
    method, min_bucket, ties
        As in `discretize`.
    max_bins
        Most bins to make; None for no limit.
    criterion
        What ``"tree"`` splits by.
    """

    method: Method
    max_bins: int | None
    min_bucket: int
    ties: Ties
    criterion: Criterion

    def cut_points(self, counts: pl.DataFrame, target: ClassTarget | NumberTarget) -> pl.DataFrame:
        """Cut one ordered feature.

        Parameters
        ----------
        counts
            The feature's count table, ascending by value; rows of missing values are passed over.
        target
            The target that was counted.

        Returns
        -------
        DataFrame
            One row per cut, ascending: ``left_max``, ``cut``, ``right_min``, all in the feature's
            dtype, ``left_max <= cut < right_min``. The neighbours are training values, so that they
            repeat where a bin of equal width is empty; no cut is listed twice.

        Raises
        ------
        MissingPackageError
            The method needs scipy, which is not installed.
        """
        values = _c("value")
        line = NumberLine.from_counts(counts.filter(values.is_not_null()))
        finite = line
        if line.dtype.is_float() and self.method not in _BY_ORDER:
            finite = NumberLine.from_counts(counts.filter(values.is_finite()))
        if self.max_bins == 1 or finite.n_values == 0:
            return line.cut_points(line.values.clear())
        found = line.cut_points(_CUTTERS[self.method](finite, self, target))
        if self.method == "width":
            return found
        # Between the same two values one cut is as good as several.
        found = found.unique("left_max", keep="first", maintain_order=True)
        if self.max_bins is None or found.height < self.max_bins:
            return found
        return found[joined(line, found, self.max_bins)]


def discretizer(
    target: str,
    dtype: pl.DataType,
    method: Method = "1r",
    *,
    max_bins: int | None = None,
    min_bucket: int = 6,
    ties: Ties = "rare",
    criterion: CriterionName = "entropy",
) -> Discretizer:
    """Check the options of a discretisation against each other and the target.

    Parameters
    ----------
    target, dtype
        The target and its dtype.
    method, max_bins, min_bucket, ties, criterion
        As in `discretize`.

    Raises
    ------
    OptionError
        An option has a value outside what is allowed.
    DtypeError
        The method or criterion cannot use the target.
    """
    check_choice("method", method, METHODS)
    check_choice("ties", ties, TIES)
    check_positive("min_bucket", min_bucket)
    if max_bins is not None:
        check_positive("max_bins", max_bins)
    if method in ANY_TARGET:
        max_bins = max_bins or DEFAULT_BINS
    else:
        require_classes(target, dtype, f"method {method!r}", ANY_TARGET)
        if criterion not in CLASS_CRITERIA:
            raise OptionError.from_choice(
                f"criterion (with method {method!r})", criterion, CLASS_CRITERIA
            )
    chosen = criterion_for(criterion, target, dtype)
    return Discretizer(method, max_bins, min_bucket, ties, chosen)


Cutter = Callable[[NumberLine, Discretizer, ClassTarget | NumberTarget], pl.Series]


def _cut_by_walk(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Cut midway between the intervals of 1R."""
    assert isinstance(target, ClassTarget)
    order = tie_order(target.counts, options.ties)
    lasts = walk(in_chunks(line.counts), order, options.min_bucket).last.to_list()
    return line.midway((last, last + 1) for last in lasts[:-1])


def _cut_by_tree(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Split where it pays most until there are ``max_bins`` bins, or no split pays."""

    def pays(_piece: pl.DataFrame, best: Best) -> bool:
        return bool(best["before"] - best["score"] > TIE * best["before"])

    return grown(line, options.criterion, options.max_bins, pays)


def _cut_by_mdl(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Split where it pays most, as long as the split shortens the description of the classes."""
    return grown(line, ClassCriterion("entropy", "sum"), options.max_bins, _shortens)


def _shortens(piece: pl.DataFrame, best: Best) -> bool:
    """Apply the criterion of Fayyad and Irani (1993).

    A split of ``n`` rows of ``k`` classes is worth its description if its gain in entropy exceeds
    ``(log2(n - 1) + log2(3**k - 2) - (k E - k_left E_left - k_right E_right)) / n``.
    """
    n = best["n_left"] + best["n_right"]
    if n <= 1:
        return False
    below = _c("value") <= best["value"]
    k, k_left, k_right = piece.select(
        _c("class").n_unique(),
        _c("class").filter(below).n_unique().alias("left"),
        _c("class").filter(~below).n_unique().alias("right"),
    ).row(0)
    kept = k * best["before"] - k_left * best["score_left"] - k_right * best["score_right"]
    cost = (math.log2(n - 1) + math.log2(3**k - 2) - kept) / n
    return bool(best["before"] - best["score"] > cost)


def _cut_by_infogain(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Split the rows of each two classes with neighbouring means where the entropy is lowest."""
    pieces = [
        line.counts.filter(_c("class").is_in([lower, upper]))
        for (_, lower), (_, upper) in line.class_pairs()
    ]
    if not pieces:
        return line.values.clear()
    found = best_splits(pieces, ClassCriterion("entropy", "sum"))
    return line.midway((best["value"], best["next"]) for best in found if best is not None)


def _cut_by_means(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Cut midway between neighbouring class means."""
    return line.at(
        (line.place(lower) + line.place(upper)) / 2 for (lower, _), (upper, _) in line.class_pairs()
    )


def _cut_by_logistic(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Cut where two classes with neighbouring means are equally likely, by logistic regression."""
    places = []
    for (low, lower), (high, upper) in line.class_pairs():
        n_lower, n_upper = line.class_rows(lower), line.class_rows(upper)
        seen = n_lower + n_upper > 0
        balance = _equal_odds(line.numbers[seen], n_lower[seen], n_upper[seen])
        places.append(line.place(min(max(balance, low), high)))
    return line.at(places)


def _equal_odds(x: Floats, n_lower: Floats, n_upper: Floats) -> float:
    """Find where a logistic regression on ``x`` gives both classes the odds 1.

    Classes that do not overlap have no finite best fit; as it steepens, the place tends to the middle
    of the gap between them.
    """
    try:
        from scipy.optimize import minimize
        from scipy.special import expit
    except ImportError:
        raise MissingPackageError.from_extra("scipy", "stats", 'method="logreg"') from None
    top, bottom = x[n_lower > 0][-1], x[n_upper > 0][0]
    if top <= bottom:
        return float((top + bottom) / 2)
    n = n_lower + n_upper
    share = n / n.sum()
    wanted = n_upper / n.sum()
    center = np.average(x, weights=n)
    # In units of the largest deviation no square underflows; then in those of the spread.
    reach = np.abs(x - center).max()
    spread = reach * np.sqrt(np.average(((x - center) / reach) ** 2, weights=n))
    terms = np.stack([np.ones_like(x), (x - center) / spread])

    def loss(beta: Floats) -> tuple[float, Floats]:
        odds = beta @ terms
        value = share @ np.logaddexp(0.0, odds) - wanted @ odds
        return float(value), terms @ (share * expit(odds) - wanted)

    def curvature(beta: Floats) -> Floats:
        likely = expit(beta @ terms)
        curved: Floats = (terms * (share * likely * (1 - likely))) @ terms.T
        return curved

    start = np.zeros(2)
    fit = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", tol=1e-10)
    level, slope = fit.x
    # No slope tells the classes apart: then they have one mean, and that is the place.
    return float(center - spread * level / slope) if slope > 0 else float(center)


def _cut_by_rows(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Cut at quantiles, between two rows as far as the quantile lies between their ranks.

    Weights that are whole numbers count rows; with others, rows are taken to be infinitely fine.
    """
    assert options.max_bins is not None
    reached = np.cumsum(line.n)
    total, whole = Fraction(reached[-1].item()), bool(np.all(line.n == np.floor(line.n)))
    lefts, places = [], []
    for k in range(1, options.max_bins):
        share = Fraction(k, options.max_bins)
        if whole:
            # Rows are numbered from 0; row r has the first value at which more than r are reached.
            rank = share * (total - 1)
            rows, part = [float(rank // 1), float(rank // 1 + 1)], rank % 1
            left, right = np.searchsorted(reached, rows, side="right").tolist()
        else:
            rank = share * total
            left = int(np.searchsorted(reached, float(rank * (1 - _ROUNDING))))
            between = abs(Fraction(reached[left].item()) - rank) <= rank * _ROUNDING
            right, part = (left + 1, 1 - share) if between else (left, Fraction(0))
        if part and left != right and line.is_finite(left) and line.is_finite(right):
            low, high = line.exact(left), line.exact(right)
            places.append(low + part * (high - low))
        else:
            lefts.append(left)
    return pl.concat([line.values.gather(lefts), line.at(places)])


def _cut_by_width(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Cut the range from the smallest to the largest value into equal parts."""
    assert options.max_bins is not None
    low, high = line.exact(0), line.exact(-1)
    step = (high - low) / options.max_bins
    return line.at(low + k * step for k in range(1, options.max_bins))


def _cut_by_clusters(
    line: NumberLine, options: Discretizer, target: ClassTarget | NumberTarget
) -> pl.Series:
    """Cut midway between the centres of the best clusters."""
    assert options.max_bins is not None
    centers = optimal_centers(line.numbers, line.n.astype(np.float64), options.max_bins)
    return line.at((line.place(a) + line.place(b)) / 2 for a, b in pairwise(centers))


_CUTTERS: dict[Method, Cutter] = {
    "1r": _cut_by_walk,
    "mdl": _cut_by_mdl,
    "tree": _cut_by_tree,
    "quantile": _cut_by_rows,
    "width": _cut_by_width,
    "naive": _cut_by_means,
    "logreg": _cut_by_logistic,
    "infogain": _cut_by_infogain,
    "clusters": _cut_by_clusters,
}

_BY_ORDER: tuple[Method, ...] = ("1r", "mdl", "tree", "quantile")
"""Methods that see only the order of the values; to the others infinite values are no numbers."""
