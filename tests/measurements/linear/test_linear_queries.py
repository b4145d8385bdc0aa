"""Linear queries by the mechanism that promises the least: promises, choices, and real answers.

Noise is OpenDP's and cannot be seeded. Statistical tests fail by chance with odds below 1e-9.
"""

import math
import warnings
from math import inf

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    AccuracyWarning,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measurements.linear.linear_plan import (
    METHODS,
    Promise,
    Workload,
    cells,
    choose,
    direct,
    projected,
)
from opendp_concurrent.measurements.linear.tails import NormalTails

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP, GDP = dp.max_divergence(), dp.zero_concentrated_divergence(), oc.gaussian_tradeoff()
APPROXIMATE = dp.approximate(PURE)
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
BUDGETS = [
    (PURE, 1.0),
    (ZCDP, 0.5),
    (GDP, 1.0),
    (APPROXIMATE, (1.0, 1e-6)),
    (APPROXIMATE, (1.0, 0.0)),
]
PREFIXES = np.tri(8)


def sized(size):
    return dp.vector_domain(dp.atom_domain(T=int), size=size), dp.change_one_distance()


def make(measure=ZCDP, d_out=0.5, universe=8, queries=PREFIXES, *, space=SPACE, **more):
    return oc.m.make_linear_queries(*space, measure, 1, d_out, universe, queries, **more)


# --- promises ----------------------------------------------------------------------------------


def test_promises_of_normal_noise_by_hand():
    """Prefixes: the first column has 8 ones, rows have 1 to 8; σ = 1 at ρ = 1/2."""
    plan = make(beta=0.05).plan
    found = {one.method: one for one in plan.promises}
    each = norm.isf((1 - 0.95 ** (1 / 8)) / 2)
    assert found["queries"].root_mean_square == pytest.approx(math.sqrt(8), rel=1e-5)
    assert found["queries"].largest == pytest.approx(math.sqrt(8) * each, rel=1e-5)
    assert found["histogram"].root_mean_square == pytest.approx(math.sqrt(36 / 8), rel=1e-5)
    assert found["projection"].root_mean_square == pytest.approx(math.sqrt(8), rel=1e-5)
    assert found["weights"].reason == "the number of records is not known"
    assert plan.method == "histogram"
    raw = {one.method: one for one in make(minimize="largest").plan.promises}
    bound, within = raw["histogram"].largest, 1.0
    for row in range(1, 9):
        within *= 1 - 2 * norm.sf(bound / math.sqrt(row))
    assert within == pytest.approx(0.95, abs=1e-5)


def test_promises_of_laplace_noise_by_hand():
    found = {one.method: one for one in make(PURE, 2.0, minimize="largest").plan.promises}
    each = -math.log(1 - 0.95 ** (1 / 8))
    assert found["queries"].largest == pytest.approx(4 * each, rel=1e-5)  # 8 ones, ε = 2
    assert found["queries"].root_mean_square == pytest.approx(4 * math.sqrt(2), rel=1e-5)
    assert found["histogram"].root_mean_square == pytest.approx(0.5 * 3, rel=1e-5)  # sqrt(2 36/8)


@pytest.mark.parametrize(("measure", "factor"), [(PURE, 2.0), (ZCDP, math.sqrt(2))])
def test_a_changed_record_moves_answers_by_two_columns(measure, factor):
    """The difference of two columns: twice as heavy in L1, sqrt(2) times as long in L2."""
    for space, times in ((SPACE, 1.0), (sized(100), factor)):
        more = {"minimize": "largest", "space": space}
        promises = make(measure, 0.5, queries=[[1.0, 0.0] * 4], **more).plan.promises
        scale = {PURE: 2.0 * math.sqrt(2), ZCDP: 1.0}[measure]  # standard deviation at 1/2
        assert promises[0].root_mean_square == pytest.approx(times * scale, rel=1e-5)
        assert promises[1].root_mean_square == pytest.approx(2 * times * scale, rel=1e-5)


