"""Blocks that are sealed: decided once, online, and stored."""

from itertools import product

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, TableError
from opendp_concurrent.tables.domain import domain_of_record, record_of

from .pipelines import Data
from .reference import key_of

dp.enable_features("contrib", "honest-but-curious")
SCHEMA = {"person": int, "week": int, "note": str, "share": float}


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def where(request):
    """Each engine that has transactions."""
    return request.getfixturevalue(f"on_{request.param}")


@pytest.fixture
def name(where):
    """A name of seals, whose tables are dropped."""
    yield "kept"
    run = where.connection.execute
    for one in ("kept", "kept_terms", "kept_blocks"):
        run(f'DROP TABLE IF EXISTS "{one}"')


def rows_of(table):
    """All rows that are kept, by an engine's own statement."""
    engine = table.engine()
    text, parameters = engine.query(table.relation)
    return sorted(engine.run(text, parameters, None), key=str)


def online(rows, order, groups, each):
    """The rule in plain Python: weeks are sealed in this order."""
    kept, blocks = [], {}
    for week in order:
        for person in sorted({row["person"] for row in rows if row["week"] == week}):
            own = [row for row in rows if (row["person"], row["week"]) == (person, week)]
            if blocks.setdefault(person, 0) < groups:
                blocks[person] += 1
                names = [one for one in SCHEMA if one != "person"]
                kept += sorted(own, key=lambda row: key_of(row, names))[:each]
    return sorted((tuple(row[one] for one in SCHEMA) for row in kept), key=str)


def some(**cells):
    return dict(dict.fromkeys(SCHEMA), **cells)


def test_a_unit_is_kept_in_the_blocks_that_are_sealed_first(where, name):
    rows = [some(person=p, week=w, note=n) for p, w, n in product([1, 2], range(4), "ba")]
    rows += [some(person=3, week=2), some(week=1), some(person=4)]
    for groups, each in ((1, 1), (2, 1), (3, 2), (9, 9)):
        table = where.load(Data(SCHEMA, "person", rows))
        oc.tables.create_seals(table, name, "week", groups, each)
        kept, before = oc.tables.sealed(table, name), []
        for week in (2, 0, 3, 1):
            oc.tables.seal(table, name, [week])
            now = rows_of(kept)
            assert [row for row in now if row in before] == before  # rows stay as they are
            before = now
        owned = [row for row in rows if row["person"] is not None]
        assert now == online(owned, (2, 0, 3, 1), groups, each)
        assert kept.tables.groups_at_most(frozenset(["week"])) == min(groups, groups * each)
        for one in ("kept", "kept_terms", "kept_blocks"):
            where.connection.execute(f'DROP TABLE "{one}"')


@settings(max_examples=25, deadline=None)
@given(draws=st.data())
def test_random_tables_are_sealed_as_the_rule_says_and_units_do_not_affect_each_other(
    on_duckdb, draws
):
    cells = {
        "person": st.integers(1, 3),
        "week": st.one_of(st.none(), st.integers(0, 3)),
        "note": st.one_of(st.none(), st.sampled_from(["a", "B", "\u00e9"])),
        "share": st.one_of(st.none(), st.sampled_from([0.5, -1.0])),
    }
    rows = draws.draw(st.lists(st.fixed_dictionaries(cells), max_size=12))
    order = draws.draw(st.permutations([None, 0, 1, 2, 3]))
    groups, each = draws.draw(st.integers(1, 3)), draws.draw(st.integers(1, 2))
    found = []
    for some_rows in (
        [{one: row[one] for one in SCHEMA} for row in rows],
        [{one: row[one] for one in SCHEMA} for row in rows if row["person"] != 1],
    ):
        for one in ("random", "random_terms", "random_blocks"):
            on_duckdb.connection.execute(f'DROP TABLE IF EXISTS "{one}"')
        table = on_duckdb.load(Data(SCHEMA, "person", some_rows))
        oc.tables.create_seals(table, "random", "week", groups, each)
        oc.tables.seal(table, "random", order[:2])
        for week in order[2:]:
            oc.tables.seal(table, "random", [week])
        found.append(rows_of(oc.tables.sealed(table, "random")))
        assert found[-1] == online(some_rows, order, groups, each)
    assert [row for row in found[0] if row[0] != 1] == found[1]


