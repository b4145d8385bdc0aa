"""Several threads and processes on one budget: exactly what it admits, and all of it charged."""

import contextlib

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.ledger import book
from opendp_concurrent.ledger.audit import replay

from ..build import in_threads

EPSILON = 2.0**-10


def share(store, tools, d_out, processes, launches, threads=1):
    """How many launches answered in each process, on a budget that all of them share."""

    def work():
        ledger = store.open()
        root, answers = tools.limit(ledger, d_out), []

        def one(_):
            for _ in range(launches // threads):
                with contextlib.suppress(BudgetExceededError):
                    answers.append(root(tools.count(EPSILON)))

        in_threads(one, range(threads))
        assert root.privacy_loss() <= d_out
        ledger.close()
        return len(answers)

    store.create().close()
    children = [tools.Child(work) for _ in range(processes)]
    return [child.result() for child in children]


@pytest.mark.parametrize(
    ("budget", "processes", "launches", "threads"),
    [
        *((100, 6, 25, 1), (60, 3, 28, 4)),
        pytest.param(10_000, 8, 2000, 1, marks=pytest.mark.slow),
    ],
)
def test_threads_of_processes_launch_exactly_what_the_budget_admits(
    store, tools, budget, processes, launches, threads
):
    found = share(store, tools, budget * EPSILON, processes, launches, threads)
    summary = store.open().summary()
    assert sum(found) == summary.launches == store.charges() == budget
    assert (summary.spent, summary.remaining) == (budget * EPSILON, 0.0)


def test_the_first_of_several_processes_settles_the_terms(store, tools):
    store.create().close()

    def settle(d_out):
        try:
            tools.limit(store.open(), d_out)
        except oc.errors.LedgerMismatchError as error:
            return error.name
        return d_out

    children = [tools.Child(lambda d=d: settle(d)) for d in (1.0, 2.0, 3.0, 4.0)]
    found = [child.result() for child in children]
    (settled,) = (one for one in found if one != "d_out")
    assert found.count("d_out") == 3
    assert store.open().summary().terms.d_out == settled


def test_refusals_read_the_charges_of_others_once(store, tools, monkeypatch):
    store.create().close()
    one, other = (tools.limit(store.open(), 1.0) for _ in range(2))
    for _ in range(150):
        one(tools.count(EPSILON))
    read = []

    def counted(known, rows):
        read.append(len(rows))
        return replay(known, rows)

    monkeypatch.setattr(book, "replay", counted)
    for _ in range(3):
        with pytest.raises(BudgetExceededError):
            other(tools.count(2.0))
    assert read == [150]
    other(tools.count(EPSILON))
    assert other.privacy_loss() == one.privacy_loss() == 151 * EPSILON
