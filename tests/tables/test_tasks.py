"""The tasks of other libraries in docs/tasks: each line gives the answer of its plain SQL."""

import csv
import datetime
import decimal
from math import inf
from pathlib import Path

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from ..sparks import BY_HAND
from .pipelines import Data

pandas = pytest.importorskip("pandas")
dp.enable_features("contrib", "honest-but-curious")
FOLDER = Path(__file__).parents[2] / "docs" / "tasks"
SCHEMAS = {
    "visits": {
        **{"id": int, "sex": str, "home": str, "region": str, "age": int, "income": int},
        **{"maybe": int, "hours": float, "half": float, "day": datetime.date},
        **{"seen": datetime.datetime, "married": bool, "educ": int},
        **{"fee": oc.tables.Decimal(2), "page": str},
    },
    "homes": {"id": int, "home": str, "km": int, "kind": str},
    "trips": {"id": int, "n": int},
}
HOMES = ["north", "south", "west"]
NEAR = ("quantile", "median", "min(", "max(")  # answers are candidates near the truth


def tasks():
    """Of each library, the rows: a test file, a task, our line or why there is none, and SQL."""
    return {
        path.stem: list(csv.reader(path.read_text().splitlines(), delimiter=";"))
        for path in sorted(FOLDER.glob("*.csv"))
    }


CASES = [
    pytest.param(line.strip("`"), truth.strip("`"), id=f"{name} {place}")
    for name, rows in tasks().items()
    for place, (_, _, line, truth) in enumerate(rows)
    if not line.startswith("no: ")
]


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as found:
        found.execute((FOLDER / "setup.sql").read_text())
        yield found


def loaded(engine, connection, schemas, unit):
    """Tables of a connection, on an engine."""
    stored = {}
    for name, schema in schemas.items():
        rows = connection.sql(f"SELECT {', '.join(schema)} FROM {name}").fetchall()
        stored[name] = engine.load(Data.of(schema, unit, rows), f"by_{unit}_{name}")
    return stored


@pytest.fixture(
    scope="module", params=["duckdb", pytest.param("postgres", marks=pytest.mark.slow), BY_HAND]
)
def names(request, connection):
    """What the lines use."""
    stored = loaded(request.getfixturevalue(f"on_{request.param}"), connection, SCHEMAS, "id")
    visits = stored["visits"].with_tables(again=stored.pop("visits"), **stored)

    def context(**loss):
        return oc.concurrent_context(visits, oc.tables.unit_of(units=1), dp.loss_of(**loss))

    rows = context(epsilon=1e16).query(epsilon=1e12)
    zcdp = context(rho=1e16).query(rho=1e12)
    private = context(epsilon=1e3, delta=1e-6)
    return {
        "context": context,
        "visits": visits,
        "rows": rows,
        "few": rows.truncate(3),
        "all_zcdp": zcdp,
        "zcdp": zcdp.truncate(3),
        "private": private.query(epsilon=20.0, delta=1e-8),
        "few_private": context(epsilon=1e16, delta=1e-6).query(epsilon=1e12, delta=0.0).truncate(3),
        "col": oc.tables.col,
        "when": oc.tables.when,
        "date": datetime.date,
        **{"oc": oc, "dp": dp, "inf": inf, "pandas": pandas, "HOMES": HOMES},
        "SEX": {"by": "sex", "keys": ["F", "M"]},
        "KIND": {"by": "kind", "keys": ["flat", "house"]},
        "COPIES": pandas.DataFrame({"sex": ["F", "F", "M", "M"], "copy": [0, 1, 0, 1]}),
        "TIMES": pandas.DataFrame({"educ": [1, 2, 2], "copy": [0, 0, 1]}),
        "AREAS": connection.sql("SELECT * FROM areas").df(),
        "ZONES": {
            (home, educ): zone for home, educ, zone in connection.sql("FROM zones").fetchall()
        },
        "SINCE": {educ: datetime.date(2000 + (educ > 3), 1, 1) for educ in range(1, 6)},
    }


def plain(answer):
    """The values of an answer in one list, row by row."""
    if isinstance(answer, pandas.DataFrame):
        kept = [name for name in answer if not name.endswith(("accuracy", "lower", "upper"))]
        return answer[kept].to_numpy().ravel().tolist()
    if isinstance(answer, dict):
        columns = [plain(one) for one in answer.values()]
        return [value for row in zip(*columns, strict=True) for value in row]
    if isinstance(answer, oc.tables.Estimate):
        return [answer.value]
    if isinstance(answer, (list, tuple)):
        return [value for one in answer for value in plain(one)]
    return [float(answer) if isinstance(answer, decimal.Decimal) else answer]


@pytest.mark.parametrize(("line", "truth"), CASES)
def test_a_line_gives_the_answer_of_sql(names, connection, line, truth):
    ending = (
        ""
        if any(one in line for one in ("release(", "context(", "admitted("))
        else ".laplace().release()"
    )
    found = plain(eval(line + ending, dict(names)))
    expected = plain(connection.sql(truth).fetchall())
    within = 2 if any(one in line for one in NEAR) else 1e-3
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected, strict=True):
        number = isinstance(other, (int, float))
        assert one == (pytest.approx(other, abs=within, rel=1e-5) if number else other)


def test_at_least_180_of_195_tasks_are_one_line():
    lines = {name: [row[2] for row in rows] for name, rows in tasks().items()}
    assert {name: len(rows) for name, rows in lines.items()} == {
        "tumult": 140,
        "smartnoise": 30,
        "others": 25,
    }
    assert len(CASES) >= 180
