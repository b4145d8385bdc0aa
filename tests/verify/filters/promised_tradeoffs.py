"""Promises of Gaussian DP and f-DP.

Randomized response reaches the whole of its own trade-off function. Gaussian budgets are also
tested with binned Gaussian noise, whose mean loss is that of the Gaussian to 4e-7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from opendp_concurrent.accounting.ladder import ladder, residue
from opendp_concurrent.accounting.rule import Shares
from opendp_concurrent.fdp.function import TradeoffFunction
from opendp_concurrent.measures.shapes import Planned, SquareSum
from opendp_concurrent.measures.slots import AnyOrder, Products, Slots
from opendp_concurrent.measures.tradeoffs import gaussian_to_delta, pure_to_gaussian
from opendp_concurrent.verify.adversary import Item, Limited, worst_analyst, worst_renyi
from opendp_concurrent.verify.mechanism import FiniteMechanism

from .promise import CURVE, Bound, Budget, CachedRule, Outcome, accumulated

BIN, END = 2e-3, 7.5  # width of the bins of Gaussian noise; where the last bins begin
RESIDUE_LAUNCHES = 3  # each step of a residue filter is slow
pure, gaussian = TradeoffFunction.pure, TradeoffFunction.gaussian


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
    given = tuple(pure(budget.limit("function", one)) for one in budget.launches)
    promised = [pure(budget.promised("function", one)) for one in budget.launches]
    return given, TradeoffFunction.identity().compose(*promised)


def compositor(budget: Budget) -> Iterator[Outcome]:
    """Shares that are used in their order."""
    given, promised = _plans(budget)
    start = Planned(given, 0, Products().start())
    rule = Shares(TradeoffFunction.__le__)
    return _curve(budget, budget.menu(pure), start, rule, promised.delta)


def slots(budget: Budget) -> Iterator[Outcome]:
    """Shares that are used in any order, also for a smaller launch."""
    given, promised = _plans(budget)
    smaller = replace(budget, epsilons=(*budget.epsilons, budget.epsilons[0] / 2))
    return _curve(budget, smaller.menu(pure), Slots(given, given), AnyOrder(), promised.delta)


def ladder_units(budget: Budget) -> Iterator[Outcome]:
    """A ladder whose unit is the smallest launch, with as many units as the launches cost."""
    unit = min(budget.epsilons)
    start = ladder(pure(unit)).start()
    units = budget.after(start, pure).spent
    given, promised = (
        pure(one("function", unit)).power(units) for one in (budget.limit, budget.promised)
    )
    return _curve(budget, budget.menu(pure), start, Bound(given), promised.delta)


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
            yield from _curve(budget, budget.menu(pure), start, rule, gaussian(mu).delta)
