"""What goes wrong with disks, servers, clocks and processes: no answer without a charge.

An error means that no mechanism ran. Whether the launch was charged is then what the ledger says;
it is charged at most once.
"""

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from opendp_concurrent.errors import (
    ForkedError,
    LedgerDamagedError,
    LedgerError,
)
from opendp_concurrent.ledger import book, create_ledger, open_ledger
from opendp_concurrent.ledger.backends import explain

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
def test_a_file_that_may_not_be_written_can_be_read_and_charges_nothing(public, tools):
    path, query = public / "budget.db", tools.count()
    with create_ledger(path, "a") as ledger:
        tools.limit(ledger)(query)
    os.chmod(path, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)

    def attempt():
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        try:
            with open_ledger(path, "a") as ledger:
                tools.limit(ledger)(query)
        except LedgerError as error:
            return str(error)

    said = tools.Child(attempt).result()
    assert str(path) in said
    assert "cannot be written" in said or "cannot be opened" in said
    assert AGAIN in said
    assert open_ledger_and_count(path) == 1


def open_ledger_and_count(path):
    with open_ledger(path, "a") as ledger:
        return ledger.summary().launches


def launch_forever(root, query):
    while True:
        root(query)


def test_a_full_disk_refuses_and_when_there_is_space_again_it_goes_on(public, tools):
    folder = public / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted")
    try:
        query, ran = tools.counted(2.0**-20)
        with create_ledger(folder / "budget.db", "a") as ledger:
            root = tools.limit(ledger)
            with pytest.raises(LedgerError, match="the disk is full: free some space") as raised:
                launch_forever(root, query)
            before = len(ran)
            for _ in range(3):  # whatever fills the disk: a page, a frame, or a new block
                assert (raised.value.charged, AGAIN in str(raised.value)) == (False, True)
                assert ledger.summary().launches == before
                recovered = folder.parent / "recovered.db"  # as after a crash: without -shm
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
            charged = ledger.summary().launches
            root(query)
            assert ledger.summary().launches == charged + 1
        with open_ledger(folder / "budget.db", "a") as ledger:
            assert ledger.summary().launches == charged + 1
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize(
    "change",
    [
        os.remove,
        lambda path: os.rename(path, f"{path}.old"),
        lambda path: os.replace(f"{path}.older", path),
    ],
)
def test_a_file_that_is_gone_or_an_older_copy_is_refused(sqlite, tools, change):
    ledger, (query, ran) = sqlite.create(), tools.counted(0.125)
    root = tools.limit(ledger)
    root(query)
    shutil.copy(sqlite.address, f"{sqlite.address}.older")
    root(query)
    change(sqlite.address)
    for ask in (root.privacy_loss, lambda: root(query), ledger.summary):
        with pytest.raises(LedgerDamagedError, match="is not the file that was opened"):
            ask()
    assert len(ran) == 2


def test_a_ledger_that_was_closed_launches_nothing(store, tools):
    query, ran = tools.counted()
    ledger = store.create()
    root = tools.limit(ledger)
    root(query)
    ledger.close()
    for ask in (lambda: root(query), root.privacy_loss, ledger.summary, ledger.entries):
        with pytest.raises(LedgerError, match="was closed: open it again"):
            ask()
    assert len(ran) == store.open().summary().launches == 1


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

    url = store.server.url.replace("+psycopg", "")
    with psycopg.connect(url) as other:
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
def test_a_launch_that_fails_runs_nothing_and_the_next_one_goes_on(name, request, tools):
    kind, fault, said, in_flight = FAULTS[name]
    store, (query, ran) = request.getfixturevalue(kind), tools.counted()
    ledger = store.create(wait=0.2)
    root = tools.limit(ledger)
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
    charges = 2 + in_flight
    assert len(ran) == 2
    assert store.charges() == ledger.summary().launches == root.privacy_loss() * 4 == charges


