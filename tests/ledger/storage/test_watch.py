"""The files beside an open SQLite file: what may become of them, and what may not."""

import os
import sqlite3
from contextlib import closing

import pytest

from opendp_concurrent.errors import LedgerDamagedError, LedgerError
from opendp_concurrent.ledger.storage.watch import Watch, _fits

HEADER = bytes.fromhex(  # of a file that SQLite 3.40.1 wrote
    "377f0682002de2180000100000000000dea2d7f78d2d15e2ccbea5f166bbab23"
)


def test_a_header_of_sqlite_fits_and_no_other_does():
    assert _fits(HEADER)
    for place in range(32):
        changed = bytearray(HEADER)
        changed[place] ^= 1
        assert not _fits(bytes(changed))
    assert not _fits(HEADER[:31])
    assert not _fits(b"\0" * 32)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE some (a)")
        yield path, connection


def test_what_is_written_in_turns_is_no_damage(database):
    path, connection = database
    watch = Watch(path)
    for number in range(30):
        connection.execute("BEGIN IMMEDIATE")
        watch.check_log(locked=True)
        connection.execute("INSERT INTO some VALUES (?)", [number])
        connection.execute("COMMIT")
        watch.check_log(locked=False)
        watch.check()
        if number % 7 == 0:
            connection.execute(f"PRAGMA wal_checkpoint({'RESTART' if number % 2 else 'TRUNCATE'})")
    watch.close()
    watch.close()
    watch.check_log(locked=True)  # it looks at nothing any more


def test_a_log_that_got_shorter_is_damage_at_once(database):
    path, connection = database
    watch, log = Watch(path), f"{path}-wal"
    watch.check_log(locked=True)
    connection.execute("INSERT INTO some VALUES (1)")
    watch.check_log(locked=False)
    os.truncate(log, os.stat(log).st_size - 1)
    for locked in (True, False):
        with pytest.raises(LedgerDamagedError, match="was cut or overwritten"):
            watch.check_log(locked=locked)
    watch.close()


def test_a_log_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerError, match="some.db-wal cannot be read"):
        Watch(tmp_path / "some.db")
