"""A search for the number at which a condition changes, in fewer than 100 trials.

OpenDP's ``binary_search`` halves an interval that may reach down to 0. This takes more than 1,000
trials if the condition raises at 0, as it does for many noise scales. The search here first finds
two powers of 2 around the number, then halves the doubles between them. The result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from opendp.mod import OpenDPException, binary_search

from ..arguments.checks import pair, shown
from ..errors import InvalidValueError
from ..exact.doubles import halfway

Condition = Callable[[Any], bool]  # of an int or a float

_FLOAT_EXPONENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_INT_EXPONENTS = (1, 2, 4, 8, 16, 30, 62)


def nearest_passing(
    conditions: Sequence[Condition],
    bounds: tuple[float | None, float | None] | None = None,
    T: Any = None,  # noqa: N803 - OpenDP's name
) -> Any:
    """Return the number nearest to where a condition changes, on the side where it is true.

    If no condition changes between positive numbers, or one bound is left open, OpenDP's search
    finds the number, or raises.

    :param conditions: each is true on one side of some number and false on the other; the first
        condition that changes decides
    :param bounds: lower and upper bound, as for :func:`opendp.mod.binary_search`
    :param T: ``float`` or ``int``; inferred if left out
    :raises InvalidValueError: if a bound is not finite; OpenDP's search would not end
    """
    lower, upper = _pair(bounds)
    for condition in conditions:
        if lower is None and upper is None:
            bracket = _bracket(condition, T)
        else:
            bracket = _given(condition, lower, upper) if T is None else None
        if bracket is not None:
            return _halved(condition, *bracket)
    return binary_search(conditions[0], bounds=bounds, T=T)


def _tried(condition: Condition, number: float) -> bool | None:
    """Return whether the condition is true, or None if it raises."""
    try:
        return bool(condition(number))
    except Exception:  # raised again by OpenDP's search, if no other number helps
        return None


def failure_at_one(condition: Condition, kind: Any = None) -> Exception | None:
    """Return what the condition raises at 1, if anything: OpenDP's search reports 0 or a bound.

    :param kind: ``float`` or ``int``; inferred if left out
    """
    kind = _inferred(condition) if kind is None else kind
    try:
        condition(1 if kind is int else 1.0)
    except Exception as error:
        return error
    return None


def _pair(bounds: Any) -> tuple[Any, Any]:
    given = tuple(bounds) if isinstance(bounds, list) else bounds  # OpenDP takes both
    lower, upper = (None, None) if given is None else pair(bounds=given)
    for bound in (lower, upper):
        if isinstance(bound, (int, float)) and not isfinite(bound):
            raise InvalidValueError(f"bounds ({shown(bounds)}) must be finite; leave out an end")
    return lower, upper


def _given(condition: Condition, lower: Any, upper: Any) -> tuple[Any, Any] | None:
    """Return the bounds, the passing one first, if the condition changes between them."""
    if not type(lower) is type(upper) in (float, int):
        return None
    match _tried(condition, lower), _tried(condition, upper):
        case True, False:
            return lower, upper
        case False, True:
            return upper, lower
    return None


def _bracket(condition: Condition, kind: Any) -> tuple[Any, Any] | None:
    """Return two powers of 2 between which the condition changes, the passing one first."""
    kind = _inferred(condition) if kind is None else kind
    if kind is float:
        rising = [2.0**exponent for exponent in _FLOAT_EXPONENTS]
        falling = [1 / power for power in rising]
    elif kind is int:
        rising, falling = [2**exponent for exponent in _INT_EXPONENTS], [0]
    else:
        return None  # a Rust type
    first = kind(1)
    start = _tried(condition, first)
    for ladder in (falling, rising) if start else (rising, falling):  # more noise is more private
        last, was = first, start
        for number in ladder:
            now = _tried(condition, number)
            if now is None and was is not None:
                break
            if was is not None and now is not was:
                return (last, number) if was else (number, last)
            last, was = number, now
    return None


def _inferred(condition: Condition) -> type:
    """Return ``int`` if the condition needs it; like OpenDP, try the condition at 1."""
    try:
        condition(1.0)
    except TypeError:
        return int
    except OpenDPException as error:
        return int if error.variant == "Type" else float
    except Exception:
        return float
    return float


def _halved(condition: Condition, passing: Any, failing: Any) -> Any:
    """Return the last number that passes between ``passing`` and ``failing``."""
    whole = type(passing) is int
    while True:
        low, high = sorted((passing, failing))
        middle = (low + high) // 2 if whole else halfway(low, high)
        if middle == low:  # no number lies between them
            return passing
        if condition(middle):
            passing = middle
        else:
            failing = middle
