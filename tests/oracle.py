"""What polars_oner must answer, worked out the slow and obvious way.

Plain Python on lists of rows: no polars, no numpy, nothing of the package. Every candidate really
divides the rows and every score is computed from the rows of its sides. Scores are exact fractions;
where roots or logarithms come in, decimals of 90 digits rounded to 50 places, so that scores that
are equal in mathematics compare equal here and a tie is a tie.

Words: a *value* is what stands in a cell, ``None`` when missing; a *column* is a list of values;
``x`` is a feature's column and ``y`` the target's; *classes* are the target's distinct values in
their order, ascending unless a caller declares another.

Order among splits that tie: the smaller threshold, then the missing rows on the left before the
right; the split of the missing rows from all others comes last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import Any, Literal, TypeAlias

Value: TypeAlias = Any
Column: TypeAlias = Sequence[Value]
Criterion: TypeAlias = Literal["gini", "entropy", "error", "variance", "std"]
Missing: TypeAlias = Literal["best", "left", "right", "drop"]
Search: TypeAlias = Literal["auto", "scan", "all", "one"]
Ties: TypeAlias = Literal["rare", "first", "frequent"]
Kind: TypeAlias = Literal["nominal", "ordered"]

NUMBER_CRITERIA = ("variance", "std")
ROUNDED = ("entropy", "std")
EXHAUSTIVE_VALUES = 12
DIGITS = Context(prec=90)
PLACES = Fraction(10**50)


# --- cells ---


def clean(column: Column) -> list[Value]:
    """Write NaN as None and -0.0 as 0.0."""
    return [_clean(value) for value in column]


def _clean(value: Value) -> Value:
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value + 0.0
    return value


def with_target(x: Column, y: Column) -> tuple[list[Value], list[Value]]:
    """Leave out the rows whose target is missing."""
    rows = [(a, b) for a, b in zip(clean(x), clean(y), strict=True) if b is not None]
    return [a for a, _ in rows], [b for _, b in rows]


def count(values: Sequence[Value]) -> dict[Value, int]:
    counts: dict[Value, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


# --- scores ---


@cache
def log2(number: int) -> Decimal:
    return DIGITS.divide(DIGITS.ln(Decimal(number)), DIGITS.ln(Decimal(2)))


def rounded(number: Fraction) -> Fraction:
    """Round to 50 places: whole scores, never parts of them, or ties would come apart."""
    return Fraction(round(number * PLACES)) / PLACES


def root(number: Fraction) -> Fraction:
    quotient = DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(DIGITS.sqrt(quotient))


def squares_about_mean(numbers: Sequence[Value]) -> Fraction:
    exact = [Fraction(number) for number in numbers]
    mean = sum(exact, Fraction(0)) / len(exact)
    return sum(((number - mean) ** 2 for number in exact), Fraction(0))


def impurity(side: Sequence[Value], criterion: Criterion) -> Fraction:
    """Score one side, given as the target values of its rows; a side without rows scores 0."""
    score = _impurity(side, criterion)
    return rounded(score) if criterion in ROUNDED else score


def _impurity(side: Sequence[Value], criterion: Criterion) -> Fraction:
    n = len(side)
    if n == 0:
        return Fraction(0)
    if criterion == "variance":
        return squares_about_mean(side) / n
    if criterion == "std":
        return root(squares_about_mean(side) / (n - 1)) if n > 1 else Fraction(0)
    counts = count(side).values()
    if criterion == "gini":
        return 1 - sum((Fraction(c, n) ** 2 for c in counts), Fraction(0))
    if criterion == "error":
        return Fraction(n - max(counts), n)
    bits = Decimal(0)
    for c in counts:
        share = DIGITS.divide(Decimal(c), Decimal(n))
        bits = DIGITS.add(bits, DIGITS.multiply(share, DIGITS.subtract(log2(n), log2(c))))
    return Fraction(bits)


def weighted_impurity(sides: Sequence[Sequence[Value]], criterion: Criterion) -> Fraction:
    """Average the scores of several sides by their rows."""
    n = sum(len(side) for side in sides)
    mass = sum((_impurity(side, criterion) * len(side) for side in sides), Fraction(0))
    return rounded(mass / n) if criterion in ROUNDED else mass / n


# --- binary splits ---


@dataclass(frozen=True)
class Split:
    """One candidate: which values go left, where the missing rows go, and what that scores.

    ``left_max`` and ``right_min`` are the values on either side of the cut of an ordered feature;
    when the missing rows stand against all others, every value is on the left and both are None.
    """

    left: tuple[Value, ...]
    left_max: Value
    right_min: Value
    missing_goes: Literal["left", "right"] | None
    n_left: int
    n_right: int
    n_missing: int
    score: Fraction

    @property
    def missing_alone(self) -> bool:
        return self.left_max is None and self.right_min is None and self.missing_goes == "right"


def _placements(missing: Missing, n_missing: int) -> tuple[Literal["left", "right"] | None, ...]:
    if n_missing == 0 or missing == "drop":
        return (None,)
    if missing == "best":
        return ("left", "right")
    return (missing,)


def _score(
    x: Column,
    y: Column,
    left: Sequence[Value],
    missing_goes: Literal["left", "right"] | None,
    criterion: Criterion,
) -> tuple[int, int, Fraction]:
    """Divide the rows and score the two sides."""
    sides: dict[str, list[Value]] = {"left": [], "right": []}
    for value, label in zip(x, y, strict=True):
        if value is None:
            if missing_goes is not None:
                sides[missing_goes].append(label)
        else:
            sides["left" if value in left else "right"].append(label)
    score = weighted_impurity(list(sides.values()), criterion)
    return len(sides["left"]), len(sides["right"]), score


def _candidates(
    x: Column,
    y: Column,
    sets: Sequence[tuple[tuple[Value, ...], Value, Value]],
    criterion: Criterion,
    *,
    missing: Missing,
    min_leaf: int,
) -> list[Split]:
    """Score each set of left values with each place of the missing rows, in the order of ties."""
    distinct = tuple(sorted({value for value in x if value is not None}))
    n_missing = sum(value is None for value in x)
    tried: list[tuple[tuple[Value, ...], Value, Value, Literal["left", "right"] | None]] = [
        (left, left_max, right_min, goes)
        for left, left_max, right_min in sets
        for goes in _placements(missing, n_missing)
    ]
    if missing == "best" and n_missing and distinct:
        tried.append((distinct, None, None, "right"))
    found = []
    for left, left_max, right_min, goes in tried:
        n_left, n_right, score = _score(x, y, left, goes, criterion)
        if min(n_left, n_right) >= min_leaf:
            found.append(Split(left, left_max, right_min, goes, n_left, n_right, n_missing, score))
    return found


def ordered_candidates(
    x: Column,
    y: Column,
    criterion: Criterion,
    *,
    missing: Missing = "best",
    min_leaf: int = 1,
    key: Callable[[Value], Value] | None = None,
) -> list[Split]:
    """List all splits ``x <= value``, first of ties first; ``key`` orders the values."""
    x, y = with_target(x, y)
    distinct = sorted({value for value in x if value is not None}, key=key)
    sets = [(tuple(distinct[:i]), distinct[i - 1], distinct[i]) for i in range(1, len(distinct))]
    return _candidates(x, y, sets, criterion, missing=missing, min_leaf=min_leaf)


def best_ordered(
    x: Column,
    y: Column,
    criterion: Criterion,
    *,
    missing: Missing = "best",
    min_leaf: int = 1,
    key: Callable[[Value], Value] | None = None,
) -> Split | None:
    """Take the first of the lowest scores."""
    return first_lowest(
        ordered_candidates(x, y, criterion, missing=missing, min_leaf=min_leaf, key=key)
    )


def first_lowest(candidates: Sequence[Split]) -> Split | None:
    # min() keeps the first of equals.
    return min(candidates, key=lambda split: split.score, default=None)


def subsets(values: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
    """List every set of values but the empty and the full one."""
    for size in range(1, len(values)):
        yield from combinations(values, size)


def nominal_sets(
    x: Column,
    y: Column,
    criterion: Criterion,
    search: Search = "auto",
    classes: Sequence[Value] | None = None,
) -> list[tuple[Value, ...]]:
    """List the sets of values that are tried as the left side.

    ``"auto"`` is the library's promise: two classes or a number target order the values by target
    mean and scan; more classes try every set to 12 values and one value against the rest beyond.

    Which of two sides is called left is a convention, and matters only where ``missing`` names a
    side: the lower means when scanning, the side of the first value among all sets, the one value.
    """
    distinct = sorted({value for value in x if value is not None})
    order = class_order(y, classes)
    if search == "auto":
        if criterion in NUMBER_CRITERIA or len(order) <= 2:
            search = "scan"
        else:
            search = "all" if len(distinct) <= EXHAUSTIVE_VALUES else "one"
    if search == "all":
        return [left for left in subsets(distinct) if distinct[0] in left]
    if search == "one":
        return [(value,) for value in distinct] if len(distinct) > 1 else []

    def mean(value: Value) -> Fraction:
        labels = [b for a, b in zip(x, y, strict=True) if a == value]
        if criterion in NUMBER_CRITERIA:
            return sum((Fraction(label) for label in labels), Fraction(0)) / len(labels)
        return Fraction(sum(label == order[-1] for label in labels), len(labels))

    by_mean = sorted(distinct, key=mean)
    return [tuple(by_mean[:i]) for i in range(1, len(by_mean))]


def nominal_candidates(
    x: Column,
    y: Column,
    criterion: Criterion,
    *,
    missing: Missing = "best",
    min_leaf: int = 1,
    search: Search = "auto",
    classes: Sequence[Value] | None = None,
) -> list[Split]:
    x, y = with_target(x, y)
    sets = [(left, None, None) for left in nominal_sets(x, y, criterion, search, classes)]
    return _candidates(x, y, sets, criterion, missing=missing, min_leaf=min_leaf)


def best_nominal(
    x: Column,
    y: Column,
    criterion: Criterion,
    *,
    missing: Missing = "best",
    min_leaf: int = 1,
    search: Search = "auto",
    classes: Sequence[Value] | None = None,
) -> Split | None:
    """Find a best set of values; which of several equally good sets is not promised."""
    return first_lowest(
        nominal_candidates(
            x, y, criterion, missing=missing, min_leaf=min_leaf, search=search, classes=classes
        )
    )


# --- 1R ---


@dataclass(frozen=True)
class Case:
    """The values of one case (``(None,)`` for missing), what it predicts, and how well."""

    values: tuple[Value, ...]
    prediction: Value
    n_correct: int
    n_rows: int


@dataclass(frozen=True)
class Rule:
    """One feature's cases: nominal values ascending or intervals upwards, then missing."""

    cases: tuple[Case, ...]
    default: Value
    kind: Kind

    @property
    def n_rows(self) -> int:
        return sum(case.n_rows for case in self.cases)

    @property
    def n_errors(self) -> int:
        return sum(case.n_rows - case.n_correct for case in self.cases)

    @property
    def boundaries(self) -> list[tuple[Value, Value]]:
        """List the pairs of neighbouring values between which an ordered feature is cut."""
        intervals = [case.values for case in self.cases if case.values != (None,)]
        return [(a[-1], b[0]) for a, b in pairwise(intervals)]

    def predict(self, value: Value, cut: Callable[[Value, Value], Value] | None = None) -> Value:
        """Predict one cell; ``cut`` places a cut between two neighbouring values."""
        value = _clean(value)
        for case in self.cases:
            if value in case.values:
                return case.prediction
        if value is None or self.kind == "nominal":
            return self.default
        intervals = [case for case in self.cases if case.values != (None,)]
        if not intervals:
            return self.default
        place = cut if cut is not None else (lambda a, b: (a + b) / 2)
        for case, (left_max, right_min) in zip(intervals, self.boundaries, strict=False):
            if value <= place(left_max, right_min):
                return case.prediction
        return intervals[-1].prediction


