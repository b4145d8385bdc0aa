"""Simulations of interactive mechanisms by a mixture of four, certified."""

import math
from itertools import product

import numpy as np
import pytest

from opendp_concurrent import verify
from opendp_concurrent.verify import simulation


def example():
    """The mechanism of theory 9.8: a bit, then one of two bits."""
    first = np.array([[[0.7, 0.3]], [[0.5, 0.5]]])
    second = np.zeros((2, 1, 2, 2, 2))
    for b, table in enumerate(([[0.2, 0.6], [0.5, 0.4]], [[0.3, 0.3], [0.7, 0.1]])):
        for answer, query in product(range(2), range(2)):
            second[b, 0, answer, query] = [1 - table[answer][query], table[answer][query]]
    return verify.FiniteInteractiveMechanism((first, second))


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
    first = np.full((2, 1, 2), 0.5)
    second = np.zeros((2, 1, 2, 2, 2))
    for b, table in enumerate(([[0.2, 0.5], [0.5, 0.2]], [[0.6, 0.5], [0.5, 0.6]])):
        for answer, query in product(range(2), range(2)):
            second[b, 0, answer, query] = [1 - table[answer][query], table[answer][query]]
    mechanism = verify.FiniteInteractiveMechanism((first, second))
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
    for change in (
        lambda s: s * 0.99,  # no probabilities
        lambda s: np.where(np.arange(s.size).reshape(s.shape) == 0, -0.01, s),  # negative
        lambda s: s[::-1],  # another mixture
        lambda s: (
            s + np.array([0.01, -0.01])[None, None, :, None, None] * np.array([1, -1])[:, None]
        ),
    ):
        bad = verify.Simulation(good.pair, 0.0, change(good.systems))
        assert verify.certify(mechanism, bad) > 1e-4
