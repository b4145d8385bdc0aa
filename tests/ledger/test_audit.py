"""What somebody who may write anything changes in a ledger, and whether it is noticed."""

import json

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
)
from opendp_concurrent.ledger.encoding import first_hash, next_hash

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


def refused(store, tools, match, error=LedgerDamagedError):
    """Whoever opens it, or has a summary, hears of it."""
    with pytest.raises(error, match=match) as raised:
        store.open()
    assert "restore" in str(raised.value) or error is not LedgerDamagedError
    return str(raised.value)


def head(store):
    return store.execute(f"SELECT sequence, head FROM {BUDGETS}")[0]


def rewrite(store, first=None):
    """Make all hashes anew, as somebody does who knows how."""
    ((dataset, terms),) = store.execute(f"SELECT dataset, terms FROM {BUDGETS}")
    newest = first_hash(dataset, terms)
    rows = store.execute(f"SELECT {HASHED} FROM {CHARGES} ORDER BY sequence")
    for row in rows:
        newest = next_hash(newest, tuple(row))
        store.execute(f"UPDATE {CHARGES} SET hash = '{newest}' WHERE sequence = {row[1]}")
    store.execute(f"UPDATE {BUDGETS} SET head = '{newest}', sequence = {len(rows)}")


def test_a_ledger_that_nobody_changed_fits_together(spent, tools):
    summary, entries = spent.open().summary(), spent.open().entries()
    assert (summary.launches, summary.spent, summary.remaining) == (5, 0.625, 0.375)
    assert [entry.label for entry in entries] == [f"launch {n}" for n in range(1, 6)]
    assert summary.anchor == f"5:{entries[-1].hash}"
    assert tools.limit(spent.open()).privacy_loss() == 0.625


# --- one charge ----------------------------------------------------------------------------


def test_an_edited_charge_is_noticed(spent, tools):
    changes = {
        "time": "time + 1",
        "label": "'another'",
        "mechanism": "'another'",
        "d_mid": """'{"double":"0x1.0000000000000p-4"}'""",
        "hash": f"'{64 * '0'}'",
    }
    for sequence in (1, 3, 5):
        for column, value in changes.items():
            where = f"WHERE sequence = {sequence}"
            ((before,),) = spent.execute(f"SELECT {column} FROM {CHARGES} {where}")
            spent.execute(f"UPDATE {CHARGES} SET {column} = {value} {where}")
            refused(spent, tools, f"charge {sequence} does not follow")
            spent.execute(f"UPDATE {CHARGES} SET {column} = '{before}' {where}")
    assert spent.open().summary().launches == 5