def class_order(y: Column, classes: Sequence[Value] | None = None) -> list[Value]:
    """Give the classes that occur, in declared or else ascending order."""
    present = {label for label in clean(y) if label is not None}
    order = sorted(present) if classes is None else list(classes)
    return [label for label in order if label in present]


def default_class(y: Column, classes: Sequence[Value] | None = None) -> Value:
    """Give the commonest class, the first in class order among equals."""
    totals = count([label for label in clean(y) if label is not None])
    return max(class_order(y, classes), key=lambda label: totals[label])


def majority(
    counts: Mapping[Value, int],
    totals: Mapping[Value, int],
    order: Sequence[Value],
    ties: Ties,
) -> Value:
    """Name the class with most rows; among tied ones, the one that the tie rule takes."""
    most = max(counts.values())
    tied = [label for label in order if counts.get(label, 0) == most]
    if ties == "rare":
        return min(tied, key=lambda label: totals[label])
    if ties == "frequent":
        return max(tied, key=lambda label: totals[label])
    return tied[0]


def _walk(
    x: Column,
    y: Column,
    *,
    min_bucket: int,
    ties: Ties,
    order: Sequence[Value],
    totals: Mapping[Value, int],
) -> list[list[Value]]:
    """Walk the distinct values upwards, group them, and join neighbours of equal majority."""

    def class_of(values: Sequence[Value]) -> Value:
        return majority(_labels(x, y, values), totals, order, ties)

    intervals: list[list[Value]] = []
    for value in sorted({v for v in x if v is not None}):
        if intervals:
            running = intervals[-1]
            leading = max(_labels(x, y, running).values())
            if leading < min_bucket or class_of([value]) == class_of(running):
                running.append(value)
                continue
        intervals.append([value])
    joined: list[list[Value]] = []
    for interval in intervals:
        if joined and class_of(joined[-1]) == class_of(interval):
            joined[-1].extend(interval)
        else:
            joined.append(list(interval))
    return joined


