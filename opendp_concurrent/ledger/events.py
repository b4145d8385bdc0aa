"""Charges as events of dp-accounting: of the worst mechanism that each privacy loss allows.

A d_mid is a certificate, so the event of the mechanism that attains it is an upper bound for what
was launched, whatever that was. An ε-DP mechanism is a postprocessing of randomized response
[KOV15], which the discrete Laplace mechanism at distance 1 is; the continuous Laplace mechanism
loses less, and would be too small for the noise on integers that OpenDP draws.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import Any

from ..accounts.charge import Terms
from ..fdp.function import TradeoffFunction
from ..fdp.laplace import Laplace, laplace
from ..measures.families import GAUSSIAN, PURE, TRADEOFF, ZCDP

_FEW = 1000  # events of one product that are listed


def events(terms: Terms | None, d_mids: list[Any]) -> Any:
    """Return a ``ComposedDpEvent`` of one event for each d_mid."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(
            "to_dp_events needs dp-accounting; install opendp-concurrent[events]",
            name="dp_accounting",
        ) from error
    measure = "" if terms is None else terms.measure
    return dp_event.ComposedDpEvent([_event(dp_event, measure, one) for one in d_mids])


def _event(dp_event: Any, measure: str, d_mid: Any) -> Any:
    if measure == TRADEOFF:
        return _of_function(dp_event, d_mid)
    if d_mid == (0.0, 0.0):
        return dp_event.NoOpDpEvent()
    if not isinstance(d_mid, float):
        return dp_event.UnsupportedDpEvent()
    if d_mid == 0.0:
        return dp_event.NoOpDpEvent()
    if d_mid == inf:
        return dp_event.NonPrivateDpEvent()
    if measure == PURE:
        return dp_event.DiscreteLaplaceDpEvent(d_mid, 1)
    if measure == ZCDP:
        return dp_event.ZCDpEvent(d_mid)
    if measure == GAUSSIAN:
        return dp_event.GaussianDpEvent(_reciprocal_down(d_mid))
    return dp_event.UnsupportedDpEvent()


def _of_function(dp_event: Any, function: TradeoffFunction) -> Any:
    if function == TradeoffFunction.worst():
        return dp_event.NonPrivateDpEvent()
    product, found = function._product, []
    if product.squares:
        mu = nextafter(product.mu, inf)
        found.append(dp_event.GaussianDpEvent(_reciprocal_down(mu)))
    for factor, count in product.factors.items():
        noise = factor if isinstance(factor, Laplace) else _as_laplace(factor)
        if noise is None:
            return dp_event.UnsupportedDpEvent()
        event = _laplace(dp_event, noise)
        many = count > _FEW
        found += [dp_event.SelfComposedDpEvent(event, count)] if many else [event] * count
    if not found:
        return dp_event.NoOpDpEvent()
    return found[0] if len(found) == 1 else dp_event.ComposedDpEvent(found)


def _as_laplace(factor: Any) -> Laplace | None:
    """The Laplace noise of few steps, or the randomized response, that a finite pair is."""
    steps = len(getattr(factor, "losses", ())) - 1
    if not steps >= 1:
        return None
    epsilon = float(factor.losses[-1]) if steps == 1 else factor.limit
    if not 0.0 < epsilon < inf or laplace(epsilon, float(steps)) != factor:
        return None
    return Laplace(epsilon, float(steps))


def _laplace(dp_event: Any, factor: Laplace) -> Any:
    if factor.steps == inf:
        return dp_event.LaplaceDpEvent(_reciprocal_down(factor.epsilon))
    exact, nearest = Fraction(factor.epsilon) / int(factor.steps), factor.epsilon / factor.steps
    step = nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)
    return dp_event.DiscreteLaplaceDpEvent(step, int(factor.steps))


def _reciprocal_down(loss: float) -> float:
    """Largest double at most 1/loss: the noise multiplier, rounded to less noise."""
    nearest = min(1.0 / loss, 1.7976931348623157e308)
    return nearest if Fraction(nearest) * Fraction(loss) <= 1 else nextafter(nearest, 0.0)
