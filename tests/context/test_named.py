"""Contexts by key."""

import pytest

from opendp_concurrent.context.query import NamedContexts


class Handle:
    """Hands out a number for each key, and counts how often it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, key):
        if key == "nobody":
            raise KeyError(key)
        self.asked.append(key)
        return len(key)

    def __repr__(self):
        return "Handle"


def test_a_context_is_opened_once_and_its_key_is_checked_each_time():
    handle, opened = Handle(), []
    contexts = NamedContexts(handle, lambda key, queryable: opened.append(key) or [key, queryable])
    assert opened == []
    first = contexts["alice"]
    assert first == ["alice", 5]
    assert contexts("alice") is first
    assert contexts["bob"] == ["bob", 3]
    assert opened == ["alice", "bob"]
    assert handle.asked == ["alice", "alice", "bob"]
    with pytest.raises(KeyError):
        contexts["nobody"]
    assert opened == ["alice", "bob"]


def test_the_keys_are_not_listed():
    contexts = NamedContexts(Handle(), lambda key, queryable: key)
    with pytest.raises(TypeError):
        list(contexts)
    assert repr(contexts) == "NamedContexts(Handle)"