def _labels(x: Column, y: Column, values: Sequence[Value]) -> dict[Value, int]:
    return count([b for a, b in zip(x, y, strict=True) if a is not None and a in values])


def one_rule(
    x: Column,
    y: Column,
    kind: Kind,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    classes: Sequence[Value] | None = None,
) -> Rule:
    """Learn the 1R rule of one feature."""
    x, y = with_target(x, y)
    order = class_order(y, classes)
    totals = count(y)
    if kind == "nominal":
        groups = [[value] for value in sorted({v for v in x if v is not None})]
    else:
        groups = _walk(x, y, min_bucket=min_bucket, ties=ties, order=order, totals=totals)
    cases = [_case(tuple(group), _labels(x, y, group), totals, order, ties) for group in groups]
    missing = count([b for a, b in zip(x, y, strict=True) if a is None])
    if missing:
        cases.append(_case((None,), missing, totals, order, ties))
    return Rule(tuple(cases), default_class(y, classes), kind)


def _case(
    values: tuple[Value, ...],
    counts: Mapping[Value, int],
    totals: Mapping[Value, int],
    order: Sequence[Value],
    ties: Ties,
) -> Case:
    prediction = majority(counts, totals, order, ties)
    return Case(values, prediction, counts[prediction], sum(counts.values()))


