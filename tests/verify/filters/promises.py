"""The promises of all measures and accumulators of the package, to test against all analysts.

:func:`promises` lists them. ``Promise.check`` takes the ε of a menu of randomized responses and the
number of launches that pay for the budget. It compares the loss of the worst analyst with the
promised loss. The accumulators and rules are those of the package itself.

First come those of pure, zero-concentrated and Rényi DP, whose losses add up. Randomized response
with ε has loss ε, mean loss ε tanh(ε/2), and the Rényi divergences that ``conversions`` declares
for it. So some analyst reaches the whole of each budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from math import exp
from typing import Any

import numpy as np
from scipy.special import ndtr

from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.ladder import ladder, residue
from opendp_concurrent.accounting.rule import Shares, from_rule
from opendp_concurrent.fdp.function import TradeoffFunction
from opendp_concurrent.measures.conversion import pure_to_renyi, pure_to_zcdp
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE, ZERO_CONCENTRATED_DIVERGENCE
from opendp_concurrent.measures.measure import singleton
from opendp_concurrent.measures.renyi import FixedRenyiDivergence, GridCurve, OnOrders
from opendp_concurrent.measures.shapes import Planned, SquareSum
from opendp_concurrent.measures.slots import AnyOrder, Products, Slots
from opendp_concurrent.measures.tradeoffs import gaussian_to_delta, pure_to_gaussian
from opendp_concurrent.measures.truncated import TruncatedConcentrated, TruncatedSum
from opendp_concurrent.verify.adversary import Item, Limited, worst_analyst, worst_loss, worst_renyi
from opendp_concurrent.verify.mechanism import FiniteMechanism, Number

from .promise import CURVE, ORDERS, Bound, Budget, CachedRule, Check, Outcome, Promise, accumulated
from .promised_approximate import (
    ORDER_PARTS,
    PARTS,
    RHO_PARTS,
    RULES,
    approximate,
    approximate_fixed,
    approximate_zcdp,
    ladder_at_delta,
)

OMEGA = 8.0


class ExactSum:
    """The continuation rule of the sum, for ``from_rule`` to invert."""

    start = Fraction(0)

    def after(self, state: Fraction, d_mid: float) -> Fraction:
        """The exact sum after a launch."""
        return state + Fraction(d_mid)

    def continues(self, state: Fraction, d_out: float) -> bool:
        """Whether the sum is within the bound."""
        return state <= d_out


def pure(accounting: Any, budget: Budget) -> Iterator[Outcome]:
    """Compare the largest loss exactly, and δ at it with 0."""
    start = accounting.start(MAX_DIVERGENCE)
    cost = budget.after(start, float).loss
    rule = Bound(budget.limit("epsilon", cost))
    return _largest_loss(budget, start, rule, budget.promised("epsilon", cost))


def pure_compositor(budget: Budget) -> Iterator[Outcome]:
    """Shares that are fixed in advance; a launch may use less than its share."""
    plan = tuple(budget.limit("epsilon", one) for one in budget.launches)
    start: Any = Planned(plan, 0, basic().start(MAX_DIVERGENCE))
    promised = sum(Fraction(budget.promised("epsilon", one)) for one in budget.launches)
    return _largest_loss(budget, start, Shares(MAX_DIVERGENCE.at_most), promised)


def _largest_loss(budget: Budget, start: Any, rule: Any, promised: Number) -> Iterator[Outcome]:
    menu, losses = budget.menu(float), [Fraction(one) for one in budget.epsilons]
    worst = worst_loss(menu, start, rule, losses=losses)
    yield budget.outcome("largest loss", worst, promised)
    found = worst_analyst(menu, start, rule, float(promised))
    yield budget.outcome("delta at epsilon", found.delta_upper, 0.0)


def zcdp_sum(budget: Budget) -> Iterator[Outcome]:
    """Compare the divergences of all orders, from 1 on."""
    start: Any = basic().start(ZERO_CONCENTRATED_DIVERGENCE)
    cost = budget.after(start, pure_to_zcdp).loss
    rho, rule = budget.promised("rho", cost), Bound(budget.limit("rho", cost))
    return _concentrated(budget, budget.menu(pure_to_zcdp), start, rule, rho, ORDERS)


def _concentrated(
    budget: Budget, menu: list[Item], start: Any, rule: Any, rho: float, orders: Sequence[float]
) -> Iterator[Outcome]:
    yield budget.outcome("mean loss", worst_renyi(menu, start, rule, 1.0), rho)
    for order in orders:
        worst = worst_renyi(menu, start, rule, order)
        yield budget.outcome(f"divergence of order {order:g}", worst, rho * order)


def renyi_curve(budget: Budget) -> Iterator[Outcome]:
    """Compare the divergence of each order of a grid."""

    def curve(epsilon: float) -> GridCurve:
        return GridCurve(ORDERS, tuple(pure_to_renyi(epsilon, order) for order in ORDERS))

    menu, start = budget.menu(curve), OnOrders(ORDERS).start()
    costs = budget.after(start, curve).loss.values
    rule = Bound(GridCurve(ORDERS, tuple(budget.limit("curve", one) for one in costs)))
    for order, cost in zip(ORDERS, costs, strict=True):
        worst = worst_renyi(menu, start, rule, order)
        promised = budget.promised("curve", cost)
        yield budget.outcome(f"divergence of order {order:g}", worst, promised)


def fixed_renyi(budget: Budget) -> Iterator[Outcome]:
    """Compare the divergence of one fixed order, for several orders."""
    for order in ORDERS:
        start: Any = basic().start(singleton(FixedRenyiDivergence, order))
        declare = partial(pure_to_renyi, order=order)
        cost = budget.after(start, declare).loss
        rule = Bound(budget.limit("divergence", cost))
        worst = worst_renyi(budget.menu(declare), start, rule, order)
        promised = budget.promised("divergence", cost)
        yield budget.outcome(f"divergence of order {order:g}", worst, promised)


def truncated_sum(budget: Budget) -> Iterator[Outcome]:
    """Compare all orders below ω; for ω itself, use a mechanism with a steep divergence there."""
    start = TruncatedSum()
    if budget.part == "omega":
        steep = steep_mechanism()
        d_mid = TruncatedConcentrated(steep.renyi(OMEGA) / OMEGA * (1 + 1e-12), OMEGA)
        rho = start.after(d_mid, budget.counts[0]).loss.rho
        omega = OMEGA / budget.share  # promises more orders than the launches satisfy
        rule = Bound(TruncatedConcentrated(rho, omega / budget.loosened))
        order = omega * (1 - 1e-9)
        worst = worst_renyi([Item("steep", d_mid, steep)], start, rule, order)
        yield budget.outcome("divergence below omega", worst, rho * order)
        return

    def declare(epsilon: float) -> TruncatedConcentrated:
        return TruncatedConcentrated(pure_to_zcdp(epsilon), 2 * OMEGA if epsilon < 1 else OMEGA)

    cost = budget.after(start, declare).loss.rho
    rule = Bound(TruncatedConcentrated(budget.limit("rho", cost), OMEGA))
    orders = [order for order in ORDERS if order < OMEGA]
    rho = budget.promised("rho", cost)
    yield from _concentrated(budget, budget.menu(declare), start, rule, rho, orders)


def steep_mechanism() -> FiniteMechanism:
    """One rare answer; the divergence divided by the order increases beyond the order OMEGA."""
    p, q = exp(-16.0), exp(-18.2)
    return FiniteMechanism((p, 1 - p), (q, 1 - q))


# --- promises of Gaussian DP and f-DP ----------------------------------------------------------
#
# Randomized response reaches the whole of its own trade-off function. Gaussian budgets are also
# tested with binned Gaussian noise, whose mean loss is that of the Gaussian to 4e-7.

BIN, END = 2e-3, 7.5  # width of the bins of Gaussian noise; where the last bins begin
RESIDUE_LAUNCHES = 3  # each step of a residue filter is slow
pure_function, gaussian = TradeoffFunction.pure, TradeoffFunction.gaussian


@lru_cache(maxsize=64)
def binned_gaussian(mu: float) -> FiniteMechanism:
    """Gaussian noise on 0 and on ``mu``, in bins. Binning is postprocessing, so it is μ-GDP."""
    edges = np.arange(-END, END + mu, BIN)

    def law(mean: float) -> tuple[float, ...]:
        below = edges - mean
        # differences of the smaller tail do not cancel
        tail = np.where(below < 0, ndtr(below), -ndtr(-below))
        inner = np.diff(tail) + np.where((below[:-1] < 0) & (below[1:] >= 0), 1.0, 0.0)
        return (float(ndtr(below[0])), *map(float, inner), float(ndtr(-below[-1])))

    return FiniteMechanism(law(0.0), law(mu))


def _gaussian_menu(budget: Budget, declare: Callable[[float], Any]) -> list[Item]:
    return [Item(f"{mu:g}", declare(mu), binned_gaussian(mu)) for mu in budget.epsilons]


def _curve(
    budget: Budget, menu: list[Item], start: Any, rule: Any, promised: Callable[[float], Any]
) -> Iterator[Outcome]:
    """Compare δ at several ε; ``promised`` maps ε to the promised δ."""
    cached = CachedRule(rule)
    for epsilon in CURVE:
        worst = worst_analyst(menu, start, cached, epsilon).delta_upper
        yield budget.outcome(f"delta at {epsilon:g}", worst, float(promised(epsilon)))


def squares(budget: Budget) -> Iterator[Outcome]:
    """Binned Gaussian noise with μ from ``epsilons``, then randomized responses with these ε."""
    start = SquareSum()
    cost = budget.after(start, float).loss
    mu, rule = budget.promised("mu", cost), Bound(budget.limit("mu", cost))
    worst = worst_renyi(_gaussian_menu(budget, float), start, rule, 1.0)
    yield budget.outcome("mean loss", worst, mu**2 / 2)
    cost = budget.after(start, pure_to_gaussian).loss
    mu, rule = budget.promised("mu", cost), Bound(budget.limit("mu", cost))
    menu = budget.menu(pure_to_gaussian)
    yield from _curve(budget, menu, start, rule, partial(gaussian_to_delta, mu))


def _plans(budget: Budget) -> tuple[tuple[TradeoffFunction, ...], TradeoffFunction]:
    """The shares of a compositor, and the promised product."""
    given = tuple(pure_function(budget.limit("function", one)) for one in budget.launches)
    promised = [pure_function(budget.promised("function", one)) for one in budget.launches]
    return given, TradeoffFunction.identity().compose(*promised)


def compositor(budget: Budget) -> Iterator[Outcome]:
    """Shares that are used in their order."""
    given, promised = _plans(budget)
    start = Planned(given, 0, Products().start())
    rule = Shares(TradeoffFunction.__le__)
    return _curve(budget, budget.menu(pure_function), start, rule, promised.delta)


def slots(budget: Budget) -> Iterator[Outcome]:
    """Shares that are used in any order, also for a smaller launch."""
    given, promised = _plans(budget)
    smaller = replace(budget, epsilons=(*budget.epsilons, budget.epsilons[0] / 2))
    return _curve(
        budget, smaller.menu(pure_function), Slots(given, given), AnyOrder(), promised.delta
    )


def ladder_units(budget: Budget) -> Iterator[Outcome]:
    """A ladder whose unit is the smallest launch, with as many units as the launches cost."""
    unit = min(budget.epsilons)
    start = ladder(pure_function(unit)).start()
    units = budget.after(start, pure_function).spent
    given, promised = (
        pure_function(one("function", unit)).power(units) for one in (budget.limit, budget.promised)
    )
    return _curve(budget, budget.menu(pure_function), start, Bound(given), promised.delta)


def gaussian_residue(budget: Budget) -> Iterator[Outcome]:
    """Binned Gaussian noise, then randomized responses; at most three launches."""
    counts = [min(count, 1) for count in budget.counts]
    for declare in (float, pure_to_gaussian):
        cost = accumulated(SquareSum(), map(declare, budget.epsilons), counts).loss
        mu, limit = budget.promised("mu", cost), budget.limit("mu", cost)
        rule = CachedRule(Limited(Bound(gaussian(limit))))
        start = residue(limit).start(), RESIDUE_LAUNCHES
        if declare is float:
            worst = worst_renyi(_gaussian_menu(budget, gaussian), start, rule, 1.0)
            yield budget.outcome("mean loss", worst, mu**2 / 2)
        else:
            yield from _curve(budget, budget.menu(pure_function), start, rule, gaussian(mu).delta)


# --- the list ------------------------------------------------------------------------------------

EPSILON, MU, FUNCTION = ("epsilon",), ("mu",), ("function",)


def promises(loosened: float = 1.0) -> list[Promise]:
    """List the promises of all measures and accumulators of the package.

    :param loosened: the budget of each filter divided by the promised loss. Above 1 the promises
        can be broken, which shows that the check can fail
    """
    all_of_them: dict[str, tuple[tuple[str, ...], Check]] = {
        "MaxDivergence, sum": (EPSILON, partial(pure, basic())),
        "MaxDivergence, compositor": (EPSILON, pure_compositor),
        "MaxDivergence, from_rule": (EPSILON, partial(pure, from_rule(ExactSum()))),
        **{
            f"Approximate(MaxDivergence), {name}": (PARTS, partial(approximate, name))
            for name in RULES
        },
        "Approximate(MaxDivergence), ladder": (EPSILON, ladder_at_delta),
        "ZeroConcentratedDivergence, sum": (("rho",), zcdp_sum),
        "Approximate(ZeroConcentratedDivergence), sum": (RHO_PARTS, approximate_zcdp),
        "ApproximateRenyiDivergence, sum": (ORDER_PARTS, approximate_fixed),
        "RenyiDivergence, orders": (("curve",), renyi_curve),
        "FixedRenyiDivergence, sum": (("divergence",), fixed_renyi),
        "TruncatedConcentratedDivergence, sum": (("rho", "omega"), truncated_sum),
        "GaussianTradeoff, squares": (MU, squares),
        "Tradeoff, compositor": (FUNCTION, compositor),
        "Tradeoff, slots": (FUNCTION, slots),
        "Tradeoff, ladder": (FUNCTION, ladder_units),
        "Tradeoff, residue": (MU, gaussian_residue),
    }
    return [Promise(name, *parts, loosened) for name, parts in all_of_them.items()]
