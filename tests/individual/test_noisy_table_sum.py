"""Queries of the individual filter on tables: what they may say, and their whole steps."""

from datetime import date
from fractions import Fraction

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.individual.noisy_table_sum import NoisyTableSum, steps_of
from opendp_concurrent.tables.plan import Quantised
from opendp_concurrent.tables.schema import schema_of

SCHEMA = schema_of({"id": int, "n": int, "x": float, "day": date}, "id")


def test_whole_steps():
    counted = steps_of(NoisyTableSum(None, 3, 1.5), SCHEMA)
    assert (counted.value, counted.reach, counted.scale, counted.step) == (None, 3, 1.5, 1.0)
    whole = steps_of(NoisyTableSum("n", 3, 1.5), SCHEMA)
    assert whole.value == Quantised("n", -3, 3)
    assert type(whole.value.lower) is int
    floats = steps_of(NoisyTableSum("x", 10.0, 20.0, 0.01), SCHEMA)
    assert (floats.reach, floats.scale, floats.step) == (1000, 2000.0, 0.01)
    assert floats.value == Quantised("x", -10.0, 10.0, 100.0)


def test_the_scale_is_rounded_up():
    for quantum in (1 / 3, 0.1, 0.07, 1e-9):
        found = steps_of(NoisyTableSum("x", 10.0, 0.3, quantum), SCHEMA)
        assert Fraction(found.scale) >= Fraction(0.3) * Fraction(1.0 / quantum)


@pytest.mark.parametrize(
    "given",
    [
        {"column": 5},
        {"column": ""},
        {"bound": 0},
        {"bound": -1},
        {"bound": float("nan")},
        {"bound": float("inf")},
        {"scale": 0.0},
        {"scale": float("inf")},
        {"quantum": 0.0},
        {"where": "n > 1"},
        {"where": oc.tables.column},
    ],
    ids=lambda given: "-".join(given),
)
def test_what_can_be_seen_without_a_table_is_refused_when_it_is_made(given):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=next(iter(given))):
        NoisyTableSum(**{"column": "n", "bound": 1, "scale": 1.0, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"column": "nobody"}, "column"),
        ({"column": "day"}, "column"),
        ({"column": "x"}, "quantum must be given"),
        ({"column": "n", "quantum": 0.5}, "quantum is for columns of floats"),
        ({"column": None, "quantum": 0.5}, "quantum is for columns of floats"),
        ({"bound": 1.5}, "whole number"),
        ({"bound": 2**40 + 1}, "2\\^40"),
        ({"column": "x", "bound": 0.4, "quantum": 1.0}, "from 1 to"),
        ({"column": "x", "quantum": 1e-300}, "quantum"),
        ({"scale": 1e-10}, "scale"),
        ({"scale": 1e20}, "scale"),
        ({"where": oc.tables.column("nobody") == 1}, "where"),
        ({"where": oc.tables.column("n") == "1"}, "where"),
    ],
    ids=str,
)
def test_what_depends_on_the_columns_is_refused_for_a_table(given, message):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        steps_of(NoisyTableSum(**{"column": "n", "bound": 1, "scale": 1.0, **given}), SCHEMA)
