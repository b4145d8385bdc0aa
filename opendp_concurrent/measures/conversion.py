"""A conversion: the privacy loss under one measure as a loss under another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..arguments import checks
from ..errors import InvalidTypeError


@dataclass(frozen=True, slots=True)
class Ends:
    """What a conversion may need to know, besides the distance.

    :ivar source: the measure that is converted from, with its parameters
    :ivar target: the measure that is converted to, with its parameters
    :ivar delta: for a target of (ε, δ)
    :ivar orders: at which a Rényi curve is read
    """

    source: Any
    target: Any
    delta: float | None = None
    orders: tuple[float, ...] | None = None

    @property
    def at_delta(self) -> float:
        """The δ of a conversion that needs one."""
        assert self.delta is not None
        return self.delta

    @property
    def at_orders(self) -> tuple[float, ...]:
        """The orders of a conversion that needs some."""
        assert self.orders is not None
        return self.orders


def no_check(ends: Ends) -> None:
    """Accept all ends."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """One theorem: how a loss under one measure reads under another.

    :ivar convert: from a distance and the ends to a distance; the ends have the measures ``source``
        and ``target`` with their parameters, and ``at_delta`` and ``at_orders``
    :ivar needs_delta: whether it needs a δ
    :ivar needs_orders: whether it needs orders
    :ivar check: raises for ends that no distance can be converted between

    :example:

    >>> doubled = oc.measures.Conversion(lambda epsilon, ends: 2 * epsilon)
    >>> doubled.convert(0.5, None)
    1.0
    """

    convert: Callable[[Any, Ends], Any]
    needs_delta: bool = False
    needs_orders: bool = False
    check: Callable[[Ends], None] = no_check

    def require(self, ends: Ends) -> None:
        """Raise if something is missing, or the ends do not fit."""
        self.check(ends)
        if self.needs_delta and ends.delta is None:
            raise InvalidTypeError("delta must be given for a cast to (epsilon, delta)")
        if self.needs_orders and ends.orders is None:
            raise InvalidTypeError(
                "orders must be given to convert a Rényi curve; pass a few orders"
            )


class Profile:
    """δ as a function of ε, to become OpenDP's ``PrivacyProfile``."""

    def __init__(self, delta: Callable[[float], float]) -> None:
        self._delta = delta

    def __call__(self, epsilon: float) -> float:
        """Return δ at ``epsilon`` >= 0."""
        return self._delta(checks.non_negative(epsilon=epsilon))
