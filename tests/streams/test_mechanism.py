"""Updates and queries: what halts, what is refused, what is hidden, what threads do."""

import threading

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamError, StreamHaltedError

from ..build import PURE, in_threads

SPACE = oc.integer_stream(0, 1), oc.event_presence()
KINDS = [{"horizon": 50}, {}]


def counter(**options):
    return oc.m.make_counter(*SPACE, PURE, 1e-3, **options)([])


INVALID = {
    "too large": 2,
    "huge": 2**80,
    "float": 1.0,
    "nan": float("nan"),
    "object": object(),
    "wide": np.uint64(2**64 - 1),
}


@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_an_invalid_item_halts_for_good(name, options):
    for send in (
        lambda handle: handle.update(INVALID[name]),
        lambda handle: handle.update_all([1, INVALID[name], 0]),
        lambda handle: handle.update_all([None, INVALID[name]]),
        lambda handle: handle(oc.handles.Update(INVALID[name])),
    ):
        handle = counter(**options)
        handle.update(1)
        for message in (send, lambda h: h.update(1), lambda h: h(None), lambda h: h.update_all([])):
            with pytest.raises(StreamHaltedError):
                message(handle)


ARRAYS = {
    "unsigned that would wrap": np.array([1, 2**64 - 1], dtype=np.uint64),
    "unsigned that is 2^63": np.array([2**63], dtype=np.uint64),
    "negative bytes": np.array([-1], dtype=np.int8),
    "doubles": np.array([1.0, 0.0]),
    "rows": np.ones((2, 2), dtype=int),
    "objects": np.array([1, "1"], dtype=object),
    "times": np.array(["2020-01-01"], dtype="datetime64[D]"),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_an_invalid_array_halts_for_good(name, options):
    handle = counter(**options)
    with pytest.raises(StreamHaltedError):
        handle.update_all(ARRAYS[name])
    with pytest.raises(StreamHaltedError):
        handle(None)


@pytest.mark.parametrize(
    ("items", "total"),
    [
        ([], 0),
        ((1, 0, None), 1),
        (np.array([True, False, True]), 2),
        (np.array([1, 1], dtype=np.uint64), 2),
        (np.array([], dtype=np.float64), 0),
        (np.array([1, None, 1], dtype=object), 2),
        ([np.uint64(1), 1, np.int8(1)], 3),
        (range(2), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_batches_of_all_kinds(items, total, options):
    handle = counter(**options)
    handle.update_all(items)
    assert handle(None) == total
    handle.update(1)
    assert handle(None) == total + 1


def test_the_horizon():
    handle = counter(horizon=50)
    handle.update_all([1] * 48)
    with pytest.raises(StreamError, match=r"horizon \(50 steps\)"):
        handle.update_all([1] * 3)
    assert handle(None) == 48
    with pytest.raises(StreamError):
        handle.update_all([None] * 3)
    handle.update_all([1] * 2)
    for item in (1, None, 7):
        with pytest.raises(StreamError):
            handle.update(item)
    handle.update_all([])
    assert handle(None) == 50


# --- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"horizon": 4000}, {}], ids=str)
def test_eight_threads_update_and_ask(options):
    handle = counter(**options)

    def work(number):
        for turn in range(60):
            if turn % 3:
                handle.update(1)
            else:
                handle.update_all([1] * 5)
            assert 0 < handle(None) <= 8 * (40 + 100)

    in_threads(work, range(8))
    assert handle(None) == 8 * (40 + 100)


def test_of_eight_threads_one_has_the_step():
    handle, taken = counter(), []

    def work(number):
        for step in range(1, 41):
            try:
                handle.update(1, step)
            except StreamError:
                continue
            taken.append(step)

    in_threads(work, range(8))
    assert sorted(taken) == sorted(set(taken)) == list(range(1, len(taken) + 1))
    assert handle(None) == len(taken) >= 1


# --- launches and updates of one stream waited for each other for ever, and updates came twice ---


class Steps:
    """Tells how many steps have come to it, and does something at each."""

    def __init__(self, at_step=lambda step: None):
        self.steps, self.at_step = 0, at_step

    def update(self, item):
        self.steps += 1
        self.at_step(self.steps)

    def update_all(self, items):
        for item in items:
            self.update(item)

    def ask(self, query):
        return self.steps


def steps(at_step=lambda step: None):
    return oc.m.make_continual(*SPACE, PURE, lambda: Steps(at_step), lambda d_in: 1.0 * d_in)


def test_a_launch_on_a_native_child_and_an_update_do_not_wait_for_each_other(make_stream):
    """An update that is at the first mechanism waits until the launch has taken the lock."""
    stream, updating, launching = make_stream(SPACE)([]), threading.Event(), threading.Event()

    def start():
        launching.set()  # below the native child, whose lock is held
        assert updating.wait(20)
        return Steps()

    late = oc.m.make_continual(*SPACE, PURE, start, lambda d_in: 1.0 * d_in)
    first = stream(steps(lambda step: updating.set()))
    native = stream(dp.c.make_adaptive_composition(*SPACE, PURE, d_in=1, d_mids=[1.0] * 3))
    early = native(steps())  # takes turns with `native`

    def update():
        launching.wait(20)
        stream.update(1)

    both = [threading.Thread(target=update, daemon=True)]
    both.append(threading.Thread(target=native, args=(late,), daemon=True))
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(30)
    assert not any(thread.is_alive() for thread in both)
    assert [first(None), early(None)] == [1, 1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_was_cut_off_is_not_taken_again(error):
    """The first mechanism has the item, the second was stopped; so its step is over."""
    stop = [True]

    def fail(step):
        if stop and stop.pop():
            raise error

    both = oc.c.make_indexed_composition(*SPACE, PURE, 1, [steps(), steps(fail)])([])
    with pytest.raises(error):
        both.update(1, step=1)
    with pytest.raises(StreamError, match="must be 2"):
        both.update(1, step=1)
    assert both((0, None)) == 1
