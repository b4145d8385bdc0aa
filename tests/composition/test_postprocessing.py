"""A person in the middle: Algorithm 7 of [HSTVVXZ23], and what it cannot break: budgets, streams.

0.1.0 handed the raw updates of a stream to the analyst's postprocessor.
"""

import itertools
import threading

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.composition.interactive import Tag
from opendp_concurrent.errors import (
    InvalidTypeError,
    MessageLimitError,
    PostprocessorError,
    ReentrantLaunchError,
)

from ..build import (
    DATA,
    PURE,
    SPACE,
    a_filter,
    an_odometer,
    asking,
    costing,
    in_threads,
    laplace,
    opened,
)

QUERY, ANSWER = oc.c.QUERY, oc.c.ANSWER
LETTERS = 5  # messages of the random machines are numbers below this


def interactive(make_transition):
    return costing(lambda d_in: 0.25, lambda rows: dp.new_queryable(make_transition(rows)))


def middle(postprocessor, measurement=None, **keywords):
    measurement = asking() if measurement is None else measurement
    return oc.c.make_interactive_postprocessing(measurement, postprocessor, **keywords)


# --- laws ------------------------------------------------------------------------------------


@st.composite
def mechanisms(draw):
    """A deterministic finite mechanism: a table from a state and a query to the next and an answer.

    It begins in a state that depends on the data.
    """
    states = draw(st.integers(1, 4))
    row = st.tuples(st.integers(0, states - 1), st.integers(0, LETTERS - 1))
    table = draw(st.lists(row, min_size=states * LETTERS, max_size=states * LETTERS))

    def make_transition(rows):
        state = sum(rows) % states

        def transition(query):
            nonlocal state
            state, answer = table[state * LETTERS + query]
            return answer

        return transition

    return interactive(make_transition)


@st.composite
def postprocessors(draw, asks=3):
    """A finite machine in the middle that asks at most ``asks`` times for one message."""
    states = draw(st.integers(1, 3))
    row = st.tuples(st.integers(0, states - 1), st.sampled_from(Tag), st.integers(0, LETTERS - 1))
    size = 2 * states * LETTERS
    table = draw(st.lists(row, min_size=size, max_size=size))

    def postprocessor(state, tag, message):
        at, asked = state
        place = (at * 2 + (tag is ANSWER)) * LETTERS + message
        at, after, message = table[place]
        if tag is QUERY:
            asked = 0
        if asked == asks:
            after = ANSWER
        return (at, asked + 1), after, message

    return postprocessor


START = (0, 0)
scripts = st.lists(st.integers(0, LETTERS - 1), max_size=8)


def transcript(measurement, script, data=DATA):
    queryable = measurement(data)
    return [queryable(message) for message in script]


def simulated(mechanism, postprocessor, state, script):
    """Algorithm 7, step by step, on a mechanism that is asked directly."""
    queryable, answers = mechanism(DATA), []
    for message in script:
        state, tag, reply = postprocessor(state, QUERY, message)
        while tag is QUERY:
            state, tag, reply = postprocessor(state, ANSWER, queryable(reply))
        answers.append(reply)
    return answers


@given(mechanism=mechanisms(), outer=postprocessors(), inner=postprocessors(), script=scripts)
def test_it_is_algorithm_7(mechanism, outer, inner, script):
    within = middle(inner, mechanism, initial_state=START, max_asks=4)
    nested = middle(outer, within, initial_state=START, max_asks=4)
    assert transcript(within, script) == simulated(mechanism, inner, START, script)
    assert transcript(nested, script) == simulated(within, outer, START, script)
    assert nested.map(1) == within.map(1) == mechanism.map(1)


@given(mechanism=mechanisms(), one=postprocessors(), scripts=st.tuples(scripts, scripts))
def test_invocations_have_a_state_each(mechanism, one, scripts):
    measurement = middle(one, mechanism, initial_state=START)
    queryables = measurement(DATA), measurement(DATA)
    found = [[], []]
    for messages in itertools.zip_longest(*scripts):
        for queryable, message, answers in zip(queryables, messages, found, strict=True):
            if message is not None:
                answers.append(queryable(message))
    assert found == [transcript(measurement, script) for script in scripts]


