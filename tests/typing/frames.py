"""Tables come back as the kind of frame that went in; models are models."""

from __future__ import annotations

from typing import assert_type

import polars as pl

import polars_oner as po


def eager(frame: pl.DataFrame) -> None:
    assert_type(po.rank(frame, "y"), pl.DataFrame)
    assert_type(po.best_splits(frame, "y", ["a", "b"], by="store"), pl.DataFrame)
    assert_type(po.split_scores(frame, "y", "a"), pl.DataFrame)
    assert_type(po.evaluate(frame, "guess", "y"), pl.DataFrame)
    assert_type(po.fit(frame, "y"), po.OneRule)
    assert_type(po.best_split(frame, "y"), po.Split)
    assert_type(po.class_rules(frame, "y"), po.ClassRules)
    assert_type(po.cross_validate(frame, "y"), po.CrossValidation)


def lazy(frame: pl.LazyFrame) -> None:
    assert_type(po.rank(frame, "y"), pl.LazyFrame)
    assert_type(po.best_splits(frame, "y"), pl.LazyFrame)
    assert_type(po.confusion(frame, "guess", "y"), pl.LazyFrame)
    assert_type(po.predict(frame, po.fit(frame, "y")), pl.LazyFrame)
    assert_type(po.fit(frame, "y"), po.OneRule)


def bins(frame: pl.LazyFrame) -> None:
    assert_type(po.discretize(frame, "y", "a"), po.Bins)
    assert_type(po.discretize(frame, "y", ["a", "b"]), dict[str, po.Bins])
