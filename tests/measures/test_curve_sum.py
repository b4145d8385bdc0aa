"""Sums of Rényi curves without a grid."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.measures.renyi import RENYI_DIVERGENCE, GridCurve


def test_curves_without_a_grid_have_no_bound_no_record_and_nothing_remains():
    start = oc.accumulators.basic().start(RENYI_DIVERGENCE)
    for call in (
        lambda: start.within(1.0),
        lambda: start.remaining(1.0),
        start.to_record,
        lambda: oc.accumulators.basic().from_record(RENYI_DIVERGENCE, None),
    ):
        with pytest.raises(InvalidTypeError, match="grid of orders"):
            call()


def test_a_curve_without_a_value_at_each_order_is_no_curve():
    with pytest.raises(ValueError, match="shorter"):
        GridCurve((2.0, 3.0), (0.5,))(1.5)
