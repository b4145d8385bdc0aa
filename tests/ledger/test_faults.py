"""What goes wrong with disks, servers, clocks and processes: no answer without a charge.

An error means that no mechanism ran. Whether the launch was charged is then what the ledger says;
it is charged at most once.
"""

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from opendp_concurrent.accounting.store import Charge
from opendp_concurrent.errors import ForkedError, LedgerDamagedError, LedgerError
from opendp_concurrent.ledger import backends, book, create_ledger, open_ledger
from opendp_concurrent.ledger import store as ledger_store
from opendp_concurrent.ledger.backends import explain

from ..forks import BEGIN
from .conftest import DATASET, Child, count, counted, launch_until_refused, limit

NOBODY = 65534
AGAIN = "nothing was charged, and no mechanism ran"
IN_FLIGHT = "the launch may be charged, and its mechanism did not run"


@pytest.fixture
def public():
    """A folder that everybody reaches."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


# --- files ---------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_a_file_that_may_not_be_written_can_be_read_and_charges_nothing(public):
    path, query = public / "budget.db", count()
    with create_ledger(path, "a") as ledger:
        limit(ledger)(query)
    os.chmod(path, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)

    def attempt():
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        with open_ledger(path, "a") as ledger:
            limit(ledger)(query)

    with pytest.raises(AssertionError, match="LedgerError.*cannot be (written|opened)") as raised:
        Child(attempt).result()
    assert str(path) in str(raised.value)
    assert AGAIN in str(raised.value)
    with open_ledger(path, "a") as ledger:
        assert ledger.summary().launches == 1


def test_a_full_disk_refuses_and_when_there_is_space_again_it_goes_on(public):
    folder = public / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted")
    try:
        query, ran = counted(2.0**-20)
        with create_ledger(folder / "budget.db", "a") as ledger:
            root = limit(ledger)
            with pytest.raises(LedgerError, match="the disk is full: free some space") as raised:
                launch_until_refused(root, query)
            before = len(ran)
            for _ in range(3):  # whatever fills the disk: a page, a frame, or a new block
                assert (raised.value.charged, AGAIN in str(raised.value)) == (False, True)
                assert ledger.summary().launches == before
                recovered = public / "recovered.db"  # as after a crash: without -shm
                for end in ("", "-wal"):
                    shutil.copyfile(folder / f"budget.db{end}", f"{recovered}{end}")
                with contextlib.closing(sqlite3.connect(recovered)) as connection:
                    found = connection.execute("SELECT count(*) FROM opendp_concurrent_charges")
                    assert found.fetchone() == (before,)
                with pytest.raises(LedgerError) as raised:
                    root(query)
            assert len(ran) == before
            larger = ["mount", "-o", "remount,size=4m", str(folder)]
            subprocess.run(larger, check=True, capture_output=True)
            root(query)
            assert ledger.summary().launches == before + 1
        with open_ledger(folder / "budget.db", "a") as ledger:
            assert ledger.summary().launches == before + 1
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


GONE = {  # what befalls a ledger that is open, and what is said
    "a file": (lambda store, ledger: os.remove(store.address), "is not the file that was opened"),
    "for an older copy": (
        lambda store, ledger: os.replace(f"{store.address}.older", store.address),
        "is not the file that was opened",
    ),
    "its budget": (
        lambda store, ledger: store.execute("DELETE FROM opendp_concurrent_budgets"),
        "the budget of 'survey 2026' is gone",
    ),
    "as it was closed": (lambda store, ledger: ledger.close(), "was closed: open it again"),
}


@pytest.mark.parametrize("change", GONE)
def test_a_ledger_that_is_gone_or_an_older_copy_is_refused(sqlite, change):
    ledger, (query, ran) = sqlite.create(), counted(0.125)
    root = limit(ledger)
    root(query)
    shutil.copy(sqlite.address, f"{sqlite.address}.older")
    root(query)
    happens, said = GONE[change]
    happens(sqlite, ledger)
    for ask in (root.privacy_loss, lambda: root(query), ledger.summary):
        with pytest.raises(LedgerError, match=said) as raised:
            ask()
        assert isinstance(raised.value, LedgerDamagedError) == (change != "as it was closed")
    assert len(ran) == 2


# --- faults that pass ----------------------------------------------------------------------


@contextlib.contextmanager
def locked(store, ledger):
    """Somebody else in the middle of writing."""
    if store.embedded:
        with contextlib.closing(sqlite3.connect(store.address, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    import psycopg

    with psycopg.connect(store.server.url.replace("+psycopg", "")) as other:
        other.execute(f"SELECT 1 FROM {store._name}.opendp_concurrent_budgets FOR UPDATE")
        yield


@contextlib.contextmanager
def refused(store, ledger, table="charges"):
    """The server refuses a row: the transaction has failed, and was not committed."""
    change = f"ALTER TABLE opendp_concurrent_{table} {{}} CONSTRAINT few"
    store.execute(f"{change.format('ADD')} CHECK (sequence < 2)")
    yield
    store.execute(change.format("DROP"))


@contextlib.contextmanager
def ended(store, ledger):
    """The session is ended before the disk has the commit."""
    with pytest.MonkeyPatch.context() as patch:
        end = "SELECT pg_terminate_backend(pg_backend_pid())"
        patch.setattr(ledger._store, "_flush", end)
        yield


@contextlib.contextmanager
def crashed(store, ledger):
    """The server crashes, and is started again."""
    store.server.stop("immediate")
    try:
        yield
    finally:
        store.server.start()


LOCKED = locked, r"locked for 0.2 s: end that process", 0
FAULTS = {  # a store, what befalls it, what is said, and how many charges are in flight
    "a locked file": ("sqlite", *LOCKED),
    "a locked row": ("postgresql", *LOCKED),
    "a refused charge": ("postgresql", refused, "few", 0),
    "a refused head": ("postgresql", partial(refused, table="budgets"), "few", 0),
    "an ended session": ("postgresql", ended, "terminating connection", 1),
    "a crashed server": ("postgresql", crashed, "check the server", 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_launch_that_fails_runs_nothing_and_the_next_one_goes_on(name, request):
    kind, fault, said, in_flight = FAULTS[name]
    store, (query, ran) = request.getfixturevalue(kind), counted()
    ledger = store.create(wait=0.2)
    root = limit(ledger)
    root(query)
    with fault(store, ledger):
        start = time.monotonic()
        with pytest.raises(LedgerError, match=said) as raised:
            root(query)
        assert (0.15 if fault is locked else 0.0) <= time.monotonic() - start <= 10.0
        assert (IN_FLIGHT if in_flight else AGAIN) in str(raised.value)
        if fault is locked:
            assert root.privacy_loss() == 0.25  # reading goes on
        if fault is crashed:
            for ask in (root.privacy_loss, ledger.summary):
                with pytest.raises(LedgerError, match=said):
                    ask()
    assert (len(ran), store.charges()) == (1, 1 + in_flight)
    root(query)
    assert len(ran) == 2
    assert store.charges() == ledger.summary().launches == root.privacy_loss() * 4 == 2 + in_flight


def test_a_lost_answer_leaves_no_lock(store, intercept):
    """Its cursor, which an exception may keep alive, keeps a closed connection of SQLite open."""
    first = limit(store.create())
    second, kept = limit(store.open(wait=2.0)), []

    def lose(driver, execute, text):
        kept.append(execute())
        if len(kept) == 2:
            raise store.lost()
        return kept[-1]

    patch = intercept(lose)
    with pytest.raises(LedgerError):
        first(count())
    patch.undo()
    second(count())


def test_errors_say_what_to_do():
    class Error(Exception):
        sqlstate = None

    for text, state, advice in (
        ("could not extend file", "53100", "free some space"),
        ("permission denied for table", "42501", "give this process write access"),
        ("cannot execute INSERT in a read-only transaction", "25006", "give this process"),
        ("canceling statement due to lock timeout", "55P03", "locked for 7 s"),
        ("database disk image is malformed", None, "restore the newest copy"),
        ("disk I/O error", None, "repair it before you continue"),
        ("duplicate key value", "23505", "stop that program"),
        ("the connection is closed", None, "check the server and the network"),
        ("something\nelse", "XX000", "something; resolve this, and try again"),
    ):
        error = Error(text)
        error.sqlstate = state
        said = explain("x.db", error, AGAIN, 7.0)
        assert said.startswith("ledger x.db: ")
        assert advice in said
        assert said.endswith(AGAIN)
        assert "\n" not in said


def test_a_clock_that_goes_backwards_changes_the_times_only(sqlite, monkeypatch):
    root = limit(sqlite.create())
    for now in (10**18, 10**15, 0, 4 * 10**18):
        monkeypatch.setattr(book, "time_ns", lambda now=now: now)
        root(count(0.125))
    entries = [(one.sequence, one.time.timestamp(), one.loss) for one in sqlite.open().entries()]
    assert entries == [(1, 1e9, 0.125), (2, 1e6, 0.25), (3, 0.0, 0.375), (4, 4e9, 0.5)]


# --- servers -------------------------------------------------------------------------------


def test_sessions_that_end_while_nobody_uses_them_are_opened_again(postgresql):
    query, ran = counted()
    root = limit(postgresql.create())
    root(query)
    postgresql.server.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    assert root.privacy_loss() == 0.25
    root(query)
    assert (len(ran), postgresql.charges()) == (2, 2)


def test_a_server_without_durability_is_refused(postgresql):
    """Its default is to be durable."""

    def set_to(change, value):
        postgresql.server.execute(f"ALTER SYSTEM {change}")
        postgresql.server.execute("SELECT pg_reload_conf()")
        while postgresql.server.execute("SHOW fsync") != [(value,)]:
            time.sleep(0.01)

    postgresql.create().close()
    try:
        set_to("SET fsync TO off", "off")
        for attempt in (postgresql.open, lambda: postgresql.create("another")):
            with pytest.raises(LedgerError, match="fsync=off.*turn fsync on"):
                attempt()
    finally:
        set_to("RESET fsync", "on")
    postgresql.open()


def test_a_session_that_does_not_wait_for_the_disk_is_made_to(postgresql, intercept):
    """Even where it is the server's, or the user's, default not to."""
    postgresql.create().close()
    texts = []
    with open_ledger(postgresql.address + "%20-csynchronous_commit%3Doff", DATASET) as ledger:
        root = limit(ledger)
        intercept(lambda driver, execute, text: texts.append(text) or execute())
        root(count())
    made, _, waited = texts[-1].partition("; COMMIT; ")
    assert made.startswith("INSERT")
    assert "set_config('synchronous_commit', 'on', true)" in waited
    assert "pg_logical_emit_message(true" in waited


@pytest.fixture
def hurried(postgresql, monkeypatch):
    """A server that may take a second for an answer."""
    for module in (backends, ledger_store):
        monkeypatch.setattr(module, "GRACE", 0.8)
    return postgresql


@contextlib.contextmanager
def stopped(server):
    """All processes of a server are stopped, and go on in the end."""
    pids = server.execute(
        "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int "
        "UNION SELECT pid FROM pg_stat_activity"
    )

    def send(number):
        for (pid,) in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(pid, number)

    send(signal.SIGSTOP)
    try:
        yield
    finally:
        send(signal.SIGCONT)


@pytest.mark.parametrize(
    ("statement", "in_flight"),
    [("BEGIN", {0}), ("INSERT", {0, 1})],  # the second message commits, too
)
def test_a_server_that_stops_in_the_middle_of_a_launch_runs_nothing(
    hurried, intercept, statement, in_flight
):
    (query, ran), stops = counted(), []
    root = limit(hurried.create(wait=0.2))
    with ThreadPoolExecutor() as pool, contextlib.ExitStack() as until:

        def stop(driver, execute, text):
            if text.startswith(statement) and not stops:
                stops.append(until.enter_context(stopped(hurried.server)))
            return execute()

        patch = intercept(stop)
        error = pool.submit(root, query).exception(60.0)
    assert isinstance(error, LedgerError)
    assert "has not answered for 1 s; the connection failed: check the server" in str(error)
    assert (ran, stops) == ([], [None])
    patch.undo()
    answers = launch_until_refused(root, query)  # a commit that was sent may be charged
    assert 4 - answers in in_flight
    assert (len(ran), hurried.charges(), root.privacy_loss()) == (answers, 4, 1.0)


def test_whatever_is_asked_of_a_stopped_server_ends(hurried):
    """It blocked launches without limit. The last address is as one behind a firewall."""
    query, ran = counted()
    root = limit(hurried.create(wait=0.2))
    root(query)
    with socket.socket() as silent, ThreadPoolExecutor() as pool, stopped(hurried.server):
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        nowhere = f"postgresql+psycopg://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        asked = [
            pool.submit(root, query),
            pool.submit(root.privacy_loss),
            pool.submit(create_ledger, hurried.address, "another", wait=0.2),
            *(pool.submit(open_ledger, to, DATASET, wait=0.1) for to in (hurried.address, nowhere)),
        ]
        for one in asked:
            error = one.exception(60.0)
            assert isinstance(error, LedgerError)
            assert "check the server" in str(error)
    assert len(ran) == hurried.charges() == hurried.open().summary().launches == 1


def test_a_client_that_stops_with_the_lock_loses_it(hurried):
    query, ran = counted()
    root, other = limit(hurried.create(wait=0.2)), limit(hurried.open(wait=30.0))

    def hold():
        with root._session.account.store._book.turn() as turn:
            other(query)  # waits until the server gives up the first one, which goes on then
            turn.write(Charge(0.25, "", ""), turn.accumulator.after(0.25))

    with pytest.raises(LedgerError, match="terminating connection due to idle-in-transaction"):
        hold()
    assert len(ran) == hurried.charges() == 1


# --- processes -----------------------------------------------------------------------------


def test_a_forked_process_may_not_launch_and_does_no_harm(store):
    """Also while a thread of its parent launches: the locks that it held stay held in the child."""
    query, ran = counted()
    ledger = store.create()
    root = limit(ledger)
    account = root._session.account
    root(query)

    def attempt():
        for ask in (lambda: root(query), root.privacy_loss, root.remaining):
            with pytest.raises(ForkedError):
                ask()
        return len(ran)

    with account.lock, account.store._book._lock:
        children = [Child(attempt) for _ in range(2)]
    root(query)
    assert [child.result() for child in children] == [1, 1]
    root(query)
    assert (len(ran), ledger.summary().launches, root.privacy_loss()) == (3, 3, 0.75)


def test_a_forked_process_may_not_open_a_file_that_was_open_before(sqlite):
    """SQLite would not lock it there, and what it writes would be lost."""
    ledger = sqlite.create()
    limit(ledger)(count())

    def attempt():
        for ask in (sqlite.open, sqlite.create, ledger.summary, lambda: limit(ledger)):
            with pytest.raises(LedgerError, match="forked from a process that had"):
                ask()

    Child(attempt).result()
    sqlite.close()

    def launch():
        with open_ledger(sqlite.address, DATASET) as ledger:
            return launch_until_refused(limit(ledger), count())

    assert Child(launch).result() == 3
    assert sqlite.open().summary().launches == 4


ENDS = """
import os, sys
ledger = oc.ledger.open_ledger(*sys.argv[1:])
odometer = oc.make_concurrent_odometer(*space, PURE)
root = oc.make_concurrent_filter(odometer, 1, 1.0, ledger=ledger)([1])
count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
root(count)
if os.fork() == 0: sys.exit()
os.wait()
root(count)
print(root.privacy_loss())
ledger.close()
"""


@pytest.mark.parametrize(
    "store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_a_process_that_is_forked_ends_without_harm(store):
    """With all that Python does at its end."""
    ledger = store.create()
    root = limit(ledger)
    root(count())
    command = [sys.executable, "-c", BEGIN + ENDS, store.address, DATASET]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == "0.75", done.stderr
    root(count())
    assert ledger.summary().launches == 4
