"""Charges are replayed in order: each must follow from the charge before it, and so do limits."""

import dataclasses
import math
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.store import LimitCharge, Terms
from opendp_concurrent.errors import InvalidValueError, LedgerDamagedError
from opendp_concurrent.ledger.audit import Known, replay
from opendp_concurrent.ledger.charges import (
    LimitedCharge,
    Limits,
    Opened,
    agreed_total,
    write_terms,
)
from opendp_concurrent.ledger.encoding import (
    canonical,
    decode,
    empty_total,
    encode,
    first_hash,
    hasher,
)
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE

from .conftest import chained, next_hash

START = Known(0, first_hash("survey", None), basic().start(MAX_DIVERGENCE), Limits())

# --- hashes ------------------------------------------------------------------------------------


def test_the_hashes_are_those_of_the_texts():
    """Pinned: another version must not make others under the same schema."""
    text = '["opendp_concurrent",1,"survey",null]'
    assert first_hash("survey", None) == sha256(text.encode()).hexdigest()
    text = (
        '["00","survey",1,1700000000000000,"mean","laplace(scale=2.0)","{\\"double\\":\\"0x0\\"}"]'
    )
    d_mid = canonical('{"double":"0x0"}')
    found = hasher("survey", "mean", "laplace(scale=2.0)")("00", 1, 1_700_000_000_000_000, d_mid)
    assert found == sha256(text.encode()).hexdigest()


TEXTS = st.text() | st.sampled_from(['"', "\\", "\n", "\u2028", "\x7f", "é", "\U0001f600", "{}"])


@given(texts=st.tuples(TEXTS, TEXTS, TEXTS), d_mid=TEXTS, numbers=st.tuples(*[st.integers()] * 2))
def test_the_hash_of_alike_charges_is_that_of_each(texts, d_mid, numbers):
    dataset, *more = texts
    found = hasher(*texts)(START.head, *numbers, canonical(d_mid))
    assert found == next_hash(START.head, (dataset, *numbers, *more, d_mid))


# --- charges -----------------------------------------------------------------------------------


def written(d_mids, times=None):
    """Rows of charges with these d_mids."""
    times = times or [0] * len(d_mids)
    return chained(
        ("survey", number, time, "", "count", encode("d_mid", d_mid))
        for number, (time, d_mid) in enumerate(zip(times, d_mids, strict=True), 1)
    )


def terms(d_out=0.5):
    return Terms("MaxDivergence", basic(), "SymmetricDistance()", 1, d_out)


TEXT = write_terms(terms())


def limited(opened, loss=0.125):
    return LimitedCharge(0.25, 1, (loss,), (Opened(0, "ann", TEXT),) if opened else ())


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


def test_the_first_and_the_last_time_are_read():
    first, last = -62135596800 * 10**6, 253402300800 * 10**6 - 1
    told = []
    replay(START, written([0.5] * 3, [first, first, last]), told.append)
    assert [entry.time.year for entry in told] == [1, 1, 9999]
    for beyond in (first - 1, last + 1):
        with pytest.raises(LedgerDamagedError, match="charge 2 is unreadable: its time"):
            replay(START, written([0.5] * 2, [0, beyond]))


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
        replay(full, written(losses))


# --- limits ------------------------------------------------------------------------------------

ANN, TEAM = ("team", "ann"), ("team",)


def charge(limits, *losses, path=ANN):
    """The record of a launch that costs the limits of a path these losses, and the limits after."""
    charges = tuple(
        LimitCharge(path[: depth + 1], terms(), loss) for depth, loss in enumerate(losses)
    )
    after = tuple(limits.total(one.path, one.terms).after(one.d_mid) for one in charges)
    return limits.charged(0.125, charges, after)


def told(limits):
    return [(one.number, one.path, one.launches, one.accumulator.loss) for one in limits.all()]


def test_the_first_charge_of_a_limit_has_its_label_and_terms():
    record, after = charge(Limits(), 0.25, 0.125)
    opened = (Opened(0, "team", TEXT), Opened(1, "ann", TEXT))
    assert record == LimitedCharge(0.125, 2, (0.25, 0.125), opened)
    again, later = charge(after, 0.25, path=TEAM)
    assert again == LimitedCharge(0.125, 1, (0.25,), ())
    assert told(later) == [(1, TEAM, 2, 0.5), (2, ANN, 1, 0.125)]


def test_what_was_charged_is_replayed_from_its_text(monkeypatch):
    """The limits are copied once: a copy for each charge costs the square of their number."""
    limits, records, made, draft = Limits(), [], [], Limits.draft
    for path in (ANN, TEAM, ("bob",), ANN, ("team", "bob")):
        record, limits = charge(limits, *[0.125] * len(path), path=path)
        assert decode(encode("d_mid", record)) == record
        records.append(record)
    monkeypatch.setattr(Limits, "draft", lambda self: made.append(self) or draft(self))
    known = replay(START, written(records))
    assert made == [START.limits]
    assert told(known.limits) == told(limits)
    assert (limits.launches(TEAM), limits.launches(("nobody",))) == (4, 0)
    assert known.limits.path(records[-1].limit) == ("team", "bob")


def test_limits_follow_a_draft_only_when_it_is_settled():
    start = Limits()
    _, first = charge(start, 0.125, path=("ann",))
    _, second = charge(first, 0.25, path=("bob",))
    dropped = charge(second, 0.5, path=("bob",))[1]
    copy = second.copy()
    assert told(start) == []
    assert second.settled() is start
    assert told(start) == told(copy) == [(1, ("ann",), 1, 0.125), (2, ("bob",), 1, 0.25)]
    assert told(dropped)[1] == (2, ("bob",), 2, 0.75)
    _, third = charge(copy, 0.5, path=("bob",))
    assert third.settled() is copy
    assert told(copy)[1] == (2, ("bob",), 2, 0.75)
    assert told(start)[1] == (2, ("bob",), 1, 0.25)


