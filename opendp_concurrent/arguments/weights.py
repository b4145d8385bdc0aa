"""The guard of weights, by which a budget is split."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from ..errors import InvalidValueError
from ..types import Argument
from .checks import finite, guard, sequence


@guard("list of finite", "12", 2.0, None, [], [0.0], [-1.0, 2.0], [inf], [nan])
def weights(name: str, values: Argument) -> list[Fraction]:
    """Return nonnegative finite weights with a positive sum, exactly, or raise."""
    found = sequence("weights", **{name: values})
    parts = [Fraction(finite.check(name, one)) for one in found]
    if not sum(parts) > 0:
        raise InvalidValueError(f"{name} must have a positive sum")
    return parts
