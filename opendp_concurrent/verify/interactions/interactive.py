"""A finite interactive mechanism: rounds of a query and an answer, on two neighbouring datasets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np

from ...checks import at_most, checked, positive, probability, shown, whole
from ...errors import InvalidTypeError, InvalidValueError
from ..mechanism import TOLERANCE, FiniteMechanism, excess, scale_of

CRUMB = 1e-14  # shorter segments of a hull are rounding
History = tuple[tuple[int, int], ...]  # (query, answer) of each round so far


def _table(index: int, table: Any) -> np.ndarray[Any, Any]:
    """A table as an array of one's own, or raise."""
    try:
        return np.array(table, dtype=float)
    except Exception as error:
        raise InvalidTypeError(
            f"tables[{index}] must be an array of numbers, found {type(table).__name__}"
        ) from error


@dataclass(frozen=True, eq=False)
class FiniteInteractiveMechanism:
    """Its state is the history; queries and answers are numbered from 0.

    ``delta`` is a dynamic programme. ``renyi``, ``epsilon``, ``tradeoff`` and ``dominating`` list
    all deterministic analysts, of whom there are 32,768 for four rounds of two queries and answers.

    :ivar tables: for round i, probabilities of the answers: an array with axes dataset (2), then
        query and answer of each earlier round in turn, then query and answer of this round
    """

    tables: tuple[np.ndarray[Any, Any], ...]
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tables, tuple) or not self.tables:
            raise InvalidTypeError("tables must be a nonempty tuple of arrays, one for each round")
        object.__setattr__(self, "tables", tuple(map(_table, range(len(self.tables)), self.tables)))
        shape: tuple[int, ...] = (2,)
        for index, table in enumerate(self.tables):
            table.setflags(write=False)
            if table.ndim != len(shape) + 2 or table.shape[: len(shape)] != shape:
                raise InvalidValueError(
                    f"tables[{index}] must have axes {shape} and those of its query and answer, "
                    f"found {table.shape}"
                )
            if not (np.all(table >= 0) and np.allclose(table.sum(-1), 1, rtol=0, atol=TOLERANCE)):
                raise InvalidValueError(f"tables[{index}] must be probabilities of the last axis")
            shape = table.shape

    @property
    def rounds(self) -> int:
        """How often it is asked."""
        return len(self.tables)

    def queries(self, turn: int) -> int:
        """How many queries there are in round ``turn``, from 0."""
        turn = self._turn(turn=turn)
        return int(self.tables[turn].shape[-2])

    def _turn(self, **argument: Any) -> int:
        """A round that there is, or raise."""
        ((name, _),) = argument.items()
        turn = whole(**argument)
        if not turn < self.rounds:
            raise InvalidValueError(f"{name} ({shown(turn)}) must be below {self.rounds}")
        return turn

    def answers(self, history: History, query: int) -> list[tuple[float, float]]:
        """For each answer, its probability on either dataset."""
        try:
            at = (*(whole(history=index) for pair in history for index in pair), whole(query=query))
            first, second = (dataset[at] for dataset in self.tables[len(history)])
            found = list(zip(map(float, first), map(float, second), strict=True))
        except (TypeError, ValueError, IndexError) as error:
            raise InvalidValueError(
                f"history ({shown(history)}) and query ({shown(query)}) must be of a round that "
                "there is: pairs of a query and its answer, and a query"
            ) from error
        return found

    def analysts(self) -> Iterator[FiniteMechanism]:
        """The view of each deterministic analyst; those suffice [HSTVVXZ23, Lemma 2.3]."""
        yield from (FiniteMechanism(*zip(*view, strict=True)) for view in self._views(()))

    def _views(self, history: History) -> list[tuple[tuple[float, float], ...]]:
        """All laws of what is to come after ``history``, one for each analyst."""
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
        """Least δ at ``epsilon``, for both orders of the datasets, against every analyst."""
        scale = scale_of(epsilon)
        return max(self._best((), 1.0, 1.0, scale, order) for order in (0, 1))

    def _best(self, history: History, p: float, q: float, scale: float, order: int) -> float:
        if len(history) == self.rounds:
            return excess(p, q, scale) if order == 0 else excess(q, p, scale)
        return max(
            sum(
                self._best((*history, (query, a)), p * one, q * other, scale, order)
                for a, (one, other) in enumerate(self.answers(history, query))
            )
            for query in range(self.queries(len(history)))
        )

    def epsilon(self, delta: float = 0.0) -> float:
        """Least ε at ``delta``, against every analyst."""
        if probability(delta=delta) == 0.0:
            return max(view.epsilon() for view in self.analysts())
        return self.dominating.epsilon(delta)

    def renyi(self, order: float) -> float:
        """Rényi divergence of ``order``, the larger of both directions, against every analyst."""
        return max(view.renyi(order) for view in self.analysts())

    def tradeoff(self, alpha: float) -> float:
        """Least type II error at type I error ``alpha`` against every analyst, mixed ones too.

        The lesser of both orders of the datasets.
        """
        return min(one.tradeoff(alpha) for one in (self.dominating, self.dominating.swapped))

    @property
    def dominating(self) -> FiniteMechanism:
        """The pair of distributions whose trade-off function is that of all analysts together.

        The lower convex hull of the points (type I, type II) of all of them. By [VZ23] the
        mechanism is an interactive postprocessing of it.
        """
        if "dominating" not in self._cache:
            self._cache["dominating"] = hull_pair(
                [point for view in self.analysts() for point in view.roc()]
            )
        found: FiniteMechanism = self._cache["dominating"]
        return found


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
        if point[0] - before[0] > CRUMB or before[1] - point[1] > CRUMB
    ]
    first = [after[0] - before[0] for before, after in pairwise(hull)]
    second = [before[1] - after[1] for before, after in pairwise(hull)]
    return FiniteMechanism(
        tuple(max(0.0, one) for one in (*first, 0.0)),
        tuple(max(0.0, one) for one in (*second, 1.0 - sum(second))),
    )


