"""What a budget is about is settled once; under anything else it is refused, with both values."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    LedgerMismatchError,
)

from ...build import APPROXIMATE, DATA, RENYI, ZCDP, a_filter, an_odometer


def bounded(*arguments, **options):
    return lambda ledger: a_filter(*arguments, ledger=ledger, **options)


def unbounded(ledger):
    return an_odometer(ledger=ledger, d_in=1)(DATA)


def pairs(accumulator):
    return bounded((1.0, 1e-6), APPROXIMATE, accumulator)


def of_order(alpha):
    return bounded(measure=oc.fixed_renyi_divergence(alpha))


def on_orders(*orders):
    return bounded(lambda alpha: alpha, RENYI, orders=orders)


NONE, SETTLED = "no bound (an odometer)", oc.accumulators.advanced(1e-7)
OTHERS = (oc.accumulators.basic(), oc.accumulators.advanced(2e-7), oc.accumulators.zcdp(1e-7))
MISMATCHES = {  # what is settled, what is given, and what the error says
    "d_out": (bounded(), bounded(2.0), "d_out", "1.0", "2.0"),
    "ulp": (bounded(), bounded(1.0000000000000002), "d_out", "1.0", "1.0000000000000002"),
    "d_in": (bounded(), bounded(d_in=2), "d_in", "1", "2"),
    "measure": (
        *(bounded(), bounded(measure=ZCDP)),
        *("output_measure", "MaxDivergence", "ZeroConcentratedDivergence"),
    ),
    "order": (of_order(2.0), of_order(3.0), "output_measure", "alpha=2.0", "alpha=3.0"),
    **{
        str(one): (pairs(SETTLED), pairs(one), "accumulator", str(SETTLED), str(one))
        for one in OTHERS
    },
    "orders": (on_orders(2.0, 4.0), on_orders(2.0, 5.0), "accumulator", "4.0", "5.0"),
    "an odometer": (bounded(), unbounded, "d_out", "1.0", NONE),
    "a filter": (unbounded, bounded(), "d_out", NONE, "1.0"),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_other_terms_are_refused(sqlite, case):
    settle, give, name, recorded, given = MISMATCHES[case]
    settle(sqlite.create())
    before = sqlite.rows()
    with pytest.raises(LedgerMismatchError, match="create another ledger") as raised:
        give(sqlite.open())
    error = raised.value
    assert (error.name, sqlite.rows()) == (name, before)
    assert (recorded in str(error.recorded), given in str(error.given)) == (True, True)


def test_the_same_terms_are_accepted_in_every_process(store):
    bounded()(store.create())
    bounded()(store.open())
    bounded(1)(store.open())  # of d_out, 1 is 1.0


def test_what_has_no_exact_form_settles_nothing(sqlite):
    class Own:
        start = 0

        def after(self, state, d_mid):
            return state + d_mid

        def continues(self, state, d_out):
            return state <= d_out

    ledger = sqlite.create()
    with pytest.raises(InvalidTypeError, match="accumulator .* cannot be kept in a ledger"):
        bounded(accumulator=oc.accumulators.from_rule(Own()))(ledger)
    assert ledger.summary().terms is None
