"""From a specification and data to a handle."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError
from opendp_concurrent.queryables.root import (
    ConcurrentCompositionQueryable,
    ConcurrentFilterQueryable,
    ConcurrentOdometerQueryable,
)

PURE = dp.max_divergence()


def made_on(space):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    return {
        ConcurrentOdometerQueryable: odometer,
        ConcurrentFilterQueryable: oc.make_concurrent_filter(odometer, 1, 1.0),
        ConcurrentCompositionQueryable: oc.make_concurrent_composition(*space, PURE, 1, [0.5]),
    }


def test_two_invocations_share_no_budget(space):
    filter_ = made_on(space)[ConcurrentFilterQueryable]
    whole = dp.m.make_user_measurement(*space, PURE, len, lambda d_in: 1.0, TO=int)
    one, other = filter_([1]), filter_([2, 3])
    assert one(whole) == 1
    with pytest.raises(BudgetExceededError):
        one(whole)
    assert other(whole) == 2


def failing(space):
    def refuse(rows):
        raise ValueError("these rows cannot be transformed")

    return dp.t.make_user_transformation(*space, *space, refuse, lambda d_in: d_in)


def test_an_owner_hears_at_once_of_a_transformation_that_fails(space):
    made = made_on(space)
    for kind in (ConcurrentOdometerQueryable, ConcurrentFilterQueryable):
        with pytest.raises(dp.OpenDPException, match="cannot be transformed"):
            (failing(space) >> made[kind])([1, 2])


def test_below_a_parent_it_fails_when_it_is_used(space):
    odometer = made_on(space)[ConcurrentOdometerQueryable]
    root = odometer([1, 2, 3])
    child = root(failing(space) >> odometer)
    count = dp.m.make_user_measurement(*space, PURE, len, lambda d_in: 0.25, TO=int)
    with pytest.raises(dp.OpenDPException, match="cannot be transformed"):
        child(count)
    assert root.privacy_loss(1) == 0.25  # charged before it ran


def test_an_odometer_with_a_ledger_is_at_the_top(space, tmp_path):
    ledger_room = pytest.importorskip("opendp_concurrent.ledger")
    with ledger_room.create_ledger(tmp_path / "budget.db", dataset="d") as ledger:
        recorded = oc.make_concurrent_odometer(*space, PURE, ledger=ledger, d_in=1)
        root = made_on(space)[ConcurrentOdometerQueryable]([1])
        with pytest.raises(InvalidTypeError, match="^an odometer with a ledger cannot be launched"):
            root(recorded)
