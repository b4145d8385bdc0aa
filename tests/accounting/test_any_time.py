import decimal
import math
from functools import cache

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import opendp_concurrent as oc
from opendp_concurrent.accounting.best_rule import _scale
from opendp_concurrent.errors import LedgerMismatchError
from opendp_concurrent.ledger import create_ledger, open_ledger

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
    admitted = oc.accumulators.launches_admitted
    bound, small = (1.0, 1e-6), [(0.01, 0.0)]
    assert admitted(EITHER, bound, small) == 431
    assert admitted(oc.accumulators.zcdp(1e-6), bound, small) == 487
    assert EITHER.start().after((0.3, 0.0)).loss == (0.3, 1e-6)


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
