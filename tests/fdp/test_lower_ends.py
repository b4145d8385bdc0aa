"""0.1.0 said lower ends that were above the truth, and raised raw errors for some products."""

from fractions import Fraction
from heapq import heappush
from math import e, exp, inf, pi, sqrt

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp import bounds as search
from opendp_concurrent.fdp.bounds import Bounds
from opendp_concurrent.measures import slots
from opendp_concurrent.measures.tradeoffs import TRADEOFF_DIVERGENCE

from ..build import APPROXIMATE, SPACE, costing

T = oc.TradeoffFunction

UPPER_ONLY = [
    T.mixture([1, 1], [T.gaussian(1.0)] * 2),
    T.gaussian(1.0).compose(T.laplace(1.0)).group(2),
    T.finite([0.2, 0.7, 0.1], [0.5, 0.3, 0.2]).symmetrised(),
]


@pytest.mark.parametrize("f", UPPER_ONLY)
def test_upper_bounds_say_nothing_below(f):
    smooth = [f.compose(T.laplace(0.1))] if f is UPPER_ONLY[-1] else []  # the others take long
    for one in (f, f.inverse(), f.compose(T.pure(0.1)), *smooth):
        assert one.upper_only
        for low, high in (one.delta_bounds(0.5), one.epsilon_bounds(1e-3)):
            assert low == 0.0 < high
        assert one.epsilon_bounds(0.0).lower == 0.0
        low, high = one.beta_bounds(0.25)
        assert high >= 0.75 > low
        with pytest.raises(InvalidValueError, match="d_out .* upper bound"):
            TRADEOFF_DIVERGENCE.validate_budget("d_out", one)
    assert not T.pure(1e-3) <= f
    assert f <= f <= T.worst()


def test_upper_bounds_of_different_things_are_never_equal():
    two = [T.mixture([1, w], [T.gaussian(1.0), T.laplace(1.0)]) for w in (1.0, 1.0 + 2**-52)]
    assert not two[0] <= two[1]
    assert two[0] == T.mixture([1, 1], [T.gaussian(1.0), T.laplace(1.0)])


def test_exact_functions_stay_budgets():
    for f in (T.mixture([1, 1], [T.pure(1.0), T.pure(0.1)]), T.pure(1.0).group(2)):
        assert not f.upper_only
        assert TRADEOFF_DIVERGENCE.validate_budget("d_out", f) == f


def test_an_infinite_mass_that_is_rounding_is_not_certain():
    losses = T.from_loss_distribution([1.0, -1.0], [e / (1 + e), 1 / (1 + e)])
    low, high = losses.inverse().epsilon_bounds(0.0)
    assert low <= 1.0 <= high


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7, 1 / 3, 1e-17])
def test_a_tiny_gaussian_is_not_below_the_upper_end(alpha):
    low, high = T.gaussian(1e-17).beta_bounds(alpha)
    exact = 1 - Fraction(alpha) - Fraction(1e-17) * Fraction(1 / sqrt(2 * pi))
    assert low <= exact <= high


# --- masses that were dropped: infinite, small, or below the doubles in one direction ------------

FAILS, MARGIN = T.approximate(0.0, 0.3), 1 - 1e-15
KEEP = [
    FAILS,
    T.finite([0.7, 0.3, 0.0], [0.7, 0.0, 0.3]),
    T.mixture([7, 3], [T.identity(), T.worst()]),
    T.from_profile([0.0], [0.3]),
]
RARE = T.mixture([1, 1], [T.pure(1000.0), T.finite([0.4, 0.6], [0.5, 0.5])])
SMALL = [1e-46, 1e-100, 1e-300, 5e-324]
WEIGHTS = [1e-20, 1e-300, 5e-324]
AT_LEAST = [  # δ at an ε
    (T.approximate(1.0, 1 - 2**-53).power(2), 0.5, 1.0),
    (T.pure(1e7).power(2), 0.0, 1.0),
    (T.gaussian(1e149).power(2**53), 1.0, 1.0),
    (T.laplace(5e-324), 0.0, 5e-324),
    (T.laplace(5e-324, 2.0), 0.0, 5e-324),
    (FAILS.power(2).compose(T.pure(0.1)), 1.0, 0.51),
    (FAILS.compose(T.pure(0.1), T.gaussian(0.1)), 5.0, 0.3),
    *((T.approximate(0.1, one).group(2), 1.0, 2 * one) for one in SMALL),
    *((one, 900.0, 0.5) for one in (RARE, RARE.inverse())),  # e^-1000 is 0 as a double
    *((T.mixture([1, w], [T.pure(0.1), T.worst()]), 1.0, w * MARGIN) for w in WEIGHTS),
    *((T.approximate(5.0, 0.9).power(n), 1.0, 1.0) for n in (400, 1000)),
    (T.approximate(0.0, 0.9).power(10**6), 0.0, 1.0),
]


