"""Guess and check: what it costs, against its exact law, and what it says.

The oracle knows nothing of the package: it enumerates outcomes together with the numbers released,
for analysts whose queries and guesses depend on both. Statistical tests raise a false alarm with
odds below 1e-9.
"""

import math
from collections import Counter

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binom, norm

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError

from ..build import APPROXIMATE, PURE, RENYI, SPACE, ZCDP
from ..verify.forbidden import optimal_delta
from .sparse_vector_oracle import tail

SURE = 1e-3  # a scale whose noise is 0, but for odds of e^-1000
ODDS = 1e-12  # of a false alarm, of one of two sides
CRUMB = 1e-10  # of the oracle's doubles
BELOW, ABOVE, EXHAUSTED = oc.handles.Outcome


def make(measure=PURE, scale=SURE, tolerance=3, max_hits=3, *, d_in=1, **more):
    return oc.m.make_guess_and_check(*SPACE, measure, d_in, scale, tolerance, max_hits, **more)


def scales_of(eps1, c, e2):
    """Half of eps1 for the tolerance, half for the checks."""
    return {"scale": 2 / eps1, "query_scale": 4 * c / eps1, "answer_scale": 1 / e2}


@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize("c", [1, 4])
@pytest.mark.parametrize(
    ("measure", "sum_of"),
    [
        (PURE, math.fsum),
        (ZCDP, math.fsum),
        (oc.fixed_renyi_divergence(16.0), math.fsum),
        (oc.gaussian_tradeoff(), lambda parts: math.hypot(*parts)),
    ],
)
def test_the_map_composes_a_sparse_vector_and_the_releases(measure, sum_of, c, refresh):
    checker = oc.m.make_sparse_vector(
        *SPACE, measure, 1, 3.0, 10, c, query_scale=9.0, refresh=refresh
    ).map(1)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    release = oc.m.make_certified_laplace(*whole, 6.0, measure).map(1)
    options = {"query_scale": 9.0, "answer_scale": 6.0, "refresh": refresh}
    found = make(measure, 3.0, max_hits=c, **options).map(1)
    exact = sum_of([checker] + [release] * c)
    assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-14)


def test_renyi_curves_are_compared_at_orders():
    scales = {"scale": 3.0, "query_scale": 9.0, "answer_scale": 6.0}
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        make(RENYI, **scales)
    orders = [1.5, 2.0, 16.0]
    curve = make(RENYI, **scales, orders=orders).map(1)
    for alpha in orders:
        fixed = make(oc.fixed_renyi_divergence(alpha), **scales).map(1)
        assert curve(alpha) == pytest.approx(fixed, rel=1e-13)
        assert curve(alpha) >= fixed * (1 - 1e-15)


def near_optimal(found, eps1, c, e2, delta):
    """Whether ε is that of independent randomized responses, RR_eps1 and c times RR_e2."""
    losses = (eps1, *[e2] * c)
    return optimal_delta(losses, found) <= delta + 1e-14 < optimal_delta(losses, found - 1e-6)


def test_the_values_of_the_theory():
    assert make(**scales_of(0.5, 3, 0.1)).map(1) == pytest.approx(0.8, abs=1e-15)
    f = make(oc.tradeoff(), **scales_of(0.5, 3, 0.1))
    for delta, value in ((1e-3, 0.7888343220), (1e-2, 0.6823017626)):
        assert value - 1e-9 <= f.map(1).epsilon(delta) <= value + 1e-6
        epsilon, left = oc.c.cast(f, APPROXIMATE, delta=delta).map(1)
        assert left == delta
        assert value - 1e-9 <= epsilon <= value + 1e-6


@pytest.mark.parametrize(("eps1", "c", "e2"), [(0.5, 3, 0.1), (1.0, 1, 1.0), (0.3, 6, 0.25)])
@pytest.mark.parametrize("delta", [1e-9, 1e-2, 0.1])
def test_under_f_dp_it_is_the_optimal_composition_of_its_parts(eps1, c, e2, delta):
    f, pure = (
        make(measure, max_hits=c, **scales_of(eps1, c, e2)).map(1)
        for measure in (oc.tradeoff(), PURE)
    )
    assert near_optimal(f.epsilon(delta), eps1, c, e2, delta)
    assert f.epsilon(delta) <= f.epsilon(0.0) + 1e-12
    assert pure - 1e-14 <= f.epsilon(0.0) <= pure + 1e-6


