"""DuckDB: each statement has a cursor of its own, so that threads run side by side."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from threading import Timer
from typing import Any, ClassVar
from uuid import uuid4

from ...accounts.reentry import check_not_held
from ...errors import InvalidTypeError, InvalidValueError
from ...interrupts import Lock, let_in
from .engine import Engine, Run, Stored

FILES = {".parquet": "parquet", ".csv": "csv"}
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_TEXT = "text of a CSV file"
_COLUMNS = """
    SELECT c.column_name, c.data_type, t.sql
    FROM duckdb_columns() AS c
    JOIN duckdb_tables() AS t USING (database_name, schema_name, table_name)
    WHERE c.database_name = $1 AND c.schema_name = $2 AND c.table_name = $3
"""
_OWN = "SET search_path = 'system.main'"  # of a cursor: no macro is found there, so none shadows
_TURN = Lock()  # of transactions in this process; another process cannot open the file
_BINARY = ("", "binary", "c", "posix")
_INHERITED: set[int] = set()  # processes that were forked with DuckDB's databases in their memory


def _remember_fork() -> None:
    if "duckdb" in sys.modules:
        _INHERITED.add(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember_fork)


class DuckDB(Engine):
    """A DuckDB connection: tables, and Parquet and CSV files by their paths."""

    dialect = "duckdb"
    stored: ClassVar = {
        int: frozenset({*_INTEGERS, _TEXT}),
        float: frozenset({"FLOAT", "DOUBLE", _TEXT}),
        str: frozenset({"VARCHAR", _TEXT}),
        bool: frozenset({"BOOLEAN", _TEXT}),
        date: frozenset({"DATE", _TEXT}),
    }

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def reference(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the reference of a stored table, or of a file by its path, or raise."""
        *_, last = table
        kind = FILES.get(os.path.splitext(last)[1].lower())
        if kind is None:
            return self._stored_table(table)
        if len(table) != 1 or not os.path.isfile(last) or any(one in last for one in "*?[]"):
            raise InvalidValueError(
                f"table ({last!r}) must be the path of one file that exists, without *, ? and "
                "brackets, or the name of a stored table"
            )
        path = os.path.abspath(last)
        if kind == "parquet":
            return kind, path
        with open(path, newline="", encoding="utf-8") as file:
            return kind, path, *next(csv.reader(file), [])

    def _stored_table(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the database, the schema and the name of a stored table, or raise."""
        names = self._fetch(
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() "
            "WHERE table_name = $1 ORDER BY ALL",
            (table[-1],),
        )
        found = [one for one in names if one[-len(table) :] == table]
        if len(found) != 1:
            raise InvalidValueError(
                f"table ({'.'.join(table)}) must be the name of one stored table, spelled as it is "
                "stored, with its schema if there are several, or the path of a .parquet or .csv "
                f"file; found {len(found)} tables. A view is refused: it may call functions that "
                "are not deterministic, or read rows of other units"
            )
        return ("table", *found[0])

    def columns(self, reference: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the columns, or raise."""
        ((collation,),) = self._fetch("SELECT current_setting('default_collation')", ())
        if str(collation).lower() not in _BINARY:
            raise InvalidValueError(
                f"connection must compare texts by their bytes, found the default_collation "
                f"{collation!r}; reset it"
            )
        kind, *parts = reference
        if kind == "parquet":
            found = self._fetch("DESCRIBE SELECT * FROM read_parquet($1)", (parts[0],))
            return {row[0]: row[1] for row in found}
        if kind == "csv":
            return dict.fromkeys(parts[1:], _TEXT)
        rows = self._fetch(_COLUMNS, tuple(parts))
        generated = [row[0] for row in rows if " GENERATED ALWAYS AS" in row[2].upper()]
        if generated:
            raise InvalidTypeError(
                "table has generated columns, which may call functions that are not "
                "deterministic; store them"
            )
        return {row[0]: row[1] for row in rows}

    def _fetch(self, text: str, parameters: tuple[Any, ...]) -> list[Any]:
        with self._opened() as cursor:
            found: list[Any] = cursor.execute(text, list(parameters)).fetchall()
        return found

    def run(self, text: str, parameters: tuple[Any, ...], timeout: float | None) -> list[Any]:
        """Run a statement on a cursor of its own; interrupt it when the time is over."""
        with self._cursor(timeout) as cursor:
            return _execute(cursor, text, parameters)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open a cursor that calls functions of DuckDB only, whatever macros a database has.

        Macros are looked up in the search path, before functions and operators of the same name.
        Tables are named with their database and schema.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(_OWN)
            yield cursor

    @contextmanager
    def _cursor(self, timeout: float | None) -> Iterator[Any]:
        """Open a cursor, whose statements are interrupted when the time is over."""
        with self._opened() as cursor:
            if timeout is None:
                yield cursor
                return
            timer = Timer(timeout, cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                yield cursor
            finally:
                timer.cancel()

    def check_writable(self) -> None:
        """Raise if another process may have the database open: a fork takes no lock on its file.

        Else a transaction of DuckDB sees and changes its database alone, or fails.
        """
        if os.getpid() in _INHERITED:
            raise InvalidValueError(
                "the table must be in a process that was not forked after DuckDB was imported: the "
                "fork has a copy of each open database, and each copy would spend the budgets "
                "again; start processes by multiprocessing.get_context('spawn')"
            )

    def place(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the database, the schema and the name of a stored table that may not exist."""
        with self._connection.cursor() as cursor:  # which begins in the database that was opened
            ((database,),) = cursor.execute("SELECT system.main.current_database()").fetchall()
        return ("table", *(database, "main")[: 3 - len(table)], *table)

    def transaction(self, work: Callable[[Run], Any], timeout: float | None) -> Any:
        """Return ``work(run)``; commit, or roll back if it raises."""
        check_not_held(_TURN)
        with _TURN, self._cursor(timeout) as cursor:

            def run(text: str, parameters: tuple[Any, ...]) -> list[Any]:
                return _execute(cursor, text, parameters)

            cursor.execute("BEGIN TRANSACTION")
            try:
                done = work(run)
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(Exception):  # an error may have ended the transaction
                    cursor.execute("ROLLBACK")
                raise
        return done

    def materialize(self, text: str, parameters: tuple[Any, ...], timeout: float | None) -> Stored:
        """Store rows in a database in memory, which all cursors of the connection see."""
        name = f"oc_{uuid4().hex}"

        def drop() -> None:
            with self._connection.cursor() as cursor:
                cursor.execute(f'DETACH DATABASE IF EXISTS "{name}"')

        self._fetch(f"ATTACH ':memory:' AS \"{name}\" (READ_WRITE)", ())
        try:
            self.run(f'CREATE TABLE "{name}".main.t AS {text}', parameters, timeout)
        except BaseException:
            drop()
            raise
        return Stored(self, ("table", name, "main", "t"), drop)


def _execute(cursor: Any, text: str, parameters: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = let_in(lambda: cursor.execute(text, list(parameters)).fetchall())
    return found
