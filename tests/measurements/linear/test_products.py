"""Products of workloads: sensitivities by enumeration, covariances, and optima of products."""

from itertools import product
from math import sqrt

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measurements.linear.products import Products, ProductStrategies
from opendp_concurrent.strategies.optimum import optimum

from .test_strategy import CHANGES, released, size

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ZCDP = dp.zero_concentrated_divergence()
KNOWN = {
    "prefixes": [np.tri(4), np.tri(3)],
    "with a total": [np.tri(5), np.ones((1, 3))],
    "with cells that are equal, or in no query": [np.tri(2).repeat(2, axis=1), np.eye(3)[:2]],
    "one factor": [np.tri(6)],
    "with products of columns below 0": [
        np.array([[0.0, 1, 1], [0, 1, 1], [0, 0, 1], [1, 1, 0], [1, 0, 0]]),
        np.tri(2),
    ],
    "three": [np.eye(2), np.tri(3), np.array([[1.0, 0.5], [0.25, 1.0]])],
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("name", KNOWN)
def test_strategies_are_unbiased_and_cost_and_err_as_stated(name, change):
    factors = KNOWN[name]
    work = np.ones((1, 1))
    for factor in factors:
        work = np.kron(work, factor)
    strategies = ProductStrategies(Products(factors), change)
    assert strategies.count == len(work)
    for strategy in strategies.names:
        try:
            one = strategies(strategy)
        except np.linalg.LinAlgError:  # coarse rounding made columns equal: no candidate
            assert strategy == "p-identity"
            continue
        matrix = released(one, work.shape[1])
        columns = [*matrix.T, np.zeros(len(matrix))]
        moves = [a - b for a, b in product(columns, columns)] if change.changed else columns
        most = max(size(moved, change.laplace) for moved in moves)
        assert most <= one.length ** (1 if change.laplace else 2) <= 4 * float(most)
        if not change.changed:
            power = 1 if change.laplace else 2
            assert one.length**power == pytest.approx(float(most), rel=1e-12)
        decoder = np.array([one.decode(unit) for unit in np.eye(len(matrix))]).T
        assert decoder @ matrix == pytest.approx(work, abs=1e-7)
        assert np.linalg.norm(decoder, axis=1) == pytest.approx(
            np.repeat(one.shape.norms, one.shape.repeated), abs=1e-9
        )


def test_a_product_of_optima_is_the_optimum():
    """8 x 8 prefixes: 2.233273, and the fixed point on all 64 cells agrees."""
    found = ProductStrategies(Products([np.tri(8), np.tri(8)]), CHANGES[0])("optimum")
    known = optimum(np.kron(np.tri(8), np.tri(8)))
    error = found.length * sqrt(found.shape.trace / 64)
    assert known.least / 8 <= error <= 1.015 * 2.233273


@pytest.mark.parametrize("measure", [ZCDP, dp.max_divergence()])
def test_answers_of_a_measurement(measure):
    factors = [np.tri(4), np.eye(5)[:3]]
    data = np.random.default_rng(0).integers(0, 20, 300).tolist()
    truth = np.kron(*factors) @ np.bincount(data, minlength=20)
    for d_out, off in ((1e9, 1e-2), (0.5, None)):
        made = oc.m.make_linear_queries(*SPACE, measure, 1, d_out, 20, Products(factors))
        most = made.accuracy(1e-10) if off is None else off
        assert np.abs(made(data).values - truth).max() <= most
        assert made.map(1) <= d_out


@pytest.mark.parametrize(
    ("factors", "error", "match"),
    [
        ([], InvalidValueError, "^factors must be at least 1"),
        ([np.eye(2)] * 6, InvalidValueError, "^factors must be at least 1 and at most 5"),
        ([np.ones(3)], InvalidValueError, r"^factors\[0\] must be a matrix"),
        ([np.eye(2), [[2.0]]], InvalidValueError, r"^factors\[1\]"),
        ([[["a"]]], InvalidTypeError, r"^factors\[0\]"),
        ([np.ones((1, 5000))], InvalidValueError, r"^factors\[0\]"),
        ([np.ones((1, 4096))] * 3, InvalidValueError, "^factors"),
        ([np.ones((4097, 1)), np.ones((4096, 1))], InvalidValueError, "^factors .* 2.24"),
        (3, InvalidTypeError, "^factors"),
    ],
)
def test_bad_input(factors, error, match):
    with pytest.raises(error, match=match):
        Products(factors)


def test_another_universe_is_refused():
    with pytest.raises(InvalidValueError, match="^queries must be on the 25 cells"):
        oc.m.make_linear_queries(*SPACE, ZCDP, 1, 0.5, 25, Products([np.eye(4)]))


@pytest.mark.parametrize(
    "factors",
    [
        [np.tri(8), np.ones((1, 5)), np.tri(8)],
        [np.tri(8)[::2]] * 3,
        [np.tri(4), np.array([[1.0, 0, 0.5], [0, 1, 0.5]]), np.tri(4)],
    ],
)
def test_cells_that_factors_do_not_tell_apart_do_not_lose_the_optimum(factors):
    least = np.prod([optimum(one, 1.001).least / sqrt(len(one)) for one in factors])
    queries = Products(factors)
    plan = oc.m.make_linear_queries(*SPACE, ZCDP, 1, 0.5, queries.cells, queries).plan
    assert plan.method == "optimum"
    assert least * (1 - 1e-9) <= plan.promise.root_mean_square <= 1.05 * least
