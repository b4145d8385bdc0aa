"""The noise in a counter's sums is bounded by what the methods put into them."""

import math

import numpy as np
import opendp.prelude as dp
import pytest

from opendp_concurrent.counters.accuracy import _doubling_total, nodes_of_sums
from opendp_concurrent.counters.digits import best_digits
from opendp_concurrent.counters.factors.buffered import buffered
from opendp_concurrent.counters.factors.factor_error import parameters, prefix_square, window_square
from opendp_concurrent.counters.factors.power import coefficients
from opendp_concurrent.counters.methods import factor_for, leaves_for, plan
from opendp_concurrent.counters.spread import Spread, of_factor, of_nodes
from opendp_concurrent.counters.window import METHODS, PLANS, factor_of_window
from opendp_concurrent.counters.window_digits import best_window_digits
from opendp_concurrent.exact.participations import ONCE, Participations

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SCALE, STEPS = 8.0, 100


def spread(method, horizon=STEPS, measure=PURE):
    return plan(method, horizon, SCALE, measure, shift=1, largest=1).spread


def rows(buffers, steps):
    """Rows of A C^-1, by solving."""
    delta, omega = parameters(buffers)
    c = [1.0, *(float(np.sum(omega * (1 - delta) ** k)) for k in range(steps - 1))]
    matrix = np.array([[c[i - j] if i >= j else 0.0 for j in range(steps)] for i in range(steps)])
    return np.tri(steps) @ np.linalg.inv(matrix)


def row_squares(factor, steps, window=None):
    """Squared norms of rows of A C^-1 for a power factor, by solving."""
    c = np.zeros(steps)
    entries = coefficients(factor.power, factor.bands, factor.fine) * 2.0**-factor.fine
    c[: len(entries)] = entries[:steps]
    matrix = np.array([[c[i - j] if i >= j else 0.0 for j in range(steps)] for i in range(steps)])
    sums = np.tri(steps) - (0 if window is None else np.tri(steps, k=-window))
    return np.square(sums @ np.linalg.inv(matrix)).sum(axis=1)


@pytest.mark.parametrize("method", ["tree", "smooth"])
def test_trees(method):
    leaves, _ = leaves_for(method, STEPS)
    most = max(nodes_of_sums(leaves(STEPS), STEPS))
    found = spread(method)(STEPS)
    assert SCALE**2 * most <= found.square <= SCALE**2 * (most + 1)
    assert found.top == SCALE
    if method == "tree":
        assert spread(method)(3).square == 2 * SCALE**2


def test_digits():
    digits = best_digits(STEPS)
    most = max(digits.nodes(step) for step in range(1, STEPS + 1))
    assert SCALE**2 * most <= spread("digits")(STEPS).square <= 2 * SCALE**2 * most


@pytest.mark.parametrize("measure", [PURE, ZCDP])
def test_doubling(measure):
    """The variance of each step is at most that of the spread; Laplace noise has two units."""
    unit = 2.0 if measure == PURE else 1.0
    totals = [_doubling_total(step, measure == PURE) for step in range(STEPS + 1)]
    most = max(np.diff(totals)) * SCALE**2
    found = spread("tree", None, measure)(STEPS)
    assert most <= unit * found.square <= 2 * most
    nodes = (STEPS + 1).bit_length() - 1
    top = 2 * nodes if measure == PURE else math.sqrt(2 * nodes)
    assert found.top == pytest.approx(top * SCALE)


def test_factors():
    exact = np.square(rows(buffered(STEPS).buffers, STEPS)).sum(axis=1)
    assert (np.diff(exact) > 0).all()
    for step in (1, 7, STEPS):
        assert prefix_square(*parameters(buffered(STEPS).buffers), step) == pytest.approx(
            exact[step - 1], rel=1e-9
        )
        found = spread("buffered", measure=ZCDP)(step)
        assert found.square == pytest.approx(SCALE**2 * exact[step - 1], rel=1e-5)
    for method in ("square_root", "banded"):
        exact = row_squares(factor_for(method, STEPS, ONCE), STEPS)
        for step in (1, 7, STEPS):
            found = spread(method, measure=ZCDP)(step)
            assert found.square == pytest.approx(SCALE**2 * exact[step - 1], rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_windows(method):
    window = 12
    unit = Participations(3, 5)
    if method in PLANS:
        found = PLANS[method](window, SCALE, PURE, 1, unit).spread(60)
    else:
        factor = factor_of_window(method, window, 2**50, unit)
        found = of_factor(factor, SCALE, 40, window)(60)
    if method == "digits":
        digits = best_window_digits(window)
        most = max(digits.window_nodes(place, window) for place in range(1, window + 1))
    elif method == "trees":
        most = max(
            place.bit_count() + (window - place).bit_count() for place in range(1, window + 1)
        )
    elif method == "banded":
        most = row_squares(factor, 60, window)
        assert found.square == pytest.approx(SCALE**2 * most[-1], rel=1e-5)
        most = most.max()
    else:
        prefixes = rows(buffered(window).buffers, 60)
        sums = prefixes[window:] - prefixes[:-window]
        most = np.square(sums).sum(axis=1).max()
        assert most <= window_square(*parameters(buffered(window).buffers), window) * 1.0001
    assert SCALE**2 * most <= found.square * 1.0001 <= 6 * SCALE**2 * most


def test_nodes_that_are_taken_twice():
    assert of_nodes(3.0, lambda steps: steps, most=2.0)(5) == Spread(45.0, 6.0)
