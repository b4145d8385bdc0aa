"""0.1.0 took for the same, kept by reference, or took back what must be values."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, InvalidValueError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.renyi import CurveSum, OnOrders

dp.enable_features("contrib", "honest-but-curious")

PURE, RENYI = dp.max_divergence(), dp.renyi_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
LAPLACE = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)


def test_what_would_happen_does_not_leave_out_launches_that_do_not_fit():
    root = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.125])([1])
    assert root.loss_after([LAPLACE]) == 0.25
    with pytest.raises(BudgetExceededError):
        root.loss_after([LAPLACE, LAPLACE])
    with pytest.raises(BudgetExceededError):
        root.loss_after([LAPLACE] * 3)
    assert (root.privacy_loss(), root.remaining()) == (0.0, (0.25, 0.125))
    limit = oc.make_concurrent_filter(oc.make_concurrent_odometer(*SPACE, PURE), 1, 0.5)([1])
    assert limit.loss_after([LAPLACE] * 3) == 0.75  # a filter says how much it would be


def test_slots_likewise():
    functions = [oc.TradeoffFunction.pure(0.25), oc.TradeoffFunction.pure(0.125)]
    root = oc.make_concurrent_composition(*SPACE, oc.tradeoff(), 1, functions, order="any")([1])
    dear = oc.c.cast(SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=0.5), oc.tradeoff())
    with pytest.raises(BudgetExceededError):
        root.loss_after([dear])


def test_a_curve_is_what_it_was_when_it_was_launched():
    slope = [1.0]
    user = dp.m.make_user_measurement(
        *SPACE, RENYI, len, lambda d_in: lambda alpha: slope[0] * alpha
    )
    root = oc.make_concurrent_odometer(*SPACE, RENYI)([1])
    root.privacy_loss(1)
    root(user)
    slope[0] = 0.0
    loss = root.privacy_loss(1)
    assert [loss(2.0), loss(16.0), loss(2.2)] == [2.0, 16.0, 2.5]
    assert loss(1e9) == math.inf


STARTS = {
    "scalar": (oc.accumulators.basic().start(MAX_DIVERGENCE), 0.5),
    "pair": (oc.accumulators.basic().start(APPROXIMATE_MAX_DIVERGENCE), (0.5, 0.1)),
    "curve": (CurveSum(), lambda alpha: alpha),
    "orders": (OnOrders((2.0, 4.0)).start(None), lambda alpha: alpha),
    "advanced": (oc.accumulators.advanced(1e-6).start((0.0, 0.0)), (0.5, 0.0)),
    "ladder": (
        oc.accumulators.ladder(oc.TradeoffFunction.pure(0.1)).start(None),
        oc.TradeoffFunction.pure(0.1),
    ),
    "residue": (oc.accumulators.residue(1.0).start(None), oc.TradeoffFunction.gaussian(0.1)),
}


@pytest.mark.parametrize("count", [-1, 0, True, 1.0])
@pytest.mark.parametrize("name", STARTS)
def test_nothing_is_taken_back(name, count):
    start, d_mid = STARTS[name]
    with pytest.raises((TypeError, InvalidValueError), match="count"):
        start.after(d_mid).after(d_mid, count)
