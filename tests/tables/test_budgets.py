"""Individual budgets in an engine: charges, durability, faults, and several processes at once.

The statements that charge are written by opendp_concurrent.tables.rendering.charging and run here.
"""

import os
import subprocess
import sys
import textwrap
import threading
from fractions import Fraction

import duckdb
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, TableError
from opendp_concurrent.individual.bank import Bank
from opendp_concurrent.individual.noise_loss import noise_loss
from opendp_concurrent.individual.noisy_table_sum import steps_of
from opendp_concurrent.individual.price import Price
from opendp_concurrent.individual.table_filter import (
    make_individual_table_filter,
    then_individual_table_filter,
)
from opendp_concurrent.individual.unit_price import BUDGET, UnitPrice, terms_of
from opendp_concurrent.tables.budgets import Budgets, create_budgets
from opendp_concurrent.tables.plan import Where

from . import reference
from .pipelines import Data, data, predicates

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SCHEMA = {"person": int, "eur": int}
RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
SURE = 2.0**-10  # a scale at which noise on integers is 0, but with a probability of e^-1024
ONE = 1024.0  # what a number of 1 costs then


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def engine(request):
    """Each engine that can keep budgets."""
    return request.getfixturevalue(f"on_{request.param}")


def people(*rows):
    return Data(SCHEMA, "person", [dict(zip(SCHEMA, row, strict=True)) for row in rows])


def fresh(engine, table, name="spent"):
    """Budgets of nobody, instead of older ones."""
    for one in (name, f"{name}_terms", f"{name}_next"):
        run(engine, f'DROP TABLE IF EXISTS "{one}"')
    create_budgets(table, name)


def run(engine, text):
    """Run a statement on the owner's connection."""
    if engine.name == "duckdb":
        return engine.connection.execute(text)
    return engine.cursor.execute(text.encode(), prepare=False)


def rows_of(engine, text):
    return run(engine, text).fetchall()


def spent_by(engine, name="spent"):
    return {unit: int(one) for unit, one in rows_of(engine, f"SELECT unit, spent FROM {name}")}


def opened(engine, table, d_out, measure=PURE, name="spent"):
    return (table.space >> then_individual_table_filter(measure, d_out, name))(table)


def sums(bound=10, column="eur", **rest):
    return oc.m.NoisyTableSum(column, bound=bound, scale=SURE, **rest)


# --- what is charged, and who is left out ------------------------------------------------------


