"""0.1.0 charged for children of a stream that never got an update."""

import gc
import weakref

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    MessageLimitError,
    SpaceMismatchError,
)

from ..build import PURE, ZCDP, a_filter, an_odometer, costing
from .machines import Heard

BITS = oc.integer_stream(0, 1), oc.event_presence()
TINY = 1e-3


def counter(measure=PURE, scale=TINY):
    return oc.m.make_counter(*BITS, measure, scale)


def odometer(measure=PURE):
    return an_odometer(measure, BITS)


def budget(measure=PURE, d_out=1e9):
    return a_filter(d_out, measure, space=BITS)


def compositor(measure=PURE):
    return oc.make_concurrent_composition(*BITS, measure, 1, [1e7, 1e7])


def native(measure=PURE):
    return dp.c.make_adaptive_composition(*BITS, measure, 1, [1e7, 1e7])


def shared(measure=PURE, **options):
    return oc.c.make_concurrent_continual(budget(measure), **options)([])


# --- what is refused, before anything is charged ---------------------------------------------


def test_compositions_on_a_stream_are_not_wrapped():
    for composition in (compositor(), budget(), oc.c.cast(compositor(), ZCDP)):
        for wrap in (
            oc.c.make_interactive,
            lambda one: oc.c.make_bounded_interactive(one, 5),
            lambda one: oc.c.make_interactive_postprocessing(one, lambda *now: now),
            lambda one: oc.c.make_indexed_composition(*BITS, one.output_measure, 1, [one]),
        ):
            with pytest.raises(InvalidTypeError, match="make_concurrent_continual"):
                wrap(composition)
    with pytest.raises(InvalidTypeError, match="make_concurrent_continual"):
        oc.c.make_parallel_continual(*BITS, bool, {True: compositor()})


def test_mechanisms_on_data_as_they_are_refuse_a_stream():
    for make in (
        lambda: oc.m.make_sparse_vector(*BITS, PURE, 1, 1.0, 1, 1, sensitivity=1),
        lambda: oc.m.make_above_threshold(*BITS, PURE, 1, scale=1.0, threshold=1, sensitivity=1),
        lambda: oc.m.make_guess_and_check(
            *BITS, PURE, 1, scale=1.0, tolerance=1, max_hits=1, sensitivity=1
        ),
    ):
        with pytest.raises(InvalidTypeError, match="is a stream, whose items come later"):
            make()


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=str)
def test_a_refused_composition_is_not_charged(measure):
    options = {} if measure == PURE else {"max_messages": 99}
    stream = shared(measure, **options)
    for composition in (compositor(measure), budget(measure), odometer(measure)):
        with pytest.raises(InvalidTypeError, match="would not receive the updates"):
            stream(composition)
    assert stream.privacy_loss() == 0.0
    child = stream(counter(measure))
    stream.update(1)
    assert child(None) == 1


@pytest.mark.parametrize("below", [PURE, ZCDP], ids=str)
def test_what_a_child_launches_later_is_fed_and_counted(below):
    plan = oc.make_concurrent_composition(*BITS, PURE, 1, [1e4])
    stream = shared(ZCDP, max_messages=5)
    child = stream(native(ZCDP) if below == ZCDP else dp.c.make_pureDP_to_zCDP(plan))
    stream.update(1)
    later = child(counter(below))
    stream.update(1)
    assert [later(None) for _ in range(3)] == [1, 1, 1]
    with pytest.raises(MessageLimitError):  # 1 launch, 3 queries, 1 update since then
        later(None)


def test_transformations_of_opendp_are_not_for_streams_and_only_compositions_are_shared():
    """They would run once, on the empty stream, and items would pass them by."""
    twice = dp.t.make_user_transformation(
        *BITS, *BITS, function=lambda data: data, stability_map=lambda d_in: d_in
    )
    for behind in (counter(), odometer(), oc.c.make_interactive(counter())):
        with pytest.raises(InvalidTypeError, match="make_stream_map"):
            twice >> behind
    for other in (counter(), oc.c.make_interactive(counter())):
        with pytest.raises(InvalidTypeError, match="^composition must be made by"):
            oc.c.make_concurrent_continual(other)


# --- where a continual mechanism meets others: order of chains, and what it starts with --------


