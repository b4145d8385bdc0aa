"""Spark: statements run in a session of our own, whose settings nobody else changes."""

import json
from contextlib import suppress
from datetime import date, datetime
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from .._opendp import interruptible
from ..errors import InvalidTypeError, InvalidValueError, TableError
from .engine import Engine, Run, Scans, Stored, listed, opaque
from .schema import Schema

OWN = 2  # parts of the reference of a view in our own session, whose types cannot change
PROVIDERS = ("parquet", "orc", "avro", "delta", "iceberg")  # they store typed values
SETTINGS = {  # on which the meaning of a statement depends
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, and never wraps
    "spark.sql.variable.substitute": "false",  # ${x} in a name is no variable
    "spark.sql.parser.quotedRegexColumnNames": "false",  # nor is a name a pattern
    "spark.sql.caseSensitive": "false",
    "spark.sql.runSQLOnFiles": "true",
    "spark.sql.session.timeZone": "UTC",
    # rows that cannot be read are an error, and are not left out
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # a date before 1582 is read as it is, and is no error
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.mergeSchema": "false",
}
_OWN: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class Spark(Engine):
    """A session of Spark: tables of its catalog, and Parquet files and folders by their paths."""

    dialect = "spark"
    stored: ClassVar = {
        int: frozenset({"tinyint", "smallint", "int", "bigint"}),
        float: frozenset({"float", "double"}),
        str: frozenset({"string"}),
        bool: frozenset({"boolean"}),
        date: frozenset({"date"}),
        datetime: frozenset({"timestamp", "timestamp_ntz"}),
    }

    def __init__(self, connection: Any) -> None:
        if not hasattr(connection, "_jsparkSession"):
            raise InvalidTypeError(
                "connection must be a classic session of Spark, which has a SparkContext; settings "
                "of a session of Spark Connect can be changed while a statement runs"
            )
        own = _OWN.get(connection)
        if own is None:
            own = _OWN[connection] = connection.newSession()
            for name, value in SETTINGS.items():
                own.conf.set(name, value)
        self._session = own

    def reference(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """Return the reference of a stored table, or of a Parquet file or folder, or raise."""
        if _is_parquet(table[-1]):
            if any(_is_parquet(one) is any(each in one for each in "*?[]{}\\") for one in table):
                raise InvalidValueError(
                    f"table ({listed(table)}) must be paths that end with .parquet, without "
                    "patterns, or the name of a stored table"
                )
            return "parquet", *table
        try:
            found = self._session.catalog.getTable(_quoted(*table))
        except Exception:
            raise _no_table(table, "found none") from None
        if found.isTemporary or found.tableType not in ("MANAGED", "EXTERNAL"):
            raise _no_table(table, f"found one of type {found.tableType}")
        parts = [found.catalog, *(found.namespace or []), found.name]
        if len(parts) != 3:
            raise _no_table(table, "found one without a schema, or with several")
        (provider,) = [
            row.data_type
            for row in self._session.sql(f"DESCRIBE TABLE EXTENDED {_quoted(*parts)}").collect()
            if row.col_name == "Provider"
        ]
        if provider.lower() not in PROVIDERS:
            raise _no_table(table, f"found one that is stored as {provider}")
        return "table", *parts

    def open(self, table: tuple[str, ...], schema: Schema) -> Stored:
        """Return a stored table, or a view of Parquet files, whose rows can be read, or raise."""
        kind, *parts = self.reference(table)
        found = Stored(self, ("table", *parts))
        if kind == "parquet":
            found = self._of_files(parts)
        try:
            self.check_columns(self.columns(found.reference), schema)
            self._check_rows(found.reference[1:], schema)
        except BaseException:
            found.drop()
            raise
        return found

    def _of_files(self, paths: list[str]) -> Stored:
        """Return a view of the files that are there now."""
        name = f"oc_{uuid4().hex}"
        self._parquet(paths).createOrReplaceTempView(name)  # in our own session
        return Stored(self, ("table", name), lambda: self._session.catalog.dropTempView(name))

    def _parquet(self, paths: list[str]) -> Any:
        """Return the rows of files. Their folders are no columns."""
        try:
            for path in paths:
                self._session.catalog.refreshByPath(path)  # a session keeps the list of files
            return self._session.read.option("recursiveFileLookup", "true").parquet(*paths)
        except Exception:
            raise _not_readable(", ".join(paths)) from None

    def _check_rows(self, names: tuple[str, ...], schema: Schema) -> None:
        """Read each value once, or raise: files may hold other types, or be damaged."""
        spelled = _quoted(*names)
        values = ", ".join(map(_quoted, schema.names))
        text = f"SELECT bit_xor(xxhash64({values})) FROM {spelled}"
        with suppress(TableError):
            opaque(lambda: self.run(text))
            return
        raise _not_readable(spelled)

    def columns(self, reference: tuple[str, ...]) -> dict[str, str]:
        """Return the types of the columns, or raise.

        Spark keeps the list of the files of a table in a session; it is read anew here.
        """
        kind, *parts = reference
        fields = (self._parquet if kind == "parquet" else self._table)(parts).schema.fields
        if any("${" in field.name for field in fields):  # Hadoop reads another column, or none
            raise InvalidValueError(
                "table must have no column with ${ in its name, which Spark would replace by a "
                "setting; rename it"
            )
        return {field.name: field.dataType.simpleString() for field in fields}

    def _table(self, names: list[str]) -> Any:
        spelled = _quoted(*names)
        try:
            self._session.catalog.refreshTable(spelled)
            return self._session.table(spelled)
        except Exception:
            raise _not_readable(spelled) from None

    def beside(self, other: Engine) -> Engine | None:
        """Return this engine if the other one has its session."""
        return self if isinstance(other, Spark) and other._session is self._session else None

    def check(self, run: Run, of: Scans) -> None:
        """Raise unless the catalog still has such tables, in types that are read.

        Spark has no transactions: a change that is undone before the statement ends is not seen.
        """
        del run
        for scan in of:
            if len(scan.reference) > OWN:
                names = scan.reference[1:]
                self.reference(names)
                found = self._session.catalog.listColumns(_quoted(*names))
                types = {one.name: one.dataType for one in found}
                self.check_columns(types, scan.schema)

    def run(self, text: str, parameters: tuple[Any, ...] = (), of: Scans = ()) -> list[Any]:
        """Run a statement."""
        found = self._rows(text, parameters)
        self.check(self._rows, of)
        return found

    def materialize(self, text: str, parameters: tuple[Any, ...], of: Scans) -> Stored:
        """Store rows in the executors. If one of them is lost, statements fail; none runs anew."""
        name = f"oc_{uuid4().hex}"
        stored = interruptible(self._frame(text, parameters).localCheckpoint, True)  # eager
        self.check(self._rows, of)
        stored.createOrReplaceTempView(name)  # in our own session
        rows = stored._jdf  # whose blocks are freed when Java's collector finds it unused

        def drop() -> None:
            self._session.catalog.dropTempView(name)
            rows.queryExecution().toRdd().unpersist(False)

        return Stored(self, ("table", name), drop, fixed=True)

    def _rows(self, text: str, parameters: tuple[Any, ...]) -> list[Any]:
        return interruptible(self._frame(text, parameters).collect)

    def _frame(self, text: str, parameters: tuple[Any, ...]) -> Any:
        named = {f"p{place}": _sent(one) for place, one in enumerate(parameters, 1)}
        return self._session.sql(text, args=named)


def _sent(value: Any) -> str:
    """Return a parameter as a text; a list as JSON with texts of its values."""
    if type(value) is not list:
        text: str = value
        return text
    return json.dumps([None if one is None else str(one) for one in value])


def _is_parquet(path: str) -> bool:
    return path.lower().rstrip("/").endswith(".parquet")


def _quoted(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _not_readable(table: str) -> InvalidValueError:
    return InvalidValueError(
        f"table ({table!r}) must be a table or a Parquet file whose rows Spark can read; what it "
        "could not read is in the log (opendp_concurrent.tables)"
    )


def _no_table(table: tuple[str, ...], found: str) -> InvalidValueError:
    return InvalidValueError(
        f"table ({'.'.join(table)}) must be the name of one table of the catalog that is stored as "
        f"{', '.join(PROVIDERS)}, or the path of a Parquet file or folder whose name ends with "
        f".parquet; {found}. A view is refused: it may call functions that are not deterministic, "
        "or read rows of other units"
    )