def test_units_drop_out_one_by_one(engine):
    table = engine.load(people((1, 4), (1, 6), (2, 5), (3, -2), (4, 0)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=21 * ONE)
    answers = [queryable(sums()) for _ in range(5)]
    assert answers == [13.0, 13.0, 3.0, 3.0, -2.0]
    spent = spent_by(engine)
    assert [spent[unit] * 21 // BUDGET for unit in (1, 2, 3, 4)] == [20, 20, 10, 0]
    assert repr(queryable) == "IndividualTableFilter(open)"


def test_a_unit_that_is_left_out_may_pay_for_less(engine):
    table = engine.load(people((1, 9), (2, 1)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=10 * ONE)
    assert queryable(sums()) == 10.0
    assert queryable(sums()) == 1.0
    assert queryable(sums(bound=1)) == 2.0  # clipped, and a ninth of the price
    assert queryable(sums(bound=1)) == 1.0


def test_counts_where_and_text_units(engine):
    found = Data(
        {"id": str, "age": int, "hours": float},
        "id",
        [
            {"id": one, "age": age, "hours": hours}
            for one, age, hours in [
                *(("a", 20, 0.5), ("a", 30, 1.25), ("A", 20, 9.0), ("a ", 5, None)),
                *(("é", 40, float("nan")), (None, 20, 1.0), ("'; DROP", 50, float("inf"))),
            ]
        ],
    )
    table = engine.load(found)
    fresh(engine, table)
    queryable = opened(engine, table, d_out=1e9)
    adult = oc.tables.column("age") >= 18
    assert queryable(oc.m.NoisyTableSum(None, bound=5, scale=SURE)) == 6.0
    assert queryable(oc.m.NoisyTableSum(None, bound=1, scale=SURE)) == 5.0
    assert queryable(oc.m.NoisyTableSum(None, bound=1, scale=SURE, where=adult)) == 4.0
    hours = oc.m.NoisyTableSum("hours", bound=2.0, scale=SURE, quantum=0.25)
    assert queryable(hours) == 1.75 + 2.0 + 2.0
    assert queryable(hours) == 5.75
    assert set(spent_by(engine)) == {"a", "A", "a ", "é", "'; DROP"}


def test_integers_and_rows_beyond_the_bound(engine):
    table = engine.load(people((1, 2**63 - 1), (1, 2**63 - 1), (2, -(2**63) + 1), (3, None)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=1e18)
    assert queryable(sums(bound=2**40)) == 0.0
    assert queryable(sums(bound=7)) == 0.0
    ((most,),) = rows_of(engine, "SELECT MAX(taken) FROM spent")
    assert most == 7


def test_the_whole_budget_can_be_spent_in_even_shares(engine):
    table = engine.load(people((1, 3), (2, 3)))
    for measure, d_out, launches in ((PURE, 7e5, 7), (ZCDP, 0.3e12, 9)):
        fresh(engine, table)
        scale = oc.m.individual_scale(measure, d_out, bound=3, launches=launches)
        assert scale < 0.01  # so that noise is 0
        queryable = opened(engine, table, d_out, measure)
        query = oc.m.NoisyTableSum("eur", bound=3, scale=scale)
        assert [queryable(query) for _ in range(launches + 1)] == [6.0] * launches + [0.0]


def test_budgets_stay_when_the_table_changes(engine):
    table = engine.load(people((1, 10), (2, 10)))
    fresh(engine, table)
    assert opened(engine, table, d_out=10 * ONE)(sums()) == 20.0
    changed = engine.load(people((2, 10), (3, 10)))  # person 1 has gone, and 3 has come
    queryable = opened(engine, changed, d_out=10 * ONE)
    assert queryable(sums()) == 10.0
    back = engine.load(people((1, 10), (2, 10), (3, 10)))
    assert opened(engine, back, d_out=10 * ONE)(sums()) == 0.0


def test_on_a_truncated_materialized_table(engine):
    table = engine.load(people((1, 4), (1, 6), (2, 5)))
    fresh(engine, table)
    bounded = table.space >> oc.t.then_truncate(1, materialize=True)
    queryable = (bounded >> then_individual_table_filter(PURE, 1e9, "spent"))(table)
    assert [queryable(sums()) for _ in range(2)] == [9.0, 9.0]


# --- the same as in memory ---------------------------------------------------------------------


def number_of(rows, unit, query, reach):
    """The number of each unit, in plain Python."""
    bounds = (-query.bound, query.bound)
    if query.column is not None and query.quantum is None:
        bounds = (-int(query.bound), int(query.bound))
    found = {}
    for row in rows:
        one = (
            1 if query.column is None else reference.steps(row[query.column], bounds, query.quantum)
        )
        found[row[unit]] = found.get(row[unit], 0) + one
    return {key: max(-reach, min(reach, one)) for key, one in found.items()}


@st.composite
def queries(draw, schema):
    numbers = [name for name, kind in schema.items() if kind in (int, float)]
    column = draw(st.sampled_from([None, *numbers]))
    quantum = draw(st.sampled_from([0.01, 0.5, 1 / 3])) if schema.get(column) is float else None
    bound = draw(st.sampled_from([1, 2, 5, 30, 2**40 if quantum is None else 2**30]))
    where = draw(st.none() | predicates(schema))
    return oc.m.NoisyTableSum(
        column, bound, draw(st.sampled_from([1, 3, 8])) * bound, quantum, where
    )


@settings(max_examples=20, deadline=None, suppress_health_check=RELAXED)
@given(draws=st.data(), measure=st.sampled_from([PURE, ZCDP]))
def test_sums_and_charges_are_those_of_exact_arithmetic_and_of_the_filter_in_memory(
    engine, draws, measure
):
    found = draws.draw(data(least=1, most=10))
    table = engine.load(found)
    fresh(engine, table)
    loss, d_out = noise_loss(measure), draws.draw(st.sampled_from([1.1, 2.3]))
    rows = reference.scanned(found.rows, found.unit)
    units = sorted({row[found.unit] for row in rows}, key=str)
    budgets, terms = Budgets(table, ("spent",)), terms_of(loss, d_out)
    spent, bank = dict.fromkeys(units, Fraction(0)), Bank(len(units))
    for query in draws.draw(st.lists(queries(found.schema), min_size=1, max_size=6)):
        steps = steps_of(query, table.tables.schema)
        price = UnitPrice.of(steps.reach, steps.scale, loss, d_out)
        kept, relation = rows, table.relation
        if steps.where is not None:
            kept = reference.where(rows, found.unit, query.where, found.schema)
            relation = Where(table.relation, steps.where)
        numbers = number_of(kept, found.unit, query, steps.reach)
        expected = 0
        for unit in units:
            number = numbers.get(unit, 0)
            cost = loss.of(Fraction(number), steps.scale)
            if spent[unit] + cost <= Fraction(d_out):
                spent[unit] += cost
                expected += number
        total = budgets.charge(relation, steps.value, price, BUDGET, terms)
        assert total == expected
        values = np.array([numbers.get(unit, 0) for unit in units], dtype=np.float64)
        if steps.reach < 2**31:  # which the filter in memory has at most
            in_memory = Price.in_steps(steps.reach, steps.scale, loss, d_out)
            assert bank.charge(lambda part, values=values: values[part], in_memory) == total
        else:
            bank = Bank(len(units))
            break
    for unit, units_spent in spent_by(engine).items():
        exact = spent[unit] / Fraction(d_out)
        assert exact <= Fraction(units_spent, BUDGET) <= exact + Fraction(1, 2**39)
        assert units_spent <= BUDGET


# --- what is refused ---------------------------------------------------------------------------


def test_the_loss_of_units_and_groups():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v AS SELECT 1 AS person, 2 AS eur")
    table = oc.tables.scan(connection, "v", SCHEMA, "person")
    made = make_individual_table_filter(*table.space, ZCDP, 0.5, "spent")
    assert [made.map(k) for k in (0, 1, 2, 3)] == [0.0, 0.5, 2.0, 4.5]
    pure = make_individual_table_filter(*table.space, PURE, 0.5, ["main", "spent"])
    assert [pure.map(k) for k in (0, 1, 2, 3)] == [0.0, 0.5, 1.0, 1.5]
    with pytest.raises(InvalidValueError, match=r"budgets \(spent\) must be made by oc.tables"):
        made(table)
    with pytest.raises(InvalidValueError, match="at most 50 bytes"):
        make_individual_table_filter(*table.space, ZCDP, 0.5, "s" * 51)
    for name in (["pg_temp", "spent"], ["PG_TEMP_3", "spent"]):  # PostgreSQL would forget them
        with pytest.raises(InvalidValueError, match="must not begin with pg_"):
            create_budgets(table, name)
    with pytest.raises(InvalidTypeError, match="table must be of oc.tables.scan"):
        create_budgets(connection, "spent")
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    with pytest.raises(InvalidTypeError, match="input_domain"):
        make_individual_table_filter(*rows, ZCDP, 0.5, "spent")


def test_budgets_of_other_terms_or_units_are_refused(engine):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    with pytest.raises(
        InvalidValueError, match=r"budgets \(spent\) must be the name of new tables"
    ):
        create_budgets(table, "spent")
    queryable = opened(engine, table, d_out=10 * ONE)
    opened(engine, table, d_out=5.0)  # nothing was charged yet, so both are possible
    queryable(sums())
    for d_out, measure in ((5.0, PURE), (10 * ONE, ZCDP)):
        with pytest.raises(InvalidValueError, match="same measure and d_out"):
            opened(engine, table, d_out, measure)
    text = engine.load(Data({"person": str, "eur": int}, "person", []))
    with pytest.raises(InvalidValueError, match="units of type str, found int"):
        opened(engine, text, d_out=10 * ONE)


def test_who_comes_second_with_other_terms_charges_nothing(engine):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    first, second = opened(engine, table, d_out=10 * ONE), opened(engine, table, d_out=100 * ONE)
    assert first(sums()) == 4.0
    before = spent_by(engine)
    with pytest.raises(TableError):
        second(sums())
    assert spent_by(engine) == before
    assert first(sums()) == 4.0


def test_a_refused_query_charges_nothing(engine):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=5.0)
    for query in (
        "SELECT 1",
        oc.m.NoisySum(np.ones, 1.0, 1.0),
        sums(column="nobody"),
        sums(column="person", quantum=0.5),
        sums(bound=1.5),
        sums(bound=2**41),
        sums(),  # costs 10,240
        oc.m.NoisyTableSum("eur", 1, 1e30),
        sums(where=oc.tables.column("nobody") == 1),
    ):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            queryable(query)
    assert spent_by(engine) == {}
    assert queryable(oc.m.NoisyTableSum("eur", 5, 1.0)) is not None
    assert list(spent_by(engine)) == [1]


def test_a_snapshot_of_postgresql_is_refused_and_one_of_duckdb_is_not(engine):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    fixed = engine.load(people((1, 4)), "fixed", snapshot=True)  # which PostgreSQL locks
    if engine.name == "postgres":  # it would see no charge since the snapshot
        with pytest.raises(InvalidValueError, match="without snapshot=True"):
            create_budgets(fixed, "others")
        bounded = fixed.space >> oc.t.then_truncate(3, materialize=True)
        made = bounded >> then_individual_table_filter(PURE, 4 * ONE, "spent")
        first = made(fixed)
        assert [first(sums(4)), made(fixed)(sums(4)), first(sums(4))] == [4.0, 0.0, 0.0]
    else:
        queryable = opened(engine, fixed, d_out=4 * ONE)
        assert [queryable(sums(4)) for _ in range(2)] == [4.0, 0.0]


def test_spark_cannot_keep_budgets(on_spark):
    table = on_spark.load(people((1, 4)))
    with pytest.raises(InvalidTypeError, match="Spark has no transaction"):
        create_budgets(table, "spent")
    with pytest.raises(InvalidTypeError, match="Spark has no transaction"):
        opened(on_spark, table, d_out=1.0)


# --- faults ------------------------------------------------------------------------------------


def test_an_error_of_the_engine_charges_nothing_and_closes_the_handle(engine, caplog):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=10 * ONE)
    assert queryable(sums()) == 4.0
    before = spent_by(engine)
    run(engine, "ALTER TABLE t RENAME TO gone")
    with pytest.raises(TableError):
        queryable(sums())
    run(engine, "ALTER TABLE gone RENAME TO t")
    assert spent_by(engine) == before
    with pytest.raises(TableError):  # failures cannot be asked for again and again
        queryable(sums())
    assert spent_by(engine) == before
    assert opened(engine, table, d_out=10 * ONE)(sums()) == 4.0  # its transaction was rolled back


def test_a_failure_after_the_charge_stays_charged(engine, monkeypatch):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=4 * ONE)

    def fail(noise, total):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("opendp_concurrent.individual.table_filter.IntegerNoise.add", fail)
        with pytest.raises(MemoryError):
            queryable(sums(4))
    assert spent_by(engine) == {1: BUDGET}
    assert queryable(sums(4)) == 0.0


def test_a_failed_transaction_leaves_no_trace(engine, monkeypatch):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=10 * ONE)

    def fail(rows):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # after the budgets were written, before the commit
        patched.setattr("opendp_concurrent.tables.budgets.integers", fail)
        with pytest.raises(KeyboardInterrupt):
            queryable(sums())
    assert spent_by(engine) == {}
    assert rows_of(engine, "SELECT launches, terms FROM spent_terms") == [(0, None)]
    assert opened(engine, table, d_out=10 * ONE)(sums()) == 4.0