def bounded():
    pairs = oc.record_stream("pairs", lambda pair: isinstance(pair, tuple)), oc.user_presence()
    return oc.t.make_bounded_contributions(*pairs, BITS[0], 1)


def test_a_composition_behind_a_transformation_is_refused():
    for composition in (budget(), odometer()):
        with pytest.raises(InvalidTypeError, match="make_concurrent_continual first"):
            bounded() >> composition
    for composition in (compositor(), native()):
        with pytest.raises(InvalidTypeError, match="make_concurrent_continual first"):
            (bounded() >> composition)([])
    with pytest.raises(Exception, match="make_concurrent_continual first"):
        dp.c.make_chain_mt(counter(), bounded())([])


def test_a_stream_starts_empty():
    """Items that are passed when it is opened would be dropped without a word."""
    shared = oc.c.make_concurrent_continual(budget())
    clamped = oc.t.make_stream_clamp(oc.integer_stream(0, 5), oc.event_presence(), BITS[0])
    endless = oc.c.make_concurrent_continual(odometer())
    for mechanism in (counter(), clamped >> counter(), shared, clamped >> shared, endless):
        stream = mechanism([])
        with pytest.raises(InvalidValueError, match="a stream starts empty"):
            mechanism([1, 1])
        stream.update(1)


def test_that_a_stream_did_not_start_empty_is_no_answer():
    """Below a launch a refusal would depend on data."""
    for data in ([], [1]):
        for root in (budget()(data), native()(data)):
            assert isinstance(root(counter())(None), int)


# --- 0.1.0 kept every child of a stream for ever, and sent each update to all of them ----------


def machines():
    """A mechanism, how many updates reached all that it has made, and references to these."""
    heard, made = [], []

    class Counting(Heard):
        def __init__(self):
            self.items = heard
            made.append(weakref.ref(self))

    return oc.m.make_continual(*BITS, PURE, Counting, lambda d_in: 0.0), heard, made


def alive(made):
    gc.collect()
    return sum(one() is not None for one in made)


