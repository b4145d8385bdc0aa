"""Errors of power factors against dense matrices, and the factors that are chosen."""

from math import sqrt

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.counters.factors.power import PowerFactor, coefficients
from opendp_concurrent.counters.factors.power_error import (
    best_power,
    mean_row_square,
    row_square,
    window_square,
)
from opendp_concurrent.exact.participations import Participations


def rows(factor, steps, window=None):
    """The squared row norms of sums times C^-1, densely."""
    c = coefficients(factor.power, factor.bands, factor.fine) * 2.0**-factor.fine
    c = np.concatenate([c, np.zeros(steps)])[:steps]
    matrix = np.array([[c[t - j] if t >= j else 0.0 for j in range(steps)] for t in range(steps)])
    sums = np.tri(steps) if window is None else np.tri(steps) - np.tri(steps, k=-window)
    return np.square(sums @ np.linalg.inv(matrix)).sum(1)


@pytest.mark.parametrize(("power", "bands"), [(32, 200), (40, 30), (64, 7), (20, 1)])
def test_errors_are_those_of_the_matrix(power, bands):
    factor = PowerFactor(200, power, bands)
    exact = rows(factor, 200)
    assert row_square(factor, 200) == pytest.approx(exact[-1], rel=1e-9)
    assert row_square(factor, 77) == pytest.approx(exact[76], rel=1e-9)
    assert mean_row_square(factor, 200) == pytest.approx(exact.mean(), rel=1e-9)


def test_settled_sums_go_on_evenly():
    factor = PowerFactor(20_000, 40, 30)
    entries, sums = [], 0.0
    c = coefficients(40, 30, factor.fine) * 2.0**-factor.fine
    for _ in range(20_000):
        past = entries[-29:][::-1]
        entries.append(1.0 - float(np.dot(c[1 : len(past) + 1], past)))
        sums += entries[-1] ** 2
    assert row_square(factor, 20_000) == pytest.approx(sums, rel=1e-9)


@pytest.mark.parametrize(("power", "bands", "window"), [(32, 28, 28), (50, 7, 30), (56, 3, 1)])
def test_windows_are_those_of_the_matrix(power, bands, window):
    factor = PowerFactor(2**50, power, bands)
    assert window_square(factor, window) == pytest.approx(rows(factor, 900, window)[-1], rel=1e-6)


def test_long_windows_are_longer_short_ones():
    factor = PowerFactor(2**50, 40, 30)
    near, far = window_square(factor, 6000), window_square(factor, 6001)
    more = row_square(factor, 6001) - row_square(factor, 6000)
    assert far - near == pytest.approx(more, rel=1e-6)


@pytest.mark.parametrize(
    ("steps", "most", "apart", "theirs"),
    [  # jax_privacy 2.0.0: toeplitz.optimize_banded_toeplitz, and banded.optimize
        (2048, 4, 512, 6.8846),
        (2048, 16, 128, 17.1371),
        (365, 52, 7, 40.0075),
        (365, 12, 30, 11.8939),
    ],
)
def test_errors_are_within_3_percent_of_the_best_known(steps, most, apart, theirs):
    found = oc.m.counter_rmse(steps, participations=most, separation=apart)
    assert found <= 1.03 * theirs


def test_more_bands_than_steps_apart_where_units_seldom_return():
    assert best_power(2048, Participations(2, 64)).bands > 64
    assert best_power(2048, Participations(16, 128)).bands == 128
    chosen = best_power(100, Participations(3, 10))
    error = sqrt(chosen.norm_squared(30, Participations(3, 10)) * mean_row_square(chosen, 100))
    for power in range(1, 57):
        for bands in (5, 10, 20, 50, 100):
            factor = PowerFactor(100, power, bands)
            square = factor.norm_squared(30, Participations(3, 10))
            assert error <= 1.002 * sqrt(square * mean_row_square(factor, 100))
