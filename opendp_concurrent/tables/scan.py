"""Tables from connections: which engine reads them, and what the owner is told before."""

import atexit
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, TypeAlias
from warnings import warn

from opendp.mod import assert_features

from .. import _checks as checks
from ..data import Uncollected, as_lazyframe, collected, is_frame
from ..errors import Data, InvalidTypeError, InvalidValueError, ScanWarning, shown
from .csv_file import Csv, is_csv
from .domain import Tables
from .duckdb import Arrow, DuckDB, Frame
from .engine import FEW, ROWS_OF_FEW, Engine, listed, rendering
from .plan import Scan
from .postgres import PostgreSQL
from .schema import Decimal, Type, schema_of, spelled
from .spark import Spark
from .table import Table, table_of

Names: TypeAlias = str | PurePath | Sequence[str | PurePath]
Columns: TypeAlias = Mapping[str, type | Decimal]


def scan(
    connection: Any,
    table: Names | Columns | None = None,
    schema: Columns | str | Sequence[str] | None = None,
    unit: str | Sequence[str] | None = None,
    *,
    snapshot: bool = False,
    csv: Csv | None = None,
) -> Table:
    """Return a table that stays in its engine.

    The engine aggregates, OpenDP adds the noise. The distance of two tables is the number of units,
    such as persons, whose rows were added or removed. A row whose unit is NULL belongs to nobody
    and is left out. NaN is read as NULL. Texts are compared by their bytes.

    What can fail on a row fails here, before you, so that no launch fails because of a row. A CSV
    file is read into memory here, and never again; a :class:`.ScanWarning` tells you which fields
    are no values and are NULL. Each value of a Parquet file, and of a table of Spark, is read once.
    Of other tables the names and types of the columns are read; and the units, to warn you if they
    are few. An error or a warning has no text of a row, but it may have numbers of lines, of fields
    or of units, which depend on the data: do not show it to an analyst.

    You promise that the rows do not change while a queryable on the table is in use, or pass
    ``snapshot=True``. If they change, each launch is charged as before, and its guarantee is for
    the pair of tables at its own time: it protects a unit whose rows are the same in all launches.
    If the table becomes a view, or a column gets a type that is refused here, each launch fails,
    whatever the rows are: this is checked again with each statement.
    Block filters and parallel compositions bound the parts of a unit over time: see
    :func:`.make_block_filter`.

    Required features: `honest-but-curious`

    :param connection: an open DuckDB connection, whose statements run on cursors of their own; an
        open connection of psycopg to PostgreSQL, with whose login statements run on connections of
        their own; or a session of Spark; or a frame of Polars or pandas, whose rows are copied into
        DuckDB. Leave it out for files: ``scan("visits.parquet", schema,
        unit)`` opens a connection of DuckDB of its own
    :param table: name of a stored table, spelled as it is stored, or its schema and its name; or
        paths of Parquet files (DuckDB, Spark) or CSV files (DuckDB; also ``.csv.gz``). All have the
        same columns. On DuckDB a pattern such as ``"visits-*.parquet"`` stands for the files that
        are there now. Folders are no columns
    :param schema: mapping from the names of the columns to use to their types: int (of up to 64
        bits), float, str (also UUID, ENUM and char(n)), bool, datetime.date, datetime.datetime (of
        a time zone: in UTC), or :class:`.Decimal`; it is public. If it is left out, the schema that
        :func:`.describe_schema` proposes is printed and used: keep it in your program, since what
        is proposed may depend on the data
    :param unit: name of the column, of integers or texts, that says to whom a row belongs. Or names
        of several columns: ``("person", "week")`` protects each person in each week, so a person
        with rows in k weeks is k units. Bounds of a unit then also hold for a table that gets more
        weeks, which a block filter needs. The first is of integers or texts, none of floats.
        ``oc.tables.ROW`` says that each row is a unit, such as a person with one row: then no
        truncation is needed, and a person with k rows is k units. A unit with few values warns you
    :param snapshot: answer all launches from the table as it is now: the columns are copied. On
        PostgreSQL the copy is a temporary table, whose statements run one after another
    :param csv: how CSV files are written, if not in UTF-8 with commas and names in the first line
    :return: a table, whose ``space`` begins pipelines
    :raises InvalidTypeError, InvalidValueError: naming the argument; for a view, a stored type
        whose cast could fail or round, a file that cannot be read as described, or a folder on its
        path that names a column of the schema
    :raises TableError: if the engine fails, always the same; why is in the log
    :raises ImportError: without the extra ``tables``

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE visits (person INT, region TEXT)")
    >>> _ = connection.execute("INSERT INTO visits VALUES (1, 'north'), (1, 'south'), (2, 'south')")
    >>> visits = oc.tables.scan(connection, "visits", {"person": int, "region": str}, "person")
    >>> once = visits.space >> oc.t.then_truncate(1)
    >>> counts = once >> oc.t.then_table_count("region", ["north", "south", "west"])
    >>> noisy = counts >> dp.m.then_laplace(scale=2.0)
    >>> noisy.map(1)
    0.5
    >>> noisy(visits)  # noisy
    [1, 2, -1]
    """
    assert_features("honest-but-curious")
    frame = engine_of_frame(connection)
    given: Any = schema
    of: Any = unit
    if table is not None and (frame is not None or _are_paths(connection)):
        given, of = table, schema if unit is None else unit  # one place further left
    elif _is_path(connection) and isinstance(table, Mapping):
        raise InvalidValueError(f"table ({connection}) must be the path of a .parquet or .csv file")
    if given is None and of is None:
        raise InvalidTypeError(
            "unit must be given: the column that says to whom a row belongs. The schema may be "
            "left out; oc.tables.describe_schema proposes one, from what is stored"
        )
    source = _source(connection, table, csv, frame)
    if given is None:
        found = _proposed(*source)
        given = {name: kind for name, kind, _ in found if kind is not None}
        print(_code(found))
    known = schema_of(given, of)
    keep = checks.flag(snapshot=snapshot)
    engine, names, written = source
    if written is not None and isinstance(engine, DuckDB):
        stored = engine.open_csv(names, known, written)
    else:
        stored = engine.open(names, known)
    scanned = table_of(stored, Tables(known, None if known.unit else 1))
    if keep or frame is not None:
        scanned = scanned.materialized()
    if known.unit:
        _tell_of_few(scanned)
    return scanned


