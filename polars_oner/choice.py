"""By which figure a feature is chosen, and the figures that need no more than a rule's counts.

A rule's counts are one row per case and class that occurs in it: ``case``, ``class``, ``n``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from sys import _getframe
from typing import Any

import numpy as np
import polars as pl

from polars_oner.errors import IdentifierWarning, MissingPackageError, quoted
from polars_oner.intervals import Counts, group_starts, majorities, tie_order, tie_ranks
from polars_oner.typing import Choose, Identifiers, Ties

Figures = dict[str, Any]
"""What is known of a feature: ``feature``, ``n_errors``, ``identifier`` and what ``choose`` needs."""

_BEST: dict[Choose, Callable[[Figures], Any]] = {
    "first": lambda row: row["n_errors"],
    "chi2": lambda row: (row["n_errors"], row["p_value"]),
    "loo": lambda row: -row["loo_accuracy"],
    "cv": lambda row: -row["cv_accuracy"],
}


def best_first(rows: Iterable[Figures], choose: Choose) -> list[Figures]:
    """Order features, the best first; of equal ones the earlier stays ahead."""
    return sorted(rows, key=_BEST[choose])


def first_allowed(rows: Iterable[Figures], identifiers: Identifiers) -> Figures | None:
    """Give the first feature that may be chosen."""
    return next((row for row in rows if identifiers == "keep" or not row["identifier"]), None)


def warn_of_identifiers(names: Sequence[str]) -> None:
    """Name the features that were not chosen; the warning points at the caller of the library."""
    here = str(Path(__file__).parent)
    level, frame = 1, _getframe()
    while frame is not None and frame.f_code.co_filename.startswith(here):
        level, outside = level + 1, frame.f_back
        if outside is None:
            break
        frame = outside
    warnings.warn(
        f"not chosen, since more than half of the rows have a value of their own: "
        f"{quoted(names)}; identifiers='keep' allows them",
        IdentifierWarning,
        stacklevel=level,
    )


def leave_one_out(counts: pl.DataFrame, totals: Counts, ties: Ties) -> int:
    """Count the rows that the rule of all other rows predicts right, its cases held fixed.

    Without a row of class c, a case has one row of c less. If c still has most rows there, the row is
    right; so only rows of the class that the case predicts can be right, and they all are or none is.
    Where c and another class are then tied, the tie policy decides on totals that lack the row; where
    the row was alone, the default of the other rows does.

    Parameters
    ----------
    counts
        A rule's counts, ascending.
    totals
        Training rows of each class.
    ties
        The tie policy.
    """
    order = tie_order(totals, ties)
    ranks, n = tie_ranks(order)[counts["class"].to_numpy()], counts["n"].to_numpy()
    starts = group_starts(counts["case"].to_numpy())
    most, winner = majorities(starts, ranks, n)
    others = np.where(ranks == np.repeat(winner, np.diff(starts, append=len(n))), 0, n)
    second, rival = majorities(starts, ranks, others)
    winner, rival = order[winner], order[rival]
    if ties == "first":
        wins_tie = winner < rival
    else:
        ahead = totals[rival] - (totals[winner] - 1)
        wins_tie = (ahead > 0) if ties == "rare" else (ahead < 0)
        wins_tie |= (ahead == 0) & (winner < rival)
    left = most - 1
    right = (left > second) | ((left == second) & (second > 0) & wins_tie)
    right |= (left == 0) & (second == 0) & (winner == _default_without_itself(totals))
    return int(most[right].sum())


def _default_without_itself(totals: Counts) -> int:
    """Give the one class that can be the default of all rows but one of its own; -1 if none is."""
    top = int(np.argmax(totals))
    rest = totals - np.eye(len(totals), dtype=totals.dtype)[top]
    return top if rest.sum() > 0 and int(np.argmax(rest)) == top else -1


def independence(counts: pl.DataFrame) -> float:
    """Test whether the cases and the classes of a rule are independent, by Pearson's chi-square."""
    cases, codes = counts["case"].rle_id().to_numpy(), counts["class"].rank("dense").to_numpy() - 1
    table = np.zeros((int(cases[-1]) + 1, int(codes.max()) + 1))
    table[cases, codes] = counts["n"]
    test = scipy_stats("a p-value").chi2_contingency(table, correction=False)
    return float(test.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number: the smallest times m, the next times m - 1, ..."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.array(p_values)[order] * factors).clip(max=1)
    return [float(p) for p in adjusted]


def scipy_stats(what: str) -> Any:
    """Import scipy's statistics, or say what needs them."""
    try:
        from scipy import stats
    except ImportError:
        raise MissingPackageError.from_extra("scipy", "stats", what) from None
    return stats
