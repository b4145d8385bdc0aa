"""A stream as a dataset: an empty list, whatever flows through it."""

import copy
import gc
import os
import pickle
import threading

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, StreamError
from opendp_concurrent.queryables.stream import (
    MOST_ITEMS,
    Room,
    Stream,
    Update,
    check_items,
    check_step,
    is_stream,
)

from ..build import PURE, SPACE, costing, opened


def test_a_stream_is_an_empty_list_to_all_who_look():
    stream = Stream(many=True)
    assert len(stream) == 0
    assert list(stream) == []
    assert repr(stream) == "[]"
    assert stream == [] == Stream(many=False)
    assert stream not in ([1], (), "other")
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive"):
            take(stream)


class Feed:
    """Keeps what it is sent."""

    def __init__(self, refusing=None):
        self.sent, self.refusing = [], refusing

    def receive(self, message):
        if self.refusing is not None and isinstance(message, self.refusing):
            raise ValueError(f"refused by {id(self)}")
        self.sent.append(message)

    def items(self):
        return [message.item for message in self.sent if isinstance(message, Update)]


def fed(*feeds):
    stream = Stream(many=True)
    for feed in feeds:
        stream.subscribe(feed)
    return stream


def test_those_that_are_left_get_updates_when_one_is_dropped():
    kept, dropped = Feed(), Feed()
    stream = fed(dropped, kept)
    del dropped
    gc.collect()
    for item in (1, 2, 3):
        stream.receive(Update(item, None))
    assert kept.items() == [1, 2, 3]
    assert len(stream._feeds) == 1


def test_all_are_asked_for_room_before_one_is_sent_an_update():
    first, full = Feed(), Feed(refusing=Room)
    stream = fed(first, full)
    with pytest.raises(ValueError, match="refused"):
        stream.receive(Update(1, None))
    assert first.items() == full.items() == []
    with pytest.raises(ValueError, match="refused"):
        stream.receive(Room(1))


def test_all_are_sent_an_update_and_the_first_failure_is_raised():
    failing, after, last = Feed(refusing=Update), Feed(), Feed(refusing=Update)
    with pytest.raises(ValueError, match=str(id(failing))):
        fed(failing, after, last).receive(Update(1, None))
    assert after.items() == [1]


@pytest.mark.parametrize(
    ("items", "error", "match"),
    [
        ("text", InvalidTypeError, "^items must be a sequence, found str"),
        (3, InvalidTypeError, "^items must be a sequence, found int"),
        (np.array(3), InvalidTypeError, "an array of one number"),
        (range(MOST_ITEMS + 1), InvalidValueError, "^items must have at most"),
    ],
)
def test_what_are_no_items_is_refused(items, error, match):
    with pytest.raises(error, match=match):
        check_items(items)


def test_a_step_is_the_next_one():
    check_step(None, 3)
    check_step(4, 3)
    with pytest.raises(InvalidTypeError, match="^step must be an integer, found float"):
        check_step(4.0, 3)
    for step, told in ((5, "must be 4: the steps"), (3, "must be 4: that step has been sent")):
        with pytest.raises(StreamError, match=told):
            check_step(step, 3)


def test_who_is_refused_further_up_is_refused_again():
    """It would be charged, and never fed."""
    upstream = Stream(many=False)
    first = Feed()
    assert upstream.subscribe(first) is upstream
    inner = Stream(many=True, upstream=upstream)
    for _ in range(2):
        with pytest.raises(InvalidTypeError, match="one stream feeds one"):
            inner.subscribe(Feed())
        assert not inner.subscribed
        assert inner.live == []


def test_a_stream_is_known_by_its_domain():
    assert is_stream(oc.integer_stream(0, 1))
    assert not is_stream(SPACE[0])


def in_a_fork(*queries):
    """Names of what each query raises in a forked process, or its answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for query in queries:
            try:
                said.append(f"answered {query()}")
            except BaseException as error:
                said.append(type(error).__name__)
        os.write(writing, "\n".join(said).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as stream:
        return stream.read().split("\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_that_it_has_not():
    """A thread that asks holds a lock at the fork; in the forked process nobody lets it go."""
    started, go_on = threading.Event(), threading.Event()

    def slow(rows):
        started.set()
        go_on.wait(60)
        return len(rows)

    root = opened(5.0)
    native = root(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5]))
    search = root(oc.m.make_above_threshold(*SPACE, PURE, 1, scale=4.0, threshold=1e6))
    for child, query in ((native, costing(0.25, slow)), (search, slow)):
        started.clear(), go_on.clear()
        thread = threading.Thread(target=child, args=(query,))
        thread.start()
        assert started.wait(60)
        try:
            assert in_a_fork(lambda child=child, it=query: child(it)) == ["ForkedError"]
        finally:
            go_on.set()
            thread.join()
