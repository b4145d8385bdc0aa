"""Values that texts of a file stand for, by a grammar that never rounds or guesses.

===== ===============================================================================
int   ``0``, or a digit from 1 to 9 and more digits, with ``-`` or without; 64 bits
float an integer or decimal number, with an exponent or without; ``inf``, ``Infinity``
bool  ``true``, ``True``, ``TRUE``, ``t``; ``false``, ``False``, ``FALSE``, ``f``
date  ``YYYY-MM-DD``, a day of the calendar from year 1 on
datetime  ``YYYY-MM-DD HH:MM``, or ``HH:MM:SS`` with up to 6 digits after the point; ``T``, ``Z``
decimal ``12.5``: a number with at most as many digits after the point as its scale
str   every text but the empty one
===== ===============================================================================

Any other text stands for no value, which is NULL. Digits are ``0`` to ``9``. An integer has one
text only, so that two texts are never one unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from math import isinf

from .schema import LARGEST

Value = int | float | str | bool | date | None  # a datetime is a date
_INTEGER = re.compile(r"-?[1-9][0-9]{0,18}|0")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"([+-]?)(?:inf|Inf|INF|infinity|Infinity|INFINITY)")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?Z?"
)
_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]{0,18})(?:\.([0-9]{1,18}))?")
_TRUTH = {
    **dict.fromkeys(("true", "True", "TRUE", "t"), True),
    **dict.fromkeys(("false", "False", "FALSE", "f"), False),
}


def integer(text: str) -> int | None:
    """Return the integer of a text; each integer has one text."""
    if _INTEGER.fullmatch(text) is None:
        return None
    found = int(text)
    return found if -LARGEST - 1 <= found <= LARGEST else None


def number(text: str) -> float | None:
    """Return the double next to a decimal number; NULL if the number is beyond all doubles."""
    if _NUMBER.fullmatch(text) is None:
        infinite = _INFINITE.fullmatch(text)
        return None if infinite is None else float(f"{infinite[1]}inf")
    found = float(text)
    return None if isinf(found) else found


def day(text: str) -> date | None:
    """Return the day of the calendar that a text names."""
    if _DAY.fullmatch(text) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def moment(text: str) -> datetime | None:
    """Return the timestamp that a text names, without a zone or in UTC."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    try:
        seconds = f"{found[3] or '00'}.{(found[4] or '').ljust(6, '0')}"
        return datetime.fromisoformat(f"{found[1]} {found[2]}:{seconds}")
    except ValueError:
        return None


def decimal(text: str, scale: int) -> int | None:
    """Return a decimal number as a multiple of 10^-scale; never rounded."""
    found = _DECIMAL.fullmatch(text)
    if found is None or len(found[3] or "") > scale:
        return None
    steps = int(f"{found[1]}{found[2]}{(found[3] or '').ljust(scale, '0')}")
    return steps if -LARGEST <= steps <= LARGEST else None


def own(text: str) -> str | None:
    """Return a text itself; the empty one is NULL, in quotation marks or not."""
    return text or None


READ: dict[type, Callable[[str], Value]] = {
    int: integer,
    float: number,
    str: own,
    bool: _TRUTH.get,
    date: day,
    datetime: moment,
}
