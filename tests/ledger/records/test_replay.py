"""Charges are replayed in order; each must follow from the charge before it."""

from datetime import datetime, timezone

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.accumulators.basic import basic
from opendp_concurrent.errors import LedgerDamagedError
from opendp_concurrent.ledger.records.chain import first_hash, next_hash
from opendp_concurrent.ledger.records.encoding import encode
from opendp_concurrent.ledger.records.entries import Entry
from opendp_concurrent.ledger.records.limits import Limits
from opendp_concurrent.ledger.records.replay import Known, replay
from opendp_concurrent.ledger.records.wire import NEWEST
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE

START = Known(0, first_hash("survey", None), basic().start(MAX_DIVERGENCE), NEWEST, Limits())


def charges(*times, losses=(0.25, 0.5, 1.0)):
    head, found = START.head, []
    for number, (time, loss) in enumerate(zip(times, losses, strict=False), 1):
        charge = ("survey", number, time, "label", "count", encode("d_mid", loss))
        head = next_hash(head, charge)
        found.append((*charge, head))
    return found


def test_the_sum_and_the_newest_hash_are_returned():
    rows, told = charges(0, 1, 2_000_000), []
    known = replay(START, rows, told.append)
    assert known == (3, rows[2][-1], known.accumulator, NEWEST, START.limits)
    assert known.accumulator.loss == 1.75
    assert [type(entry) for entry in told] == [Entry] * 3
    assert [entry.loss for entry in told] == [0.25, 0.75, 1.75]
    assert told[2].time == datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc)


def test_a_replay_in_two_parts_is_the_replay():
    rows = charges(0, 1, 2)
    known = replay(replay(START, rows[:1]), rows[1:])
    assert (known.head, known.accumulator.loss) == (rows[2][-1], 1.75)


@pytest.mark.parametrize("column", range(7))
def test_a_change_of_any_column_is_found(column):
    rows = [list(row) for row in charges(0, 1, 2)]
    rows[1][column] = rows[2][column] if column in (1, 2, 5, 6) else "another"
    with pytest.raises(LedgerDamagedError, match="charge 2 (is missing|does not follow)"):
        replay(START, rows)


@pytest.mark.parametrize("gone", [0, 1])
def test_a_missing_charge_is_named(gone):
    rows = charges(0, 1, 2)
    del rows[gone]
    with pytest.raises(LedgerDamagedError, match=f"charge {gone + 1} is missing"):
        replay(START, rows)


@pytest.mark.parametrize("time", [10**18, -(10**18), 1.5, True])
def test_a_time_of_no_year_is_named(time):
    with pytest.raises(LedgerDamagedError, match="charge 1 is unreadable: its time"):
        replay(START, charges(time))
