"""What may be asked, and the grid that values are rounded to."""

from dataclasses import FrozenInstanceError
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.mechanisms.individual import NoisySum, step_exponent, whole_steps


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
