"""A unit more or less moves no answer further than the stability map says."""

from fractions import Fraction
from math import inf

import pytest
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

from .pipelines import Data, check, data, pipelines


def distance(metric, one, other):
    """The distance of two answers, exactly; squared for L2."""
    pairs = (
        zip([one], [other], strict=True) if isinstance(one, int) else zip(one, other, strict=True)
    )
    moved = [abs(left - right) for left, right in pairs]
    if str(metric).startswith("L2"):
        return sum(by**2 for by in moved)
    return max(moved) if str(metric).startswith("LInf") else sum(moved)


def bound(asked, d_in):
    try:
        found = Fraction(asked.map(d_in))
    except OpenDPException as error:  # the map refuses, and so no mechanism follows
        if "must be within 64 bits" not in str(error):
            raise
        return inf
    return found**2 if str(asked.output_metric).startswith("L2") else found


def without(found, units):
    """The table after all rows of some units have been removed."""
    rows = [row for row in found.rows if row[found.unit] not in units]
    return Data(found.schema, found.unit, rows)


def stays_within(engine, draw):
    found = draw(data(least=2, most=16))
    units = sorted({row[found.unit] for row in found.rows} - {None}, key=str)
    removed = (
        set(draw(st.lists(st.sampled_from(units), max_size=3, unique=True))) if units else set()
    )
    pipeline = draw(pipelines(found.schema, found.unit))
    table = engine.load(found)
    asked = pipeline.build(table.space)
    whole = asked(table)
    part = asked(engine.load(without(found, removed)))
    moved = distance(asked.output_metric, whole, part)
    assert moved <= bound(asked, len(removed)), (pipeline.parts, whole, part)


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        ("duckdb", 12),
        ("files", 4),  # an error would be an answer: none is raised
        pytest.param("duckdb", 10_000, marks=pytest.mark.slow),
        pytest.param("files", 1_000, marks=pytest.mark.slow),
    ],
)
def test_removing_units_stays_within_the_stability_map(request, name, examples):
    check(stays_within, examples, request.getfixturevalue(f"on_{name}"))


