"""Prices: never below the exact ones, and even shares of a budget are exact."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from opendp_concurrent.mechanisms.individual import (
    LARGEST_SUM,
    LEAST_RATE,
    UNITS,
    IntegerNoise,
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


# --- what may be asked, and the grid that values are rounded to ----------------------------------


@given(st.floats(1e-200, 1e200))
def test_a_bound_is_many_whole_steps_and_never_more_than_itself(bound):
    exponent = step_exponent(bound=bound)
    steps = whole_steps(bound, exponent)
    step = Fraction(2) ** exponent
    assert 2**29 <= steps <= 2**30
    assert steps * step <= Fraction(bound) < (steps + 1) * step


# --- what one person and a group lose: exact, and never below what OpenDP's noise loses ----------


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1.0, 7.7, 1e6])
@pytest.mark.parametrize("shift", [0, 1, 2, 1000])
def test_it_is_the_loss_of_opendp_s_noise(scale, shift):
    """OpenDP's map is rounded up from the same number."""
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    laplace = dp.m.make_laplace(*space, scale).map(shift)
    gaussian = dp.m.make_gaussian(*space, scale).map(shift)
    for found, measure in ((laplace, PURE), (gaussian, ZCDP)):
        exact = noise_loss(measure).of(Fraction(shift), scale)
        assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 2**45))


def test_a_group_is_never_below_the_exact_bound():
    loss = noise_loss(PURE)
    for d_out in (0.1, 1 / 3, 1.0, 5e-324, 1e300):
        for people in (0, 1, 2, 3, 10, 2**32 - 1):
            for one, power in ((loss, 1), (noise_loss(ZCDP), 2)):
                exact = Fraction(d_out) * people**power
                found = one.of_group(people, d_out)
                assert found >= exact
                assert found == float("inf") or Fraction(found) <= exact * (1 + Fraction(1, 2**52))
    assert loss.of_group(3, 0.1) == 0.30000000000000004
    assert noise_loss(ZCDP).of_group(3, 0.5) == 4.5


def test_other_measures_are_refused():
    for measure in (
        dp.renyi_divergence(),
        dp.approximate(PURE),
        dp.approximate(ZCDP),
        oc.gaussian_tradeoff(),
        oc.tradeoff(),
        oc.truncated_concentrated_divergence(omega=4.0),
    ):
        with pytest.raises(UnsupportedMeasureError, match="Gaussian noise; build for one of these"):
            noise_loss(measure)
    with pytest.raises(InvalidTypeError, match="^output_measure must be a measure"):
        noise_loss("pure")


# --- noise on integers, with sums beyond 64 bits -------------------------------------------------


@pytest.mark.parametrize("measure", [dp.max_divergence(), dp.zero_concentrated_divergence()])
def test_a_sum_is_clamped_and_noise_is_drawn_each_time(measure):
    sure = IntegerNoise(noise_loss(measure), 2.0**-10)
    found = [sure.add(total) for total in (0, -5, 2**70, -(2**70))]
    assert found == [0, -5, LARGEST_SUM, -LARGEST_SUM]
    noisy = IntegerNoise(noise_loss(measure), 2.0**40)
    assert len({noisy.add(7) for _ in range(5)}) == 5


def test_a_measurement_is_not_a_function_of_rows(space):
    for thing in (space >> dp.t.then_count(), dp.t.then_count()):
        with pytest.raises(InvalidTypeError, match="^per_row must be a function of rows"):
            NoisySum(thing, 1.0, 1.0)
