"""Handles of interactive mechanisms: what their exceptions hold, and who may ask when."""

import contextvars
import threading

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ReentrantLaunchError
from opendp_concurrent.queryables.child import forget_frames

from ..build import PURE, SPACE

SECRET = 31337
ROWS = [SECRET] * 100


def bad(rows):
    raise RuntimeError("the query failed")


def test_a_query_may_not_ask_its_own_mechanism_from_a_context_of_its_own():
    handle = oc.m.make_above_threshold(*SPACE, PURE, 1, 1e-3, 0)(ROWS)
    inner = []

    def query(rows):
        try:
            inner.append(contextvars.Context().run(handle, len))
        except ReentrantLaunchError as error:
            inner.append(error)
        return len(rows)

    assert handle(query)
    assert [type(one) for one in inner] == [ReentrantLaunchError]
    assert handle(len).outcome is oc.handles.Outcome.EXHAUSTED


def test_after_a_failure_it_may_be_asked_again():
    handle = oc.m.make_above_threshold(*SPACE, PURE, 1, 1e-3, 0)(ROWS)
    with pytest.raises(RuntimeError, match="failed"):
        handle(bad)
    assert handle(len)


def test_a_thread_waits_for_its_turn():
    begun, done = threading.Event(), threading.Event()
    handle = oc.m.make_sparse_vector(*SPACE, PURE, 1, 1e-3, 0, 10)(ROWS)
    answers = []

    def slow(rows):
        begun.set()
        assert done.wait(timeout=10)
        return len(rows)

    first = threading.Thread(target=lambda: answers.append(handle(slow)))
    second = threading.Thread(target=lambda: answers.append(handle(len)))
    first.start()
    assert begun.wait(timeout=10)
    second.start()
    second.join(timeout=0.2)
    assert second.is_alive()
    done.set()
    first.join(timeout=10)
    second.join(timeout=10)
    assert [bool(answer) for answer in answers] == [True, True]


def test_frames_of_causes_and_contexts_are_forgotten():
    def chain():
        try:
            try:
                raise ValueError("one")
            except ValueError as error:
                raise TypeError("two") from error
        except TypeError:
            raise RuntimeError("three")  # noqa: B904

    with pytest.raises(RuntimeError) as caught:
        chain()
    forget_frames(caught.value)
    error = caught.value
    while error is not None:
        assert error.__traceback__ is None
        error = error.__cause__ or error.__context__
