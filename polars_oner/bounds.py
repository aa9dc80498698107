r"""A lower bound on the score of every cut inside a bin.

The exact search reads an axis in coarse bins first. Let `L` and `R` be what lies left and right of a
bin, and `b` the bin's own content, as class counts or as moments. A cut inside the bin sends some
part `l` of it left, and the mass of the split (`criteria`) is

    F(l) = f(L + l) + f(R + b - l),        l between nothing and all of b.

Every criterion's mass `f` is concave: a mixture of two sides is at least as mixed as the sides are.
So `F` is concave in `l`, and a concave function on a polytope is smallest at a vertex. Any polytope
that holds all parts a cut can send left thus gives a bound from finitely many points, and a bin whose
bound exceeds the best cut known cannot hold a better one. Nothing is approximated: such bins are
dropped, all others are looked at again.

The polytopes, for a bin of `m` rows:

- *Two classes*: the box ``[0, b_1] x [0, b_2]``; four corners. Any concave `f`.
- *Gini, K classes*: ``n - sum c**2 / n`` is half the sum over the classes of the two-class mass
  ``2 c (n - c) / n``; each is bounded by its four corners.
- *Entropy, K classes*: the mixed second derivatives of `f` are ``1 / n >= 0``, so its increments along
  several classes are at least the sum of the increments along each alone; along one class `f` is
  concave. So ``F >= f(L) + f(R) + sum_c min(f(L + b_c e_c) - f(L), f(R + b_c e_c) - f(R))``.
- *Error*: ``n - max c`` is piecewise linear, so the best pair of majority classes is exact.
- *Variance*: with the target in ``[low, high]`` each row is a mixture of a row at either end, so count
  and sum of a part lie in a parallelogram; by Cauchy and Schwarz the sum of any `j` of the rows is
  within ``sqrt(m SSE) / 2`` of `j` times their mean, which cuts it to a hexagon: six vertices.
- *Std*: ``n std = sqrt(n q - s**2)`` is the root of the determinant of ``[[n, s], [s, q]]``, concave
  on positive matrices (Minkowski). With the target scaled to ``[0, 1]``, ``(1, y, y**2)`` lies in the
  triangle of ``(1, 0, 0)``, ``(1, 1, 1)``, ``(1, 1/2, 0)``: eight corners. Where a corner leaves the
  cone, ``f(L) + f(R)`` holds, as `f` of a sum is at least the sum of `f`. The factor of ddof 1
  falls with the rows of a side and is taken at the most it can have.

References
----------
Alsabti, K., Ranka, S., Singh, V. (1998). "CLOUDS: a decision tree classifier for large datasets",
KDD-98 (interval pruning, there for an approximate search). Horn, R., Johnson, C. (2013). *Matrix
Analysis*, 7.8.21 (Minkowski). Topkis, D. (1978). "Minimizing a submodular function on a lattice",
*Operations Research* 26.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from operator import add

import polars as pl

from polars_oner.criteria import ClassCriterion, NumberCriterion

_ROUNDING = 1e-14

Side = Sequence[pl.Expr]
"""What lies on one side: the counts of the classes, or ``n, s, q``."""

Shared = Callable[[str, pl.Expr], pl.Expr]
"""Makes a column of an expression."""


def class_bound(
    criterion: ClassCriterion,
    left: Side,
    inside: Side,
    right: Side,
    total: pl.Expr,
    *,
    shared: Shared,
) -> pl.Expr:
    """Bound the mass of any cut inside a bin, for a class criterion.

    Parameters
    ----------
    criterion
        The criterion.
    left, inside, right
        Class counts left of the bin, in it, and right of it.
    total
        All rows.
    shared
        Makes a column of a named expression: what the term of each class uses would otherwise be
        computed as often as there are classes.
    """
    if len(inside) == 1:
        return pl.lit(0.0)
    if len(inside) == 2:
        return _corners(criterion, left, inside, right, total)
    if criterion.name == "gini":
        sides = {"left": left, "inside": inside, "right": right}
        sizes = [shared(f"{name}_size", pl.sum_horizontal(side)) for name, side in sides.items()]
        one_against_rest = []
        for k in range(len(inside)):
            here, there, beyond = (
                [side[k], size - side[k]] for side, size in zip(sides.values(), sizes, strict=True)
            )
            one_against_rest.append(_corners(criterion, here, there, beyond, total))
        return reduce(add, one_against_rest) / 2
    if criterion.name == "entropy":
        return _supermodular(criterion, left, inside, right, total, shared)
    return _best_pair(left, inside, right, total, shared)


def number_bound(
    criterion: NumberCriterion, left: Side, inside: Side, right: Side, low: float, high: float
) -> pl.Expr:
    """Bound the mass of any cut inside a bin, for a number criterion.

    Parameters
    ----------
    criterion
        The criterion.
    left, inside, right
        Count, sum and sum of squares left of the bin, in it, and right of it.
    low, high
        Ends of the target's range, in the units of the sums.
    """
    if low == high:
        return pl.lit(0.0)
    if criterion.name == "variance":
        return _hexagon(left, inside, right, low, high)
    return _cone(left, inside, right, low, high)


def _corners(
    criterion: ClassCriterion, left: Side, inside: Side, right: Side, total: pl.Expr
) -> pl.Expr:
    masses = []
    for takes in product((False, True), repeat=len(inside)):
        sides = zip(left, inside, right, takes, strict=True)
        parts = [(a + b, c) if take else (a, c + b) for a, b, c, take in sides]
        lefts, rights = zip(*parts, strict=True)
        masses.append(
            criterion.side_mass(list(lefts), total) + criterion.side_mass(list(rights), total)
        )
    return pl.min_horizontal(masses)


def _supermodular(
    criterion: ClassCriterion,
    left: Side,
    inside: Side,
    right: Side,
    total: pl.Expr,
    shared: Shared,
) -> pl.Expr:
    outer, gains = [], []
    for name, side in (("left", left), ("right", right)):
        size = shared(f"{name}_size", pl.sum_horizontal(side))
        all_terms = [criterion.term(count, total) for count in side]
        terms = shared(f"{name}_terms", pl.sum_horizontal(all_terms))
        mass = criterion.mass(size, terms, total)
        outer.append(mass)
        # The bin's rows of one class change one term alone.
        gains.append(
            [
                criterion.mass(size + b, terms + criterion.term(c + b, total) - term, total) - mass
                for c, b, term in zip(side, inside, all_terms, strict=True)
            ]
        )
    steps = [pl.min_horizontal(gain) for gain in zip(*gains, strict=True)]
    return reduce(add, outer) + reduce(add, steps)


def _best_pair(left: Side, inside: Side, right: Side, total: pl.Expr, shared: Shared) -> pl.Expr:
    lefts = [a + b for a, b in zip(left, inside, strict=True)]
    rights = [c + b for c, b in zip(right, inside, strict=True)]
    first = shared("first", pl.max_horizontal(rights))
    second = shared("second", pl.concat_list(rights).list.sort(descending=True).list.get(1))
    # The same class on both sides gains the bin's rows only once.
    same = [a + c for a, c in zip(lefts, right, strict=True)]
    other = [
        a + pl.when(c == first).then(second).otherwise(first)
        for a, c in zip(lefts, rights, strict=True)
    ]
    return (total - pl.max_horizontal(*same, *other)).cast(pl.Float64)


def _hexagon(left: Side, inside: Side, right: Side, low: float, high: float) -> pl.Expr:
    m, s, q = inside
    mean = s / m
    at_high = (s - m * low) / (high - low)
    at_low = m - at_high
    height = at_high * (high - mean)
    reach = (m * (q - s * mean).clip(lower_bound=0)).sqrt() / 2
    cut = pl.when(height > reach).then(reach / height).otherwise(1.0)
    vertices = [
        (pl.lit(0.0), pl.lit(0.0)),
        (m, pl.lit(0.0)),
        (cut * at_high, cut * height),
        (m - cut * at_low, cut * height),
        (cut * at_low, -cut * height),
        (m - cut * at_high, -cut * height),
    ]

    def explained(n: pl.Expr, total: pl.Expr) -> pl.Expr:
        return pl.when(n > 0).then(total * total / n).otherwise(0.0)

    masses = []
    for n, above_mean in vertices:
        part = n * mean + above_mean
        masses.append(
            explained(left[0] + n, left[1] + part)
            + explained(right[0] + m - n, right[1] + s - part)
        )
    squares = left[2] + q + right[2]
    return squares - pl.max_horizontal(masses)


def _cone(left: Side, inside: Side, right: Side, low: float, high: float) -> pl.Expr:
    m, s, q = inside
    span = high - low
    s_scaled = (s - m * low) / span
    q_scaled = (q - 2 * low * s + m * low * low) / (span * span)
    weights = [m - 2 * s_scaled + q_scaled, q_scaled, 2 * (s_scaled - q_scaled)]
    corners = [
        (1.0, low, low * low),
        (1.0, high, high * high),
        (1.0, (low + high) / 2, low * high),
    ]

    def determinant(n: pl.Expr, s: pl.Expr, q: pl.Expr) -> pl.Expr:
        # A root magnifies rounding near 0, so the determinant is taken at its least.
        return n * q * (1 - _ROUNDING) - s * s

    def root(side: pl.Expr) -> pl.Expr:
        return side.clip(lower_bound=0).sqrt()

    def ddof(n: pl.Expr) -> pl.Expr:
        return pl.when(n > 1).then((n / (n - 1)).sqrt()).otherwise(1.0)

    left_factor, right_factor = ddof(left[0] + m), ddof(right[0] + m)
    masses, leaves_cone = [], []
    for takes in product((0.0, 1.0), repeat=3):
        part = [
            reduce(
                add,
                (w * t * corner[i] for w, t, corner in zip(weights, takes, corners, strict=True)),
            )
            for i in range(3)
        ]
        on_left = determinant(*(side + go for side, go in zip(left, part, strict=True)))
        rest = (side + whole - go for side, whole, go in zip(right, inside, part, strict=True))
        on_right = determinant(*rest)
        leaves_cone.append((on_left < 0) | (on_right < 0))
        masses.append(left_factor * root(on_left) + right_factor * root(on_right))
    outer = left_factor * root(determinant(*left)) + right_factor * root(determinant(*right))
    outside = pl.any_horizontal(leaves_cone)
    return pl.when(outside).then(outer).otherwise(pl.min_horizontal(masses))
