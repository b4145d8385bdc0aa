"""A unit more or less moves no answer further than the stability map says; joins of two tables."""

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import opendp.prelude as dp
import pytest
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import Tables, table_domain, units
from opendp_concurrent.tables.schema import spelled

from . import reference
from .pipelines import NAMES, Data, Pipeline, aggregates, check, columns_of, data, pipelines, steps
from .pipelines import values as some_values


def distance(metric, one, other):
    """The distance of two answers, exactly; squared for L2."""
    one, other = ([answer] if isinstance(answer, int) else answer for answer in (one, other))
    moved = [abs(left - right) for left, right in zip(one, other, strict=True)]
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
    some = st.lists(st.sampled_from(units), max_size=3, unique=True)
    removed = set(draw(some)) if units else set()
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


def agree(engine, draw):
    found = draw(data())
    pipeline = draw(pipelines(found.schema, found.unit))
    table = engine.load(found)
    expected = pipeline.answer(found.rows, found.unit, found.schema)
    assert pipeline.build(table.space)(table) == expected, pipeline.parts


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        *(("duckdb", 25), ("postgres", 25), ("spark", 2)),
        *(pytest.param(one, 1000, marks=pytest.mark.slow) for one in ("duckdb", "postgres")),
        pytest.param("spark", 100, marks=pytest.mark.slow),
    ],
)
def test_an_engine_gives_the_integers_of_plain_python(request, name, examples):
    check(agree, examples, request.getfixturevalue(f"on_{name}"))


# --- two private tables of the same units, joined -------------------------------------------------

HOW = st.sampled_from(["inner", "inner", "left", "semi", "anti"])


@dataclass
class Joined:
    """Two tables, what is done to each before the join, the join, and what follows."""

    main: Data
    other: Data
    before: Pipeline
    most: int | None  # rows of a unit of the other table
    join: dict
    after: Pipeline
    schema: dict  # after the join

    def build(self, engine, removed=()):
        """The dataset of both tables without some units, and the transformation."""
        main = engine.load(without(self.main, removed), "t")
        other = engine.load(without(self.other, removed), "o")
        if self.most is not None:
            other = (other.space >> oc.t.then_truncate(self.most))(other)
        both = main.with_tables(other=other)
        space = self.before.build(both.space) >> oc.t.then_private_join("other", **self.join)
        return both, self.after.build(space)

    def answer(self):
        """The answer in plain Python."""
        unit = self.main.unit
        rows = self.before.answer(self.main.rows, unit, self.main.schema)
        partners = reference.scanned(self.other.rows, self.other.unit)
        if self.most is not None:
            partners = reference.truncate(partners, self.other.unit, self.most)
        rows = joined(rows, unit, partners, self.other.unit, **self.join)
        return self.after.answer(rows, unit, self.schema)


def joined(rows, unit, partners, theirs, columns, on, how):
    found = []
    for row in rows:
        own = [
            one
            for one in partners
            if one[theirs] == row[unit]
            and all(row[name] is not None and one[name] == row[name] for name in on)
        ]
        if how in ("semi", "anti"):
            found += [row] if bool(own) == (how == "semi") else []
            continue
        if how == "left" and not own:
            own = [dict.fromkeys(columns.values())]
        found += [{**row, **{new: one[of] for new, of in columns.items()}} for one in own]
    return found


@st.composite
def pairs(draw):
    main = draw(data(least=2))
    kind, key = main.schema[main.unit], list(main.schema)[2]
    names = [name for name in NAMES if name not in main.schema]
    unit, third, *_ = draw(st.permutations(names))
    schema = {unit: kind, key: main.schema[key], third: draw(st.sampled_from([int, str, float]))}
    seen = {name: [row[name] for row in main.rows] for name in (main.unit, key)}
    row = st.tuples(
        st.sampled_from(seen[main.unit]) | some_values(kind, True),
        st.sampled_from(seen[key]) | some_values(schema[key], True),
        some_values(schema[third], True),
    ).map(lambda found: dict(zip(schema, found, strict=True)))
    other = Data(schema, unit, draw(st.lists(row, max_size=8)))
    before, after = [], dict(main.schema)
    for _ in range(draw(st.integers(0, 2))):
        part, after = draw(steps(after, main.unit))
        before.append(part)
    how = draw(HOW)
    join = {"how": how, "on": [], "columns": None}
    if after.get(key) is schema[key] and draw(st.booleans()):
        join["on"] = [key]
    if how in ("inner", "left"):
        folded = {name.casefold() for name in after}
        fresh = draw(columns_of([name for name in NAMES if name.casefold() not in folded], 2))
        join["columns"] = dict(zip(fresh, draw(st.permutations([third, key])), strict=False))
        after = after | {new: schema[of] for new, of in join["columns"].items()}
    most = draw(st.none() | st.integers(1, 3))
    parts, known = [], dict(after)
    for _ in range(draw(st.integers(0, 2))):
        part, known = draw(steps(known, main.unit))
        parts.append(part)
    cuts = ("truncate", "group_truncate")
    if not any(name in cuts for name, _ in parts) and not (
        any(name in cuts for name, _ in before) and (most is not None or how in ("semi", "anti"))
    ):
        parts.append(("truncate", {"per_unit": draw(st.integers(1, 4))}))
    parts.append(draw(aggregates(known)))
    return Joined(main, other, Pipeline(before), most, join, Pipeline(parts), after)


