"""Pairs of distributions on finitely many outcomes, known by their losses and P-masses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import ceil, exp, expm1, floor, inf, log, log1p, nextafter, sqrt
from typing import Any, ClassVar

import numpy as np

from . import bounds
from .atoms import Atoms
from .gaussian import Theta

_DIRECT = 2**27  # outcomes times nodes up to which sums are taken: about a second
_NO_BOUND = 1e3  # an error with which inversion.py gives up
UPPER_ONLY = 2.0  # slack of a pair that is an upper bound only
_BLOCK = 2**20  # elements that are worked on together


@dataclass(frozen=True, eq=False)
class Finite(bounds.Lasting):
    """Finitely many losses, increasing, with their P-masses.

    The errors are those of the mass above a loss ε: what the pair stands for has at most
    (1 + mass_error) times the mass of the pair above ε - loss_error, and likewise from below. So an
    outcome may count at a larger loss if its mass is within the error of the mass above that loss.

    :ivar losses: finite losses
    :ivar masses: their P-probabilities
    :ivar infinite: P-probability of the outcomes that are impossible under Q
    :ivar never: Q-probability of the outcomes that are impossible under P
    :ivar mass_error: relative error of the masses; 0 if they are exact
    :ivar loss_error: absolute error of the losses
    :ivar limit: bound on the losses that is known from elsewhere
    :ivar slack: bound on how much too large ``infinite`` and ``never`` are
    :ivar gaussian: μ of a Gaussian pair that is known to lose at least as much
    :ivar symmetric: whether the swapped pair is known to be the same
    :ivar back: the swapped pair, where it does not follow from these masses
    :ivar stands_for: what the pair bounds from above only; empty if it is known from both sides
    :ivar unit: "removed" or "added" if the pair bounds that direction of neighbours only, or empty
    :cvar form: the same pair by formulas, where there are some; see :meth:`with_form`
    """

    losses: bounds.Array
    masses: bounds.Array
    infinite: float = 0.0
    never: float = 0.0
    mass_error: float = 0.0
    loss_error: float = 0.0
    symmetric: bool = False
    limit: float = inf
    slack: float = 0.0
    gaussian: float = inf
    back: Finite | None = None
    stands_for: str = ""
    unit: str = ""

    form: ClassVar[Theta | None] = None

    def __post_init__(self) -> None:
        if self.stands_for:
            object.__setattr__(self, "slack", UPPER_ONLY)
        if self.back is not None:
            self._link(self.back)

    def with_form(self, form: Theta) -> Finite:
        """Return the pair itself, computed by formulas from now on, which are not compared."""
        self.__dict__["form"] = form
        return self

    def one_way(self, unit: str) -> Finite:
        """The pair as a bound of one direction of neighbours; a symmetric pair bounds both."""
        if not unit or self.symmetric or self.unit == unit:
            return self
        back = None if self.back is None else replace(self.back, unit=other_unit(unit))
        return replace(self, unit=unit, back=back)

    def _link(self, swapped: Finite) -> None:
        """Make swapping either pair return the other one."""
        swapped.__dict__["_origin"] = self.losses.tobytes(), self.masses.tobytes()
        swapped.__dict__["_twin"] = self
        self.__dict__["_twin"] = swapped

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What two pairs must have in common to be equal; how well they are known is part of it."""
        return (
            self.losses.tobytes(),
            self.masses.tobytes(),
            self.infinite,
            self.never,
            self.mass_error,
            self.loss_error,
            self.slack,
            self.limit,
            self.gaussian,
            self.stands_for,
            self.unit,
            None if self.back is None else (self.back.losses.tobytes(), self.back.masses.tobytes()),
            self.__dict__.get("_origin"),  # the pair that swapping returns
        )

    @cached_property
    def digest(self) -> str:
        """A text that only equal pairs have in common."""
        return sha256(repr(self.key).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finite) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def largest_loss(self) -> float:
        """The last loss, plus its error."""
        if not self.losses.size:
            return 0.0
        last = float(self.losses[-1])
        return min(self.limit, nextafter(last + self.loss_error, inf) if self.loss_error else last)

    @cached_property
    def variance(self) -> float:
        """Variance of the finite losses."""
        if not np.any(self.masses):
            return 0.0
        mean = np.average(self.losses, weights=self.masses)
        with np.errstate(over="ignore"):  # infinite, if it is above the largest double
            return float(np.average((self.losses - mean) ** 2, weights=self.masses))

    @cached_property
    def largest_absolute(self) -> float:
        """Largest absolute value of a finite loss."""
        return float(np.max(np.abs(self.losses), initial=0.0))

    @cached_property
    def atoms(self) -> Atoms:
        """The outcomes, to be summed over."""
        return Atoms(
            self.losses, self.masses, self.infinite, self.mass_error, self.loss_error, self.slack
        )

    @cached_property
    def response(self) -> tuple[float, float] | None:
        """(ε, δ) of randomized response, whatever masses were rounded to; None for another pair."""
        if self.loss_error or self.slack or self.infinite != self.never:
            return None
        if len(self.losses) == 2 and self.losses[0] == -self.losses[1]:
            return float(self.losses[1]), self.infinite
        return (0.0, self.infinite) if len(self.losses) == 1 and not self.losses[0] else None

    def log_mgf(self, tau: bounds.Array) -> bounds.Array:
        """Logarithm of a sum of exponentials, scaled by the largest; or by :meth:`_by_formula`."""
        if self.form is not None:
            return self.form.log_mgf(tau)
        known = self._by_formula(tau)
        if known is not None:
            return np.asarray(known.lower)
        if not self.losses.size:
            return np.full(np.shape(tau), -inf)
        tau = np.asarray(tau, dtype=float)
        rows = max(1, _BLOCK // self.losses.size)
        parts = [self._log_sums(tau.ravel()[at : at + rows]) for at in range(0, tau.size, rows)]
        return np.concatenate(parts).reshape(tau.shape)

    def _log_sums(self, tau: bounds.Array) -> bounds.Array:
        exponents = np.multiply.outer(tau, self.losses)
        largest = np.max(exponents, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):  # product.py gives up if this is NaN
            value: bounds.Array = largest + np.log(
                np.exp(exponents - largest[:, None]) @ self.masses
            )
        return value

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """Errors of the masses, of the losses, and of the sum."""
        if self.form is not None:
            return self.form.mgf_error(tau)
        known = self._by_formula(np.asarray(tau))
        if known is not None:
            return known.width
        rounding = 3 * bounds.ELEMENTARY + 4 * bounds.UNIT * tau * self.largest_absolute
        return rounding + bounds.UNIT * len(self.losses) + self.mass_error + tau * self.loss_error

    def _by_formula(self, tau: bounds.Array) -> bounds.Bounds | None:
        """Of randomized response: ln(1 - δ) + ln(1 + 2 sinh((τ+1)ε/2) sinh(τε/2) / cosh(ε/2))."""
        epsilon, delta = self.response or (0.0, 0.0)
        reach = (np.max(tau) + 1) * epsilon
        if not 0.0 < reach < _EXPONENT:
            return None
        both = np.sinh((tau + 1) * (epsilon / 2)) * np.sinh(tau * (epsilon / 2))
        grown, never = np.log1p(2 * both / np.cosh(epsilon / 2)), log1p(-delta)
        error = 8 * (bounds.ELEMENTARY + bounds.UNIT * reach) * np.minimum(np.abs(grown), 1.0)
        error += 2 * bounds.ELEMENTARY * (np.abs(grown) + abs(never))
        return bounds.Bounds(grown + never, grown + never + error)

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """By formulas, or term by term; inversion gives up if there are too many terms."""
        if self.form is not None:
            return self.form.transform(tau, step, nodes)
        exponents = tau * self.losses
        weights = self.masses * np.exp(exponents - np.max(exponents))
        weights = weights / float(np.sum(weights))
        error = 6 * bounds.ELEMENTARY + bounds.waves_error(len(weights)) + self.mass_error
        moved = tau * self.largest_absolute + step * nodes * float(weights @ np.abs(self.losses))
        error += (tau + step * nodes) * self.loss_error + 4 * bounds.UNIT * moved
        if len(weights) * nodes > _DIRECT:
            return bounds.Transform(np.ones(nodes, dtype=complex), _NO_BOUND)
        return bounds.Transform(bounds.waves(self.losses, weights, step, nodes), error)

    def profile(self, epsilon: bounds.Array) -> bounds.Bounds:
        """δ at each real ε, summed over the outcomes."""
        return self.atoms.profile(epsilon)

    def swapped(self) -> Finite:
        """The pair (Q, P)."""
        if self.symmetric:
            return self
        twin: Finite | None = self.__dict__.get("_twin")
        if twin is not None:
            return twin
        error = self.mass_error + expm1(min(self.loss_error, 600.0))
        error += bounds.ELEMENTARY + 2 * bounds.UNIT * (1 + self.largest_absolute)
        swapped = Finite(
            np.ascontiguousarray(-self.losses[::-1]),
            np.ascontiguousarray((self.masses * np.exp(-self.losses))[::-1]),
            self.never,
            self.infinite,
            error,
            self.loss_error,
            slack=self.slack,
            gaussian=self.gaussian,
            stands_for=self.stands_for,
            unit=other_unit(self.unit),
        )
        self._link(swapped)
        return swapped


def other_unit(unit: str) -> str:
    """The other direction of neighbours; empty if there is none."""
    return {"removed": "added", "added": "removed"}.get(unit, "")


def without_tiny_masses(
    losses: bounds.Array, masses: bounds.Array
) -> tuple[bounds.Array, bounds.Array, float]:
    """Sort the losses and drop masses below ``TINY``; also return the P-mass to count as infinite.

    A mass below ``TINY`` counts at the next larger loss if it is within the rounding of the mass
    above it; otherwise its loss counts as infinite.
    """
    order = np.argsort(losses, kind="stable")
    losses, masses = losses[order], masses[order]
    small = masses < bounds.TINY
    if not np.any(small):
        return losses, masses, 0.0
    above = np.cumsum(np.where(small, 0.0, masses)[::-1])[::-1]
    lost = np.count_nonzero(small & (above * bounds.UNIT < len(masses) * bounds.TINY))
    return losses[~small], masses[~small], float(lost * bounds.TINY * (1 + 2 * bounds.UNIT))


def worst(stands_for: str = "") -> Finite:
    """The pair whose losses are all infinite."""
    empty = np.zeros(0)
    return Finite(empty, empty, 1.0, 1.0, symmetric=True, stands_for=stands_for)


def response(epsilon: float, delta: float = 0.0) -> Finite:
    """Randomized response that reveals the data with probability δ: the worst (ε, δ)-DP [KOV15]."""
    if delta == 1.0:
        return worst()
    if epsilon == 0.0:
        losses, masses = np.zeros(1), np.array([1.0 - delta])
        return Finite(losses, masses, delta, delta, 2 * bounds.UNIT, symmetric=True)
    odd = log1p(exp(-epsilon))
    masses = (1 - delta) * np.array([exp(-epsilon - odd), exp(-odd)])
    error = 3 * bounds.ELEMENTARY + 4 * bounds.UNIT * (1 + epsilon)
    return Finite(np.array([-epsilon, epsilon]), masses, delta, delta, error, symmetric=True)


def response_of(factor: object) -> tuple[float, float] | None:
    """(ε, δ) of the randomized response that a factor is; None for another one."""
    return factor.response if isinstance(factor, Finite) else None


# The outcomes of equal finite pairs, run together.
#
# A pair with two losses has a binomial distribution. Its masses follow from their ratios, and from
# their sum, which is known. Masses beyond 40 standard deviations are below 1e-300 and left out.

MOST_DRAWS = 10**9
_WHOLE = 2**14  # draws up to which no outcome is left out
_EXPONENT = 700.0  # e^-700 is below TINY


def repeated(factor: Finite, n: int, most: int) -> Atoms | None:
    """The outcomes of n equal factors, if there are at most ``most``."""
    atoms = factor.atoms
    number = len(atoms.losses)
    if n == 1:
        return atoms if number <= most else None
    if number <= 1:
        if number > most:
            return None
        largest = float(np.max(np.abs(n * atoms.losses), initial=0.0))
        power = Atoms(
            n * atoms.losses,
            atoms.masses**n,
            mass_error=_compounded(n * (atoms.mass_error + bounds.ELEMENTARY)),
            loss_error=n * atoms.loss_error + bounds.UNIT * largest,
        )
    elif number == 2:
        if not n <= MOST_DRAWS or len(window(n, factor.masses)) > most:
            return None
        power = binomial(factor, n)
    elif number ** min(n, 64) > most:
        return None
    else:
        power = atoms
        for _ in range(n - 1):
            power = power.times(atoms)
        return power
    infinite = -expm1(n * log1p(-atoms.infinite)) if atoms.infinite < 1 else 1.0
    return replace(
        power, infinite=infinite, infinite_error=4 * bounds.ELEMENTARY, slack=n * atoms.slack
    )


def _compounded(error: float) -> float:
    """Relative error of a product whose factors have relative errors that add up to ``error``."""
    return expm1(error) if error < 1.0 else inf


def window(n: int, masses: bounds.Array) -> range:
    """The numbers of successes in n draws that are not left out."""
    p = float(masses[1] / (masses[0] + masses[1]))
    # Bernstein: P(|X - np| >= t) <= 2 exp(-t² / (2 variance + 2t/3))
    variance = n * p * (1 - p)
    reach = _EXPONENT / 3 + sqrt((_EXPONENT / 3) ** 2 + 2 * _EXPONENT * variance)
    if n <= _WHOLE:
        return range(n + 1)
    return range(max(0, floor(n * p - reach)), min(n, ceil(n * p + reach)) + 1)


def binomial(factor: Finite, n: int) -> Atoms:
    """The outcomes of n equal factors with two losses, without the infinite losses."""
    (low, high), (rare, common) = factor.losses.tolist(), factor.masses.tolist()
    counts = window(n, factor.masses)
    first, last = counts[0], counts[-1]
    mode = min(max(round(n * (common / (rare + common))), first), last)
    if factor.response is not None and factor.infinite < 1.0:
        # randomized response: exact, whatever the masses were rounded to
        odds, wrong = exp(high) if high <= _EXPONENT else inf, bounds.ELEMENTARY
        logarithm, error = n * log1p(-factor.infinite), 0.0
    else:
        odds, wrong = common / rare if rare else inf, 2 * factor.mass_error + bounds.UNIT
        logarithm, error = (
            n * log(rare + common),
            _compounded(n * (factor.mass_error + bounds.UNIT)),
        )
    up, down = np.arange(mode, last, dtype=float), np.arange(mode, first, -1, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite odds: all draws are ``high``
        right = np.cumprod((n - up) / (up + 1) * odds)
        left = np.cumprod(down / ((n - down + 1) * odds))
    masses = np.concatenate([left[::-1], [1.0], right])
    masses *= exp(logarithm) / float(np.sum(masses))
    # of each mass, and of the sum; of its logarithm
    error += 2 * (7 * bounds.UNIT + wrong) * (last - first + 2)
    error += (bounds.ELEMENTARY + 4 * bounds.UNIT) * (2 + abs(logarithm))
    count = np.arange(first, last + 1, dtype=float)
    if low == -high:
        losses = (2 * count - n) * high
        largest = float(np.max(np.abs(losses)))
    else:
        losses = count * high + (n - count) * low
        largest = float(np.max(np.abs(count * high) + np.abs((n - count) * low)))
    omitted = 0.0 if len(counts) == n + 1 and float(np.min(masses)) >= bounds.TINY else bounds.TINY
    rounding = 2 * bounds.UNIT * largest + n * factor.loss_error
    return Atoms(losses, masses, 0.0, error, rounding, omitted=omitted)
