"""Interactive mechanisms as postprocessed noninteractive ones, by linear programming.

For two fixed neighbours every finite interactive mechanism is an interactive postprocessing of a
pair of distributions with the same trade-off function [VZ23]; an (ε, δ)-DP one is a postprocessing
of randomized response [LW22, Theorem 3]. The linear programme is that of [VW21, Section 6]. For
each outcome k of the pair it looks for an interactive system N_k, such that the mixture of the
systems is the mechanism, on both datasets:

    M^b = sum over k of P^b(k) N_k

A system has a distribution of the answers for every sequence of queries, and no answer depends on
later queries. So the mixture gives every analyst the same transcripts as the mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, kron, vstack

from .._checks import checked, instance, optional
from .mechanism import Array, FiniteInteractiveMechanism, FiniteMechanism

FEASIBLE = 1e-8  # largest sum of the residuals that counts as 0
_TOLERANCE = 1e-10  # of each equation; the smallest that the solver accepts
_REFINED = 3  # number of times that a solution is refined


@dataclass(frozen=True, eq=False)
class Simulation:
    """A solution of the linear programme.

    :ivar pair: the noninteractive mechanism
    :ivar residual: sum over all probabilities of the difference between mixture and mechanism,
        computed from the systems, to 1e-13
    :ivar systems: an array. Its first axis is the outcome of the pair; the others are query and
        answer of each round
    :ivar residual_lower: lower bound on the residual of all systems, to 1e-13, from a solution of
        the dual programme
    """

    pair: FiniteMechanism
    residual: float
    systems: Array
    residual_lower: float = 0.0

    @property
    def feasible(self) -> bool:
        """Whether the residual is at most 1e-8.

        If not, the residual of all other systems is at least ``residual_lower``, above 1e-8.
        """
        return self.residual <= FEASIBLE


@checked(mechanism=instance(FiniteInteractiveMechanism), pair=optional(instance(FiniteMechanism)))
def simulate(
    mechanism: FiniteInteractiveMechanism, pair: FiniteMechanism | None = None
) -> Simulation:
    """Find the interactive postprocessing of ``pair`` that is closest to ``mechanism``.

    Solvers allow a violation of each equation, of 1e-7 by default, so the result does not rely on
    them. The residual is computed from the systems, after these are made causal. A lower bound on
    the residual of all systems follows from weak duality. If the two do not decide whether the
    residual is above 1e-8, the programme is solved again for the difference, enlarged.

    :param mechanism: finite, with few rounds: each sequence of answers is a variable
    :param pair: what is postprocessed; by default ``mechanism.dominating``, which has the trade-off
        function of the mechanism
    :return: the systems, and the residual of their mixture
    :raises ArithmeticError: if the programme cannot be solved, or not to 1e-8

    :example:

    >>> mechanism = oc.verify.random_interactive(seed=7)
    >>> found = oc.verify.simulate(mechanism)
    >>> found.feasible, oc.verify.certify(mechanism, found) < 1e-8
    (True, True)
    >>> least = mechanism.delta(0.5)
    >>> oc.verify.simulate(mechanism, oc.verify.randomized_response(0.5, least)).feasible
    True
    >>> less = oc.verify.simulate(mechanism, oc.verify.randomized_response(0.5, least - 1e-7))
    >>> less.feasible, less.residual_lower > 1e-8
    (False, True)
    """
    pair = mechanism.dominating if pair is None else pair
    programme = _Programme(mechanism, pair)
    found: Array = np.zeros(programme.variables)
    best = Simulation(pair, inf, programme.systems(found))
    lower, enlarged = 0.0, 1.0
    for _ in range(1 + _REFINED):
        step, dual = programme.solve(found, enlarged)
        found = found + step / enlarged
        systems = programme.systems(found)
        residual, lower = programme.residual(systems), max(lower, programme.lower(dual))
        if residual < best.residual:
            best = Simulation(pair, residual, systems)
        if best.feasible or lower > FEASIBLE:
            return replace(best, residual_lower=min(lower, best.residual))
        enlarged *= 1e4
    raise ArithmeticError(
        f"the smallest residual is between {lower} and {best.residual}, so it is not known whether "
        f"it is at most {FEASIBLE}"
    )


class _Programme:
    """Minimise the residual over causal systems, one for each outcome of the pair.

    The variables are the systems, and the positive and the negative part of each residual.
    """

    def __init__(self, mechanism: FiniteInteractiveMechanism, pair: FiniteMechanism) -> None:
        outcomes = np.array([pair.first, pair.second])  # per dataset
        self.shape = outcomes.shape[1], *mechanism.tables[-1].shape[1:]
        self.law = np.concatenate([joint(mechanism, b).ravel() for b in (0, 1)])
        size, each = self.law.size // 2, csr_array(np.eye(self.shape[0]))
        one, right = _causality(self.shape[1:])
        causal, right = kron(each, one), np.tile(right, self.shape[0])
        self.mixture = kron(csr_array(outcomes), csr_array(np.eye(size)))
        slack = csr_array(np.eye(2 * size))
        none = csr_array((len(right), 4 * size))  # of the residuals
        self._columns = vstack(
            [hstack([self.mixture, slack, -slack]), hstack([causal, none])], format="csr"
        )
        self._right = np.concatenate([self.law, right])
        self._systems = causal.shape[1]  # variables of the systems
        self._cost = np.concatenate([np.zeros(self._systems), np.ones(4 * size)])
        self.variables = len(self._cost)

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
        return causal_systems(np.maximum(found[: self._systems], 0.0).reshape(self.shape))

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
        violated = (self._columns.T @ y)[: self._systems].reshape(self.shape[0], -1)
        sequences = float(np.prod(self.shape[1::2]))
        return float(y @ self._right - sequences * np.maximum(violated.max(axis=1), 0.0).sum())


def causal_systems(weights: Array) -> Array:
    """Systems in which no answer depends on later queries, from weights that are nearly so.

    The conditional probabilities of each answer are those of the weights, averaged over later
    queries. They are uniform where all weights are 0.
    """
    rounds = weights.ndim // 2
    systems: Array = np.ones(weights.shape[:1] + (1,) * (2 * rounds))
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
    """Equations of a system: no answer depends on later queries, and probabilities add up to 1.

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
    return csr_array(one), right


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

    >>> found = oc.verify.simulate(oc.verify.random_interactive(seed=7))
    >>> oc.verify.certify(oc.verify.random_interactive(seed=7), found) < 1e-8
    True
    >>> oc.verify.certify(oc.verify.random_interactive(seed=8), found) < 1e-8
    False
    """
    systems, pair = simulation.systems, simulation.pair
    shape = len(pair.first), *mechanism.tables[-1].shape[1:]
    if systems.shape != shape or not np.all(np.isfinite(systems)):
        return inf
    axes = range(1, systems.ndim)
    worst = [-systems.min(), np.abs(systems.sum(axis=tuple(axes[1::2])) - 1.0).max()]
    for turn in range(1, mechanism.rounds):
        later_queries, later_answers = tuple(axes[2 * turn :: 2]), tuple(axes[2 * turn + 1 :: 2])
        before = systems.sum(axis=later_answers, keepdims=True)
        worst.append(np.ptp(before, axis=later_queries).max())
    for b, law in enumerate((pair.first, pair.second)):
        mixture = np.tensordot(law, systems, 1)
        worst.append(np.abs(mixture - joint(mechanism, b)).max())
    return max(0.0, *map(float, worst))
