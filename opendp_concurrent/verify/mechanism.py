"""Finite mechanisms, which answer once or interact, on two neighbouring datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from math import exp, expm1, fsum, inf, isfinite, log, nextafter
from typing import Any, TypeAlias, Union

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError, shown
from ..numerics import lower, upper

Number: TypeAlias = Union[float, Fraction]  # noqa: UP007 (evaluated on Python 3.10)
Array = np.ndarray[Any, Any]
Leaf: TypeAlias = Callable[[float, float], float]  # from the two probabilities of a view to a value
LARGEST_LOG = 709.0  # exp of a larger number may overflow
TOLERANCE = 1e-9  # largest error of the sum of a distribution's probabilities


@dataclass(frozen=True)
class FiniteMechanism:
    """The distributions of a mechanism's answer on two neighbouring datasets.

    All results are computed in doubles, to about 1e-12.

    :ivar first: probabilities of the answers on the first dataset
    :ivar second: probabilities of the same answers on the second dataset
    """

    first: tuple[float, ...]
    second: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _distribution("first", self.first))
        object.__setattr__(self, "second", _distribution("second", self.second))
        if len(self.first) != len(self.second):
            raise InvalidValueError(
                f"second ({len(self.second)} answers) must have as many answers as first "
                f"({len(self.first)})"
            )

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """The two probabilities of each answer."""
        return list(zip(self.first, self.second, strict=True))

    @cached_property
    def tables(self) -> tuple[Array]:
        """The same as an interactive mechanism of one round, with one query."""
        return (np.array([[self.first], [self.second]]),)

    @property
    def swapped(self) -> FiniteMechanism:
        """The same mechanism with the two datasets exchanged."""
        return FiniteMechanism(self.second, self.first)

    def delta(self, epsilon: float) -> float:
        """Smallest δ at ``epsilon``, for both orders of the datasets."""
        return max(fsum(leaf(p, q) for p, q in self.pairs) for leaf in excesses(epsilon))

    def epsilon(self, delta: float = 0.0) -> float:
        """Smallest ε at ``delta``, for both orders of the datasets; infinite if there is none."""
        delta = checks.probability(delta=delta)
        if self.delta(inf) > delta:  # what is impossible on the other dataset
            return inf
        high = max((abs(log(p / q)) for p, q in self.pairs if p > 0.0 < q), default=0.0)
        if delta == 0.0:
            return high
        low = 0.0
        if self.delta(low) <= delta:
            return low
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def renyi(self, order: float) -> float:
        """Rényi divergence of ``order``, finite and above 1; the larger of both directions."""
        return max(one_way(self.tables, checks.order(order=order), side) for side in (0, 1))

    def tradeoff(self, alpha: float) -> float:
        """Smallest type II error at type I error alpha, testing ``first`` against ``second``."""
        alpha = checks.probability(alpha=alpha)
        best = 1.0
        for (x, y), (more, less) in pairwise(self.roc()):
            if more <= alpha:
                best = min(best, less)
            elif x <= alpha:
                best = min(best, y + (less - y) * (alpha - x) / (more - x))
        return best

    def roc(self) -> list[tuple[float, float]]:
        """Vertices (type I error, type II error) of the trade-off function, starting at (0, 1)."""
        points, x, y = [(0.0, 1.0)], 0.0, 1.0
        for p, q in sorted(
            self.pairs, key=lambda pq: pq[1] / pq[0] if pq[0] else inf, reverse=True
        ):
            x, y = x + p, max(0.0, y - q)
            points.append((min(x, 1.0), y))
        return points


def one_way(tables: Sequence[Array], order: float, side: int) -> float:
    """Largest Rényi divergence of one dataset from the other, against every analyst.

    Computed backwards from the last round. At order 1 it is the mean of the loss (Kullback-Leibler
    divergence), at an infinite order the largest loss.

    :param tables: as of a finite interactive mechanism
    :param order: at least 1
    :param side: 0 or 1
    """
    onward: Any = 0.0  # for each history: the logarithm of a moment, or a loss, of later rounds
    for table in reversed(tables):
        p, q = table[side], table[1 - side]
        with np.errstate(divide="ignore", invalid="ignore"):
            near = (0.5 * q < p) & (p < 2.0 * q)  # log1p avoids cancellation there
            loss = np.where(near, np.log1p((p - q) / q), np.log(p) - np.log(q))
            if order == 1.0:
                onward = np.where(p > 0.0, p * (loss + onward), 0.0).sum(axis=-1)
            elif order == inf:
                onward = np.where(p > 0.0, loss + onward, -inf).max(axis=-1)
            else:
                logs = np.log(p) + (order - 1) * loss + onward
                onward = np.logaddexp.reduce(np.where(p > 0.0, logs, -inf), axis=-1)
        onward = onward.max(axis=-1)  # over the queries
    return max(0.0, float(onward)) / (order - 1 if 1.0 < order < inf else 1.0)


def excesses(epsilon: float) -> tuple[Leaf, Leaf]:
    """The functions (p - e^ε q)+ and (q - e^ε p)+ of two probabilities."""
    bound = checks.real(epsilon=epsilon)

    def excess(p: float, q: float) -> float:
        loss = inf if q == 0.0 else log(p / q) if p > 0.0 else -inf
        if p == 0.0 or loss <= bound < inf:
            return 0.0
        return p if loss == inf else max(0.0, -p * expm1(bound - loss))  # p and e^ε q may be near

    return excess, lambda p, q: excess(q, p)


def response(epsilon: float) -> tuple[float, float]:
    """Probabilities of the truth and of a lie in randomized response, both without cancellation."""
    decay = exp(-abs(epsilon))
    likely, rare = 1 / (1 + decay), decay / (1 + decay)
    return (likely, rare) if epsilon >= 0 else (rare, likely)


def _distribution(name: str, values: Iterable[float]) -> tuple[float, ...]:
    if isinstance(values, (str, bytes)):
        raise InvalidTypeError(f"{name} must be a sequence of probabilities")
    given = checks.read("probabilities", **{name: values})
    doubles = tuple(checks.non_negative(**{f"{name}[{i}]": v}) for i, v in enumerate(given))
    total = fsum(doubles)
    if not isfinite(total) or abs(total - 1.0) > TOLERANCE:
        raise InvalidValueError(f"{name} must add up to 1, found {total}")
    return doubles if total == 1.0 else tuple(one / total for one in doubles)


def randomized_response(epsilon: float, delta: float = 0.0) -> FiniteMechanism:
    """Randomized response with ``epsilon`` that reveals the dataset with probability ``delta``.

    For two neighbours, every (ε, δ)-DP mechanism is a postprocessing of it [KOV15, Theorem 3.3].

    :param epsilon: at least 0
    :param delta: in [0, 1]

    :example:

    >>> oc.verify.randomized_response(1.0).delta(0.5)
    0.28764913664...
    """
    epsilon, delta = checks.non_negative(epsilon=epsilon), checks.probability(delta=delta)
    (truth, lie), kept = response(epsilon), 1 - delta
    if delta == 0.0:
        return FiniteMechanism((truth, lie), (lie, truth))
    return FiniteMechanism(
        (delta, kept * truth, kept * lie, 0.0), (0.0, kept * lie, kept * truth, delta)
    )


_ANSWERS = checks.at_most(10**6, "each answer is listed")


@checks.checked(answers=_ANSWERS)
def random_mechanism(
    seed: checks.Whole, answers: int = 3, epsilon: checks.NonNegative = inf
) -> FiniteMechanism:
    """Draw a mechanism at random, with losses of at most ``epsilon`` in absolute value.

    :param seed: of NumPy's generator
    :param answers: number of answers
    :param epsilon: at least 0

    :example:

    >>> oc.verify.random_mechanism(seed=1, answers=4, epsilon=1.0).epsilon() <= 1.0 + 1e-9
    True
    """
    generator = np.random.default_rng(seed)
    first = generator.dirichlet(np.ones(answers))
    second = generator.dirichlet(np.ones(answers))
    if epsilon < 700.0:  # a larger bound overflows, and random losses stay below it
        bound = exp(epsilon)
        for _ in range(100):
            second = np.clip(second, first / bound, first * bound)
            second = second / second.sum()
        mix = 1.0
        while max(np.max(first / second), np.max(second / first)) > bound * (1 + 1e-12):
            mix /= 2
            second = mix * second + (1 - mix) * first
    return FiniteMechanism(tuple(map(float, first)), tuple(map(float, second)))


# A finite interactive mechanism: rounds of a query and an answer, on two neighbouring datasets.

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
        turn = checks.whole(turn=turn)
        if not turn < self.rounds:
            raise InvalidValueError(f"turn ({shown(turn)}) must be below {self.rounds}")
        return int(self.tables[turn].shape[-2])

    def answers(self, history: History, query: int) -> list[tuple[float, float]]:
        """For each answer, its probability on each dataset."""
        try:
            at = (
                *(checks.whole(history=index) for pair in history for index in pair),
                checks.whole(query=query),
            )
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
        if checks.probability(delta=delta) == 0.0:
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


_COUNT = checks.at_most(1000, "all histories are listed")
_HISTORIES = 2**22


@checks.checked(rounds=_COUNT, queries=_COUNT, answers=_COUNT)
def random_interactive(
    seed: checks.Whole,
    rounds: int = 2,
    queries: int = 2,
    answers: int = 2,
    *,
    sharp: checks.Positive = 1.0,
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

_on_mechanisms = checks.checked(
    mechanisms=checks.each(
        "interactive mechanisms", checks.instance(FiniteInteractiveMechanism), empty=False
    )
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


# Why a mechanism that is approximate zCDP only as a whole excludes all others, by exact numbers.
#
# [HSTVVXZ23, Section 4] asks whether approximate zCDP composes concurrently. It does if mechanisms
# answer once, or are mixtures that do not depend on the analyst. It does not if an interactive one
# is approximate only as a whole, that is, for each analyst with another mixture: below, the
# parameters of two mechanisms do not add up. The proof is in docs/proofs/approximate-zcdp.rst.

Law = tuple[Fraction, ...]
_RHO, _DELTA = Fraction(193, 50), Fraction(1, 129)
_X, _Y = (Fraction(1, 128), Fraction(1, 2**25)), (Fraction(1, 16), Fraction(1, 2**19))


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Two mechanisms, an analyst who interleaves their queries, and what it costs.

    :ivar whole: (ρ, δ)-approximate zCDP against each analyst. It first says x (0) or y (1). Then at
        x query 0 shows the dataset (answers 0 and 1) or nothing (2), and query 1 draws a bit
    :ivar plain: ρ-zCDP. One query, for x (0) or y (1), draws a bit
    :ivar rho: ρ of each
    :ivar delta: δ of ``whole``; that of ``plain`` is 0
    :ivar view: the probabilities of what the analyst sees, on each dataset. The analyst reads x or
        y, sends it to ``plain``, and sends the bit at x to ``whole`` as the query
    :ivar least_rho: the view is not (ρ', δ)-approximate zCDP for any ρ' below this; rounded down
    :ivar least_delta: the view is not (2ρ, δ')-approximate zCDP for any δ' below this; rounded down
    """

    whole: FiniteInteractiveMechanism
    plain: FiniteInteractiveMechanism
    rho: Fraction
    delta: Fraction
    view: tuple[Law, Law]
    least_rho: float
    least_delta: float