def test_late_rows_are_dropped_and_blocks_are_sealed_once(where, name):
    table = where.load(Data(SCHEMA, "person", [some(person=1, week=1), some(person=1, week=2)]))
    oc.tables.create_seals(table, name, "week", 5)
    oc.tables.seal(table, name, [1])
    where.connection.execute("INSERT INTO t VALUES (2, 1, NULL, NULL), (2, 2, NULL, NULL)")
    for again in ([1], [2, 1], [3, 1, 2]):
        with pytest.raises(InvalidValueError, match="keys has 1, which is sealed already"):
            oc.tables.seal(table, name, again)
    kept = oc.tables.sealed(table, name)
    assert len(rows_of(kept)) == 1  # a refusal has sealed nothing
    oc.tables.seal(table, name, [3, 2])
    assert [row[:2] for row in rows_of(kept)] == [(1, 1), (1, 2), (2, 2)]


def test_a_seal_that_fails_has_sealed_nothing(on_duckdb):
    table = on_duckdb.load(Data(SCHEMA, "person", [some(person=1, week=w) for w in range(3)]))
    oc.tables.create_seals(table, "broken", "week", 5)
    on_duckdb.connection.execute("ALTER TABLE t RENAME COLUMN note TO gone")
    with pytest.raises(TableError):
        oc.tables.seal(table, "broken", [0, 1])
    on_duckdb.connection.execute("ALTER TABLE t RENAME COLUMN gone TO note")
    assert rows_of(oc.tables.sealed(table, "broken")) == []
    oc.tables.seal(table, "broken", [1, 0])
    assert [row[1] for row in rows_of(oc.tables.sealed(table, "broken"))] == [0, 1]


def test_a_file_for_each_week_is_sealed_into_one_table(tmp_path, on_duckdb):
    for week in range(3):
        on_duckdb.connection.execute(
            f"COPY (SELECT 7 AS person, {week} AS week) TO '{tmp_path}/{week}.parquet'"
        )
        schema = {"person": int, "week": int}
        table = oc.tables.scan(on_duckdb.connection, f"{tmp_path}/{week}.parquet", schema, "person")
        if not week:
            oc.tables.create_seals(table, "files", "week", 2)
        oc.tables.seal(table, "files", [week])
    assert rows_of(oc.tables.sealed(table, "files")) == [(7, 0), (7, 1)]


def test_two_seals_at_once_are_one_after_the_other(on_postgres):
    from concurrent.futures import ThreadPoolExecutor

    rows = [some(person=p, week=w) for p in range(20) for w in range(8)]
    table = on_postgres.load(Data(SCHEMA, "person", rows))
    oc.tables.create_seals(table, "many", "week", 2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda week: oc.tables.seal(table, "many", [week]), range(8)))
    kept = rows_of(oc.tables.sealed(table, "many"))
    assert len(kept) == 40
    assert {sum(row[0] == person for row in kept) for person in range(20)} == {2}


def test_wrong_arguments_are_refused(on_duckdb):
    table = on_duckdb.load(Data(SCHEMA, "person", []))
    create = oc.tables.create_seals
    for wrong in ("share", "missing", (), 5):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="by"):
            create(table, "wrong", wrong, 2)
    for wrong in (0, -1, 1.5, 2**31):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="groups"):
            create(table, "wrong", "week", wrong)
        with pytest.raises((InvalidTypeError, InvalidValueError), match="rows"):
            create(table, "wrong", "week", 1, wrong)
    with pytest.raises(InvalidTypeError, match="table must be of oc.tables.scan"):
        create([1], "wrong", "week", 2)
    with pytest.raises(InvalidValueError, match="must be made by oc.tables.create_seals"):
        oc.tables.seal(table, "wrong", [1])
    create(table, "wrong", ["week", "note"], 2)
    with pytest.raises(InvalidValueError, match="must be the name of new tables"):
        create(table, "wrong", "week", 2)
    for wrong in ([1], [("1", "a")], 1, [], [(1, "a"), (1, "a")]):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            oc.tables.seal(table, "wrong", wrong)
    other = on_duckdb.load(Data({"person": int, "week": int}, "person", []), "other")
    with pytest.raises(InvalidValueError, match="these columns and this unit"):
        oc.tables.sealed(other, "wrong")
    own = on_duckdb.load(Data({"person": int, "oc_seal": int}, "person", []), "own")
    with pytest.raises(InvalidValueError, match="oc_seal"):
        create(own, "owned", "oc_seal", 2)


