"""Class shares of the cases of a model, and the pieces that give them to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_oner.errors import OptionError
from polars_oner.expression import guarded
from polars_oner.frame import Column, canonical, column, is_missing
from polars_oner.intervals import Counts
from polars_oner.thresholds import exact_values


def class_shares(per_case: Counts, smoothing: float) -> npt.NDArray[np.float64]:
    """Turn rows per case and class into shares of the case; no case is empty."""
    number = isinstance(smoothing, int | float) and not isinstance(smoothing, bool)
    if not number or not 0 <= smoothing < float("inf"):
        raise OptionError.from_range("smoothing", smoothing, "a finite number of at least 0")
    raised = per_case + float(smoothing)
    shares: npt.NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return shares


def class_names(classes: pl.Series) -> tuple[list[Any], list[str]]:
    """Give the classes as Python values, and as text."""
    return exact_values(classes), classes.cast(pl.String).to_list()


def number_values(feature: Column, values: pl.Series, *, missing: int, default: int) -> pl.Expr:
    """Number the values of a nominal feature, given distinct, in their order.

    One look-up per row whatever their number: the text of a value is coded by an Enum.
    """
    x = column(feature.name)
    labels = pl.Enum(values.cast(pl.String))
    text = canonical(x, feature.dtype).cast(pl.String)
    code = text.cast(labels, strict=False).to_physical().cast(pl.UInt32).fill_null(default)
    if missing != default:
        code = (
            pl.when(is_missing(x, feature.dtype)).then(pl.lit(missing, pl.UInt32)).otherwise(code)
        )
    return guarded(code, feature)
