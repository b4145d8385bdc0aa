"""Private multiplicative weights: what it costs, what it promises, and that it keeps both.

The proof has a part about noise, re-derived here with mpmath from the plan's numbers alone, and a
deterministic part, which is run against analysts and noise that are as bad as the proof allows.
Statistical tests raise a false alarm with odds below 1e-9.
"""

import math
from functools import cache
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.composition.interactive import ANSWER, QUERY
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.mechanisms.guess_and_check import _MultiplicativeWeights, plan
from opendp_concurrent.mechanisms.histogram import Universe

from ...build import APPROXIMATE, PURE, SPACE, ZCDP

GDP = oc.gaussian_tradeoff()
BELOW, ABOVE, EXHAUSTED = oc.handles.Outcome
STEP = 2.0**-20  # queries are rounded to half of it


@cache
def make(measure=ZCDP, d_out=10.0, universe=16, queries=100, *, d_in=1, **more):
    return oc.m.make_private_multiplicative_weights(
        *SPACE, measure, d_in, d_out, universe, queries, **{"size": 1000, **more}
    )


BUDGETS = {
    "pure": (PURE, st.floats(0.2, 50.0)),
    "(ε, δ)": (APPROXIMATE, st.tuples(st.floats(0.1, 20.0), st.sampled_from([1e-9, 1e-6, 1e-3]))),
    "zCDP": (ZCDP, st.floats(0.01, 20.0)),
    "GDP": (GDP, st.floats(0.1, 10.0)),
    "Rényi 16": (oc.fixed_renyi_divergence(16.0), st.floats(0.1, 20.0)),
}


@pytest.mark.parametrize("name", list(BUDGETS))
@given(data=st.data())
@settings(max_examples=4, phases=[Phase.generate])  # shrinking would take minutes
def test_the_loss_is_within_the_budget_and_uses_it(name, data):
    measure, budgets = BUDGETS[name]
    d_out, d_in = data.draw(budgets), data.draw(st.sampled_from([1, 2, 3]))
    size = data.draw(st.integers(200, 10**5))
    cells, queries = data.draw(st.sampled_from([2, 16, 1000])), data.draw(st.integers(1, 10**6))
    beta = data.draw(st.sampled_from([1e-10, 0.05, 0.5]))
    try:
        made = make(measure, d_out, cells, queries, d_in=d_in, size=size, beta=beta)
    except InvalidValueError as refusal:
        if not str(refusal).startswith("d_out"):
            raise
        return
    loss = made.map(d_in)
    assert made.check(d_in, d_out)
    if measure == APPROXIMATE:
        assert loss[1] == d_out[1]
        loss, d_out = loss[0], d_out[0]
    assert 0.9 * d_out <= loss <= d_out or made.plan.error < 2 * d_in or made.plan.max_updates < 30
    promised(made.plan, cells, size, queries, beta, d_in)


@pytest.mark.parametrize("d_in", [1, 3])
def test_the_loss_is_that_of_its_parts(d_in):
    """Composed again, from the scales in the plan, by formulas of our own."""
    d = d_in

    def rho_of(plan):
        epsilon, shift = d / plan.scale + 2 * d / plan.query_scale, d / plan.answer_scale
        each = epsilon * math.tanh(epsilon / 2) + shift + math.expm1(-shift)
        return plan.max_updates * each

    made = make(PURE, 5.0, d_in=d_in)
    plan, c = made.plan, made.plan.max_updates
    assert not plan.refresh
    exact = d / plan.scale + 2 * c * d / plan.query_scale + c * d / plan.answer_scale
    assert exact * (1 - 1e-12) <= made.map(d_in) <= exact * (1 + 1e-8)
    assert make(APPROXIMATE, (5.0, 0.0), d_in=d_in).map(d_in) == (made.map(d_in), 0.0)

    with pytest.raises(InvalidValueError, match="must be at most"):
        made.map(d_in + 1)

    made = make(ZCDP, 2.0, d_in=d_in)
    assert made.plan.refresh
    assert made.map(d_in) == pytest.approx(rho_of(made.plan), rel=1e-6)
    rho = rho_of(make(APPROXIMATE, (20.0, 1e-6), d_in=d_in).plan)

    def delta_at(alpha):  # zCDP to (ε, δ) at one order [CKS20]
        exponent = (alpha - 1) * (alpha * rho - 20.0)
        return math.exp(min(exponent, 99.0)) / (alpha - 1) * (1 - 1 / alpha) ** alpha

    assert min(delta_at(1 + x / 500) for x in range(1, 5000)) <= 1.001e-6