KILLED = """
    import os, sys
    import duckdb
    import opendp.prelude as dp
    import opendp_concurrent as oc
    from opendp_concurrent.individual.table_filter import IntegerNoise
    from opendp_concurrent.tables import budgets

    dp.enable_features("contrib", "honest-but-curious")
    path, when = sys.argv[1:]
    connection = duckdb.connect(path)
    table = oc.tables.scan(connection, "t", {"person": int, "eur": int}, "person")
    made = oc.m.make_individual_table_filter(*table.space, dp.max_divergence(), 4096.0, "spent")
    queryable = made(table)
    if when == "before the commit":
        budgets.integers = lambda rows: os._exit(9)
    else:
        IntegerNoise.add = lambda noise, total: os._exit(9)
    queryable(oc.m.NoisyTableSum("eur", bound=4, scale=2**-10))
"""


@pytest.mark.parametrize("when", ["before the commit", "after the commit"])
def test_a_killed_process_has_charged_all_units_or_none(tmp_path, when):
    path = str(tmp_path / "survey.duckdb")
    connection = duckdb.connect(path)
    connection.execute("CREATE TABLE t AS SELECT range AS person, 4 AS eur FROM range(3)")
    create_budgets(oc.tables.scan(connection, "t", SCHEMA, "person"), "spent")
    connection.close()
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), path, when],
        env={**os.environ, "RUST_BACKTRACE": "0"},
        timeout=60,
    )
    assert found.returncode == 9
    connection = duckdb.connect(path)
    table = oc.tables.scan(connection, "t", SCHEMA, "person")
    charged = when == "after the commit"
    assert connection.execute("SELECT launches FROM spent_terms").fetchall() == [(int(charged),)]
    spent = connection.execute("SELECT unit, spent FROM spent ORDER BY unit").fetchall()
    assert spent == ([(unit, BUDGET) for unit in range(3)] if charged else [])
    queryable = make_individual_table_filter(*table.space, PURE, 4 * ONE, "spent")(table)
    assert queryable(sums(4)) == (0.0 if charged else 12.0)
    del queryable, table
    connection.close()


