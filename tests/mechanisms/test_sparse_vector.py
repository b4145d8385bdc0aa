"""How a sparse vector behaves, and that its answers have the law that its price is for.

Statistical bounds fail by chance with odds below 1e-9 each; noise is OpenDP's.
"""

import math
import sys
from collections import Counter
from contextlib import suppress

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binom

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError

from ..build import PURE, SPACE, in_threads
from .sparse_vector_oracle import Noise, center, law, long_loss, tail, threshold_noise

BELOW, ABOVE, EXHAUSTED = oc.handles.Outcome
SURE = 1e-3  # a scale whose noise is 0, but for odds of e^-1000
ODDS = 1e-11
RUNS = 350


def sparse(threshold=0, max_hits=2, scale=SURE, measure=PURE, d_in=1, **more):
    more.setdefault("query_scale", scale)
    return oc.m.make_sparse_vector(*SPACE, measure, d_in, scale, threshold, max_hits, **more)


def exact_law(answers, threshold, query, hits, refresh, sides):
    """One-sided noise is moved by its mean, rounded: so is the threshold beside all answers."""
    noise = Noise(threshold, query, hits, refresh, sides=sides)
    threshold_moves, query_moves = noise.one_sided
    moved = query_moves * center(query) - threshold_moves * center(threshold)
    return law(noise, [answer - moved for answer in answers])


def band(runs, p):
    return binom.isf(1 - ODDS, runs, p) - 1, binom.isf(ODDS, runs, p) + 1


LETTERS = {BELOW: "B", ABOVE: "A", EXHAUSTED: ""}
INSTANCES = [
    ((0, 1, -1), 1.0, 2.0, 1, False),
    ((1, 0, 2, -1), 2.0, 1.0, 2, False),
    ((1, 0, 2, -1), 2.0, 1.0, 2, True),
    ((0, 0, 0, 0), 4.0, 0.5, 3, True),
]


@pytest.mark.parametrize(
    ("answers", "threshold", "query", "hits", "refresh", "sides"),
    [*((*one, "one one") for one in INSTANCES), (*INSTANCES[1], "two two")],
)
def test_answers_have_the_law_that_is_paid_for(answers, threshold, query, hits, refresh, sides):
    exact = exact_law(answers, threshold, query, hits, refresh, sides)
    assert math.fsum(exact.values()) == pytest.approx(1.0, abs=1e-12)
    scales = {"scale": threshold, "query_scale": query, "one_sided": sides == "one one"}
    made, found = sparse(100, max_hits=hits, refresh=refresh, **scales), Counter()
    for _ in range(RUNS):
        queryable = made([1, 2])
        found["".join(LETTERS[queryable(lambda _, a=a: 100 + a).outcome] for a in answers)] += 1
    assert set(found) <= set(exact)
    for string, p in exact.items():
        low, high = band(RUNS, p)
        assert low <= found[string] <= high, (string, found[string], RUNS * p)


@pytest.mark.parametrize("sensitivity", [1, 1.0])
def test_numbers_have_their_own_noise(sensitivity):
    """Given that it is above, the number is the answer with fresh noise of its scale."""
    runs, scale = 1_000, 2.0
    scales = {"scale": 1.0, "query_scale": 1.0, "answer_scale": scale}
    queryable = sparse(-1000, max_hits=runs, sensitivity=sensitivity, **scales)([1])
    answers = [queryable(lambda _: 7) for _ in range(runs)]
    assert all(answer.outcome is ABOVE for answer in answers)
    kind = int if sensitivity == 1 and isinstance(sensitivity, int) else float
    assert all(type(answer.value) is kind for answer in answers)
    values = [answer.value - 7 for answer in answers]
    for edge in (1, 3, 6):
        p = float(tail(scale, edge)) if kind is int else math.exp(-edge / scale) / 2
        for side in (1, -1):
            low, high = band(runs, p)
            assert low <= sum(side * value >= edge for value in values) <= high


def test_an_answer_below_has_no_number():
    queryable = sparse(5, answer_scale=SURE)([1])
    below, above = queryable(lambda _: 4), queryable(lambda _: 6)
    assert (below.outcome, below.value) == (BELOW, None)
    assert (above.outcome, above.value) == (ABOVE, 6)
    assert queryable(lambda _: 8).value == 8
    assert queryable(lambda _: 9) == oc.handles.SparseVectorAnswer(EXHAUSTED)