# --- what it promises: noise -------------------------------------------------------------------


def promised(plan, cells, size, queries, beta, d_in):
    """Re-derive the plan's promises: union bound over discrete tails, and the potential."""
    step = mpf(2) ** (math.frexp(d_in)[1] - 31)
    with mp.workdps(50):
        error, tolerance, c = mpf(plan.error), mpf(plan.tolerance), plan.max_updates
        slack = error - tolerance
        gap, distance = tolerance - slack, (tolerance - slack) / size
        assert 0 < slack < tolerance < error <= size

        def tail(scale, beyond):
            """P(noise > beyond), noise in whole steps; two more for rounding."""
            s = mpf(scale) / step
            least = mp.floor(beyond / step) - 1
            return mp.exp(-least / s) / (1 + mp.exp(-1 / s))

        def failure(part):
            """The threshold's noise is at most ``slack - part``, a query's at most ``part``."""
            draws = c if plan.refresh else 1
            return (
                2 * draws * tail(plan.scale, slack - part)
                + queries * tail(plan.query_scale, part)
                + 2 * c * tail(plan.answer_scale, gap)
            )

        even = plan.query_scale * mp.log(max(2, 3 * queries / (2 * beta * (1 - mpf("1e-6")))))
        assert failure(even) <= beta * (1 + mpf("1e-9"))
        # the divergence falls by so much at each update, and starts at no more than log m
        eta = mpf(plan.learning_rate)
        fall = eta * distance - eta**2 / 8
        assert fall > 0
        assert c == queries or c * fall * (1 + mpf("1e-9")) >= mp.log(cells)
        assert c >= 1
        assert (c - 1) * fall <= mp.log(cells)  # no more than are needed


@pytest.mark.parametrize(
    ("measure", "d_out", "beta", "cells", "queries"),
    [
        (PURE, 20.0, 1e-10, 1, 1),
        (PURE, 20.0, 0.9, 64, 1000),
        (ZCDP, 1.0, 0.9, 2**16, 10**9),
        (ZCDP, 1.0, 0.05, 2, 1),
        (GDP, 2.0, 0.05, 64, 1000),
        (GDP, 2.0, 1e-10, 2**16, 10**9),
    ],
)
def test_the_promises_follow_from_the_numbers(measure, d_out, beta, cells, queries):
    made = make(measure, d_out, cells, queries, size=100_000, beta=beta)
    promised(made.plan, cells, 100_000, queries, beta, 1)


def test_a_wrong_plan_is_seen():
    plan = make(ZCDP, 1.0, 64, 1000, size=100_000).plan
    numbers = {name: getattr(plan, name) for name in plan.__slots__}
    promised(plan, 64, 100_000, 1000, 0.05, 1)
    wrong = {"scale": 1.2, "query_scale": 1.2, "answer_scale": 1.4, "learning_rate": 2.01}
    for name, factor in {**wrong, "max_updates": 0.9, "error": 0.97}.items():
        changed = SimpleNamespace(**{**numbers, name: numbers[name] * factor})
        with pytest.raises(AssertionError):
            promised(changed, 64, 100_000, 1000, 0.05, 1)


# --- what it promises: the deterministic part ---------------------------------------------------


class Stub:
    """Guess and check without privacy: noise is what the proof allows, as bad as can be.

    :param exact: whether there is no noise; else all that is off by the gap is above, numbers err
        by all but the gap towards the guess, and what is just within the error is confirmed
    """

    def __init__(self, plan, histogram, exact):
        self.plan, self.histogram, self.exact = plan, histogram, exact
        self.gap = 2 * plan.tolerance - plan.error
        self.updates, self.left = 0, plan.max_updates

    def __call__(self, message):
        query, guess = message
        truth = query(self.histogram)
        off = abs(truth - guess)
        if self.left == 0:
            return oc.handles.SparseVectorAnswer(EXHAUSTED)
        if off < (self.plan.tolerance if self.exact else self.gap):
            return oc.handles.SparseVectorAnswer(BELOW, guess)
        self.updates += 1
        self.left -= 1
        towards = math.copysign(self.gap * (1 - 1e-9), guess - truth)
        return oc.handles.SparseVectorAnswer(ABOVE, truth if self.exact else truth + towards)


