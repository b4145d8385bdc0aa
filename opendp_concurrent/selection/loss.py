"""The privacy loss of a private selection, from the loss of one run.

Let q be the probability that a run is worse than some answer. The selection releases this answer
with g(q) = E[K q^(K-1)] times the probability that one run releases it. Let q', g(q') be those on a
neighbour, p = 1 - (1-γ)q and p' = 1 - (1-γ)q'.

Without the largest number of runs, g(q) = E[K] (γ/p)^(1+η) for the truncated negative binomial
distribution [PS22]. The condition K <= most costs nothing. The derivative of log g at q is a mean
of K-1, divided by q; the condition makes this mean smaller. So for q >= q' the ratio g(q)/g(q') is
at most (p'/p)^(1+η) with the condition too, and for q < q' it is at most 1. Also g(q) <= g(1) <=
E[K].

* Pure DP: the loss is at most ε + (1+η) log(p'/p). The numbers 1-q and 1-q' are probabilities of
  one event, so p'/p is largest for randomized response: (e^ε + γ)/(1 + γe^ε) <= e^ε.
* Rényi DP: g(q)^λ g(q')^(1-λ) = g(q) (g(q)/g(q'))^(λ-1), and p and p' are the probabilities of one
  event after postprocessing, so p'/p <= e^((1-1/m) e(m)) γ^(-1/m) for each order m >= 1. In all
  e(λ) + (1+η) ((1 - 1/m) e(m) + log(1/γ)/m) + log(E[K])/(λ-1) [PS22, Theorem 2].

The divergence increases with its order, so the bound at a larger order is a bound. Each bound holds
for every m: the choice of m is a matter of tightness, not of privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf, log
from typing import Any

from ..arguments.checks import number
from ..errors import InvalidValueError
from ..exact.bracket import Bracket, Digits, evaluate, upper
from ..sums.curve_sum import READ
from .runs import RandomRuns, mean_of

Curve = Callable[[float], Any]


def pure_selection(runs: RandomRuns, epsilon: float) -> float:
    """Return ε of the selection from ε of a run, rounded up."""
    if epsilon == 0.0 or epsilon == inf:
        return epsilon

    def loss(real: Digits) -> Bracket:
        one, gamma, decay = real(epsilon), runs.gamma(real), (-real(epsilon)).exp()
        worst = ((1 + gamma * decay) / (decay + gamma)).ln()
        return one + (1 + real(runs.eta)) * worst

    return upper(loss)


class SelectionCurve:
    """The Rényi curve of a selection from that of a run."""

    def __init__(self, runs: RandomRuns, curve: Curve) -> None:
        self._runs, self._curve = runs, curve
        self._known = {order: float(curve(order)) for order in READ}
        self._middle = best_order(runs, self._known)

    def __call__(self, alpha: float) -> float:
        """Return the divergence at the order ``alpha``, rounded up."""
        if not number(alpha=alpha) > 1.0:
            raise InvalidValueError(f"alpha ({alpha}) must be above 1")
        at = self._known.get(alpha)
        orders = {alpha: float(self._curve(alpha)) if at is None else at}
        orders.update((one, loss) for one, loss in self._known.items() if one > alpha)
        return least_loss(self._runs, orders, self._middle)


def fixed_selection(runs: RandomRuns, order: float, loss: float) -> float:
    """Return the divergence of one order, from that of a run at this order."""
    known = {order: loss}
    return least_loss(runs, known, best_order(runs, known))


def best_order(runs: RandomRuns, known: dict[float, float]) -> tuple[float, float]:
    """Return the order m of the least (1 - 1/m) e(m) + L/m, and e(m); order 1 needs no e(1)."""
    span = -float(evaluate(lambda real: runs.gamma(real).ln()).lower)
    return min(
        ((1.0, 0.0), *known.items()),
        key=lambda one: (1 - 1 / one[0]) * one[1] + span / one[0],
    )


def least_loss(runs: RandomRuns, known: dict[float, float], middle: tuple[float, float]) -> float:
    """Return the least bound over the orders that are known; 0 if a run loses nothing."""
    least = min(known.values())
    if least in (0.0, inf):  # no divergence at one order is none at all
        return least
    spread = log(max(1.0, mean_of(runs.scale, runs.eta)))
    order, loss = min(known.items(), key=lambda one: one[1] + spread / (one[0] - 1))
    return _divergence(runs, order, loss, *middle)


@lru_cache(maxsize=65536)
def _divergence(
    runs: RandomRuns, order: float, loss: float, middle: float, at_middle: float
) -> float:
    def divergence(real: Digits) -> Bracket:
        share = 1 / real(middle)
        others = (1 - share) * real(at_middle) - share * runs.gamma(real).ln()
        rest = real(order) - 1
        return real(loss) + (1 + real(runs.eta)) * others + runs.mean(real).ln() / rest

    return upper(divergence)