@pytest.mark.parametrize(("f", "epsilon", "delta"), AT_LEAST)
def test_no_mass_is_dropped(f, epsilon, delta):
    assert f.delta(epsilon) >= delta
    assert f.delta_bounds(epsilon).lower <= f.delta(epsilon)


SHIFTED = T.approximate(0.0, 0.01).compose(T.laplace(0.1))  # noise on [0, 1], beside other noise
INFINITE = [
    *((f, one) for f in (SHIFTED, SHIFTED.inverse()) for one in (1e-100, 1e-16)),
    *((T.approximate(0.1, one).group(2), 0.0) for one in SMALL),
    *((T.mixture([1, w], [T.pure(0.1), T.worst()]), 0.0) for w in WEIGHTS),
    (oc.fdp.optimal_composition([(0.0, 9e-7), (1.0, 0.0)]), 8e-7),
]


@pytest.mark.parametrize(("f", "delta"), INFINITE)
def test_an_infinite_mass_that_may_be_there_gives_an_infinite_epsilon(f, delta):
    assert f.epsilon(delta) == inf


def test_finite_epsilons_stay_finite():
    assert SHIFTED.epsilon(0.02) <= 0.1 + 1e-9
    assert T.mixture([1.0, 0.0], [T.pure(0.1), T.worst()]).epsilon(0.0) < inf
    whole = T.approximate(0.1, 1e-6).compose(T.gaussian(1.0))
    low, high = whole.epsilon_bounds(1e-6)
    assert 0.0 < low < high == inf
    assert whole.epsilon(1.0001e-6) < 20.0


ROUNDED = T.finite([0.3, 0.3, 0.4], [0.1, 0.5, 0.4])  # which keeps its margin in a product
SINGLE = T.from_loss_distribution([0.0], [1.0])
NOT_BELOW = [
    (T.gaussian(1.0), UPPER_ONLY[0]),
    (T.pure(0.1).compose(SINGLE), T.pure(0.1)),
    *((T.approximate(0.1, one).group(2), T.pure(0.5)) for one in SMALL),
    *((T.approximate(0.2, one).group(2), T.approximate(5.0, one)) for one in SMALL),
    *((one, T.approximate(1.0, 0.4)) for one in (RARE, RARE.inverse())),
    *((T.mixture([1, w], [T.pure(0.1), T.worst()]), T.pure(0.1)) for w in WEIGHTS),
]


@pytest.mark.parametrize(("f", "g"), NOT_BELOW)
def test_an_order_that_was_claimed_and_is_false(f, g):
    assert not f <= g


@pytest.mark.parametrize("first", KEEP)
def test_infinite_mass_stays_in_both_orders(first):
    for second in (T.pure(0.1), T.pure(0.1).power(3), T.finite([0.4, 0.6], [0.5, 0.5])):
        for whole in (first.compose(second), second.compose(first)):
            assert whole.delta(1.0) >= 0.3
            assert whole.delta_bounds(1.0).width < 1e-12
            assert not whole <= T.approximate(5.0, 0.29)
            assert not whole <= second
            assert whole.beta(0.0) <= 0.7


