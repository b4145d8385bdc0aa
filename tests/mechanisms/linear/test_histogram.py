"""Histograms of datasets and linear queries on them, by brute force and exactly."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from operator import mul

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.mechanisms.histogram import (
    LinearQuery,
    Universe,
    make_histogram,
    public_size,
    size_if_public,
)
from opendp_concurrent.mechanisms.linear_answers import Batch

from ...build import SPACE, ZCDP

WHOLE = dp.atom_domain(T=int)
CELLS = 2
RECORDS = range(-1, CELLS + 1)  # two values are in no cell
GRID = Fraction(1, 2**20)


# --- distances of datasets, from their definitions ---------------------------------------------


def symmetric(x, y):
    more, less = Counter(x), Counter(y)
    return sum(((more - less) + (less - more)).values())


@cache
def insert_delete(x, y):
    if not x or not y:
        return len(x) + len(y)
    if x[0] == y[0]:
        return insert_delete(x[1:], y[1:])
    return 1 + min(insert_delete(x[1:], y), insert_delete(x, y[1:]))


def hamming(x, y):
    return sum(a != b for a, b in zip(x, y, strict=True)) if len(x) == len(y) else None


def change_one(x, y):
    return symmetric(x, y) // 2 if len(x) == len(y) else None


METRICS = {
    "symmetric": (dp.symmetric_distance(), symmetric),
    "insert-delete": (dp.insert_delete_distance(), insert_delete),
    "change-one": (dp.change_one_distance(), change_one),
    "Hamming": (dp.hamming_distance(), hamming),
}
SPACES = pytest.mark.parametrize("sized", [False, True])
EACH_METRIC = pytest.mark.parametrize("metric", list(METRICS))


def histogram_of(metric, sized, cells=CELLS, size=3):
    domain = dp.vector_domain(WHOLE, size=size) if sized else dp.vector_domain(WHOLE)
    return make_histogram(domain, METRICS[metric][0], Universe(cells))


def histograms(metric, sized):
    """All pairs of histograms of small datasets, and how far the datasets are apart."""
    distance, sizes = METRICS[metric][1], [3] if sized else [0, 1, 2]
    ordered, cells = metric in ("insert-delete", "Hamming"), Universe(CELLS)
    datasets = [
        one
        for size in sizes
        for one in (
            product(RECORDS, repeat=size)
            if ordered
            else combinations_with_replacement(RECORDS, size)
        )
    ]
    return {
        (tuple(cells.count(x).tolist()), tuple(cells.count(y).tolist()), apart)
        for x, y in product(datasets, repeat=2)
        if (apart := distance(x, y))
    }


def exact(values, histogram):
    return sum(Fraction(v) * int(h) for v, h in zip(values, histogram, strict=True))


QUERIES = [np.array(one) for one in product((0.0, float(GRID), 0.333333, 1.0), repeat=CELLS)]


@EACH_METRIC
@SPACES
def test_linear_queries_move_by_no_more_than_the_distance(metric, sized):
    made = histogram_of(metric, sized)
    universe, pairs, reached = Universe(CELLS), histograms(metric, sized), {}
    bounds = {apart: Fraction(made.map(apart)) for _, _, apart in pairs}
    for query in QUERIES:
        values = universe.vector(query)
        truth = {one: exact(values, one) for pair in pairs for one in pair[:2]}
        for histogram, total in truth.items():
            assert Fraction(LinearQuery(values)(np.array(histogram))) == total
        for first, second, apart in pairs:
            moved = abs(truth[first] - truth[second])
            assert moved <= bounds[apart], (first, second, apart)
            reached[apart] = max(reached.get(apart, 0), moved)
    assert len(reached) >= 2
    for apart, moved in reached.items():
        if apart <= 2 or sized:
            assert moved == Fraction(made.map(apart))  # the bound is tight


@EACH_METRIC
@SPACES
def test_batches_move_by_no_more_than_their_stability(metric, sized):
    made = histogram_of(metric, sized)
    matrices = [
        [[1.0, 1.0]],
        [[1.0, 0.0], [0.0, 1.0]],
        [[0.3, 0.7], [1 / 3, 1.0], [0.0, 0.9]],
        [[1.0, 0.2]] * 5,
    ]
    for matrix in matrices:
        batch, reached, squares = Batch(matrix, Universe(CELLS)), Fraction(0), {}
        for first, second, apart in histograms(metric, sized):
            difference = np.subtract(first, second)
            moved = sum(exact(row, difference) ** 2 for row in batch.matrix)
            squares[apart] = max(squares.get(apart, 0), moved)
        for apart, moved in squares.items():
            distance = made.map(apart)
            assert distance > 0
            for measure, d_mid, ratio in (
                (ZCDP, 0.125, Fraction(1, 4)),
                (oc.gaussian_tradeoff(), 0.5, Fraction(1, 4)),
            ):
                noisy, scale = batch.release(
                    made.output_space, distance, composition_measure(measure), d_mid
                )
                assert noisy.map(distance) <= d_mid
                assert moved <= Fraction(scale) ** 2 * ratio  # (scale times sqrt(2ρ) or μ)²
            reached = max(reached, moved / (Fraction(scale) ** 2 / 4))
        assert reached > 0.45


@EACH_METRIC
def test_the_maps(metric):
    unsized, sized = histogram_of(metric, False), histogram_of(metric, True)
    halved = metric in ("symmetric", "insert-delete")
    for d_in in range(7):
        assert unsized.map(d_in) == d_in
        assert sized.map(d_in) == (d_in // 2 if halved else d_in)
    changed = histogram_of("Hamming", False).output_metric
    assert sized.output_metric == changed
    assert (unsized.output_metric == changed) is not halved


def test_records_are_counted_by_cell_and_others_in_none():
    counts = Universe(3).count([0, 2, 2, -1, 3, 10**9, -(10**9), 1, 2])
    assert counts.tolist() == [1.0, 1.0, 3.0]
    assert counts.dtype == np.float64
    named = Universe(["a", "b", "d"])
    assert named.count(["d", "c", "", "a", "a", "A"]).tolist() == [2.0, 0.0, 1.0]
    assert Universe((0.5, -1.5)).count([0.5, math.nan, math.inf, -1.5, 0.25]).tolist() == [1, 1]
    assert Universe(range(5, 8)).count([4, 5, 7, 7, 8]).tolist() == [1, 0, 2]
    assert Universe(2).count([]).tolist() == [0.0, 0.0]


def test_answers_are_exact_in_doubles():
    generator = np.random.default_rng(1)
    universe = Universe(50)
    for total in (10, 10**6, 2**32 - 1):
        for _ in range(40):
            cuts = np.sort(generator.integers(0, total + 1, 49))
            histogram = np.diff(np.concatenate([[0], cuts, [total]])).astype(np.float64)
            values = universe.vector(generator.random(50))
            assert Fraction(LinearQuery(values)(histogram)) == exact(values, histogram)


def test_queries_are_rounded_to_the_grid():
    universe, generator = Universe(200), np.random.default_rng(2)
    asked = generator.random(200)
    asked[:4] = 0.0, 1.0, 1 - 1e-9, 1e-9
    values = universe.vector(asked)
    for one, value in zip(asked, values, strict=True):
        assert (Fraction(float(value)) / GRID).denominator == 1
        assert abs(Fraction(float(value)) - Fraction(float(one))) <= GRID / 2
        assert 0 <= value <= 1
    assert (universe.vector(values) == values).all()
    asked[:] = 0.5  # the array handed in is not kept
    assert values[1] == 1.0


@pytest.mark.parametrize(
    ("query", "error", "match"),
    [
        ([0.5], InvalidValueError, "must have 2 values, .* found shape \\(1,\\)"),
        (range(10**12), InvalidValueError, "found shape \\(3,\\)"),  # no more of it is read
        ([0.5, 1.0000001], InvalidValueError, r"values in \[0, 1\]; scale it"),
        ([math.nan, 0.5], InvalidValueError, r"values in \[0, 1\]"),
        ([0.5, "x"], InvalidTypeError, "the query must be a value for each cell"),
        (lambda cell: 2.0, InvalidValueError, r"values in \[0, 1\]"),
    ],
)
def test_bad_queries(query, error, match):
    with pytest.raises(error, match=match):
        Universe(2).vector(query)


def test_weights_must_know_the_number_of_records_and_projection_need_not():
    assert size_if_public(*SPACE, None) is None
    assert size_if_public(*SPACE, 7) == public_size(*SPACE, 7) == 7
    for space in (SPACE, counts_of(2)):  # the number of cells is no number of records
        assert size_if_public(*space, None) is None
        with pytest.raises(InvalidTypeError, match="^size must be given"):
            public_size(*space, None)
    assert oc.m.make_projected_queries(*SPACE, ZCDP, 1, [0.5], 4).map(1) == 0.5


def test_the_domain_fixes_the_number_of_records():
    sized = dp.vector_domain(WHOLE, size=3)
    made = oc.m.make_projected_queries(sized, dp.change_one_distance(), ZCDP, 1, [0.5], 4)
    assert made([0, 1, 2])("synthetic").sum() == pytest.approx(3.0)
    with pytest.raises(InvalidValueError, match="^d_in .* at least 2 if records are added"):
        oc.m.make_projected_queries(sized, SPACE[1], ZCDP, 1, [0.5], 4)
    oc.m.make_projected_queries(sized, SPACE[1], ZCDP, 2, [0.5], 4)


# --- counts by cell, which an engine has computed ----------------------------------------------


def counts_of(size):
    return dp.vector_domain(dp.atom_domain(T="i64"), size=size), dp.l1_distance(T="i64")


def test_counts_are_clamped_and_no_further_apart():
    made = make_histogram(*counts_of(2), Universe(2))
    assert made.map(2**53 + 1) == 2**53 + 2  # no double is equal to it: rounded up
    counts = (-3, -1, 0, 1, 2**53 - 1, 2**53 + 2, 2**53 + 3, 2**63 - 1)
    clamped = {pair: made(list(pair)) for pair in product(counts, repeat=2)}
    for one, other in product(clamped, repeat=2):
        distance = sum(abs(x - y) for x, y in zip(one, other, strict=True))
        assert np.abs(clamped[one] - clamped[other]).sum() <= distance


@pytest.mark.parametrize(
    "counts", [[2**53 - 2, 2**53 - 7, 2**52 + 1], [2**32, 0, 1], [2**32 - 2, 1, 0], [2**53] * 3]
)
def test_answers_to_counts_beyond_2_32_are_exact_and_then_clamped(counts):
    made, batch = make_histogram(*counts_of(3), Universe(3)), [[0.3, 0.7, 0.9], [0, 2**-20, 0]]
    matrix = Batch(batch, Universe(3)).matrix

    def answers(counts):
        zcdp = composition_measure(ZCDP)
        noisy, scale = Batch(batch, Universe(3)).release(made.output_space, 1.0, zcdp, 1e60)
        assert scale < 1e-20
        histogram = made(counts)
        found = [LinearQuery(row)(histogram) for row in matrix]
        assert noisy(histogram) == pytest.approx(found, rel=0, abs=1e-20)
        return found

    def exact(counts):
        clamped = [min(count, 2**53) for count in counts]
        known = [sum(map(mul, map(Fraction, row), clamped)) for row in matrix]
        return [min(one, 2**32) for one in known]

    found = answers(counts)
    assert found == exact(counts)
    for cell in range(3):
        more = [count + (place == cell) for place, count in enumerate(counts)]
        assert np.abs(np.subtract(answers(more), found)).max() <= 0.9 + 2**-20


def test_counts_of_another_number_of_cells_are_refused():
    with pytest.raises(InvalidValueError, match="as many cells"):
        make_histogram(*counts_of(3), Universe(2))
    with pytest.raises(InvalidTypeError, match="then_table_count"):
        make_histogram(dp.user_domain("x", lambda x: True), dp.user_distance("y"), Universe(2))
