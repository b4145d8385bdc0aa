"""Marginals in closed form: sensitivities by enumeration, covariances, and the dense optimum."""

from itertools import combinations, product
from math import prod, sqrt

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measurements.linear import marginals as module
from opendp_concurrent.measurements.linear.marginals import Marginals, MarginalStrategies
from opendp_concurrent.measurements.linear.strategy import Change
from opendp_concurrent.strategies.optimum import optimum

from .test_strategy import CHANGES, released, size

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ZCDP = dp.zero_concentrated_divergence()
KNOWN = {
    "pairs of bits": Marginals((2,) * 4, list(combinations(range(4), 2))),
    "mixed": Marginals((3, 4, 2), [(0, 1), (1, 2), (2,)]),
    "with the total": Marginals((2, 5), [(), (0,), (0, 1)]),
    "an attribute of one value": Marginals((1, 3), [(0,), (0, 1)]),
    "a triple": Marginals((2, 3, 2, 2), [(0, 1, 3), (1, 2)]),
}


def matrix_of(marginals):
    """The queries as rows, from their definition."""
    cells = list(product(*map(range, marginals.sizes)))
    return np.array(
        [
            [all(cell[a] == v for a, v in zip(one, values, strict=True)) for cell in cells]
            for one in marginals.sets
            for values in product(*(range(marginals.sizes[a]) for a in one))
        ],
        dtype=float,
    )


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("name", KNOWN)
def test_strategies_are_unbiased_and_cost_and_err_as_stated(name, change):
    marginals = KNOWN[name]
    work, strategies = matrix_of(marginals), MarginalStrategies(marginals, change)
    cells = prod(marginals.sizes)
    assert strategies.count == len(work) == marginals.queries
    for one in map(strategies, strategies.names):
        matrix = released(one, cells)
        columns = [*matrix.T, np.zeros(len(matrix))]
        moves = [a - b for a, b in product(columns, columns)] if change.changed else columns
        most = max(size(moved, change.laplace) for moved in moves)
        assert most <= one.length ** (1 if change.laplace else 2) <= 2.0000001 * float(most)
        if change.changed and one.name == "optimum":
            assert one.length**2 == pytest.approx(float(most), rel=1e-12)
        decoder = np.array([one.decode(unit) for unit in np.eye(len(matrix))]).T
        assert decoder @ matrix == pytest.approx(work, abs=1e-9)
        norms = np.repeat(one.shape.norms, one.shape.repeated)
        assert np.linalg.norm(decoder, axis=1) == pytest.approx(norms, abs=1e-9)
        assert np.abs(decoder).max() <= one.shape.top + 1e-12


@pytest.mark.parametrize("name", KNOWN)
def test_the_closed_form_is_the_optimum(name):
    work, strategies = matrix_of(KNOWN[name]), MarginalStrategies(KNOWN[name], CHANGES[0])
    found, known = strategies("optimum"), optimum(work, 1.0001)
    error = found.length * sqrt(found.shape.trace)
    assert known.least * (1 - 1e-9) <= error <= 1.0002 * known.reached


def test_numbers_of_large_universes():
    """2^16 cells: 4.4028 for pairs and 6.3208 for triples of bits; 8,960,000 cells: 3.2679."""
    sizes = (10, 16, 2, 5, 100, 7, 4, 2)
    for shape, ways, error in (((2,) * 16, 2, 4.4028), ((2,) * 16, 3, 6.3208), (sizes, 2, 3.2679)):
        sets = list(combinations(range(len(shape)), ways))
        strategies = MarginalStrategies(Marginals(shape, sets), CHANGES[0])
        found = strategies("optimum")
        mean = found.length * sqrt(found.shape.trace / strategies.count)
        assert mean == pytest.approx(error, abs=2e-4)


def test_rounding_is_fine_where_weights_differ_much():
    marginals = Marginals((300, 300), [(), (0,), (0, 1)])
    found = MarginalStrategies(marginals, CHANGES[0])("optimum")
    gains = {(): 90601 / 1.0, (0,): 301.0, (1,): 1.0, (0, 1): 1.0}  # g_S, over N for the total
    gains = {(): 90000 + 300 + 1, (0,): 300 + 1, (1,): 1, (0, 1): 1}
    total = sum(299 ** len(s) * sqrt(g) for s, g in gains.items())
    assert found.length * sqrt(found.shape.trace) <= 1.01 * total / 300


