"""0.1.0 handed the raw updates of a stream to the analyst's postprocessor."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    MessageLimitError,
    PostprocessorError,
    RefusalError,
    StreamError,
    StreamHaltedError,
)

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


def send_each(handle, items):
    for item in items:
        handle.update(item)


def send_messages(handle, items):
    for item in items:
        handle(oc.m.Update(item))


def send_all(handle, items):
    handle.update_all(items)


def send_batch(handle, items):
    handle(oc.m.Updates(items))


SENDS = [send_each, send_messages, send_all, send_batch]


def remembering(seen):
    """A postprocessor that keeps all that it sees."""

    def transcript(state, tag, message):
        seen.append((tag, message))
        return state, tag, message

    return transcript


def memo(state, tag, message):
    """An innocent memo: a message that was answered before is answered from memory."""
    known, asked = state if state is not None else ({}, None)
    if tag is oc.c.QUERY:
        if message in known:
            return (known, None), oc.c.ANSWER, known[message]
        return (known, message), oc.c.QUERY, message
    return ({**known, asked: message}, None), oc.c.ANSWER, message


def postprocessed(seen, one=None):
    return oc.c.make_interactive_postprocessing(one or counter(), remembering(seen))


WAYS = {
    "postprocessed": postprocessed,
    "in a bound": lambda seen: oc.c.make_bounded_interactive(postprocessed(seen), 99),
    "of a bound": lambda seen: postprocessed(seen, oc.c.make_bounded_interactive(counter(), 99)),
    "interactive": lambda seen: oc.c.make_interactive(postprocessed(seen)),
    "cast": lambda seen: oc.c.cast(postprocessed(seen), dp.zero_concentrated_divergence()),
    "of a cast": lambda seen: postprocessed(seen, oc.c.cast(counter(), ZCDP)),
    "of a native cast": lambda seen: postprocessed(seen, dp.c.make_pureDP_to_zCDP(counter())),
    "twice": lambda seen: postprocessed(seen, postprocessed(seen)),
    "behind a clamp": lambda seen: (
        oc.t.make_stream_clamp(*bits(), oc.integer_stream(0, 1)) >> postprocessed(seen)
    ),
    "of a clamp": lambda seen: postprocessed(
        seen, oc.t.make_stream_clamp(*bits(), oc.integer_stream(0, 1)) >> counter()
    ),
}


@pytest.mark.parametrize("send", SENDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_transcript_has_queries_and_answers_only(way, send):
    seen = []
    handle = WAYS[way](seen)([])
    assert handle.takes_updates
    send(handle, [1, None, 1, 0, 1])
    assert seen == []
    assert handle(None) == 3
    assert set(seen) == {(oc.c.QUERY, None), (oc.c.ANSWER, 3)}


@pytest.mark.parametrize(
    "way", ["postprocessed", "in a bound", "interactive", "twice", "of a clamp"]
)
def test_nor_on_a_stream_that_is_shared(way):
    seen, stream = [], shared()
    child = stream(WAYS[way](seen))
    stream.update_all([1, None, 1])
    stream.update(1)
    assert seen == []
    assert child(None) == 3
    assert set(seen) == {(oc.c.QUERY, None), (oc.c.ANSWER, 3)}


def test_nor_in_a_part():
    seen, space = [], (oc.integer_stream(0, 9), oc.event_presence())
    one = oc.c.make_interactive_postprocessing(
        oc.m.make_counter(*space, PURE, TINY), remembering(seen)
    )
    parts = oc.c.make_parallel_continual(*space, lambda item: item % 2, {0: one, 1: one})([])
    parts.update_all([1, 2, 3])
    parts.update(5)
    assert seen == []
    assert (parts(0)(None), parts(1)(None)) == (2, 9)


def test_a_memo_swallows_no_update():
    handle = oc.c.make_interactive_postprocessing(counter(), memo)([])
    for _ in range(5):
        handle.update(1)
    assert handle(None) == 5


def test_indexed_composition():
    indexed = oc.c.make_indexed_composition(*bits(), PURE, 1, [counter(), counter()])([])
    indexed.update(1)
    indexed.update_all([1, 1])
    assert (indexed((0, None)), indexed((1, None))) == (3, 3)


FORGERS = {
    "update": lambda: oc.m.Update(1),
    "updates": lambda: oc.m.Updates([1, 1]),
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


def test_nor_does_an_analyst_inside_of_a_message():
    indexed = shared()(oc.c.make_indexed_composition(*bits(), PURE, 1, [counter()]))
    with pytest.raises(InvalidTypeError, match="an update is data"):
        indexed((0, oc.m.Update(1)))
    assert indexed((0, None)) == 0


def test_nor_to_a_counter_with_a_stream_of_its_own():
    """Which a measurement of somebody's own hands out."""

    def forger(state, tag, message):
        return state, tag, oc.m.Update(1) if message == "forge" else message

    table = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    own = dp.m.make_user_measurement(
        *table, PURE, lambda data: counter()([]), lambda d_in: 1.0, TO="ExtrinsicObject"
    )
    handle = oc.c.make_interactive_postprocessing(own, forger)([])
    with pytest.raises(InvalidTypeError, match="an update is data"):
        handle("forge")
    assert handle(None) == 0