FORKED = """
    import os, sys
    import duckdb
    import opendp.prelude as dp
    import opendp_concurrent as oc

    dp.enable_features("contrib", "honest-but-curious")
    connection = duckdb.connect(sys.argv[1])
    if os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    code = 1
    try:  # the copy of the open database, which no lock keeps away
        own = duckdb.connect(sys.argv[1])
        table = oc.tables.scan(own, "t", {"person": int, "eur": int}, "person")
        made = oc.m.make_individual_table_filter(*table.space, dp.max_divergence(), 4.0, "spent")
        made(table)
    except BaseException as error:
        code = 42 if "was not forked after DuckDB" in str(error) else 2
    os._exit(code)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_does_not_spend_budgets_of_duckdb_again(tmp_path):
    path = str(tmp_path / "survey.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS person, 4 AS eur FROM range(3)")
        create_budgets(oc.tables.scan(connection, "t", SCHEMA, "person"), "spent")
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(FORKED), path], timeout=60)
    assert found.returncode == 42


def test_default_privileges_of_postgresql_do_not_open_the_budgets(on_postgres):
    table = on_postgres.load(people((1, 1)))
    role = '"Who ""reads"""'
    defaults = "ALTER DEFAULT PRIVILEGES IN SCHEMA public"
    readers = """
        SELECT c.relname FROM pg_class AS c, aclexplode(c.relacl) AS g
        WHERE c.relname LIKE 'spent%' AND g.grantee <> c.relowner
    """
    run(on_postgres, f"CREATE ROLE {role}")
    try:
        run(on_postgres, f"{defaults} GRANT ALL ON TABLES TO {role}, PUBLIC")
        fresh(on_postgres, table)
        assert rows_of(on_postgres, readers) == []
        assert opened(on_postgres, table, d_out=10 * ONE)(sums()) == 1.0
        assert rows_of(on_postgres, readers) == []
    finally:
        run(on_postgres, f"{defaults} REVOKE ALL ON TABLES FROM {role}, PUBLIC")
        run(on_postgres, f"DROP OWNED BY {role}")
        run(on_postgres, f"DROP ROLE {role}")