SCHEMA = {"person": int, "zone": int, "eur": int, "hours": float}
# what moves the answer as far as the map says: rows of person 1
ONE = [(0, 9)] * 6
MANY = [(zone, 9) for zone in (0, 0, 1, 1, 2, 2)]
VALUES = [(zone, eur) for zone in (0, 1, 2) for eur in (8, 9)]
TRUNCATED = oc.t.then_truncate(4)
GROUPED = oc.t.then_group_truncate("zone", groups=2, rows=2)
KEYS = {"by": "zone", "keys": [0, 1, 2]}
MONEY = {"column": "eur", "bounds": (-2, 5)}
HOURS = {"column": "hours", "bounds": (-1.0, 3.0), "quantum": 0.5}
EDGES = {"column": "eur", "edges": [0, 10, 20]}
COUNT, TOTAL, MEAN = (
    oc.tables.Answer(*one)
    for one in (("count",), ("sum", *MONEY.values()), ("mean", *MONEY.values()))
)
TIGHT = {  # truncation, aggregate, rows, bound at 1
    "count": (TRUNCATED, oc.t.then_table_count(), ONE, 4),
    "units": (TRUNCATED, oc.t.then_distinct_units(), ONE, 1),
    "counts l1": (TRUNCATED, oc.t.then_table_count(**KEYS), MANY, 4),
    "counts l2": (TRUNCATED, oc.t.then_table_count(**KEYS, norm="l2"), ONE, 4),
    "counts linf": (TRUNCATED, oc.t.then_table_count(**KEYS, norm="linf"), ONE, 4),
    "groups l1": (GROUPED, oc.t.then_table_count(**KEYS), MANY, 4),
    "groups l2": (GROUPED, oc.t.then_table_count(**KEYS, norm="l2"), MANY, 8**0.5),
    "groups linf": (GROUPED, oc.t.then_table_count(**KEYS, norm="linf"), MANY, 2),
    "sum": (TRUNCATED, oc.t.then_table_sum(**MONEY), ONE, 20),
    "sums l1": (TRUNCATED, oc.t.then_table_sum(**KEYS, **MONEY), MANY, 20),
    "quanta": (TRUNCATED, oc.t.then_table_sum(**HOURS), ONE, 24),
    "sums l2": (GROUPED, oc.t.then_table_sum(**KEYS, **MONEY, norm="l2"), MANY, 200**0.5),
    # a row of 9 is clamped to 5: 3 from the middle 2, at most 4; a count is 3 in L1, 3 in L2
    "moments l1": (TRUNCATED, oc.t.then_table_answers([MEAN]), ONE, 4 * (4 + 3)),
    # 5 eur are 5 of 5, so each answer has the share 80: 16 times the largest one
    "answers l1": (GROUPED, oc.t.then_table_answers([COUNT, TOTAL], **KEYS), MANY, 640),
    "prefixes l1": (TRUNCATED, oc.t.then_table_prefixes("eur", range(1, 9)), ONE, 4),
    "histogram": (TRUNCATED, oc.t.then_table_histogram(**EDGES, norm="l2"), ONE, 4),
    "histograms l2": (GROUPED, oc.t.then_table_histogram(**EDGES, **KEYS, norm="l2"), MANY, 8**0.5),
    "distinct values": (GROUPED, oc.t.then_distinct_values("zone"), MANY, 2),
    "units by key l1": (GROUPED, oc.t.then_distinct_units(**KEYS), MANY, 2),
    "units by key l2": (GROUPED, oc.t.then_distinct_units(**KEYS, norm="l2"), MANY, 2**0.5),
    "values by key l1": (GROUPED, oc.t.then_distinct_values("eur", **KEYS), VALUES, 4),
    "values by key linf": (
        GROUPED,
        oc.t.then_distinct_values("eur", **KEYS, norm="linf"),
        VALUES,
        2,
    ),
    # two rows in each of two zones, which are in one bin
    "one bin": (GROUPED, oc.t.then_table_histogram("zone", [0, 9], norm="linf"), MANY, 4),
    "scores": (TRUNCATED, oc.t.then_quantile_scores("eur", [99], alpha=0.25), ONE, 12),
}


@pytest.mark.parametrize("name", TIGHT)
def test_the_stability_map_is_attained(on_duckdb, name):
    truncation, aggregate, rows, most = TIGHT[name]
    values = [(1, *row, 8.0) for row in rows]
    found = Data.of(SCHEMA, "person", values)
    table = on_duckdb.load(found)
    asked = table.space >> truncation >> aggregate
    assert asked.map(1) == pytest.approx(most, rel=1e-12)
    assert asked.map(1) >= most
    assert asked.map(3) == pytest.approx(3 * most, rel=1e-12)
    moved = distance(asked.output_metric, asked(table), asked(on_duckdb.load(without(found, {1}))))
    squared = str(asked.output_metric).startswith("L2")
    assert moved == (round(Fraction(most) ** 2) if squared else most)


@pytest.mark.parametrize("name", [name for name in TIGHT if name != "units"])
def test_an_answer_needs_a_bound_on_the_rows_of_a_unit(on_duckdb, name):
    table = on_duckdb.load(Data(SCHEMA, "person", []))
    with pytest.raises(InvalidValueError, match="then_truncate"):
        table.space >> TIGHT[name][1]


def agree(*engines_and_draw):
    *engines, draw = engines_and_draw
    found = draw(data())
    pipeline = draw(pipelines(found.schema, found.unit))
    expected = pipeline.answer(found.rows, found.unit, found.schema)
    for engine in engines:
        table = engine.load(found)
        asked = pipeline.build(table.space)
        assert asked(table) == expected, (engine.name, pipeline.parts)


@pytest.mark.parametrize("examples", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_duckdb_and_postgres_give_the_integers_of_plain_python(on_duckdb, on_postgres, examples):
    check(agree, examples, on_duckdb, on_postgres)


@pytest.mark.parametrize("examples", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_spark_gives_the_integers_of_plain_python(on_spark, examples):
    check(agree, examples, on_spark)
