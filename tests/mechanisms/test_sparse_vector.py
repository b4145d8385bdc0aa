"""How a sparse vector behaves, and that its answers have the law that its price is for.

Statistical bounds fail by chance with odds below 1e-9 each; noise is OpenDP's.
"""

import math
import pickle
import sys
import threading
from collections import Counter
from contextlib import suppress

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binom

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError, InvalidValueError

PURE, ZCDP, RENYI = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
ABOVE, BELOW, EXHAUSTED = (
    oc.handles.Outcome.ABOVE,
    oc.handles.Outcome.BELOW,
    oc.handles.Outcome.EXHAUSTED,
)
SURE = 1e-3  # a scale whose noise is 0, but for odds of e^-1000
ODDS = 1e-11


def sparse(space, threshold=0, max_hits=2, scale=SURE, measure=PURE, d_in=1, **more):
    more.setdefault("query_scale", scale)
    return oc.m.make_sparse_vector(*space, measure, d_in, scale, threshold, max_hits, **more)


# --- the law of the answers -------------------------------------------------------------------


def tail(scale, least):
    """P(noise >= least) of discrete Laplace noise."""
    q = math.exp(-1 / scale)
    far = np.exp(-np.maximum(least, 1 - least) / scale) / (1 + q)
    return np.where(least >= 1, far, 1 - far)


def center(scale):
    q = math.exp(-1 / scale)
    return round(q / (1 - q))


def sided(threshold, query, one_sided):
    """The raised threshold with its law, and the tail of a query's noise."""
    reach = int(60 * threshold) + 20
    if one_sided:
        grid = np.arange(reach)
        prior = -math.expm1(-1 / threshold) * np.exp(-grid / threshold)
        raised = grid + center(query) - center(threshold)
        return raised, prior, lambda least: np.exp(-np.maximum(least, 0) / query)
    grid = np.arange(-reach, reach + 1)
    prior = math.tanh(1 / (2 * threshold)) * np.exp(-np.abs(grid) / threshold)
    return grid, prior, lambda least: tail(query, least)


def law(answers, threshold, query, hits, refresh, one_sided=True):
    """Probability of each string of outcomes, summed over the threshold's noise."""
    grid, prior, over = sided(threshold, query, one_sided)
    paths = {"": prior}
    for answer in answers:
        after = {}
        for string, weights in paths.items():
            if string.count("A") == hits:
                after[string + "E"] = weights
                continue
            above = weights * over(grid - answer)
            after[string + "B"] = weights * (1 - over(grid - answer))
            after[string + "A"] = above.sum() * prior if refresh else above
        paths = after
    return {string: float(weights.sum()) for string, weights in paths.items()}


def band(runs, p, odds=ODDS):
    return binom.isf(1 - odds, runs, p) - 1, binom.isf(odds, runs, p) + 1


LETTERS = {BELOW: "B", ABOVE: "A", EXHAUSTED: "E"}
INSTANCES = [
    ((0, 1, -1), 1.0, 2.0, 1, False),
    ((1, 0, 2, -1), 2.0, 1.0, 2, False),
    ((1, 0, 2, -1), 2.0, 1.0, 2, True),
    ((0, 0, 0, 0), 4.0, 0.5, 3, True),
]


@pytest.mark.parametrize(
    ("answers", "threshold", "query", "hits", "refresh", "one_sided"),
    [*((*one, True) for one in INSTANCES), (*INSTANCES[1], False)],
)
def test_answers_have_the_law_that_is_paid_for(
    space, answers, threshold, query, hits, refresh, one_sided
):
    exact, runs = law(answers, threshold, query, hits, refresh, one_sided), 500
    assert math.fsum(exact.values()) == pytest.approx(1.0, abs=1e-12)
    made = sparse(
        space,
        100,
        max_hits=hits,
        scale=threshold,
        query_scale=query,
        refresh=refresh,
        one_sided=one_sided,
    )
    found = Counter()
    for _ in range(runs):
        queryable = made([1, 2])
        found["".join(LETTERS[queryable(lambda _, a=a: 100 + a).outcome] for a in answers)] += 1
    assert set(found) <= set(exact)
    for string, p in exact.items():
        low, high = band(runs, p)
        assert low <= found[string] <= high, (string, found[string], runs * p)


