"""Events of dp-accounting for trade-off functions. The module ``dp_event`` is always passed in."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import Any

from ..fdp.function import TradeoffFunction
from ..fdp.laplace import Laplace, laplace

_FEW = 1000  # events of one product that are listed


def function_event(dp_event: Any, function: TradeoffFunction) -> Any:
    """The event of a product of trade-off functions."""
    if function == TradeoffFunction.worst():
        return dp_event.NonPrivateDpEvent()
    product, found = function._product, []
    if product.squares:
        mu = nextafter(product.mu, inf)
        found.append(dp_event.GaussianDpEvent(reciprocal_down(mu)))
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
        return dp_event.LaplaceDpEvent(reciprocal_down(factor.epsilon))
    exact, nearest = Fraction(factor.epsilon) / int(factor.steps), factor.epsilon / factor.steps
    step = nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)
    return dp_event.DiscreteLaplaceDpEvent(step, int(factor.steps))


def reciprocal_down(loss: float) -> float:
    """Largest double at most 1/loss: the noise multiplier, rounded to less noise."""
    nearest = min(1.0 / loss, 1.7976931348623157e308)
    return nearest if Fraction(nearest) * Fraction(loss) <= 1 else nextafter(nearest, 0.0)
