"""Sessions; the trade-off function of a known profile; and the noise that meets a target.

A session keeps both directions of neighbours apart: a unit removed, and a unit added. The
neighbours are the same for a whole session, and so is the direction. Compose each direction by
itself, and take the worse one at the end. To compose functions that bound both directions of each
step is valid, too, but looser: it lets every step be in the direction that is worse for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import exp, inf, log, nextafter, sqrt
from typing import Any
from warnings import warn

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from ..numerics import zcdp_to_delta
from .bounds import Array, Bounds
from .function import TradeoffFunction, check_function
from .order import is_symmetric
from .shapes import UNITS

_ROUGH, _FINE = 0.1, 1e-6  # widths of brackets: rough ones take less time


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
        both = self._worse(lambda function, width: function.delta_bounds(epsilon, width), width)
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
        both = self._worse(lambda function, width: function.epsilon_bounds(delta, width), width)
        return Bounds(float(both.lower), float(both.upper))

    def _worse(self, ask: Callable[[TradeoffFunction, float], Bounds], width: float) -> Bounds:
        """The worse of both directions; the unit added is asked roughly where that is enough."""
        one, other = ask(self.removed, width), Bounds(0.0, 0.0)
        if self.added != self.removed:
            other = ask(self.added, max(width, _ROUGH))
            if np.any(other.upper > one.lower):
                other = ask(self.added, width)
        return Bounds(np.maximum(one.lower, other.lower), np.maximum(one.upper, other.upper))


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


# Losses that rooms above this one know: each registers what it reads when it is imported.

# of the best of several runs: from the losses of a run, the mean number of runs, and its shape
SELECTIONS: list[Callable[[Session, float, float], TradeoffFunction]] = []


# What loses at most as much as a profile that is known at some points allows, as that of zCDP is.
#
# Any points are valid: the largest profile through them is convex and linear in e^ε between them
# [DRS22, Propositions 2.5 and 2.12]. More points make the result tighter.

_POINTS = 240
_LARGEST = 650.0  # up to this ε, e^ε is a double
_NOTHING = 1e-30  # points with a smaller δ are omitted
_LARGEST_ROOT = 12.0  # sqrt(ρ)


def profile_to_tradeoff(delta: Callable[[float], float], last: float = inf) -> TradeoffFunction:
    """Return the trade-off function of a falling δ(ε), ε >= 0, the same in both directions.

    :param last: an ε at which δ is 0, if one is known
    """
    top = 2.0**-10
    while top < _LARGEST and delta(top) > _NOTHING:
        top = min(2 * top, _LARGEST)
    low = top
    while low > 2.0**-10 and delta(low / 1.25) <= _NOTHING:
        low /= 1.25
    even = np.linspace(0.0, low, _POINTS)
    near = np.geomspace(low / 1e4, low, _POINTS // 4)
    ends = [last] if last < _LARGEST else []
    points = [float(one) for one in np.unique(np.concatenate([even, near, ends]))]
    deltas = np.minimum.accumulate([min(1.0, delta(one)) for one in points]).tolist()
    return TradeoffFunction.from_profile(points, deltas)


@lru_cache(maxsize=1024)
def zcdp_to_tradeoff(rho: float, omega: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every ρ-zCDP or (ρ, ω)-tCDP mechanism."""
    if rho == 0.0:
        return TradeoffFunction.identity()
    if not sqrt(rho) < _LARGEST_ROOT:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: zcdp_to_delta(rho, epsilon, omega))


