"""The 27 everyday tasks of docs/everyday.rst on any flights and planes, and the truth of each."""

import csv
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from math import isnan, nan
from pathlib import Path
from statistics import fmean, pstdev, pvariance

import duckdb
import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.mechanisms.keys import key_noise

from .reference import hashed

PAGE = Path(__file__).parents[2] / "docs" / "everyday.rst"
LINE = re.compile(r"^   \* - ([a-z ]+)\n     - ``(\(?(?:few|rows|private)\..+)``$", re.MULTILINE)
NAMES = ("tailnum", "carrier", "origin", "dest", "distance", "air_time", "dep_delay", "arr_delay")
NAMES = (*NAMES, "time_hour", "fare")
SCHEMA = dict.fromkeys(NAMES[:4], str) | dict.fromkeys(NAMES[4:8], int)
SCHEMA |= {"air_time": float, "time_hour": datetime, "fare": oc.tables.Decimal(2)}
PLANES = {"tailnum": str, "year": int, "seats": int}
MILES = range(0, 2301, 10)
MINUTES = range(-40, 121, 4)
BINS = [0.0, 100.0, 200.0, 300.0, 400.0]
LATE = (-40, 120)  # ENDS of the page
POWERS = [0, *(2**exponent for exponent in range(41))]
PRIVATE = 20.0, 1e-12
KEPT = 5  # destinations of a plane in a line
SURE = 6  # units; noise of scale 1/4 reaches so far with a probability of e^-24


def tasks():
    """The lines of the page: a name, and code."""
    return dict(LINE.findall(PAGE.read_text()))


def clamped(values, low, high):
    return [min(max(one, low), high) for one in values if one is not None]


def mean(values, low, high):
    return fmean(found) if (found := clamped(values, low, high)) else nan


def below(values, share, cuts):
    """The last cut that at most the share of the values is below."""
    known = sorted(values)
    return max(cut for cut in cuts if bisect_left(known, cut) <= share * len(known))


def nearest(values, percent, cuts):
    """The candidates that split the values best: equal ones are equally good answers."""
    known, scores = sorted(values), {}
    for cut in cuts:
        under, over = bisect_left(known, cut), len(known) - bisect_right(known, cut)
        scores[cut] = abs((100 - percent) * under - percent * over)
    return frozenset(cut for cut in cuts if scores[cut] == min(scores.values()))


def binned(values, edges=BINS):
    return [sum(low <= one < high for one in values) for low, high in pairwise(edges)]


class Keys:
    """The keys that must be found, and those that may."""

    def __init__(self, must, may):
        self.must, self.may = set(must), set(may)


