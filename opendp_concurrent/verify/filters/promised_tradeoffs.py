"""Promises of Gaussian DP and f-DP.

Randomized response needs all of a trade-off function of its own. For Gaussian budgets there is
binned Gaussian noise besides, whose mean loss is that of the Gaussian to 4e-7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from ...accounts.rule import Shares, Within
from ...accumulators.ladder import ladder
from ...accumulators.planned import Planned
from ...accumulators.residue import residue
from ...accumulators.slots import AnyOrder, Slots
from ...fdp.function import TradeoffFunction
from ...measures.conversions.gaussian_to_approximate import gaussian_to_delta
from ...measures.conversions.pure_to_gaussian import pure_to_gaussian
from ...measures.sums.square_sum import Squares
from ...measures.sums.tradeoff_product import Products
from ..mechanism import FiniteMechanism
from .adversary import worst_analyst
from .menu import Item, Limited, Remembered
from .promise import TESTS, Budget, Outcome, after, menu_of
from .totals import worst_mean_loss

BIN, END = 2e-3, 7.5  # width of the bins of Gaussian noise, and where the last ones begin
MOST = 3  # launches against a residue filter, whose steps are dear
pure = TradeoffFunction.pure


@lru_cache(maxsize=64)
def binned_gaussian(mu: float) -> FiniteMechanism:
    """Gaussian noise on 0 and on ``mu``, told in bins: a postprocessing, so μ-GDP."""
    edges = np.arange(-END, END + mu, BIN)

    def law(mean: float) -> tuple[float, ...]:
        below = edges - mean
        # differences of the smaller tail, which do not cancel
        tail = np.where(below < 0, ndtr(below), -ndtr(-below))
        inner = np.diff(tail) + np.where((below[:-1] < 0) & (below[1:] >= 0), 1.0, 0.0)
        return (float(ndtr(below[0])), *map(float, inner), float(ndtr(-below[-1])))

    return FiniteMechanism(law(0.0), law(mu))


def _curve(
    menu: list[Item], start: Any, rule: Any, promised: TradeoffFunction, budget: Budget
) -> Iterator[Outcome]:
    """A whole trade-off function against the worst analyst at each ε."""
    remembered = Remembered(rule)
    for epsilon in TESTS:
        found, bound = (
            worst_analyst(menu, start, remembered, epsilon),
            float(promised.delta(epsilon)),
        )
        yield Outcome(budget.part, f"delta at {epsilon:g}", found.delta_upper, bound)


def squares(epsilons: Sequence[float], counts: Sequence[int], budget: Budget) -> Iterator[Outcome]:
    """Binned Gaussian noise with these μ, and randomized responses with these ε."""
    start = Squares().start(None)
    cost = after(start, epsilons, counts).loss
    mu, rule = budget.promised("mu", cost), Within(budget.limit("mu", cost))
    menu = [Item(f"{one:g}", one, binned_gaussian(one)) for one in epsilons]
    yield Outcome(budget.part, "mean loss", worst_mean_loss(menu, start, rule), mu**2 / 2)
    declared = [pure_to_gaussian(one) for one in epsilons]
    cost = after(start, declared, counts).loss
    mu, rule = budget.promised("mu", cost), Within(budget.limit("mu", cost))
    for epsilon in TESTS:
        found = worst_analyst(menu_of(epsilons, pure_to_gaussian), start, rule, epsilon)
        bound = gaussian_to_delta(mu, epsilon)
        yield Outcome(budget.part, f"delta at {epsilon:g}", found.delta_upper, bound)


def _plans(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> tuple[tuple[TradeoffFunction, ...], TradeoffFunction]:
    """The plan that a rule is given, and the product that is promised."""
    each = [one for one, count in zip(epsilons, counts, strict=True) for _ in range(count)]
    given = tuple(pure(budget.limit("function", one)) for one in each)
    promised = [pure(budget.promised("function", one)) for one in each]
    return given, TradeoffFunction.identity().compose(*promised)


def compositor(
    epsilons: Sequence[float], counts: Sequence[int], budget: Budget
) -> Iterator[Outcome]:
    """Shares that are used in their order."""
    given, promised = _plans(epsilons, counts, budget)
    start = Planned(given, 0, Products().start(TradeoffFunction.identity()))
    rule = Shares(TradeoffFunction.__le__)
    return _curve(menu_of(epsilons, pure), start, rule, promised, budget)


def slots(epsilons: Sequence[float], counts: Sequence[int], budget: Budget) -> Iterator[Outcome]:
    """Shares that are used in any order."""
    given, promised = _plans(epsilons, counts, budget)
    menu = menu_of((*epsilons, epsilons[0] / 2), pure)
    return _curve(menu, Slots(given, given), AnyOrder(), promised, budget)


def rungs(epsilons: Sequence[float], counts: Sequence[int], budget: Budget) -> Iterator[Outcome]:
    """As many units of the smallest as launches cost."""
    unit = min(epsilons)
    start = ladder(pure(unit)).start(None)
    units = after(start, map(pure, epsilons), counts).spent
    given, promised = (
        pure(one("function", unit)).power(units) for one in (budget.limit, budget.promised)
    )
    return _curve(menu_of(epsilons, pure), start, Within(given), promised, budget)


def residues(epsilons: Sequence[float], counts: Sequence[int], budget: Budget) -> Iterator[Outcome]:
    """Binned Gaussian noise, and randomized responses: at most three launches."""
    squares = Squares().start(None)
    for name in ("gaussian", "pure"):
        declared = list(map(pure_to_gaussian, epsilons)) if name == "pure" else list(epsilons)
        cost = after(squares, declared, [min(count, 1) for count in counts]).loss
        mu, limit = budget.promised("mu", cost), budget.limit("mu", cost)
        rule = Remembered(Limited(Within(TradeoffFunction.gaussian(limit))))
        start = residue(limit).start(None), MOST
        if name == "pure":
            promised = TradeoffFunction.gaussian(mu)
            yield from _curve(menu_of(epsilons, pure), start, rule, promised, budget)
            continue
        menu = [
            Item(f"{one:g}", TradeoffFunction.gaussian(one), binned_gaussian(one))
            for one in epsilons
        ]
        yield Outcome(budget.part, "mean loss", worst_mean_loss(menu, start, rule), mu**2 / 2)
