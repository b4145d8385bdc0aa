"""Doubles that people type: 0.1 means a tenth, which no double equals.

The double 0.1 is above a tenth, so ten losses of it exceed 1. A double means the decimal that it is
shown as, which is the shortest one that is read as this double (docs/proofs/decimals.rst).
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any

from ..types import Argument
from .decimals import down


def to_spend(value: Argument) -> Any:
    """Return the largest double at most a decimal, in pairs too: the loss that is calibrated to."""
    if type(value) is tuple:
        return tuple(map(to_spend, value))
    return down(_text(value))


def to_enforce(value: Argument) -> Any:
    """Return a double, or its decimal as a text if that is larger, in pairs too: a bound."""
    if type(value) is tuple:
        return tuple(map(to_enforce, value))
    text = _text(value)
    return text if text is not value and Fraction(text) > value else value


def _text(value: Argument) -> Any:
    return float.__repr__(value) if isinstance(value, float) and isfinite(value) else value
