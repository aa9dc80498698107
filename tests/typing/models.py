"""Models give expressions, tables and themselves back from a dict."""

from __future__ import annotations

from typing import Any, assert_type

import polars as pl

import polars_oner as po


def one_rule(model: po.OneRule, data: dict[str, Any]) -> None:
    assert_type(model.predict(), pl.Expr)
    assert_type(model.to_frame(), pl.DataFrame)
    assert_type(model.rule, po.Rule | None)
    assert_type(model.rules, tuple[po.Rule, ...])
    assert_type(po.OneRule.from_dict(data), po.OneRule)


def others(split: po.Split, rules: po.ClassRules, bins: po.Bins, case: po.Case) -> None:
    assert_type(split.goes_left(), pl.Expr)
    assert_type(split.score, float | None)
    assert_type(rules.hits(), pl.Expr)
    assert_type(bins.cuts, pl.Series)
    assert_type(case.n_errors, int | float)