def approximate_zcdp_counterexample() -> Counterexample:
    """Return two mechanisms whose approximate zCDP does not add up if queries are interleaved.

    If parameters added up, the view would be (7.72, 1/129)-approximate zCDP.

    :example:

    >>> found = oc.verify.approximate_zcdp_counterexample()
    >>> float(found.rho), round(found.least_rho, 4), float(2 * found.rho)
    (3.86, 7.9049, 7.72)
    >>> round(found.least_delta / float(found.delta), 3)
    1.02
    """
    nothing, one = Fraction(0), Fraction(1)
    first, second, bits, laws = [], [], [], []
    for dataset in (0, 1):
        at_x, at_y = _X[dataset], _Y[dataset]
        y = _DELTA if dataset == 0 else (1 - _DELTA) * at_x
        shown = [nothing, nothing, 1 - _DELTA / (1 - y)]
        shown[dataset] = _DELTA / (1 - y)
        first.append([[1 - y, y]])
        queries = [shown, [at_y, 1 - at_y, nothing]]
        second.append([[queries, [[nothing, nothing, one]] * 2]])
        bits.append([[at_x, 1 - at_x], [at_y, 1 - at_y]])
        laws.append(
            (
                *(y * bit for bit in bits[-1][1]),
                *((1 - at_x) * (1 - y) * answer for answer in shown),
                *(at_x * (1 - y) * answer for answer in queries[1][:2]),
            )
        )
    view = laws[0], laws[1]
    limit = Fraction(upper(lambda real: real(nextafter(float(4 * _RHO), 99.0)).exp()))
    left = Fraction(0)  # the largest mass on which D_2 is at most 4ρ is at most 1 less this
    divergence = Fraction(0)
    for weight, cost in _duals(view):
        divergence = max(divergence, weight + cost / (1 - _DELTA))
        if weight > limit:
            left = max(left, 1 + cost / (weight - limit))
    half = _down(divergence)
    return Counterexample(
        FiniteInteractiveMechanism((np.array(first, float), np.array(second, float))),
        FiniteInteractiveMechanism((np.array(bits, float),)),
        _RHO,
        _DELTA,
        view,
        lower(lambda real: real(half).ln() / 2),
        _down(left),
    )


def _duals(view: tuple[Law, Law]) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield weights, and costs so that Σ w²/V_1 >= weight Σ w + cost for all 0 <= w <= V_0.

    Let W_0 and W_1 be the parts of V_0 and V_1 that are left, of mass 1 - δ. If W_0 / (1 - δ) has
    a divergence of order 2 of at most 2ρ, then e^(2ρ) (1 - δ) >= Σ W_0²/W_1 >= Σ W_0²/V_1.
    """
    for power in range(22, 36):  # others are no better here
        for eighths in range(8, 16):
            weight = Fraction(2**power * eighths, 8)
            cost = Fraction(0)
            for one, other in zip(*view, strict=True):
                if other:  # else w must be 0, or the divergence is infinite
                    w = min(one, weight * other / 2)
                    cost += w * w / other - weight * w
            yield weight, cost


def _down(value: Fraction) -> float:
    """Return the value as a double, rounded down."""
    return nextafter(float(value), 0.0)
