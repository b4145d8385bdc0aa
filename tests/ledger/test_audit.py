"""What somebody who may write anything changes in a ledger, and whether it is noticed."""

import json

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
)
from opendp_concurrent.ledger.encoding import first_hash

from .conftest import next_hash

CHARGES, BUDGETS = "opendp_concurrent_charges", "opendp_concurrent_budgets"
HASHED = "dataset, sequence, time, label, mechanism, d_mid"


@pytest.fixture
def spent(store, tools):
    """Five charges of 1/8 on a budget of 1, with labels; nobody has it open."""
    root = tools.limit(store.create())
    for number in range(5):
        with oc.labelled(f"launch {number + 1}"):
            root(tools.count(0.125))
    store.close()
    return store


def refused(store, match):
    with pytest.raises(LedgerDamagedError, match=f"{match}.*restore"):
        store.open()


def edit(store, column, value, table=BUDGETS, where=""):
    """Change a cell; return what changes it back."""
    ((before,),) = store.execute(f"SELECT {column} FROM {table} {where}")
    store.execute(f"UPDATE {table} SET {column} = {value} {where}")
    return lambda: store.execute(f"UPDATE {table} SET {column} = '{before}' {where}")


def rewrite(store, first=None):
    """Make all hashes anew, as somebody does who knows how."""
    ((dataset, terms),) = store.execute(f"SELECT dataset, terms FROM {BUDGETS}")
    newest = first_hash(dataset, terms)
    rows = store.execute(f"SELECT {HASHED} FROM {CHARGES} ORDER BY sequence")
    for row in rows:
        newest = next_hash(newest, tuple(row))
        store.execute(f"UPDATE {CHARGES} SET hash = '{newest}' WHERE sequence = {row[1]}")
    store.execute(f"UPDATE {BUDGETS} SET head = '{newest}', sequence = {len(rows)}")


# --- one charge ----------------------------------------------------------------------------


def test_an_edited_charge_is_noticed(spent, tools):
    changes = {
        "time": "time + 1",
        "label": "'another'",
        "mechanism": "'another'",
        "d_mid": """'{"double":"0x1.0000000000000p-4"}'""",
        "hash": f"'{64 * '0'}'",
    }
    for sequence in (1, 5):
        for column, value in changes.items():
            restore = edit(spent, column, value, CHARGES, f"WHERE sequence = {sequence}")
            refused(spent, f"charge {sequence} does not follow")
            restore()
    assert spent.open().summary().launches == 5


