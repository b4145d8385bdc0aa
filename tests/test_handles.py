"""Whoever annotates with a handle's public class is right about what is returned."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from .build import DATA, PURE, SPACE, a_filter, an_odometer, by_tens, laplace, opened

STREAM = oc.integer_stream(0, 1), oc.event_presence()


def counter():
    return oc.m.make_counter(*STREAM, PURE, scale=4.0)


def native_filter():
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    return dp.c.make_privacy_filter(odometer, 1, 1.0)


def child(query):
    return an_odometer()(DATA)(query)


RETURNED = {
    "ConcurrentOdometerQueryable": lambda: an_odometer()(DATA),
    "ConcurrentFilterQueryable": opened,
    "ConcurrentCompositionQueryable": lambda: oc.make_concurrent_composition(
        *SPACE, PURE, 1, [0.5]
    )(DATA),
    "BlockFilterQueryable": lambda: by_tens()(DATA),
    "ChildQueryable": lambda: child(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])),
    "ChildOdometerQueryable": lambda: child(native_filter()),
    "WrappedOdometerQueryable": lambda: oc.c.make_bounded_interactive(an_odometer(), 9)(DATA),
    "ContinualQueryable": lambda: counter()([]),
    "StreamQueryable": lambda: oc.c.make_concurrent_continual(a_filter(space=STREAM))([]),
    "OwnStreamQueryable": lambda: oc.c.make_bounded_interactive(counter(), 9)([]),
    "SharedReleaseQueryable": lambda: child(
        SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE)
    ),
    "Readable": lambda: counter()([]),
    "WithParts": lambda: oc.c.make_parallel_composition(
        *SPACE, oc.c.by_key(bool), {True: laplace(1.0)}
    )(DATA),
    "WithSynthetic": lambda: oc.m.make_private_multiplicative_weights(
        *SPACE, PURE, d_in=1, d_out=1.0, universe=4, queries=9, size=9000
    )(DATA),
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
