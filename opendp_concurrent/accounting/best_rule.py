"""The accumulators ``renyi`` and ``zcdp``, and the choice of a rule.

``renyi`` bounds (ε, δ)-DP by the Rényi divergence of one order, fixed up front.

Failures cost sum of δ_i. Without failures the children are ε_i-DP, and their Rényi divergence is at
most that of randomized response. At one order it adds up for concurrent children with adaptively
chosen losses [HSTVVXZ23, Theorem 4.6]. The sum is (ε, δ')-DP by [CKS20, Proposition 12]. It is not
valid to choose the order after the losses are known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _checks as checks
from .. import errors, measures, numerics
from .epsilon_delta import Advanced, EpsilonDeltaAccumulator, basic, either, slack
from .ladder import alike_ladder


@checks.tagged("renyi", "order", slack="delta_slack")
@dataclass(frozen=True, slots=True, repr=False)
class Renyi(EpsilonDeltaAccumulator):
    """Add up the divergences of order ``order``."""

    order: float
    delta_slack: float

    def cost(self, epsilon: float) -> int:
        """Units of the divergence of randomized response, rounded up to a double."""
        return _cost(epsilon, self.order)

    def epsilon(self, spent: float) -> float:
        """Return the ε that the divergence implies at the slack."""
        return measures.renyi_to_epsilon(self.order, spent, self.delta_slack)

    def largest(self, epsilon: float) -> float:
        """Return the largest double divergence whose ε at the slack is at most ``epsilon``."""
        return measures.largest_divergence(self.order, epsilon, self.delta_slack)


@lru_cache(maxsize=65536)
def _cost(epsilon: float, order: float) -> int:
    return numerics.to_units(measures.pure_to_renyi(epsilon, order))


@checks.sent(Renyi)
def renyi(order: float, delta_slack: float) -> Renyi:
    """Add up (ε, δ) losses by the Rényi divergence of a fixed order.

    After launches with (ε_i, δ_i) the loss is (the ε of the summed divergence at δ', δ' + sum of
    δ_i) with δ' = ``delta_slack``. Before anything is spent it is (0, 0). Each launch counts as the
    exact divergence of randomized response with ε_i. The rule is valid for concurrent children with
    adaptively chosen losses, under finite communication: derived from [HSTVVXZ23, Theorem 4.6] and
    [CKS20, Proposition 12]. ``best_rule`` finds a good order from public numbers.

    :param order: α, finite and above 1, fixed before the first launch
    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> start = oc.accumulators.renyi(order=22.5, delta_slack=1e-6).start()
    >>> start.after((0.01, 0.0), 490).loss
    (0.99916..., 1e-06)
    """
    return Renyi(checks.order(order=order), slack(delta_slack))


# The accumulator ``zcdp``: each ε_i counts as ε_i tanh(ε_i/2)-zCDP, with one final conversion.
#
# Failures cost sum of δ_i. Without failures the children are ε_i-DP and so ε_i tanh(ε_i/2)-zCDP
# [Ste24]. These ρ_i add up for concurrent children with adaptively chosen losses [HSTVVXZ23,
# Theorem 4.11]. A sum of ρ is (ε, δ')-DP by the best order of [CKS20, Proposition 12]. The order
# may be chosen last, because a filter bounds ρ by a number.


@checks.tagged("zcdp", slack="delta_slack")
@dataclass(frozen=True, slots=True, repr=False)
class Zcdp(EpsilonDeltaAccumulator):
    """Add up ρ_i = ε_i tanh(ε_i/2)."""

    delta_slack: float

    def cost(self, epsilon: float) -> int:
        """Units of ε tanh(ε/2), rounded up to a double."""
        return _zcdp_cost(epsilon)

    def epsilon(self, spent: float) -> float:
        """Return the ε that ρ-zCDP implies at the slack."""
        return numerics.zcdp_to_epsilon(spent, self.delta_slack)

    def largest(self, epsilon: float) -> float:
        """Return the largest double ρ whose ε at the slack is at most ``epsilon``."""
        return numerics.largest_rho(epsilon, self.delta_slack)


@lru_cache(maxsize=65536)
def _zcdp_cost(epsilon: float) -> int:
    return numerics.to_units(measures.pure_to_zcdp(epsilon))


@checks.sent(Zcdp)
def zcdp(delta_slack: float) -> Zcdp:
    """Add up (ε, δ) losses by the sum of their zCDP losses.

    After launches with (ε_i, δ_i) the loss is (the ε of ρ-zCDP at δ', δ' + sum of δ_i) with
    ρ = sum of ε_i tanh(ε_i/2) and δ' = ``delta_slack``. Before anything is spent it is (0, 0). The
    rule is valid for concurrent children with adaptively chosen losses, under finite communication:
    derived from [Ste24], [HSTVVXZ23, Theorem 4.11] and [CKS20, Proposition 12]. It needs no order,
    and is nearly as good as ``renyi`` at the best order.

    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> losses = oc.accumulators.zcdp(delta_slack=1e-6).start().after((0.01, 0.0), 487)
    >>> losses.loss
    (0.99986..., 1e-06)
    """
    return Zcdp(slack(delta_slack))


# The choice of the (ε, δ) accumulator that admits the most typical launches.

MOST = 10**15  # larger numbers of launches are not counted
_MEASURES: list[measures.CompositionMeasure[Any]] = [
    measures.APPROXIMATE_MAX_DIVERGENCE,
    measures.TRADEOFF_DIVERGENCE,
    measures.MAX_DIVERGENCE,
]
_ORDERS = np.unique(np.round(1.0 + np.geomspace(1e-3, 1e6, 4000), 3))


def best_rule(
    d_out: tuple[float, float], typical: Sequence[tuple[float, float]], *, alike: bool = False
) -> measures.Accumulator:
    """Choose the accumulator that admits the most launches of a typical kind, before any are made.

    The candidates are ``basic``, ``advanced``, ``zcdp`` and ``renyi`` at the best order. Each is
    judged by the number of launches, with losses that cycle through ``typical``, that a filter for
    ``d_out`` would admit. If a candidate with a slack beats ``basic``, the result is
    ``either(basic(), candidate)``, at least as good as both. The slack gets the δ that ``typical``
    does not need. With ``alike=True``, and if all typical losses are the same, a ladder with that
    loss as its unit is a candidate, too: it reaches the optimum for losses that are fixed up front,
    but charges whole units for other launches. The choice depends on public arguments only: the
    order is fixed before the run.

    A pair (ε, 0) is charged as the worst mechanism that is ε-DP. Mechanisms with a smaller bound
    under zCDP, such as OpenDP's noisy maximum (ε²/8) and noise, admit more launches if they are
    built, composed and filtered under zCDP, and the whole is cast to (ε, δ).

    :param d_out: (ε, δ), the bound of the filter
    :param typical: losses (ε, δ) of launches to come, at least one with ε > 0
    :param alike: whether launches to come have the typical loss
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.best_rule((1.0, 1e-6), typical=[(0.01, 0.0)])
    >>> rule
    either(basic(), renyi(order=22..., delta_slack=1e-06))
    >>> oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [(0.01, 0.0)])
    490
    >>> rule = oc.accumulators.best_rule((1.0, 1e-6), typical=[(0.01, 0.0)], alike=True)
    >>> oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [(0.01, 0.0)])
    562
    """
    alike = checks.flag(alike=alike)
    target, losses = checks.epsilon_delta(d_out=d_out), _pairs(typical)
    if not any(epsilon > 0.0 for epsilon, _ in losses):
        raise errors.InvalidValueError(
            "typical must have at least one loss with epsilon above 0; pass the losses that "
            "you plan to launch"
        )
    rules = [basic(), *_candidates(target, losses)]
    counts = [launches_admitted(rule, target, losses) for rule in rules]
    best = rules[counts.index(max(counts))]
    if alike and len(set(losses)) == 1 and 0.0 < target[1] < 1.0:
        candidate = alike_ladder(losses[0], target[1])
        if candidate and launches_admitted(candidate, target, losses) > max(counts):
            return candidate
    return best if best is rules[0] else either(basic(), best)


def launches_admitted(
    accumulator: measures.Accumulator, d_out: errors.Loss, typical: Sequence[errors.Loss]
) -> int:
    """Count the launches that a filter admits, if their losses cycle through ``typical``.

    :param accumulator: an accumulator for (ε, δ), for trade-off functions, or for ε alone
    :param d_out: the bound of the filter: (ε, δ), a trade-off function, or ε
    :param typical: losses of launches, of the same kind
    :return: the number of launches, at most 10^15
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.advanced(1e-6)
    >>> oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [(0.01, 0.0)])
    349
    """
    measure = _measure(accumulator)
    target = measure.validate("d_out", d_out)
    given = checks.sequence("losses", typical=typical)
    losses = [measure.validate(f"typical[{i}]", loss) for i, loss in enumerate(given)]
    start = accumulator.start(measure)

    def after(rounds: int) -> measures.AccumulatorState[Any]:
        state = start
        for loss in losses if rounds else ():
            state = state.after(loss, rounds)
        return state

    rounds = _largest_count(lambda n: after(n).within(target), MOST // len(losses))
    state, admitted = after(rounds), rounds * len(losses)
    for loss in losses:
        state = state.after(loss)
        if not state.within(target):
            break
        admitted += 1
    return min(admitted, MOST)


def _measure(accumulator: measures.Accumulator) -> measures.CompositionMeasure[Any]:
    """Return the measure under which launches are counted."""
    if not callable(getattr(type(accumulator), "supports", None)):
        raise errors.InvalidTypeError(
            f"accumulator must be one of oc.accumulators, found {errors.shown(accumulator)}"
        )
    for measure in _MEASURES:
        if accumulator.supports(measure):
            return measure
    made_for = getattr(type(accumulator), "made_for", "other measures")
    raise errors.InvalidTypeError(
        f"accumulator ({errors.shown(accumulator)}) must support (epsilon, delta), f-DP or "
        f"pure DP; it is for {made_for}"
    )


def _largest_count(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to ``most`` at which a falling predicate, true at 0, holds."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _candidates(
    d_out: tuple[float, float], losses: list[tuple[float, float]]
) -> list[measures.Accumulator]:
    """Return one accumulator of each kind with a slack, or none if no δ is left for a slack."""
    epsilon, delta = d_out
    if not 0.0 < delta < 1.0 or not 0.0 < epsilon < inf:
        return []
    slack = _slack(d_out, losses)
    if slack == 0.0:
        return []
    order = _order(epsilon, slack, [epsilon for epsilon, _ in losses])
    return [Advanced(slack), Zcdp(slack), Renyi(order, slack)]


def _slack(d_out: tuple[float, float], losses: list[tuple[float, float]]) -> float:
    """Return the δ that is left after the launches that the slack admits; δ if they need none."""
    delta, needed = d_out[1], sum(delta for _, delta in losses) / len(losses)
    if needed == 0.0:
        return delta
    low, high = log(delta) - 100.0, log(delta)  # bisection on the log of the slack
    for _ in range(30):
        middle = (low + high) / 2
        slack = exp(middle)
        admitted = launches_admitted(Zcdp(slack), (d_out[0], 1.0), [(e, 0.0) for e, _ in losses])
        low, high = (middle, high) if slack + admitted * needed <= delta else (low, middle)
    slack = exp(low)
    return slack if slack + needed <= delta else 0.0


@lru_cache(maxsize=256)
def _divergences(epsilon: float) -> NDArray[np.float64]:
    """Return randomized response's divergences, in doubles: only for the choice of an order."""
    saved = np.log1p(np.exp(-epsilon)) - np.log1p(np.exp(-(2 * _ORDERS - 1) * epsilon))
    bound = np.clip(_ORDERS * (min(epsilon, 1e100) * epsilon) / 2, 1e-300, epsilon)
    found = epsilon - saved / (_ORDERS - 1)
    return np.where(_ORDERS * epsilon < 1e-3, bound, np.clip(found, 1e-300, bound))


def _order(epsilon: float, slack: float, epsilons: list[float]) -> float:
    """Return the order that admits the most launches, to three digits."""
    cost = sum(_divergences(one) for one in epsilons)
    t = _ORDERS - 1.0
    budget = epsilon - np.log(t / _ORDERS) + (log(slack) + np.log(_ORDERS)) / t
    return float(_ORDERS[int(np.argmax(budget / cost))])


def _pairs(typical: Sequence[errors.Loss]) -> list[tuple[float, float]]:
    losses = checks.sequence("pairs (epsilon, delta)", typical=typical)
    return [checks.epsilon_delta(**{f"typical[{i}]": loss}) for i, loss in enumerate(losses)]