OTHER = "there are {} charges, but the budget says that the newest is number 5"
COPY = "INSERT INTO {0} SELECT dataset, 6, time, label, mechanism, d_mid, {2} FROM {0} "
COPY += "WHERE sequence = 5"
EDITS = {  # of charges {0} and the budget {1}, and what is noticed
    "deleted": (["DELETE FROM {0} WHERE sequence = 3"], "charge 3 is missing"),
    "the newest deleted": (["DELETE FROM {0} WHERE sequence = 5"], OTHER.format(4)),
    "the newest deleted with its head": (
        [
            "DELETE FROM {0} WHERE sequence = 5",
            "UPDATE {1} SET sequence = 4, head = (SELECT hash FROM {0} WHERE sequence = 4)",
        ],
        "the running total is 0.625, but the charges add up to 0.5",
    ),
    "inserted": ([COPY.replace("{2}", "hash")], "charge 6 does not follow"),
    "swapped": (
        [
            f"UPDATE {{0}} SET sequence = {after} WHERE sequence = {before}"
            for before, after in ((2, 20), (4, 2), (20, 4))
        ],
        "charge 2 does not follow",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_noticed(spent, tools, name):
    statements, said = EDITS[name]
    for one in statements:
        spent.execute(one.format(CHARGES, BUDGETS))
    refused(spent, said)


def test_the_tables_themselves_refuse_changes_of_charges(store, tools):
    """By accident: who may write anything can remove the trigger."""
    ledger = store.create()
    tools.limit(ledger)(tools.count())
    for change in (f"UPDATE {CHARGES} SET label = 'x'", f"DELETE FROM {CHARGES}"):
        with (
            pytest.raises(LedgerError, match=r"charges are append-only.*stop that program"),
            ledger._store.writing({}) as (driver, _),
        ):
            driver.execute(change)
    assert ledger.summary().launches == 1


# --- the head, the total, the terms --------------------------------------------------------


def test_an_edited_head_is_noticed(spent, tools):
    said = "there are 5 charges, but the budget says that the newest is number "
    fourth = f"(SELECT hash FROM {CHARGES} WHERE sequence = 4)"
    changes = [
        ("sequence", "4", said + "4"),
        ("sequence", "6", said + "6"),
        ("head", f"'{64 * '0'}'", said + "5"),
        ("head", fourth, said + "5"),
        ("terms", "NULL", "charge 1 was written before the terms"),
        *(("terms", text, "the terms are unreadable") for text in ("'{}'", "'['", "'[]'")),
        *(
            ("record", text, "the running total is unreadable")
            for text in ("NULL", "'['", "'{}'", "'1'", """'"zz"'""", """'"0x01"'""")
        ),
    ]
    for column, value, match in changes:
        restore = edit(spent, column, value)
        refused(spent, match)
        restore()
    assert spent.open().summary().launches == 5


def test_an_edited_running_total_is_noticed(spent):
    ((record,),) = spent.execute(f"SELECT record FROM {BUDGETS}")
    units = int(json.loads(record), 16)
    for changed in (units - 1, units + 1, 0):
        edit(spent, "record", f"'{json.dumps(hex(changed))}'")
        refused(spent, "the running total is .*, but the charges add up to 0.625")


def test_edited_terms_are_noticed(spent, tools):
    ((terms,),) = spent.execute(f"SELECT terms FROM {BUDGETS}")
    shape = json.loads(terms)
    assert shape["d_out"] == {"double": "0x1.0000000000000p+0"}
    shape["d_out"] = {"double": "0x1.0000000000000p+9"}
    changed = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    spent.execute(f"UPDATE {BUDGETS} SET terms = '{changed}'")
    refused(spent, "charge 1 does not follow")


def test_a_budget_that_is_deleted_is_noticed(spent, tools):
    ledger = spent.open()
    root = tools.limit(ledger)
    spent.execute(f"DELETE FROM {BUDGETS}")
    for ask in (ledger.summary, root.privacy_loss, lambda: root(tools.count(0.125))):
        with pytest.raises(LedgerDamagedError, match="the budget of 'survey 2026' is gone"):
            ask()
    with pytest.raises(LedgerMismatchError, match="dataset"):
        spent.open()


# --- a ledger that is open -----------------------------------------------------------------


def test_another_charge_in_the_place_of_the_newest_is_refused(store, tools):
    root = tools.limit(store.create())
    root(tools.count(0.125))
    store.execute(f"UPDATE {CHARGES} SET label = 'x'")
    rewrite(store)
    with pytest.raises(LedgerDamagedError, match="another charge"):
        root(tools.count(0.125))


def test_what_others_charge_is_followed_and_added_up(store, tools):
    """Not only at opening: each process follows the chain from where it knows it."""
    one, other = tools.limit(store.create()), tools.limit(store.open())
    for _ in range(3):
        one(tools.count(0.125))
    for total in ("0x0", "-0x1", hex(2**1074)):
        ((before,),) = store.execute(f"SELECT record FROM {BUDGETS}")
        store.execute(f"UPDATE {BUDGETS} SET record = '{json.dumps(total)}'")
        for ask in (other.privacy_loss, lambda: other(tools.count(0.125))):
            with pytest.raises(LedgerDamagedError, match="the running total is"):
                ask()
        store.execute(f"UPDATE {BUDGETS} SET record = '{before}'")
    for change in (
        "UPDATE {} SET label = 'x' WHERE sequence = 2",
        "DELETE FROM {} WHERE sequence = 2",
    ):
        store.execute(change.format(CHARGES))
        with pytest.raises(LedgerDamagedError, match="charge 2 (does not follow|is missing)"):
            other(tools.count(0.125))
    one(tools.count(0.125))
    assert store.charges() == 3


# --- anchors -------------------------------------------------------------------------------


def test_a_ledger_goes_on_from_each_of_its_anchors(spent, tools):
    entries = spent.open().entries()
    for entry in entries:
        spent.open(anchor=f"{entry.sequence}:{entry.hash}")
    assert spent.open().summary(spent.open().summary().anchor).launches == 5


def test_charges_cut_off_with_all_traces_are_noticed_by_an_anchor_only(spent, tools):
    anchor = spent.open().summary().anchor
    spent.close()
    ((newest,),) = spent.execute(f"SELECT hash FROM {CHARGES} WHERE sequence = 3")
    spent.execute(f"DELETE FROM {CHARGES} WHERE sequence > 3")
    total = json.dumps(hex(3 * 2**1071))
    spent.execute(f"UPDATE {BUDGETS} SET sequence = 3, head = '{newest}', record = '{total}'")
    assert spent.open().summary().spent == 0.375
    with pytest.raises(LedgerDamagedError, match="there are 3 charges, but the anchor is number"):
        spent.open(anchor=anchor)


def test_a_ledger_that_is_written_anew_is_noticed_by_an_anchor_only(spent, tools):
    anchor = spent.open().summary().anchor
    early = spent.open().entries()[0]
    spent.close()
    spent.execute(f"UPDATE {CHARGES} SET label = 'innocent' WHERE sequence = 2")
    rewrite(spent)
    assert spent.open().entries()[1].label == "innocent"
    assert spent.open(anchor=f"1:{early.hash}").summary().launches == 5
    with pytest.raises(LedgerDamagedError, match="charge 5 is not the charge of the anchor"):
        spent.open(anchor=anchor)
    with pytest.raises(LedgerDamagedError, match="charge 5 is not the charge of the anchor"):
        spent.open().summary(anchor)


def test_an_anchor_of_before_the_first_charge_is_accepted(store, tools):
    """Its hash is another one once there are terms."""
    anchor = store.create().summary().anchor
    assert anchor.startswith("0:")
    store.open(anchor=anchor)
    tools.limit(store.open())(tools.count())
    store.open(anchor=anchor)


def test_what_is_no_anchor_is_named(spent):
    for anchor in ("", "5", "5:", f"x:{64 * '0'}", f"-1:{64 * '0'}", "5:00"):
        with pytest.raises(InvalidValueError, match="anchor .* must be number:hash"):
            spent.open(anchor=anchor)
