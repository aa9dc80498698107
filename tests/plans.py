"""What a query plan holds: nodes that fall back on memory, and Python functions."""

from __future__ import annotations

import warnings

import polars as pl


def nodes_that_hold_a_column(query: pl.LazyFrame) -> list[str]:
    """List the nodes of the physical plan that the streaming engine draws as fallbacks, in red."""
    dot = query.show_graph(engine="streaming", plan_stage="physical", raw_output=True, show=False)
    return [line for line in str(dot).splitlines() if 'fillcolor="0.0 ' in line]


def holds_python(query: pl.LazyFrame | pl.Expr) -> bool:
    """Tell whether a plan or an expression holds a Python function or a plugin.

    Data that a plan carries is written out too, so ask about plans over files.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the JSON form is on its way out
        if isinstance(query, pl.Expr):
            text = query.meta.serialize(format="json")
        else:
            text = query.serialize(format="json")
    return any(word in text.lower() for word in ("python", "anonymous", "plugin"))
