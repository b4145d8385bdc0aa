"""A connection is known by the module of its class, also below a class of the user's own."""

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import duckdb

from opendp_concurrent.tables.duckdb import DuckDB
from opendp_concurrent.tables.engines import engine_of


def test_the_engine_of_a_connection():
    with duckdb.connect() as connection:
        assert type(engine_of(connection)) is DuckDB