def converse(person, state, check, query):
    """One message of the analyst, as ``make_interactive_postprocessing`` would have it."""
    after, tag, message = person(state, QUERY, query)
    if tag is ANSWER:
        return after, message
    after, tag, answer = person(after, ANSWER, check(message))
    assert tag is ANSWER
    return after, answer


def histograms(cells, size):
    generator = np.random.default_rng(3)
    yield "one cell", np.eye(cells)[0] * size
    yield "skewed", generator.multinomial(size, generator.dirichlet(np.full(cells, 0.2)))
    yield "two cells", np.eye(cells)[1] * (size // 2) + np.eye(cells)[-1] * (size - size // 2)
    yield "uniform", np.full(cells, size // cells)


def adversary(kind, generator, histogram, synthetic, cells):
    """A query; the worst one asks what the synthetic histogram has wrong."""
    if kind == "worst":
        return (histogram > synthetic).astype(float)
    if kind == "reverse":
        return (histogram <= synthetic).astype(float)
    if kind == "cell":
        return np.eye(cells)[int(np.argmax(np.abs(histogram - synthetic)))]
    if kind == "soft":
        return np.clip(
            0.5 + (histogram - synthetic) / (2 * np.abs(histogram - synthetic).max() + 1e-12), 0, 1
        )
    return generator.random(cells) if generator.random() < 0.5 else generator.integers(0, 2, cells)


def divergence(truth, distribution):
    """KL of the true histogram from the synthetic one."""
    some = truth > 0
    return float(np.sum(truth[some] * np.log(truth[some] / distribution[some])))


@pytest.mark.parametrize("kind", ["worst", "reverse", "cell", "soft", "random"])
@pytest.mark.parametrize(
    ("cells", "size", "rho", "exact"), [(16, 1024, 5.0, True), (64, 16_384, 1.0, False)]
)
def test_updates_and_errors_stay_within_the_plan(cells, size, rho, kind, exact):
    plan = make(ZCDP, rho, cells, 1000, size=size).plan
    gap = 2 * plan.tolerance - plan.error
    for name, histogram in histograms(cells, size):
        histogram = histogram.astype(float)
        assert histogram.sum() == size
        generator = np.random.default_rng(4)
        person = _MultiplicativeWeights(Universe(cells), size, plan.learning_rate)
        state, check, most = person.start(), Stub(plan, histogram, exact), 0
        for _ in range(3 * plan.max_updates + 50):
            before = state
            state, synthetic = converse(person, state, check, "synthetic")
            assert state is before
            assert synthetic.min() >= 0.0
            assert synthetic.sum() == pytest.approx(size, rel=1e-9)
            query = adversary(kind, generator, histogram, synthetic, cells)
            rounded = np.rint(np.asarray(query) * 2**20) / 2**20
            state, answer = converse(person, state, check, query)
            assert answer.outcome is not EXHAUSTED, name
            assert abs(answer.value - rounded @ histogram) <= plan.error
            if answer.outcome is BELOW:
                assert (state.distribution == before.distribution).all()
                continue
            fall = divergence(histogram / size, before.distribution) - divergence(
                histogram / size, state.distribution
            )
            assert fall >= 2 * (gap / size) ** 2 * (1 - 1e-6)  # as proved
            most = max(most, check.updates)
        assert check.updates <= plan.max_updates
        if kind == "worst" and name == "one cell":
            assert most >= 1  # the analyst was not idle


def test_an_update_is_that_of_the_paper():
    person = _MultiplicativeWeights(Universe(3), 90, 0.5)
    start = person.start()
    assert start.distribution == pytest.approx([1 / 3] * 3)
    query = np.array([1.0, 0.5, 0.0])
    for value, penalty in ((40.0, query), (50.0, 1 - query)):  # the guess is 45
        asked, tag, (linear, guess) = person(start, QUERY, query)
        assert tag is QUERY
        assert guess == pytest.approx(45.0)
        assert linear(np.array([10.0, 20.0, 60.0])) == 20.0
        said = oc.handles.SparseVectorAnswer(ABOVE, value)
        after, tag, answer = person(asked, ANSWER, said)
        assert tag is ANSWER
        assert answer == said
        weights = np.exp(-0.5 * penalty)
        assert after.distribution == pytest.approx(weights / weights.sum(), rel=1e-12)
        assert start.distribution == pytest.approx([1 / 3] * 3)  # states are not changed
    for outcome in (BELOW, EXHAUSTED):
        after, _, answer = person(asked, ANSWER, oc.handles.SparseVectorAnswer(outcome))
        assert answer == oc.handles.SparseVectorAnswer(outcome, guess)
        assert (after.distribution == start.distribution).all()


def test_weights_do_not_underflow():
    person = _MultiplicativeWeights(Universe(4), 100, 4.0)
    state, query = person.start(), np.array([1.0, 0.0, 0.0, 0.0])
    for more, expected in ((1.0, [1.0, 0.0, 0.0, 0.0]), (-1.0, [0.25] * 4)):
        for _ in range(1_000):
            asked, _, (_, guess) = person(state, QUERY, query)
            answer = oc.handles.SparseVectorAnswer(ABOVE, guess + more)
            state, *_ = person(asked, ANSWER, answer)
        assert state.distribution == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("measure", "d_out"), [(PURE, 60.0), (ZCDP, 20.0), (GDP, 6.0), (APPROXIMATE, (30.0, 1e-6))]
)
def test_all_answers_are_within_the_error(measure, d_out):
    """Fails with probability 1e-10, by the promise itself."""
    cells, size, queries = 64, 10_000, 300
    made = make(measure, d_out, cells, queries, size=size, beta=1e-10)
    assert made.plan.error < size / 3
    generator = np.random.default_rng(6)
    data = generator.choice(cells, size, p=generator.dirichlet(np.full(cells, 0.1))).tolist()
    histogram, queryable, outcomes = np.bincount(data, minlength=cells), made(data), []
    for turn in range(queries):
        synthetic = queryable("synthetic")
        kind = ("worst", "random", "cell", "reverse")[turn % 4]
        query = adversary(kind, generator, histogram, synthetic, cells)
        answer = queryable(query)
        outcomes.append(answer.outcome)
        assert abs(answer.value - query @ histogram) <= made.plan.error + size * STEP / 2
        assert answer.outcome is not EXHAUSTED
        if answer.outcome is BELOW:
            assert (queryable("synthetic") == synthetic).all()
            assert answer.value == pytest.approx(query @ synthetic, abs=1e-5 * size)
    assert 1 <= outcomes.count(ABOVE) <= made.plan.max_updates


def test_updates_are_exhausted_and_then_answers_are_synthetic():
    """It was told a wrong size: it can never guess how many records there are."""
    made = make(ZCDP, 50.0, 4, 1000, size=1000, beta=1e-10)
    assert made.plan.error < 500
    queryable, asked = made([0, 1, 2, 3] * 1000), 0
    while (answer := queryable([1, 1, 1, 1])).outcome is not EXHAUSTED:
        assert answer.outcome is ABOVE
        asked += 1
    assert asked == made.plan.max_updates
    synthetic = queryable("synthetic")
    for query in ([1, 1, 1, 1], [1, 0, 0, 0], lambda value: value / 4):
        answer = queryable(query)
        values = [query(v) for v in range(4)] if callable(query) else query
        assert answer.outcome is EXHAUSTED
        assert answer.value == pytest.approx(np.dot(values, synthetic))
    assert (queryable("synthetic") == synthetic).all()
    assert synthetic.sum() == pytest.approx(1000.0)


def test_a_known_size_halves_the_distance():
    sized = dp.vector_domain(dp.atom_domain(T=int), size=1000), dp.symmetric_distance()
    made = oc.m.make_private_multiplicative_weights(*sized, ZCDP, 2, 1.0, 4, 20)
    assert made.plan == make(ZCDP, 1.0, 4, 20, size=1000).plan
    assert made.map(2) == make(ZCDP, 1.0, 4, 20, size=1000).map(1)
    assert made([0] * 1000)([1, 0, 0, 0]).value is not None
    with pytest.raises(InvalidValueError, match="^d_in"):
        oc.m.make_private_multiplicative_weights(*sized, ZCDP, 1, 1.0, 4, 20)


def test_what_cannot_be_promised_is_refused():
    pure, sizes = composition_measure(PURE), {"cells": 16, "size": 100_000, "queries": 50}
    with pytest.raises(InvalidValueError, match=r"^d_out \(1e-09\) must be larger"):
        plan(pure, 1.0, 1e-9, beta=0.05, **sizes)
    with pytest.raises(InvalidValueError, match=r"^beta .* at least 1e-300"):
        plan(pure, 1.0, 1.0, beta=1e-301, **sizes)
