"""Products: what is merged and counted, and the laws of composition and of the order."""

import copy
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendp_concurrent.fdp import inversion as contour
from opendp_concurrent.fdp.finite import Finite
from opendp_concurrent.fdp.function import TradeoffFunction as T
from opendp_concurrent.fdp.product import Product

from ..some import slow

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


def agree(one, other, points=POINTS):
    """Whether the bounds overlap at all points."""
    first, second = one.delta_bounds(points), other.delta_bounds(points)
    assert np.all(first.lower <= second.upper)
    assert np.all(second.lower <= first.upper)


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
        agree(product.inverse(), f.inverse().power(2))


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


@given(singles, st.integers(2, 6))
@settings(max_examples=6)
def test_a_power_is_repeated_composition(f, n):
    repeated = f
    for _ in range(n - 1):
        repeated = repeated.compose(f)
    if not f.product.squares:
        assert f.power(n) == repeated == f.power(n - 1).compose(f)
        assert hash(f.power(n)) == hash(repeated)
    agree(f.power(n), repeated, np.array([0.0, 0.3]))
    assert f.power(n).power(2) == f.power(2 * n)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5))
def test_gaussians_merge_exactly(mus):
    whole = T.identity().compose(*(T.gaussian(mu) for mu in mus))
    back = T.identity().compose(*(T.gaussian(mu) for mu in reversed(mus)))
    assert whole == back
    assert whole.mu == pytest.approx(float(np.sqrt(np.sum(np.square(mus)))), rel=1e-14)
    assert T.gaussian(3.0).compose(T.gaussian(4.0)) == T.gaussian(5.0)
    assert T.gaussian(0.5).power(16) == T.gaussian(2.0)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        *((one, 10**6) for one in (T.pure, lambda e: T.laplace(e, 3))),
        (T.pure, 10**12),
        (lambda e: T.randomized_response(1 / 3 + e, 3), 10**12),
        pytest.param(lambda e: T.laplace(e, 3), 10**12, marks=pytest.mark.slow),
    ],
)
def test_immense_powers_are_answered(make, count):
    """What cannot be listed is inverted; whether it can is not found out by trying."""
    bounds = make(1e-3 / count**0.5).power(count).delta_bounds(0.0)
    assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
    assert bounds.upper < 0.1 or count > 10**6


def test_queries_of_any_shape_are_answered_in_that_shape():
    for f in (T.gaussian(1.0), T.pure(1.0), T.laplace(1.0).power(2), T.pure(1.0).power(3)):
        grid = np.array([[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]])
        bounds = f.delta_bounds(grid)
        assert bounds.lower.shape == bounds.upper.shape == grid.shape
        assert f.delta(grid[0]).shape == (3,)
        assert isinstance(f.delta(0.5), float)
        assert f.delta(np.zeros(0)).shape == (0,)
        assert f.delta([0.5])[0] == pytest.approx(f.delta(0.5), rel=1e-5)


@pytest.mark.parametrize(
    "parts",
    [
        [("laplace", (0.4,), 1), ("approximate", (0.3, 1e-250), 2)],
        *slow(
            [
                [("laplace", (0.4,), 1), ("laplace", (0.7,), 1)],
                [("laplace", (0.4,), 2), ("pure", (0.3,), 5)],
            ]
        ),
    ],
)
def test_near_the_largest_loss_brackets_are_narrow(parts, contains, exact):
    made = exact.build(parts)
    loss = made.product.largest_loss
    at = [loss * (1 - 1e-13), loss * (1 - 1e-6)]
    contains(parts, at, [1e-200], made)
    found = made.epsilon_bounds(1e-200)
    assert found.width <= 1e-3 * found.upper


def test_many_different_lattices_are_narrow_and_take_little_memory():
    many = T.identity().compose(*(T.discrete_gaussian(5.0 + 0.3 * i) for i in range(40)))
    found = many.epsilon_bounds(1e-6)
    assert found.width <= 1e-6 * found.upper
    assert 0 < many.product._on_path.cache_info().currsize <= 4
    tracemalloc.start()
    wide = T.discrete_gaussian(3000.0).power(2).epsilon_bounds(1e-6)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50 * 2**20
    assert wide.width <= 1e-6 * wide.upper


@pytest.mark.parametrize("seed", range(4))
def test_formulas_agree_with_outcomes_that_are_listed(seed):
    """Products of lattices, with and without what is known of their form."""
    generator = np.random.default_rng(seed)
    parts = [
        T.discrete_gaussian(float(generator.uniform(1.0, 8.0)), int(generator.integers(1, 3))),
        T.discrete_gaussian(float(generator.uniform(1.0, 8.0))).power(2),
        T.laplace(float(generator.uniform(0.1, 1.0)), 12.0),
        T.laplace(float(generator.uniform(0.1, 1.0))).power(int(generator.integers(1, 4))),
    ]
    made = T.identity().compose(*parts)
    factors = made.product.factors.items()
    listed = {(replace(one) if isinstance(one, Finite) else one): n for one, n in factors}
    assert all(one.form is None for one in listed if isinstance(one, Finite))
    other = T._of(Product(0, listed))
    for share in (0.0, 0.5, 2.0):
        epsilon = share * made.product.variance**0.5
        one, two = made.delta_bounds(epsilon), other.delta_bounds(epsilon)
        assert max(one.lower, two.lower) <= min(one.upper, two.upper)
        assert one.width <= 1e-5 * one.upper


def test_a_bound_by_renyi_orders_holds_where_inversion_has_none():
    tiny = T.laplace(1e-310).power(2)
    assert tiny.delta_bounds(0.0).upper <= 1e-9
    known = T.gaussian(1.0).compose(T.laplace(1e-9)).product.cumulants
    for epsilon in (0.5, 3.0, 8.0):
        bound = contour.renyi_delta(known, epsilon)
        assert T.gaussian(1.0).delta(epsilon) <= bound <= 10 * T.gaussian(1.0).delta(epsilon)


@pytest.mark.parametrize("largest", [5e-324, 1e-300, 1e-12])
def test_delta_is_at_most_what_the_largest_loss_admits(largest):
    """1 - e^(ε - loss), where inversion is less exact."""
    product = T.laplace(largest).power(2).product
    for epsilon in (-largest, 0.0, largest):
        assert product._at(epsilon, 1e-6).upper <= 1.0000001 * (2 * largest - epsilon) + 1e-299
    with_mass = T.laplace(largest).compose(T.approximate(0.0, 0.25)).product
    assert 0.25 < with_mass._at(0.0, 1e-6).upper <= 0.25 * (1 + 1e-14) + 1.1 * largest


@pytest.mark.parametrize("unit", ["removed", "added"])
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_few_laplace_mechanisms_beside_sampled_noise_are_as_close_as_wanted(unit, epsilon):
    steps = T.subsampled_gaussian(1.0, 0.00619, unit=unit).power(1000)
    whole = T.laplace(0.1).power(20).compose(steps)
    low, high = whole.delta_bounds(epsilon, 1e-6)
    assert 0.0 < high - low <= 0.01 * high
