"""Launches and updates of one stream waited for each other for ever, and updates came twice."""

import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamError

dp.enable_features("contrib", "honest-but-curious")

PURE = dp.max_divergence()
SPACE = oc.integer_stream(0, 1), oc.event_presence()


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


def stream_of_many():
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    return oc.c.make_concurrent_continual(oc.make_concurrent_filter(odometer, 1, 1e9))([])


def test_a_launch_on_a_native_child_and_an_update_do_not_wait_for_each_other():
    """An update that is at the first mechanism waits until the launch has taken the lock."""
    stream, updating, launching = stream_of_many(), threading.Event(), threading.Event()

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
