"""The tasks of other libraries in docs/tasks, and the 27 everyday tasks of docs/everyday.rst.

Each line gives the answer of its plain SQL. Noise is negligible.
"""

import csv
import datetime
import decimal
import re
from math import inf
from pathlib import Path

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from ..sparks import BY_HAND
from .pipelines import Data

pandas = pytest.importorskip("pandas")
DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "tasks"
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


def contexts(data):
    unit = oc.tables.unit_of(units=1)
    return lambda **loss: oc.concurrent_context(data, unit, dp.loss_of(**loss))


@pytest.fixture(
    scope="module", params=["duckdb", pytest.param("postgres", marks=pytest.mark.slow), BY_HAND]
)
def names(request, connection):
    """What the lines use."""
    stored = loaded(request.getfixturevalue(f"on_{request.param}"), connection, SCHEMAS, "id")
    visits = stored["visits"].with_tables(again=stored.pop("visits"), **stored)
    context = contexts(visits)
    rows = context(epsilon=1e16).query(epsilon=1e12)
    zcdp = context(rho=1e16).query(rho=1e12)
    private = context(epsilon=1e3, delta=1e-6)
    return {
        **{"context": context, "visits": visits, "rows": rows, "few": rows.truncate(3)},
        **{"all_zcdp": zcdp, "zcdp": zcdp.truncate(3)},
        "private": private.query(epsilon=20.0, delta=1e-8),
        "few_private": context(epsilon=1e16, delta=1e-6).query(epsilon=1e12, delta=0.0).truncate(3),
        **{"col": oc.tables.col, "when": oc.tables.when, "date": datetime.date},
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
    ends = any(one in line for one in ("release(", "context(", "admitted("))
    ending = "" if ends else ".laplace().release()"
    found = plain(eval(line + ending, dict(names)))
    expected = plain(connection.sql(truth).fetchall())
    within = 2 if any(one in line for one in NEAR) else 1e-3
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected, strict=True):
        number = isinstance(other, (int, float))
        assert one == (pytest.approx(other, abs=within, rel=1e-5) if number else other)


def test_at_least_180_of_195_tasks_are_one_line():
    lines = {name: [row[2] for row in rows] for name, rows in tasks().items()}
    numbers = {"tumult": 140, "smartnoise": 30, "others": 25}
    assert {name: len(rows) for name, rows in lines.items()} == numbers
    assert len(CASES) >= 180


# --- everyday tasks -------------------------------------------------------------------------------

