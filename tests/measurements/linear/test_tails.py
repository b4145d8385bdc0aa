"""Tails of noise on linear queries, against simulations and closed forms."""

import math

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm

from opendp_concurrent.measurements.linear.tails import LaplaceTails, NormalTails, Shape

RUNS, BETA, ODDS = 4_000, 0.2, 1e-10
NOISE = {"normal": (NormalTails(), norm), "Laplace": (LaplaceTails(), laplace)}
FAILURES = binom.isf(ODDS, RUNS, BETA)


def matrices():
    generator = np.random.default_rng(1)
    yield np.tri(12)
    yield generator.integers(0, 2, (30, 8)).astype(float)
    yield generator.random((3, 40)) - 0.5
    yield np.zeros((2, 2))


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("matrix", list(matrices()), ids=["prefixes", "binary", "signed", "zeros"])
def test_bounds_hold_as_often_as_they_say(name, matrix):
    tails, law = NOISE[name]
    shape = Shape.of(matrix)
    draws = law.rvs(size=(RUNS, matrix.shape[1]), random_state=2) @ matrix.T
    largest = np.abs(draws).max(axis=1)
    assert np.sum(largest > tails.largest(shape, BETA) + 1e-12) <= FAILURES
    assert largest.mean() <= tails.expected(shape) + 1e-12
    # neither are they far too large
    assert tails.largest(shape, BETA) <= 2.5 * np.quantile(largest, 1 - BETA) + 1e-12


@pytest.mark.parametrize("name", NOISE)
def test_the_largest_of_independent_draws_is_exact(name):
    tails, law = NOISE[name]
    for count, beta in ((1, 0.05), (7, 0.3), (1000, 1e-9)):
        bound = tails.largest_of(count, beta)
        inside = -math.expm1(count * math.log1p(-2 * law.sf(bound)))
        assert inside == pytest.approx(beta, rel=1e-6)
        assert inside <= beta


@pytest.mark.parametrize("name", NOISE)
def test_the_energy_of_a_projection(name):
    tails, law = NOISE[name]
    basis = np.linalg.qr(np.random.default_rng(3).normal(size=(20, 5)))[0]
    draws = np.square(law.rvs(size=(RUNS, 20), random_state=4) @ basis).sum(axis=1)
    bound = tails.energy(5, BETA)
    assert np.sum(draws > bound) <= FAILURES
    assert bound <= 2.5 * np.quantile(draws, 1 - BETA)
    assert draws.mean() == pytest.approx(5 * tails.variance, rel=0.15)


def test_repeated_rows_are_rows():
    both = np.vstack([np.ones((9, 4)), np.eye(4)])
    for tails, _ in NOISE.values():
        long = Shape.of(both)
        short = Shape(np.array([2.0, 1.0]), 1.0, np.array([9, 4]))
        assert short.rows == long.rows == 13
        assert short.trace == pytest.approx(long.trace)
        assert tails.largest(short, 0.1) == pytest.approx(tails.largest(long, 0.1), rel=1e-8)
        assert tails.expected(short) == pytest.approx(tails.expected(long))


def test_a_product_has_the_shape_of_its_rows(monkeypatch):
    monkeypatch.setattr("opendp_concurrent.measurements.linear.tails.CHUNK", 7)
    left, right = np.random.default_rng(0).normal(size=(2, 5, 5))
    found, known = Shape.of_product(left, right), Shape.of(left @ right)
    assert found.norms == pytest.approx(known.norms)
    assert found.top == pytest.approx(known.top)


def test_independent_rows_have_the_product_of_their_probabilities():
    for tails, _ in NOISE.values():
        one = Shape(np.ones(1), 1.0, 9, independent=True)
        assert tails.largest(one, 0.1) == tails.largest_of(9, 0.1)


def test_closed_forms():
    """A single row of norm 1 under normal noise is one draw."""
    one = Shape.of(np.array([[0.6, 0.8]]))
    assert NormalTails().largest(one, 0.05) == pytest.approx(1.959963984540054, rel=1e-8)
    assert NormalTails().largest_of(1, 0.05) == pytest.approx(1.959963984540054, rel=1e-8)
    assert LaplaceTails().largest_of(1, 0.05) == pytest.approx(math.log(20), rel=1e-8)
    assert NormalTails().energy(1, 0.05) == pytest.approx(1.959963984540054**2, rel=1e-8)
