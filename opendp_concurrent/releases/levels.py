"""What a shared release launches for a finer level, and how it answers: two kinds of noise.

Laplace noise is refined: the launch draws what is missing (:mod:`.chain`). Gaussian noise is added
up: the launch is a release of its own, and the answer is the mean of the releases so far, weighted
by the inverses of their variances, as precise as one release at the sum of their prices.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any, Protocol

from opendp.mod import Domain, Measurement, Metric

from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidValueError
from ..exact.bracket import upper
from ..measurements.gaussian import make_certified_gaussian
from ..measurements.grid import is_vector, known_size
from ..measurements.noise_accuracy import UP, laplace_accuracy
from ..measures import CompositionMeasure
from ..measures.kinds import APPROXIMATE, PURE
from ..queryables.accuracy import Accuracy, of_one
from ..queryables.data import Sealed, in_python, unseal
from ..types import Answer, Distance, Loss
from .chain import Chain, GeometricDraws, level_of

Space = tuple[Domain, Metric]
STEPPED = (PURE, APPROXIMATE)  # the measures under which each step may be charged
_ABOVE = 1 + 2.0**-40  # so that the price of a scale, rounded up, is at most that of its level


class Levels(Protocol):
    """The levels that were released so far. Not thread-safe. Holds answers, or secret noise."""

    finest: int

    def launch(self, level: int, own: Sealed) -> Measurement:
        """Return what a level that is finer than all others launches.

        :param own: these levels, sealed
        """

    def keep(self, level: int, answer: Answer) -> None:
        """Note that the launch of a level has answered."""

    def check(self, level: int) -> None:
        """Raise, for public reasons, if there is no answer at a level."""

    def at(self, level: int) -> Answer:
        """Return the answer at a level that needs no launch."""

    def accuracy(self, domain: Domain, level: int) -> Accuracy:
        """Return the error of the answers at a level, or that a launch of it would have."""


class LaplaceLevels:
    """Levels under pure and (ε, δ)-DP: of ε per unit of sensitivity, each charged for its step."""

    def __init__(self, space: Space, measure: CompositionMeasure) -> None:
        self._space, self._measure = space, measure
        self._chain: Chain | None = None
        self.finest = 0

    def launch(self, level: int, own: Sealed) -> Measurement:
        """Return the refinement by a level's distance from the finest one."""
        step, pure = level_of(level - self.finest), self._measure.kind == PURE

        def privacy_map(d_in: Distance) -> Loss:
            epsilon = upper(lambda real: real(d_in) * real(step))
            return epsilon if pure else (epsilon, 0.0)

        return make_measurement(
            self._space,
            self._measure.opendp(),
            lambda data: unseal(own).refine(level, data),
            privacy_map,
            f"shared_release(level={level_of(level)})",
            releases=True,
        )

    def refine(self, level: int, data: Sealed) -> None:
        """Draw a level. The exact answer is computed once, however often it is refined."""
        if self._chain is None:
            self._chain = Chain(in_python(data), GeometricDraws())
        self._chain.at(level)

    def keep(self, level: int, answer: Answer) -> None:
        """Note the finest level."""
        del answer
        self.finest = level

    def check(self, level: int) -> None:
        """Raise if too many levels up to the finest one were asked."""
        assert self._chain is not None
        self._chain.check(level)

    def at(self, level: int) -> Answer:
        """Return the answer at any level up to the finest one."""
        assert self._chain is not None
        return self._chain.at(level)

    def accuracy(self, domain: Domain, level: int) -> Accuracy:
        """Return that of Laplace noise."""
        return laplace_accuracy(domain, 1 / level_of(level), None)


class GaussianLevels:
    """Levels under zCDP and its relatives: of ρ per square of sensitivity, each launched alone."""

    def __init__(self, space: Space, measure: CompositionMeasure) -> None:
        self._space, self._measure = space, measure
        self._means: dict[int, tuple[float, Any]] = {}  # by level: precision, and mean
        self.finest, self._scale = 0, 0.0

    def launch(self, level: int, own: Sealed) -> Measurement:
        """Return a release at a level's distance from the finest one."""
        del own
        self._scale = sqrt(0.5 / level_of(level - self.finest)) * _ABOVE
        return make_certified_gaussian(*self._space, self._scale, self._measure.opendp())

    def keep(self, level: int, answer: Answer) -> None:
        """Add the release to the mean."""
        weight = self._scale**-2
        before, mean = self._means.get(self.finest, (0.0, answer))
        precision, share = before + weight, weight / (before + weight)
        self._means[level] = precision, _combined(mean, answer, lambda x, y: x + share * (y - x))
        self.finest = level

    def check(self, level: int) -> None:
        """Raise below the first level."""
        if level < min(self._means):
            raise InvalidValueError(
                f"level ({level_of(level)}) is below that of the first answer, and Gaussian noise "
                f"is not made coarser; ask for level {level_of(min(self._means))}, which is free"
            )

    def at(self, level: int) -> Answer:
        """Return the mean of the first releases, as many as a level admits."""
        mean = self._means[self._launched(level)][1]
        return [*mean] if isinstance(mean, list) else mean  # who gets a list may change it

    def _launched(self, level: int) -> int:
        """Return the finest level up to ``level`` that was launched."""
        self.check(level)
        return max(one for one in self._means if one <= level)

    def accuracy(self, domain: Domain, level: int) -> Accuracy:
        """Return that of a mean, whose tails are at most those of a Gaussian [CKS20]."""
        answered = level if level > self.finest else self._launched(level)
        scale = sqrt(0.5 / level_of(answered)) * _ABOVE
        bound = of_one(lambda failing: scale * sqrt(2 * log(2 / failing)) * UP)
        return Accuracy("Gaussian", scale, bound, known_size(domain) if is_vector(domain) else 1)


def _combined(one: Any, other: Any, mixed: Callable[[float, float], float]) -> Any:
    if isinstance(one, list):
        return [mixed(x, y) for x, y in zip(one, other, strict=True)]
    return mixed(one, other)
