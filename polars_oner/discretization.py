"""Features of a frame cut into bins: the count tables of all of them from one shared pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, overload

import polars as pl

from polars_oner.bins import Bins, learn_bins
from polars_oner.counts import count_values
from polars_oner.criteria import ClassCriterion
from polars_oner.discretizers import Method, discretizer
from polars_oner.errors import DtypeError, OptionError, check_choice
from polars_oner.frame import Column, as_lazy, is_missing, resolve
from polars_oner.target import class_target, number_target
from polars_oner.typing import CriterionName, Engine, Ties

_c = pl.col


@overload
def discretize(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    feature: str,
    *,
    method: Method = "1r",
    max_bins: int | None = None,
    min_bucket: int = 6,
    ties: Ties = "rare",
    criterion: CriterionName = "entropy",
    special: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> Bins: ...


@overload
def discretize(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    feature: list[str] | tuple[str, ...],
    *,
    method: Method = "1r",
    max_bins: int | None = None,
    min_bucket: int = 6,
    ties: Ties = "rare",
    criterion: CriterionName = "entropy",
    special: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> dict[str, Bins]: ...


def discretize(
    frame: pl.DataFrame | pl.LazyFrame,
    target: str,
    feature: str | list[str] | tuple[str, ...],
    *,
    method: Method = "1r",
    max_bins: int | None = None,
    min_bucket: int = 6,
    ties: Ties = "rare",
    criterion: CriterionName = "entropy",
    special: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    nominal: Collection[str] = (),
    ordered: Collection[str] = (),
    weights: str | None = None,
    engine: Engine = "auto",
    progress: bool = False,
) -> Bins | dict[str, Bins]:
    """Cut ordered features into bins. This executes.

    The source is read twice, whatever the number of features: once for the target, once to count.

    Parameters
    ----------
    frame
        The rows, eager or lazy. Rows without a target are left out.
    target
        The column to predict.
    feature
        An ordered column, or several.
    method
        How to find the cuts. Between two neighbouring values a cut lies midway unless said
        otherwise, rounded down to what the feature's dtype can hold.

        ``"1r"``
            The intervals of 1R (Holte 1993).
        ``"mdl"``
            The best split by entropy, again and again, while it shortens the description of the
            classes (Fayyad and Irani 1993).
        ``"tree"``
            The split that takes most off ``criterion``, again and again, up to ``max_bins`` or until
            no split takes anything off.
        ``"quantile"``
            As many rows in each bin as the values allow: cuts at the quantiles, interpolated between
            rows (type 7 of Hyndman and Fan 1996). Weights that are not whole numbers are shares of
            the rows: the quantiles are those of infinitely many.
        ``"width"``
            Equal widths between the smallest and the largest value. Such bins may be empty.
        ``"naive"``
            Midway between neighbouring class means.
        ``"logreg"``
            For each two classes with neighbouring means, where a logistic regression gives both the
            same probability; needs scipy. The place is kept between the two means. For classes that
            do not overlap, midway between them, the limit of ever steeper fits.
        ``"infogain"``
            For each two classes with neighbouring means, their best split by entropy.
        ``"clusters"``
            Midway between the centres of the clusters with the least sum of squares: k-means, solved
            exactly (Fisher 1958) for up to 262,144 distinct values; of more values, so many evenly
            spread by rows may start a cluster.

        The three before the last are those of ``optbin`` in R's OneR. The last five count with the
        numbers behind the values (days, codes of an Enum); to ``"width"``, ``"naive"``,
        ``"logreg"``, ``"infogain"`` and ``"clusters"`` infinite values are none, and fall into the
        outermost bins.
    max_bins
        Most intervals to make, special codes and missing rows not counted. None means 5 for
        ``"tree"``, ``"quantile"``, ``"width"`` and ``"clusters"``, and no limit for the others. Where
        a method that looks at classes one by one (``"1r"``, ``"naive"``, ``"logreg"``,
        ``"infogain"``) finds more, the neighbours whose union puts the fewest rows outside the
        majority class are joined, again and again, and further as long as it puts none there.
    min_bucket, ties
        As in `fit`; for ``"1r"`` alone.
    criterion
        What ``"tree"`` splits by. For any method, ``"std"`` and ``"variance"`` read the target as
        quantities, the others as classes; ``"1r"``, ``"mdl"``, ``"naive"``, ``"logreg"`` and
        ``"infogain"`` need classes.
    special
        Codes such as -999 that are not quantities: each is a bin by itself, kept out of the search
        for cuts and never joined. A sequence holds for every feature, a mapping gives each feature
        its own.
    nominal, ordered
        Columns whose kind overrides that of their dtype. An Enum is ordered here.
    weights
        Column of row weights.
    engine
        The Polars engine.
    progress
        Show progress on standard error.

    Returns
    -------
    Bins or dict of Bins
        One for a name; by name, in the order given, for a sequence of names.

    Raises
    ------
    MissingColumnError, ColumnRoleError
        A column is absent, named twice or in two roles.
    DtypeError
        A feature has no order to cut, or the target does not fit the method or criterion.
    OptionError
        An option, or a special code, has a value outside what is allowed.
    EmptyTargetError
        No row has a target.
    WeightError
        A weight is missing, negative or not finite.
    MissingPackageError
        The method, or ``progress``, needs a package that is not installed.

    References
    ----------
    Those of the methods stand in `polars_oner.discretizers`.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_oner.discretization import discretize
    >>> df = pl.DataFrame({"x": [-999, 10, 11, 20, 21, None], "y": [1, 0, 0, 1, 1, 0]})
    >>> bins = discretize(df, "y", "x", method="tree", special=[-999])
    >>> print(bins)
    x in bins (tree):
      <= 15   -> 2 rows  0: 2  1: 0
      > 15    -> 2 rows  0: 0  1: 2
      -999    -> 1 rows  0: 0  1: 1
      missing -> 1 rows  0: 1  1: 0
    6 rows, information value 2.878
    >>> df.select(bins.expr()).to_series().to_list()
    ['-999', '<= 15', '<= 15', '> 15', '> 15', 'missing']

    Several features, each with codes of its own:

    >>> bins = discretize(df, "y", ["x"], method="infogain", special={"x": [-999]})["x"]
    >>> bins.cuts.to_list()
    [15]
    """
    schema = as_lazy(frame).collect_schema()
    roles = resolve(
        schema,
        target,
        feature,
        nominal=nominal,
        ordered=ordered,
        reserved=() if weights is None else (weights,),
    )
    options = discretizer(
        target,
        roles.target_dtype,
        method,
        max_bins=max_bins,
        min_bucket=min_bucket,
        ties=ties,
        criterion=criterion,
    )
    for chosen in roles.features:
        if chosen.kind == "nominal":
            raise DtypeError.feature(
                chosen.name, chosen.dtype, "only features with an order can be cut into bins"
            )
    codes = _special_codes(special, roles.features)
    look = class_target if isinstance(options.criterion, ClassCriterion) else number_target
    seen = look(as_lazy(frame), target, roles.target_dtype, weights=weights, engine=engine)
    tables = count_values(
        frame, roles.features, seen, weights=weights, engine=engine, progress=progress
    )
    found = {
        chosen.name: learn_bins(chosen, tables[chosen.name], seen, options, codes[chosen.name])
        for chosen in roles.features
    }
    return found[feature] if isinstance(feature, str) else found


def _special_codes(
    special: Sequence[Any] | Mapping[str, Sequence[Any]], features: Sequence[Column]
) -> dict[str, pl.Series]:
    """Read the special codes of each feature in its dtype, without repeats."""
    names = [feature.name for feature in features]
    if isinstance(special, Mapping):
        for name in special:
            check_choice("a feature in special", name, names)
    codes = {}
    for feature in features:
        own = special.get(feature.name, ()) if isinstance(special, Mapping) else special
        wanted = f"values of the dtype {feature.dtype} of feature {feature.name!r}"
        try:
            read = pl.Series("special", list(own), dtype=feature.dtype, strict=True)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            raise OptionError.from_range("special", own, wanted) from error
        if read.to_frame().select(is_missing(_c("special"), feature.dtype).any()).item():
            raise OptionError.from_range("special", own, wanted + ", which missing is not")
        codes[feature.name] = read.unique(maintain_order=True)
    return codes
