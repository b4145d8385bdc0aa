"""A limit on messages: so many reach the mechanism, and no more."""

import itertools
import sys
import threading
from collections import Counter

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    MessageLimitError,
)

PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
DATA = [1, 2, 3]


def asking(reached=None, d_mid=0.25):
    """Counts its queries, in ``reached`` as well; raises on 'bad'."""
    reached = [] if reached is None else reached

    def function(rows):
        asked = itertools.count(1)

        def transition(query):
            reached.append(query)
            number = next(asked)
            if query == "bad":
                raise ValueError("a query that the mechanism refuses")
            return number

        return dp.new_queryable(transition)

    return dp.m.make_user_measurement(
        *SPACE, PURE, function, lambda d_in: d_mid, TO="ExtrinsicObject"
    )


@given(limit=st.integers(1, 20), more=st.integers(1, 5))
def test_exactly_as_many_are_answered(limit, more):
    reached = []
    queryable = oc.c.make_bounded_interactive(asking(reached), limit)(DATA)
    assert [queryable(n) for n in range(limit)] == list(range(1, limit + 1))
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
    assert queryable("q") == 2
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
    assert queryable("q") == 3
    with pytest.raises(MessageLimitError):
        queryable("q")
    assert len(reached) == 5


def test_the_error_keeps_its_type_below_a_native_parent():
    root = dp.c.make_adaptive_composition(*SPACE, PURE, d_in=1, d_mids=[0.25] * 2)(DATA)
    child = root(oc.c.make_bounded_interactive(asking(), 1))
    assert child("q") == 1
    with pytest.raises(MessageLimitError) as refused:
        child("q")
    assert refused.value.limit == 1


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
                answers.append(queryable(number))
                outcomes[number]["answered"] += 1
            except MessageLimitError:
                outcomes[number]["refused"] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert sum(outcomes, Counter()) == {"answered": 100, "refused": 300}
    assert sorted(answers) == list(range(1, 101))
    assert len(reached) == 100
