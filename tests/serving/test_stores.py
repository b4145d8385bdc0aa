"""One answer and one charge for a key, whatever fails in between, and handles of clients."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyReusedError,
    LedgerError,
    RefusalError,
    charged,
    tell_charged,
)
from opendp_concurrent.serving import AnswerStore, HandleStore
from opendp_concurrent.serving.stores import _Write


class Budget:
    """What a ledger would know."""

    def __init__(self):
        self.charges, self.asked = [], 0

    def launch(self, answer=7):
        self.charges.append(answer)
        return {"answer": answer}

    def charged(self):
        self.asked += 1
        return bool(self.charges)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.db"


def once(answers, budget, key="alice/1", request="count", run=None):
    return answers.once(
        key, request, run or budget.launch, charged=budget.charged, lost={"lost": True}
    )


def test_a_key_is_launched_once_also_after_a_restart(path):
    budget = Budget()
    with AnswerStore(path) as answers:
        assert once(answers, budget) == once(answers, budget) == {"answer": 7}
        assert once(answers, budget, "alice/2") == {"answer": 7}
    with AnswerStore(path) as answers:
        assert once(answers, budget) == {"answer": 7}
        with pytest.raises(KeyReusedError, match="another request"):
            once(answers, budget, request="sum")
    assert (len(budget.charges), budget.asked) == (2, 0)


def test_requests_at_once_share_one_launch(path):
    budget, started = Budget(), threading.Barrier(8)

    def slow():
        time.sleep(0.05)
        return budget.launch()

    def ask(index):
        started.wait()
        return once(answers, budget, f"alice/{index % 2}", run=slow)

    with AnswerStore(path) as answers, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [{"answer": 7}] * 8
    assert len(budget.charges) == 2


@pytest.mark.parametrize("error", [ValueError, LedgerError, KeyboardInterrupt])
def test_a_request_that_failed_before_the_charge_is_made_again(path, error):
    budget = Budget()

    def fail():
        raise error("no")

    with AnswerStore(path) as answers:
        with pytest.raises(error):
            once(answers, budget, run=fail)
        if error is ValueError:  # nothing is left, not even of the request
            assert once(answers, budget, request="sum") == {"answer": 7}
        else:
            assert once(answers, budget) == {"answer": 7}
    assert len(budget.charges) == 1


@pytest.mark.parametrize("error", [ValueError, LedgerError, KeyboardInterrupt])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_request_that_failed_after_the_charge_is_lost_and_not_made_again(path, error, restarted):
    budget = Budget()

    def fail():
        budget.launch()
        raise error("too late")

    answers = AnswerStore(path)
    with pytest.raises(error):
        once(answers, budget, run=fail)
    if restarted:
        answers.close()
        answers = AnswerStore(path)
    assert once(answers, budget) == once(answers, budget) == {"lost": True}
    answers.close()
    assert len(budget.charges) == 1


def test_an_answer_that_json_cannot_write_is_lost(path):
    budget = Budget()
    with AnswerStore(path) as answers:
        with pytest.raises(InvalidTypeError, match="what run returns must be a JSON value"):
            once(answers, budget, run=lambda: budget.launch(object()))
        assert once(answers, budget) == {"lost": True}
        with pytest.raises(InvalidTypeError, match="what run returns must be a JSON value"):
            answers.once("b", 1, object, charged=lambda: False, lost=0)  # nothing is left of it
        assert answers.once("b", 2, lambda: 3, charged=lambda: False, lost=0) == 3


def test_one_process_has_it_open(path, tmp_path):
    with AnswerStore(path), pytest.raises(LedgerError, match="no other process has open"):
        AnswerStore(path)
    AnswerStore(path).close()
    for bad in (tmp_path, tmp_path / "none" / "a.db", 7.5, b"a.db", "", ":memory:"):
        with pytest.raises(LedgerError, match="cannot be opened|in memory"):
            AnswerStore(bad)


KILLED = """
import sys, time
from opendp_concurrent.serving import AnswerStore
answers = AnswerStore(sys.argv[1])
answers.once("a", 1, lambda: 5, charged=lambda: True, lost=0)
def run():
    print("runs", flush=True)
    time.sleep(60)