@pytest.mark.parametrize("method", ["queries", "histogram"])
def test_the_noise_is_that_of_the_plan(method):
    """Laplace noise under change-one distance: its size is that of two columns."""
    made = make(PURE, 0.5, queries=np.eye(8), space=sized(8), method=method, minimize="largest")
    found = np.array([made(range(8)).values - 1 for _ in range(250)])
    ratio = math.sqrt(np.mean(found**2)) / made.plan.promise.root_mean_square
    assert 0.75 < ratio < 1.25
    assert made.plan.promise.root_mean_square >= 4 * math.sqrt(2)


def test_many_queries_on_few_cells_are_projected_below_their_noise():
    """300 distinct queries, 16 cells: at most a share of 16/300 of the variance is left."""
    queries = np.random.default_rng(0).integers(0, 2, (300, 16)).astype(float)
    plan = make(universe=16, queries=queries).plan
    found = {one.method: one for one in plan.promises}
    ratio = found["projection"].root_mean_square / found["queries"].root_mean_square
    assert ratio == pytest.approx(math.sqrt(16 / 300), rel=1e-4)


def test_small_data_bound_the_error_of_a_projection():
    """2 n σ max_j |<w, Q_j - c>|: halving n divides the root mean square by sqrt(2)."""
    queries = np.random.default_rng(0).integers(0, 2, (500, 64)).astype(float)

    work, tails = Workload.of(queries), NormalTails()

    def promised(size):
        return projected(work, tails, 1e3, 0.05, size).root_mean_square

    largest = projected(work, tails, 1e3, 0.05, 100).largest
    assert largest == pytest.approx(math.sqrt(2e5 * tails.largest(work.columns, 0.05)), rel=1e-6)
    centred = queries - queries.mean(axis=1, keepdims=True)
    assert work.columns.longest == pytest.approx(np.linalg.norm(centred, axis=0).max())

    assert promised(100) * math.sqrt(2) == pytest.approx(promised(200), rel=1e-6)
    assert promised(100) < 0.4 * promised(None)
    assert promised(10**9) == promised(None)


def test_the_numbers_of_the_literature():
    """n = 10^4, 64 cells, ρ = 1/2, 100 queries: multiplicative weights promise about 1,940."""
    queries = np.random.default_rng(0).integers(0, 2, (100, 64)).astype(float)
    plan = make(universe=64, queries=queries, size=10_000, minimize="largest").plan
    found = {one.method: one.largest for one in plan.promises}
    assert found["weights"] == pytest.approx(1940, rel=1e-3)
    # by the union bound, sqrt(2 ln(2 100/.05)) = 4.07 standard deviations each
    longest = math.sqrt(queries.sum(axis=0).max())
    assert 0.8 * 4.07 * longest < found["queries"] < 4.07 * longest
    widest = math.sqrt(queries.sum(axis=1).max())
    assert 0.7 * 4.07 * widest < found["histogram"] < 4.07 * widest
    assert plan.method == "histogram"


def test_a_plan_knows_no_data_and_no_unknown_size():
    one = make(queries=PREFIXES)
    before = repr(one.plan)
    one([0] * 5)
    one([7] * 5000)
    assert repr(one.plan) == before == repr(make().plan)
    assert make(space=sized(100)).plan.promises[3].reason != make().plan.promises[3].reason
    assert make(size=100).map(1) == make(size=10**6).map(1) == make().map(1)


def test_the_choice():
    def promise(method, rms, largest=inf):
        return Promise(method, rms, largest)

    one, other = promise("queries", 1.0, 3.0), promise("histogram", 0.9, 4.0)
    assert choose((one, other), "root_mean_square") == "histogram"
    assert choose((one, other), "largest") == "queries"
    close, far = promise("projection", 1.0), promise("projection", 1.1)
    assert choose((one, other, close), "root_mean_square") == "projection"
    assert choose((one, other, far), "root_mean_square") == "histogram"
    tied = promise("projection", 1.0, 3.0)
    assert choose((one, other, tied), "largest") == "projection"


def test_the_plan_says_what_each_promises():
    plan = make(method="queries").plan
    said = repr(plan).splitlines()
    assert said[0].split() == ["root", "mean", "square", "largest", "(0.95)"]
    assert said[1].startswith("queries (chosen)")
    assert said[4] == "weights: the number of records is not known"
    assert plan.promise == plan.promises[0]


