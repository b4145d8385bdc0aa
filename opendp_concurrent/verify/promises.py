"""Every (measure, rule) that the package offers, with its promise, to be held against analysts.

``promises()`` lists them; each takes the ε of a menu of randomized responses and a budget, and
tells what the worst analyst reaches and what was promised. The accumulators and rules are those of
production.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf, sqrt
from typing import Any

from ..accounts.rule import Shares, Within
from ..accumulators.advanced import advanced
from ..accumulators.basic import basic
from ..accumulators.best_rule import best_rule
from ..accumulators.either import either
from ..accumulators.from_rule import from_rule
from ..accumulators.ladder import ladder
from ..accumulators.orders_sum import GridCurve, OnOrders
from ..accumulators.planned import Planned
from ..accumulators.renyi import renyi
from ..accumulators.residue import residue
from ..accumulators.slots import AnyOrder, Slots
from ..accumulators.square_sum import Squares
from ..accumulators.tradeoff_product import Products
from ..accumulators.truncated_sum import Truncated
from ..accumulators.zcdp import zcdp
from ..conversions.gaussian_to_approximate import gaussian_to_delta
from ..conversions.pure_to_gaussian import pure_to_gaussian
from ..conversions.pure_to_renyi import pure_to_renyi
from ..conversions.pure_to_zcdp import pure_to_zcdp
from ..conversions.zcdp_to_approximate import zcdp_to_delta
from ..distances import TruncatedConcentrated
from ..measures.numbers import number_at_most
from ..tradeoff.function import TradeoffFunction
from .adversary import worst_analyst
from .mechanism import randomized_response
from .menu import Item, Limited
from .renyi import worst_renyi

ORDERS = (1.5, 2.0, 4.0, 16.0)
ROUNDING = 1e-12  # what doubles may add to a sum of probabilities
TESTS = (0.0, 0.25, 0.5, 1.0, 2.0)  # ε at which whole curves of δ are compared


@dataclass(frozen=True)
class Outcome:
    """What the worst analyst reaches, beside what was promised.

    :ivar worst: δ at the promised ε, or a Rényi divergence
    :ivar promised: bound on it
    """

    worst: float
    promised: float

    @property
    def excess(self) -> float:
        """How far the worst is above the promise; at most 0 where it is kept."""
        return self.worst - self.promised

    @property
    def share(self) -> float:
        """The part of the promise that the worst analyst uses up."""
        if self.promised == 0.0:
            return 0.0 if self.worst <= ROUNDING else inf
        return self.worst / self.promised


@dataclass(frozen=True)
class Promise:
    """A measure and a rule.

    :ivar name: both of them
    """

    name: str
    _check: Callable[[Sequence[float], float, float], list[Outcome]]
    _loosened: float = 1.0

    def check(self, epsilons: Sequence[float], budget: float) -> list[Outcome]:
        """Hold the promise against all analysts with a menu of randomized responses.

        :param epsilons: of the menu
        :param budget: on the scale of ε
        """
        return self._check(epsilons, budget, self._loosened * budget)


def promises(loosened: float = 1.0) -> list[Promise]:
    """All measures and rules of the package.

    :param loosened: the factor by which the rules are given a larger budget than is promised; above
        1 the promises can be broken, which shows that the check can fail

    :example:

    >>> from opendp_concurrent import verify
    >>> for promise in verify.promises()[:2]:
    ...     outcomes = promise.check([0.5, 1.0], 2.0)
    ...     print(promise.name, all(outcome.excess <= 1e-12 for outcome in outcomes))
    MaxDivergence, sum True
    MaxDivergence, compositor True
    """
    checks = {
        "MaxDivergence, sum": _pure(basic()),
        "MaxDivergence, compositor": _compositor,
        "MaxDivergence, from_rule": _pure(from_rule(_ExactSum())),
        **{
            f"Approximate(MaxDivergence), {name}": _approximate(rule)
            for name, rule in _RULES.items()
        },
        "ZeroConcentratedDivergence, sum": _zcdp,
        "Approximate(ZeroConcentratedDivergence), sum, sequential": _approximate_zcdp,
        "RenyiDivergence, orders": _curve,
        "FixedRenyiDivergence, sum": _fixed_renyi,
        "TruncatedConcentratedDivergence, sum": _tcdp,
        "GaussianTradeoff, squares": _gaussian,
        "Tradeoff, compositor": _tradeoff_compositor,
        "Tradeoff, slots": _slots,
        "Tradeoff, ladder": _ladder,
        "Tradeoff, residue": _residue,
    }
    return [Promise(name, check, loosened) for name, check in checks.items()]


DELTA = 0.05
_RULES: dict[str, Callable[[Sequence[float], float], Any]] = {
    "basic": lambda epsilons, budget: basic(),
    "advanced": lambda epsilons, budget: advanced(DELTA / 2),
    "zcdp": lambda epsilons, budget: zcdp(DELTA / 2),
    "renyi": lambda epsilons, budget: renyi(4.0, DELTA / 2),
    "either": lambda epsilons, budget: either(basic(), zcdp(DELTA / 4), renyi(3.0, DELTA / 4)),
    "best_rule": lambda epsilons, budget: best_rule(
        (budget, DELTA / 2), [(epsilon, 0.0) for epsilon in epsilons]
    ),
}


class _ExactSum:
    """The rule of the sum, to be inverted."""

    start = Fraction(0)

    def after(self, state: Fraction, d_mid: float) -> Fraction:
        return state + Fraction(d_mid)

    def continues(self, state: Fraction, d_out: float) -> bool:
        return state <= d_out


def _menu(epsilons: Sequence[float], declare: Callable[[float], Any]) -> list[Item]:
    return [Item(f"{e:g}", declare(e), randomized_response(e)) for e in epsilons]


def _pure(accounting: Any) -> Any:
    def check(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
        found = worst_analyst(_menu(epsilons, float), accounting.start(0.0), Within(limit), budget)
        return [Outcome(found.delta, 0.0)]

    return check


def _compositor(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    """Shares fixed up front; a launch may use less."""
    shares, total = [], basic().start(0.0)
    for epsilon in (*epsilons, *epsilons):
        if total.after(epsilon).within(limit):
            shares.append(epsilon)
            total = total.after(epsilon)
    plan = Planned(tuple(shares), 0, basic().start(0.0))
    rule = Shares(number_at_most)
    found = worst_analyst(_menu(epsilons, float), plan, rule, min(total.loss, budget))
    return [Outcome(found.delta, 0.0)]


def _approximate(rule: Any) -> Any:
    def check(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
        accounting, d_out = rule(epsilons, limit), (limit, DELTA)
        menu = [Item(f"{e:g}", (e, 0.0), randomized_response(e)) for e in epsilons]
        failing = epsilons[0], DELTA / 4
        menu.append(Item(f"{failing}", failing, randomized_response(*failing)))
        found = worst_analyst(menu, accounting.start((0.0, 0.0)), Within(d_out), budget)
        return [Outcome(found.delta, DELTA)]

    return check


def _zcdp(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    rho, spent = pure_to_zcdp(budget), pure_to_zcdp(limit)
    menu = _menu(epsilons, pure_to_zcdp)
    start: Any = basic().start(0.0)
    return [Outcome(worst_renyi(menu, start, Within(spent), a), rho * a) for a in ORDERS]


def _approximate_zcdp(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    rho, d_out = pure_to_zcdp(budget), (pure_to_zcdp(limit), DELTA)
    menu = [
        Item(f"{e:g}", (pure_to_zcdp(e), DELTA / 3), randomized_response(e, DELTA / 3))
        for e in epsilons
    ]
    start: Any = basic().start((0.0, 0.0))
    outcomes = []
    for epsilon in TESTS:
        found = worst_analyst(menu, start, Within(d_out), epsilon)
        outcomes.append(Outcome(found.delta, min(1.0, DELTA + zcdp_to_delta(rho, epsilon))))
    return outcomes


def _curve(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    promised = [pure_to_renyi(budget, order) for order in ORDERS]
    d_out = GridCurve(ORDERS, tuple(pure_to_renyi(limit, order) for order in ORDERS))
    menu = _menu(
        epsilons, lambda e: GridCurve(ORDERS, tuple(pure_to_renyi(e, order) for order in ORDERS))
    )
    start = OnOrders(ORDERS).start(None)
    return [
        Outcome(worst_renyi(menu, start, Within(d_out), order), bound)
        for order, bound in zip(ORDERS, promised, strict=True)
    ]


def _fixed_renyi(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    start: Any = basic().start(0.0)
    outcomes = []
    for order in ORDERS:
        promised, d_out = pure_to_renyi(budget, order), pure_to_renyi(limit, order)
        menu = _menu(epsilons, partial(pure_to_renyi, order=order))
        found = worst_renyi(menu, start, Within(d_out), order)
        outcomes.append(Outcome(found, promised))
    return outcomes


def _tcdp(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    rho, d_out = pure_to_zcdp(budget), TruncatedConcentrated(pure_to_zcdp(limit), 8.0)
    menu = _menu(epsilons, lambda e: TruncatedConcentrated(pure_to_zcdp(e), 16.0 if e < 1 else 8.0))
    start = Truncated().start(None)
    return [
        Outcome(worst_renyi(menu, start, Within(d_out), order), rho * order)
        for order in ORDERS
        if order < d_out.omega
    ]


def _gaussian(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    mu, spent = pure_to_gaussian(0.6 * budget), pure_to_gaussian(0.6 * limit)  # squares are small
    menu, start = _menu(epsilons, pure_to_gaussian), Squares().start(None)
    return [
        Outcome(
            worst_analyst(menu, start, Within(spent), epsilon).delta, gaussian_to_delta(mu, epsilon)
        )
        for epsilon in TESTS
    ]


def _outcomes(menu: list[Item], start: Any, rule: Any, promised: TradeoffFunction) -> list[Outcome]:
    """A whole trade-off function against the worst analyst at each ε."""
    return [
        Outcome(worst_analyst(menu, start, rule, epsilon).delta, float(promised.delta(epsilon)))
        for epsilon in TESTS
    ]


def _plan(epsilons: Sequence[float], loosened: float) -> list[TradeoffFunction]:
    """Each of the menu twice; loosened, one more of the largest."""
    extra = [max(epsilons)] if loosened > 1.0 else []
    return [TradeoffFunction.pure(epsilon) for epsilon in (*epsilons, *epsilons, *extra)]


def _tradeoff_compositor(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    promised = TradeoffFunction.identity().compose(*_plan(epsilons, 1.0))
    start = Products().start(TradeoffFunction.identity())
    plan = Planned(tuple(_plan(epsilons, limit / budget)), 0, start)
    rule = Shares(TradeoffFunction.__le__)
    return _outcomes(_menu(epsilons, TradeoffFunction.pure), plan, rule, promised)


def _slots(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    promised = TradeoffFunction.identity().compose(*_plan(epsilons, 1.0))
    plan = tuple(_plan(epsilons, limit / budget))
    menu = _menu((*epsilons, epsilons[0] / 2), TradeoffFunction.pure)
    return _outcomes(menu, Slots(plan, plan), AnyOrder(), promised)


def _ladder(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    """Six units of the smallest."""
    unit, units = TradeoffFunction.pure(min(epsilons)), 6
    d_out = unit.power(round(units * limit / budget))
    menu, start = _menu(epsilons, TradeoffFunction.pure), ladder(unit).start(None)
    return _outcomes(menu, start, Within(d_out), unit.power(units))


def _residue(epsilons: Sequence[float], budget: float, limit: float) -> list[Outcome]:
    """A budget that the largest and the smallest nearly use up; at most three launches."""
    mu = 0.98 * sqrt(sum(pure_to_gaussian(e) ** 2 for e in (min(epsilons), max(epsilons))))
    loosened = mu * limit / budget
    menu, start = _menu(epsilons, TradeoffFunction.pure), residue(loosened).start(None)
    rule = Limited(Within(TradeoffFunction.gaussian(loosened)))
    return _outcomes(menu, (start, 3), rule, TradeoffFunction.gaussian(mu))
