"""Bad input: the type of the error, and that it names the argument."""

import pytest

import opendp_concurrent as oc

T = oc.TradeoffFunction
F = T.pure(0.5)


def test_a_comparison_with_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        assert F <= 1.0
    with pytest.raises(TypeError):
        assert F > 1.0
    assert F != 1.0
