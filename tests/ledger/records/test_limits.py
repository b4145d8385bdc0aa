"""Limits follow from the charges of a budget, whoever wrote these."""

import dataclasses
import math

import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.store import LimitCharge, Terms
from opendp_concurrent.errors import LedgerDamagedError
from opendp_concurrent.ledger.charges import (
    LimitedCharge,
    Limits,
    Opened,
    agreed_total,
    write_terms,
)
from opendp_concurrent.ledger.encoding import canonical, decode, empty_total, encode

ANN, TEAM = ("team", "ann"), ("team",)


def terms(d_out=0.5, d_in=1):
    return Terms("MaxDivergence", basic(), "SymmetricDistance()", d_in, d_out)


def charge(limits, *losses, path=ANN, d_mid=0.125):
    """The record of a launch that costs the limits of a path these losses, and the limits after."""
    charges = tuple(
        LimitCharge(path[: depth + 1], terms(), loss) for depth, loss in enumerate(losses)
    )
    after = tuple(limits.total(one.path, one.terms).after(one.d_mid) for one in charges)
    return limits.charged(d_mid, charges, after)


def told(limits):
    return [(one.number, one.path, one.launches, one.accumulator.loss) for one in limits.all()]


def replayed(limits, record, count=1):
    """The limits after a charge; those before it do not change."""
    copy = limits.draft()
    for _ in range(count):
        copy.replay(record)
    return copy


def test_the_first_charge_of_a_limit_has_its_label_and_terms():
    record, after = charge(Limits(), 0.25, 0.125)
    text = write_terms(terms())
    opened = (Opened(0, "team", text), Opened(1, "ann", text))
    assert record == LimitedCharge(0.125, 2, (0.25, 0.125), opened)
    again, later = charge(after, 0.25, path=TEAM)
    assert again == LimitedCharge(0.125, 1, (0.25,), ())
    assert told(later) == [(1, TEAM, 2, 0.5), (2, ANN, 1, 0.125)]


def test_what_was_charged_is_replayed_from_its_text():
    limits, again = Limits(), Limits()
    for path in (ANN, TEAM, ("bob",), ANN, ("team", "bob")):
        record, limits = charge(limits, *[0.125] * len(path), path=path)
        text = encode("d_mid", record)
        read = decode(text)
        assert (read, encode("d_mid", read)) == (record, text)
        again = replayed(again, read)
        assert again.path(read.limit) == path
        assert told(again) == told(limits)
    assert limits.launches(TEAM) == 4
    assert limits.launches(("nobody",)) == 0


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


TEXT = write_terms(terms())
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
    with pytest.raises((ValueError, TypeError, AttributeError, LedgerDamagedError)):
        replayed(Limits(), LimitedCharge(0.125, limit, d_mids, opened))


# --- the running total beside the newest charge, against what the charges add up to --------------

PAIR = Terms("Approximate(MaxDivergence)", oc.accumulators.zcdp(1e-7), "", 1, (1.0, 1e-6))
RESIDUE = Terms("Tradeoff", oc.accumulators.residue(1.0), "", 1, None)


def spent(terms, *d_mids):
    total = empty_total(terms)
    for d_mid in d_mids:
        total = total.after(d_mid)
    return total


def moved(record, factor):
    units = int(record, 16)
    return hex(units + units // factor)


@pytest.mark.parametrize("sign", [1, -1])
def test_of_two_totals_that_differ_in_the_last_places_the_larger_is_taken(sign):
    """As on two machines with different C libraries."""
    added = spent(PAIR, (0.1, 1e-8))
    assert agreed_total(PAIR, canonical(added.to_record()), added) is added
    (costs, deltas) = added.to_record()
    recorded = [[moved(costs[0], sign * 2**50)], deltas]
    total = agreed_total(PAIR, canonical(recorded), added)
    assert total.to_record() == (recorded if sign > 0 else [costs, deltas])
    assert total.loss[0] >= added.loss[0]


def test_more_than_that_is_an_edit():
    added = spent(PAIR, (0.1, 1e-8))
    (costs, deltas) = added.to_record()
    for edited in (
        [[moved(costs[0], 2**30)], deltas],
        [costs, moved(deltas, 2**60)],  # deltas are exact
        [costs, moved(deltas, -(2**60))],
        [[None], deltas],
        [[], deltas],
    ):
        with pytest.raises(LedgerDamagedError, match="running total"):
            agreed_total(PAIR, canonical(edited), added)


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "{", '"0X0"', "[1,2,3]"])
def test_what_is_no_total_is_refused(text):
    for terms in (PAIR, RESIDUE):
        with pytest.raises(LedgerDamagedError):
            agreed_total(terms, text, spent(terms))


@pytest.mark.parametrize("name", ["costs", "left", "squares"])
def test_the_larger_of_two_totals_is_taken_in_each_part(name):
    """Whichever of the two is asked."""
    if name == "costs":
        one = spent(PAIR, (0.1, 1e-8))
        other = dataclasses.replace(one, costs=(one.costs[0] + one.costs[0] // 2**50,))
        larger = other
    else:
        one = spent(RESIDUE, oc.TradeoffFunction.gaussian(0.1))
        near = math.nextafter(one.left, 0.0) if name == "left" else one.squares + 1
        other = larger = dataclasses.replace(one, **{name: near})
    assert one.merged(other) == other.merged(one) == larger
    assert one.merged(one) == one
    for part in (2.0, None, -1.0, math.nan):
        changed = (part,) if name == "costs" else part
        if name == "costs" and part is None:
            continue
        assert one.merged(dataclasses.replace(one, **{name: changed})) is None


def test_totals_of_other_rules_are_never_merged():
    one = spent(PAIR, (0.1, 1e-8))
    assert one.merged(dataclasses.replace(one, rules=(oc.accumulators.zcdp(2e-7),))) is None
    assert one.merged(dataclasses.replace(one, costs=(*one.costs, 0))) is None
    assert one.merged(spent(PAIR, (0.1, 2e-8))) is None
    residual = spent(RESIDUE, oc.TradeoffFunction.gaussian(0.1))
    assert residual.merged(dataclasses.replace(residual, mu=2.0)) is None
