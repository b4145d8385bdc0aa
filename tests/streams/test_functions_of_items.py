"""0.1.0 halted a stream when a function of an item raised, which tells of that one record."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamHaltedError

PURE = dp.max_divergence()
TINY = 1e-3
PAIRS = "pairs"


def integers():
    return oc.integer_stream(0, 9), oc.event_presence()


def pairs():
    return oc.record_stream(PAIRS, lambda item: True), oc.user_presence()


class Hostile:
    """Raises whatever is asked of it."""

    def __hash__(self):
        raise ZeroDivisionError

    def __eq__(self, other):
        raise ZeroDivisionError

    def __bool__(self):
        raise ZeroDivisionError

    def __iter__(self):
        raise ZeroDivisionError


class Untrue:
    """Not equal to itself."""

    def __eq__(self, other):
        return False

    __hash__ = object.__hash__


def explode(item):
    raise ValueError(f"secret {item}")


RETURNS = {
    "too large": 10**6,
    "negative": -1,
    "text": "1",
    "double": 0.5,
    "nan": float("nan"),
    "array": np.array([1, 2]),
    "list": [],
    "hostile": Hostile(),
}


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
    transformation = make(lambda item: explode(item) if item == 7 else 1)
    assert neighbours(transformation, 7, None) == [3, 3]


@pytest.mark.parametrize("name", RETURNS)
def test_a_map_that_returns_no_item_drops_it(name):
    transformation = of_map(lambda item: RETURNS[name] if item == 7 else 1)
    assert neighbours(transformation, 7, None) == [3, 3]


def test_a_predicate_whose_answer_has_no_truth_drops_its_item():
    for answer in (Hostile(), np.array([1, 2])):
        transformation = of_filter(lambda item, answer=answer: answer if item == 7 else True)
        assert neighbours(transformation, 7, None) == [3, 3]


def test_a_member_of_an_output_that_raises_drops_its_item():
    def member(item):
        return explode(item) if item == 7 else True

    middle = oc.record_stream("fragile", member)
    transformation = oc.t.make_stream_map(*integers(), middle, lambda item: item) >> (
        oc.t.make_stream_map(middle, oc.event_presence(), oc.integer_stream(0, 1), lambda item: 1)
    )
    assert neighbours(transformation, 7, None) == [3, 3]


USERS = {
    "unhashable": ([], 1),
    "hostile": (Hostile(), 1),
    "nan": (float("nan"), 1),
    "untrue": (Untrue(), 1),
    "no pair": 7,
    "three": (1, 2, 3),
    "hostile pair": Hostile(),
    "item too large": ("eve", 5),
    "item hostile": ("eve", Hostile()),
}


@pytest.mark.parametrize("name", USERS)
def test_an_item_of_nobody_is_dropped(name):
    bounded = oc.t.make_bounded_contributions(*pairs(), oc.integer_stream(0, 1), 2)
    handle = (bounded >> oc.m.then_counter(PURE, TINY))([])
    handle.update_all([("ann", 1), USERS[name], ("bob", 1)])
    handle.update(USERS[name])
    handle.update_all([("ann", 1), ("ann", 1)])
    assert handle(None) == 3


@pytest.mark.parametrize(
    "key",
    [
        lambda item: explode(item) if item == 7 else item % 2,
        lambda item: [] if item == 7 else item % 2,
        lambda item: Hostile() if item == 7 else item % 2,
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


def test_on_a_stream_that_is_shared():
    stream = oc.c.make_concurrent_continual(
        oc.make_concurrent_composition(*integers(), PURE, 1, [1e9, 1e9])
    )([])
    fragile = stream(of_map(explode) >> oc.m.then_counter(PURE, 2 * TINY))
    other = stream(oc.m.make_counter(*integers(), PURE, TINY))
    stream.update_all([1, 2])
    stream.update(3)
    assert (fragile(None), other(None)) == (0, 6)


def test_a_member_of_the_raw_stream_that_raises_is_no_item_and_tells_nothing():
    fragile = oc.record_stream("fragile", explode), oc.event_presence()
    transformation = oc.t.make_stream_map(*fragile, oc.integer_stream(0, 1), lambda item: 1)
    handle = (transformation >> oc.m.then_counter(PURE, TINY))([])
    with pytest.raises(StreamHaltedError) as halted:
        handle.update("918273")
    assert "918273" not in str(halted.value) + repr(halted.value.__context__)
