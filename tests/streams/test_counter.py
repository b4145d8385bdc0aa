"""Counters: the loss that they declare, their sums, their variance."""

import math
from collections import Counter

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamHaltedError
from opendp_concurrent.streams.counter import Plan, Spread, of_factor, of_window_digits, plan
from opendp_concurrent.streams.digits import best_digits, epochs
from opendp_concurrent.streams.factors import (
    HORIZONS,
    MORE,
    FactorPrefix,
    FactorWindow,
    buffered,
    decoder,
    parameters,
    prefix_squares,
    squared_norm,
    variances,
    window_variance,
    windowed,
)

from ..build import APPROXIMATE, PURE, RENYI, ZCDP

TINY = 1e-3  # noise is 0 but once in e^1000

SIZES = [1, 2, 7, 8, 13]
KINDS = [{"horizon": 70}, {}, *({"window": size} for size in SIZES)]
each_kind = pytest.mark.parametrize("options", KINDS, ids=str)


def made(space, measure, scale, *, window=None, **options):
    """A counter of all steps, or of the last ones."""
    if window is None:
        return oc.m.make_counter(*space, measure, scale, **options)([])
    return oc.m.make_window_counter(*space, measure, scale, window)([])


# --- the loss --------------------------------------------------------------------------------


SHIFTS = {  # of (lower, upper): by an item and nothing, by a change
    (0, 1): (1, 1),
    (-3, 5): (5, 8),
    (2, 7): (7, 7),
    (-9, -4): (9, 9),
    (-1, 0): (1, 1),
}


@pytest.mark.parametrize("bounds", SHIFTS)
@pytest.mark.parametrize("metric", ["presence", "change"])
@pytest.mark.parametrize("horizon", [None, 10, 1000])
def test_losses_against_their_formulas(bounds, metric, horizon):
    space = oc.integer_stream(*bounds), getattr(oc, f"event_{metric}")()
    shift = SHIFTS[bounds][metric == "change"]
    nodes = best_digits(horizon).height if horizon else 1
    scale = 40.0

    def loss(measure, d_in):
        return oc.m.make_counter(*space, measure, scale, horizon=horizon).map(d_in)

    for d_in in (0, 1, 2, 3):
        rho = (d_in * shift / scale) ** 2 / 2
        mu = d_in * shift / scale
        assert loss(PURE, d_in) == pytest.approx(d_in * shift * nodes / scale, rel=1e-9)
        assert loss(APPROXIMATE, d_in) == (pytest.approx(loss(PURE, d_in)), 0.0)
        assert loss(ZCDP, d_in) == pytest.approx(rho, rel=1e-2)
        assert loss(oc.fixed_renyi_divergence(8.0), d_in) == pytest.approx(8 * rho, rel=1e-2)
        assert loss(oc.gaussian_tradeoff(), d_in) == pytest.approx(mu, rel=1e-2)
        truncated = loss(oc.truncated_concentrated_divergence(4.0), d_in)
        assert truncated.rho == pytest.approx(rho, rel=1e-2)
        assert loss(RENYI, d_in)(5.0) == pytest.approx(5 * rho, rel=1e-2)


# --- sums ------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(2))
def test_sums_are_exact_without_noise_in_any_interleaving(options, measure, seed):
    generator = np.random.default_rng(seed)
    space = oc.integer_stream(-3, 5), oc.event_change()
    counter, reach = made(space, measure, TINY, **options), options.get("window", 70)
    stream = [None if one == 6 else one for one in generator.integers(-3, 7, size=70).tolist()]
    taken = 0
    while taken < 70:
        size = int(generator.integers(0, min(9, 71 - taken)))
        now, kind = stream[taken : taken + size], generator.integers(4)
        if kind == 0 and size:
            now = now[:1]
            counter.update(now[0], taken + 1)
        elif kind == 1 and None not in now:
            counter.update_all(np.array(now, dtype=np.int8))
        elif kind == 2:
            counter.update_all(tuple(now))
        else:
            counter.update_all(now)
        taken += len(now)
        if generator.integers(2):
            assert counter(None) == sum(one or 0 for one in stream[max(0, taken - reach) : taken])
    assert counter(None) == sum(one or 0 for one in stream[-reach:])


@each_kind
def test_an_answer_is_given_again_between_updates(bits, options):
    empty = made(bits, PURE, 1e9, **options)
    empty.update_all([])
    assert empty(None) == 0  # without noise, since nothing has come
    counter = made(bits, PURE, 1e6, **options)
    answers = []
    for _ in range(70):
        counter.update(1)
        answers.append(counter(None))
        assert counter(None) == counter(None) == answers[-1]
    assert len(set(answers)) > 50


