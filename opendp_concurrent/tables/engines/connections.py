"""Connections to PostgreSQL of our own: each statement takes one, and puts it back.

What a session can change in the meaning of a statement is set when a connection is opened: where
functions and operators are looked up, how texts, arrays and literals are read, which rows are seen,
and that nothing ends it but us. A server, a database or a login may have other defaults.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import finalize

from ...interrupts import Lock

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
    "default_transaction_deferrable": "off",
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


class Connected:
    """One connection: text with ``$1`` in, rows out. Each statement is a transaction, unless told.

    :param connection: of psycopg
    """

    def __init__(self, connection: Any) -> None:
        self._connection, self._milliseconds = connection, -1

    def execute(self, text: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Run a statement, and return its rows."""
        from psycopg import RawCursor  # in which % of a name is no trap

        with RawCursor(self._connection) as cursor:
            cursor.execute(text.encode(), list(parameters) or None)
            rows: list[Any] = cursor.fetchall() if cursor.description else []
        return rows

    def limit(self, milliseconds: int) -> None:
        """Let the server cancel statements that run longer; 0 is no limit."""
        if milliseconds != self._milliseconds:
            self.execute(f"SELECT set_config('statement_timeout', '{milliseconds}', false)")
            self._milliseconds = milliseconds

    def close(self) -> None:
        """Close the connection; what runs on it is cancelled by the server."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Login:
    """Where to connect, and what to run first on each connection."""

    parameters: dict[str, Any] = field(repr=False)  # they may have a password
    begin: tuple[str, ...] = ()

    @classmethod
    def of(cls, connection: Any) -> Login:
        """Return where a connection of psycopg is connected to."""
        known = {**connection.info.get_parameters(), "client_encoding": "UTF8"}
        if connection.info.password:
            known["password"] = connection.info.password
        return cls(known)


class Connections:
    """As many connections as statements run at once."""

    def __init__(self, login: Login) -> None:
        self.login, self._idle = login, deque[Connected]()
        self.close = finalize(self, _close, self._idle, os.getpid())

    def open(self) -> Connected:
        """Open a connection."""
        from psycopg import connect

        made = connect(**self.login.parameters, autocommit=True, prepare_threshold=None)
        try:
            found = Connected(made)
            for text in (_OWN, _SESSION, *self.login.begin):
                found.execute(text)
        except BaseException:
            made.close()
            raise
        return found

    @contextmanager
    def one(self) -> Iterator[Connected]:
        """Take a connection; it is closed if something goes wrong on it."""
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


class Kept:
    """One connection that has temporary tables, for one statement at a time."""

    def __init__(self, connection: Connected, login: Login) -> None:
        self._connection, self._turn, self.login = connection, Lock(), login
        finalize(self, _close, deque([connection]), os.getpid())

    @contextmanager
    def one(self) -> Iterator[Connected]:
        """Wait for the connection. A statement that fails leaves the tables as they are."""
        with self._turn:
            yield self._connection


def _close(idle: deque[Connected], process: int) -> None:
    """Close connections, in the process that opened them."""
    while idle and os.getpid() == process:
        idle.pop().close()
