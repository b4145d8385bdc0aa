"""A connection waits for an answer for a limited time, and not for each event anew."""

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.ledger import backends as timeouts


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(timeouts, "monotonic", lambda: now[0])
    return now


def answer(seen):
    seen.append((yield "read"))
    seen.append((yield "write"))
    return "done"


def late():
    return TimeoutError("late")


def test_events_reach_the_generator_and_its_answer_is_returned(clock):
    seen = []
    waiting = timeouts._until(1.0, answer(seen), late)
    assert next(waiting) == "read"
    assert waiting.send(0) == "read"  # an interval without an event
    assert waiting.send(1) == "write"
    with pytest.raises(StopIteration) as raised:
        waiting.send(2)
    assert (raised.value.value, seen) == ("done", [1, 2])


@pytest.mark.parametrize("ready", [0, 1])
def test_the_limit_holds_with_and_without_events(clock, ready):
    waiting = timeouts._until(1.0, answer([]), late)
    next(waiting)
    clock[0] = 0.9
    waiting.send(ready)
    clock[0] = 1.0
    with pytest.raises(TimeoutError, match="late"):
        waiting.send(ready)
