"""What somebody who may write anything changes in a ledger, and whether it is noticed."""

import json

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, LedgerDamagedError, LedgerError
from opendp_concurrent.ledger import audit
from opendp_concurrent.ledger.audit import digest
from opendp_concurrent.ledger.encoding import canonical, first_hash

from ..build import DATA, a_limit, by_tens
from .conftest import BUDGETS, CHARGES, count, limit, rehash

KEPT = "opendp_concurrent_kept"
EPSILON = 2.0**-10


@pytest.fixture
def spent(sqlite):
    """Five charges of 1/8 on a budget of 1, with labels; nobody has it open."""
    root = limit(sqlite.create())
    for number in range(5):
        with oc.labelled(f"launch {number + 1}"):
            root(count(0.125))
    sqlite.close()
    return sqlite


# --- edits -------------------------------------------------------------------------------------


def of_budget(column, value, said):
    return [f"UPDATE {BUDGETS} SET {column} = {value}"], said


OTHER = "there are {} charges, but the budget says that the newest is number {}"
DELETED, COPY = f"DELETE FROM {CHARGES} WHERE sequence = 5", "dataset, 6, time, label, mechanism"
FOURTH = f"(SELECT hash FROM {CHARGES} WHERE sequence = 4)"
LARGER = "replace(terms, 'p+0', 'p+9')"  # d_out
SMALLER = """'{"double":"0x1.0000000000000p-4"}'"""
CHANGED = {"time": "time + 1", "label": "'x'", "mechanism": "'x'", "d_mid": SMALLER, "hash": "'00'"}
EDITS = [  # statements, and what is noticed
    *(
        ([f"UPDATE {CHARGES} SET {column} = {to} WHERE sequence = {n}"], f"charge {n} does not")
        for column, to in CHANGED.items()
        for n in (1, 5)
    ),
    ([DELETED.replace("5", "3")], "charge 3 is missing"),
    ([DELETED], OTHER.format(4, 5)),
    (
        [DELETED, f"UPDATE {BUDGETS} SET sequence = 4, head = {FOURTH}"],
        "the running total is 0.625, but the charges add up to 0.5",
    ),
    (
        [f"INSERT INTO {CHARGES} SELECT {COPY}, d_mid, hash FROM {CHARGES} WHERE sequence = 5"],
        "charge 6 does not follow",
    ),
    (
        [
            f"UPDATE {CHARGES} SET sequence = {after} WHERE sequence = {before}"
            for before, after in ((2, 20), (4, 2), (20, 4))
        ],
        "charge 2 does not follow",
    ),
    *(of_budget("sequence", number, OTHER.format(5, number)) for number in (4, 6)),
    *(of_budget("head", value, OTHER.format(5, 5)) for value in ("'00'", FOURTH)),
    of_budget("terms", "NULL", "charge 1 was written before the terms"),
    of_budget("terms", LARGER, "charge 1 does not follow"),
    *(of_budget("terms", text, "the terms are unreadable") for text in ("'{}'", "'['", "'[]'")),
    *(
        of_budget("record", text, "the running total is unreadable")
        for text in ("NULL", "'['", "'{}'", "'1'", """'"zz"'""", """'"0x01"'""")
    ),
    *(
        of_budget("record", f"'\"{hex(5 * 2**1071 + more)}\"'", "but the charges add up to 0.625")
        for more in (-1, 1, -5 * 2**1071)
    ),
]


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_an_edit_is_noticed(spent, number):
    statements, said = EDITS[number]
    before = spent.rows()
    for one in statements:
        spent.execute(one)
    assert spent.rows() != before
    with pytest.raises(LedgerDamagedError, match=f"{said}.*restore"):
        spent.open()


def test_the_tables_themselves_refuse_changes_of_charges(store):
    """By accident: who may write anything can remove the trigger."""
    ledger = store.create()
    limit(ledger)(count())
    for change in (f"UPDATE {CHARGES} SET label = 'x'", f"DELETE FROM {CHARGES}"):
        with (
            pytest.raises(LedgerError, match=r"charges are append-only.*stop that program"),
            ledger._store.writing({}) as (driver, _),
        ):
            driver.execute(change)
    assert ledger.summary().launches == 1


# --- a ledger that is open -----------------------------------------------------------------


def test_another_charge_in_the_place_of_the_newest_is_refused(store):
    root = limit(store.create())
    root(count(0.125))
    store.execute(f"UPDATE {CHARGES} SET label = 'x'")
    rehash(store)
    with pytest.raises(LedgerDamagedError, match="another charge"):
        root(count(0.125))


