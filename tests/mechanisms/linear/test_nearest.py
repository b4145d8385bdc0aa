"""The nearest histogram: as near as another solver finds, with a gap that fractions confirm."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from opendp_concurrent.mechanisms import histogram as module
from opendp_concurrent.mechanisms.histogram import MOST_RECORDS, certify, nearest

BINARY = st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6)


def objective(histogram, answers, queries):
    return float(np.sum((queries @ histogram - answers) ** 2))


def by_slsqp(answers, queries, size):
    """SciPy's histogram, by another method, from several starts."""
    cells = queries.shape[1]
    starts = [np.full(cells, 1 / cells), *np.eye(cells)]
    target = answers / size
    found = [
        minimize(
            lambda w: float(np.sum((queries @ w - target) ** 2)),
            start,
            jac=lambda w: 2 * queries.T @ (queries @ w - target),
            bounds=[(0, 1)] * cells,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        for start in starts
    ]
    best = min((one for one in found if one.success), key=lambda one: one.fun)
    return size * best.x


def exact_gap(histogram, answers, queries, size):
    """The gap in fractions, and the squared distance."""
    h, y = [Fraction(x) for x in histogram.tolist()], [Fraction(x) for x in answers.tolist()]
    q = [[Fraction(x) for x in row] for row in queries.tolist()]
    r = [sum(a * b for a, b in zip(row, h, strict=True)) - c for row, c in zip(q, y, strict=True)]
    g = [sum(row[j] * one for row, one in zip(q, r, strict=True)) for j in range(len(h))]
    held = sum(a * b for a, b in zip(g, h, strict=True))
    away = -size * min(g) if size else Fraction(MOST_RECORDS) * max(Fraction(0), -min(g))
    return 2 * (held + away), sum(one * one for one in r)


def instance(seed, cells, count, noise, size=10):
    generator = np.random.default_rng(seed)
    queries = generator.random((count, cells))
    truth = generator.multinomial(size, np.full(cells, 1 / cells))
    return queries @ truth + noise * generator.normal(size=count), queries, truth


@given(*BINARY, st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=25)
def test_it_is_as_near_as_another_solver_finds(seed, cells, count, noise):
    answers, queries, _ = instance(seed, cells, count, noise)
    found = nearest(answers, queries, 10)
    assert found.histogram.min() >= 0.0
    assert found.histogram.sum() == pytest.approx(10, rel=1e-12)
    best = objective(by_slsqp(answers, queries, 10), answers, queries)
    mine = objective(found.histogram, answers, queries)
    assert found.gap < 1e-6 * (1 + best)
    assert best - 1e-5 * (1 + best) <= mine <= best + found.gap + 1e-12 * (1 + best)


@given(*BINARY, st.sampled_from([0.0, 1.0, 1e4]), st.booleans(), st.booleans())
@settings(max_examples=30)
def test_the_gap_is_above_that_in_fractions_for_any_histogram(
    seed, cells, count, noise, known, good
):
    """Whatever histogram was found: a bad solver is told of, and never trusted."""
    answers, queries, truth = instance(seed, cells, count, noise)
    size = 10 if known else None
    if good:
        found = nearest(answers, queries, size)
    else:
        bad = np.random.default_rng(seed).random(cells)
        found = certify(10 * bad / bad.sum(), answers, queries, size)
    gap, distance = exact_gap(found.histogram, answers, queries, size)
    assert gap <= Fraction(found.gap)
    assert Fraction(found.gap) <= gap * Fraction(1000001, 1000000) + Fraction(1, 100)
    assert not found.never_worse or gap <= distance
    if found.never_worse:
        error = objective(found.histogram, queries @ truth, queries)
        assert error <= float(np.sum((answers - queries @ truth) ** 2)) * (1 + 1e-12)


def test_a_bad_histogram_is_not_trusted():
    answers, queries = np.array([1.0, 2.0, 2.0]), np.eye(3)
    found = certify(np.array([5.0, 0.0, 0.0]), answers, queries, 5)
    # r = (4, -2, -2): G = 2 (20 + 10) = 60, |r|² = 24
    assert found.gap == pytest.approx(60.0)
    assert not found.never_worse


def test_known_histograms():
    line = np.eye(2)
    for answers, expected in (([3.0, 7.0], [3.0, 7.0]), ([5.0, 9.0], [3.0, 7.0])):
        assert nearest(np.array(answers), line, 10).histogram == pytest.approx(expected)
    assert nearest(np.array([30.0, 7.0]), line, 10).histogram == pytest.approx([10.0, 0.0])
    queries = np.array([[0.0, 0.5, 1.0]])
    assert nearest(np.array([-99.0]), queries, 10).histogram == pytest.approx([10.0, 0.0, 0.0])
    assert nearest(np.array([4.0]), np.array([[0.7]]), 10).histogram == pytest.approx([10.0])
    assert nearest(np.array([4.0, -1.0]), line, None).histogram == pytest.approx([4.0, 0.0])
    assert nearest(np.array([0.0, 0.0]), line, None).histogram.tolist() == [0.0, 0.0]
    zeros = nearest(np.zeros(2), np.zeros((2, 3)), 10)
    assert zeros.histogram.sum() == pytest.approx(10)


def test_answers_that_a_histogram_explains_are_not_called_projected():
    """The distance is below what floats can tell."""
    found = nearest(np.array([3.0, 4.0]), np.eye(2), None)
    assert found.histogram == pytest.approx([3.0, 4.0])
    assert not found.never_worse


def test_a_solver_that_gives_up_is_told_of(monkeypatch):
    def gives_up(*arguments):
        raise RuntimeError("too many iterations")

    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    monkeypatch.setattr(module, "_polish", lambda histogram, *rest: histogram)
    found = nearest(np.array([9.0, 1.0]), np.eye(2), 10)
    assert found.histogram.tolist() == [5.0, 5.0]
    assert found.gap == pytest.approx(80.0)  # r = (-4, 4): 2 (0 + 10 * 4)
    assert not found.never_worse


@pytest.mark.parametrize(("count", "cells", "size"), [(300, 64, 10_000), (400, 200, None)])
def test_the_gap_is_small(count, cells, size):
    generator = np.random.default_rng(3)
    queries = generator.integers(0, 2, (count, cells)) / 16
    truth = generator.multinomial(10_000, generator.dirichlet(np.full(cells, 0.1)))
    answers = queries @ truth + generator.normal(size=count)
    found = nearest(answers, queries, size)
    distance = objective(found.histogram, answers, queries)
    assert found.gap < 1e-4 * distance
    assert found.never_worse