def test_a_number_of_any_size_is_added_as_it_is():
    """Integers of NumPy do not wrap, one by one as in a batch."""
    space = oc.integer_stream(0, 200), oc.event_presence()
    for kind in (np.int8, np.uint8, np.int16, np.uint64):
        for options in KINDS:
            counter = made(space, PURE, TINY, **options)
            for _ in range(5):
                counter.update(kind(100))
            counter.update_all(np.array([100, 100, 100], dtype=kind))
            counter.update_all([kind(100), None])
            sent, reach = [100] * 9 + [0], options.get("window", 99)
            assert counter(None) == sum(sent[-reach:])
            counter.update_all(np.array([kind(100)] * 3 + [None], dtype=object))
            assert counter(None) == sum([*sent, 100, 100, 100, 0][-reach:])


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", HORIZONS)
def test_errors_in_closed_form_agree_with_steps(exponent):
    """Against sums of the first 500 entries, and norms against exact integers."""
    factor = buffered(2**exponent)
    found = parameters(factor.buffers)
    exact = factor.norm_squared(2**exponent) / 4**64
    assert squared_norm(*found, 2**exponent) == pytest.approx(exact, rel=1e-12)
    steps = min(2**exponent, 500)
    lam, factors = decoder(*found)
    entries = np.sum(factors * (1 - lam) ** np.arange(steps)[:, None], axis=1)
    coder = factor.coder()
    sums = np.cumsum([coder.decode(int(k == 0) << 60) for k in range(steps)]).astype(float)
    assert entries == pytest.approx(sums * 2.0**-60, rel=1e-9)
    rows = np.cumsum(entries**2)
    squares, total, inner = prefix_squares(*found, np.array([1.0, steps]))
    assert squares == pytest.approx([1.0, rows[-1]], rel=1e-8)
    assert total == pytest.approx([1.0, rows.sum()], rel=1e-8)
    ages = (1 - lam) ** np.arange(steps)[:, None]
    assert inner[1] == pytest.approx(entries @ ages, rel=1e-8)


@pytest.mark.parametrize("steps", [2**41, 2**50, 2**62])
def test_errors_of_any_number_of_steps(steps):
    assert (
        9.0 < oc.streams.counter_rmse(steps) <= oc.streams.counter_rmse(steps, endless=True) * 1.001
    )
    assert 10.0 < oc.streams.window_rmse(steps) < 1e9


# --- sliding windows: exact sums without noise, few nodes for each item ------------------------


