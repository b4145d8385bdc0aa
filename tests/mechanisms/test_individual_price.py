"""Prices: never below the exact ones, and even shares of a budget are exact."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.mechanisms.individual import (
    LEAST_RATE,
    UNITS,
    NoisySum,
    Price,
    individual_scale,
    noise_loss,
    step_exponent,
    whole_steps,
)

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
MEASURES = PURE, ZCDP, oc.fixed_renyi_divergence(alpha=3.3)
BOUNDS, BUDGETS = st.floats(1e-20, 1e20), st.floats(1e-3, 1e3)


def first(rows):
    return rows[:, 0]


def exact_units(measure, d_out, bound, scale):
    exponent = step_exponent(bound=bound)
    value = whole_steps(bound, exponent) * Fraction(2) ** exponent
    return noise_loss(measure).of(value, scale) / Fraction(d_out) * UNITS


def test_units_are_exact_in_doubles_and_divide_evenly():
    assert 2**52 < UNITS < 2**53
    assert int(float(UNITS)) == UNITS
    assert all(UNITS % shares == 0 for shares in (*range(1, 37), 40, 48, 60, 64, 90, 120))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(bound=BOUNDS, share=st.floats(1.0, 1e6), d_out=st.floats(1e-3, 1e3))
def test_the_price_of_the_bound_is_the_exact_one_rounded_up(measure, bound, share, d_out):
    power = noise_loss(measure).power
    scale = share * individual_scale(measure, d_out, bound)
    price = Price.of(NoisySum(first, bound, scale), noise_loss(measure), d_out)
    exact = exact_units(measure, d_out, bound, scale)
    assert price.most == math.ceil(exact) <= UNITS
    assert price.power == power
    assert price.scale * Fraction(2) ** price.exponent == Fraction(scale)
    per_step = exact / Fraction(price.reach) ** power
    assert Fraction(price.rate) >= per_step * (1 + Fraction(1, 2**50))
    assert Fraction(price.rate) <= max(per_step * (1 + Fraction(1, 2**49)), Fraction(LEAST_RATE))


def test_even_shares_fit_exactly():
    for shares in range(1, 37):
        price = Price.of(NoisySum(first, 1, float(shares)), noise_loss(PURE), 1.0)
        assert price.most * shares == UNITS
    price = Price.of(NoisySum(first, 3, 18.0), noise_loss(ZCDP), 0.5)
    assert price.most * 36 == UNITS


def test_a_query_that_costs_more_than_a_budget_is_refused_with_the_scale_that_would_do():
    for measure, least in ((PURE, 20.0), (ZCDP, 10.0 / math.sqrt(1.0))):
        loss = noise_loss(measure)
        with pytest.raises(InvalidValueError) as caught:
            Price.of(NoisySum(first, 10.0, math.nextafter(least, 0.0)), loss, 0.5)
        assert f"must be at least {least} for bound (10.0)" in str(caught.value)
        assert Price.of(NoisySum(first, 10.0, least), loss, 0.5).most == UNITS


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(bound=BOUNDS, d_out=BUDGETS, launches=st.integers(1, 10**4))
def test_the_least_scale_is_enough_and_none_below_is(measure, bound, d_out, launches):
    scale = individual_scale(measure, d_out, bound, launches)

    def fits(scale):
        return math.ceil(exact_units(measure, d_out, bound, scale)) * launches <= UNITS

    assert fits(scale)
    assert not fits(math.nextafter(scale, 0.0))


def test_the_least_scale_at_the_ends():
    tiny, huge = 1e-200, 1e200
    for measure in MEASURES:
        for bound in (tiny, 1.0, huge):
            for d_out in (1e-3, 1e3):
                scale = individual_scale(measure, d_out, bound)
                assert Price.of(NoisySum(first, bound, scale), noise_loss(measure), d_out).most > 0
    assert individual_scale(PURE, 1e300, 1.0) == 2.0**-59  # the finest that is taken
    price = Price.of(NoisySum(first, 1.0, 2.0**-59), noise_loss(PURE), 1e300)
    assert (price.most, price.rate) == (1, LEAST_RATE)
    with pytest.raises(InvalidValueError, match=r"^d_out \(1e-300\) must be larger for 7 launches"):
        individual_scale(PURE, 1e-300, 1.0, 7)
    for d_out in (5e-324, 1e-300, 1e-20):
        with pytest.raises(InvalidValueError, match=r"^scale \(1.0\) must be at least"):
            Price.of(NoisySum(first, 1.0, 1.0), noise_loss(ZCDP), d_out)


def test_check_values():
    assert individual_scale(PURE, 1.0, 1) == 1.0
    assert individual_scale(PURE, 2.0, 3.0, 5) == 7.5
    assert individual_scale(ZCDP, 0.5, 1, 9) == 3.0
    assert individual_scale(ZCDP, 2.0, 1) == 0.5
    assert individual_scale(oc.fixed_renyi_divergence(alpha=8.0), 1.0, 1, 9) == 6.0
