"""The loss of a selection, against exact laws of the best of K answers of finite mechanisms."""

import math

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.measures.renyi import READ
from opendp_concurrent.mechanisms.selection import (
    RandomRuns,
    SelectionCurve,
    approximate_selection,
    fixed_selection,
    function_selection,
    most_of,
    pure_selection,
    scale_for,
)

from .selection_oracle import renyi, selection, weights

CRUMB = 1e-11
ORDERS = (1.5, 2.0, 4.0, 16.0)
LAWS = [(1.2, 1.0), (5.0, 1.0), (40.0, 1.0), (5.0, 0.5), (3.0, 0.0), (12.0, 0.0)]


def runs_of(mean, eta, most=None):
    scale = scale_for(mean, eta)
    return RandomRuns(scale, eta, most_of(scale) if most is None else most)


def worst(epsilon):
    """Randomized response of what is better than a rare answer, which is e^ε times as likely."""
    up, rare = math.exp(epsilon), 1e-7
    better = 1 / (1 + up)
    first, second = (rare * up, better), (rare, better * up)
    return verify.FiniteMechanism(
        (1 - sum(first), *first),
        (1 - sum(second), *second),
    )


@pytest.mark.parametrize(("mean", "eta"), LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_the_pure_bound_is_reached_and_not_exceeded(mean, eta, epsilon):
    runs = runs_of(mean, eta)
    bound = pure_selection(runs, epsilon)
    found = selection(worst(epsilon), weights(runs.scale, eta, runs.most)).epsilon()
    assert 0.999 * bound <= found <= bound + 1e-5  # rare answers lose digits
    assert bound <= (2 + eta) * epsilon


@pytest.mark.parametrize("most", [1, 2, 3, 10, 50])
@pytest.mark.parametrize(("mean", "eta"), LAWS)
def test_a_largest_number_of_runs_costs_nothing(mean, eta, most):
    runs, free = runs_of(mean, eta, most), runs_of(mean, eta)
    law = weights(runs.scale, eta, most)
    for epsilon in (0.1, 1.0):
        bound = pure_selection(runs, epsilon)
        assert bound == pure_selection(free, epsilon)
        assert selection(worst(epsilon), law).epsilon() <= bound + 1e-5


def test_a_fixed_number_of_runs_is_seen_by_the_oracle():
    up = math.exp(0.1)
    bound = pure_selection(runs_of(50.0, 1.0), 0.1)
    one = verify.FiniteMechanism((up / (1 + up), 1 / (1 + up)), (1 / (1 + up), up / (1 + up)))
    assert selection(one, [0.0] * 49 + [1.0]).epsilon() > 10 * bound


def test_one_shape_less_is_seen_by_the_oracle():
    """The bound of η = 0 for runs that are drawn with η = 1."""
    drawn = runs_of(20.0, 1.0)
    claimed = RandomRuns(drawn.scale, 0.0, drawn.most)
    found = selection(worst(1.0), weights(drawn.scale, 1.0, drawn.most)).epsilon()
    assert found > 1.4 * pure_selection(claimed, 1.0)


def laws(epsilon):
    """Pairs of laws on up to six answers, each at most e^ε times as likely on the other one."""

    def pair(draws):
        first = [one for one, _ in draws]
        second = [one * math.exp(tilt * epsilon / 2) for one, tilt in draws]
        return verify.FiniteMechanism(
            tuple(one / math.fsum(first) for one in first),
            tuple(one / math.fsum(second) for one in second),
        )

    answer = st.tuples(st.floats(1e-3, 1.0), st.floats(-1.0, 1.0) | st.sampled_from([-1.0, 1.0]))
    return st.lists(answer, min_size=2, max_size=6).map(pair)


@given(laws(1.5), st.sampled_from(LAWS), st.sampled_from([None, 2, 7]))
def test_no_finite_mechanism_exceeds_the_bounds(one, law, most):
    runs = runs_of(*law, most)
    best = selection(one, weights(runs.scale, runs.eta, runs.most))
    assert best.epsilon() <= pure_selection(runs, one.epsilon()) + 1e-9

    def curve(order):
        return max(
            renyi(*pair, order) for pair in ((one.first, one.second), (one.second, one.first))
        )

    bound = SelectionCurve(runs, curve)
    for order in ORDERS:
        for pair in ((best.first, best.second), (best.second, best.first)):
            exact = renyi(*pair, order)
            assert exact <= bound(order) + 1e-9
            assert exact <= fixed_selection(runs, order, curve(order)) + 1e-9


def test_the_renyi_bound_without_the_mean_is_seen_by_the_oracle():
    """An answer that is best of all, and rare on both: the law of K multiplies its probability."""
    runs = runs_of(40.0, 1.0)
    rare = 1e-9
    one = verify.FiniteMechanism((1 - rare, rare), (1 - rare**1.5, rare**1.5))
    best = selection(one, weights(runs.scale, 1.0, runs.most))
    order = 1.5
    exact, alone = (renyi(each.first, each.second, order) for each in (best, one))
    assert exact > alone + 1e-6
    assert exact <= fixed_selection(runs, order, alone) + CRUMB


@pytest.mark.parametrize(("mean", "eta"), [(10.0, 1.0), (100.0, 1.0), (100.0, 0.0), (7.0, 0.5)])
@pytest.mark.parametrize("rho", [0.01, 0.5])
def test_the_curve_agrees_with_the_formula(mean, eta, rho):
    """[PS22, Theorem 2] in 30 digits, minimised over the same orders."""
    runs = runs_of(mean, eta)
    curve = SelectionCurve(runs, lambda order: rho * order)
    with mp.workdps(30):
        gamma = 1 - mp.exp(-1 / mp.mpf(runs.scale))
        h = mp.mpf(eta)
        average = (
            (1 / gamma - 1) / -mp.log(gamma)
            if eta == 0
            else h * (1 - gamma) / (gamma * (1 - gamma**h))
        )
        assert float(average) == pytest.approx(mean, rel=1e-9)
        middle = min((1 - 1 / mp.mpf(m)) * rho * m - mp.log(gamma) / m for m in READ)
        for alpha in (1.0625, 2.0, 7.0, 1024.0):
            best = min(
                rho * mp.mpf(order) + (1 + h) * middle + mp.log(average) / (order - 1)
                for order in READ
                if order >= alpha
            )
            assert curve(alpha) == pytest.approx(float(best), rel=1e-12)
            assert curve(alpha) >= float(best) * (1 - 1e-16)


def test_values_of_the_theory():
    """ρ = 0.01 and δ = 1e-6: 1.2769 and 1.5907 at the best real orders, a little more on a grid."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    for rho, mean, known in ((0.01, 10.0, 1.2769), (0.01, 100.0, 1.5907), (0.05, 100.0, 3.5747)):
        one = dp.m.make_user_measurement(
            *space, dp.zero_concentrated_divergence(), len, lambda d, rho=rho: rho * d * d
        )
        best = oc.c.make_private_selection(one, mean)
        found = oc.c.cast(best, dp.approximate(dp.max_divergence()), delta=1e-6, orders=READ).map(
            1
        )[0]
        assert known - 5e-5 <= found <= 1.01 * known


def test_order_one_needs_no_divergence():
    """A run whose divergence is large at the one order that is known costs (1+η) log(1/γ)."""
    runs = runs_of(3.0, 1.0)
    gamma = -math.expm1(-1 / runs.scale)
    assert fixed_selection(runs, 2.0, 50.0) == pytest.approx(
        50.0 + 2 * -math.log(gamma) + math.log(3.0), rel=1e-9
    )
    assert fixed_selection(runs, 2.0, 0.01) == pytest.approx(
        0.01 + 2 * (0.005 + -math.log(gamma) / 2) + math.log(3.0), rel=1e-9
    )


def test_losses_at_the_ends():
    runs = runs_of(20.0, 1.0)
    assert pure_selection(runs, 0.0) == fixed_selection(runs, 2.0, 0.0) == 0.0
    assert pure_selection(runs, math.inf) == fixed_selection(runs, 2.0, math.inf) == math.inf
    gamma = -math.expm1(-1 / runs.scale)
    assert pure_selection(runs, 1e6) == pytest.approx(1e6 + 2 * -math.log(gamma), rel=1e-12)
    assert pure_selection(runs, 1e-300) <= 3e-300
    nothing = SelectionCurve(runs, lambda order: 0.0)
    assert nothing(2.0) == 0.0
    for alpha in (1.0, 0.5, math.nan):
        with pytest.raises(oc.errors.InvalidValueError, match=r"^alpha .* must be above 1"):
            nothing(alpha)
    beyond = SelectionCurve(runs, lambda order: 0.1 if order <= 8 else math.inf)
    assert beyond(9.0) == math.inf
    assert beyond(8.0) < math.inf
    assert beyond(1.1) <= beyond(8.0)


# --- the profile of a selection, against exact laws --------------------------------------------

T = oc.TradeoffFunction
CRUMB_OF_PROFILES = 1e-10


def with_gamma(gamma, eta=1.0):
    return RandomRuns(-1 / math.log1p(-gamma), eta, 10**6)


@pytest.mark.parametrize(
    ("mu", "mean", "eta", "known"),
    [
        (math.sqrt(0.02), 100.0, 1.0, 1.1953236002),
        (0.5, 10.0, 1.0, 3.3825125088),
        (1.0, 100.0, 0.0, 7.9957915689),
    ],
)
def test_known_losses_of_gaussian_runs(mu, mean, eta, known):
    found = function_selection(runs_of(mean, eta), T.gaussian(mu)).epsilon(1e-6)
    assert found == pytest.approx(known, rel=1e-4)
    assert found >= known * (1 - 1e-9)


def test_known_losses_of_pure_and_approximate_runs():
    for epsilon, known in ((1.0, 2.5913440783), (0.1, 0.2635912846)):
        runs = with_gamma(0.1)
        assert function_selection(runs, T.pure(epsilon)).epsilon(0.0) == pytest.approx(known)
        assert approximate_selection(runs, (epsilon, 0.0)) == pytest.approx((known, 0.0))
    found = approximate_selection(with_gamma(0.01), (0.1, 1e-9))
    assert found == pytest.approx((0.2960331990, 1e-7), rel=1e-9)


def test_losses_that_say_nothing_or_all():
    runs = runs_of(10.0, 1.0)
    assert approximate_selection(runs, (0.0, 0.0)) == (0.0, 0.0)
    assert approximate_selection(runs, (math.inf, 0.0))[0] == math.inf
    assert approximate_selection(runs, (0.5, 0.2))[1] == 1.0
    assert function_selection(runs, T.identity()) == T.identity()
    assert function_selection(runs, T.worst()) == T.worst()
    assert function_selection(runs, T.pure(800.0)) == T.worst()


CAPPED = [(1.2, 1.0, None), (5.0, 1.0, None), (30.0, 1.0, 20), (5.0, 0.5, 7), (4.0, 0.0, None)]
numbers = st.lists(st.integers(1, 40), min_size=2, max_size=5)


def claimed(runs, mechanism):
    """The bound for runs of a finite mechanism, at some ε; both orders of the datasets count."""
    function = T.finite(mechanism.first, mechanism.second).both_directions()
    bound = function_selection(runs, function)
    at = np.linspace(0.0, 1.5 * min(bound.epsilon(1e-9), 30.0), 12)
    return at, bound.delta(at)


@pytest.mark.parametrize(("mean", "eta", "most"), CAPPED)
@given(first=numbers, second=numbers)
@settings(max_examples=3)
def test_no_selection_exceeds_its_profile(mean, eta, most, first, second):
    size = min(len(first), len(second))
    laws = [[one / sum(law[:size]) for one in law[:size]] for law in (first, second)]
    mechanism, runs = verify.FiniteMechanism(*laws), runs_of(mean, eta, most)
    best = selection(mechanism, weights(runs.scale, eta, runs.most))
    for epsilon, delta in zip(*claimed(runs, mechanism), strict=True):
        assert best.delta(epsilon) <= delta + CRUMB_OF_PROFILES


@pytest.mark.parametrize(("mean", "eta", "most"), CAPPED)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-2)])
def test_runs_that_may_fail(mean, eta, most, epsilon, delta):
    runs = runs_of(mean, eta, most)
    one = verify.randomized_response(epsilon, delta)
    order = sorted(range(len(one.first)), key=lambda at: one.first[at] - one.second[at])
    bound = approximate_selection(runs, (epsilon, delta))
    for places in (order, order[::-1]):  # what scores best says most, or least
        sorted_runs = verify.FiniteMechanism(
            [one.first[at] for at in places], [one.second[at] for at in places]
        )
        best = selection(sorted_runs, weights(runs.scale, eta, runs.most))
        assert best.delta(bound[0]) <= bound[1] + CRUMB_OF_PROFILES


def test_one_shape_less_and_a_fixed_number_are_seen_by_the_oracle():
    rare = 1e-4
    up = math.exp(1.0)
    first, second = (rare * up, 1 / (1 + up)), (rare, up / (1 + up))
    one = verify.FiniteMechanism((1 - sum(first), *first), (1 - sum(second), *second))
    drawn = runs_of(20.0, 1.0)
    best = selection(one, weights(drawn.scale, 1.0, drawn.most))
    at, deltas = claimed(RandomRuns(drawn.scale, 0.0, drawn.most), one)
    assert max(best.delta(e) - d for e, d in zip(at, deltas, strict=True)) > 1e-5
    more, less = math.exp(0.1) / (1 + math.exp(0.1)), 1 / (1 + math.exp(0.1))
    fixed = selection(verify.FiniteMechanism((more, less), (less, more)), [0.0] * 49 + [1.0])
    assert fixed.epsilon() > 10 * approximate_selection(runs_of(50.0, 1.0), (0.1, 0.0))[0]
