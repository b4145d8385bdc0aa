"""Trees of odd degree with signed digits: their nodes and their noise."""

import math
from collections import Counter
from fractions import Fraction
from itertools import count, pairwise

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedMeasureError
from opendp_concurrent.mechanisms.noise import EDGES
from opendp_concurrent.streams import digits as epochs
from opendp_concurrent.streams import window
from opendp_concurrent.streams.digits import (
    LARGEST_RELEASE,
    DigitNoise,
    Digits,
    EpochsPrefix,
    NodeNoise,
    best_digits,
    epoch,
    is_laplace,
    least_base,
)

from ..build import APPROXIMATE_ZCDP, PURE, ZCDP

LOWEST, HIGHEST = EDGES


@pytest.fixture(params=[(3, 1), (3, 3), (5, 2), (7, 2), (13, 1)], ids=str)
def digits(request):
    return Digits(*request.param)


def most(digits):
    return (digits.base**digits.height - 1) // 2


def test_digits_are_balanced_and_add_up(digits):
    for number in range(most(digits) + 1):
        found = list(digits.of(number))
        assert sum(digit * digits.base**level for level, _, digit in found) == number
        assert all(abs(digit) <= digits.base // 2 for _, _, digit in found)


def test_signed_nodes_are_the_prefix(digits):
    """Each step is once in the signed sum of nodes if it is in the prefix, and else not at all."""
    for number in range(most(digits) + 1):
        signs = Counter()
        for level, start, digit in digits.of(number):
            unit = digits.base**level
            for node in range(min(start, start + digit), max(start, start + digit)):
                for step in range(node * unit, (node + 1) * unit):
                    signs[step] += 1 if digit > 0 else -1
        assert {step for step, sign in signs.items() if sign} == set(range(number))
        assert all(signs[step] == 1 for step in range(number))


def test_the_sum_of_nodes_is_that_of_each_step(digits):
    total = 0
    for number in range(1, most(digits) + 1):
        total += digits.nodes(number)
        assert digits.total_nodes(number) == total


@given(horizon=st.integers(1, 2**61), height=st.integers(1, 63))
@settings(max_examples=25, deadline=None)
def test_the_least_base(horizon, height):
    base = least_base(horizon, height)
    assert base % 2 == 1
    assert (base**height - 1) // 2 >= horizon
    assert base == 3 or ((base - 2) ** height - 1) // 2 < horizon


@pytest.mark.parametrize(
    ("horizon", "shape", "error"),
    [
        (2**10 - 1, Digits(13, 3), 13.0575),
        (2**14 - 1, Digits(33, 3), 20.7781),
        (2**20 - 1, Digits(19, 5), 33.8738),
    ],
)
def test_the_best_degree_and_its_error(horizon, shape, error):
    assert best_digits(horizon) == shape
    assert oc.streams.counter_rmse(horizon, output_measure=PURE) == pytest.approx(error, abs=1e-4)


@pytest.mark.parametrize("horizon", [1, 2, 5, 17, 60])
def test_no_other_degree_is_better(horizon):
    best = best_digits(horizon)
    error = best.height**2 * best.total_nodes(horizon)
    for base in range(3, 2 * horizon + 2, 2):
        height = next(h for h in count(1) if (base**h - 1) // 2 >= horizon)
        assert height**2 * Digits(base, height).total_nodes(horizon) >= error


class Numbered(NodeNoise):
    """Noise that tells which draw it is."""

    def __init__(self):
        self.drawn = 0

    def draw(self):
        self.drawn += 1
        return 10**6 + self.drawn


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_a_node_has_its_noise_once_and_keeps_it(digits, asked):
    """Against a table of all nodes, from the answers alone, when only some steps are asked."""
    noise, table = DigitNoise(digits, numbered := Numbered()), {}
    for number in range(1, most(digits) + 1, asked):
        before, total = numbered.drawn, noise.total(number, None)
        assert noise.total(number, None) == total
        new = iter(range(before + 1, numbered.drawn + 1))
        expected = 0
        for level, start, digit in digits.of(number):
            nodes = range(min(start, start + digit), max(start, start + digit))
            for node in nodes:
                if (level, node) not in table:
                    table[level, node] = 10**6 + next(new)
                expected += table[level, node] if digit > 0 else -table[level, node]
        assert total == expected
        assert next(new, None) is None


def test_noise_goes_on_beyond_64_bits(monkeypatch):
    """A draw where OpenDP's integers end is continued by noise that is not negative."""
    script = []
    monkeypatch.setattr(NodeNoise, "_next", lambda self: script.pop(0))
    for script, expected in (
        ([7], 7),
        ([HIGHEST, 5], HIGHEST + 5),
        ([HIGHEST, -4, -1, 0], HIGHEST),
        ([LOWEST, -4, 3], LOWEST - 3),
        ([HIGHEST, HIGHEST, 2], 2 * HIGHEST + 2),
        ([LOWEST, LOWEST, 9, 1], LOWEST - 1),
        ([HIGHEST - 1], HIGHEST - 1),
    ):
        assert NodeNoise(1.0, True).draw() == expected
        assert not script


# --- the window ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_a_window_has_the_variance_of_its_nodes(bits, monkeypatch, size):
    """Draws that are powers of four show which nodes an answer has, and with which signs."""
    drawn = []

    class Powers:
        def __init__(self, scale, laplace):
            pass

        def draw(self):
            drawn.append(None)
            return 8 ** (len(drawn) - 1)

    monkeypatch.setattr(window, "NodeNoise", Powers)
    handle = oc.m.make_window_counter(*bits, PURE, 1.0, size)([])
    shape = best_digits(size, window=True)
    for step in range(1, 3 * size + 1):
        handle.update(0)
        rest, squares = handle(None), 0
        for _ in drawn:
            digit = (rest + 3) % 8 - 3
            squares += digit**2
            rest = (rest - digit) // 8
        assert rest == 0
        if step > size:
            place = (step - 1) % size + 1
            once, twice = shape.window_nodes(np.array([place]), size)
            assert squares == once[0] + 4 * twice[0]


def test_the_measured_error_is_the_formula():
    """2,000 categories have counters with noise of their own; seven deviations of the mean."""
    runs, horizon = 2000, 30
    space = oc.category_stream(runs), oc.event_presence()
    handle = oc.m.make_histogram_counter(*space, PURE, 20.0, horizon=horizon)([])
    shape = best_digits(horizon)
    for low, high in pairwise((0, 1, 7, 16, 30)):
        handle.update_all([None] * (high - low))
        found = np.mean(np.array(handle(None), dtype=float) ** 2)
        expected = 2 * shape.nodes(high) * 20.0**2
        assert found == pytest.approx(expected, rel=7 * math.sqrt(5 / runs))


# --- epochs of digit trees: their lengths and their noise --------


def test_each_epoch_is_in_its_tree_and_ends_with_few_nodes():
    for number in range(epochs.MOST_EPOCHS):
        one = epoch(number)
        assert one.length <= (one.digits.base**one.digits.height - 1) // 2
        assert one.digits.nodes(one.length) <= 3
        assert 0.6 <= Fraction(one.length, 13 * 4**number) <= 1.7
    assert sum(epoch(number).length for number in range(epochs.MOST_EPOCHS)) > 2**61


def test_the_first_epochs_are_those_of_the_theory():
    found = [(one.length, one.digits.height, one.digits.base) for one in map(epoch, range(10))]
    assert found == [
        *((11, 2, 11), (49, 3, 7), (169, 3, 13), (686, 4, 7), (2197, 4, 13), (13122, 5, 9)),
        *((57122, 5, 13), (130321, 5, 19), (742586, 6, 13), (2476099, 6, 19)),
    ]


@pytest.mark.parametrize(("number", "degree"), [(1, 1), (2, 1), (13, 2), (832, 2), (2**70, 5)])
def test_roots_are_rounded_to_the_nearest(number, degree):
    found = epochs._rounded_root(number, degree)
    assert (2 * found - 1) ** degree <= number * 2**degree < (2 * found + 1) ** degree


def test_errors_are_those_of_the_nodes():
    """Each step by itself."""
    variances, before, steps = [], 0, 300
    for one in map(epoch, range(4)):
        node = 2 * one.digits.height**2
        variances += [before + node * one.digits.nodes(at) for at in range(1, one.length + 1)]
        before = variances[-1]
    found = oc.streams.counter_rmse(steps, PURE, endless=True)
    assert found == pytest.approx(math.sqrt(np.mean(variances[:steps])), rel=1e-12)


def test_the_noise_of_a_node_grows_with_the_levels(monkeypatch):
    scales = []

    class Kept:
        def __init__(self, scale, laplace):
            assert laplace
            scales.append(scale)

        def draw(self):
            return 0

    monkeypatch.setattr(epochs, "NodeNoise", Kept)
    prefix = EpochsPrefix(0.1)
    prefix.update_all(np.ones(300, dtype=np.int64))
    assert prefix.total() == 300
    for scale, number in zip(scales, range(4), strict=True):
        height = epoch(number).digits.height
        assert height * Fraction(0.1) <= Fraction(scale) < height * Fraction(0.1) * (1 + 2**-50)


# --- noise for the nodes of a tree: of the right kind, clamped, and drawn ahead ----------------


@pytest.mark.parametrize("laplace", [True, False])
def test_releases_are_clamped(laplace):
    noise = NodeNoise(1e-3, laplace)  # noise is 0 but once in e^1000
    assert noise.release(LARGEST_RELEASE + 1) == LARGEST_RELEASE
    assert noise.release(-LARGEST_RELEASE - 1) == -LARGEST_RELEASE


def test_draws_come_in_growing_batches_and_each_is_used_once(monkeypatch):
    sizes = []

    def invoke(measurement, pointer):
        size = measurement.input_domain.size
        sizes.append(size)
        return [1000 * len(sizes) + number for number in range(size)]

    monkeypatch.setattr("opendp_concurrent.mechanisms.noise._native.invoke", invoke)
    noise = NodeNoise(1.0, True)
    released = [noise.release(0) for _ in range(16 + 64 + 256 + 1)]
    assert sizes == [16, 64, 256, 256]
    assert len(set(released)) == len(released)


@pytest.mark.parametrize(("laplace", "variance"), [(True, 200.0), (False, 100.0)])
def test_noise_has_the_variance_of_its_kind(laplace, variance):
    """Seven deviations of the mean of 4,000 squares."""
    noise = NodeNoise(10.0, laplace)
    squares = [noise.release(0) ** 2 for _ in range(4000)]
    kurtosis = 6.0 if laplace else 3.0
    assert sum(squares) / 4000 == pytest.approx(variance, rel=7 * ((kurtosis - 1) / 4000) ** 0.5)


def test_the_kind_of_noise_is_that_of_the_measure():
    assert [is_laplace(one) for one in (PURE, dp.approximate(PURE))] == [True, True]
    gaussian = (ZCDP, dp.renyi_divergence(), oc.fixed_renyi_divergence(4.0), oc.gaussian_tradeoff())
    assert not any(is_laplace(one) for one in gaussian)
    for measure in (oc.tradeoff(), APPROXIMATE_ZCDP):
        with pytest.raises(UnsupportedMeasureError, match="no noise of its own here"):
            is_laplace(measure)
