"""What a budget is about is settled once; under anything else it is refused, with both values."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
)
from opendp_concurrent.ledger.encoding import UNREADABLE, reading, require_count, require_text

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


def test_an_error_of_reading_names_the_row():
    for error in UNREADABLE:
        with (
            pytest.raises(LedgerDamagedError, match="^charge 7 is unreadable: ") as raised,
            reading("charge 7"),
        ):
            raise error("first\nsecond" + 400 * "x")
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 500
    for error in (KeyboardInterrupt, LedgerError):
        with pytest.raises(error, match="^as it was$"), reading("charge 7"):
            raise error("as it was")


@pytest.mark.parametrize("value", [None, True, -1, 1.0, b"1", "a\0b", "\udc80", ["label"]])
def test_what_is_neither_text_nor_a_count_is_named(value):
    require_text("charge 7", label="", mechanism="é 漢")
    require_count("the budget", first=0, last=2**63)
    with pytest.raises(LedgerDamagedError, match="charge 7 is unreadable: its label is not text"):
        require_text("charge 7", mechanism="count", label=value)
    with pytest.raises(LedgerDamagedError, match="its sequence is not a non-negative integer"):
        require_count("the budget", sequence=value)
