"""Keys that are found from the data: the statement on each engine, the loss, what is refused."""

from collections import Counter, defaultdict
from datetime import date, datetime
from math import inf

import opendp.prelude as dp
import pytest
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from opendp_concurrent.tables.plan import FoundKeys

from .pipelines import Data, check, data, keyed
from .reference import scanned


def expected(found, by):
    """The rows of the statement in plain Python."""
    keys = defaultdict(set)
    for row in scanned(found.rows, found.unit):
        key = tuple(row[name] for name in by)
        if None not in key:
            keys[row[found.unit]].add(key)
    return Counter(
        (*(one.isoformat(" ") if type(one) is datetime else one for one in key), len(own))
        for own in keys.values()
        for key in own
    )


@pytest.mark.parametrize(
    ("name", "examples"),
    [("duckdb", 12)]
    + [pytest.param(one, 100, marks=pytest.mark.slow) for one in ("duckdb", "postgres", "spark")],
)
def test_each_engine_counts_units_by_key(request, name, examples):
    check(counts_units, examples, request.getfixturevalue(f"on_{name}"))


def counts_units(engine, draw):
    found = draw(data(most=20))
    names = st.lists(st.sampled_from(keyed(found.schema)), min_size=1, max_size=2, unique=True)
    by = tuple(draw(names))
    rows = engine.load(found).ask(FoundKeys(by))
    assert {tuple(row[:-1]): row[-1] for row in rows} == expected(found, by)


SCHEMA = {"person": int, "zone": str, "day": date}
DAYS = [date(2024, 1, 1), date(9999, 12, 31), date(1, 1, 1), None]


def visits(engine, persons=300):
    rows = [(p, "north" if p % 3 else "south", DAYS[p % 4]) for p in range(persons)]
    rows += [(p, "alone", DAYS[0]) for p in (-1, -2)] + [(p, "south", DAYS[0]) for p in (1, 2)]
    return engine.load(Data.of(SCHEMA, "person", rows))


def keys_of(table, by, truncate=None, d_out=(1.0, 1e-6)):
    """The keys that are found in one row of each unit."""
    few = table.space >> (truncate or oc.t.then_truncate(1))
    return (few >> oc.m.then_table_keys(by, d_out=d_out))(table)


def test_keys_of_many_units_are_found(engine):
    table = visits(engine)
    found = keys_of(table, "zone")
    assert list(found) == ["north", "south"]
    assert abs(found["north"] - 198) <= 14
    days = [DAYS[2], DAYS[0], DAYS[1]]
    assert list(keys_of(table, "day")) == days
    many = oc.t.then_group_truncate(["zone", "day"], groups=10)
    both = keys_of(table, ["zone", "day"], many, (1.0, 1e-2))
    assert list(both) == [(zone, day) for zone in ("north", "south") for day in days]
    assert set(both.values()) == {None}


MOMENTS = [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1)]
MOMENTS += [datetime(2024, 2, 29, 1, 0, 0, 120000), datetime.max, None]


def test_timestamps_are_found(engine):
    schema = {"person": int, "zone": str, "at": datetime}
    rows = [(person, "n", MOMENTS[person % 6]) for person in range(1200)]
    table = engine.load(Data.of(schema, "person", rows))
    found = keys_of(table, "at")
    assert list(found) == MOMENTS[:-1]
    assert all(abs(number - 200) <= 14 for number in found.values())
    assert list(keys_of(table, ["zone", "at"])) == [("n", one) for one in MOMENTS[:-1]]
    counts = table.space >> oc.t.then_truncate(1) >> oc.t.then_table_count("at", list(found))
    assert counts(table) == [200] * 5


@pytest.mark.parametrize(("kind", "stored"), [(datetime, "TIMESTAMP"), (date, "DATE")])
def test_days_that_python_does_not_have_are_left_out(on_duckdb, kind, stored):
    on_duckdb.connection.execute(
        "CREATE OR REPLACE TABLE far AS SELECT range AS person, ['infinity', '-infinity', "
        f"'290000-01-01', '0044-03-15 (BC)', '2024-01-01'][1 + range % 5]::{stored} AS day "
        "FROM range(500)"
    )
    table = oc.tables.scan(on_duckdb.connection, "far", {"person": int, "day": kind}, "person")
    assert list(keys_of(table, "day")) == [kind(2024, 1, 1)]


def test_texts_that_cannot_be_keys_are_left_out(on_duckdb):
    on_duckdb.connection.execute(
        "CREATE OR REPLACE TABLE odd AS SELECT range AS person, "
        "CAST(range % 3 - 9223372036854775807 - 1 AS BIGINT) AS big, "
        "CASE WHEN range % 2 = 0 THEN 'a' || chr(0) ELSE 'b' END AS name FROM range(500)"
    )
    schema = {"person": int, "big": int, "name": str}
    table = oc.tables.scan(on_duckdb.connection, "odd", schema, "person")
    assert list(keys_of(table, "name")) == ["b"]
    assert list(keys_of(table, "big")) == [-(2**63) + 1, -(2**63) + 2]


def test_the_loss_of_groups_of_units(on_duckdb):
    table = visits(on_duckdb)
    bounded = table.space >> oc.t.then_truncate(1)
    for d_in in (1, 2, 3):
        made = bounded >> oc.m.then_table_keys("zone", d_out=(1.0, 1e-6), d_in=d_in)
        assert made.map(0) == (0.0, 0.0)
        epsilon, delta = made.map(d_in)
        assert 0.99 < epsilon <= 1.0
        assert 2e-7 < delta <= 1e-6
        assert made.map(d_in + 1) > made.map(d_in)


def test_many_keys_of_a_unit_and_a_loss_at_which_no_noise_is_known_are_refused(on_duckdb):
    table = visits(on_duckdb)
    with pytest.raises(InvalidValueError, match="does not bound the rows"):
        oc.m.make_table_keys(*table.space, "zone", (1.0, 1e-6))
    with pytest.raises(InvalidValueError, match="at most 1000"):
        keys_of(table, "zone", oc.t.then_truncate(1001))
    for d_out in ((inf, 0.1), (200.0, 0.1), (0.0, 0.1), (1.0, 0.0)):
        with pytest.raises(InvalidValueError, match="^d_out"):
            keys_of(table, "zone", d_out=d_out)


@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"rho": 1.0}])
def test_other_measures_are_refused_before_the_charge(on_duckdb, loss):
    unit, table = oc.tables.unit_of(units=1), visits(on_duckdb)
    asked = oc.concurrent_context(table, unit, dp.loss_of(**loss))
    few = asked.query(**loss).truncate(1)
    with pytest.raises(InvalidTypeError, match=r"d_out must be given"):
        few.keys("zone")
    with pytest.raises(UnsupportedMeasureError):
        few.keys("zone", d_out=(0.5, 1e-7))
    assert asked.current_privacy_loss() == 0.0
