"""Trade-off functions are taken to parts and made from them exactly; and events for them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.fdp.exchange import (
    FUNCTION_KEYS,
    function_event,
    function_parts,
    make_function,
    make_pair,
    original,
    pair_parts,
)
from opendp_concurrent.fdp.finite import Finite
from opendp_concurrent.numerics.bracket import reciprocal_down

T = oc.TradeoffFunction
FUNCTIONS = {
    "identity": T.identity(),
    "gaussian": T.gaussian(0.3),
    "pair": T.approximate(1.0, 1e-6),
    "product": T.pure(0.1).power(3).compose(T.gaussian(0.2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_parts_of_a_function_make_it_again(name):
    function = FUNCTIONS[name]
    parts = function_parts(function)
    assert set(parts) == set(FUNCTION_KEYS)
    again = make_function(parts)
    assert again == function
    assert again.delta(0.1) == function.delta(0.1)


@pytest.mark.parametrize("squares", ["-0x1", "no"])
def test_a_negative_sum_of_squares_is_refused(squares):
    with pytest.raises(ValueError):  # noqa: PT011
        make_function(function_parts(T.pure(0.1)) | {"squares": squares})


def test_a_factor_that_occurs_no_time_is_refused():
    parts = function_parts(T.pure(0.1))
    none = tuple((factor, 0) for factor, _ in parts["factors"])
    with pytest.raises(ValueError):  # noqa: PT011
        make_function(parts | {"factors": none})


def test_the_parts_of_a_pair_make_it_again():
    ((pair, _),) = T.approximate(1.0, 1e-6).product.factors.items()
    assert type(pair) is Finite
    assert make_pair(pair_parts(pair)) == pair
    assert original(pair) is None


dp_event = pytest.importorskip("dp_accounting.dp_event")


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
