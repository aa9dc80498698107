"""Models to and from what JSON can hold, with nothing lost.

JSON knows no dates, no Decimals, no NaN, and many of its readers round integers beyond 2**53. What it
lacks travels as an object with one key that starts with ``$``: ``{"$date": "2024-02-29"}``. Columns
keep their dtype, and times the integers behind them, since Python's own count only microseconds.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from polars_oner.errors import OneRError

FORMAT = 1
"""Version of the layout; it changes when older readers would misread it."""

_EXACT_INT = 2**53


class Model:
    """Base of the frozen dataclasses that are the library's results: `to_dict`, `from_dict`, ``==``.

    Two models are equal if they are of one class and all that they store is equal.
    """

    _classes: ClassVar[dict[str, type[Model]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Model._classes[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Write the model as a dict that goes through JSON unharmed.

        Returns
        -------
        dict
            ``format`` (a version number), ``model`` (the class) and the model's fields. It holds
            only dicts with text keys, lists, text, floats, integers up to 2**53, Booleans and None.
        """
        return {"format": FORMAT, "model": type(self).__name__, **_encode_fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read a model that `to_dict` wrote.

        Raises
        ------
        OneRError
            The dict holds another model, another format, or is not one of ours.
        """
        if data.get("format") != FORMAT:
            msg = f"this version reads model format {FORMAT}, not {data.get('format')!r}"
            raise OneRError(msg)
        if data.get("model") != cls.__name__:
            msg = f"the dict holds a {data.get('model')!r} model, not a {cls.__name__!r}"
            raise OneRError(msg)
        model: Self = _decode_fields(cls, data)
        return model

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _encode_fields(self) == _encode_fields(other)

    def __hash__(self) -> int:
        return hash(json.dumps(_encode_fields(self), sort_keys=True))


def encode(value: Any) -> Any:
    """Write a value with what JSON can hold.

    Takes None, Booleans, text, numbers, dates, times, tuples, lists, dicts with text keys, dtypes,
    Series, DataFrames and models, nested in any way.

    Raises
    ------
    OneRError
        A value is of a kind that is not written.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, Model):
        return {"$model": {"model": type(value).__name__, **_encode_fields(value)}}
    if isinstance(value, list):
        return [encode(item) for item in value]
    for kind, (tag, write) in _WRITERS.items():
        if isinstance(value, kind):
            return write(value) if tag is None else {tag: write(value)}
    msg = f"a {type(value).__name__} cannot be written to a dict"
    raise OneRError(msg)


def decode(data: Any) -> Any:
    """Read a value that `encode` wrote.

    Raises
    ------
    OneRError
        A tag is unknown.
    """
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if len(data) == 1:
        ((tag, content),) = data.items()
        if tag in _READERS:
            return _READERS[tag](content)
        if tag.startswith("$"):
            msg = f"unknown tag {tag!r} in a model's dict"
            raise OneRError(msg)
    return {key: decode(item) for key, item in data.items()}


def _encode_fields(model: Any) -> dict[str, Any]:
    return {field.name: encode(getattr(model, field.name)) for field in fields(model)}


def _decode_fields(cls: Any, data: Mapping[str, Any]) -> Any:
    names = [field.name for field in fields(cls)]
    missing = [name for name in names if name not in data]
    if missing:
        msg = f"the dict of a {cls.__name__} lacks {', '.join(map(repr, missing))}"
        raise OneRError(msg)
    return cls(**{name: decode(data[name]) for name in names})


def _decode_model(data: Mapping[str, Any]) -> Model:
    name = data.get("model")
    if name not in Model._classes:
        msg = f"the dict holds a {name!r} model, which is not one of ours"
        raise OneRError(msg)
    model: Model = _decode_fields(Model._classes[name], data)
    return model


def _encode_int(value: int) -> Any:
    return value if abs(value) <= _EXACT_INT else {"$int": str(value)}


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": repr(value)}