def test_launches_of_several_handles_take_turns(engine):
    table = engine.load(people(*((person, 1) for person in range(50))))
    fresh(engine, table)
    answers, launches = [], 4

    def ask():
        own = oc.tables.scan(engine.connection, "t", SCHEMA, "person")
        queryable = opened(engine, own, d_out=10 * ONE)  # for ten launches
        for _ in range(launches):
            answers.append(queryable(sums(bound=1)))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(answers) == [0.0] * 2 + [50.0] * 10
    assert set(spent_by(engine).values()) == {BUDGET}
    assert rows_of(engine, "SELECT launches FROM spent_terms") == [(12,)]


def test_negative_budgets_are_an_error(engine):
    table = engine.load(people((1, 4)))
    fresh(engine, table)
    queryable = opened(engine, table, d_out=10 * ONE)
    queryable(sums())
    run(engine, f"UPDATE spent SET spent = CAST('-{BUDGET}' AS DECIMAL(38, 0))")
    with pytest.raises(TableError):
        queryable(sums())


def test_a_closed_connection_is_the_constant_error():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS person, 4 AS eur")
    table = oc.tables.scan(connection, "t", SCHEMA, "person")
    connection.close()
    with pytest.raises(TableError):
        create_budgets(table, "spent")


# --- in pipelines ------------------------------------------------------------------------------


