"""Handles of others do not exist, and handles that are not used expire."""

import time

import pytest

from opendp_concurrent.serving import HandleStore


def test_a_client_finds_and_drops_its_own_handles_only():
    handles, one = HandleStore(), object()
    name = handles.keep("alice", one)
    assert handles.find("alice", name) is one
    assert handles.find("bob", name) is handles.find("alice", name + "a") is None
    assert (handles.drop("bob", name), handles.drop("alice", "none")) == (False, False)
    assert handles.find("alice", name) is one
    assert (handles.drop("alice", name), handles.drop("alice", name)) == (True, False)
    assert handles.find("alice", name) is None


def test_what_is_used_stays_and_the_rest_expires(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    handles = HandleStore(seconds=60.0)
    used, left = handles.keep("alice", 1), handles.keep("alice", 2)
    now[0] += 59.0
    assert handles.find("alice", used) == 1
    now[0] += 2.0
    assert (handles.find("alice", used), handles.find("alice", left)) == (1, None)
    now[0] += 61.0
    assert not handles.drop("alice", used)
    assert handles._kept == {}


def test_each_client_has_room_for_so_many(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    handles = HandleStore(seconds=60.0, most=2)
    names = [handles.keep("alice", index) for index in range(3)]  # kept: they were charged
    assert (handles.has_room("alice"), handles.has_room("bob")) == (False, True)
    for name in names[:2]:
        handles.drop("alice", name)
    assert handles.has_room("alice")
    handles.keep("alice", 4)
    assert not handles.has_room("alice")
    now[0] += 61.0
    assert handles.has_room("alice")


@pytest.mark.parametrize("call", ["keep", "find", "has_room", "drop"])
def test_what_expires_is_freed_after_the_lock(monkeypatch, call):
    """Freeing a handle may run code: it must not wait for the store, nor must others for it."""
    now, free = [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    handles = HandleStore(seconds=60.0)

    class Child:
        def __del__(self):
            free.append(not handles._lock.held())

    names = [handles.keep("alice", Child()) for _ in range(2)]
    handles.drop("alice", names[0])
    assert free == [True]
    now[0] += 61.0
    getattr(handles, call)(*["alice", names[1]][: 1 if call == "has_room" else 2])
    assert free == [True, True]
    assert names[1] not in handles._kept
