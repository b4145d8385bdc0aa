"""The certified order: never True where it is false, and True where the families say so."""

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from opendp_concurrent.fdp.exact import gaussian_profile
from opendp_concurrent.fdp.function import TradeoffFunction as T
from opendp_concurrent.fdp.order import is_below, lower_kinks, tail_from

FAMILIES = {
    "gaussian": [T.gaussian(mu) for mu in (0.0, 0.1, 0.5, 1.0, 2.5)],
    "pure": [T.pure(epsilon) for epsilon in (0.0, 0.1, 0.5, 1.0, 2.5)],
    "laplace": [T.laplace(epsilon) for epsilon in (0.0, 0.1, 0.5, 1.0, 2.5)],
    "approximate": [
        T.approximate(e, d) for e, d in ((0.1, 0.0), (0.1, 0.01), (0.5, 0.01), (0.5, 1.0))
    ],
    "powers": [T.pure(0.3).power(k) for k in range(1, 6)],
    "mixed powers": [T.laplace(0.5, 5).power(k) for k in range(1, 5)],
    "grids": [T.laplace(1.0, math.inf), T.pure(1.0), T.approximate(1.0, 0.1), T.worst()],
    "answers": [T.randomized_response(prob, 4) for prob in (0.3, 0.5, 0.9, 1.0)],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_ordered_by_their_parameters(name):
    family = FAMILIES[name]
    for i, j in product(range(len(family)), repeat=2):
        assert (family[i] <= family[j]) == (i <= j), (family[i], family[j])
        assert (family[i] < family[j]) == (i < j)
        assert (family[i] >= family[j]) == (i >= j)
        assert (family[i] > family[j]) == (i > j)


def members():
    small = st.floats(0.05, 1.5)
    return st.one_of(
        st.builds(T.gaussian, small),
        st.builds(T.pure, small),
        st.builds(T.approximate, small, st.sampled_from([1e-6, 0.05])),
        st.builds(T.laplace, small, st.sampled_from([2, 4])),
        st.builds(T.randomized_response, st.floats(0.4, 0.9), st.just(3)),
        st.builds(
            lambda a, b: T.finite((a, 1 - a), (b, 1 - b)), st.floats(0.2, 0.8), st.floats(0.2, 0.8)
        ),
    )


@given(members(), members(), members())
@settings(max_examples=8)
def test_every_function_is_at_most_itself_and_between_the_ends(f, g, h):
    for one in (f, f.compose(g), f.compose(g, h)):
        assert one <= one
        assert not one < one
        assert T.identity() <= one <= T.worst()
        assert one >= T.identity()
    assert f <= f.compose(g)
    assert f.compose(g) <= f.compose(g, h)
    assert T.worst() <= T.worst().compose(f)


NOT_SHOWN = [
    (T.pure(1.0), T.gaussian(1.2)),  # at least 1.232 is needed
    (T.gaussian(1.0), T.pure(5.0)),
    (T.gaussian(1.0), T.gaussian(0.999999)),
    (T.gaussian(1.0), T.gaussian(0.999999).compose(T.laplace(1e-6))),
    (T.laplace(1.0), T.gaussian(0.9)),
    (T.approximate(0.1, 1e-3), T.pure(5.0)),
    (T.pure(0.3).power(2), T.pure(0.59)),
    (T.pure(0.6), T.pure(0.3).power(2)),
    (T.finite((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), T.gaussian(3.0)),
    (T.finite((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)).inverse(), T.gaussian(3.0)),
    (T.finite((0.5, 0.5), (0.25, 0.75)), T.finite((0.25, 0.75), (0.5, 0.5))),
    (T.worst(), T.gaussian(5.0)),
    (T.worst(), T.approximate(1.0, 0.999)),
    (T.laplace(0.5).power(2), T.laplace(0.6)),
]


@pytest.mark.parametrize(("f", "g"), NOT_SHOWN)
def test_what_is_false_is_not_shown(f, g):
    assert not f <= g


SHOWN = [
    (T.pure(1.0), T.gaussian(1.2321)),
    (T.laplace(1.0), T.pure(1.0)),
    (T.laplace(1.0, 7), T.pure(1.0)),
    (T.laplace(1.0), T.gaussian(1.2321)),
    (T.pure(0.3).power(2), T.pure(0.6)),
    (T.pure(0.5).compose(T.gaussian(1.0)), T.gaussian(1.25)),
    (T.finite((0.5, 0.5), (0.25, 0.75)), T.pure(math.log(2.0) + 1e-9)),
    (T.approximate(0.1, 1e-6), T.approximate(0.2, 1e-5)),
    (T.approximate(0.0, 1e-3), T.gaussian(1.0).compose(T.approximate(0.1, 0.01))),
    (T.pure(0.1).power(3), T.laplace(0.5).power(2)),
    (T.laplace(1.0).power(3), T.pure(1.0).power(3)),
    (T.gaussian(0.3).compose(T.pure(0.2)), T.gaussian(1.0).compose(T.pure(0.1))),
    (T.gaussian(1.0), T.worst()),
    (T.gaussian(1.0).compose(T.laplace(1.0)), T.worst()),
    (T.gaussian(1.0), T.approximate(6.0, 1e-6)),
    (T.laplace(0.1).compose(T.gaussian(0.1)), T.approximate(5.0, 1e-6)),
    (T.pure(0.5).compose(T.gaussian(0.8599)), T.gaussian(1.0)),
    (T.discrete_gaussian(10.0), T.gaussian(0.2)),
    (T.laplace(1.0).group(2), T.laplace(2.0001)),
]


@pytest.mark.parametrize(("f", "g"), SHOWN)
def test_what_is_clear_is_shown(f, g):
    assert f <= g
    assert not g <= f


def test_other_types_are_not_compared():
    for wrong in (1.0, None, "pure"):
        assert T.pure(1.0) != wrong
        with pytest.raises(TypeError):
            T.pure(1.0) <= wrong  # noqa: B015
        with pytest.raises(TypeError):
            T.pure(1.0) > wrong  # noqa: B015


# --- the parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_behind_the_tail_the_ratio_falls(seed, exact):
    """G_s shifted by B over G_r, from where ``tail_from`` says on."""
    generator = np.random.default_rng(seed)
    r = float(10.0 ** generator.uniform(-2, 1))
    s = r * float(generator.choice([0.0, 0.1, 0.5, 0.9, 0.99, generator.uniform()]))
    shift = float(10.0 ** generator.uniform(-3, 1.0))
    start = tail_from(shift, s, r)
    if start is None or s == 0.0:
        return
    with mp.workdps(60):
        for smaller in (shift, 0.6 * shift, 0.0, -0.6 * shift, -shift):
            last = mp.inf
            for index in range(14):
                epsilon = mpf(start) * (1 + mpf(index) * index / 30)
                ratio = exact.gaussian_delta(s, epsilon - smaller)
                ratio /= exact.gaussian_delta(r, epsilon)
                assert ratio <= last, (s, r, shift, smaller, epsilon)
                last = ratio


@pytest.mark.parametrize("seed", range(20))
def test_behind_the_tail_a_product_gains_on_its_gaussian(seed, exact):
    """So what is below a product where the ratio to its Gaussian part falls stays below it."""
    generator = np.random.default_rng(seed)
    r, size = float(10.0 ** generator.uniform(-1, 0.5)), int(generator.integers(2, 4))
    pair = tuple(tuple(generator.dirichlet(np.ones(size)).tolist()) for _ in range(2))
    start = tail_from(float(10.0 ** generator.uniform(-2, 0.5)), 0.7 * r, r)
    delta, last = exact.profile([("gaussian", (r,), 1), ("finite", pair, 1)]), 0
    for factor in (1.0, 1.1, 1.4, 2.0):
        ratio = delta(start * factor) / exact.gaussian_delta(r, start * factor)
        assert ratio >= last
        last = ratio


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("points", [5, 20, 100])
def test_a_polygon_below_a_profile_is_below_it(mu, points, exact):
    grid = np.linspace(-0.2, 4.0, points)
    bounds = gaussian_profile(mu, grid)
    kinks, below = lower_kinks(grid, bounds.lower, bounds.upper)
    assert np.all((grid[:-1] <= kinks + 1e-12) & (kinks <= grid[1:] + 1e-12))
    ends, heights = np.exp(grid), bounds.lower
    for index, (kink, low) in enumerate(zip(kinks, below, strict=True)):
        assert mpf(low) <= exact.gaussian_delta(mu, kink)
        for share in (0.3, 0.7):  # between the grid and the kink
            for end in (index, index + 1):
                t = share * ends[end] + (1 - share) * math.exp(kink)
                height = share * heights[end] + (1 - share) * low
                assert height <= exact.gaussian_delta(mu, math.log(t)) + mpf("1e-15")


@pytest.mark.parametrize("reach", [0.0, 1e-300, 1e-15, 1e-6, 1.0, 50.0])
@pytest.mark.filterwarnings("error")
def test_any_reach_is_compared(reach):
    small, large = (lambda at, mu=mu: gaussian_profile(mu, at) for mu in (1.0, 1.1))
    assert is_below(small, large, min(reach, 5.0), 50, 3)
    assert not is_below(large, small, reach, 50, 3)
    assert not is_below(small, small, reach, 50, 3)


def test_there_is_no_tail_unless_the_gaussian_is_larger():
    for shift, s in ((1.0, 1.0), (1.0, 2.0), (1e9, 0.5)):  # the last one begins too far out
        assert tail_from(shift, s, 1.0) is None
    assert tail_from(0.0, 0.5, 1.0) > 0.0
