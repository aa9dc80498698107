"""The weather table, 14 days on which a game was played or not: small enough to check by hand.

The command runs on it when no file is named, and the README's first examples do.

References
----------
Quinlan, J. R. (1986). Induction of decision trees. *Machine Learning* 1, 81-106. As printed in
Witten, I. H., Frank, E. (2005). *Data Mining*, 2nd ed., tables 1.2 and 1.3.
"""

from __future__ import annotations

import polars as pl

TARGET = "play"

_DAYS = """
sunny     hot   85  high    85  false  no
sunny     hot   80  high    90  true   no
overcast  hot   83  high    86  false  yes
rainy     mild  70  high    96  false  yes
rainy     cool  68  normal  80  false  yes
rainy     cool  65  normal  70  true   no
overcast  cool  64  normal  65  true   yes
sunny     mild  72  high    95  false  no
sunny     cool  69  normal  70  false  yes
rainy     mild  75  normal  80  false  yes
sunny     mild  75  normal  70  true   yes
overcast  mild  72  high    90  true   yes
overcast  hot   81  normal  75  false  yes
rainy     mild  71  high    91  true   no
"""


def nominal() -> pl.DataFrame:
    """Give the table with temperature and humidity in words.

    Returns
    -------
    DataFrame
        One row per day: ``outlook``, ``temperature``, ``humidity`` String; ``windy`` Boolean;
        ``play`` String, the target.

    Examples
    --------
    >>> nominal().row(0)
    ('sunny', 'hot', 'high', False, 'no')
    """
    return _table(temperature=1, humidity=3)


def numeric() -> pl.DataFrame:
    """Give the table with temperature (degrees Fahrenheit) and humidity (percent) as numbers.

    Returns
    -------
    DataFrame
        As `nominal`, with ``temperature`` and ``humidity`` Int64.

    Examples
    --------
    >>> numeric().row(0)
    ('sunny', 85, 85, False, 'no')
    """
    return _table(temperature=2, humidity=4).cast({"temperature": pl.Int64, "humidity": pl.Int64})


def _table(temperature: int, humidity: int) -> pl.DataFrame:
    days = [line.split() for line in _DAYS.strip().splitlines()]
    return pl.DataFrame(
        {
            "outlook": [day[0] for day in days],
            "temperature": [day[temperature] for day in days],
            "humidity": [day[humidity] for day in days],
            "windy": [day[5] == "true" for day in days],
            TARGET: [day[6] for day in days],
        }
    )
