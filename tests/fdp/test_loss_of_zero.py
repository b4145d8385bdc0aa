"""0.1.0 dropped a pair whose only finite loss is 0 if it came first, its infinite mass and all."""

from math import e, exp, inf

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

T = oc.TradeoffFunction
FAILS = T.approximate(0.0, 0.3)


@pytest.mark.parametrize(
    "first",
    [
        FAILS,
        T.finite([0.7, 0.3, 0.0], [0.7, 0.0, 0.3]),
        T.mixture([7, 3], [T.identity(), T.worst()]),
        T.from_profile([0.0], [0.3]),
    ],
)
def test_infinite_mass_stays_in_both_orders(first):
    for second in (T.pure(0.1), T.pure(0.1).power(3), T.finite([0.4, 0.6], [0.5, 0.5])):
        for whole in (first.compose(second), second.compose(first)):
            assert whole.delta(1.0) >= 0.3
            assert whole.delta_bounds(1.0).width < 1e-12
            assert not whole <= T.approximate(5.0, 0.29)
            assert not whole <= second
            assert whole.beta(0.0) <= 0.7


def test_infinite_mass_stays_in_powers_and_beside_a_gaussian():
    assert FAILS.power(2).compose(T.pure(0.1)).delta(1.0) >= 0.51
    assert FAILS.compose(T.pure(0.1), T.gaussian(0.1)).delta(5.0) >= 0.3


def test_errors_of_a_pair_stay():
    """A rounded pair with one loss keeps its margin in a product."""
    rounded = T.finite([0.3, 0.3, 0.4], [0.1, 0.5, 0.4])
    single = T.from_loss_distribution([0.0], [1.0])
    assert not T.pure(0.1).compose(single) <= T.pure(0.1)
    assert single.compose(rounded).delta_bounds(0.1).width > 0.0


def test_a_compositor_certifies_the_whole_delta():
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    approximate = dp.approximate(dp.max_divergence())
    whole = oc.make_concurrent_composition(
        *space, approximate, 1, [(0.0, 9e-7), (1.0, 0.0)], delta=1e-6
    )
    epsilon, delta = whole.map(1)
    assert 9e-7 + (1 - 9e-7) * max(0.0, e - exp(epsilon)) / (1 + e) <= delta
    assert oc.fdp.optimal_composition([(0.0, 9e-7), (1.0, 0.0)]).epsilon(8e-7) == inf
