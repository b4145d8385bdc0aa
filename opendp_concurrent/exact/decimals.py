"""Numbers given as a Decimal, a Fraction or a text: read exactly, rounded in a stated direction.

A loss to calibrate a mechanism to is rounded down, a bound that is shown is rounded up, and a bound
that is compared with exact sums is a fraction (docs/proofs/decimals.rst).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nan, nextafter
from typing import Any

from ..types import Argument

_DIGITS = 1000  # letters of a text; reading more takes long
_MOST = 400  # exponents of ten: all doubles are inside, and fractions far outside fill the memory


def typed(value: Argument) -> Any:
    """Return a Decimal, a Fraction or a text such as "0.1" as a fraction; others as they are."""
    if type(value) is str and len(value) > _DIGITS:
        return value
    try:
        found = Decimal(value) if type(value) is str else value
        if type(found) is Decimal and abs(found.adjusted()) < _MOST:
            found = Fraction(found)
        return found if type(found) is Fraction and isfinite(found) else value
    except (ArithmeticError, ValueError):  # no number, not finite, or beyond all doubles
        return nan if type(value) is Fraction else value  # a guard refuses both


def down(value: Argument) -> Any:
    """Return the largest double at most what was typed, in pairs too; others as they are."""
    if type(value) is tuple:
        return tuple(map(down, value))
    found = typed(value)
    if type(found) is not Fraction:
        return found
    near = float(found)
    return nextafter(near, -inf) if near > found else near


def cap_and_shown(value: Argument, checked: Any) -> tuple[Any, Any]:
    """Return a bound as it was typed, and the least double that is at least it; in pairs too.

    :param checked: what a guard made of the bound; this is both if a double was typed
    """
    if type(checked) is tuple:
        caps, shown = zip(*map(cap_and_shown, value, checked), strict=True)
        return caps, shown
    found = typed(value)
    return (found, 0.0 - down(-found)) if type(found) is Fraction else (checked, checked)
