from __future__ import annotations

import contextvars
import threading

import pytest

from opendp_concurrent._opendp.interrupts import Lock
from opendp_concurrent.queryables.data import HELD, attempt, in_turn


def free(lock):
    taken = []
    thread = threading.Thread(target=lambda: taken.append(lock._acquire(False)))
    thread.start()
    thread.join()
    return taken == [True]


def test_a_turn_taken_again_ends_where_it_began():
    lock = Lock()

    def outer():
        assert in_turn(lock, HELD.get) is lock
        assert HELD.get() is lock
        assert not free(lock)
        return "answer"

    assert in_turn(lock, outer) == "answer"
    assert HELD.get() is None
    assert free(lock)


def test_a_turn_taken_again_from_another_context_ends_there():
    lock = Lock()

    def again():
        assert HELD.get() is None
        assert in_turn(lock, HELD.get) is lock
        assert HELD.get() is None

    def outer():
        contextvars.Context().run(again)
        assert HELD.get() is lock

    in_turn(lock, outer)
    assert HELD.get() is None
    assert free(lock)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_turn_that_fails_is_over(kind):
    lock = Lock()

    def fail():
        raise kind("failed")

    with pytest.raises(kind, match="failed"):
        in_turn(lock, fail)
    assert free(lock)


def test_an_attempt_raises_nothing():
    assert attempt(max, 1, 2) == (2, None)
    answer, error = attempt(int, "text")
    assert answer is None
    assert isinstance(error, ValueError)
