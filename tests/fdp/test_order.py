"""The certified order, how many units a function is worth, and residuals of a Gaussian budget."""

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
from opendp_concurrent.fdp.order import (
    MOST,
    gaussian_bound,
    is_below,
    largest_power,
    least_power,
    lower_kinks,
    residual,
    tail_from,
)
from opendp_concurrent.fdp.product import with_few_outcomes

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


UNITS = [
    (T.pure(0.1), T.pure(0.25)),
    (T.pure(0.1), T.laplace(0.7)),
    (T.gaussian(0.25), T.gaussian(0.6)),
    (T.gaussian(0.25), T.pure(0.3)),
    (T.laplace(0.2), T.laplace(0.2).power(3)),
]


@pytest.mark.parametrize(("unit", "other"), UNITS, ids=str)
def test_a_least_power_covers_and_one_less_does_not(unit, other):
    count = least_power(unit.product, other.product)
    assert other <= unit.power(count)
    assert not other <= unit.power(count - 1)


@pytest.mark.parametrize(("unit", "budget"), UNITS, ids=str)
def test_a_largest_power_fits_and_one_more_does_not(unit, budget):
    count = largest_power(unit.product, budget.product)
    assert budget.admits(unit) == count
    assert count == 0 or unit.power(count) <= budget
    assert not unit.power(count + 1) <= budget


def test_powers_of_the_unit_are_counted_exactly():
    for unit in (T.gaussian(0.01), T.laplace(0.2, 4), T.pure(0.1)):
        many = unit.power(100_000).product
        assert least_power(unit.product, many) == 100_000
        assert largest_power(unit.product, many) == 100_000


def test_what_no_number_of_units_covers_has_none():
    assert least_power(T.pure(0.1).product, T.approximate(0.1, 1e-9).product) is None
    assert least_power(T.pure(1e-9).product, T.pure(1.0).product) is None  # more than MOST
    assert largest_power(T.pure(1e-9).product, T.worst().product) == MOST
    assert least_power(T.pure(0.1).product, T.identity().product) == 0
    assert largest_power(T.gaussian(0.1).product, T.identity().product) == 0


@pytest.mark.parametrize("sigma", [0.06, 0.01, 1e-3, 1e-160])
def test_sampled_noise_below_a_sixteenth_has_bounds(sigma):
    one = T.subsampled_gaussian(sigma, 1e-3, unit="removed")
    for f in (one.power(1000), one.power(1000).inverse()):
        basic, whole = T.approximate(0.0, 1e-3).power(1000), T.gaussian(1 / sigma).power(1000)
        assert f.epsilon(0.7) <= basic.epsilon(0.7) == 0.0
        assert f.epsilon(1e-6) <= 1.001 * whole.epsilon(1e-6)


PRINTED = [(1.0, 0.5, 0.8599904568), (2.0, 1.0, 1.7291408254), (1.0, 0.1, 0.9949810922)]
GRID = [0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0]


def pure_to_gaussian(epsilon):
    with mp.workdps(400):
        return mp.sqrt(2) * -2 * mp.erfinv(2 / (1 + mp.exp(mpf(epsilon))) - 1)


@pytest.mark.parametrize(("budget", "epsilon", "printed"), PRINTED)
def test_printed_values_are_reached_from_below(budget, epsilon, printed):
    found = residual(budget, T.pure(epsilon).product)
    assert found == pytest.approx(printed, abs=1e-8)
    assert found <= printed + 1e-10
    assert T.gaussian(budget).residual(T.pure(epsilon)) == found


CHILDREN = [
    [("pure", (0.5,), 1)],
    [("pure", (0.3,), 2)],
    [("laplace_steps", (0.5, 5), 1)],
    [("randomized_response", (0.5, 4), 1)],
    [("finite", ((0.5, 0.5), (0.4, 0.6)), 1)],
    [("finite", ((0.5, 0.5), (0.4, 0.6)), 2), ("pure", (0.2,), 1)],
    [("finite", ((0.1, 0.9), (0.02, 0.98)), 1)],
    [("inverse", ((0.1, 0.9), (0.02, 0.98)), 1)],
    [("gaussian", (0.5,), 1), ("pure", (0.5,), 1)],
]


