"""Aliases and option sets, each set with the tuple of its values for messages and checks."""

from __future__ import annotations

from typing import Literal, TypeVar, get_args

import polars as pl

FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame)

ClassCriterionName = Literal["gini", "entropy", "error"]
NumberCriterionName = Literal["std", "variance"]
CriterionName = Literal["gini", "entropy", "error", "std", "variance"]
Missing = Literal["best", "left", "right", "drop"]
Cut = Literal["value", "midpoint"]
Strategy = Literal["auto", "exhaustive", "refine"]
Ties = Literal["rare", "first", "frequent"]
ClassRuleTies = Literal["frequent", "first"]
Choose = Literal["first", "chi2", "loo", "cv"]
Identifiers = Literal["exclude", "keep"]
Unseen = Literal["default", "first"]
AtCut = Literal["below", "above"]
Kind = Literal["ordered", "nominal"]
Engine = Literal["auto", "in-memory", "streaming", "gpu"] | pl.Engine

CLASS_CRITERIA: tuple[ClassCriterionName, ...] = get_args(ClassCriterionName)
NUMBER_CRITERIA: tuple[NumberCriterionName, ...] = get_args(NumberCriterionName)
CRITERIA: tuple[CriterionName, ...] = get_args(CriterionName)
MISSING: tuple[Missing, ...] = get_args(Missing)
CUTS: tuple[Cut, ...] = get_args(Cut)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
TIES: tuple[Ties, ...] = get_args(Ties)
CLASS_RULE_TIES: tuple[ClassRuleTies, ...] = get_args(ClassRuleTies)
CHOOSE: tuple[Choose, ...] = get_args(Choose)
IDENTIFIERS: tuple[Identifiers, ...] = get_args(Identifiers)
UNSEEN: tuple[Unseen, ...] = get_args(Unseen)
AT_CUT: tuple[AtCut, ...] = get_args(AtCut)
