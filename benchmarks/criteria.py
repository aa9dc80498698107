"""The best split by the other criteria: ten classes, and a number as the target."""

from __future__ import annotations

from benchmarks import splitting
from benchmarks.data import targets
from benchmarks.work import Demand, Work
from polars_oner.typing import CriterionName

EXHAUSTIVE = "polars_oner, every distinct value"


def _work(target: str, criterion: CriterionName, title: str) -> Work:
    return Work(
        name=f"{criterion}-{'10' if target == 'k' else 'number'}",
        title=title,
        data=targets,
        rows=10_000_000,
        columns=1,
        contenders=(
            splitting.ours(memory=True, target=target, criterion=criterion),
            splitting.ours(
                memory=True,
                target=target,
                criterion=criterion,
                strategy="exhaustive",
                name=EXHAUSTIVE,
                role="peer",
                note='strategy="exhaustive"',
            ),
            splitting.floor(memory=True, target=target),
        ),
        demands=(Demand(EXHAUSTIVE, at_least=2),),
    )


WORKS = (
    _work("k", "gini", "Gini of 10 classes, in memory"),
    _work("k", "entropy", "entropy of 10 classes, in memory"),
    _work("r", "variance", "variance of a number, in memory"),
    _work("r", "std", "standard deviation of a number, in memory"),
)
"""One column of floats, bound and refined against every distinct value."""
