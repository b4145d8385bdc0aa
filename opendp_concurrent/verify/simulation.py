"""Interactive mechanisms as postprocessed randomized response: found by a linear programme.

Every finite (ε, δ)-DP one is, by [LW22, Theorem 3]; the programme is that of [VW21, Section 6].
Randomized response that fails with probability δ has four outcomes. For each of them the programme
looks for an interactive system, so that their mixture is the mechanism, on both datasets:

    M^b = δ E^b + (1 - δ) (e^ε N^b + N^(1-b)) / (1 + e^ε)

E^0, N^0, N^1, E^1 are the systems of the four outcomes. A system is a law of the answers for every
sequence of queries, in which no answer depends on later queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, kron, vstack

from .interactive import FiniteInteractiveMechanism, random_interactive
from .mechanism import response

Array = np.ndarray[Any, Any]
CERTIFIED = 1e-7  # largest violation that a certificate may have
FEASIBLE = 1e-8  # largest total of residuals that counts as none


@dataclass(frozen=True, eq=False)
class Simulation:
    """What the programme found.

    :ivar epsilon: of randomized response
    :ivar delta: of randomized response
    :ivar residual: by how much the mixture misses the mechanism, summed over all probabilities
    :ivar systems: E^0, N^0, N^1, E^1 along the first axis; then query, answer of each round in turn
    """

    epsilon: float
    delta: float
    residual: float
    systems: Array

    @property
    def feasible(self) -> bool:
        """Whether the mixture is the mechanism."""
        return self.residual <= FEASIBLE


def simulate(
    mechanism: FiniteInteractiveMechanism, epsilon: float, delta: float | None = None
) -> Simulation:
    """Find the systems whose mixture is closest to ``mechanism``.

    :param mechanism: finite, with few rounds: all of its answers are variables
    :param epsilon: of randomized response
    :param delta: of randomized response; the least one that the mechanism allows if left out
    :return: the systems, and by how much their mixture misses the mechanism
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ArithmeticError: if the programme could not be solved

    :example:

    >>> from opendp_concurrent import verify
    >>> mechanism = verify.random_interactive(seed=7)
    >>> found = verify.simulate(mechanism, epsilon=0.5)
    >>> found.feasible, verify.certify(mechanism, found) < 1e-7
    (True, True)
    >>> verify.simulate(mechanism, epsilon=0.5, delta=0.9 * found.delta).feasible
    False
    """
    least = mechanism.delta(epsilon) if delta is None else delta
    shape = mechanism.tables[-1].shape[1:]
    law = np.concatenate([joint(mechanism, b).ravel() for b in (0, 1)])
    causal, right = _causality(shape)
    size = law.size // 2
    mixture = kron(csr_array(_outcomes(epsilon, least)), csr_array(np.eye(size)))
    slack = csr_array(np.eye(2 * size))
    none = csr_array((len(right), 4 * size))
    columns = vstack([hstack([mixture, slack, -slack]), hstack([causal, none])])
    cost = np.concatenate([np.zeros(4 * size), np.ones(4 * size)])
    solved = linprog(cost, A_eq=columns, b_eq=np.concatenate([law, right]), method="highs")
    if solved.x is None:
        raise ArithmeticError(f"the linear programme was not solved: {solved.message}")
    systems = np.maximum(solved.x[: 4 * size], 0.0).reshape(4, *shape)
    return Simulation(epsilon, least, float(solved.fun), systems)


def joint(mechanism: FiniteInteractiveMechanism, dataset: int) -> Array:
    """Law of the answers to every sequence of queries: axes query, answer of each round."""
    law = np.ones(())
    for table in mechanism.tables:
        law = law[..., None, None] * table[dataset]
    return law


def _outcomes(epsilon: float, delta: float) -> Array:
    """Probabilities of the four outcomes of randomized response, on either dataset."""
    truth, lie = ((1 - delta) * one for one in response(epsilon))
    return np.array([[delta, truth, lie, 0.0], [0.0, lie, truth, delta]])


@lru_cache(maxsize=64)
def _causality(shape: tuple[int, ...]) -> tuple[Any, Array]:
    """Equations of four systems: no answer depends on later queries, and all is probability 1.

    From the last round to the first: the sum over its answers is the same for all its queries, and
    is what is left for the rounds before; the sum over the answers of the first round is 1.
    """
    size = int(np.prod(shape))
    left: Array = np.eye(size).reshape(*shape, size)  # which variables are summed, for each prefix
    equations = []
    for turn in reversed(range(len(shape) // 2)):
        left = left.sum(axis=2 * turn + 1)  # over the answers of this round
        reference = np.take(left, [0], axis=2 * turn)
        if turn:
            others = np.take(left, range(1, left.shape[2 * turn]), axis=2 * turn)
            equations.append((others - reference).reshape(-1, size))
            left = reference.squeeze(2 * turn)
        else:
            equations.append(left.reshape(-1, size))
    one = np.vstack(equations)
    right = np.concatenate([np.zeros(len(one) - shape[0]), np.ones(shape[0])])
    return csr_array(np.kron(np.eye(4), one)), np.tile(right, 4)


def certify(mechanism: FiniteInteractiveMechanism, simulation: Simulation) -> float:
    """Largest violation of what a simulation claims; checked from the definitions.

    Each system must be a law of answers in which none depends on later queries, and their mixture
    the mechanism, on both datasets. Uses none of the equations that the programme was given.
    Infinite if the claim has what is no number, or another shape.

    :param mechanism: what the claim is about
    :param simulation: the claim
    :return: the largest violation of an equation or a sign

    :example:

    >>> from opendp_concurrent import verify
    >>> found = verify.simulate(verify.random_interactive(seed=7), epsilon=0.5)
    >>> verify.certify(verify.random_interactive(seed=7), found) < 1e-7
    True
    >>> verify.certify(verify.random_interactive(seed=8), found) < 1e-7
    False
    """
    worst = 0.0
    rounds = mechanism.rounds
    shape = (4, *mechanism.tables[-1].shape[1:])
    numbers = 0.0 <= simulation.epsilon < inf and 0.0 <= simulation.delta <= 1.0
    if simulation.systems.shape != shape or not np.all(np.isfinite(simulation.systems)):
        return inf
    if not numbers:
        return inf
    for system in simulation.systems:
        worst = max(worst, float(-system.min()))
        for queries in product(*(range(mechanism.queries(turn)) for turn in range(rounds))):
            answers = _answers_to(system, queries)
            worst = max(worst, abs(float(answers.sum()) - 1.0))
            for turn in range(1, rounds):
                later = tuple(range(turn, rounds))
                for other in product(*(range(mechanism.queries(one)) for one in later)):
                    changed = _answers_to(system, (*queries[:turn], *other))
                    gap = answers.sum(axis=later) - changed.sum(axis=later)
                    worst = max(worst, float(np.abs(gap).max()))
    failing, kept = simulation.delta, 1 - simulation.delta
    truth, lie = response(simulation.epsilon)
    told, first, second, other_told = simulation.systems
    for b, (e, n, m) in enumerate([(told, first, second), (other_told, second, first)]):
        mixture = failing * e + kept * (truth * n + lie * m)
        worst = max(worst, float(np.abs(mixture - joint(mechanism, b)).max()))
    return worst


def _answers_to(system: Array, queries: tuple[int, ...]) -> Array:
    """Law of the answers to a sequence of queries."""
    index: list[Any] = []
    for query in queries:
        index += [query, slice(None)]
    return np.asarray(system[tuple(index)])


def simulate_random(seed: int, epsilon: float | None = None) -> tuple[bool, float]:
    """Simulate one random mechanism of two rounds; whether that is certified, and the residual.

    :param epsilon: drawn between 0 and 2 by the seed if left out
    """
    mechanism = random_interactive(seed)
    drawn = float(np.random.default_rng([seed, 1]).uniform(0, 2)) if epsilon is None else epsilon
    found = simulate(mechanism, drawn)
    return found.feasible and certify(mechanism, found) <= CERTIFIED, found.residual


def simulate_batch(seeds: Sequence[int], workers: int = 1) -> tuple[int, float]:
    """Simulate random mechanisms of two rounds; how many are certified, and the largest residual.

    :param seeds: of the mechanisms, and of the ε of each
    :param workers: processes to use
    :return: a number of mechanisms, and a sum of residuals

    :example:

    >>> from opendp_concurrent import verify
    >>> certified, residual = verify.simulate_batch(range(3))
    >>> certified, residual < 1e-8
    (3, True)
    """
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            found = list(pool.map(simulate_random, seeds, chunksize=50))
    else:
        found = list(map(simulate_random, seeds))
    return sum(feasible for feasible, _ in found), max((r for _, r in found), default=0.0)