def times(count):
    """Asks ``count`` times for each message and answers all replies."""

    def postprocessor(replies, tag, message):
        replies = () if tag is QUERY else (*replies, message)
        if len(replies) < count:
            return replies, QUERY, len(replies)
        return (), ANSWER, replies

    return postprocessor


def loops(state, tag, message):
    """Asks for ever when told to loop; answers how many messages went through."""
    if tag is QUERY:
        return state + 1, QUERY, message
    if message[1] == "loop":
        return state + 100, QUERY, "loop"
    return state, ANSWER, (state, message)


@pytest.mark.parametrize("limit", [1, 2, 25])
def test_a_loop_is_stopped_and_nothing_is_lost(limit):
    reached = []
    queryable = middle(loops, asking(reached), initial_state=0, max_asks=limit)(DATA)
    assert queryable("a") == (1, (1, "a"))
    with pytest.raises(PostprocessorError, match=f"it sent {limit} queries for one message"):
        queryable("loop")
    assert reached == ["a", *["loop"] * limit]
    assert queryable("b") == (2, (limit + 2, "b"))


@pytest.mark.parametrize("when", [QUERY, ANSWER])
def test_one_that_raises_keeps_its_state_and_the_mechanism_goes_on(when):
    def postprocessor(state, tag, message):
        if tag is when and "raise" in message:
            raise KeyError("of the postprocessor")
        return state + 1, tag, (state, message) if tag is ANSWER else message

    reached = []
    queryable = middle(postprocessor, asking(reached), initial_state=0)(DATA)
    assert queryable("a") == (1, (1, "a"))
    with pytest.raises(KeyError, match="of the postprocessor"):
        queryable("raise")
    asked = when is ANSWER
    assert reached == (["a", "raise"] if asked else ["a"])
    with pytest.raises(OpenDPException, match="refuses"):
        queryable("bad")
    assert queryable("b") == (3, (3 + asked, "b"))


@pytest.mark.parametrize("returned", [None, (0, ANSWER), (0, ANSWER, "m", "n"), (0, "answer", "m")])
@pytest.mark.parametrize("when", [QUERY, ANSWER])
def test_one_that_returns_garbage_is_told_what_to_return(returned, when):
    def postprocessor(state, tag, message):
        if tag is when and "garbage" in message:
            return returned
        return state + 1, tag, message

    queryable = middle(postprocessor, initial_state=0)(DATA)
    with pytest.raises(PostprocessorError, match=r"must return a state, oc\.c\.QUERY or"):
        queryable("garbage")
    assert queryable("fine")[1] == "fine"


# --- re-entrance and threads -----------------------------------------------------------------


def test_one_that_asks_its_own_handle_for_ever_fails_and_the_handle_goes_on():
    handles = []

    def postprocessor(state, tag, message):
        if tag is QUERY and message == "self":
            return state, ANSWER, handles[0]("self")
        return state, tag, message

    handles.append(middle(postprocessor)(DATA))
    with pytest.raises(RuntimeError):
        handles[0]("self")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(handles[0]("q")))
    thread.start()
    thread.join(timeout=20)
    assert answers == [(1, "q")]


def test_one_cannot_launch_on_the_account_that_pays_for_the_mechanism():
    root = opened()
    child = root(middle(lambda state, tag, message: (state, ANSWER, root(laplace()))))
    with pytest.raises(ReentrantLaunchError):
        child("q")
    assert root.privacy_loss() == 0.25


def test_threads_do_not_tear_the_state():
    queryable, seen = middle(times(3))(DATA), []

    def work(number):
        for _ in range(50):
            seen.append(queryable("q"))

    in_threads(work, range(4))
    assert len(seen) == 200
    for replies in seen:
        (first, _), *_ = replies
        assert replies == ((first, 0), (first + 1, 1), (first + 2, 2))


# --- odometers -----------------------------------------------------------------------------------


def twice(state, tag, message):
    """Launch a count of this ε twice, and answer the larger one, or nothing after an odd sum."""
    if tag is QUERY:
        return (message, None), QUERY, laplace(message)
    epsilon, first = state
    if first is None:
        return (epsilon, message), QUERY, laplace(epsilon)
    return None, ANSWER, max(first, message) if (first + message) % 2 else None


