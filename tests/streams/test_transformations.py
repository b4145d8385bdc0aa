"""Stream transformations: what arrives, and by how much distances grow, by brute force."""

from itertools import product
from math import inf

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamError, StreamHaltedError

from ..build import PURE
from .machines import Heard

TINY = 1e-3


def anything():
    return oc.record_stream("anything", lambda item: True)


def image(transformation, stream, *, at_once=False):
    """What arrives behind a transformation."""
    space = transformation.output_domain, transformation.output_metric
    tape = oc.m.make_continual(*space, PURE, Heard, lambda d_in: 0.0)
    handle = (transformation >> tape)([])
    if at_once:
        handle.update_all(list(stream))
    else:
        for item in stream:
            handle.update(item)
    return tuple(handle(None))


def events(first, second, presence):
    pairs = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    return inf if presence and any(None not in pair for pair in pairs) else len(pairs)


def users(first, second):
    """The fewest users with all of their items in one stream only."""
    names = {item[0] for item in (*first, *second) if item is not None}
    moved = set()
    for name in names:
        mine = [
            [item if item is not None and item[0] == name else None for item in stream]
            for stream in (first, second)
        ]
        if mine[0] != mine[1]:
            moved.add(name)
            if any(one is not None for one in mine[0]) and any(one is not None for one in mine[1]):
                return inf
    unchanged = all(
        one == other or {one[0] if one else None, other[0] if other else None} <= {*moved, None}
        for one, other in zip(first, second, strict=True)
    )
    both = any(
        one is not None and other is not None and one != other
        for one, other in zip(first, second, strict=True)
    )
    return len(moved) if unchanged and not both else inf


def on_integers(metric):
    space = oc.integer_stream(-2, 2), metric()
    return {
        "map": (
            oc.t.make_stream_map(*space, oc.integer_stream(0, 4), lambda item: item * item),
            lambda item: item * item,
        ),
        "map that drops": (
            oc.t.make_stream_map(*space, space[0], lambda item: item if item else None),
            lambda item: item or None,
        ),
        "filter": (
            oc.t.make_stream_filter(*space, lambda item: item > 0),
            lambda item: item if item > 0 else None,
        ),
        "clamp": (
            oc.t.make_stream_clamp(*space, oc.integer_stream(0, 1)),
            lambda item: min(1, max(0, item)),
        ),
        "two": (
            oc.t.make_stream_filter(*space, lambda item: item != 1)
            >> oc.t.make_stream_clamp(*space, oc.integer_stream(-1, 1)),
            lambda item: None if item == 1 else min(1, max(-1, item)),
        ),
    }


@pytest.mark.parametrize("metric", [oc.event_presence, oc.event_change])
@pytest.mark.parametrize("name", ["map", "map that drops", "filter", "clamp", "two"])
def test_events_stay_as_many_at_most(metric, name):
    transformation, expected = on_integers(metric)[name]
    presence = metric is oc.event_presence
    streams = list(product((None, -2, 0, 1, 2), repeat=2))
    images = {stream: image(transformation, stream) for stream in streams}
    for stream, found in images.items():
        assert found == tuple(None if item is None else expected(item) for item in stream)
        assert image(transformation, stream, at_once=True) == found
    for one, other in product(streams, repeat=2):
        d_in = events(one, other, presence)
        if d_in < inf:
            assert events(images[one], images[other], presence) <= transformation.map(d_in)


@pytest.mark.parametrize("limit", [1, 2])
def test_users_become_so_many_events_at_most(limit):
    bounded = oc.t.make_bounded_contributions(
        anything(), oc.user_presence(), oc.integer_stream(0, 1), limit
    )
    items = (None, ("a", 0), ("a", 1), ("b", 1))
    streams = list(product(items, repeat=3))
    images = {stream: image(bounded, stream) for stream in streams}
    worst = 0
    for one, other in product(streams, repeat=2):
        d_in = users(one, other)
        if d_in < inf:
            d_out = events(images[one], images[other], True)
            assert d_out <= bounded.map(d_in) == limit * d_in
            worst = max(worst, d_out if d_in == 1 else 0)
    assert worst == limit


def test_the_first_items_of_each_user_are_kept():
    bounded = oc.t.make_bounded_contributions(
        anything(), oc.user_presence(), oc.integer_stream(0, 9), 2
    )
    stream = [("a", 1), ("b", 2), None, ("a", 3), ("a", 4), ("b", 5), ("b", 6), ("c", 7)]
    expected = (1, 2, None, 3, None, 5, None, 7)
    assert image(bounded, stream) == image(bounded, stream, at_once=True) == expected
    assert image(bounded, stream) == expected  # each handle remembers for itself


