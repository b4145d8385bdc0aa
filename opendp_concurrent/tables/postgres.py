"""PostgreSQL: statements run on connections of our own, so that threads run side by side."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from typing import Any, ClassVar
from uuid import uuid4
from weakref import finalize

from .._opendp import Lock, interruptible
from ..errors import InvalidTypeError, InvalidValueError
from . import engine

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_STORED = """
    c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND NOT row_security_active(c.oid)
    AND NOT EXISTS (
        WITH RECURSIVE part AS (
            SELECT c.oid AS oid
            UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN part ON i.inhparent = part.oid
        )
        SELECT 1 FROM part JOIN pg_class AS p USING (oid) WHERE p.relkind = 'f'
    )
"""
_TABLES = f"""
    SELECT n.nspname, c.relname
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = $1 AND {_STORED}
"""
_TYPE = """CASE
        WHEN a.atttypid = 'numeric'::regtype THEN format_type(a.atttypid, a.atttypmod)
        WHEN EXISTS (
            SELECT 1 FROM pg_cast AS k
            WHERE k.castsource = a.atttypid AND k.casttarget = 'text'::regtype
            AND (a.atttypid = 'uuid'::regtype OR a.atttypid >= 16384)
        ) THEN 'a type with a cast to texts of its own'
        WHEN (SELECT y.typtype FROM pg_type AS y WHERE y.oid = a.atttypid) = 'e' THEN 'enum'
        ELSE format_type(a.atttypid, NULL)
    END"""
_COLUMNS = f"""
    SELECT a.attname, {_TYPE}, a.attgenerated::text
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
"""
_READ = f"""
    {_COLUMNS} AND {_STORED}
    AND EXISTS (SELECT 1 FROM pg_locks AS l WHERE l.relation = c.oid AND l.pid = pg_backend_pid())
