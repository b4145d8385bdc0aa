"""The accumulators ``renyi``, ``zcdp`` and ``any_time``, and the choice of a rule.

``renyi`` bounds (ε, δ)-DP by the Rényi divergence of one order, fixed up front.

Failures cost sum of δ_i. Without failures the children are ε_i-DP, and their Rényi divergence is at
most that of randomized response. At one order it adds up for concurrent children with adaptively
chosen losses [HSTVVXZ23, Theorem 4.6]. The sum is (ε, δ')-DP by [CKS20, Proposition 12]. It is not
valid to choose the order after the losses are known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache, partial
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
import scipy
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


# The accumulator ``any_time``: a bound that holds at every time at once.
#
# Let R be the sum of the children's ρ = ε tanh(ε/2), and L the log of the likelihood ratio of the
# view. For each order 1 + t the exponential of t (L - (1 + t) R) has mean at most 1 at every
# stopping time, because a run that stops at R can be padded to a fixed R [HSTVVXZ23, Theorem 4.11].
# So has a mixture over t that is chosen beforehand; for the half-normal density with scale
# 1/sqrt(g)
#
#     m(L) = 2 sqrt(g/v) e^(z²/2) Φ(z),    v = 2 R + g,    z = (L - R)/sqrt(v).
#
# The reading is U = sup {L + log(1 - δ' m(L)): δ' m(L) < 1}. Then (1 - e^(U - L))+ <= δ' m(L) for
# all L, and its mean is at most δ'. The proof is in ``docs/proofs/rules.rst``.
#
# L + log(1 - δ' m(L)) is concave, because log m is convex. So between two points where it rises and
# falls, its maximum is at most the tangent at the first one, at the second one. Doubles choose the
# points, brackets show the signs of the slopes and give the value: a bad choice is a larger bound.

_PLANNED = 2.0**-20, 2.0**10  # of the ε that is planned
_ENOUGH = 1e20  # a larger sum of ρ reads infinity
_LOG_ROOT_TWO_PI = 0.9189385332046727


@checks.tagged("any_time", "planned", slack="delta_slack")
@dataclass(frozen=True, slots=True, repr=False)
class AnyTime(EpsilonDeltaAccumulator):
    """Add up ρ_i = ε_i tanh(ε_i/2), and read the mixture."""

    delta_slack: float
    planned: float

    def cost(self, epsilon: float) -> int:
        """Return units of ε tanh(ε/2), rounded up to a double."""
        return Zcdp(self.delta_slack).cost(epsilon)

    def epsilon(self, spent: float) -> float:
        """Return the reading of a sum of ρ; a sum under zCDP may be read, too."""
        return _reading(checks.non_negative(spent=spent), self.delta_slack, self.scale)

    def largest(self, epsilon: float) -> float:
        """Return the largest double R whose reading is at most ``epsilon``."""
        return _largest(epsilon, self)

    @property
    def scale(self) -> float:
        """Return g, which is fixed by the arguments."""
        return _scale(self.delta_slack, self.planned)


@lru_cache(maxsize=256)
def _scale(delta_slack: float, planned: float) -> float:
    """Return the g that suits the R at which about ``planned`` is read.

    Any g is valid that is the same on all machines, so decimals find it.
    """
    with localcontext(Context(30, ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        log_inverse = -Decimal(delta_slack).ln()
        root = (log_inverse + Decimal(planned)).sqrt() - log_inverse.sqrt()
        width = 2 * log_inverse  # of the equation width = 2 log(1/δ') + log(1 + width)
        for _ in range(20):
            width = 2 * log_inverse + (1 + width).ln()
        return float(2 * root * root / width)


@lru_cache(maxsize=4096)
def _largest(epsilon: float, rule: AnyTime) -> float:
    return numerics.largest_double(
        lambda spent: rule.epsilon(spent) <= epsilon, max(epsilon, 1e-300)
    )


@lru_cache(maxsize=65536)
def _reading(spent: float, delta_slack: float, scale: float) -> float:
    """Return an upper bound on U at R = ``spent``."""
    if spent == 0.0:
        return 0.0
    if not spent < _ENOUGH:
        return inf
    deviation = sqrt(2 * spent + scale)
    middle = spent + deviation * _slope_zero(deviation, delta_slack, scale)
    for step in (2.0**-36, 2.0**-26, 2.0**-13):
        aside = step * max(abs(middle), deviation)
        before, after = (
            _Mixture(point, spent, delta_slack, scale) for point in (middle - aside, middle + aside)
        )
        if numerics.is_nonnegative(before.rise) and numerics.is_nonnegative(after.fall):
            return max(0.0, numerics.upper(partial(before.tangent, loss=after.loss)))
    return inf  # valid, and never seen


def _slope_zero(deviation: float, delta_slack: float, scale: float) -> float:
    """Return z where the slope of L + log(1 - δ' m(L)) is nearly 0."""
    log_deviation = log(deviation)
    log_factor = log(2.0) + log(delta_slack) + log(scale) / 2 - log_deviation  # of e^(z²/2) Φ(z)

    def rises(z: float) -> bool:
        log_value = log_factor + float(scipy.special.log_ndtr(z)) + z * z / 2
        if log_value >= 0.0:
            return False
        slope = exp(log_factor - _LOG_ROOT_TWO_PI) + z * exp(log_value)
        return 1.0 - exp(log_value) >= slope / deviation

    low, high = -1e4, 200.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class _Mixture:
    """δ' m and its slope, at L = ``loss``."""

    loss: float
    spent: float
    delta_slack: float
    scale: float

    def _parts(self, real: numerics.Digits) -> tuple[numerics.Bracket, numerics.Bracket]:
        """Return 1 - δ' m(L), and the slope of δ' m there."""
        variance = 2 * real(self.spent) + real(self.scale)
        deviation = variance.sqrt()
        z = (real(self.loss) - real(self.spent)) / deviation
        density = 1 / (2 * real.between(*numerics.pi(real.number))).sqrt()  # φ(0)
        factor = 2 * real(self.delta_slack) * (real(self.scale) / variance).sqrt() * density
        ratio = numerics.mills(-z)  # Φ(z)/φ(z), with slope 1 + z Φ(z)/φ(z)
        return 1 - factor * ratio, factor * (1 + z * ratio) / deviation

    def rise(self, real: numerics.Digits) -> numerics.Bracket:
        """Return a number that is nonnegative only where the maximum is not further left."""
        rest, slope = self._parts(real)
        return rest - slope

    def fall(self, real: numerics.Digits) -> numerics.Bracket:
        """Return a number that is nonnegative only where the maximum is not further right."""
        return -self.rise(real)

    def tangent(self, real: numerics.Digits, loss: float) -> numerics.Bracket:
        """Return the tangent of L + log(1 - δ' m(L)), at ``loss``."""
        rest, slope = self._parts(real)
        return real(self.loss) + rest.ln() + (1 - slope / rest) * (real(loss) - real(self.loss))


@checks.sent(AnyTime)
def any_time(delta_slack: float, planned: float = 1.0) -> AnyTime:
    """Add up (ε, δ) losses to a bound that holds whenever one stops.

    The other accumulators with a slack read a loss that holds at a time which is fixed beforehand,
    such as after the 100th launch, or at the bound of a filter. This one holds also at a time that
    the answers choose, such as the first at which a result looks good: an odometer may be read
    after each launch, and stopped at any of them. After launches with (ε_i, δ_i) the loss is
    (U(R), δ' + sum of δ_i) with R = sum of ε_i tanh(ε_i/2) and δ' = ``delta_slack``, and (0, 0)
    before anything is spent. Combine it with ``basic()`` by ``either``, which costs nothing and
    holds at any time, too; with another rule the reading is one for a fixed time. The price, at
    launches of .01 and δ' = 1e-6: 431 launches until it reads 1, and 487 under ``zcdp``.

    It is valid for concurrent children with adaptively chosen losses, under finite communication:
    a mixture of e-values, derived from [HSTVVXZ23, Theorem 4.11] and [Ste24], with its proof in
    ``docs/proofs/rules.rst``. As a filter it may be stopped and read at any time. A sum of ρ under
    zCDP is read by ``any_time(...).epsilon(rho)``.

    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :param planned: the ε near which the reading is to be least, in [2^-20, 1024], fixed beforehand
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.any_time(delta_slack=1e-6)
    >>> oc.accumulators.either(oc.accumulators.basic(), rule).start().after((0.01, 0.0), 431).loss
    (0.99..., 1e-06)
    >>> rule.epsilon(0.02)
    0.96...
    """
    plan = checks.positive(planned=planned)
    least, most = _PLANNED
    if not least <= plan <= most:
        raise errors.InvalidValueError(
            f"planned ({plan}) must be between {least} and {most:g}; pass the epsilon near which "
            "you plan to stop"
        )
    return AnyTime(slack(delta_slack), plan)


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
