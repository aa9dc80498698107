"""Every candidate of a feature with its score, and the best of them.

A candidate sends the rows of some values left and the others right: all values up to a threshold for
an ordered feature, a set of values for a nominal one. Left and right class counts come from running
counts over the sorted count table, in one plan; nothing is looped over. A row of the table adds its
class to the left and takes it from the right, so the gathered terms of a criterion (the sum of the
squared class counts, say) change there by a difference that needs no other class: a running sum of
such differences is the gathered term at every candidate, whatever the number of classes. (Of two
classes a running count of one says all.)

Nominal features: with two classes, or a number target, some prefix of the values in ascending order
of their target mean is the best set (Breiman et al. 1984, theorem 4.5; Fisher 1958 for the variance),
so that order is scanned like a threshold. With more classes all sets are tried up to `EXHAUSTIVE`
values, and each value against the rest beyond.

References
----------
Breiman, L., Friedman, J., Olshen, R., Stone, C. (1984). *Classification and Regression Trees*.
Fisher, W. D. (1958). "On grouping for maximum homogeneity", *JASA* 53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_oner.criteria import TIE, ClassCriterion, Criterion
from polars_oner.typing import Kind, Missing

EXHAUSTIVE = 12
"""Largest number of values for which every set is tried (more than two classes)."""

_c = pl.col


@dataclass(frozen=True)
class Search:
    """How the candidates of a feature are scored.

    Attributes
    ----------
    criterion
        The criterion.
    kind
        The feature's kind.
    missing
        Where missing values go.
    min_leaf
        Rows that a side must have.
    by
        Segment columns of the count table.
    n_classes
        The most classes that any segment has, where that is known before the plan runs.
    has_missing
        Whether the feature may have missing values; False spares the work on them.
    """

    criterion: Criterion
    kind: Kind
    missing: Missing = "best"
    min_leaf: int = 1
    by: tuple[str, ...] = ()
    n_classes: int | None = None
    has_missing: bool = True

    @property
    def by_mean(self) -> bool | None:
        """Whether nominal values are scanned by target mean; None if only the data can tell."""
        if not isinstance(self.criterion, ClassCriterion):
            return True
        return None if self.n_classes is None else self.n_classes <= 2

    def over(self, values: pl.Expr, *further: str) -> pl.Expr:
        """Compute within each segment (and class)."""
        keys = [*self.by, *further]
        return values.over(keys) if keys else values


def candidates(counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    """Plan every candidate of a feature with its score.

    Parameters
    ----------
    counts
        The feature's count table, ascending by segment and value, missing first; rows with
        ``exact`` false stand for a stretch of values among which no candidate is wanted.
    search
        How to score.

    Returns
    -------
    LazyFrame
        One row per segment and candidate, in the order that settles ties: ``by``; ``value`` and
        ``next``, the neighbours around the cut (for a nominal feature the number of the candidate
        set, and null); ``goes``, where missing rows go: ``"left"``, ``"right"``, ``"apart"`` (all
        others left, they alone right; comes last) or null if there are none or they are dropped;
        ``n_left``, ``n_right``, ``n_missing``; ``score_left``, ``score_right``, ``score``;
        ``before``, the score of the rows when they are not split. Candidates that leave fewer than
        ``min_leaf`` rows on a side are left out.
    """
    if search.kind == "ordered":
        return _placed(_threshold_sides(counts, search), search)
    if search.by_mean is None:
        n_classes = search.over(_c("class").n_unique())
        return pl.concat(
            [
                candidates(counts.filter(n_classes <= 2), replace(search, n_classes=2)),
                candidates(counts.filter(n_classes > 2), replace(search, n_classes=3)),
            ]
        )
    if search.by_mean:
        scanned = _positions(counts, search).select(
            pl.exclude("value", "position", "n_values"), value="position"
        )
        sides = _threshold_sides(scanned, search)
    else:
        sides = _set_sides(counts, search)
    return _placed(sides, search).with_columns(
        value=_c("value").cast(pl.Int64), next=pl.lit(None, pl.Int64)
    )


def first_best(scored: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    """Keep the best candidate of each segment: the first within `TIE` of the lowest score."""
    lowest = _c("score").min()
    near = (lowest.over(by) if by else lowest) + TIE * _c("before")
    tied = scored.filter(_c("score") <= near)
    return tied.unique(by, keep="first", maintain_order=True) if by else tied.head(1)


def with_left_values(chosen: pl.LazyFrame, counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    """Add ``left_values``, the set of values that a candidate of a nominal feature sends left."""
    if search.by_mean is None:
        n_classes = search.over(_c("class").n_unique())
        parts = [
            (counts.filter(n_classes <= 2), replace(search, n_classes=2)),
            (counts.filter(n_classes > 2), replace(search, n_classes=3)),
        ]
        return pl.concat([_left_values(chosen, part, which) for part, which in parts])
    return _left_values(chosen, counts, search)


def _left_values(chosen: pl.LazyFrame, counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    # Read twice below; planning the candidates twice would cost more than they do.
    chosen = chosen.cache()
    values = (
        _positions(counts, search)
        .filter(_c("position").is_not_null())
        .select(*search.by, "value", "position", "n_values")
        .unique([*search.by, "position"])
        .rename({"value": "member"})
    )
    sets = (
        _join(chosen.select(*search.by, "value"), values, search.by)
        .filter(_goes_left(_c("value"), _c("position"), _c("n_values"), search))
        .group_by(*search.by, "value")
        .agg(_c("member").sort().alias("left_values"))
    )
    return chosen.join(
        sets, on=[*search.by, "value"], how="inner", nulls_equal=True, maintain_order="left"
    )


def _goes_left(candidate: pl.Expr, position: pl.Expr, n_values: pl.Expr, search: Search) -> pl.Expr:
    """Tell whether a candidate set holds the value at a position of the scan order."""
    if search.by_mean:
        return position <= candidate
    # Few values: the bits of 2 * candidate + 1 pick the values, the first always among them.
    bit = (2 * candidate + 1) // pl.lit(2, pl.Int64).pow(position) % 2 == 1
    alone = (position == candidate) | (candidate == n_values)
    return pl.when(n_values <= EXHAUSTIVE).then(bit).otherwise(alone)


def _positions(counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    """Number the values of a nominal feature in scan order: by target mean, or by themselves.

    Adds ``position`` (Int64 from 0, null for missing values, which come first) and ``n_values``.
    """
    if search.by_mean:
        if isinstance(search.criterion, ClassCriterion):
            counts = counts.with_columns(second=_c("class") == search.over(_c("class").max()))
            total = _c("n").filter("second").sum()
        else:
            total = _c("s").sum()
        mean = (total / _c("n").sum()).over([*search.by, "value"])
    else:
        mean = pl.lit(0.0)
    return (
        counts.with_columns(mean=pl.when(_c("value").is_not_null()).then(mean))
        .sort([*search.by, "mean", "value"], maintain_order=True)
        .with_columns(run=search.over(_c("value").rle_id().cast(pl.Int64)))
        .with_columns(
            position=pl.when(_c("value").is_not_null()).then(
                # A run of missing values, if there is one, has number 0.
                _c("run") - search.over(_c("value").is_null().any().cast(pl.Int64))
            )
        )
        .with_columns(n_values=search.over(_c("position").max()) + 1)
        .drop("mean", "run", "second", strict=False)
    )


def _threshold_sides(counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    """Run along a sorted count table: what lies on either side of each cut, and its mass.

    Gives one row per distinct value that has a next one, and the last row of each segment
    (``final``: all values left), with the columns that `_placed` reads.
    """
    # Rows lie in order, so the next one tells whether a segment ends, without a window.
    ends = [_c(key).ne_missing(_c(key).shift(-1)) for key in search.by]
    final = pl.any_horizontal(pl.int_range(1, pl.len() + 1) == pl.len(), *ends)
    counts = counts.with_columns(
        k=pl.when(_c("value").is_null() & _c("exact")).then(0).otherwise(_c("n")),
        next=pl.when(~final).then(_c("value").shift(-1)),
        final=final,
    ).with_columns(m=_c("n") - _c("k"))
    if isinstance(search.criterion, ClassCriterion):
        sides = _class_masses(counts, search.criterion, search)
    else:
        sides = _number_masses(counts, search)
    return sides.filter((_c("value") != _c("next")) | _c("final"))


def _class_masses(counts: pl.LazyFrame, criterion: ClassCriterion, search: Search) -> pl.LazyFrame:
    over = search.over
    sums = {"n_left": over(_c("k").cum_sum()), "n_present": over(_c("k").sum())}
    if search.has_missing:
        sums |= {"n_missing": over(_c("m").sum()), "total": over(_c("n").sum())}
    else:
        # A zero in the dtype of the weights.
        sums |= {"n_missing": _c("k") * 0, "total": sums["n_present"]}
    counts = counts.with_columns(**sums).with_columns(n_right=_c("n_present") - _c("n_left"))
    has_two_classes = search.n_classes is not None and search.n_classes <= 2
    counts = (_terms_of_two if has_two_classes else _running_terms)(counts, criterion, search)
    total, n_missing = _c("total"), _c("n_missing")
    masses = [
        criterion.mass(_c("n_left"), _c("terms_left"), total).alias("left"),
        criterion.mass(_c("n_right"), _c("terms_right"), total).alias("right"),
        criterion.mass(_c("n_present"), _c("terms_all"), total).alias("all"),
    ]
    if search.has_missing:
        masses += [
            criterion.mass(_c("n_left") + n_missing, _c("terms_left_m"), total).alias("left_m"),
            criterion.mass(_c("n_right") + n_missing, _c("terms_right_m"), total).alias("right_m"),
            criterion.mass(total, _c("terms_all_m"), total).alias("all_m"),
        ]
    return counts.with_columns(masses)


def _terms_of_two(counts: pl.LazyFrame, criterion: ClassCriterion, search: Search) -> pl.LazyFrame:
    """Gather the terms of both sides and of all rows where no segment has more than two classes.

    What is not of the second class is of the first, so a running count of one is enough.
    """
    over = search.over
    # Segments may have different classes.
    counts = counts.with_columns(is_second=_c("class") == over(_c("class").max()))
    k, m = (pl.when("is_second").then(name).otherwise(0) for name in ("k", "m"))
    sums = {"second_left": over(k.cum_sum()), "second_all": over(k.sum())}
    if search.has_missing:
        sums["second_missing"] = over(m.sum())
    counts = counts.with_columns(**sums)

    def gathered(second: pl.Expr, n: pl.Expr) -> pl.Expr:
        terms = [criterion.term(count, _c("total")) for count in (second, n - second)]
        return terms[0] + terms[1] if criterion.reduce == "sum" else pl.max_horizontal(terms)

    sides = {
        "left": (_c("second_left"), _c("n_left")),
        "right": (_c("second_all") - _c("second_left"), _c("n_right")),
        "all": (_c("second_all"), _c("n_present")),
    }
    terms = {f"terms_{name}": gathered(*side) for name, side in sides.items()}
    if search.has_missing:
        terms |= {
            f"terms_{name}_m": gathered(second + _c("second_missing"), n + _c("n_missing"))
            for name, (second, n) in sides.items()
        }
    return counts.with_columns(**terms)


def _running_terms(counts: pl.LazyFrame, criterion: ClassCriterion, search: Search) -> pl.LazyFrame:
    """Gather the terms of both sides and of all rows, whatever the number of classes."""
    over = search.over
    counts = counts.with_columns(
        after=over(_c("k").cum_sum(), "class"), in_class=over(_c("k").sum(), "class")
    )
    if search.has_missing:
        counts = counts.with_columns(
            m_after=over(_c("m").cum_sum(), "class"), m_class=over(_c("m").sum(), "class")
        )
    counts = counts.with_columns(later=_c("in_class") - _c("after"))
    gathered = _gathered(criterion, search, with_missing=False)
    if search.has_missing:
        gathered += _gathered(criterion, search, with_missing=True)
    return counts.with_columns(gathered)


def _gathered(criterion: ClassCriterion, search: Search, *, with_missing: bool) -> list[pl.Expr]:
    """Gather the terms of both sides and of all rows, at every row of a sorted count table.

    ``after`` and ``later`` are the rows of the current row's class up to it and behind it. With
    missing, the missing rows of a class are added to its count on either side.
    """
    over, total = search.over, _c("total")
    suffix = "_m" if with_missing else ""
    extra = _c("m_class") if with_missing else pl.lit(0, pl.Int64)
    here, before = _c("after") + extra, _c("after") - _c("k") + extra
    behind, with_here = _c("later") + extra, _c("later") + _c("k") + extra
    if criterion.reduce == "max":
        # A class count only grows along the table, so the largest of all is a running maximum.
        # Classes without a row on a side still have their missing rows there.
        floor = over(extra.max()) if with_missing else pl.lit(0, pl.Int64)
        left = pl.max_horizontal(over(here.cum_max()), floor)
        right = pl.max_horizontal(
            over(with_here.cum_max(reverse=True).shift(-1)).fill_null(0), floor
        )
        whole = over((_c("in_class") + extra).max())
    else:
        step = criterion.term(here, total) - criterion.term(before, total)
        if with_missing:
            m_after = _c("m_after")
            step += criterion.term(m_after, total) - criterion.term(m_after - _c("m"), total)
        left, whole = over(step.cum_sum()), over(step.sum())
        back = criterion.term(behind, total) - criterion.term(with_here, total)
        right = whole + over(back.cum_sum())
    return [
        left.alias("terms_left" + suffix),
        right.alias("terms_right" + suffix),
        whole.alias("terms_all" + suffix),
    ]


def _number_masses(counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    over, mass = search.over, search.criterion.mass
    is_missing = _c("value").is_null() & _c("exact")
    names = ("k", "s", "q")
    counts = counts.with_columns(
        pl.when(is_missing).then(0).otherwise(_c(name)).alias(f"{name}_k") for name in names
    ).with_columns(m_m=_c("m"), s_m=_c("s") - _c("s_k"), q_m=_c("q") - _c("q_k"))
    counts = counts.with_columns(
        *(over(_c(f"{name}_k").cum_sum()).alias(f"{name}_left") for name in names),
        # Summed from behind rather than taken from the total, which would cancel digits.
        *(
            over(_c(f"{name}_k").cum_sum(reverse=True).shift(-1))
            .fill_null(0)
            .alias(f"{name}_right")
            for name in names
        ),
        *(over(_c(f"{name}_k").sum()).alias(f"{name}_all") for name in names),
        k_missing=over(_c("m").sum()),
        s_missing=over(_c("s_m").sum()),
        q_missing=over(_c("q_m").sum()),
    )

    def side(name: str, *, with_missing: bool = False) -> pl.Expr:
        sums = [
            _c(f"{m}_{name}") + _c(f"{m}_missing") if with_missing else _c(f"{m}_{name}")
            for m in names
        ]
        return mass(*sums)

    masses = [side(name).alias(name) for name in ("left", "right", "all")]
    if search.has_missing:
        masses += [
            side(name, with_missing=True).alias(f"{name}_m") for name in ("left", "right", "all")
        ]
    return counts.with_columns(
        *masses, n_left=_c("k_left"), n_right=_c("k_right"), n_missing=_c("k_missing")
    )


def _set_sides(counts: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    """Form the candidate sets of a nominal feature with many classes, and the mass of both sides.

    ``value`` is the candidate's number; the last one of a segment (``final``) holds all values.
    """
    criterion = search.criterion
    assert isinstance(criterion, ClassCriterion)
    by = search.by
    numbered = _positions(counts, search)
    present = numbered.filter(_c("position").is_not_null())
    few = _c("n_values") <= EXHAUSTIVE
    sizes = (
        present.group_by(by).agg(_c("n_values").first())
        if by
        else present.select(_c("n_values").max())
    )
    n_sets = (
        pl.when(few).then(pl.lit(2, pl.Int64).pow(_c("n_values") - 1)).otherwise(_c("n_values") + 1)
    )
    sets = (
        sizes.filter(_c("n_values").is_not_null())
        .select(*by, "n_values", candidate=pl.int_ranges(0, n_sets), n_sets=n_sets)
        .explode("candidate")
    )
    tried = _join(sets.filter(few), present.drop("n_values"), by).filter(
        _goes_left(_c("candidate"), _c("position"), _c("n_values"), search)
    )
    alone = present.filter(~few).with_columns(candidate=_c("position"))
    together = present.filter(~few).with_columns(candidate=_c("n_values"))
    keys = [*by, "candidate", "class"]
    in_set = (
        pl.concat([part.select(*keys, "n") for part in (tried, alone, together)])
        .group_by(keys)
        .agg(inside=_c("n").sum())
    )
    missing = _c("value").is_null()
    classes = counts.group_by(*by, "class").agg(
        in_class=_c("n").filter(~missing).sum(), m=_c("n").filter(missing).sum()
    )
    dense = (
        _join(sets, classes, by)
        .join(in_set, on=keys, how="left", nulls_equal=True)
        .with_columns(inside=_c("inside").fill_null(0))
        .with_columns(outside=_c("in_class") - _c("inside"), total=_c("in_class") + _c("m"))
        .with_columns(total=_c("total").sum().over([*by, "candidate"]))
    )

    def gathered(count: pl.Expr) -> pl.Expr:
        terms = criterion.term(count, _c("total"))
        return terms.sum() if criterion.reduce == "sum" else terms.max()

    parts = {
        "left": _c("inside"),
        "right": _c("outside"),
        "all": _c("in_class"),
        "left_m": _c("inside") + _c("m"),
        "right_m": _c("outside") + _c("m"),
        "all_m": _c("in_class") + _c("m"),
    }
    return (
        dense.group_by([*by, "candidate"])
        .agg(
            _c("total").first(),
            final=(_c("candidate") == _c("n_sets") - 1).first(),
            n_left=_c("inside").sum(),
            n_right=_c("outside").sum(),
            n_missing=_c("m").sum(),
            **{
                f"n_{name}": count.sum()
                for name, count in parts.items()
                if name not in ("left", "right")
            },
            **{f"terms_{name}": gathered(count) for name, count in parts.items()},
        )
        .with_columns(
            criterion.mass(_c(f"n_{name}"), _c(f"terms_{name}"), _c("total")).alias(name)
            for name in parts
        )
        .with_columns(value=_c("candidate"), next=pl.lit(None, pl.Int64))
        .sort([*by, "value"])
    )


def _placed(sides: pl.LazyFrame, search: Search) -> pl.LazyFrame:
    """Place the missing rows by the search's policy and score both sides of every candidate."""
    n_left, n_right, n_missing = _c("n_left"), _c("n_right"), _c("n_missing")
    policy = search.missing if search.has_missing else "drop"
    counted = pl.lit(0, pl.Int64) if policy == "drop" else n_missing
    rows = n_left + n_right + counted
    before = (_c("all") if policy == "drop" else _c("all_m")) / rows

    def scored(
        left: pl.Expr, right: pl.Expr, left_rows: pl.Expr, right_rows: pl.Expr
    ) -> tuple[pl.Expr, dict[str, pl.Expr]]:
        fits = (left_rows >= search.min_leaf) & (right_rows >= search.min_leaf)
        return fits, {
            "score": (left + right) / rows,
            "score_left": left / left_rows,
            "score_right": right / right_rows,
            "n_left": left_rows,
            "n_right": right_rows,
        }

    dropped = scored(_c("left"), _c("right"), n_left, n_right)
    to_left = scored(_c("left_m"), _c("right"), n_left + counted, n_right)
    to_right = scored(_c("left"), _c("right_m"), n_left, n_right + counted)
    kept = [*search.by, "value", "next", "n_missing"]
    if policy != "best":
        fits, scores = {"drop": dropped, "left": to_left, "right": to_right}[policy]
        goes = pl.lit(None if policy == "drop" else policy, pl.String)
        return sides.filter(fits & ~_c("final")).select(
            *kept, before=before, goes=pl.when(n_missing > 0).then(goes), **scores
        )
    # All values left leaves only the missing rows for the right.
    left_fits, left_scores = to_left[0] & ~_c("final"), to_left[1]
    right_fits, right_scores = to_right
    first = pl.when(left_fits).then(left_scores["score"])
    second = pl.when(right_fits).then(right_scores["score"])
    is_left = second.is_null() | (first <= second + TIE * before).fill_null(value=False)
    goes = (
        pl.when(_c("final"))
        .then(pl.lit("apart"))
        .when("is_left")
        .then(pl.lit("left"))
        .otherwise(pl.lit("right"))
    )
    return (
        sides.filter(left_fits | right_fits)
        .with_columns(is_left=is_left)
        .select(
            *kept,
            before=before,
            goes=pl.when(n_missing > 0).then(goes),
            **{
                name: pl.when("is_left").then(left_scores[name]).otherwise(right_scores[name])
                for name in left_scores
            },
        )
    )


def _join(left: pl.LazyFrame, right: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    """Pair all rows of the same segment."""
    if not by:
        return left.join(right, how="cross")
    return left.join(right, on=list(by), how="inner", nulls_equal=True)
