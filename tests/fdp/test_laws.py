"""Laws of composition and of the order, over random functions."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc

T = oc.TradeoffFunction
POINTS = np.array([-2.0, -0.5, 0.0, 0.1, 0.4, 1.0, 2.5])

epsilons = st.floats(0.01, 1.5)


singles = st.one_of(
    st.builds(T.pure, epsilons),
    st.builds(T.gaussian, st.floats(0.05, 1.5)),
    st.builds(T.laplace, epsilons),
    st.builds(T.laplace, epsilons, st.sampled_from([1.0, 3.0, 20.0])),
    st.builds(T.approximate, epsilons, st.sampled_from([1e-6, 0.01])),
    st.builds(
        lambda p, q: T.finite([p, 1 - p], [q, 1 - q]), st.floats(0.1, 0.9), st.floats(0.1, 0.9)
    ),
)
quick = settings(max_examples=10, deadline=None)


def agree(one, other, slack=1e-5):
    """Whether the bounds overlap at all points, and are about the same."""
    first, second = (each.delta_bounds(POINTS, 1e-6) for each in (one, other))
    assert np.all(first.lower <= second.upper + 1e-15)
    assert np.all(second.lower <= first.upper + 1e-15)
    assert np.all(np.abs(first.upper - second.upper) <= slack * first.upper + 1e-13)


@given(singles, singles)
@quick
def test_composition_is_commutative(f, g):
    assert f.compose(g) == g.compose(f)
    assert hash(f.compose(g)) == hash(g.compose(f))


@given(singles, singles, singles)
@quick
def test_composition_is_associative(f, g, h):
    assert f.compose(g).compose(h) == f.compose(g.compose(h)) == f.compose(g, h)


@given(singles)
@quick
def test_the_identity_is_neutral(f):
    assert f.compose(T.identity()) == f == T.identity().compose(f)
    assert f.power(1) == f
    assert f.power(0) == T.identity()


@given(singles, singles)
@quick
def test_an_order_that_is_claimed_is_seen_in_the_profiles(f, g):
    for one, other in ((f, g), (f, f.compose(g)), (f.compose(g), g)):
        if one <= other:
            for a, b in ((one, other), (one.inverse(), other.inverse())):
                low, high = a.delta_bounds(POINTS, 1e-4).lower, b.delta_bounds(POINTS, 1e-4).upper
                assert np.all(low <= high)


def test_what_is_copied_or_pickled_is_equal():
    f = T.laplace(0.2).power(30).compose(T.gaussian(0.3), T.finite([0.2, 0.8], [0.5, 0.5]))
    f.epsilon(1e-6)
    for again in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        assert again == f
        assert again.epsilon(1e-6) == pytest.approx(f.epsilon(1e-6), rel=1e-6)


def test_no_factor_is_lost_when_a_product_is_swapped():
    """Different pairs may swap to the same doubles."""
    f = T.finite(
        [0.3176896473077349, 0.5307638141940906, 0.1515465384981746],
        [0.40286586541263647, 0.2478126963048958, 0.34932143828246776],
    )
    for again in (copy.deepcopy(f), f.inverse().inverse()):
        product = f.compose(again)
        assert sum(product.inverse().product.factors.values()) == 2
        agree(product.inverse(), f.inverse().power(2), slack=1e-9)


def test_a_pair_that_is_rounded_never_equals_one_that_is_exact():
    rounded, exact = T.randomized_response(0.75), T.pure(1.0986122886681096)  # below ln 3
    assert rounded != exact
    assert not rounded <= exact
    with mp.workdps(40):
        exactly = mp.mpf(1.0986122886681096) + mp.log(3)
        assert mp.mpf(exact.compose(rounded).epsilon(0.0)) >= exactly
        assert mp.mpf(rounded.compose(exact).epsilon(0.0)) >= exactly


def test_what_is_an_upper_bound_on_one_side_is_none_on_the_other():
    just_above = T.approximate(0.0, float(np.nextafter(0.1, 1.0)))
    assert not just_above <= T.mixture([1.0], [T.approximate(0.0, 0.1)])
    assert not T.approximate(0.0, 9e-301) <= T.discrete_gaussian(1.0)


def test_many_threads_may_ask_one_function():
    f = T.identity()
    for index in range(12):
        f = f.compose(T.laplace(0.1 + 0.01 * index))
        f.epsilon(1e-5)
    whole, expected = f.compose(T.gaussian(0.4), T.laplace(0.33)), []
    with ThreadPoolExecutor(8) as pool:
        expected = list(pool.map(lambda _: whole.epsilon_bounds(1e-6), range(32)))
    fresh = copy.deepcopy(whole).epsilon_bounds(1e-6)
    for bounds in expected:
        assert bounds.lower <= fresh.upper
        assert fresh.lower <= bounds.upper
