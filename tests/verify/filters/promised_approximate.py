"""Promises of (ε, δ)-DP, approximate zCDP and approximate Rényi DP of one order.

Conversions are not tight, so no analyst reaches the whole budget of ``advanced``, ``zcdp`` or
``renyi``. Besides δ at ε, two intermediate bounds are therefore tested: the ε that the theorem
gives for the divergences that an analyst reaches, and the probability that some child fails. The
formulas here are in doubles and independent of those of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import exp, expm1, fsum, inf, log, prod, sqrt
from operator import methodcaller, mul
from typing import Any

from scipy.special import log_ndtr

from opendp_concurrent.accounting.best_rule import (
    AnyTime,
    Renyi,
    Zcdp,
    any_time,
    best_rule,
    renyi,
    zcdp,
)
from opendp_concurrent.accounting.epsilon_delta import Advanced, Either, advanced, basic, either
from opendp_concurrent.accounting.ladder import ladder
from opendp_concurrent.fdp.function import TradeoffFunction
from opendp_concurrent.measures.conversion import pure_to_renyi, pure_to_zcdp, renyi_to_delta
from opendp_concurrent.measures.divergences import (
    APPROXIMATE_MAX_DIVERGENCE,
    APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE,
)
from opendp_concurrent.measures.measure import Basic, singleton
from opendp_concurrent.measures.renyi import ApproximateRenyiDivergence
from opendp_concurrent.numerics.bracket import zcdp_to_delta
from opendp_concurrent.verify.adversary import Item, worst_analyst
from opendp_concurrent.verify.mechanism import FiniteMechanism, one_way, randomized_response

from .promise import CURVE, ORDERS, Bound, Budget, CachedRule, Outcome, accumulated, admitted_counts

DELTA = 0.05
PARTS = ("epsilon", "delta")
RHO_PARTS = ("rho", "delta")
ORDER_PARTS = ("divergence", "delta")
TINY = 2.0**-11  # for ε of this size the mean loss is ε²/2, as in ``advanced``, to 1e-7


def _best(budget: Budget) -> Any:
    total = sum(map(mul, budget.epsilons, budget.counts))
    return best_rule((total, DELTA / 2), [(epsilon, 0.0) for epsilon in budget.epsilons])


RULES: dict[str, Callable[[Budget], Any]] = {
    "basic": lambda budget: basic(),
    "advanced": lambda budget: advanced(DELTA / 2),
    "zcdp": lambda budget: zcdp(DELTA / 2),
    "renyi": lambda budget: renyi(4.0, DELTA / 2),
    "any_time": lambda budget: any_time(DELTA / 2),
    "either": lambda budget: either(basic(), zcdp(DELTA / 4), renyi(3.0, DELTA / 4)),
    "best_rule": _best,
}


def approximate(name: str, budget: Budget) -> Iterator[Outcome]:
    """Compare δ at ε, and the two intermediate bounds."""
    for scale in (TINY, 1.0) if name == "advanced" else (1.0,):
        scaled = replace(budget, epsilons=[scale * one for one in budget.epsilons])
        yield from _approximate(scaled, RULES[name](scaled))


def _approximate(budget: Budget, accounting: Any) -> Iterator[Outcome]:
    slack, start = _slack(accounting), accounting.start(APPROXIMATE_MAX_DIVERGENCE)
    menu = _failing_menu(budget.epsilons, float, DELTA - slack)
    epsilon, delta, rule = _promised(budget, PARTS, menu, start)
    found = worst_analyst(menu, start, rule, epsilon)
    yield budget.outcome("delta at epsilon", found.delta_upper, delta)
    admitted, kept = admitted_counts(menu, start, rule), _without_failure(budget)
    reached = max(theorem_epsilon(accounting, kept, counts) for counts in admitted)
    yield budget.outcome("epsilon by the theorem", reached, epsilon)
    failing = max(slack + _failure(menu, counts) for counts in admitted if any(counts))
    yield budget.outcome("delta by the theorem", failing, delta)


def ladder_at_delta(budget: Budget) -> Iterator[Outcome]:
    """Compare δ at the ε of the units that the launches cost; the unit is the smallest launch."""
    start = ladder(TradeoffFunction.pure(min(budget.epsilons)), DELTA).start()
    menu = [Item(f"{one}", (one, 0.0), randomized_response(one)) for one in budget.epsilons]
    cost = accumulated(start, [item.d_mid for item in menu], budget.counts).loss[0]
    promised, limit = (one("epsilon", cost) for one in (budget.promised, budget.limit))
    found = worst_analyst(menu, start, CachedRule(Bound((limit, DELTA))), promised)
    yield budget.outcome("delta at epsilon", found.delta_upper, DELTA)


def _failing_menu(
    epsilons: Sequence[float], declare: Callable[[float], float], failure: float
) -> list[Item]:
    """Randomized responses, and the first of them again with a failure that uses up all of δ."""
    pairs = [*((one, 0.0) for one in epsilons), (epsilons[0], failure)]
    declared = [(declare(epsilon), delta) for epsilon, delta in pairs]
    return [
        Item(f"{d_mid}", d_mid, randomized_response(*pair))
        for d_mid, pair in zip(declared, pairs, strict=True)
    ]


def _without_failure(budget: Budget) -> list[FiniteMechanism]:
    return [randomized_response(one) for one in (*budget.epsilons, budget.epsilons[0])]


def _promised(
    budget: Budget, parts: tuple[str, str], menu: list[Item], start: Any
) -> tuple[float, float, CachedRule]:
    """The promised pair, and the rule of the filter. The budget includes one failing launch."""
    cost = accumulated(start, [item.d_mid for item in menu], (*budget.counts, 1)).loss
    first, second = (budget.promised(*pair) for pair in zip(parts, cost, strict=True))
    limits = tuple(budget.limit(*pair) for pair in zip(parts, cost, strict=True))
    return first, second, CachedRule(Bound(limits))


def _failure(menu: Sequence[Item], counts: Sequence[int]) -> float:
    """Probability that some launch fails."""
    kept: float = prod((1 - item.d_mid[1]) ** n for item, n in zip(menu, counts, strict=True))
    return 1 - kept


def _slack(accounting: Any) -> float:
    if isinstance(accounting, Basic):
        return 0.0
    if isinstance(accounting, Either):
        return sum(map(_slack, accounting.rules))
    return float(accounting.delta_slack)


def theorem_epsilon(
    accounting: Any, mechanisms: Sequence[FiniteMechanism], counts: Sequence[int]
) -> float:
    """The ε that the theorem of an accumulator gives for the divergences of ``counts`` launches.

    :param accounting: of (ε, δ)-DP
    :param mechanisms: that do not fail
    :param counts: number of launches of each
    :raises TypeError: for an accounting without a formula here
    """

    def total(divergence: Callable[[FiniteMechanism], float]) -> float:
        return sum(n * divergence(one) for one, n in zip(mechanisms, counts, strict=True) if n)

    if not any(counts):
        return 0.0
    if isinstance(accounting, Either):
        return min(theorem_epsilon(one, mechanisms, counts) for one in accounting.rules)
    if isinstance(accounting, Basic):
        return total(FiniteMechanism.epsilon)
    log_slack = log(accounting.delta_slack)
    if isinstance(accounting, Advanced):  # mean loss ε²/2 [HSTVVXZ23, Theorem 3.8]
        squares = 2 * total(_mean_loss)
        return sqrt(-2 * squares * log_slack) + squares / 2
    if isinstance(accounting, Renyi):  # [CKS20, Proposition 12]
        divergence = total(methodcaller("renyi", accounting.order))
        return _converted(accounting.order, divergence, log_slack)
    if isinstance(accounting, Zcdp):  # mean loss ρ, and the best order
        rho = total(_mean_loss)
        return _minimum(lambda t: _converted(1 + exp(t), rho * (1 + exp(t)), log_slack))
    if isinstance(accounting, AnyTime):
        return _mixture_epsilon(total(_mean_loss), accounting.scale, log_slack)
    raise TypeError(f"no formula for {accounting!r}")


def _mean_loss(mechanism: FiniteMechanism) -> float:
    return one_way(mechanism.tables, 1.0, 0)


def _converted(order: float, divergence: float, log_slack: float) -> float:
    t = order - 1
    return max(0.0, divergence + log(t / order) - (log_slack + log(order)) / t)


def _mixture_epsilon(rho: float, scale: float, log_slack: float) -> float:
    """The largest L + log(1 - δ' m(L)) for the mixture m of ``any_time``."""
    variance = 2 * rho + scale

    def below(z: float) -> float:
        log_mixture = log(4 * scale / variance) / 2 + z * z / 2 + float(log_ndtr(z))
        rest = -expm1(log_slack + log_mixture)
        return -(rho + z * sqrt(variance) + log(rest)) if rest > 0.0 else inf

    return max(0.0, -_minimum(below))


def _minimum(function: Callable[[float], float]) -> float:
    """The minimum of a function, such as of log(order - 1), that has one local minimum."""
    low, high = -30.0, 30.0
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return function((low + high) / 2)


def approximate_zcdp(budget: Budget) -> Iterator[Outcome]:
    """Compare the divergences without failures, and the failures, of sequential children."""
    menu = _failing_menu(budget.epsilons, pure_to_zcdp, DELTA)
    start: Any = basic().start(APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE)
    rho, delta, rule = _promised(budget, RHO_PARTS, menu, start)
    admitted, kept = admitted_counts(menu, start, rule), _without_failure(budget)

    def largest(divergence: Callable[[FiniteMechanism], float]) -> float:
        each = [divergence(one) for one in kept]
        return max(fsum(map(mul, each, counts)) for counts in admitted)

    yield budget.outcome("mean loss", largest(_mean_loss), rho)
    for order in ORDERS:
        worst = largest(methodcaller("renyi", order))
        yield budget.outcome(f"divergence of order {order:g}", worst, rho * order)
    yield budget.outcome("failures", max(_failure(menu, counts) for counts in admitted), delta)
    for epsilon in CURVE:
        found = worst_analyst(menu, start, rule, epsilon)
        allowed = min(1.0, delta + zcdp_to_delta(rho, epsilon))
        yield budget.outcome(f"delta at {epsilon:g}", found.delta_upper, allowed)


def approximate_fixed(budget: Budget) -> Iterator[Outcome]:
    """The same at one order, for several orders."""
    for order in ORDERS:
        menu = _failing_menu(budget.epsilons, partial(pure_to_renyi, order=order), DELTA)
        start: Any = basic().start(singleton(ApproximateRenyiDivergence, order))
        divergence, delta, rule = _promised(budget, ORDER_PARTS, menu, start)
        admitted = admitted_counts(menu, start, rule)
        each = [one.renyi(order) for one in _without_failure(budget)]
        worst = max(fsum(map(mul, each, counts)) for counts in admitted)
        yield budget.outcome(f"divergence of order {order:g}", worst, divergence)
        yield budget.outcome("failures", max(_failure(menu, counts) for counts in admitted), delta)
        for epsilon in CURVE[::2]:
            found = worst_analyst(menu, start, rule, epsilon)
            allowed = min(1.0, delta + renyi_to_delta(order, divergence, epsilon))
            yield budget.outcome(f"delta at {epsilon:g}", found.delta_upper, allowed)
