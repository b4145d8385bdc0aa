"""Interleavings of interactive mechanisms never exceed the theorem."""

import math
from fractions import Fraction
from itertools import product
from math import inf, log

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.verify import simulation
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
    assert sequential - 1e-12 <= concurrent <= verify.composition_delta(parts, epsilon) + 1e-12
    return concurrent, sequential


@pytest.mark.parametrize(("pairs", "triples"), [(40, 0), *slow([(1000, 100)])])
def test_no_interleaving_exceeds_the_theorem_on_random_pairs(pairs, triples):
    ahead = 0
    for seed in range(pairs):
        parts = [verify.random_interactive(2 * seed + index) for index in (0, 1)]
        concurrent, sequential = check_interleaving(parts, (0.0, 0.5, 1.0)[seed % 3])
        ahead += concurrent > sequential + 1e-9
    assert ahead > 0  # to interleave does help, within what the theorem allows
    for seed in range(triples):
        check_interleaving([verify.random_interactive(3 * seed + index) for index in range(3)], 0.5)


def test_the_order_of_a_sequence_may_depend_on_answers():
    """Three mechanisms: after the first one's answers, either of the others may be next."""
    for seed, expected in ((0, 0.8098), (56, 0.77769)):
        parts = [verify.random_interactive(3 * seed + index) for index in range(3)]
        _, sequential = check_interleaving(parts, 0.5)
        assert sequential == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("order", [1.01, 2.0, 7.5])
def test_the_worst_interleaving_reaches_the_sum_of_renyi_divergences(order):
    def moment(p, q):
        return p**order * q ** (1 - order)

    for seed in range(4):
        parts = [verify.random_interactive(2 * seed + n, rounds=2 + n, sharp=3.0) for n in (0, 1)]
        for chosen in (parts, parts[:1]):
            brute = [
                _worst(chosen, one, sequential=False)
                for one in (moment, lambda p, q: moment(q, p))  # both orders of the datasets
            ]
            exact = verify.concurrent_renyi(chosen, order)
            assert exact == pytest.approx(log(max(brute)) / (order - 1), rel=1e-9, abs=1e-9)


def test_an_answer_that_is_impossible_on_one_dataset_has_an_infinite_renyi_divergence():
    certain = as_round(verify.FiniteMechanism((1.0, 0.0), (0.5, 0.5)))
    assert verify.concurrent_renyi([certain], 2.0) == inf
    halts = verify.FiniteInteractiveMechanism(  # answers of probability 0 on both
        (np.array([[[0.5, 0.5, 0.0]], [[0.25, 0.75, 0.0]]]),)
    )
    views = max(view.renyi(2.0) for view in halts.analysts())
    assert halts.renyi(2.0) == pytest.approx(views, rel=1e-12)


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


# --- simulations of interactive mechanisms by a mixture of four, certified ---------------------


def of_bits(first, tables):
    """A bit, then one of two bits: ``tables`` have the chance of 1 for each answer and query."""
    second = np.zeros((2, 1, 2, 2, 2))
    for b, table in enumerate(tables):
        for answer, query in product(range(2), range(2)):
            second[b, 0, answer, query] = [1 - table[answer][query], table[answer][query]]
    return verify.FiniteInteractiveMechanism((np.array([[law] for law in first]), second))


def example():
    """The mechanism of theory 9.8."""
    return of_bits([[0.7, 0.3], [0.5, 0.5]], ([[0.2, 0.6], [0.5, 0.4]], [[0.3, 0.3], [0.7, 0.1]]))


def test_the_example_of_the_literature():
    mechanism = example()
    for epsilon, printed, residual in (
        (0.0, 0.34, 0.068),
        (0.5, 0.2102557459, 0.0255053112),
        (1.0, 0.0122577257, 0.0009018731),
    ):
        delta = mechanism.delta(epsilon)
        assert delta == pytest.approx(printed, abs=1e-10)
        found = verify.simulate(mechanism, verify.randomized_response(epsilon, delta))
        assert found.feasible
        assert verify.certify(mechanism, found) < 1e-9
        below = verify.simulate(mechanism, verify.randomized_response(epsilon, 0.9 * delta))
        assert not below.feasible
        assert below.residual == pytest.approx(residual, abs=1e-9)
        assert verify.certify(mechanism, below) > 1e-5


def test_an_adaptive_analyst_is_better_than_one_who_is_not():
    tables = [[0.2, 0.5], [0.5, 0.2]], [[0.6, 0.5], [0.5, 0.6]]
    mechanism = of_bits([[0.5, 0.5]] * 2, tables)
    assert mechanism.delta(0.0) == pytest.approx(0.4)
    short, enough = (verify.randomized_response(0.0, delta) for delta in (0.2, 0.4))
    assert verify.simulate(mechanism, short).residual == pytest.approx(0.4, abs=1e-8)
    assert verify.simulate(mechanism, enough).feasible


