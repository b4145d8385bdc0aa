"""Charges of units in a table are never below the exact loss, and fit in 128 bits."""

from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.individual.noise_loss import noise_loss
from opendp_concurrent.individual.unit_price import BUDGET, UnitPrice

MEASURES = [
    dp.max_divergence(),
    dp.zero_concentrated_divergence(),
    oc.fixed_renyi_divergence(alpha=8.0),
]


@given(
    measure=st.sampled_from(MEASURES),
    reach=st.integers(1, 2**40),
    ratio=st.floats(1e-6, 1e9),
    d_out=st.floats(1e-9, 1e9),
    share=st.floats(0, 1),
)
def test_a_charge_is_at_least_the_loss_and_hardly_above_it(measure, reach, ratio, d_out, share):
    loss, scale = noise_loss(measure), min(2.0**62, max(2.0**-30, reach * ratio))
    try:
        price = UnitPrice.of(reach, scale, loss, d_out)
    except InvalidValueError:
        assert loss.of(Fraction(reach), scale) > Fraction(d_out)
        return
    for number in (0, 1, int(share * reach), reach):
        charge = price.most if number == reach else price.rate * number**price.power
        exact = loss.of(Fraction(number), scale) / Fraction(d_out)
        assert exact <= Fraction(charge, BUDGET) <= exact + Fraction(1, 2**42)
        assert BUDGET + charge < 2**124
    assert price.most <= BUDGET
    assert price.rate >= 1


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_price_above_the_budget_is_refused(measure):
    with pytest.raises(InvalidValueError, match="scale must be larger"):
        UnitPrice.of(10, 1.0, noise_loss(measure), 0.001)
