"""What the type checker must refuse: an ignore that is no longer needed is an error."""

from __future__ import annotations

import polars as pl

import polars_oner as po


def refused(frame: pl.DataFrame, model: po.OneRule) -> None:
    po.fit(frame, "y", ties="odd")  # type: ignore[arg-type]
    po.best_splits(frame, "y", criterion="chi2")  # type: ignore[arg-type]
    po.fit([1, 2], "y")  # type: ignore[arg-type]
    po.fit(frame, "y", None, 3)  # type: ignore[call-arg]
    po.predict(frame, "guess")  # type: ignore[type-var, arg-type, unused-ignore]
    model.feature = "a"  # type: ignore[misc]