class Flights:
    """Flights, their planes and the weather: what the lines use, and what they should answer.

    :ivar stored: all rows; those without a plane are in no answer
    :ivar rainy: whether it rains at an origin in an hour of the day
    :ivar most: flights of a plane, at most
    """

    def __init__(self, stored, planes, rainy):
        self.stored, self.planes, self.rainy = stored, planes, rainy
        self.rows = [row for row in stored if row[0] is not None]
        self.most = max(Counter(self.column("tailnum")).values())
        self.carriers, self.origins, self.dests = (
            sorted(set(self.column(name))) for name in ("carrier", "origin", "dest")
        )

    def column(self, name, rows=None):
        """The values that are not missing."""
        place = NAMES.index(name)
        found = (row[place] for row in (self.rows if rows is None else rows))
        return [one for one in found if one is not None]

    def where(self, holds):
        return [row for row in self.rows if holds(dict(zip(NAMES, row, strict=True)))]

    def each(self, keys, value, of):
        """A value of the rows of each key."""
        found = defaultdict(list)
        for row in self.rows:
            found[of(row)].append(row)
        return [value(found[key]) for key in keys]

    def by(self, name, keys, value):
        place = NAMES.index(name)
        return self.each(keys, value, lambda row: row[place])

    def late(self, rows=None):
        return clamped(self.column("arr_delay", rows), *LATE)

    def found(self):
        """The destinations that must be found, and those that may."""
        own = defaultdict(set)
        for row in self.rows:
            own[row[0]].add(row[3])
        units = Counter(
            dest
            for plane, dests in own.items()
            for _, dest in hashed(sorted(dests), "fair", plane)[:KEPT]
        )
        noise = key_noise(PRIVATE, KEPT)
        assert noise.scale < 0.2501
        users = noise.users
        must = [dest for dest, number in units.items() if number >= users + SURE]
        return Keys(must, [dest for dest, number in units.items() if number > users - SURE])

    def truth(self):
        """The truth of each task, and what an answer may be off."""
        column, by, when = self.column, self.by, NAMES.index("time_hour")
        seats = {name: number for name, _, number in self.planes if number is not None}
        carried = by("carrier", self.carriers, len)
        distances, delays, times = column("distance"), column("arr_delay"), column("air_time")
        weeks = Counter(time.isocalendar().week for time in column("time_hour"))
        reach = below(distances, 0.01, POWERS), below(distances, 0.99, POWERS)
        rain = self.where(lambda row: self.rainy[row["origin"], row["time_hour"].hour])
        fast = self.where(lambda row: row["air_time"] and row["distance"] / row["air_time"] > 7)
        cut = [sum(edge < one for one in delays) for edge in (0, 15, 60)]
        return {
            "count": (len(self.rows), 0),
            "planes": (len(set(column("tailnum"))), 0),
            "by carrier": (carried, 0),
            "filter": (sum(one > 15 for one in delays), 0),
            "sum": (by("carrier", self.carriers, lambda rows: sum(column("distance", rows))), 0),
            "mean": (fmean(distances), 0.01),
            "variance": ({"var": pvariance(self.late()), "sd": pstdev(self.late())}, 0.1),
            "mean by carrier": (
                by("carrier", self.carriers, lambda rows: fmean(self.late(rows))),
                0.01,
            ),
            "median": (nearest(distances, 50, MILES), 0),
            "quantile by origin": (
                by(
                    "origin",
                    self.origins,
                    lambda rows: below(column("dep_delay", rows), 0.9, MINUTES),
                ),
                0,
            ),
            "extremes": ([nearest(distances, percent, MILES) for percent in (1, 99)], 0),
            "bounds": ((reach[0], 2 * reach[1]), 0),
            "histogram": (binned(times), 0),
            "histogram by origin": (
                [
                    one
                    for rows in by("origin", self.origins, list)
                    for one in binned(column("air_time", rows))
                ],
                0,
            ),
            "ratio": (len(fast), 0),
            "week": ([weeks[week] for week in range(1, 54)], 0),
            "hour": (
                self.each(
                    range(24),
                    lambda rows: mean(column("dep_delay", rows), -20, 100),
                    lambda row: row[when].hour,
                ),
                0.01,
            ),
            "when": ([sum((one > 1000) == far for one in distances) for far in (True, False)], 0),
            "fill": (sum(self.late()), 0),
            "cut": ([len(delays) - cut[0], cut[0] - cut[1], cut[1] - cut[2], cut[2]], 0),
            "money": (Decimal(sum(column("fare"))).scaleb(-2), 0),
            "weather": (mean(column("dep_delay", rain), -20, 100), 0.01),
            "seats": (fmean(seats[one] for one in column("tailnum") if one in seats), 0.01),
            "destinations": (self.found(), 0),
            "distinct": (len(self.dests), 0),
            "several": (
                {
                    "n": carried,
                    "sd": by("carrier", self.carriers, lambda rows: pstdev(self.late(rows))),
                },
                0.1,
            ),
            "top": ([one for one, _ in Counter(column("dest")).most_common(3)], 0),
        }

    def names(self, data):
        """What the lines use: queries of negligible noise, and public values."""
        pure = oc.concurrent_context(data, oc.tables.unit_of(units=1), dp.loss_of(epsilon=1e13))
        epsilon, delta = PRIVATE
        approximate = oc.concurrent_context(
            data, oc.tables.unit_of(units=1), dp.loss_of(epsilon=epsilon, delta=delta)
        )
        rows = pure.query(epsilon=1e12)
        found = {"rows": rows, "few": rows.truncate(self.most), "MOST": self.most}
        found |= {"col": oc.tables.col, "when": oc.tables.when}
        found["private"] = approximate.query(epsilon=epsilon, delta=delta)
        keyed = {"by": "carrier", "keys": self.carriers}
        public = {"CARRIERS": self.carriers, "ORIGINS": self.origins, "DESTS": self.dests}
        public |= {"MILES": MILES, "MINUTES": MINUTES, "BINS": BINS, "BY": keyed, "ENDS": [LATE]}
        public["WEATHER"] = ["origin", "h"], {"rain": bool}, self.rainy
        return found | public | {"HOUR": oc.tables.col("time_hour").dt.hour()}

    def answer(self, data, name):
        """What a line of the page releases."""
        code = tasks()[name]
        ending = "" if "release()" in code else ".laplace().release()"
        return plain(eval(code + ending, self.names(data)))