_ROUNDS = at_most(1000, "all histories are listed")
_ENTRIES = 2**22
_LEAST, _MOST_QUERIES = 1e-3, 100


def _sharp(**argument: Any) -> float:
    """Return a parameter for which NumPy draws numbers, or raise."""
    ((name, _),) = argument.items()
    if not 1e-6 <= positive(**argument) <= 1e6:
        raise InvalidValueError(f"{name} must be from 1e-6 to 1e6")
    return positive(**argument)


@checked(seed=whole, rounds=_ROUNDS, queries=_ROUNDS, answers=_ROUNDS, sharp=_sharp)
def random_interactive(
    seed: int, rounds: int = 2, queries: int = 2, answers: int = 2, *, sharp: float = 1.0
) -> FiniteInteractiveMechanism:
    """A mechanism drawn at random.

    :param seed: of NumPy's generator
    :param rounds: how often it is asked
    :param queries: how many there are in each round
    :param answers: how many there are to each query
    :param sharp: parameter of the Dirichlet distribution of the answers; small is more revealing
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> mechanism = verify.random_interactive(seed=7, rounds=2, queries=3)
    >>> mechanism.rounds, mechanism.queries(0), len(mechanism.answers((), query=2))
    (2, 3, 2)
    """
    if not 2 * (queries * answers) ** rounds <= _ENTRIES:
        raise InvalidValueError(
            f"rounds ({rounds}), queries ({queries}) and answers ({answers}) have more than "
            f"{_ENTRIES:,} histories, all of which are listed; pass smaller ones"
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
    """Above-threshold on counts, with discrete Laplace noise: halts, as answer 2, after one hit.

    :param epsilon: half for the threshold, at scale 2/ε, and half for the queries, at scale 4/ε
    :param values: for each dataset, the value of each query minus the threshold; neighbours differ
        by at most 1 in each
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> mechanism = verify.sparse_vector(1.0, values=((-1, 0), (0, -1)))
    >>> mechanism.rounds, mechanism.epsilon() <= 1.0 + 1e-9
    (2, True)
    """
    if not positive(epsilon=epsilon) >= _LEAST:
        raise InvalidValueError(
            f"epsilon ({epsilon}) must be at least {_LEAST}: all noise up to 120/epsilon is listed"
        )
    try:
        datasets = np.array(values)
    except Exception:
        datasets = np.zeros(0)
    if datasets.dtype.kind not in "iu" or not datasets.size <= _MOST_QUERIES:
        raise InvalidTypeError(
            f"values ({shown(values)}) must be two tuples of at most {_MOST_QUERIES // 2} integers"
        )
    datasets = datasets.astype(int)
    if (
        datasets.ndim != 2
        or len(datasets) != 2
        or not datasets.size
        or np.abs(datasets[0] - datasets[1]).max() > 1
    ):
        raise InvalidValueError(
            f"values ({shown(values)}) must be the queries' values on two neighbours, "
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
    for b, query in product(range(2), range(queries)):
        hit = above(int(datasets[b, query]))
        above_first = min(1.0, float(threshold @ hit))
        first[b, query] = [1 - above_first, above_first, 0.0]
        second[b, query, 1:] = [0.0, 0.0, 1.0]
        later = threshold * (1 - hit)
        later = later / later.sum() if later.sum() > 0 else threshold
        for again in range(queries):
            next_hit = min(1.0, float(later @ above(int(datasets[b, again]))))
            second[b, query, 0, again] = [1 - next_hit, next_hit, 0.0]
    return FiniteInteractiveMechanism((first, second))
