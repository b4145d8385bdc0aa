"""What is not a ledger of this version is refused, and nothing in it is changed."""

import sqlite3
from contextlib import closing

import pytest

from opendp_concurrent.errors import (
    InvalidValueError,
    LedgerError,
    LedgerMismatchError,
)
from opendp_concurrent.ledger import create_ledger, datasets, open_ledger
from opendp_concurrent.ledger.encoding import SCHEMA_VERSION


def refused(store, match):
    for attempt in (store.open, store.create, lambda: datasets(store.address)):
        with pytest.raises(LedgerError, match=match) as raised:
            attempt()
    return str(raised.value)


@pytest.mark.parametrize(
    ("version", "which"), [(SCHEMA_VERSION - 1, "an older"), (SCHEMA_VERSION + 1, "a newer")]
)
def test_another_schema_is_refused(store, version, which):
    store.create().close()
    store.execute(f"UPDATE opendp_concurrent_schema SET version = {version}")
    before = store.rows()
    said = refused(
        store, f"has schema {version}.*reads schema {SCHEMA_VERSION}.*use {which} version"
    )
    assert "create another ledger" in said
    assert store.rows() == before


def test_a_ledger_is_created_once(store):
    store.create().close()
    before = store.rows()
    with pytest.raises(LedgerError, match="a budget of 'survey 2026' already; call open_ledger"):
        store.create()
    assert store.rows() == before


def test_names_of_datasets_are_told(store):
    store.create("b").close()
    store.create("a").close()
    assert datasets(store.address) == ["a", "b"]
    with pytest.raises(LedgerMismatchError, match="'a' and 'b'"):
        store.open("c")


def test_a_file_that_is_not_there_is_not_made(sqlite):
    before = sqlite.content()
    for attempt in (sqlite.open, lambda: datasets(sqlite.address)):
        with pytest.raises(LedgerError, match="cannot be opened: check its name"):
            attempt()
    assert sqlite.content() == before == {}


def test_an_sqlite_file_of_somebody_else_is_left_alone(sqlite):
    with closing(sqlite3.connect(sqlite.address)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = sqlite.content()
    refused(sqlite, "is not a ledger: it has no table opendp_concurrent_schema")
    assert sqlite.content() == before


def test_what_is_no_database_is_left_alone(sqlite):
    with open(sqlite.address, "w") as file:
        file.write("a,b\n1,2\n" * 100)
    before = sqlite.content()
    refused(sqlite, "file is not a database; the file is not a ledger: check its name")
    assert sqlite.content() == before


def test_an_empty_file_is_not_a_ledger_and_may_become_one(sqlite):
    open(sqlite.address, "w").close()
    with pytest.raises(LedgerError, match="is not a ledger"):
        sqlite.open()
    sqlite.create()
    sqlite.open()


def test_a_database_of_a_server_may_have_other_tables(postgresql):
    with pytest.raises(LedgerError, match="is not a ledger"):
        postgresql.open()
    postgresql.execute("CREATE TABLE theirs (a integer)")
    with pytest.raises(LedgerError, match="is not a ledger"):
        postgresql.open()
    postgresql.create()
    postgresql.open()


def test_the_file_is_durable_at_every_commit(sqlite):
    ledger = sqlite.create()
    with ledger._store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2


def test_a_journal_that_somebody_changed_is_changed_back(sqlite):
    sqlite.create().close()
    with closing(sqlite3.connect(sqlite.address)) as connection:
        assert connection.execute("PRAGMA journal_mode=DELETE").fetchall() == [("delete",)]
    sqlite.open()
    with closing(sqlite3.connect(sqlite.address)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


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


def test_two_processes_may_create_at_the_same_time(store, tools):
    def create(name):
        create_ledger(store.address, name).close()
        return name

    children = [tools.Child(lambda name=name: create(name)) for name in "abcd"]
    assert sorted(child.result() for child in children) == list("abcd")
    assert datasets(store.address) == list("abcd")