def joined_stays_within(engine, draw):
    case = draw(pairs())
    seen = {row[of.unit] for of in (case.main, case.other) for row in of.rows} - {None}
    some = st.lists(st.sampled_from(sorted(seen, key=str)), max_size=3, unique=True)
    removed = draw(some) if seen else []
    both, asked = case.build(engine)
    whole = asked(both)
    part, same = case.build(engine, removed)
    moved = distance(asked.output_metric, whole, same(part))
    assert moved <= bound(asked, len(removed)), (case, removed)


def agrees(engine, draw):
    case = draw(pairs())
    both, asked = case.build(engine)
    assert asked(both) == case.answer(), case


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        *(("duckdb", 15), ("files", 3), ("postgres", 8), ("spark", 1)),
        pytest.param("duckdb", 1000, marks=pytest.mark.slow),
    ],
)
def test_an_engine_joins_as_plain_python(request, name, examples):
    check(agrees, examples, request.getfixturevalue(f"on_{name}"))


@pytest.mark.parametrize("examples", [10, pytest.param(2000, marks=pytest.mark.slow)])
def test_removing_units_from_both_tables_stays_within_the_stability_map(on_duckdb, examples):
    check(joined_stays_within, examples, on_duckdb)


FLIGHTS = [(1, "a", 5), (1, "a", 6), (1, "b", 7), (2, "b", 8), (3, None, 9)]
PLANES = [(1, "a", 100), (1, "b", 90), (2, "a", 80), (9, "a", 70)]


def flights(engine, rows=FLIGHTS):
    schema = {"plane": int, "zone": str, "hour": int}
    return engine.load(Data.of(schema, "plane", rows), "flights")


def planes(engine, rows=PLANES):
    schema = {"tail": int, "zone": str, "seats": int}
    return engine.load(Data.of(schema, "tail", rows), "planes")


def test_the_bound_on_a_unit_is_multiplied_and_attained(on_duckdb):
    main = flights(on_duckdb, [(1, "a", hour) for hour in range(9)])
    other = planes(on_duckdb, [(1, "a", seats) for seats in range(9)])
    once = (other.space >> oc.t.then_truncate(3))(other)
    both = main.with_tables(planes=once)
    joined = both.space >> oc.t.then_truncate(4) >> oc.t.then_private_join("planes", ["seats"])
    count = joined >> oc.t.then_table_count()
    assert (count.map(1), count.map(2), count(both)) == (12, 24, 12)
    grouped = (other.space >> oc.t.then_group_truncate("zone", 5, 2))(other)
    both = main.with_tables(planes=grouped)
    cut = both.space >> oc.t.then_group_truncate("zone", 1, 4)
    by = {"by": "zone", "keys": ["a"], "norm": "linf"}
    for on, each in ((), 10), ("zone", 2):
        space = cut >> oc.t.then_private_join("planes", ["seats"], on)
        assert (space >> oc.t.then_table_count(**by)).map(1) == 4 * each
    assert (space >> oc.t.then_table_count(**by))(both) == [8]
    semi = cut >> oc.t.then_private_join("planes", how="semi") >> oc.t.then_table_count()
    assert (semi.map(1), semi(both)) == (4, 4)
    left = Tables(main.tables.schema, 2, others=(("none", Tables(other.tables.schema, 0)),))
    space = table_domain(left), units()
    rows = oc.t.make_private_join(
        *space, "none", ["seats"], how="left"
    ).output_domain.descriptor.rows
    assert rows == 2  # a row without a partner stays one


def linked(engine):
    return flights(engine).with_tables(planes=planes(engine))


def test_tables_of_other_units_or_connections_are_refused(on_duckdb):
    main, other = flights(on_duckdb), planes(on_duckdb)
    texts = on_duckdb.load(Data({"person": str, "age": int}, "person", []), "texts")
    with pytest.raises(InvalidTypeError, match="planes must have the unit"):
        main.with_tables(planes=texts)
    schema = {"plane": int, "zone": str}
    both = oc.tables.scan(on_duckdb.connection, "flights", schema, ("plane", "zone"))
    with pytest.raises(InvalidTypeError, match="planes must have the unit"):
        both.with_tables(planes=other)
    with pytest.raises(InvalidTypeError, match="planes must be of oc.tables.scan"):
        main.with_tables(planes=[1])
    with (
        contextlib.closing(type(on_duckdb)()) as elsewhere,
        pytest.raises(InvalidValueError, match="planes must be of the same connection"),
    ):
        main.with_tables(planes=planes(elsewhere))


