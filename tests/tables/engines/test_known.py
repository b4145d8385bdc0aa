"""A connection is known by the module of its class, also below a class of the user's own."""

import pytest

from opendp_concurrent.errors import InvalidTypeError

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import duckdb

from opendp_concurrent.tables.duckdb import DuckDB
from opendp_concurrent.tables.engines import engine_of


def test_the_engine_of_a_connection():
    with duckdb.connect() as connection:
        assert type(engine_of(connection)) is DuckDB


@pytest.mark.parametrize("wrong", [None, "survey.db", duckdb, 3])
def test_what_is_no_connection_is_refused_by_its_class(wrong):
    with pytest.raises(InvalidTypeError, match="^connection must be of DuckDB"):
        engine_of(wrong)
