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
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, kron, vstack

from ...checks import at_most, checked, each, instance, non_negative, optional, probability, whole
from ..mechanism import response
from .interactive import FiniteInteractiveMechanism, random_interactive

Array = np.ndarray[Any, Any]
FEASIBLE = 1e-8  # largest total of residuals that counts as none
_TOLERANCE = 1e-10  # the least that the solver takes, for each equation
_REFINED = 3  # times that a solution is made more precise


@dataclass(frozen=True, eq=False)
class Simulation:
    """What the programme found.

    :ivar epsilon: of randomized response
    :ivar delta: of randomized response
    :ivar residual: by how much the mixture misses the mechanism, summed over all probabilities;
        added up from the systems, to 1e-13
    :ivar systems: E^0, N^0, N^1, E^1 along the first axis; then query, answer of each round in turn
    :ivar residual_lower: no systems miss it by less, to 1e-13: a solution of the dual programme
    """

    epsilon: float
    delta: float
    residual: float
    systems: Array
    residual_lower: float = 0.0

    @property
    def feasible(self) -> bool:
        """Whether the mixture is the mechanism, but for 1e-8 in all probabilities together.

        If not, no other systems are better than ``residual_lower``, which is more than 1e-8.
        """
        return self.residual <= FEASIBLE


@checked(
    mechanism=instance(FiniteInteractiveMechanism),
    epsilon=non_negative,
    delta=optional(probability),
)
def simulate(
    mechanism: FiniteInteractiveMechanism, epsilon: float, delta: float | None = None
) -> Simulation:
    """Find the systems whose mixture is closest to ``mechanism``.

    Solvers allow each equation a violation, of 1e-7 by default. So what they say is not used: the
    systems are made causal, and what their mixture misses is added up; that none miss less is shown
    by weak duality. Where the two do not decide whether it is more than 1e-8, the programme is
    solved again for what is left, enlarged.

    :param mechanism: finite, with few rounds: all of its answers are variables
    :param epsilon: of randomized response
    :param delta: of randomized response; the least one that the mechanism allows if left out
    :return: the systems, and by how much their mixture misses the mechanism
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ArithmeticError: if the programme could not be solved, or not to 1e-8

    :example:

    >>> from opendp_concurrent import verify
    >>> mechanism = verify.random_interactive(seed=7)
    >>> found = verify.simulate(mechanism, epsilon=0.5)
    >>> found.feasible, verify.certify(mechanism, found) < 1e-8
    (True, True)
    >>> less = verify.simulate(mechanism, epsilon=0.5, delta=found.delta - 1e-7)
    >>> less.feasible, less.residual_lower > 1e-8
    (False, True)
    """
    least = mechanism.delta(epsilon) if delta is None else delta
    programme = _Programme(mechanism, epsilon, least)
    found: Array = np.zeros(programme.variables)
    best = Simulation(epsilon, least, inf, programme.systems(found))
    lower, enlarged = 0.0, 1.0
    for _ in range(1 + _REFINED):
        step, dual = programme.solve(found, enlarged)
        found = found + step / enlarged
        systems = programme.systems(found)
        residual, lower = programme.residual(systems), max(lower, programme.lower(dual))
        if residual < best.residual:
            best = Simulation(epsilon, least, residual, systems)
        if best.feasible or lower > FEASIBLE:
            return replace(best, residual_lower=min(lower, best.residual))
        enlarged *= 1e4
    raise ArithmeticError(
        f"the least residual is between {lower} and {best.residual}: not decided to {FEASIBLE}"
    )


class _Programme:
    """Minimise the sum of what the mixture misses, over four causal systems.

    Variables: the systems, then what is missing and what is too much of each probability.
    """

    def __init__(self, mechanism: FiniteInteractiveMechanism, epsilon: float, delta: float) -> None:
        self.shape = mechanism.tables[-1].shape[1:]
        self.law = np.concatenate([joint(mechanism, b).ravel() for b in (0, 1)])
        size = self.law.size // 2
        causal, right = _causality(self.shape)
        self.mixture = kron(csr_array(_outcomes(epsilon, delta)), csr_array(np.eye(size)))
        slack = csr_array(np.eye(2 * size))
        none = csr_array((len(right), 4 * size))
        self._columns = vstack(
            [hstack([self.mixture, slack, -slack]), hstack([causal, none])], format="csr"
        )
        self._right = np.concatenate([self.law, right])
        self._cost = np.concatenate([np.zeros(4 * size), np.ones(4 * size)])
        self.variables = 8 * size

    def solve(self, found: Array, enlarged: float) -> tuple[Array, Array]:
        """What is to be added to ``found``, times ``enlarged``; and the dual variables."""
        solved = linprog(
            self._cost,
            A_eq=self._columns,
            b_eq=enlarged * (self._right - self._columns @ found),
            bounds=np.stack([-enlarged * found, np.full_like(found, inf)], axis=1),
            method="highs",
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        if solved.x is None:
            raise ArithmeticError(f"the linear programme was not solved: {solved.message}")
        return np.asarray(solved.x), np.asarray(solved.eqlin.marginals)

    def systems(self, found: Array) -> Array:
        """The nearest systems that are causal, by their conditional probabilities."""
        return causal_systems(np.maximum(found[: self.variables // 2], 0.0).reshape(4, *self.shape))

    def residual(self, systems: Array) -> float:
        """What the mixture misses."""
        return float(np.abs(self.mixture @ systems.ravel() - self.law).sum())

    def lower(self, dual: Array) -> float:
        """No causal systems miss less, by weak duality, whatever ``dual`` is.

        Each system adds up to the number of sequences of queries: where a constraint of the dual
        programme is violated, that times the violation is taken off.
        """
        y = dual.copy()
        y[: self.law.size] = np.clip(y[: self.law.size], -1.0, 1.0)
        violated = (self._columns.T @ y)[: self.variables // 2].reshape(4, -1)
        sequences = float(np.prod(self.shape[::2]))
        return float(y @ self._right - sequences * np.maximum(violated.max(axis=1), 0.0).sum())


def causal_systems(weights: Array) -> Array:
    """Laws of answers in which none depends on later queries, from weights that nearly are.

    The conditional law of each answer is that of the weights, averaged over later queries; all
    answers are equally likely where there are no weights.
    """
    rounds = weights.ndim // 2
    systems: Array = np.ones((4,) + (1,) * (2 * rounds))
    for turn in range(rounds):
        later = tuple(range(2 * turn + 3, weights.ndim))
        left = weights.sum(axis=later, keepdims=True)
        total = left.sum(axis=2 * turn + 2, keepdims=True)
        uniform = np.full_like(left, 1 / left.shape[2 * turn + 2])
        systems = systems * np.divide(left, total, out=uniform, where=total > 0.0)
    return systems


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


@checked(mechanism=instance(FiniteInteractiveMechanism), simulation=instance(Simulation))
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
    >>> verify.certify(verify.random_interactive(seed=7), found) < 1e-8
    True
    >>> verify.certify(verify.random_interactive(seed=8), found) < 1e-8
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
    return found.feasible and certify(mechanism, found) <= FEASIBLE, found.residual


@checked(seeds=each("integers", whole), workers=at_most(64, "each is a process"))
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
