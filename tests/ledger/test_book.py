"""What a process that has a ledger open notices of what others have done to it."""

import importlib
import json
import os
import shutil
import sqlite3
import sys
import threading
import tracemalloc
from pathlib import Path

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerDamagedError
from opendp_concurrent.ledger.book import Seen
from opendp_concurrent.ledger.encoding import first_hash, next_hash
from opendp_concurrent.ledger.opening import path_or_url

from .conftest import count, fill, limit

CHARGES, BUDGETS = "opendp_concurrent_charges", "opendp_concurrent_budgets"


def test_a_ledger_that_was_rewound_and_went_on_is_noticed(store, tools):
    root = tools.limit(store.create())
    for _ in range(3):
        root(tools.count(0.25))
    ((dataset, terms),) = store.execute(f"SELECT dataset, terms FROM {BUDGETS}")
    rewritten, head = [], first_hash(dataset, terms)
    for number in range(1, 5):
        d_mid = json.dumps({"double": (0.125).hex()}, separators=(",", ":"))
        row = (dataset, number, 5, "", "another", d_mid)
        head = next_hash(head, row)
        rewritten.append((*row, head))
    for statement in (
        *(("DROP TRIGGER opendp_concurrent_no_delete",) if store.embedded else ()),
        *(() if store.embedded else (f"ALTER TABLE {CHARGES} DISABLE TRIGGER ALL",)),
        f"DELETE FROM {CHARGES}",
        *(f"INSERT INTO {CHARGES} VALUES {row!r}" for row in rewritten),
        f"UPDATE {BUDGETS} SET sequence = 4, head = '{head}', record = '\"{_units(0.5)}\"'",
    ):
        store.execute(statement)
    store.open().close()  # by itself it fits together
    for ask in (root.privacy_loss, lambda: root(tools.count(0.125))):
        with pytest.raises(LedgerDamagedError, match="does not follow"):
            ask()


def _units(total):
    from opendp_concurrent.measures.sums import ScalarSum

    return ScalarSum().after(total).to_record()


def test_a_file_that_is_replaced_while_a_launch_waits_is_noticed(sqlite, tools):
    root = tools.limit(sqlite.create())
    answers, errors = [], []

    def launch():
        try:
            answers.append(root(tools.count(0.25)))
        except LedgerDamagedError as error:
            errors.append(error)

    holder = sqlite3.connect(sqlite.address, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=launch)
    thread.start()
    copy = str(sqlite.address) + ".copy"
    shutil.copyfile(sqlite.address, copy)
    os.replace(copy, sqlite.address)
    holder.execute("ROLLBACK")
    holder.close()
    thread.join()
    assert not answers
    assert "is not the file that was opened" in str(errors[0])


def test_a_curve_of_an_analyst_runs_outside_of_the_turn(store, tools):
    """It may ask for the loss, or take long: nobody waits for it."""
    space, measure = tools.space(), dp.renyi_divergence()
    odometer = oc.make_concurrent_odometer(*space, measure)
    root = oc.make_concurrent_filter(
        odometer, 1, lambda alpha: 1.0 * alpha, orders=[2.0, 4.0], ledger=store.create()
    )([1, 2, 3])
    asked = []

    def curve(alpha):
        asked.append(root.privacy_loss()(2.0))
        return 0.125 * alpha

    mechanism = dp.m.make_user_measurement(*space, measure, len, lambda d_in: curve)
    assert root(mechanism) == 3
    assert asked
    assert root.privacy_loss()(2.0) == 0.25


def test_many_charges_of_others_are_followed(store, tools):
    one, other = tools.limit(store.create(), d_out=100.0), tools.limit(store.open(), d_out=100.0)
    for number in range(120):
        one(tools.count(0.25 if number % 2 else 0.125))
    assert other.privacy_loss() == 22.5
    other(tools.count(0.5))
    assert one.privacy_loss() == 23.0


def newest(seen):
    return [(one.sequence, one.head) for one in seen.milestones()]


def test_before_the_first_charge_nothing_is_required():
    assert newest(Seen()) == []


def test_the_newest_charge_is_required_in_whatever_order_they_are_seen():
    seen = Seen()
    seen.see(0, "a")
    assert newest(seen) == [(0, "a")]
    seen.see(3, "d")
    seen.see(1, "b")
    assert newest(seen) == [(3, "d")]


class Text(str):
    __slots__ = ()

    def __str__(self):
        return "elsewhere"


def test_paths_and_urls_are_returned():
    for given in ("budget.db", "postgresql+psycopg://user@host/database", Path("budget.db")):
        assert path_or_url(target=given) == given
    found = path_or_url(target=Text("budget.db"))
    assert (type(found), found) == (str, "budget.db")


def test_the_extra_is_named(monkeypatch):
    module = "opendp_concurrent.ledger.extra"
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
    fill(ledger, root, count(EPSILON), 12_000)
    entries = ledger.entries()
    tracemalloc.start()
    try:
        many = sum(1 for _ in entries)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert many == 12_000
    assert peak < 4 * 2**20  # a list of them has 6 MB
