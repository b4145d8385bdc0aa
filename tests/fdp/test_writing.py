"""Events of dp-accounting for trade-off functions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.fdp.exchange import function_event
from opendp_concurrent.numerics.bracket import reciprocal_down

dp_event = pytest.importorskip("dp_accounting.dp_event")
T = oc.TradeoffFunction


@given(st.floats(5e-324, 1e308))
def test_the_noise_multiplier_is_never_above_the_exact_one(loss):
    found = reciprocal_down(loss)
    assert 0 < Fraction(found) * Fraction(loss) <= 1
    if 1e-300 < loss < 1e300:
        assert found == pytest.approx(1 / loss, rel=1e-15)


@pytest.mark.parametrize(
    ("function", "event"),
    [
        (T.identity(), dp_event.NoOpDpEvent()),
        (T.worst(), dp_event.NonPrivateDpEvent()),
        (T.approximate(1.0, 1e-6), dp_event.UnsupportedDpEvent()),
        (T.pure(0.5), dp_event.DiscreteLaplaceDpEvent(0.5, 1)),
        (
            T.pure(0.5).power(2),
            dp_event.SelfComposedDpEvent(dp_event.DiscreteLaplaceDpEvent(0.5, 1), 2),
        ),
        (
            T.pure(0.5).power(2000),
            dp_event.SelfComposedDpEvent(dp_event.DiscreteLaplaceDpEvent(0.5, 1), 2000),
        ),
    ],
    ids=["nothing", "worst", "pair", "once", "twice", "many"],
)
def test_the_event_of_a_product(function, event):
    assert function_event(dp_event, function) == event


def test_the_noise_of_a_gaussian_is_rounded_to_less():
    event = function_event(dp_event, T.gaussian(0.5))
    assert 2.0 - 1e-14 < event.noise_multiplier < 2.0
