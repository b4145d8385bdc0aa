"""``read()``, ``synthetic()`` and ``[key]`` are the queries that their messages are."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidValueError,
    MessageLimitError,
    ReentrantLaunchError,
    StreamHaltedError,
)
from opendp_concurrent.queryables.child import MachineQueryable
from opendp_concurrent.queryables.named_queries import (
    PARTS,
    READ,
    SYNTHESISE,
    answering,
    queries_of,
)

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
BITS = oc.integer_stream(0, 1), oc.event_presence()
CATEGORIES = oc.category_stream(3), oc.event_presence()
COUNTERS = {
    "counter": oc.m.make_counter(*BITS, PURE, scale=50.0),
    "histogram": oc.m.make_histogram_counter(*CATEGORIES, PURE, scale=50.0),
    "window": oc.m.make_window_counter(*BITS, PURE, scale=50.0, window=9),
    "alarm": oc.m.make_alarm(*BITS, PURE, scale=1.0, query_scale=2.0, threshold=10**6),
}


def count(space, epsilon=0.25):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def weights(space):
    return oc.m.make_private_multiplicative_weights(
        *space, ZCDP, 1, 0.5, universe=4, queries=100, size=10_000
    )


def projected(space):
    return oc.m.make_projected_queries(*space, ZCDP, 1, [0.5], universe=4, size=1000)


def has(handle):
    """Names of the methods that a handle has."""
    return {name for name in ("read", "synthetic", "__getitem__") if hasattr(handle, name)}


def told(machine=lambda query: query):
    """A handle of a machine that answers with what it is sent."""
    return answering(MachineQueryable, READ | SYNTHESISE | PARTS)(machine, "Told")


# --- the methods -------------------------------------------------------------------------------


def test_a_method_sends_its_message():
    handle, key = told(), object()
    assert handle.read() is None
    assert handle.synthetic() == "synthetic"
    assert handle[key] is key


def test_a_handle_has_the_methods_that_it_is_made_with():
    for queries, names in (
        (frozenset(), set()),
        (READ, {"read"}),
        (SYNTHESISE, {"synthetic"}),
        (PARTS, {"__getitem__"}),
        (READ | PARTS, {"read", "__getitem__"}),
    ):
        kind = answering(MachineQueryable, queries)
        assert kind is answering(MachineQueryable, queries)
        handle = kind(lambda query: query, "Told")
        assert has(handle) == names
        assert queries_of(handle) == queries
        assert (kind.__name__, repr(handle)) == ("MachineQueryable", "Told(open)")
    assert queries_of("a release") == frozenset()


def test_a_handle_by_keys_does_not_list_them():
    """Python would else ask for 0, 1, ... until one is refused, and so open those parts."""
    handle = told()
    with pytest.raises(TypeError, match="not iterable"):
        iter(handle)
    with pytest.raises(TypeError, match="not iterable"):
        assert 0 in handle
    with pytest.raises(TypeError):
        len(handle)


def test_a_method_takes_its_turn_and_is_closed_as_the_message_is():
    def ask_itself(query):
        handle.read()

    handle = told(ask_itself)
    with pytest.raises(ReentrantLaunchError):
        handle.read()
    stopped = COUNTERS["counter"]([])
    with pytest.raises(StreamHaltedError):
        stopped.update(7)
    with pytest.raises(StreamHaltedError):
        stopped.read()


# --- the mechanisms ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_is_read(name):
    queryable = COUNTERS[name]([])
    for _ in range(20):
        queryable.update(1)
        assert queryable.read() == queryable(None)
    assert has(queryable) == {"read"}


def test_weights_and_projected_queries_show_what_they_answer_from(space):
    for make in (weights, projected):
        queryable = make(space)([0, 1, 2, 3] * 250)
        assert np.array_equal(queryable.synthetic(), queryable("synthetic"))
        assert queryable.synthetic().shape == (4,)
        assert has(queryable) == {"synthetic"}


def test_the_synthetic_histogram_is_free(space):
    queryable = projected(space)([0, 1, 2, 3] * 250)
    for _ in range(9):
        queryable.synthetic()
    batch = [lambda value: value % 2]
    assert len(queryable(batch)) == 1  # the only one that d_mids have
    with pytest.raises(MessageLimitError):
        queryable(batch)


def test_a_part_is_opened_by_its_key(space):
    measure = oc.c.by_values({"young": range(0, 30), "old": range(30, 120)})
    shares = oc.make_concurrent_composition(*space, PURE, 1, [0.25])
    parts = oc.c.make_parallel_composition(*space, measure, {"young": count(space), "old": shares})
    handle = parts([20, 40])
    assert handle["young"] == handle("young")
    assert handle["old"] is handle("old")
    assert has(handle) == {"__getitem__"}
    with pytest.raises(InvalidValueError, match="must be a key of measurements"):
        handle["middle"]


def test_a_part_of_a_stream_is_opened_by_its_key():
    parity = oc.c.make_parallel_continual(
        *BITS, lambda item: item, {0: COUNTERS["counter"], 1: COUNTERS["window"]}
    )
    queryable = parity([])
    queryable.update_all([0, 1, 1])
    for part in (0, 1):
        assert queryable[part].read() == queryable(part)(None)
        assert has(queryable[part]) == {"read"}
    assert has(queryable) == {"__getitem__"}


def test_a_release_that_is_given_again_can_be_read(space):
    queryable = oc.c.make_interactive(count(space))([1, 2])
    assert queryable.read() == queryable("again")


def test_other_handles_have_none(space):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    sparse = oc.m.make_sparse_vector(*space, PURE, 1, 2.0, 10, 3)
    for made in (odometer, oc.make_concurrent_filter(odometer, 1, 1.0), sparse):
        handle = made([1, 2])
        assert has(handle) == set()
        with pytest.raises(AttributeError, match="read"):
            handle.read()
    clock = oc.m.make_continual(*BITS, PURE, Clock, lambda d_in: 0.0)
    assert has(clock([])) == set()


class Clock:
    """A machine of one's own."""

    def update(self, item):
        """Nothing."""

    def update_all(self, items):
        """Nothing."""

    def ask(self, query):
        return query


