"""Send the statements of a launch to the driver of a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Executable

FULL = "database or disk is full"  # SQLite's message
_ROWS = " VALUES "  # after it, an INSERT has its rows
_IN_ERROR = 3  # PQTRANS_INERROR


class DriverConnection:
    """A connection of SQLAlchemy, and the driver below it.

    All launches wait for the lock that a launch holds, so a launch calls the driver itself. It
    sends several statements to PostgreSQL in one message, because a round trip takes as long as the
    statements.
    """

    def __init__(self, connection: Connection, texts: dict[Executable, Any]) -> None:
        self.connection, self._texts = connection, texts
        driver: Any = connection.connection.driver_connection
        self._driver = driver
        self._embedded = connection.dialect.name == "sqlite"
        self.execute: Callable[..., Any] = driver.execute
        if not self._embedded:
            from psycopg import ClientCursor  # it binds values for several statements

            cursor = ClientCursor(driver)
            self.execute, self._mogrify = cursor.execute, cursor.mogrify

    def run(
        self, values: dict[str, Any], *statements: Executable, before: str = ""
    ) -> list[list[Any]]:
        """Execute statements, and return the rows of each. Each statement is compiled once.

        :param before: SQL to execute before them
        """
        if self._embedded:
            return self._one_by_one(values, statements, before)
        texts = [(self._texts.get(one) or self._compile(one))[0] for one in statements]
        cursor = self.execute("; ".join([before, *texts] if before else texts), values)
        for _ in range(before.count(";") + 1 if before else 0):
            cursor.nextset()
        found = []
        for _ in statements:
            found.append(cursor.fetchall() if cursor.description else [])
            cursor.nextset()
        return found

    def change(self, changes: list[tuple[Executable, dict[str, Any]]], after: str = "") -> None:
        """Execute statements with values of their own, to a server in one message.

        :param after: SQL to execute after them, in the same message; for a server
        """
        if self._embedded:
            for statement, values in changes:
                text, names = self._texts.get(statement) or self._compile(statement)
                self.execute(text, [values[name] for name in names])
            return
        texts: list[str] = []
        last: Executable | None = None
        for statement, values in changes:
            text = (self._texts.get(statement) or self._compile(statement))[0]
            if statement is last and _ROWS in text:  # one more row of the same statement
                texts[-1] += ", " + self._mogrify(text.partition(_ROWS)[2], values)
            else:
                texts.append(self._mogrify(text, values))
            last = statement
        self.execute("; ".join([*texts, after] if after else texts))

    def _one_by_one(self, values: dict[str, Any], statements: Any, before: str) -> list[list[Any]]:
        found = []
        if before:
            self.execute(before)
        for statement in statements:
            text, names = self._texts.get(statement) or self._compile(statement)
            found.append(self.execute(text, [values[name] for name in names]).fetchall())
        return found

    def _compile(self, statement: Any) -> tuple[str, list[str]]:
        compiled = statement.compile(self.connection)
        made = str(compiled), compiled.positiontup or []
        self._texts[statement] = made
        return made

    @property
    def in_transaction(self) -> bool:
        """Whether SQLite is in a transaction."""
        return self._embedded and bool(self._driver.in_transaction)

    def undone_for_lack_of_space(self, error: BaseException) -> bool:
        """Whether a commit to an SQLite file failed because the disk is full, and was undone.

        SQLite appends the changed pages to ``-wal``, and marks the last one as the commit [SQLite,
        file format, section 4.3]. If that page cannot be written, nobody reads those before it,
        also after a crash. A disk that fails in another way may have written it.
        """
        if not self._embedded or not str(error).startswith(FULL):
            return False
        try:
            if self._driver.in_transaction:
                self.execute("ROLLBACK")
        except Exception:
            return False
        return not self._driver.in_transaction

    @property
    def failed(self) -> bool:
        """Whether the server is in a transaction of which a statement has failed."""
        return not self._embedded and int(self._driver.info.transaction_status) == _IN_ERROR

    @property
    def lost(self) -> bool:
        """Whether the connection to the server is closed."""
        return not self._embedded and bool(self._driver.closed)

    def drop(self) -> None:
        """Close the connection, even in a transaction."""
        self.connection.invalidate()
        self.connection.close()
