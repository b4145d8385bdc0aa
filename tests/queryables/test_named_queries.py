"""``read()``, ``synthetic()`` and ``[key]`` are the queries that their messages are."""

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    MessageLimitError,
    ReentrantLaunchError,
    StreamHaltedError,
)
from opendp_concurrent.queryables.child import PARTS, READ, SYNTHESISE, MachineQueryable, answering
from opendp_concurrent.queryables.mechanism import Accuracy, of_one

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


def told(machine=lambda query: query):
    """A handle of a machine that answers with what it is sent."""
    return answering(MachineQueryable, READ | SYNTHESISE | PARTS)(machine, "Told")


# --- the methods -------------------------------------------------------------------------------


def test_a_method_sends_its_message():
    handle, key = told(), object()
    assert handle.read() is None
    assert handle.synthetic() == "synthetic"
    assert handle[key] is key


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


def test_the_synthetic_histogram_is_free(space):
    queryable = projected(space)([0, 1, 2, 3] * 250)
    for _ in range(9):
        queryable.synthetic()
    batch = [lambda value: value % 2]
    assert len(queryable(batch)) == 1  # the only one that d_mids have
    with pytest.raises(MessageLimitError):
        queryable(batch)


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


@given(st.floats(1e-12, 0.999), st.integers(1, 10**6))
def test_all_answers_fail_with_beta_if_each_fails_on_its_own(beta, answers):
    each = of_one(lambda failing: failing)(beta, answers)
    assert 1 - (1 - each) ** answers == pytest.approx(beta, rel=1e-6, abs=1e-9)
    assert beta / answers <= each * (1 + 1e-12)
    assert each <= beta * (1 + 1e-12)


def test_the_number_of_answers_is_that_of_a_release_or_must_be_given():
    bound = lambda beta, answers: answers / beta  # noqa: E731
    assert Accuracy("Laplace", 1.0, bound, 4).at(0.5, None) == 8.0
    assert Accuracy("Laplace", 1.0, bound, 4).at(0.5, 3) == 6.0
    with pytest.raises(InvalidTypeError, match="^answers must be given"):
        Accuracy("Laplace", 1.0, bound).at(0.5, None)