def _encode_dict(value: dict[Any, Any]) -> Any:
    if not all(isinstance(key, str) for key in value):
        msg = "a dict whose keys are not all text cannot be written to a dict"
        raise OneRError(msg)
    plain = {key: encode(item) for key, item in value.items()}
    # A dict that looks like a tag is wrapped, so that it is not read as one.
    return {"$dict": plain} if len(plain) == 1 and next(iter(plain)).startswith("$") else plain


def _encode_datetime(value: dt.datetime) -> Any:
    zone = getattr(value.tzinfo, "key", None)
    if zone is None and value.tzinfo is not None:
        msg = f"a time zone without a name cannot be written to a dict: {value!r}"
        raise OneRError(msg)
    return [value.replace(tzinfo=None).isoformat(), value.fold, zone]


def _decode_datetime(data: list[Any]) -> dt.datetime:
    from zoneinfo import ZoneInfo

    text, fold, zone = data
    value = dt.datetime.fromisoformat(text).replace(fold=fold)
    return value if zone is None else value.replace(tzinfo=ZoneInfo(zone))


def _encode_dtype(dtype: pl.DataType) -> Any:
    match dtype:
        case pl.Enum():
            return ["Enum", dtype.categories.to_list()]
        case pl.Datetime():
            return ["Datetime", dtype.time_unit, dtype.time_zone]
        case pl.Duration():
            return ["Duration", dtype.time_unit]
        case pl.Decimal():
            return ["Decimal", dtype.precision, dtype.scale]
        case pl.Categorical():
            pool = dtype.categories
            return ["Categorical", pool.name(), pool.namespace(), repr(pool.physical())]
        case _ if not dtype.is_nested():
            return [repr(dtype)]
    msg = f"dtype {dtype} cannot be written to a dict"
    raise OneRError(msg)


def _decode_dtype(data: list[Any]) -> pl.DataType:
    name, *arguments = data
    if name == "Categorical" and arguments[0]:
        pool, namespace, physical = arguments
        categories = pl.Categories(pool, namespace, getattr(pl, physical))
        return pl.Categorical(categories)
    if name == "Categorical":
        return pl.Categorical()
    dtype: pl.DataType = getattr(pl, name)(*arguments)
    return dtype


def _encode_series(series: pl.Series) -> Any:
    plain = series.to_physical() if series.dtype.is_temporal() else series
    return {
        "name": series.name,
        "dtype": _encode_dtype(series.dtype),
        "values": encode(plain.to_list()),
    }


def _decode_series(data: Mapping[str, Any]) -> pl.Series:
    dtype, values = _decode_dtype(data["dtype"]), decode(data["values"])
    if dtype.is_temporal():
        return pl.Series(data["name"], values, dtype=pl.Int64).cast(dtype)
    return pl.Series(data["name"], values, dtype=dtype)


# In order: a datetime is also a date.
_WRITERS: dict[type, tuple[str | None, Callable[[Any], Any]]] = {
    int: (None, _encode_int),
    float: (None, _encode_float),
    dict: (None, _encode_dict),
    tuple: ("$tuple", lambda value: [encode(item) for item in value]),
    Decimal: ("$decimal", str),
    dt.datetime: ("$datetime", _encode_datetime),
    dt.date: ("$date", dt.date.isoformat),
    dt.time: ("$time", dt.time.isoformat),
    dt.timedelta: ("$timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    pl.DataType: ("$dtype", _encode_dtype),
    pl.Series: ("$series", _encode_series),
    pl.DataFrame: ("$frame", lambda frame: [_encode_series(column) for column in frame]),
}

_READERS: dict[str, Callable[[Any], Any]] = {
    "$int": int,
    "$float": float,
    "$dict": lambda data: {key: decode(item) for key, item in data.items()},
    "$tuple": lambda data: tuple(decode(item) for item in data),
    "$decimal": Decimal,
    "$datetime": _decode_datetime,
    "$date": dt.date.fromisoformat,
    "$time": dt.time.fromisoformat,
    "$timedelta": lambda data: dt.timedelta(*data),
    "$dtype": _decode_dtype,
    "$series": _decode_series,
    "$frame": lambda data: pl.DataFrame([_decode_series(column) for column in data]),
    "$model": _decode_model,
}