HOSTILE = {  # a limit, what it costs each, and limits that are opened
    "an unknown limit": (1, (0.125,), ()),
    "no limit": (0, (), ()),
    "a number that is none": (True, (0.125,), ((0, "a", TEXT),)),
    "too few losses": (1, (), ((0, "a", TEXT),)),
    "too many losses": (1, (0.125, 0.125), ((0, "a", TEXT),)),
    "a loss that is none": (1, (-1.0,), ((0, "a", TEXT),)),
    "the same limit twice": (2, (0.125,), ((0, "a", TEXT), (0, "a", TEXT))),
    "a limit of another path": (1, (0.125, 0.125), ((0, "a", TEXT), (0, "b", TEXT))),
    "opened, and another one charged": (1, (0.125, 0.125), ((0, "a", TEXT), (1, "b", TEXT))),
    "below itself": (1, (0.125,), ((1, "a", TEXT),)),
    "below what is none": (1, (0.125,), ((-1, "a", TEXT),)),
    "no label": (1, (0.125,), ((0, "", TEXT),)),
    "a label that is none": (1, (0.125,), ((0, 7, TEXT),)),
    "a bound that is none": (1, (0.125,), ((0, "a", write_terms(terms(None))),)),
    "what was not opened": (1, (0.125,), (7,)),
    "terms that are none": (1, (0.125,), ((0, "a", "[]"),)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_charge_that_nobody_wrote(name):
    limit, d_mids, opened = HOSTILE[name]
    opened = tuple(Opened(*one) if isinstance(one, tuple) else one for one in opened)
    with pytest.raises(LedgerDamagedError, match="(charge 1 is|the terms are) unreadable"):
        replay(START, written([LimitedCharge(0.125, limit, d_mids, opened)]))


def test_a_charge_that_does_not_follow_from_the_first():
    with pytest.raises(LedgerDamagedError, match="charge 2 is unreadable: its limit was opened"):
        replay(START, written([limited(True)] * 2))
    nested = LimitedCharge(
        0.125, 2, (0.125, 0.125), (Opened(0, "team", TEXT), Opened(1, "ann", TEXT))
    )
    with pytest.raises(LedgerDamagedError, match="charge 2 is unreadable"):  # ann's loss only
        replay(START, written([nested, LimitedCharge(0.125, 2, (0.125,), ())]))


# --- the running total beside the newest charge ------------------------------------------------

PAIR = Terms("Approximate(MaxDivergence)", oc.accumulators.zcdp(1e-7), "", 1, (1.0, 1e-6))
RESIDUE = Terms("Tradeoff", oc.accumulators.residue(1.0), "", 1, None)
ADDED = empty_total(PAIR).after((0.1, 1e-8))
RESIDUAL = empty_total(RESIDUE).after(oc.TradeoffFunction.gaussian(0.1))


def moved(record, factor):
    units = int(record, 16)
    return hex(units + units // factor)


@pytest.mark.parametrize("sign", [1, -1])
def test_of_two_totals_that_differ_in_the_last_places_the_larger_is_taken(sign):
    """As on two machines with different C libraries."""
    assert agreed_total(PAIR, canonical(ADDED.to_record()), ADDED) is ADDED
    (costs, deltas) = ADDED.to_record()
    recorded = [[moved(costs[0], sign * 2**50)], deltas]
    total = agreed_total(PAIR, canonical(recorded), ADDED)
    assert total.to_record() == (recorded if sign > 0 else [costs, deltas])
    assert total.loss[0] >= ADDED.loss[0]


def test_more_than_that_is_an_edit():
    (costs, deltas) = ADDED.to_record()
    for edited in (
        [[moved(costs[0], 2**30)], deltas],
        [costs, moved(deltas, 2**60)],  # deltas are exact
        [costs, moved(deltas, -(2**60))],
        *([[None], deltas], [[], deltas]),
    ):
        with pytest.raises(LedgerDamagedError, match="running total"):
            agreed_total(PAIR, canonical(edited), ADDED)
    for text in ("null", "[]", '"x"', "{", '"0X0"', "[1,2,3]"):
        for of in (PAIR, RESIDUE):
            with pytest.raises(LedgerDamagedError):
                agreed_total(of, text, empty_total(of))


def test_the_larger_of_two_totals_is_taken_in_each_part():
    """Whichever of the two is asked; totals of other rules are never merged."""
    cost = ADDED.costs[0]
    for one, part, near, others in (
        (ADDED, "costs", (cost + cost // 2**50,), [(one,) for one in (2.0, -1.0, math.nan)]),
        (RESIDUAL, "left", math.nextafter(RESIDUAL.left, 0.0), [2.0, None, -1.0, math.nan]),
        (RESIDUAL, "squares", RESIDUAL.squares + 1, [2.0, None, -1.0, math.nan]),
        (ADDED, "rules", ADDED.rules, [(oc.accumulators.zcdp(2e-7),)]),
        (ADDED, "costs", ADDED.costs, [(cost, 0)]),
        (RESIDUAL, "mu", RESIDUAL.mu, [2.0]),
    ):
        other = dataclasses.replace(one, **{part: near})
        assert one.merged(other) == other.merged(one) == other
        for value in others:
            assert one.merged(dataclasses.replace(one, **{part: value})) is None
    assert ADDED.merged(empty_total(PAIR).after((0.1, 2e-8))) is None
