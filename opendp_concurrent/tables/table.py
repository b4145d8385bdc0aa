"""A table that stays in its engine: the value that transformations pass on. It holds no rows."""

from __future__ import annotations

import os
from typing import Any
from weakref import finalize

from opendp.mod import Domain, Metric

from ..errors import InvalidTypeError
from ..errors.data import ForkedError
from .domain import Tables, table_domain, units
from .engines.engine import Engine, KeyRows, Rows, Stored
from .plan import Aggregate, FoundKeys, Relation, Scan


class Table:
    """A table in an engine, with what is known of it. Made by :func:`.scan`.

    It is immutable and shows no rows: not in ``repr``, by pickling, or in an error. Its connection
    is kept until the table and every queryable on it are freed.

    :ivar space: the domain and the metric of OpenDP, for constructors
    """

    __slots__ = ("__weakref__", "_engine", "_held", "_process", "_relation", "_timeout", "tables")
    is_table = True  # which the domain asks of the class

    def __init__(
        self,
        engine: Engine,
        relation: Relation,
        tables: Tables,
        timeout: float | None,
        held: tuple[Any, ...] = (),
    ) -> None:
        self._engine, self._relation, self.tables = engine, relation, tables
        self._timeout, self._held, self._process = timeout, held, os.getpid()

    @property
    def space(self) -> tuple[Domain, Metric]:
        """The domain of tables with this schema and these bounds, and the metric of units."""
        return table_domain(self.tables), units()

    def derived(self, relation: Relation, tables: Tables) -> Table:
        """Return a table whose plan goes on from this one's. Nothing runs."""
        return Table(self._engine, relation, tables, self._timeout, self._held)

    @property
    def relation(self) -> Relation:
        """The plan of this table, which has no data."""
        return self._relation

    def ask(self, aggregate: Aggregate) -> Rows:
        """Run one statement in the engine, and return its integers. For mechanisms only."""
        self._check_process()
        return self._engine.ask(self._relation, aggregate, self._timeout)

    def ask_keys(self, found: FoundKeys) -> KeyRows:
        """Run one statement in the engine, and return the keys of the data. For mechanisms only."""
        self._check_process()
        return self._engine.keys(self._relation, found, self._timeout)

    def engine(self) -> Engine:
        """Return the engine. For mechanisms only."""
        self._check_process()
        return self._engine

    @property
    def timeout(self) -> float | None:
        """Seconds after which a statement is cancelled."""
        return self._timeout

    def materialized(self) -> Table:
        """Return the same table, stored by the engine until it is freed."""
        self._check_process()
        return table_of(
            self._engine.store(self._relation, self._timeout), self.tables, self._timeout
        )

    def frozen(self) -> Table:
        """Return the same table, which no longer changes: as it is, if it is stored already."""
        return self if any(one.fixed for one in self._held) else self.materialized()

    def fixed(self) -> Table:
        """Return the same scanned table as it is now, until it is freed."""
        self._check_process()
        assert isinstance(self._relation, Scan)
        stored = self._engine.fix(self._relation, self._timeout)
        return table_of(stored, self.tables, self._timeout)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ForkedError

    def __repr__(self) -> str:
        return f"Table({self.tables})"

    def __reduce__(self) -> Any:
        raise InvalidTypeError("a table holds a connection to sensitive data: scan it again")


def table_of(stored: Stored, tables: Tables, timeout: float | None) -> Table:
    """Return a table of what is stored, which is dropped when nobody needs it."""
    scan = Scan(stored.reference, tables.schema, stored.fixed, stored.scales)
    return Table(stored.engine, scan, tables, timeout, (_Held(stored),))


class _Held:
    """Keeps a stored table until nobody needs it."""

    __slots__ = ("__weakref__", "fixed")

    def __init__(self, stored: Stored) -> None:
        self.fixed = stored.fixed
        finalize(self, _quietly, stored.drop)


def _quietly(drop: Any) -> None:
    """Drop a stored table; the connection may be closed already."""
    try:
        drop()
    except Exception:
        return
