"""A budget in a ledger goes on where it was left, under every measure, until exactly its bound."""

import importlib
import sys
import tracemalloc

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    LedgerDamagedError,
    LedgerMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.ledger import open_ledger
from opendp_concurrent.ledger import schema as tables

from ..build import (
    APPROXIMATE,
    DATA,
    PURE,
    RENYI,
    SPACE,
    ZCDP,
    a_filter,
    an_odometer,
    costing,
    opened,
)
from .conftest import CHARGES, DATASET, Child, count, fill, launch_until_refused, limit

F = oc.TradeoffFunction


def laplace(scale):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def gaussian(scale):
    return SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=scale)


def with_slack(accumulator):
    return APPROXIMATE, dp.c.make_approximate(laplace(10.0)), (2.5, 1e-6), accumulator


def on_orders():
    orders = {"orders": [1.5, 2.0, 16.0]}
    return RENYI, oc.c.cast(gaussian(3.0), RENYI), lambda alpha: 0.4 * alpha, None, orders


def truncated():
    query = oc.c.cast(gaussian(3.0), oc.truncated_concentrated_divergence(32.0))
    return query.output_measure, query, oc.TruncatedConcentrated(0.4, 32.0)


def gaussian_dp():
    return oc.gaussian_tradeoff(), oc.c.cast(laplace(8.0), oc.gaussian_tradeoff()), 0.5


def on_functions(d_out, accumulator):
    return oc.tradeoff(), oc.c.cast(laplace(8.0), oc.tradeoff()), d_out, accumulator


CASES = {  # what makes: measure, query, bound, accumulator, other arguments of the filter
    "pure": lambda: (PURE, laplace(8.0), 1.0),
    "approximate, zcdp": lambda: with_slack(oc.accumulators.zcdp(1e-7)),
    "approximate, either": lambda: with_slack(
        oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.zcdp(1e-7))
    ),
    "zCDP": lambda: (ZCDP, gaussian(3.0), 0.5),
    "Rényi on orders": on_orders,
    "tCDP": truncated,
    "GDP": gaussian_dp,
    "f-DP, ladder": lambda: on_functions(
        F.pure(0.125).power(7), oc.accumulators.ladder(F.pure(0.125))
    ),
    "f-DP, residue": lambda: (
        oc.tradeoff(),
        costing(lambda d_in: F.gaussian(0.25), measure=oc.tradeoff()),
        *(F.gaussian(0.75), oc.accumulators.residue(0.75)),
    ),
}


def spawn(case, ledger=None):
    measure, query, d_out, accumulator, keywords = (*case, *(None, {})[len(case) - 3 :])
    return opened(d_out, measure, accumulator, ledger=ledger, **keywords), query


@pytest.mark.parametrize(
    ("store", "make"),
    [
        *(pytest.param("sqlite", make, id=f"sqlite-{name}") for name, make in CASES.items()),
        pytest.param("postgresql", CASES["approximate, zcdp"], id="postgresql"),
    ],
    indirect=["store"],
)
def test_a_budget_goes_on_where_it_was_left_until_its_bound(store, make):
    case = make()
    memory, query = spawn(case)
    losses = [memory.privacy_loss()]
    for _ in range(launch_until_refused(spawn(case)[0], query)):
        memory(query)
        losses.append(memory.privacy_loss())
    assert len(losses) >= 4

    root, _ = spawn(case, store.create())
    for loss in losses[1:3]:
        assert isinstance(root(query), int)
        assert root.privacy_loss() == loss
    left = root.remaining()
    store.close()

    root, _ = spawn(case, store.open())
    assert (root.privacy_loss(), root.remaining()) == (losses[2], left)
    root(query)
    store.close()

    def elsewhere():
        with open_ledger(store.address, DATASET) as ledger:
            there, _ = spawn(case, ledger)
            known = there.privacy_loss() == losses[3]
            return known, launch_until_refused(there, query)

    assert Child(elsewhere).result() == (True, len(losses) - 1 - 3)
    ledger = store.open()
    root, _ = spawn(case, ledger)
    assert root.privacy_loss() == losses[-1]
    with pytest.raises(BudgetExceededError):
        root(query)
    summary = ledger.summary()
    assert (summary.launches, summary.spent) == (len(losses) - 1, losses[-1])
    assert summary.remaining == root.remaining() == memory.remaining()
    assert [entry.loss for entry in ledger.entries()] == losses[1:]


