"""The weather tables of Witten & Frank (*Data Mining*, section 4.1), as plain lists."""

from __future__ import annotations

from typing import Any

# outlook; temperature, humidity as names and as numbers; windy; play
TABLE = """
sunny     hot   high    85  85  false  no
sunny     hot   high    80  90  true   no
overcast  hot   high    83  86  false  yes
rainy     mild  high    70  96  false  yes
rainy     cool  normal  68  80  false  yes
rainy     cool  normal  65  70  true   no
overcast  cool  normal  64  65  true   yes
sunny     mild  high    72  95  false  no
sunny     cool  normal  69  70  false  yes
rainy     mild  normal  75  80  false  yes
sunny     mild  normal  75  70  true   yes
overcast  mild  high    72  90  true   yes
overcast  hot   normal  81  75  false  yes
rainy     mild  high    71  91  true   no
"""
_ROWS = [line.split() for line in TABLE.strip().splitlines()]

OUTLOOK = [row[0] for row in _ROWS]
WINDY = [row[5] == "true" for row in _ROWS]
PLAY = [row[6] for row in _ROWS]

NOMINAL: dict[str, list[Any]] = {
    "outlook": OUTLOOK,
    "temperature": [row[1] for row in _ROWS],
    "humidity": [row[2] for row in _ROWS],
    "windy": WINDY,
    "play": PLAY,
}

NUMERIC: dict[str, list[Any]] = {
    "outlook": OUTLOOK,
    "temperature": [int(row[3]) for row in _ROWS],
    "humidity": [int(row[4]) for row in _ROWS],
    "windy": WINDY,
    "play": PLAY,
}
