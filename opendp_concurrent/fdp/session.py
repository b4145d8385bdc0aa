"""A session's losses in both directions: a unit removed, and a unit added.

The neighbours are the same for a whole session, and so is the direction. Compose each direction by
itself, and take the worse one at the end. To compose functions that bound both directions of each
step is valid, too, but looser: it lets every step be in the direction that is worse for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InvalidTypeError, InvalidValueError
from .bounds import Array, Bounds
from .function import TradeoffFunction, check_function
from .order import is_symmetric
from .shapes import UNITS

_ROUGH = 0.1  # width of bounds that tell whether the unit added is the better direction


@dataclass(frozen=True, slots=True)
class Session:
    """Losses that are fixed up front, in both directions of neighbours [ZDW22], [VZ23].

    The guarantee is that of the product in each direction, for neighbours that differ by one unit.
    Mechanisms may be interactive and queried concurrently, under finite communication. A session is
    immutable. ``delta`` and ``epsilon`` return the worse of both directions.

    :param removed: loss where the second dataset lacks the unit
    :param added: loss where the first dataset lacks the unit

    :example:

    >>> steps = oc.fdp.Session.subsampled_gaussian(sigma=1.0, rate=0.01).power(1000)
    >>> steps.epsilon_bounds(1e-5)
    Bounds(lower=1.827..., upper=1.830...)
    >>> steps.compose(oc.TradeoffFunction.laplace(0.1)).epsilon(1e-5)
    1.867...
    """

    removed: TradeoffFunction = field(default_factory=TradeoffFunction.identity)
    added: TradeoffFunction = field(default_factory=TradeoffFunction.identity)

    def __post_init__(self) -> None:
        for name in UNITS:
            function = check_function(**{name: getattr(self, name)})
            object.__setattr__(self, name, function.one_way(name))

    @classmethod
    def subsampled_gaussian(cls, sigma: float, rate: float) -> Session:
        """Gaussian noise on Poisson-sampled units: both directions.

        :param sigma: noise over sensitivity, as for ``TradeoffFunction.subsampled_gaussian``
        :param rate: probability with which a unit takes part, in [0, 1]
        """
        removed = TradeoffFunction.subsampled_gaussian(sigma, rate, unit="removed")
        return cls(removed, removed.inverse())

    @classmethod
    def subsampled_laplace(cls, epsilon: float, rate: float) -> Session:
        """Laplace noise on Poisson-sampled units: both directions.

        :param epsilon: sensitivity over scale, as for ``TradeoffFunction.subsampled_laplace``
        :param rate: probability with which a unit takes part, in [0, 1]
        """
        removed = TradeoffFunction.subsampled_laplace(epsilon, rate, unit="removed")
        return cls(removed, removed.inverse())

    def compose(self, *others: Session | TradeoffFunction) -> Session:
        """Run other mechanisms beside these.

        :param others: sessions, or symmetric trade-off functions
        """
        removed, added = self.removed, self.added
        for index, other in enumerate(others):
            one = check_session(**{f"others[{index}]": other})
            removed, added = removed.compose(one.removed), added.compose(one.added)
        return Session(removed, added)

    def power(self, count: int) -> Session:
        """The same mechanisms ``count`` times.

        :param count: at least 0, at most 2^53
        """
        return Session(self.removed.power(count), self.added.power(count))

    def delta(self, epsilon: float | Array) -> Any:
        """Least δ with (ε, δ)-DP in both directions, rounded up.

        :param epsilon: any real number, or an array of them
        """
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: float | Array, width: float = 1e-6) -> Bounds:
        """Bounds on δ, to the relative ``width`` where that can be reached; 1 % on sampled noise.

        :param epsilon: any real number, or an array of them
        :param width: at least 0
        """
        one, other = self.removed.delta_bounds(epsilon, width), Bounds(0.0, 0.0)
        if self.added != self.removed:
            other = self.added.delta_bounds(epsilon, max(width, _ROUGH))
            if np.any(other.upper > one.lower):
                other = self.added.delta_bounds(epsilon, width)
        both = Bounds(np.maximum(one.lower, other.lower), np.maximum(one.upper, other.upper))
        return both if np.ndim(both.upper) else Bounds(float(both.lower), float(both.upper))

    def epsilon(self, delta: float) -> float:
        """Least ε >= 0 with (ε, δ)-DP in both directions, rounded up.

        :param delta: in [0, 1]
        """
        return float(self.epsilon_bounds(delta).upper)

    def epsilon_bounds(self, delta: float, width: float = 1e-6) -> Bounds:
        """Bounds on ε, to the relative ``width`` where that can be reached; 1 % on sampled noise.

        :param delta: in [0, 1]
        :param width: at least 0
        """
        one, other = self.removed.epsilon_bounds(delta, width), Bounds(0.0, 0.0)
        if self.added != self.removed:
            other = self.added.epsilon_bounds(delta, max(width, _ROUGH))
            if other.upper > one.lower:
                other = self.added.epsilon_bounds(delta, width)
        return Bounds(max(one.lower, other.lower), max(one.upper, other.upper))


def check_session(**argument: Any) -> Session:
    """The argument, or a symmetric function as a session, or raise."""
    ((name, value),) = argument.items()
    if isinstance(value, Session):
        session: Session = value
        return session
    if not isinstance(value, TradeoffFunction):
        raise InvalidTypeError(
            f"{name} must be a Session or a TradeoffFunction, found {type(value).__name__}; "
            "pass for example oc.TradeoffFunction.laplace(0.1)"
        )
    function = check_function(**{name: value})
    if not is_symmetric(function.product):
        raise InvalidValueError(
            f"{name} ({function}) must be symmetric, as it is one direction only; pass "
            "oc.fdp.Session(removed=f, added=g) with both directions"
        )
    return Session(function, function)
