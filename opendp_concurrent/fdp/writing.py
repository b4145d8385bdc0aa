"""Events of dp-accounting for trade-off functions. The module ``dp_event`` is always passed in."""

from fractions import Fraction
from math import inf, nextafter
from types import ModuleType
from typing import Any

from ..numerics import reciprocal_down
from .finite import response_of
from .function import TradeoffFunction
from .laplace import Laplace, laplace
from .session import Session
from .subsampled import Factor, Subsampled


def function_event(dp_event: ModuleType, function: TradeoffFunction) -> Any:
    """The event of a product of trade-off functions; of a bound of one direction there is none."""
    if function.direction is not None:
        return dp_event.UnsupportedDpEvent()
    return _event(dp_event, function, function)


def session_event(dp_event: ModuleType, session: Session) -> Any:
    """The event of a session; ``UnsupportedDpEvent`` if dp-accounting has none.

    A factor that is not symmetric has an event only if it is sampled noise, and the unit is removed
    in the direction of that name.
    """
    return _event(dp_event, session.removed, session.added)


def _event(dp_event: ModuleType, removed: TradeoffFunction, added: TradeoffFunction) -> Any:
    """The event of a function in each direction."""
    if TradeoffFunction.worst() in (removed, added):
        return dp_event.NonPrivateDpEvent()
    product, found = removed.product, []
    if product.squares:
        found.append(dp_event.GaussianDpEvent(reciprocal_down(nextafter(product.mu, inf))))
    for factor, count in product.factors.items():
        event = factor_event(dp_event, factor)
        if event is None:
            return dp_event.UnsupportedDpEvent()
        found.append(dp_event.SelfComposedDpEvent(event, count) if count > 1 else event)
    if added != removed.inverse():
        return dp_event.UnsupportedDpEvent()
    if not found:
        return dp_event.NoOpDpEvent()
    return found[0] if len(found) == 1 else dp_event.ComposedDpEvent(found)


def factor_event(dp_event: ModuleType, factor: Factor) -> Any:
    """The event of one factor, or None."""
    if isinstance(factor, Subsampled):
        if factor.unit != "removed":
            return None
        noise = reciprocal_down(factor.size)
        kind = dp_event.GaussianDpEvent if factor.noise == "gaussian" else dp_event.LaplaceDpEvent
        return dp_event.PoissonSampledDpEvent(factor.rate, kind(noise))
    laplace_noise = factor if isinstance(factor, Laplace) else _as_laplace(factor)
    if laplace_noise is not None:
        return _laplace(dp_event, laplace_noise)
    known = response_of(factor)
    return None if known is None else approximate_event(dp_event, *known)


def approximate_event(dp_event: ModuleType, epsilon: float, delta: float) -> Any:
    """The event of (ε, δ)-DP, which dp-accounting has after version 0.6; else None."""
    made = getattr(dp_event, "EpsilonDeltaDpEvent", None)
    return None if made is None else made(epsilon=epsilon, delta=delta)


def _as_laplace(factor: Any) -> Laplace | None:
    """The Laplace noise of few steps, or the randomized response, that a finite pair is."""
    steps = len(getattr(factor, "losses", ())) - 1
    if not steps >= 1:
        return None
    epsilon = float(factor.losses[-1]) if steps == 1 else factor.limit
    if not 0.0 < epsilon < inf or laplace(epsilon, float(steps)) != factor:
        return None
    return Laplace(epsilon, float(steps))


def _laplace(dp_event: ModuleType, factor: Laplace) -> Any:
    if factor.steps == inf:
        return dp_event.LaplaceDpEvent(reciprocal_down(factor.epsilon))
    exact, nearest = Fraction(factor.epsilon) / int(factor.steps), factor.epsilon / factor.steps
    step = nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)
    return dp_event.DiscreteLaplaceDpEvent(step, int(factor.steps))