def looks_like_identifier(x: Column, y: Column) -> bool:
    """Tell whether more than half of the rows sit in values seen once (nominal features)."""
    x, _ = with_target(x, y)
    once = sum(n for value, n in count(x).items() if value is not None and n == 1)
    return 2 * once > len(x)


def choose(
    features: Mapping[str, tuple[Column, Kind]],
    y: Column,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    classes: Sequence[Value] | None = None,
    identifiers: Literal["exclude", "keep"] = "exclude",
) -> tuple[str | None, dict[str, Rule]]:
    """Learn every feature's rule and name the one with fewest errors, the first among equals."""
    rules = {
        name: one_rule(x, y, kind, min_bucket=min_bucket, ties=ties, classes=classes)
        for name, (x, kind) in features.items()
    }
    allowed = [
        name
        for name, (x, kind) in features.items()
        if identifiers == "keep" or kind == "ordered" or not looks_like_identifier(x, y)
    ]
    return min(allowed, key=lambda name: rules[name].n_errors, default=None), rules


# --- honest accuracy ---


def leave_one_out(
    x: Column,
    y: Column,
    kind: Kind,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    classes: Sequence[Value] | None = None,
    refit_intervals: bool = False,
) -> Fraction:
    """Learn without each row in turn and predict it; the share of rows predicted right.

    With ``refit_intervals=False`` the intervals of an ordered feature are those of all rows, and
    only what each of them predicts is learned anew.
    """
    x, y = with_target(x, y)
    groups: Column = x
    if kind == "ordered" and not refit_intervals:
        intervals = _walk(
            x, y, min_bucket=min_bucket, ties=ties, order=class_order(y, classes), totals=count(y)
        )
        number = {value: i for i, values in enumerate(intervals) for value in values}
        groups = [None if value is None else number[value] for value in x]
        kind = "nominal"
    n_correct = 0
    for i, label in enumerate(y):
        rest_x, rest_y = [*groups[:i], *groups[i + 1 :]], [*y[:i], *y[i + 1 :]]
        if not rest_y:
            continue
        rule = one_rule(rest_x, rest_y, kind, min_bucket=min_bucket, ties=ties, classes=classes)
        n_correct += rule.predict(groups[i]) == label
    return Fraction(n_correct, len(y))


