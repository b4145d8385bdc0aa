"""DuckDB: each statement has a cursor of its own, so that threads run side by side."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from glob import glob
from typing import Any, ClassVar
from uuid import uuid4
from warnings import warn
from weakref import WeakSet

from .. import errors
from .._opendp import interruptible, uninterruptible
from .csv_file import Csv, is_code, is_csv, names_in, open_line, reader_of, value_of
from .engine import LOGGER, Engine, Run, Scans, Stored, listed, opaque, quoted
from .schema import Schema, spelled

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_PROPOSED = (int, float, bool, date, datetime)
_COLUMNS = """
    SELECT c.column_name, c.data_type, t.sql
    FROM duckdb_columns() AS c
    JOIN duckdb_tables() AS t USING (database_name, schema_name, table_name)
    JOIN duckdb_databases() AS d USING (database_name)
    WHERE d.type = 'duckdb'
    AND c.database_name = $1 AND c.schema_name = $2 AND c.table_name = $3
"""
_OWN = "SET search_path = 'system.main'"  # of a cursor: no macro is found there, so none shadows
_PATTERN = frozenset("*?[]")
_OPEN: WeakSet[DuckDB] = WeakSet()


@atexit.register
def _let_go() -> None:
    """Let go of connections: at exit OpenDP frees no data, and DuckDB prints what is not freed."""
    for engine in list(_OPEN):
        engine._connection = None


class DuckDB(Engine):
    """A DuckDB connection: tables, and Parquet and CSV files by their paths."""

    dialect = "duckdb"
    stored: ClassVar = {
        int: frozenset(_INTEGERS),
        float: frozenset({"FLOAT", "DOUBLE"}),
        str: frozenset({"VARCHAR", "UUID", "ENUM"}),
        bool: frozenset({"BOOLEAN"}),
        date: frozenset({"DATE"}),
        datetime: frozenset(
            {"TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP WITH TIME ZONE"}
        ),
    }

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        _OPEN.add(self)
        self._files: frozenset[tuple[str, tuple[int, ...]]] = frozenset()  # checked by scans

    def reference(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the reference of a stored table, or of files by their paths, or raise.

        A pattern with ``*`` or ``?`` stands for the files that are there now, in their order.
        """
        *_, last = table
        kind = _kind_of(last)
        if kind is None:
            return self._stored_table(table)
        paths = list[str]()
        for path in table:
            paths += sorted(glob(path)) if _PATTERN & set(path) else [path]
        found = all(os.path.isfile(one) and not _PATTERN & set(one) for one in paths)
        if set(map(_kind_of, paths)) != {kind} or not found:
            raise errors.InvalidValueError(
                f"table ({listed(table)}) must be the path of a .parquet or .csv file that "
                "exists, or paths of several of one kind, without brackets, or the name of a "
                "stored table"
            )
        return kind, *map(os.path.abspath, paths)

    def open(self, table: tuple[str, ...], schema: Schema) -> Stored:
        """Return a stored table, or Parquet files whose rows can be read."""
        kind, *paths = self.reference(table)
        if kind == "table":
            return super().open(table, schema)
        self._files = frozenset((path, _state(path)) for path in paths)
        found = super().open(tuple(paths), schema)
        # each value is read once: a text that is not in UTF-8 is an error of the reader
        values = ", ".join(map(quoted, schema.names))
        self._of_parquet(f"SELECT bit_xor(hash({values}))", paths)
        return found

    def _of_parquet(self, values: str, paths: list[str]) -> list[Any]:
        """Return what values in files are, or raise without the text of a row."""
        text = f"{values} FROM read_parquet($1, hive_partitioning = false)"
        with suppress(errors.TableError):
            return opaque(lambda: self.run(text, (paths,)))
        raise errors.InvalidValueError(
            f"table ({listed(paths)}) must be Parquet files whose rows DuckDB can read, with "
            "texts in UTF-8; what it could not read is in the log (opendp_concurrent.tables)"
        )

    def open_csv(self, table: tuple[str, ...], schema: Schema, written: Csv) -> Stored:
        """Store the columns of CSV files, and warn of fields that are no values."""
        _, *paths = self.reference(table)
        texts, parts = list[Stored](), list[str]()
        try:
            for path in paths:  # a comprehension is a frame before Python 3.12: the warning counts
                parts.append(self._values(texts, path, schema, written))
            return opaque(lambda: self._create(f"AS {' UNION ALL '.join(parts)}"))
        finally:
            for one in texts:
                one.drop()

    def _values(self, texts: list[Stored], path: str, schema: Schema, written: Csv) -> str:
        """Return a query of the values in a CSV file, or raise without the text of a row."""
        names = names_in(written, path)
        for name in schema.names:
            if [one for one in names if one.casefold() == name.casefold()] != [name]:
                # the header is not shown: in a file without one, it is a row
                raise _no_csv(path, f"line 1 must have {name!r} once, in this spelling, as a name")
        places = {name: f"c{names.index(name)}" for name in schema.names}
        texts.append(self._texts(path, written, len(names), places.values()))
        source, values, asked = quoted(*texts[-1].reference[1:]), list[str](), list[str]()
        for name, kind in schema.columns:
            value = value_of(written, places[name], kind)
            lost = f"{places[name]} IS NOT NULL AND {value} IS NULL"
            values.append(f"{value} AS {quoted(name)}")
            asked.append(f"count_if({lost}), min(rowid) FILTER (WHERE {lost})")
        query = f"SELECT {', '.join(asked)} FROM {source}"
        ((*found,),) = opaque(lambda: self.run(query))
        at_first = 2 if written.header is None else 1  # line, if no field has the end of a line
        told = [
            f"{name} ({spelled(kind)}): {many}, the first in line {first + at_first}"
            for (name, kind), many, first in zip(
                schema.columns, found[::2], found[1::2], strict=True
            )
            if many
        ]
        if told:
            warn(
                f"table ({path!r}) has fields that are no values of their types; they are NULL: "
                f"{'; '.join(told)}. Timestamps are in ISO 8601, such as 2013-01-01T10:00:00Z",
                errors.ScanWarning,
                stacklevel=4,
            )
        return f"SELECT {', '.join(values)} FROM {source}"

    @uninterruptible
    def _texts(self, path: str, written: Csv, fields: int, wanted: Iterable[str]) -> Stored:
        """Store the fields of a CSV file, or raise with the first line that is no record."""
        reader = reader_of(written, path, fields)
        line: object = None
        try:
            stored = self._create(f"AS SELECT {', '.join(wanted)} FROM {reader}")
            line = open_line(written, path)
            if line is None:
                return stored
            stored.drop()
        except BaseException as error:
            errors.pass_interrupt(error)
            errors.log(LOGGER, "a CSV file could not be read", error)
            (line,) = re.findall("on Line: ([0-9]+)", str(error))[:1] or ["1 or another one"]
        raise _no_csv(path, f"line {line} is no such record")  # out here, where it has no context

    def _stored_table(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the database, the schema and the name of a stored table, or raise."""
        names = self._fetch(
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() "
            "JOIN duckdb_databases() USING (database_name) "
            "WHERE table_name = $1 AND type = 'duckdb' ORDER BY ALL",
            (table[-1],),
        )
        found = [  # databases that `_create` has attached are not scanned by name
            one
            for one in names
            if one[-len(table) :] == table and not re.fullmatch("oc_[0-9a-f]{32}", one[0])
        ]
        if len(found) != 1:
            raise errors.InvalidValueError(
                f"table ({listed(table, '.')}) must be the name of one stored table, spelled as it "
                "is stored, with its schema if there are several, or the path of a .parquet or "
                f".csv file; found {len(found)} tables. A view is refused: it may call functions "
                "that are not deterministic, or read rows of other units"
            )
        return ("table", *found[0])

    def csv_proposal(self, table: tuple[str, ...], written: Csv) -> list[tuple[str, str]]:
        """Return the first types that all texts of a column have; str for codes."""
        _, path, *_ = self.reference(table)
        names = names_in(written, path)
        if not names:
            raise _no_csv(path, "it has no line")
        columns = [f"c{at}" for at in range(len(names))]
        texts = self._texts(path, written, len(names), columns)
        source = quoted(*texts.reference[1:])
        types = dict.fromkeys(columns, min(self.stored[str]))  # any of those that a type reads
        try:
            for kind in reversed(_PROPOSED):
                code = " AND NOT {}" if kind in (int, float) else ""
                fits = ", ".join(
                    f"bool_and({value_of(written, one, kind)} IS NOT NULL"
                    f"{code.format(is_code(written, one))}) FILTER (WHERE {one} IS NOT NULL)"
                    for one in columns
                )
                ((*found,),) = opaque(partial(self.run, f"SELECT {fits} FROM {source}"))
                known = zip(columns, found, strict=True)
                types.update((one, min(self.stored[kind])) for one, fit in known if fit)
        finally:
            texts.drop()
        return list(zip(names, types.values(), strict=True))

    def columns(self, reference: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the columns, or raise."""
        kind, *parts = reference
        if kind != "parquet":
            return self._columns(self._fetch, parts)
        each = [self._of_parquet("DESCRIBE SELECT *", [path]) for path in parts]
        columns = [{row[0]: row[1] for row in rows} for rows in each]
        for path, found in zip(parts, columns, strict=True):
            if found != columns[0]:
                raise errors.InvalidTypeError(
                    f"table must have the same columns, in the same types, in each file: those of "
                    f"{path!r} differ from those of {parts[0]!r}"
                )
        return columns[0]

    def _columns(self, run: Run, parts: list[str]) -> dict[str, str]:
        """Return the types of the columns of a stored table, or raise."""
        rows = run(_COLUMNS, tuple(parts))
        if any(" GENERATED ALWAYS AS" in sql.upper() for _, _, sql in rows):
            raise errors.InvalidTypeError(
                "table has generated columns, which may call functions that are not "
                "deterministic; store them"
            )
        return {name: kind for name, kind, _ in rows}

    def beside(self, other: Engine) -> Engine | None:
        """Return an engine that checks the files of both, if they have one connection."""
        if not isinstance(other, DuckDB) or other._connection is not self._connection:
            return None
        made = DuckDB(self._connection)
        made._files = self._files | other._files  # two states of one file are refused
        return made

    def check(self, run: Run, of: Scans) -> None:
        """Raise unless what was scanned is tables of types that are read, or the same files."""
        for one in of:
            if one.reference[0] == "table":
                columns = self._columns(run, list(one.reference[1:]))
                self.check_columns(columns, one.schema)
        self._check_files()

    @uninterruptible
    def _fetch(self, text: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        with self._opened() as cursor:
            return _execute(cursor, text, parameters)

    def run(self, text: str, parameters: tuple[Any, ...] = (), of: Scans = ()) -> list[Any]:
        """Run a statement on a cursor of its own."""
        if of:
            with self._begun() as run:  # the catalogue of a transaction does not change
                found = run(text, parameters)
                self.check(run, of)
            return found
        with self._opened() as cursor:
            found = _execute(cursor, text, parameters)
        self._check_files()
        return found

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open a cursor that calls functions of DuckDB only, whatever macros a database has.

        Macros are looked up in the search path, before functions and operators of the same name.
        Tables are named with their database and schema.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(_OWN)
            yield cursor

    def _check_files(self) -> None:
        """Raise if a file is another one than at scan, whatever its rows are now.

        Else a launch would fail or not by rows that were not checked before the owner.
        """
        if any(_state(path) != known for path, known in self._files):
            raise ValueError("a file has changed since it was scanned; scan it again")

    @contextmanager
    def _begun(self) -> Iterator[Run]:
        """Begin a transaction; commit it, or roll back if something raises."""
        with self._opened() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            try:
                yield partial(_execute, cursor)
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(Exception):  # an error may have ended the transaction
                    cursor.execute("ROLLBACK")
                raise

    def materialize(self, text: str, parameters: tuple[Any, ...], of: Scans) -> Stored:
        """Store rows in a database in memory, which all cursors of the connection see."""
        return self._create(f"AS {text}", parameters, of)

    def _create(self, text: str, parameters: tuple[Any, ...] = (), of: Scans = ()) -> Stored:
        """Create a table in a database in memory."""
        name = f"oc_{uuid4().hex}"

        def drop() -> None:
            with self._connection.cursor() as cursor:
                cursor.execute(f'DETACH DATABASE IF EXISTS "{name}"')

        self._fetch(f"ATTACH ':memory:' AS \"{name}\" (READ_WRITE)")
        try:
            self.run(f'CREATE TABLE "{name}".main."{name}" {text}', parameters, of)
        except BaseException:
            drop()
            raise
        return Stored(DuckDB(self._connection), ("table", name, "main", name), drop, fixed=True)


FRAME = "oc_frame"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A frame of Polars, which DuckDB then reads without PyArrow."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


class Frame(DuckDB):
    """A frame of pandas, or of Arrow, that DuckDB reads where it is; its rows are to be copied."""

    def __init__(self, connection: Any, frame: Any) -> None:
        super().__init__(connection)
        self._frame = frame

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with super()._opened() as cursor:
            cursor.execute("SET pandas_analyze_sample = 10_000_000")  # of columns of objects
            cursor.register(FRAME, self._frame)
            yield cursor

    def reference(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the reference of the frame."""
        del table
        return "table", "temp", "main", FRAME

    def columns(self, reference: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the columns: of nanoseconds only if these are no microseconds."""
        del reference
        columns = {name: kind for name, kind, *_ in self._of_frame("DESCRIBE SELECT *")}
        fine = [name for name, kind in columns.items() if kind == "TIMESTAMP_NS"]
        for name in fine:
            ((rounded,),) = self._of_frame(f"SELECT bool_or(epoch_ns({quoted(name)}) % 1000 <> 0)")
            columns[name] = "TIMESTAMP_NS" if rounded else "TIMESTAMP"
        return columns

    def _of_frame(self, values: str) -> list[Any]:
        return opaque(lambda: self._fetch(f"{values} FROM temp.main.{FRAME}"))

    def check(self, run: Run, of: Scans) -> None:
        """Check nothing: the frame is read once, before its owner."""


def _execute(cursor: Any, text: str, parameters: tuple[Any, ...]) -> list[Any]:
    return interruptible(lambda: cursor.execute(text, list(parameters)).fetchall())


def _state(path: str) -> tuple[int, ...]:
    """Return what changes with a file."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _no_csv(path: str, reason: str) -> errors.InvalidValueError:
    return errors.InvalidValueError(
        f"table ({path!r}) must be a CSV file as csv= says, by default in UTF-8 with commas, in "
        "which each line has as many fields as the first; for semicolons and decimal commas pass "
        "csv=oc.tables.Csv(separator=';', decimal=','). Found: "
        f"{reason}. What could not be read is in the log (opendp_concurrent.tables)"
    )


def _kind_of(path: str) -> str | None:
    if is_csv(path):
        return "csv"
    return "parquet" if path.lower().endswith(".parquet") else None
