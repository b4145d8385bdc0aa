"""0.1.0 forgot who had contributed when a mechanism was resumed, but for one order of nesting."""

import contextlib
import json
from itertools import permutations

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, MessageLimitError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def pairs():
    return oc.record_stream("user and bit", lambda pair: isinstance(pair, tuple))


def bounded(limit=1, output=None):
    output = output or oc.integer_stream(0, 9)
    return oc.t.make_bounded_contributions(pairs(), oc.user_presence(), output, limit)


def clamp():
    return oc.t.make_stream_clamp(oc.integer_stream(0, 9), oc.event_presence(), bits()[0])


def counter(measure=PURE, scale=TINY):
    return oc.m.make_counter(*bits(), measure, scale)


def transformed(one=None):
    return bounded() >> (clamp() >> (one or counter()))


def identity(state, tag, message):
    return state, tag, message


RESUMABLE = {
    "plain": transformed,
    "one chain": lambda: (bounded() >> clamp()) >> counter(),
    "interactive": lambda: oc.c.make_interactive(transformed()),
    "interactive inside": lambda: transformed(oc.c.make_interactive(counter())),
    "in the middle": lambda: bounded() >> oc.c.make_interactive(clamp() >> counter()),
    "bounded": lambda: oc.c.make_bounded_interactive(transformed(), 10**6),
    "bounded inside": lambda: transformed(oc.c.make_bounded_interactive(counter(), 10**6)),
    "cast": lambda: oc.c.cast(transformed(), ZCDP),
    "cast inside": lambda: transformed(oc.c.cast(counter(), ZCDP)),
    "all of them": lambda: oc.c.make_bounded_interactive(
        oc.c.make_interactive(transformed(oc.c.make_interactive(oc.c.cast(counter(), ZCDP)))), 10**6
    ),
}


@pytest.mark.parametrize("name", RESUMABLE)
def test_a_user_contributes_once_over_40_restarts(name):
    """Over any chain of saves, in any order of nesting, by single updates and in batches."""
    make = RESUMABLE[name]
    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(make(), checkpoint)([])
    for turn in range(40):
        if turn % 2:
            handle.update(("ann", 1))
        else:
            handle.update_all([("ann", 1), None, ("ann", 1)])
        assert handle(None) == 1
        checkpoint = oc.c.Checkpoint(checkpoint.save())
        handle = oc.c.make_resumable(make(), checkpoint)([])
    handle.update(("bob", 1))
    assert handle(None) == 2
    handle.update(("ann", 1))
    assert handle(None) == 2


