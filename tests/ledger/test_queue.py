"""Threads that wait for a turn of a ledger share it."""

import contextlib
import os
import signal
import sqlite3
import threading
import time
from random import Random

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerError, LimitMismatchError, charged
from opendp_concurrent.ledger.store import Store
from opendp_concurrent.queryables.session import MeasurementPrice

from ..build import a_limit, an_odometer
from .conftest import count, limit


def queue_of(root):
    return root._session.account.store._book._queue


class Waiting:
    """Threads that launch while nobody may lead; then all of them share the next turn.

    :ivar outcomes: by the number of a thread: what it returned or raised
    """

    def __init__(self, root, launches):
        self._queue, self._launches = queue_of(root), launches
        self.outcomes, self._threads = {}, []

    def __enter__(self):
        self._queue._leading.acquire()
        self._before = len(self._queue._waiting)
        for number, launch in enumerate(self._launches):
            thread = threading.Thread(target=self._run, args=(number, launch), daemon=True)
            thread.start()
            self._threads.append(thread)
            self.wait_for(number + 1)
        return self

    def wait_for(self, length):
        until = time.monotonic() + 20.0
        while len(self._queue._waiting) - self._before < length:
            assert time.monotonic() < until
            time.sleep(0.001)

    def go(self):
        if self._queue._leading.locked():
            self._queue._leading.release()
            self._queue._wake_next()

    def __exit__(self, *error):
        self.go()
        for thread in self._threads:
            thread.join(30.0)
            assert not thread.is_alive()

    def _run(self, number, launch):
        try:
            self.outcomes[number] = launch()
        except BaseException as error:
            self.outcomes[number] = error

    def kinds(self):
        return [type(self.outcomes[number]).__name__ for number in sorted(self.outcomes)]


@pytest.fixture
def commits(monkeypatch):
    """How many rows each commit has written."""
    found, finish = [], Store.finish

    def counted(self, driver, changes):
        found.append(len(changes) - 1)
        finish(self, driver, changes)

    monkeypatch.setattr(Store, "finish", counted)
    return found


def test_threads_that_wait_share_a_commit_in_the_order_in_which_they_came(store, commits):
    root, query, seen = limit(store.create(), 8.0), count(), []

    def launch(number):
        def run():
            with oc.labelled(f"thread {number}"):
                seen.append(root(query))

        return run

    with Waiting(root, [launch(number) for number in range(8)]):
        pass
    assert (len(seen), commits) == (8, [8])
    entries = store.open().entries()
    assert [entry.label for entry in entries] == [f"thread {number}" for number in range(8)]
    assert root.privacy_loss() == entries[-1].loss == 2.0


def test_a_refusal_touches_no_other(store, commits):
    root, query = limit(store.create(), 1.0), count()
    ada = root(a_limit(0.25, "ada"))
    wrong = limit(store.open(), 1.0)(a_limit(0.5, "ada"))
    launches = [
        lambda: ada(query),
        lambda: ada(query),  # the limit refuses
        lambda: root(query),
        lambda: root(count(2.0)),  # the cap refuses
        lambda: root(count(0.25)),
        lambda: root(count(0.5)),  # the cap refuses what is left after the others
        lambda: root(query),
    ]
    with Waiting(root, launches) as waiting:
        pass
    refused = "BudgetExceededError"
    assert waiting.kinds() == ["int", refused, "int", refused, "int", refused, "int"]
    assert [charged(waiting.outcomes[number]) for number in (1, 3, 5)] == [False] * 3
    assert (waiting.outcomes[5].spent, waiting.outcomes[5].remaining) == (0.75, 0.25)
    assert commits == [4]
    assert (root.remaining(), ada.remaining()) == (0.0, 0.0)
    with pytest.raises(LimitMismatchError):
        wrong(count(2.0**-20))


@pytest.mark.parametrize("when", ["begin", "before", "after"])
def test_each_launch_that_waits_says_by_itself_whether_it_is_charged(store, monkeypatch, when):
    root, query = limit(store.create(), 1.0), count()
    failing = LedgerError("the connection failed")
    finish = Store.finish

    def cut(self, driver, changes):
        if when == "after":
            finish(self, driver, changes)
            failing.charged = None
        else:
            self.undo(driver, failing)
        raise failing

    def not_begun(self, values, *statements):
        raise failing

    launches = [lambda: root(count(2.0)), lambda: root(query), lambda: root(query)]
    launches.append(lambda: root(count(0.75)))  # refused after what is not durable
    with monkeypatch.context() as patch:
        if when == "begin":
            patch.setattr(Store, "_begin", not_begun)
        else:
            patch.setattr(Store, "finish", cut)
        with Waiting(root, launches) as waiting:
            pass
    known = None if when == "after" else False
    first = "LedgerError" if when == "begin" else "BudgetExceededError"
    assert waiting.kinds() == [first, "LedgerError", "LedgerError", "LedgerError"]
    found = [charged(waiting.outcomes[number]) for number in range(4)]
    assert found == [False, known, known, False]
    assert len({id(error) for error in waiting.outcomes.values()}) == 4
    assert store.charges() == (2 if when == "after" else 0)
    monkeypatch.undo()
    assert root.privacy_loss() == (0.5 if when == "after" else 0.0)
    root(query)


