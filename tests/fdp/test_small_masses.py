"""0.1.0 dropped masses that are small or underflow, in groups, mixtures and profiles."""

from math import inf

import pytest

import opendp_concurrent as oc

T = oc.TradeoffFunction


@pytest.mark.parametrize("delta", [1e-46, 1e-100, 1e-300, 5e-324])
def test_a_group_keeps_a_small_infinite_mass(delta):
    whole = T.approximate(0.1, delta).group(2)
    assert whole.epsilon(0.0) == inf
    assert whole.delta(1.0) >= 2 * delta
    assert not whole <= T.pure(0.5)
    assert not T.approximate(0.2, delta).group(2) <= T.approximate(5.0, delta)


def test_a_group_keeps_small_cells():
    """Of losses whose mass is 1e-60 under both distributions."""
    pair = T.finite([1e-60, 0.5, 0.5], [1e-58, 0.2, 0.8])
    for whole in (pair.group(2), pair.inverse().group(2).inverse()):
        assert whole.epsilon(1e-70) >= 9.2


def test_a_mixture_keeps_what_is_rare_in_one_direction():
    """e^-1000 is 0 as a double, but 1 the other way round."""
    whole = T.mixture([1, 1], [T.pure(1000.0), T.finite([0.4, 0.6], [0.5, 0.5])])
    for one in (whole, whole.inverse()):
        assert one.delta(900.0) >= 0.5
        assert one.epsilon(0.4) >= 900.0
        assert not one <= T.approximate(1.0, 0.4)


def test_a_mixture_keeps_small_shares():
    for weight in (1e-20, 1e-300, 5e-324):
        whole = T.mixture([1, weight], [T.pure(0.1), T.worst()])
        assert whole.delta(1.0) >= weight * (1 - 1e-15)
        assert whole.epsilon(0.0) == inf
        assert not whole <= T.pure(0.1)
    assert T.mixture([1.0, 0.0], [T.pure(0.1), T.worst()]).epsilon(0.0) < inf


@pytest.mark.parametrize("epsilon", [50.0, 100.0, 101.0, 120.0, 138.0, 140.0, 300.0, 699.0])
def test_a_profile_of_two_directions_keeps_digits(epsilon):
    whole = T.from_profile([epsilon], [0.1], [0.2])
    assert whole.delta(epsilon) >= 0.1
    assert whole.inverse().delta(epsilon) >= 0.2
    assert whole.inverse().delta_bounds(epsilon).width < 1e-12
    for low, high in ((1.0, epsilon / 2),):
        assert whole.delta(low) >= whole.delta(high) >= 0.1
        assert whole.inverse().delta_bounds(low).lower > 0.99
    assert not whole <= T.from_profile([epsilon], [0.1], [0.19])


def test_powers_keep_what_underflows():
    for count in (2, 3, 400, 1000):
        whole = T.approximate(5.0, 0.9).power(count)
        assert whole.delta_bounds(1.0).lower <= 1.0 == whole.delta(1.0) or count < 20
    assert T.approximate(0.0, 0.9).power(10**6).delta(0.0) == 1.0