LINE = re.compile(r"^   \* - ([a-z ]+)\n     - ``(\(?(?:few|rows|private)\..+)``$", re.MULTILINE)
TASKS = dict(LINE.findall((DOCS / "everyday.rst").read_text()))
CARRIERS, ORIGINS = ["AA", "B6", "UA"], ["EWR", "JFK", "LGA"]
DESTS = ["ATL", "BOS", "LAX", "MIA", "ORD", "SFO"]
FLIGHTS = {
    "flights": {
        **dict.fromkeys(("tailnum", "carrier", "origin", "dest"), str),
        **{"distance": int, "air_time": float, "dep_delay": int, "arr_delay": int},
        **{"time_hour": datetime.datetime, "fare": oc.tables.Decimal(2)},
    },
    "planes": {"tailnum": str, "seats": int},
}
SETUP = f"""
    CREATE TABLE flights AS SELECT *, CASE WHEN s % 31 > 0 THEN distance / 8 + s % 23 END AS air_time,
        s * 53 % 120 - 20 AS dep_delay, CASE WHEN s % 31 > 0 THEN s * 37 % 160 - 40 END AS arr_delay
    FROM (SELECT format('N{{:03}}', plane) AS tailnum, {CARRIERS}[1 + plane % 3] AS carrier,
        {ORIGINS}[1 + s % 3] AS origin, {DESTS}[1 + least(s % 12, 5)] AS dest,
        200 + 400 * least(s % 12, 5) + s % 97 AS distance,
        TIMESTAMP '2013-01-01' + to_hours(s * 29 % 8760) AS time_hour,
        (50 + s * 11 % 30000 / 100)::DECIMAL(9, 2) AS fare, s
        FROM (SELECT plane, plane * 7 + number * 13 AS s FROM range(400) AS p(plane), range(6) AS n(number)
            WHERE number < 2 + plane % 5));
    INSERT INTO flights BY NAME SELECT * REPLACE (NULL AS tailnum) FROM flights LIMIT 1;
    INSERT INTO flights BY NAME SELECT * REPLACE ('N999' AS tailnum, 'ANC' AS dest) FROM flights LIMIT 1;
    CREATE TABLE planes AS
        SELECT format('N{{:03}}', i) AS tailnum, 20 * (1 + i % 15) AS seats FROM range(390) AS t(i);
    CREATE TABLE weather AS SELECT o AS origin, h, (h + ascii(o)) % 5 = 0 AS rain
        FROM (SELECT unnest({ORIGINS}) AS o), range(24) AS t(h);
    CREATE VIEW f AS SELECT *, CASE WHEN arr_delay IS NOT NULL THEN greatest(-40, least(120, arr_delay)) END
        AS late, greatest(-20, least(100, dep_delay)) AS dep FROM flights WHERE tailnum IS NOT NULL;
"""  # noqa: E501
BY_CARRIER = "FROM f GROUP BY carrier ORDER BY carrier"
TRUTH = {
    "count": "SELECT count(*) FROM f",
    "planes": "SELECT count(DISTINCT tailnum) FROM f",
    "by carrier": f"SELECT count(*) {BY_CARRIER}",
    "filter": "SELECT count(*) FROM f WHERE arr_delay > 15",
    "sum": f"SELECT sum(distance) {BY_CARRIER}",
    "mean": "SELECT avg(distance) FROM f",
    "variance": "SELECT var_pop(late), stddev_pop(late) FROM f",
    "mean by carrier": f"SELECT avg(late) {BY_CARRIER}",
    "median": "SELECT quantile_disc(distance, 0.5) FROM f",
    "quantile by origin": "SELECT quantile_disc(dep_delay, 0.9) FROM f GROUP BY origin "
    "ORDER BY origin",
    "extremes": "SELECT quantile_disc(distance, 0.01), quantile_disc(distance, 0.99) FROM f",
    "bounds": "SELECT 2 ** floor(log2(quantile_disc(distance, 0.01))), "
    "2 ** (1 + floor(log2(quantile_disc(distance, 0.99)))) FROM f",
    "histogram": "SELECT count(*) FROM f WHERE air_time < 400 GROUP BY floor(air_time / 100) "
    "ORDER BY floor(air_time / 100)",
    "histogram by origin": "SELECT count(tailnum) FROM (SELECT DISTINCT origin AS o FROM f) "
    "CROSS JOIN range(4) AS r(b) LEFT JOIN f ON origin = o AND floor(air_time / 100) = b "
    "GROUP BY o, b ORDER BY o, b",
    "ratio": "SELECT count(*) FROM f WHERE distance / air_time > 7",
    "week": "SELECT count(tailnum) FROM range(1, 54) AS r(w) LEFT JOIN f ON week(time_hour) = w "
    "GROUP BY w ORDER BY w",
    "hour": "SELECT coalesce(avg(dep), 'nan') FROM range(24) AS r(h) LEFT JOIN f "
    "ON hour(time_hour) = h GROUP BY h ORDER BY h",
    "when": "SELECT count(*) FILTER (distance > 1000), count(*) FILTER (distance <= 1000) FROM f",
    "fill": "SELECT sum(late) FROM f",
    "cut": "SELECT count(*) FROM f WHERE arr_delay IS NOT NULL "
    "GROUP BY arr_delay > 0, arr_delay > 15, arr_delay > 60 ORDER BY min(arr_delay)",
    "money": "SELECT sum(fare) FROM f",
    "weather": "SELECT avg(dep) FROM f JOIN weather AS w ON f.origin = w.origin "
    "AND hour(time_hour) = h WHERE rain",
    "seats": "SELECT avg(seats) FROM f JOIN planes USING (tailnum)",
    "destinations": "SELECT dest FROM f GROUP BY dest HAVING count(DISTINCT tailnum) > 30 "
    "ORDER BY dest",
    "distinct": "SELECT count(DISTINCT dest) FROM f",
    "several": f"SELECT count(*), stddev_pop(late) {BY_CARRIER}",
    "top": "SELECT dest FROM f GROUP BY dest ORDER BY count(*) DESC, dest LIMIT 3",
}  # fmt: skip
CLOSE = {"median": 10, "extremes": 10, "quantile by origin": 4}  # answers are candidates


@pytest.fixture(scope="module")
def flown():
    with duckdb.connect() as found:
        found.execute(SETUP)
        yield found


@pytest.fixture(scope="module", params=["files", "postgres", BY_HAND])
def flights(request, flown):
    """What the lines use: queries of negligible noise, and public values."""
    stored = loaded(request.getfixturevalue(f"on_{request.param}"), flown, FLIGHTS, "tailnum")
    data = stored["flights"].with_tables(planes=stored["planes"])
    rows = contexts(data)(epsilon=1e16).query(epsilon=1e12)
    private = contexts(data)(epsilon=20.0, delta=1e-12).query(epsilon=20.0, delta=1e-12)
    rainy = {(one, hour): rain for one, hour, rain in flown.sql("FROM weather").fetchall()}
    return {
        **{"rows": rows, "few": rows.truncate(6), "MOST": 6},
        **{"private": private, "col": oc.tables.col, "when": oc.tables.when},
        **{"CARRIERS": CARRIERS, "ORIGINS": ORIGINS, "DESTS": DESTS, "MILES": range(0, 2301, 10)},
        **{"MINUTES": range(-40, 121, 4), "BINS": [0.0, 100.0, 200.0, 300.0, 400.0]},
        **{"BY": {"by": "carrier", "keys": CARRIERS}, "ENDS": [(-40, 120)]},
        **{"WEATHER": (["origin", "h"], {"rain": bool}, rainy)},
        "HOUR": oc.tables.col("time_hour").dt.hour(),
    }


def test_there_are_27_tasks_of_one_line():
    assert list(TASKS) == list(TRUTH)
    assert len(TRUTH) == 27
    assert max(map(len, TASKS.values())) <= 100


@pytest.mark.parametrize("name", TRUTH)
def test_a_line_gives_the_truth(flights, flown, name):
    ending = "" if "release()" in TASKS[name] else ".laplace().release()"
    found = eval(TASKS[name] + ending, dict(flights))
    found = list(found) if name == "destinations" else plain(found)  # without noisy numbers
    truth = plain(flown.sql(TRUTH[name]).fetchall())
    within = {"rel": 0, "abs": CLOSE.get(name, 0.1), "nan_ok": True}
    for one, other in zip(found, truth, strict=True):
        assert one == (other if isinstance(other, str) else pytest.approx(other, **within))
