"""The accumulator decides which measures and budgets it supports."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.guards import accumulator_for, check_budget
from opendp_concurrent.errors import InvalidValueError, UnsupportedMeasureError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.gaussian import GAUSSIAN_TRADEOFF
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.measure import Basic
from opendp_concurrent.measures.sums import SquareSum
from opendp_concurrent.measures.tradeoffs import TRADEOFF_DIVERGENCE

ZCDP = oc.accumulators.zcdp(1e-6)


def test_basic_is_the_sum_of_the_measure():
    for left_out in (None, oc.accumulators.basic()):
        for measure in (MAX_DIVERGENCE, GAUSSIAN_TRADEOFF):
            assert accumulator_for(measure, left_out) == Basic()
        assert isinstance(Basic().start(GAUSSIAN_TRADEOFF), SquareSum)


def test_an_accumulator_is_taken_under_the_measures_that_it_supports():
    assert accumulator_for(APPROXIMATE_MAX_DIVERGENCE, ZCDP) is ZCDP
    with pytest.raises(UnsupportedMeasureError, match="supports Approximate.* is MaxDivergence"):
        accumulator_for(MAX_DIVERGENCE, ZCDP)
    with pytest.raises(UnsupportedMeasureError, match=r"ladder\(unit\) or .*residue"):
        accumulator_for(TRADEOFF_DIVERGENCE, ZCDP)  # the measure has a better reason


def test_a_budget_is_checked_where_the_accumulator_can():
    check_budget(ZCDP, (1.0, 1e-6))
    check_budget(Basic(), (1.0, 0.0))
    with pytest.raises(InvalidValueError, match=r"^d_out\[1\]"):
        check_budget(ZCDP, (1.0, 1e-7))