def plain(answer):
    """Values of estimates, of lists and of frames."""
    if type(answer) is oc.tables.Estimate:
        return answer.value
    if type(answer) is dict:
        return {name: plain(one) for name, one in answer.items()}
    return [plain(one) for one in answer] if type(answer) is list else answer


def off(found, truth):
    if isinstance(truth, Keys):
        return 0 if truth.must <= set(found) <= truth.may else 1
    if isinstance(truth, frozenset):
        return 0 if found in truth else 1
    if isinstance(truth, dict):
        assert set(found) == set(truth)
        return max(off(found[name], one) for name, one in truth.items())
    if isinstance(truth, str):
        return 0 if found == truth else 1
    if isinstance(truth, (list, tuple)):
        assert len(found) == len(truth)
        return max(off(*pair) for pair in zip(found, truth, strict=True))
    return 0 if isnan(found) and isnan(truth) else abs(found - truth)


def with_points(rows):
    return [(*row[:-1], f"{row[-1] // 100}.{row[-1] % 100:02}") for row in rows]


def stored(folder, flights):
    """Two Parquet files of flights, and one of planes; a plane has rows in one or in both."""
    kinds = ("TEXT", "TEXT", "TEXT", "TEXT", "INT", "DOUBLE", "INT", "INT", "TIMESTAMP")
    connection = duckdb.connect()
    for name, schema, types, rows in (
        ("f", SCHEMA, (*kinds, "DECIMAL(9, 2)"), with_points(flights.stored)),
        ("p", PLANES, ("TEXT", "INT", "INT"), flights.planes),
    ):
        path = folder / f"{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        named = zip(schema, types, strict=True)
        connection.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, named))})")
        connection.execute(f"COPY {name} FROM '{path}' (HEADER false)")
    for part in (0, 1):
        path = folder / f"flights-{part}.parquet"
        connection.execute(f"COPY (SELECT * FROM f WHERE rowid % 2 = {part}) TO '{path}'")
    connection.execute(f"COPY p TO '{folder / 'planes.parquet'}'")


def store_on(connection, flights):
    """The same tables on a server."""
    kinds = ("TEXT", "TEXT", "CHAR(3)", "VARCHAR", "INT", "REAL", "SMALLINT", "INT", "TIMESTAMPTZ")
    pairs = zip(NAMES, (*kinds, "NUMERIC(9, 2)"), strict=True)
    tables = {"f": with_points(flights.stored), "p": flights.planes}
    kinds = {"f": ", ".join(map(" ".join, pairs)), "p": "tailnum TEXT, year INT, seats INT"}
    connection.execute("SET TIME ZONE 'UTC'")
    for name, rows in tables.items():
        connection.execute(f"DROP TABLE IF EXISTS everyday_{name}")
        connection.execute(f"CREATE TABLE everyday_{name} ({kinds[name]})")
        with connection.cursor().copy(f"COPY everyday_{name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def tables(request, folder, flights):
    """Flights with planes beside them: Parquet files without a connection, a server, or Spark."""
    if request.param == "postgres":
        connection = request.getfixturevalue("on_postgres").connection
        store_on(connection, flights)
        both = (connection, "everyday_f"), (connection, "everyday_p")
    else:
        stored(folder, flights)
        session = [request.getfixturevalue("spark")] if request.param == "spark" else []
        parts = sorted(folder.glob("flights-*")) if session else folder / "flights-*.parquet"
        both = (*session, parts), (*session, folder / "planes.parquet")
    beside = oc.tables.scan(*both[1], PLANES, "tailnum")
    return oc.tables.scan(*both[0], SCHEMA, "tailnum").with_tables(planes=beside)
