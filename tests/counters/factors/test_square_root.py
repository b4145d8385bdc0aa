"""The square-root factor: its coefficients, exact sums of products, and what it decodes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendp_concurrent.counters.factors.factor import grid_bits, sensitivity
from opendp_concurrent.counters.factors.square_root import SquareRootFactor, coefficients, squares

ITEMS = st.lists(st.integers(-9, 9), min_size=1, max_size=40)


def exact_coefficients(horizon):
    found = [Fraction(1)]
    for step in range(1, horizon):
        found.append(found[-1] * (1 - Fraction(1, 2 * step)))
    return found


@pytest.mark.parametrize("fine", [4, 30, 60])
def test_coefficients_are_rounded_down(fine):
    for exact, found in zip(exact_coefficients(50), coefficients(50, fine).tolist(), strict=True):
        assert 0 <= exact * 2**fine - found < 1 + Fraction(1, 2**20)


@given(items=ITEMS, bits=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_releases_are_the_exact_sums_rounded_down_once(items, bits):
    horizon = len(items)
    factor = SquareRootFactor(horizon, 9)
    bits = min(bits, grid_bits(factor, 1.0, 9))
    fine = factor._fine
    coder, entries = factor.coder(bits), coefficients(horizon, fine).tolist()
    for step in range(horizon):
        exact = sum(entries[step - one] * items[one] for one in range(step + 1))
        assert coder.encode(items[step] << bits) == exact >> (fine - bits)


@given(items=ITEMS, place=st.integers(0, 39), move=st.integers(1, 5), bits=st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_one_event_moves_releases_by_at_most_the_sensitivity(items, place, move, bits):
    place %= len(items)
    other = [*items[:place], items[place] + move, *items[place + 1 :]]
    factor = SquareRootFactor(len(items), 14)
    one, two = (factor.coder(bits) for _ in range(2))
    moves = [
        abs(one.encode(first << bits) - two.encode(second << bits))
        for first, second in zip(items, other, strict=True)
    ]
    squared = sum((far + 1) ** 2 for far in moves if far)
    assert squared <= sensitivity(factor, bits, move) ** 2


@pytest.mark.parametrize("largest", [1, 2**32])
def test_sums_of_products_fit_64_bits(largest):
    """At the largest items, against Python's integers."""
    horizon = 300
    factor = SquareRootFactor(horizon, largest)
    bits = grid_bits(factor, 1.0, largest)
    coder, entries = factor.coder(bits), coefficients(horizon, factor._fine).tolist()
    for step in range(horizon):
        found = coder.encode(largest << bits)
        assert found == sum(entries[: step + 1]) * largest >> (factor._fine - bits)
        assert 0 <= found <= 2**61
    assert factor.gain() << factor._fine >= sum(entries)


def test_the_norm():
    factor = SquareRootFactor(1024, 1)
    assert factor.norm_squared(40) / 4**40 == pytest.approx(3.2725541503, abs=1e-9)  # theory 8.6
    exact = sum(one * one for one in coefficients(1024, factor._fine).tolist())
    assert squares(1024, factor._fine) == exact
    assert factor.norm_squared(40) * 4 ** (factor._fine - 40) >= exact


@given(items=ITEMS)
@settings(max_examples=30, deadline=None)
def test_decoding_undoes_encoding_nearly(items):
    factor = SquareRootFactor(len(items), 9)
    bits = grid_bits(factor, 1.0, 9)
    one, two = (factor.coder(bits) for _ in range(2))
    for item in items:
        found = two.decode(one.encode(item << bits))
        assert abs(found / 2**bits - item) < 1e-9


def test_vectors_are_numbers_side_by_side():
    factor = SquareRootFactor(40, 9)
    items = np.random.default_rng(0).integers(-9, 10, (40, 3))
    whole, parts = factor.coder(20), [factor.coder(20) for _ in range(3)]
    for row in items:
        found = whole.encode(row.astype(object) << 20)
        expected = [part.encode(int(one) << 20) for part, one in zip(parts, row, strict=True)]
        assert found.tolist() == expected
