"""Exception classes and how their messages are built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import polars as pl


class OneRError(ValueError):
    """Base of every error that polars_oner raises by its own judgement."""


class MissingColumnError(OneRError, pl.exceptions.ColumnNotFoundError):
    """A column that was named is not in the frame."""

    @classmethod
    def from_names(cls, missing: str, available: Sequence[str]) -> MissingColumnError:
        """Name what was asked for and the nearest names that exist."""
        folded = {name.casefold(): name for name in reversed(available)}
        near = [folded[key] for key in get_close_matches(missing.casefold(), folded, n=3)]
        if near:
            hint = "did you mean " + " or ".join(repr(name) for name in near) + "?"
        else:
            hint = f"the frame has {quoted(available)}"
        return cls(f"column {missing!r} not found; {hint}")


class ColumnRoleError(OneRError):
    """A column is named in a role it cannot have: target as feature, named twice, and the like."""

    @classmethod
    def target_as_feature(cls, target: str) -> ColumnRoleError:
        """The target stands in the feature list."""
        return cls(f"the target {target!r} is also listed as a feature")

    @classmethod
    def named_twice(cls, name: str, option: str) -> ColumnRoleError:
        """One option names a column twice."""
        return cls(f"column {name!r} is listed twice in {option}")

    @classmethod
    def role_clash(cls, name: str, first: str, second: str) -> ColumnRoleError:
        """Two options that exclude one another name the same column."""
        return cls(f"column {name!r} is named both as {first} and as {second}")

    @classmethod
    def without_features(cls, target: str) -> ColumnRoleError:
        """Nothing is left to test."""
        return cls(f"no feature column besides the target {target!r}")


class DtypeError(OneRError):
    """A column's dtype does not fit what is asked of it."""

    @classmethod
    def feature(cls, name: str, dtype: pl.DataType, wanted: str) -> DtypeError:
        """A feature was named that the library cannot test, or not in the way asked for."""
        return cls(f"feature {name!r} has dtype {dtype}; {wanted}")

    @classmethod
    def target(cls, name: str, dtype: pl.DataType, what: str, allowed: Iterable[str]) -> DtypeError:
        """The target cannot be read as the criterion or method reads it."""
        return cls(
            f"{what} cannot use target {name!r} of dtype {dtype}; "
            f"allowed here: {quoted(tuple(allowed))}"
        )

    @classmethod
    def at_prediction(cls, name: str, came: pl.DataType, learned: pl.DataType) -> DtypeError:
        """A model meets a column of another dtype than it was learned on."""
        return cls(
            f"column {name!r} has dtype {came}, but the model was learned on {learned}; "
            "cast the column before predicting"
        )


class OptionError(OneRError):
    """An option has a value outside what is allowed."""

    @classmethod
    def from_choice(cls, option: str, came: object, allowed: Sequence[object]) -> OptionError:
        """An option takes one of a fixed set of values."""
        return cls(f"{option} must be one of {quoted(allowed)}, not {came!r}")

    @classmethod
    def from_range(cls, option: str, came: object, wanted: str) -> OptionError:
        """An option takes a number or column of a certain kind."""
        return cls(f"{option} must be {wanted}, not {came!r}")


class EmptyTargetError(OneRError):
    """No row has a target, so nothing can be learned."""

    @classmethod
    def from_counts(cls, target: str, n_rows: int) -> EmptyTargetError:
        """Say how many rows there were and that none has a target."""
        if n_rows == 0:
            return cls(f"no rows: the frame is empty, so target {target!r} has no values")
        return cls(f"no rows with a target: all {n_rows} values of {target!r} are missing")


class WeightError(OneRError):
    """A weight column holds something that is not a finite, non-negative number."""

    @classmethod
    def from_column(cls, name: str, n_bad: int) -> WeightError:
        """Name the column and how many weights are unusable."""
        return cls(
            f"weights column {name!r} has {n_bad} values that are missing, negative or not finite"
        )

    @classmethod
    def from_dtype(cls, name: str, dtype: pl.DataType) -> WeightError:
        """Say that a column of this dtype holds no weights."""
        return cls(f"weights column {name!r} has dtype {dtype}; weights are numbers")


class MissingPackageError(OneRError, ImportError):
    """An optional package is needed for what was asked."""

    @classmethod
    def from_extra(cls, package: str, extra: str, what: str) -> MissingPackageError:
        """Name the package and the extra that brings it."""
        return cls(f"{what} needs {package}: pip install 'polars_oner[{extra}]'")


class IdentifierWarning(UserWarning):
    """Columns that look like row identifiers were left out of the choice."""


def quoted(names: Iterable[object], most: int = 12) -> str:
    """Join names for a message, cut after ``most`` of them."""
    items = [repr(name) for name in names]
    if len(items) > most:
        items = [*items[:most], f"... ({len(items) - most} more)"]
    return ", ".join(items)


def check_choice(option: str, value: object, allowed: Sequence[object]) -> None:
    """Raise unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise OptionError.from_choice(option, value, allowed)


def check_positive(option: str, value: object) -> None:
    """Raise unless ``value`` is a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError.from_range(option, value, "a whole number of at least 1")
