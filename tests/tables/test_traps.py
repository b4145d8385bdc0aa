"""Traps of rendering one tree for several engines: each is known to have given other integers."""

from bisect import bisect_right
from collections import Counter
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import opendp_concurrent as oc
from opendp_concurrent.tables import clauses, dialects, render, typed
from opendp_concurrent.tables import plan as nodes
from opendp_concurrent.tables.dialects import DIALECTS
from opendp_concurrent.tables.schema import schema_of

from .pipelines import RELAXED, VALUES, Data, public, rows_of, values
from .reference import scanned
from .syntax import ALLOWED, check_syntax

col = oc.tables.col


ENGINES = "duckdb", "postgres", "spark"


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    return request.getfixturevalue(f"on_{request.param}")


def table_of(engine, schema, rows):
    return engine.load(Data.of(schema, "person", rows))


def ask(table, *steps):
    asked = table.space
    for step in (oc.t.then_truncate(100), *steps):
        asked = asked >> step
    return asked(table)


def total(bounds, quantum=None):
    return oc.t.then_table_sum("x", bounds, quantum)


LARGEST = 2**62
TINY = [5e-324, -5e-324, 1e-310, -1e-310, 8.0]  # products of them underflow
ODD = [nan, 1.0, None]
TRAPS = {  # what the column x holds, and answers
    # GREATEST(NULL, 5) is 5 in one engine and NULL in another
    "clamped NULL": ([None, 9], [(total((5, 7)), 7)]),
    "clamped NULL of floats": ([None, 9.0], [(total((5.0, 7.0), 1.0), 7)]),
    # 1, 2, 3, 0 and -1; a cast to BIGINT gives 2 or 1 for 1.5
    "halves": ([0.5, 1.5, 2.5, -0.5, -1.5], [(total((-9.0, 9.0), 1.0), 5)]),
    # 7/2 is 3.5 or 3; ``//`` of doubles differs too
    "integers": ([7, -7], [(total((-9, 9)), 0)]),
    # a double cast to DECIMAL keeps 15 digits in PostgreSQL
    "large quanta": ([2.0**52 - 1], [(total((0.0, 2.0**52), 1.0), 2**52 - 1)]),
    # engines order NaN as the largest number; a cast of it to DECIMAL fails, or is NULL or NaN
    "NaN": (
        ODD,
        [
            (total((0.0, 9.0), 1.0), 1),
            (oc.t.then_table_histogram("x", [0.0, inf]), [1]),
            (oc.t.then_quantile_scores("x", [0.0], 0.5), [1]),
        ],
    ),
    "infinities": (
        [inf, -inf],
        [(total((-1.0, 4.0), 1.0), 3), (oc.t.then_table_histogram("x", [-inf, 0.0]), [1])],
    ),
    # PostgreSQL raises an error where a product underflows
    "tiny": (TINY, [(total(one, 4.0), 2) for one in ((0.0, 9.0), (-9.0, 9.0), (5e-324, 9.0))]),
    "zeros": ([0.0, -0.0, -0.0], [(oc.t.then_table_histogram("x", [0.0, 1.0]), [3])]),
    # SUM(BIGINT) wraps to -2 in Spark
    "beyond 64 bits": (
        [2**63 - 1] * 8,
        [(total((0, LARGEST)), 2**63 - 1), (total((-LARGEST, -LARGEST)), 1 - 2**63)],
    ),
}


BY_HAND = {"clamped NULL", "integers", "tiny", "zeros"}  # on Spark: as on the others


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        pytest.param(one, name, marks=[pytest.mark.slow] * (one == "spark" and name in BY_HAND))
        for one in ENGINES
        for name in TRAPS
    ],
    indirect=["engine"],
)
def test_answers_are_the_same_on_each_engine(engine, name):
    values, answers = TRAPS[name]
    kind = type(next(one for one in values if one is not None))
    table = table_of(engine, {"person": int, "x": kind}, enumerate(values))
    for aggregate, answer in answers:
        assert ask(table, aggregate) == answer


def test_an_empty_table_and_empty_groups(engine):
    table = table_of(engine, {"person": int, "x": int, "f": float}, [])
    assert ask(table, oc.t.then_table_sum("x", (3, 5))) == 0
    assert ask(table, oc.t.then_table_sum("f", (0.0, 1.0), 0.5, "x", [1, 2])) == [0, 0]
    assert ask(table, oc.t.then_quantile_scores("f", [0.0, 1.0], 0.3)) == [0, 0]


def test_null_is_first_in_each_order(engine):
    rows = [(1, None, 5), (1, 3, 7), (1, 4, 9)]
    table = table_of(engine, {"person": int, "x": int, "y": int}, rows)
    summed = oc.t.then_table_sum("y", (0, 100))
    for rows, descending, expected in ((1, False, 5), (2, False, 12), (2, True, 16)):
        assert ask(table, oc.t.then_truncate(rows, "x", descending=descending), summed) == expected


def test_truncation_does_not_depend_on_how_rows_are_stored(engine):
    """``row_number()`` without an order gave six values in six runs."""
    rows = [(person, x, y) for person in range(5) for x in (2, 1) for y in (3, 1, 2)]
    schema = {"person": int, "x": int, "y": int}
    steps = oc.t.then_truncate(2), oc.t.then_table_sum("y", (0, 9))
    turned = [rows, rows[7:] + rows[:7], rows[::-1]]
    assert len({ask(table_of(engine, schema, one), *steps) for one in turned}) == 1


