"""Linear queries by the mechanism that promises the least: promises, choices, and real answers.

Noise is OpenDP's and cannot be seeded. Statistical tests fail by chance with odds below 1e-9.
"""

import json
import math
import re
import warnings
from math import inf

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binom, norm

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    AccuracyWarning,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measurements.linear.linear_plan import Promise, choose, promise
from opendp_concurrent.measurements.linear.strategy import METHODS, Change, DenseStrategies
from opendp_concurrent.measurements.linear.tails import NormalTails, Shape

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
    plan = make(beta=0.05, minimize="largest").plan
    found = {one.method: one for one in plan.promises}
    each = norm.isf((1 - 0.95 ** (1 / 8)) / 2)
    assert found["queries"].root_mean_square == pytest.approx(math.sqrt(8), rel=1e-5)
    assert found["queries"].largest == pytest.approx(math.sqrt(8) * each, rel=1e-5)
    assert found["histogram"].root_mean_square == pytest.approx(math.sqrt(36 / 8), rel=1e-5)
    bound, within = found["histogram"].largest, 1.0
    for row in range(1, 9):
        within *= 1 - 2 * norm.sf(bound / math.sqrt(row))
    assert within == pytest.approx(0.95, abs=1e-5)
    # the optimum by descent over all matrices
    assert 1.494414 <= found["optimum"].root_mean_square <= 1.005 * 1.494414
    assert plan.method == "optimum"


def test_promises_of_laplace_noise_by_hand():
    found = {one.method: one for one in make(PURE, 2.0, minimize="largest").plan.promises}
    each = -math.log(1 - 0.95 ** (1 / 8))
    assert found["queries"].largest == pytest.approx(4 * each, rel=1e-5)  # 8 ones, ε = 2
    assert found["queries"].root_mean_square == pytest.approx(4 * math.sqrt(2), rel=1e-5)
    assert found["histogram"].root_mean_square == pytest.approx(0.5 * 3, rel=1e-5)  # sqrt(2 36/8)


@pytest.mark.parametrize(("measure", "factor"), [(PURE, 2.0), (ZCDP, math.sqrt(2))])
def test_a_changed_record_moves_cells_by_two_columns(measure, factor):
    """The difference of two: twice as heavy in L1, sqrt(2) times as long in L2, for cells."""
    for space, times in ((SPACE, 1.0), (sized(100), factor)):
        more = {"minimize": "largest", "space": space}
        promises = make(measure, 0.5, queries=np.eye(8)[:4], **more).plan.promises
        scale = {PURE: 2.0 * math.sqrt(2), ZCDP: 1.0}[measure]  # standard deviation at 1/2
        for one in promises[:2]:
            assert one.root_mean_square == pytest.approx(times * scale, rel=1e-5)


def test_cells_that_no_query_tells_apart_are_one():
    """A query of half of the cells is one noisy count, also where a record is changed."""
    for space in (SPACE, sized(100)):
        plan = make(ZCDP, 0.5, queries=[[1.0, 0.0] * 4], space=space).plan
        assert plan.method == "histogram"
        assert plan.promise.root_mean_square == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("method", ["queries", "histogram"])
def test_the_noise_is_that_of_the_plan(method):
    """Laplace noise under change-one distance: its size is that of two columns."""
    made = make(PURE, 0.5, queries=np.eye(8), space=sized(8), method=method, minimize="largest")
    found = np.array([made(range(8)).values - 1 for _ in range(250)])
    ratio = math.sqrt(np.mean(found**2)) / made.plan.promise.root_mean_square
    assert 0.75 < ratio < 1.25
    assert made.plan.promise.root_mean_square >= 4 * math.sqrt(2)
    assert made.plan.errors == pytest.approx(4 * math.sqrt(2), rel=1e-5)


@pytest.mark.parametrize(("measure", "method"), [(PURE, "p-identity"), (ZCDP, "optimum")])
def test_the_noise_of_each_query_has_the_stated_deviation(measure, method):
    """A mean of 800 squares is off by half at odds 1e-12."""
    generator = np.random.default_rng(3)
    queries = generator.integers(0, 3, (9, 12)) / 2
    made = make(measure, 0.5, 12, queries, minimize="largest", method=method)
    truth = queries @ np.bincount([3] * 40, minlength=12)
    found = np.array([made([3] * 40).values - truth for _ in range(800)])
    assert np.sqrt(np.square(found).mean(axis=0)) == pytest.approx(made.plan.errors, rel=0.35)
    mean = math.sqrt(np.mean(np.square(made.plan.errors)))
    assert made.plan.promise.root_mean_square == pytest.approx(mean, rel=1e-4)


