"""The vectorised bank against exact fractions, person by person."""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import ReentrantLaunchError
from opendp_concurrent.mechanisms import individual as module
from opendp_concurrent.mechanisms.individual import (
    UNITS,
    Bank,
    NoisySum,
    Price,
    individual_scale,
    noise_loss,
)

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
MEASURES = PURE, ZCDP, oc.fixed_renyi_divergence(alpha=3.3)
SLACK = Fraction(1, 2**49)  # of a charge; beside one unit


def price_of(measure, d_out, bound, scale):
    return Price.of(NoisySum(len, bound, scale), noise_loss(measure), d_out)


def of(values):
    values = np.asarray(values)
    return lambda part: values[part]


def whole(value, price):
    """Steps of a value in exact arithmetic."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return int(math.copysign(price.reach, value))
    steps = round(Fraction(value) / Fraction(2) ** price.exponent)  # half to even
    return max(-price.reach, min(price.reach, steps))


def left(bank):
    return [int(units) for units in bank._left]


def exact_cost(measure, d_out, price, steps):
    return noise_loss(measure).of(Fraction(steps), price.scale) / Fraction(d_out) * UNITS


VALUES = st.one_of(
    st.floats(-20.0, 20.0),
    st.sampled_from([0.0, 1.0, -1.0, 10.0, math.inf, -math.inf, math.nan, 1e308, 5e-324]),
)


@settings(max_examples=37)
@given(data=st.data(), measure=st.sampled_from(MEASURES), d_out=st.floats(0.01, 100.0))
def test_nobody_overspends_and_nobody_is_left_out_who_could_pay(data, measure, d_out):
    people = data.draw(st.integers(1, 5))
    bank, spent = Bank(people), [Fraction(0)] * people
    for launch in range(data.draw(st.integers(1, 6))):
        bound = data.draw(st.sampled_from([1.0, 10.0, 0.1]))
        least = individual_scale(measure, d_out, bound)
        price = price_of(measure, d_out, bound, least * data.draw(st.floats(1.0, 3.0)))
        values = data.draw(st.lists(VALUES, min_size=people, max_size=people))
        before, expected = left(bank), 0
        total = bank.charge(of(values), price)
        for person, value in enumerate(values):
            steps = whole(value, price)
            cost = exact_cost(measure, d_out, price, steps)
            charge = before[person] - left(bank)[person]
            most = min(Fraction(price.most), cost * (1 + SLACK) + 1)
            if steps and charge == 0:  # left out
                assert before[person] < most
                assert spent[person] + (launch + 1) * (UNITS * SLACK + 1) + most > UNITS
            else:
                assert cost <= charge <= most
                spent[person] += cost
                expected += steps
            assert spent[person] <= UNITS
        assert total == expected


@settings(max_examples=75)
@given(
    measure=st.sampled_from(MEASURES),
    share=st.floats(1.0, 1e7),
    steps=st.lists(st.integers(0, 2**30), min_size=1, max_size=50),
)
def test_a_charge_is_never_below_the_exact_loss(measure, share, steps):
    price = price_of(measure, 1.0, 1.0, share * individual_scale(measure, 1.0, 1.0))
    bank = Bank(len(steps))
    bank.charge(of([one * 2.0**price.exponent for one in steps]), price)
    for one, rest in zip(steps, left(bank), strict=True):
        exact = exact_cost(measure, 1.0, price, min(one, price.reach))
        assert exact <= UNITS - rest <= min(price.most, exact * (1 + SLACK) + 1)


def test_even_shares_are_spent_to_the_last():
    for shares in (1, 3, 7, 10, 36):
        bank, price = Bank(2), price_of(PURE, 1.0, 1.0, float(shares))
        one = 2**-price.exponent
        totals = [bank.charge(of([1.0, 0.5]), price) for _ in range(2 * shares + 2)]
        assert totals[:shares] == [one + one // 2] * shares
        assert totals[shares : 2 * shares - 1] == [one // 2] * (shares - 1)
        assert totals[-1] == 0
        assert left(bank)[0] == 0


def test_dtypes():
    price = price_of(PURE, 1e6, 100.0, 1.0)
    step = 2.0**price.exponent
    for dtype in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32),
        *(np.uint64, np.float16, np.float32, np.float64, np.longdouble, ">f8", ">i4"),
    ):
        values = np.array([0, 1, 1, 0, 1], dtype=dtype)
        assert Bank(5).charge(of(values), price) * step == 3
    for dtype in (np.int64, np.uint64, np.float32, np.float64, np.longdouble):
        values = np.array([2**40, 7], dtype=dtype)
        assert Bank(2).charge(of(values), price) * step == 107
    strided = np.arange(20.0).reshape(5, 4)[::-1, 2]
    assert Bank(5).charge(of(strided), price) * step == 50


def test_bad_numbers_are_silent_and_cost_nothing_or_the_bound():
    for power in MEASURES:
        price = price_of(power, 1e6, 1.0, 1.0)
        values = [math.nan, math.inf, -math.inf, 1e308, -1e308, -math.nan, 5e-324, -0.0]
        bank = Bank(len(values))
        with np.errstate(all="raise"):
            assert bank.charge(of(values), price) == 0
        spent = [UNITS - one for one in left(bank)]
        assert spent == [0, *[price.most] * 4, 0, 0, 0]


def test_chunks_do_not_show(monkeypatch):
    generator = np.random.default_rng(3)
    values = generator.normal(size=1000)
    prices = [price_of(ZCDP, 1.0, 2.0, scale) for scale in (2.0, 3.0, 2.5)]
    outcomes = []
    for chunk in (1, 7, 999, 1000, 1001, 2**16):
        monkeypatch.setattr(module, "CHUNK", chunk)
        bank = Bank(1000)
        outcomes.append(([bank.charge(of(values), price) for price in prices], left(bank)))
    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_others_do_not_matter():
    """What is left to a person is the same in any company, in any place."""
    generator = np.random.default_rng(4)
    values, prices = generator.normal(size=50), [price_of(ZCDP, 0.5, 1.0, 1.2)] * 4
    together = Bank(50)
    totals = [together.charge(of(values), price) for price in prices]
    alone_totals = np.zeros(4, dtype=object)
    for person in range(50):
        bank = Bank(1)
        alone_totals += np.array(
            [bank.charge(of(values[person : person + 1]), price) for price in prices], dtype=object
        )
        assert left(bank) == [left(together)[person]]
    assert alone_totals.tolist() == totals
    backwards = Bank(50)
    assert [backwards.charge(of(values[::-1]), price) for price in prices] == totals
    assert left(backwards) == left(together)[::-1]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failure_on_the_way_changes_nothing(monkeypatch, error):
    monkeypatch.setattr(module, "CHUNK", 10)
    bank, price = Bank(35), price_of(PURE, 1.0, 1.0, 2.0)
    bank.charge(of(np.ones(35)), price)
    before = left(bank)

    def values(part):
        if part.start >= 20:
            raise error
        return np.ones(10)

    with pytest.raises(error):
        bank.charge(values, price)
    assert left(bank) == before == [UNITS // 2] * 35
    assert bank.charge(of(np.ones(35)), price) == 35 * price.reach
    assert bank.charge(of(np.ones(35)), price) == 0


def test_nothing_is_skipped_for_those_who_have_nothing_left(monkeypatch):
    """The same calls, in the same order, whoever can pay."""
    calls = []

    class Counting:
        def __getattr__(self, name):
            function = getattr(np, name)
            if not isinstance(function, np.ufunc) and name != "clip":
                return function

            def call(*arguments, **keywords):
                calls.append((name, [getattr(one, "shape", ()) for one in arguments]))
                return function(*arguments, **keywords)

            call.reduce = getattr(function, "reduce", None)
            return call

    monkeypatch.setattr(module, "np", Counting())
    price, seen = price_of(PURE, 1.0, 1.0, 1.0), []
    for values in ([1.0, 1.0], [0.0, 0.0], [math.nan, math.inf]):
        bank = Bank(2)
        for _ in range(3):
            calls.clear()
            bank.charge(of(values), price)
            seen.append(list(calls))
    assert seen[0]
    assert all(one == seen[0] for one in seen)


def test_a_bank_may_not_be_asked_while_it_is_asked():
    bank, price = Bank(3), price_of(PURE, 1.0, 1.0, 1.0)

    def values(part):
        bank.charge(of(np.ones(3)), price)
        return np.ones(3)

    with pytest.raises(ReentrantLaunchError):
        bank.charge(values, price)
    assert left(bank) == [UNITS] * 3
    assert bank.charge(of(np.ones(3)), price) == 3 * price.reach
    assert bank.charge(of(np.ones(3)), price) == 0
