"""A finite mechanism: the distributions of its answer on two neighbouring datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import exp, expm1, fsum, inf, isfinite, log
from typing import Any, TypeAlias, Union

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError

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