def _tell_of_few(table: Table) -> None:
    """Warn the owner if the unit has so few values that these are hardly persons."""
    scanned = table.relation
    assert isinstance(scanned, Scan)
    units, rows = table.engine().units(scanned)
    if units <= FEW and rows >= ROWS_OF_FEW * units > 0:
        names = ", ".join(scanned.schema.unit)
        warn(
            f"unit ({names}) has {units} different values in {rows} rows. All rows with one "
            "value are protected together, as those of one person. If the values are no persons, "
            "but groups such as species, name the column of the persons; if each row is a person, "
            "pass unit=oc.tables.ROW",
            ScanWarning,
            stacklevel=3,
        )


def _source(
    connection: Any, table: object, csv: object, frame: Engine | None
) -> tuple[Engine, tuple[str, ...], Csv | None]:
    """Return an engine, the name of what it reads, or paths, and how CSV files are written."""
    if frame is not None:
        return frame, ("",), csv_given(("",), csv)
    if _are_paths(connection):
        connection, table = own_connection(), connection
    names = (table,) if _is_path(table) else checks.sequence("names", table=table)
    plain = (str(one) if isinstance(one, PurePath) else one for one in names)
    paths = tuple(checks.text(table=one) for one in plain)
    engine, written = engine_of(connection), csv_given(paths, csv)
    if written is not None and not isinstance(engine, DuckDB):
        raise InvalidValueError(
            f"table ({listed(paths)}) must be a stored table: CSV files are read by DuckDB only. "
            "Load the file into the database first, in columns of the types that you want, or "
            "leave the connection out: oc.tables.scan(path, schema, unit)"
        )
    return engine, paths, written


def csv_given(names: tuple[str, ...], csv: object) -> Csv | None:
    """Return how CSV files are written, or None if there are none; or raise."""
    if csv is not None and not isinstance(csv, Csv):
        raise InvalidTypeError(f"csv must be an oc.tables.Csv(...), found {type(csv).__name__}")
    if is_csv(names[-1]):
        return Csv() if csv is None else csv
    if csv is not None:
        raise InvalidValueError(f"csv is for CSV files, and {names[-1]!r} is none; leave it out")
    return None


def _are_paths(value: object) -> bool:
    given = value if isinstance(value, (list, tuple)) else (value,)
    return len(given) > 0 and all(
        _is_path(one) and (is_csv(str(one)) or str(one).lower().endswith(".parquet"))
        for one in given
    )


def _is_path(value: object) -> bool:
    return isinstance(value, (str, PurePath))


# Which engine a connection belongs to.

