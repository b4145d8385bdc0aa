"""Linear queries on histograms of datasets, by brute force and exactly; and by projection.

Bands of statistical tests are left with odds below 1e-9; noise is OpenDP's and cannot be seeded.
"""

import math
import warnings
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from operator import mul

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, MessageLimitError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.mechanisms import histogram as module
from opendp_concurrent.mechanisms.histogram import (
    MOST_RECORDS,
    LinearQuery,
    Nearest,
    Universe,
    certify,
    make_histogram,
    nearest,
    public_size,
    size_if_public,
)
from opendp_concurrent.mechanisms.linear_answers import Batch

from ...build import SPACE, ZCDP

GDP = oc.gaussian_tradeoff()
WHOLE = dp.atom_domain(T=int)
CELLS = 2
RECORDS = range(-1, CELLS + 1)  # two values are in no cell
GRID = Fraction(1, 2**20)


METRICS = {
    "symmetric": dp.symmetric_distance(),
    "insert-delete": dp.insert_delete_distance(),
    "change-one": dp.change_one_distance(),
    "Hamming": dp.hamming_distance(),
}
SPACES = pytest.mark.parametrize("sized", [False, True])
EACH_METRIC = pytest.mark.parametrize("metric", list(METRICS))


def histogram_of(metric, sized, cells=CELLS, size=3):
    domain = dp.vector_domain(WHOLE, size=size) if sized else dp.vector_domain(WHOLE)
    return make_histogram(domain, METRICS[metric], Universe(cells))


