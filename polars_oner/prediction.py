"""A frame with a model's prediction beside its columns."""

from __future__ import annotations

from typing import Protocol

import polars as pl

from polars_oner.expression import check_dtype
from polars_oner.frame import Column, as_lazy
from polars_oner.typing import FrameT


class Predictor(Protocol):
    """What prediction asks of a model: its expression, and the columns that this reads."""

    @property
    def tested(self) -> tuple[Column, ...]:
        """The columns, as they were learned."""

    def predict(self, name: str = ...) -> pl.Expr:
        """Give the predicted target value, under the given name."""


def predict(frame: FrameT, model: Predictor, *, name: str = "prediction") -> FrameT:
    """Add a model's prediction to a frame.

    Parameters
    ----------
    frame
        The rows, eager or lazy.
    model
        A `Split`, `OneRule`, `Rule` or `ClassRules`.
    name
        The column that takes the prediction. A column of that name is replaced.

    Returns
    -------
    DataFrame or LazyFrame
        The frame, of the kind that came in, with ``name`` as its last column: the predicted value in
        the target's dtype. The rows keep their order.

    Raises
    ------
    MissingColumnError
        The frame lacks a column that the model tests; raised before any data is read.
    DtypeError
        A column has another dtype than it was learned on, and one in which the model's values would
        mean nothing; raised before any data is read.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.class_rules import class_rules
    >>> from polars_oner.prediction import predict
    >>> train = pl.DataFrame({"height": [1, 2, 8, 9], "kind": ["low", "low", "high", "high"]})
    >>> predict(pl.DataFrame({"height": [9, 1]}), class_rules(train, "kind"))
    shape: (2, 2)
    ┌────────┬────────────┐
    │ height ┆ prediction │
    │ ---    ┆ ---        │
    │ i64    ┆ str        │
    ╞════════╪════════════╡
    │ 9      ┆ high       │
    │ 1      ┆ low        │
    └────────┴────────────┘
    """
    check_dtype(as_lazy(frame).collect_schema(), model.tested)
    return frame.with_columns(model.predict(name))
