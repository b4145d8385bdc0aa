"""The random number of runs of a private selection, drawn exactly with OpenDP's noise.

With success probability γ = 1 - e^(-1/scale) and η in [0, 1], the number of runs K has
probabilities proportional to

    (1-γ)^k times the product over l = 1, ..., k-1 of (l+η)/(l+1),    k = 1, ..., most.

This is the truncated negative binomial distribution of [PS22], given that K is at most ``most``: η
= 1 is the geometric distribution, η = 0 the logarithmic one. OpenDP's Laplace noise of that scale
on the integers, given that it is not negative, is geometric with success probability exactly γ. So
K is drawn by rejection: k-1 is such a draw, which is accepted with the product as probability. All
factors are rational, and are compared bit by bit with fair bits, the signs of noise. No probability
is rounded: the loss is that of the law that is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, expm1, log

from ..exact.bracket import Bracket, Digits
from ..measurements.noise import LaplaceNoise

LARGEST = 2.0**32  # of the scale
AHEAD = 4  # draws per batch; what is left over is forgotten, so no noise is kept
NEVER = 50  # most is so many scales if left out: a larger draw has a probability below 1e-19


@dataclass(frozen=True, slots=True)
class RandomRuns:
    """The law of the number of runs.

    :ivar scale: -1 / log(1 - γ), exactly
    :ivar eta: η, in [0, 1]
    :ivar most: the largest number of runs
    """

    scale: float
    eta: float
    most: int

    def draw(self) -> int:
        """Return a number of runs."""
        proposals = LaplaceNoise(self.scale, AHEAD)
        signs = LaplaceNoise(1.0, AHEAD) if self.eta != 1.0 else None
        while True:
            more = proposals.draw()
            if 0 <= more < self.most and (signs is None or self._accepts(more, signs)):
                return more + 1

    def _accepts(self, more: int, signs: LaplaceNoise) -> bool:
        eta = Fraction(self.eta)
        return all(happens((i + eta) / (i + 1), signs) for i in range(1, more + 1))

    def gamma(self, real: Digits) -> Bracket:
        """γ, the success probability."""
        return 1 - (-1 / real(self.scale)).exp()

    def mean(self, real: Digits) -> Bracket:
        """The mean without ``most``, which is at least the mean [PS22, Definition 1]."""
        gamma = self.gamma(real)
        if self.eta == 1.0:
            return 1 / gamma
        if self.eta == 0.0:
            return (1 / gamma - 1) / -gamma.ln()
        eta = real(self.eta)
        return eta * (1 - gamma) / (gamma * (1 - (eta * gamma.ln()).exp()))


def happens(probability: Fraction, signs: LaplaceNoise) -> bool:
    """Return True with exactly this probability, below 1."""
    numerator, denominator = probability.as_integer_ratio()
    while numerator:  # compares a uniform number with the probability, bit by bit
        numerator *= 2
        bit = numerator >= denominator
        if bit:
            numerator -= denominator
        if fair(signs) != bit:
            return bit
    return False


def fair(signs: LaplaceNoise) -> bool:
    """Return a fair bit: the sign of symmetric noise that is not 0."""
    while (noise := signs.draw()) == 0:
        pass
    return noise > 0


def mean_of(scale: float, eta: float) -> float:
    """Return the mean without a cap, in doubles: only for the choice of a scale."""
    gamma = -expm1(-1 / scale)
    others = 1 - gamma
    if eta == 0.0:
        return others / gamma / -log(gamma) if gamma < 1.0 else 1.0
    return eta * others / (gamma * -expm1(eta * log(gamma))) if gamma < 1.0 else 1.0


def scale_for(mean: float, eta: float) -> float:
    """Return a scale whose mean is about ``mean``; at most ``LARGEST``."""
    low, high = 2.0**-5, LARGEST  # the mean increases with the scale
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if mean_of(middle, eta) < mean else (low, middle)
    return high


def most_of(scale: float) -> int:
    """Return the largest number of runs, if left out."""
    return ceil(NEVER * scale) + 1
