"""What a piece of work is: its size, who does it, and what ratios are wanted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from benchmarks.data import Source

Role = Literal["ours", "peer", "floor"]
Answer = Mapping[str, Any]

OURS = "polars_oner"
"""What this library is called in the tables."""


@dataclass(frozen=True)
class Contender:
    """One way to do a piece of work.

    Attributes
    ----------
    name
        How the tables call it; unique within the work.
    prepare
        Makes the input from the data set; not timed.
    run
        Does the work on that input; timed.
    answer
        Tells from the result of ``run`` what contenders are to agree on; not timed. A figure
        ``seconds`` among it stands for the time measured.
    role
        This library (once per work), a peer, or the floor: the least that such work can cost.
    package
        The module that does the work.
    needs
        Says what is not installed; then the contender is passed over. Its package, if not given.
    exact
        Whether its answer is to equal ours (numbers to nine digits).
    cap
        Address space in bytes that the process may have beyond its mapped files.
    note
        What a reader has to know of it.
    """

    name: str
    prepare: Callable[[Source], Any]
    run: Callable[[Any], Any]
    answer: Callable[[Any], Answer] = dict
    role: Role = "peer"
    package: str = "polars"
    needs: Callable[[], str | None] | None = None
    exact: bool = True
    cap: int | None = None
    note: str = ""

    def missing(self) -> str | None:
        """Say what is not installed; None if it can run."""
        if self.needs is not None:
            return self.needs()
        return None if find_spec(self.package) else f"{self.package} is not installed"

    def find(self, source: Source) -> Answer:
        """Do the whole work on a data set."""
        return self.answer(self.run(self.prepare(source)))


@dataclass(frozen=True)
class Demand:
    """A ratio that this library is to reach.

    Attributes
    ----------
    against
        The contender it is measured against.
    at_least
        Its seconds over ours are to be at least this.
    at_most
        Our seconds over its are to be at most this.
    """

    against: str
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Work:
    """A piece of work that several contenders do on the same data.

    Attributes
    ----------
    name
        Short name, for ``--only``.
    title
        What is done.
    data
        Makes (or finds) the data set for a number of rows and columns.
    rows, columns
        The size that counts.
    contenders
        Who does it.
    demands
        The wanted ratios.
    memory
        Most MB that ours may need beyond its input.
    quick_rows, quick_columns
        The size of a quick run.
    huge
        Whether it needs so much time and disk that it runs only when asked for.
    """

    name: str
    title: str
    data: Callable[[int, int], Source]
    rows: int
    columns: int
    contenders: tuple[Contender, ...]
    demands: tuple[Demand, ...] = ()
    memory: float | None = None
    quick_rows: int = 100_000
    quick_columns: int | None = None
    huge: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(one.name for one in self.contenders))
        roles = [one.role for one in self.contenders]
        ours = [one.name for one in self.contenders if one.role == "ours"]
        if len(set(self.names)) < len(roles) or ours != [OURS]:
            raise ValueError(f"{self.name}: contenders need distinct names, one of them {OURS}")
        if roles.count("floor") > 1:
            raise ValueError(f"{self.name}: more than one floor")
        unknown = {demand.against for demand in self.demands} - set(self.names)
        if unknown:
            raise ValueError(f"{self.name}: demands against unknown contenders {unknown}")

    def contender(self, name: str) -> Contender:
        """Find a contender by name."""
        return self.contenders[self.names.index(name)]

    @property
    def ours(self) -> Contender:
        """The way of this library."""
        return next(one for one in self.contenders if one.role == "ours")


def difference(ours: Answer, theirs: Answer) -> str | None:
    """Say where two answers differ; None if they agree, numbers to nine digits."""
    if ours.keys() != theirs.keys():
        return f"{sorted(ours)} against {sorted(theirs)}"
    for key, mine in ours.items():
        other = theirs[key]
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            inner = difference(mine, other)
            if inner is not None:
                return f"{key}: {inner}"
        elif isinstance(mine, float) and isinstance(other, int | float):
            if not math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-12):
                return f"{key}: {mine!r} against {other!r}"
        elif mine != other:
            return f"{key}: {mine!r} against {other!r}"
    return None
