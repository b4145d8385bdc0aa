from __future__ import annotations

import contextvars
import threading

from opendp_concurrent.queryables.turn import Turn, inherited_lock


def free(lock):
    taken = []
    thread = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
    thread.start()
    thread.join()
    return taken == [True]


def test_a_turn_taken_again_ends_where_it_began():
    lock = threading.RLock()
    turn = Turn(lock)
    with turn:
        with turn:
            assert inherited_lock() is lock
        assert inherited_lock() is lock
        assert not free(lock)
    assert inherited_lock() is None
    assert free(lock)


def test_a_turn_taken_again_from_another_context_ends_there():
    lock = threading.RLock()
    turn = Turn(lock)

    def again():
        assert inherited_lock() is None
        with turn:
            assert inherited_lock() is lock
        assert inherited_lock() is None

    with turn:
        contextvars.Context().run(again)
        assert inherited_lock() is lock
    assert inherited_lock() is None
    assert free(lock)