def test_sessions_that_end_while_nobody_uses_them_are_opened_again(postgresql, tools):
    query, ran = tools.counted()
    root = tools.limit(postgresql.create())
    root(query)
    root.privacy_loss()
    postgresql.server.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    assert root.privacy_loss() == 0.25
    root(query)
    assert (len(ran), postgresql.charges()) == (2, 2)


def test_a_server_without_durability_is_refused(postgresql, tools):
    """Its default is to be durable."""
    postgresql.create().close()
    postgresql.server.execute("ALTER SYSTEM SET fsync TO off")
    try:
        postgresql.server.execute("SELECT pg_reload_conf()")
        while postgresql.server.execute("SHOW fsync") != [("off",)]:
            time.sleep(0.01)
        for attempt in (postgresql.open, lambda: postgresql.create("another")):
            with pytest.raises(LedgerError, match="fsync=off.*turn fsync on"):
                attempt()
    finally:
        postgresql.server.execute("ALTER SYSTEM RESET fsync")
        postgresql.server.execute("SELECT pg_reload_conf()")
    while postgresql.server.execute("SHOW fsync") != [("on",)]:
        time.sleep(0.01)
    postgresql.open()


def test_a_session_that_does_not_wait_for_the_disk_is_made_to(postgresql, tools, intercept):
    """Even where it is the server's, or the user's, default not to."""
    postgresql.create().close()
    url = postgresql.address + "%20-csynchronous_commit%3Doff"
    texts = []

    def note(driver, execute, text):
        texts.append(text)
        return execute()

    with open_ledger(url, tools.DATASET) as ledger:
        root = tools.limit(ledger)
        intercept(note)
        root(tools.count())
    made, _, waited = texts[-1].partition("; COMMIT; ")
    assert made.startswith("INSERT")
    assert "set_config('synchronous_commit', 'on', true)" in waited
    assert "pg_logical_emit_message(true" in waited


def test_errors_say_what_to_do():
    class Error(Exception):
        def __init__(self, text, sqlstate=None):
            super().__init__(text)
            self.sqlstate = sqlstate

    cases = [
        (Error("database or disk is full"), "free some space"),
        (Error("could not extend file", "53100"), "free some space"),
        (Error("attempt to write a readonly database"), "give this process write access"),
        (Error("permission denied for table", "42501"), "give this process write access"),
        (Error("cannot execute INSERT in a read-only transaction", "25006"), "give this process"),
        (Error("database is locked"), "locked for 7 s"),
        (Error("canceling statement due to lock timeout", "55P03"), "locked for 7 s"),
        (Error("unable to open database file"), "its folder and the permissions"),
        (Error("file is not a database"), "check its name"),
        (Error("database disk image is malformed"), "restore the newest copy"),
        (Error("disk I/O error"), "repair it before you continue"),
        (Error("charges are append-only"), "stop that program"),
        (Error("duplicate key value", "23505"), "stop that program"),
        (Error("terminating connection", "57P01"), "check the server and the network"),
        (Error("the connection is closed"), "check the server and the network"),
        (Error("something\nelse", "XX000"), "something; resolve this, and try again"),
    ]
    for error, advice in cases:
        said = explain("x.db", error, AGAIN, 7.0)
        assert said.startswith("ledger x.db: ")
        assert advice in said
        assert said.endswith(AGAIN)
        assert "\n" not in said


# --- clocks --------------------------------------------------------------------------------


def test_a_clock_that_goes_backwards_changes_the_times_only(store, tools, monkeypatch):
    ledger = store.create()
    root = tools.limit(ledger)
    for now in (10**18, 10**15, 0, 4 * 10**18):
        monkeypatch.setattr(book, "time_ns", lambda now=now: now)
        root(tools.count(0.125))
    monkeypatch.undo()
    entries = store.open().entries()
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4]
    assert [entry.time.timestamp() for entry in entries] == [1e9, 1e6, 0.0, 4e9]
    assert [entry.loss for entry in entries] == [0.125, 0.25, 0.375, 0.5]
    assert root.privacy_loss() == 0.5


