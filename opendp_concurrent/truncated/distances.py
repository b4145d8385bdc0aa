"""Distances that are neither numbers nor pairs: small values with a partial order."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ..arguments import checks
from ..arguments.written import sent, written
from ..errors import InvalidValueError


@written("tcdp", "rho", "omega")
@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class TruncatedConcentrated:
    """A distance: Rényi divergence at most ρ α for every order α in (1, ω).

    Partially ordered: at most another one if ρ is at most, and ω at least, the other's.

    :ivar rho: at least 0
    :ivar omega: above 1; infinite for zero-concentrated DP
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> loss = oc.TruncatedConcentrated(rho=0.1, omega=20.0)
    >>> loss <= oc.TruncatedConcentrated(rho=0.2, omega=10.0)
    True
    >>> loss <= oc.TruncatedConcentrated(rho=0.2, omega=30.0)
    False
    """

    rho: float
    omega: float = inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.non_negative(rho=self.rho))
        object.__setattr__(self, "omega", omega_above_one(omega=self.omega))

    def __le__(self, other: object) -> bool:
        if not isinstance(other, TruncatedConcentrated):
            return NotImplemented
        return self.rho <= other.rho and self.omega >= other.omega

    def __lt__(self, other: object) -> bool:
        at_most = self.__le__(other)
        return at_most if at_most is NotImplemented else at_most and self != other

    def __ge__(self, other: object) -> bool:
        return other <= self if isinstance(other, TruncatedConcentrated) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return other < self if isinstance(other, TruncatedConcentrated) else NotImplemented


def omega_above_one(**argument: Any) -> float:
    """Return the argument as a double above 1, possibly infinite, or raise."""
    ((name, value),) = argument.items()
    omega = checks.number(**argument)
    if not omega > 1.0:
        raise InvalidValueError(
            f"{name} ({checks.shown(value)}) must be above 1; it is the end of the orders"
        )
    return omega


sent(TruncatedConcentrated, "TruncatedConcentrated")(TruncatedConcentrated)
