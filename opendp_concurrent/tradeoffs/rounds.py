"""The accumulator of training by rounds: units of sampled noise, in the order of the neighbours.

A unit is one round of Poisson sampling, or one epoch of random allocation (``fdp/allocation.py``).
Let T(P, Q) bound a unit of (data with the row, data without it). A launch of another mechanism
costs the least k with T(M(x), M(x')) >= T(P, Q)^k; as it is bounded in both orders, so is the other
order. All launches have the same neighbours, and so the same order. So K units are a postprocessing
of (P, Q)^K, as in ``ladder``, and the loss is the worse of the two orders of K units, not of each.

**Discrete noise.** Rounds add discrete Gaussian noise of scale s to d integers. Let p be its law,
and q that of continuous noise, rounded: a postprocessing of the latter. At n, per coordinate,

    q/p = Z / (s sqrt(2π)) · ∫ cosh(nv/s²) exp(-v²/(2s²)) dv over |v| <= 1/2,

where Z = Σ exp(-n²/(2s²)) is from s sqrt(2π) to exp(3 exp(-2π²s²)) times that, for s >= 1/2, by
Poisson's summation formula. With cosh >= 1 and Jensen's inequality q/p >= exp(-1/(24s²)). With
sinh(y)/y <= exp(y²/6) and y = n/(2s²) it is at most exp(n²/(24s⁴) + 3 exp(-2π²s²)). So p <= e^h q
with h = d/(24s²); and q <= e^g p, g = r²/(24s²) + 3d exp(-2π²s²), unless the noise is longer than
rs, which has probability c = Pr[χ_d > r - sqrt(d)/(2s)] under q. For r = sqrt(d) + sqrt(d)/(2s) + t
that is at most exp(-t²/2), by concentration of a Lipschitz function. These hold at each history. So
for J rounds, however they are chosen, with the profile δ' of the continuous units,

    δ(ε) <= e^(Jh) δ'(ε - J(h + g)) + J c e^ε:

replace the noise of all rounds on x; then on x', after setting aside that a round's is too long.
J is fixed up front: it is the number of rounds in all K units that a bound is read for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import atanh, exp, inf, log, nextafter, pi, sqrt

from ..arguments.written import written
from ..fdp.bounds import UNIT
from ..fdp.function import TradeoffFunction
from ..fdp.session import Session
from ..measures.approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import times
from ..types import Loss
from .ladder_at_delta import EpsilonDeltaRungs

FINE = 24  # a row's sum has norm at most 2^FINE steps of the grid
LONG = 40.0  # t
_LEFT_OUT = 2.0**-30  # part of δ that long noise may take
_PARTS, _WIDTH = (0.999, 0.97, 0.9, 0.7, 0.4, 0.1, 0.01), 1e-4


@written("round")
@dataclass(frozen=True)
class Round:
    """The price of one unit: a round, or an epoch of random allocation."""

    def __repr__(self) -> str:
        return "one unit of rounds"


@written("rounds", "sigma", "rate", "batches", "size", "delta")
@dataclass(frozen=True)
class Rounds:
    """The accumulator of rounds of one kind, and of other launches beside them.

    :ivar sigma: standard deviation of the noise over the norm of a row's sum
    :ivar rate: probability with which a row takes part in a round; 0 for random allocation
    :ivar batches: rounds in an epoch of random allocation; 1 for Poisson sampling
    :ivar size: number of coordinates
    :ivar delta: the δ of the loss
    """

    sigma: float
    rate: float
    batches: int
    size: int
    delta: float

    made_for = "Approximate(MaxDivergence)"
    why_no_events = "its rounds sample rows, and their discrete noise has a slack of its own"

    @cached_property
    def session(self) -> Session:
        """One unit, in both orders of neighbours."""
        if self.rate:
            return Session.subsampled_gaussian(self.sigma, self.rate)
        return Session.random_allocation(self.sigma, self.batches)

    def epsilon(self, units: int | None) -> float:
        """The ε of so many units at δ, rounded up; infinite for None."""
        return _epsilon(self, units)

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure is approximate DP."""
        return bool(measure == APPROXIMATE_MAX_DIVERGENCE)

    def start(self, measure: CompositionMeasure | None = None) -> Units:
        """Return the state with no units spent."""
        return self.from_record(measure, 0)

    def from_record(self, measure: CompositionMeasure | None, record: int | None) -> Units:
        """Inverse of :meth:`Units.to_record`."""
        del measure
        return Units(self.session.removed, self.delta, record, self)

    def __repr__(self) -> str:
        how = f"sample_rate={self.rate}" if self.rate else f"batches={self.batches}"
        return f"rounds(noise_multiplier={self.sigma}, {how})"


