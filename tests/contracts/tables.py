"""Tables in an engine, as spaces and data of the catalogue."""

from __future__ import annotations

import atexit
from functools import cache
from typing import Any

import duckdb
import opendp.prelude as dp

import opendp_concurrent as oc

from .probes import CANARY

SCHEMA = {"person": int, "zone": str, "hours": float}
BY = {"by": "zone", "groups": 2, "rows": 2}
BOUNDED = 4  # rows of a unit
KEYS = ["a", "b", "c"]
PERSONS = {"zone": oc.tables.max("zone"), "hours": oc.tables.sum("hours", (0.0, 9.0), 0.5)}
AGGREGATES: dict[str, dict[str, Any]] = {
    "distinct_units": {},
    "rows_per_unit": {"edges": [1, 2, 3, 5]},
    "distinct_values": {"columns": "person", "by": "zone", "keys": KEYS},
    "table_count": {"by": "zone", "keys": KEYS},
    "table_sum": {
        "by": "zone",
        "keys": KEYS,
        "column": "hours",
        "bounds": (0.0, 2.0),
        "quantum": 0.5,
    },
    "table_answers": {
        "answers": [
            oc.tables.Answer("count"),
            oc.tables.Answer("sum", "hours", (0.0, 2.0), 0.5),
            oc.tables.Answer("mean", "hours", (0.0, 2.0), 0.5),
        ],
        "by": "zone",
        "keys": KEYS,
    },
    "table_prefixes": {"column": "hours", "cuts": [0.0, 1.0, 2.0], "by": "zone", "keys": KEYS},
    "table_histogram": {"column": "hours", "edges": [0.0, 1.0, 2.0]},
    "quantile_scores": {"column": "hours", "candidates": [0.0, 1.0], "alpha": 0.5},
}


@cache
def connection() -> Any:
    """A database with a table, which has the canary as a unit."""
    dp.enable_features("contrib", "honest-but-curious")
    opened = duckdb.connect()
    opened.execute("CREATE TABLE people (person BIGINT, zone TEXT, hours DOUBLE, id INTEGER)")
    rows = [(CANARY, "a", 0.5, 1), (CANARY, "b", 1.5, 2), (2, "a", None, 1), (3, "c", 9.0, 3)]
    opened.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
    return opened


@cache
def people() -> Any:
    """The table, without a bound."""
    return oc.tables.scan(connection(), "people", SCHEMA, "person")


def group_truncation() -> Any:
    return people().space >> oc.t.then_group_truncate(**BY)


def narrow() -> Any:
    """The truncated table without the hours."""
    return (space() >> oc.t.then_table_select(["zone"]))(data())


def linked() -> Any:
    """The truncated table beside another one, which has each of its units."""
    return data().with_tables(others=people())


def alone(table: Any) -> Any:
    """The same rows in the space of truncated tables, without others beside them."""
    return oc.tables.Table(table.engine(), table.relation, data().tables)


def space() -> Any:
    """Truncated tables."""
    return group_truncation().output_space


def data() -> Any:
    return group_truncation()(people())


atexit.register(people.cache_clear)  # DuckDB complains of connections that outlive the interpreter
atexit.register(connection.cache_clear)