# --- what is around them -----------------------------------------------------------------------


def test_a_limit_counts_methods_as_messages(space):
    counter = oc.c.make_bounded_interactive(COUNTERS["counter"], 3)([])
    counter.update(1)
    counter.read()
    counter(None)
    with pytest.raises(MessageLimitError):
        counter.read()
    synthetic = oc.c.make_bounded_interactive(weights(space), 1)([0, 1, 2, 3] * 2500)
    synthetic.synthetic()
    with pytest.raises(MessageLimitError):
        synthetic.synthetic()
    parts = oc.c.make_parallel_composition(
        *space, oc.c.by_values({"low": range(9)}), {"low": count(space)}
    )
    handle = oc.c.make_bounded_interactive(parts, 1)([1, 2])
    handle["low"]
    with pytest.raises(MessageLimitError):
        handle["low"]


def test_what_is_behind_a_stream_transformation_or_a_cast_is_read():
    clamp = oc.t.make_stream_clamp(oc.integer_stream(-5, 5), oc.event_presence(), BITS[0])
    for made in (clamp >> COUNTERS["counter"], oc.c.cast(clamp >> COUNTERS["counter"], ZCDP)):
        queryable = made([])
        queryable.update_all([5, -5])
        assert queryable.read() == queryable(None)


def test_a_child_of_a_stream_counts_methods_as_messages():
    odometer = oc.make_concurrent_odometer(*BITS, ZCDP)
    stream = oc.c.make_concurrent_continual(odometer, max_messages=3)([])
    child = stream(oc.m.make_counter(*BITS, ZCDP, scale=50.0))
    stream.update(1)
    assert child.read() == child(None)
    with pytest.raises(MessageLimitError):
        child.read()


def test_a_protocol_of_its_own_has_no_methods(space):
    """The postprocessor, and an index, would be sent a message that is none of theirs."""
    inner = oc.c.make_interactive(count(space))

    def identity(state, tag, message):
        return state, tag, message

    for made in (
        oc.c.make_interactive_postprocessing(inner, identity),
        oc.c.make_indexed_composition(*space, PURE, 1, [inner, inner]),
    ):
        assert has(made([1, 2])) == set()
        # nor what passes its messages on
        assert has(oc.c.make_bounded_interactive(made, 9)([1, 2])) == set()


def test_a_native_queryable_has_no_methods(space):
    def spawn(data):
        inner = COUNTERS["counter"]([])
        return dp.new_queryable(inner, Q="ExtrinsicObject", A="ExtrinsicObject")

    native = dp.m.make_user_measurement(
        *space, PURE, spawn, lambda d_in: 0.25, TO="ExtrinsicObject"
    )
    odometer = oc.make_concurrent_odometer(*space, PURE)
    for handle in (native([1]), odometer([1])(native), oc.c.make_interactive(native)([1])):
        assert has(handle) == set()
        assert isinstance(handle(None), int)


def test_a_handle_inside_native_code_has_its_methods():
    outer = dp.c.make_adaptive_composition(*BITS, PURE, 1, [1.0])([])
    child = outer(COUNTERS["counter"])
    child.update(1)
    assert child.read() == child(None)


def test_a_counter_from_a_record_is_read():
    before = COUNTERS["counter"]([])
    before.update_all([1, 0])
    after = oc.c.from_record(COUNTERS["counter"], before.to_record())
    assert after.read() == before.read()
