"""Charges are replayed in order; each must follow from the charge before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.store import LimitCharge, Terms
from opendp_concurrent.errors import InvalidValueError, LedgerDamagedError
from opendp_concurrent.ledger.audit import Known, replay
from opendp_concurrent.ledger.charges import LimitedCharge, Limits, Opened, write_terms
from opendp_concurrent.ledger.encoding import empty_total, encode, first_hash
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE

from ..conftest import next_hash

START = Known(0, first_hash("survey", None), basic().start(MAX_DIVERGENCE), Limits())


def charges(*times, losses=(0.25, 0.5, 1.0)):
    head, found = START.head, []
    for number, (time, loss) in enumerate(zip(times, losses, strict=False), 1):
        charge = ("survey", number, time, "label", "count", encode("d_mid", loss))
        head = next_hash(head, charge)
        found.append((*charge, head))
    return found


def written(records):
    """Return rows of charges with these d_mids."""
    head, rows = START.head, []
    for number, d_mid in enumerate(records, 1):
        charge = ("survey", number, 0, "", "count", encode("d_mid", d_mid))
        head = next_hash(head, charge)
        rows.append((*charge, head))
    return rows


def limited(opened, loss=0.125):
    terms = Terms("MaxDivergence", basic(), "SymmetricDistance()", 1, 9.0)
    return LimitedCharge(
        0.25, 1, (loss,), (Opened(0, "ann", write_terms(terms)),) if opened else ()
    )


SAMPLE = [0.25, 0.25, 0.1, 1e-300, limited(False), limited(False, 0.5)]


@given(charges=st.lists(st.sampled_from(SAMPLE), max_size=9))
def test_equal_charges_are_added_up_as_each_is(charges):
    rows = written([limited(True), *charges])
    known, one_by_one = replay(START, rows), START
    for row in rows:
        one_by_one = replay(one_by_one, [row])
    told = []
    assert known[:3] == one_by_one[:3] == replay(START, rows, told.append)[:3]
    assert [entry.loss for entry in told][-1] == known.accumulator.loss
    assert known.limits.all() == one_by_one.limits.all()
    below = [one for one in charges if isinstance(one, LimitedCharge)]
    assert known.limits.launches(("ann",)) == 1 + len(below)
    assert [entry.limit for entry in told] == [
        ("ann",) if isinstance(one, LimitedCharge) else () for one in (limited(True), *charges)
    ]


def test_a_limit_that_is_opened_by_two_equal_charges_is_found():
    with pytest.raises(LedgerDamagedError, match="charge 2 is unreadable: its limit was opened"):
        replay(START, written([limited(True)] * 2))


def test_the_first_and_the_last_time_are_read():
    first, last = -62135596800 * 10**6, 253402300800 * 10**6 - 1
    told = []
    replay(START, charges(first, first, last, losses=(0.5, 0.5, 0.5)))
    replay(START, charges(first, last), told.append)
    assert [entry.time.year for entry in told] == [1, 9999]
    for beyond in (first - 1, last + 1):
        with pytest.raises(LedgerDamagedError, match="charge 2 is unreadable: its time"):
            replay(START, charges(0, beyond, losses=(0.5, 0.5)))


class AtMostTwo:
    def __init__(self, charges=0):
        if charges > 2:
            raise InvalidValueError("there are two at most")
        self.charges = charges

    def after(self, d_mid, count=1):
        return AtMostTwo(self.charges + count)


@pytest.mark.parametrize("losses", [(0.5, 0.5, 0.5), (0.5, 0.5, 0.5, 1.0), (0.25, 0.5, 1.0)])
def test_equal_charges_that_cannot_be_added_up_are_named(losses):
    full = START._replace(accumulator=AtMostTwo())
    with pytest.raises(LedgerDamagedError, match="charge 3 is unreadable: there are two at most"):
        replay(full, charges(*range(len(losses)), losses=losses))


def test_a_replay_copies_the_limits_once(monkeypatch):
    """A copy for each charge made opening 10^4 limits cost the square of their number."""
    made, init = [], Limits.__init__
    monkeypatch.setattr(Limits, "__init__", lambda self, of=None: made.append(of) or init(self, of))
    terms = Terms("MaxDivergence", basic(), "SymmetricDistance()", 1, 0.5)
    known, rows, limits = START, [], START.limits
    head = known.head
    for number in range(1, 101):
        path = (f"limit {number}",)
        after = (empty_total(terms).after(0.25),)
        record, limits = limits.charged(0.25, (LimitCharge(path, terms, 0.25),), after)
        row = ("survey", number, 0, "", "", encode("d_mid", record))
        head = next_hash(head, row)
        rows.append((*row, head))
    made.clear()
    found = replay(known, rows)
    assert made == [START.limits]
    assert [one.launches for one in found.limits.all()] == [1] * 100
    assert START.limits.all() == ()