def test_what_others_charge_is_followed_and_added_up(store):
    """Not only at opening: each process follows the chain from where it knows it."""
    one, other = limit(store.create()), limit(store.open())
    for _ in range(3):
        one(count(0.125))
    ((before,),) = store.execute(f"SELECT record FROM {BUDGETS}")
    for total in ("0x0", "-0x1", hex(2**1074)):
        store.execute(f"UPDATE {BUDGETS} SET record = '{json.dumps(total)}'")
        for ask in (other.privacy_loss, lambda: other(count(0.125))):
            with pytest.raises(LedgerDamagedError, match="the running total is"):
                ask()
    store.execute(f"UPDATE {BUDGETS} SET record = '{before}'")
    for change in (f"UPDATE {CHARGES} SET label = 'x'", f"DELETE FROM {CHARGES}"):
        store.execute(f"{change} WHERE sequence = 2")
        with pytest.raises(LedgerDamagedError, match="charge 2 (does not follow|is missing)"):
            other(count(0.125))
    one(count(0.125))
    assert store.charges() == 3


# --- anchors, and what a process has seen --------------------------------------------------


def roll_back(store, launches):
    """Set a ledger of charges of 1/8 back so that it fits together, with all its traces."""
    store.execute(f"DELETE FROM {CHARGES} WHERE sequence > {launches}")
    store.execute(f"UPDATE {BUDGETS} SET record = '\"{hex(launches * 2**1071)}\"'")
    rehash(store)


def test_a_ledger_that_is_rolled_back_is_noticed_by_an_anchor_and_by_who_has_seen_more(store):
    ledger = store.create()
    root, reader = limit(ledger), store.open()
    for _ in range(5):
        root(count(0.125))
    summary = reader.summary()
    assert summary.launches == 5
    for entry in reader.entries():
        store.open(anchor=f"{entry.sequence}:{entry.hash}")
    roll_back(store, 3)
    assert store.open().summary().launches == 3  # who comes later cannot know, without an anchor
    with pytest.raises(LedgerDamagedError, match="there are 3 charges, but the anchor is number"):
        store.open(anchor=summary.anchor)
    said = "there are 3 charges, but the newest charge that this process has seen is number 5"
    for one in (ledger, reader):
        for read in (one.summary, one.entries, one.read, one.to_dp_events):
            with pytest.raises(LedgerDamagedError, match=said):
                read()
    again = limit(store.open())
    for _ in range(3):
        again(count(0.125))
    with pytest.raises(LedgerDamagedError, match="charge 5 is not the charge of the newest"):
        reader.summary()


def test_a_ledger_that_is_written_anew_is_noticed_by_an_anchor_only(spent):
    ledger = spent.open()
    anchor, early = ledger.summary().anchor, ledger.entries()[0]
    spent.close()
    spent.execute(f"UPDATE {CHARGES} SET label = 'innocent' WHERE sequence = 2")
    rehash(spent)
    assert spent.open().entries()[1].label == "innocent"
    assert spent.open(anchor=f"1:{early.hash}").summary().launches == 5
    for attempt in (lambda: spent.open(anchor=anchor), lambda: spent.open().summary(anchor)):
        with pytest.raises(LedgerDamagedError, match="charge 5 is not the charge of the anchor"):
            attempt()


def test_an_anchor_of_before_the_first_charge_is_accepted(sqlite):
    """Its hash is another one once there are terms."""
    anchor = sqlite.create().summary().anchor
    assert anchor.startswith("0:")
    sqlite.open(anchor=anchor)
    limit(sqlite.open())(count())
    sqlite.open(anchor=anchor)
    for wrong in ("", "5", "5:", f"x:{64 * '0'}", f"-1:{64 * '0'}", "5:00"):
        with pytest.raises(InvalidValueError, match="anchor .* must be number:hash"):
            sqlite.open(anchor=wrong)


# --- what is kept, so that opening reads later charges only --------------------------------


@pytest.fixture
def read(monkeypatch):
    """The numbers of the charges that audits have read; every tenth state is kept."""
    numbers, replay = [], audit.replay

    def noted(known, rows, *more):
        return replay(known, (numbers.append(row[1]) or row for row in rows), *more)

    monkeypatch.setattr(audit, "replay", noted)
    monkeypatch.setattr(audit, "EVERY", 10)
    return numbers