def test_many_queries_on_few_cells_have_errors_below_their_noise():
    """300 distinct queries, 16 cells: a share of 16/300 of the variance is left."""
    queries = np.random.default_rng(0).integers(0, 2, (300, 16)).astype(float)
    found = {one.method: one for one in make(universe=16, queries=queries).plan.promises}
    longest = math.sqrt(queries.sum(axis=0).max())
    ratio = found["queries"].root_mean_square / longest
    assert ratio == pytest.approx(math.sqrt(16 / 300), rel=1e-4)


def test_small_data_bound_the_error_of_a_projection():
    """2 n σ max_j |<w, Eᵀ (Q_j - c)>|: halving n divides the root mean square by sqrt(2)."""
    queries = np.random.default_rng(0).integers(0, 2, (200, 64)).astype(float)
    strategies = DenseStrategies(queries, Change(laplace=False, changed=False), sized=True)
    tails, centred = NormalTails(), queries - queries.mean(axis=1, keepdims=True)
    for name in strategies.names:
        strategy = strategies(name)
        assert strategy.spread is not None

        def promised(size, strategy=strategy):
            return promise(strategy, tails, 1e3, 0.05, size, projects=True)

        assert promised(100).root_mean_square * math.sqrt(2) == pytest.approx(
            promised(200).root_mean_square, rel=1e-6
        )
        assert promised(100).root_mean_square < promised(None).root_mean_square
        assert promised(10**9) == promised(None)
        assert promised(100).within == inf > promised(None).within
    spread = strategies("queries").spread
    assert spread.longest == pytest.approx(np.linalg.norm(centred, axis=0).max())


def test_a_plan_knows_no_data_and_no_unknown_size():
    one = make(queries=PREFIXES)
    before = repr(one.plan)
    one([0] * 5)
    one([7] * 5000)
    assert repr(one.plan) == before == repr(make().plan)
    assert make(size=100).map(1) == make(size=10**6).map(1) == make().map(1)


def test_the_choice():
    def one(method, rms, largest=inf):
        return Promise(method, rms, largest)

    simple, other = one("histogram", 1.0, 3.0), one("queries", 0.9, 4.0)
    assert choose((simple, other), "root_mean_square") == "queries"
    assert choose((simple, other), "largest") == "histogram"
    close = one("optimum", 0.999)
    assert choose((simple, close), "root_mean_square") == "histogram"


def test_the_plan_says_what_each_promises():
    plan = make(method="queries").plan
    said = repr(plan).splitlines()
    assert said[0].split() == ["root", "mean", "square", "largest", "(0.95)"]
    assert said[1].startswith("queries (chosen)")
    assert said[-1] == "errors of the queries: 2.828 to 2.828"
    assert plan.promise == plan.promises[0]
    known = {PURE: ["tree", "p-identity"], ZCDP: ["optimum"]}
    for measure, others in known.items():
        promises = make(measure).plan.promises
        assert [one.method for one in promises] == ["histogram", "queries", *others]


