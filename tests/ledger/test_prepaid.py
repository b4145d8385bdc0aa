"""Prepaid launches on a ledger: charged one by one in one transaction, launched without it."""

import os
import random

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, LedgerError, PrepaidUsedError

EPSILON = 2.0**-10


def test_each_prepaid_launch_is_a_charge_of_its_own(store, tools):
    with store.create() as ledger:
        root, query = tools.limit(ledger), tools.count(0.25)
        with oc.labelled("weekly counts"):
            block = root.prepaid(query, 3)
        root(query)
        summary, entries = ledger.read()
        assert (summary.launches, summary.spent, summary.remaining) == (4, 1.0, 0.0)
        assert [one.d_mid for one in entries] == [0.25] * 4
        assert [one.label for one in entries] == ["weekly counts"] * 3 + [""]
        assert [one.mechanism.startswith("prepaid: ") for one in entries] == [True] * 3 + [False]
    for _ in range(3):  # the ledger is closed
        assert isinstance(block(query), int)
    with pytest.raises(LedgerError):
        root(query)


def test_launches_run_after_the_ledger_is_closed_until_they_must_be_paid(store, tools):
    with store.create() as ledger:
        root, query = tools.limit(ledger), tools.count(0.125)
        worker = root.leased(query, 3)
        worker(query)
        other = root.prepaid(query, 2)
    for _ in range(worker.unspent):
        assert isinstance(worker(query), int)
    with pytest.raises(LedgerError):
        worker(query)
    assert (worker.paid, worker.unspent, other.unspent) == (3, 0, 2)
    other.close()
    with pytest.raises(PrepaidUsedError):
        other(query)
    with store.open() as ledger:
        assert ledger.summary().launches == 5


def test_a_block_that_is_refused_writes_nothing(store, tools):
    with store.create() as ledger:
        root = tools.limit(ledger)
        with pytest.raises(BudgetExceededError):
            root.prepaid(tools.count(0.25), 5)
        assert ledger.summary().launches == 0
        worker = root.leased(tools.count(0.25), 5)
        assert (worker.paid, ledger.summary().launches) == (4, 4)


def test_what_a_process_prepaid_is_lost_when_it_dies(store, tools):
    store.create().close()

    def work():
        root = tools.limit(store.open())
        query = tools.count(0.125)
        block = root.prepaid(query, 5)
        block(query)
        os._exit(0)

    child = tools.Child(work)
    os.waitpid(child.pid, 0)
    with store.open() as ledger:
        root = tools.limit(ledger)
        assert (root.privacy_loss(), root.remaining()) == (0.625, 0.375)


def test_a_rule_with_delta_admits_as_many_as_without_prepaying(store, tools):
    rule = oc.accumulators.best_rule((1.0, 1e-6), typical=[(0.01, 0.0)])
    measure = dp.approximate(dp.max_divergence())
    query = dp.c.make_approximate(
        tools.space() >> dp.t.then_count() >> dp.m.then_laplace(scale=100.0)
    )
    with store.create() as ledger:
        root = tools.limit(ledger, (1.0, 1e-6), measure=measure, accumulator=rule)
        worker = root.leased(query, 60)
        for _ in range(490):
            worker(query)
        with pytest.raises(BudgetExceededError):
            worker(query)
        assert (worker.unspent, ledger.summary().launches) == (0, 490)


def mixed(store, tools, budget, launches, size, processes=8):
    """What each process launched of what it tried: alone, from a lease, or from a block."""

    def work(number):
        with store.open() as ledger:
            root, query = tools.limit(ledger, budget * EPSILON), tools.count(EPSILON)
            chance, found, blocks = random.Random(number), 0, []

            def launch(handle):
                handle(query)
                return 1

            def prepay(handle):
                blocks.append(handle.prepaid(query, chance.randint(1, size)))
                return 0

            leased = None
            for _ in range(launches):
                try:
                    if leased is None:
                        leased = root.leased(query, size)
                    ready = [block for block in blocks if block.unspent]
                    kind = chance.random()
                    if kind < 0.05:
                        found += prepay(root)
                    elif kind < 0.4 and ready:
                        found += launch(ready[0])
                    else:
                        found += launch(root if kind < 0.7 else leased)
                except BudgetExceededError:
                    continue
            for block in [*blocks, *([leased] if leased else [])]:
                for _ in range(block.unspent):
                    found += launch(block)
            return found

    store.create().close()
    children = [tools.Child(lambda number=number: work(number)) for number in range(processes)]
    found = [child.result() for child in children]
    with store.open() as ledger:
        summary = ledger.summary()
    assert (summary.launches, summary.spent) == (budget, budget * EPSILON)
    assert sum(found) == budget


def test_processes_that_prepay_and_launch_share_a_budget_exactly(store, tools):
    mixed(store, tools, budget=300, launches=150, size=7, processes=4)


@pytest.mark.slow
def test_eight_processes_share_a_budget_of_10_000_exactly(store, tools):
    mixed(store, tools, budget=10_000, launches=2000, size=50)
