"""Engines that the tests of tables run on."""

import contextlib
import gc
from itertools import count

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from ..sparks import BY_HAND
from .pipelines import STORED, quoted

pytest.importorskip("sqlglot", reason="!!! TABLES ARE NOT TESTED: no sqlglot !!!")
duckdb = pytest.importorskip("duckdb", reason="!!! TABLES ARE NOT TESTED: no duckdb !!!")

from opendp_concurrent.tables.dialects import Dialect  # noqa: E402

from .syntax import check_syntax  # noqa: E402

dp.enable_features("contrib", "honest-but-curious")  # for fixtures of modules
NUMBERS = count()


def _text(self, tree, *, text=Dialect.text):
    """Return the statement of a tree, which has no syntax that is not listed."""
    check_syntax(tree)
    return text(self, tree)


Dialect.text = _text


def columns_of(data):
    return ", ".join(f"{quoted(one)} {STORED[kind]}" for one, kind in data.schema.items())


class OnDuckDB:
    """Tables in a DuckDB database in memory."""

    name = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect()
        self.close = self.connection.close

    def store(self, data, name="t"):
        """Store rows."""
        self.connection.execute(f"CREATE OR REPLACE TABLE {quoted(name)} ({columns_of(data)})")
        places = ", ".join(f"CAST(? AS {STORED[kind]})" for kind in data.schema.values())
        for start in range(0, len(data.rows), 500):  # one statement a row is 30 times as slow
            rows = data.rows[start : start + 500]
            insert = f"INSERT INTO {quoted(name)} VALUES " + ", ".join([f"({places})"] * len(rows))
            self.connection.execute(insert, [value for row in rows for value in row.values()])

    def load(self, data, name="t", **options):
        """Store rows, and return the table."""
        self.store(data, name)
        return oc.tables.scan(self.connection, name, data.schema, data.unit, **options)


class OnFiles(OnDuckDB):
    """Two Parquet files, without a connection; a unit has rows in one of them or in both."""

    name = "files"

    def __init__(self, folder):
        super().__init__()
        self._folder, self._files = folder, count()

    def load(self, data, name="t", **options):
        """Store rows, and return the table."""
        self.store(data, name)
        pattern = self._folder / f"{next(self._files)}-*.parquet"
        for part in (0, 1):
            path = str(pattern).replace("*", str(part))
            self.connection.execute(
                f"COPY (SELECT * FROM {quoted(name)} WHERE rowid % 2 = {part}) "
                f"TO '{path}' (FORMAT parquet)"
            )
        return oc.tables.scan(pattern, data.schema, data.unit, **options)


class OnPostgreSQL:
    """Tables on a PostgreSQL server that is started for the tests."""

    name = "postgres"

    def __init__(self, server):
        import psycopg

        self.connection = psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True)
        self.close = self.connection.close
        self.cursor = psycopg.RawCursor(self.connection)

    def load(self, data, name="t", **options):
        """Store rows, and return the table."""
        self.cursor.execute(f"DROP TABLE IF EXISTS {quoted(name)}".encode())
        self.cursor.execute(f"CREATE TABLE {quoted(name)} ({columns_of(data)})".encode())
        if data.rows:
            kinds = enumerate(data.schema.values(), 1)
            places = ", ".join(f"CAST(${place} AS {STORED[kind]})" for place, kind in kinds)
            insert = f"INSERT INTO {quoted(name)} VALUES ({places})".encode()
            self.cursor.executemany(insert, [list(row.values()) for row in data.rows])
        return oc.tables.scan(self.connection, name, data.schema, data.unit, **options)


class OnSpark:
    """Parquet files, which DuckDB writes and Spark reads."""

    name = "spark"

    def __init__(self, session, folder):
        self.connection, self._folder, self._files = session, folder, count()
        self._writer = OnDuckDB()
        self.close = self._writer.close

    def load(self, data, name="t", **options):
        self._writer.store(data, name)
        path = str(self._folder / f"{next(self._files)}.parquet")
        self._writer.connection.execute(f"COPY {quoted(name)} TO '{path}' (FORMAT parquet)")
        return oc.tables.scan(self.connection, path, data.schema, data.unit, **options)


@pytest.fixture
def own_database(server):
    """A function that connects to a PostgreSQL database of its own, which has a name."""
    import psycopg

    name = f"own_{next(NUMBERS)}"
    server.execute(f"CREATE DATABASE {name}")
    address = server.url.replace("+psycopg", "").rpartition("/")[0]
    with contextlib.ExitStack() as opened:

        def connect():
            made = psycopg.connect(f"{address}/{name}", autocommit=True)
            return opened.enter_context(contextlib.closing(made))

        connect.name = name
        yield connect
        gc.collect()
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def on_duckdb():
    with contextlib.closing(OnDuckDB()) as found:
        yield found


@pytest.fixture(scope="module")
def on_postgres(server):
    with contextlib.closing(OnPostgreSQL(server)) as found:
        yield found


@pytest.fixture(scope="module")
def on_files(tmp_path_factory):
    with contextlib.closing(OnFiles(tmp_path_factory.mktemp("parts"))) as found:
        yield found


@pytest.fixture(scope="module")
def on_spark(spark, tmp_path_factory):
    with contextlib.closing(OnSpark(spark, tmp_path_factory.mktemp("files"))) as found:
        yield found


@pytest.fixture(scope="module", params=["duckdb", "postgres", BY_HAND])
def engine(request):
    """Each engine that is there."""
    return request.getfixturevalue(f"on_{request.param}")
