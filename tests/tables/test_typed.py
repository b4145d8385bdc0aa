"""Random expressions have the values of plain Python on each engine, on hostile rows."""

from datetime import date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opendp_concurrent.tables.plan import WithColumns
from opendp_concurrent.tables.typed import checked_value

from . import reference
from .pipelines import VALUES, Data, expressions

RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
SCHEMA = {"u": int, "i": int, "j": int, "f": float, "g": float, "s": str, "b": bool}
SCHEMA |= {"d": date, "t": datetime}
TEXTS = (
    "12",
    "-7",
    "012",
    "1 ",
    "9223372036854775808",
    "-9223372036854775808",
    "12\n",
    "2024-02-29",
)
TEXTS += ("2023-02-29", "2024-13-01", "0000-01-01", "2024-02-29\n", "1900-02-29", "2000-02-29", "١")
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


def values(table, columns):
    """The values of columns that are added, row by row."""
    schema = table.tables.schema
    nodes = tuple((name, checked_value(schema, one, name)) for name, one in columns.items())
    text, parameters = table.engine().selecting(WithColumns(table.relation, nodes))
    found = table.engine().run(text, parameters, None)
    return {row[0]: list(row[len(SCHEMA) :]) for row in found}


def agree(engine, draw, table, rows):
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=10, max_size=10))
    columns = {f"x{at}": draw(expressions(SCHEMA, kind)) for at, kind in enumerate(kinds)}
    for unit, found in values(table, columns).items():
        expected = [reference.evaluate(one, rows[unit], SCHEMA) for one in columns.values()]
        for name, one, other in zip(columns, found, expected, strict=True):
            assert one == other, (engine.name, columns[name], rows[unit])
            assert type(one) is type(other), (columns[name], one, other)


def check(engine, examples):
    found = hostile()
    table, rows = engine.load(found), reference.scanned(found.rows, "u")

    @settings(max_examples=examples, deadline=None, suppress_health_check=RELAXED)
    @given(st.data())
    def agrees(draws):
        agree(engine, draws.draw, table, rows)

    agrees()


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_random_expressions_have_the_values_of_plain_python(name, request):
    check(request.getfixturevalue(f"on_{name}"), 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_ten_thousand_expressions_have_the_values_of_plain_python(name, request):
    check(request.getfixturevalue(f"on_{name}"), 1000)


def test_random_expressions_have_the_values_of_plain_python_on_spark(on_spark):
    check(on_spark, 15)
