"""A finite interactive mechanism: rounds of a query and an answer, on two neighbouring datasets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import inf
from typing import Any

import numpy as np

from .. import _checks as checks
from .._checks import Positive, Whole, at_most, checked, each, instance, probability, whole
from ..errors import InvalidTypeError, InvalidValueError, shown
from .mechanism import TOLERANCE, Array, FiniteMechanism, Leaf, excesses, one_way

SHORTEST = 1e-14  # shorter segments of a convex hull are rounding errors
History = tuple[tuple[int, int], ...]  # (query, answer) of each round so far


@dataclass(frozen=True, eq=False)
class FiniteInteractiveMechanism:
    """The distributions of the answers to all queries, on two neighbouring datasets.

    The state of the mechanism is its history. Queries and answers are numbered from 0. ``delta``,
    ``epsilon`` at δ = 0 and ``renyi`` are dynamic programmes. All others list all deterministic
    analysts: 32,768 analysts for four rounds of two queries and two answers.

    :ivar tables: for each round an array of probabilities. Its axes are the dataset (2), the query
        and the answer of each earlier round, and the query and the answer of this round
    """

    tables: tuple[Array, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.tables, tuple) or not self.tables:
            raise InvalidTypeError("tables must be a nonempty tuple of arrays, one for each round")
        tables: list[Array] = []
        shape: tuple[int, ...] = (2,)
        for index, given in enumerate(self.tables):
            try:
                table = np.array(given, dtype=float)
            except Exception as error:
                raise InvalidTypeError(
                    f"tables[{index}] must be an array of numbers, found {type(given).__name__}"
                ) from error
            table.setflags(write=False)
            if table.ndim != len(shape) + 2 or table.shape[: len(shape)] != shape:
                raise InvalidValueError(
                    f"tables[{index}] must have axes {shape} and those of its query and answer, "
                    f"found {table.shape}"
                )
            if not (np.all(table >= 0) and np.allclose(table.sum(-1), 1, rtol=0, atol=TOLERANCE)):
                raise InvalidValueError(f"tables[{index}] must be probabilities on the last axis")
            shape = table.shape
            tables.append(table)
        object.__setattr__(self, "tables", tuple(tables))

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.tables)

    def queries(self, turn: int) -> int:
        """Number of queries in round ``turn``, counted from 0."""
        turn = whole(turn=turn)
        if not turn < self.rounds:
            raise InvalidValueError(f"turn ({shown(turn)}) must be below {self.rounds}")
        return int(self.tables[turn].shape[-2])

    def answers(self, history: History, query: int) -> list[tuple[float, float]]:
        """For each answer, its probability on each dataset."""
        try:
            at = (*(whole(history=index) for pair in history for index in pair), whole(query=query))
            first, second = (dataset[at] for dataset in self.tables[len(history)])
            return list(zip(map(float, first), map(float, second), strict=True))
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise InvalidValueError(
                f"history ({shown(history)}) must be pairs of a query and its answer, and query "
                f"({shown(query)}) a query of the next round"
            ) from error

    def analysts(self) -> Iterator[FiniteMechanism]:
        """The view of each deterministic analyst. These suffice [HSTVVXZ23, Lemma 2.3]."""
        yield from (FiniteMechanism(*zip(*view, strict=True)) for view in self._views(()))

    def _views(self, history: History) -> list[tuple[tuple[float, float], ...]]:
        """For each analyst, the probabilities of all future answers after ``history``."""
        if len(history) == self.rounds:
            return [((1.0, 1.0),)]
        views = []
        for query in range(self.queries(len(history))):
            answers = self.answers(history, query)
            below = [self._views((*history, (query, a))) for a in range(len(answers))]
            for onward in product(*below):
                views.append(
                    tuple(
                        (p * one, q * other)
                        for (p, q), view in zip(answers, onward, strict=True)
                        for one, other in view
                    )
                )
        return views

    def delta(self, epsilon: float) -> float:
        """Smallest δ at ``epsilon`` for both orders of the datasets, against every analyst."""
        return concurrent_delta([self], epsilon)

    def epsilon(self, delta: float = 0.0) -> float:
        """Smallest ε at ``delta``, against every analyst."""
        if probability(delta=delta) == 0.0:
            return max(one_way(self.tables, inf, side) for side in (0, 1))
        return self.dominating.epsilon(delta)

    def renyi(self, order: float) -> float:
        """Rényi divergence of ``order``, the larger of both directions, against every analyst."""
        return concurrent_renyi([self], order)

    def tradeoff(self, alpha: float) -> float:
        """Smallest type II error at type I error ``alpha``, against all analysts, also randomized.

        The smaller value of both orders of the datasets.
        """
        return min(one.tradeoff(alpha) for one in (self.dominating, self.dominating.swapped))

    @cached_property
    def dominating(self) -> FiniteMechanism:
        """The pair of distributions with the trade-off function of all analysts together.

        This function is the lower convex hull of the points (type I error, type II error) of all
        analysts. By [VZ23] the mechanism is an interactive postprocessing of the pair.
        """
        return hull_pair([point for view in self.analysts() for point in view.roc()])


def hull_pair(points: list[tuple[float, float]]) -> FiniteMechanism:
    """The pair of distributions whose trade-off function is the convex hull of ``points``."""
    hull: list[tuple[float, float]] = []
    for point in sorted({(0.0, 1.0), (1.0, 0.0), *points}):
        while len(hull) >= 2:
            (a, b), (c, d) = hull[-2:]
            if (c - a) * (point[1] - b) - (d - b) * (point[0] - a) > 0:
                break
            hull.pop()
        hull.append(point)
    hull = [
        point
        for before, point in zip([(-1.0, 2.0), *hull], hull, strict=False)
        if point[0] - before[0] > SHORTEST or before[1] - point[1] > SHORTEST
    ]
    first = [after[0] - before[0] for before, after in pairwise(hull)]
    second = [before[1] - after[1] for before, after in pairwise(hull)]
    return FiniteMechanism(
        tuple(max(0.0, one) for one in (*first, 0.0)),
        tuple(max(0.0, one) for one in (*second, 1.0 - sum(second))),
    )


_COUNT = at_most(1000, "all histories are listed")
_HISTORIES = 2**22


@checked(rounds=_COUNT, queries=_COUNT, answers=_COUNT)
def random_interactive(
    seed: Whole, rounds: int = 2, queries: int = 2, answers: int = 2, *, sharp: Positive = 1.0
) -> FiniteInteractiveMechanism:
    """Draw an interactive mechanism at random.

    :param seed: of NumPy's generator
    :param rounds: number of rounds
    :param queries: number of queries in each round
    :param answers: number of answers to each query
    :param sharp: parameter of the Dirichlet distribution of the answers, from 1e-6 to 1e6. Smaller
        values reveal more

    :example:

    >>> mechanism = oc.verify.random_interactive(seed=7, rounds=2, queries=3)
    >>> mechanism.rounds, mechanism.queries(0), len(mechanism.answers((), query=2))
    (2, 3, 2)
    """
    if not 1e-6 <= sharp <= 1e6:
        raise InvalidValueError(f"sharp ({sharp}) must be from 1e-6 to 1e6")
    if not 2 * (queries * answers) ** rounds <= _HISTORIES:
        raise InvalidValueError(
            f"rounds ({rounds}), queries ({queries}) and answers ({answers}) must have at most "
            f"{_HISTORIES:,} histories, since all are listed; pass smaller numbers"
        )
    generator = np.random.default_rng(seed)
    shape: tuple[int, ...] = (2,)
    tables = []
    for _ in range(rounds):
        shape = (*shape, queries, answers)
        tables.append(generator.dirichlet(np.full(answers, sharp), size=shape[:-1]))
    return FiniteInteractiveMechanism(tuple(tables))


# Several interactive mechanisms: the worst interleaving, the worst sequence, and the theorem.

_on_mechanisms = checked(
    mechanisms=each("interactive mechanisms", instance(FiniteInteractiveMechanism), empty=False)
)


@_on_mechanisms
def concurrent_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the largest δ at ``epsilon`` of an analyst who queries any mechanism at any time.

    Each choice of a mechanism and a query may depend on all earlier answers of all mechanisms.

    :param mechanisms: the interleaved mechanisms
    :param epsilon: at which δ is computed
    :return: δ, to the precision of doubles

    :example:

    >>> pair = [oc.verify.random_interactive(seed) for seed in (1, 2)]
    >>> oc.verify.sequential_delta(pair, 0.5) <= oc.verify.concurrent_delta(pair, 0.5)
    True
    >>> oc.verify.concurrent_delta(pair, 0.5) <= oc.verify.composition_delta(pair, 0.5) + 1e-12
    True
    """
    return max(_worst(mechanisms, leaf, sequential=False) for leaf in excesses(epsilon))


