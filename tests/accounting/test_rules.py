"""Accounting rules for (ε, δ): published values, the choice among them, odometer and filter."""

import decimal
import math
from functools import cache

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import opendp_concurrent as oc
from opendp_concurrent.accounting.best_rule import _candidates, _scale
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    LedgerMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE

APPROXIMATE = dp.approximate(dp.max_divergence())
RULES = [
    oc.accumulators.basic(),
    oc.accumulators.advanced(1e-6),
    oc.accumulators.zcdp(1e-6),
    oc.accumulators.renyi(22.5, 1e-6),
    oc.accumulators.either(
        oc.accumulators.basic(), oc.accumulators.zcdp(5e-7), oc.accumulators.renyi(22.5, 4e-7)
    ),
]
every = pytest.mark.parametrize("rule", RULES, ids=repr)


class Unlimited:
    """A continuation rule that always continues."""

    start = 0

    def after(self, state, d_mid):
        return state

    def continues(self, state, d_out):
        return True


def launch_of(space, epsilon, delta=0.0):
    return dp.m.make_user_measurement(
        *space, APPROXIMATE, len, lambda d_in: (epsilon * d_in, delta * d_in)
    )


@pytest.mark.parametrize(
    ("rule", "d_out", "epsilon", "launches"),
    [
        (oc.accumulators.basic(), (1.0, 1e-6), 0.01, 99),  # a hundred doubles 0.01 exceed 1
        (oc.accumulators.advanced(1e-6), (1.0, 1e-6), 0.1, 3),
        (oc.accumulators.advanced(1e-6), (1.0, 1e-6), 0.01, 349),
        (oc.accumulators.zcdp(1e-6), (1.0, 1e-6), 0.01, 487),
        (oc.accumulators.renyi(22.2, 1e-6), (1.0, 1e-6), 0.01, 490),
        (oc.accumulators.best_rule((1.0, 1e-6), [(0.01, 0.0)]), (1.0, 1e-6), 0.01, 490),
    ],
    ids=repr,
)
def test_published_numbers_of_launches_are_admitted_for_real(space, rule, d_out, epsilon, launches):
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    root, one = oc.make_concurrent_filter(odometer, 1, d_out)([1, 2]), launch_of(space, epsilon)
    for _ in range(launches):
        assert root(one) == 2
    with pytest.raises(BudgetExceededError):
        root(one)
    assert oc.accumulators.launches_admitted(rule, d_out, [(epsilon, 0.0)]) == launches


def test_published_losses():
    empty = oc.accumulators.advanced(1e-6).start(None)
    assert empty.after((0.1, 0.0), 10).loss[0] == pytest.approx(1.7122581363, abs=1e-10)
    assert empty.after((0.1, 0.0), 100).loss[0] == pytest.approx(5.7565217698, abs=1e-10)
    assert oc.accumulators.advanced(1e-6).largest(1.0) == pytest.approx(0.0349378095, abs=1e-10)
    assert oc.accumulators.zcdp(1e-6).largest(1.0) == pytest.approx(0.0243559704, abs=1e-10)
    assert oc.accumulators.zcdp(1e-5).largest(1.0) == pytest.approx(0.0305565952, abs=1e-10)
    assert oc.accumulators.zcdp(1e-6).largest(3.0) == pytest.approx(0.1850698407, abs=1e-10)


