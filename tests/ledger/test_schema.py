"""What is not a ledger of this version is refused, and nothing in it is changed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, LedgerError, LedgerMismatchError
from opendp_concurrent.ledger import create_ledger, datasets, open_ledger
from opendp_concurrent.ledger.encoding import SCHEMA_VERSION

from .conftest import DATASET, Child, count, limit


def refused(store, match):
    before = store.content()
    for attempt in (store.open, store.create, lambda: datasets(store.address)):
        with pytest.raises(LedgerError, match=match):
            attempt()
    assert store.content() == before


@pytest.mark.parametrize(
    ("version", "which"), [(SCHEMA_VERSION - 1, "an older"), (SCHEMA_VERSION + 1, "a newer")]
)
def test_another_schema_is_refused(store, version, which):
    store.create().close()
    store.execute(f"UPDATE opendp_concurrent_schema SET version = {version}")
    reads = f"has schema {version}.*reads schema {SCHEMA_VERSION}"
    refused(store, f"{reads}.*use {which} version.*create another ledger")


def test_a_ledger_is_created_once_and_names_of_datasets_are_told(store):
    for name in ("b", "a"):
        store.create(name).close()
    before = store.rows()
    with pytest.raises(LedgerError, match="a budget of 'a' already; call open_ledger"):
        store.create("a")
    assert store.rows() == before
    assert datasets(store.address) == ["a", "b"]
    with pytest.raises(LedgerMismatchError, match="'a' and 'b'"):
        store.open("c")


def test_a_file_that_is_no_ledger_is_left_alone(sqlite):
    for attempt in (sqlite.open, lambda: datasets(sqlite.address)):
        with pytest.raises(LedgerError, match="cannot be opened: check its name"):
            attempt()
    assert sqlite.content() == {}
    Path(sqlite.address).write_text("a,b\n1,2\n" * 100)
    refused(sqlite, "file is not a database; the file is not a ledger: check its name")
    Path(sqlite.address).unlink()
    with closing(sqlite3.connect(sqlite.address)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    refused(sqlite, "is not a ledger: it has no table opendp_concurrent_schema")


def test_an_empty_file_is_not_a_ledger_and_may_become_one(sqlite):
    open(sqlite.address, "w").close()
    with pytest.raises(LedgerError, match="is not a ledger"):
        sqlite.open()
    sqlite.create()
    sqlite.open()


def test_a_database_of_a_server_may_have_other_tables(postgresql):
    postgresql.execute("CREATE TABLE theirs (a integer)")
    with pytest.raises(LedgerError, match="is not a ledger"):
        postgresql.open()
    postgresql.create()
    postgresql.open()


def test_the_file_is_durable_at_every_commit(sqlite):
    """A journal that somebody changed is changed back."""
    sqlite.create().close()
    with closing(sqlite3.connect(sqlite.address)) as connection:
        assert connection.execute("PRAGMA journal_mode=DELETE").fetchall() == [("delete",)]
    with sqlite.open()._store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2


def test_names_with_any_character_are_files(tmp_path):
    for name in ("a b.db", "50%.db", "what?mode=ro", "#1.db", "Größe.db"):
        create_ledger(tmp_path / name, "a").close()
        assert (tmp_path / name).exists()
        open_ledger(str(tmp_path / name), "a").close()


def test_a_password_is_in_no_message(server):
    url = server.url.replace("postgres@", "nobody:secret@").replace("127.0.0.1:", "127.0.0.1:1")
    with pytest.raises((LedgerError, InvalidValueError)) as raised:
        open_ledger(url, "a")
    assert "secret" not in str(raised.value)


def test_two_processes_may_create_at_the_same_time(store):
    def create(name):
        create_ledger(store.address, name).close()
        return name

    children = [Child(lambda name=name: create(name)) for name in "abcd"]
    assert sorted(child.result() for child in children) == list("abcd")
    assert datasets(store.address) == list("abcd")


def test_a_client_of_another_encoding_reads_and_writes_text(postgresql, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    for address in (postgresql.address, postgresql.address + "%20-cclient_encoding%3DSQL_ASCII"):
        name = f"Zoë 漢 {len(address)}"
        postgresql.address = address
        with postgresql.create(name) as ledger, oc.labelled("é 漢"):
            limit(ledger)(count(0.125))
        assert name in datasets(address)
        with open_ledger(address, name) as ledger:
            assert [entry.label for entry in ledger.entries()] == ["é 漢"]


def test_a_database_that_knows_no_text_is_refused(postgresql):
    postgresql.server.execute(
        "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    url = postgresql.server.url.replace("/postgres?", "/bytes?").removesuffix("postgres") + "bytes"
    with pytest.raises(LedgerError, match="SQL_ASCII, which does not check text.*ENCODING 'UTF8'"):
        create_ledger(url, DATASET)
