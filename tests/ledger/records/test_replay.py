"""Charges are replayed in order; each must follow from the charge before it."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.store import LimitCharge, Terms
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, LedgerDamagedError
from opendp_concurrent.ledger.audit import Known, replay
from opendp_concurrent.ledger.charges import LimitedCharge, Limits, Opened, write_terms
from opendp_concurrent.ledger.encoding import decode, empty_total, encode, first_hash
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE
from opendp_concurrent.measures.renyi import GridCurve

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


# --- distances as text: exact, one text for each value, and nothing else is read -----------------

F = oc.TradeoffFunction
losses = st.floats(min_value=0.0, allow_nan=False)


FUNCTIONS = {
    "identity": F.identity(),
    "worst": F.worst(),
    "pure": F.pure(0.1),
    "approximate": F.approximate(0.3, 1e-7),
    "gaussian": F.gaussian(0.1),
    "tiny gaussian": F.gaussian(5e-324),
    "laplace": F.laplace(0.7),
    "fine laplace": F.laplace(0.7, 10_000.0),
    "discrete laplace": F.discrete_laplace(3.0, 2),
    "discrete gaussian": F.discrete_gaussian(2.0),
    "randomized response": F.randomized_response(0.6, 3),
    "finite": F.finite([0.2, 0.5, 0.3], [0.5, 0.4, 0.1]),
    "finite with infinite losses": F.finite([0.3, 0.5, 0.2, 0.0], [0.0, 0.3, 0.6, 0.1]),
    "profile": F.from_profile([0.0, 1.0], [0.3, 0.1]),
    "profile of two directions": F.from_profile([0.0, 1.0], [0.3, 0.1], [0.3, 0.2]),
    "curve": F.finite([0.2, 0.4, 0.4], [0.0, 0.3, 0.7]),
    "loss distribution": F.from_loss_distribution([0.5, -0.5], [0.65, 0.3], 0.05),
    "mixture": F.mixture([1, 2], [F.pure(0.5), F.gaussian(0.3)]),
}
FUNCTIONS |= {
    "inverse": FUNCTIONS["finite"].inverse(),
    "inverse with infinite losses": FUNCTIONS["finite with infinite losses"].inverse(),
    "inverse twice": FUNCTIONS["finite"].inverse().inverse(),
    "symmetrised": FUNCTIONS["finite"].symmetrised(),
    "group": FUNCTIONS["laplace"].group(3),
    "power": FUNCTIONS["laplace"].power(50),
    "product": F.gaussian(0.2).compose(F.laplace(0.1)).compose(FUNCTIONS["finite"]),
    "product with its inverse": FUNCTIONS["finite"].compose(FUNCTIONS["finite"].inverse()),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_a_trade_off_function_survives_with_all_that_it_says(function):
    text = encode("d_mid", function)
    again = decode(text)
    assert again == function
    assert hash(again) == hash(function)
    assert encode("d_mid", again) == text
    epsilons = np.array([-1.0, 0.0, 0.1, 0.5, 2.0])
    for one, other in zip(
        again.delta_bounds(epsilons), function.delta_bounds(epsilons), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)  # sums, in the order of the text
    assert again.inverse() == function.inverse()
    assert again.compose(function) == function.power(2)


def test_products_keep_their_order_and_are_equal_in_any():
    """What is decoded adds up as what was encoded did, to the last digit."""
    one, other = F.laplace(0.1), F.finite([0.2, 0.8], [0.8, 0.2])
    product, turned = one.compose(other), other.compose(one)
    assert product == turned
    for function in (product, turned):
        assert list(decode(encode("f", function)).product.factors) == list(function.product.factors)
    assert encode("f", F.gaussian(0.3).compose(F.gaussian(0.4))) != encode("f", F.gaussian(0.3))
    assert encode("f", F.pure(0.5)) == encode("f", F.approximate(0.5, 0.0))


def test_a_value_of_another_type_is_another_text():
    texts = {encode("x", value) for value in (1, 1.0, True, "1", (1.0,), None, -0.0, 0.0)}
    assert len(texts) == 8


@given(
    losses
    | st.tuples(losses, st.floats(0.0, 1.0))
    | st.builds(oc.TruncatedConcentrated, losses, st.floats(min_value=1.0, exclude_min=True))
    | st.tuples(losses, losses).map(lambda values: GridCurve((1.5, 64.0), values))
)
@example(5e-324)
@example(math.inf)
def test_losses_survive_bit_for_bit(loss):
    text = encode("d_mid", loss)
    again = decode(text)
    assert (type(again), again, encode("d_mid", again)) == (type(loss), loss, text)


@pytest.mark.parametrize(
    "value", [lambda alpha: alpha, [1.0], {1.0}, np.float64(1.0), np.ones(2, dtype=np.float32)]
)
def test_what_has_no_exact_form_is_refused_by_name(value):
    with pytest.raises(InvalidTypeError, match="d_mid .* cannot be kept in a ledger"):
        encode("d_mid", value)


TEXTS = [
    '{"double": "0x1.0000000000000p+0"}',
    '{"double":"1.0"}',
    '{"double":"0x2.0000000000000p+0"}',
    '{"double":"0x1p99999"}',
    '{"double":1}',
    '{"double":"0x1.0000000000000p+0","more":1}',
    '{"tcdp":{"rho":{"double":"0x1.0000000000000p+0"}}}',
    '{"tcdp":{"omega":{"double":"inf"},"rho":{"double":"-0x1.0000000000000p+0"}}}',
    '{"tcdp":{"rho":{"double":"0x1.0000000000000p+0"},"omega":{"double":"inf"}}}',
    '{"tcdp":{"more":1,"omega":{"double":"inf"},"rho":{"double":"0x1.0000000000000p+0"}}}',
    '{"function":{"squares":"0x0"}}',
    '{"function":{"squares":"0x0","factors":[]}}',
    '{"function":{"factors":[],"squares":"0x00"}}',
    '{"function":{"factors":[[{"double":"inf"},1]],"squares":"0x0"}}',
    '{"function":{"factors":[[1]],"squares":"0x0"}}',
    '{"pair":{}}',
    '{"doubles":"AA"}',
    '{"doubles":"AAAA"}',
    '{"swapped":1}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_other_texts_are_refused(text):
    with pytest.raises(InvalidValueError, match="not an exact record"):
        decode(text)