@lru_cache(maxsize=1024)
def shifted_zcdp_to_tradeoff(xi: float, rho: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every (ξ, ρ)-zCDP mechanism [BS16, Section 1].

    Its Rényi divergences of all orders α are at most ξ + αρ, so the bound of ρ-zCDP at ε - ξ holds
    at ε. If ρ is 0, large orders say that it is ξ-DP.
    """
    if rho == 0.0:
        return TradeoffFunction.pure(xi)
    if xi == 0.0 or not sqrt(rho) < _LARGEST_ROOT:
        return zcdp_to_tradeoff(rho, inf)
    if not xi < _LARGEST:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: zcdp_to_delta(rho, nextafter(epsilon - xi, -inf)))


# Optimal composition of (ε_i, δ_i)-DP mechanisms whose parameters are fixed up front.
#
# The worst (ε, δ)-DP mechanism is randomized response that reveals the data with probability δ. So
# the optimal composition is the product of such mechanisms: [KOV15, Theorem 3.3] for equal
# parameters, [MV16, Theorem 1.5] for different ones, where computing it exactly is #P-hard. It is
# the same for interactive mechanisms that are queried concurrently: [VW21, Theorem 1.5] for pure
# DP, [LW22, Theorem 1] and [VZ23] for (ε, δ)-DP, under finite communication.


def optimal_composition(
    d_mids: Sequence[tuple[float, float]], counts: Sequence[int] | None = None
) -> TradeoffFunction:
    """Optimal composition of mechanisms under (ε_i, δ_i)-DP, run concurrently.

    The parameters must be fixed up front; adaptively chosen parameters need a filter. Query the
    result for ``epsilon(delta)`` or ``delta(epsilon)``. They are exact up to rounding for equal
    parameters, and for different ones with at most 2^17 outcomes; else certified bounds.

    :param d_mids: pairs (ε, δ); a number stands for (ε, 0)
    :param counts: how often each is launched; by default once
    :return: the trade-off function of the composition
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.fdp.optimal_composition([0.5, 0.3, 0.2, 0.2]).epsilon(1e-3)
    1.19070614...
    >>> oc.fdp.optimal_composition([(0.1, 1e-10)], counts=[1000]).epsilon(1e-6)
    19.40185...
    """
    d_mids = checks.sequence("pairs (epsilon, delta)", d_mids=d_mids)
    numbers = [1] * len(d_mids) if counts is None else checks.elements("integers", counts=counts)
    if len(numbers) != len(d_mids):
        raise InvalidValueError(f"counts has {len(numbers)} elements, d_mids {len(d_mids)}")
    whole = TradeoffFunction.identity()
    for index, (d_mid, count) in enumerate(zip(d_mids, numbers, strict=True)):
        named, is_pair = {f"d_mids[{index}]": d_mid}, isinstance(d_mid, tuple)
        pair = checks.epsilon_delta(**named) if is_pair else (checks.non_negative(**named), 0.0)
        one = TradeoffFunction.approximate(*pair)
        whole = whole.compose(one.power(checks.count(**{f"counts[{index}]": count})))
    return whole


# The least noise with which mechanisms are within (ε, δ).
#
# Losses of Gaussian and of Laplace noise fall with its scale, also on Poisson-sampled units,
# because what loses less is a postprocessing of what loses more (docs/proofs/calibration.rst). So a
# search brackets the least scale. Brackets on ε are rough at first, and narrow near the least
# scale. What is returned meets the target by a narrow bracket, whatever the losses are.

_START, _FACTOR = 1.0, 4.0  # the first scale that is tried, and the ratio to the next ones
_NEAR = 1.05  # the ratio near what rough brackets have found
_ROUGH_TOLERANCE = 0.02
_LEAST_TOLERANCE = 1e-4  # finer, the width of the bounds on δ would decide


def smallest_sigma(
    loss: Callable[[float], Session | TradeoffFunction],
    epsilon: float,
    delta: float,
    *,
    bounds: tuple[float, float] = (1 / 16, 1e6),
    tolerance: float = 1e-3,
) -> float:
    """Find the smallest noise with which mechanisms are (ε, δ)-DP.

    The losses at the returned scale are within the target: their certified upper bound on ε is at
    most ``epsilon``. A scale that is 1 + ``tolerance`` times smaller, or less, was not shown to be,
    unless it is below ``bounds``. About 15 scales are evaluated, most of
    them roughly. A warning says when the result is the lower end of ``bounds``.

    :param loss: from a scale, a double, to the losses of all mechanisms together
    :param epsilon: ε of the target, at least 0
    :param delta: δ of the target, in [0, 1]
    :param bounds: least and largest scale that is tried
    :param tolerance: relative, in [10^-4, 1]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> def steps(sigma):
    ...     return oc.fdp.Session.subsampled_gaussian(sigma, rate=0.01).power(1000)
    >>> sigma = oc.fdp.smallest_sigma(steps, epsilon=1.0, delta=1e-5)
    >>> round(sigma, 2), steps(sigma).delta(1.0) <= 1e-5
    (1.42, True)
    """
    losses: Callable[[float], Any] = checks.function(loss=loss)
    target = checks.finite(epsilon=epsilon), checks.probability(delta=delta)
    first, second = checks.pair(bounds=bounds)
    low, high = (checks.positive(**{f"bounds[{i}]": one}) for i, one in enumerate((first, second)))
    narrow = checks.positive(tolerance=tolerance)
    if not low < high:
        raise InvalidValueError(f"bounds ({low}, {high}) must have the smaller number first")
    if not _LEAST_TOLERANCE <= narrow <= 1.0:
        raise InvalidValueError(
            f"tolerance ({tolerance}) must be at least {_LEAST_TOLERANCE:g}, at most 1"
        )

    def upper(width: float, sigma: float) -> float:
        return float(check_session(loss=losses(sigma)).epsilon_bounds(target[1], width).upper)

    near = min(max(_START, low), high)
    rough = partial(upper, _ROUGH)
    near, _ = _search(rough, target[0], near, _FACTOR, (low, high), _ROUGH_TOLERANCE)
    fine = partial(upper, _FINE)
    found, loss_at = _search(fine, target[0], near, _NEAR, (low, high), narrow)
    if not loss_at <= target[0]:
        raise InvalidValueError(
            f"bounds ({low}, {high}) must have a scale that is shown to be within epsilon "
            f"({target[0]}) and delta ({target[1]}); pass wider bounds, or a larger target"
        )
    if found == low:
        warn(f"{low} is the least scale of bounds; less noise may be enough", stacklevel=2)
    return found


def _search(
    at: Callable[[float], float],
    most: float,
    start: float,
    factor: float,
    bounds: tuple[float, float],
    tolerance: float,
) -> tuple[float, float]:
    """Return about the least scale at which ``at`` is at most ``most``, and its value there.

    From ``start`` on, larger and larger steps find a scale that meets this, and one that does not.
    Then a line in the logarithms of scale and value says where to look, first on one side, then on
    the other; in each third step, the interval is halved.

    :return: the end of ``bounds``, if there are not two such scales
    """
    low, high = bounds
    good = bad = start
    value = excess = at(start)
    while value > most and good < high:
        bad, excess = good, value
        good, factor = min(factor * good, high), min(factor * factor, _FACTOR)
        value = at(good)
    while excess <= most and bad > low:
        good, value = bad, excess
        bad, factor = max(bad / factor, low), min(factor * factor, _FACTOR)
        excess = at(bad)
    if value > most or excess <= most:
        return (good, value) if value > most else (bad, excess)
    step = 0
    while good > bad * (1 + tolerance):
        step, first, last = step + 1, log(bad), log(good)
        share = 0.5
        if step % 3 and 0.0 < value and excess < inf:
            over, under = log(excess) - log(most), log(most) - log(value)
            share = over / (over + under) if over + under > 0.0 else 0.5
            share += (-1 if share > 0.5 else 1) * tolerance / (3 * (last - first))
            share = min(max(share, 0.05), 0.95)
        middle = exp(first + share * (last - first))
        found = at(middle)
        if found <= most:
            good, value = middle, found
        else:
            bad, excess = middle, found
    return good, value
