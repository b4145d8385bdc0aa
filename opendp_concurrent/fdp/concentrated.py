"""The trade-off function of a privacy profile that is known at some points, as that of zCDP is.

Any points are valid: the largest profile through them is convex and linear in e^ε between them
[DRS22, Propositions 2.5 and 2.12]. More points make the result tighter.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, nextafter, sqrt

import numpy as np

from .. import _checks as checks
from ..errors import InvalidValueError
from ..numerics import zcdp_to_delta
from .function import TradeoffFunction

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
