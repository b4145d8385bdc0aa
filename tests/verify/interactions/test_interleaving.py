"""Interleavings of interactive mechanisms never exceed the theorem."""

import math
from itertools import product
from math import inf, log

import numpy as np
import pytest

from opendp_concurrent import verify
from opendp_concurrent.verify.mechanism import _worst

from ...some import slow
from ..forbidden import optimal_delta


def as_round(mechanism):
    """A noninteractive mechanism, with one query."""
    return verify.FiniteInteractiveMechanism(mechanism.tables)


@pytest.mark.parametrize("count", [2, 3])
def test_single_rounds_interleave_to_the_optimal_composition(count):
    epsilons = (0.5, 0.8, 0.3)[:count]
    parts = [as_round(verify.randomized_response(one)) for one in epsilons]
    for epsilon in (0.0, 0.4, 1.0):
        exact = optimal_delta(tuple(sorted(epsilons)), epsilon)
        for delta in (verify.concurrent_delta, verify.sequential_delta, verify.composition_delta):
            assert delta(parts, epsilon) == pytest.approx(exact, abs=1e-12)


def check_interleaving(parts, epsilon):
    concurrent = verify.concurrent_delta(parts, epsilon)
    sequential = verify.sequential_delta(parts, epsilon)
    allowed = verify.composition_delta(parts, epsilon)
    assert sequential <= concurrent + 1e-12
    assert concurrent <= allowed + 1e-12
    return concurrent, sequential, allowed


@pytest.mark.parametrize(("pairs", "triples"), [(40, 0), *slow([(1000, 100)])])
def test_no_interleaving_exceeds_the_theorem_on_random_pairs(pairs, triples):
    ahead = 0
    for seed in range(pairs):
        parts = [verify.random_interactive(2 * seed + index) for index in (0, 1)]
        concurrent, sequential, _ = check_interleaving(parts, (0.0, 0.5, 1.0)[seed % 3])
        ahead += concurrent > sequential + 1e-9
    assert ahead > 0  # to interleave does help, within what the theorem allows
    for seed in range(triples):
        check_interleaving([verify.random_interactive(3 * seed + index) for index in range(3)], 0.5)


def test_the_order_of_a_sequence_may_depend_on_answers():
    """Three mechanisms: after the first one's answers, either of the others may be next."""
    for seed in (0, 56):
        parts = [verify.random_interactive(3 * seed + index) for index in range(3)]
        concurrent, sequential, _ = check_interleaving(parts, 0.5)
        expected = {0: 0.8098, 56: 0.77769}[seed]
        assert sequential == pytest.approx(expected, abs=2e-4)
        assert concurrent >= sequential


@pytest.mark.parametrize("order", [1.01, 2.0, 7.5])
def test_the_worst_interleaving_reaches_the_sum_of_renyi_divergences(order):
    def moment(p, q):
        return p**order * q ** (1 - order)

    for seed in range(4):
        parts = [verify.random_interactive(2 * seed + n, rounds=2 + n, sharp=3.0) for n in (0, 1)]
        for chosen in (parts, parts[:1]):
            brute = [_worst(chosen, one, sequential=False) for one in (moment, _swap(moment))]
            exact = verify.concurrent_renyi(chosen, order)
            assert exact == pytest.approx(log(max(brute)) / (order - 1), rel=1e-9, abs=1e-9)


def _swap(leaf):
    return lambda p, q: leaf(q, p)


def test_an_answer_that_is_impossible_on_one_dataset_has_an_infinite_renyi_divergence():
    certain = as_round(verify.FiniteMechanism((1.0, 0.0), (0.5, 0.5)))
    assert verify.concurrent_renyi([certain], 2.0) == inf
    halts = verify.FiniteInteractiveMechanism(  # answers of probability 0 on both
        (np.array([[[0.5, 0.5, 0.0]], [[0.25, 0.75, 0.0]]]),)
    )
    views = max(view.renyi(2.0) for view in halts.analysts())
    assert halts.renyi(2.0) == pytest.approx(views, rel=1e-12)


# --- interactive mechanisms and their tight parameters -------------------------------------------


def by_definition(mechanism, epsilon):
    """Over all functions from answers to queries, for two rounds."""
    best = 0.0
    first, second = mechanism.tables
    for query in range(first.shape[1]):
        for onward in product(range(second.shape[3]), repeat=first.shape[2]):
            laws = [
                np.array(
                    [
                        first[b, query, a] * second[b, query, a, onward[a], c]
                        for a in range(first.shape[2])
                        for c in range(second.shape[4])
                    ]
                )
                for b in (0, 1)
            ]
            for p, q in (laws, laws[::-1]):
                best = max(best, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_delta_is_that_of_the_best_deterministic_analyst(seed):
    mechanism = verify.random_interactive(seed, queries=2 + seed % 2, answers=2 + seed % 3 // 2)
    for epsilon in (0.0, 0.5, 1.5):
        exact = by_definition(mechanism, epsilon)
        assert mechanism.delta(epsilon) == pytest.approx(exact, abs=1e-12)
        assert mechanism.dominating.delta(epsilon) == pytest.approx(exact, abs=1e-9)
        views = max(view.delta(epsilon) for view in mechanism.analysts())
        assert views == pytest.approx(exact, abs=1e-12)
    worst = max(view.renyi(3.0) for view in mechanism.analysts())
    assert mechanism.renyi(3.0) == pytest.approx(worst, rel=1e-12)
    assert mechanism.epsilon(mechanism.delta(0.5)) <= 0.5 + 1e-6
    for alpha in (0.1, 0.4):
        views = [one for view in mechanism.analysts() for one in (view, view.swapped)]
        best = min(view.tradeoff(alpha) for view in views)
        assert best - 0.1 <= mechanism.tradeoff(alpha) <= best + 1e-12
