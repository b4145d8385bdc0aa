"""The running total beside the newest charge, against what the charges add up to."""

import dataclasses
import math

import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.store import Terms
from opendp_concurrent.errors import LedgerDamagedError
from opendp_concurrent.ledger.charges import agreed_total
from opendp_concurrent.ledger.encoding import canonical, empty_total

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
