"""Transformations from tables to integers: maps by hand, noise behind them, and refusals."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

pandas, polars = map(pytest.importorskip, ("pandas", "polars"))
SCHEMA = {"person": int, "zone": str, "day": int, "eur": float}


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person INT, zone TEXT, day INT, eur DOUBLE)")
    rows = [(1, "a", 1, 2.0), (1, "b", 2, 3.26), (2, None, 1, None), (3, "a", 9, -4.0)]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return oc.tables.scan(connection, "t", SCHEMA, "person")


@pytest.fixture(scope="module")
def bounded(table):
    return table.space >> oc.t.then_truncate(3)


def moments(column, bounds, quantum=None, order=1, **groups):
    statistic = "mean" if order == 1 else "variance"
    return oc.t.then_table_answers([oc.tables.Answer(statistic, column, bounds, quantum)], **groups)


def test_the_l2_map_is_rounded_up(table):
    grouped = table.space >> oc.t.then_group_truncate("zone", 3, 1)
    asked = grouped >> oc.t.then_table_count("zone", list("abc"), norm="l2")
    for d_in in (1, 2, 3, 7, 1000):
        assert Fraction(asked.map(d_in)) ** 2 >= 3 * d_in**2
        assert asked.map(d_in) == pytest.approx(d_in * math.sqrt(3), rel=1e-15)


def test_a_distance_beyond_64_bits_is_refused(bounded):
    asked = bounded >> oc.t.then_table_sum("day", (0, 2**62))
    with pytest.raises(Exception, match="within 64 bits"):
        asked.map(1)
    with pytest.raises(Exception, match="within 64 bits"):
        (bounded >> oc.t.then_table_count()).map(2**62)


REFUSED = {
    "keys twice": (oc.t.then_table_count("zone", ["a", "a"]), "distinct"),
    "no keys": (oc.t.then_table_count("zone", []), "nonempty"),
    "a key of another type": (oc.t.then_table_count("day", ["1"]), "integer"),
    "by a float": (oc.t.then_table_count("eur", [1.0]), r"found float: .*cast\(int\).*Decimal"),
    "a short key": (oc.t.then_table_count(["zone", "day"], [("a",)]), "2 values"),
    "another norm": (oc.t.then_table_count("zone", ["a"], norm="l3"), "'l1', 'l2', 'linf'"),
    "no quantum": (oc.t.then_table_sum("eur", (0.0, 1.0)), "depend on the order"),
    "quantum of integers": (oc.t.then_table_sum("day", (0, 1), 0.5), "leave it out"),
    "a small quantum": (oc.t.then_table_sum("eur", (0.0, 1.0), 1e-17), "2\\^52 quantum"),
    "an infinite bound": (oc.t.then_table_sum("eur", (0.0, math.inf), 1.0), "2\\^52 quantum"),
    "a bound that is NaN": (oc.t.then_table_sum("eur", (0.0, math.nan), 1.0), "NaN"),
    "turned bounds": (oc.t.then_table_sum("day", (1, 0)), "in this order"),
    "one bound": (oc.t.then_table_sum("day", 3), "pair"),
    "large bounds": (oc.t.then_table_sum("day", (0, 2**62 + 1)), "2\\^62"),
    "moments of texts": (moments("zone", (0, 1)), "found str"),
    "moments of one value": (moments("day", (3, 3)), "which differ"),
    "moments of turned bounds": (moments("day", (3, 1)), "in this order"),
    "large squares": (moments("day", (0, 2**31 + 1), order=2), "2\\^31"),
    "keys of nothing": (moments("day", (0, 1), keys=[1]), "given together"),
    "sum of texts": (oc.t.then_table_sum("zone", (0, 1)), "found str"),
    "edges that fall": (oc.t.then_table_histogram("day", [2, 1]), "increasing"),
    "one edge": (oc.t.then_table_histogram("day", [1]), "from 2"),
    "edges of another type": (oc.t.then_table_histogram("day", [1, 2.5]), "integer"),
    "a share above 1": (oc.t.then_quantile_scores("day", [1], 1.5), "at most 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused(bounded, name):
    aggregate, reason = REFUSED[name]
    with pytest.raises((InvalidTypeError, InvalidValueError), match=reason):
        bounded >> aggregate


FRAME = {"day": [1, 1], "zone": ["a", None]}
KEYS = {
    "a mapping": ({"keys": {"zone": ["a", None], "day": [1, 3]}}, [1, 0, 1, 0]),
    "a frame": ({"keys": polars.DataFrame(FRAME)}, [1, 1]),
    "a frame of pandas": ({"by": ["zone", "day"], "keys": pandas.DataFrame(FRAME)}, [1, 1]),
    "a Series": ({"by": "day", "keys": pandas.Series([1, 2])}, [2, 1]),
    "an array": ({"by": "day", "keys": np.array([9, 1])}, [1, 2]),
    "numbers of NumPy": ({"by": "day", "keys": [np.int64(9), np.int8(1)]}, [1, 2]),
    "NULL": ({"by": "zone", "keys": [None, "a"]}, [1, 2]),
    "an array of keys": ({"by": ["day", "person"], "keys": np.array([[1, 1], [9, 3]])}, [1, 1]),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_lists_arrays_frames_or_products(table, bounded, name):
    given, answer = KEYS[name]
    assert (bounded >> oc.t.then_table_count(**given))(table) == answer
