"""Random expressions have the values of plain Python on each engine, on hostile rows."""

from datetime import date, datetime, timedelta, timezone
from functools import reduce

import pytest
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.schema import schema_of
from opendp_concurrent.tables.typed import checked_value

from . import reference
from .pipelines import VALUES, Data, check, expressions

SCHEMA = {"u": int, "i": int, "j": int, "f": float, "g": float, "s": str, "b": bool}
SCHEMA |= {"d": date, "t": datetime}
TEXTS = ("12", "-7", "012", "1 ", "12\n", "9223372036854775808", "-9223372036854775808", "١")
TEXTS += ("2024-02-29", "2023-02-29", "2024-13-01", "0000-01-01", "2024-02-29\n", "1900-02-29")
TEXTS += ("2000-02-29",)
FLOATS = (1e150, 1.0000000000000002e150, 1e-150, 9.99e-151, 2.0**63, -(2.0**63), 2.0**63 - 1024)
MORE = {int: (-(2**63), 2**53 + 1), float: FLOATS, str: TEXTS}
ROWS = 61  # no divisor of it is a number of values, so that all pairs come up


def hostile():
    """Rows with all values of each type, NULL and NaN among them."""
    columns = {}
    for place, (name, kind) in enumerate(SCHEMA.items()):
        known = [None, *VALUES[kind], *MORE.get(kind, ())]
        columns[name] = [known[(row * (place + 1) + place) % len(known)] for row in range(ROWS)]
    columns["u"] = list(range(ROWS))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return Data(SCHEMA, "u", rows)


def query(table, columns):
    """The statement of a table with more columns, and its parameters."""
    return table.engine().query((table.space >> oc.t.then_with_columns(columns))(table).relation)


def values(table, columns):
    """The values of columns that are added, row by row."""
    found = table.engine().run(*query(table, columns))
    return {row[0]: list(row[len(SCHEMA) :]) for row in found}


def compare(engine, columns, table, rows):
    for unit, found in values(table, columns).items():
        expected = [reference.evaluate(one, rows[unit], SCHEMA) for one in columns.values()]
        for name, one, other in zip(columns, found, expected, strict=True):
            assert one == other, (engine.name, columns[name], rows[unit])
            assert type(one) is type(other), (columns[name], one, other)


def deep():
    """Ninety operations within each other."""
    found = col("i") == 0
    for one in range(1, 90):
        found = found | (col("i") == one) if one % 3 else found & (col("i") >= 0)
    return found


col = oc.tables.col
A, B, C = col("b"), col("i") > 0, col("f") > 0.0
TRAPS = [  # each is known to have had other values on some engine
    *(A & (B | C), (A & B) | C, ~(A | B) & C, ~(A & B) | C, deep()),
    *(B, ~B, col("i") != 1, ~col("i").is_in([1, 2]), col("i").is_null()),
    *(C, col("f") <= col("f"), col("f").is_null(), col("f") == 0.0, col("f") < 0.0),
    *(col("s") == one for one in VALUES[str]),
    *(col("s") < one for one in ("a", "A", "a ", "é", "ß", "ss", "", "Z", "\U0001f600", "\uffff")),
    col("s").is_in(VALUES[str]),
]


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        *(("duckdb", 10), ("postgres", 8), ("spark", 2)),
        *(pytest.param(name, 1000, marks=pytest.mark.slow) for name in ("duckdb", "postgres")),
    ],
)
def test_random_expressions_have_the_values_of_plain_python(name, examples, request):
    """Texts are compared by their bytes, what is NULL does not hold, and its negation does."""
    engine, found = request.getfixturevalue(f"on_{name}"), hostile()
    table, rows = engine.load(found), reference.scanned(found.rows, "u")
    compare(engine, {f"x{at}": one for at, one in enumerate(TRAPS)}, table, rows)

    def agrees(draw):
        kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=10, max_size=10))
        columns = {f"x{at}": draw(expressions(SCHEMA, one)) for at, one in enumerate(kinds)}
        compare(engine, columns, table, rows)

    check(agrees, examples)