@pytest.mark.parametrize("d_in", [0, 1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_losses_are_those_of_nodes_and_of_one_release(d_in, size):
    for metric, shift in ((oc.event_presence, 5), (oc.event_change, 8)):
        space = oc.integer_stream(-3, 5), metric()
        nodes = best_digits(size, window=True).height
        pure = oc.m.make_window_counter(*space, PURE, 20.0, size)
        assert pure.map(d_in) == pytest.approx(d_in * nodes * shift / 20)
        zcdp = oc.m.make_window_counter(*space, ZCDP, 20.0, size).map(d_in)
        assert zcdp == pytest.approx((d_in * shift / 20) ** 2 / 2, rel=2e-3)
        assert zcdp >= (d_in * shift / 20) ** 2 / 2


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_the_error_late_in_a_stream_is_the_formula(size):
    """The noise of one release, followed through the window: its squares add up."""
    factor, bits = windowed(size, 2**20), 40

    class Once:
        def __init__(self):
            self.noise = 1 << bits

        def release(self, total):
            noise, self.noise = self.noise, 0
            return total + noise

    state, squares = FactorWindow(size, FactorPrefix(factor, bits, Once())), []
    for _ in range(60 * size):
        state.update(0)
        squares.append(((state._totals[-1] - state._totals[0]) / 2.0 ** (bits + MORE)) ** 2)
    assert sum(squares) ** 0.5 == pytest.approx(oc.streams.window_rmse(size), rel=1e-4)


# --- the noise in a counter's sums: kinds against all steps, tails against exact laws and runs ---
SCALE, STEPS = 8.0, 100


def spread(horizon=STEPS, measure=PURE):
    return plan(horizon, SCALE, measure, shift=1, largest=1).spread


def spread_of_window(window):
    return of_window_digits(SCALE, best_digits(window, window=True), window)


def of_nodes(scale, most):
    """Sums of so many nodes."""
    return lambda answers: Spread.of([scale], {(most,): answers})


def prefix(digits, count, name=0):
    """The signs of the nodes of a sum."""
    signs = Counter()
    for level, start, digit in digits.of(count):
        for node in range(min(start, start + digit), max(start, start + digit)):
            signs[name, level, node] += 1 if digit > 0 else -1
    return signs


def digits_rows(steps):
    return [prefix(best_digits(STEPS), step) for step in range(1, steps + 1)]


def epochs_rows(steps):
    found, before = [], Counter()
    for number, (one, count) in enumerate(epochs(steps)):
        for step in range(1, count + 1):
            row = prefix(one.digits, step, number)
            found.append(before + Counter({node: abs(sign) for node, sign in row.items()}))
        before += Counter({node: abs(sign) for node, sign in row.items()})
    heights = [one.digits.height for one, _ in epochs(steps)]
    return [{node: heights[node[0]] * sign for node, sign in row.items()} for row in found]


def window_rows(steps, window):
    digits, found = best_digits(window, window=True), []
    for step in range(steps):
        block, place = divmod(step, window)
        row = prefix(digits, place + 1, block)
        if block:
            for count, sign in ((window, 1), (place + 1, -1)):
                for node, one in prefix(digits, count, block - 1).items():
                    row[node] += sign * one
        found.append({node: sign for node, sign in row.items() if sign})
    return found


def kinds_of(rows):
    return Counter(tuple(sorted(round(abs(one), 9) for one in row.values())) for row in rows)


def listed(found, scale=SCALE):
    """The kinds of a spread, in the form of :func:`kinds_of`."""
    counts = Counter()
    for kind, many in zip(found.kinds, found.sums, strict=True):
        sizes = []
        for size, number in zip(found.scales, kind, strict=True):
            sizes += [round(size / scale, 6)] * int(number)
        counts[tuple(sorted(sizes))] += int(many)
    return counts


@pytest.mark.parametrize("steps", [1, 2, 7, 63, 100])
@pytest.mark.parametrize(("horizon", "rows"), [(STEPS, digits_rows), (None, epochs_rows)])
def test_kinds_are_those_of_all_sums(horizon, rows, steps):
    found = listed(spread(horizon)(steps))
    assert found == Counter(
        {tuple(round(one, 6) for one in kind): many for kind, many in kinds_of(rows(steps)).items()}
    )


@pytest.mark.parametrize("window", [1, 2, 12, 31])
@pytest.mark.parametrize("blocks", [1, 4])
def test_kinds_of_windows(window, blocks):
    """The first block counts as later ones, which have more noise, unless it is alone."""
    steps, rows = blocks * window, window_rows
    found = spread_of_window(window)(steps)
    expected = kinds_of(
        rows(steps + window, window)[window:] if blocks > 1 else rows(steps, window)
    )
    assert listed(found) == expected
    part = spread_of_window(window)(max(1, window // 2))
    assert listed(part) == kinds_of(rows(max(1, window // 2), window))


def test_factors():
    for steps in (1, 7, STEPS):
        found = spread(measure=ZCDP)(steps)
        lengths, _, squares = variances(buffered(STEPS), steps)
        assert found.sums.sum() == lengths.sum() == steps
        assert found.squares == pytest.approx(SCALE**2 * squares, rel=1e-5)
    window = of_factor(windowed(12, 2**50), SCALE, 40, 12)(60)
    expected = SCALE**2 * window_variance(windowed(12, 2**50), 12)
    assert window.squares == pytest.approx([expected], rel=1e-5)
    assert window.sums == 60


# --- tails ----------------------------------------------------------------------------------------


def test_tails_of_unequal_noises_are_above_the_truth():
    """Of scales 1 and 2: by partial fractions, (4 exp(-x/2) - exp(-x)) / 6."""
    found = Spread(np.array([1.0, 2.0]), np.ones((1, 2)), np.ones(1), np.zeros(1))
    for bound in (1.0, 5.0, 10.0, 30.0):
        exact = math.log((4 * math.exp(-bound / 2) - math.exp(-bound)) / 6)
        rough, fine = found._tails(np.array([bound]))
        assert exact <= fine[0] <= rough[0]
        assert fine[0] <= exact + (1.4 if bound > 4 else 2)


def law(scale, count, reach=400):
    """The exact law of a sum of discrete Laplace noises, by convolution."""
    places = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(places) / scale)
    one /= one.sum()
    found = np.ones(1)
    for _ in range(count):
        found = np.convolve(found, one)
    return found


@pytest.mark.parametrize(("scale", "count"), [(0.3, 3), (1.0, 2), (1.0, 12), (5.0, 1), (9.0, 5)])
def test_noise_on_the_integers_is_within_its_bound(scale, count):
    exact = law(scale, count)
    middle = len(exact) // 2
    for beta in (0.2, 0.05, 1e-4):
        found = of_nodes(scale, count)(1).largest(laplace=True, failing=beta)
        outside = 2 * exact[middle + math.floor(found) + 1 :].sum()
        assert outside <= beta * (1 + 1e-9)
        truth = next(m for m in range(middle) if 2 * exact[middle + m + 1 :].sum() <= beta)
        assert found <= 1.25 * truth + count + 1


def test_gaussian_noise_has_the_bound_of_its_variance():
    found = of_nodes(3.0, 4)(7).largest(laplace=False, failing=0.05)
    assert found == pytest.approx(6 * math.sqrt(2 * math.log(2 * 7 / 0.05)), rel=1e-5)
    assert found >= 6 * math.sqrt(2 * math.log(2 * 7 / 0.05))
    space = oc.integer_stream(0, 1), oc.event_presence()
    method = Plan(object, lambda events, moved: 0.0, None, of_nodes(3.0, 4))
    made = method.measurement(space, ZCDP, lambda state: state, 3.0, "five sums", sums=5)
    bound = 6 * math.sqrt(2 * math.log(2 * 35 / 0.05))
    assert made.accuracy(0.05, answers=7) == pytest.approx(bound, rel=1e-5)


# --- histograms: counts of categories, the largest of them, negative ones ------------------------

each_form = pytest.mark.parametrize("form", [{"horizon": 60}, {}], ids=str)


def histogram(categories=4, measure=PURE, scale=TINY, metric=oc.event_presence, **form):
    return oc.m.make_histogram_counter(
        oc.category_stream(categories), metric(), measure, scale, **form
    )


@each_form
@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
def test_counts_are_exact_without_noise(form, measure):
    generator = np.random.default_rng(1)
    stream = [None if one == 4 else one for one in generator.integers(0, 5, size=60).tolist()]
    handle, taken = histogram(measure=measure, **form)([]), 0
    while taken < 60:
        now = stream[taken : taken + int(generator.integers(0, 8))]
        if len(now) == 1:
            handle.update(now[0])
        else:
            handle.update_all(now if None in now else np.array(now, dtype=np.uint8))
        taken += len(now)
        assert handle(None) == [stream[:taken].count(category) for category in range(4)]


@each_form
def test_the_largest_come_first_and_ties_by_number(form):
    handle = histogram(**form)([])
    handle.update_all([3, 3, 1, 1, 0, None])
    assert handle(("top", 1)) == [(1, 2)]
    assert handle(("top", 3)) == [(1, 2), (3, 2), (0, 1)]
    assert handle(("top", 9)) == [(1, 2), (3, 2), (0, 1), (2, 0)]
    assert handle(None) == [1, 2, 0, 2]


@each_form
def test_negative_counts_stay(form):
    handle = histogram(200, scale=1e6, **form)([])
    handle.update(0)
    counts = handle(None)
    assert min(counts) < 0 < max(counts)
    assert len(set(counts)) > 150  # noise of their own
    assert all(type(one) is int for one in counts)


@pytest.mark.parametrize("d_in", [0, 1, 2, 3])
@pytest.mark.parametrize("horizon", [None, 1000])
def test_losses_of_histograms_against_their_formulas(d_in, horizon):
    nodes = 3 if horizon else 1
    for metric, parts in ((oc.event_presence, 1), (oc.event_change, 2)):
        pure = histogram(5, PURE, 20.0, metric, horizon=horizon)
        assert pure.map(d_in) == pytest.approx(d_in * nodes * parts / 20)
        zcdp = histogram(5, ZCDP, 20.0, metric, horizon=horizon)
        assert zcdp.map(d_in) == pytest.approx(parts * (d_in / 20) ** 2 / 2, rel=1e-3)


# --- categories with names: their streams, and the histograms of them --------------------------
COLORS = ["red", "green", "blue"]


@each_form
@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
def test_counts_are_told_by_name(form, measure):
    handle = histogram(COLORS, measure, **form)([])
    assert handle(None) == {"red": 0, "green": 0, "blue": 0}
    handle.update("blue")
    handle.update_all(["red", None, "blue"])
    handle.update_all(np.array(["blue", "green"]))
    assert handle.read() == {"red": 1, "green": 1, "blue": 3}
    assert handle(("top", 2)) == [("blue", 3), ("red", 1)]


@pytest.mark.parametrize("bad", ["black", 0, b"red", ["red"]])
def test_what_is_no_name_halts(bad):
    handle = histogram(COLORS)([])
    with pytest.raises(StreamHaltedError):
        handle.update(bad)
    for batch in ([bad, bad], np.array([0, 1])):
        handle = histogram(COLORS)([])
        with pytest.raises(StreamHaltedError):
            handle.update_all(batch)


def test_streams_of_other_names_are_other_domains():
    same = oc.category_stream(tuple(COLORS))
    assert oc.category_stream(COLORS) == same
    for other in (["red", "green"], ["green", "red", "blue"], ["red, green", "blue"]):
        assert oc.category_stream(other) != same
    many = [f"color {number}" for number in range(100)]  # more than a name shows
    assert oc.category_stream(many) != oc.category_stream(many[::-1])
    assert oc.category_stream(3) != same