def test_a_margin_is_enough_to_make_it_infinite():
    """The infinite mass is there only by rounding: its bracket contains δ."""
    rounded = T.from_loss_distribution([0.3], [1.0]).inverse().compose(T.laplace(0.1))
    low, high = rounded.product.infinite
    assert low <= (low + high) / 2 < high
    assert rounded.epsilon((low + high) / 2) == inf
    assert rounded.epsilon_bounds((low + high) / 2).lower < inf
    assert SINGLE.compose(ROUNDED).delta_bounds(0.1).width > 0.0


def test_a_cast_refuses_what_is_infinite():
    made = costing(lambda _: SHIFTED, measure=oc.tradeoff())
    assert oc.c.cast(made, APPROXIMATE, delta=1e-6).map(1) == (inf, 1e-6)


def test_a_compositor_certifies_the_whole_delta():
    plan = [(0.0, 9e-7), (1.0, 0.0)]
    whole = oc.make_concurrent_composition(*SPACE, APPROXIMATE, 1, plan, delta=1e-6)
    epsilon, delta = whole.map(1)
    assert 9e-7 + (1 - 9e-7) * max(0.0, e - exp(epsilon)) / (1 + e) <= delta


def test_a_group_keeps_small_cells():
    """Of losses whose mass is 1e-60 under both distributions."""
    pair = T.finite([1e-60, 0.5, 0.5], [1e-58, 0.2, 0.8])
    for whole in (pair.group(2), pair.inverse().group(2).inverse()):
        assert whole.epsilon(1e-70) >= 9.2


@pytest.mark.parametrize("epsilon", [50.0, 101.0, 120.0, 140.0, 300.0, 699.0])
def test_a_profile_of_two_directions_keeps_digits(epsilon):
    whole = T.from_profile([epsilon], [0.1], [0.2])
    assert whole.delta(epsilon) >= 0.1
    assert whole.inverse().delta(epsilon) >= 0.2
    assert whole.inverse().delta_bounds(epsilon).width < 1e-12
    assert whole.delta(1.0) >= whole.delta(epsilon / 2) >= 0.1
    assert whole.inverse().delta_bounds(1.0).lower > 0.99
    assert not whole <= T.from_profile([epsilon], [0.1], [0.19])


# --- 0.1.0 searched for ever for an ε that is infinite, and in other loops over doubles ----------


@pytest.mark.parametrize("near", [0.0, 1.0, 1e300, inf])
def test_a_profile_that_never_falls_ends_the_search(near):
    asked = []

    def profile(epsilon):
        asked.append(epsilon)
        assert len(asked) < 500
        return Bounds(0.0, 1.0)

    assert search.certify(profile, 0.5, near, 1.0) == (0.0, inf)
    search.halved(0.0, near, lambda at: profile(at).upper <= 0.5, most=200)


def test_searches_below_the_doubles_end():
    assert T.gaussian(5e-324).residual(T.pure(5e-324)) is None
    assert T.pure(5e-324).gaussian_bound >= 5e-324
    assert T.pure(5e-324).units(T.gaussian(5e-324)) is None
    assert oc.accumulators.residue(5e-324).start(None).after(T.pure(5e-324)).left is None


def test_no_width_is_too_narrow():
    product = T.laplace(0.1).power(3)
    for width in (0.0, 5e-324):
        low, high = product.delta_bounds(0.1, width)
        assert 0.0 < low < high < 0.1
    low, high = product.epsilon_bounds(0.01, 0.0)
    assert 0.0 < low < high < 0.3


def test_a_search_among_many_slots_keeps_few_sets(monkeypatch):
    """Sets of a thousand kinds of slots filled the memory before a child was covered."""
    pushed = []

    def push(queue, one):
        pushed.append(one)
        heappush(queue, one)

    monkeypatch.setattr(slots, "_KEPT", 2**14)
    monkeypatch.setattr(slots, "heappush", push)
    plan = tuple(T.pure(0.01 + 1e-5 * place) for place in range(300))
    taken = next(slots.covers(plan, T.laplace(0.025)))
    assert T.laplace(0.025) <= T.identity().compose(*taken)
    assert len(pushed) <= 2 * 300
