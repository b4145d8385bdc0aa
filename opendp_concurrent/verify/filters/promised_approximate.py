"""Promises of (ε, δ)-DP and approximate zCDP.

Conversions lose something, so no analyst needs all of a budget of ``advanced``, ``zcdp`` or
``renyi``. Besides δ at ε this therefore judges what their theorems start from: the ε that the
theorem gives for the divergences that an analyst reaches, by formulas written apart from the
package's, in doubles; and the mass of answers that tell all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, fsum, log, prod, sqrt
from operator import mul
from typing import Any

from ...accounts.rule import Within
from ...accumulators.advanced import Advanced, advanced
from ...accumulators.basic import Basic, basic
from ...accumulators.best_rule import best_rule
from ...accumulators.either import Either, either
from ...accumulators.renyi import Renyi, renyi
from ...accumulators.zcdp import Zcdp, zcdp
from ...measures.conversions.pure_to_zcdp import pure_to_zcdp
from ...measures.conversions.zcdp_to_approximate import zcdp_to_delta
from ..mechanism import FiniteMechanism, randomized_response
from .adversary import worst_analyst
from .menu import Item, Remembered
from .promise import ORDERS, TESTS, Budget, Check, Outcome, after
from .totals import launchable, mean_loss

DELTA = 0.05
PARTS = ("epsilon", "delta")
RHO_PARTS = ("rho", "delta")
TINY = 2.0**-11  # of an ε whose ε² is the mean loss to 1e-7, as ``advanced`` has it


@dataclass(frozen=True)
class Rule:
    """An accounting, and the menus to which it is held.

    :ivar make: from the ε of a menu and the counts of a budget
    :ivar scale: of the ε with which analysts reach all that the theorem starts from
    """

    make: Callable[[Sequence[float], Sequence[int]], Any]
    scale: float = 1.0


def _best(epsilons: Sequence[float], counts: Sequence[int]) -> Any:
    total = sum(e * n for e, n in zip(epsilons, counts, strict=True))
    return best_rule((total, DELTA / 2), [(epsilon, 0.0) for epsilon in epsilons])


RULES = {
    "basic": Rule(lambda epsilons, counts: basic()),
    "advanced": Rule(lambda epsilons, counts: advanced(DELTA / 2), TINY),
    "zcdp": Rule(lambda epsilons, counts: zcdp(DELTA / 2)),
    "renyi": Rule(lambda epsilons, counts: renyi(4.0, DELTA / 2)),
    "either": Rule(
        lambda epsilons, counts: either(basic(), zcdp(DELTA / 4), renyi(3.0, DELTA / 4))
    ),
    "best_rule": Rule(_best),
}


def approximate(rule: Rule) -> Check:
    """δ at ε, and what the theorem starts from."""

    def check(
        epsilons: Sequence[float], counts: Sequence[int], budget: Budget
    ) -> Iterator[Outcome]:
        for scale in {1.0, rule.scale}:
            scaled = [scale * one for one in epsilons]
            yield from _held(rule.make(scaled, counts), scaled, counts, budget)

    return check


def _held(
    accounting: Any, epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    slack = _slack(accounting)
    menu, d_mids = _failing_menu(epsilons, [(one, 0.0) for one in epsilons], DELTA - slack)
    start = accounting.start((0.0, 0.0))
    cost = after(start, d_mids, (*counts, 1)).loss
    epsilon, delta = (budget.promised(*pair) for pair in zip(PARTS, cost, strict=True))
    limits = tuple(budget.limit(*pair) for pair in zip(PARTS, cost, strict=True))
    bounds = Remembered(Within(limits))
    found = worst_analyst(menu, start, bounds, epsilon)
    yield Outcome(budget.part, "delta at epsilon", found.delta_upper, delta)
    kept = [randomized_response(one) for one in (*epsilons, epsilons[0])]
    admitted = launchable(menu, start, bounds)
    reached = max(theorem_epsilon(accounting, kept, often) for often in admitted)
    yield Outcome(budget.part, "epsilon by the theorem", reached, epsilon)
    told = max(slack + _told(d_mids, often) for often in admitted if any(often))
    yield Outcome(budget.part, "delta by the theorem", told, delta)


def _failing_menu(
    epsilons: Sequence[float], d_mids: Sequence[tuple[float, float]], failure: float
) -> tuple[list[Item], list[tuple[float, float]]]:
    """Randomized responses, and the first of them with a failure that uses up all of δ."""
    declared = [*d_mids, (d_mids[0][0], failure)]
    mechanisms = [*map(randomized_response, epsilons), randomized_response(epsilons[0], failure)]
    pairs = zip(declared, mechanisms, strict=True)
    return [Item(f"{d_mid}", d_mid, one) for d_mid, one in pairs], declared


def _told(d_mids: Sequence[tuple[float, float]], counts: Sequence[int]) -> float:
    """Probability that one of the launches fails."""
    return 1 - prod((1 - delta) ** n for (_, delta), n in zip(d_mids, counts, strict=True))


def _slack(accounting: Any) -> float:
    if isinstance(accounting, Basic):
        return 0.0
    if isinstance(accounting, Either):
        return sum(map(_slack, accounting.rules))
    return float(accounting.delta_slack)


def theorem_epsilon(
    accounting: Any, mechanisms: Sequence[FiniteMechanism], counts: Sequence[int]
) -> float:
    """The ε that a rule's theorem gives, from what ``counts`` launches really tell.

    :param accounting: of (ε, δ)-DP
    :param mechanisms: that do not fail
    :param counts: of the launches of each
    :raises TypeError: for an accounting that has no formula here
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
        squares = 2 * total(mean_loss)
        return sqrt(-2 * squares * log_slack) + squares / 2
    if isinstance(accounting, Renyi):  # [CKS20, Proposition 12]
        order = accounting.order
        return _converted(order, total(lambda one: one.renyi(order)), log_slack)
    if isinstance(accounting, Zcdp):  # mean loss ρ, and the best order
        rho = total(mean_loss)
        return _least(lambda t: _converted(1 + exp(t), rho * (1 + exp(t)), log_slack))
    raise TypeError(f"no formula for {accounting!r}")