def test_postgres_has_no_statement_for_the_stored_rows_of_two_tables(on_postgres):
    main, other = flights(on_postgres), planes(on_postgres)
    stored = (other.space >> oc.t.then_truncate(1, materialize=True))(other)
    with pytest.raises(InvalidValueError, match="same connection, and neither snapshot"):
        main.with_tables(planes=stored)


def test_the_other_table_is_checked_at_each_launch(engine):
    if engine.name == "spark":
        pytest.skip("its tables are files here, which are read at scan")
    both = linked(engine)
    asked = both.space >> oc.t.then_private_join("planes", ["seats"]) >> oc.t.then_truncate(9)
    count = asked >> oc.t.then_table_count()
    assert count(both) == 7
    run = engine.connection.execute
    run("ALTER TABLE planes RENAME TO planes_before")
    run("CREATE VIEW planes AS SELECT * FROM planes_before")
    try:
        with pytest.raises(OpenDPException, match="TableError"):
            count(both)
    finally:
        run("DROP VIEW planes")
        run("DROP TABLE planes_before")


def test_the_other_file_is_checked_at_each_launch(on_files, tmp_path):
    path = str(tmp_path / "planes.parquet")
    text = f"COPY (SELECT 1 AS tail, 2 AS seats) TO '{path}' (FORMAT parquet)"
    on_files.connection.execute(text)
    other = oc.tables.scan(path, {"tail": int, "seats": int}, "tail")
    both = flights(on_files).with_tables(planes=other)
    count = both.space >> oc.t.then_private_join("planes", how="semi") >> oc.t.then_distinct_units()
    assert count(both) == 1
    on_files.connection.execute(text.replace("2 AS", "3 AS"))
    with pytest.raises(OpenDPException, match="TableError"):
        count(both)


def test_parts_may_be_joined(on_duckdb):
    context = oc.concurrent_context(
        linked(on_duckdb), oc.tables.unit_of(units=1), dp.loss_of(epsilon=1e9), split_evenly_over=4
    )
    kept = context.query().group_truncate("zone", 2, 3).compositor(split_evenly_over=1).release()
    parts = kept.query().parallel_composition(oc.c.by_column("zone"), keys=["a", "b"]).release()
    found = {}
    for zone in "ab":
        query = parts[zone].query(epsilon=1e7).join_private("planes", how="semi", on="zone")
        found[zone] = query.count().laplace().release()
    assert found == {"a": 2, "b": 1}


def decimals(path, digits, column="eur"):
    path.write_text(f"p,{column}\n1,1.2\n2,1.25\n2,3\n")
    return oc.tables.scan(path, {"p": int, column: oc.tables.Decimal(digits)}, unit="p")


def test_decimals_of_two_scales_are_not_compared(tmp_path):
    cents, mills = (decimals(tmp_path / f"{digits}.csv", digits) for digits in (2, 3))
    with pytest.raises(InvalidTypeError, match=r"found Decimal\(2\) and Decimal\(3\)"):
        cents.with_tables(m=mills).space >> oc.t.then_private_join("m", (), on="eur", how="semi")
    stored = (mills.space >> oc.t.then_truncate(2, materialize=True))(mills)
    with pytest.raises(InvalidTypeError, match=r"found Decimal\(2\) and Decimal\(3\)"):
        cents.with_tables(m=stored).space >> oc.t.then_private_join("m", (), on="eur", how="semi")
    three = oc.tables.col("eur").cast(oc.tables.Decimal(3))
    finer = (cents.space >> oc.t.then_with_columns({"eur": three}))(cents)
    both = finer.with_tables(m=mills)
    joined = both.space >> oc.t.then_private_join("m", on="eur", how="semi")
    count = joined >> oc.t.then_truncate(9) >> oc.t.then_table_count()
    assert count(both) == 3
    added = cents.with_tables(m=mills).space >> oc.t.then_private_join("m", {"eur3": "eur"})
    schema = added.output_domain.descriptor.schema
    assert [spelled(schema.type_of(one)) for one in ("eur", "eur3")] == ["Decimal(2)", "Decimal(3)"]
    assert '"eur3": Decimal(3)' in str(schema)


def test_without_a_list_all_other_columns_of_the_table_are_added(on_duckdb):
    cut = linked(on_duckdb).space >> oc.t.then_truncate(1)
    schema = (cut >> oc.t.then_private_join("planes", on="zone")).output_domain.descriptor.schema
    assert schema.names == ("plane", "zone", "hour", "seats")