def histograms(metric, sized):
    """All pairs of histograms of small datasets, and how far the datasets are apart.

    The order of records does not matter: some order of both has the least distance.
    """
    cells, found = Universe(CELLS), set()
    sizes, changed = [3] if sized else [0, 1, 2], metric in ("change-one", "Hamming")
    datasets = [one for size in sizes for one in combinations_with_replacement(RECORDS, size)]
    for x, y in permutations(datasets, 2):
        more, less = Counter(x), Counter(y)
        apart = sum(((more - less) + (less - more)).values())
        if not changed or len(x) == len(y):
            counts = (tuple(cells.count(one).tolist()) for one in (x, y))
            found.add((*counts, apart // 2 if changed else apart))
    return found


def exact(values, histogram):
    return sum(Fraction(v) * int(h) for v, h in zip(values, histogram, strict=True))


SMALL = [np.array(one) for one in product((0.0, float(GRID), 0.333333, 1.0), repeat=CELLS)]


@EACH_METRIC
@SPACES
def test_linear_queries_move_by_no_more_than_the_distance(metric, sized):
    made = histogram_of(metric, sized)
    universe, pairs, reached = Universe(CELLS), histograms(metric, sized), {}
    bounds = {apart: Fraction(made.map(apart)) for _, _, apart in pairs}
    for query in SMALL:
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


QUIET = 1e12  # a loss at which noise is nothing
ODDS = 1e-10


# --- by projection: what is released, what it costs, and that projection is one ------------------


def make(measure=ZCDP, d_mids=(0.25, 0.25), universe=4, *, d_in=1, size=10, **more):
    return oc.m.make_projected_queries(
        *SPACE, measure, d_in, list(d_mids), universe, size=size, **more
    )


def test_what_can_be_answered_is_kept():
    """Answers of some histogram, without noise, come back as they are."""
    queryable = make(d_mids=[QUIET], universe=4, size=10)([0] * 5 + [2] * 2 + [3] * 3)
    batch = [[1, 0, 0, 0], [1, 0, 1, 0], [0.5, 0.25, 0, 1]]
    answers = queryable(batch)
    assert answers.values == pytest.approx([5, 7, 5.5], abs=1e-4)
    assert [*answers] == np.asarray(answers).tolist()


@pytest.mark.parametrize("size", [1000, None])
@pytest.mark.parametrize("count", [3, 40, 400])
def test_answers_are_never_further_from_the_truth_than_their_noise(monkeypatch, size, count):
    """All batches together, in units of their noise; each answer of OpenDP's noise is looked at."""
    generator, cells, noisy = np.random.default_rng(count), 16, []
    proven = 0
    release = Batch.release

    def seen(self, *arguments):
        measurement, scale = release(self, *arguments)
        return measurement >> (lambda answers: noisy.append((answers, scale)) or answers), scale

    monkeypatch.setattr(Batch, "release", seen)
    counts = generator.multinomial(1000, generator.dirichlet(np.full(cells, 0.2)))
    data = np.repeat(np.arange(cells), counts).tolist()
    for rho in (1e-3, 0.1, 10.0):
        queryable, noise, error = make(d_mids=[rho, 3 * rho], universe=cells, size=size)(data), 0, 0
        for turn in range(2):
            batch = generator.integers(0, 2, (count, cells)).astype(float)
            answers = queryable(batch)
            released, scale = np.array(noisy[-1][0]), noisy[-1][1]
            assert answers.values == pytest.approx(batch @ queryable.synthetic(), abs=1e-3)
            assert 0 < answers.gap < 1
            noise += float(np.sum(np.square((released - batch @ counts) / scale)))
            error += float(np.sum(np.square((answers.values - batch @ counts) / scale)))
            if turn == 0 or answers.never_worse:
                assert answers.never_worse
                assert error <= noise * (1 + 1e-12)
            else:
                assert math.sqrt(error) <= math.sqrt(noise) + math.sqrt(answers.gap)
            proven += answers.never_worse
    assert len(noisy) == 6
    assert proven >= (6 if count == 400 else 3)


def test_noisy_answers_are_kept_where_floats_cannot_tell_that_others_are_better():
    batch, noisy = Batch([[1.0, 0.0], [0.0, 1.0]], Universe(2)), np.array([3.0, 4.0])
    for sure in (True, False):
        found = Nearest(np.array([5.0, 5.0]), 0.5, never_worse=sure)
        first = batch.answers(noisy, found, first=True)
        assert first.values.tolist() == ([5.0, 5.0] if sure else [3.0, 4.0])
        later = batch.answers(noisy, found, first=False)
        assert later.values.tolist() == [5.0, 5.0]
        assert (first.never_worse, later.never_worse, later.gap) == (True, sure, 0.5)


def test_an_unknown_number_of_records_is_found_from_the_answers():
    queryable = make(d_mids=[QUIET], universe=4, size=None)([0] * 5 + [3] * 3)
    assert queryable.synthetic().tolist() == [0.0] * 4
    answers = queryable([[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
    assert answers.values == pytest.approx([8, 5, 0], abs=1e-4)
    assert queryable.synthetic().sum() == pytest.approx(8, abs=1e-4)


@pytest.mark.parametrize("d_mids", [[0.5], [0.25, 0.125], [1e-6, 3.0, 0.7]])
def test_the_map_composes_the_batches(d_mids):
    exact = math.fsum(d_mids)
    assert exact <= make(ZCDP, d_mids).map(1) <= exact * (1 + 1e-15)
    exact = math.sqrt(math.fsum(one * one for one in d_mids))
    assert exact * (1 - 1e-16) <= make(GDP, d_mids).map(1) <= exact * (1 + 1e-15)
    for d_in in (2, 5):
        assert make(ZCDP, d_mids, d_in=d_in).map(d_in) == make(ZCDP, d_mids).map(1)
    with pytest.raises(InvalidValueError, match="^d_in"):
        make(ZCDP, d_mids).map(2)


@pytest.mark.parametrize("measure", [ZCDP, GDP])
@pytest.mark.parametrize(("metric", "columns"), [("symmetric", 1), ("change-one", 2)])
@pytest.mark.parametrize("d_in", [1, 3])
def test_the_noise_is_that_of_the_exact_sensitivity(measure, metric, columns, d_in):
    """A quarter of each count is asked for, far above the noise: projection does not bind."""
    metrics = {"symmetric": dp.symmetric_distance(), "change-one": dp.change_one_distance()}
    d_mid, turns, cells, each = 0.5, 5, 50, 200
    mechanism = oc.m.make_projected_queries(
        *(SPACE[0], metrics[metric], measure, d_in, [d_mid] * turns, cells + 1),
        size=each * (cells + 1),
    )
    sensitivity = d_in * math.sqrt(columns) / 4
    sigma = sensitivity / (math.sqrt(2 * d_mid) if measure == ZCDP else d_mid)
    queryable, noise = mechanism([*range(cells + 1)] * each), []
    total, runs = np.zeros(cells), turns * cells
    for turn in range(1, turns + 1):  # the mean of all so far is answered
        answers = queryable(np.eye(cells, cells + 1) / 4).values - each / 4
        noise.append(answers * turn - total)
        total = answers * turn
    squares = np.sum(np.square(noise)) / sigma**2
    assert chi2.ppf(ODDS, runs) <= squares <= chi2.isf(ODDS, runs)
    assert 0.5 * runs < chi2.ppf(ODDS, runs)  # half the variance would be seen
    assert chi2.isf(ODDS, runs) < 2 * runs


def test_batches_are_weighted_by_their_noise():
    """First a loud batch, then a quiet one: what is left is the quiet one's."""
    queryable = make(d_mids=[1e-4, QUIET], universe=2, size=1000)([0] * 700 + [1] * 300)
    first = queryable([[1, 0]])
    assert first[0] == pytest.approx(queryable("synthetic")[0])
    assert queryable([[1, 0]])[0] == pytest.approx(700, abs=1e-2)
    other = make(d_mids=[QUIET, 1e-4], universe=2, size=1000)([0] * 700 + [1] * 300)
    assert other([[1, 0]])[0] == pytest.approx(700, abs=1e-2)
    assert other([[1, 0]])[0] == pytest.approx(700, abs=1e-2)  # the loud one changes nothing


def test_noise_that_no_histogram_explains_is_projected_away():
    """2,000 queries: the error per query is below the noise, as [NTZ13] proves.

    ‖Q(h' - h)‖² <= <noise, Q(h' - h)> <= 2 n max_j |<noise, Q_j>|, and half of the gap; each
    <noise, Q_j> is normal.
    """
    generator = np.random.default_rng(7)
    size, cells, count, rho = 100, 16, 2_000, 0.005
    queries = np.rint(generator.random((count, cells)) * 2**20) / 2**20
    data = generator.integers(0, cells, size).tolist()
    mechanism = make(d_mids=[rho], universe=cells, size=size)
    answers = mechanism(data)(queries)
    truth = queries @ np.bincount(data, minlength=cells)
    length = math.sqrt(np.square(queries).sum(axis=0).max())
    sigma = length / math.sqrt(2 * rho)
    widest = length * sigma * math.sqrt(2 * math.log(2 * cells / ODDS))
    bound = (2 * size * widest + answers.gap * sigma**2) / count
    assert bound < 0.15 * sigma**2  # the theory says it helps
    assert np.mean((answers.values - truth) ** 2) <= bound


def test_a_batch_of_zeros_is_answered_by_zeros():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        queryable = make(d_mids=[0.5, QUIET])([0, 1, 2, 3, 3])
        assert [*queryable(np.zeros((2, 4)))] == [0.0, 0.0]
        after = queryable([[1, 0, 0, 0]])
    assert np.isfinite(after.values).all()
    assert after[0] == pytest.approx(1.0, abs=0.01)
    assert np.isfinite(queryable("synthetic")).all()


def test_one_batch_for_each_loss():
    queryable = make()([0, 1, 2, 3])
    before = queryable("synthetic")
    assert before.tolist() == [2.5] * 4
    assert queryable([[1, 0, 0, 0]]).values.shape == (1,)
    for _ in range(3):
        assert queryable("synthetic").sum() == pytest.approx(10.0)
    assert queryable([[1, 0, 0, 0], [0, 1, 0, 0]]).values.shape == (2,)
    kept = queryable("synthetic")
    for _ in range(2):
        with pytest.raises(MessageLimitError, match="2 of 2"):
            queryable([[1, 0, 0, 0]])
    assert (queryable("synthetic") == kept).all()


def test_a_batch_whose_squares_would_overflow_is_refused():
    """2^24 + 1 queries of 1 for one cell had a norm of 1: their squares added up to 2^64 + 2^40."""
    with pytest.raises(InvalidValueError, match="^the batch must have at most 1,000,000"):
        make()([0, 1])(np.broadcast_to([1.0, 1.0], (2**24 + 1, 2)))


def test_squares_of_long_batches_are_exact():
    queries = np.full((5_000, 2), 1 - 2.0**-20)
    queries[:, 1] = 1.0
    longest = Batch(queries, Universe(2))._length(changed=False)
    assert 5_000 <= Fraction(longest) ** 2 <= 5_000 * (1 + Fraction(1, 2**50))


def objective(histogram, answers, queries):
    return float(np.sum((queries @ histogram - answers) ** 2))


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


@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.1, 1.0, 30.0, 1e4]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=50)
def test_the_gap_is_above_that_in_fractions_for_any_histogram(
    seed, cells, count, noise, known, good
):
    """Whatever histogram was found: a bad solver is told of, and never trusted.

    No histogram is nearer by more than the gap: it is the duality gap of the convex programme.
    """
    answers, queries, truth = instance(seed, cells, count, noise)
    size = 10 if known else None
    if good:
        found = nearest(answers, queries, size)
        assert found.histogram.min() >= 0.0
        if known:
            assert found.histogram.sum() == pytest.approx(10, rel=1e-12)
            assert found.gap < 1e-6 * (1 + objective(found.histogram, answers, queries))
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


@pytest.mark.parametrize(
    ("count", "cells", "records", "known"),
    [(300, 64, 10_000, True), (400, 200, 10_000, False), (40, 16, 10**6, True)],
)
def test_the_gap_is_small(count, cells, records, known):
    generator, size = np.random.default_rng(3), records if known else None
    queries = generator.integers(0, 2, (count, cells)) / 16
    truth = generator.multinomial(records, generator.dirichlet(np.full(cells, 0.1)))
    answers = queries @ truth + generator.normal(size=count)
    found = nearest(answers, queries, size)
    distance = objective(found.histogram, answers, queries)
    assert found.gap < 1e-4 * distance
    assert found.never_worse
