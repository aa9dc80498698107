"""The README's examples, each section by itself, and its commands."""

from __future__ import annotations

import doctest
import io
import re
import warnings
from pathlib import Path

import pytest

from tests.shared import SHARED

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TITANIC = "titanic.csv"


def sections() -> list[tuple[str, str]]:
    """Cut the README at its headings: heading and text."""
    parts = re.split(r"^#+ (.*)$", README, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


EXAMPLES = [(heading, text) for heading, text in sections() if ">>> " in text]


@pytest.mark.parametrize(("heading", "text"), EXAMPLES, ids=[heading for heading, _ in EXAMPLES])
def test_examples(heading: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if f'"{TITANIC}"' in text:
        raw = SHARED / "data" / "titanic_train.csv"
        if not raw.is_file():
            pytest.skip("Kaggle's Titanic file does not lie beside this checkout")
        (tmp_path / TITANIC).write_bytes(raw.read_bytes())
    monkeypatch.chdir(tmp_path)
    # Markdown closes a block with a fence, which would be read as expected output.
    prose = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(prose, {}, heading, "README.md", 0)
    assert test.examples
    output = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.DocTestRunner(verbose=False).run(test, out=output.write)
    assert result.failed == 0, output.getvalue()


def test_every_block_of_python_is_an_example() -> None:
    assert set(re.findall(r"^```(.+)$", README, flags=re.MULTILINE)) == {"sh", "pycon"}
    blocks = re.findall(r"^```pycon\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert all(block.startswith(">>> ") for block in blocks)
    assert sum(text.count("```pycon") for _, text in EXAMPLES) == len(blocks)


def test_links_to_files_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