def test_a_wrong_law_would_be_seen():
    """Bands of the right law and of each wrong one do not meet, for some outcome."""

    def apart(right, wrong, runs=1_000):
        bands = [(band(runs, p), band(runs, wrong.get(s, 0.0))) for s, p in right.items()]
        return any(one[0] > other[1] or other[0] > one[1] for one, other in bands)

    def law_of(*instance):
        return law(*instance, one_sided=False)

    answers, threshold, query, hits, refresh = INSTANCES[1]
    right = law_of(answers, threshold, query, hits, refresh)
    assert apart(right, law_of(answers, threshold / 3, query, hits, refresh))
    assert apart(right, law_of(answers, 3 * threshold, query, hits, refresh))
    for instance in INSTANCES[1:]:
        answers, threshold, query, hits, refresh = instance
        right = law_of(*instance)
        assert apart(right, law_of(tuple(a + 2 for a in answers), threshold, query, hits, refresh))
        assert apart(right, law_of(answers, threshold, query, hits - 1, refresh))
    assert apart(right, law_of(answers, query, threshold, hits, refresh))
    assert apart(right, law_of(answers, threshold, query, hits, not refresh))
    sided = [law(*instance) for instance in INSTANCES]
    assert sum(map(apart, sided, [law_of(*instance) for instance in INSTANCES])) >= 1
    for instance, one in zip(INSTANCES, sided, strict=True):
        answers, threshold, query, hits, refresh = instance
        assert apart(one, law(tuple(a - 2 for a in answers), threshold, query, hits, refresh))


def test_many_rounds_of_one_conversation(space):
    """Refreshed, rounds are independent: how long each is has one law."""
    rounds, threshold, query = 4_000, 3.0, 1.0
    made = sparse(
        space,
        0,
        max_hits=rounds,
        scale=threshold,
        query_scale=query,
        refresh=True,
        one_sided=False,
    )
    queryable = made([1])
    lengths = Counter()
    for _ in range(rounds):
        waiting = 0
        while waiting < 9 and queryable(lambda _: 0).outcome is BELOW:
            waiting += 1
        lengths[waiting] += 1
        while waiting == 9 and not queryable((lambda _: 0, -(10**6))):
            pass  # end a round that takes long
    right = round_law(threshold, query)
    for length in range(9):
        low, high = band(rounds, right[length])
        assert low <= lengths[length] <= high
    for wrong in ((1.0, 1.0), (9.0, 1.0), (3.0, 0.5), (3.0, 2.0), (1.0, 3.0)):  # would be seen
        bands = [
            (band(rounds, p), band(rounds, q, 1e-5))
            for p, q in zip(right, round_law(*wrong), strict=True)
        ]
        assert any(one[0] > other[1] or other[0] > one[1] for one, other in bands), wrong


def round_law(threshold, query):
    """How long a round is, for answers at the threshold: 0 to 8 below, then one above."""
    grid, prior, over = sided(threshold, query, one_sided=False)
    above = over(grid)
    below = 1 - above
    return [float((prior * below**length * above).sum()) for length in range(9)]


def test_a_threshold_that_is_not_refreshed_stays(space):
    """With exact queries the outcomes tell the threshold, the same before and after a hit."""
    stays = fresh = 0
    for refresh in (False, True):
        made = sparse(space, 0, max_hits=40, scale=50.0, query_scale=1e-3, refresh=refresh)
        for _ in range(20):
            queryable, levels = made([1]), []
            for _ in range(2):
                level = -600
                while not queryable(lambda _, a=level: a):
                    level += 1
                levels.append(level)
            if refresh:
                fresh += levels[0] != levels[1]
            else:
                stays += levels[0] == levels[1]
    assert stays == 20
    assert fresh >= 8  # each is equal with odds of 1 to 200


@pytest.mark.parametrize("sensitivity", [1, 1.0])
def test_numbers_have_their_own_noise(space, sensitivity):
    """Given that it is above, the number is the answer with fresh noise of its scale."""
    runs, scale = 1_000, 2.0
    queryable = sparse(
        space,
        -1000,
        max_hits=runs,
        scale=1.0,
        query_scale=1.0,
        answer_scale=scale,
        sensitivity=sensitivity,
    )([1])
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


def test_an_answer_below_has_no_number(space):
    queryable = sparse(space, 5, answer_scale=SURE)([1])
    below, above = queryable(lambda _: 4), queryable(lambda _: 6)
    assert (below.outcome, below.value) == (BELOW, None)
    assert (above.outcome, above.value) == (ABOVE, 6)
    assert queryable(lambda _: 8).value == 8
    assert queryable(lambda _: 9) == oc.handles.SparseVectorAnswer(EXHAUSTED)


# --- conversations ----------------------------------------------------------------------------


@pytest.mark.parametrize("hits", [1, 2, 7])
@pytest.mark.parametrize("refresh", [False, True])
def test_exhausted_after_exactly_so_many_hits_and_the_data_are_left_alone(space, hits, refresh):
    seen = []

    def query(rows):
        seen.append(rows)
        return 10 if len(seen) % 2 else -10

    queryable = sparse(space, 0, max_hits=hits, refresh=refresh)([1, 2])
    found = [queryable(query) for _ in range(2 * hits + 5)]
    assert [bool(one) for one in found[: 2 * hits - 1]] == ([True, False] * hits)[:-1]
    assert all(one.outcome is EXHAUSTED and one.value is None for one in found[2 * hits - 1 :])
    assert len(seen) == 2 * hits - 1
    assert sum(map(bool, found)) == hits
    for _ in range(100):
        assert queryable(query).outcome is EXHAUSTED
    assert len(seen) == 2 * hits - 1