@_on_mechanisms
def sequential_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the largest δ at ``epsilon`` of an analyst who uses one mechanism after the other.

    Queries, and the next mechanism, may depend on all earlier answers. Each mechanism is queried in
    all of its rounds, or not at all. The parameters are those of :func:`concurrent_delta`.

    :example:

    >>> oc.verify.sequential_delta([oc.verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    return max(_worst(mechanisms, leaf, sequential=True) for leaf in excesses(epsilon))


def _worst(parts: Sequence[FiniteInteractiveMechanism], leaf: Leaf, *, sequential: bool) -> float:
    """Largest sum of a leaf over the views of one analyst, who may stop at any time."""
    known: dict[Any, float] = {}

    def value(histories: tuple[History, ...], p: float, q: float) -> float:
        if histories in known:  # they determine p and q
            return known[histories]
        best = leaf(p, q)
        unfinished = [i for i, part in enumerate(parts) if len(histories[i]) < part.rounds]
        begun = [i for i in unfinished if histories[i]] if sequential else []
        for index in begun or unfinished:
            history = histories[index]
            for query in range(parts[index].queries(len(history))):
                total = 0.0
                for answer, (one, other) in enumerate(parts[index].answers(history, query)):
                    after = (*history, (query, answer))
                    onward = (*histories[:index], after, *histories[index + 1 :])
                    total += value(onward, p * one, q * other)
                best = max(best, total)
        known[histories] = best
        return best

    return value(((),) * len(parts), 1.0, 1.0)


@_on_mechanisms
def concurrent_renyi(mechanisms: Sequence[FiniteInteractiveMechanism], order: float) -> float:
    """Compute the largest Rényi divergence of an analyst who queries any mechanism at any time.

    For each order of the datasets it is the sum of the mechanisms' own largest divergences
    [LW22, Theorem 2], so no interleavings are listed.

    :param mechanisms: the interleaved mechanisms
    :param order: finite, above 1
    :return: the divergence for the worse order of the datasets, to the precision of doubles

    :example:

    >>> pair = [oc.verify.random_interactive(seed, rounds=3) for seed in (1, 2)]
    >>> oc.verify.concurrent_renyi(pair, 2.0) <= sum(one.renyi(2.0) for one in pair) + 1e-12
    True
    """
    alpha = checks.order(order=order)
    return max(sum(one_way(one.tables, alpha, side) for one in mechanisms) for side in (0, 1))


@_on_mechanisms
def composition_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the δ at ``epsilon`` that the composition theorem for f-DP allows [VZ23].

    This is the noninteractive composition of the tight trade-off functions of the mechanisms. The
    parameters are those of :func:`concurrent_delta`.

    :example:

    >>> oc.verify.composition_delta([oc.verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    first, second = [1.0], [1.0]
    for part in mechanisms:
        pair = part.dominating
        first = [p * one for p in first for one in pair.first]
        second = [q * other for q in second for other in pair.second]
    return FiniteMechanism(tuple(first), tuple(second)).delta(epsilon)