OTHER = "there are {} charges, but the budget says that the newest is number 5"
COPY = "INSERT INTO {0} SELECT dataset, 6, time, label, mechanism, d_mid, {2} FROM {0} "
COPY += "WHERE sequence = 5"
EDITS = {  # of charges {0} and the budget {1}, and what is noticed
    "moved to another dataset": (
        ["UPDATE {0} SET dataset = 'b' WHERE sequence = 5"],
        OTHER.format(4),
    ),
    "another number": (["UPDATE {0} SET sequence = 9 WHERE sequence = 3"], "charge 3 is missing"),
    "deleted": (["DELETE FROM {0} WHERE sequence = 3"], "charge 3 is missing"),
    "the first deleted": (["DELETE FROM {0} WHERE sequence = 1"], "charge 1 is missing"),
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
    refused(spent, tools, said)


def test_what_is_not_even_text_is_noticed(sqlite, tools):
    tools.limit(sqlite.create())(tools.count())
    sqlite.close()
    sqlite.execute(f"UPDATE {CHARGES} SET label = x'ff'")
    refused(sqlite, tools, "charge 1 does not follow")


def test_an_inserted_charge_with_the_right_hash_is_noticed(spent, tools):
    sequence, newest = head(spent)
    row = spent.execute(f"SELECT {HASHED} FROM {CHARGES} WHERE sequence = 5")[0]
    right = next_hash(newest, (row[0], sequence + 1, *row[2:]))
    spent.execute(COPY.format(CHARGES, BUDGETS, f"'{right}'"))
    refused(spent, tools, OTHER.format(6))


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
        ((before,),) = spent.execute(f"SELECT {column} FROM {BUDGETS}")
        spent.execute(f"UPDATE {BUDGETS} SET {column} = {value}")
        refused(spent, tools, match)
        spent.execute(f"UPDATE {BUDGETS} SET {column} = '{before}'")
    assert spent.open().summary().launches == 5


def test_an_edited_running_total_is_noticed(spent, tools):
    ((record,),) = spent.execute(f"SELECT record FROM {BUDGETS}")
    units = int(json.loads(record), 16)
    for changed in (units - 1, units + 1, units // 2, 0):
        spent.execute(f"UPDATE {BUDGETS} SET record = '{json.dumps(hex(changed))}'")
        refused(spent, tools, "the running total is .*, but the charges add up to 0.625")
    spent.execute(f"UPDATE {BUDGETS} SET record = '{record}'")
    assert spent.open().summary().spent == 0.625


def test_edited_terms_are_noticed(spent, tools):
    ((terms,),) = spent.execute(f"SELECT terms FROM {BUDGETS}")
    shape = json.loads(terms)
    assert shape["d_out"] == {"double": "0x1.0000000000000p+0"}
    shape["d_out"] = {"double": "0x1.0000000000000p+9"}
    changed = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    spent.execute(f"UPDATE {BUDGETS} SET terms = '{changed}'")
    refused(spent, tools, "charge 1 does not follow")


def test_a_budget_that_is_deleted_is_noticed(spent, tools):
    ledger = spent.open()
    root = tools.limit(ledger)
    spent.execute(f"DELETE FROM {BUDGETS}")
    for ask in (ledger.summary, root.privacy_loss, lambda: root(tools.count(0.125))):
        with pytest.raises(LedgerDamagedError, match="the budget of 'survey 2026' is gone"):
            ask()
    with pytest.raises(LedgerMismatchError, match="dataset"):
        spent.open()


def test_a_total_that_a_library_rounds_otherwise_is_accepted_and_others_are_not(store, tools):
    """Costs of advanced composition go through exp: another machine may differ in last places."""
    budget = {
        "measure": dp.approximate(dp.max_divergence()),
        "accumulator": oc.accumulators.advanced(1e-7),
    }
    query = dp.c.make_approximate(tools.count(0.125))
    root = tools.limit(store.create(), (4.0, 1e-6), **budget)
    for _ in range(5):
        root(query)
    loss = root.privacy_loss()
    store.close()
    ((record,),) = store.execute(f"SELECT record FROM {BUDGETS}")

    def changed(value, factor):
        if isinstance(value, list):
            return [changed(one, factor) for one in value]
        if not isinstance(value, str) or "p" in value:
            return value
        units = int(value, 16)
        return hex(units + units // factor)

    for factor, fits in ((2**50, True), (2**20, False), (-(2**20), False)):
        text = json.dumps(changed(json.loads(record), factor), separators=(",", ":"))
        assert text != record
        store.execute(f"UPDATE {BUDGETS} SET record = '{text}'")
        if fits:
            assert store.open().summary().spent == pytest.approx(loss, rel=1e-12)
        else:
            refused(store, tools, "the running total")


# --- a ledger that is open -----------------------------------------------------------------


def test_a_head_that_is_set_back_below_a_process_that_has_it_open_is_refused(store, tools):
    root = tools.limit(store.create())
    for _ in range(3):
        root(tools.count(0.125))
    ((newest,),) = store.execute(f"SELECT hash FROM {CHARGES} WHERE sequence = 2")
    store.execute(f"DELETE FROM {CHARGES} WHERE sequence = 3")
    store.execute(f"UPDATE {BUDGETS} SET sequence = 2, head = '{newest}'")
    for ask in (root.privacy_loss, root.remaining, lambda: root(tools.count(0.125))):
        with pytest.raises(LedgerDamagedError, match="charge 3 was written, but the ledger has 2"):
            ask()


def test_another_charge_in_the_place_of_the_newest_is_refused(store, tools):
    root = tools.limit(store.create())
    root(tools.count(0.125))
    store.execute(f"UPDATE {CHARGES} SET label = 'x'")
    rewrite(store)
    with pytest.raises(LedgerDamagedError, match="another charge"):
        root(tools.count(0.125))


def test_a_total_that_becomes_unreadable_is_refused(store, tools):
    one, other = tools.limit(store.create()), tools.limit(store.open())
    one(tools.count(0.125))
    for record in ("[", '"zz"', "{}"):
        store.execute(f"UPDATE {BUDGETS} SET record = '{record}'")
        with pytest.raises(LedgerDamagedError, match="the running total is unreadable"):
            other(tools.count(0.125))
    one(tools.count(0.125))  # knows the total, and writes it down again
    assert other.privacy_loss() == 0.25


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


def test_a_copy_that_went_on_otherwise_is_refused(store, tools):
    """As many charges and more, but not those that were seen."""
    root = tools.limit(store.create())
    for _ in range(2):
        root(tools.count(0.125))
    store.execute(f"UPDATE {CHARGES} SET label = 'x' WHERE sequence = 2")
    rewrite(store)
    tools.limit(store.open())(tools.count(0.125))
    for ask in (root.privacy_loss, lambda: root(tools.count(0.125))):
        with pytest.raises(LedgerDamagedError, match="charge 3 does not follow"):
            ask()


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
