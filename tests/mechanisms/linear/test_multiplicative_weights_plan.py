"""The parameters of private multiplicative weights: what they cost, and what follows from them."""

import math

import opendp.prelude as dp
import pytest

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.mechanisms.multiplicative_weights import plan

PURE = composition_measure(dp.max_divergence())
ZCDP = composition_measure(dp.zero_concentrated_divergence())
SIZES = {"cells": 16, "size": 100_000, "queries": 50, "beta": 0.05}


@pytest.mark.parametrize(("measure", "d_out"), [(PURE, 1.0), (ZCDP, 0.5)], ids=["pure", "zCDP"])
def test_a_plan_costs_no_more_than_its_budget_and_almost_all_of_it(measure, d_out):
    found = plan(measure, 1.0, d_out, **SIZES)
    assert 0.99 * d_out <= found.loss(1.0, measure) <= d_out
    assert found.refresh == (measure is ZCDP)
    assert 0.0 < found.tolerance < found.error < SIZES["size"]


def test_a_larger_budget_promises_a_smaller_error():
    errors = [plan(PURE, 1.0, d_out, **SIZES).error for d_out in (0.5, 1.0, 2.0, 4.0)]
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) == 4


def test_updates_are_bounded_by_the_divergence_and_by_the_queries():
    """[HR10]: log m / (2 d²) updates, d = g/n; the learning rate is 4 d."""
    found = plan(PURE, 1.0, 1.0, **SIZES)
    distance = found.learning_rate / 4
    bound = math.log(SIZES["cells"]) / (2 * distance**2)
    assert found.max_updates == min(SIZES["queries"], math.ceil(bound))
    # α = T + t and g = T - t
    assert distance * SIZES["size"] == pytest.approx(2 * found.tolerance - found.error, rel=1e-12)


def test_what_cannot_be_promised_is_refused():
    with pytest.raises(InvalidValueError, match=r"^d_out \(1e-09\) must be larger"):
        plan(PURE, 1.0, 1e-9, **SIZES)
    with pytest.raises(InvalidValueError, match=r"^beta .* at least 1e-300"):
        plan(PURE, 1.0, 1.0, **{**SIZES, "beta": 1e-301})
