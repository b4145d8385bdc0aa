"""Pairs of distributions on finitely many outcomes, known by their losses and P-masses.

Also those that have a given profile, or that are discrete Gaussians.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial
from hashlib import sha256
from itertools import pairwise
from math import ceil, exp, expm1, floor, inf, log, log1p, nextafter, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import InvalidValueError
from ..numerics import double_up
from . import bounds
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds
from .exact import LEAST_SCALE, Atoms, Theta

_DIRECT = 2**27  # outcomes times nodes up to which sums are taken: about a second
_NO_BOUND = 1e3  # an error with which inversion.py gives up
UPPER_ONLY = 2.0  # slack of a pair that is an upper bound only
_BLOCK = 2**20  # elements that are worked on together
_COMPARED = (
    *("infinite", "never", "mass_error", "loss_error", "slack", "limit", "gaussian"),
    *("stands_for", "unit"),
)


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

    losses: Array
    masses: Array
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
            *(getattr(self, name) for name in _COMPARED),
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

    def log_mgf(self, tau: Array) -> Array:
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

    def _log_sums(self, tau: Array) -> Array:
        exponents = np.multiply.outer(tau, self.losses)
        largest = np.max(exponents, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):  # product.py gives up if this is NaN
            value: Array = largest + np.log(np.exp(exponents - largest[:, None]) @ self.masses)
        return value

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """Errors of the masses, of the losses, and of the sum."""
        if self.form is not None:
            return self.form.mgf_error(tau)
        known = self._by_formula(np.asarray(tau))
        if known is not None:
            return known.width
        rounding = 3 * ELEMENTARY + 4 * UNIT * tau * self.largest_absolute
        return rounding + UNIT * len(self.losses) + self.mass_error + tau * self.loss_error

    def _by_formula(self, tau: Array) -> Bounds | None:
        """Of randomized response: ln(1 - δ) + ln(1 + 2 sinh((τ+1)ε/2) sinh(τε/2) / cosh(ε/2))."""
        epsilon, delta = self.response or (0.0, 0.0)
        reach = (np.max(tau) + 1) * epsilon
        if not 0.0 < reach < _EXPONENT:
            return None
        both = np.sinh((tau + 1) * (epsilon / 2)) * np.sinh(tau * (epsilon / 2))
        grown, never = np.log1p(2 * both / np.cosh(epsilon / 2)), log1p(-delta)
        error = 8 * (ELEMENTARY + UNIT * reach) * np.minimum(np.abs(grown), 1.0)
        error += 2 * ELEMENTARY * (np.abs(grown) + abs(never))
        return Bounds(grown + never, grown + never + error)

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """By formulas, or term by term; inversion gives up if there are too many terms."""
        if self.form is not None:
            return self.form.transform(tau, step, nodes)
        exponents = tau * self.losses
        weights = self.masses * np.exp(exponents - np.max(exponents))
        weights = weights / float(np.sum(weights))
        error = 6 * ELEMENTARY + bounds.waves_error(len(weights)) + self.mass_error
        moved = tau * self.largest_absolute + step * nodes * float(weights @ np.abs(self.losses))
        error += (tau + step * nodes) * self.loss_error + 4 * UNIT * moved
        if len(weights) * nodes > _DIRECT:
            return bounds.Transform(np.ones(nodes, dtype=complex), _NO_BOUND)
        return bounds.Transform(bounds.waves(self.losses, weights, step, nodes), error)

    def profile(self, epsilon: Array) -> Bounds:
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
        error += ELEMENTARY + 2 * UNIT * (1 + self.largest_absolute)
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


def without_tiny_masses(losses: Array, masses: Array) -> tuple[Array, Array, float]:
    """Sort the losses and drop masses below ``TINY``; also return the P-mass to count as infinite.

    A mass below ``TINY`` counts at the next larger loss if it is within the rounding of the mass
    above it; otherwise its loss counts as infinite.
    """
    order = np.argsort(losses, kind="stable")
    losses, masses = losses[order], masses[order]
    small = masses < TINY
    if not np.any(small):
        return losses, masses, 0.0
    above = np.cumsum(np.where(small, 0.0, masses)[::-1])[::-1]
    lost = np.count_nonzero(small & (above * UNIT < len(masses) * TINY))
    return losses[~small], masses[~small], float(lost * TINY * (1 + 2 * UNIT))


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
        return Finite(losses, masses, delta, delta, 2 * UNIT, symmetric=True)
    odd = log1p(exp(-epsilon))
    masses = (1 - delta) * np.array([exp(-epsilon - odd), exp(-odd)])
    error = 3 * ELEMENTARY + 4 * UNIT * (1 + epsilon)
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
            mass_error=_compounded(n * (atoms.mass_error + ELEMENTARY)),
            loss_error=n * atoms.loss_error + UNIT * largest,
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
    return replace(power, infinite=infinite, infinite_error=4 * ELEMENTARY, slack=n * atoms.slack)


def _compounded(error: float) -> float:
    """Relative error of a product whose factors have relative errors that add up to ``error``."""
    return expm1(error) if error < 1.0 else inf


def window(n: int, masses: Array) -> range:
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
        odds, wrong = exp(high) if high <= _EXPONENT else inf, ELEMENTARY
        logarithm, error = n * log1p(-factor.infinite), 0.0
    else:
        odds, wrong = common / rare if rare else inf, 2 * factor.mass_error + UNIT
        logarithm, error = (
            n * log(rare + common),
            _compounded(n * (factor.mass_error + UNIT)),
        )
    up, down = np.arange(mode, last, dtype=float), np.arange(mode, first, -1, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite odds: all draws are ``high``
        right = np.cumprod((n - up) / (up + 1) * odds)
        left = np.cumprod(down / ((n - down + 1) * odds))
    masses = np.concatenate([left[::-1], [1.0], right])
    masses *= exp(logarithm) / float(np.sum(masses))
    # of each mass, and of the sum; of its logarithm
    error += 2 * (7 * UNIT + wrong) * (last - first + 2)
    error += (ELEMENTARY + 4 * UNIT) * (2 + abs(logarithm))
    count = np.arange(first, last + 1, dtype=float)
    if low == -high:
        losses = (2 * count - n) * high
        largest = float(np.max(np.abs(losses)))
    else:
        losses = count * high + (n - count) * low
        largest = float(np.max(np.abs(count * high) + np.abs((n - count) * low)))
    omitted = 0.0 if len(counts) == n + 1 and float(np.min(masses)) >= TINY else TINY
    rounding = 2 * UNIT * largest + n * factor.loss_error
    return Atoms(losses, masses, 0.0, error, rounding, omitted=omitted)


# Profiles that are piecewise linear in t = e^ε, and the finite pairs that have them.
#
# A profile h(t) = δ(ln t) is convex, with h(0) = 1 and slope at least -1; its limit is P(L = ∞). If
# the profile of a mechanism is bounded at a few points only, the mechanism may lose as much as the
# largest convex function through them, which consists of chords. Its slopes are the Q-masses, so it
# belongs to a finite pair. Below ε = 0 a profile is given by that of the swapped pair,
# h(t) = 1 - t + t h'(1/t), which keeps small numbers.
#
# Slopes are differences, so they are computed with as many digits as the points need.

_DIGITS, _SPARE = 60, 30  # least number of digits; digits beyond those of the smallest term

Point = tuple[float, float]


class Vertex(NamedTuple):
    """A point of a profile: t, h(t), and ε = ln t."""

    t: Decimal
    height: Decimal
    epsilon: float


def from_vertices(
    forward: Iterable[Point], backward: Iterable[Point], stands_for: str = ""
) -> Finite:
    """The pair with the largest profile through points (ε, δ), ε >= 0, in both directions."""
    forward, backward = sorted(forward), sorted(backward)
    digits = _digits([*forward, *backward])
    with localcontext(Context(prec=digits)):
        hull, merged = _hull(forward, backward)
        slopes = [_slope(one, two) for one, two in pairwise(hull)] + [Decimal(0)]
        cells = [  # losses, with their P- and Q-masses
            (vertex.epsilon, float(vertex.t * (after - before)), float(after - before))
            for vertex, (before, after) in zip(hull[1:], pairwise(slopes), strict=True)
            if after > before
        ]
        infinite = _up(hull[-1].height)
        symmetric = forward == backward
        # the slope at 0; at most the last δ of the other direction, which has no rounding
        blur = Decimal(1).scaleb(_SPARE // 2 - digits)
        slope = _up(max(Decimal(0), 1 + slopes[0]) + blur)
    never = infinite if symmetric else min(backward[-1][1], slope)
    return _pair(cells, infinite, never, symmetric, stands_for, merged)


def _hull(forward: Sequence[Point], backward: Sequence[Point]) -> tuple[list[Vertex], float]:
    """The vertices of the largest convex profile, from t = 0 to where it stops falling.

    Also the largest distance of two ε that have the same t.
    """
    points: dict[Decimal, Vertex] = {}
    merged = 0.0
    for sign, side in ((1, forward), (-1, backward)):
        for epsilon, delta in side:
            t = Decimal(sign * epsilon).exp()
            height = Decimal(delta) if sign > 0 else (1 - t) + t * Decimal(delta)
            if t in points:
                merged = max(merged, abs(points[t].epsilon - sign * epsilon) * (1 + 2 * UNIT))
            if t not in points or height < points[t].height:
                points[t] = Vertex(t, height, sign * epsilon)
    hull = [Vertex(Decimal(0), Decimal(1), -inf)]
    for t in sorted(points):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], points[t]):
            hull.pop()
        hull.append(points[t])
    while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= 0:
        hull.pop()
    return hull, merged


def _slope(one: Vertex, two: Vertex) -> Decimal:
    return (two.height - one.height) / (two.t - one.t)


def _digits(points: Sequence[Point]) -> int:
    """Enough digits for the least δ beside 1 - e^-ε."""
    reach = max(epsilon for epsilon, _ in points)
    least = min((delta for _, delta in points if delta > 0.0), default=1.0)
    return max(_DIGITS, _SPARE + ceil((reach - log(least)) / log(10.0)))


def _pair(
    cells: Sequence[tuple[float, float, float]],
    infinite: float,
    never: float,
    symmetric: bool,
    stands_for: str,
    loss_error: float,
) -> Finite:
    """The pair with these losses; a mass that is too small for doubles counts as infinite loss."""
    if not cells:
        return worst(stands_for)
    made = partial(Finite, symmetric=symmetric, stands_for=stands_for, loss_error=loss_error)
    given, p, q = np.ascontiguousarray(np.array(cells).T)
    slack = 0.0 if symmetric else 2 * UNIT * never
    if not np.any(p < TINY):
        return made(given, p, infinite, never, ELEMENTARY, slack=slack)
    losses, masses, lost = without_tiny_masses(given, p)
    back_losses, back_masses, back_lost = without_tiny_masses(-given, q)
    if not losses.size or not back_losses.size:
        raise InvalidValueError("deltas leave less than 1e-300 for finite losses; pass worst()")
    slack, error = slack + 2 * (lost + back_lost), ELEMENTARY + 2 * UNIT
    infinite, never = _sum(infinite, lost), _sum(never, back_lost)
    if symmetric:
        return made(losses, masses, infinite, infinite, error, slack=slack)
    back = made(back_losses, back_masses, never, infinite, error, slack=slack)
    return made(losses, masses, infinite, never, error, slack=slack, back=back)


def _sum(one: float, other: float) -> float:
    """A sum of probabilities, rounded up."""
    return min(1.0, double_up(Fraction(one) + Fraction(other)))


def _up(value: Decimal) -> float:
    """A probability, rounded up."""
    return min(1.0, double_up(Fraction(value)))


# The discrete Gaussian against itself, shifted by an integer [CKS20].

_DEVIATIONS = 38.0  # standard deviations; masses beyond are below 1e-313
MOST = 2**20  # outcomes


def discrete_gaussian(scale: float, sensitivity: int) -> Finite:
    """N_Z(0, scale²) against N_Z(sensitivity, scale²).

    Outcomes beyond 38 standard deviations count as an infinite loss of probability 1e-300.
    """
    reach = ceil(_DEVIATIONS * scale) + sensitivity
    if not 2 * reach + 1 <= MOST:
        raise InvalidValueError(
            f"scale ({scale}) is too large for a list of outcomes; beyond about {MOST // 80} use "
            "TradeoffFunction.gaussian((sensitivity + 1) / scale)"
        )
    if not sensitivity / scale < 1e100:
        return response(0.0, 1.0)
    x = np.arange(reach, -reach - 1, -1, dtype=float)
    weights = np.exp(-(x * x) / (2 * scale * scale))
    masses = weights / np.sum(weights)
    keep = masses > 1e-305
    losses = (sensitivity - 2 * x) * (sensitivity / (2 * scale * scale))
    # proven in mechanisms/certified.py for scales of at least 1/2
    within = double_up(Fraction(sensitivity + 1) / Fraction(scale)) if scale >= 0.5 else inf
    pair = Finite(
        losses[keep],
        masses[keep],
        infinite=TINY,
        never=TINY,
        mass_error=2 * ELEMENTARY + UNIT * (4 * _DEVIATIONS**2 + sqrt(len(x)) + 64),
        loss_error=6 * UNIT * float(np.max(np.abs(losses))),
        symmetric=True,
        slack=TINY,
        gaussian=within,
    )
    known = scale >= LEAST_SCALE and sensitivity > 0
    return pair.with_form(Theta(scale, sensitivity)) if known else pair