def test_sealed_tables_have_a_domain_of_their_own(on_duckdb):
    table = on_duckdb.load(Data(SCHEMA, "person", []))
    oc.tables.create_seals(table, "domains", "week", 2, 3)
    kept = oc.tables.sealed(table, "domains")
    bounded = table.space >> oc.t.then_group_truncate("week", 2, 3)
    assert kept.space[0] != bounded.output_space[0]
    assert domain_of_record(**record_of(kept.tables)) == kept.space[0]
    counts = kept.space >> oc.t.then_table_counts("week", range(3), norm="l2")
    assert counts.map(1) == pytest.approx((2 * 3**2) ** 0.5)
    assert counts(kept) == [0, 0, 0]
    assert "sealed" not in str((kept.space >> oc.t.then_truncate(1)).output_domain)


def test_a_unit_of_several_columns_answers_as_one_column_of_pairs(engine):
    rows = [
        {"person": p, "week": w, "pair": f"{p}-{w}", "n": n}
        for p, w, n in product([1, 2], [1, 2, 3], [5, 4, 4])
    ]
    schema = {"person": int, "week": int, "pair": str, "n": int}
    lost = {"person": None, "week": 1, "pair": None, "n": 9}, dict(rows[0], week=None, pair=None)
    data = [*rows, *lost]
    two = engine.load(Data(schema, ("person", "week"), data), "two")
    one = engine.load(Data(schema, "pair", data), "two")
    for truncated in (
        oc.t.then_truncate(2),
        oc.t.then_group_truncate("n", 1, 1),
        oc.t.then_group_truncate(["n", "week"], 2, 1),
    ):
        for answer in (
            oc.t.then_table_count(),
            oc.t.then_distinct_units(),
            oc.t.then_table_sum("n", (0, 10)),
            oc.t.then_table_counts("n", [4, 5]),
        ):
            on_two, on_one = (table.space >> truncated >> answer for table in (two, one))
            assert on_two(two) == on_one(one)
            assert on_two.map(2) == on_one.map(2)
    assert (two.space >> oc.t.then_truncate(2) >> oc.t.then_table_count())(two) == 12
    per_week = (
        two.space >> oc.t.then_truncate(2) >> oc.t.then_table_counts("week", [1, 2], norm="l2")
    )
    assert per_week.map(1) == 2.0
    assert record_of(two.tables)["unit"] == ("person", "week")
    assert domain_of_record(**record_of(two.tables)) == two.space[0]


def test_what_has_one_column_as_its_unit_refuses_several(on_duckdb):
    schema = {"person": int, "week": int, "n": float}
    table = on_duckdb.load(Data(schema, ("person", "week"), []))
    with pytest.raises(InvalidTypeError, match="one column as its unit"):
        oc.tables.create_budgets(table, "budgets")
    with pytest.raises(InvalidTypeError, match="'person', 'week'"):
        oc.concurrent_context(
            data=table,
            privacy_unit=dp.unit_of(contributions=1, identifier="person"),
            privacy_loss=dp.loss_of(epsilon=1.0),
        )
    for wrong in ((), ("person", "n"), ("person", "person"), ("week", 5), ("n",), 5):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="unit|columns"):
            on_duckdb.load(Data(schema, wrong, []))


def test_units_of_texts_are_told_apart_by_their_bytes(where, name):
    schema = {"person": str, "week": str}
    rows = [{"person": p, "week": w} for p, w in product(["a", "A", "\u00e9"], ["v", "V", "w"])]
    table = where.load(Data(schema, "person", rows))
    oc.tables.create_seals(table, name, "week", 2)
    if where.name == "duckdb":
        where.connection.execute("SET default_collation = 'nocase'")
    try:
        oc.tables.seal(table, name, ["v", "V"])
        oc.tables.seal(table, name, ["w"])
        with pytest.raises(InvalidValueError, match="sealed already"):
            oc.tables.seal(table, name, ["V"])
        found = rows_of(oc.tables.sealed(table, name))
    finally:
        if where.name == "duckdb":
            where.connection.execute("RESET default_collation")
    assert found == sorted(product(["a", "A", "\u00e9"], ["v", "V"]), key=str)