def launch(ledger, times):
    root = limit(ledger)
    team = root(a_limit(0.5, "team"))
    handles = [*(team(a_limit(0.25, label)) for label in ("ada", "bob")), root]
    for number in range(times):
        handles[number % 3](count(EPSILON))


@pytest.fixture
def many(store, read):
    """26 charges, closed; the state after charge 20 is kept."""
    launch(store.create(), 26)
    store.close()
    return store


def facts(summary):
    limits = [(one.path, one.launches, one.spent, one.remaining) for one in summary.limits]
    return summary.launches, summary.spent, summary.remaining, summary.anchor, limits


def test_opening_reads_what_came_after_and_goes_on_with_the_same_totals(many, read):
    ledger = many.open()
    assert read == list(range(21, 27))
    launch(ledger, 3)
    whole = facts(ledger.summary())  # which reads all charges, as an anchor does
    assert read[6:] == [*range(1, 30)]
    assert whole[:2] == (29, 29 * EPSILON)
    many.close()
    del read[:]
    root = limit(many.open())
    assert read == list(range(21, 30))
    assert root.privacy_loss() == 29 * EPSILON
    assert root(a_limit(0.5, "team")).privacy_loss() == 20 * EPSILON
    del read[:]
    many.open(anchor=whole[3])
    assert read == list(range(1, 30))
    many.execute(f"DELETE FROM {KEPT}")
    assert facts(many.open(read_only=True).summary()) == whole


CHANGES = {  # of a sequence, a head, a total and limits
    "less": lambda state: [*state[:2], hex(2**1064), state[3]],
    "another charge": lambda state: [state[0], "ab" * 32, *state[2:]],
    "later": lambda state: [40, *state[1:]],
    "none": lambda state: [],
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_kept_and_was_edited_is_not_believed(many, read, change, signed):
    """Not even if its digest is made anew."""
    ((dataset, terms),) = many.execute(f"SELECT dataset, terms FROM {BUDGETS}")
    ((state, made),) = many.execute(f"SELECT state, digest FROM {KEPT}")
    text = canonical(CHANGES[change](json.loads(state)))
    if signed:
        with many.open(read_only=True)._store.reading() as connection:
            made = digest(first_hash(dataset, terms), audit._guard(connection), text)
    many.close()
    text = text.replace("'", "''")
    many.execute(f"DELETE FROM {KEPT}")
    many.execute(f"INSERT INTO {KEPT} VALUES ('{dataset}', '{text}', '{made}')")
    del read[:]
    ledger = many.open()
    assert read[-26:] == list(range(1, 27))
    assert limit(ledger).privacy_loss() == 26 * EPSILON


def test_an_old_charge_that_was_edited_is_refused_when_it_is_read(many):
    anchor = many.open().summary().anchor
    many.close()
    many.execute(f"UPDATE {CHARGES} SET label = 'x' WHERE sequence = 5")
    if many.embedded:  # whoever dropped the triggers has changed the version of the schema
        attempts = [many.open]
    else:
        attempts = [lambda: many.open(anchor=anchor), lambda: many.open().summary()]
    for attempt in attempts:
        with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
            attempt()


def test_triggers_of_a_server_that_were_disabled_are_noticed(postgresql, read):
    launch(postgresql.create(), 26)
    postgresql.close()
    postgresql.execute(
        f"SET session_replication_role TO origin; ALTER TABLE {CHARGES} DISABLE TRIGGER ALL; "
        f"UPDATE {CHARGES} SET label = 'x' WHERE sequence = 5; "
        f"ALTER TABLE {CHARGES} ENABLE TRIGGER ALL"
    )
    with pytest.raises(LedgerDamagedError, match="charge 5 does not follow"):
        postgresql.open()


def test_a_state_of_blocks_is_not_kept(sqlite, read):
    root = by_tens(ledger=sqlite.create())(DATA)
    for number in range(25):
        root([number % 3], count(EPSILON))
    assert sqlite.open().summary().launches == 25
    assert by_tens(ledger=sqlite.open())(DATA).privacy_loss(0) == 9 * EPSILON
    with sqlite.open()._store.reading() as connection:
        assert not audit.inspect(connection).has_table(KEPT)


def test_a_state_that_cannot_be_written_is_no_error(sqlite, read, monkeypatch):
    def fail(*arguments):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(audit.KeptState, "_write", fail)
    launch(sqlite.create(), 12)
    assert sqlite.charges() == 12
