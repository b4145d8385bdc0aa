"""What every wrapper keeps: the privacy map, the parents it may have, and the secrets."""

import sys
from collections import Counter

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, HaltedError, MessageLimitError

from ..build import (
    APPROXIMATE,
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

TEXTS = dp.vector_domain(dp.atom_domain(T=str)), SPACE[1]


def identity(state, tag, message):
    return state, tag, message


WRAPPERS = {
    "interactive": oc.c.make_interactive,
    "bounded": lambda measurement: oc.c.make_bounded_interactive(measurement, 1000),
    "postprocessing": lambda measurement: oc.c.make_interactive_postprocessing(
        measurement, identity
    ),
    "twice": lambda measurement: oc.c.make_interactive(
        oc.c.make_interactive_postprocessing(measurement, identity)
    ),
}


@pytest.fixture(params=WRAPPERS)
def wrap(request):
    return WRAPPERS[request.param]


# --- what is wrapped -------------------------------------------------------------------------


def test_a_refusal_keeps_its_type_and_values(wrap):
    queryable = wrap(a_filter(1.0))(DATA)
    queryable(laplace(0.5))
    with pytest.raises(BudgetExceededError) as refused:
        queryable(laplace(0.75))
    assert (refused.value.spent, refused.value.remaining) == (0.5, 0.5)
    assert isinstance(queryable(laplace(0.5)), int)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (laplace(5.0), "asked 5"),
        ("nonsense", "must be a measurement"),
        (costing(-1.0), "privacy map"),
        (laplace(space=TEXTS), "input_domain"),
        (an_odometer(APPROXIMATE), "output_measure"),
    ],
    ids=str,
)
def test_a_message_that_is_no_launch_halts(message, told):
    """Algorithm 3 halts at anything else than an admitted launch, or a message to a child."""
    root, patient = opened(1.0, halt=True), opened(1.0)
    for one in (root, patient):
        child = one(asking())
        assert not one.admits(laplace(5.0))
        with pytest.raises(Exception, match="d_in"):
            one.privacy_loss("no distance")
        assert child("open") == (1, "open")  # a question closes nothing
        with pytest.raises(Exception, match=told):
            one(message)
    assert child("still") == (2, "still")
    for query in (laplace(), "other nonsense"):
        with pytest.raises(HaltedError, match=told) as halted:
            root(query)
        over = told == "asked 5"
        assert (halted.value.spent, halted.value.asked) == ((0.25, 5.0) if over else (None, None))
    assert root.privacy_loss() == 0.25


def test_a_refusal_to_a_mechanism_that_runs_halts_nothing():
    """What a mechanism sends while it runs depends on the data, and so would the halt."""
    root, seen = opened(1.0, halt=True), []

    def function(rows):
        with pytest.raises(Exception, match="query") as refused:
            root("nonsense")
        seen.append(refused)
        return 1

    root(costing(0.5, function))
    assert len(seen) == 1
    assert isinstance(root(laplace()), int)


# --- a limit on messages: so many reach the mechanism, and no more -------------------------------


@given(limit=st.integers(1, 20), more=st.integers(1, 5))
def test_exactly_as_many_are_answered(limit, more):
    reached = []
    queryable = oc.c.make_bounded_interactive(asking(reached), limit)(DATA)
    assert [queryable(n) for n in range(limit)] == [(n + 1, n) for n in range(limit)]
    for _ in range(more):
        with pytest.raises(MessageLimitError) as refused:
            queryable("one more")
        assert refused.value.limit == limit
    assert reached == list(range(limit))


def test_a_message_that_the_mechanism_refuses_counts():
    reached = []
    queryable = oc.c.make_bounded_interactive(asking(reached), 2)(DATA)
    with pytest.raises(OpenDPException, match="refuses"):
        queryable("bad")
    assert queryable("q") == (2, "q")
    with pytest.raises(MessageLimitError):
        queryable("q")
    assert reached == ["bad", "q"]


def test_a_postprocessor_in_front_pays_a_message_for_each_of_its_own():
    def thrice(state, tag, message):
        if tag is oc.c.QUERY:
            return 1, oc.c.QUERY, message
        return (state + 1, oc.c.QUERY, message) if state < 3 else (0, oc.c.ANSWER, message)

    reached = []
    bounded = oc.c.make_bounded_interactive(asking(reached), 5)
    queryable = oc.c.make_interactive_postprocessing(bounded, thrice)(DATA)
    assert queryable("q")[0] == 3
    with pytest.raises(MessageLimitError):
        queryable("q")
    assert len(reached) == 5


@pytest.mark.parametrize("native", [False, True], ids=["top level", "below a native parent"])
def test_eight_threads_get_exactly_a_hundred_answers(native):
    reached = []
    measurement = oc.c.make_bounded_interactive(asking(reached), 100)
    if native:
        parent = dp.c.make_adaptive_composition(*SPACE, PURE, d_in=1, d_mids=[0.25])
        queryable = parent(DATA)(measurement)
    else:
        queryable = measurement(DATA)
    answers, outcomes = [], [Counter() for _ in range(8)]

    def work(number):
        for _ in range(50):
            try:
                answers.append(queryable(number)[0])
                outcomes[number]["answered"] += 1
            except MessageLimitError:
                outcomes[number]["refused"] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    in_threads(work, range(8))
    sys.setswitchinterval(interval)
    assert sum(outcomes, Counter()) == {"answered": 100, "refused": 300}
    assert sorted(answers) == list(range(1, 101))
    assert len(reached) == 100
