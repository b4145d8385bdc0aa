"""One measure's guarantee as another's: conversions as combinators on measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from opendp.measures import smoothed_max_divergence
from opendp.mod import Measure, Measurement, assert_features

from .. import checks
from ..checks import checked, optional, probability
from ..checks import orders as orders_of
from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..fdp.function import TradeoffFunction
from ..measures import composition_measure
from ..measures.conversions.approximate_to_approximate import (
    approximate_to_delta,
    approximate_to_epsilon,
)
from ..measures.conversions.curves import KnownCurve
from ..measures.conversions.gaussian_to_approximate import gaussian_to_delta, gaussian_to_epsilon
from ..measures.conversions.products import gaussian_to_zcdp, zcdp_to_renyi
from ..measures.conversions.pure_to_gaussian import pure_to_gaussian
from ..measures.conversions.pure_to_renyi import pure_to_renyi
from ..measures.conversions.pure_to_zcdp import pure_to_zcdp
from ..measures.conversions.renyi_to_approximate import renyi_to_delta, renyi_to_epsilon
from ..measures.conversions.to_tradeoff import (
    profile_to_tradeoff,
    renyi_to_tradeoff,
    zcdp_to_tradeoff,
)
from ..measures.conversions.zcdp_to_approximate import zcdp_to_delta, zcdp_to_epsilon
from ..measures.distances import TruncatedConcentrated
from ..measures.families import APPROXIMATE, FIXED, GAUSSIAN, PURE, RENYI, TRADEOFF, TRUNCATED, ZCDP
from ..queryables.mechanism import ConcurrentMeasurement
from . import guards
from .recertify import Profile, recertify

PROFILE = "SmoothedMaxDivergence"  # a target only


@dataclass(frozen=True, slots=True)
class Ends:
    """What a conversion may need to know, besides the distance.

    :ivar source: descriptor of the measure that is left, if it has one
    :ivar target: descriptor of the measure that is reached, if it has one
    :ivar delta: for a target of (ε, δ)
    :ivar orders: at which a Rényi curve is read
    """

    source: Any
    target: Any
    delta: float | None
    orders: tuple[float, ...] | None


def _needed(ends: Ends) -> float:
    if ends.delta is None:
        raise InvalidTypeError("delta must be given for a cast to (epsilon, delta)")
    return ends.delta


def _larger_delta(loss: tuple[float, float], ends: Ends) -> tuple[float, float]:
    epsilon, delta = loss
    if ends.delta is None or epsilon == 0.0:
        return loss
    if not ends.delta >= delta:
        raise InvalidValueError(f"delta ({ends.delta}) must be at least the {delta} there is")
    return approximate_to_epsilon(epsilon, delta, ends.delta), ends.delta


def _read_orders(ends: Ends) -> tuple[float, ...]:
    if ends.orders is None:
        raise InvalidTypeError("orders must be given to convert a Rényi curve; pass a few orders")
    return ends.orders


def _lower_order(divergence: float, ends: Ends) -> float:
    if not ends.target.alpha <= ends.source.alpha:
        raise InvalidValueError(
            f"alpha ({ends.target.alpha}) must be at most the {ends.source.alpha} there is; "
            f"{WHY_NOT[FIXED]}"
        )
    return divergence


def _below(omega: float, ends: Ends) -> float:
    alpha: float = ends.target.alpha
    if not alpha < omega:
        raise InvalidValueError(f"alpha ({alpha}) must be below omega ({omega})")
    return alpha


def _truncate(loss: TruncatedConcentrated, ends: Ends) -> TruncatedConcentrated:
    if not loss.omega >= ends.target.omega:
        raise InvalidValueError(
            f"omega ({ends.target.omega}) must be at most the {loss.omega} there is"
        )
    return TruncatedConcentrated(loss.rho, ends.target.omega)


def _tradeoff_epsilon(function: TradeoffFunction, delta: float) -> float:
    """ε at ``delta``: to the last digit for Gaussians, else a certified upper bound."""
    if function.mu is not None:
        return gaussian_to_epsilon(function.mu, delta)
    return function.epsilon(delta)


def _tradeoff_delta(function: TradeoffFunction, epsilon: float) -> float:
    """δ at ``epsilon``, likewise."""
    if function.mu is not None:
        return gaussian_to_delta(function.mu, epsilon)
    return float(function.delta(epsilon))


# From each measure to those that a theorem reaches in one step.
CONVERSIONS: dict[tuple[str, str], Callable[[Any, Ends], Any]] = {
    (PURE, ZCDP): lambda d, ends: pure_to_zcdp(d),
    (PURE, FIXED): lambda d, ends: pure_to_renyi(d, ends.target.alpha),
    (PURE, RENYI): lambda d, ends: KnownCurve(pure_to_renyi, d),
    (PURE, TRUNCATED): lambda d, ends: TruncatedConcentrated(pure_to_zcdp(d), ends.target.omega),
    (PURE, GAUSSIAN): lambda d, ends: pure_to_gaussian(d),
    (PURE, APPROXIMATE): lambda d, ends: _larger_delta((d, 0.0), ends),
    (PURE, PROFILE): lambda d, ends: Profile(lambda e: approximate_to_delta(d, 0.0, e)),
    (ZCDP, FIXED): lambda d, ends: zcdp_to_renyi(d, ends.target.alpha),
    (ZCDP, RENYI): lambda d, ends: KnownCurve(zcdp_to_renyi, d),
    (ZCDP, TRUNCATED): lambda d, ends: TruncatedConcentrated(d, ends.target.omega),
    (ZCDP, APPROXIMATE): lambda d, ends: (zcdp_to_epsilon(d, _needed(ends)), ends.delta),
    (ZCDP, PROFILE): lambda d, ends: Profile(lambda e: zcdp_to_delta(d, e)),
    (GAUSSIAN, ZCDP): lambda d, ends: gaussian_to_zcdp(d),
    (GAUSSIAN, APPROXIMATE): lambda d, ends: (gaussian_to_epsilon(d, _needed(ends)), ends.delta),
    (GAUSSIAN, PROFILE): lambda d, ends: Profile(lambda e: gaussian_to_delta(d, e)),
    (RENYI, FIXED): lambda d, ends: d(ends.target.alpha),
    (RENYI, APPROXIMATE): lambda d, ends: (
        min(renyi_to_epsilon(a, d(a), _needed(ends)) for a in _read_orders(ends)),
        ends.delta,
    ),
    (RENYI, PROFILE): lambda d, ends: Profile(
        lambda e: min(renyi_to_delta(a, d(a), e) for a in _read_orders(ends))
    ),
    (FIXED, FIXED): _lower_order,
    (FIXED, APPROXIMATE): lambda d, ends: (
        renyi_to_epsilon(ends.source.alpha, d, _needed(ends)),
        ends.delta,
    ),
    (FIXED, PROFILE): lambda d, ends: Profile(lambda e: renyi_to_delta(ends.source.alpha, d, e)),
    (TRUNCATED, TRUNCATED): _truncate,
    (TRUNCATED, FIXED): lambda d, ends: zcdp_to_renyi(d.rho, _below(d.omega, ends)),
    (TRUNCATED, APPROXIMATE): lambda d, ends: (
        zcdp_to_epsilon(d.rho, _needed(ends), d.omega),
        ends.delta,
    ),
    (TRUNCATED, PROFILE): lambda d, ends: Profile(lambda e: zcdp_to_delta(d.rho, e, d.omega)),
    (PURE, TRADEOFF): lambda d, ends: TradeoffFunction.pure(d),
    (APPROXIMATE, TRADEOFF): lambda d, ends: TradeoffFunction.approximate(d[0], min(d[1], 1.0)),
    (GAUSSIAN, TRADEOFF): lambda d, ends: TradeoffFunction.gaussian(d),
    (ZCDP, TRADEOFF): lambda d, ends: zcdp_to_tradeoff(d, inf),
    (TRUNCATED, TRADEOFF): lambda d, ends: zcdp_to_tradeoff(d.rho, d.omega),
    (FIXED, TRADEOFF): lambda d, ends: renyi_to_tradeoff(ends.source.alpha, d),
    (RENYI, TRADEOFF): lambda d, ends: profile_to_tradeoff(
        lambda e: min(renyi_to_delta(a, d(a), e) for a in _read_orders(ends))
    ),
    (PROFILE, TRADEOFF): lambda d, ends: profile_to_tradeoff(d.delta),
    (TRADEOFF, APPROXIMATE): lambda d, ends: (_tradeoff_epsilon(d, _needed(ends)), ends.delta),
    (TRADEOFF, PROFILE): lambda d, ends: Profile(lambda e: _tradeoff_delta(d, e)),
    (TRADEOFF, GAUSSIAN): lambda d, ends: d.gaussian_bound,
    (APPROXIMATE, APPROXIMATE): _larger_delta,
    (APPROXIMATE, PROFILE): lambda d, ends: Profile(lambda e: approximate_to_delta(*d, e)),
}

_FAILS = "a mechanism that may fail with probability delta bounds no Rényi divergence"
_UNBOUNDED = "its loss may be unbounded, as that of Gaussian noise is"
WHY_NOT = {
    APPROXIMATE: _FAILS,
    PROFILE: f"{_FAILS}; dp.c.make_fix_delta reads it at one delta",
    ZCDP: _UNBOUNDED,
    GAUSSIAN: _UNBOUNDED,
    RENYI: _UNBOUNDED,
    FIXED: "one order says nothing of higher ones",
    TRUNCATED: "its orders end at omega",
    TRADEOFF: "its loss may be unbounded; read it as (epsilon, delta), or as Gaussian DP",
}


@checked(
    measurement=guards.measurement,
    to_measure=guards.measure,
    delta=optional(probability),
    orders=optional(orders_of),
)
def cast(
    measurement: Measurement,
    to_measure: Measure,
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
) -> ConcurrentMeasurement:
    """Return the measurement with its guarantee as one under another measure.

    Finds the tightest conversion that is known, or says that there is none:

    * pure DP to zCDP (ε tanh(ε/2) [Ste24], where OpenDP has ε²/2), to Rényi DP and one of its
      orders (randomized response [BS16]), to tCDP, to Gaussian DP, to (ε, δ) [KOV15];
    * zCDP to Rényi DP, to one order, to tCDP, to (ε, δ) [CKS20, Proposition 12];
    * Gaussian DP to zCDP, to (ε, δ), exactly [DRS22, Corollary 1];
    * Rényi DP to one of its orders, to (ε, δ) by the best of ``orders``;
    * one order, and tCDP, to (ε, δ) [CKS20, Proposition 12]; one order to a lower one; tCDP to a
      smaller ω, and to one order below ω;
    * (ε, δ) to itself with a larger δ [KOV15];
    * all of these, and privacy profiles (``dp.smoothed_max_divergence()``), to f-DP: exactly for
      pure, (ε, δ) and Gaussian DP, else the chords of a profile at some 300 points;
    * f-DP to (ε, δ), exactly or by certified bounds; to Gaussian DP, if the loss is bounded.

    A target of ``dp.smoothed_max_divergence()`` gives a privacy profile, on which OpenDP's
    :func:`~opendp.combinators.make_fix_delta` works. To cast before composing is valid and may
    lose: compose under the tighter measure, and cast the compositor.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: any measurement, interactive or not
    :param to_measure: the measure that is wanted
    :param delta: for a target of (ε, δ): the δ
    :param orders: for a Rényi curve: the orders at which it is read
    :return: a measurement with the same function
    :raises UnsupportedMeasureError: if there is no conversion, naming the reason
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    >>> oc.c.cast(count, dp.zero_concentrated_divergence()).map(1)
    0.4621171572600098
    >>> dp.c.make_pureDP_to_zCDP(count).map(1)
    0.5
    >>> oc.c.cast(count, oc.fixed_renyi_divergence(alpha=4.0)).map(1)
    0.8958832596451839
    """
    assert_features("contrib", "honest-but-curious")
    convert = conversion(measurement.output_measure, to_measure, delta=delta, orders=orders)
    return recertify(measurement, to_measure, convert)


def conversion(
    source: Measure,
    target: Measure,
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
) -> Callable[[Any], Any]:
    """Return the tightest conversion of distances that is known; parameters as of :func:`.cast`."""
    grid = None if orders is None else checks.orders(orders=orders)
    at_delta = None if delta is None else checks.probability(delta=delta)
    steps = _path(_family(source), _family(target))
    ends = Ends(_descriptor(source), _descriptor(target), at_delta, grid)
    if _lower_order in steps:
        _lower_order(0.0, ends)
    if at_delta is not None and _family(target) != APPROXIMATE:
        raise InvalidTypeError(f"delta is for a cast to (epsilon, delta), not to {target}")
    if _family(target) == APPROXIMATE and _family(source) not in (PURE, APPROXIMATE):
        _needed(ends)
    if _family(source) == RENYI and _family(target) in (APPROXIMATE, PROFILE, TRADEOFF):
        _read_orders(ends)

    def convert(distance: Any) -> Any:
        for step in steps:
            distance = step(distance, ends)
        return distance

    return convert


def _descriptor(measure: Measure) -> Any:
    return getattr(measure, "descriptor", None)


def _family(measure: Any) -> str:
    if isinstance(measure, Measure) and measure == smoothed_max_divergence():
        return PROFILE
    return composition_measure(measure).family


def _path(source: str, target: str) -> list[Callable[[Any, Ends], Any]]:
    """One conversion if there is one; else two, by way of zCDP."""
    if (source, target) in CONVERSIONS:
        return [CONVERSIONS[source, target]]
    if source == target:
        return []
    if (source, ZCDP) in CONVERSIONS and (ZCDP, target) in CONVERSIONS:
        return [CONVERSIONS[source, ZCDP], CONVERSIONS[ZCDP, target]]
    reached = sorted({other for one, other in CONVERSIONS if one == source})
    raise UnsupportedMeasureError(
        f"there is no conversion from {source} to {target}: "
        f"{WHY_NOT.get(source, 'none is known')}; from {source} one reaches {', '.join(reached)}"
    )
