"""What may be asked, and the grid that values are rounded to."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.individual.noisy_sum import NoisySum, step_exponent, whole_steps


def first(rows):
    return rows[:, 0]


def test_a_query_is_a_value():
    query = NoisySum(first, bound=2, scale=3.0)
    assert query == NoisySum(first, 2.0, 3)
    assert hash(query) == hash(NoisySum(first, 2.0, 3))
    with pytest.raises(FrozenInstanceError):
        query.scale = 0.0


@pytest.mark.parametrize("per_row", [None, 5, "rows", float, dict])
def test_per_row_is_a_function(per_row):
    with pytest.raises(InvalidTypeError, match="^per_row must be a function of rows"):
        NoisySum(per_row, 1.0, 1.0)


def test_a_measurement_is_not_a_function_of_rows(space):
    for thing in (
        space >> dp.t.then_count(),
        space >> dp.t.then_count() >> dp.m.then_laplace(1.0),
        dp.t.then_count(),
    ):
        with pytest.raises(InvalidTypeError, match="^per_row must be a function of rows"):
            NoisySum(thing, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "value", "error", "match"),
    [
        ("bound", "1", InvalidTypeError, "^bound must be a number, found str"),
        ("bound", True, InvalidTypeError, "^bound must be a number, found bool"),
        ("bound", 0.0, InvalidValueError, r"^bound \(0.0\) must be from 1e-200 to 1e"),
        ("bound", -1.0, InvalidValueError, r"^bound \(-1.0\) must be from"),
        ("bound", math.nan, InvalidValueError, r"^bound \(nan\) must be from"),
        ("bound", math.inf, InvalidValueError, r"^bound \(inf\) must be from"),
        ("bound", 10**400, InvalidValueError, "^bound must be in the range of doubles"),
        ("scale", None, InvalidTypeError, "^scale must be a number, found NoneType"),
        ("scale", 0.0, InvalidValueError, r"^scale \(0.0\) must be from .* for bound \(1.0\)"),
        ("scale", -1.0, InvalidValueError, r"^scale \(-1.0\) must be from"),
        ("scale", math.nan, InvalidValueError, r"^scale \(nan\) must be from"),
        ("scale", math.inf, InvalidValueError, r"^scale \(inf\) must be from"),
        ("scale", 1e-18, InvalidValueError, r"^scale \(1e-18\) must be from 1.73e-18 to 8.59e\+09"),
        ("scale", 1e10, InvalidValueError, "^scale .* must be from 1.73e-18 to 8.59e"),
    ],
)
def test_bad_arguments_are_named(name, value, error, match):
    arguments = {"bound": 1.0, "scale": 1.0, name: value}
    with pytest.raises(error, match=match):
        NoisySum(first, **arguments)


@given(st.floats(1e-200, 1e200))
def test_a_bound_is_many_whole_steps_and_never_more_than_itself(bound):
    exponent = step_exponent(bound=bound)
    steps = whole_steps(bound, exponent)
    step = Fraction(2) ** exponent
    assert 2**29 <= steps <= 2**30
    assert steps * step <= Fraction(bound) < (steps + 1) * step


def test_small_integers_are_whole_steps():
    for bound in (1, 2, 3, 100, 12345, 2**29):
        exponent = step_exponent(bound=bound)
        assert Fraction(whole_steps(bound, exponent)) * Fraction(2) ** exponent == bound
        assert exponent <= 0