EAST = timezone(timedelta(hours=1))
REFUSED = {  # an expression, and what the error says
    "whole quotients of floats": (col("f") // 2, "integers"),
    "a remainder of floats": (col("f") % 2, "integers"),
    "small letters of a number": (col("i").lower(), "of texts"),
    "the length of a date": (col("d").length(), "of texts"),
    "the beginning of a number": (col("i").starts_with("1"), "integer"),
    "the absolute value of a text": (col("s").abs(), "column's type"),
    "arithmetic on texts": (col("s") + "a", "numbers"),
    "two types": (oc.tables.when(col("b")).then(col("i")).otherwise(col("s")), "one type"),
    "a comparison of an integer and a float": (col("i") < col("f"), "one type"),
    "a condition of integers": (col("i") & col("b"), "hold or not"),
    "bounds the wrong way round": (col("i").clip(2, 1), "not below"),
    "bounds of another type": (col("i").clip(0.5, 1), "integer"),
    "a clip of texts": (col("s").clip("a", "b"), "numbers, dates"),
    "breaks that fall": (col("f").cut([2.0, 1.0]), "increase"),
    "too few labels": (col("f").cut([1.0], ["a"]), "2 labels"),
    "a cast that engines do differently": (col("f").cast(str), "cast from float to <class 'str'>"),
    "no type": (col("i").cast(list), "cast from int"),
    "the hour of a date": (col("d").dt.hour(), "parts are"),
    "no column": (col("nowhere") + 1, "must be a column"),
    "too deep": (reduce(lambda one, _: ~one, range(1000), col("b")), "at most"),
    "another zone": (
        col("t") == datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        "in UTC",
    ),
    "too few operands": (oc.tables.Expression("+", (col("i"),)), "made of"),
    "an operation of nobody": (oc.tables.Expression("random"), "made of"),
}


MADE = [  # of other operations: a column, an expression, and what it means
    ("i", col("i") % 7, lambda i: i % 7 if i - i % 7 >= -(2**63) else None),
    ("i", col("i").abs(), lambda i: None if i == -(2**63) else abs(i)),
    ("f", col("f").abs(), lambda f: abs(f) if f >= -1e150 else None),
    *(
        ("s", col("s").starts_with(one), lambda s, one=one: s.startswith(one))
        for one in ("", "1", "2024-0", "\ud7ff", "\U0010ffff", "a\U0010ffff", "it's", "%", "\xe9")
    ),
]


def test_operations_that_are_made_of_others_mean_what_they_do_in_python(engine):
    data = hostile()
    begins = ["\ud7ff", "\ue000", "\U0010ffff", "a\U0010ffffb", "b", "it's", "%x", "\xe9t\xe9"]
    for row, text in zip(data.rows, begins, strict=False):
        row["s"] = text
    rows = reference.scanned(data.rows, "u")
    made = {f"x{at}": one for at, (_, one, _) in enumerate(MADE)}
    for unit, answers in values(engine.load(data), made).items():
        for (column, one, meant), found in zip(MADE, answers, strict=True):
            none, value = False if column == "s" else None, rows[unit][column]
            assert found == (none if value is None else meant(value)), one


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_total_is_refused_by_the_name_of_the_argument(name):
    one, message = REFUSED[name]
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^speed.*" + message):
        checked_value(schema_of(SCHEMA, "u"), one, "speed")


def test_the_text_and_the_time_grow_with_the_expression(engine):
    """Each operand of a quotient is used five times; fifteen in a row would be 5^15 copies."""
    table, speed = engine.load(hostile()), col("f")
    for _ in range(15):
        speed = speed / col("g").clip(0.5, 2.0) * 1.5
    assert len(values(table, {"speed": speed})) == ROWS
    assert len(query(table, {"speed": speed})[0]) < 50_000


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_the_parts_of_each_day_are_those_of_python(name, request):
    days = [date.fromordinal(one) for one in range(1, date.max.toordinal(), 3989)]
    ends = ((1, 1), (1, 3), (2, 29), (12, 29), (12, 31))  # of weeks, in each kind of year
    days += [date(1996 + at, *end) for at in range(28) for end in ends if end[0] != 2 or not at % 4]
    rows = [{"u": at, "d": day} for at, day in enumerate(days)]
    table = request.getfixturevalue(f"on_{name}").load(Data({"u": int, "d": date}, "u", rows))
    parts = ("year", "month", "day", "week", "weekday")
    columns = {part: getattr(col("d").dt, part)() for part in parts}
    for _, day, *found in table.engine().run(*query(table, columns)):
        assert found == [reference.PARTS[part](day) for part in parts]


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_what_is_beyond_the_years_1_to_9999_has_no_parts_and_no_casts(name, request):
    found = request.getfixturevalue(f"on_{name}")
    schema = {"u": int, "d": date, "t": datetime}
    found.load(Data(schema, "u", []), "far")
    run = found.connection.execute if name == "duckdb" else found.cursor.execute
    days = ["infinity", "-infinity", "20000-01-01", "0044-03-15 (BC)", "10000-01-01"]
    days = [day.replace(" (BC)", " BC") if name == "postgres" else day for day in days]
    for at, day in enumerate(days):
        run(f"INSERT INTO far VALUES ({at}, DATE '{day}', TIMESTAMP '{day}')".encode().decode())
    if name == "postgres":  # a date that no timestamp of PostgreSQL is
        run("INSERT INTO far VALUES (9, DATE '5874897-12-31', NULL)")
    table = oc.tables.scan(found.connection, "far", schema, "u")
    columns = [col("d").dt.year(), col("t").dt.week(), col("t").dt.hour(), col("d").cast(str)]
    columns += [col("d").cast(datetime), col("t").dt.date(), (col("d") == date.max).cast(int)]
    text, parameters = query(table, {f"x{at}": one for at, one in enumerate(columns)})
    names = ", ".join(f'"x{at}"' for at in range(len(columns)))
    rows = table.engine().run(f"SELECT {names} FROM ({text}) AS t", parameters)
    assert rows == [(None,) * (len(columns) - 1) + (0,)] * len(rows)
    assert len(rows) >= len(days)