def test_what_comes_in_is_checked_before_it_is_transformed():
    space = oc.integer_stream(0, 9), oc.event_presence()
    seen = []
    mapped = oc.t.make_stream_map(*space, space[0], lambda item: seen.append(item) or item)
    for send in (lambda handle: handle.update(10), lambda handle: handle.update_all([1, 10])):
        handle = (mapped >> oc.m.then_counter(PURE, TINY))([])
        with pytest.raises(StreamHaltedError):
            send(handle)
    assert seen == []


def test_a_refused_update_uses_up_no_contribution():
    """The horizon says no, nothing was taken, and the user's item may come again."""
    bounded = oc.t.make_bounded_contributions(
        anything(), oc.user_presence(), oc.integer_stream(0, 1), 2
    )
    handle = (bounded >> oc.m.then_counter(PURE, TINY, horizon=3))([])
    with pytest.raises(StreamError):
        handle.update_all([("a", 1)] * 4)
    handle.update_all([("a", 1)] * 2)
    assert handle(None) == 2


# --- 0.1.0 halted a stream when a function of an item raised, which tells of that one record ---
def integers():
    return oc.integer_stream(0, 9), oc.event_presence()


def pairs():
    return oc.record_stream("pairs", lambda item: True), oc.user_presence()


def explode(item):
    raise ValueError(f"secret {item}")


def of_map(function):
    return oc.t.make_stream_map(*integers(), oc.integer_stream(0, 1), function)


def of_filter(function):
    return oc.t.make_stream_filter(*integers(), function) >> oc.t.make_stream_clamp(
        *integers(), oc.integer_stream(0, 1)
    )


def neighbours(transformation, with_it, without):
    """What comes out for two streams that differ in one item is an item against nothing."""
    handles = [(transformation >> oc.m.then_counter(PURE, TINY))([]) for _ in range(2)]
    for handle, item in zip(handles, (with_it, without), strict=True):
        handle.update_all([1, item, 1])
        handle.update(item)
        handle.update(1)
    return [handle(None) for handle in handles]


@pytest.mark.parametrize("make", [of_map, of_filter])
def test_a_function_that_raises_drops_its_item(make):
    for fails in (explode, lambda item: np.array([1, 2])):  # which has no truth, and is no item
        transformation = make(lambda item, fails=fails: fails(item) if item == 7 else 1)
        assert neighbours(transformation, 7, None) == [3, 3]


@pytest.mark.parametrize("found", [10**6, 0.5, float("nan"), []], ids=str)
def test_a_map_that_returns_no_item_drops_it(found):
    transformation = of_map(lambda item: found if item == 7 else 1)
    assert neighbours(transformation, 7, None) == [3, 3]


def test_a_member_of_an_output_that_raises_drops_its_item():
    def member(item):
        return explode(item) if item == 7 else True

    middle = oc.record_stream("fragile", member)
    transformation = oc.t.make_stream_map(*integers(), middle, lambda item: item) >> (
        oc.t.make_stream_map(middle, oc.event_presence(), oc.integer_stream(0, 1), lambda item: 1)
    )
    assert neighbours(transformation, 7, None) == [3, 3]


@pytest.mark.parametrize(
    "item", [([], 1), (float("nan"), 1), 7, (1, 2, 3), ("eve", 5)], ids=str
)  # unhashable, not equal to itself, no pair, too long, and too large
def test_an_item_of_nobody_is_dropped(item):
    bounded = oc.t.make_bounded_contributions(*pairs(), oc.integer_stream(0, 1), 2)
    handle = (bounded >> oc.m.then_counter(PURE, TINY))([])
    handle.update_all([("ann", 1), item, ("bob", 1)])
    handle.update(item)
    handle.update_all([("ann", 1), ("ann", 1)])
    assert handle(None) == 3


@pytest.mark.parametrize(
    "key",
    [
        lambda item: explode(item) if item == 7 else item % 2,
        lambda item: [] if item == 7 else item % 2,
        lambda item: np.array([1, 2]) if item == 7 else item % 2,
    ],
)
def test_an_item_whose_part_cannot_be_told_is_in_none(key):
    counters = {part: oc.m.make_counter(*integers(), PURE, TINY) for part in (0, 1)}
    parts = oc.c.make_parallel_continual(*integers(), key, counters)([])
    parts.update_all([1, 7, 2])
    for item in (7, 3):
        parts.update(item)
    assert (parts(0)(None), parts(1)(None)) == (2, 4)


def test_a_member_of_the_raw_stream_that_raises_is_no_item_and_tells_nothing():
    fragile = oc.record_stream("fragile", explode), oc.event_presence()
    transformation = oc.t.make_stream_map(*fragile, oc.integer_stream(0, 1), lambda item: 1)
    handle = (transformation >> oc.m.then_counter(PURE, TINY))([])
    with pytest.raises(StreamHaltedError) as halted:
        handle.update("918273")
    assert "918273" not in str(halted.value) + repr(halted.value.__context__)
