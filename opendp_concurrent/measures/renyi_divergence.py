"""Rényi DP: the distance is a curve, the divergence as a function of the order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.rounding import split
from ..references import cite
from ..sums.accumulator import Accumulator
from ..sums.curve_sum import CurveSum
from ..sums.orders_sum import GridCurve
from ..types import Argument, Json, Loss
from . import opendp as native
from .conversion import Conversion, Ends, Profile
from .conversions.curves import known
from .conversions.renyi_to_approximate import renyi_to_delta, renyi_to_epsilon
from .joins import join_curves
from .kinds import APPROXIMATE, FIXED, PROFILE, RENYI
from .measure import Composability, CompositionMeasure, only
from .noise import Noise


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
            except native.OpenDPException as error:
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


def validate_curve(name: str, value: Argument) -> RenyiCurve:
    """A function of the order; its values are validated when they are read."""
    if not callable(value):
        raise InvalidTypeError(
            f"{name} must be a function of the order alpha, found {type(value).__name__}"
        )
    return RenyiCurve(name, value)


class _Share:
    """A share of a curve, rounded down at each order."""

    def __init__(self, curve: Callable[[float], Any], share: Fraction) -> None:
        self._curve, self._share = curve, share

    def __call__(self, alpha: float) -> float:
        return split(self._curve(alpha), [self._share, 1 - self._share])[0]


def zero_curve(alpha: float) -> float:
    """No divergence at any order."""
    return 0.0


def _epsilon(curve: Any, ends: Ends) -> tuple[float, float]:
    found = min(renyi_to_epsilon(a, curve(a), ends.at_delta) for a in ends.at_orders)
    return found, ends.at_delta


def curve_to_delta(curve: Any, ends: Ends) -> Callable[[float], float]:
    """Return δ as a function of ε, the least at any of the orders."""
    return lambda epsilon: min(renyi_to_delta(a, curve(a), epsilon) for a in ends.at_orders)


@dataclass(frozen=True, slots=True)
class RenyiDivergence(CompositionMeasure):
    """Rényi DP: curves add up at each order."""

    kind = RENYI
    tag = "renyi"
    zero = staticmethod(zero_curve)
    composability = Composability.CONCURRENT
    reason = f"{cite('LW22', 'Theorem 2')} and {cite('HSTVVXZ23', 'Theorem 4.6')}"
    distance_form = "a function of the order alpha"
    needs_orders = True
    most_parallel = 64
    noise = Noise.GAUSSIAN
    why_not = "its loss may be unbounded, as that of Gaussian noise is"
    conversions_to = MappingProxyType(
        {
            FIXED: Conversion(lambda d, ends: d(ends.target.alpha)),
            APPROXIMATE: Conversion(_epsilon, needs_delta=True, needs_orders=True),
            PROFILE: Conversion(
                lambda d, ends: Profile(curve_to_delta(d, ends)), needs_orders=True
            ),
        }
    )

    def opendp(self) -> native.Measure:
        return native.renyi_divergence()

    def validate(self, name: str, value: Argument) -> RenyiCurve:
        """A function of the order; its values are validated when they are read."""
        return validate_curve(name, value)

    def validate_budget(self, name: str, value: Argument) -> RenyiCurve:
        return validate_curve(name, value)

    def at_most(self, left: Any, right: Any) -> bool:
        """On a common grid, at each order; other functions are comparable to themselves only."""
        try:
            return left is right or bool(left <= right)
        except TypeError:
            return False

    def check(self, loss: Loss, d_out: Loss) -> bool:
        """Curves are compared as they are, on a common grid."""
        return self.at_most(loss, d_out)

    def split(self, d_out: Callable[[float], Any], weights: list[Fraction]) -> list[Any]:
        """Shares of a curve, at every order."""
        whole = sum(weights)
        return [_Share(d_out, weight / whole) for weight in weights]

    def empty(self) -> Accumulator:
        return CurveSum()

    def read_sum(self, record: Json) -> Accumulator:
        """Refuse: a curve is a program."""
        raise InvalidTypeError("a Rényi curve has no exact record; use a grid of orders")

    def join(self, losses: list[list[Callable[[float], float]]], parts: Sequence[int]) -> Loss:
        """The largest sum at each order."""
        return join_curves(losses, parts)

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return callable(value)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        """The value at ``order``, or at the least order of its grid."""
        checks.function(**{of: loss})
        if order is None and isinstance(loss, GridCurve):
            return loss.values[0]
        if order is None:
            raise InvalidTypeError("order must be given for Rényi curves that have no grid")
        return float(loss(order))

    @classmethod
    def symbol(cls, loss: Loss, order: float | None) -> str:
        if order is None and isinstance(loss, GridCurve):
            order = loss.orders[0]
        return "loss" if order is None else f"loss at order {order:g}"


RENYI_DIVERGENCE = only(RenyiDivergence)
