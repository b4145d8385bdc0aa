"""The promises of all measures and accumulators of the package, to test against all analysts.

:func:`promises` lists them. ``Promise.check`` takes the ε of a menu of randomized responses and the
number of launches that pay for the budget. It compares the loss of the worst analyst with the
promised loss. The accumulators and rules are those of the package itself.

A budget is the cost of some launches, or slightly less. A filter that admits slightly more than its
budget then admits one launch too many, and the promise is broken.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import exp, expm1, fsum, inf, log, prod, sqrt
from operator import methodcaller, mul

import numpy as np
from scipy.special import log_ndtr, ndtr

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
from opendp_concurrent.accounting.ladder import ladder, residue
from opendp_concurrent.accounting.rule import Shares, Within, from_rule
from opendp_concurrent.fdp.function import TradeoffFunction
from opendp_concurrent.measures.conversion import pure_to_renyi, pure_to_zcdp, renyi_to_delta
from opendp_concurrent.measures.divergences import (
    APPROXIMATE_MAX_DIVERGENCE,
    APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE,
    MAX_DIVERGENCE,
    ZERO_CONCENTRATED_DIVERGENCE,
)
from opendp_concurrent.measures.measure import Basic, singleton
from opendp_concurrent.measures.renyi import (
    ApproximateRenyiDivergence,
    FixedRenyiDivergence,
    GridCurve,
    OnOrders,
)
from opendp_concurrent.measures.shapes import Planned, SquareSum
from opendp_concurrent.measures.slots import AnyOrder, Products, Slots
from opendp_concurrent.measures.tradeoffs import gaussian_to_delta, pure_to_gaussian
from opendp_concurrent.measures.truncated import TruncatedConcentrated, TruncatedSum
from opendp_concurrent.numerics.bracket import zcdp_to_delta
from opendp_concurrent.verify.adversary import (
    Item,
    Limited,
    check_depth,
    next_state,
    worst_analyst,
    worst_loss,
    worst_renyi,
)
from opendp_concurrent.verify.mechanism import FiniteMechanism, one_way, randomized_response

JUST_BELOW = 1 - 1e-6  # a share of the cost at which the last launch does not fit
ORDERS = (1.5, 2.0, 4.0, 16.0)
ROUNDING = 1e-12  # largest error of a sum of probabilities in doubles
CURVE = (0.0, 0.25, 0.5, 1.0, 2.0)  # ε at which whole curves of δ are compared
OMEGA, DELTA = 8.0, 0.05
PARTS, RHO_PARTS, ORDER_PARTS = ("epsilon", "delta"), ("rho", "delta"), ("divergence", "delta")
TINY = 2.0**-11  # for ε of this size the mean loss is ε²/2, as in ``advanced``, to 1e-7
BIN, END = 2e-3, 7.5  # width of the bins of Gaussian noise; where the last bins begin
RESIDUE_LAUNCHES = 3  # each step of a residue filter is slow
pure_function, gaussian = TradeoffFunction.pure, TradeoffFunction.gaussian


@dataclass(frozen=True)
class Outcome:
    """The loss of the worst analyst, and the promised loss.

    :ivar part: component of the budget that was at the share, such as "epsilon"
    :ivar about: the quantity that is compared, such as "delta at epsilon"
    """

    part: str
    about: str
    worst: float
    promised: float

    @property
    def excess(self):
        """At most 0 if the promise is kept."""
        if inf in (self.worst, self.promised):
            return 0.0 if self.worst == self.promised else float(self.worst) - float(self.promised)
        return float(Fraction(self.worst) - Fraction(self.promised))

    @property
    def share(self):
        if self.promised == 0.0:
            return 0.0 if self.worst <= ROUNDING else inf
        return float(self.worst) / float(self.promised)


@dataclass(frozen=True)
class Budget:
    """A budget from the cost of ``counts`` launches of randomized responses with ``epsilons``.

    :ivar part: the component at the share; all other components are at their cost
    :ivar share: of the component that is promised
    :ivar loosened: factor by which the bound of the rule exceeds the promise
    """

    epsilons: list
    counts: list
    part: str
    share: float
    loosened: float

    @property
    def launches(self):
        pairs = zip(self.epsilons, self.counts, strict=True)
        return [one for one, count in pairs for _ in range(count)]

    def menu(self, declare):
        """The randomized responses; ``declare`` maps the ε of each to its declared d_mid."""
        return [Item(f"{e:g}", declare(e), randomized_response(e)) for e in self.epsilons]

    def after(self, start, declare):
        return accumulated(start, map(declare, self.epsilons), self.counts)

    def promised(self, part, cost):
        """The promise for a component of the distance, from its cost."""
        return cost * self.share if part == self.part else cost

    def limit(self, part, cost):
        """The bound of the rule for a component of the distance, from its cost."""
        return self.promised(part, cost) * (self.loosened if part == self.part else 1.0)

    def both(self, part, cost):
        """The promise, and a rule with the bound."""
        return self.promised(part, cost), Bound(self.limit(part, cost))

    def outcome(self, about, worst, promised):
        return Outcome(self.part, about, worst, promised)


def accumulated(start, d_mids, counts):
    """The accumulator after ``counts`` launches of each d_mid."""
    for d_mid, count in zip(d_mids, counts, strict=True):
        start = start.after(d_mid, count)
    return start


@dataclass(frozen=True)
class Promise:
    """A measure with an accumulator, the parts of its distance, and how it is checked."""

    name: str
    parts: tuple
    outcomes: object
    loosened: float = 1.0

    def check(self, epsilons, counts, share=JUST_BELOW):
        """Test the promise against all analysts with a menu of randomized responses.

        Each component of the budget is tested in turn, at a share of its cost.
        """
        budgets = [Budget(epsilons, counts, part, share, self.loosened) for part in self.parts]
        return [outcome for budget in budgets for outcome in self.outcomes(budget)]


class Bound(Within):
    """The rule of a filter. Its refusals do not say what remains, for which it would bisect."""

    def remaining(self, accumulator):
        return None


class CachedRule:
    """A rule with its verdicts cached, which depend on the state and d_mid only."""

    def __init__(self, rule):
        self._rule, self._verdicts = rule, {}

    def admits(self, state, d_mid):
        key = state, d_mid
        if key not in self._verdicts:
            self._verdicts[key] = self._rule.admits(state, d_mid)
        return self._verdicts[key]


def admitted_counts(items, accumulator, rule, most=300):
    """The numbers of launches of each item, for all sequences of launches that a rule admits."""
    found, reached, launches = set(), {(accumulator, (0,) * len(items))}, 0
    while reached:
        check_depth(launches, most)
        found |= {counts for _, counts in reached}
        reached = {
            (after, (*counts[:index], counts[index] + 1, *counts[index + 1 :]))
            for state, counts in reached
            for index, item in enumerate(items)
            if (after := next_state(rule, state, item)) is not None
        }
        launches += 1
    return found


def _curve(budget, menu, start, rule, promised, at=CURVE):
    """Compare δ at several ε; ``promised`` maps ε to the promised δ."""
    cached = CachedRule(rule)
    for epsilon in at:
        worst = worst_analyst(menu, start, cached, epsilon).delta_upper
        yield budget.outcome(f"delta at {epsilon:g}", worst, float(promised(epsilon)))


# --- pure, zero-concentrated and Rényi DP, whose losses add up -----------------------------------
#
# Randomized response with ε has loss ε, mean loss ε tanh(ε/2), and the Rényi divergences that
# ``conversions`` declares for it. So some analyst reaches the whole of each budget.


class ExactSum:
    """The continuation rule of the sum, for ``from_rule`` to invert."""

    start = Fraction(0)

    def after(self, state, d_mid):
        return state + Fraction(d_mid)

    def continues(self, state, d_out):
        return state <= d_out


def pure(accounting, budget):
    """Compare the largest loss exactly, and δ at it with 0."""
    start = accounting.start(MAX_DIVERGENCE)
    promised, rule = budget.both("epsilon", budget.after(start, float).loss)
    return _largest_loss(budget, start, rule, promised)


def pure_compositor(budget):
    """Shares that are fixed in advance; a launch may use less than its share."""
    plan = tuple(budget.limit("epsilon", one) for one in budget.launches)
    start = Planned(plan, 0, basic().start(MAX_DIVERGENCE))
    promised = sum(Fraction(budget.promised("epsilon", one)) for one in budget.launches)
    return _largest_loss(budget, start, Shares(MAX_DIVERGENCE.at_most), promised)


def _largest_loss(budget, start, rule, promised):
    menu, losses = budget.menu(float), [Fraction(one) for one in budget.epsilons]
    worst = worst_loss(menu, start, rule, losses=losses)
    yield budget.outcome("largest loss", worst, promised)
    yield from _curve(budget, menu, start, rule, lambda epsilon: 0.0, [float(promised)])


def zcdp_sum(budget):
    """Compare the divergences of all orders, from 1 on."""
    start = basic().start(ZERO_CONCENTRATED_DIVERGENCE)
    rho, rule = budget.both("rho", budget.after(start, pure_to_zcdp).loss)
    return _concentrated(budget, budget.menu(pure_to_zcdp), start, rule, rho, ORDERS)


def _concentrated(budget, menu, start, rule, rho, orders):
    for order in (1.0, *orders):
        worst = worst_renyi(menu, start, rule, order)
        yield budget.outcome(f"divergence of order {order:g}", worst, rho * order)


def renyi_curve(budget):
    """Compare the divergence of each order of a grid."""

    def curve(epsilon):
        return GridCurve(ORDERS, tuple(pure_to_renyi(epsilon, order) for order in ORDERS))

    menu, start = budget.menu(curve), OnOrders(ORDERS).start()
    costs = budget.after(start, curve).loss.values
    rule = Bound(GridCurve(ORDERS, tuple(budget.limit("curve", one) for one in costs)))
    for order, cost in zip(ORDERS, costs, strict=True):
        worst, promised = worst_renyi(menu, start, rule, order), budget.promised("curve", cost)
        yield budget.outcome(f"divergence of order {order:g}", worst, promised)


def fixed_renyi(budget):
    """Compare the divergence of one fixed order, for several orders."""
    for order in ORDERS:
        start = basic().start(singleton(FixedRenyiDivergence, order))
        declare = partial(pure_to_renyi, order=order)
        promised, rule = budget.both("divergence", budget.after(start, declare).loss)
        worst = worst_renyi(budget.menu(declare), start, rule, order)
        yield budget.outcome(f"divergence of order {order:g}", worst, promised)


def truncated_sum(budget):
    """Compare all orders below ω; for ω itself, use a mechanism with a steep divergence there."""
    start = TruncatedSum()
    if budget.part == "omega":
        steep = steep_mechanism()
        d_mid = TruncatedConcentrated(steep.renyi(OMEGA) / OMEGA * (1 + 1e-12), OMEGA)
        rho = start.after(d_mid, budget.counts[0]).loss.rho
        omega = OMEGA / budget.share  # promises more orders than the launches satisfy
        rule, order = Bound(TruncatedConcentrated(rho, omega / budget.loosened)), omega * (1 - 1e-9)
        worst = worst_renyi([Item("steep", d_mid, steep)], start, rule, order)
        yield budget.outcome("divergence below omega", worst, rho * order)
        return

    def declare(epsilon):
        return TruncatedConcentrated(pure_to_zcdp(epsilon), 2 * OMEGA if epsilon < 1 else OMEGA)

    cost = budget.after(start, declare).loss.rho
    rule = Bound(TruncatedConcentrated(budget.limit("rho", cost), OMEGA))
    orders = [order for order in ORDERS if order < OMEGA]
    rho = budget.promised("rho", cost)
    yield from _concentrated(budget, budget.menu(declare), start, rule, rho, orders)


def steep_mechanism():
    """One rare answer; the divergence divided by the order increases beyond the order OMEGA."""
    p, q = exp(-16.0), exp(-18.2)
    return FiniteMechanism((p, 1 - p), (q, 1 - q))


# --- (ε, δ)-DP, approximate zCDP and approximate Rényi DP of one order ---------------------------
#
# Conversions are not tight, so no analyst reaches the whole budget of ``advanced``, ``zcdp`` or
# ``renyi``. Besides δ at ε, two intermediate bounds are therefore tested: the ε that the theorem
# gives for the divergences that an analyst reaches, and the probability that some child fails. The
# formulas here are in doubles and independent of those of the package.


def _best(budget):
    total = sum(map(mul, budget.epsilons, budget.counts))
    return best_rule((total, DELTA / 2), [(epsilon, 0.0) for epsilon in budget.epsilons])


RULES = {
    "basic": lambda budget: basic(),
    "advanced": lambda budget: advanced(DELTA / 2),
    "zcdp": lambda budget: zcdp(DELTA / 2),
    "renyi": lambda budget: renyi(4.0, DELTA / 2),
    "any_time": lambda budget: any_time(DELTA / 2),
    "either": lambda budget: either(basic(), zcdp(DELTA / 4), renyi(3.0, DELTA / 4)),
    "best_rule": _best,
}


def approximate(name, budget):
    """Compare δ at ε, and the two intermediate bounds."""
    for scale in (TINY, 1.0) if name == "advanced" else (1.0,):
        scaled = replace(budget, epsilons=[scale * one for one in budget.epsilons])
        yield from _approximate(scaled, RULES[name](scaled))


def _approximate(budget, accounting):
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


def ladder_at_delta(budget):
    """Compare δ at the ε of the units that the launches cost; the unit is the smallest launch."""
    start = ladder(pure_function(min(budget.epsilons)), DELTA).start()
    menu = budget.menu(lambda epsilon: (epsilon, 0.0))
    cost = budget.after(start, lambda epsilon: (epsilon, 0.0)).loss[0]
    promised, limit = (one("epsilon", cost) for one in (budget.promised, budget.limit))
    found = worst_analyst(menu, start, CachedRule(Bound((limit, DELTA))), promised)
    yield budget.outcome("delta at epsilon", found.delta_upper, DELTA)


def _failing_menu(epsilons, declare, failure):
    """Randomized responses, and the first of them again with a failure that uses up all of δ."""
    pairs = [*((one, 0.0) for one in epsilons), (epsilons[0], failure)]
    return [
        Item(f"{pair}", (declare(pair[0]), pair[1]), randomized_response(*pair)) for pair in pairs
    ]


def _without_failure(budget):
    return [randomized_response(one) for one in (*budget.epsilons, budget.epsilons[0])]


def _promised(budget, parts, menu, start):
    """The promised pair, and the rule of the filter. The budget includes one failing launch."""
    cost = accumulated(start, [item.d_mid for item in menu], (*budget.counts, 1)).loss
    first, second = (budget.promised(*pair) for pair in zip(parts, cost, strict=True))
    limits = tuple(budget.limit(*pair) for pair in zip(parts, cost, strict=True))
    return first, second, CachedRule(Bound(limits))


def _failure(menu, counts):
    """Probability that some launch fails."""
    return 1 - prod((1 - item.d_mid[1]) ** n for item, n in zip(menu, counts, strict=True))


def _slack(accounting):
    if isinstance(accounting, Either):
        return sum(map(_slack, accounting.rules))
    return 0.0 if isinstance(accounting, Basic) else float(accounting.delta_slack)


def theorem_epsilon(accounting, mechanisms, counts):
    """The ε that the theorem of an accumulator gives for the divergences of ``counts`` launches.

    :param mechanisms: that do not fail
    :param counts: number of launches of each
    """

    def total(divergence):
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
    rho = total(_mean_loss)
    if isinstance(accounting, Zcdp):  # the best order
        return _minimum(lambda t: _converted(1 + exp(t), rho * (1 + exp(t)), log_slack))
    assert isinstance(accounting, AnyTime)
    return _mixture_epsilon(rho, accounting.scale, log_slack)


def _mean_loss(mechanism):
    return one_way(mechanism.tables, 1.0, 0)


def _converted(order, divergence, log_slack):
    t = order - 1
    return max(0.0, divergence + log(t / order) - (log_slack + log(order)) / t)


def _mixture_epsilon(rho, scale, log_slack):
    """The largest L + log(1 - δ' m(L)) for the mixture m of ``any_time``."""
    variance = 2 * rho + scale

    def below(z):
        log_mixture = log(4 * scale / variance) / 2 + z * z / 2 + float(log_ndtr(z))
        rest = -expm1(log_slack + log_mixture)
        return -(rho + z * sqrt(variance) + log(rest)) if rest > 0.0 else inf

    return max(0.0, -_minimum(below))


def _minimum(function):
    """The minimum of a function, such as of log(order - 1), that has one local minimum."""
    low, high = -30.0, 30.0
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return function((low + high) / 2)


def _of_parts(budget, menu, start, parts, divergences, to_delta, at=CURVE):
    """Compare divergences without failures, then the failures, then δ at several ε.

    :param divergences: of a mechanism, each with the factor of the first part that bounds it
    """
    first, delta, rule = _promised(budget, parts, menu, start)
    admitted, kept = admitted_counts(menu, start, rule), _without_failure(budget)
    for factor, divergence in divergences:
        each = [divergence(one) for one in kept]
        worst = max(fsum(map(mul, each, counts)) for counts in admitted)
        yield budget.outcome(f"divergence, {factor:g} times", worst, first * factor)
    yield budget.outcome("failures", max(_failure(menu, counts) for counts in admitted), delta)

    def allowed(epsilon):
        return min(1.0, delta + to_delta(first, epsilon))

    yield from _curve(budget, menu, start, rule, allowed, at)


def approximate_zcdp(budget):
    """Children are sequential."""
    menu = _failing_menu(budget.epsilons, pure_to_zcdp, DELTA)
    start = basic().start(APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE)
    divergences = [(1.0, _mean_loss), *((order, methodcaller("renyi", order)) for order in ORDERS)]
    return _of_parts(budget, menu, start, RHO_PARTS, divergences, zcdp_to_delta)


def approximate_fixed(budget):
    """The same at one order, for several orders."""
    for order in ORDERS:
        menu = _failing_menu(budget.epsilons, partial(pure_to_renyi, order=order), DELTA)
        start = basic().start(singleton(ApproximateRenyiDivergence, order))
        divergences, to_delta = (
            [(1.0, methodcaller("renyi", order))],
            partial(renyi_to_delta, order),
        )
        yield from _of_parts(budget, menu, start, ORDER_PARTS, divergences, to_delta, CURVE[::2])


# --- Gaussian DP and f-DP ------------------------------------------------------------------------
#
# Randomized response reaches the whole of its own trade-off function. Gaussian budgets are also
# tested with binned Gaussian noise, whose mean loss is that of the Gaussian to 4e-7.


@lru_cache(maxsize=64)
def binned_gaussian(mu):
    """Gaussian noise on 0 and on ``mu``, in bins. Binning is postprocessing, so it is μ-GDP."""
    edges = np.arange(-END, END + mu, BIN)

    def law(mean):
        below = edges - mean
        # differences of the smaller tail do not cancel
        tail = np.where(below < 0, ndtr(below), -ndtr(-below))
        inner = np.diff(tail) + np.where((below[:-1] < 0) & (below[1:] >= 0), 1.0, 0.0)
        return (float(ndtr(below[0])), *map(float, inner), float(ndtr(-below[-1])))

    return FiniteMechanism(law(0.0), law(mu))


def _gaussian_menu(budget, declare):
    return [Item(f"{mu:g}", declare(mu), binned_gaussian(mu)) for mu in budget.epsilons]


def squares(budget):
    """Binned Gaussian noise with μ from ``epsilons``, then randomized responses with these ε."""
    start = SquareSum()
    mu, rule = budget.both("mu", budget.after(start, float).loss)
    worst = worst_renyi(_gaussian_menu(budget, float), start, rule, 1.0)
    yield budget.outcome("mean loss", worst, mu**2 / 2)
    mu, rule = budget.both("mu", budget.after(start, pure_to_gaussian).loss)
    menu = budget.menu(pure_to_gaussian)
    yield from _curve(budget, menu, start, rule, partial(gaussian_to_delta, mu))


def _plans(budget):
    """The shares of a compositor, and the promised product."""
    given = tuple(pure_function(budget.limit("function", one)) for one in budget.launches)
    promised = [pure_function(budget.promised("function", one)) for one in budget.launches]
    return given, TradeoffFunction.identity().compose(*promised)


def compositor(budget):
    """Shares that are used in their order."""
    given, promised = _plans(budget)
    start = Planned(given, 0, Products().start())
    rule = Shares(TradeoffFunction.__le__)
    return _curve(budget, budget.menu(pure_function), start, rule, promised.delta)


def slots(budget):
    """Shares that are used in any order, also for a smaller launch."""
    given, promised = _plans(budget)
    smaller = replace(budget, epsilons=(*budget.epsilons, budget.epsilons[0] / 2))
    menu = smaller.menu(pure_function)
    return _curve(budget, menu, Slots(given, given), AnyOrder(), promised.delta)


def ladder_units(budget):
    """A ladder whose unit is the smallest launch, with as many units as the launches cost."""
    unit = min(budget.epsilons)
    start = ladder(pure_function(unit)).start()
    units = budget.after(start, pure_function).spent
    given, promised = (
        pure_function(one("function", unit)).power(units) for one in (budget.limit, budget.promised)
    )
    return _curve(budget, budget.menu(pure_function), start, Bound(given), promised.delta)


def gaussian_residue(budget):
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


def promises(loosened=1.0):
    """List the promises of all measures and accumulators of the package.

    :param loosened: the budget of each filter divided by the promised loss. Above 1 the promises
        can be broken, which shows that the check can fail
    """
    epsilon, mu, function = ("epsilon",), ("mu",), ("function",)
    all_of_them = {
        "MaxDivergence, sum": (epsilon, partial(pure, basic())),
        "MaxDivergence, compositor": (epsilon, pure_compositor),
        "MaxDivergence, from_rule": (epsilon, partial(pure, from_rule(ExactSum()))),
        **{
            f"Approximate(MaxDivergence), {one}": (PARTS, partial(approximate, one))
            for one in RULES
        },
        "Approximate(MaxDivergence), ladder": (epsilon, ladder_at_delta),
        "ZeroConcentratedDivergence, sum": (("rho",), zcdp_sum),
        "Approximate(ZeroConcentratedDivergence), sum": (RHO_PARTS, approximate_zcdp),
        "ApproximateRenyiDivergence, sum": (ORDER_PARTS, approximate_fixed),
        "RenyiDivergence, orders": (("curve",), renyi_curve),
        "FixedRenyiDivergence, sum": (("divergence",), fixed_renyi),
        "TruncatedConcentratedDivergence, sum": (("rho", "omega"), truncated_sum),
        "GaussianTradeoff, squares": (mu, squares),
        "Tradeoff, compositor": (function, compositor),
        "Tradeoff, slots": (function, slots),
        "Tradeoff, ladder": (function, ladder_units),
        "Tradeoff, residue": (mu, gaussian_residue),
    }
    return [Promise(name, *parts, loosened) for name, parts in all_of_them.items()]