def test_quoted_and_folded_names_are_kept_apart(engine):
    schema = {'per"son': int, "a.b": int, "SELECT": int, "c1": int, "C 0": int, "100%": int}
    row = 1, 10, 20, 30, 40, 50
    table = engine.load(Data.of(schema, 'per"son', [row]), 'a "strange" table; --')
    assert list(map(tuple, rows_of(table))) == [row]


def test_thousands_of_keys(engine):
    table = table_of(engine, {"person": int, "x": str}, [(1, "k7"), (2, "k19999"), (3, "none")])
    counts = ask(table, oc.t.then_table_count("x", [f"k{number}" for number in range(20_000)]))
    assert len(counts) == 20_000
    assert {place for place, one in enumerate(counts) if one} == {7, 19_999}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_text_of_the_caller_is_in_a_statement(dialect):
    schema = schema_of({"person": str, "x": str}, "person")
    scan = nodes.Scan(("table", "t"), schema)
    known = typed.checked(schema, (col("x") == "needle") | col("x").is_in(["needle"]))
    keys = (("needle",),)
    text, parameters = render.statement(
        dialect, nodes.Where(scan, known), nodes.Sums((nodes.ROW,), ("x",), keys)
    )
    assert "needle" not in text
    assert parameters == ("needle", "needle", ["needle"], [0])


def test_other_syntax_is_refused_in_each_statement_of_these_tests():
    for tree in (
        *(exp.Rand(), exp.select("a").from_("t").limit(1), exp.Delete(this=exp.to_table("t"))),
        exp.Mul(this=exp.Add(this=exp.column("a"), expression=exp.column("b"))),  # no parentheses
        exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[])),
    ):
        with pytest.raises(AssertionError, match="a statement contains"):
            check_syntax(tree)
    assert not ALLOWED & {exp.Anonymous, exp.Mod, exp.Rand, exp.Limit, exp.Command}


# --- bins between many edges are found by a search, which gives the integers of few edges ---------

SEARCHES = [("duckdb", "asof"), ("duckdb", "parts")]
SEARCHES += [("postgres", "function"), ("postgres", "parts")]


@pytest.fixture(params=SEARCHES, ids="-".join)
def searching(request, monkeypatch):
    """An engine that searches among two edges or more, in some way."""
    name, search = request.param
    monkeypatch.setattr(clauses, "FEW", 2)
    monkeypatch.setattr(type(dialects.DIALECTS[name]), "search", search)
    render.statement.cache_clear()
    yield request.getfixturevalue(f"on_{name}")
    render.statement.cache_clear()


@settings(max_examples=7, **RELAXED)
@given(st.data())
def test_a_search_finds_the_bin(searching, draws):
    kind = draws.draw(st.sampled_from([int, float]))
    schema = {"person": int, "x": kind, "zone": str}
    row = st.tuples(st.integers(0, 3), values(kind, True), st.sampled_from(["a", "b", "c", None]))
    data = Data.of(schema, "person", draws.draw(st.lists(row, max_size=20)))
    table = searching.load(data)
    edges = tuple(sorted(draws.draw(st.sets(public(kind), min_size=3, max_size=12))))
    known = [one for one in scanned(data.rows, "person") if one["x"] is not None]
    expected = Counter(bisect_right(edges, one["x"]) for one in known)
    assert dict(table.ask(nodes.Bins("x", edges))) == expected
    keys = (("b",), ("a",))
    found = {row[:2]: row[2] for row in table.ask(nodes.Bins("x", edges, ("zone",), keys))}
    zones = {"b": 0, "a": 1}
    assert found == Counter(
        (zones[one["zone"]], bisect_right(edges, one["x"])) for one in known if one["zone"] in zones
    )


@pytest.mark.parametrize("kind", [int, float])
def test_the_ends_of_a_type_are_in_their_bins(searching, kind):
    last = inf if kind is float else 2**63 - 1
    edges = (-last, kind(-1), kind(0), last)
    numbers = [-last, -last, kind(-1), kind(0) * -1, kind(1), last, last, last]
    rows = [{"person": place, "x": one} for place, one in enumerate(numbers)]
    table = searching.load(Data({"person": int, "x": kind}, "person", rows))
    assert dict(table.ask(nodes.Bins("x", edges))) == {1: 2, 2: 1, 3: 2, 4: 3}
    empty = searching.load(Data({"person": int, "x": kind}, "person", []))
    assert empty.ask(nodes.Bins("x", edges)) == []


def test_ten_thousand_edges_are_in_a_short_statement():
    edges = tuple(float(one) for one in range(10_000))
    scan = nodes.Scan(("table", "a", "b"), schema_of({"p": int, "x": float}, "p"))
    for name in dialects.DIALECTS:
        assert len(render.statement(name, scan, nodes.Bins("x", edges))[0]) < 10_000


@pytest.mark.parametrize("kind", [int, float])
def test_scores_at_the_ends_of_the_types(on_duckdb, kind):
    """What is above a candidate is at or above the next number of the type."""
    numbers = sorted(one for one in VALUES[kind] if one == one)
    rows = [{"person": place, "x": one} for place, one in enumerate(numbers)]
    table = on_duckdb.load(Data({"person": int, "x": kind}, "person", rows))
    distinct = [one for place, one in enumerate(numbers) if not place or one > numbers[place - 1]]
    bounded = table.space >> oc.t.then_truncate(1)
    scores = bounded >> oc.t.then_quantile_scores("x", distinct, 0.5)
    assert scores(table) == [
        abs(sum(one < c for one in numbers) - sum(one > c for one in numbers)) for c in distinct
    ]
    assert kind is int or {inf, -inf} <= set(numbers)
