"""Traps of rendering one tree for several engines: each is known to have given other integers."""

import duckdb
import opendp.prelude as dp
import pytest
import sqlglot
from sqlglot import exp

import opendp_concurrent as oc
from opendp_concurrent.tables import plan as nodes
from opendp_concurrent.tables import render, typed
from opendp_concurrent.tables.dialects import DIALECTS
from opendp_concurrent.tables.schema import schema_of

from .pipelines import TEXTS, Data
from .syntax import ALLOWED, check_syntax

col = oc.tables.col
DIALECT = pytest.mark.parametrize("dialect", DIALECTS)
ROWS = (nodes.ROW,)


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def engine(request):
    return request.getfixturevalue(f"on_{request.param}")


def table_of(engine, schema, rows):
    values = [dict(zip(schema, row, strict=True)) for row in rows]
    return engine.load(Data(schema, "person", values))


def ask(table, *steps):
    asked = table.space
    for step in (oc.t.then_truncate(100), *steps):
        asked = asked >> step
    return asked(table)


def counted(table, condition):
    return ask(table, oc.t.then_where(condition), oc.t.then_table_count())


FLAGS = {"person": int, "a": bool, "b": bool, "c": bool}


def test_and_or_not_keep_their_parentheses(engine):
    bits = (False, True)
    rows = [(1, a, b, c) for a in bits for b in bits for c in bits]
    table = table_of(engine, FLAGS, rows)
    a, b, c = (col(name) == True for name in "abc")  # noqa: E712
    assert counted(table, a & (b | c)) == 3
    assert counted(table, (a & b) | c) == 5
    assert counted(table, ~(a | b) & c) == 1
    assert counted(table, ~(a & b) | c) == 7


@DIALECT
def test_products_and_sums_keep_their_parentheses(dialect):
    """``floor((x * factor) + 0.5)``, and no tree whose text is read as another."""
    schema = schema_of({"person": int, "x": float}, "person")
    scan = nodes.Scan(("table", "t"), schema)
    aggregate = nodes.Sums((nodes.Term(nodes.Quantised("x", 0.0, 1.0, 3.0)),))
    text, _ = render.statement(dialect, scan, aggregate)
    tree = sqlglot.parse_one(text, dialect=dialect)
    (add,) = tree.find_all(exp.Add)
    assert isinstance(add.this, exp.Paren)
    assert isinstance(add.this.this, exp.Mul)
    with pytest.raises(AssertionError, match="without parentheses"):
        check_syntax(exp.Mul(this=exp.Add(this=exp.column("a"), expression=exp.column("b"))))


def test_a_comparison_with_null_does_not_hold_and_its_negation_does(engine):
    table = table_of(engine, {"person": int, "x": int}, [(1, None), (2, 1), (3, 5)])
    assert counted(table, col("x") < 3) == 1
    assert counted(table, ~(col("x") < 3)) == 2
    assert counted(table, col("x") != 1) == 1
    assert counted(table, ~col("x").is_in([1, 2])) == 2
    assert counted(table, col("x").is_null()) == 1


def test_clamping_null_adds_nothing(engine):
    """GREATEST(NULL, 5) is 5 in one engine and NULL in another."""
    table = table_of(engine, {"person": int, "x": int}, [(1, None), (2, 9)])
    assert ask(table, oc.t.then_table_sum("x", (5, 7))) == 7
    floats = table_of(engine, {"person": int, "x": float}, [(1, None), (2, 9.0)])
    assert ask(floats, oc.t.then_table_sum("x", (5.0, 7.0), 1.0)) == 7


@pytest.mark.parametrize(("x", "steps"), [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, 0), (-1.5, -1)])
def test_halves_are_rounded_up(engine, x, steps):
    """A cast to BIGINT gives 2 or 1 for 1.5."""
    table = table_of(engine, {"person": int, "x": float}, [(1, x)])
    assert ask(table, oc.t.then_table_sum("x", (-9.0, 9.0), 1.0)) == steps


def test_an_integer_column_is_never_divided(engine):
    """7/2 is 3.5 or 3; ``//`` of doubles differs too."""
    table = table_of(engine, {"person": int, "x": int}, [(1, 7), (1, -7)])
    assert ask(table, oc.t.then_table_sum("x", (-9, 9))) == 0
    with pytest.raises(TypeError, match="leave it out"):
        ask(table, oc.t.then_table_sum("x", (-9, 9), 2.0))


def test_large_quanta_keep_all_digits(engine):
    """A double cast to DECIMAL keeps 15 digits in PostgreSQL."""
    large = 2.0**52 - 1
    table = table_of(engine, {"person": int, "x": float}, [(1, large)])
    assert ask(table, oc.t.then_table_sum("x", (0.0, 2.0**52), 1.0)) == int(large)


