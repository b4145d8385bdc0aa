"""Where a continual mechanism meets others: order of chains, failures, forks, restarts."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

PURE, ZCDP, TINY = dp.max_divergence(), dp.zero_concentrated_divergence(), 1e-3


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def counter(scale=TINY, **keywords):
    return oc.m.make_counter(*bits(), PURE, scale, **keywords)


def bounded(limit=1):
    pairs = oc.record_stream("pairs", lambda pair: isinstance(pair, tuple)), oc.user_presence()
    return oc.t.make_bounded_contributions(*pairs, oc.integer_stream(0, 1), limit)


def filter_(d_out=1e9):
    return oc.make_concurrent_filter(oc.make_concurrent_odometer(*bits(), PURE), 1, d_out)


# --- transformations come before compositions --------------------------------------------------


def test_in_the_right_order_contributions_are_bounded():
    stream = (bounded() >> oc.c.make_concurrent_continual(filter_()))([])
    child = stream(counter())
    stream.update_all([("ann", 1)] * 9)
    assert child(None) == 1
    assert stream.privacy_loss() == counter().map(1)
    assert stream.remaining() == 1e9 - counter().map(1)


def test_a_composition_behind_a_transformation_is_refused():
    compositor = oc.make_concurrent_composition(*bits(), PURE, 1, [1000.0])
    for composition in (filter_(), oc.make_concurrent_odometer(*bits(), PURE)):
        with pytest.raises(InvalidTypeError, match="make_concurrent_continual first"):
            bounded() >> composition
    for composition in (compositor, dp.c.make_adaptive_composition(*bits(), PURE, 1, [1000.0])):
        with pytest.raises(InvalidTypeError, match="make_concurrent_continual first"):
            (bounded() >> composition)([])
    native = dp.c.make_chain_mt(counter(), bounded())
    with pytest.raises(Exception, match="make_concurrent_continual first"):
        native([])


def test_a_composition_on_a_stream_is_wrapped_first():
    stream = oc.c.make_concurrent_continual(filter_())([])
    compositor = oc.make_concurrent_composition(*bits(), PURE, 1, [1.0])
    for inner in (filter_(1.0), oc.make_concurrent_odometer(*bits(), PURE), compositor):
        with pytest.raises(InvalidTypeError, match="would not receive the updates"):
            stream(inner)
    nested = stream(oc.c.make_concurrent_continual(filter_(1e6)))
    child = nested(counter())
    stream.update_all([1, 1, 1])
    assert child(None) == 3


# --- failures ----------------------------------------------------------------------------------


def explosive():
    def function(item):
        if item == 1:
            raise ValueError("no")
        return 1

    return oc.t.make_stream_map(*bits(), oc.integer_stream(0, 1), function)


def test_a_map_that_fails_drops_its_item():
    stream = oc.c.make_concurrent_continual(filter_())([])
    first, second, third = (stream(one) for one in (counter(), explosive() >> counter(), counter()))
    for item in (1, 0, 1):
        stream.update(item)
    assert (first(None), second(None), third(None)) == (2, 1, 2)


@pytest.mark.parametrize("user", [[], float("nan"), np.nan])
def test_an_item_of_a_user_who_cannot_be_told_apart_is_dropped(user):
    queryable = (bounded() >> counter())([])
    queryable.update((user, 1))
    queryable.update_all([("ann", 1), (user, 1), ("bob", 1)])
    assert queryable(None) == 2


# --- forks and restarts ------------------------------------------------------------------------


def test_a_stream_starts_empty():
    """Items that are passed when it is opened would be dropped without a word."""
    space, pure = (oc.integer_stream(0, 1), oc.event_presence()), dp.max_divergence()
    odometer = oc.make_concurrent_odometer(*space, pure)
    shared = oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, 1.0))
    clamped = oc.t.make_stream_clamp(oc.integer_stream(0, 5), oc.event_presence(), space[0])
    for mechanism in (
        oc.m.make_counter(*space, pure, scale=1.0, horizon=10),
        clamped >> oc.m.make_counter(*space, pure, scale=1.0, horizon=10),
        shared,
        clamped >> shared,
        oc.c.make_concurrent_continual(odometer),
    ):
        stream = mechanism([])
        with pytest.raises(InvalidValueError, match="a stream starts empty"):
            mechanism([1, 1])
        stream.update(1)


def test_that_a_stream_did_not_start_empty_is_no_answer():
    """Below a launch a refusal would depend on data."""
    space, pure = (oc.integer_stream(0, 1), oc.event_presence()), dp.max_divergence()
    counter = oc.m.make_counter(*space, pure, scale=1.0, horizon=10)
    odometer = oc.make_concurrent_odometer(*space, pure)
    for data in ([], [1]):
        root = oc.make_concurrent_filter(odometer, 1, 10.0)(data)
        assert isinstance(root(counter)(None), int)
        native = dp.c.make_adaptive_composition(*space, pure, 1, [counter.map(1)])(data)
        assert isinstance(native(counter)(None), int)
