"""Several threads and processes on one budget: exactly what it admits, and all of it charged."""

import random
import threading

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

EPSILON = 2.0**-10


def try_to_launch(root, queries):
    """How many answered, of one launch for each query."""
    answers = []
    for query in queries:
        try:
            root(query)
        except BudgetExceededError:
            continue
        answers.append(query)
    return len(answers)


def share(store, tools, d_out, processes, launches, epsilons=(EPSILON,), threads=1):
    """What each process launched of what it tried, on a budget that all of them share."""

    def work(number):
        ledger = store.open()
        root = tools.limit(ledger, d_out)
        queries = [tools.count(epsilon) for epsilon in epsilons]
        chosen = random.Random(number).choices(queries, k=launches)
        found = [0] * threads
        parts = [chosen[part::threads] for part in range(threads)]

        def one(part):
            found[part] = try_to_launch(root, parts[part])

        workers = [threading.Thread(target=one, args=(part,)) for part in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        losses = root.privacy_loss(), root.remaining()
        ledger.close()
        return sum(found), losses

    store.create().close()
    children = [tools.Child(lambda number=number: work(number)) for number in range(processes)]
    return [child.result() for child in children]


def test_eight_processes_launch_exactly_what_the_budget_admits(store, tools):
    found = share(store, tools, 250 * EPSILON, processes=8, launches=50)
    assert sum(answers for answers, _ in found) == 250
    assert found[-1][1] <= (250 * EPSILON, 0.0)
    summary = store.open().summary()
    assert (summary.launches, summary.spent, summary.remaining) == (250, 250 * EPSILON, 0.0)
    assert store.charges() == 250


@pytest.mark.slow
def test_sixteen_thousand_launches_on_a_budget_of_ten_thousand(store, tools):
    found = share(store, tools, 10_000 * EPSILON, processes=8, launches=2000)
    assert sum(answers for answers, _ in found) == 10_000
    assert store.open().summary().launches == 10_000


def test_threads_of_processes_share_one_budget(store, tools):
    found = share(store, tools, 100 * EPSILON, processes=3, launches=48, threads=4)
    assert sum(answers for answers, _ in found) == store.open().summary().launches == 100


def test_losses_of_several_sizes_are_charged_for_each_answer_and_never_above_the_bound(
    store, tools
):
    sizes = [EPSILON, 2 * EPSILON, 8 * EPSILON]
    found = share(store, tools, 64 * EPSILON, processes=4, launches=30, epsilons=sizes)
    summary, entries = store.open().summary(), store.open().entries()
    assert sum(answers for answers, _ in found) == summary.launches == len(entries)
    assert summary.spent == sum(entry.d_mid for entry in entries)
    assert 57 * EPSILON <= summary.spent <= 64 * EPSILON
    losses = [entry.loss for entry in entries]
    assert losses == sorted(losses)


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