def test_an_entry_says_when_what_and_for_whom(sqlite):
    ledger = sqlite.create()
    root = limit(ledger)
    with oc.labelled("mean age,\nfor Ada é"):
        root(laplace(8.0))
    root(dp.m.make_user_measurement(*SPACE, PURE, len, lambda d_in: 0.25 * d_in))
    first, second = ledger.entries()
    assert (first.label, second.label) == ("mean age,\nfor Ada é", "")
    assert first.mechanism == "count >> laplace(scale=8.0)"
    assert "user_measurement" in second.mechanism
    assert (first.d_mid, second.d_mid, second.loss) == (0.125, 0.25, 0.375)
    assert first.time <= second.time
    assert str(first.time.tzinfo) == "UTC"
    assert second.hash == ledger.summary().anchor.partition(":")[2]


def test_a_summary_says_what_the_budget_is_about(sqlite):
    ledger = sqlite.create()
    summary = ledger.summary()
    assert (summary.terms, summary.launches) == (None, 0)
    assert (summary.spent, summary.remaining) == (None, None)
    assert (summary.dataset, ledger.entries()) == (DATASET, [])
    limit(ledger)
    terms = ledger.summary().terms
    assert (terms.measure, terms.d_in, terms.d_out) == ("MaxDivergence", 1, 1.0)
    assert (ledger.summary().spent, ledger.summary().remaining) == (0.0, 1.0)
    assert "secret" not in repr(ledger)
    assert DATASET in repr(ledger)


# --- odometers, chains, children -----------------------------------------------------------


def test_an_odometer_goes_on_where_it_was_left(sqlite):
    root = an_odometer(ledger=sqlite.create(), d_in=2)(DATA)
    for _ in range(3):
        root(laplace(8.0))
    assert root.privacy_loss(2) == 0.75
    sqlite.close()
    root = an_odometer(ledger=sqlite.open(), d_in=2)(DATA)
    root(laplace(8.0))
    assert root.privacy_loss(2) == 1.0
    assert root.loss_after([laplace(8.0)], 2) == 1.25
    assert sqlite.open().summary().remaining is None
    with pytest.raises(InvalidValueError, match="its loss is known only there"):
        root.privacy_loss(1)
    with pytest.raises(LedgerMismatchError, match="d_in"):
        an_odometer(ledger=sqlite.open(), d_in=3)(DATA)


def test_a_context_keeps_a_ledger(sqlite):
    def context(ledger, **keywords):
        return oc.concurrent_context(
            data=[1, 2, 3],
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            domain=dp.vector_domain(dp.atom_domain(T=int)),
            ledger=ledger,
            **keywords,
        )

    context(sqlite.create()).query(epsilon=0.25).count().laplace().release()
    sqlite.close()
    again = context(sqlite.open())
    assert again.remaining_privacy_loss() == 0.75
    with pytest.raises(InvalidTypeError, match="ledger is for losses that are chosen adaptively"):
        context(sqlite.open(), split_evenly_over=2)


# --- what is refused -----------------------------------------------------------------------


def test_what_excludes_others_is_refused_before_it_is_charged(sqlite):
    measure = dp.approximate(ZCDP)

    def user(loss):
        return costing(lambda d_in: loss, lambda _: dp.new_queryable(lambda query: query), measure)

    odometer = an_odometer(measure)
    root = opened((1.0, 1e-6), measure, ledger=sqlite.create())
    pair = oc.make_concurrent_composition(*SPACE, measure, 1, [(0.125, 2.0**-22)] * 2)
    free = root(pair), root(user((0.125, 0.0)))
    whole = user((0.125, 2.0**-22))
    for handle in (root, root(odometer), free[0]):
        before = handle.privacy_loss(1)
        for launch in (handle, handle.describe if handle is root else handle):
            with pytest.raises(UnsupportedMeasureError, match="in the tree of a ledger") as refused:
                launch(whole)
        assert refused.value.charged is False
        assert handle.privacy_loss(1) == before
    assert free[1]("still") == "still"
    gauss = dp.c.make_approximate(SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=2.0))
    assert [free[0](gauss), free[1](1), free[0](gauss)]
    assert sqlite.open().summary().spent == (0.375, 2.0**-21)


