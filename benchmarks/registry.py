"""All pieces of work, by name."""

from __future__ import annotations

from benchmarks import criteria, many, nominal, one_rule, prediction, segments, single
from benchmarks.work import Work

WORKS: dict[str, Work] = {
    work.name: work
    for module in (single, many, criteria, one_rule, nominal, segments, prediction)
    for work in module.WORKS
}
"""In the order of the tables."""
