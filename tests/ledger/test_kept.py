"""What a ledger keeps so that opening reads later charges only, and when it is not believed."""

import json

import pytest

from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.errors import LedgerDamagedError, LedgerError
from opendp_concurrent.ledger import audit
from opendp_concurrent.ledger import audit as kept
from opendp_concurrent.ledger.audit import digest
from opendp_concurrent.ledger.encoding import canonical, first_hash
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE

from ..build import DATA, a_limit, by_tens
from .conftest import count, limit

EPSILON = 2.0**-10
KEPT = "opendp_concurrent_kept"


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(kept, "EVERY", 10)


@pytest.fixture
def read(monkeypatch):
    """The numbers of the charges that audits have read."""
    numbers, replay = [], audit.replay

    def noted(known, rows, *more):
        return replay(known, (numbers.append(row[1]) or row for row in rows), *more)

    monkeypatch.setattr(audit, "replay", noted)
    return numbers


def launch(ledger, times, labels=("ada", "bob")):
    root, query = limit(ledger), count(EPSILON)
    team = root(a_limit(0.5, "team"))
    handles = [team(a_limit(0.25, label)) for label in labels]
    handles.append(root)
    for number in range(times):
        handles[number % len(handles)](query)


@pytest.fixture
def spent(store):
    """26 charges, closed; the state after charge 20 is kept."""
    launch(store.create(), 26)
    store.close()
    return store


def facts(summary):
    limits = [(one.path, one.launches, one.spent, one.remaining) for one in summary.limits]
    return summary.launches, summary.spent, summary.remaining, summary.anchor, limits


def test_opening_reads_what_came_after_and_goes_on_with_the_same_totals(spent, read):
    ledger = spent.open()
    assert read == list(range(21, 27))
    launch(ledger, 3)
    whole = facts(ledger.summary())
    assert whole[:2] == (29, 29 * EPSILON)
    spent.close()
    del read[:]
    root = limit(spent.open())
    assert read == list(range(21, 30))
    assert root.privacy_loss() == 29 * EPSILON
    team = root(a_limit(0.5, "team"))
    assert team.privacy_loss() == 20 * EPSILON
    spent.execute(f"DELETE FROM {KEPT}")
    assert facts(spent.open(read_only=True).summary()) == whole


def test_an_anchor_and_a_summary_read_all_charges(spent, read):
    ledger = spent.open()
    anchor = ledger.summary().anchor
    assert read == [*range(21, 27), *range(1, 27)]
    del read[:]
    spent.open(anchor=anchor)
    assert read == list(range(1, 27))


def edited(store, change, sign=True):
    """Change what is kept, as somebody does who knows how to make its digest."""
    ((dataset, terms),) = store.execute("SELECT dataset, terms FROM opendp_concurrent_budgets")
    state = json.loads(store.execute(f"SELECT state FROM {KEPT}")[0][0])
    change(state)
    text = canonical(state)
    with store.open(read_only=True)._store.reading() as connection:
        made = digest(first_hash(dataset, terms), kept._guard(connection), text)
    store.close()
    text = text.replace("'", "''")
    if not sign:
        made = store.execute(f"SELECT digest FROM {KEPT}")[0][0]
    store.execute(f"DELETE FROM {KEPT}")
    store.execute(f"INSERT INTO {KEPT} VALUES ('{dataset}', '{text}', '{made}')")


def less(state):
    state[2] = count_of(1)


def count_of(launches):
    return basic().start(MAX_DIVERGENCE).after(EPSILON, launches).to_record()


def another_charge(state):
    state[1] = "ab" * 32


def later(state):
    state[0] = 40


@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("change", [less, another_charge, later, list.clear])
def test_what_is_kept_and_was_edited_is_not_believed(spent, read, change, sign):
    edited(spent, change, sign)
    del read[:]
    ledger = spent.open()
    assert read[-26:] == list(range(1, 27))
    assert limit(ledger).privacy_loss() == 26 * EPSILON


def test_an_old_charge_that_was_edited_is_refused_when_it_is_read(spent):
    anchor = spent.open().summary().anchor
    spent.close()
    spent.execute("UPDATE opendp_concurrent_charges SET label = 'x' WHERE sequence = 5")
    if spent.embedded:  # whoever dropped the triggers has changed the version of the schema
        with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
            spent.open()
        return
    with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
        spent.open(anchor=anchor)
    with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
        spent.open().summary()


def test_triggers_of_a_server_that_were_disabled_are_noticed(postgresql):
    launch(postgresql.create(), 26)
    postgresql.close()
    table = "opendp_concurrent_charges"
    postgresql.execute(
        f"SET session_replication_role TO origin; ALTER TABLE {table} DISABLE TRIGGER ALL; "
        f"UPDATE {table} SET label = 'x' WHERE sequence = 5; ALTER TABLE {table} ENABLE TRIGGER ALL"
    )
    with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
        postgresql.open()


def test_a_state_of_blocks_is_not_kept(store):
    root = by_tens(ledger=store.create())(DATA)
    for number in range(25):
        root([number % 3], count(EPSILON))
    assert store.open().summary().launches == 25
    again = by_tens(ledger=store.open())(DATA)
    assert again.privacy_loss(0) == 9 * EPSILON
    with store.open()._store.reading() as connection:
        assert not kept.inspect(connection).has_table(KEPT)


def test_a_state_that_cannot_be_written_is_no_error(store, monkeypatch):
    def fail(*arguments):
        raise LedgerError("the disk is full")

    ledger = store.create()
    with monkeypatch.context() as patch:
        patch.setattr(kept.KeptState, "_write", fail)
        launch(ledger, 12)
    assert store.charges() == 12