INSIDE = {
    "twice chained": lambda one: bounded() >> (clamp() >> one),
    "interactive": lambda one: bounded(output=bits()[0]) >> oc.c.make_interactive(one),
    "bounded": lambda one: bounded(output=bits()[0]) >> oc.c.make_bounded_interactive(one, 10**6),
    "postprocessed": lambda one: (
        bounded(output=bits()[0]) >> oc.c.make_interactive_postprocessing(one, identity)
    ),
    "cast": lambda one: bounded(output=bits()[0]) >> oc.c.cast(one, ZCDP),
    "native cast": lambda one: bounded(output=bits()[0]) >> dp.c.make_pureDP_to_zCDP(one),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_checkpoint_inside_is_refused_or_counts_on(name):
    counts, saved = [1], None
    with contextlib.suppress(InvalidTypeError):
        for _ in range(4):
            checkpoint = oc.c.Checkpoint(saved)
            handle = INSIDE[name](oc.c.make_resumable(counter(), checkpoint))([])
            handle(oc.m.Update(("ann", 1)))
            counts.append(handle(None))
            saved = checkpoint.save()
    assert max(counts) == 1


WRAPPERS = {
    "interactive": oc.c.make_interactive,
    "bounded": lambda one: oc.c.make_bounded_interactive(one, 99),
    "postprocessed": lambda one: oc.c.make_interactive_postprocessing(one, identity),
    "indexed": lambda one: oc.c.make_indexed_composition(*bits(), PURE, 1, [one]),
    "part": lambda one: oc.c.make_parallel_continual(*bits(), bool, {True: one}),
    "clamp": lambda one: oc.t.make_stream_clamp(*bits(), bits()[0]) >> one,
    "bounded contributions": lambda one: bounded(output=bits()[0]) >> one,
    "both": lambda one: transformed(one),
    "again": lambda one: oc.c.make_resumable(one, oc.c.Checkpoint()),
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("hide", [lambda one: one, lambda one: oc.c.cast(one, PURE)])
def test_nothing_goes_around_a_checkpoint(name, hide):
    """Its state would not be saved: 0.1.0 let a user with a limit of 1 contribute 201 times."""
    if name == "indexed" or hide(counter()).output_measure == PURE:
        resumable = hide(oc.c.make_resumable(counter(), oc.c.Checkpoint()))
    with pytest.raises(InvalidTypeError, match="call make_resumable last"):
        WRAPPERS[name](resumable)


@pytest.mark.parametrize("name", [name for name in WRAPPERS if name not in ("indexed", "again")])
def test_one_that_is_hidden_is_found_when_it_is_spawned(name):
    """OpenDP's own casts say nothing of what they cast."""
    hidden = dp.c.make_pureDP_to_zCDP(oc.c.make_resumable(counter(), oc.c.Checkpoint()))
    if name == "part":
        return  # for pure DP only
    with pytest.raises(Exception, match="call make_resumable last"):
        WRAPPERS[name](hidden)([])


def test_nor_inside_a_machine_of_ones_own():
    class Outer:
        def __init__(self):
            self.inner = oc.c.make_resumable(counter(), oc.c.Checkpoint())([])

    outer = oc.m.make_continual(*bits(), PURE, Outer, lambda d_in: 0.0)
    with pytest.raises(InvalidTypeError, match="call make_resumable last"):
        outer([])


NOT_RESUMABLE = {
    "postprocessed": lambda: oc.c.make_interactive_postprocessing(counter(), identity),
    "indexed": lambda: oc.c.make_indexed_composition(*bits(), PURE, 1, [counter()]),
    "parts": lambda: oc.c.make_parallel_continual(*bits(), bool, {True: counter()}),
    "shared": lambda: oc.c.make_concurrent_continual(
        oc.make_concurrent_composition(*bits(), PURE, 1, [1.0])
    ),
    "alarm": lambda: oc.m.make_alarm(*bits(), PURE, 1.0, 5),
    "compositor": lambda: oc.make_concurrent_composition(*bits(), PURE, 1, [1.0]),
    "postprocessed inside": lambda: oc.c.make_interactive(
        oc.c.make_interactive_postprocessing(counter(), identity)
    ),
    "alarm inside": lambda: oc.c.make_bounded_interactive(
        oc.m.make_alarm(*bits(), PURE, 1.0, 5), 9
    ),
}


@pytest.mark.parametrize("name", NOT_RESUMABLE)
def test_what_cannot_be_saved_says_so(name):
    measurement = NOT_RESUMABLE[name]()
    assert not measurement.resumable
    with pytest.raises(InvalidTypeError, match="^measurement must be a counter"):
        oc.c.make_resumable(measurement, oc.c.Checkpoint())
    handle = measurement([])
    if hasattr(handle, "resumable"):
        assert not handle.resumable


def test_a_wrapper_of_a_native_cast_is_judged_by_what_it_spawns():
    """The measurement does not know; the handle does."""
    measurement = oc.c.make_interactive(dp.c.make_pureDP_to_zCDP(counter()))
    assert measurement([]).resumable
    swapped = oc.c.make_interactive(counter())
    looking = oc.c.make_interactive_postprocessing(counter(), identity)
    swapped.inside = swapped.inside._replace(spawn=looking.spawn)
    with pytest.raises(InvalidTypeError, match="^measurement must be a counter"):
        oc.c.make_resumable(swapped, oc.c.Checkpoint())([])


@pytest.mark.parametrize("name", RESUMABLE)
def test_what_can_be_saved_says_so(name):
    measurement = RESUMABLE[name]()
    assert measurement.resumable
    assert measurement([]).resumable


def test_messages_that_are_left_are_saved():
    def make():
        return oc.c.make_bounded_interactive(counter(), 5)

    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(make(), checkpoint)([])
    handle.update_all([1, 1])
    assert handle(None) == 2
    for left in (1, 0):
        checkpoint = oc.c.Checkpoint(checkpoint.save())
        handle = oc.c.make_resumable(make(), checkpoint)([])
        handle.update(1, step=4 - left)
    with pytest.raises(MessageLimitError):
        handle(None)
    with pytest.raises(MessageLimitError):
        handle.update(1)


def test_steps_go_on_behind_a_transformation():
    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(transformed(), checkpoint)([])
    handle.update_all([("ann", 1)] * 3)
    handle = oc.c.make_resumable(transformed(), oc.c.Checkpoint(checkpoint.save()))([])
    handle.update(("bob", 1), step=4)
    assert handle(None) == 2


OTHERS = {
    "a larger limit": lambda: bounded(2) >> clamp() >> counter(),
    "another scale": lambda: transformed(counter(scale=2 * TINY)),
    "another bound": lambda: (
        bounded()
        >> oc.t.make_stream_clamp(
            oc.integer_stream(0, 9), oc.event_presence(), oc.integer_stream(0, 2)
        )
        >> oc.m.make_counter(oc.integer_stream(0, 2), oc.event_presence(), PURE, TINY)
    ),
    "no bound": lambda: clamp() >> counter(),
    "a limit of messages": lambda: oc.c.make_bounded_interactive(transformed(), 9),
    "another order": lambda: oc.c.cast(transformed(counter(scale=2 * TINY)), ZCDP),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_mechanism_does_not_go_on(name):
    checkpoint = oc.c.Checkpoint()
    oc.c.make_resumable(transformed(), checkpoint)([])
    saved = oc.c.Checkpoint(checkpoint.save())
    with pytest.raises(InvalidValueError, match="cannot be resumed by"):
        oc.c.make_resumable(OTHERS[name](), saved)([])


USERS = [
    0,
    -1,
    2**100,
    True,
    1.5,
    "ann",
    "",
    "\ud800",
    b"\x00\xff",
    None,
    (),
    ("a", (1, b"b")),
    1e300,
]
EQUAL = [(1, True), (1, 1.0), (0, False), (0.0, -0.0), (np.int64(7), 7), (np.str_("x"), "x"),
         (np.float64(0.5), 0.5), (np.bool_(True), 1)]  # fmt: skip


def test_users_of_many_kinds_are_told_apart_after_a_restart():
    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(transformed(), checkpoint)([])
    handle.update_all([(user, 1) for user in USERS])
    before = handle(None)
    assert before == len(set(USERS))
    handle = oc.c.make_resumable(transformed(), oc.c.Checkpoint(checkpoint.save()))([])
    handle.update_all([(user, 1) for user in USERS])
    assert handle(None) == before


@pytest.mark.parametrize(("one", "other"), EQUAL + [pair[::-1] for pair in EQUAL], ids=repr)
def test_equal_users_stay_equal(one, other):
    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(transformed(), checkpoint)([])
    handle.update((one, 1))
    handle = oc.c.make_resumable(transformed(), oc.c.Checkpoint(checkpoint.save()))([])
    handle.update((other, 1))
    assert handle(None) == 1


@pytest.mark.parametrize(
    "user", [frozenset({1}), (float("nan"),), 1j, object()], ids=lambda user: type(user).__name__
)
def test_a_user_that_cannot_be_kept_is_refused_and_the_mechanism_goes_on(user):
    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(transformed(), checkpoint)([])
    handle.update((user, 1))
    with pytest.raises(InvalidTypeError, match="which a checkpoint cannot save"):
        checkpoint.save()
    handle.update(("ann", 1))
    assert handle(None) == 2


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_two_bounds_in_any_order(order):
    """Several limits and a filter, each of which remembers for itself."""
    steps = [
        lambda one: oc.c.make_interactive(one),
        lambda one: oc.c.make_bounded_interactive(one, 10**4),
        lambda one: oc.c.cast(one, ZCDP) if one.output_measure == PURE else one,
    ]

    def make():
        one = counter()
        for index in order:
            one = steps[index](one)
        return bounded(2) >> clamp() >> one

    checkpoint = oc.c.Checkpoint()
    handle = oc.c.make_resumable(make(), checkpoint)([])
    for _ in range(20):
        handle.update_all([("ann", 1), ("bob", 0)])
        checkpoint = oc.c.Checkpoint(checkpoint.save())
        handle = oc.c.make_resumable(make(), checkpoint)([])
    assert handle(None) == 2


@pytest.mark.parametrize("memory", [None, {"limit": 2, "seen": []}, [], {}, "ann"], ids=str)
def test_a_text_without_who_was_seen_is_refused(memory):
    checkpoint = oc.c.Checkpoint()
    oc.c.make_resumable(bounded(output=bits()[0]) >> counter(), checkpoint)([])
    record = json.loads(checkpoint.save())
    record["parts"][0][1]["machine"] = memory
    with pytest.raises(InvalidValueError, match="^saved must be what"):
        oc.c.make_resumable(
            bounded(output=bits()[0]) >> counter(), oc.c.Checkpoint(json.dumps(record))
        )([])