@every
@given(
    losses=st.lists(st.tuples(st.floats(0.0, 0.5), st.sampled_from([0.0, 1e-9, 1e-8])), max_size=6),
    epsilon=st.floats(0.01, 3.0),
)
@settings(max_examples=4)
def test_odometer_and_filter_agree_at_the_boundary(rule, losses, epsilon):
    """Lemma 2.19: a filter admits a launch exactly if the odometer would say at most d_out."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    d_out = (epsilon, 2e-6)
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    told, limited = odometer([1]), oc.make_concurrent_filter(odometer, 1, d_out)([1])
    for loss in losses:
        one = launch_of(space, *loss)
        after = told.loss_after([one], 1)
        fits = after[0] <= d_out[0] and after[1] <= d_out[1]
        if fits:
            limited(one)
            told(one)
            assert limited.privacy_loss() == told.privacy_loss(1) == after
        else:
            with pytest.raises(BudgetExceededError) as refused:
                limited(one)
            assert refused.value.spent == told.privacy_loss(1)
            assert refused.value.asked == loss
    remaining = limited.remaining()
    if limited.privacy_loss() != (0.0, 0.0):
        limited(launch_of(space, *remaining))


@every
def test_losses_at_other_distances(space, rule):
    root = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)([1])
    assert root.privacy_loss(1) == root.privacy_loss(3) == (0.0, 0.0)
    for epsilon, delta in ((0.125, 0.0), (0.25, 1e-9), (0.125, 0.0)):
        root(launch_of(space, epsilon, delta))
    for d_in in (1, 2, 3):
        start = rule.start(APPROXIMATE_MAX_DIVERGENCE)
        expected = start.after((0.125 * d_in, 0.0), 2).after((0.25 * d_in, 1e-9 * d_in)).loss
        assert root.privacy_loss(d_in) == expected
    assert root.privacy_loss(2)[0] > root.privacy_loss(1)[0]


def test_a_child_odometer_is_charged_by_the_rule_of_each_ancestor(space):
    def odometer(rule):
        return oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)

    root = odometer(oc.accumulators.advanced(1e-6))([1, 2])
    child = root(odometer(oc.accumulators.basic()))
    for _ in range(10):
        child(launch_of(space, 0.125))
    assert child.privacy_loss(1) == (1.25, 0.0)
    assert (
        root.privacy_loss(1)
        == oc.accumulators.advanced(1e-6).start(None).after((0.125, 0.0), 10).loss
    )


@every
def test_the_rule_is_part_of_the_identity(space, rule):
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    assert repr(rule) in repr(odometer)
    assert repr(rule) in repr(oc.make_concurrent_filter(odometer, 1, (1.0, 1e-5)))
    assert repr(rule) in repr(odometer([1]))
    assert eval(repr(rule), vars(oc.accumulators)) == rule
    assert sum(rule == other for other in RULES) == 1


# --- bad input ----------------------------------------------------------------------------------


def test_rules_are_combined_with_rules_that_have_a_slack():
    either, own = oc.accumulators.either, oc.accumulators.from_rule(Unlimited())
    basic = oc.accumulators.basic()
    for rules in ((), (basic,), (basic, 3), (own, basic)):
        with pytest.raises(InvalidTypeError, match="^rules"):
            either(*rules)
    with pytest.raises(InvalidTypeError, match="^accumulator must be one of"):
        oc.accumulators.launches_admitted(3, (1.0, 0.1), [(0.1, 0.0)])
    with pytest.raises(InvalidTypeError, match="^rule must have"):
        oc.accumulators.from_rule(3)


def test_a_rule_for_another_measure_is_refused(space):
    for measure in (dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())):
        with pytest.raises(UnsupportedMeasureError, match="^accumulator .* supports Approximate"):
            oc.make_concurrent_odometer(*space, measure, accumulator=oc.accumulators.zcdp(1e-6))
    with pytest.raises(UnsupportedMeasureError, match="whose distance is one number"):
        oc.make_concurrent_odometer(
            *space, APPROXIMATE, accumulator=oc.accumulators.from_rule(Unlimited())
        )
    for wrong in (3, "zcdp", oc.accumulators.zcdp):
        with pytest.raises(InvalidTypeError, match="^accumulator must be one of oc.accumulators"):
            oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=wrong)


def test_a_bound_below_the_slack_is_refused(space):
    odometer = oc.make_concurrent_odometer(
        *space, APPROXIMATE, accumulator=oc.accumulators.zcdp(1e-6)
    )
    with pytest.raises(InvalidValueError, match=r"^d_out\[1\] .1e-07. must be at least the slack"):
        oc.make_concurrent_filter(odometer, 1, (1.0, 1e-7))
    oc.make_concurrent_filter(odometer, 1, (1.0, 1e-6))


# --- the choice of the accumulator that admits the most launches of a kind ------------------------


@given(
    st.floats(0.001, 0.3),
    st.floats(0.3, 8.0),
    st.sampled_from([1e-4, 1e-6, 1e-9]),
)
@settings(max_examples=10)
def test_the_best_rule_is_never_below_the_others(epsilon, bound, delta):
    d_out, typical = (bound, delta), [(epsilon, 0.0)]
    best = oc.accumulators.launches_admitted(
        oc.accumulators.best_rule(d_out, typical), d_out, typical
    )
    for rule in (
        oc.accumulators.basic(),
        oc.accumulators.advanced(delta),
        oc.accumulators.zcdp(delta),
        oc.accumulators.renyi(10.0, delta),
    ):
        assert best >= oc.accumulators.launches_admitted(rule, d_out, typical)


def test_the_best_rule_leaves_delta_for_the_launches():
    d_out, typical = (1.0, 1e-6), [(0.01, 1e-9)]
    best = oc.accumulators.best_rule(d_out, typical)
    admitted = oc.accumulators.launches_admitted(best, d_out, typical)
    slack = best.rules[1].delta_slack
    assert admitted > 450
    assert slack + admitted * 1e-9 <= 1e-6
    assert admitted >= oc.accumulators.launches_admitted(oc.accumulators.zcdp(5e-7), d_out, typical)


def test_the_slack_leaves_the_average_delta_of_the_launches():
    d_out = (1.0, 1e-6)
    by_turns = oc.accumulators.best_rule(d_out, [(0.01, 0.0), (0.01, 2e-9)])
    assert by_turns == oc.accumulators.best_rule(d_out, [(0.01, 1e-9)])


@pytest.mark.parametrize(
    ("epsilon", "bound"),
    [(1e-7, 0.5), (1e-6, 8.0), (1e-5, 0.5), (1e-3, 2.0), (0.1, 2.0), (0.05, 20.0), (1.0, 5000.0)],
)
def test_the_order_of_the_best_rule_is_best_among_its_neighbours(epsilon, bound):
    d_out, typical = (bound, 1e-6), [(epsilon, 0.0)]
    found = _candidates(d_out, typical)[2]
    order = found.order
    assert found.delta_slack == 1e-6  # all of it, as the launches need none

    def admitted(factor):
        near = oc.accumulators.renyi(1.0 + (order - 1.0) * factor, 1e-6)
        return oc.accumulators.launches_admitted(near, d_out, typical)

    best = oc.accumulators.launches_admitted(oc.accumulators.renyi(order, 1e-6), d_out, typical)
    assert best >= (1 - 1e-4) * max(map(admitted, (0.5, 0.8, 0.95, 1.05, 1.2, 2.0)))


@pytest.mark.filterwarnings("error")
def test_counting_ends_at_its_limit_whatever_the_length_of_a_turn():
    tiny = (1e-200, 0.0)
    best = oc.accumulators.best_rule((1.0, 1e-6), [tiny])
    for rule, turn in ((oc.accumulators.basic(), 1), (oc.accumulators.basic(), 7), (best, 1)):
        assert oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [tiny] * turn) == 10**15


def test_the_best_rule_for_a_mixture_of_launches():
    d_out, typical = (2.0, 1e-6), [(0.01, 0.0), (0.05, 0.0), (0.02, 0.0)]
    best = oc.accumulators.best_rule(d_out, typical)
    admitted = oc.accumulators.launches_admitted(best, d_out, typical)
    assert (
        admitted > oc.accumulators.launches_admitted(oc.accumulators.basic(), d_out, typical) == 74
    )
    state = best.start(None)
    for index in range(admitted):
        state = state.after(typical[index % 3])
    assert state.within(d_out)
    assert not state.after(typical[admitted % 3]).within(d_out)


@pytest.mark.parametrize(
    ("d_out", "typical"),
    [
        ((1.0, 0.0), [(0.01, 0.0)]),  # no δ for a slack
        ((1.0, 1e-9), [(0.01, 1e-9)]),  # one launch takes it all
        ((1.0, 1e-6), [(1.0, 0.0)]),  # one launch takes all ε
        ((math.inf, 1e-6), [(1.0, 0.0)]),
        ((1.0, 1e-6), [(1e200, 0.0)]),
        ((0.0, 1e-6), [(1.0, 0.0)]),
        ((1.0, 0.0), [(0.01, 1e-9)]),
        ((1.0, 1.0), [(0.01, 0.0)]),  # a slack of 1 is no slack
        ((1.0, 1e-9), [(0.01, 1e-8)]),  # no launch fits
    ],
)
def test_the_best_rule_is_basic_where_a_slack_gains_nothing(d_out, typical):
    assert oc.accumulators.best_rule(d_out, typical) == oc.accumulators.basic()


# --- the rules' losses against mpmath, with up to ten million launches and extreme parameters -----

EPSILONS = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 50.0]
COUNTS = [1, 1000, 10**7]
SLACKS = [1e-300, 1e-6, 0.5]
POINTS = [(e, k, s) for e in EPSILONS for k in COUNTS for s in SLACKS]


def check(found, exact, slack, deltas):
    assert mpf(found[0]) >= exact * (1 - mpf("1e-60"))
    assert mpf(found[0]) <= exact * (1 + mpf("1e-12")) + mpf("1e-300")
    total = mpf(slack) + deltas
    assert total <= mpf(found[1]) <= total * (1 + mpf("1e-15"))


@pytest.mark.parametrize(("epsilon", "count", "slack"), POINTS)
def test_advanced(epsilon, count, slack):
    with mp.workdps(100):
        total = count * mpf(epsilon) ** 2
        exact = mp.sqrt(2 * mp.log(1 / mpf(slack)) * total) + total / 2
        found = oc.accumulators.advanced(slack).start(None).after((epsilon, 1e-12), count).loss
        check(found, exact, slack, count * mpf(1e-12))


@pytest.mark.parametrize(("epsilon", "count", "slack"), POINTS)
def test_zcdp(epsilon, count, slack):
    with mp.workdps(100):
        e = mpf(epsilon)
        rho = count * e * mp.tanh(e / 2)
        target = -mp.log(mpf(slack))

        def slope(t):
            return rho * t * t + mp.log(1 + t) - target

        low, high = mpf("1e-30"), mpf("1e140")
        for _ in range(900):
            middle = mp.sqrt(low * high)
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        t = low
        exact = (1 + t) * rho + mp.log(t / (1 + t)) + (target - mp.log(1 + t)) / t
        found = oc.accumulators.zcdp(slack).start(None).after((epsilon, 1e-12), count).loss
        check(found, max(exact, 0), slack, count * mpf(1e-12))


@pytest.mark.parametrize(("epsilon", "count", "slack"), POINTS)
@pytest.mark.parametrize("order", [1 + 1e-6, 2.0, 22.5, 1e6])
def test_renyi(epsilon, count, slack, order):
    with mp.workdps(100):
        e, a, d = mpf(epsilon), mpf(order), mpf(slack)
        one = mp.log((mp.exp(a * e) + mp.exp(e - a * e)) / (1 + mp.exp(e))) / (a - 1)
        exact = count * one + mp.log((a - 1) / a) - (mp.log(d) + mp.log(a)) / (a - 1)
        found = oc.accumulators.renyi(order, slack).start(None).after((epsilon, 1e-12), count).loss
        check(found, max(exact, 0), slack, count * mpf(1e-12))


# --- ? --------------------------------------------------------------------------------------------

EITHER = oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.any_time(1e-6))


def exact(spent, slack, scale):
    """The supremum by golden section in 50 digits, of the mixture as an integral in closed form."""
    with mp.workdps(50):
        spent, slack, scale = mp.mpf(spent), mp.mpf(slack), mp.mpf(scale)
        variance = 2 * spent + scale
        deviation = mp.sqrt(variance)

        def at(z):
            mixture = 2 * mp.sqrt(scale / variance) * mp.exp(z * z / 2) * mp.ncdf(z)
            rest = 1 - slack * mixture
            return spent + z * deviation + mp.log(rest) if rest > 0 else -mp.inf

        low, high = mp.mpf(-60), mp.mpf(60)
        ratio = (mp.sqrt(5) - 1) / 2
        for _ in range(110):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, b) if at(a) >= at(b) else (a, high)
        return max(at(low), mp.mpf(0))


def test_the_mixture_is_the_integral_over_the_orders():
    spent, scale, loss = mp.mpf("0.3"), mp.mpf("0.2"), mp.mpf("2.5")

    def weighted(t):
        return mp.sqrt(2 * scale / mp.pi) * mp.exp(
            -scale * t * t / 2 + t * (loss - (1 + t) * spent)
        )

    variance = 2 * spent + scale
    z = (loss - spent) / mp.sqrt(variance)
    closed = 2 * mp.sqrt(scale / variance) * mp.exp(z * z / 2) * mp.ncdf(z)
    assert mp.almosteq(mp.quad(weighted, [0, 2, 5, 20]), closed, rel_eps=1e-12)


@given(
    st.floats(-60, 12).map(lambda one: 2.0**one),
    st.sampled_from([1e-300, 1e-12, 1e-6, 1e-2, 0.3, 0.9]),
    st.sampled_from([2.0**-10, 0.25, 1.0, 8.0]),
)
@settings(max_examples=8)
def test_a_reading_is_the_least_double_at_or_above_the_exact_one(spent, slack, planned):
    rule = oc.accumulators.any_time(slack, planned)
    found, true = rule.epsilon(spent), exact(spent, slack, rule.scale)
    assert found >= true
    assert found <= max(true * (1 + mp.mpf(2) ** -51), mp.mpf("1e-20"))


def test_extreme_sums_have_readings_that_grow():
    for slack in (5e-324, 1e-6, 0.999):
        rule = oc.accumulators.any_time(slack)
        found = [rule.epsilon(spent) for spent in (0.0, 5e-324, 1e-100, 1e-3, 1.0, 1e6, 1e299)]
        assert found == sorted(found)
        assert found[0] == 0.0
        assert rule.epsilon(math.inf) == math.inf


def test_the_price_is_what_the_docs_say():
    assert oc.accumulators.launches_admitted(EITHER, (1.0, 1e-6), [(0.01, 0.0)]) == 431


def fixed_time(epsilon, slack, launches):
    """Optimal readings for a fixed time: the least ε of each number of launches, at the slack."""
    return [
        oc.fdp.TradeoffFunction.pure(epsilon).power(n).epsilon(slack)
        for n in range(1, launches + 1)
    ]


@pytest.mark.parametrize(
    ("epsilon", "slack", "launches"),
    [(0.1, 1e-2, 400), pytest.param(0.1, 1e-6, 400, marks=pytest.mark.slow)],
)
def test_who_stops_at_the_worst_time_gains_nothing(epsilon, slack, launches):
    rule = oc.accumulators.any_time(slack, planned=8.0)
    readings = [rule.start().after((epsilon, 0.0), n).loss[0] for n in range(1, launches + 1)]
    assert 0.1 * slack < oc.verify.worst_stopping(readings, epsilon) <= slack
    # a reading for a fixed time is broken, so the check can fail
    few = fixed_time(epsilon, slack, 100)
    assert oc.verify.worst_stopping(few, epsilon) > 1.3 * slack
    assert oc.verify.worst_stopping([reading + 1 for reading in readings], epsilon) < slack / 2


def test_with_the_plain_sum_it_holds_at_any_time_too():
    rule = oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.any_time(1e-2))
    readings = [rule.start().after((0.1, 0.0), n).loss[0] for n in range(1, 301)]
    assert readings[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert 1e-3 < oc.verify.worst_stopping(readings, 0.1) <= 1e-2


def most(rule, menu, launches):
    """The largest δ of an analyst who chooses each launch, and when to stop, by the answers."""

    @cache
    def value(counts, loss_counts):
        epsilon = 0.0
        if any(counts):
            total = rule.start()
            for one, count in zip(menu, counts, strict=True):
                total = total.after((one, 0.0), count) if count else total
            epsilon = total.loss[0]
        loss = sum(one * count for one, count in zip(menu, loss_counts, strict=True))
        best = max(0.0, -math.expm1(epsilon - loss))
        if sum(counts) == launches:
            return best
        for place, one in enumerate(menu):
            more = tuple(count + (at == place) for at, count in enumerate(counts))
            up = 1 / (1 + math.exp(-one))
            gains = [
                value(more, tuple(n + sign * (at == place) for at, n in enumerate(loss_counts)))
                for sign in (1, -1)
            ]
            best = max(best, up * gains[0] + (1 - up) * gains[1])
        return best

    return value((0,) * len(menu), (0,) * len(menu))


@pytest.mark.parametrize("slack", [0.01, 0.2])
def test_who_also_chooses_the_launches_by_the_answers_gains_nothing(slack):
    menu, rule = (0.1, 0.3, 1.0), oc.accumulators.any_time(slack, planned=2.0)
    reached = most(rule, menu, 7)
    assert 0.02 * slack < reached <= slack
    assert most(oc.accumulators.advanced(0.9), menu, 7) > slack  # whose readings are smaller


@pytest.mark.parametrize("trap", [decimal.FloatOperation, decimal.Inexact, decimal.Rounded])
def test_the_decimals_of_the_caller_do_not_matter(trap):
    slack = 1e-7 if trap is decimal.Inexact else 1e-8 if trap is decimal.Rounded else 1e-9
    with decimal.localcontext() as context:
        context.traps[trap], context.prec = True, 3
        scale = oc.accumulators.any_time(slack).scale
    assert scale == _scale.__wrapped__(slack, 1.0)


def test_what_was_begun_without_it_is_not_read_at_any_time(tmp_path):
    """The mixture must be fixed before the first launch, and so are its arguments."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    measure, d_out = dp.approximate(dp.max_divergence()), (1.0, 1e-5)

    def opened(accumulator, how):
        odometer = oc.make_concurrent_odometer(*space, measure, accumulator=accumulator)
        with how(tmp_path / "budget.db", dataset="rows") as ledger:
            oc.make_concurrent_filter(odometer, 1, d_out, ledger=ledger)([1, 2, 3])

    opened(oc.accumulators.any_time(1e-6), create_ledger)
    opened(oc.accumulators.any_time(1e-6), open_ledger)
    for other in (
        oc.accumulators.zcdp(1e-6),
        oc.accumulators.any_time(1e-7),
        oc.accumulators.any_time(1e-6, planned=2.0),
    ):
        with pytest.raises(LedgerMismatchError, match="accumulator"):
            opened(other, open_ledger)