WRAPPERS = {
    "plain": lambda one: one,
    "interactive": oc.c.make_interactive,
    "bounded": lambda one: oc.c.make_bounded_interactive(one, 10**6),
    "postprocessed": lambda one: oc.c.make_interactive_postprocessing(one, lambda *now: now),
    "indexed": lambda one: oc.c.make_indexed_composition(*BITS, PURE, 1, [one]),
    "transformed": lambda one: oc.t.make_stream_clamp(*BITS, BITS[0]) >> one,
    "native cast": dp.c.make_pureDP_to_zCDP,
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_dropped_children_are_freed_and_get_no_updates(name):
    mechanism, heard, made = machines()
    measurement = WRAPPERS[name](mechanism)
    stream = shared(ZCDP, max_messages=10**6) if name == "native cast" else shared()
    kept = stream(measurement)
    for _ in range(15):
        stream(measurement)
    assert alive(made) == 1
    stream.update(1)
    stream.update_all([1, 0])
    assert len(heard) == 3  # of the one that is held
    del kept
    assert alive(made) == 0
    stream.update(1)
    assert len(heard) == 3


def test_a_stream_in_a_stream_is_freed_with_its_children():
    mechanism, heard, made = machines()
    stream = shared()
    plan = oc.make_concurrent_composition(*BITS, PURE, 1, [0.0])
    inner = stream(oc.c.make_concurrent_continual(plan))
    child = inner(mechanism)
    del inner
    gc.collect()
    stream.update(1)
    assert len(heard) == 1  # it holds what passes updates on
    assert child(None) == heard
    del child
    assert alive(made) == 0
    stream.update(1)
    assert len(heard) == 1


def test_a_handle_that_was_handed_out_keeps_its_part(make_stream):
    space = oc.integer_stream(0, 9), oc.event_presence()
    counters = {part: oc.m.make_counter(*space, PURE, TINY) for part in (0, 1)}
    stream = make_stream(space)([])
    even = stream(oc.c.make_parallel_continual(*space, lambda item: item % 2, counters))(0)
    gc.collect()
    stream.update_all([2, 3, 4])
    assert even(None) == 6


# --- what a stream is, what may be launched on it, and in which types its items arrive ---------


def of_user(function=len):
    """A measurement that treats the stream as a dataset."""
    return costing(0.1, function, space=BITS)


def tenth(domain=BITS[0]):
    return oc.m.make_counter(domain, oc.event_presence(), PURE, scale=10.0)


USERS = {
    "release": of_user,
    "queryable": lambda: of_user(lambda rows: dp.new_queryable(lambda query: 7)),
    "in a composition": lambda: dp.c.make_composition([tenth(), of_user()]),
}


def roots():
    yield odometer()([]), 1
    yield budget()([]), None
    yield oc.c.make_concurrent_continual(odometer())([]), 1
    yield shared(), None


@pytest.mark.parametrize("name", USERS)
def test_a_users_measurement_on_a_stream_is_refused_before_the_charge(name):
    for root, d_in in roots():
        with pytest.raises(InvalidTypeError, match="must be a continual mechanism"):
            root(USERS[name]())
        assert (root.privacy_loss() if d_in is None else root.privacy_loss(d_in)) == 0.0
    for wrap in (
        lambda one: oc.c.make_bounded_interactive(one, max_messages=3),
        lambda one: oc.t.make_stream_clamp(*BITS, BITS[0]) >> one,
        lambda one: oc.c.make_parallel_continual(*BITS, lambda item: item, {0: one}),
    ):
        with pytest.raises(InvalidTypeError, match="must be a continual mechanism"):
            wrap(USERS[name]())


def test_opendps_compositors_pass_the_stream_on():
    native = dp.c.make_composition([tenth(), tenth()])
    for root, _ in roots():
        assert len(root(native)) == 2


@pytest.mark.parametrize(
    ("domain", "plain"),
    [
        (oc.integer_stream(0, 9), int),
        (oc.category_stream(["1", "2"]), str),
        (oc.record_stream("numbers", lambda item: item in (1, 2)), int),
        (oc.record_stream("floats", lambda item: item in (1.0, 2.0)), float),
    ],
    ids=str,
)
def test_items_are_pythons_own(domain, plain):
    one, two = map(plain, (1, 2))
    array, seen = np.array([one, two]), []

    def keep(item):
        seen.append(type(item))
        return item

    metric = oc.event_presence()
    machine = oc.m.make_continual(domain, metric, PURE, Heard, lambda d_in: 0.0)
    for handle in (
        machine([]),
        (oc.t.make_stream_map(domain, metric, domain, keep) >> machine)([]),
    ):
        handle.update(array[0])
        for items in (array, [array[0], two], [one, None, array[1]]):
            handle.update_all(items)
        handle.update_all(np.ma.array(array, mask=[True, False]))
        assert {*map(type, handle(None))} == {plain, type(None)}
    assert {*seen} == {plain}


def test_streams_of_other_items_with_one_name_differ():
    bits = oc.record_stream("integers from 0 to 1", lambda item: True)
    assert bits != BITS[0]
    assert oc.record_stream("2 categories", bool) != oc.category_stream(2)
    own = dp.user_domain("Stream(integers from 0 to 1)", lambda data: data == [])
    for domain in (bits, own):
        root = oc.make_concurrent_odometer(domain, oc.event_presence(), PURE)([])
        with pytest.raises(SpaceMismatchError):
            root(tenth())


def test_records_are_equal_if_their_members_are():
    same, again = (oc.record_stream("visits", bool) for _ in range(2))
    other = oc.record_stream("visits", lambda item: item == 1)
    metric = oc.event_presence()
    first = oc.t.make_stream_map(same, metric, again, lambda item: item)
    last = oc.t.make_stream_map(again, metric, BITS[0], lambda item: 1)
    clock = oc.m.make_continual(other, metric, PURE, Heard, lambda d_in: 0.0)
    assert (first >> last >> tenth()).map(1) == 0.1
    with pytest.raises(SpaceMismatchError):
        first >> clock
    root = oc.c.make_concurrent_continual(an_odometer(space=(same, metric)))([])
    root(last >> tenth())
    with pytest.raises(SpaceMismatchError):
        root(clock)
    with pytest.raises(SpaceMismatchError):
        oc.c.make_parallel_continual(same, metric, lambda item: item, {1: clock})
