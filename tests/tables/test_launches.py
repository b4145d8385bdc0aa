"""Tables below other mechanisms: linear queries and parts."""

import itertools

import opendp.prelude as dp
import pytest
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import GroupBound, Tables, table_domain, units
from opendp_concurrent.tables.schema import schema_of
from opendp_concurrent.tables.table import TABLES

from ..build import PURE, ZCDP
from . import reference
from .pipelines import Data, check, columns_of, data, keyed, some_keys

ZONES = ["a", "b", "c"]
SCHEMA = {"person": int, "zone": str, "week": int}


@pytest.fixture(scope="module")
def visits(on_duckdb):
    rows = [(person, ZONES[person % 2], week) for person in range(20) for week in range(4)]
    return on_duckdb.load(Data.of(SCHEMA, "person", rows), "visits")


@pytest.fixture(scope="module")
def bounded(visits):
    return visits.space >> oc.t.then_truncate(3, ["week"])


def count_on(space, scale=1e-9):  # at which noise is 0
    return space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=scale)


def test_linear_queries_on_counts_of_a_table(visits, bounded):
    """Marginals: keys of several columns are the universe."""
    keys = list(itertools.product(ZONES, range(3)))
    counts = bounded >> oc.t.then_table_count(["zone", "week"], keys)
    assert counts.map(1) == 3
    then = oc.m.then_projected_queries(ZCDP, counts.map(1), [1e9], universe=keys, size=60)
    child = (counts >> then)(visits)
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
    space, week = bounded.output_space, oc.c.by_column("week")
    # three rows, in three parts, each of which has one unit more
    assert [parallel(space, week, range(parts)).map(1) for parts in (4, 2)] == [1.5, 1.0]
    released = dict.fromkeys(range(4), count_on(space, scale=6.0))
    made = oc.c.make_parallel_composition(*space, week, released)
    assert [made.map(d_in) for d_in in (1, 2)] == [1.5, 3.0]


def test_parts_by_groups_of_values(visits, bounded):
    halves = oc.c.by_values({"early": range(2), "late": [2, 3], "never": [9]}, of="week")
    space = bounded.output_space
    count = count_on(space)
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


def test_a_unit_is_in_as_many_parts_as_the_factor_says(on_duckdb):
    check(parts_as_the_factor_says, 8, on_duckdb)


def test_the_factor_uses_what_is_known_of_other_columns():
    domain = table_domain(Tables(schema_of({"person": int, "a": int, "b": int}, "person"))), units()
    both = domain >> oc.t.then_group_truncate(["a", "b"], 2, 5)
    space = both.output_space
    assert TABLES.metric_of_parts(space[0], ("a",), space[1]) == (space[1], 2)
    assert GroupBound(frozenset("ab"), 2, 5) in space[0].descriptor.groups
    only = domain >> oc.t.then_group_truncate("a", 2, 5)
    space = only.output_space
    assert TABLES.metric_of_parts(space[0], ("a", "b"), space[1]) == (space[1], 10)
