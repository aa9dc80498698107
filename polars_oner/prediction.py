"""A frame with a model's prediction beside its columns."""

from __future__ import annotations

from polars_oner.evaluation import Predictor
from polars_oner.frame import as_lazy, require_column
from polars_oner.typing import FrameT


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
    prediction = model.predict(name)
    schema = as_lazy(frame).collect_schema()
    for column in prediction.meta.root_names():
        require_column(schema, column)
    return frame.with_columns(prediction)
