"""How results are written for people: conditions, counts, text blocks and HTML tables.

What is printed can be read back: a text value that could be taken for something else, such as a
number, the word ``missing`` or two lines, stands in double quotes; numbers and cuts are the shortest
decimals that are still the same value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise

import polars as pl

from polars_oner.thresholds import as_text

MISSING = "missing"
OTHERWISE = "anything else"
ANY_VALUE = "any value"

MOST_LINES = 100
"""A text shows this many cases, and says how many more there are."""

_PLAIN_TEXT = re.compile(r"[^\W\d][\w./+&'-]*( [\w./+&'-]+)*", re.UNICODE)
_TAKEN = {MISSING, OTHERWISE, ANY_VALUE, "null", "nan", "inf", "infinity"}


def text_of(label: str) -> str:
    """Write text bare if it cannot be misread, otherwise in double quotes with escapes."""
    if _PLAIN_TEXT.fullmatch(label) and label.casefold() not in _TAKEN:
        return label
    return json.dumps(label, ensure_ascii=not label.isprintable())


def value_texts(values: pl.Series) -> list[str]:
    """Write the values of a column; null is ``missing``."""
    if isinstance(values.dtype, (pl.String, pl.Enum, pl.Categorical)):
        return [MISSING if label is None else text_of(label) for label in values.to_list()]
    return cut_texts(values, values, values.dtype)


def cut_texts(left: pl.Series, right: pl.Series, dtype: pl.DataType) -> list[str]:
    """Write the middle of each gap between neighbouring values; the value where both are equal."""
    ends = pl.DataFrame({"left": left, "right": right})
    text = as_text(pl.col("left"), pl.col("right"), dtype, "midpoint")
    return ends.select(text.fill_null(MISSING).alias("text"))["text"].to_list()


def interval_texts(cuts: Sequence[str]) -> list[str]:
    """Write the conditions of the intervals that cuts make, upwards."""
    if not cuts:
        return [ANY_VALUE]
    inner = [f"> {lower} and <= {upper}" for lower, upper in pairwise(cuts)]
    return [f"<= {cuts[0]}", *inner, f"> {cuts[-1]}"]


def share(part: float, whole: float) -> str:
    """Write a count out of another, as ``3/5``."""
    return f"{part}/{whole}"


def block(title: str, rows: Sequence[Sequence[str]], footer: str = "") -> str:
    """Lay out a title, indented rows in aligned columns with ``->`` before the second, a footer."""
    shown = rows[:MOST_LINES]
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    lines = [f"{title}:"]
    for row in shown:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"  {first} -> {'  '.join(others)}".rstrip())
    if len(rows) > len(shown):
        lines.append(f"  ... and {len(rows) - len(shown)} more (see to_frame())")
    return "\n".join([*lines, footer] if footer else lines)


def html_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], footer: str = ""
) -> str:
    """Lay out the same as an HTML table, every cell escaped."""
    shown = rows[:MOST_LINES]
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in shown
    )
    if len(rows) > len(shown):
        more = f"... and {len(rows) - len(shown)} more"
        body += f'<tr><td colspan="{len(header)}">{more}</td></tr>'
    foot = f"<p>{escape(footer)}</p>" if footer else ""
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"
    )