answers.once("b", 1, run, charged=lambda: True, lost=0)
"""


def test_a_killed_process_leaves_its_answers_and_what_ran_is_lost(path):
    command = [sys.executable, "-c", KILLED, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"runs\n"
    with pytest.raises(LedgerError, match="no other process has open"):
        AnswerStore(path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with AnswerStore(path) as answers:
        found = [
            answers.once(key, 1, lambda: 6, charged=lambda known=known: known, lost="lost")
            for key, known in (("a", True), ("b", True), ("c", False))
        ]
        assert found == [5, "lost", 6]


@pytest.mark.parametrize("inner", ["alice/1", "alice/2"])
def test_a_request_cannot_wait_for_itself(path, inner):
    budget = Budget()
    with AnswerStore(path) as answers:
        with pytest.raises(InvalidValueError, match="run and charged must not call once"):
            once(answers, budget, run=lambda: once(answers, budget, inner))
        assert once(answers, budget) == {"answer": 7}
    assert len(budget.charges) == 1


FORKED = """
import gc, os, sys
from opendp_concurrent.errors import LedgerError
from opendp_concurrent.serving import AnswerStore
answers = AnswerStore(sys.argv[1])
def once(key):
    return answers.once(key, 1, os.getpid, charged=lambda: False, lost=0)
once("a")
child = os.fork()
if not child:
    try:
        once("b")
    except LedgerError as error:
        assert "forked" in str(error)
        answers.close()
        del answers
        gc.collect()
        sys.exit(7)  # Python ends as usual: all that it has is freed
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert once("b") == os.getpid()
os._exit(0)  # as if it were killed
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_launches_nothing_and_leaves_the_file_alone(path):
    subprocess.run([sys.executable, "-c", FORKED, str(path)], check=True)
    budget = Budget()
    with AnswerStore(path) as answers:
        found = [once(answers, budget, key, request=1) for key in ("a", "b")]
    assert all(isinstance(one, int) for one in found)
    assert budget.charges == []


@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_nothing_is_launched_if_a_file_was_removed_or_replaced(path, end, how):
    budget, file = Budget(), path.with_name(path.name + end)
    with AnswerStore(path) as answers:
        once(answers, budget)
        kept = file.with_name("kept")
        file.rename(kept)
        if how == "replaced":
            shutil.copy(kept, file)
        with pytest.raises(LedgerError, match="nothing was launched"):
            once(answers, budget, "alice/2")
        assert once(answers, budget) == {"answer": 7}
        kept.replace(file)
        assert once(answers, budget, "alice/2") == {"answer": 7}
    assert len(budget.charges) == 2