@dataclass(frozen=True)
class Fold:
    """What one fold gives: the feature chosen on the other folds, and its errors here."""

    fold: Value
    feature: str | None
    n_rows: int
    n_errors: int
    errors: dict[str, int]


def cross_validate(
    features: Mapping[str, tuple[Column, Kind]],
    y: Column,
    folds: Column,
    *,
    min_bucket: int = 6,
    ties: Ties = "rare",
    classes: Sequence[Value] | None = None,
    unseen: Literal["default", "first"] = "default",
    cut: Callable[[Value, Value], Value] | None = None,
    strictly_below: bool = False,
) -> list[Fold]:
    """Learn 1R on all folds but one, predict that one, fold by fold.

    ``unseen="first"`` and ``strictly_below`` do as Weka does: unseen and missing cells without a
    case get the first declared class, and a value on a cut belongs to the right.
    """
    y = clean(y)
    kept = [i for i, label in enumerate(y) if label is not None]
    results = []
    for fold in sorted({folds[i] for i in kept}):
        train = [i for i in kept if folds[i] != fold]
        test = [i for i in kept if folds[i] == fold]
        learned = {name: ([x[i] for i in train], kind) for name, (x, kind) in features.items()}
        feature, rules = choose(
            learned,
            [y[i] for i in train],
            min_bucket=min_bucket,
            ties=ties,
            classes=classes,
            identifiers="keep",
        )
        errors = {}
        for name, (x, _) in features.items():
            rule = rules[name]
            if unseen == "first":
                first = (list(classes) if classes is not None else class_order(y))[0]
                rule = Rule(rule.cases, first, rule.kind)
            place = _below(cut) if strictly_below else cut
            errors[name] = sum(rule.predict(x[i], place) != y[i] for i in test)
        results.append(
            Fold(fold, feature, len(test), errors[feature] if feature else len(test), errors)
        )
    return results