def test_answers_are_values():
    one, other = oc.handles.SparseVectorAnswer(ABOVE, 3), oc.handles.SparseVectorAnswer(ABOVE, 3)
    assert one == other
    assert hash(one) == hash(other)
    assert one
    assert not oc.handles.SparseVectorAnswer(BELOW)
    assert not oc.handles.SparseVectorAnswer(EXHAUSTED)
    with pytest.raises(AttributeError):
        one.value = 4
    assert repr(one) == "SparseVectorAnswer(outcome=ABOVE, value=3)"
    assert pickle.loads(pickle.dumps(one)) == one
    assert {outcome.value for outcome in oc.handles.Outcome} == {"above", "below", "exhausted"}


def test_thresholds_of_their_own(space):
    queryable = sparse(space, 500, max_hits=100)([1] * 500)
    count = space >> dp.t.then_count()
    assert queryable(count)
    assert queryable((count, 500))
    assert queryable((count, 499.5))  # 500 >= 500
    assert not queryable((count, 500.5))  # 500 >= 501
    assert not queryable((count, 501))
    assert queryable((lambda rows: -3, -3.5))
    assert not queryable((lambda rows: -4, -3.5))
    assert queryable((count, -math.ldexp(1, 1000)))
    assert not queryable((count, math.ldexp(1, 1000)))
    assert queryable((count, np.float64(3.0)))


def test_a_query_may_not_ask_its_own_mechanism_for_more_than_its_hits(space):
    queryable = sparse(space, 0, max_hits=1)([1])
    with suppress(ConcurrentError):
        queryable(lambda rows: 5 if queryable(lambda _: 7) else 6)
    answers = [bool(queryable(lambda _: 7)) for _ in range(5)]
    assert sum(answers) <= 1


def test_eight_threads_get_no_more_than_the_hits(space):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for hits in (1, 5, 50):
            queryable, found = sparse(space, 0, max_hits=hits)([1]), [Counter() for _ in range(8)]

            def work(number, queryable=queryable, found=found):
                for _ in range(50):
                    found[number][queryable(lambda _: 7).outcome] += 1

            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            total = sum(found, Counter())
            assert total == {ABOVE: hits, EXHAUSTED: 400 - hits}
    finally:
        sys.setswitchinterval(interval)


# --- arguments --------------------------------------------------------------------------------


def arguments(space):
    return {
        "input_domain": space[0],
        "input_metric": space[1],
        "output_measure": PURE,
        "d_in": 1,
        "scale": 2.0,
        "threshold": 5,
        "max_hits": 2,
    }


def test_the_map_is_for_one_d_in(space):
    made = sparse(space, scale=2.0, d_in=2, sensitivity=2)
    assert made.map(1) == made.map(2) == made.map(0) > 0.0
    assert made.check(2, made.map(2))
    assert not made.check(2, made.map(2) / 2)
    with pytest.raises(InvalidValueError, match=r"^d_in \(3\) must be at most 2"):
        made.map(3)


def test_above_threshold_is_a_sparse_vector_of_one_hit(space):
    for more in ({}, {"monotone": True}, {"query_scale": 3.0}, {"sensitivity": 2.0}):
        one = oc.m.make_above_threshold(*space, PURE, 1, 2.0, 5, **more)
        other = oc.m.make_sparse_vector(*space, PURE, 1, 2.0, 5, 1, **more)
        assert one.map(1) == other.map(1)
        then = space >> oc.m.then_above_threshold(PURE, 1, 2.0, 5, **more)
        assert then.map(1) == one.map(1)
    queryable = oc.m.make_above_threshold(*space, PURE, 1, SURE, 5, query_scale=SURE)([1] * 5)
    assert queryable(len).outcome is ABOVE
    assert queryable(len).outcome is EXHAUSTED


# --- the interactive mechanisms in OpenDP's Context API, with the scale left to be found ---------


ROWS = [3] * 9000 + [5] * 1000


def context(loss, **keywords):
    return oc.concurrent_context(
        data=ROWS,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=loss,
        split_evenly_over=2,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
        **keywords,
    )


def equal(value):
    return lambda rows: rows.count(value)


@pytest.mark.parametrize(
    ("loss", "measure", "share"),
    [
        (dp.loss_of(epsilon=1.0), dp.max_divergence, 0.5),
        (dp.loss_of(rho=1.0), dp.zero_concentrated_divergence, 0.5),
    ],
)
def test_the_scale_of_a_sparse_vector_is_found(loss, measure, share):
    made = context(loss)
    query = made.query().sparse_vector(measure(), 1, threshold=4000, max_hits=2)
    scale = query.param()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    assert oc.m.make_sparse_vector(*space, measure(), 1, scale, 4000, 2).map(1) <= share
    assert oc.m.make_sparse_vector(*space, measure(), 1, scale * 0.999, 4000, 2).map(1) > share
    queryable = query.release()
    assert queryable(equal(3))
    assert not queryable(equal(5))
