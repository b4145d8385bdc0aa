"""What an engine does for a table: it runs plans, stores rows, and checks what it reads.

An error of an engine says nothing about the data: it is always the same, and the cause goes to the
log. Rendering needs the extra, so it is imported when a table is scanned, once.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from .. import errors
from .._opendp import uninterruptible
from .plan import Aggregate, FoundKeys, Relation, Scan, Select, moving
from .schema import Decimal as DecimalType
from .schema import Schema, Type, kind_of, spelled


@lru_cache(maxsize=1)
@uninterruptible
def rendering() -> Any:
    """Return the module that renders plans.

    An interrupt during its import would leave modules of sqlglot behind that are imported in part,
    with which each launch of the process would fail after its charge. So no launch imports it.
    """
    return import_module("opendp_concurrent.tables.render")


FEW, ROWS_OF_FEW = 50, 10  # units, and rows of each: scan asks whether these are units
LOOKED_AT = 10_000  # rows, before all are counted
DIGITS_READ = 18  # of decimals, which as integers then have 64 bits
DECIMAL = re.compile(r"(?i:decimal|numeric)\(([0-9]+), ?([0-9]+)\)")
LOGGER = logging.getLogger("opendp_concurrent.tables")
Rows = list[tuple[Any, ...]]  # of integers; of found keys, the values of a key, then integers
Scans = tuple[Scan, ...]
T = TypeVar("T")
Run = Callable[[str, tuple[Any, ...]], list[Any]]  # runs a statement, and returns its rows


@dataclass(frozen=True, eq=False)
class Stored:
    """A stored table, until nobody needs it.

    :ivar engine: the engine that sees it
    :ivar reference: its reference there
    :ivar drop: drops it
    :ivar fixed: whether its rows no longer change
    """

    engine: Engine
    reference: tuple[str, ...]
    drop: Callable[[], object] = tuple  # nothing: what is stored dies with its engine
    fixed: bool = False


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return names for a message, which may be of any length."""
    text = between.join(names)
    return text if len(text) <= errors.SHOWN else f"{text[: errors.SHOWN]}..."


