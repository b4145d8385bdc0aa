"""What a process that has a ledger open notices of what others have done to it."""

import importlib
import sys
import tracemalloc

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerDamagedError

from ..build import RENYI, costing, opened
from .conftest import count, fill, limit

CHARGES, BUDGETS = "opendp_concurrent_charges", "opendp_concurrent_budgets"


def test_a_curve_of_an_analyst_runs_outside_of_the_turn(store):
    """It may ask for the loss, or take long: nobody waits for it."""
    bound, asked = (lambda alpha: 1.0 * alpha), []
    root = opened(bound, RENYI, orders=[2.0, 4.0], ledger=store.create())

    def curve(alpha):
        asked.append(root.privacy_loss()(2.0))
        return 0.125 * alpha

    assert root(costing(lambda d_in: curve, measure=RENYI)) == 3
    assert asked
    assert root.privacy_loss()(2.0) == 0.25


def test_the_extra_is_named(monkeypatch):
    module = "opendp_concurrent.ledger"
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)  # its import fails
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match="the extra named ledger installs") as caught:
        importlib.import_module(module)
    assert caught.value.name == "sqlalchemy"


EPSILON = 2.0**-10


def launch(ledger, times):
    root = limit(ledger, 8.0)
    for number in range(times):
        with oc.labelled("even" if number % 2 == 0 else "odd"):
            root(count(EPSILON))


def test_entries_are_those_of_one_moment_and_are_checked_when_they_are_read(store):
    ledger = store.create()
    launch(ledger, 26)
    entries = ledger.entries()
    launch(ledger, 2)
    assert len(entries) == len(list(entries)) == 26
    assert (entries[0].sequence, entries[-1].sequence, entries[25].sequence) == (1, 26, 26)
    assert entries[1:3] == list(entries)[1:3]
    for index in (26, -27):
        with pytest.raises(IndexError):
            entries[index]
    assert entries == list(entries)
    assert entries != [1]
    even = ledger.entries(label="even")
    assert [one.sequence for one in even] == list(range(1, 29, 2))
    assert not ledger.entries(label="nobody")
    store.execute("UPDATE opendp_concurrent_charges SET label = 'x' WHERE sequence = 5")
    with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
        list(entries)
    with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
        ledger.entries()


def test_a_long_list_takes_the_memory_of_a_page(sqlite):
    ledger = sqlite.create()
    root = limit(ledger, 1e3)
    fill(ledger, root, count(EPSILON), 6_000)
    entries = ledger.entries()
    tracemalloc.start()
    try:
        many = sum(1 for _ in entries)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert many == 6_000
    assert peak < 2 * 2**20  # a list of them has 3 MB
