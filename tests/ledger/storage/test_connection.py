"""Statements of a launch go to the driver; each is compiled once."""

import pytest

pytest.importorskip("sqlalchemy")

import sqlalchemy

from opendp_concurrent.ledger.backends import DriverConnection

TABLE = sqlalchemy.table("held", sqlalchemy.column("name"), sqlalchemy.column("amount"))
PUT = sqlalchemy.insert(TABLE).values(
    name=sqlalchemy.bindparam("name"), amount=sqlalchemy.bindparam("amount")
)
FIND = sqlalchemy.select(TABLE.c.amount).where(TABLE.c.name == sqlalchemy.bindparam("name"))


@pytest.fixture
def opened():
    engine = sqlalchemy.create_engine("sqlite://", paramstyle="named")
    connection = engine.connect()
    connection.connection.driver_connection.execute("CREATE TABLE held (name, amount)")
    texts = {}
    yield DriverConnection(connection, texts), texts
    connection.close()
    engine.dispose()


def test_the_rows_of_each_statement_are_returned(opened):
    driver, texts = opened
    assert driver.run({"name": "one", "amount": 3}, PUT, FIND) == [[], [(3,)]]
    compiled = dict(texts)
    assert set(compiled) == {PUT, FIND}
    assert driver.run({"name": "two", "amount": 4}, PUT, FIND) == [[], [(4,)]]
    assert all(texts[one] is compiled[one] for one in compiled)


def test_what_is_before_the_statements_runs_first(opened):
    driver, _ = opened
    assert not driver.in_transaction
    driver.run({"name": "one", "amount": 3}, PUT, before="BEGIN IMMEDIATE")
    assert driver.in_transaction
    driver.execute("ROLLBACK")
    assert driver.run({"name": "one"}, FIND) == [[]]


def test_a_dropped_connection_is_closed(opened):
    driver, _ = opened
    driver.run({"name": "one", "amount": 3}, PUT, before="BEGIN IMMEDIATE")
    driver.drop()
    assert driver.connection.closed
    assert not driver.lost  # a file is never lost
