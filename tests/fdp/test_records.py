"""Trade-off functions are taken to parts and made from them exactly."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.fdp.exchange import (
    FUNCTION_KEYS,
    function_parts,
    make_function,
    make_pair,
    original,
    pair_parts,
)
from opendp_concurrent.fdp.finite import Finite

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
