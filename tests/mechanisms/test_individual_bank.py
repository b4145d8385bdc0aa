"""The vectorised bank against exact fractions, person by person."""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.data.kind import kind_of
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.mechanisms import individual as module
from opendp_concurrent.mechanisms.individual import (
    LARGEST_SUM,
    LEAST_RATE,
    UNITS,
    Bank,
    IntegerNoise,
    NoisySum,
    Price,
    check_people,
    individual_scale,
    noise_loss,
    step_exponent,
    values_of,
    whole_steps,
)

from ..build import APPROXIMATE, APPROXIMATE_ZCDP, PURE, RENYI, SPACE, ZCDP

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


def test_even_shares_are_spent_to_the_last():
    assert UNITS < 2**53
    assert all(UNITS % shares == 0 for shares in (*range(1, 37), 40, 48, 60, 64, 90, 120))
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
    for dtype in (bool, np.int8, np.int64, np.uint64, np.float16, np.longdouble, ">f8", ">i4"):
        values = np.array([0, 1, 1, 0, 1], dtype=dtype)
        assert Bank(5).charge(of(values), price) * step == 3
    for dtype in (np.int64, np.uint64, np.float32, np.longdouble):
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


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
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


# --- what people's rows are, and what a function of rows may return ----------------------------

ARRAY = dp.numpy.array2_domain(T=float, num_columns=2)


def as_rows(data, domain=ARRAY):
    return kind_of(domain).rows(data, domain)


def test_added_and_removed_people_only():
    for metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        check_people(ARRAY, metric)
        check_people(dp.vector_domain(dp.atom_domain(T=str)), metric)
    for metric in (dp.change_one_distance(), dp.hamming_distance()):
        with pytest.raises(InvalidValueError, match="what a person loses depends on both"):
            check_people(ARRAY, metric)
    with pytest.raises(InvalidValueError, match="^input_metric .* must be the symmetric"):
        check_people(ARRAY, dp.l2_distance(T=float))
    with pytest.raises(InvalidTypeError, match="^input_domain .* must be of vectors"):
        check_people(dp.atom_domain(T=int), dp.symmetric_distance())


def test_arrays_are_not_copied_and_cannot_be_written_to():
    data = np.arange(6.0).reshape(3, 2)
    rows = as_rows(data)
    assert np.shares_memory(rows, data)
    assert data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 1.0


@pytest.mark.parametrize("data", [[1.0], {"rows": 1}, np.array(5.0), None], ids=repr)
def test_other_data_are_refused_without_saying_them(data):
    with pytest.raises(InvalidTypeError) as caught:
        as_rows(data, dp.user_domain("anything", lambda _: True))
    assert str(caught.value) == (
        "the data must be a NumPy array with a row for each person; map input_domain to one first"
    )


@pytest.mark.parametrize(
    "per_row",
    [
        lambda rows: rows[:-1, 0],
        lambda rows: rows[:, :1],
        lambda rows: rows[:, 0].sum(),
        lambda rows: rows[:, 0].tolist(),
        lambda rows: rows[:, 0].astype(complex),
        lambda rows: rows[:, 0].astype(object),
        lambda rows: rows[:, 0].astype("m8[s]"),
        lambda rows: None,
    ],
)
def test_one_number_for_each_row_or_one_message(per_row):
    messages = set()
    for people in (2, 3, 1000):
        with pytest.raises(InvalidTypeError, match="^per_row must return a NumPy array") as caught:
            values_of(np.ones((people, 2)), per_row)(slice(0, people))
        messages.add(str(caught.value))
        assert str(people) not in str(caught.value)
    assert len(messages) == 1


@pytest.mark.parametrize("mask", [False, [[True, False], [False, False]]])
def test_what_a_mask_hides_is_not_counted(mask):
    hidden = np.ma.masked_array([[918273.0, 2.0], [3.0, 4.0]], mask=mask)
    with pytest.raises(InvalidTypeError, match="data must be an array without a mask") as caught:
        as_rows(hidden)
    assert "918273" not in str(caught.value)
    values = values_of(as_rows(hidden.filled(0.0)), lambda rows: np.ma.array(rows[:, 0]))
    with pytest.raises(InvalidTypeError, match=r"without a mask.*nothing was charged"):
        values(slice(0, 2))


# --- prices: never below the exact ones, and even shares of a budget are exact -----------------

BOUNDS, BUDGETS = st.floats(1e-20, 1e20), st.floats(1e-3, 1e3)


def exact_units(measure, d_out, bound, scale):
    exponent = step_exponent(bound=bound)
    value = whole_steps(bound, exponent) * Fraction(2) ** exponent
    return noise_loss(measure).of(value, scale) / Fraction(d_out) * UNITS


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(bound=BOUNDS, share=st.floats(1.0, 1e6), d_out=st.floats(1e-3, 1e3))
def test_the_price_of_the_bound_is_the_exact_one_rounded_up(measure, bound, share, d_out):
    power = noise_loss(measure).power
    scale = share * individual_scale(measure, d_out, bound)
    price = price_of(measure, d_out, bound, scale)
    exact = exact_units(measure, d_out, bound, scale)
    assert price.most == math.ceil(exact) <= UNITS
    assert price.power == power
    assert price.scale * Fraction(2) ** price.exponent == Fraction(scale)
    per_step = exact / Fraction(price.reach) ** power
    assert Fraction(price.rate) >= per_step * (1 + Fraction(1, 2**50))
    assert Fraction(price.rate) <= max(per_step * (1 + Fraction(1, 2**49)), Fraction(LEAST_RATE))


