"""What an engine does for a table."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import unquote

from ...errors import InvalidTypeError, InvalidValueError, TableError
from ...failures import log, pass_interrupt
from ...interrupts import whole
from ...shown import SHOWN
from ...types import Argument
from ..csv_file import Csv
from ..plan import Aggregate, FoundKeys, Relation, Scan, Select, moving
from ..schema import KINDS, Scales, Schema
from .rendered import rendering

FEW, ROWS_OF_FEW = 50, 10  # units, and rows of each: scan asks whether these are units
LOOKED_AT = 10_000  # rows, before all are counted
DIGITS_READ = 18  # of decimals, which as integers then have 64 bits
DECIMAL = re.compile(r"(?i:decimal|numeric)\(([0-9]+), ?([0-9]+)\)")
LOGGER = logging.getLogger("opendp_concurrent.tables")
Rows = list[tuple[int, ...]]
KeyRows = list[tuple[Any, ...]]  # the values of a key, then integers
Scans = tuple[Scan, ...]
Run = Callable[[str, tuple[Any, ...]], list[Any]]  # runs a statement, and returns its rows


def _nothing() -> None:
    """Drop nothing: what is stored dies with its engine."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored table.

    :ivar engine: the engine that sees it
    :ivar reference: its reference there
    :ivar drop: drops it
    :ivar fixed: whether its rows no longer change
    :ivar scales: as in a plan
    """

    engine: Engine
    reference: tuple[str, ...]
    drop: Callable[[], None] = _nothing
    fixed: bool = False
    scales: tuple[tuple[str, int], ...] = ()


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return names for a message, which may be of any length."""
    text = between.join(names)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


