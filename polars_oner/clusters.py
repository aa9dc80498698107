"""One-dimensional k-means, solved exactly.

On a line the clusters of the best partition are stretches of neighbouring values, so the least sum of
squares over ``k`` clusters follows from those over ``k - 1`` (Fisher 1958). Where the last cluster
starts moves only upwards as values are added, so the starts for half of the values bound those for the
other half: a layer costs ``O(m log m)`` for ``m`` values, and all bounds of one level are searched at
once.

References
----------
Fisher, W. D. (1958). On grouping for maximum homogeneity. *JASA* 53, 789-798.

Wang, H., Song, M. (2011). Ckmeans.1d.dp: optimal k-means clustering in one dimension by dynamic
programming. *The R Journal* 3, 29-33.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MOST_PLACES = 1 << 18
"""Up to this many distinct values each may start a cluster; of more, so many evenly spread by rows."""


def optimal_centers(values: Floats, n: Floats, n_clusters: int) -> Floats:
    """Find the means of the clusters with the least sum of squared distances to them.

    Parameters
    ----------
    values
        Distinct finite values, ascending.
    n
        Rows at each value, or their weight, above 0.
    n_clusters
        How many clusters; fewer if there are fewer values.

    Returns
    -------
    array of float
        The means, ascending. Of equally good partitions that whose last cluster starts lowest, and
        so on downwards.
    """
    places = _places(n)
    moments = _Moments.from_values(values, n, places)
    n_clusters = min(n_clusters, len(places) - 1)
    start = np.zeros(len(places), dtype=np.intp)
    # With no cluster, only the empty prefix is covered.
    cost = np.full(len(places), np.inf)
    cost[0] = 0.0
    starts = []
    for _ in range(n_clusters):
        cost, start = _add_cluster(cost, moments)
        starts.append(start)
    edges = [len(places) - 1]
    for start in reversed(starts):
        edges.append(int(start[edges[-1]]))
    edges.reverse()
    return moments.means(np.array(edges))


@dataclass(frozen=True)
class _Moments:
    """Running count, sum and sum of squares at the places where a cluster may start or end."""

    n: Floats
    s: Floats
    q: Floats
    center: float

    @classmethod
    def from_values(cls, values: Floats, n: Floats, places: Indices) -> _Moments:
        center = float(np.average(values, weights=n))
        deviation = values - center
        n, s, q = (
            np.concatenate([[0.0], np.cumsum(part)])[places]
            for part in (n, n * deviation, n * deviation**2)
        )
        return cls(n, s, q, center)

    def scatter(self, first: Indices, end: Indices) -> Floats:
        """Give the sum of squares about the mean, of the stretches from ``first`` before ``end``."""
        n, s, q = (part[end] - part[first] for part in (self.n, self.s, self.q))
        return np.maximum(q - s * s / n, 0.0)

    def means(self, edges: Indices) -> Floats:
        return self.center + np.diff(self.s[edges]) / np.diff(self.n[edges])


def _places(n: Floats) -> Indices:
    """Choose where clusters may start: before every value, or before values evenly spread by rows."""
    if len(n) <= MOST_PLACES:
        return np.arange(len(n) + 1)
    reached = np.cumsum(n)
    inner = np.searchsorted(reached, np.linspace(0.0, reached[-1], MOST_PLACES)[1:-1]) + 1
    return np.unique(np.concatenate([[0], inner, [len(n)]]))


def _add_cluster(cost: Floats, moments: _Moments) -> tuple[Floats, Indices]:
    """Cover every prefix with one cluster more: the least cost, and where the last cluster starts."""
    n_places = len(cost)
    best = np.full(n_places, np.inf)
    start = np.zeros(n_places, dtype=np.intp)
    step = 1 << n_places.bit_length()
    while step:
        # Ends between those of the coarser levels, whose starts bound theirs.
        ends = np.arange(step, n_places, 2 * step)
        low = np.where(ends - step > 0, start[ends - step], 0)
        above = np.minimum(ends + step, n_places - 1)
        high = np.where(ends + step < n_places, start[above], ends - 1)
        # The start of a prefix that cannot be covered says nothing about others.
        high = np.minimum(np.where(np.isfinite(best[above]), high, ends - 1), ends - 1)
        low = np.minimum(low, high)
        best[ends], start[ends] = _least(cost, moments, ends, low, high)
        step //= 2
    return best, start


def _least(
    cost: Floats, moments: _Moments, ends: Indices, low: Indices, high: Indices
) -> tuple[Floats, Indices]:
    """Find the best start within ``[low, high]`` for each end; of equal ones the first."""
    if not len(ends):
        return np.empty(0), np.empty(0, dtype=np.intp)
    sizes = high - low + 1
    offsets = np.cumsum(sizes) - sizes
    starts = np.arange(sizes.sum()) - np.repeat(offsets - low, sizes)
    costs = cost[starts] + moments.scatter(starts, np.repeat(ends, sizes))
    least = np.minimum.reduceat(costs, offsets)
    hits = np.flatnonzero(costs == np.repeat(least, sizes))
    return least, starts[hits[np.searchsorted(hits, offsets)]]