def test_a_query_that_costs_more_than_a_budget_is_refused_with_the_scale_that_would_do():
    for measure, least in ((PURE, 20.0), (ZCDP, 10.0)):
        with pytest.raises(InvalidValueError) as caught:
            price_of(measure, 0.5, 10.0, math.nextafter(least, 0.0))
        assert f"must be at least {least} for bound (10.0)" in str(caught.value)
        assert price_of(measure, 0.5, 10.0, least).most == UNITS


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@given(bound=BOUNDS, d_out=BUDGETS, launches=st.integers(1, 10**4))
def test_the_least_scale_is_enough_and_none_below_is(measure, bound, d_out, launches):
    scale = individual_scale(measure, d_out, bound, launches)

    def fits(scale):
        return math.ceil(exact_units(measure, d_out, bound, scale)) * launches <= UNITS

    assert fits(scale)
    assert not fits(math.nextafter(scale, 0.0))


def test_the_least_scale_at_the_ends():
    for measure in MEASURES:
        for bound in (1e-200, 1.0, 1e200):
            for d_out in (1e-3, 1e3):
                scale = individual_scale(measure, d_out, bound)
                assert price_of(measure, d_out, bound, scale).most > 0
    assert individual_scale(PURE, 1e300, 1.0) == 2.0**-59  # the finest that is taken
    price = price_of(PURE, 1e300, 1.0, 2.0**-59)
    assert (price.most, price.rate) == (1, LEAST_RATE)
    with pytest.raises(InvalidValueError, match=r"^d_out \(1e-300\) must be larger for 7 launches"):
        individual_scale(PURE, 1e-300, 1.0, 7)
    for d_out in (5e-324, 1e-20):
        with pytest.raises(InvalidValueError, match=r"^scale \(1.0\) must be at least"):
            price_of(ZCDP, d_out, 1.0, 1.0)


@given(st.floats(1e-200, 1e200))
def test_a_bound_is_many_whole_steps_and_never_more_than_itself(bound):
    exponent = step_exponent(bound=bound)
    steps = whole_steps(bound, exponent)
    step = Fraction(2) ** exponent
    assert 2**29 <= steps <= 2**30
    assert steps * step <= Fraction(bound) < (steps + 1) * step


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1.0, 7.7, 1e6])
@pytest.mark.parametrize("shift", [0, 1, 2, 1000])
def test_it_is_the_loss_of_opendp_s_noise(scale, shift):
    """OpenDP's map is rounded up from the same number."""
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    laplace = dp.m.make_laplace(*space, scale).map(shift)
    gaussian = dp.m.make_gaussian(*space, scale).map(shift)
    for found, measure in ((laplace, PURE), (gaussian, ZCDP)):
        exact = noise_loss(measure).of(Fraction(shift), scale)
        assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 2**45))


def test_a_group_is_never_below_the_exact_bound():
    for d_out in (0.1, 1 / 3, 5e-324, 1e300):
        for people in (0, 1, 2, 3, 2**32 - 1):
            for measure, power in ((PURE, 1), (ZCDP, 2)):
                exact = Fraction(d_out) * people**power
                found = noise_loss(measure).of_group(people, d_out)
                assert found >= exact
                assert found == math.inf or Fraction(found) <= exact * (1 + Fraction(1, 2**52))


@pytest.mark.parametrize(
    "measure",
    [RENYI, APPROXIMATE, APPROXIMATE_ZCDP, oc.gaussian_tradeoff(), oc.tradeoff()],
    ids=str,
)
def test_other_measures_are_refused(measure):
    with pytest.raises(UnsupportedMeasureError, match="Gaussian noise; build for one of these"):
        noise_loss(measure)


@pytest.mark.parametrize("measure", [PURE, ZCDP])
def test_a_sum_is_clamped_and_noise_is_drawn_each_time(measure):
    sure = IntegerNoise(noise_loss(measure), 2.0**-10)
    found = [sure.add(total) for total in (0, -5, 2**70, -(2**70))]
    assert found == [0, -5, LARGEST_SUM, -LARGEST_SUM]
    noisy = IntegerNoise(noise_loss(measure), 2.0**40)
    assert len({noisy.add(7) for _ in range(5)}) == 5


def test_a_measurement_is_not_a_function_of_rows():
    for thing in (SPACE >> dp.t.then_count(), dp.t.then_count()):
        with pytest.raises(InvalidTypeError, match="^per_row must be a function of rows"):
            NoisySum(thing, 1.0, 1.0)