@pytest.mark.parametrize("table", ["charges (name)", "answers (name)"])
def test_a_database_of_another_program_is_left_alone(path, table):
    with sqlite3.connect(path) as other:
        other.execute(f"CREATE TABLE {table}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"another program|no such column"):
        AnswerStore(path)
    if table.startswith("charges"):
        assert path.read_bytes() == before


def test_keys_that_look_alike_are_different_keys(path):
    keys = ["", "a", "a\0", "a\0b", "A", " a", "\u00e9", "e\u0301", "1", "01", "1.0", "k" * 10**6]
    with AnswerStore(path) as answers:
        for _ in range(2):
            for index, key in enumerate(keys):
                assert once(answers, Budget(), key, run=lambda index=index: index) == index


@pytest.mark.parametrize("error", [RefusalError, ValueError, LedgerError])
@pytest.mark.parametrize("known", [True, False, None])
def test_the_ledger_is_read_only_if_the_error_does_not_know(path, error, known):
    budget = Budget()
    if known:
        budget.launch()
    failed = error("no")
    tell_charged(failed, known)
    if known is None and error is RefusalError:
        failed.charged = None

    def fail():
        raise failed

    with AnswerStore(path) as answers:
        with pytest.raises(error):
            once(answers, budget, run=fail)
        assert budget.asked == (known is None and error is not LedgerError)
        found = once(answers, budget, request="count")
        assert found == ({"lost": True} if known else {"answer": 7})
        kept = known is True or (known is None and error is LedgerError)
        assert budget.asked == kept + (known is None and error is not LedgerError)
    assert len(budget.charges) == 1


def test_errors_of_the_store_say_what_is_known(path):
    answers, budget = AnswerStore(path), Budget()
    (full,) = answers._run("PRAGMA page_count")[0]
    answers._run(f"PRAGMA max_page_count={full}")
    for key, run, known in (
        ("k" * 100_000, budget.launch, False),
        ("a", lambda: budget.launch("a" * 100_000), None),
    ):
        with pytest.raises(LedgerError, match="full") as found:
            once(answers, budget, key, run=run)
        assert charged(found.value) is known
    with pytest.raises(KeyReusedError) as found:
        once(answers, budget, "a", request="sum")
    assert charged(found.value) is False
    path.rename(path.with_name("kept"))
    with pytest.raises(LedgerError, match="nothing was launched") as found:
        once(answers, budget, "b")
    assert charged(found.value) is False
    answers.close()


def together(answers, *statements):
    """What each statement raised, if all of them wait for the same transaction."""
    ran = []
    answers._connection.set_trace_callback(ran.append)

    def write(statement):
        try:
            answers._write(*statement)
        except LedgerError as error:
            return error

    with ThreadPoolExecutor(len(statements)) as pool:
        with answers._lock:
            found = []
            for number, statement in enumerate(statements, 1):
                found.append(pool.submit(write, statement))
                while len(answers._waiting) < number:
                    time.sleep(0.001)
        errors = [one.result() for one in found]
    return errors, ran


INSERT = "INSERT INTO answers (name, digest) VALUES (?, ?)"


def test_statements_that_wait_share_a_transaction(path):
    with AnswerStore(path) as answers:
        errors, ran = together(answers, *[(INSERT, f"k{n}", "") for n in range(16)])
        assert errors == [None] * 16
        assert ran.count("COMMIT") == 1
        assert len(answers._run("SELECT name FROM answers")) == 16


def test_a_statement_that_fails_fails_alone(path):
    with AnswerStore(path) as answers:
        surrogate = (INSERT, "k1", "\ud800")  # which SQLite cannot write
        good = [(INSERT, name, "") for name in ("a", "a", "b")]
        errors, _ = together(answers, *good, surrogate)
        assert [error is None for error in errors] == [True, False, True, False]
        assert "UNIQUE" in str(errors[1])
        assert "surrogates" in str(errors[3])
        errors, _ = together(answers, (INSERT, "c", ""), surrogate)
        assert (errors[0], "surrogates" in str(errors[1])) == (None, True)
        assert not answers._connection.in_transaction
        assert [name for (name,) in answers._run("SELECT name FROM answers")] == list("abc")


def test_an_interrupt_of_one_thread_tells_all_who_wait_that_nothing_is_known(path):
    class Interrupted:
        def __init__(self, connection):
            self._connection = connection

        def execute(self, statement, values=()):
            if statement == "COMMIT":
                raise SystemExit
            return self._connection.execute(statement, values)

    with AnswerStore(path) as answers:
        connection = answers._connection
        answers._connection, other = Interrupted(connection), _Write(INSERT, ("b", ""))
        answers._waiting.append(other)
        with pytest.raises(SystemExit):
            answers._write(INSERT, "a", "")
        answers._connection = connection
        assert other.done
        assert other.error is not None
        assert not connection.in_transaction
        assert answers._run("SELECT name FROM answers") == []


def test_a_closed_store_says_so(path):
    answers = AnswerStore(path)
    answers.close()
    with pytest.raises(LedgerError, match="answers"):
        answers._run("SELECT 1")


# --- handles --------------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch):
    """The time, which a test sets."""
    found = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: found[0])
    return found


def test_a_client_finds_and_drops_its_own_handles_only():
    handles, one = HandleStore(), object()
    name = handles.keep("alice", one)
    assert handles.find("alice", name) is one
    assert handles.find("bob", name) is handles.find("alice", name + "a") is None
    assert (handles.drop("bob", name), handles.drop("alice", "none")) == (False, False)
    assert handles.find("alice", name) is one
    assert (handles.drop("alice", name), handles.drop("alice", name)) == (True, False)
    assert handles.find("alice", name) is None


def test_what_is_used_stays_and_the_rest_expires(now):
    handles = HandleStore(seconds=60.0)
    used, left = handles.keep("alice", 1), handles.keep("alice", 2)
    now[0] += 59.0
    assert handles.find("alice", used) == 1
    now[0] += 2.0
    assert (handles.find("alice", used), handles.find("alice", left)) == (1, None)
    now[0] += 61.0
    assert not handles.drop("alice", used)
    assert handles._kept == {}


def test_each_client_has_room_for_so_many(now):
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
def test_what_expires_is_freed_after_the_lock(now, call):
    """Freeing a handle may run code: it must not wait for the store, nor must others for it."""
    free, handles = [], HandleStore(seconds=60.0)

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
