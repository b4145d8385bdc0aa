"""Tables of our own in the engine of a table: budgets, seals. For mechanisms only.

All tables of one name are created together. One of them, ``name_terms``, has one row: for what the
others stand. A transaction first changes this row, which makes two transactions exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..errors.data import TableError
from .engines.engine import Run, quoted
from .schema import column_name
from .table import Table

VERSION = 1
LONGEST = 50  # bytes of a name: PostgreSQL cuts names at 63, and suffixes are added
PARTS = 3  # of a name: database, schema and table


def scanned(**argument: Any) -> Table:
    """Return a table, or raise."""
    ((name, table),) = argument.items()
    if type(table) is not Table:
        raise InvalidTypeError(
            f"{name} must be of oc.tables.scan(...), found {type(table).__name__}"
        )
    return table


def budgets_name(**argument: Any) -> tuple[str, ...]:
    """Return the parts of the name of our own tables, or raise."""
    ((place, given),) = argument.items()
    parts = (given,) if isinstance(given, str) else checks.sequence("names", **argument)
    if not 1 <= len(parts) <= PARTS:
        raise InvalidValueError(
            f"{place} ({checks.shown(given)}) must be a name, or a schema and a name"
        )
    found = tuple(column_name(**{place: one}) for one in parts)
    if any(one.lower().startswith("pg_") for one in found):
        raise InvalidValueError(
            f"{place} ({checks.shown(given)}) must not begin with pg_, as PostgreSQL's own schemas "
            "do: a temporary table would forget what was spent"
        )
    if len(found[-1].encode()) > LONGEST:
        raise InvalidValueError(f"{place} ({found[-1]}) must be a name of at most {LONGEST} bytes")
    return found


class OwnTables:
    """Tables of our own, of one name.

    :param table: in whose engine they are
    :param name: its parts
    :param kind: what they are, in a word that is the argument's name
    :raises InvalidTypeError, InvalidValueError: if the engine cannot keep them
    """

    def __init__(self, table: Table, name: tuple[str, ...], kind: str) -> None:
        self.table, self.engine, self.kind = table, table.engine(), kind
        self.engine.check_writable()
        self.shown, self._first = ".".join(name), self.engine.place_of(name)

    def place(self, suffix: str = "") -> str:
        """Return a table's name in SQL."""
        _, *names, last = self._first
        return quoted(*names, last + suffix)

    def reference(self, suffix: str = "") -> tuple[str, ...]:
        """Return a table's reference in the engine."""
        return (*self._first[:-1], self._first[-1] + suffix)

    def create(self, statements: Iterable[tuple[str, tuple[Any, ...]]], *suffixes: str) -> None:
        """Create the tables of these suffixes, or raise."""

        def work(run: Run) -> None:
            for text, parameters in statements:
                run(text, parameters)
            for suffix in suffixes:
                self.engine.close_off(run, self.reference(suffix))

        try:
            self.engine.transact(work, self.table.timeout)
        except TableError:
            raise InvalidValueError(
                f"{self.kind} ({self.shown}) must be the name of new tables in a schema where the "
                "connection may create tables; why it could not is in the log "
                "(opendp_concurrent.tables)"
            ) from None

    def terms(self, columns: str) -> tuple[Any, ...]:
        """Return columns of the row of terms, or raise."""
        text = f"SELECT version, {columns} FROM {self.place('_terms')}"
        try:
            rows = self.engine.transact(lambda run: run(text, ()), self.table.timeout)
        except TableError:
            rows = []
        if len(rows) != 1 or rows[0][0] != VERSION:
            raise InvalidValueError(
                f"{self.kind} ({self.shown}) must be made by oc.tables.create_{self.kind}, in the "
                "database of the table"
            )
        return tuple(rows[0][1:])

    def transact(self, work: Any, update: str, parameters: tuple[Any, ...]) -> Any:
        """Return ``work(run, number)`` of a transaction that first changes the row of terms.

        :param update: what is changed, where, and the number that is returned
        """

        def locked(run: Run) -> Any:  # another transaction waits here, or fails
            numbers = run(f"UPDATE {self.place('_terms')} SET {update}", parameters)
            if len(numbers) != 1:
                raise ValueError(f"the table of {self.kind} has changed")
            return work(run, numbers[0][0])

        return self.engine.transact(locked, self.table.timeout)
