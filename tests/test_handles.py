"""Whoever annotates with a handle's public class is right about what is returned."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from .build import PURE, SPACE

STREAM = oc.integer_stream(0, 1), oc.event_presence()


def composition():
    return oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])


def root():
    return oc.make_concurrent_odometer(*SPACE, PURE)([1])


def counter():
    return oc.m.make_counter(*STREAM, PURE, scale=4.0)


def stream():
    odometer = oc.make_concurrent_odometer(*STREAM, PURE)
    return oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, 1.0))([])


def counted():
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)


def parts():
    return oc.c.make_parallel_composition(*SPACE, oc.c.by_key(bool), {True: counted()})


def weights():
    return oc.m.make_private_multiplicative_weights(
        *SPACE, PURE, d_in=1, d_out=1.0, universe=4, queries=9, size=9000
    )


def native_filter():
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    return dp.c.make_privacy_filter(odometer, 1, 1.0)


RETURNED = {
    "ConcurrentOdometerQueryable": root,
    "ConcurrentFilterQueryable": lambda: oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*SPACE, PURE), 1, 1.0
    )([1]),
    "ConcurrentCompositionQueryable": lambda: composition()([1]),
    "BlockFilterQueryable": lambda: oc.c.make_block_filter(
        oc.make_concurrent_odometer(*SPACE, PURE), 1, 1.0, blocks=oc.c.by_key(len), keys=[1]
    )([1]),
    "ChildQueryable": lambda: root()(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])),
    "ChildOdometerQueryable": lambda: root()(native_filter()),
    "WrappedOdometerQueryable": lambda: oc.c.make_bounded_interactive(
        oc.make_concurrent_odometer(*SPACE, PURE), 9
    )([1]),
    "ContinualQueryable": lambda: counter()([]),
    "StreamQueryable": stream,
    "OwnStreamQueryable": lambda: oc.c.make_bounded_interactive(counter(), 9)([]),
    "SharedReleaseQueryable": lambda: root()(
        SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE)
    ),
    "Readable": lambda: counter()([]),
    "WithParts": lambda: parts()([1]),
    "WithSynthetic": lambda: weights()([1]),
}


# the others are messages and answers
@pytest.mark.parametrize("name", RETURNED)
def test_each_class_is_of_what_is_returned(name):
    handle = RETURNED[name]()
    assert isinstance(handle, vars(oc.handles)[name])
    assert isinstance(handle, (dp.Queryable, dp.OdometerQueryable))


def test_each_class_of_a_handle_is_tried():
    found = (vars(oc.handles)[name] for name in oc.handles.__all__)
    assert {one.__name__ for one in found if "Queryable" in one.__name__} <= set(RETURNED)
