"""Trees of odd degree with signed digits, and buffered factors: nodes, norms and their noise."""

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
from opendp_concurrent import verify
from opendp_concurrent.errors import UnsupportedMeasureError
from opendp_concurrent.mechanisms.noise import EDGES
from opendp_concurrent.streams import counter as methods
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
from opendp_concurrent.streams.factors import (
    BITS,
    ENDLESS,
    HORIZONS,
    SLACK,
    WINDOWS,
    BufferedFactor,
    FactorPrefix,
    buffered,
    decoder,
    endless,
    inverse_norm,
    parameters,
    power_down,
    squared_norm,
    variances,
    windowed,
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


# --- buffered factors: an exact norm, rounding of one sign, and the errors that they reach -------


ONE = 1 << BITS

ITEMS = st.lists(st.integers(-9, 9), min_size=1, max_size=40)


def column(factor, steps):
    """The first entries of C, exactly."""
    found = [Fraction(1)]
    for step in range(1, steps):
        terms = [Fraction(w, ONE) * Fraction(ONE - d, ONE) ** (step - 1) for d, w in factor.buffers]
        found.append(sum(terms, Fraction(0)))
    return found


def entries(factor, bits, items):
    """What is encoded: items times 2^bits over the norm of their columns."""
    norms = [length for steps, length in factor.blocks() for _ in range(steps)]
    return [item * inverse_norm(factor, bits, norms[step]) for step, item in enumerate(items)]


def encoded(factor, bits, items):
    coder = factor.coder()
    return [coder.encode(one) for one in entries(factor, bits, items)]


@given(horizon=st.integers(1, 150))
@settings(max_examples=10, deadline=None)
def test_norms_are_rounded_up_by_at_most_one(horizon):
    factor = buffered(horizon)
    for length in {1, 2, horizon // 2 + 1, horizon}:
        exact = sum(one * one for one in column(factor, length)) * 4**64
        assert exact <= factor.norm_squared(length) <= exact + 2**10
    assert factor.gain() >= sum(column(factor, horizon))


@given(horizon=st.integers(1, 200), bits=st.integers(5, 50))
@settings(max_examples=10, deadline=None)
def test_no_column_has_a_norm_above_1(horizon, bits):
    """In exact numbers; and of the last steps each is as near to it as the grid allows."""
    factor = buffered(horizon)
    squares = np.cumsum([one * one for one in column(factor, horizon)])
    moved = entries(factor, bits, [1] * horizon)
    for step, one in enumerate(moved):
        square = squares[horizon - step - 1]
        assert one * one * square <= 4**bits
        assert (one + 1) ** 2 * square * (1.035 if step < horizon - 32 else 1) > 4**bits


@pytest.mark.parametrize("horizon", [1, 2, 31, 32, 33, 64, 65, 1000, 2**30 + 7, 2**61])
def test_blocks_cover_the_steps(horizon):
    blocks = list(buffered(horizon).blocks())
    assert sum(length for length, _ in blocks) == horizon
    left = horizon
    for length, column in blocks:
        assert left <= column <= min(horizon, left + left // 16)
        left -= length
    assert list(endless(horizon).blocks()) == [(horizon, horizon)]
    assert len(blocks) < 16 * horizon.bit_length() + 32


@given(items=ITEMS, bits=st.integers(1, 50))
@settings(max_examples=10, deadline=None)
def test_rounding_makes_releases_too_small_by_less_than_17_16(items, bits):
    for factor in (buffered(len(items)), endless(len(items)), windowed(3, len(items))):
        c, values = column(factor, len(items)), entries(factor, bits, items)
        for step, found in enumerate(encoded(factor, bits, items)):
            exact = sum(c[step - one] * values[one] for one in range(step + 1))
            assert 0 <= exact - found < Fraction(17, 16)


@given(items=ITEMS, place=st.integers(0, 39), move=st.integers(1, 5), bits=st.integers(1, 30))
@settings(max_examples=10, deadline=None)
def test_one_event_moves_releases_by_at_most_the_sensitivity(items, place, move, bits):
    """Also with one more step for each move, as Gaussian DP needs it."""
    place %= len(items)
    other = [*items[:place], items[place] + move, *items[place + 1 :]]
    for factor in (buffered(len(items)), endless(len(items)), windowed(3, len(items))):
        both = encoded(factor, bits, items), encoded(factor, bits, other)
        moves = [abs(one - two) for one, two in zip(*both, strict=True)]
        assert not any(moves[:place])
        squares = sum((one + 1) ** 2 for one in moves if one)
        assert squares <= factor.sensitivity(bits, move) ** 2


def test_the_sensitivity_is_one_item_and_rounding():
    assert buffered(100).sensitivity(50, 3) == 3 * 2**50 + SLACK * 10
    assert buffered(101).sensitivity(50, 3) == 3 * 2**50 + SLACK * 11
    assert Fraction(17, 16) + 1 < SLACK  # rounding, and one more for Gaussian DP


@given(items=ITEMS, bits=st.integers(1, 50))
@settings(max_examples=15, deadline=None)
def test_decoding_undoes_encoding(items, bits):
    factor = buffered(len(items))
    releases = encoded(factor, bits, items)
    coder = factor.coder()
    assert [coder.decode(one) for one in releases] == entries(factor, bits, items)


@given(base=st.integers(0, 2**60), exponent=st.integers(0, 300))
@settings(max_examples=25, deadline=None)
def test_powers_are_rounded_down(base, exponent):
    exact = Fraction(base, 2**60) ** exponent * 2**128
    assert exact - 2 * (exponent + 1) <= power_down(base, 60, exponent) <= exact


@pytest.mark.parametrize("table", [HORIZONS, WINDOWS, {0: ENDLESS}])
def test_rows_of_the_tables_have_what_the_formulas_need(table):
    """ω_i > 0 and 0 < θ_i < 1; C falls; entries of A C^-1 are positive and fall."""
    for buffers in table.values():
        assert all(0 < delta < 2**BITS and 0 < omega for delta, omega in buffers)
        assert sum(omega for _, omega in buffers) <= 2**BITS
        assert len(set(buffers)) == len(buffers)
        rates, factors = decoder(*parameters(buffers))
        assert (rates < 1).all()
        assert (factors > 0).all()


@pytest.mark.parametrize(("scale", "largest"), [(2.0**50, 1), (1e-300, 2**32), (20.0, 1), (1.0, 9)])
@pytest.mark.parametrize("horizon", [1, 2, 1000, 2**29, None])
def test_the_grid_fits_64_bits(scale, largest, horizon):
    steps = 2**61 // largest
    factor = endless(steps) if horizon is None else buffered(min(horizon, steps))
    bits = factor.grid_bits(scale, largest)
    assert bits >= 1
    assert scale * 2.0**bits <= 2.0**55
    assert factor.gain() * largest * 2**bits <= 2**61


def best_of_the_square_root(steps):
    """The square root of the prefix sums, with normalised columns [2509.14334], by matrices."""
    first = np.cumprod(np.concatenate([[1.0], 1 - 1 / (2 * np.arange(1, steps))]))
    places = np.subtract.outer(np.arange(steps), np.arange(steps))
    root = np.where(places >= 0, first[np.maximum(places, 0)], 0.0)
    encode = root / np.linalg.norm(root, axis=0)
    decode = np.tri(steps) @ np.linalg.inv(encode)
    return np.linalg.norm(decode) / np.sqrt(steps)


@pytest.mark.parametrize("steps", [255, 1023])
def test_the_error_is_that_of_the_square_root_with_all_of_its_memory(steps):
    assert oc.streams.counter_rmse(steps) <= 1.001 * best_of_the_square_root(steps)


# --- counters by factorisation: exact adaptive adversaries, errors of real answers, and records --

COARSE, NOISE = 2, 6.0
PRESENCE = verify.events_differ(1)
FACTORS = {"with a horizon": buffered(4), "endless": endless(4)}


class Bare:
    """A prefix whose answer tells all that was released, on the grid."""

    def __init__(self, factor, release):
        self.prefix = FactorPrefix(factor, COARSE, self)
        self.releases, self._release = (), release

    def release(self, total):
        self.releases += (self._release(total, NOISE),)
        return self.releases[-1]

    def update(self, item):
        self.prefix.update(item or 0)

    def __call__(self, query):
        return self.releases


def law(factor):
    noise = verify.clamped_noise(-4, 9, gaussian=True)
    return verify.Replayed(lambda release: Bare(factor, release), noise)


def moves(factor, steps):
    """How far the releases of (1, 0, 0, ...) are from those of nothing."""
    return encoded(factor, COARSE, [int(step == 0) for step in range(steps)])


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("order", [1.5, 4.0])
def test_an_adversary_gains_no_more_than_the_norm_allows(factor, order):
    """Both streams are chosen adaptively, and everything that is released is seen."""
    factor, steps = FACTORS[factor], 2
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, steps, order)
    seen = sum(one * one for one in moves(factor, steps)) / (2 * NOISE**2)
    declared = methods.factor_loss(1, factor.sensitivity(COARSE, 1), NOISE, ZCDP, 1)
    assert 0.7 * order * seen < found <= order * seen + 1e-9
    assert found <= order * declared


def test_a_norm_without_its_buffers_is_caught(monkeypatch):
    """The exact check sees a column of C of which only the first entry is counted."""
    factor = BufferedFactor(((2**57, 2**60),), 2, cut=True)  # c = 1, 1, 7/8, ...
    monkeypatch.setattr(BufferedFactor, "norm_squared", lambda factor, length: 4**64)
    inverse_norm.cache_clear()
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, 2, 2.0)
    inverse_norm.cache_clear()
    first_only = (1 << COARSE) ** 2 / (2 * NOISE**2)
    assert found > 2 * 1.4 * first_only


def test_gaussian_dp_on_the_grid():
    factor = FACTORS["with a horizon"]
    moved = factor.sensitivity(COARSE, 1)
    loss = methods.factor_loss(1, moved, NOISE, oc.gaussian_tradeoff(), 1)
    tight = math.sqrt(sum((one + 1) ** 2 for one in moves(factor, 2))) / NOISE
    for epsilon in (0.0, 0.5, 1.0):
        found = verify.continual_delta([law(factor)], (None, 1), PRESENCE, 2, epsilon)
        for mu in (loss, tight):
            assert 0.0 < found <= oc.TradeoffFunction.gaussian(mu).delta(epsilon) + 1e-9


def rows(factor, steps):
    """The weights of the noise in each sum, A D C^-1, by integers."""
    norms = [length for many, length in factor.blocks() for _ in range(min(many, steps))][:steps]
    coder = factor.coder()
    inverse = [coder.decode(int(step == 0) << 60) / 2.0**60 for step in range(steps)]
    found = np.zeros((steps, steps))
    for step, length in enumerate(norms):
        found[step] = found[step - 1] if step else 0.0
        scale = math.sqrt(factor.norm_squared(length) / 4**64)
        found[step, : step + 1] += scale * np.array(inverse[: step + 1][::-1])
    return found


@pytest.mark.parametrize("steps", [1, 2, 3, 31, 70, 300])
@pytest.mark.parametrize("make", [buffered, endless, lambda steps: windowed(8, steps)])
def test_errors_are_those_of_the_rows(make, steps):
    for factor, first in ((make(steps), steps), (make(2 * steps), steps)):
        squares = np.square(rows(factor, first)).sum(axis=1)
        lengths, totals, bounds = variances(factor, first)
        ends = np.cumsum(lengths).astype(int)
        assert ends[-1] == first
        for end, length, total, bound in zip(ends, lengths, totals, bounds, strict=True):
            block = squares[end - int(length) : end]
            assert total == pytest.approx(block.sum(), rel=1e-9)
            assert block.max() <= bound * (1 + 1e-9)
        assert bounds.max() <= 1.02 * squares.max()


@pytest.mark.parametrize("horizon", [30, None])
def test_the_measured_error_is_that_of_a_row(horizon):
    """2,000 categories have counters with noise of their own; seven deviations of the mean."""
    runs, scale = 2000, 20.0
    space = oc.category_stream(runs), oc.event_presence()
    handle = oc.m.make_histogram_counter(*space, ZCDP, scale, horizon=horizon)([])
    squares = np.square(rows(endless(2**50) if horizon is None else buffered(30), 30)).sum(axis=1)
    before = 0
    for step in (1, 4, 12):
        handle.update_all([None] * (step - before))
        before = step
        found = np.mean(np.array(handle(None), dtype=float) ** 2)
        assert found == pytest.approx(scale**2 * squares[step - 1], rel=7 * math.sqrt(2 / runs))


@pytest.mark.parametrize(("largest", "steps"), [(1, 2**50), (2**32, 2**29)])
def test_a_factor_without_a_horizon_ends_where_its_norm_was_taken(largest, steps):
    assert methods.plan(None, 9.0, ZCDP, shift=1, largest=largest).horizon == steps
    limit = squared_norm(np.array([0.25]), np.array([0.125]))
    assert limit == pytest.approx(1 + 0.125**2 / (1 - 0.75**2), rel=1e-12)