# --- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "d_out"), BUDGETS, ids=str)
@pytest.mark.parametrize("method", METHODS[:3])
def test_each_mechanism_answers_and_costs_no_more_than_its_budget(measure, d_out, method):
    data = [3] * 6000 + [5] * 4000
    made = make(measure, d_out, space=sized(10_000), method=method, beta=1e-10)
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
@pytest.mark.parametrize("method", ["queries", "tree"])
def test_errors_are_within_the_promise_as_often_as_it_says(measure, method):
    """... and it has the mean square that it says, or not below a half.

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
    assert squares.mean() >= promise.root_mean_square**2 / 2


def test_a_projection_is_never_worse():
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


def test_a_projection_far_from_the_noisy_answers_is_not_returned(monkeypatch):
    """Of the projection alone, no bound on the largest error holds."""
    monkeypatch.setattr("opendp_concurrent.measurements.linear.linear_plan.RARE", 1 - 1e-9)
    made = make(ZCDP, 1e-3)
    assert made.plan.promise.within < 0.05 * made.plan.promise.largest
    assert min(min(made([])) for _ in range(20)) < 0  # noisy answers, which no histogram has


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


@pytest.mark.parametrize("method", ["queries", "histogram"])
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
        ((ZCDP, 1.0), {"method": "p-identity"}, InvalidValueError, "^method .* one of .* optimum"),
        ((PURE, 1.0), {"method": "optimum"}, InvalidValueError, "^method .* one of .* p-identity"),
        ((ZCDP, 1.0), {"queries": np.zeros((0, 8))}, InvalidValueError, "^queries"),
        ((ZCDP, 1.0), {"queries": [[math.nan] * 8]}, InvalidValueError, r"^queries\[0\]"),
        ((ZCDP, 1.0), {"queries": csr_array(np.eye(8))}, InvalidTypeError, "^queries"),
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
    worst = Shape(np.full(1, 2.0**11), 1.0, 10**7)
    assert made.plan.error < NormalTails().largest(worst, 0.05)


def test_a_method_that_factors_have_no_inverse_for_is_refused():
    near = np.array([[1.0, 1.0], [1.0, 1 - 2.0**-20]])
    for factors in ([near, np.eye(2)], [np.ones((2, 2)), np.array([[1.0, 0.0], [1.0, 0.0]])]):
        with pytest.raises(InvalidValueError, match="^method"):
            make(PURE, 0.5, universe=4, queries=oc.m.Products(factors), method="p-identity")


# --- plans that are used again -----------------------------------------------------------------

PLANNED = {
    "optimum": (ZCDP, 0.5, 16, np.tri(16)),
    "p-identity": (PURE, 1.0, 64, np.tri(64)),
    "queries": (ZCDP, 0.5, 4, np.ones((1, 4))),
    "products": (ZCDP, 0.5, 40, oc.m.Products([np.tri(8), np.ones((1, 5))])),
    "marginals": (ZCDP, 0.5, 6, oc.m.Marginals([2, 3], [(0,), (0, 1)])),
}


@pytest.mark.parametrize("name", PLANNED)
def test_a_saved_plan_is_used_again_without_a_search(name, monkeypatch):
    arguments = PLANNED[name]
    first, told = make(*arguments), []
    for search in ("optimum", "p_identity"):
        monkeypatch.setattr(f"{DenseStrategies.__module__}.{search}", None)
    again = make(*arguments, plan=first.plan.save(), progress=lambda *one: told.append(one))
    assert told == [(1, 1)]
    assert again.plan.save() == first.plan.save()
    assert again.map(1) == first.map(1)
    assert again.plan.errors.tolist() == first.plan.errors.tolist()
    assert again.plan.promise == first.plan.promise
    assert len(again([1, 2, 3])) == len(first.plan.errors)


def test_the_search_tells_its_progress():
    told = []
    made = make(universe=16, queries=np.tri(16), progress=lambda *one: told.append(one))
    count = len(made.plan.promises)
    assert told == [(done, count) for done in range(1, count + 1)]


def test_the_loss_of_a_plan_that_was_changed_is_its_own():
    """A strategy of half the weight has half of the noise, and the same errors."""
    plan = make(method="tree").plan
    record = json.loads(plan.save())
    (steps,) = record["matrices"]
    halves = [[one // 2 for one in row] for row in steps]
    with pytest.raises(InvalidValueError, match="^plan is for noise of another scale"):
        make(plan=json.dumps({**record, "matrices": [halves]}))
    scale = (plan.scale / 2).hex()
    made = make(plan=json.dumps({**record, "matrices": [halves], "scale": scale}))
    assert made.map(1) <= 0.5
    assert made.plan.scale == plan.scale / 2
    assert made.plan.errors == pytest.approx(plan.errors)


@pytest.mark.parametrize(
    ("change", "more", "error", "match"),
    [
        (lambda one: 3, {}, InvalidTypeError, "^plan must be what LinearPlan.save has returned"),
        (lambda one: "", {}, InvalidValueError, "^plan must be what"),
        (lambda one: "[" * 100_000, {}, InvalidValueError, "^plan must be what"),
        (
            lambda one: one.replace('"version":1', '"version":2'),
            {},
            InvalidValueError,
            "^plan .* 2",
        ),
        (lambda one: one.replace('"optimum"', '"best"'), {}, InvalidValueError, "^plan must be"),
        (lambda one: one.replace("[[[", "[[[9,"), {}, InvalidValueError, "^plan must be what"),
        (lambda one: one.replace("[[[", "[[[0.5,"), {}, InvalidValueError, "^plan must be what"),
        (lambda one: one.replace("[[[", "[null,[["), {}, InvalidValueError, "^plan must be what"),
        (
            lambda one: re.sub(r"\[\[\[.*\]\]\]", "[[[0,0,0,0,0,0,0,0]]]", one),
            {},
            InvalidValueError,
            "^plan",
        ),
        (lambda one: one, {"queries": np.tri(8)[:7]}, InvalidValueError, "^plan is for other"),
        (lambda one: one, {"space": sized(9)}, InvalidValueError, "^plan is for other .* neigh"),
        (lambda one: one, {"d_out": 0.25}, InvalidValueError, "^plan is for noise of another"),
        (lambda one: one, {"method": "queries"}, InvalidValueError, "^method .* and plan differ"),
        (lambda one: one, {"progress": 3}, InvalidTypeError, "^progress"),
    ],
)
def test_plans_that_do_not_fit(change, more, error, match):
    with pytest.raises(error, match=match):
        make(plan=change(make().plan.save()), **more)


def test_what_needs_too_much_memory_is_refused_with_its_size():
    def never(value):
        raise AssertionError

    with pytest.raises(InvalidValueError, match="^queries .50,331,648 values. would need 3.0 GiB"):
        make(universe=2**24, queries=[never] * 3)
