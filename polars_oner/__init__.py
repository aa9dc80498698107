"""The one column that tells most about a target, and by what rule.

Best binary splits, 1R and class rules as Polars query plans. Importing the package registers the
namespace ``.oner`` on DataFrame, LazyFrame and Expr; every method there is a function here.

The words, one each: a *feature* is tested to predict the *target*, whose values are *classes* unless
it is a number; a *threshold* cuts an ordered feature, between two of them lies an *interval*; a *case*
is a value, an interval or "missing" with the class it predicts, a *rule* all cases of one feature; a
*split* sends rows left or right. *Counts* (``n_``) are exact, a ``_rate`` lies between 0 and 1. A
*score* says how mixed the target is (lower is better), a *gain* is the score before minus after; an
*error* is a row outside the majority, the *baseline* the share of the commonest class.
"""

from polars_oner import namespaces
from polars_oner.bins import Bins
from polars_oner.class_rules import ClassRules, class_rules
from polars_oner.discretization import discretize
from polars_oner.errors import (
    ColumnRoleError,
    DtypeError,
    EmptyTargetError,
    IdentifierWarning,
    MissingColumnError,
    MissingPackageError,
    OneRError,
    OptionError,
    WeightError,
)
from polars_oner.evaluation import class_report, confusion, evaluate, with_p_value
from polars_oner.one_rule import OneRule
from polars_oner.prediction import predict
from polars_oner.ranking import fit, rank
from polars_oner.rule import Case, Rule
from polars_oner.significance import split_significance
from polars_oner.split import Side, Split
from polars_oner.splits import best_split, best_splits, split_scores
from polars_oner.validation import CrossValidation, cross_validate

__version__ = "0.1.0"

__all__ = [
    "Bins",
    "Case",
    "ClassRules",
    "ColumnRoleError",
    "CrossValidation",
    "DtypeError",
    "EmptyTargetError",
    "IdentifierWarning",
    "MissingColumnError",
    "MissingPackageError",
    "OneRError",
    "OneRule",
    "OptionError",
    "Rule",
    "Side",
    "Split",
    "WeightError",
    "best_split",
    "best_splits",
    "class_report",
    "class_rules",
    "confusion",
    "cross_validate",
    "discretize",
    "evaluate",
    "fit",
    "namespaces",
    "predict",
    "rank",
    "split_scores",
    "split_significance",
    "with_p_value",
]
