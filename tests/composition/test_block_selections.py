"""Records that were selected before, which launches on the same blocks share."""

import gc
import os
import signal
import weakref
from threading import Barrier

import numpy as np
import pytest

from opendp_concurrent import _opendp as native
from opendp_concurrent.composition.block_keys import MOST
from opendp_concurrent.errors import BlockExceededError, ForkedError
from opendp_concurrent.queryables.data import _CONTENTS, unseal

from ..build import a_limit, an_odometer, by_tens, costing, in_threads


def spawn(data=(1, 11, 12, 21), d_out=100.0, **options):
    return by_tens(d_out, **options)(list(data))


def launch(function, loss=0.125):
    return costing(loss, function)


@pytest.fixture
def converted(monkeypatch):
    """How often records were converted."""
    calls, to_pointer = [], native.to_pointer

    def counting(data, carrier_type):
        calls.append(carrier_type)
        return to_pointer(data, carrier_type)

    monkeypatch.setattr(native, "to_pointer", counting)
    return calls


def test_launches_on_the_same_blocks_convert_the_records_once(converted):
    root = spawn()
    limit = root(a_limit(50.0))
    before = len(converted)
    assert root([1, 0], launch(sum)) == 24
    one = len(converted) - before
    for handle in (root, limit):
        assert handle([0, 1], launch(sum)) == handle(range(2), launch(sum)) == 24
        assert handle((1, 0, 1), launch(len)) == 3
    assert root(np.array([1, 0]), launch(sum)) == 24
    child = root([0, 1], an_odometer())
    assert child(launch(sum)) == 24
    assert len(converted) - before == one == 1
    assert root.privacy_loss(1) == 7.5 * 0.125 + 0.0625 + 0.125  # every launch is charged


def test_a_selection_that_failed_is_tried_again(monkeypatch):
    root = spawn()
    to_pointer = native.to_pointer

    def interrupted(data, carrier_type):
        if data == [11, 12]:
            raise KeyboardInterrupt
        return to_pointer(data, carrier_type)

    with monkeypatch.context() as patch:
        patch.setattr(native, "to_pointer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            root([1], launch(sum))
    assert root([1], launch(sum)) == 23
    assert root.privacy_loss(1) == 0.25


def test_threads_share_a_selection(converted):
    root, start, answers = spawn(list(range(40)) * 20), Barrier(8), []

    def work(number):
        start.wait()
        for _ in range(20):
            answers.append(root([1, 2], launch(len)))

    before = len(converted)
    in_threads(work, range(8))
    assert answers == [400] * 160
    assert root.privacy_loss(1) == 20.0
    assert len(converted) - before <= 8  # those that began before the first was kept


def test_what_is_kept_is_bounded_by_the_data():
    """All pairs of 12 blocks have 11 times as many records as the data."""
    root = spawn(list(range(120)) * 10, keys=range(12), d_out=1e4)
    kept = root._blocks.records._selections
    for one in range(12):
        for other in range(one):
            assert root([one, other], launch(len)) == 200
            held = sum(len(native.to_python(unseal(token))) for token, _ in kept._kept.values())
            assert 200 <= held <= 2400
            assert len(kept._kept) <= MOST
    assert root([11, 10], launch(len)) == 200
    assert list(kept._kept)[-1] == np.array([10, 11]).tobytes()  # the latest stay


def test_nothing_is_kept_when_the_handle_is_gone():
    gc.collect()
    before = len(_CONTENTS)
    root = spawn()
    root([1], launch(sum))
    with pytest.raises(BlockExceededError):
        root([2], launch(sum, 1e9))  # a selection that never ran
    kept = weakref.ref(root._blocks.records._selections)
    del root
    gc.collect()
    assert kept() is None
    assert len(_CONTENTS) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_selects_nothing_and_waits_for_no_thread_of_its_parent():
    root = spawn()
    root([1], launch(sum))
    read, write = os.pipe()
    with root._blocks.records._selections._lock:  # as another thread may, at the fork
        child = os.fork()
        if not child:
            found = b"launched"
            signal.alarm(20)
            try:
                root([1], launch(sum))
            except ForkedError:
                found = b"refused"
            finally:
                os.write(write, found)
                os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 100) == b"refused"
