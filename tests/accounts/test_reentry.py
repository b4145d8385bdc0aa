"""A finalizer that runs in the middle of a charge is refused, and stops nothing."""

from threading import Thread

import pytest

from opendp_concurrent.accounts.reentry import check_not_held
from opendp_concurrent.errors import ReentrantLaunchError
from opendp_concurrent.interrupts import Lock

from ..forks import run_program

PREPARED = """
import gc
import opendp.prelude as dp
import opendp_concurrent as oc
from opendp_concurrent.accounts.account import Account, Trial
from opendp_concurrent.accounts.history import History

dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
count = space >> dp.t.then_count() >> dp.m.then_laplace(4.0)
odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
seen = []


class Trap:
    def __init__(self, action):
        self.cycle, self.action = self, action

    def __del__(self):
        try:
            seen.append(self.action())
        except Exception as error:
            seen.append(type(error).__name__)


def in_the_middle(name, action, owner=Account):
    right = getattr(owner, name)

    def trapped(*arguments):
        setattr(owner, name, right)
        Trap(action)
        gc.collect()
        return right(*arguments)

    setattr(owner, name, trapped)
"""

LAUNCH = """
root = oc.make_concurrent_filter(odometer, 1, 2.0)([1, 2, 3])
child = root(odometer)
for owner, name in ((Trial, "stands"), (Trial, "bind"), (History, "keep")):
    for handle in (root, child):
        in_the_middle(name, lambda: handle(count), owner)
        handle(count)
assert seen == ["ReentrantLaunchError"] * 6, seen
assert root.privacy_loss() == 1.5, root.privacy_loss()
"""

READING = """
root = odometer([1, 2, 3])
in_the_middle("bind", lambda: root.privacy_loss(2), Trial)
root(count)
assert seen == ["ReentrantLaunchError"], seen
other = odometer([1, 2, 3])
in_the_middle("keep", lambda: isinstance(other(count), int), History)
root(count)
assert seen[1:] == [True], seen  # another tree of accounts is free
assert (root.privacy_loss(1), other.privacy_loss(1)) == (0.5, 0.25)
"""

UNLOCKED = """
root = odometer([1, 2, 3])
in_the_middle("_plan", lambda: isinstance(root(count), int))
root(count)
assert seen == [True], seen  # outside of the lock, it is a launch as any other
assert root.privacy_loss(1) == 0.5
"""


def test_a_finalizer_is_refused_and_every_charge_counts_once():
    """Before, the first of these waited for its own thread for ever."""
    script = PREPARED + "seen.clear()\n".join([LAUNCH, READING, UNLOCKED])
    run = run_program(script)
    assert run.returncode == 0, run.stderr


def test_only_the_thread_that_holds_a_lock_is_refused():
    lock, passed = Lock(), []
    check_not_held(lock)
    with lock:
        with pytest.raises(ReentrantLaunchError, match="finalizer"):
            check_not_held(lock)
        other = Thread(target=lambda: passed.append(check_not_held(lock)))
        other.start()
        other.join()
    assert passed == [None]
