"""Totals are values: an older one stays what it is, whatever happens to its successors."""

import gc
from threading import Thread

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.block_keys import Keys
from opendp_concurrent.composition.block_totals import OnBlocks, Totals
from opendp_concurrent.errors import BlockExceededError, InvalidValueError
from opendp_concurrent.measures.sums import ScalarSum

RNG = np.random.default_rng(3)
STARTS = {
    "counted": (ScalarSum(), 1.0, 0.0625),
    "shared": (oc.accumulators.advanced(delta_slack=1e-7).start(None), (1.0, 1e-6), (0.1, 0.0)),
}


def start(name):
    keys = Keys()
    keys.add([f"b{number}" for number in range(5)])
    first, d_out, d_mid = STARTS[name]
    return Totals(keys, first, d_out), d_mid


def state(totals):
    return [repr(totals.at(place).to_record()) for place in range(5)]


@pytest.mark.parametrize("name", STARTS)
def test_each_of_many_versions_stays_what_it_is(name):
    totals, d_mid = start(name)
    versions, expected = [totals], [state(totals)]
    for _ in range(60):  # a tree of versions
        before = versions[RNG.integers(0, len(versions))]
        places = np.unique(RNG.integers(0, 5, size=2))
        after = before.admitted(OnBlocks(places, d_mid))
        if isinstance(after, BlockExceededError):
            continue
        versions.append(after)
        expected.append(state(after))
        at = RNG.integers(0, len(versions))
        assert state(versions[at]) == expected[at]
    assert len(versions) > 30
    for at in RNG.permutation(len(versions)):
        assert state(versions[at]) == expected[at]


def test_a_refusal_names_the_first_block_and_changes_nothing():
    totals, d_mid = start("counted")
    for _ in range(16):
        totals = totals.after(OnBlocks(np.array([1, 3]), d_mid))
    before = state(totals)
    refused = totals.admitted(OnBlocks(np.array([0, 3, 4]), d_mid))
    assert isinstance(refused, BlockExceededError)
    assert (refused.block, refused.spent, refused.remaining) == ("b3", 1.0, 0.0)
    assert state(totals) == before
    with pytest.raises(InvalidValueError, match="do not fit"):
        totals.after(OnBlocks(np.array([3]), d_mid))


def test_versions_may_be_read_from_many_threads():
    totals, d_mid = start("counted")
    versions = [totals.after(OnBlocks(np.array([0]), d_mid))]
    for _ in range(10):
        versions.append(versions[-1].after(OnBlocks(np.array([0, 1]), d_mid)))
    expected, wrong = [state(one) for one in versions], []

    def read(seed):
        rng = np.random.default_rng(seed)
        for at in rng.integers(0, len(versions), size=100):
            if state(versions[at]) != expected[at]:
                wrong.append(at)

    threads = [Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def living():
    gc.collect()
    return sum(type(one) is Totals for one in gc.get_objects())


@pytest.mark.parametrize("kind", ["counted", "shared"])
def test_an_old_value_keeps_few_later_differences(kind, monkeypatch):
    monkeypatch.setattr("opendp_concurrent.composition.block_totals._EXCHANGES", 50)
    others = living()
    totals, d_mid = start(kind)
    first = totals.after(OnBlocks(np.array([0]), d_mid))
    state_of_first = state(first)
    free = first.read(OnBlocks(np.array([0, 1]), 0.0 if kind == "counted" else (0.0, 0.0)))
    here = there = first
    for _ in range(300):  # as two handles of one ledger do
        here, there = here.after(free), there.after(free)
    assert living() - others < 200
    assert len(here._where[0].cells) < 10
    assert here._where[0].cells.kept < 60
    assert here._where[0] is not there._where[0]
    assert state(first) == state(here) == state(there) == state_of_first
    assert (first.launches, here.launches) == (1, 301)


@pytest.mark.parametrize("kind", ["counted", "shared"])
def test_values_stay_what_they_are_when_arrays_are_copied(kind, monkeypatch):
    monkeypatch.setattr("opendp_concurrent.composition.block_totals._EXCHANGES", 3)
    totals, d_mid = start(kind)
    d_mid = d_mid if kind == "counted" else (0.01, 0.0)
    alone = [totals]
    for _ in range(4):
        alone.append(alone[-1].after(OnBlocks(np.array([0]), d_mid)))
    after = [repr(one.at(0).to_record()) for one in alone]
    rng, wrong = np.random.default_rng(0), []
    versions, counts = [alone[1]], [np.array([1, 0, 0, 0, 0])]

    def read(seed):
        own = np.random.default_rng(seed)
        for at in own.integers(0, len(versions), size=60):
            versions[at].admitted(OnBlocks(np.array([1, 2]), d_mid))
            if state(versions[at]) != [after[count] for count in counts[at]]:
                wrong.append(at)

    for _ in range(10):
        for base in rng.integers(0, len(versions), size=8):
            cost = rng.random(5) < 0.5
            if cost.any() and (counts[base] + cost).max() < 5:
                versions.append(versions[base].after(OnBlocks(np.flatnonzero(cost), d_mid)))
                counts.append(counts[base] + cost)
        threads = [Thread(target=read, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert len({id(one._where[0]) for one in versions}) > 1