@pytest.mark.parametrize("count", [41, pytest.param(200, marks=pytest.mark.slow)])
def test_random_mechanisms_are_simulated_and_certified(count):
    for seed in range(count):
        mechanism = verify.random_interactive(seed)
        epsilon = 2 * (seed % 7) / 7
        delta = mechanism.delta(epsilon)
        found = verify.simulate(mechanism, verify.randomized_response(epsilon, delta))
        assert found.feasible, seed
        assert verify.certify(mechanism, found) < 1e-7
        if seed % 10 == 0 and delta > 1e-3:
            less = verify.randomized_response(epsilon, 0.9 * delta)
            assert not verify.simulate(mechanism, less).feasible


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_pair_with_the_same_tradeoff_function_gives_every_analyst_the_same_transcripts(rounds):
    """[VZ23]: and no pair that is harder to tell apart does, such as what one analyst sees."""
    for seed in range(5):
        mechanism = verify.random_interactive(seed, rounds)
        found = verify.simulate(mechanism)
        assert found.feasible
        assert verify.certify(mechanism, found) < 1e-9
        assert found.pair.delta(0.4) == pytest.approx(mechanism.delta(0.4), abs=1e-12)
        systems = [as_mechanism(one).analysts() for one in found.systems]
        for exact, *parts in zip(mechanism.analysts(), *systems, strict=True):
            mixed = np.zeros((2, len(exact.first)))
            for pair, part in zip(found.pair.pairs, parts, strict=True):
                mixed += np.outer(pair, part.first)
            assert np.abs(mixed - [exact.first, exact.second]).max() < 1e-9
        if rounds > 1:
            alone = verify.simulate(mechanism, next(mechanism.analysts()))
            assert alone.residual_lower > 1e-8


def as_mechanism(system):
    """An interactive mechanism that is the system, whatever the dataset."""
    tables = []
    for turn in range(1, system.ndim // 2 + 1):
        law, before = (
            system.sum(axis=tuple(range(2 * one + 1, system.ndim, 2)))[
                (slice(None),) * 2 * one + (0,) * (system.ndim // 2 - one)
            ]
            for one in (turn, turn - 1)
        )
        with np.errstate(invalid="ignore"):
            table = np.nan_to_num(law / before[..., None, None], nan=1 / law.shape[-1])
        tables.append(np.stack([table, table]))
    return verify.FiniteInteractiveMechanism(tuple(tables))


@pytest.mark.parametrize("less", [1e-7, 3e-8])
@pytest.mark.parametrize("tolerance", [1e-10, 1e-7])
def test_a_violation_of_a_few_hundred_millionths_is_told(less, tolerance, monkeypatch):
    """Where the solver allows more than that, what is left is solved again, enlarged."""
    monkeypatch.setattr(simulation, "_TOLERANCE", tolerance)
    for seed in range(8):
        mechanism = verify.random_interactive(seed)
        least = mechanism.delta(0.5)
        assert verify.simulate(mechanism, verify.randomized_response(0.5, least)).feasible
        found = verify.simulate(mechanism, verify.randomized_response(0.5, least - less))
        if found.feasible:
            assert 0.0 <= found.residual_lower <= found.residual <= 1e-8
            continue
        assert 1e-8 < found.residual_lower <= found.residual <= 10 * less
        assert verify.certify(mechanism, found) > 1e-10
    pair = verify.randomized_response(0.0, example().delta(0.0) - 3e-8)
    found = verify.simulate(example(), pair)
    assert found.residual_lower == pytest.approx(6e-8, rel=1e-3)
    assert not found.feasible


def test_what_is_not_decided_raises(monkeypatch):
    monkeypatch.setattr(simulation, "_REFINED", 0)
    monkeypatch.setattr(simulation._Programme, "lower", lambda programme, dual: 0.0)
    mechanism = verify.random_interactive(7)
    with pytest.raises(ArithmeticError, match="^the smallest residual is between 0.0 and"):
        verify.simulate(mechanism, verify.randomized_response(0.5, 0.9 * mechanism.delta(0.5)))


def test_a_lower_bound_holds_whatever_the_dual_variables_are():
    mechanism = verify.random_interactive(7)
    pair = verify.randomized_response(0.5, 0.9 * mechanism.delta(0.5))
    programme, least = simulation._Programme(mechanism, pair), verify.simulate(mechanism, pair)
    _, dual = programme.solve(np.zeros(programme.variables), 1.0)
    assert programme.lower(dual) == pytest.approx(least.residual, abs=1e-12)
    generator = np.random.default_rng(1)
    for size in (1e-6, 1e-3, 1.0, 100.0):
        for _ in range(50):
            wrong = dual + size * generator.standard_normal(len(dual))
            assert programme.lower(wrong) <= least.residual + 1e-12


def test_the_certificate_notices_each_kind_of_defect():
    mechanism = verify.random_interactive(3)
    good = verify.simulate(mechanism, verify.randomized_response(0.5, mechanism.delta(0.5)))
    for systems in (np.full_like(good.systems, math.nan), good.systems[:2]):
        bad = verify.Simulation(good.pair, 0.0, systems)
        assert verify.certify(mechanism, bad) == math.inf
    moved = np.array([0.01, -0.01])[None, None, :, None, None] * np.array([1, -1])[:, None]
    for change in (
        lambda s: s * 0.99,  # no probabilities
        lambda s: np.where(np.arange(s.size).reshape(s.shape) == 0, -0.01, s),  # negative
        lambda s: s[::-1],  # another mixture
        lambda s: s + moved,
    ):
        bad = verify.Simulation(good.pair, 0.0, change(good.systems))
        assert verify.certify(mechanism, bad) > 1e-4