def _below(cut: Callable[[Value, Value], Value] | None) -> Callable[[Value, Value], Value]:
    place = cut if cut is not None else (lambda a, b: (a + b) / 2)
    return lambda a, b: math.nextafter(place(float(a), float(b)), -math.inf)


# --- class rules ---


@dataclass(frozen=True)
class ClassRules:
    """Per class and feature the interval [min, max] or the set of values; None where none."""

    tests: dict[Value, dict[str, tuple[Value, Value] | frozenset[Value] | None]]
    kinds: dict[str, Kind]
    totals: dict[Value, int]
    order: tuple[Value, ...]

    def matches(self, row: Mapping[str, Value]) -> dict[Value, int]:
        """Count the tests of each class that a row passes."""
        return {
            label: sum(self._passes(label, name, row[name]) for name in self.kinds)
            for label in self.order
        }

    def _passes(self, label: Value, name: str, value: Value) -> bool:
        value, test = _clean(value), self.tests[label][name]
        if value is None or test is None:
            return False
        if isinstance(test, frozenset):
            return value in test
        low, high = test
        return bool(low <= value <= high)

    def predict(self, row: Mapping[str, Value], ties: Literal["frequent", "first"]) -> Value:
        matches = self.matches(row)
        most = max(matches.values())
        tied = [label for label in self.order if matches[label] == most]
        if most == 0 or ties == "frequent":
            return max(tied, key=lambda label: self.totals[label])
        return tied[0]


def class_rules(
    features: Mapping[str, tuple[Column, Kind]],
    y: Column,
    *,
    classes: Sequence[Value] | None = None,
) -> ClassRules:
    """Learn each class's interval or value set per feature."""
    y = clean(y)
    order = class_order(y, classes)
    tests: dict[Value, dict[str, tuple[Value, Value] | frozenset[Value] | None]] = {}
    for label in order:
        tests[label] = {}
        for name, (x, kind) in features.items():
            seen = [a for a, b in zip(clean(x), y, strict=True) if b == label and a is not None]
            if not seen:
                tests[label][name] = None
            elif kind == "ordered":
                tests[label][name] = (min(seen), max(seen))
            else:
                tests[label][name] = frozenset(seen)
    return ClassRules(
        tests,
        {name: kind for name, (_, kind) in features.items()},
        count([label for label in y if label is not None]),
        tuple(order),
    )


# --- discretisation by minimum description length ---


def mdl_boundaries(x: Column, y: Column) -> list[tuple[Value, Value]]:
    """Cut as Fayyad and Irani (1993) do; the pairs of neighbouring values cut between.

    The best cut has the lowest weighted entropy, the smallest among equals, and is kept when its
    gain exceeds (log2(n - 1) + log2(3^k - 2) - k E + k1 E1 + k2 E2) / n.
    """
    x, y = with_target(x, y)
    rows = [(a, b) for a, b in zip(x, y, strict=True) if a is not None]
    return sorted(_mdl(rows))


def _mdl(rows: Sequence[tuple[Value, Value]]) -> list[tuple[Value, Value]]:
    split = best_ordered([a for a, _ in rows], [b for _, b in rows], "entropy")
    if split is None:
        return []
    low = [row for row in rows if row[0] <= split.left_max]
    high = [row for row in rows if row[0] >= split.right_min]
    whole = impurity([b for _, b in rows], "entropy")
    k = len({b for _, b in rows})
    delta = math.log2(3**k - 2) - k * float(whole)
    for part in (low, high):
        labels = [b for _, b in part]
        delta += len(set(labels)) * float(impurity(labels, "entropy"))
    if float(whole - split.score) <= (math.log2(len(rows) - 1) + delta) / len(rows):
        return []
    return [(split.left_max, split.right_min), *_mdl(low), *_mdl(high)]