def test_many_attributes_have_a_bound(monkeypatch):
    exact = MarginalStrategies(KNOWN["mixed"], Change(laplace=False, changed=True))("optimum")
    monkeypatch.setattr(module, "PATTERNS", 0)
    bound = MarginalStrategies(KNOWN["mixed"], Change(laplace=False, changed=True))("optimum")
    assert exact.length <= bound.length


@pytest.mark.parametrize("method", ["histogram", "queries", "optimum"])
def test_answers_of_a_measurement(method):
    marginals = KNOWN["mixed"]
    data = np.random.default_rng(0).integers(0, 24, 500).tolist()
    made = oc.m.make_linear_queries(*SPACE, ZCDP, 1, 1e9, 24, marginals, method=method)
    truth = matrix_of(marginals) @ np.bincount(data, minlength=24)
    assert made(data).values == pytest.approx(truth, abs=1e-2)
    assert made.map(1) <= 1e9
    large = made([0] * 3 + [30])  # a record in no cell
    assert large.values.sum() == pytest.approx(3 * len(marginals.sets), abs=1e-2)
    noisy = oc.m.make_linear_queries(*SPACE, ZCDP, 1, 0.5, 24, marginals, method=method)
    assert np.abs(noisy(data).values - truth).max() <= noisy.accuracy(1e-10)


def test_counts_of_an_engine_beyond_doubles_are_exact_and_clamped():
    """Sums above 2^52 steps: the product in pieces is that of fractions, clamped."""
    one = MarginalStrategies(KNOWN["mixed"], CHANGES[0])("optimum")
    counts = np.zeros(24)
    counts[5] = 2.0**40
    found, column = one.product(counts), one.product(np.eye(24)[5])
    assert found == pytest.approx(np.clip(column * 2.0**40, -(2.0**31), 2.0**31), rel=1e-12)
    counts[5] = 2.0**28
    assert (one.product(counts) == column * 2.0**28).all()


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (((), ()), InvalidValueError, "^sizes and sets"),
        (((2,), ()), InvalidValueError, "^sizes and sets"),
        (((0,), ((0,),)), InvalidValueError, "^sizes"),
        (((2, 2), ((1, 0),)), InvalidValueError, "^sets must have increasing"),
        (((2, 2), ((0, 0),)), InvalidValueError, "^sets must have increasing"),
        (((2, 2), ((2,),)), InvalidValueError, "^sets must have increasing"),
        (((2, 2), ((0.5,),)), InvalidTypeError, "^sets"),
        (((2, 2), (0,)), InvalidTypeError, "^sets"),
        ((2, ((0,),)), InvalidTypeError, "^sizes"),
        (((2**13, 2**13), ((0, 1),)), InvalidValueError, "^sizes"),
    ],
)
def test_bad_input(arguments, error, match):
    with pytest.raises(error, match=match):
        Marginals(*arguments)


def test_another_universe_is_refused():
    with pytest.raises(InvalidValueError, match="^queries must be on the 25 cells"):
        oc.m.make_linear_queries(*SPACE, ZCDP, 1, 0.5, 25, KNOWN["mixed"])


def test_attributes_of_one_value_cost_nothing():
    """40 of them would have 2^43 tables below one."""
    queries = Marginals((1,) * 40 + (2,) * 3, [tuple(range(43))])
    assert queries.queries == 8
    assert MarginalStrategies(queries, Change(laplace=False, changed=False)).names[-1] == "optimum"


def test_too_many_tables_below_others_have_no_optimum():
    """A table of 24 bits has 2^24 below it, and is planned at once without them."""
    queries = Marginals((2,) * 24, [tuple(range(24))])
    found = MarginalStrategies(queries, Change(laplace=False, changed=False))
    assert found.names == ("histogram", "queries")
