"""Interactive mechanisms as postprocessed randomized response, by linear programming.

Every finite (ε, δ)-DP interactive mechanism is a postprocessing of randomized response, by
[LW22, Theorem 3]. The linear programme is that of [VW21, Section 6]. Randomized response that fails
with probability δ has four outcomes. For each outcome the programme looks for an interactive
system, such that the mixture of the systems is the mechanism, on both datasets:

    M^b = δ E^b + (1 - δ) (e^ε N^b + N^(1-b)) / (1 + e^ε)

E^0, N^0, N^1, E^1 are the systems of the four outcomes. A system has a distribution of the answers
for every sequence of queries, and no answer depends on later queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, kron, vstack

from .._checks import NonNegative, Probability, at_most, checked, counted, each, instance, whole
from .interactive import FiniteInteractiveMechanism, random_interactive
from .mechanism import response

Array = np.ndarray[Any, Any]
FEASIBLE = 1e-8  # largest sum of the residuals that counts as 0
_TOLERANCE = 1e-10  # of each equation; the smallest that the solver accepts
_REFINED = 3  # number of times that a solution is refined


@dataclass(frozen=True, eq=False)
class Simulation:
    """A solution of the linear programme.

    :ivar epsilon: of randomized response
    :ivar delta: of randomized response
    :ivar residual: sum over all probabilities of the difference between mixture and mechanism,
        computed from the systems, to 1e-13
    :ivar systems: an array. Its first axis is E^0, N^0, N^1, E^1; the others are query and answer
        of each round
    :ivar residual_lower: lower bound on the residual of all systems, to 1e-13, from a solution of
        the dual programme
    """

    epsilon: float
    delta: float
    residual: float
    systems: Array
    residual_lower: float = 0.0

    @property
    def feasible(self) -> bool:
        """Whether the residual is at most 1e-8.

        If not, the residual of all other systems is at least ``residual_lower``, above 1e-8.
        """
        return self.residual <= FEASIBLE


@checked(mechanism=instance(FiniteInteractiveMechanism))
def simulate(
    mechanism: FiniteInteractiveMechanism, epsilon: NonNegative, delta: Probability | None = None
) -> Simulation:
    """Find the systems whose mixture is closest to ``mechanism``.

    Solvers allow a violation of each equation, of 1e-7 by default, so the result does not rely on
    them. The residual is computed from the systems, after these are made causal. A lower bound on
    the residual of all systems follows from weak duality. If the two do not decide whether the
    residual is above 1e-8, the programme is solved again for the difference, enlarged.

    :param mechanism: finite, with few rounds: each sequence of answers is a variable
    :param epsilon: of randomized response
    :param delta: of randomized response; by default the smallest one of the mechanism
    :return: the systems, and the residual of their mixture
    :raises ArithmeticError: if the programme cannot be solved, or not to 1e-8

    :example:

    >>> mechanism = oc.verify.random_interactive(seed=7)
    >>> found = oc.verify.simulate(mechanism, epsilon=0.5)
    >>> found.feasible, oc.verify.certify(mechanism, found) < 1e-8
    (True, True)
    >>> less = oc.verify.simulate(mechanism, epsilon=0.5, delta=found.delta - 1e-7)
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
        f"the smallest residual is between {lower} and {best.residual}, so it is not known whether "
        f"it is at most {FEASIBLE}"
    )


