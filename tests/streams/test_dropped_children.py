"""0.1.0 kept every child of a stream for ever, and sent each update to all of them."""

import gc
import weakref

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

PURE = dp.max_divergence()
TINY = 1e-3


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


class Counting:
    """A machine that says how many updates reached all of its kind."""

    heard = 0

    def update(self, item):
        type(self).heard += 1

    def update_all(self, items):
        type(self).heard += len(items)

    def ask(self, query):
        return "alive"


def machines():
    """A kind of machine of this test, and references to those that were made."""
    made = []

    class Mine(Counting):
        def __init__(self):
            made.append(weakref.ref(self))

    mechanism = oc.m.make_continual(*bits(), PURE, Mine, lambda d_in: 0.0)
    return Mine, made, mechanism


def alive(made):
    gc.collect()
    return sum(one() is not None for one in made)


def identity(state, tag, message):
    return state, tag, message


WRAPPERS = {
    "plain": lambda one: one,
    "interactive": oc.c.make_interactive,
    "bounded": lambda one: oc.c.make_bounded_interactive(one, 10**6),
    "postprocessed": lambda one: oc.c.make_interactive_postprocessing(one, identity),
    "indexed": lambda one: oc.c.make_indexed_composition(*bits(), PURE, 1, [one]),
    "transformed": lambda one: oc.t.make_stream_clamp(*bits(), bits()[0]) >> one,
    "native cast": dp.c.make_pureDP_to_zCDP,
    "of a stream": lambda one: oc.c.make_concurrent_continual(
        oc.make_concurrent_composition(*bits(), PURE, 1, [0.0])
    ),
}


def shared(measure=PURE, **options):
    odometer = oc.make_concurrent_odometer(*bits(), measure)
    return oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, 1.0), **options)(
        []
    )


@pytest.mark.parametrize("name", [name for name in WRAPPERS if name != "of a stream"])
def test_dropped_children_are_freed_and_get_no_updates(name):
    kind, made, mechanism = machines()
    measurement = WRAPPERS[name](mechanism)
    stream = shared() if name != "native cast" else shared(
        dp.zero_concentrated_divergence(), max_messages=10**6
    )  # fmt: skip
    kept = stream(measurement)
    for _ in range(15):
        stream(measurement)
    assert alive(made) == 1
    stream.update(1)
    stream.update_all([1, 0])
    assert kind.heard == 3  # of the one that is held
    del kept
    assert alive(made) == 0
    stream.update(1)
    assert kind.heard == 3


def test_a_stream_in_a_stream_is_freed_with_its_children():
    kind, made, mechanism = machines()
    stream = shared()
    inner = stream(WRAPPERS["of a stream"](mechanism))
    child = inner(mechanism)
    del inner
    gc.collect()
    stream.update(1)
    assert kind.heard == 1  # it holds what passes updates on
    assert child("alive?") == "alive"
    del child
    assert alive(made) == 0
    stream.update(1)
    assert kind.heard == 1


def test_a_handle_that_was_handed_out_keeps_its_part():
    space = oc.integer_stream(0, 9), oc.event_presence()
    counters = {part: oc.m.make_counter(*space, PURE, TINY) for part in (0, 1)}
    odometer = oc.make_concurrent_odometer(*space, PURE)
    stream = oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, 1e9))([])
    even = stream(oc.c.make_parallel_continual(*space, lambda item: item % 2, counters))(0)
    gc.collect()
    stream.update_all([2, 3, 4])
    assert even(None) == 6
