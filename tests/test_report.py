"""What is printed reads back as what was meant."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from html.parser import HTMLParser

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_oner import report


def read_text(shown: str) -> str:
    return str(json.loads(shown)) if shown.startswith('"') else shown


@given(st.text())
def test_text_reads_back_and_stays_on_its_line(label: str) -> None:
    shown = report.text_of(label)
    assert read_text(shown) == label
    assert shown.isprintable()
    assert shown.strip() == shown != ""


@pytest.mark.parametrize("label", ["sunny", "very low", "a.b-c/d", "R&B", "O'Hara", "élan", "日本"])
def test_plain_words_stand_bare(label: str) -> None:
    assert report.text_of(label) == label


@pytest.mark.parametrize(
    "label",
    [
        *("", " ", " a", "a ", "a  b", "1", "1.5", "-3", "1e5", "nan", "Inf", "missing", "Missing"),
        *("anything else", "any value", "null", "a\nb", "a\tb", 'a"b', "a -> b", "> 3", "<= 3"),
        *("a: b", "a,b", "\u200b", "a\u2028b", "<b>"),
    ],
)
def test_what_could_be_misread_is_quoted(label: str) -> None:
    shown = report.text_of(label)
    assert shown.startswith('"')
    assert read_text(shown) == label


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pl.Series(["a", "1", "missing", None]), ["a", '"1"', '"missing"', "missing"]),
        (pl.Series(["b"], dtype=pl.Enum(["b", "a"])), ["b"]),
        (pl.Series([1, 2**63 - 1]), ["1", "9223372036854775807"]),
        (pl.Series([0.1, 2.0, -math.inf, None]), ["0.1", "2", "-inf", "missing"]),
        (pl.Series([True, False]), ["true", "false"]),
        (pl.Series(["1.10"]).cast(pl.Decimal(5, 2)), ["1.10"]),
        (pl.Series([19782], dtype=pl.Int32).cast(pl.Date), ["2024-02-29"]),
    ],
)
def test_values(values: pl.Series, shown: list[str]) -> None:
    assert report.value_texts(values) == shown


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_floats_print_as_decimals_that_are_the_same_float(numbers: list[float]) -> None:
    shown = report.value_texts(pl.Series(numbers))
    assert [float(text) for text in shown] == numbers
    # Python's repr is the shortest decimal; no digit more is shown, wherever the point stands.
    for text, number in zip(shown, numbers, strict=True):
        assert Decimal(text).normalize().as_tuple().digits == (
            Decimal(repr(number)).normalize().as_tuple().digits
        )


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1))
def test_float32_prints_as_a_decimal_that_is_the_same_float(numbers: list[float]) -> None:
    shown = report.value_texts(pl.Series(numbers, dtype=pl.Float32))
    assert [float(text) for text in shown] == numbers


def test_cuts_between_neighbours() -> None:
    left, right = pl.Series([64, 68]), pl.Series([65, 70])
    assert report.cut_texts(left, right, pl.Int64()) == ["64.5", "69"]


def test_intervals_in_words() -> None:
    assert report.interval_texts([]) == ["any value"]
    assert report.interval_texts(["2"]) == ["<= 2", "> 2"]
    assert report.interval_texts(["2", "3.5"]) == ["<= 2", "> 2 and <= 3.5", "> 3.5"]


def test_block_aligns_and_says_what_it_leaves_out() -> None:
    assert report.block("x", [("a", "yes", "3/5"), ("missing", "no", "")], "end") == (
        "x:\n  a       -> yes  3/5\n  missing -> no\nend"
    )
    text = report.block("x", [(str(i), "yes", "1/1") for i in range(report.MOST_LINES + 5)])
    assert text.splitlines()[-1] == "  ... and 5 more (see to_frame())"
    assert len(text.splitlines()) == 1 + report.MOST_LINES + 1


class Cells(HTMLParser):
    """Collects the text of cells, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.tags[-1] in ("td", "th"):
            self.cells[-1] += data


def test_html_shows_markup_as_text() -> None:
    parser = Cells()
    markup = "<script>alert('&amp;')</script>"
    parser.feed(report.html_table(markup, ("a", markup), [(markup, "1/2")], markup))
    assert "script" not in parser.tags
    assert parser.cells == ["a", markup, markup, "1/2"]


def test_html_says_what_it_leaves_out() -> None:
    rows = [("a", "b")] * (report.MOST_LINES + 1)
    shown = report.html_table("x", ("a", "b"), rows)
    assert "... and 1 more" in shown
    assert shown.count("<tr>") == report.MOST_LINES + 2
