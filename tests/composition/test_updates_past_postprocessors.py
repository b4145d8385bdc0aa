"""0.1.0 handed the raw updates of a stream to the analyst's postprocessor."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, MessageLimitError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3  # noise is 0 but once in e^1000


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def counter(scale=TINY, **options):
    return oc.m.make_counter(*bits(), PURE, scale, **options)


def shared(space=None, d_out=1e9):
    space = space or bits()
    odometer = oc.make_concurrent_odometer(*space, PURE)
    return oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, d_out))([])


FORGERS = {
    "update": lambda: oc.handles.Update(1),
    "updates": lambda: oc.handles.Updates([1, 1]),
}


@pytest.mark.parametrize("name", FORGERS)
def test_a_postprocessor_sends_no_updates_of_its_own(name):
    def forger(state, tag, message):
        if tag is oc.c.QUERY and message == "forge":
            return state, oc.c.QUERY, FORGERS[name]()
        return state, tag, message

    for measurement in (
        oc.c.make_interactive_postprocessing(counter(), forger),
        oc.c.make_interactive_postprocessing(oc.c.make_interactive(counter()), forger),
    ):
        handle = measurement([])
        with pytest.raises(InvalidTypeError, match="an update is data"):
            handle("forge")
        stream = shared()
        child = stream(measurement)
        with pytest.raises(InvalidTypeError, match="an update is data"):
            child("forge")
        assert (handle(None), child(None)) == (0, 0)


def test_nor_to_a_counter_with_a_stream_of_its_own():
    """Which a measurement of somebody's own hands out."""

    def forger(state, tag, message):
        return state, tag, oc.handles.Update(1) if message == "forge" else message

    table = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    own = dp.m.make_user_measurement(
        *table, PURE, lambda data: counter()([]), lambda d_in: 1.0, TO="ExtrinsicObject"
    )
    handle = oc.c.make_interactive_postprocessing(own, forger)([])
    with pytest.raises(InvalidTypeError, match="an update is data"):
        handle("forge")
    assert handle(None) == 0


def test_what_a_postprocessor_returns_gets_no_updates():
    """A counter of its own, which nobody paid for, in the place of the one that was."""
    stream, seen = shared(d_out=1.0), []

    class Ear:
        takes_updates = True

        def __call__(self, message):
            seen.append(message)

    dear = []

    def swap(handle):
        dear.append(handle)
        return counter(TINY)([])  # exact

    for function in (swap, lambda handle: dear.append(handle) or Ear()):
        cheap = dp.c.make_chain_pm(
            dp.new_function(function, TO="ExtrinsicObject"), counter(60.0, horizon=2**15 - 1)
        )
        child = stream(cheap)
        stream.update_all([1] * 10_000)
        if not isinstance(child, Ear):
            assert child(None) == 0
    assert seen == []
    assert dear[0](None) > 10_000  # of 20,000: what was paid for is fed; else once in 10^30


def test_odometers_on_streams_have_no_postprocessors():
    odometer = oc.make_concurrent_odometer(*bits(), PURE)
    with pytest.raises(InvalidTypeError, match="would receive the handles that take updates"):
        odometer >> (lambda handle: handle)


# --- errors of updates -----------------------------------------------------------------------


def test_a_postprocessor_that_fails_does_not_touch_updates():
    def broken(state, tag, message):
        raise ZeroDivisionError

    handle = oc.c.make_interactive_postprocessing(counter(), broken)([])
    handle.update_all([1, 1])
    with pytest.raises(ZeroDivisionError):
        handle(None)
    handle.update(1)


# --- finite communication --------------------------------------------------------------------


def test_updates_and_queries_count_together_whatever_arrives():
    """By steps, which are public: a neighbour with nothing in a step has as many left."""
    left = []
    for items in ([1, 1, 1], [None, None, None], [1, None, 1]):
        handle = oc.c.make_bounded_interactive(counter(), 5)([])
        handle.update_all(items)
        handle(None)
        handle.update(None)
        for send in (lambda one=handle: one(None), lambda one=handle: one.update(1)):
            with pytest.raises(MessageLimitError) as refused:
                send()
            left.append(refused.value.limit)
    assert left == [5] * 6