def noise_slack(size: int, scale: float) -> tuple[float, float]:
    """Return h and g of one round, rounded up.

    :param scale: of the noise, in steps of the grid, at least 1/2
    """
    root = sqrt(size)
    long, few = root + root / (2 * scale) + LONG, 3 * size * exp(-2 * pi**2 * scale**2)
    one, other = size / (24 * scale**2), long**2 / (24 * scale**2) + few
    return one * (1 + 16 * UNIT), other * (1 + 2.0**-40)  # of a large exponent, too


@lru_cache(maxsize=65536)
def _epsilon(rounds: Rounds, units: int | None) -> float:
    if units is None:
        return inf
    if not units:
        return 0.0
    count = units * rounds.batches
    one, other = noise_slack(rounds.size, rounds.sigma * 2.0**FINE)
    delta = rounds.delta * exp(-count * one) * (1 - _LEFT_OUT) * (1 - 16 * UNIT)
    found = rounds.session.power(units).epsilon(delta) + count * (one + other)
    found = nextafter(found * (1 + 4 * UNIT), inf)
    lost = log(count) + found - LONG**2 / 2
    return found if lost < log(rounds.delta * _LEFT_OUT / 2) else inf


@dataclass(frozen=True, slots=True)
class Units(EpsilonDeltaRungs):
    """The number of units spent on rounds and on other launches."""

    rounds: Rounds | None = None

    @property
    def _rounds(self) -> Rounds:
        assert self.rounds is not None
        return self.rounds

    @property
    def loss(self) -> tuple[float, float]:
        """The ε of the units spent at δ, in the worse order; (0, 0) if nothing is spent."""
        if self.spent == 0:
            return 0.0, 0.0
        return self._rounds.epsilon(self.spent), self.delta_slack

    def after(self, d_mid: Loss, count: int = 1) -> Units:
        """Spend one unit for a round, or the units that a pair costs, ``count`` times."""
        if not isinstance(d_mid, Round):
            return EpsilonDeltaRungs.after(self, d_mid, count)
        return self if self.spent is None else self.moved(times(count))

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether the units are at most those that fit into ``d_out``."""
        return self.spent is not None and self.spent <= _most(self._rounds, d_out)

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return an ε that one more launch may have: within some percent of the largest one."""
        left = 0 if self.spent is None else self.left(d_out)
        return _pure(self._rounds, left), 0.0

    def left(self, d_out: tuple[float, float]) -> int:
        """The number of units that fit into the rest of ``d_out``."""
        return _most(self._rounds, d_out) - (self.spent or 0)


@lru_cache(maxsize=1024)
def _most(rounds: Rounds, d_out: tuple[float, float]) -> int:
    """The largest number of units within ``d_out``."""
    return EpsilonDeltaRungs.left(rounds.start(), d_out) if rounds.delta <= d_out[1] else 0


@lru_cache(maxsize=1024)
def _pure(rounds: Rounds, units: int) -> float:
    """An ε, such that ε-DP costs at most so many units."""
    unit = rounds.session.removed
    most = float(unit.power(max(units, 1)).delta_bounds(0.0, _WIDTH).lower)
    for part in _PARTS if units > 0 else ():
        epsilon = 2 * atanh(min(most, 1 - UNIT)) * part
        cost = TradeoffFunction.pure(epsilon).units(unit)
        if cost is not None and cost <= units:
            return epsilon
    return 0.0