@pytest.mark.parametrize("hits", [1, 2, 7])
@pytest.mark.parametrize("refresh", [False, True])
def test_exhausted_after_exactly_so_many_hits_and_the_data_are_left_alone(hits, refresh):
    seen = []

    def query(rows):
        seen.append(rows)
        return 10 if len(seen) % 2 else -10

    queryable = sparse(0, max_hits=hits, refresh=refresh)([1, 2])
    found = [queryable(query) for _ in range(2 * hits + 5)]
    assert [bool(one) for one in found[: 2 * hits - 1]] == ([True, False] * hits)[:-1]
    assert all(one.outcome is EXHAUSTED and one.value is None for one in found[2 * hits - 1 :])
    assert len(seen) == 2 * hits - 1
    assert sum(map(bool, found)) == hits


def test_thresholds_of_their_own():
    queryable = sparse(500, max_hits=100)([1] * 500)
    count = SPACE >> dp.t.then_count()
    assert queryable((count, 499.5))  # 500 >= 500
    assert not queryable((count, 500.5))  # 500 >= 501
    assert not queryable((count, 501))
    assert queryable((lambda rows: -3, -3.5))
    assert not queryable((lambda rows: -4, -3.5))
    assert queryable((count, -math.ldexp(1, 1000)))
    assert not queryable((count, math.ldexp(1, 1000)))
    assert queryable((count, np.float64(3.0)))


def test_a_query_may_not_ask_its_own_mechanism_for_more_than_its_hits():
    queryable = sparse(0, max_hits=1)([1])
    with suppress(ConcurrentError):
        queryable(lambda rows: 5 if queryable(lambda _: 7) else 6)
    answers = [bool(queryable(lambda _: 7)) for _ in range(5)]
    assert sum(answers) <= 1


def test_eight_threads_get_no_more_than_the_hits():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for hits in (1, 5, 50):
            queryable, found = sparse(0, max_hits=hits)([1]), [Counter() for _ in range(8)]

            def work(number, queryable=queryable, found=found):
                for _ in range(50):
                    found[number][queryable(lambda _: 7).outcome] += 1

            in_threads(work, range(8))
            assert sum(found, Counter()) == {ABOVE: hits, EXHAUSTED: 400 - hits}
    finally:
        sys.setswitchinterval(interval)


def test_above_threshold_is_a_sparse_vector_of_one_hit():
    for more in ({}, {"monotone": True}, {"query_scale": 3.0, "sensitivity": 2.0}):
        one = oc.m.make_above_threshold(*SPACE, PURE, 1, 2.0, 5, **more)
        other = oc.m.make_sparse_vector(*SPACE, PURE, 1, 2.0, 5, 1, **more)
        assert one.map(1) == other.map(1)
        then = SPACE >> oc.m.then_above_threshold(PURE, 1, 2.0, 5, **more)
        assert then.map(1) == one.map(1)


# --- the counterexamples to published sparse vectors [LSL17, Theorems 3, 6 and 7] -----------------


def log_probability(threshold, query, answers, string):
    """Of outcomes A and B for whole answers minus the threshold; no cap on A."""
    grid, mass = threshold_noise(threshold)
    logs = np.log(mass)
    for answer, outcome in zip(answers, string, strict=True):
        least = grid - answer
        logs = logs + np.log(tail(query, 1 - least if outcome == "B" else least))
    return float(np.logaddexp.reduce(logs))


@pytest.mark.parametrize(
    ("answers", "others", "string"),
    [
        ((0,) * 101, (1,) * 100 + (0,), "B" * 100 + "A"),
        ((0, 1), (1, 0), "BA"),
        ((0,) * 6, (1,) * 3 + (-1,) * 3, "BBBAAA"),
        ((0,) * 203, (1,) * 200 + (-1,) * 3, "B" * 200 + "AAA"),
    ],
)
def test_the_right_one_keeps_its_promise_on_counterexamples_to_others(answers, others, string):
    """Algorithms 3, 5 and 6 there lose more than they say: e^(mε/2) after m outcomes, or all.

    Here are their conversations, for c = 3, cut at the third hit.
    """
    one, other = (log_probability(2.0, 12.0, each, string) for each in (answers, others))
    assert 0.0 < abs(one - other) <= Noise(2.0, 12.0, 3).map(PURE) == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("hits", [1, 5])
def test_algorithm_4_costs_one_and_six_c_quarters(hits):
    """Lee and Clifton: noise of the queries without c. True: (1+6c)/4 ε, reached."""
    noise, true = Noise(4.0, 4 / 3, hits), (1 + 6 * hits) / 4
    assert 0.99 * true <= long_loss(noise, (0, 1), (0, -1), 1_000_000) <= true + 1e-9
    assert noise.map(PURE) == pytest.approx(true, rel=1e-12)  # what this package would say of it
