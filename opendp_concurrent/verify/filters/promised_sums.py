"""Promises of pure, zero-concentrated and Rényi DP: what adds up is judged itself.

Randomized response with ε has loss ε, mean loss ε tanh(ε/2), and the Rényi divergences that
``conversions`` declare for it, so that each of these budgets can be used up by some analyst.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import exp
from typing import Any

from ...accounts.rule import Shares, Within
from ...accumulators.basic import basic
from ...accumulators.from_rule import from_rule
from ...accumulators.planned import Planned
from ...measures.conversions.pure_to_renyi import pure_to_renyi
from ...measures.conversions.pure_to_zcdp import pure_to_zcdp
from ...measures.distances import TruncatedConcentrated
from ...measures.numbers import number_at_most
from ...measures.sums.orders_sum import GridCurve, OnOrders
from ...measures.sums.truncated_sum import Truncated
from ..mechanism import FiniteMechanism
from .adversary import worst_analyst
from .menu import Item
from .promise import ORDERS, Budget, Check, Outcome, after, menu_of
from .renyi import worst_renyi
from .totals import worst_loss, worst_mean_loss

OMEGA = 8.0


class _ExactSum:
    """The rule of the sum, to be inverted."""

    start = Fraction(0)

    def after(self, state: Fraction, d_mid: float) -> Fraction:
        return state + Fraction(d_mid)

    def continues(self, state: Fraction, d_out: float) -> bool:
        return state <= d_out


def pure(accounting: Any) -> Check:
    """The largest loss, exactly; and that δ is 0 there."""

    def check(
        epsilons: Sequence[float], counts: Sequence[int], budget: Budget
    ) -> Iterator[Outcome]:
        start, menu = accounting.start(0.0), menu_of(epsilons, float)
        cost = after(start, epsilons, counts).loss
        promised, rule = budget.promised("epsilon", cost), Within(budget.limit("epsilon", cost))
        worst = worst_loss(menu, start, rule, losses=[Fraction(one) for one in epsilons])
        yield Outcome(budget.part, "largest loss", worst, promised)
        found = worst_analyst(menu, start, rule, promised)
        yield Outcome(budget.part, "delta at epsilon", found.delta_upper, 0.0)

    return check


def pure_from_rule() -> Check:
    """The sum, as a rule that is inverted."""
    return pure(from_rule(_ExactSum()))


def pure_compositor(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    """Shares fixed up front; a launch may use less."""
    shares = [one for one, count in zip(epsilons, counts, strict=True) for _ in range(count)]
    plan = tuple(budget.limit("epsilon", one) for one in shares)
    start: Any = Planned(plan, 0, basic().start(0.0))
    promised = sum(Fraction(budget.promised("epsilon", one)) for one in shares)
    menu, rule = menu_of(epsilons, float), Shares(number_at_most)
    worst = worst_loss(menu, start, rule, losses=[Fraction(one) for one in epsilons])
    yield Outcome(budget.part, "largest loss", worst, promised)
    found = worst_analyst(menu, start, rule, float(promised))
    yield Outcome(budget.part, "delta at epsilon", found.delta_upper, 0.0)


def zcdp_sum(epsilons: Sequence[float], counts: Sequence[int], budget: Budget) -> Iterator[Outcome]:
    """Divergences of all orders from 1 on."""
    menu, start = menu_of(epsilons, pure_to_zcdp), basic().start(0.0)
    cost: Any = after(start, map(pure_to_zcdp, epsilons), counts).loss
    rho, rule = budget.promised("rho", cost), Within(budget.limit("rho", cost))
    yield from _concentrated(menu, start, rule, rho, budget, ORDERS)


def _concentrated(
    menu: list[Item], start: Any, rule: Any, rho: float, budget: Budget, orders: Sequence[float]
) -> Iterator[Outcome]:
    yield Outcome(budget.part, "mean loss", worst_mean_loss(menu, start, rule), rho)
    for order in orders:
        found = worst_renyi(menu, start, rule, order)
        yield Outcome(budget.part, f"divergence of order {order:g}", found, rho * order)


def renyi_curve(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    """Each order of a grid."""

    def curve(epsilon: float) -> GridCurve:
        return GridCurve(ORDERS, tuple(pure_to_renyi(epsilon, order) for order in ORDERS))

    menu, start = menu_of(epsilons, curve), OnOrders(ORDERS).start(None)
    costs = after(start, map(curve, epsilons), counts).loss.values
    rule = Within(GridCurve(ORDERS, tuple(budget.limit("curve", one) for one in costs)))
    for order, cost in zip(ORDERS, costs, strict=True):
        found = worst_renyi(menu, start, rule, order)
        about = f"divergence of order {order:g}"
        yield Outcome(budget.part, about, found, budget.promised("curve", cost))


def fixed_renyi(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    """One order, for several."""
    start: Any = basic().start(0.0)
    for order in ORDERS:
        declare = partial(pure_to_renyi, order=order)
        cost = after(start, map(declare, epsilons), counts).loss
        rule = Within(budget.limit("divergence", cost))
        found = worst_renyi(menu_of(epsilons, declare), start, rule, order)
        about = f"divergence of order {order:g}"
        yield Outcome(budget.part, about, found, budget.promised("divergence", cost))


def truncated_sum(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    """All orders below ω; for ω itself, a mechanism whose divergence is steep there."""
    start = Truncated().start(None)
    if budget.part == "omega":
        steep = steep_mechanism()
        d_mid = TruncatedConcentrated(steep.renyi(OMEGA) / OMEGA * (1 + 1e-12), OMEGA)
        rho = start.after(d_mid, counts[0]).loss.rho
        omega = OMEGA / budget.share  # a promise at more orders than the launches keep
        rule = Within(TruncatedConcentrated(rho, omega / budget.loosened))
        menu = [Item("steep", d_mid, steep)]
        order = omega * (1 - 1e-9)
        found = worst_renyi(menu, start, rule, order)
        yield Outcome(budget.part, "divergence below omega", found, rho * order)
        return

    def declare(epsilon: float) -> TruncatedConcentrated:
        return TruncatedConcentrated(pure_to_zcdp(epsilon), 2 * OMEGA if epsilon < 1 else OMEGA)

    cost = after(start, map(declare, epsilons), counts).loss.rho
    rule = Within(TruncatedConcentrated(budget.limit("rho", cost), OMEGA))
    orders = [order for order in ORDERS if order < OMEGA]
    rho = budget.promised("rho", cost)
    yield from _concentrated(menu_of(epsilons, declare), start, rule, rho, budget, orders)


def steep_mechanism() -> FiniteMechanism:
    """One rare answer, whose divergence over its order grows up to well above OMEGA."""
    p, q = exp(-16.0), exp(-18.2)
    return FiniteMechanism((p, 1 - p), (q, 1 - q))
