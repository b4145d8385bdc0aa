"""What a budget is about is settled once; under anything else it is refused, with both values."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
)
from opendp_concurrent.ledger.encoding import (
    UNREADABLE,
    is_text,
    reading,
    require_count,
    require_text,
)

PURE, APPROXIMATE = dp.max_divergence(), dp.approximate(dp.max_divergence())


def odometer(tools, measure=PURE, space=None, **keywords):
    return oc.make_concurrent_odometer(*(space or tools.space()), measure, **keywords)


def settle(store, tools, d_in=1, d_out=1.0, **keywords):
    return oc.make_concurrent_filter(
        odometer(tools, **keywords), d_in, d_out, ledger=store.create()
    )


def refused(make, name, recorded, given):
    with pytest.raises(LedgerMismatchError) as raised:
        make()
    error = raised.value
    assert (error.name, str(error.recorded), str(error.given)) == (name, recorded, given)
    advice = "check the spelling" if name == "dataset" else "create another ledger"
    for part in (name, recorded, given, advice):
        assert part in str(error)


def test_the_same_terms_are_accepted_in_every_process(store, tools):
    settle(store, tools)
    oc.make_concurrent_filter(odometer(tools), 1, 1.0, ledger=store.open())
    oc.make_concurrent_filter(odometer(tools), 1, 1, ledger=store.open())  # of d_out, 1 is 1.0


def test_other_bounds_and_distances_are_refused(store, tools):
    settle(store, tools)
    ledger = store.open()
    before = store.rows()
    for d_in, d_out, *said in (
        (1, 2.0, "d_out", "1.0", "2.0"),
        (1, 1.0000000000000002, "d_out", "1.0", "1.0000000000000002"),
        (2, 1.0, "d_in", "1", "2"),
    ):
        refused(
            lambda d_in=d_in, d_out=d_out: oc.make_concurrent_filter(
                odometer(tools), d_in, d_out, ledger=ledger
            ),
            *said,
        )
    assert store.rows() == before


def test_another_measure_is_refused(store, tools):
    settle(store, tools)
    ledger = store.open()
    zcdp = dp.zero_concentrated_divergence()
    refused(
        lambda: oc.make_concurrent_filter(odometer(tools, zcdp), 1, 1.0, ledger=ledger),
        "output_measure",
        "MaxDivergence",
        "ZeroConcentratedDivergence",
    )


def test_the_parameters_of_a_measure_count(store, tools):
    settle(store, tools, measure=oc.fixed_renyi_divergence(2.0))
    ledger, other = store.open(), oc.fixed_renyi_divergence(3.0)
    with pytest.raises(LedgerMismatchError) as raised:
        oc.make_concurrent_filter(odometer(tools, other), 1, 1.0, ledger=ledger)
    assert raised.value.name == "output_measure"


def test_another_accumulator_is_refused(store, tools):
    settle(
        store,
        tools,
        d_out=(1.0, 1e-6),
        measure=APPROXIMATE,
        accumulator=oc.accumulators.advanced(1e-7),
    )
    ledger = store.open()
    for accumulator in (
        oc.accumulators.basic(),
        oc.accumulators.advanced(2e-7),
        oc.accumulators.zcdp(1e-7),
    ):
        refused(
            lambda accumulator=accumulator: oc.make_concurrent_filter(
                odometer(tools, APPROXIMATE, accumulator=accumulator),
                1,
                (1.0, 1e-6),
                ledger=ledger,
            ),
            "accumulator",
            str(oc.accumulators.advanced(1e-7)),
            str(accumulator),
        )


def test_other_orders_are_refused(store, tools):
    renyi, ledger = dp.renyi_divergence(), store.create()
    bound = {"d_in": 1, "d_out": lambda alpha: alpha, "ledger": ledger}
    oc.make_concurrent_filter(odometer(tools, renyi), **bound, orders=[2.0, 4.0])
    with pytest.raises(LedgerMismatchError, match="accumulator"):
        oc.make_concurrent_filter(odometer(tools, renyi), **bound, orders=[2.0, 5.0])


def test_an_odometer_and_a_filter_are_not_the_same(store, tools):
    settle(store, tools)
    ledger = store.open()
    refused(
        lambda: odometer(tools, ledger=ledger, d_in=1)([1, 2, 3]),
        "d_out",
        "1.0",
        "no bound (an odometer)",
    )


def test_a_filter_cannot_bound_what_an_odometer_has_recorded(store, tools):
    ledger = store.create()
    odometer(tools, ledger=ledger, d_in=1)([1, 2, 3])
    refused(
        lambda: oc.make_concurrent_filter(odometer(tools), 1, 1.0, ledger=ledger),
        "d_out",
        "no bound (an odometer)",
        "1.0",
    )


def test_what_has_no_exact_form_settles_nothing(store, tools):
    class Own:
        start = 0

        def after(self, state, d_mid):
            return state + d_mid

        def continues(self, state, d_out):
            return state <= d_out

    own = oc.accumulators.from_rule(Own())
    ledger = store.create()
    with pytest.raises(InvalidTypeError, match="accumulator .* cannot be kept in a ledger"):
        oc.make_concurrent_filter(odometer(tools, accumulator=own), 1, 1.0, ledger=ledger)
    assert ledger.summary().terms is None


@pytest.mark.parametrize("error", UNREADABLE)
def test_an_error_of_reading_names_the_row(error):
    with (
        pytest.raises(LedgerDamagedError, match="^charge 7 is unreadable: ") as raised,
        reading("charge 7"),
    ):
        raise error("first\nsecond" + 400 * "x")
    said = str(raised.value)
    assert said.isprintable()
    assert len(said) < 500


@pytest.mark.parametrize("error", [KeyboardInterrupt, LedgerError])
def test_other_errors_pass(error):
    with pytest.raises(error) as raised, reading("charge 7"):
        raise error("as it was")
    assert str(raised.value) == "as it was"


@pytest.mark.parametrize("value", [None, 1, 1.5, b"label", "a\0b", "\udc80", ["label"]])
def test_what_is_not_text_is_named(value):
    with pytest.raises(LedgerDamagedError, match="charge 7 is unreadable: its label is not text"):
        require_text("charge 7", mechanism="count", label=value)


@pytest.mark.parametrize("value", [None, True, -1, 1.0, "1", b"1"])
def test_what_is_not_a_count_is_named(value):
    with pytest.raises(LedgerDamagedError, match="its sequence is not a non-negative integer"):
        require_count("the budget", sequence=value)


def test_text_and_counts_pass():
    require_text("charge 7", label="", mechanism="é 漢")
    require_count("the budget", sequence=0)
    require_count("the budget", sequence=2**63)
    assert is_text("\ud7ff\ue000")
