"""A finite interactive mechanism: rounds of a query and an answer, on two neighbouring datasets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from .. import _checks as checks
from .._checks import (
    Positive,
    Whole,
    at_most,
    checked,
    each,
    instance,
    positive,
    probability,
    whole,
)
from ..errors import InvalidTypeError, InvalidValueError, shown
from .mechanism import TOLERANCE, FiniteMechanism, Leaf, excesses

SHORTEST = 1e-14  # shorter segments of a convex hull are rounding errors
History = tuple[tuple[int, int], ...]  # (query, answer) of each round so far


@dataclass(frozen=True, eq=False)
class FiniteInteractiveMechanism:
    """The distributions of the answers to all queries, on two neighbouring datasets.

    The state of the mechanism is its history. Queries and answers are numbered from 0. ``delta``
    and ``renyi`` are dynamic programmes. ``epsilon``, ``tradeoff`` and ``dominating`` list all
    deterministic analysts: 32,768 analysts for four rounds of two queries and two answers.

    :ivar tables: for each round an array of probabilities. Its axes are the dataset (2), the query
        and the answer of each earlier round, and the query and the answer of this round
    """

    tables: tuple[np.ndarray[Any, Any], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.tables, tuple) or not self.tables:
            raise InvalidTypeError("tables must be a nonempty tuple of arrays, one for each round")
        tables: list[np.ndarray[Any, Any]] = []
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
        return max(self._best((), 1.0, 1.0, leaf) for leaf in excesses(epsilon))

    def _best(self, history: History, p: float, q: float, leaf: Leaf) -> float:
        if len(history) == self.rounds:
            return leaf(p, q)
        return max(
            sum(
                self._best((*history, (query, a)), p * one, q * other, leaf)
                for a, (one, other) in enumerate(self.answers(history, query))
            )
            for query in range(self.queries(len(history)))
        )

    def epsilon(self, delta: float = 0.0) -> float:
        """Smallest ε at ``delta``, against every analyst."""
        if probability(delta=delta) == 0.0:
            return max(view.epsilon() for view in self.analysts())
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
_SMALLEST_EPSILON, _MOST_VALUES = 1e-3, 100


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


def sparse_vector(
    epsilon: float, values: tuple[tuple[int, ...], ...]
) -> FiniteInteractiveMechanism:
    """Above-threshold on counts, with discrete Laplace noise. It halts after one hit, as answer 2.

    :param epsilon: half of it is for the threshold, with scale 2/ε, and half for the queries, with
        scale 4/ε
    :param values: for each dataset, the value of each query minus the threshold. The values on the
        two datasets differ by at most 1

    :example:

    >>> mechanism = oc.verify.sparse_vector(1.0, values=((-1, 0), (0, -1)))
    >>> mechanism.rounds, mechanism.epsilon() <= 1.0 + 1e-9
    (2, True)
    """
    if not positive(epsilon=epsilon) >= _SMALLEST_EPSILON:
        raise InvalidValueError(
            f"epsilon ({epsilon}) must be at least {_SMALLEST_EPSILON}: all noise up to "
            "120/epsilon is listed"
        )
    try:
        datasets = np.array(values)
    except Exception:
        datasets = np.zeros(0)
    if datasets.dtype.kind not in "iu" or not datasets.size <= _MOST_VALUES:
        raise InvalidTypeError(
            f"values ({shown(values)}) must be two tuples of at most {_MOST_VALUES // 2} integers"
        )
    datasets = datasets.astype(int)
    pair = datasets.ndim == 2 and len(datasets) == 2 and datasets.size > 0
    if not pair or np.abs(datasets[0] - datasets[1]).max() > 1:
        raise InvalidValueError(
            f"values ({shown(values)}) must be the values of the queries on two neighbours, "
            "at most 1 apart"
        )
    queries = datasets.shape[1]
    reach = int(120 / epsilon)
    grid = np.arange(-reach, reach + 1)

    def noise(scale: float) -> np.ndarray[Any, Any]:
        mass = np.exp(-np.abs(grid) / scale)
        return np.asarray(mass / mass.sum())

    threshold, tail = noise(2 / epsilon), np.cumsum(noise(4 / epsilon)[::-1])[::-1]

    def above(value: int) -> np.ndarray[Any, Any]:
        """Probability of a hit for each noisy threshold."""
        at = np.clip(grid - value + reach, 0, 2 * reach)
        return np.where(grid - value > reach, 0.0, tail[at])

    first = np.zeros((2, queries, 3))
    second = np.zeros((2, queries, 3, queries, 3))
    second[:, :, 1:, :, 2] = 1.0
    for b in range(2):
        hits = [above(int(value)) for value in datasets[b]]
        for query, hit in enumerate(hits):
            above_first = min(1.0, float(threshold @ hit))
            first[b, query] = [1 - above_first, above_first, 0.0]
            later = threshold * (1 - hit)
            later = later / later.sum() if later.sum() > 0 else threshold
            for again, next_hit in enumerate(hits):
                above_next = min(1.0, float(later @ next_hit))
                second[b, query, 0, again] = [1 - above_next, above_next, 0.0]
    return FiniteInteractiveMechanism((first, second))


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
    return max(sum(_renyi(one, alpha, side) for one in mechanisms) for side in (0, 1))


def _renyi(mechanism: FiniteInteractiveMechanism, order: float, side: int) -> float:
    """Largest divergence of one dataset from the other, backwards from the last round."""
    onward: Any = 0.0  # for each history, logarithm of the largest moment of the later rounds
    for table in reversed(mechanism.tables):
        p, q = table[side], table[1 - side]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = order * np.log(p) + (1 - order) * np.log(q) + onward
        onward = np.logaddexp.reduce(np.where(p > 0.0, logs, -np.inf), axis=-1).max(axis=-1)
    return max(0.0, float(onward)) / (order - 1)


@_on_mechanisms
def composition_pair(mechanisms: Sequence[FiniteInteractiveMechanism]) -> FiniteMechanism:
    """Compute the product of the dominating pairs, the bound of the composition theorem [VZ23].

    :param mechanisms: the interleaved mechanisms
    :return: a noninteractive mechanism

    :example:

    >>> pair = [oc.verify.random_interactive(seed) for seed in (1, 2)]
    >>> oc.verify.composition_pair(pair).delta(0.5) == oc.verify.composition_delta(pair, 0.5)
    True
    """
    first, second = [1.0], [1.0]
    for part in mechanisms:
        pair = part.dominating
        first = [p * one for p in first for one in pair.first]
        second = [q * other for q in second for other in pair.second]
    return FiniteMechanism(tuple(first), tuple(second))


def composition_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the δ at ``epsilon`` that the composition theorem for f-DP allows [VZ23].

    This is the noninteractive composition of the tight trade-off functions of the mechanisms. The
    parameters are those of :func:`concurrent_delta`.

    :example:

    >>> oc.verify.composition_delta([oc.verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    return composition_pair(mechanisms).delta(epsilon)
