"""The largest loss under one measure that converts to a loss under another."""

from math import inf, nextafter

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.composition.casts import conversion
from opendp_concurrent.context.accountant import loss_under
from opendp_concurrent.errors import InvalidValueError, UnsupportedMeasureError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


@given(st.floats(1e-6, 1e3))
def test_it_is_the_largest_double_that_converts_to_at_most_the_loss(rho):
    found, convert = loss_under(PURE, ZCDP, rho), conversion(PURE, ZCDP)
    assert convert(found) <= rho < convert(nextafter(found, inf))


def test_the_delta_of_the_conversion_is_used():
    approximate = dp.approximate(PURE)
    found = {
        delta: loss_under(ZCDP, approximate, (1.0, 1e-6), delta) for delta in (1e-6, 1e-7, 1e-9)
    }
    assert found[1e-6] > found[1e-7] > found[1e-9] > 0
    for delta, rho in found.items():
        assert conversion(ZCDP, approximate, delta=delta)(rho)[0] <= 1.0


def test_a_loss_that_no_positive_loss_converts_to_is_refused():
    with pytest.raises(InvalidValueError, match=r"^d_out \(0\.0\) under .*pass a larger loss"):
        loss_under(PURE, ZCDP, 0.0)
    with pytest.raises(UnsupportedMeasureError):
        loss_under(oc.gaussian_tradeoff(), PURE, 1.0)