def test_a_filter_that_halts_is_refused(sqlite):
    with pytest.raises(InvalidValueError, match="halt must be False with a ledger"):
        a_filter(halt=True, ledger=sqlite.create())
    assert sqlite.open().summary().terms is None


def test_an_odometer_with_a_ledger_is_no_child_and_under_no_filter(store):
    ledger = store.create()
    recorded = an_odometer(ledger=ledger, d_in=1)
    with pytest.raises(InvalidTypeError, match="pass the ledger to the filter"):
        oc.make_concurrent_filter(recorded, 1, 1.0)
    with pytest.raises(InvalidTypeError, match="an odometer with a ledger cannot be launched"):
        opened()(recorded)
    assert ledger.summary().terms is None


# --- labels --------------------------------------------------------------------------------

LABELS = ("", "alice/1", "ALICE/1", "é", "e\u0301", "a" * 127, "a" * 128, "a" * 129, "ab" * 40_000)


@pytest.mark.parametrize("indexed", ["first", "last"])
def test_a_label_is_looked_up(store, indexed):
    """Labels of any length, those that look alike, and those of another budget."""
    ledger, other = store.create(), store.create("other " + "d" * 2000)
    roots = [limit(one) for one in (ledger, other)]
    if indexed == "first":
        assert [one.charged("x") for one in (ledger, other)] == [False, False]
    for index, label in enumerate(LABELS):
        with oc.labelled(label):
            roots[index % 2](count(0.125))
    again = store.open(read_only=True)
    for index, label in enumerate(LABELS):
        found = [one.charged(label) for one in (ledger, again, other)]
        assert found == [index % 2 == 0, index % 2 == 0, index % 2 == 1], label
        assert not ledger.charged(f"{label} ")
    assert ledger.summary().launches == other.summary().launches + 1
    roots[0](count(0.125))


def test_labels_are_looked_up_by_an_index(store):
    """A plan for a table of a size at which a plan matters; without the index all rows are read."""
    ledger = store.create()
    root = limit(ledger, 1e9)
    for label in range(40):
        with oc.labelled(str(label)):
            fill(ledger, root, count(), 50)
    start = {"of_start": ledger.dataset[:128], "label_start": "7"}
    statement = tables.HAS_LABEL.params(of=ledger.dataset, label="7", **start).compile(
        dialect=ledger._store._engine.dialect, compile_kwargs={"literal_binds": True}
    )
    explain = "EXPLAIN QUERY PLAN " if store.embedded else "EXPLAIN "
    assert "opendp_concurrent_labels" not in str(store.execute(f"{explain}{statement}"))
    assert ledger.charged("7")
    if not store.embedded:
        store.execute("ANALYZE opendp_concurrent_charges")
    assert "opendp_concurrent_labels" in str(store.execute(f"{explain}{statement}"))


# --- entries -------------------------------------------------------------------------------


def test_entries_are_those_of_one_moment_and_are_checked_when_they_are_read(sqlite):
    ledger = sqlite.create()
    root = limit(ledger, 8.0)

    def launch(times):
        for number in range(times):
            with oc.labelled("even" if number % 2 == 0 else "odd"):
                root(count(2.0**-10))

    launch(26)
    entries = ledger.entries()
    launch(2)
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
    sqlite.execute(f"UPDATE {CHARGES} SET label = 'x' WHERE sequence = 5")
    for read in (lambda: list(entries), ledger.entries):
        with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
            read()


def test_a_long_list_takes_the_memory_of_a_page(sqlite):
    ledger = sqlite.create()
    fill(ledger, limit(ledger, 1e3), count(2.0**-10), 6_000)
    entries = ledger.entries()
    tracemalloc.start()
    try:
        many = sum(1 for _ in entries)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert many == 6_000
    assert peak < 2 * 2**20  # a list of them has 3 MB


def test_a_curve_of_an_analyst_runs_outside_of_the_turn(sqlite):
    """It may ask for the loss, or take long: nobody waits for it."""
    bound, asked = (lambda alpha: 1.0 * alpha), []
    root = opened(bound, RENYI, orders=[2.0, 4.0], ledger=sqlite.create())

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
