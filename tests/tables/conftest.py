"""Engines that the tests of tables run on."""

import pytest

import opendp_concurrent as oc

from .pipelines import STORED, quoted

pytest.importorskip("sqlglot", reason="!!! TABLES ARE NOT TESTED: no sqlglot !!!")
duckdb = pytest.importorskip("duckdb", reason="!!! TABLES ARE NOT TESTED: no duckdb !!!")


class OnDuckDB:
    """Tables in a DuckDB database in memory."""

    name = "duckdb"

    def __init__(self):
        self.connection = duckdb.connect()

    def load(self, data, name="t", **options):
        """Store rows, and return the table."""
        columns = ", ".join(f"{quoted(one)} {STORED[kind]}" for one, kind in data.schema.items())
        self.connection.execute(f"CREATE OR REPLACE TABLE {quoted(name)} ({columns})")
        if data.rows:
            places = ", ".join("?" * len(data.schema))
            self.connection.executemany(
                f"INSERT INTO {quoted(name)} VALUES ({places})",
                [list(row.values()) for row in data.rows],
            )
        return oc.tables.scan(self.connection, name, data.schema, data.unit, **options)


ENGINES = {"duckdb": OnDuckDB}


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request):
    """Each engine that is there."""
    return ENGINES[request.param]()
