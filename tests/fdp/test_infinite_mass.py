"""0.1.0 returned the largest loss as ε where δ was not certain to be as small as asked there."""

from math import inf

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

T = oc.TradeoffFunction


@pytest.mark.parametrize("delta", [1e-100, 1e-16])
def test_an_infinite_mass_that_may_be_there_gives_an_infinite_epsilon(delta):
    shifted = T.approximate(0.0, 0.01)  # noise on [0, 1]
    for whole in (shifted.compose(T.laplace(0.1)), shifted.compose(T.laplace(0.1)).inverse()):
        assert whole.epsilon(delta) == inf
        assert whole.epsilon(0.02) <= 0.1 + 1e-9


def test_a_margin_is_enough_to_make_it_infinite():
    """The infinite mass is there only by rounding: its bracket contains δ."""
    rounded = T.from_loss_distribution([0.3], [1.0]).inverse().compose(T.laplace(0.1))
    low, high = rounded.product.infinite
    assert low <= (low + high) / 2 < high
    assert rounded.epsilon((low + high) / 2) == inf
    assert rounded.epsilon_bounds((low + high) / 2).lower < inf


def test_a_cast_refuses_what_is_infinite():
    dp.enable_features("contrib", "honest-but-curious")
    shifted = T.approximate(0.0, 0.01).compose(T.laplace(0.1))
    measurement = dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.symmetric_distance(),
        oc.tradeoff(),
        lambda _: 0,
        lambda _: shifted,
        TO=dp.i32,
    )
    cast = oc.c.cast(measurement, dp.approximate(dp.max_divergence()), delta=1e-6)
    assert cast.map(1) == (inf, 1e-6)
