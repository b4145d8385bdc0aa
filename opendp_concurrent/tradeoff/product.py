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
from math import expm1, inf, log, log1p, nextafter
from typing import Any

import numpy as np

from ..rounding import SMALLEST, sqrt_up
from . import contour as paths
from .atoms import Atoms
from .bounds import ELEMENTARY, UNIT, Array, Bounds, probabilities
from .factor import Factor
from .finite import Finite
from .gaussian import Gaussian, gaussian_profile
from .inversion import Wave, start
from .repeated import repeated
from .search import bisect, certify

MOST_ATOMS = 2**17  # outcomes up to which products of finite pairs are exact
_MIXED = 2**12  # the same beside a Gaussian
_LARGEST = 1e300  # losses beyond count as infinite
_PENDING = 64  # factors that are kept for the transform of a part


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

    def power(self, count: int) -> Product:
        """``count`` times, independent."""
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
            error = max(1e-12, 4 * getattr(single, "mass_error", 0.0))
            least = single.infinite * (1 - error) - getattr(single, "slack", 0.0)
            return Bounds(max(0.0, least), single.infinite)
        logarithm = sum(
            n * (log1p(-factor.infinite) if factor.infinite < 1 else -inf)
            for factor, n in self.factors.items()
            if factor.infinite
        )
        value = -expm1(logarithm)
        error = value * (4 * ELEMENTARY + len(self.factors) * UNIT)
        slack = sum(n * getattr(factor, "slack", 0.0) for factor, n in self.factors.items())
        # rounded up where it is a sum; 1 - (1 - x)^n has at most the relative error of x
        error += value * sum(4 * f.mass_error for f in self.factors if isinstance(f, Finite))
        return probabilities(value - error - slack, value + error)

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
        """Largest finite loss, rounded down."""
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
        total = Atoms(np.zeros(1), np.ones(1), 0.0, 0.0, 0.0, 0.0)
        for factor, n in sorted(self.factors.items(), key=lambda item: -item[1]):
            if not isinstance(factor, Finite):
                return None
            power = repeated(factor, n, most // max(1, len(total.losses)))
            if power is None:
                return None
            total = power if len(total.losses) == 1 and not total.losses[0] else total.times(power)
        return total

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
        epsilon = np.asarray(epsilon, dtype=float)
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
        if epsilon >= self.most or self.infinite.upper == 1.0:
            return self.infinite
        best = Bounds(0.0, 1.0)
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
        found = wave.invert(self.known, self.known_error, epsilon)
        flat = -expm1(min(epsilon, 0.0)) * (1 - ELEMENTARY)  # δ is never below 1 - e^ε
        return Bounds(
            max(self.infinite.lower + found.lower, flat) * (1 - UNIT),
            min(1.0, (self.infinite.upper + found.upper) * (1 + UNIT)),
        )

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
        found = self._epsilon(delta, tolerance)
        top = max(0.0, self.most)
        if self.infinite.upper <= delta and top < found.upper:  # nothing is left beyond
            return Bounds(min(found.lower, top), top)
        return found

    def _epsilon(self, delta: float, tolerance: float) -> Bounds:
        finite = delta - float(self.infinite.upper)
        if not finite > 0.0:
            near = max(0.0, self.most)
            if not self.is_exact:
                return Bounds(0.0, near)
        elif self.is_exact:
            atoms = self.atoms if self.factors else None
            if atoms is not None and not self.squares:
                near = atoms.epsilon_near(delta)
            else:
                top = max(0.0, min(paths.renyi_epsilon(self.known, finite), self.most))
                near = bisect(lambda epsilon: self._profile_at(epsilon, 0.0), delta, top)
        else:
            top = min(paths.renyi_epsilon(self.known, finite), self.most)
            return self._invert_for(delta, top, tolerance)
        return certify(lambda epsilon: self._profile_at(epsilon, 0.0), delta, near, self._scale)

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.spread)) or 1.0

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
            move = bounds.width / (ratio * delta) if ratio > 0.0 else 0.0
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
            if slope > 0.0 and middle > 0.0:
                ratio = slope / middle
                onward = near + log(middle / delta) / ratio
            else:
                onward = (low + high) / 2
            if not low <= onward <= high:
                onward = (low + high) / 2
            if abs(onward - near) <= max(0.02 * tolerance, 8 * UNIT) * near:
                return onward, ratio
            near = onward
        return near, ratio
