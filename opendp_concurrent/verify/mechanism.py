"""A finite mechanism: two distributions over the same answers, for two neighbouring datasets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, expm1, fsum, inf, isfinite, log
from typing import TypeAlias, Union

import numpy as np

from .. import checks
from ..checks import at_most, checked, integer, whole
from ..errors import InvalidTypeError, InvalidValueError

Number: TypeAlias = Union[float, Fraction]  # noqa: UP007 (evaluated on Python 3.10)
LARGEST_LOG = 709.0  # exp of a larger number may be beyond the doubles
TOLERANCE = 1e-9  # by how much the probabilities of a distribution may miss 1


@dataclass(frozen=True)
class FiniteMechanism:
    """The law of a mechanism's answer on each of two neighbours; computed in doubles, to 1e-12.

    :ivar first: probabilities of the answers on one dataset
    :ivar second: probabilities of the same answers on the other
    """

    first: tuple[float, ...]
    second: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _distribution("first", self.first))
        object.__setattr__(self, "second", _distribution("second", self.second))
        if len(self.first) != len(self.second):
            raise InvalidValueError(
                f"second must have as many answers as first: {len(self.second)}, {len(self.first)}"
            )

    @property
    def swapped(self) -> FiniteMechanism:
        """The same with the two datasets exchanged."""
        return FiniteMechanism(self.second, self.first)

    def delta(self, epsilon: float) -> float:
        """Least δ at ``epsilon``, for both orders of the datasets."""
        bound = checks.real(epsilon=epsilon)
        return max(_hockey_stick(*pair, bound) for pair in self._orders)

    @property
    def _orders(self) -> tuple[tuple[Sequence[float], Sequence[float]], ...]:
        return (self.first, self.second), (self.second, self.first)

    def epsilon(self, delta: float = 0.0) -> float:
        """Least ε at ``delta``, for both orders; infinite if there is none."""
        delta = checks.probability(delta=delta)
        told = max(
            fsum(p for p, q in zip(*pair, strict=True) if q == 0.0) for pair in self._orders
        )  # what only one of the datasets can answer
        if told > delta:
            return inf
        both = zip(self.first, self.second, strict=True)
        high = max((abs(log(p / q)) for p, q in both if p > 0.0 < q), default=0.0)
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
        """Rényi divergence of ``order``, finite and above 1, the larger of both directions."""
        order = checks.order(order=order)
        return max(one_way_renyi(*pair, order) for pair in self._orders)

    def tradeoff(self, alpha: float) -> float:
        """Least type II error of a test of ``first`` against ``second`` with type I error alpha."""
        alpha = checks.probability(alpha=alpha)
        best = 1.0
        for (x, y), (more, less) in pairwise(self.roc()):
            if more <= alpha:
                best = min(best, less)
            elif x <= alpha:
                best = min(best, y + (less - y) * (alpha - x) / (more - x))
        return best

    def roc(self) -> list[tuple[float, float]]:
        """Vertices (type I, type II) of the trade-off function, from (0, 1) on."""
        order = sorted(
            zip(self.first, self.second, strict=True),
            key=lambda pair: pair[1] / pair[0] if pair[0] else inf,
            reverse=True,
        )
        points, x, y = [(0.0, 1.0)], 0.0, 1.0
        for p, q in order:
            x, y = x + p, max(0.0, y - q)
            points.append((min(x, 1.0), y))
        return points


def _hockey_stick(first: Sequence[float], second: Sequence[float], epsilon: float) -> float:
    """Sum of (P - e^ε Q)+, without cancellation where the two nearly agree."""
    total = []
    for p, q in zip(first, second, strict=True):
        loss = inf if q == 0.0 else log(p / q) if p > 0.0 else -inf
        if p > 0.0 and (loss == inf or loss > epsilon):
            total.append(p if loss == inf else -p * expm1(epsilon - loss))
    return fsum(total)


def one_way_renyi(first: Sequence[float], second: Sequence[float], order: float) -> float:
    """Rényi divergence of ``first`` from ``second``."""
    if any(p > 0 and q == 0 for p, q in zip(first, second, strict=True)):
        return inf
    logs = [
        order * log(p) + (1 - order) * log(q) for p, q in zip(first, second, strict=True) if p > 0
    ]
    top = max(logs)
    return max(0.0, (top + log(fsum(exp(one - top) for one in logs))) / (order - 1))


def scale_of(epsilon: float) -> float:
    """e^ε, infinite where doubles end."""
    bound = checks.real(epsilon=epsilon)
    return exp(bound) if bound < LARGEST_LOG else inf


def excess(p: float, q: float, scale: float) -> float:
    """(p - scale q)+."""
    return p if q == 0.0 else max(0.0, p - scale * q)


def response(epsilon: float) -> tuple[float, float]:
    """Probabilities of the truth and of a lie in randomized response, both without cancellation."""
    decay = exp(-abs(epsilon))
    likely, rare = 1 / (1 + decay), decay / (1 + decay)
    return (likely, rare) if epsilon >= 0 else (rare, likely)


def _distribution(name: str, values: Iterable[float]) -> tuple[float, ...]:
    if checks.is_a(values, str, bytes):
        raise InvalidTypeError(f"{name} must be a sequence of probabilities")
    given = checks.read("probabilities", **{name: values})
    doubles = tuple(checks.non_negative(**{f"{name}[{i}]": v}) for i, v in enumerate(given))
    total = fsum(doubles)
    if not isfinite(total) or abs(total - 1.0) > TOLERANCE:
        raise InvalidValueError(f"{name} must add up to 1, found {total}")
    return doubles if total == 1.0 else tuple(one / total for one in doubles)


def randomized_response(epsilon: float, delta: float = 0.0) -> FiniteMechanism:
    """Randomized response with ``epsilon``, which fails and tells all with probability ``delta``.

    Every (ε, δ)-DP mechanism is a postprocessing of it, for two neighbours [KOV15, Theorem 3.3].

    :param epsilon: at least 0
    :param delta: in [0, 1]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> verify.randomized_response(1.0).delta(0.5)
    0.28764913664...
    """
    epsilon, delta = checks.non_negative(epsilon=epsilon), checks.probability(delta=delta)
    (truth, lie), kept = response(epsilon), 1 - delta
    if delta == 0.0:
        return FiniteMechanism((truth, lie), (lie, truth))
    return FiniteMechanism(
        (delta, kept * truth, kept * lie, 0.0), (0.0, kept * lie, kept * truth, delta)
    )


_ANSWERS = at_most(10**6, "each answer is listed")


@checked(categories=_ANSWERS)
def k_ary_response(prob: float, categories: int) -> FiniteMechanism:
    """Randomized response over ``categories``, whose truth has probability ``prob``.

    :param prob: in [0, 1]
    :param categories: at least 2
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> verify.k_ary_response(0.5, 3).first
    (0.5, 0.25, 0.25)
    """
    p, k = checks.probability(prob=prob), checks.count(categories=categories)
    if k < 2:
        raise InvalidValueError(f"categories ({k}) must be at least 2")
    other = (1 - p) / (k - 1)
    rest = (other,) * (k - 2)
    return FiniteMechanism((p, other, *rest), (other, p, *rest))


@checked(size=_ANSWERS, shift=integer)
def truncated_geometric(scale: float, shift: int, size: int) -> FiniteMechanism:
    """Discrete Laplace noise of ``scale`` on counts 0 and ``shift``, clamped to [0, size).

    :param scale: finite, above 0
    :param shift: at least 1
    :param size: above ``shift``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> round(verify.truncated_geometric(scale=2.0, shift=1, size=5).epsilon(), 12)
    0.5
    """
    b, shift = checks.positive(scale=scale), checks.count(shift=shift)
    n = checks.count(size=size)
    if n <= shift:
        raise InvalidValueError(f"size ({n}) must be above shift ({checks.shown(shift)})")
    q = exp(-1 / b)

    def clamped(centre: int) -> tuple[float, ...]:
        inner = [(1 - q) / (1 + q) * q ** abs(j - centre) for j in range(1, n - 1)]
        below, above = q**centre / (1 + q), q ** (n - 1 - centre) / (1 + q)
        return (below, *inner, above) if n > 1 else (1.0,)

    return FiniteMechanism(clamped(0), clamped(shift))


@checked(seed=whole, answers=_ANSWERS)
def random_mechanism(seed: int, answers: int = 3, epsilon: float = inf) -> FiniteMechanism:
    """A mechanism drawn at random; its losses are at most ``epsilon`` in absolute value.

    :param seed: of NumPy's generator
    :param answers: how many there are
    :param epsilon: at least 0
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> verify.random_mechanism(seed=1, answers=4, epsilon=1.0).epsilon() <= 1.0 + 1e-9
    True
    """
    epsilon = checks.non_negative(epsilon=epsilon)
    generator = np.random.default_rng(seed)
    first = generator.dirichlet(np.ones(checks.count(answers=answers)))
    second = generator.dirichlet(np.ones(answers))
    if epsilon < 700.0:  # beyond, doubles are no nearer
        bound = exp(epsilon)
        for _ in range(100):
            second = np.clip(second, first / bound, first * bound)
            second = second / second.sum()
        mix = 1.0
        while max(np.max(first / second), np.max(second / first)) > bound * (1 + 1e-12):
            mix /= 2
            second = mix * second + (1 - mix) * first
    return FiniteMechanism(tuple(map(float, first)), tuple(map(float, second)))
