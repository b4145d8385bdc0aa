"""Ledgers to test with: in an SQLite file, and on a PostgreSQL server that is started for it."""

import contextlib
import json
import os
import pickle
import sqlite3
import traceback
from hashlib import sha256
from pathlib import Path

import pytest

from opendp_concurrent.accounting.lifecycle import current_label
from opendp_concurrent.accounting.store import Charge
from opendp_concurrent.errors import BudgetExceededError

from ..build import costing, laplace, opened

pytest.importorskip("sqlalchemy")

from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.ledger.encoding import first_hash
from opendp_concurrent.ledger.store import Store as SqlStore

DATASET = "survey 2026"
CHARGES, BUDGETS = "opendp_concurrent_charges", "opendp_concurrent_budgets"

# --- what is launched ----------------------------------------------------------------------

count = laplace


def limit(ledger, d_out=1.0, **options):
    """The queryable of a filter that is kept in ``ledger``."""
    return opened(d_out, ledger=ledger, **options)


def counted(epsilon=0.25):
    """A measurement, with the list of its runs."""
    ran = []
    return costing(epsilon, lambda data: ran.append(len(data)) or len(ran)), ran


def fill(ledger, root, query, number):
    """Charge a query many times in one turn, as ``number`` launches would."""
    book, d_mid = ledger.book(ledger.summary().terms), query.map(1)
    charge = Charge(d_mid, "count", current_label())
    with book.turn() as turn:
        for _ in range(number):
            turn.write(charge, turn.accumulator.after(d_mid))
    root.privacy_loss()


def launch_until_refused(root, query):
    """How many launches answered."""
    answers = 0
    while True:
        try:
            root(query)
        except BudgetExceededError:
            return answers
        answers += 1


def next_hash(before, charge):
    """The hash of a charge (dataset, sequence, time, label, mechanism, d_mid) after another one."""
    return sha256(json.dumps([before, *charge], separators=(",", ":")).encode()).hexdigest()


def chained(charges, head=None):
    """Rows of charges that follow from those before them."""
    rows, head = [], head or first_hash("survey", None)
    for charge in charges:
        head = next_hash(head, charge)
        rows.append((*charge, head))
    return rows


def rehash(store):
    """Make all hashes anew, as somebody does who knows how."""
    ((dataset, terms),) = store.execute(f"SELECT dataset, terms FROM {BUDGETS}")
    columns = "dataset, sequence, time, label, mechanism, d_mid"
    charges = [tuple(one) for one in store.execute(f"SELECT {columns} FROM {CHARGES} ORDER BY 2")]
    rows = chained(charges, first_hash(dataset, terms))
    for row in rows:
        store.execute(f"UPDATE {CHARGES} SET hash = '{row[-1]}' WHERE sequence = {row[1]}")
    store.execute(f"UPDATE {BUDGETS} SET head = '{rows[-1][-1]}', sequence = {len(rows)}")


class Child:
    """A forked process: what its function returned, or raised."""

    def __init__(self, function):
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            return
        os.close(self._read)
        try:
            try:
                found = True, function()
            except BaseException as error:
                found = False, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            with os.fdopen(write, "wb") as pipe:
                pipe.write(pickle.dumps(found))
        finally:
            os._exit(0)

    def wait(self):
        """Wait until it ends; what it returned, pickled, unless it was killed."""
        with os.fdopen(self._read, "rb") as pipe:
            text = pipe.read()
        os.waitpid(self.pid, 0)
        return text

    def result(self):
        text = self.wait()
        succeeded, value = pickle.loads(text)
        if not succeeded:
            raise AssertionError(value)
        return value


# --- where it is written -------------------------------------------------------------------


class Store:
    """A place for a ledger, and a way around it."""

    def __init__(self):
        self._open = contextlib.ExitStack()

    def create(self, dataset=DATASET, **keywords):
        return self._open.enter_context(create_ledger(self.address, dataset, **keywords))

    def open(self, dataset=DATASET, **keywords):
        return self._open.enter_context(open_ledger(self.address, dataset, **keywords))

    def close(self):
        """Close all ledgers that are open here."""
        self._open.close()

    def rows(self):
        """All that is written, schema, budgets and charges."""
        return [
            self.execute(f"SELECT * FROM opendp_concurrent_{table} ORDER BY {order}")
            for table, order in (("schema", 1), ("budgets", "1"), ("charges", "1, 2"))
        ]

    def charges(self):
        """How many there are."""
        return self.execute("SELECT count(*) FROM opendp_concurrent_charges")[0][0]


class SqliteStore(Store):
    embedded = True
    lost = staticmethod(lambda: sqlite3.OperationalError("disk I/O error"))

    def __init__(self, folder):
        super().__init__()
        self.address = str(folder / "budget.db")

    def execute(self, statement):
        """Execute it as somebody would who may, and wants, anything."""
        with contextlib.closing(sqlite3.connect(self.address)) as connection, connection:
            for change in ("update", "delete"):
                if statement[:6].upper() in ("UPDATE", "DELETE"):
                    connection.execute(f"DROP TRIGGER IF EXISTS opendp_concurrent_no_{change}")
            return connection.execute(statement).fetchall()

    def content(self):
        """The bytes of all files, but the one that is memory which processes share."""
        files = Path(self.address).parent.iterdir()
        return {file.name: file.read_bytes() for file in files if file.suffix != ".db-shm"}


class PostgresqlStore(Store):
    embedded = False

    def lost(self):
        """What the driver raises when its connection is gone."""
        import psycopg

        return psycopg.OperationalError("the connection is lost")

    def __init__(self, server, name):
        super().__init__()
        self.server, self._name = server, name
        self.address = f"{server.url}?options=-csearch_path%3D{name}"
        server.execute(f"CREATE SCHEMA {name}")

    def execute(self, statement):
        """Execute it as somebody would who may, and wants, anything."""
        return self.server.execute(
            f"SET search_path TO {self._name}; SET session_replication_role TO replica; {statement}"
        )

    content = Store.rows

    def drop(self):
        self.server.execute(f"DROP SCHEMA {self._name} CASCADE")


@pytest.fixture
def sqlite(tmp_path):
    """An SQLite file that is not there yet."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    store = SqliteStore(folder)
    yield store
    store.close()


_NAMES = iter(f"ledger_{number}" for number in range(10**6))


@pytest.fixture
def postgresql(server):
    """A schema on the server."""
    store = PostgresqlStore(server, next(_NAMES))
    yield store
    store.close()
    store.drop()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request):
    """Each kind of place."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def intercept(monkeypatch):
    """Put a function around every statement of a launch."""

    def put(around):
        take = SqlStore._take

        def taken(self):
            driver, used = take(self)
            execute = driver.execute
            driver.execute = lambda text, *values: around(
                driver, lambda: execute(text, *values), text
            )
            return driver, used

        monkeypatch.setattr(SqlStore, "_take", taken)
        return monkeypatch

    return put
