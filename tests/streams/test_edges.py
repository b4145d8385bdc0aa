"""Where a continual mechanism meets others: order of chains, and what it starts with."""

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