def test_as_a_child_of_a_filter_and_of_a_context(on_duckdb):
    table = on_duckdb.load(people((1, 4), (2, 3)))
    fresh(on_duckdb, table)
    odometer = oc.make_concurrent_odometer(*table.space, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 20 * ONE)(table)
    made = make_individual_table_filter(*table.space, PURE, 10 * ONE, "spent")
    first, second = root(made), root(made)
    assert [first(sums()), second(sums())] == [7.0, 7.0]
    assert root.privacy_loss() == 20 * ONE
    fresh(on_duckdb, table)
    context = oc.concurrent_context(
        data=table,
        privacy_unit=oc.tables.unit_of(units=1),
        privacy_loss=dp.loss_of(epsilon=10 * ONE),
    )
    child = context.query().individual_table_filter(PURE, 10 * ONE, budgets="spent").release()
    assert child(sums()) == 7.0


def test_names_are_quoted_and_schemas_can_be_named(engine):
    table = engine.load(people((1, 4)))
    name = 'sp"ent; DROP TABLE t; --'
    run(engine, 'DROP SCHEMA IF EXISTS "o w" CASCADE')
    run(engine, 'CREATE SCHEMA "o w"')
    create_budgets(table, ["o w", name])
    queryable = opened(engine, table, d_out=10 * ONE, name=["o w", name])
    assert [queryable(sums()) for _ in range(3)] == [4.0, 4.0, 0.0]
    run(engine, 'DROP SCHEMA "o w" CASCADE')


def test_the_kept_terms_never_change():
    assert terms_of(noise_loss(ZCDP), 0.1) == (
        "Gaussian noise, factor 1/2, d_out 0.1, in 5455411985536244887438531289205964800 units"
    )
