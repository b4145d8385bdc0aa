"""Power factors: their coefficients, exact sums of products, and what they decode."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendp_concurrent.counters.factors.factor import grid_bits, sensitivity
from opendp_concurrent.counters.factors.power import (
    PARTS,
    PowerFactor,
    coefficients,
    row_sum,
    square_root,
)
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.exact.participations import Participations, never_rises

ITEMS = st.lists(st.integers(-9, 9), min_size=1, max_size=40)
POWERS = st.integers(1, PARTS)
BANDS = st.integers(1, 50)


def exact_coefficients(power, bands):
    found, s = [Fraction(1)], Fraction(power, PARTS)
    for step in range(1, bands):
        found.append(found[-1] * (step - 1 + s) / step)
    return found


@pytest.mark.parametrize("fine", [4, 24])
@pytest.mark.parametrize("power", [1, 32, 47, 64])
def test_coefficients_are_rounded_down_and_never_rise(fine, power):
    found = coefficients(power, 50, fine).tolist()
    for exact, one in zip(exact_coefficients(power, 50), found, strict=True):
        assert 0 <= exact * 2**fine - one < 1 + Fraction(1, 2**20)
    assert never_rises(found)
    assert sum(exact_coefficients(power, 50)) <= row_sum(power, 50)


@given(items=ITEMS, power=POWERS, bands=BANDS, bits=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_releases_are_the_exact_sums_rounded_down_once(items, power, bands, bits):
    factor = PowerFactor(len(items), power, bands)
    bits = min(bits, grid_bits(factor, 1.0, 9))
    coder, entries = factor.coder(bits), coefficients(power, bands, factor.fine).tolist()
    for step in range(len(items)):
        past = range(max(0, step - bands + 1), step)
        exact = sum(entries[step - one] * items[one] << bits for one in past)
        assert coder.encode(items[step] << bits) == (items[step] << bits) + (exact >> factor.fine)


@given(
    items=ITEMS,
    places=st.sets(st.integers(0, 39), min_size=1, max_size=3),
    move=st.integers(1, 5),
    power=POWERS,
    bands=BANDS,
    bits=st.integers(1, 30),
)
@settings(max_examples=60, deadline=None)
def test_a_unit_moves_releases_by_at_most_the_sensitivity(items, places, move, power, bands, bits):
    places = sorted({one % len(items) for one in places})
    gaps = [after - one for one, after in itertools.pairwise(places)]
    unit = Participations(len(places), min(gaps, default=1))
    other = [one + move * (step in places) for step, one in enumerate(items)]
    factor = PowerFactor(len(items), power, bands)
    one, two = (factor.coder(bits) for _ in range(2))
    moves = [
        abs(one.encode(first << bits) - two.encode(second << bits))
        for first, second in zip(items, other, strict=True)
    ]
    squared = sum((far + 1) ** 2 for far in moves if far)
    assert squared <= sensitivity(factor, bits, move, unit) ** 2


@pytest.mark.parametrize("largest", [1, 2**32])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_products_fit_64_bits(largest, sign):
    """At the largest values, against Python's integers."""
    factor, largest = PowerFactor(300, 60, 200), sign * largest
    bits = grid_bits(factor, 1.0, abs(largest))
    coder, entries = factor.coder(bits), coefficients(60, 200, factor.fine).tolist()
    for step in range(300):
        found = coder.encode(largest << bits)
        past = sum(entries[1 : min(step, 199) + 1])
        assert found == (largest << bits) + ((past * largest << bits) >> factor.fine)
        assert abs(found) <= 2**61
    decoder = factor.coder(bits)
    for step in range(300):  # values of 63 bits
        found = decoder.encode(sign * 2**62)
        assert found == sign * 2**62 + (
            sum(entries[1 : min(step, 199) + 1]) * sign << 62 - factor.fine
        )


def test_the_norm():
    factor = square_root(1024)
    assert factor.norm_squared(40) / 4**40 == pytest.approx(3.2725541503, abs=1e-4)  # theory 8.6
    exact = sum(one * one for one in coefficients(32, 1024, factor.fine).tolist())
    assert factor.norm_squared(40) << 2 * factor.fine >= exact << 80
    twice = factor.norm_squared(40, Participations(2, 1))
    assert 2 * factor.norm_squared(40) < twice <= 4 * factor.norm_squared(40)


@given(items=ITEMS, power=POWERS, bands=BANDS)
@settings(max_examples=30, deadline=None)
def test_decoding_undoes_encoding(items, power, bands):
    factor = PowerFactor(len(items), power, bands)
    bits = grid_bits(factor, 1.0, 9)
    one, two = (factor.coder(bits) for _ in range(2))
    for item in items:
        assert two.decode(one.encode(item << bits)) == item << bits


@pytest.mark.parametrize("bands", [1, 7, 40])
def test_vectors_are_numbers_side_by_side(bands):
    factor = PowerFactor(40, 40, bands)
    items = np.random.default_rng(0).integers(-9, 10, (40, 3))
    whole, parts = factor.coder(20), [factor.coder(20) for _ in range(3)]
    for row in items:
        found = whole.encode(row.astype(object) << 20)
        expected = [part.encode(int(one) << 20) for part, one in zip(parts, row, strict=True)]
        assert found.tolist() == expected


def test_a_record_has_the_last_values_only():
    factor = PowerFactor(100, 40, 8)
    one, two = factor.coder(20), factor.coder(20)
    for item in range(60):
        one.encode(item << 20)
    record = one.to_record()
    assert record["steps"] == 60
    assert record["past"] == [item << 20 for item in range(53, 60)]
    two.restore(record)
    assert [one.encode(item << 20) for item in range(9)] == [
        two.encode(item << 20) for item in range(9)
    ]
    assert one.to_record() == two.to_record()
    for wrong in ({"steps": 60, "past": []}, {"steps": 3, "past": record["past"]}, {"past": []}):
        with pytest.raises(InvalidValueError):
            factor.coder(20).restore(wrong)