def test_nan_is_a_missing_value(engine):
    """Engines order NaN as the largest number; a cast of it to DECIMAL fails, or is NULL or NaN."""
    nan = float("nan")
    table = table_of(engine, {"person": int, "x": float}, [(1, nan), (2, 1.0), (3, None)])
    assert ask(table, oc.t.then_table_sum("x", (0.0, 9.0), 1.0)) == 1
    assert counted(table, col("x") > 0.0) == 1
    assert counted(table, col("x").is_null()) == 2
    assert counted(table, col("x") <= col("x")) == 1
    assert ask(table, oc.t.then_table_histogram("x", [0.0, float("inf")])) == [1]
    assert ask(table, oc.t.then_quantile_scores("x", [0.0], 0.5)) == [1]


def test_infinities_are_clamped(engine):
    table = table_of(engine, {"person": int, "x": float}, [(1, float("inf")), (2, -float("inf"))])
    assert ask(table, oc.t.then_table_sum("x", (-1.0, 4.0), 1.0)) == 3
    assert ask(table, oc.t.then_table_histogram("x", [-float("inf"), 0.0])) == [1]


@pytest.mark.parametrize("tiny", [5e-324, -5e-324, 1e-310, -1e-310])
def test_a_tiny_value_does_not_underflow(engine, tiny):
    """PostgreSQL raises an error where a product underflows."""
    table = table_of(engine, {"person": int, "x": float}, [(1, tiny), (2, 8.0)])
    for bounds in ((0.0, 9.0), (-9.0, 9.0), (tiny, 9.0)):
        assert ask(table, oc.t.then_table_sum("x", bounds, 4.0)) == 2


def test_the_two_zeros_are_one_value(engine):
    table = table_of(engine, {"person": int, "x": float}, [(1, 0.0), (1, -0.0), (2, -0.0)])
    assert counted(table, col("x") == 0.0) == 3
    assert counted(table, col("x") < 0.0) == 0
    assert ask(table, oc.t.then_table_histogram("x", [0.0, 1.0])) == [3]


def test_a_sum_beyond_64_bits_is_clamped_and_does_not_wrap(engine):
    """SUM(BIGINT) wraps to -2 in Spark."""
    largest = 2**62
    table = table_of(engine, {"person": int, "x": int}, [(1, 2**63 - 1)] * 8)
    assert ask(table, oc.t.then_table_sum("x", (0, largest))) == 2**63 - 1
    assert ask(table, oc.t.then_table_sum("x", (-largest, -largest))) == -(2**63 - 1)


def test_texts_are_compared_by_their_bytes(engine):
    texts = ["a", "A", "a ", "é", "e\u0301", "ß", "ss", "", "Z", "\U0001f600", "\uffff"]
    table = table_of(engine, {"person": int, "x": str}, [(1, one) for one in texts])
    assert ask(table, oc.t.then_table_count("x", texts)) == [1] * len(texts)
    for one in texts:
        below = sum(other.encode() < one.encode() for other in texts)
        assert counted(table, col("x") < one) == below


def test_hostile_texts_are_values(engine):
    table = table_of(engine, {"person": int, "x": str}, [(1, one) for one in TEXTS])
    assert ask(table, oc.t.then_table_count("x", TEXTS)) == [1] * len(TEXTS)
    for one in TEXTS:
        assert counted(table, col("x") == one) == 1
    assert counted(table, col("x").is_in(TEXTS)) == len(TEXTS)


@DIALECT
def test_no_text_of_the_caller_is_in_a_statement(dialect):
    schema = schema_of({"person": str, "x": str}, "person")
    scan = nodes.Scan(("table", "t"), schema)
    known = typed.checked(schema, (col("x") == "needle") | col("x").is_in(["needle"]))
    keys = nodes.Values([("needle",)])
    text, parameters = render.statement(
        dialect, nodes.Where(scan, known), nodes.Sums(ROWS, ("x",), keys)
    )
    assert "needle" not in text
    assert parameters == ("needle", "needle", ["needle"], [0])


def test_null_is_first_in_each_order(engine):
    rows = [(1, None, 5), (1, 3, 7), (1, 4, 9)]
    table = table_of(engine, {"person": int, "x": int, "y": int}, rows)
    total = oc.t.then_table_sum("y", (0, 100))
    assert ask(table, oc.t.then_truncate(1, "x"), total) == 5
    assert ask(table, oc.t.then_truncate(2, "x"), total) == 12
    assert ask(table, oc.t.then_truncate(2, "x", descending=True), total) == 16


@DIALECT
def test_the_order_of_null_is_in_the_text_where_an_engine_has_another_default(dialect):
    schema = schema_of({"person": int, "x": int}, "person")
    truncated = nodes.Truncate(nodes.Scan(("table", "t"), schema), 1)
    text, _ = render.statement(dialect, truncated, nodes.Sums(ROWS))
    assert ("NULLS FIRST" in text) == (dialect != "spark")  # whose default is fixed


