"""Levels of discrete Laplace noise on one exact answer, each a function of the finest one.

A level is a number e > 0, and its noise is A - B for independent A and B with P(n) proportional to
exp(-e n), n = 0, 1, 2, ... For such numbers of rates e and x, the minimum has the rate e + x. So a
level that is finer by x takes the minimum of A and a new draw of rate x, and the same for B.

A level e between two known ones, e1 < e < e2 with values a >= b of A, needs the law of A at e given
both. Let U and V have the rates e - e1 and e2 - e. The value at e2 is the minimum of that at e and
of a draw R of rate e2 - e. Given that this minimum is b, what exceeds it is memoryless: A at e is
the minimum of a and b + U - min(U, V). Below all known levels, e1 is 0 and a is infinite.

All differences between levels are independent of A at the finest level, which alone is added to the
exact answer: ``docs/proofs/shared-release.rst``. A rate is a sum of powers of two, and a draw of it
is the minimum of draws for these powers, whose inverses are doubles. So all laws are exact. How
many draws are made depends on the levels only.
"""

from collections.abc import Callable, Sequence
from math import log, sqrt
from typing import Any

from opendp.mod import Domain, Measurement, Metric

from .. import composition, errors, measures, mechanisms, numerics
from ..queryables import Accuracy, Sealed, in_python, of_one, unseal

BITS = 30  # after the point: levels are multiples of 2^-30, and so are rates
FINEST = 2.0**20
_AHEAD = 16  # draws of a rate in one batch
MOST = 1000  # levels that are free: each keeps two numbers for each coordinate


def units_of(level: float, name: str = "level") -> int:
    """Return a level in units of 2^-30, rounded down; this is exact.

    :param name: of the argument, for the message
    :raises InvalidValueError: if it is not between 2^-30 and 2^20
    """
    if not 2.0**-BITS <= level <= FINEST:
        raise errors.InvalidValueError(
            f"{name} ({errors.shown(level)}) must be from 2^-{BITS} to 2^20; pass the "
            "privacy loss that this release may have per unit of sensitivity, such as 0.1"
        )
    return int(level * 2.0**BITS)


def level_of(units: int) -> float:
    """Return a level as a double, exactly."""
    return units * 2.0**-BITS


class GeometricDraws:
    """Draws from 0, 1, 2, ... with P(n) proportional to exp(-rate n). Not thread-safe."""

    def __init__(self) -> None:
        self._noises: dict[int, mechanisms.OneSidedNoise] = {}

    def __call__(self, rate: int) -> int:
        """Return a draw of a rate in units: the least one of those for its powers of two."""
        return min(self._power(bit) for bit in range(rate.bit_length()) if rate >> bit & 1)

    def _power(self, bit: int) -> int:
        if bit not in self._noises:
            self._noises[bit] = mechanisms.OneSidedNoise(2.0 ** (BITS - bit), _AHEAD)
        return self._noises[bit].draw()


class Chain:
    """The levels of one exact answer, a number or a vector of integers. Holds secret noise.

    :param exact: the exact answer
    :param draw: returns a draw of a rate in units
    """

    def __init__(self, exact: int | Sequence[int], draw: Callable[[int], int]) -> None:
        self._exact, self._draw = exact, draw
        self._noise: dict[int, list[int]] = {}  # by level: A of each coordinate, then B of each

    def check(self, level: int) -> None:
        """Raise, for public reasons, if a level would be one too many."""
        if level not in self._noise and len(self._noise) >= MOST:
            raise errors.InvalidValueError(
                f"level ({level_of(level)}) must be one that was answered, since {MOST} were: the "
                f"next one is {level_of(min(self._noise, key=lambda one: abs(one - level)))}"
            )

    def at(self, level: int) -> int | list[int]:
        """Return the answer at a level in units, always the same one."""
        many = self._exact if isinstance(self._exact, Sequence) else (self._exact,)
        if level not in self._noise:
            coarser = max((one for one in self._noise if one < level), default=0)
            finer = min((one for one in self._noise if one > level), default=None)
            places = range(2 * len(many))
            self._noise[level] = [self._new(level, coarser, finer, place) for place in places]
        noise = self._noise[level]
        pairs = zip(many, noise[: len(many)], noise[len(many) :], strict=True)
        noisy = [exact + plus - minus for exact, plus, minus in pairs]
        return noisy if isinstance(self._exact, Sequence) else noisy[0]

    def _new(self, level: int, coarser: int, finer: int | None, place: int) -> int:
        value = self._draw(level - coarser)
        if finer is not None:
            value += self._noise[finer][place] - min(value, self._draw(finer - level))
        return min(value, self._noise[coarser][place]) if coarser else value


