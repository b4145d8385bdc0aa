"""Laws of measurements on constructors of plugins: right ones, and one fault for each law."""

from fractions import Fraction
from math import nextafter
from threading import Lock
from time import sleep

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError

from ..build import SPACE

DATASETS = ([739391], [])


def plugin(answer=len, map_=lambda d_in: 4.0 * d_in, measure=None):
    """Noise on a number of rows; ``answer`` comes before the noise."""
    noise = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=0.25)
    return dp.m.make_user_measurement(
        *SPACE, measure or dp.max_divergence(), lambda rows: noise(answer(rows)), map_
    )


def laws_of(make, runs=40, **options):
    found = oc.extend.check_measurement(make, {}, DATASETS, runs=runs, **options)
    return {one.partition(":")[0] for one in found}, found


@pytest.mark.parametrize(
    "make",
    [
        plugin,
        lambda: SPACE >> dp.t.then_count() >> dp.m.then_gaussian(2.0),
        lambda: plugin(
            measure=dp.approximate(dp.max_divergence()), map_=lambda d_in: (4.0 * d_in, 0.0)
        ),
        lambda: plugin(measure=dp.renyi_divergence(), map_=lambda d_in: lambda order: 4.0 * d_in),
        lambda: plugin(measure=oc.tradeoff(), map_=lambda d: oc.TradeoffFunction.pure(4.0 * d)),
    ],
    ids=["pure", "zCDP", "approximate", "curve", "trade-off function"],
)
def test_nothing_is_found_in_what_keeps_the_laws(make):
    assert laws_of(make, runs=100) == (set(), [])


def test_handles_are_asked():
    def make():
        return oc.m.make_sparse_vector(*SPACE, dp.max_divergence(), 1, 2.0, 3, 1)

    query = SPACE >> dp.t.then_count()
    assert laws_of(make, d_ins=(1,), query=lambda handle: handle(query)) == (set(), [])


def changing():
    losses = iter(range(1, 10_000))
    return plugin(map_=lambda d_in: 4.0 * d_in + next(losses))


def tells(rows):
    if rows:
        raise ValueError(f"row {rows[0]} is too large")
    return 0


def alone():
    lock = Lock()

    def answer(rows):
        if not lock.acquire(blocking=False):
            raise RuntimeError("is running")
        sleep(0.002)
        lock.release()
        return len(rows)

    return plugin(answer)


def patched():
    made = plugin()
    made.map = lambda d_in: 3.9 * d_in  # which native code does not call
    return made


FAULTS = {
    "a loss that falls": (lambda: plugin(map_=lambda d_in: 9.0 / d_in), "map"),
    "a loss that changes": (changing, "map"),
    "a loss below 0": (lambda: plugin(map_=lambda d_in: -1.0), "map"),
    "a loss that is rounded down": (
        lambda: plugin(map_=lambda d_in: nextafter(4.0 * d_in, 0)),
        "outward",
    ),
    "a loss that is too small": (lambda: plugin(map_=lambda d_in: 0.25 * d_in), "neighbours"),
    "an error of some rows": (lambda: plugin(tells, lambda d_in: 1.0 * d_in), "neighbours"),
    "an error that tells rows": (lambda: plugin(tells), "errors"),
    "one run at a time": (alone, "launch"),
    "a map that was put on": (patched, "chain"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_by_its_law(name):
    make, law = FAULTS[name]
    runs = 400 if law == "neighbours" else 40
    laws, found = laws_of(make, runs, exact=lambda d_in: Fraction(4) * d_in)
    assert law in laws, found


def test_what_is_no_measurement_and_no_pair_is_refused():
    for make, datasets in ((lambda: len, DATASETS), (plugin, [1])):
        with pytest.raises(InvalidTypeError):
            oc.extend.check_measurement(make, {}, datasets)