# --- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "d_out"), BUDGETS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_each_mechanism_answers_and_costs_no_more_than_its_budget(measure, d_out, method):
    data = [3] * 6000 + [5] * 4000
    known = measure == ZCDP or method == "weights"
    space = sized(10_000) if known else SPACE  # where plans are quick, without weights
    made = make(measure, d_out, space=space, method=method, beta=1e-10)
    loss = made.map(1)
    if measure == APPROXIMATE:
        assert loss[0] <= d_out[0]
        assert loss[1] == d_out[1]
    else:
        assert 0.99 * d_out <= loss <= d_out
    truth = PREFIXES @ np.bincount(data, minlength=8)
    answers = made(data)
    largest = float(np.abs(answers.values - truth).max())
    assert largest <= made.plan.promise.largest
    assert largest <= made.accuracy(1e-10)
    assert made.plan.method == method
    assert type(answers) is oc.m.LinearAnswers


@pytest.mark.parametrize("measure", [PURE, ZCDP])
@pytest.mark.parametrize("method", ["queries", "histogram", "projection"])
def test_errors_are_within_the_promise_as_often_as_it_says(measure, method):
    """... and noise that is not projected has the mean square that it says, or not below a half.

    A mean of squares is below a half of its mean with a probability of at most exp(-runs/8q), where
    q <= 2.8 is the mean of their squares in units of their squared mean: 2e-10 (Bernstein; q of
    Laplace noise on the histogram). Its own deviation is no bound there: both are small together.
    """
    runs, beta = 500, 0.2
    data = [1] * 50 + [2] * 30
    truth = PREFIXES @ np.bincount(data, minlength=8)
    made = make(measure, 0.5, method=method, beta=beta, minimize="largest")
    found = np.array([made(data).values for _ in range(runs)]) - truth
    promise = made.plan.promise
    assert np.sum(np.abs(found).max(axis=1) > promise.largest) <= binom.isf(1e-10, runs, beta)
    squares = np.square(found).mean(axis=1)
    spread = 7 * squares.std() / math.sqrt(runs)
    assert squares.mean() <= promise.root_mean_square**2 + spread
    if method != "projection":
        assert squares.mean() >= promise.root_mean_square**2 / 2


def test_a_projected_histogram_is_never_worse():
    data = [1] * 50 + [2] * 30
    made = make(ZCDP, 1e-3, space=sized(80), method="histogram")
    for _ in range(20):
        answers = made(data)
        assert answers.never_worse
        assert answers.gap < 1e-3
        assert -1e-9 <= min(answers)
        assert answers[7] == pytest.approx(80)
    raw = make(ZCDP, 1e-3, space=sized(80), method="histogram", minimize="largest")
    assert raw(data).gap == 0.0


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_any_batch_is_answered_exactly_without_noise(seed, count, universe):
    generator = np.random.default_rng(seed)
    queries = np.rint(generator.random((count, universe)) * 2**20) / 2**20
    data = generator.integers(0, universe, 50).tolist()
    made = make(ZCDP, 1e12, universe, queries)
    truth = queries @ np.bincount(data, minlength=universe)
    assert made(data).values == pytest.approx(truth, abs=1e-3)


def test_under_a_filter_in_a_cast_and_as_a_chain():
    made = make(space=SPACE)
    root = oc.make_concurrent_filter(oc.make_concurrent_odometer(*SPACE, ZCDP), 1, 0.6)([1] * 9)
    assert len(root(made)) == 8
    assert root.privacy_loss() == made.map(1) <= 0.5
    assert len(oc.c.cast(made, oc.tradeoff())([1] * 9)) == 8
    names = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    queries = [lambda name: name == "a", lambda name: True]
    answers = make(ZCDP, 1e6, ["a", "b"], queries, space=names)(["a", "b", "b", "elsewhere"])
    assert answers.values == pytest.approx([1.0, 3.0], abs=0.1)


