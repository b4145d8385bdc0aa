"""Whole steps of a grid: what is near stays near, exactly."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.mechanisms.noise import FINE, Steps

SIZES = st.floats(1e-200, 1e200) | st.sampled_from([1e-200, 1e200, 1.0, 0.5, 0.1, 3.0])
SECRET = 987654321


def size_of(steps):
    return Fraction(2) ** steps.k


@given(SIZES)
def test_a_sensitivity_is_a_billion_steps(size):
    steps = Steps.for_sensitivity(size)
    assert not steps.whole
    assert 2**FINE <= Fraction(size) / size_of(steps) < 2 ** (FINE + 1)
    assert Fraction(size) <= steps.up(size) * size_of(steps) < Fraction(size) + size_of(steps)
    assert steps.up(size) <= 2 ** (FINE + 1)


@given(st.integers(1, 2**53))
def test_whole_sensitivities_have_whole_steps(size):
    steps = Steps.for_sensitivity(size)
    assert (steps.k, steps.whole, steps.up(size)) == (0, True, size)


def places(steps, size):
    """Floats within the reach of the grid, of all magnitudes: huge, tiny, subnormal."""
    reach = min(1.7e308, math.ldexp(1.0, min(1023, 1023 + steps.k)))
    return (
        st.floats(-reach, reach)
        | st.floats(-1e-300, 1e-300)
        | st.floats(-4.0, 4.0).map(lambda t: t * size)
        | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.3e-308, size, -size, reach, -reach])
    )


@given(st.data(), SIZES)
def test_floats_that_are_near_stay_near(data, size):
    steps = Steps.for_sensitivity(size)
    one = data.draw(places(steps, size))
    way = data.draw(st.sampled_from([-1.0, 1.0, 0.0]) | st.floats(-1.0, 1.0))
    other = one + way * size
    for _ in range(2):
        if abs(Fraction(one) - Fraction(other)) > Fraction(size):
            other = math.nextafter(other, one)
    assume(abs(Fraction(one) - Fraction(other)) <= Fraction(size))
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(size)


@given(st.data(), SIZES)
def test_floats_are_rounded_down_exactly(data, size):
    steps = Steps.for_sensitivity(size)
    one = data.draw(places(steps, size))
    found, step = steps.of("x", one), size_of(steps)
    if steps.k <= 0:
        assert found * step <= Fraction(one) < (found + 1) * step
    else:  # a coarse grid: doubles far below a step may come out as 0
        assert found * step <= Fraction(one) + step / 2**1000
        assert Fraction(one) < (found + 1) * step


@given(st.integers(-(2**70), 2**70), st.integers(1, 2**53), st.data())
def test_whole_numbers_are_kept_as_they_are(one, size, data):
    steps = Steps.for_sensitivity(size)
    other = one + data.draw(st.integers(-size, size))
    assert steps.of("x", one) == one
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(size)
    assert steps.value(one) == one
    assert type(steps.value(one)) is int


@given(st.integers(-(2**70), 2**70), st.sampled_from([1.0, 2.0, 5.0, 1024.0]), st.data())
@example(2**53 + 1, 1.0, None)
def test_integers_that_are_near_stay_near_on_a_fine_grid(one, size, data):
    steps = Steps.for_sensitivity(size)
    step = 1 if data is None else data.draw(st.integers(-int(size), int(size)))
    assert abs(steps.of("x", one) - steps.of("x", one + step)) <= steps.up(size)


@pytest.mark.parametrize("kind", [Fraction, Decimal, np.longdouble])
def test_finer_numbers_that_are_near_stay_near(kind):
    steps = Steps.for_sensitivity(1.0)
    one, other = kind(2**53) + kind(1), kind(2**53) + kind(2)
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(1.0)
    steps = Steps.for_sensitivity(2.0**-20)
    half = kind(2**33) + kind(2**-20) / 2  # a tie: to even, down
    assert abs(steps.of("x", half) - steps.of("x", half + kind(2**-20))) <= steps.up(2.0**-20)


@given(st.floats(-1e300, 1e300) | st.integers(-(2**60), 2**60))
def test_a_threshold_is_rounded_up_for_whole_queries(threshold):
    """q >= T for whole q is q >= the level."""
    steps = Steps.for_sensitivity(1)
    level = -steps.of("threshold", -threshold)
    assert level == math.ceil(threshold)
    assert level - 1 < Fraction(threshold) <= level


@given(SIZES, st.integers(-(2**70), 2**70))
def test_values_are_what_the_steps_stand_for(size, count):
    steps = Steps.for_sensitivity(size)
    exact = count * size_of(steps)
    found = steps.value(count)
    assert type(found) is float
    if abs(exact) < Fraction(1.7e308):
        assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(1, 2**52) + Fraction(5e-324)
    else:
        assert found == math.copysign(math.inf, exact)


@given(SIZES | st.integers(1, 2**53), st.floats(1e-6, 2.0**31 - 1))
def test_scales_are_whole_numbers_of_steps_or_exact_parts(size, ratio):
    steps = Steps.for_sensitivity(size)
    scale = ratio * float(size)
    assume(0.0 < scale < math.inf)
    if isinstance(size, int) and scale > 2.0**62:
        with pytest.raises(InvalidValueError):
            steps.scale(scale=scale)
    else:
        assert Fraction(steps.scale(scale=scale)) * size_of(steps) == Fraction(scale)


UNREADABLE = [
    *(math.nan, math.inf, -math.inf, np.float32("inf"), Decimal("nan")),
    *(None, [SECRET], (SECRET,), {SECRET: SECRET}, complex(SECRET, 1), b"987654321x", object()),
    f"{SECRET}x",
]


@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("size", [1, 1.0])
def test_errors_name_the_argument_and_never_the_value(value, size):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^the answer ") as caught:
        Steps.for_sensitivity(size).of("the answer", value)
    assert "987654321" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@given(SIZES, st.floats(-1e307, 1e307), st.floats(-1e307, 1e307))
def test_rounding_keeps_the_order(size, one, other):
    """So that queries that rise on a neighbour do not fall in steps."""
    steps = Steps.for_sensitivity(size)
    low, high = sorted([one, other])
    try:
        assert steps.of("x", low) <= steps.of("x", high)
    except InvalidValueError:
        assume(False)


def test_values_beyond_the_doubles_are_infinite():
    fine, coarse = Steps.for_sensitivity(1.0), Steps.for_sensitivity(1e200)
    assert fine.value(2**2000) == math.inf
    assert fine.value(-(2**2000)) == -math.inf
    assert coarse.value(2**1000) == math.inf
    assert coarse.value(-(2**1000)) == -math.inf
