"""The profile of a selection, against exact laws of the best of K answers of finite mechanisms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.mechanisms.selection import (
    RandomRuns,
    approximate_selection,
    function_selection,
    most_of,
    scale_for,
)

from .selection_oracle import selection, weights

T = oc.TradeoffFunction
CRUMB = 1e-10


def runs_of(mean, eta, most=None):
    scale = scale_for(mean, eta)
    return RandomRuns(scale, eta, most_of(scale) if most is None else most)


def with_gamma(gamma, eta=1.0):
    return RandomRuns(-1 / math.log1p(-gamma), eta, 10**6)


@pytest.mark.parametrize(
    ("mu", "mean", "eta", "known"),
    [
        (math.sqrt(0.02), 100.0, 1.0, 1.1953236002),
        (0.5, 10.0, 1.0, 3.3825125088),
        (1.0, 100.0, 0.0, 7.9957915689),
    ],
)
def test_known_losses_of_gaussian_runs(mu, mean, eta, known):
    found = function_selection(runs_of(mean, eta), T.gaussian(mu)).epsilon(1e-6)
    assert found == pytest.approx(known, rel=1e-4)
    assert found >= known * (1 - 1e-9)


def test_known_losses_of_pure_and_approximate_runs():
    for epsilon, known in ((1.0, 2.5913440783), (0.1, 0.2635912846)):
        runs = with_gamma(0.1)
        assert function_selection(runs, T.pure(epsilon)).epsilon(0.0) == pytest.approx(known)
        assert approximate_selection(runs, (epsilon, 0.0)) == pytest.approx((known, 0.0))
    found = approximate_selection(with_gamma(0.01), (0.1, 1e-9))
    assert found == pytest.approx((0.2960331990, 1e-7), rel=1e-9)


def test_losses_that_say_nothing_or_all():
    runs = runs_of(10.0, 1.0)
    assert approximate_selection(runs, (0.0, 0.0)) == (0.0, 0.0)
    assert approximate_selection(runs, (math.inf, 0.0))[0] == math.inf
    assert approximate_selection(runs, (0.5, 0.2))[1] == 1.0
    assert function_selection(runs, T.identity()) == T.identity()
    assert function_selection(runs, T.worst()) == T.worst()
    assert function_selection(runs, T.pure(800.0)) == T.worst()


LAWS = [(1.2, 1.0, None), (5.0, 1.0, None), (30.0, 1.0, 20), (5.0, 0.5, 7), (4.0, 0.0, None)]
numbers = st.lists(st.integers(1, 40), min_size=2, max_size=5)


def claimed(runs, mechanism):
    """The bound for runs of a finite mechanism, at some ε; both orders of the datasets count."""
    function = T.finite(mechanism.first, mechanism.second).both_directions()
    bound = function_selection(runs, function)
    at = np.linspace(0.0, 1.5 * min(bound.epsilon(1e-9), 30.0), 12)
    return at, bound.delta(at)


@pytest.mark.parametrize(("mean", "eta", "most"), LAWS)
@given(first=numbers, second=numbers)
@settings(max_examples=3)
def test_no_selection_exceeds_its_profile(mean, eta, most, first, second):
    size = min(len(first), len(second))
    laws = [[one / sum(law[:size]) for one in law[:size]] for law in (first, second)]
    mechanism, runs = verify.FiniteMechanism(*laws), runs_of(mean, eta, most)
    best = selection(mechanism, weights(runs.scale, eta, runs.most))
    for epsilon, delta in zip(*claimed(runs, mechanism), strict=True):
        assert best.delta(epsilon) <= delta + CRUMB


@pytest.mark.parametrize(("mean", "eta", "most"), LAWS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-2)])
def test_runs_that_may_fail(mean, eta, most, epsilon, delta):
    runs = runs_of(mean, eta, most)
    one = verify.randomized_response(epsilon, delta)
    order = sorted(range(len(one.first)), key=lambda at: one.first[at] - one.second[at])
    bound = approximate_selection(runs, (epsilon, delta))
    for places in (order, order[::-1]):  # what scores best says most, or least
        sorted_runs = verify.FiniteMechanism(
            [one.first[at] for at in places], [one.second[at] for at in places]
        )
        best = selection(sorted_runs, weights(runs.scale, eta, runs.most))
        assert best.delta(bound[0]) <= bound[1] + CRUMB


def test_one_shape_less_and_a_fixed_number_are_seen_by_the_oracle():
    rare = 1e-4
    up = math.exp(1.0)
    first, second = (rare * up, 1 / (1 + up)), (rare, up / (1 + up))
    one = verify.FiniteMechanism((1 - sum(first), *first), (1 - sum(second), *second))
    drawn = runs_of(20.0, 1.0)
    best = selection(one, weights(drawn.scale, 1.0, drawn.most))
    at, deltas = claimed(RandomRuns(drawn.scale, 0.0, drawn.most), one)
    assert max(best.delta(e) - d for e, d in zip(at, deltas, strict=True)) > 1e-5
    more, less = math.exp(0.1) / (1 + math.exp(0.1)), 1 / (1 + math.exp(0.1))
    fixed = selection(verify.FiniteMechanism((more, less), (less, more)), [0.0] * 49 + [1.0])
    assert fixed.epsilon() > 10 * approximate_selection(runs_of(50.0, 1.0), (0.1, 0.0))[0]
