"""Sessions and their handles: how they are opened, asked, shown, and what they refuse."""

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import Transformation

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.queryables.data import AsTransformation
from opendp_concurrent.queryables.mechanism import describe
from opendp_concurrent.queryables.root import (
    ConcurrentCompositionQueryable,
    ConcurrentFilterQueryable,
    ConcurrentOdometerQueryable,
)
from opendp_concurrent.queryables.session import Handle

PURE = dp.max_divergence()


def made_on(space):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    return {
        ConcurrentOdometerQueryable: odometer,
        ConcurrentFilterQueryable: oc.make_concurrent_filter(odometer, 1, 1.0),
        ConcurrentCompositionQueryable: oc.make_concurrent_composition(*space, PURE, 1, [0.5] * 2),
    }


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_every_handle_launches_by_a_call_and_by_invoke(space, kind, native):
    made = list(made_on(space).values())[kind]
    outer = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0])
    handle = outer([1, 2, 3])(made) if native and kind else made.invoke([1, 2, 3])
    assert isinstance(handle, Handle)
    for launch in (handle, handle.invoke):
        query = space >> dp.t.then_count() >> dp.m.then_laplace(scale=8.0)
        assert isinstance(launch(query), int)
    assert (handle._transport is None) == (not (native and kind))


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


@pytest.mark.parametrize("d_in", ["one", -1, 1.5, None, [1]])
def test_a_distance_that_a_native_child_cannot_use_is_named(space, d_in):
    pure = PURE
    native = dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, pure), 1, 1.0)
    child = oc.make_concurrent_odometer(*space, pure)([1, 2])(native)
    with pytest.raises(InvalidTypeError, match=r"d_in \(.*\) cannot be used by the native child"):
        child.privacy_loss(d_in)
    assert child.privacy_loss(1) == 0.0


@pytest.mark.parametrize("then", [lambda: dp.m.then_laplace(scale=1.0), dp.t.then_count])
def test_a_then_constructor_that_is_not_chained_is_told_apart(space, then):
    root = oc.make_concurrent_odometer(*space, PURE)([1, 2])
    for launch in (root, oc.c.make_interactive, lambda one: root.loss_after([one], 1)):
        with pytest.raises(InvalidTypeError, match="chain it: input_space >> then_"):
            launch(then())
    assert root.privacy_loss(1) == 0.0


def test_a_chain_is_told_from_its_first_part_to_its_last(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    assert describe(count) == "count >> laplace(scale=2.0)"


def test_an_odometer_has_no_d_in_to_leave_out():
    """Under a user's metric None would be a distance, and later launches would be read there."""
    space = dp.user_domain("own", lambda _: True), dp.user_distance("own")
    root = oc.make_concurrent_odometer(*space, PURE)([1])
    for read in (root.privacy_loss, root.risk, lambda: root.loss_after([])):
        with pytest.raises(InvalidTypeError, match="d_in"):
            read()
    root(dp.m.make_user_measurement(*space, PURE, lambda _: 1, lambda d: d / 2))
    assert root.privacy_loss(1) == 0.5


def of_rows():
    context = oc.concurrent_context(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    return context.query(), context.query(epsilon=0.5).count().laplace(scale=4.0)


def of_a_frame():
    context = oc.concurrent_context(
        data=pl.LazyFrame({"n": [1, 2, 3]}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    return context.query(), None


@pytest.mark.parametrize("make", [of_rows, of_a_frame])
def test_queries_of_contexts_stand_for_transformations(make):
    query, measured = make()
    assert isinstance(query, AsTransformation)
    count = query.count() if measured is not None else query.select(pl.len())
    assert isinstance(count.as_transformation(), Transformation)
    assert count.as_transformation().map(1) == 1
    if measured is not None:
        with pytest.raises(InvalidTypeError, match="^the query must be a transformation"):
            measured.as_transformation()
