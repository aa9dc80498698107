"""What the package says it exports is what it exports, and what users need is there."""

from __future__ import annotations

import inspect
from importlib import metadata
from types import ModuleType

import polars_oner
from polars_oner import errors
from polars_oner.serialize import Model

MODULES = {"namespaces"}
"""The modules that users name as they are."""


def test_all_is_sorted_and_has_no_doubles() -> None:
    assert list(polars_oner.__all__) == sorted(set(polars_oner.__all__))


def test_all_is_what_init_binds() -> None:
    bound = {
        name
        for name, value in vars(polars_oner).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert bound | (set(polars_oner.__all__) & MODULES) == set(polars_oner.__all__)
    assert all(hasattr(polars_oner, name) for name in polars_oner.__all__)


def test_everything_exported_is_documented() -> None:
    undocumented = [
        name for name in polars_oner.__all__ if not inspect.getdoc(getattr(polars_oner, name))
    ]
    assert undocumented == []


def test_every_error_and_warning_is_exported() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert defined <= set(polars_oner.__all__)


def test_every_model_that_users_read_back_is_exported() -> None:
    parts = {"ClassTests"}  # lies within ClassRules, whose from_dict reads it
    package = f"{polars_oner.__name__}."
    models = {
        model.__name__ for model in Model.__subclasses__() if model.__module__.startswith(package)
    }
    assert models - parts <= set(polars_oner.__all__)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert polars_oner.__version__ == metadata.version("polars_oner")