class Engine(ABC):
    """Runs statements on one connection, from any thread.

    :ivar dialect: name of the rendering in ``rendering/dialects.py``
    :ivar stored: for each type of a schema, the names of the engine's types that it reads: a cast
        of these cannot fail and does not round
    """

    dialect: ClassVar[str]
    stored: ClassVar[dict[type, frozenset[str]]]

    def ask(self, relation: Relation, aggregate: Aggregate, timeout: float | None) -> Rows:
        """Return the rows of integers of an aggregate.

        :raises TableError: always the same, if the engine fails or ``timeout`` seconds have passed
        """
        rows: Rows = self._asked(relation, aggregate, timeout, integers)
        return rows

    def keys(self, relation: Relation, found: FoundKeys, timeout: float | None) -> KeyRows:
        """Return the keys that the data have, and integers of each. They are secret.

        :raises TableError: always the same, if the engine fails or ``timeout`` seconds have passed
        """
        rows: KeyRows = self._asked(relation, found, timeout, lambda rows: list(map(tuple, rows)))
        return rows

    def _asked(
        self, relation: Relation, of: Aggregate, timeout: float | None, read: Callable[..., Any]
    ) -> Any:
        query, scans = self.query(relation, of), moving(relation)
        return opaque(lambda: read(self.run(*query, timeout, scans)))

    def query(self, relation: Relation, of: Aggregate | None = None) -> tuple[str, tuple[Any, ...]]:
        """Return the query of an aggregate, or of all rows, and its parameters."""
        found = rendering().statement(self.dialect, relation, of)
        return found.text, found.parameters

    def store(self, relation: Relation, timeout: float | None) -> Stored:
        """Store the rows of a relation until they are dropped.

        :raises InvalidValueError: if the login may not store any
        :raises TableError: always the same
        """
        self.check_storing()
        query, of = self.query(relation), moving(relation)
        stored: Stored = opaque(lambda: self.materialize(*query, timeout, of))
        return stored

    def fix(self, scan: Scan, timeout: float | None) -> Stored:
        """Return the scanned table as it is now, whatever happens to it later.

        :raises TableError: always the same
        """
        fixed: Stored = opaque(lambda: self.snapshot(scan, timeout))
        return fixed

    def snapshot(self, scan: Scan, timeout: float | None) -> Stored:
        """Copy the columns that are scanned."""
        return self.store(scan, timeout)

    def open(self, table: tuple[str, ...], schema: Schema, scales: Scales) -> Stored:
        """Return what is scanned: a stored table or a file, or what has been read of a file.

        What can fail on rows fails here, before the owner, and not when a statement runs. It takes
        as long as it takes.

        :param table: its name, or its schema and its name, or a path where the engine reads files
        :param scales: of the columns that are stored as decimals
        :raises InvalidTypeError, InvalidValueError: naming the argument, without the text of a row
        :raises TableError: always the same, if the engine fails
        """
        reference = self.reference(table)
        self.check_columns(self.columns(reference), schema, scales)
        return Stored(self, reference, scales=tuple(scales.items()))

    def open_csv(
        self, table: tuple[str, ...], schema: Schema, scales: Scales, written: Csv
    ) -> Stored:
        """Return what is read of CSV files, once, or raise; warn of fields that are no values.

        :param written: how the files are written
        """
        raise _not_here(table)

    def few_units(self, scan: Scan) -> tuple[int, int] | None:
        """Return the numbers of units and of rows, if there are few units; for the owner.

        :raises TableError: always the same, if the engine fails
        """
        text, parameters = self.query(Select(scan, scan.schema.keep(())))
        some = f"SELECT * FROM ({text}) AS s LIMIT {LOOKED_AT}"

        def counted(rows: str, distinct: str = "") -> int:
            query = f"SELECT COUNT(*) FROM (SELECT {distinct} * FROM ({rows}) AS t) AS u"
            ((found,),) = opaque(lambda: self.run(query, parameters, None))
            return int(found)

        if counted(some, "DISTINCT") > FEW:
            return None
        units, rows = counted(text, "DISTINCT"), counted(text)
        return (units, rows) if units <= FEW and rows >= ROWS_OF_FEW * units > 0 else None

    def proposal(self, table: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return the columns of what could be scanned and their stored types, or raise."""
        return list(self.columns(self.reference(table)).items())

    def csv_proposal(self, table: tuple[str, ...], written: Csv) -> list[tuple[str, str]]:
        """Return the columns of a CSV file, and the stored types that all texts have; or raise."""
        raise _not_here(table)

    def kind_of(self, stored: str) -> type | None:
        """Return the type of a schema that reads a stored type, if there is one."""
        name = stored.partition("(")[0]
        return next((kind for kind, names in self.stored.items() if name in names), None)

    def check_columns(self, columns: dict[str, str], schema: Schema, scales: Scales) -> None:
        """Raise unless a stored table has the columns of the schema, in types that are read.

        :param columns: the engine's names of the types of its columns
        """
        for name, kind in schema.columns:
            if name not in columns:
                raise InvalidValueError(
                    f"schema[{name!r}] must be a column of the table, which has: "
                    f"{', '.join(columns)}"
                )
            scale = scales.get(name)
            if scale is None:
                read = self.kind_of(columns[name]) is kind
            else:
                found = DECIMAL.fullmatch(columns[name])
                read = (
                    found is not None and (int(found[1]) <= DIGITS_READ) and int(found[2]) == scale
                )
            if not read:
                raise InvalidTypeError(
                    f"schema[{name!r}] ({KINDS[kind]}) cannot read the stored type "
                    f"{columns[name]}, because a cast could fail or round; it reads: "
                    f"{', '.join(sorted(self.stored[kind]))}, and DECIMAL(p, s) by "
                    f"oc.tables.Decimal(s) up to {DIGITS_READ} digits; store the column in one "
                    "of these"
                )

    def check_storing(self) -> None:  # noqa: B027
        """Raise if the login may not store rows of its own; this never depends on rows."""

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
    def run(
        self, text: str, parameters: tuple[Any, ...], timeout: float | None, of: Scans = ()
    ) -> list[Any]:
        """Run a statement, and return its rows.

        :param of: what :meth:`check` is about
        """

    @abstractmethod
    def materialize(
        self, text: str, parameters: tuple[Any, ...], timeout: float | None, of: Scans
    ) -> Stored:
        """Store the rows of a query in a table that others do not see.

        :param of: what :meth:`check` is about
        """


def quoted(*names: str) -> str:
    """Return a name in standard SQL, with what it is part of before it."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


@whole
def opaque(function: Callable[[], Any]) -> Any:
    """Return ``function()``; log an error, and raise one that does not tell of the data."""
    try:
        return function()
    except BaseException as error:
        pass_interrupt(error)
        log(LOGGER, "an engine could not run a statement", error)
    raise TableError  # out here, where it has no context


def check_folders(path: str, schema: Schema) -> None:
    """Raise if a folder on a path names a column of the schema, as ``person=1`` does.

    Engines can read the value of a column from such a folder, and guess its type from all of them.
    Here they do not, so that the column would be that of the file, or missing.
    """
    names = {name.casefold(): name for name in schema.names}
    for folder in path.replace("\\", "/").split("/")[:-1]:
        name = names.get(unquote(folder.partition("=")[0]).casefold())
        if "=" in folder and name is not None:
            raise InvalidValueError(
                f"table ({path!r}) must not be in a folder that names the column {name!r} of the "
                "schema: values are read from files only; store the column in the files, and "
                "rename the folder"
            )


def _not_here(table: tuple[str, ...]) -> InvalidValueError:
    return InvalidValueError(
        f"table ({listed(table)}) must be a stored table: CSV files are read by DuckDB only. Load "
        "the file into the database first, in columns of the types that you want, or leave the "
        "connection out: oc.tables.scan(path, schema, unit)"
    )


def integers(rows: list[Any]) -> Rows:
    """Return rows of integers, or raise."""
    return [tuple(map(_integer, row)) for row in rows]


def _integer(value: Argument) -> int:
    if type(value) is int:
        return value
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    raise TypeError("a statement has returned what is no integer")
