"""Strategies: sensitivities by enumeration, covariances by matrices, and exact products."""

from fractions import Fraction
from itertools import product

import numpy as np
import opendp.prelude as dp
import pytest

from opendp_concurrent.measurements.linear import noise_of
from opendp_concurrent.measurements.linear import strategy as module
from opendp_concurrent.measurements.linear.histogram import BITS, Universe, make_histogram
from opendp_concurrent.measurements.linear.strategy import Change, DenseStrategies
from opendp_concurrent.measures import composition_measure

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def sized(size):
    return dp.vector_domain(dp.atom_domain(T=int), size=size), dp.change_one_distance()


CHANGES = [Change(laplace, changed) for laplace in (False, True) for changed in (False, True)]
GENERATOR = np.random.default_rng(0)
WORKLOADS = {
    "prefixes": np.tri(6),
    "repeated cells": np.tri(3).repeat(3, axis=1),
    "a cell in no query": np.hstack([np.zeros((4, 1)), np.tri(4)]),
    "more queries than cells": GENERATOR.integers(0, 2, (12, 4)).astype(float),
    "few queries": np.rint(GENERATOR.random((2, 9)) * 2**20) / 2**20,
    "one": np.ones((1, 1)),
    "all": np.ones((2, 4)),
    "nothing": np.zeros((2, 3)),
}


def released(strategy, cells):
    """The matrix of a strategy, from its products with the unit histograms."""
    return np.array([strategy.product(unit) for unit in np.eye(cells)]).T


def size(moved, laplace):
    """The norm in L1, or squared in L2, exactly."""
    exact = [Fraction(one) for one in moved.tolist()]
    return sum(map(abs, exact)) if laplace else sum(one * one for one in exact)


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_length_is_that_of_the_most_a_record_changes(name, change):
    """... over all pairs of neighbours, exactly; a record in no cell moves one column only."""
    work = WORKLOADS[name]
    strategies = DenseStrategies(work, change, sized=False)
    for one in map(strategies, strategies.names):
        columns = [*released(one, work.shape[1]).T, np.zeros_like(one.product(work[0] * 0))]
        moves = [a - b for a, b in product(columns, columns)] if change.changed else columns
        most = max(size(moved, change.laplace) for moved in moves)
        length = Fraction(one.length) ** (1 if change.laplace else 2)
        assert most <= length
        if one.name != "histogram" or "no query" not in name:
            assert length <= most * (1 + Fraction(1, 2**50))
        assert all((column * 2**BITS == np.rint(column * 2**BITS)).all() for column in columns)


@pytest.mark.parametrize("change", CHANGES[::2], ids=str)
@pytest.mark.parametrize("name", WORKLOADS)
def test_answers_are_unbiased_and_have_the_covariance_that_is_stated(name, change):
    work = WORKLOADS[name]
    strategies = DenseStrategies(work, change, sized=True)
    for one in map(strategies, strategies.names):
        matrix = released(one, work.shape[1])
        decoder = np.array([one.decode(unit) for unit in np.eye(len(matrix))]).T
        assert decoder @ matrix == pytest.approx(work, abs=1e-8)
        norms = np.broadcast_to(one.shape.norms, one.shape.rows)
        if one.shape.independent:
            assert (decoder == np.eye(len(work))).all()
            norms = np.ones(len(work))
        assert np.linalg.norm(decoder, axis=1) == pytest.approx(norms, abs=1e-9)
        centred = strategies.work - strategies.work.mean(axis=1, keepdims=True)
        known = np.linalg.norm(centred.T @ decoder, axis=1)
        assert one.spread is not None
        assert np.sort(one.spread.norms) == pytest.approx(np.sort(known), abs=1e-6)


@pytest.mark.parametrize("laplace", [False, True])
def test_differences_of_many_columns_are_bounded(monkeypatch, laplace):
    """... by norms, where there are too many pairs to compare."""
    change = Change(laplace, changed=True)
    signed = np.rint((GENERATOR.random((5, 7)) - 0.5) * 2**20) / 2**20
    for matrix in (signed, np.abs(signed)):
        exact = change.length_of(matrix)
        with monkeypatch.context() as patched:
            patched.setattr(module, "PAIRS", 0)
            bound = change.length_of(matrix)
        assert exact <= bound <= 2.0 * Change(laplace, changed=False).length_of(matrix) * 1.000001


def test_a_strategy_for_gaussian_noise_is_the_optimum():
    """64 prefixes: rounding to 2^-20 costs less than a part of 10^-4."""
    strategies = DenseStrategies(np.tri(64), CHANGES[0], sized=False)
    found = strategies("optimum")
    error = found.length * np.sqrt(found.shape.trace / 64)
    assert 2.099855 <= error <= 1.0051 * 2.099855


def test_rounding_that_leaves_no_inverse_is_refused(monkeypatch):
    monkeypatch.setattr(module, "UNBIASED", 0.0)
    with pytest.raises(np.linalg.LinAlgError, match="is not inverted"):
        DenseStrategies(np.tri(9), CHANGES[0], sized=False)("tree")


@pytest.mark.parametrize("measure", [dp.max_divergence(), dp.zero_concentrated_divergence()])
def test_the_noise_of_a_measure(measure):
    """Norms of a column, and the scale for a loss of 1/2, by hand."""
    own = composition_measure(measure)
    changed = make_histogram(*sized(9), Universe(3)).output_space
    added = make_histogram(*SPACE, Universe(3)).output_space
    laplace = noise_of.has_laplace(own)
    assert noise_of.column_norm(added, own, 3.0, 2.0) == pytest.approx(6.0)
    assert noise_of.column_norm(changed, own, 3.0, 2.0) == pytest.approx(
        12.0 if laplace else 6.0 * np.sqrt(2)
    )
    assert noise_of.column_norm(added, own, 0.0, 2.0) == 0.0
    assert noise_of.scale_for(own, 3.0, 0.5) == pytest.approx(6.0 if laplace else 3.0)
    assert noise_of.tails_of(own).variance == (2.0 if laplace else 1.0)
