"""Tables in pipelines: filters, sparse vector, parts, ledgers, linear queries, threads."""

import itertools

import duckdb
import opendp.prelude as dp
import pytest
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import GroupBound
from opendp_concurrent.tables.table import TABLES

from . import reference
from .pipelines import check, columns_of, data, keyed, some_keys

PURE = dp.max_divergence()
ZONES = ["a", "b", "c"]
SCHEMA = {"person": int, "zone": str, "week": int}
EXACT = 1e-9  # a scale at which noise is 0


@pytest.fixture(scope="module")
def visits():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (person INT, zone TEXT, week INT)")
    rows = [(person, ZONES[person % 2], week) for person in range(20) for week in range(4)]
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    return oc.tables.scan(connection, "visits", SCHEMA, "person")


@pytest.fixture(scope="module")
def bounded(visits):
    return visits.space >> oc.t.then_truncate(3, ["week"])


def noisy(space, aggregate, scale=EXACT):
    asked = space >> aggregate
    return asked >> dp.m.then_laplace(scale=scale)


def test_linear_queries_on_counts_of_a_table(visits, bounded):
    """Marginals: keys of several columns are the universe."""
    keys = list(itertools.product(ZONES, range(3)))
    counts = bounded >> oc.t.then_table_count(["zone", "week"], keys)
    zcdp = dp.zero_concentrated_divergence()
    assert counts.map(1) == 3
    projected = counts >> oc.m.then_projected_queries(
        zcdp, counts.map(1), [1e9], universe=keys, size=60
    )
    child = projected(visits)
    by_zone = child([lambda key, zone=zone: float(key[0] == zone) for zone in ZONES])
    assert by_zone == pytest.approx([30, 30, 0], abs=2)
    weights = counts >> oc.m.then_private_multiplicative_weights(
        PURE, counts.map(1), 1e6, universe=keys, queries=10, size=60, beta=1e-10
    )
    assert weights.map(1) <= 1e6
    answer = weights(visits)(lambda key: float(key[0] != "c"))
    assert answer.value == pytest.approx(60, abs=weights.plan.error)  # but for a share of beta
    assert answer  # the first guess is 40


# --- parts -----------------------------------------------------------------------------------


def parallel(space, partition, keys, epsilon=0.5):
    inner = oc.make_concurrent_composition(*space, PURE, 1, [epsilon])
    return oc.c.make_parallel_composition(*space, partition, dict.fromkeys(keys, inner))


def test_a_unit_in_several_parts_pays_in_each(visits, bounded):
    made = parallel(bounded.output_space, oc.c.by_column("week"), range(4))
    assert made.map(1) == 1.5  # three rows, in three parts, each of which has one unit more
    few = parallel(bounded.output_space, oc.c.by_column("week"), range(2))
    assert few.map(1) == 1.0
    count = noisy(bounded.output_space, oc.t.then_table_count(), scale=6.0)
    released = dict.fromkeys(range(4), count)
    week = oc.c.by_column("week")
    made = oc.c.make_parallel_composition(*bounded.output_space, week, released)
    assert [made.map(d_in) for d_in in (1, 2)] == [1.5, 3.0]


def test_parts_by_groups_of_values(visits, bounded):
    halves = oc.c.by_values({"early": range(2), "late": [2, 3], "never": [9]}, of="week")
    space = bounded.output_space
    count = noisy(space, oc.t.then_table_count())
    parts = (bounded >> parallel(space, halves, ["early", "late", "never"], 1e11))(visits)
    assert [parts[key](count) for key in ("early", "late", "never")] == [40, 20, 0]


BAD_PARTS = {
    "a text of an integer column": (oc.c.by_column("week"), ["1"], "integer"),
    "no such column": (oc.c.by_column("x"), [1], "must be a column"),
    "one value of two columns": (oc.c.by_column("zone", "week"), ["a"], "2 values"),
    "a function": (oc.c.by_key(lambda row: row), [1], "does not add up"),
    "many values": (oc.c.by_values({"all": range(2000)}, of="week"), ["all"], "at most 1000"),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_other_parts_are_refused(bounded, name):
    partition, keys, reason = BAD_PARTS[name]
    with pytest.raises((InvalidTypeError, InvalidValueError), match=reason):
        parallel(bounded.output_space, partition, keys)


def test_keys_that_are_one_value_are_refused(bounded):
    class Own(str):
        __hash__ = object.__hash__  # so it is a second key of the mapping

    for partition, keys in (
        (oc.c.by_column("zone"), ["a", Own("a")]),
        (oc.c.by_column("zone", "week"), [("a", 1), (Own("a"), 1)]),
    ):
        assert len(dict.fromkeys(keys)) == 2
        with pytest.raises(InvalidValueError, match="equal as values of zone"):
            parallel(bounded.output_space, partition, keys)


def test_a_unit_is_in_as_many_parts_as_the_factor_says(on_duckdb):
    check(parts_as_the_factor_says, 8, on_duckdb)


def parts_as_the_factor_says(on_duckdb, draw):
    found = draw(data(least=2))
    by = draw(columns_of(keyed(found.schema), 2))
    keys = draw(some_keys(found.schema, by))
    groups, rows = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    table = on_duckdb.load(found)
    truncate = table.space >> oc.t.then_group_truncate(by, groups, rows)
    space = truncate.output_space
    partition = oc.c.by_column(*by)
    _, factor = partition.metric_of_parts(space[1], space[0])
    assert factor == (1 if by == [found.unit] else groups)
    cut = partition.cutter(space[0], tuple(keys))
    parts = cut(truncate(table))
    kept = reference.group_truncate(
        reference.scanned(found.rows, found.unit), found.unit, by, groups, rows
    )
    units = space >> oc.t.then_distinct_units()
    count = space >> oc.t.then_table_count()
    for key, part in parts.items():
        members = reference.matching(kept, by, key)
        assert count(part) == len(members)
        assert units(part) == len({row[found.unit] for row in members})
    for unit in {row[found.unit] for row in kept}:
        own = [row for row in kept if row[found.unit] == unit]
        assert sum(bool(reference.matching(own, by, key)) for key in keys) <= factor


def test_the_factor_uses_what_is_known_of_other_columns():
    domain = oc.tables.scan(
        duckdb.connect().execute("CREATE TABLE t (person INT, a INT, b INT)"),
        "t",
        {"person": int, "a": int, "b": int},
        "person",
    ).space
    both = domain >> oc.t.then_group_truncate(["a", "b"], 2, 5)
    space = both.output_space
    assert TABLES.metric_of_parts(space[0], ("a",), space[1]) == (space[1], 2)
    assert GroupBound(frozenset("ab"), 2, 5) in space[0].descriptor.groups
    only = domain >> oc.t.then_group_truncate("a", 2, 5)
    space = only.output_space
    assert TABLES.metric_of_parts(space[0], ("a", "b"), space[1]) == (space[1], 10)
