"""Interactive children of every kind, interleaved."""

import gc
import weakref

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, ReentrantLaunchError

from .children import filter_, gaussian, laplace, native_compositor, python_queryable

PURE = dp.max_divergence()
APPROXIMATE_ZCDP = dp.approximate(dp.zero_concentrated_divergence())


def native_filter(space):
    return dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, PURE), 1, 0.75)


CHILDREN = {
    "native compositor": (native_compositor, laplace),
    "native filter": (native_filter, laplace),
    "our compositor": (
        lambda space: oc.make_concurrent_composition(*space, PURE, 1, [0.25] * 3),
        laplace,
    ),
    "our filter": (lambda space: filter_(space, 0.75), laplace),
    "python queryable": (python_queryable, lambda space, epsilon: "query"),
}


@pytest.mark.parametrize("first", CHILDREN)
@pytest.mark.parametrize("second", CHILDREN)
def test_children_of_any_two_kinds_are_interleaved_at_no_cost(space, first, second):
    root = filter_(space)([1] * 20)
    make_one, query_one = CHILDREN[first]
    make_other, query_other = CHILDREN[second]
    one, other = root(make_one(space)), root(make_other(space))
    spent = root.privacy_loss()
    for _ in range(3):
        assert one(query_one(space, 0.25)) is not None
        assert other(query_other(space, 0.25)) is not None
        root(laplace(space, 1e-9))
    assert root.privacy_loss() == pytest.approx(spent, abs=1e-8)


# --- nesting --------------------------------------------------------------------------------


def test_a_transformation_that_fails_is_paid_for(space):
    def fail(rows):
        raise ValueError("depends on the data")

    bad = dp.t.make_user_transformation(*space, *space, fail, lambda d_in: d_in)
    root = filter_(space, 1.0)([1])
    leaf = root(bad >> oc.make_concurrent_odometer(*space, PURE))
    for spent in (0.25, 0.5):
        with pytest.raises(OpenDPException, match="depends on the data"):
            leaf(laplace(space, 0.25))
        assert root.privacy_loss() == spent


def test_a_native_odometer_is_a_child_that_is_charged_before_it_runs(space):
    """OpenDP's own runs a mechanism, and then adds up its loss: a failure would cost nothing."""
    native = dp.c.make_fully_adaptive_composition(*space, PURE)

    def fail(_):
        raise ValueError("depends on the data")

    failing = dp.m.make_user_measurement(*space, PURE, fail, lambda d_in: 0.25, TO="i32")
    limit = oc.make_concurrent_filter(native, 1, 1.0)([1])
    roots = [filter_(space, 1.0)([1]), oc.make_concurrent_composition(*space, PURE, 1, [1.0])([1])]
    for handle in (limit, *(root(native) for root in roots)):
        assert handle(laplace(space, 0.5)) is not None
        assert handle.privacy_loss(1) == 0.5
    assert roots[0].privacy_loss() == 0.5
    with pytest.raises(OpenDPException, match="depends on the data"):
        limit(failing)
    assert limit.privacy_loss() == 0.75
    with pytest.raises(oc.errors.BudgetExceededError):
        limit(laplace(space, 0.5))
    assert roots[0].describe(native).admitted


def test_a_native_odometer_that_does_not_say_how_it_was_made_is_refused(space):
    native = dp.c.make_fully_adaptive_composition(*space, PURE)
    del native.__opendp_dict__
    with pytest.raises(InvalidTypeError, match="only after it has run"):
        filter_(space)([1])(native)
    with pytest.raises(InvalidTypeError, match="make_concurrent_odometer"):
        oc.make_concurrent_filter(native, 1, 1.0)


SMALL = (0.001, 1e-9)


# --- re-entrance ----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [PURE, APPROXIMATE_ZCDP], ids=["pure", "approximate zCDP"])
@pytest.mark.parametrize("ours", [True, False], ids=["ours", "native"])
def test_a_measurement_may_query_its_own_child_while_it_is_launched(space, measure, ours):
    pure = measure is PURE
    share = 0.25 if pure else SMALL
    query = laplace(space, 0.25) if pure else gaussian(space)
    make = oc.make_concurrent_composition if ours else dp.c.make_adaptive_composition
    inner = make(*space, measure, d_in=1, d_mids=[share] * 2)
    root = filter_(space, 100.0 if pure else (1.0, 1e-3), measure)([1] * 20)
    assert isinstance(root(inner >> (lambda child: child(query) + child(query))), int)
    assert root.privacy_loss() == inner.map(1)


@pytest.mark.parametrize("measure", [PURE, APPROXIMATE_ZCDP], ids=["pure", "approximate zCDP"])
def test_a_running_mechanism_cannot_launch_on_its_own_account(space, measure):
    share, query = (0.25, laplace(space, 0.25)) if measure is PURE else (SMALL, gaussian(space))
    root = filter_(space, 1.0 if measure is PURE else (1.0, 1e-3), measure)([1] * 20)
    caught = []

    def function(rows):
        try:
            root(query)
        except ReentrantLaunchError as error:
            caught.append(error)
        return 1

    bad = dp.m.make_user_measurement(*space, measure, function, lambda d_in: share)
    assert root(bad) == 1
    assert len(caught) == 1
    assert root.privacy_loss() == share
    root(query)


def test_a_childs_transition_cannot_launch_on_the_account_that_paid(space):
    root = filter_(space, 1.0)([1] * 20)

    def function(rows):
        return dp.new_queryable(lambda query: root(laplace(space, 0.25)))

    bad = dp.m.make_user_measurement(*space, PURE, function, lambda d_in: 0.25)
    child = root(bad)
    with pytest.raises(ReentrantLaunchError):
        child("now")
    assert root.privacy_loss() == 0.25


# --- threads --------------------------------------------------------------------------------


def test_handles_are_collected_and_take_the_data_with_them(space):
    root = filter_(space)([1] * 20)
    root(native_compositor(space))
    dead = weakref.ref(root), weakref.ref(root._session.token)
    del root
    gc.collect()
    assert [one() for one in dead] == [None, None]