class _Programme:
    """Minimise the residual over four causal systems.

    The variables are the systems, and the positive and the negative part of each residual.
    """

    def __init__(self, mechanism: FiniteInteractiveMechanism, epsilon: float, delta: float) -> None:
        self.shape = mechanism.tables[-1].shape[1:]
        self.law = np.concatenate([joint(mechanism, b).ravel() for b in (0, 1)])
        size = self.law.size // 2
        causal, right = _causality(self.shape)
        truth, lie = ((1 - delta) * one for one in response(epsilon))
        outcomes = np.array([[delta, truth, lie, 0.0], [0.0, lie, truth, delta]])  # per dataset
        self.mixture = kron(csr_array(outcomes), csr_array(np.eye(size)))
        slack = csr_array(np.eye(2 * size))
        none = csr_array((len(right), 4 * size))
        self._columns = vstack(
            [hstack([self.mixture, slack, -slack]), hstack([causal, none])], format="csr"
        )
        self._right = np.concatenate([self.law, right])
        self._cost = np.concatenate([np.zeros(4 * size), np.ones(4 * size)])
        self.variables = 8 * size

    def solve(self, found: Array, enlarged: float) -> tuple[Array, Array]:
        """The step to add to ``found``, times ``enlarged``, and the dual variables."""
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
        """The causal systems with the conditional probabilities of ``found``."""
        return causal_systems(np.maximum(found[: self.variables // 2], 0.0).reshape(4, *self.shape))

    def residual(self, systems: Array) -> float:
        """The sum of the differences between the mixture and the mechanism."""
        return float(np.abs(self.mixture @ systems.ravel() - self.law).sum())

    def lower(self, dual: Array) -> float:
        """A lower bound on the residual of all causal systems, for any ``dual``, by weak duality.

        Each system adds up to the number of sequences of queries. So a violation of a constraint of
        the dual programme costs at most this number times the violation.
        """
        y = dual.copy()
        y[: self.law.size] = np.clip(y[: self.law.size], -1.0, 1.0)
        violated = (self._columns.T @ y)[: self.variables // 2].reshape(4, -1)
        sequences = float(np.prod(self.shape[::2]))
        return float(y @ self._right - sequences * np.maximum(violated.max(axis=1), 0.0).sum())


def causal_systems(weights: Array) -> Array:
    """Systems in which no answer depends on later queries, from weights that are nearly so.

    The conditional probabilities of each answer are those of the weights, averaged over later
    queries. They are uniform where all weights are 0.
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
    """Probabilities of all answers to all sequences of queries; axes as those of a system."""
    law = np.ones(())
    for table in mechanism.tables:
        law = law[..., None, None] * table[dataset]
    return law


@lru_cache(maxsize=64)
def _causality(shape: tuple[int, ...]) -> tuple[Any, Array]:
    """Equations of four systems: no answer depends on later queries, and probabilities add up to 1.

    They go from the last round to the first. The sum over the answers of a round is the same for
    all of its queries, and is the system of the rounds before it. The sum over the answers of the
    first round is 1.
    """
    size = int(np.prod(shape))
    left: Array = np.eye(size).reshape(*shape, size)  # the variables in the sum of each prefix
    equations = []
    for turn in reversed(range(len(shape) // 2)):
        left = left.sum(axis=2 * turn + 1)  # over the answers of this round
        if turn:
            reference = np.take(left, [0], axis=2 * turn)
            others = np.take(left, range(1, left.shape[2 * turn]), axis=2 * turn)
            equations.append((others - reference).reshape(-1, size))
            left = reference.squeeze(2 * turn)
    one = np.vstack([*equations, left.reshape(-1, size)])
    right = np.concatenate([np.zeros(len(one) - shape[0]), np.ones(shape[0])])
    return csr_array(np.kron(np.eye(4), one)), np.tile(right, 4)


@checked(mechanism=instance(FiniteInteractiveMechanism), simulation=instance(Simulation))
def certify(mechanism: FiniteInteractiveMechanism, simulation: Simulation) -> float:
    """Compute the largest violation of the definitions by a simulation.

    Each system must consist of probabilities, and no answer may depend on later queries. The
    mixture must be the mechanism, on both datasets. The check is independent of the equations of
    the programme. The result is infinite if the simulation has NaN or another shape.

    :param mechanism: the simulated mechanism
    :param simulation: the simulation to check
    :return: the largest violation of an equation or a sign

    :example:

    >>> found = oc.verify.simulate(oc.verify.random_interactive(seed=7), epsilon=0.5)
    >>> oc.verify.certify(oc.verify.random_interactive(seed=7), found) < 1e-8
    True
    >>> oc.verify.certify(oc.verify.random_interactive(seed=8), found) < 1e-8
    False
    """
    systems, failing = simulation.systems, simulation.delta
    if systems.shape != (4, *mechanism.tables[-1].shape[1:]) or not np.all(np.isfinite(systems)):
        return inf
    if not (0.0 <= simulation.epsilon < inf and 0.0 <= failing <= 1.0):
        return inf
    axes = range(1, systems.ndim)
    worst = [-systems.min(), np.abs(systems.sum(axis=tuple(axes[1::2])) - 1.0).max()]
    for turn in range(1, mechanism.rounds):
        later_queries, later_answers = tuple(axes[2 * turn :: 2]), tuple(axes[2 * turn + 1 :: 2])
        before = systems.sum(axis=later_answers, keepdims=True)
        worst.append(np.ptp(before, axis=later_queries).max())
    truth, lie = response(simulation.epsilon)
    told, first, second, other_told = systems
    for b, (e, n, m) in enumerate([(told, first, second), (other_told, second, first)]):
        mixture = failing * e + (1 - failing) * (truth * n + lie * m)
        worst.append(np.abs(mixture - joint(mechanism, b)).max())
    return max(0.0, *map(float, worst))


def _simulate_random(seed: int) -> tuple[bool, float]:
    """Whether one random mechanism is simulated and certified, and the residual."""
    mechanism = random_interactive(seed)
    found = simulate(mechanism, float(np.random.default_rng([seed, 1]).uniform(0, 2)))
    return found.feasible and certify(mechanism, found) <= FEASIBLE, found.residual


@checked(seeds=each("integers", whole), workers=at_most(64, "each is a process"))
def simulate_batch(
    seeds: Sequence[int], workers: int = 1, *, progress: bool = False
) -> tuple[int, float]:
    """Simulate random mechanisms of two rounds, and count the certified ones.

    :param seeds: each for a mechanism, and for its ε between 0 and 2
    :param workers: number of processes
    :param progress: show a bar, if tqdm is installed (extra ``progress``)
    :return: the number of certified mechanisms, and the largest residual

    :example:

    >>> certified, residual = oc.verify.simulate_batch(range(3))
    >>> certified, residual < 1e-8
    (3, True)
    """
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            made = pool.map(_simulate_random, seeds, chunksize=50)
            found = list(counted(made, progress, len(seeds)))
    else:
        found = list(counted(map(_simulate_random, seeds), progress, len(seeds)))
    return sum(feasible for feasible, _ in found), max((r for _, r in found), default=0.0)
