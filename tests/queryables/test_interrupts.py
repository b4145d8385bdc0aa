"""0.1.0 kept locks and marks after an interrupt at a bad moment, and charged half of a tree."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.lifecycle import innermost_running
from opendp_concurrent.queryables.data import HELD

from ..build import APPROXIMATE_ZCDP, PURE, SPACE, a_filter, an_odometer, laplace
from ..moments import interrupted_at
from ..some import slow

# Python drops what is raised while an object is destroyed
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
STORM = Path(__file__).parents[1] / "storm.py"


def in_another_thread(function, *arguments):
    """Call ``function`` where nobody holds a lock; raise what it raises, or if it waits."""
    found = []

    def work():
        try:
            found.append(function(*arguments))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive(), "it waits for a lock"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def tree(bounded):
    odometer = an_odometer()
    root = (a_filter(1e9) if bounded else odometer)([1, 2])
    child = root(odometer)
    return [root, child, child(odometer)]


@pytest.mark.parametrize(
    ("bounded", "step"), [(False, 3), (True, 3), *slow([(False, 1), (True, 1)])]
)
def test_a_launch_is_charged_at_every_account_or_none_whenever_it_is_interrupted(bounded, step):
    query = laplace()
    moment, came = 0, True
    while came:
        moment += step
        handles = tree(bounded)
        for handle in handles:
            handle.privacy_loss(1)
        came = interrupted_at(moment, handles[-1], query)
        losses = [in_another_thread(handle.privacy_loss, 1) for handle in handles]
        launches = [handle._session.account.launches for handle in handles]
        assert losses in ([0.0] * 3, [0.25] * 3), moment
        assert launches == [int(4 * losses[0])] * 3, moment
        in_another_thread(handles[-1], query)
        handles[1](query)
        assert [handle.privacy_loss(1) - losses[0] for handle in handles] == [0.5, 0.5, 0.25]
        assert innermost_running() is None
        assert HELD.get() is None
    assert moment > 50


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("in_python", [False, True])
def test_an_interrupt_says_whether_the_launch_is_charged(below, in_python):
    """It does not know in the first moments, before the launch is a critical section."""
    query = laplace()
    if in_python:
        query = dp.m.make_user_measurement(*SPACE, PURE, len, lambda d_in: 0.25 * d_in)
    composition = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25] * 3)
    native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.75] * 2)
    told, kept = [], []
    for moment in range(1, 2000, 5):
        handle = native([1])(composition) if below else composition([1])
        if not interrupted_at(moment, handle, query, kept=kept):
            break
        told.append((oc.errors.charged(kept.pop()), handle.privacy_loss(1) > 0))
    known = [one for one in told if one[0] is not None]
    assert (True, True) in known
    assert set(known) <= {(True, True), (False, False)}
    assert len(told) - len(known) < 5


def test_the_next_launch_closes_what_an_interrupted_one_left_open():
    pair = dp.c.make_adaptive_composition(
        *SPACE, APPROXIMATE_ZCDP, d_in=1, d_mids=[(0.25, 1e-9)] * 2
    )
    query = dp.m.make_user_measurement(*SPACE, APPROXIMATE_ZCDP, len, lambda d_in: (0.25, 0.0))
    odometer = oc.make_concurrent_odometer(*SPACE, APPROXIMATE_ZCDP)
    moment, came = 0, True
    while came:
        moment += 7
        root = odometer([1, 2])
        child = root(pair)
        came = interrupted_at(moment, root, query)
        root(query)
        with pytest.raises(oc.errors.ClosedChildError):
            child(query)
        in_another_thread(root, query)
    assert moment > 50


def test_a_machine_answers_or_is_closed_whenever_it_is_interrupted():
    """Interrupts are let in while a user's query runs, and in no other part of the machine."""
    sparse = oc.m.make_sparse_vector(*SPACE, PURE, 1, 2.0, 50, 3)
    moment, came, closed = 0, True, 0
    while came:
        moment += 1
        handle = sparse([1] * 100)
        came = interrupted_at(moment, handle, len)
        try:
            in_another_thread(handle, len)
            handle(len)
        except oc.errors.InterruptedHandleError:
            closed += 1
            with pytest.raises(oc.errors.InterruptedHandleError):
                handle(len)
    assert closed
    assert moment > closed + 10


def test_a_refusal_under_the_lock_releases_it():
    limit = oc.make_concurrent_filter(oc.make_concurrent_odometer(*SPACE, PURE), 1, 0.25)([1])
    moment, came = 0, True
    while came:
        moment += 1

        def refused():
            with pytest.raises(oc.errors.BudgetExceededError):
                limit(laplace(2.0))

        came = interrupted_at(moment, refused)
        assert in_another_thread(limit.privacy_loss) == 0.0
    limit(laplace())


ON_LEDGER = ("single", "limits", "limits on blocks", "answers")


def storm(kinds, count):
    """Interrupt each kind ``count`` times, in a process of its own; none may die or stick.

    Without kinds, each that is on no ledger.
    """
    command = [sys.executable, str(STORM), "--count", str(count), "--seed", "19", *kinds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280 + 15 * count)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == (len(kinds) or 11)
    assert {failure for _, _, failure in found} == {None}, found
    assert all(interrupts >= count for _, interrupts, _ in found)


def test_interrupts_at_random_moments_on_each_kind_of_handle():
    storm([], 8)


def test_interrupts_at_random_moments_on_each_kind_of_ledger(tmp_path):
    storm([f"{kind}={tmp_path}/{kind}.db" for kind in ON_LEDGER], 8)


@pytest.mark.slow
def test_thousands_of_interrupts_on_each_kind_of_handle():
    storm([], 3000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ON_LEDGER)
def test_thousands_of_interrupts_on_a_file(tmp_path, kind):
    storm([f"{kind}={tmp_path}/ledger.db"], 3000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ON_LEDGER)
def test_thousands_of_interrupts_on_a_server(server, kind):
    name = "interrupts_" + kind.replace(" ", "_")
    server.execute(f"CREATE DATABASE {name}")
    storm([f"{kind}={server.url.rpartition('/')[0]}/{name}"], 3000)
