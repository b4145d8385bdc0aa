"""The 27 everyday tasks of docs/everyday.rst: each line gives the answer of its SQL.

Noise is negligible, and no flight is truncated.
"""

import re
from datetime import datetime
from pathlib import Path

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from ..sparks import BY_HAND
from .test_tasks import loaded, plain

PAGE = Path(__file__).parents[2] / "docs" / "everyday.rst"
LINE = re.compile(r"^   \* - ([a-z ]+)\n     - ``(\(?(?:few|rows|private)\..+)``$", re.MULTILINE)
TASKS = dict(LINE.findall(PAGE.read_text()))
CARRIERS, ORIGINS = ["AA", "B6", "UA"], ["EWR", "JFK", "LGA"]
DESTS = ["ATL", "BOS", "LAX", "MIA", "ORD", "SFO"]
SCHEMAS = {
    "flights": {
        **dict.fromkeys(("tailnum", "carrier", "origin", "dest"), str),
        **{"distance": int, "air_time": float, "dep_delay": int, "arr_delay": int},
        **{"time_hour": datetime, "fare": oc.tables.Decimal(2)},
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
    "histogram by origin": "SELECT count(tailnum) FROM (SELECT DISTINCT origin AS o FROM f), "
    "range(4) AS r(b) LEFT JOIN f ON origin = o AND floor(air_time / 100) = b "
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
    "top": "SELECT dest FROM f GROUP BY dest ORDER BY count(*) DESC LIMIT 3",
}  # fmt: skip
NEAR = {"median": 10, "extremes": 10, "quantile by origin": 4}  # answers are candidates


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as found:
        found.execute(SETUP)
        yield found


@pytest.fixture(scope="module", params=["files", "postgres", BY_HAND])
def names(request, connection):
    """What the lines use: queries of negligible noise, and public values."""
    stored = loaded(request.getfixturevalue(f"on_{request.param}"), connection, SCHEMAS, "tailnum")
    data = stored["flights"].with_tables(planes=stored["planes"])

    def context(**loss):
        return oc.concurrent_context(data, oc.tables.unit_of(units=1), dp.loss_of(**loss))

    rows, col = context(epsilon=1e16).query(epsilon=1e12), oc.tables.col
    private = context(epsilon=20.0, delta=1e-12).query(epsilon=20.0, delta=1e-12)
    rainy = {(one, hour): rain for one, hour, rain in connection.sql("FROM weather").fetchall()}
    return {
        **{"rows": rows, "few": rows.truncate(6), "MOST": 6},
        **{"private": private, "col": col, "when": oc.tables.when},
        **{"CARRIERS": CARRIERS, "ORIGINS": ORIGINS, "DESTS": DESTS, "MILES": range(0, 2301, 10)},
        **{"MINUTES": range(-40, 121, 4), "BINS": [0.0, 100.0, 200.0, 300.0, 400.0]},
        **{"BY": {"by": "carrier", "keys": CARRIERS}, "ENDS": [(-40, 120)]},
        **{"WEATHER": (["origin", "h"], {"rain": bool}, rainy)},
        "HOUR": col("time_hour").dt.hour(),
    }


def test_there_are_27_tasks_of_one_line():
    assert list(TASKS) == list(TRUTH)
    assert len(TRUTH) == 27
    assert max(map(len, TASKS.values())) <= 100


@pytest.mark.parametrize("name", TRUTH)
def test_a_line_gives_the_truth(names, connection, name):
    ending = "" if "release()" in TASKS[name] else ".laplace().release()"
    found = eval(TASKS[name] + ending, dict(names))
    found = list(found) if name == "destinations" else plain(found)  # without noisy numbers
    truth = plain(connection.sql(TRUTH[name]).fetchall())
    within = {"rel": 0, "abs": NEAR.get(name, 0.1), "nan_ok": True}
    for one, other in zip(found, truth, strict=True):
        assert one == (other if isinstance(other, str) else pytest.approx(other, **within))