@pytest.mark.parametrize(("hits", "refresh"), [(200, False), (20, True)])
def test_at_a_delta_it_is_the_optimal_composition_of_its_rounds(hits, refresh):
    """The sum of 200 rounds is 4.02; with ``refresh`` each round has a sparse vector of one hit."""
    scales = {"scale": 2e4 if refresh else 100.0, "query_scale": 4e4, "answer_scale": 50.0}
    found = make(APPROXIMATE, max_hits=hits, refresh=refresh, delta=1e-6, **scales)
    epsilon, delta = found.map(1)
    assert delta == 1e-6
    assert refresh or epsilon == pytest.approx(1.2066053, abs=1e-6)
    losses = ((1e-4,) * hits if refresh else (0.02,)) + (0.02,) * hits
    assert optimal_delta(losses, epsilon) <= 1e-6 < optimal_delta(losses, epsilon - 1e-6)
    assert [found([1] * 9)((SPACE >> dp.t.then_count(), 10**6)).outcome] == [ABOVE]


# --- the exact law -----------------------------------------------------------------------------


def mass(scale, at):
    return math.tanh(1 / (2 * scale)) * np.exp(-np.abs(at) / scale)


def law(scales, hits, refresh, tolerance, analyst, length, reach):
    """Probabilities of all transcripts on two datasets; numbers beyond ``reach`` are left out.

    :param analyst: from the transcript, answers on both datasets and a guess
    """
    own, query, answer = scales
    span = int(50 * own) + 20
    grid = np.arange(-span, span + 1)
    prior, leaves = mass(own, grid), []
    numbers = np.arange(-reach, reach + 1)

    def walk(transcript, weights, left):
        if len(transcript) == length or left == 0:
            leaves.append((float(weights[0].sum()), float(weights[1].sum()), transcript))
            return
        *answers, guess = analyst(transcript)
        least = [tolerance + grid - abs(a - guess) for a in answers]
        below = [w * tail(query, 1 - t) for w, t in zip(weights, least, strict=True)]
        walk((*transcript, None), below, left)
        above = [w * tail(query, t) for w, t in zip(weights, least, strict=True)]
        if refresh:
            above = [w.sum() * prior for w in above]
        for number in numbers:
            released = [w * mass(answer, number - a) for w, a in zip(above, answers, strict=True)]
            walk((*transcript, int(number)), released, left - 1)

    walk((), [prior, prior], hits)
    return leaves


def fixed(transcript):
    """Each answer moves the way that tells most: away from the guess, then towards it."""
    return (0, 1, -2) if len(transcript) % 2 else (0, 1, 2)


def learner(transcript):
    """Guesses what was last released, and asks about what moves the other way if it was low."""
    released = [one for one in transcript if one is not None]
    if not released:
        return 0, 1, 3
    return (0, -1, released[-1]) if released[-1] < 1 else (1, 2, -released[-1])


ANALYSTS = pytest.mark.parametrize("analyst", [fixed, learner])


@ANALYSTS
@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize(
    ("scales", "hits", "length"), [((1.0, 2.0, 1.0), 1, 4), ((1.5, 1.0, 0.75), 2, 3)]
)
def test_no_transcript_costs_more_than_the_map_says(scales, hits, length, refresh, analyst):
    own, query, answer = scales

    def at(measure):
        options = {"query_scale": query, "answer_scale": answer, "refresh": refresh}
        return make(measure, own, 1, hits, **options).map(1)

    leaves = law(scales, hits, refresh, 1, analyst, length, int(28 * answer))
    p, q = (np.array([leaf[i] for leaf in leaves]) for i in (0, 1))
    assert p.sum() == pytest.approx(1.0, abs=1e-8)  # the rest is beyond reach
    assert q.sum() == pytest.approx(1.0, abs=1e-8)
    epsilon = at(PURE)
    losses = np.abs(np.log(p / q))
    assert 0.4 * epsilon <= losses.max() <= epsilon + CRUMB
    rho, mu, f = at(ZCDP), at(oc.gaussian_tradeoff()), at(oc.tradeoff())
    for alpha in (1.2, 2.0, 5.0, 20.0):
        moments = [np.sum(a * (a / b) ** (alpha - 1)) for a, b in ((p, q), (q, p))]
        exact = math.log(max(moments)) / (alpha - 1)
        assert 0.0 < exact <= at(oc.fixed_renyi_divergence(alpha)) + 1e-7
        assert exact <= rho * alpha + 1e-7
    for level in (0.0, 0.4, 1.0, 2.0):
        exact = max(np.maximum(0, a - math.exp(level) * b).sum() for a, b in ((p, q), (q, p)))
        assert exact <= f.delta(level) + 1e-7
        gaussian = norm.cdf(mu / 2 - level / mu) - math.exp(level) * norm.cdf(-mu / 2 - level / mu)
        assert exact <= gaussian + 1e-7
    assert max(0.0, (p - q).sum()) < 1e-7


