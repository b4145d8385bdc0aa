"""The product of trade-off functions, which only a compositor may use."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.measures.slots import Products

T = oc.TradeoffFunction


def test_a_product_composes_and_compares():
    start = Products().start(T.identity())
    after = start.after(T.pure(0.1), 3).after(T.gaussian(0.2))
    assert after.loss == T.pure(0.1).power(3).compose(T.gaussian(0.2))
    assert after.within(after.loss)
    assert not after.within(T.pure(0.1))
    with pytest.raises(InvalidTypeError, match="d_mid must be a TradeoffFunction, found float"):
        start.after(0.5)