def test_truncation_does_not_depend_on_how_rows_are_stored(engine):
    """``row_number()`` without an order gave six values in six runs."""
    rows = [(person, x, y) for person in range(5) for x in (2, 1) for y in (3, 1, 2)]
    schema = {"person": int, "x": int, "y": int}
    steps = oc.t.then_truncate(2), oc.t.then_table_sum("y", (0, 9))
    answers = {
        ask(table_of(engine, schema, rows[turn:] + rows[:turn]), *steps) for turn in range(9)
    }
    assert len(answers) == 1


def test_removing_a_unit_does_not_move_rows_of_another(engine):
    rows = [(person, x) for person in range(4) for x in range(6)]
    schema = {"person": int, "x": int}
    steps = oc.t.then_truncate(2), oc.t.then_where(col("person") == 3)
    steps, answers = (*steps, oc.t.then_table_sum("x", (0, 9))), set()
    for kept in range(4):
        left = [row for row in rows if row[0] >= kept]
        answers.add(ask(table_of(engine, schema, left), *steps))
    assert len(answers) == 1


def test_quoted_and_folded_names_are_kept_apart(engine):
    schema = {'per"son': int, "a.b": int, "SELECT": int, "c1": int, "C 0": int, "100%": int}
    rows = [dict(zip(schema, (1, 10, 20, 30, 40, 50), strict=True))]
    table = engine.load(Data(schema, 'per"son', rows), 'a "strange" table; --')
    for name, expected in list(rows[0].items())[1:]:
        assert ask(table, oc.t.then_table_sum(name, (0, 99))) == expected


def test_a_hundred_thousand_keys(engine):
    table = table_of(engine, {"person": int, "x": str}, [(1, "k7"), (2, "k99999"), (3, "none")])
    keys = [f"k{number}" for number in range(100_000)]
    counts = ask(table, oc.t.then_table_count("x", keys))
    assert len(counts) == 100_000
    assert {place for place, one in enumerate(counts) if one} == {7, 99_999}


def test_an_empty_table_and_empty_groups(engine):
    table = table_of(engine, {"person": int, "x": int, "f": float}, [])
    assert ask(table, oc.t.then_table_count()) == 0
    assert ask(table, oc.t.then_distinct_units()) == 0
    assert ask(table, oc.t.then_table_sum("x", (3, 5))) == 0
    assert ask(table, oc.t.then_table_sum("f", (0.0, 1.0), 0.5, "x", [1, 2])) == [0, 0]
    assert ask(table, oc.t.then_quantile_scores("f", [0.0, 1.0], 0.3)) == [0, 0]


def test_deep_predicates_are_rendered(engine):
    table = table_of(engine, {"person": int, "x": int}, [(1, one) for one in range(50)])
    condition = col("x") == 0
    for one in range(1, 90):
        condition = condition | (col("x") == one) if one % 3 else condition & (col("x") >= 0)
    assert counted(table, condition) == sum(one % 3 != 0 or one == 0 for one in range(50))
    for _ in range(1000):
        condition = ~condition
    with pytest.raises(ValueError, match="at most"):
        oc.t.make_where(*table.space, condition)


FORBIDDEN = {
    "random": exp.Rand(),
    "a function by name": exp.Anonymous(this="random", expressions=[]),
    "a remainder": exp.Mod(this=exp.column("a"), expression=exp.column("b")),
    "an average": exp.Avg(this=exp.column("a")),
    "a limit": exp.select("a").from_("t").limit(1),
    "an order of arrival": exp.First(this=exp.column("a")),
    "the time": exp.CurrentTimestamp(),
    "a sample": sqlglot.parse_one("SELECT a FROM t TABLESAMPLE (10 PERCENT)", dialect="duckdb"),
    "a change": exp.Delete(this=exp.to_table("t")),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_other_syntax_is_refused(name):
    with pytest.raises(AssertionError, match="not allowed"):
        check_syntax(FORBIDDEN[name])


def test_a_window_needs_an_order():
    window = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[]))
    with pytest.raises(AssertionError, match="without an order"):
        check_syntax(window)


def test_the_list_of_syntax_is_short():
    assert not ALLOWED & {exp.Anonymous, exp.Mod, exp.Rand, exp.Limit, exp.Command}


def test_statements_are_rendered_once():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE once (person INT)")
    table = oc.tables.scan(connection, "once", {"person": int}, "person")
    count = table.space >> oc.t.then_distinct_units() >> dp.m.then_laplace(scale=1.0)
    count(table)
    before = render.statement.cache_info()
    count(table)
    assert render.statement.cache_info().misses == before.misses