def test_an_update_that_is_sent_to_a_child_reaches_nobody():
    seen = []
    child = shared()(postprocessed(seen))
    for message in (oc.m.Update(1), oc.m.Updates([1, 1])):
        with pytest.raises(InvalidTypeError, match="an update is data"):
            child(message)
    assert seen == []
    table = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = table >> dp.t.then_count() >> dp.m.then_laplace(1.0)
    on_a_table = oc.c.make_interactive_postprocessing(count, remembering(seen))([1, 2])
    with pytest.raises(InvalidTypeError, match="an update is data"):
        on_a_table(oc.m.Update(1))
    assert seen == []


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


def test_errors_of_updates_are_for_whoever_sends_them():
    seen = []
    handle = postprocessed(seen, counter(horizon=2))([])
    handle.update_all([1, 1])
    with pytest.raises(StreamError, match="horizon"):
        handle.update(1)
    assert seen == []
    assert handle(None) == 2
    halted = postprocessed(seen)([])
    seen.clear()
    with pytest.raises(StreamHaltedError):
        halted.update(7)
    assert seen == []


def test_steps_are_checked_past_the_postprocessor():
    handle = postprocessed([])([])
    handle.update(1, step=1)
    with pytest.raises(StreamError, match="that step has been sent"):
        handle.update(1, step=1)
    handle.update_all([1, 1])
    handle.update(1, step=4)
    assert handle(None) == 4


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


def test_an_update_beyond_the_limit_is_refused_whole():
    handle = oc.c.make_bounded_interactive(counter(), 4)([])
    handle.update_all([1, 1])
    with pytest.raises(RefusalError):
        handle.update_all([1, 1, 1])
    assert handle(None) == 2


def test_a_bound_inside_a_postprocessor_is_not_the_postprocessors_business():
    seen = []
    handle = postprocessed(seen, oc.c.make_bounded_interactive(counter(), 3))([])
    handle.update_all([1, 1, 1])
    with pytest.raises(MessageLimitError):
        handle.update(1)
    assert seen == []
    with pytest.raises((MessageLimitError, PostprocessorError)):
        handle(None)


def test_many_mechanisms_on_one_stream_need_a_bound_but_for_pure_dp():
    one = oc.m.make_counter(*bits(), ZCDP, 1.0)
    oc.c.make_indexed_composition(*bits(), ZCDP, 1, [one])
    with pytest.raises(InvalidValueError, match="max_messages"):
        oc.c.make_indexed_composition(*bits(), ZCDP, 1, [one, one])


@pytest.mark.parametrize("way", WAYS)
def test_handles_tell_what_they_take(way):
    measurement = WAYS[way]([])
    handle = measurement([])
    assert handle.takes_updates
    assert measurement.takes_updates
    handle.update(1, step=1)
    handle.update_all([1])
    assert handle(None) == 2