def _converted(order: float, divergence: float, log_slack: float) -> float:
    t = order - 1
    return max(0.0, divergence + log(t / order) - (log_slack + log(order)) / t)


def _least(function: Callable[[float], float]) -> float:
    """Least value of a function with one minimum, on logarithms of orders minus 1."""
    low, high = -30.0, 30.0
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return function((low + high) / 2)


def approximate_zcdp(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    """Sequential children: what does not fail is ρ-zCDP, and how likely failures are."""
    menu, d_mids = _failing_menu(epsilons, [(pure_to_zcdp(e), 0.0) for e in epsilons], DELTA)
    start: Any = basic().start((0.0, 0.0))
    cost = after(start, d_mids, (*counts, 1)).loss
    rho, delta = (budget.promised(*pair) for pair in zip(RHO_PARTS, cost, strict=True))
    limits = tuple(budget.limit(*pair) for pair in zip(RHO_PARTS, cost, strict=True))
    bounds = Remembered(Within(limits))
    kept = [randomized_response(one) for one in (*epsilons, epsilons[0])]
    admitted = launchable(menu, start, bounds)

    def largest(divergence: Callable[[FiniteMechanism], float]) -> float:
        each = [divergence(one) for one in kept]
        return max(fsum(map(mul, each, often)) for often in admitted)

    yield Outcome(budget.part, "mean loss", largest(mean_loss), rho)
    for order in ORDERS:
        about = f"divergence of order {order:g}"
        yield Outcome(budget.part, about, largest(partial(_renyi, order)), rho * order)
    told = max(_told(d_mids, often) for often in admitted)
    yield Outcome(budget.part, "failures", told, delta)
    for epsilon in TESTS:
        found = worst_analyst(menu, start, bounds, epsilon)
        allowed = min(1.0, delta + zcdp_to_delta(rho, epsilon))
        yield Outcome(budget.part, f"delta at {epsilon:g}", found.delta_upper, allowed)


def _renyi(order: float, mechanism: FiniteMechanism) -> float:
    return mechanism.renyi(order)