def transcript_of(queryable, analyst, length, low):
    """Ask about the answer on the first dataset of the oracle, or on the second."""
    seen, told = [], []
    for _ in range(length):
        *answers, guess = analyst(tuple(seen))
        said = queryable((lambda rows, a=answers: a[0] if rows == [0] else a[1], guess))
        if said.outcome is EXHAUSTED:
            break
        seen.append(said.value if said else None)
        told.append(-2 if not said else min(1, max(-1, said.value - low)))
    return tuple(told)


@pytest.mark.parametrize(
    ("refresh", "analyst", "datasets"), [(False, learner, ([0], [0, 0])), (True, fixed, ([0],))]
)
def test_real_runs_have_the_law_of_the_oracle(refresh, analyst, datasets):
    scales, hits, length, runs, low = (1.5, 1.0, 0.75), 2, 3, 150, 0
    options = {"query_scale": scales[1], "answer_scale": scales[2], "refresh": refresh}
    mechanism = make(PURE, scales[0], 1, hits, **options)
    leaves = law(scales, hits, refresh, 1, analyst, length, 24)
    for index, data in enumerate(datasets):
        expected = Counter()
        for *chances, transcript in leaves:
            told = tuple(-2 if o is None else min(1, max(-1, o - low)) for o in transcript)
            expected[told] += chances[index]
        found = Counter(transcript_of(mechanism(data), analyst, length, low) for _ in range(runs))
        assert set(found) <= set(expected)
        for told, p in expected.items():
            p = min(1.0, max(0.0, p))
            low_band, high_band = binom.isf(1 - ODDS, runs, p), binom.isf(ODDS, runs, p)
            assert low_band - 1 <= found[told] <= high_band + 1, (told, found[told], runs * p)


def test_a_confirmed_guess_comes_back_unchanged():
    for guess in (5, 3.7):
        said = make(tolerance=100)([1, 2, 3])((len, guess))
        assert said == oc.handles.SparseVectorAnswer(BELOW, float(guess))
        assert not said


def test_a_bad_guess_is_answered_until_hits_are_used_up():
    count, queryable = SPACE >> dp.t.then_count(), make(tolerance=3, max_hits=2)([1, 2, 3])
    assert queryable((count, 5)) == oc.handles.SparseVectorAnswer(BELOW, 5.0)
    assert queryable((count, 6)) == oc.handles.SparseVectorAnswer(ABOVE, 3)  # off by 3: not below
    assert queryable((count, 1)) == oc.handles.SparseVectorAnswer(BELOW, 1.0)
    assert queryable((count, -99)) == oc.handles.SparseVectorAnswer(ABOVE, 3)
    for guess in (3, 99):
        assert queryable((count, guess)) == oc.handles.SparseVectorAnswer(EXHAUSTED, None)


def test_the_answer_released_is_that_of_the_query_not_of_its_deviation():
    queryable = make()([1, 2, 3])
    assert queryable((len, 1000)).value == 3
    assert queryable((oc.handles.Deviation(len, 10), 1000)).value == 7


def test_the_scale_of_a_release():
    """Its noise has its own scale, by default that of the tolerance."""
    runs = 200
    for more, scale in (({"answer_scale": 20.0}, 20.0), ({}, 3.0)):
        mechanism = make(scale=3.0, query_scale=1.0, max_hits=runs, **more)
        queryable = mechanism([1, 2, 3])
        found = [queryable((len, 10**6)).value - 3 for _ in range(runs)]
        p = float(tail(scale, 4))
        beyond = sum(abs(one) >= 4 for one in found)
        assert binom.isf(1 - ODDS, runs, 2 * p) <= beyond <= binom.isf(ODDS, runs, 2 * p)


def test_a_query_that_fails_when_it_is_released_has_used_a_hit():
    """It was told that the guess was bad: that was paid for."""
    asked = []

    def second_time_fails(rows):
        asked.append(1)
        if len(asked) == 2:
            raise ZeroDivisionError("the query's own")
        return len(rows)

    queryable = make(max_hits=2)([1, 2, 3])
    with pytest.raises(ZeroDivisionError):
        queryable((second_time_fails, 99))
    assert queryable((len, 99)).outcome is ABOVE
    assert queryable((len, 99)).outcome is EXHAUSTED
