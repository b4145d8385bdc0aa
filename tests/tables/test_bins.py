"""Bins between many edges are found by a search, which gives the integers of few edges."""

from bisect import bisect_right
from collections import Counter
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.tables import clauses as bins
from opendp_concurrent.tables import dialects, render
from opendp_concurrent.tables.plan import Bins, Scan
from opendp_concurrent.tables.schema import Schema

from .pipelines import RELAXED, VALUES, Data, public, values
from .reference import scanned

SEARCHES = [("duckdb", "asof"), ("duckdb", "parts")]
SEARCHES += [("postgres", "function"), ("postgres", "parts")]


@pytest.fixture(params=SEARCHES, ids="-".join)
def searching(request, monkeypatch):
    """An engine that searches among two edges or more, in some way."""
    name, search = request.param
    monkeypatch.setattr(bins, "FEW", 2)
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
    assert dict(table.ask(Bins("x", edges))) == expected
    keys = (("b",), ("a",))
    found = {row[:2]: row[2] for row in table.ask(Bins("x", edges, ("zone",), keys))}
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
    assert dict(table.ask(Bins("x", edges))) == {1: 2, 2: 1, 3: 2, 4: 3}
    empty = searching.load(Data({"person": int, "x": kind}, "person", []))
    assert empty.ask(Bins("x", edges)) == []


def test_ten_thousand_edges_are_in_a_short_statement():
    edges = tuple(float(one) for one in range(10_000))
    schema = Schema((("p", int), ("x", float)), ("p",))
    scan = Scan(("table", "a", "b"), schema)
    for name in dialects.DIALECTS:
        assert len(render.statement(name, scan, Bins("x", edges))[0]) < 10_000


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