@pytest.mark.parametrize("parts", CHILDREN)
@pytest.mark.parametrize("budget", [1.0, 3.0])
def test_child_and_residual_are_within_the_budget(parts, budget, exact):
    child = exact.build(parts)
    found = residual(budget, child.product)
    top = max(child.product.largest_loss, child.inverse().product.largest_loss)
    if found is None:
        assert budget < float(pure_to_gaussian(min(top, 50.0)))
        return
    swap = {"finite": "inverse", "inverse": "finite"}
    other = [(swap.get(kind, kind), a, n) for kind, a, n in parts]
    for each in (parts, other):
        delta = exact.profile([*each, ("gaussian", (found,), 1)])
        for epsilon in GRID:
            assert delta(epsilon) <= exact.gaussian_delta(budget, epsilon)


@pytest.mark.parametrize("parts", [c for c in CHILDREN if c[0][0] != "gaussian"])
@pytest.mark.parametrize("budget", [1.0, 3.0])
def test_it_is_never_worse_than_the_difference_of_squares(parts, budget, exact):
    child = exact.build(parts)
    top = max(child.product.largest_loss, child.inverse().product.largest_loss)
    mu = float(pure_to_gaussian(top))
    if mu < budget * (1 - 1e-9):
        naive = math.sqrt(budget**2 - mu**2)
        assert residual(budget, child.product) >= naive * (1 - 1e-11)


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0])
def test_gaussians_leave_the_difference_of_squares(budget):
    for share in (0.0, 0.3, 0.8, 1.0):
        found = residual(budget, T.gaussian(share * budget).product)
        exact = mp.sqrt(mpf(budget) ** 2 - mpf(share * budget) ** 2)
        assert mpf(found) <= exact * (1 + mpf("1e-30"))
        assert found == pytest.approx(float(exact), rel=1e-14)
    assert residual(budget, T.gaussian(1.1 * budget).product) is None
    assert residual(budget, T.identity().product) == budget


def test_what_does_not_fit_is_refused():
    for budget, child in (
        (1.0, T.pure(3.0)),
        (1.0, T.approximate(0.1, 1e-9)),
        (5.0, T.worst()),
        (1.0, T.gaussian(0.99).compose(T.pure(1.0))),
        (0.0, T.pure(0.1)),
        (1.0, T.laplace(700.0)),
    ):
        assert residual(budget, child.product) is None


def test_a_chain_of_children_stays_within_the_budget(exact):
    left, parts = 1.0, []
    for epsilon in (0.3, 0.2, 0.4, 0.1):
        left = residual(left, T.pure(epsilon).product)
        parts.append(("pure", (epsilon,), 1))
    delta = exact.profile([*parts, ("gaussian", (left,), 1)])
    for epsilon in GRID:
        assert delta(epsilon) <= exact.gaussian_delta(1.0, epsilon)


def test_a_child_with_many_outcomes_is_rounded_outward(exact):
    for child in (T.laplace(0.7), T.pure(0.05).power(150)):
        small = with_few_outcomes(child.product, 96)
        at = np.linspace(-0.5, 0.7, 13)
        mine, theirs = small.profile(at), child.delta_bounds(at)
        assert np.all(mine.upper >= theirs.lower)
        assert np.all(mine.lower <= theirs.upper + 1e-2)
        found = residual(2.0, child.product)
        assert child.compose(T.gaussian(found)) <= T.gaussian(2.0)
        assert found < 2.0
    assert with_few_outcomes(T.pure(1.0).product, 96) == T.pure(1.0).product


@pytest.mark.parametrize("f", [T.laplace(0.5), T.pure(0.5), T.pure(0.2).power(3), T.gaussian(0.3)])
def test_gaussian_bound_is_a_bound(f):
    bound = gaussian_bound(f.product)
    assert f.gaussian_bound == bound
    for epsilon in GRID:
        assert f.delta_bounds(epsilon).lower <= T.gaussian(bound).delta_bounds(epsilon).upper
    assert gaussian_bound(T.worst().product) == math.inf


@pytest.mark.parametrize("first", [(0.9, 0.1, 0.0), (0.97, 0.03)])
def test_both_directions_count(first):
    """The losses of one direction say nothing of those of the other."""
    f = T.finite(first, (0.8, 0.1, 0.1) if 0.0 in first else (0.999, 0.001))
    for child in (f, f.inverse()):
        one, other = (residual(2.0, each.product) for each in (child, child.inverse()))
        assert (one is None) == (other is None)
        assert one is None or (one == pytest.approx(other, rel=1e-8) and 0.0 not in first)
        bound = gaussian_bound(child.product)
        assert (bound == math.inf) == (0.0 in first)
        assert bound == math.inf or f <= T.gaussian(bound * (1 + 1e-9))
