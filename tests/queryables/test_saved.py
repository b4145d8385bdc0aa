"""What a checkpoint saves of a handle: the parts that it lists, from the outside in."""

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.queryables.saved import list_parts, parts_of

PURE = dp.max_divergence()


def counter(bits):
    return oc.m.make_counter(*bits, PURE, 8.0, horizon=7)


def test_a_counter_lists_its_state_and_a_lock(bits):
    ((lock, part),) = parts_of(counter(bits)([]))
    assert "horizon" in part.name or "7" in part.name
    with lock:
        assert part.to_record() == part.to_record()


def test_a_wrapper_lists_its_state_before_that_of_what_it_wraps():
    pairs = oc.record_stream("pairs", lambda pair: isinstance(pair, tuple)), oc.user_presence()
    bits = oc.integer_stream(0, 1), oc.event_presence()
    limited = oc.t.make_bounded_contributions(*pairs, bits[0], 1) >> counter(bits)
    outer, inner = parts_of(limited([]))
    ((_, alone),) = parts_of(counter(bits)([]))
    assert inner[1].name == alone.name
    assert outer[1].name != alone.name


def test_what_lists_none_cannot_be_saved(space, bits):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    assert parts_of(odometer([1, 2])) is None
    assert parts_of("no handle") is None
    handle = counter(bits)([])
    list_parts(handle, None)
    assert parts_of(handle) is None
