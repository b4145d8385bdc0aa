"""A table of notes that tests of engines share: its rows, a count, and an odometer on it."""

import opendp.prelude as dp

import opendp_concurrent as oc

SECRET = "secret-7261"
SCHEMA = {"person": int, "note": str}
ROWS = f"VALUES (1, '{SECRET}'), (1, 'b'), (2, NULL), (NULL, 'c')"


def notes(connection, **options):
    return oc.tables.scan(connection, "notes", SCHEMA, "person", **options)


def count_of(table):
    return table.space >> oc.t.then_truncate(5) >> oc.t.then_table_count()


def odometer_on(table):
    return (table.space >> oc.then_concurrent_odometer(dp.max_divergence()))(table)
