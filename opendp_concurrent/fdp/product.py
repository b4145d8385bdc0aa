"""Products of factors: which way to their profile is exact, and what is remembered.

Gaussians merge exactly, equal factors are counted. The profile is a closed form for a single
factor; a sum over outcomes where there are few; and else Fourier inversion. A product that grows by
one factor at a time keeps its transform: one more factor is one multiplication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, partial
from math import expm1, inf, ldexp, log, log1p, nextafter
from typing import Any

import numpy as np

from ..errors import InvalidValueError
from ..exact.rounding import SMALLEST, sqrt_up
from . import contour as paths
from .atoms import Atoms
from .bounds import ELEMENTARY, UNIT, Array, Bounds, probabilities
from .factor import Factor
from .finite import Finite, worst
from .gaussian import Gaussian, gaussian_profile
from .inversion import Wave, start
from .repeated import repeated
from .search import bisect, certify

MOST_ATOMS = 2**17  # outcomes up to which products of finite pairs are exact
_MIXED = 2**12  # the same beside a Gaussian
_LARGEST = 1e300  # losses beyond count as infinite
_LARGEST_SPREAD = 1e100  # variance of the loss
_PENDING = 64  # factors that are kept for the transform of a part
_DOUBLINGS = 40  # steps of a search for a lower bound
_LEAST_WIDTH = 1e-12  # that inversion is asked for: narrower ones are within rounding
MOST_FACTORS = 2**53  # equal ones


class Product:
    """A product of independent pairs. Immutable; what is computed is remembered.

    :ivar squares: sum of the Gaussians' μ², exactly, in units of 2**-(2 * SMALLEST)
    :ivar factors: the others, counted
    """

    def __init__(self, squares: int, factors: Mapping[Factor, int]) -> None:
        self.squares = squares
        self.factors = dict(factors)
        self._pending: tuple[Wave, list[tuple[Factor, int]]] | None = None
        self._wave: Wave | None = None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Product)
            and self.squares == other.squares
            and self.factors == other.factors
        )

    def __reduce__(self) -> Any:
        return Product, (self.squares, self.factors)

    @cached_property
    def _hash(self) -> int:
        return hash((self.squares, frozenset(self.factors.items())))

    def __hash__(self) -> int:
        return self._hash

    def times(self, other: Product) -> Product:
        """Both, independent."""
        for one in (self, other):
            if one.is_worst:
                return one
        factors = Counter(self.factors)
        factors.update(other.factors)
        both = Product(self.squares + other.squares, factors)
        big, small = (self, other) if len(self.factors) >= len(other.factors) else (other, self)
        wave, pending = big._wave, big._pending  # read once: other threads may fill them
        if wave is not None:
            both._pending = wave, small.counted
        elif pending is not None and len(pending[1]) < _PENDING:
            both._pending = pending[0], [*pending[1], *small.counted]
        if "known" in big.__dict__:
            both.__dict__["known"] = big.known + small.known
            both.__dict__["known_error"] = big.known_error + small.known_error
            both.__dict__["spread"] = big.spread + small.spread
        return both

    @cached_property
    def is_worst(self) -> bool:
        """Whether it is a single factor that tells all, beside which no other counts."""
        return self.factors == _WORST and not self.squares

    @cached_property
    def upper_only(self) -> bool:
        """Whether a factor only bounds what it stands for, from above."""
        return any(isinstance(one, Finite) and bool(one.stands_for) for one in self.factors)

    def power(self, count: int) -> Product:
        """``count`` times, independent."""
        if self.is_worst and count:
            return self
        most = max(self.factors.values(), default=0) * count
        if not most <= MOST_FACTORS:
            raise InvalidValueError(f"a product of {most} equal factors is beyond doubles")
        return Product(
            self.squares * count, {factor: count * n for factor, n in self.factors.items() if count}
        )

    @cached_property
    def mu(self) -> float:
        """μ of the Gaussians together, rounded up."""
        return sqrt_up(self.squares, SMALLEST)

    @cached_property
    def counted(self) -> list[tuple[Factor, int]]:
        """Factors with their numbers, the Gaussian among them."""
        own = [(factor, n) for factor, n in self.factors.items()]
        return [*own, (Gaussian(self.mu), 1)] if self.squares else own

    @cached_property
    def infinite(self) -> Bounds:
        """P-probability that a loss is infinite; no more than that of a single factor."""
        if sum(self.factors.values()) == 1:
            (single,) = self.factors
            least = single.infinite * (1 - _mass_error(single)) - _slack(single)
            return Bounds(max(0.0, least), single.infinite)
        logarithm = sum(
            n * (log1p(-factor.infinite) if factor.infinite < 1 else -inf)
            for factor, n in self.factors.items()
            if factor.infinite
        )
        value = -expm1(logarithm)
        error = value * (4 * ELEMENTARY + len(self.factors) * UNIT)
        slack = sum(n * _slack(factor) for factor, n in self.factors.items())
        # rounded up where it is a sum; 1 - (1 - x)^n has at most the relative error of x
        below = error + value * sum(_mass_error(factor) for factor in self.factors)
        return probabilities(value - below - slack, value + error)

    @cached_property
    def most(self) -> float:
        """Largest finite loss, rounded up."""
        if self.squares:
            return inf
        if any(factor.most == inf for factor in self.factors):
            return inf
        exact = sum(n * Fraction(factor.most) for factor, n in self.factors.items())
        if exact > _LARGEST:
            return inf
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)

    @cached_property
    def most_lower(self) -> float:
        """Largest finite loss, rounded down; 0 if it is only bounded from above."""
        if self.upper_only:
            return 0.0
        if self.squares or any(factor.most == inf for factor in self.factors):
            return inf
        exact = sum(
            n * (Fraction(factor.losses[-1]) - Fraction(factor.loss_error))
            if isinstance(factor, Finite) and factor.losses.size
            else n * Fraction(factor.most)
            for factor, n in self.factors.items()
        )
        if exact > _LARGEST:
            return _LARGEST
        nearest = float(exact)
        return max(0.0, nearest if Fraction(nearest) <= exact else nextafter(nearest, -inf))

    @cached_property
    def known(self) -> Array:
        """The logarithm of E_P[e^(τL)] on the grid of τ."""
        return paths.exponents(self.counted)

    @cached_property
    def known_error(self) -> Array:
        """Bound on its error; twice the sum, for the roundings of sums."""
        return 2 * paths.exponent_errors(self.counted)

    @cached_property
    def spread(self) -> float:
        """Variance of the loss, about."""
        return paths.spread(self.counted)

    @cached_property
    def atoms(self) -> Atoms | None:
        """All outcomes beside the Gaussian, if they are finitely many and not too many."""
        most = _MIXED if self.squares else MOST_ATOMS
        reach = sum(n * f.largest for f, n in self.factors.items() if isinstance(f, Finite))
        if not reach <= _LARGEST:  # sums that leave the doubles
            return None
        total: Atoms | None = None
        for factor, n in sorted(self.factors.items(), key=lambda item: -item[1]):
            if not isinstance(factor, Finite):
                return None
            power = repeated(factor, n, most // max(1, len(total.losses) if total else 1))
            if power is None:
                return None
            total = power if total is None else total.times(power)
        return Atoms(np.zeros(1), np.ones(1), 0.0, 0.0, 0.0, 0.0) if total is None else total

    @property
    def is_exact(self) -> bool:
        """Whether the profile is a closed form or a sum over outcomes."""
        if not self.factors or (not self.squares and sum(self.factors.values()) == 1):
            return True
        return self.atoms is not None

    def swapped(self) -> Product:
        """The pair (Q, P)."""
        counts: Counter[Factor] = Counter()
        for factor, n in self.factors.items():
            counts[factor.swapped()] += n
        return Product(self.squares, counts)

    # --- the profile -----------------------------------------------------------------------

    def profile(self, epsilon: Array, tolerance: float = 1e-9) -> Bounds:
        """δ at each real ε, to about the relative width ``tolerance``."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # see probabilities()
            return self._profile(np.asarray(epsilon, dtype=float), max(tolerance, _LEAST_WIDTH))

    def _profile(self, epsilon: Array, tolerance: float) -> Bounds:
        if not self.factors:
            return gaussian_profile(self.mu, epsilon)
        if not self.squares and sum(self.factors.values()) == 1:
            (factor,) = self.factors
            return factor.profile(epsilon)
        atoms = self.atoms
        if atoms is not None:
            if self.squares:
                both = atoms.profile_with(self.mu, epsilon.ravel())
                return Bounds(both.lower.reshape(epsilon.shape), both.upper.reshape(epsilon.shape))
            return atoms.profile(epsilon)
        values = [self._at(float(one), tolerance) for one in epsilon.ravel()]
        lower, upper = np.array(values).T if values else (np.zeros(0), np.zeros(0))
        return Bounds(lower.reshape(epsilon.shape), upper.reshape(epsilon.shape))

    def _at(self, epsilon: float, tolerance: float) -> Bounds:
        """Bounds on δ by inversion."""
        if epsilon >= self.most or self.infinite.lower == 1.0:
            return self.infinite
        best = Bounds(self._flat(epsilon), 1.0)
        if not self._is_invertible:
            return best
        for fresh in (False, True):
            wave = self._wave_at(epsilon, tolerance, fresh)
            bounds = self._bounds(wave, epsilon)
            if bounds.width < best.width:
                best, self._wave = bounds, wave
            if best.width <= tolerance * best.upper:
                break
        return best

    def _bounds(self, wave: Wave, epsilon: float) -> Bounds:
        """What a wave says, beside the infinite losses."""
        if epsilon >= self.most:
            return self.infinite
        found, flat = wave.invert(self.known, self.known_error, epsilon), self._flat(epsilon)
        least = 0.0 if self.upper_only else (self.infinite.lower + found.lower) * (1 - 2 * UNIT)
        return probabilities(max(flat, least), (self.infinite.upper + found.upper) * (1 + 2 * UNIT))

    @staticmethod
    def _flat(epsilon: float) -> float:
        """1 - e^ε, rounded down: δ is never below."""
        return max(0.0, -expm1(min(epsilon, 0.0)) * (1 - ELEMENTARY))

    @cached_property
    def _is_invertible(self) -> bool:
        """Whether the numbers that inversion starts from are doubles."""
        whole = np.concatenate([self.known, self.known_error])
        return bool(np.all(np.isfinite(whole))) and self.spread < _LARGEST_SPREAD

    def _wave_at(self, epsilon: float, tolerance: float, fresh: bool) -> Wave:
        """A new wave; or that at hand, or one that grows out of that of a part."""
        wave, pending = self._wave, self._pending  # read once: other threads may fill them
        if not fresh and wave is not None:
            return wave
        if not fresh and pending is not None:
            grown = pending[0].times(pending[1])
            self._wave, self._pending = grown, None
            return grown
        path = paths.choose(self.counted, self.known, epsilon, tolerance)
        return start(path).times(self.counted)

    # --- ε at a δ ---------------------------------------------------------------------------

    def epsilon(self, delta: float, tolerance: float) -> Bounds:
        """Least ε >= 0 with δ(ε) <= delta, to about the relative width ``tolerance``."""
        if delta >= 1.0 or not (self.factors or self.squares):
            return Bounds(0.0, 0.0)
        if self.infinite.lower > delta:
            return Bounds(inf, inf)
        top = max(0.0, self.most)
        if self.infinite.upper > delta:  # no ε is certain to be enough
            return Bounds(self._epsilon_below(delta), inf)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # see probabilities()
            found = self._epsilon(delta, tolerance)
        if top < found.upper:  # nothing is left beyond
            return Bounds(min(found.lower, top), top)
        return found

    def _epsilon(self, delta: float, tolerance: float) -> Bounds:
        """The same, where the infinite losses are certain to be at most ``delta``."""
        finite, top = delta - float(self.infinite.upper), max(0.0, self.most)
        if not self.is_exact and not self._is_invertible:
            return Bounds(0.0, top)
        if finite > 0.0:
            top = max(0.0, min(self._renyi_epsilon(finite), top))
        if not top < inf:  # as δ does not reach its limit
            return Bounds(self._epsilon_below(delta), inf)
        if not self.is_exact:
            if not finite > 0.0:
                return Bounds(0.0, top)
            return self._invert_for(delta, top, tolerance)
        near, atoms = top, None if self.squares else self.atoms
        if finite > 0.0:
            if atoms is not None:
                near = atoms.epsilon_near(delta)
            else:
                near = bisect(lambda epsilon: self._profile_at(epsilon, 0.0), delta, top)
        return certify(lambda epsilon: self._profile_at(epsilon, 0.0), delta, near, self._scale)

    def _renyi_epsilon(self, delta: float) -> float:
        """ε with a finite part of δ of at most ``delta``; infinite if none is known."""
        near = paths.renyi_epsilon(self.known + self.known_error, delta)
        return near if near < inf else inf

    def _epsilon_below(self, delta: float) -> float:
        """An ε with δ(ε) > ``delta``, or 0: the largest that some doublings reach."""
        below = 0.0
        for step in range(_DOUBLINGS):
            epsilon = ldexp(self._scale, step)
            if not self._profile_at(epsilon, 1e-3).lower > delta:
                break
            below = epsilon
        return below

    @property
    def _scale(self) -> float:
        scale = float(np.sqrt(self.spread))
        return scale if 0.0 < scale < _LARGEST else 1.0

    def _profile_at(self, epsilon: float, tolerance: float) -> Bounds:
        bounds = self.profile(np.array(epsilon), tolerance)
        return Bounds(float(bounds.lower), float(bounds.upper))

    def _invert_for(self, delta: float, top: float, tolerance: float) -> Bounds:
        """Newton's method on ln δ, to a width in δ that gives the one in ε."""
        near, best, relative = max(0.0, top), Bounds(0.0, inf), 1e-3
        for fresh in (False, True, True, True):
            wave = self._wave_at(near, relative, fresh)
            near, ratio = self._newton(wave, delta, near, max(0.0, top), tolerance)
            relative = min(1e-3, max(0.2 * tolerance * near * ratio, 1e-11))
            bounds = self._bounds(wave, near)
            if not bounds.width <= 10 * relative * bounds.upper and fresh is False:
                continue
            move = bounds.width / (ratio * delta) if ratio * delta > 0.0 else 0.0
            profile = partial(self._bounds, wave)
            found = certify(profile, delta, near, self._scale, 0.6 * move, bounds)
            if found.width < best.width:
                best, self._wave = found, wave
            if best.width <= tolerance * best.upper:
                break
        return best

    def _newton(
        self, wave: Wave, delta: float, near: float, high: float, tolerance: float
    ) -> tuple[float, float]:
        """About the root, and -d ln δ / dε there."""
        low, ratio = 0.0, 0.0
        infinite = float(self.infinite.lower + self.infinite.upper) / 2
        for _ in range(60):
            value, slope = wave.value(near)
            middle = value + infinite
            if middle <= delta:
                high = min(high, near)
            else:
                low = max(low, near)
            ratio = slope / middle if middle > 0.0 else 0.0
            onward = near + log(middle / delta) / ratio if ratio > 0.0 else inf
            if not low <= onward <= high:
                onward = (low + high) / 2
            if abs(onward - near) <= max(0.02 * tolerance, 8 * UNIT) * near:
                return onward, ratio
            near = onward
        return near, ratio


_WORST: dict[Factor, int] = {worst(): 1}


def _mass_error(factor: Factor) -> float:
    """How much too large the infinite mass may be, relative: it may be a sum of masses."""
    return 4 * factor.mass_error if isinstance(factor, Finite) else 0.0


def _slack(factor: Factor) -> float:
    return factor.slack if isinstance(factor, Finite) else 0.0