class Engine(ABC):
    """Runs statements on one connection, from any thread.

    :ivar dialect: name of the rendering in ``dialects.py``
    :ivar stored: for each type of a schema, the names of the engine's types that it reads: a cast
        of these cannot fail and does not round
    """

    dialect: ClassVar[str]
    stored: ClassVar[dict[type, frozenset[str]]]

    def ask(self, relation: Relation, of: Aggregate) -> Rows:
        """Return the rows of an aggregate: integers, after the values of a key that was found.

        :raises TableError: always the same, if the engine fails
        """
        query, scans = self.query(relation, of), moving(relation)
        return opaque(lambda: integers(self.run(*query, scans), of))

    def query(self, relation: Relation, of: Aggregate | None = None) -> tuple[str, tuple[Any, ...]]:
        """Return the query of an aggregate, or of all rows, and its parameters."""
        found: tuple[str, tuple[Any, ...]] = rendering().statement(self.dialect, relation, of)
        return found

    def store(self, relation: Relation) -> Stored:
        """Store the rows of a relation until they are dropped.

        :raises TableError: always the same
        """
        query, of = self.query(relation), moving(relation)
        return opaque(lambda: self.materialize(*query, of))

    def open(self, table: tuple[str, ...], schema: Schema) -> Stored:
        """Return what is scanned: a stored table or a file, or what has been read of a file.

        What can fail on rows fails here, before the owner, and not when a statement runs. It takes
        as long as it takes.

        :param table: its name, or its schema and its name, or a path where the engine reads files
        :raises InvalidTypeError, InvalidValueError: naming the argument, without the text of a row
        :raises TableError: always the same, if the engine fails
        """
        reference = self.reference(table)
        self.check_columns(self.columns(reference), schema)
        return Stored(self, reference)

    def units(self, scan: Scan) -> tuple[int, int]:
        """Return the numbers of units and of rows, of some rows if there are many; for the owner.

        :raises TableError: always the same, if the engine fails
        """
        text, parameters = self.query(Select(scan, scan.schema.keep(())))

        def counted(rows: str) -> tuple[int, int]:
            distinct, every = (f"SELECT {how} * FROM ({rows}) AS t" for how in ("DISTINCT", ""))
            query = f"SELECT (SELECT COUNT(*) FROM ({distinct}) AS u), COUNT(*) FROM ({every}) AS v"
            ((units, found),) = opaque(lambda: self.run(query, parameters))
            return int(units), int(found)

        units, found = counted(f"SELECT * FROM ({text}) AS s LIMIT {LOOKED_AT}")
        return (units, found) if units > FEW else counted(text)

    def type_of(self, stored: str) -> Type | None:
        """Return the type of a schema that reads a stored type, if there is one."""
        decimal = DECIMAL.fullmatch(stored)
        if decimal is not None:
            return DecimalType(int(decimal[2])) if int(decimal[1]) <= DIGITS_READ else None
        name = stored.partition("(")[0]
        return next((kind for kind, names in self.stored.items() if name in names), None)

    def check_columns(self, columns: dict[str, str], schema: Schema) -> None:
        """Raise unless a stored table has the columns of the schema, in types that are read.

        :param columns: the engine's names of the types of its columns
        """
        for name, kind in schema.columns:
            if name not in columns:
                raise errors.InvalidValueError(
                    f"schema[{name!r}] must be a column of the table, which has: "
                    f"{', '.join(columns)}"
                )
            if self.type_of(columns[name]) != kind:
                raise errors.InvalidTypeError(
                    f"schema[{name!r}] ({spelled(kind)}) cannot read the stored type "
                    f"{columns[name]}, because a cast could fail or round; it reads: "
                    f"{', '.join(sorted(self.stored[kind_of(kind)]))}, and DECIMAL(p, s) by "
                    f"oc.tables.Decimal(s) up to {DIGITS_READ} digits; store the column in one "
                    "of these"
                )

    @abstractmethod
    def reference(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the reference of a stored table, or raise.

        :param table: its name, or its schema and its name, or a path where the engine reads files
        """

    @abstractmethod
    def columns(self, reference: tuple[str, ...]) -> dict[str, str]:
        """Return the engine's names of the types of a stored table's columns, or raise.

        Refuses what need not give the same rows twice, such as a view.
        """

    @abstractmethod
    def beside(self, other: Engine) -> Engine | None:
        """Return an engine whose statements read the tables of both; None if there is none."""

    @abstractmethod
    def check(self, run: Run, of: Scans) -> None:
        """Raise unless what :meth:`open` has checked in the catalogue still holds.

        It is called after the statement that reads the table, in its transaction, so that it is
        about the table that was read. If it raises, nobody gets the answer: a statement on other
        types, or on a view, could fail or not by its rows.

        :param of: what the statement scans and may still change
        """

    @abstractmethod
    def run(self, text: str, parameters: tuple[Any, ...] = (), of: Scans = ()) -> list[Any]:
        """Run a statement, and return its rows.

        :param of: what :meth:`check` is about
        """

    @abstractmethod
    def materialize(self, text: str, parameters: tuple[Any, ...], of: Scans) -> Stored:
        """Store the rows of a query in a table that others do not see.

        :param of: what :meth:`check` is about
        """


def quoted(*names: str) -> str:
    """Return a name in standard SQL, with what it is part of before it."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


@uninterruptible
def opaque(function: Callable[[], T]) -> T:
    """Return ``function()``; log an error, and raise one that does not tell of the data."""
    try:
        return function()
    except BaseException as error:
        errors.pass_interrupt(error)
        errors.log(LOGGER, "an engine could not run a statement", error)
    raise errors.TableError  # out here, where it has no context


def integers(rows: list[Any], of: Aggregate) -> Rows:
    """Return rows whose integers are of Python, or raise."""
    values = len(of.by) if isinstance(of, FoundKeys) else 0
    return [(*row[:values], *map(_integer, row[values:])) for row in rows]


def _integer(value: errors.Argument) -> int:
    if type(value) is int:
        return value
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    raise TypeError("a statement has returned what is no integer")