# What a shared release launches for a finer level, and how it answers: two kinds of noise.
#
# Laplace noise is refined: the launch draws what is missing (:class:`Chain`). Gaussian noise is
# added up: the launch is a release of its own, and the answer is the mean of the releases so far,
# weighted by the inverses of their variances, as precise as one release at the sum of their prices.

Space = tuple[Domain, Metric]
STEPPED = (measures.PURE, measures.APPROXIMATE)  # the measures under which each step may be charged
_ABOVE = 1 + 2.0**-40  # so that the price of a scale, rounded up, is at most that of its level


class LaplaceLevels:
    """Levels under pure and (ε, δ)-DP: of ε per unit of sensitivity, each charged for its step.

    Not thread-safe, as the other kind.
    """

    def __init__(self, space: Space, measure: measures.CompositionMeasure[Any]) -> None:
        self._space, self._measure = space, measure
        self._chain: Chain | None = None
        self.finest = 0

    def launch(self, level: int, own: Sealed) -> Measurement:
        """Return the refinement by a level's distance from the finest one."""
        step, pure = level_of(level - self.finest), self._measure.kind == measures.PURE

        def privacy_map(d_in: errors.Distance) -> Any:
            epsilon = numerics.upper(lambda real: real(d_in) * real(step))
            return epsilon if pure else (epsilon, 0.0)

        return composition.make_measurement(
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

    def keep(self, level: int, answer: errors.Answer) -> None:
        """Note the finest level."""
        del answer
        self.finest = level

    def check(self, level: int) -> None:
        """Raise if too many levels up to the finest one were asked."""
        assert self._chain is not None
        self._chain.check(level)

    def at(self, level: int) -> errors.Answer:
        """Return the answer at any level up to the finest one."""
        assert self._chain is not None
        return self._chain.at(level)

    def accuracy(self, domain: Domain, level: int) -> Accuracy:
        """Return that of Laplace noise."""
        return mechanisms.laplace_accuracy(domain, 1 / level_of(level), None)


class GaussianLevels:
    """Levels under zCDP and its relatives: of ρ per square of sensitivity, each launched alone."""

    def __init__(self, space: Space, measure: measures.CompositionMeasure[Any]) -> None:
        self._space, self._measure = space, measure
        self._means: dict[int, tuple[float, Any]] = {}  # by level: precision, and mean
        self.finest, self._scale = 0, 0.0

    def launch(self, level: int, own: Sealed) -> Measurement:
        """Return a release at a level's distance from the finest one."""
        del own
        self._scale = sqrt(0.5 / level_of(level - self.finest)) * _ABOVE
        return mechanisms.make_certified_gaussian(*self._space, self._scale, self._measure.opendp())

    def keep(self, level: int, answer: errors.Answer) -> None:
        """Add the release to the mean."""
        weight = self._scale**-2
        before, mean = self._means.get(self.finest, (0.0, answer))
        precision, share = before + weight, weight / (before + weight)
        self._means[level] = precision, _combined(mean, answer, lambda x, y: x + share * (y - x))
        self.finest = level

    def check(self, level: int) -> None:
        """Raise below the first level."""
        if level < min(self._means):
            raise errors.InvalidValueError(
                f"level ({level_of(level)}) is below that of the first answer, and Gaussian noise "
                f"is not made coarser; ask for level {level_of(min(self._means))}, which is free"
            )

    def at(self, level: int) -> errors.Answer:
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
        bound = of_one(lambda failing: scale * sqrt(2 * log(2 / failing)) * mechanisms.UP)
        return Accuracy(
            "Gaussian",
            scale,
            bound,
            mechanisms.known_size(domain) if mechanisms.is_vector(domain) else 1,
        )


Levels = LaplaceLevels | GaussianLevels  # that were released so far; each holds secrets


def _combined(one: Any, other: Any, mixed: Callable[[float, float], float]) -> Any:
    if isinstance(one, list):
        return [mixed(x, y) for x, y in zip(one, other, strict=True)]
    return mixed(one, other)
