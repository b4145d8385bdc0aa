"""The keys with the most rows: by sorted noisy counts, or OpenDP's noisy top-k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

from opendp import measurements
from opendp.measurements import then_gaussian, then_laplace
from opendp.measures import max_divergence
from opendp.mod import Domain, Measure, Metric

from ..types import Distance

# standard deviations at scale 1: of Laplace noise, and of the exponential noise of OpenDP's top-k
PURE = sqrt(2.0), 1.0
# of Gaussian noise, and of the Gumbel noise
ZCDP = 1.0, pi / sqrt(6.0)


@dataclass(frozen=True, slots=True)
class Top:
    """How the keys with the most rows are found. The choice is public.

    :ivar counts: returns the transformation to counts, under a norm
    :ivar measure: pure DP or zCDP
    :ivar wanted: number of keys
    :ivar selects: whether by a selection of keys, without counts
    """

    counts: Callable[..., Any]
    measure: Measure
    wanted: int
    selects: bool

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in a count, at scale 1."""
        return (PURE if self.measure == max_divergence() else ZCDP)[self.selects]

    def measurement(self, before: Any, scale: float) -> Any:
        """Return the measurement after a space or a transformation."""
        pure = self.measure == max_divergence()
        if self.selects:
            select = measurements.then_noisy_top_k(self.measure, self.wanted, scale)
            return before >> self.counts(norm="linf") >> select
        noise, norm = (then_laplace, "l1") if pure else (then_gaussian, "l2")
        return before >> self.counts(norm=norm) >> noise(scale)

    def places(self, released: Sequence[int]) -> list[int]:
        """Return the places of the keys, the largest count first."""
        if self.selects:
            return list(released)
        order = sorted(range(len(released)), key=lambda place: -released[place])
        return order[: self.wanted]

    def noise(self, space: tuple[Domain, Metric], d_in: Distance) -> float:
        """Return the standard deviation of the noise at a loss of 1."""
        loss = self.measurement(space, 1.0).map(d_in)
        return self.deviation * (loss if self.measure == max_divergence() else sqrt(loss))


def best_top(
    unit: tuple[Domain, Metric, Distance], counts: Callable[..., Any], measure: Measure, wanted: int
) -> Top:
    """Return the way that has less noise at the same loss."""
    *space, d_in = unit
    ways = [Top(counts, measure, wanted, False)]
    if hasattr(measurements, "then_noisy_top_k"):  # OpenDP 0.14 has none
        ways.append(Top(counts, measure, wanted, True))
    return min(ways, key=lambda one: one.noise((space[0], space[1]), d_in))