# --- processes -----------------------------------------------------------------------------


def test_a_forked_process_may_not_launch_and_does_no_harm(store, tools):
    query, ran = tools.counted()
    ledger = store.create()
    root = tools.limit(ledger)
    root(query)

    def attempt():
        raised = []
        for ask in (lambda: root(query), root.privacy_loss, root.remaining):
            try:
                ask()
            except ForkedError as error:
                raised.append(str(error))
        return raised, len(ran)

    children = [tools.Child(attempt) for _ in range(2)]
    root(query)
    for child in children:
        raised, answers = child.result()
        assert len(raised) == 3
        assert answers == 1
    root(query)
    assert (len(ran), ledger.summary().launches, root.privacy_loss()) == (3, 3, 0.75)


def test_a_forked_process_may_not_open_a_file_that_was_open_before(sqlite, tools):
    """SQLite would not lock it there, and what it writes would be lost."""
    ledger = sqlite.create()
    tools.limit(ledger)(tools.count())

    def attempt():
        raised = []
        for ask in (sqlite.open, sqlite.create, ledger.summary, lambda: tools.limit(ledger)):
            try:
                ask()
            except LedgerError as error:
                raised.append("forked from a process that had" in str(error))
        return raised

    assert tools.Child(attempt).result() == [True] * 4
    sqlite.close()

    def launch():
        with open_ledger(sqlite.address, tools.DATASET) as ledger:
            return tools.launch_until_refused(tools.limit(ledger), tools.count())

    assert tools.Child(launch).result() == 3
    assert sqlite.open().summary().launches == 4


@pytest.mark.parametrize(
    "store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_a_process_that_is_forked_ends_without_harm(store, tools):
    """With all that Python does at its end."""
    ledger = store.create()
    root = tools.limit(ledger)
    root(tools.count())
    command = (
        "import os, sys\n"
        "import opendp.prelude as dp, opendp_concurrent as oc\n"
        "from opendp_concurrent.ledger import open_ledger\n"
        "dp.enable_features('contrib', 'honest-but-curious')\n"
        "space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()\n"
        "odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())\n"
        "count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)\n"
        "ledger = open_ledger({address!r}, {dataset!r})\n"
        "root = oc.make_concurrent_filter(odometer, 1, 1.0, ledger=ledger)([1])\n"
        "root(count)\n"
        "if os.fork() == 0: sys.exit()\n"
        "os.wait()\n"
        "root(count)\n"
        "print(root.privacy_loss())\n"
        "ledger.close()\n"
    )
    text = command.format(address=store.address, dataset=tools.DATASET)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout.strip() == "0.75", done.stderr
    root(tools.count())
    assert ledger.summary().launches == 4


def test_a_forked_process_hears_so_while_a_thread_of_its_parent_launches(store, tools):
    """The locks that the thread held stay held in the child: none may be waited for."""
    root = tools.limit(store.create(), d_out=1e6)
    account = root._session.account

    def ask():
        asked = []
        for query in (root.privacy_loss, root.remaining, lambda: root(tools.count())):
            try:
                query()
            except ForkedError as error:
                asked.append(type(error).__name__)
        return asked

    root(tools.count())
    with account.lock, account.store._book._lock:
        child = tools.Child(ask)
        assert child.result() == ["ForkedError"] * 3


def test_a_lost_answer_leaves_no_lock(store, tools, intercept):
    """Its cursor, which an exception may keep alive, keeps a closed connection of SQLite open."""
    first = tools.limit(store.create(), 1.0)
    second, kept = tools.limit(store.open(wait=2.0), 1.0), []

    def lose(driver, execute, text):
        kept.append(execute())
        if len(kept) == 2:
            raise store.lost()
        return kept[-1]

    patch = intercept(lose)
    with pytest.raises(LedgerError):
        first(tools.count())
    patch.undo()
    second(tools.count())
