"""Data flows one way: each module imports only from those above it in the table, and only what is named.

The order is that of the data flow: frame -> counts -> candidates -> scores -> rule -> expression;
what writes an expression or a text is above the models that call it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "polars_oner"
ROOT = Path(__file__).resolve().parents[1]

ALLOWED = {
    "errors": "",
    "typing": "",
    "frame": "errors typing",
    "target": "errors frame typing",
    "binning": "frame",
    "axis": "binning frame",
    "counts": "errors frame target typing",
    "ordered": "binning counts frame target typing",
    "criteria": "errors typing",
    "impurity": "criteria errors frame typing",
    "thresholds": "typing",
    "scores": "criteria typing",
    "bounds": "criteria",
    "verdicts": "axis bounds criteria scores target",
    "refine": "axis binning counts criteria frame scores target typing verdicts",
    "intervals": "typing",
    "folds": "counts criteria errors frame intervals target typing",
    "expression": "errors frame",
    "probability": "errors expression frame intervals thresholds",
    "report": "thresholds",
    "serialize": "errors",
    "split": "criteria expression frame probability report serialize target thresholds typing",
    "splits": "counts criteria errors frame refine scores split target thresholds typing",
    "rule": "expression frame intervals probability report serialize target thresholds typing",
    "clusters": "",
    "number_line": "thresholds",
    "growth": "criteria number_line scores",
    "discretizers": "clusters criteria errors growth intervals number_line target typing",
    "bins": "criteria discretizers expression frame report serialize target",
    "discretization": "bins counts criteria discretizers errors frame target typing",
    "class_rules": "counts criteria errors expression frame intervals report serialize target typing",
    "choice": "errors intervals typing",
    "learning": "bins choice criteria discretizers errors folds frame rule target typing",
    "held_out": "choice errors folds intervals learning target thresholds typing",
    "one_rule": "expression frame probability report rule serialize",
    "evaluation": "errors frame target typing",
    "significance": "choice counts criteria errors frame scores split target typing",
    "ranking": (
        "choice counts errors evaluation folds frame held_out learning one_rule ordered rule target "
        "typing"
    ),
    "validation": "choice errors folds frame held_out learning report serialize target typing",
    "prediction": "expression frame typing",
    "namespaces": (
        "bins class_rules discretization discretizers evaluation impurity learning one_rule prediction "
        "ranking significance split splits typing validation"
    ),
    "weather": "",
    "sources": "errors",
    "command": "errors one_rule ranking report rule serialize sources splits typing weather",
    "__init__": (
        "bins class_rules discretization errors evaluation namespaces one_rule prediction ranking rule "
        "significance split splits validation"
    ),
    "__main__": "command",
}

NEEDED = {"numpy", "polars"}
OPTIONAL = {"scipy", "tqdm"}


def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / PACKAGE / f"{module}.py").read_text(encoding="utf-8"))


def imports(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, str]]:
    """List what is imported, as module and name; the name is empty for ``import module``."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from ((node.module, alias.name) for alias in node.names)


def ours(module: str) -> set[str]:
    found = set()
    for source, name in imports(ast.walk(tree(module))):
        package, _, inner = source.partition(".")
        if package == PACKAGE:
            found.add(inner or name)
    return found


def test_the_table_names_every_module() -> None:
    assert set(ALLOWED) == {path.stem for path in (ROOT / PACKAGE).glob("*.py")}


def test_the_table_goes_one_way() -> None:
    above: set[str] = set()
    for module, allowed in ALLOWED.items():
        assert set(allowed.split()) <= above, module
        above.add(module)


@pytest.mark.parametrize("module", ALLOWED)
def test_imports_are_those_of_the_table(module: str) -> None:
    assert ours(module) == set(ALLOWED[module].split())


@pytest.mark.parametrize("module", ALLOWED)
def test_private_names_stay_at_home(module: str) -> None:
    for source, name in imports(ast.walk(tree(module))):
        if source.split(".")[0] in {PACKAGE, *NEEDED, *OPTIONAL}:
            private = [part for part in f"{source}.{name}".split(".") if part.startswith("_")]
            assert private == []


@pytest.mark.parametrize("module", ALLOWED)
def test_packages_beyond_the_needed_are_imported_where_used(module: str) -> None:
    known = {*sys.stdlib_module_names, PACKAGE, *NEEDED}

    def beyond(nodes: Iterator[ast.AST]) -> set[str]:
        return {source.split(".")[0] for source, _ in imports(nodes)} - known

    assert beyond(iter(tree(module).body)) == set()
    assert beyond(ast.walk(tree(module))) <= OPTIONAL


def test_the_map_for_contributors_has_the_order_of_the_table() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)\.py`", text.partition("## Where each step lives")[2])
    assert named == [module for module in ALLOWED if not module.startswith("__")]


def test_importing_is_quiet_and_loads_no_optional_package() -> None:
    program = f"import sys, {PACKAGE}; print(sorted({OPTIONAL!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