@pytest.mark.parametrize("method", ["queries", "histogram", "projection"])
def test_an_audit_finds_no_more_than_the_loss(method):
    """Two neighbours, one query: the audit's lower bound is above 0; a third of the noise fails."""
    made = make(PURE, 1.0, 1, [[1.0]], method=method, minimize="largest")

    def above(data):
        return [made(data)[0] > 0.5 for _ in range(500)]

    low, high = np.mean(above([0])), np.mean(above([]))
    lower = math.log((low - 0.1) / (high + 0.1)) if low > 0.1 else 0.0
    assert 0.0 < lower <= 1.0


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "more", "error", "match"),
    [
        (("zCDP", 1.0), {}, InvalidTypeError, "^output_measure"),
        ((oc.tradeoff(), 1.0), {}, UnsupportedMeasureError, "^output_measure"),
        ((dp.renyi_divergence(), 1.0), {}, UnsupportedMeasureError, "^output_measure"),
        ((oc.fixed_renyi_divergence(4.0), 1.0), {}, UnsupportedMeasureError, "^output_measure"),
        ((ZCDP, 0.0), {}, InvalidValueError, "^d_out"),
        ((ZCDP, -1.0), {}, InvalidValueError, "^d_out"),
        ((ZCDP, math.nan), {}, InvalidValueError, "^d_out"),
        ((APPROXIMATE, 1.0), {}, InvalidTypeError, "^d_out"),
        ((ZCDP, 1.0), {"universe": 0}, InvalidValueError, "^universe"),
        ((ZCDP, 1.0), {"queries": []}, InvalidValueError, "^queries"),
        ((ZCDP, 1.0), {"queries": [[2.0] * 8]}, InvalidValueError, r"^queries\[0\]"),
        ((ZCDP, 1.0), {"queries": [[1.0] * 8, [1.0]]}, InvalidValueError, r"^queries\[1\]"),
        ((ZCDP, 1.0), {"queries": 3}, InvalidTypeError, "^queries"),
        ((ZCDP, 1.0), {"size": 0}, InvalidValueError, "^size"),
        ((ZCDP, 1.0), {"beta": 0.0}, InvalidValueError, "^beta"),
        ((ZCDP, 1.0), {"beta": 1.0}, InvalidValueError, "^beta"),
        ((ZCDP, 1.0), {"minimize": "all"}, InvalidValueError, "^minimize"),
        ((ZCDP, 1.0), {"method": "best"}, InvalidValueError, "^method"),
        ((ZCDP, 1.0), {"method": "weights"}, InvalidValueError, "^method .* is not known"),
        ((ZCDP, 1e-9), {"method": "weights", "size": 9}, InvalidValueError, "^method .* no error"),
    ],
)
def test_bad_input(arguments, more, error, match):
    with pytest.raises(error, match=match):
        make(*arguments, **more)


# --- weights warn ------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "d_out"), BUDGETS, ids=str)
def test_weights_warn_where_a_histogram_promises_less(measure, d_out):
    with pytest.warns(AccuracyWarning, match="one noisy histogram promises") as caught:
        oc.m.make_private_multiplicative_weights(*SPACE, measure, 1, d_out, 64, 100, size=10_000)
    assert caught[0].filename == __file__


def test_weights_do_not_warn_where_they_promise_less():
    """2^22 cells, 10^4 records and a budget of ρ = 1/2, as in the docs."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = oc.m.make_private_multiplicative_weights(
            *SPACE, ZCDP, 1, 0.5, 2**22, 10**7, size=10_000
        )
    worst = Workload.unknown(10**7, 2**22)
    assert made.plan.error < cells(worst, NormalTails(), 1.0, 0.05).largest
    assert made.plan.error < direct(worst, NormalTails(), math.sqrt(10**7), 0.05).largest


def test_the_planner_itself_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(size=10_000, method="weights")


def test_a_worst_workload_is_worse_than_any():
    generator, tails = np.random.default_rng(0), NormalTails()
    for count, universe in ((3, 9), (20, 4)):
        known, worst = (
            Workload.of(generator.random((count, universe))),
            Workload.unknown(count, universe),
        )
        for one in (cells, direct):
            mine, bound = one(known, tails, 1.0, 0.1), one(worst, tails, 1.0, 0.1)
            assert mine.largest <= bound.largest
            assert mine.root_mean_square <= bound.root_mean_square
        mine = projected(known, tails, 100.0, 0.1, 50)
        assert mine.largest <= projected(worst, tails, 100.0, 0.1, 50).largest
