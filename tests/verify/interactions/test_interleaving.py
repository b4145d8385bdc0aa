"""Interleavings of interactive mechanisms never exceed the theorem."""

import math
from fractions import Fraction
from itertools import product
from math import inf, log
from random import Random

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import ClosedChildError
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


# --- approximate zCDP does not add up beside a mechanism that is approximate only as a whole ---

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
MEASURE = dp.approximate(dp.zero_concentrated_divergence())
FOUND = oc.verify.approximate_zcdp_counterexample()


def largest_rho(p, q):
    """A bound on D_a(P||Q) / a over all orders a > 1, in both directions.

    The divergence grows with the order: that at the end of an interval, divided by its start, is a
    bound on the interval.
    """
    grid = np.concatenate([np.linspace(1, 12, 60_000), np.linspace(12, 60, 2000)[1:]])
    top = 0.0
    for left, right in ((p, q), (q, p)):
        x, y = (np.log(np.array(law, float)) for law in (left, right))
        powers = np.outer(grid[1:], x) - np.outer(grid[1:] - 1, y)
        divergence = np.logaddexp.reduce(powers, axis=1) / (grid[1:] - 1)
        top = max(top, (divergence / grid[:-1]).max(), (x - y).max() / 60)
    return top


def bit(p):
    return p, 1 - p


X = Fraction(1, 128), Fraction(1, 2**25)
Y = Fraction(1, 16), Fraction(1, 2**19)


def test_each_mechanism_has_the_parameters():
    rho, delta = FOUND.rho, FOUND.delta
    assert max(largest_rho(*map(bit, X)), largest_rho(*map(bit, Y))) <= rho
    # query 0: without what shows the dataset, of mass delta, the rest is that of X
    assert delta / (1 - delta) == X[0]
    assert (1 - delta) * X[1] / (1 - delta) == X[1]
    # query 1: without y, of mass at most delta, the rest is that of Y
    assert (1 - delta) * X[1] <= delta
    for dataset in (0, 1):
        first, second = (table[dataset] for table in FOUND.whole.tables)
        assert first[0][1] == pytest.approx(float((delta, (1 - delta) * X[1])[dataset]))
        assert first[0][0] * second[0][0][0][dataset] == pytest.approx(float(delta))
        assert second[0][0][1][0] == float(Y[dataset])
        assert FOUND.plain.tables[0][dataset].tolist() == [
            list(map(float, bit(law[dataset]))) for law in (X, Y)
        ]


def test_the_interleaved_view_costs_more_than_the_sum():
    for dataset, law in enumerate(FOUND.view):
        assert sum(law) == 1
        assert min(law) >= 0
        first, second = (table[dataset] for table in FOUND.whole.tables)
        (x, y), bits = first[0], FOUND.plain.tables[0][dataset]
        played = [*(y * bits[1]), *(x * bits[0][1] * second[0][0][0])]
        played += [*(x * bits[0][0] * second[0][0][1][:2])]
        assert [float(one) for one in law] == pytest.approx(played, rel=1e-9)
    assert 2 * FOUND.rho < FOUND.least_rho < 7.906
    assert 1.0195 * FOUND.delta < FOUND.least_delta < 1.0199 * FOUND.delta


def played(law, random):
    return random.choices(range(len(law)), law)[0]


def mechanism(tables, d_mid):
    """A finite interactive mechanism as a measurement."""

    def function(rows):
        random, past = Random(len(rows)), []

        def transition(query):
            law = tables[len(past) // 2][(len(rows), *past, query)]
            past.extend((query, played(law, random)))
            return past[-1]

        return dp.new_queryable(transition)

    return dp.m.make_user_measurement(
        *SPACE, MEASURE, function, lambda d_in: d_mid, TO="ExtrinsicObject"
    )


@pytest.mark.parametrize("first", ["whole", "plain"])
@pytest.mark.parametrize("rows", [[], [1]])
@pytest.mark.parametrize("below", [False, True], ids=["on one handle", "below a limit"])
def test_a_filter_defeats_the_analyst(first, rows, below):
    """If a launch closed the older children only, ``plain``, launched first, would not end it."""
    rho, delta = float(FOUND.rho), float(FOUND.delta)
    odometer = oc.make_concurrent_odometer(*SPACE, MEASURE)
    root = oc.make_concurrent_filter(odometer, 1, (2 * rho, delta))(rows)
    other = root(oc.c.make_limited(odometer, 1, (rho, 0.0), label="a")) if below else root
    whole = mechanism(FOUND.whole.tables, (rho, delta))
    plain = mechanism(FOUND.plain.tables, (rho, 0.0))
    if first == "whole":
        handle = root(whole)
        assert handle(0) == 0  # x, almost surely
        bits = other(plain)
    else:
        bits, handle = other(plain), root(whole)
        assert handle(0) == 0
    query = bits(0)
    with pytest.raises(ClosedChildError, match="only as a whole"):
        handle(query)
    assert root.privacy_loss() == (2 * rho, delta)