"""  # the statement before has locked what it read: it is this table, and stays as it is


class PostgreSQL(engine.Engine):
    """A server that a connection of psycopg belongs to; committed tables."""

    dialect = "postgres"
    stored: ClassVar = {
        int: frozenset({"smallint", "integer", "bigint"}),
        float: frozenset({"real", "double precision"}),
        # the cast of character(n) to a text leaves out the blanks at its end
        str: frozenset({"text", "character varying", "character", "uuid", "enum"}),
        bool: frozenset({"boolean"}),
        date: frozenset({"date"}),
        datetime: frozenset({"timestamp without time zone", "timestamp with time zone"}),
    }

    def __init__(self, connection: Any) -> None:
        if not isinstance(connection, Connections):
            login = {**connection.info.get_parameters(), "client_encoding": "UTF8"}
            if connection.info.password:
                login["password"] = connection.info.password
            connection = Connections(login)
        self._connections = connection

    def reference(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the schema and the name of a stored table, or raise."""
        rows = self.run(_TABLES, (table[-1],))
        found = [row for row in rows if row[-len(table) :] == table]
        if len(found) != 1:
            raise InvalidValueError(
                f"table ({engine.listed(table, '.')}) must be the name of one stored and "
                "committed table, "
                "spelled as it is stored, with its schema if there are several; found "
                f"{len(found)} tables. A view is refused: it may call functions that are not "
                "deterministic, or read rows of other units. So are temporary tables, foreign "
                "tables and parts, and tables with row security for this user"
            )
        return ("table", *found[0])

    def columns(self, reference: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the columns, or raise."""
        ((encoding,),) = self.run("SELECT current_setting('server_encoding')")
        if encoding != "UTF8":
            raise InvalidValueError(
                f"connection must be to a database in UTF8, found {encoding}: another encoding "
                "cannot hold all texts that predicates and keys may have"
            )
        return _types(self.run(f"{_COLUMNS} ORDER BY a.attnum", reference[1:]))

    def beside(self, other: engine.Engine) -> engine.Engine | None:
        """Return this engine if the other one has its login, and no connection of its own."""
        if not isinstance(other, PostgreSQL) or other._connections.only is not None:
            return None
        return self if self._connections.login == other._connections.login else None

    def check(self, run: engine.Run, of: engine.Scans) -> None:
        """Raise unless what was read is tables of types that are read, as :meth:`reference` is."""
        for one in of:
            self.check_columns(_types(run(_READ, one.reference[1:])), one.schema)

    def run(self, text: str, parameters: tuple[Any, ...] = (), of: engine.Scans = ()) -> list[Any]:
        """Run a statement on a connection of its own."""
        with self._connections.one() as connection:
            if not of:
                return _run(connection, text, parameters)
            _run(connection, f"{_BEGIN} READ ONLY")
            found = _run(connection, text, parameters)
            self.check(partial(_run, connection), of)
            connection.execute("COMMIT")
            return found

    def materialize(
        self, text: str, parameters: tuple[Any, ...], of: engine.Scans
    ) -> engine.Stored:
        """Store rows in a temporary table: only its own connection sees it, and it dies with it.

        So statements on it run one after the other, and what is made from it is stored beside it.
        """
        name = f"oc_{uuid4().hex}"
        create, reference = f'CREATE TEMPORARY TABLE "{name}" AS {text}', ("table", "pg_temp", name)
        if self._connections.only is not None:
            self.run(create, parameters)
            return engine.Stored(self, reference, fixed=True)
        connection = self._connections.open()
        try:
            if of:
                _run(connection, f"{_BEGIN} READ WRITE")
            _run(connection, create, parameters)
            self.check(partial(_run, connection), of)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return engine.Stored(
            PostgreSQL(Connections(self._connections.login, connection)), reference, fixed=True
        )


def _types(rows: list[Any]) -> dict[str, str]:
    """Return the types of columns, or raise."""
    if any(row[2] == "v" for row in rows):
        raise InvalidTypeError(
            "table has virtual generated columns, which may call functions that are not "
            "deterministic; store them"
        )
    return {row[0]: row[1] for row in rows}


def _run(connection: Any, text: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
    """Run a statement with ``$1``, which may take long. psycopg cancels it at an interrupt."""
    from psycopg import RawCursor  # in which % of a name is no trap

    def execute() -> list[Any]:
        with RawCursor(connection) as cursor:
            cursor.execute(text.encode(), list(parameters) or None)
            return cursor.fetchall() if cursor.description else []

    return interruptible(execute)


# Connections to PostgreSQL of our own: each statement takes one, and puts it back.
#
# What a session can change in the meaning of a statement is set when a connection is opened: where
# functions and operators are looked up, how texts, arrays and literals are read, which rows are
# seen, and that nothing ends it but us. A server, a database or a login may have other defaults.

_OWN = "SET search_path TO pg_catalog"  # no function, operator or type of a user is found
SETTINGS = {
    "array_nulls": "on",  # or NULL in an array of public values is the text 'NULL'
    "quote_all_identifiers": "off",  # or names of types have quotes
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "row_security": "off",  # a policy that would hide rows is an error
    "default_transaction_isolation": "read committed",  # no error because others write
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "lock_timeout": "0",
}
_SESSION = f"""
    SELECT set_config(s.name, v.value, false)
    FROM pg_settings AS s
    JOIN (VALUES {", ".join(f"('{name}', '{value}')" for name, value in SETTINGS.items())})
        AS v (name, value) USING (name)
"""


class Connections:
    """As many connections as statements run at once. Each statement is a transaction, unless told.

    :param login: where to connect to, which may have a password
    :param only: the connection that has temporary tables, for one statement at a time
    """

    def __init__(self, login: dict[str, Any], only: Any = None) -> None:
        self.login, self.only, self._turn = login, only, Lock()
        self._idle = deque[Any]([] if only is None else [only])
        self.close = finalize(self, _close, self._idle, os.getpid())

    def open(self) -> Any:
        """Open a connection."""
        from psycopg import connect

        made = connect(**self.login, autocommit=True, prepare_threshold=None)
        try:
            for text in (_OWN, _SESSION):
                made.execute(text)
        except BaseException:
            made.close()
            raise
        return made

    @contextmanager
    def one(self) -> Iterator[Any]:
        """Take a connection of psycopg; it is closed if something goes wrong on it.

        If there is only one, a statement that fails leaves its tables as they are.
        """
        if self.only is not None:
            with self._turn:
                yield self.only
            return
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self.open()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)


def _close(idle: deque[Any], process: int) -> None:
    """Close connections, in the process that opened them."""
    while idle and os.getpid() == process:
        idle.pop().close()
