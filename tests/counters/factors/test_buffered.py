"""Buffered factors: an exact norm, rounding of one sign, and the errors that they reach."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.counters.factors.buffered import ONE, buffered, endless, power_down, windowed
from opendp_concurrent.counters.factors.buffers_table import BITS, ENDLESS, HORIZONS
from opendp_concurrent.counters.factors.factor import SLACK, grid_bits, root_up, sensitivity
from opendp_concurrent.exact.participations import Participations

HORIZON = st.integers(1, 40)
ITEMS = st.lists(st.integers(-9, 9), min_size=1, max_size=40)


def column(factor, steps):
    """The first entries of C, exactly."""
    found = [Fraction(1)]
    for step in range(1, steps):
        terms = [Fraction(w, ONE) * Fraction(ONE - d, ONE) ** (step - 1) for d, w in factor.buffers]
        found.append(sum(terms, Fraction(0)))
    return found


def encoded(factor, bits, items):
    coder = factor.coder(bits)
    return [coder.encode(item << bits) for item in items]


@given(horizon=HORIZON, bits=st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_the_norm_is_rounded_up_by_at_most_one(horizon, bits):
    factor = buffered(horizon)
    exact = sum(one * one for one in column(factor, horizon)) * 4**bits
    assert exact <= factor.norm_squared(bits) <= exact + 1 + 4**bits * Fraction(1, 2**110)
    assert factor.gain() >= sum(column(factor, horizon))


@given(items=ITEMS, bits=st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_rounding_makes_releases_too_small_by_less_than_17_16(items, bits):
    for factor in (buffered(len(items)), endless(len(items)), windowed(3, len(items))):
        entries = column(factor, len(items))
        for step, found in enumerate(encoded(factor, bits, items)):
            exact = sum(entries[step - one] * items[one] for one in range(step + 1)) * 2**bits
            assert 0 <= exact - found < Fraction(17, 16)


@given(items=ITEMS, place=st.integers(0, 39), move=st.integers(1, 5), bits=st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_one_event_moves_releases_by_at_most_the_sensitivity(items, place, move, bits):
    """Also with one more step for each move, as Gaussian DP needs it."""
    place %= len(items)
    other = [*items[:place], items[place] + move, *items[place + 1 :]]
    factor = buffered(len(items))
    moves = [
        abs(one - two)
        for one, two in zip(encoded(factor, bits, items), encoded(factor, bits, other), strict=True)
    ]
    assert not any(moves[:place])
    squares = sum((one + 1) ** 2 for one in moves if one)
    assert squares <= sensitivity(factor, bits, move) ** 2


def test_the_sensitivity_is_tight_on_a_fine_grid():
    factor = buffered(100)
    exact = root_up(factor.norm_squared(50))
    norm = float(sum(one * one for one in column(factor, 100))) ** 0.5
    assert exact == pytest.approx(norm * 2**50, rel=1e-14)
    assert sensitivity(factor, 50, 1) - exact == SLACK * 10
    assert Fraction(17, 16) + 1 < SLACK  # rounding, and one more for Gaussian DP


@given(items=ITEMS, bits=st.integers(1, 50))
@settings(max_examples=30, deadline=None)
def test_decoding_undoes_encoding(items, bits):
    factor = endless(10)
    releases = encoded(factor, bits, items)
    coder = factor.coder(bits)
    assert [coder.decode(one) for one in releases] == [item << bits for item in items]


@given(base=st.integers(0, 2**60), exponent=st.integers(0, 300))
@settings(max_examples=50, deadline=None)
def test_powers_are_rounded_down(base, exponent):
    exact = Fraction(base, 2**60) ** exponent * 2**128
    assert exact - 2 * (exponent + 1) <= power_down(base, 60, exponent) <= exact


@pytest.mark.parametrize("exponent", [*HORIZONS, None])
def test_each_row_of_the_table_is_a_decreasing_sequence(exponent):
    """C starts with 1, and falls: ω_i > 0, 0 < θ_i < 1, and Σ ω_i <= 1."""
    buffers = ENDLESS if exponent is None else HORIZONS[exponent]
    assert all(0 < delta < 2**BITS and 0 < omega for delta, omega in buffers)
    assert sum(omega for _, omega in buffers) <= 2**BITS
    assert len(set(buffers)) == len(buffers)


@pytest.mark.parametrize(("scale", "largest"), [(2.0**50, 1), (1e-300, 2**32), (20.0, 1), (1.0, 9)])
@pytest.mark.parametrize("horizon", [1, 2, 1000, 2**29, None])
def test_the_grid_fits_64_bits(scale, largest, horizon):
    steps = 2**61 // largest
    factor = endless(steps) if horizon is None else buffered(min(horizon, steps))
    bits = grid_bits(factor, scale, largest)
    assert bits >= 1
    assert scale * 2.0**bits <= 2.0**55
    assert factor.gain() * largest * 2**bits <= 2**61


@pytest.mark.parametrize("exponent", [10, 14, 20])
def test_the_error_is_below_that_of_the_square_root(exponent):
    steps = 2**exponent - 1
    assert oc.m.counter_rmse(steps) <= 0.995 * oc.m.square_root_rmse(steps)
    # the least of all factorisations, by the nuclear norm
    angles = np.pi * (2 * np.arange(1, steps + 1) - 1) / (4 * steps + 2)
    assert oc.m.counter_rmse(steps) > np.mean(1 / (2 * np.sin(angles)))


@pytest.mark.parametrize("exponent", [14, 20])
def test_without_a_horizon_the_error_is_below_that_of_doubling(exponent):
    error, doubling = (oc.m.counter_rmse(2**exponent, one, endless=True) for one in (None, "tree"))
    assert error <= 0.40 * doubling


def test_the_state_is_small():
    for horizon in (2**20, 2**61):
        assert len(buffered(horizon).coder(30).to_record()) <= 8


def test_rounding_is_more_than_the_norm_alone():
    """On a coarse grid the slack is needed: floors of two streams fall differently."""
    factor, largest = buffered(4), 0
    for items in np.random.default_rng(0).integers(0, 40, (300, 4)).tolist():
        one = encoded(factor, 1, items)
        two = encoded(factor, 1, [items[0] + 1, *items[1:]])
        largest = max(largest, sum((a - b) ** 2 for a, b in zip(one, two, strict=True)))
    assert factor.norm_squared(1) < largest <= sensitivity(factor, 1, 1) ** 2


def test_rounding_counts_in_each_category_of_a_unit():
    factor, unit = buffered(1000), Participations(4, 5)
    exact = root_up(factor.norm_squared(10, unit))
    assert sensitivity(factor, 10, 1, unit) == exact + SLACK * root_up(4 * 1000)
    assert sensitivity(factor, 10, 1) == root_up(factor.norm_squared(10)) + SLACK * root_up(1000)