def test_an_odometer_behind_a_postprocessor_tells_its_true_loss():
    wrapped = oc.c.make_interactive_postprocessing(an_odometer(), twice)
    root = wrapped(DATA)
    assert isinstance(root, dp.OdometerQueryable)
    for times in range(1, 4):
        root(0.25)
        assert root.privacy_loss(1) == 0.5 * times
        assert root.privacy_loss(2) == 1.0 * times
    with pytest.raises(TypeError):
        root("no scale")
    assert root.privacy_loss(1) == 1.5
    doubled = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows * 2, lambda d: 2 * d)
    chained = (doubled >> wrapped)(DATA)
    chained(0.25)
    assert chained.privacy_loss(1) == 1.0


@pytest.mark.parametrize("wraps", [1, 2])
def test_a_wrapped_odometer_charges_each_ancestor_before_it_runs(wraps):
    wrapped = an_odometer()
    for _ in range(wraps):
        wrapped = oc.c.make_bounded_interactive(wrapped, 9)
    wrapped = oc.c.make_interactive_postprocessing(wrapped, twice)
    root = opened()
    child = root(wrapped)
    child(0.25)
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.5, 0.5)
    with pytest.raises(oc.errors.BudgetExceededError):
        child(0.5)  # the first of the two fits
    assert (root.privacy_loss(), child.privacy_loss(1)) == (1.0, 1.0)


def test_what_would_forget_the_postprocessor_is_refused():
    wrapped = oc.c.make_interactive_postprocessing(an_odometer(), twice)
    for make in (
        lambda: oc.make_concurrent_filter(wrapped, 1, 1.0),
        lambda: oc.c.make_limited(wrapped, 1, 1.0, label="ann"),
        lambda: oc.c.make_block_filter(wrapped, 1, 1.0, blocks=oc.c.by_key(len), keys=[1]),
        lambda: wrapped >> str,
    ):
        with pytest.raises(TypeError, match="^odometer answers messages"):
            make()
    stream = oc.make_concurrent_odometer(oc.integer_stream(0, 1), oc.event_presence(), PURE)
    limit = oc.c.make_limited(an_odometer(), 1, 1.0, label="ann")
    for one, told in ((stream, "stream"), (limit, "limit")):
        with pytest.raises(TypeError, match=told):
            oc.c.make_interactive_postprocessing(one, twice)


# --- updates of streams ---------------------------------------------------------------------------


TINY = 1e-3  # noise is 0 but once in e^1000


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def counter(scale=TINY, **options):
    return oc.m.make_counter(*bits(), PURE, scale, **options)


def shared(d_out=1e9):
    return oc.c.make_concurrent_continual(a_filter(d_out, space=bits()))([])


@pytest.mark.parametrize("forged", [oc.handles.Update(1), oc.handles.Updates([1, 1])])
def test_a_postprocessor_sends_no_updates_of_its_own(forged):
    def forger(state, tag, message):
        if tag is oc.c.QUERY and message == "forge":
            return state, oc.c.QUERY, forged
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

    own = costing(1.0, lambda data: counter()([]))
    handle = oc.c.make_interactive_postprocessing(own, forger)([])
    with pytest.raises(InvalidTypeError, match="an update is data"):
        handle("forge")
    assert handle(None) == 0


def test_what_a_postprocessor_returns_gets_no_updates():
    """A counter of its own, which nobody paid for, in the place of the one that was."""
    stream, dear = shared(d_out=1.0), []

    def swap(handle):
        dear.append(handle)
        return counter(TINY)([])  # exact

    cheap = dp.c.make_chain_pm(
        dp.new_function(swap, TO="ExtrinsicObject"), counter(60.0, horizon=2**15 - 1)
    )
    child = stream(cheap)
    stream.update_all([1] * 20_000)
    assert child(None) == 0
    assert dear[0](None) > 10_000  # what was paid for is fed; else once in 10^30


def test_odometers_on_streams_have_no_postprocessors():
    odometer = oc.make_concurrent_odometer(*bits(), PURE)
    with pytest.raises(InvalidTypeError, match="would receive the handles that take updates"):
        odometer >> (lambda handle: handle)


def test_a_postprocessor_that_fails_does_not_touch_updates():
    def broken(state, tag, message):
        raise ZeroDivisionError

    handle = oc.c.make_interactive_postprocessing(counter(), broken)([])
    handle.update_all([1, 1])
    with pytest.raises(ZeroDivisionError):
        handle(None)
    handle.update(1)


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