@contextlib.contextmanager
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_when(condition):
    def send():
        until = time.monotonic() + 20.0
        while not condition() and time.monotonic() < until:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def test_a_launch_that_is_interrupted_while_it_waits_leaves_and_the_others_are_served(store):
    root, query = limit(store.create(), 8.0), count()
    with default_handler(), Waiting(root, [lambda: root(query)] * 3) as waiting:
        interrupt_when(lambda: len(queue_of(root)._waiting) == 4)
        with pytest.raises(KeyboardInterrupt) as interrupted:
            root(query)
        assert charged(interrupted.value) is False
    assert len(waiting.outcomes) == store.charges() == 3
    assert root.privacy_loss() == 0.75


def test_an_interrupt_during_the_turn_of_others_comes_when_it_has_ended(store, monkeypatch):
    root, query, finish = limit(store.create(), 8.0), count(), Store.finish
    began, go_on = threading.Event(), threading.Event()

    def slow(self, driver, changes):
        began.set()
        go_on.wait(20.0)
        finish(self, driver, changes)

    monkeypatch.setattr(Store, "finish", slow)

    def go():
        waiting.wait_for(4)
        waiting.go()
        began.wait(20.0)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        go_on.set()

    with default_handler(), Waiting(root, [lambda: root(query)] * 3) as waiting:
        threading.Thread(target=go, daemon=True).start()
        with pytest.raises(KeyboardInterrupt) as interrupted:
            root(query)
        assert charged(interrupted.value) is True
    assert store.charges() == 4
    assert root.privacy_loss() == 1.0


def test_who_leads_may_be_interrupted_while_the_turn_cannot_begin(sqlite):
    root, query = limit(sqlite.create(), 8.0), count()
    root(query)
    other = sqlite3.connect(sqlite.address, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    outcomes = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(root(query)), daemon=True) for _ in range(3)
    ]

    def others():
        for thread in threads:
            thread.start()
        while len(queue_of(root)._waiting) < 4:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    with default_handler():
        starter = threading.Timer(0.05, others)
        starter.start()
        with pytest.raises(KeyboardInterrupt) as interrupted:
            root(query)
    assert charged(interrupted.value) is False
    assert not outcomes
    other.execute("ROLLBACK")
    other.close()
    for thread in threads:
        thread.join(20.0)
    assert len(outcomes) == 3
    assert sqlite.charges() == 4


@pytest.mark.slow
def test_interrupts_at_any_moment_leave_no_thread_waiting_though_they_are_kept(store):
    """300 interrupts of the main thread, which launches beside four others."""
    root, query = limit(store.create(), 2.0**20), count(2.0**-10)
    answers, ended, kept, random = [], threading.Event(), [], Random(33)

    def others():
        while not ended.is_set():
            answers.append(root(query))

    threads = [threading.Thread(target=others, daemon=True) for _ in range(4)]
    with default_handler():
        for thread in threads:
            thread.start()
        for _ in range(300):
            timer = threading.Timer(random.uniform(0, 0.01), os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                while True:
                    answers.append(root(query))
            except KeyboardInterrupt as error:
                kept.append(error)
        before = len(answers)
        while len(answers) < before + 100:
            time.sleep(0.01)
        ended.set()
        for thread in threads:
            thread.join(20.0)
            assert not thread.is_alive()
    charges = store.charges()
    assert len(answers) <= charges <= len(answers) + 300
    assert store.open().summary().launches == charges


def test_trees_of_one_filter_are_charged_under_one_lock(tmp_path, monkeypatch):
    """Whoever leads charges the accounts of another tree: nobody reads these in between."""
    with oc.ledger.create_ledger(tmp_path / "budget.db", dataset="survey") as ledger:
        odometer = an_odometer()
        made = oc.make_concurrent_filter(odometer, 1, 10.0, ledger=ledger)
        one, child = made([1]), made([2])(odometer)
        settled, begun = MeasurementPrice.settled, threading.Event()

        def slowly(self):  # the root is charged, and the child is not yet
            begun.set()
            time.sleep(0.2)
            return settled(self)

        monkeypatch.setattr(MeasurementPrice, "settled", slowly)
        with Waiting(one, [lambda: one(count()), lambda: child(count())]) as waiting:
            waiting.go()
            assert begun.wait(20.0)
            child.privacy_loss(1)
        assert child.privacy_loss(1) == 0.25
        assert ledger.summary().spent == 0.5
