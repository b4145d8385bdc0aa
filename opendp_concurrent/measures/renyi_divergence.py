"""Rényi DP: the distance is a curve, the divergence as a function of the order."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from opendp.measures import renyi_divergence
from opendp.mod import OpenDPException

from .. import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.rounding import split
from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .conversions.curves import known


class RenyiCurve:
    """A curve that was given, with its values validated and remembered.

    Equal to itself only, unless it is known in full: two functions cannot be compared.

    :ivar known: the curve, if it is one that cannot change
    """

    __slots__ = ("_curve", "_name", "_values", "known")

    def __init__(self, name: str, curve: Callable[[float], Any]) -> None:
        self.known = known(curve)
        self._name, self._curve = name, self.known or curve
        self._values: dict[float, float] = {}

    def __call__(self, alpha: float) -> float:
        """Divergence bound at order ``alpha``; raises when the curve's value is not one."""
        value = self._values.get(alpha)
        if value is None:
            name = f"{self._name}({alpha:g})"
            try:
                raw = self._curve(alpha)
            except OpenDPException as error:
                raise InvalidValueError(f"{name} cannot be read: {error}") from error
            value = self._values[alpha] = checks.non_negative(**{name: raw})
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RenyiCurve) or self.known is None:
            return self is other
        return self.known == other.known

    def __hash__(self) -> int:
        return id(self) if self.known is None else hash(self.known)

    def __repr__(self) -> str:
        return f"RenyiCurve({self._name})"


def validate_curve(name: str, value: Any) -> Any:
    """A function of the order; its values are validated when they are read."""
    if not callable(value):
        raise InvalidTypeError(
            f"{name} must be a function of the order alpha, found {type(value).__name__}"
        )
    return RenyiCurve(name, value)


def curve_at_most(left: Any, right: Any) -> bool:
    """Pointwise on a common grid; functions without a grid are comparable to themselves only."""
    try:
        return left is right or bool(left <= right)
    except TypeError:
        return False


class _Share:
    """A share of a curve, rounded down at each order."""

    def __init__(self, curve: Callable[[float], Any], share: Fraction) -> None:
        self._curve, self._share = curve, share

    def __call__(self, alpha: float) -> float:
        return split(self._curve(alpha), [self._share, 1 - self._share])[0]


def split_curve(d_out: Callable[[float], Any], weights: list[Fraction]) -> list[Any]:
    """Shares of a curve, at every order."""
    whole = sum(weights)
    return [_Share(d_out, weight / whole) for weight in weights]


def zero_curve(alpha: float) -> float:
    """No divergence at any order."""
    del alpha
    return 0.0


RENYI_DIVERGENCE = CompositionMeasure(
    name="RenyiDivergence",
    family="RenyiDivergence",
    opendp=renyi_divergence,
    zero=zero_curve,
    validate=validate_curve,
    validate_budget=validate_curve,
    at_most=curve_at_most,
    split=split_curve,
    composability=Composability.CONCURRENT,
    reason=f"{cite('LW22', 'Theorem 2')} and {cite('HSTVVXZ23', 'Theorem 4.6')}",
    distance_form="a function of the order alpha",
)