ENGINES: dict[str, Callable[[Any], Engine]] = {
    "duckdb": DuckDB,
    "_duckdb": DuckDB,
    "psycopg": PostgreSQL,
    "pyspark": Spark,
}


@cache
def _connection(process: int) -> Any:
    del process  # a fork has a connection of its own
    from duckdb import connect

    return connect()


atexit.register(_connection.cache_clear)


def own_connection() -> Any:
    """Return a connection to DuckDB for files and frames, which can be joined."""
    return _connection(os.getpid())


def engine_of(connection: Any) -> Engine:
    """Return the engine of a connection, or raise."""
    for kind in type(connection).__mro__:
        engine = ENGINES.get(kind.__module__.partition(".")[0])
        if engine is not None:
            found = engine(connection)
            rendering().prepare(found.dialect)
            return found
    raise InvalidTypeError(
        "connection must be of DuckDB, such as duckdb.connect('survey.db'), of PostgreSQL, such as "
        "psycopg.connect(...), or a session of Spark, found "
        f"{shown(type(connection).__name__)}"
    )


# Frames of Polars and pandas as tables: rows that are collected once, and copied into DuckDB.


def engine_of_frame(value: Data) -> Engine | None:
    """Return an engine that reads a frame of Polars or pandas; None if it is none; or raise."""
    if not is_frame(value):
        return None
    rendering().prepare(Frame.dialect)
    if type(value).__module__.partition(".")[0] == "pandas":
        names = list(value.columns)
        if not all(isinstance(one, str) for one in names) or len(set(names)) < len(names):
            raise InvalidTypeError("connection (a frame of pandas) must have different names")
        return Frame(own_connection(), value)
    frame = as_lazyframe(value, "connection")
    if isinstance(frame, Uncollected):
        raise InvalidTypeError(
            "connection must be a LazyFrame that is collected: a table has a copy of its rows; "
            "without it, scan the file itself"
        )
    return Frame(own_connection(), Arrow(collected(frame)))


# A schema that is proposed from what is stored, for its owner to check and keep as code.


def describe_schema(connection: Any, table: Names | None = None, *, csv: Csv | None = None) -> str:
    """Return a schema for :func:`.scan` as code, from the stored types of a table or file.

    It is for the owner of the data: check it, and keep it in the program. A schema is public, and
    should not be made anew from the data in each run. The types of a CSV file are those that all of
    its texts have, so they tell of its rows. Codes are texts: digits with a 0 in front, as postal
    codes have, or integers beyond 2^53.

    Required features: `honest-but-curious`

    :param connection: as for :func:`.scan`; or paths or a LazyFrame, if ``table`` is left out
    :param table: as for :func:`.scan`
    :param csv: as for :func:`.scan`
    :return: lines of code; columns that cannot be read are comments, so are those without a name,
        or with the name of another column
    :raises InvalidTypeError, InvalidValueError: as :func:`.scan`

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE bills (person INT, eur DECIMAL(9, 2), paid TIMESTAMP)")
    >>> print(oc.tables.describe_schema(connection, "bills"))
    schema = {
        "person": int,
        "eur": oc.tables.Decimal(2),
        "paid": datetime.datetime,
    }
    """
    assert_features("honest-but-curious")
    return _code(_proposed(*_source(connection, table, csv, engine_of_frame(connection))))


def _proposed(
    engine: Engine, names: tuple[str, ...], written: Csv | None
) -> list[tuple[str, Type | None, str]]:
    """Return each column that is stored, the type that reads it, and a line of code."""
    if written is not None and isinstance(engine, DuckDB):
        types = engine.csv_proposal(names, written)
    else:
        types = list(engine.columns(engine.reference(names)).items())
    found, folded = list[tuple[str, Type | None, str]](), [name.casefold() for name, _ in types]
    for name, stored in types:
        kind = engine.type_of(stored)
        line = f"# {json.dumps(name)}: {re.sub('[^ -~]', '?', stored)}, which is not read"
        if not name:
            kind, line = None, "# a column without a name, which is not read"
        elif folded.count(name.casefold()) > 1:
            kind, line = None, f"# {json.dumps(name)}: columns of this name, of which none is read"
        elif kind is not None:
            module = "oc.tables." if isinstance(kind, Decimal) else f"{kind.__module__}."
            line = f"{json.dumps(name)}: {module.removeprefix('builtins.')}{spelled(kind)},"
        found.append((name, kind, line))
    return found


def _code(proposed: list[tuple[str, Type | None, str]]) -> str:
    return "\n".join(["schema = {", *(f"    {line}" for _, _, line in proposed), "}"])
