"""Limits follow from the charges of a budget, whoever wrote these."""

import pytest

from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.store import LimitCharge, Terms
from opendp_concurrent.errors import LedgerDamagedError
from opendp_concurrent.ledger.charges import LimitedCharge, Limits, Opened, write_terms
from opendp_concurrent.ledger.encoding import decode, encode

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
