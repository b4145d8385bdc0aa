"""The noise in a counter's sums: kinds against all steps, tails against exact laws and runs."""

import math
from collections import Counter

import numpy as np
import opendp.prelude as dp
import pytest

from opendp_concurrent.streams.counter import Spread, accuracy_of_steps, of_factor, plan
from opendp_concurrent.streams.digits import best_digits, epochs
from opendp_concurrent.streams.factors import buffered, variances, window_variance, windowed
from opendp_concurrent.streams.window import _plan

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SCALE, STEPS = 8.0, 100


def spread(horizon=STEPS, measure=PURE):
    return plan(horizon, SCALE, measure, shift=1, largest=1).spread


def spread_of_window(window):
    return _plan(window, SCALE, PURE, 1, 1).spread


def of_nodes(scale, most):
    """Sums of so many nodes."""
    return lambda answers: Spread.of([scale], {(most,): answers})


# --- kinds: each sum's noises, by name of the node -----------------------------------------------


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


def test_one_kind_of_equal_noises_is_exact_on_the_reals():
    """Against numerical integration: the sum of 2 has the density (1 + x) exp(-x)/4."""
    for bound in (0.5, 3.0, 20.0):
        one, two = (
            Spread(np.ones(1), np.array([[n]]), np.ones(1), np.zeros(1))._tails(np.array([bound]))[
                1
            ]
            for n in (1.0, 2.0)
        )
        assert one == pytest.approx(-bound - math.log(2))
        assert two == pytest.approx(math.log((2 + bound) / 4) - bound)


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
    parts = accuracy_of_steps(of_nodes(3.0, 4), False, 3.0, None, parts=5).at(0.05, 7)
    assert parts == pytest.approx(6 * math.sqrt(2 * math.log(2 * 35 / 0.05)), rel=1e-5)
