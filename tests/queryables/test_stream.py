"""A stream as a dataset: an empty list, whatever flows through it."""

import copy
import pickle

import pytest

from opendp_concurrent.queryables.stream import Stream, Updatable


def test_a_stream_is_an_empty_list_to_all_who_look():
    stream = Stream(many=True)
    assert len(stream) == 0
    assert list(stream) == []
    assert repr(stream) == "[]"
    assert stream == stream
    assert stream == []
    assert stream == Stream(many=False)
    assert stream != [1]
    assert stream != ()
    assert stream != "other"
    assert hash(stream) == hash(stream)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_is_neither_pickled_nor_copied(take):
    with pytest.raises(TypeError, match="sensitive"):
        take(Stream(many=True))


def test_who_takes_updates_says_where_they_go():
    with pytest.raises(NotImplementedError):
        Updatable().update(1)
