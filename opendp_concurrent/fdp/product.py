"""Products of factors: how their profile is computed, and what is remembered.

Gaussians merge exactly, and equal factors are counted. The profile of a single factor is a closed
form, and a product with few outcomes is summed over them. Any other profile is computed by Fourier
inversion: with sampled noise, between a finite pair below it and one above. Where losses are too
rare for that, a product is between two pairs with few losses: a sandwich. What is known of a factor
on a path is remembered, and handed on to larger products.

An answer depends on the product and on the question alone: not on the order of the factors, on
what was asked before, or on what is remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import expm1, fsum, inf, ldexp, log1p, log10
from typing import Any

import numpy as np

from ..errors import InvalidValueError
from ..numerics import double_up, sqrt_up
from . import inversion as paths
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, certify, probabilities
from .exact import Atoms, Gaussian, gaussian_profile
from .finite import Finite, from_vertices, repeated, worst
from .inversion import CharacteristicFunction, Power, power, start
from .noise import Factor, Invertible, Subsampled, rank
from .sandwich import STEPS, Sandwich, pair_of, sandwich, steps_for

MOST_ATOMS = 2**17  # outcomes up to which products of finite pairs are exact
_MIXED = 2**12  # the same for products with a Gaussian
_LARGEST = 1e300  # larger losses count as infinite
_LARGEST_VARIANCE = 1e100  # of the loss
_FEW_NODES = 2**12  # of a path on which factors are remembered
_MOST_PATHS = 4  # on which a product keeps its characteristic function
_MOST_ANSWERS = 256
_MOST_SANDWICHES = 16
_COARSE = 1e-3  # width of δ
_DOUBLINGS = 40  # steps of a search for a lower bound
_SHARES = 0.2, 0.02, 0.002  # of a width in ε: what it may be in δ on the first path, and the next
_LEAST_WIDTH = 1e-12  # narrower bounds are within the rounding of inversion
MOST_FACTORS = 2**53  # equal ones
_INVERTED, _SAMPLED = 1e-3, 1e-2  # widths of brackets that are narrow enough
_SIDES = 2e-3  # width of brackets on a product below or above one with sampled noise
_SPARE = 1e-6  # part of δ that cells of sampled noise may move to an infinite loss
_UNDERFLOWN = 1e-316  # δ that a Rényi order, which is in the doubles, is certain to reach
_GUESSES = (1e-10, 1e-30, 1e-100, 1e-280)  # of δ


class Product:
    """A product of independent pairs. Immutable; what is computed is remembered.

    :ivar squares: sum of the Gaussians' μ², exactly, in units of 2**-(2 * SMALLEST)
    :ivar factors: the other factors, with their counts
    """

    def __init__(self, squares: int, factors: Mapping[Factor, int]) -> None:
        self.squares = squares
        self.factors = dict(factors)
        self._memo = _Memo()

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
        """The product of both, which are independent."""
        for one in (self, other):
            if one.is_worst:
                return one
        factors = Counter(self.factors)
        factors.update(other.factors)
        both = Product(self.squares + other.squares, factors)
        both._memo = (self if len(self.factors) >= len(other.factors) else other)._memo
        return both

    def power(self, count: int) -> Product:
        """The product of ``count`` independent copies."""
        if self.is_worst and count:
            return self
        most = max(self.factors.values(), default=0) * count
        if not most <= MOST_FACTORS:
            raise InvalidValueError(
                f"a product of {most} equal factors is too large; "
                f"at most {MOST_FACTORS} can be counted in doubles"
            )
        return Product(
            self.squares * count, {factor: count * n for factor, n in self.factors.items() if count}
        )

    def swapped(self) -> Product:
        """The pair (Q, P)."""
        counts: Counter[Factor] = Counter()
        for factor, n in self.factors.items():
            counts[factor.swapped()] += n
        return Product(self.squares, counts)

    # --- what it is ------------------------------------------------------------------------

    @cached_property
    def is_worst(self) -> bool:
        """Whether it is a single factor without privacy, beside which no other factor matters."""
        return self.factors == _WORST and not self.squares

    @property
    def is_identity(self) -> bool:
        """Whether it has no factor, and so no privacy loss."""
        return not self.squares and not self.factors

    @cached_property
    def upper_only(self) -> bool:
        """Whether a factor is only an upper bound on what it stands for."""
        return any(factor.stands_for for factor in self.factors)

    @cached_property
    def units(self) -> frozenset[str]:
        """The directions of neighbours that factors are bounds of, where they bound one only."""
        return frozenset(factor.unit for factor in self.factors if factor.unit)

    @cached_property
    def single(self) -> Factor | None:
        """The only factor other than Gaussians, if there is one only."""
        return next(iter(self.factors)) if sum(self.factors.values()) == 1 else None

    @cached_property
    def mu(self) -> float:
        """μ of the Gaussians together, rounded up."""
        return sqrt_up(self.squares)

    @cached_property
    def counted(self) -> list[tuple[Factor, int]]:
        """Factors with their counts, the Gaussian among them, in an order of their own."""
        own = list(self.factors.items())
        if len(own) > 1:
            own.sort(key=lambda item: rank(item[0]))
        return [*own, (Gaussian(self.mu), 1)] if self.squares else own

    @cached_property
    def _unsampled(self) -> list[tuple[Invertible, int]]:
        """The same, where no factor is sampled noise, which cannot be inverted."""
        return [(one, n) for one, n in self.counted if not isinstance(one, Subsampled)]

    @cached_property
    def infinite(self) -> Bounds:
        """P-probability that a loss is infinite."""
        if self.single is not None:
            value = self.single.infinite
            # 4: the infinite mass may be a sum of masses, rounded up
            least = value * (1 - 4 * self.single.mass_error) - self.single.slack
            return Bounds(max(0.0, least), value)
        logarithm = sum(
            n * (log1p(-factor.infinite) if factor.infinite < 1 else -inf)
            for factor, n in self.counted
            if factor.infinite
        )
        value = -expm1(logarithm)
        error = value * (4 * ELEMENTARY + len(self.factors) * UNIT)
        slack = sum(n * factor.slack for factor, n in self.counted)
        # 1 - (1 - x)^n has at most the relative error of x
        below = error + value * sum(4 * factor.mass_error for factor, _ in self.counted)
        return probabilities(value - below - slack, value + error)

    @cached_property
    def largest_loss(self) -> float:
        """Largest finite loss, rounded up."""
        if self.squares or any(factor.largest_loss == inf for factor in self.factors):
            return inf
        exact = sum(n * Fraction(factor.largest_loss) for factor, n in self.factors.items())
        return inf if exact > _LARGEST else double_up(Fraction(exact))

    @cached_property
    def largest_loss_lower(self) -> float:
        """Largest finite loss, rounded down; 0 if only an upper bound is known."""
        if self.upper_only:
            return 0.0
        if self.squares or any(factor.largest_loss == inf for factor in self.factors):
            return inf
        exact = sum(n * _largest_loss_lower(factor) for factor, n in self.factors.items())
        return _LARGEST if exact > _LARGEST else max(0.0, -double_up(Fraction(-exact)))

    @cached_property
    def cumulants(self) -> Array:
        """K(τ) = ln E_P[e^(τL); L finite] on the grid of τ."""
        return self._on_taus[0]

    @cached_property
    def cumulant_errors(self) -> Array:
        """Bounds on their errors."""
        return self._on_taus[1]

    @cached_property
    def _on_taus(self) -> tuple[Array, Array]:
        return paths.cumulants(self._unsampled, self._memo.on_taus)

    @cached_property
    def _cumulants_above(self) -> Array:
        """Upper bounds on K(τ) on the grid of τ, that of sampled noise included."""
        above = self.cumulants + self.cumulant_errors
        for one, n in self.counted:
            if isinstance(one, Subsampled):
                above = above + n * one.log_mgf_above(paths.TAUS)
        return above

    @cached_property
    def variance(self) -> float:
        """Variance of the loss, approximately."""
        return paths.variance(self.counted)

    @cached_property
    def atoms(self) -> Atoms | None:
        """All outcomes beside the Gaussian, if they are finitely many and not too many."""
        most = _MIXED if self.squares else MOST_ATOMS
        finite = [(one, n) for one, n in self.counted if isinstance(one, Finite)]
        reach = sum(n * factor.largest_absolute for factor, n in finite)
        if len(finite) < len(self.factors) or not reach <= _LARGEST:
            return None
        total: Atoms | None = None
        for factor, n in sorted(finite, key=lambda item: -item[1]):
            power = repeated(factor, n, most // max(1, len(total.losses) if total else 1))
            if power is None:
                return None
            total = power if total is None else total.times(power)
        return Atoms(np.zeros(1), np.ones(1)) if total is None else total

    @property
    def all_atoms(self) -> Atoms | None:
        """All outcomes, if they are finitely many and not too many."""
        return None if self.squares else self.atoms

    @property
    def is_exact(self) -> bool:
        """Whether the profile is a closed form or a sum over outcomes."""
        if not self.factors or (not self.squares and self.single is not None):
            return True
        return self.atoms is not None

    # --- the profile -----------------------------------------------------------------------

    def profile(self, epsilon: Array, tolerance: float = 1e-9) -> Bounds:
        """δ at each real ε, to about the relative width ``tolerance``."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # see probabilities()
            return self._profile(np.asarray(epsilon, dtype=float), max(tolerance, _LEAST_WIDTH))

    def _profile(self, epsilon: Array, tolerance: float) -> Bounds:
        if not self.factors:
            return gaussian_profile(self.mu, epsilon)
        if not self.squares and self.single is not None:
            return self.single.profile(epsilon)
        if self.atoms is not None:
            return self.atoms.profile(epsilon, self.mu)
        values = [self._at(one, tolerance) for one in epsilon.ravel().tolist()]
        lower, upper = np.array(values).T if values else (np.zeros(0), np.zeros(0))
        return Bounds(lower.reshape(epsilon.shape), upper.reshape(epsilon.shape))

    @cached_property
    def _at(self) -> Callable[[float, float], Bounds]:
        """Bounds on δ at some ε, remembered."""
        return lru_cache(_MOST_ANSWERS)(self._found_at)

    def _found_at(self, epsilon: float, tolerance: float) -> Bounds:
        """Bounds on δ by a sandwich, or by inversion."""
        if epsilon >= self.largest_loss or self.infinite.lower == 1.0:
            return self.infinite
        most = self._most(epsilon)
        if self._is_sampled:
            renyi = paths.renyi_delta(self._cumulants_above, epsilon)
            most = min(most, float(self.infinite.upper) + renyi)
        found = self._narrowed(
            Bounds(self._least(epsilon), most),
            tolerance,
            partial(self._inverted, epsilon, tolerance),
            partial(self._between, epsilon),
        )
        return Bounds(self._least(epsilon), found.upper) if self.upper_only else found

    def _narrowed(
        self,
        best: Bounds,
        tolerance: float,
        inverted: Callable[[Bounds], Bounds],
        between: Callable[[float], Bounds | None],
    ) -> Bounds:
        """Narrow a bracket by inversion; or by sandwiches with smaller and smaller steps.

        A sandwich is for rare losses, and for pairs with too many outcomes to be inverted.
        """
        enough = max(tolerance, _SAMPLED if self._is_sampled else _INVERTED)
        uses = [n * one.rate for one, n in self.counted if isinstance(one, Subsampled)]
        rare = bool(uses) and fsum(uses) < 1.0
        best = best if rare else _common(best, inverted(best))
        for step in steps_for(tolerance, len(self.factors)):
            if best.width <= enough * best.upper:
                return best
            found = between(step)
            if found is None:
                break
            best = _common(best, found)
        wide = rare and not best.width <= enough * best.upper
        return _common(best, inverted(best)) if wide else best

    def _inverted(self, epsilon: float, tolerance: float, best: Bounds) -> Bounds:
        """Bounds on δ by inversion, where they are narrower than what is known."""
        if self._is_sampled:
            for guess in _GUESSES:
                sides = self._sides(guess)
                if not sides:
                    break
                width, at = max(tolerance, _SIDES), np.array(epsilon)
                low, high = (one.profile(at, width) for one in sides)
                best = _common(best, Bounds(float(low.lower), float(high.upper)))
                if best.upper >= guess:
                    break
            return best
        if not self._is_invertible:
            return best
        least = paths.renyi_delta(self.cumulants + self.cumulant_errors, epsilon)
        best = Bounds(best.lower, min(best.upper, float(self.infinite.upper) + least))
        finer, known = tolerance, 1.0
        for wanted in (tolerance, None, _COARSE):  # the last, where a path has too few nodes
            bounds = self._bounds(self._characteristic(epsilon, wanted or finer, known), epsilon)
            best = bounds if bounds.width < best.width else best
            if best.width <= tolerance * best.upper:
                break
            finer = max(finer * _missed(bounds, tolerance), _LEAST_WIDTH)
            known = max(best.upper - float(self.infinite.lower), TINY)
        return best

    @cached_property
    def _sides(self) -> Callable[[float], list[Product]]:
        """Products below and above, with finite pairs in place of sampled noise; or none.

        Their cells are made for a δ, which has no influence on whether the bounds hold.
        """
        number = sum(n for one, n in self.counted if isinstance(one, Subsampled))

        def made(delta: float) -> list[Product]:
            tail = _SPARE * delta / 16.0 ** (number.bit_length() // 4 + 1)  # alike for many numbers
            found: list[Product] = []
            for is_above in (False, True):
                pairs: Counter[Factor] = Counter()
                for one, n in self.factors.items():
                    pair = pair_of(one, tail, is_above) if isinstance(one, Subsampled) else one
                    if pair is None:
                        return []
                    pairs[pair] += n
                found.append(_Side(self.squares, pairs))
                found[-1]._memo = self._memo
            return found

        return lru_cache(len(_GUESSES))(made)

    # --- between two pairs with few losses ---------------------------------------------------

    @cached_property
    def _is_sampled(self) -> bool:
        """Whether a factor is sampled noise."""
        return len(self._unsampled) < len(self.counted)

    def _between(self, epsilon: float, step: float) -> Bounds | None:
        """Bounds on δ by a sandwich that is made for about this δ, which a rough one tells."""
        found = None
        for guess in _GUESSES:
            found = self._at_guess(epsilon, guess, STEPS[0])
            if found is None or found.upper >= guess:
                break
        return found if found is None else self._at_guess(epsilon, guess, step)

    def _at_guess(self, epsilon: float, guess: float, step: float) -> Bounds | None:
        pairs = self._sandwich(guess, step)
        return None if pairs is None else pairs.at(epsilon, self.mu)

    @cached_property
    def _sandwich(self) -> Callable[[float, float], Sandwich | None]:
        """Pairs below and above all but the Gaussian, from δ and a step; few are remembered."""
        return lru_cache(_MOST_SANDWICHES)(partial(sandwich, Product(0, self.factors).counted))

    @cached_property
    def pair_above(self) -> Finite | None:
        """A finite pair that loses at least as much, where losses are bounded and noise sampled."""
        bounded = self._is_sampled and self.largest_loss < inf
        pairs = self._sandwich(0.0, STEPS[-2]) if bounded else None
        if pairs is None:
            return None
        above = pairs.above
        kept = above.masses >= TINY
        rest = float(np.sum(above.masses[~kept])) * (1 + 2 * UNIT)
        masses = above.masses[kept]
        masses[-1] += rest
        return Finite(above.losses[kept], masses, above.infinite, 1.0, stands_for="sampled noise")

    def _bounds(self, characteristic: CharacteristicFunction, epsilon: float) -> Bounds:
        """δ by inversion of a characteristic function, with the infinite losses."""
        if epsilon >= self.largest_loss:
            return self.infinite
        found = characteristic.invert(self.cumulants, self.cumulant_errors, epsilon)
        least = (self.infinite.lower + found.lower) * (1 - 2 * UNIT)
        most = (self.infinite.upper + found.upper) * (1 + 2 * UNIT)
        return probabilities(max(self._least(epsilon), least), most)

    @staticmethod
    def _least(epsilon: float) -> float:
        """What δ is never below: 1 - e^ε, rounded down."""
        return max(0.0, -expm1(min(epsilon, 0.0)) * (1 - ELEMENTARY))

    def _most(self, epsilon: float) -> float:
        """What δ is never above, rounded up.

        δ(∞) + 1 - e^(ε - loss), for the largest loss; and what the factors' δ(0) say, if ε >= 0.
        """
        top = -expm1(epsilon - self.largest_loss) * (1 + ELEMENTARY)
        most = (float(self.infinite.upper) + top) * (1 + 2 * UNIT) + TINY
        return min(1.0, most, self._distance if epsilon >= 0.0 else 1.0)

    @cached_property
    def _distance(self) -> float:
        """What bounds δ(0), a distance of laws: that no factor differs, each by its δ(0)."""
        each = [(self._memo.distance(one), n) for one, n in self.counted]
        if any(distance >= 1.0 for distance, _ in each):
            return 1.0
        return -expm1(fsum(n * log1p(-one) for one, n in each)) * (1 + 4 * ELEMENTARY)

    @cached_property
    def _is_invertible(self) -> bool:
        """Whether the numbers that inversion starts from are finite."""
        whole = np.concatenate([self.cumulants, self.cumulant_errors])
        return bool(np.all(np.isfinite(whole))) and self.variance < _LARGEST_VARIANCE

    def _characteristic(
        self, epsilon: float, tolerance: float, delta: float
    ) -> CharacteristicFunction:
        """The characteristic function on a path for δ(``epsilon``), which is about ``delta``."""
        ask, known = (epsilon, tolerance, delta), self._memo.decay
        return self._on_path(paths.choose(self._unsampled, self.cumulants, *ask, known))

    @cached_property
    def _on_path(self) -> Callable[[paths.Contour], CharacteristicFunction]:
        """The characteristic function on a path; few are remembered."""
        factors, known = self._unsampled, self._memo.power
        return lru_cache(_MOST_PATHS)(lambda path: start(path).times(factors, known))

    # --- ε at a δ ---------------------------------------------------------------------------

    def epsilon(self, delta: float, tolerance: float) -> Bounds:
        """Least ε >= 0 with δ(ε) <= delta, to about the relative width ``tolerance``."""
        if delta >= 1.0 or self.is_identity:
            return Bounds(0.0, 0.0)
        if self.infinite.lower > delta:
            return Bounds(inf, inf)
        if self.infinite.upper > delta:  # no ε is certain to be enough
            return Bounds(self._epsilon_below(delta), inf)
        top = max(0.0, self.largest_loss)  # δ(ε) <= delta from there on
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # see probabilities()
            found = self._epsilon(delta, tolerance)
        return Bounds(min(found.lower, top), min(found.upper, top))

    @cached_property
    def _epsilon(self) -> Callable[[float, float], Bounds]:
        """Bounds on ε at some δ, remembered."""
        return lru_cache(_MOST_ANSWERS)(self._found_epsilon)

    def _found_epsilon(self, delta: float, tolerance: float) -> Bounds:
        """Bounds on ε, where the infinite losses are certain to be at most ``delta``."""
        top = max(0.0, self.largest_loss)
        if self._distance <= delta:
            return Bounds(0.0, 0.0)
        finite = delta - float(self.infinite.upper)
        if finite > _UNDERFLOWN and (self._is_sampled or self._is_invertible):
            top = min(top, max(0.0, paths.renyi_epsilon(self._cumulants_above, finite)))
        if not top < inf:  # δ comes near its limit, and does not reach it
            return Bounds(self._epsilon_below(delta), inf)
        if self.is_exact:
            return certify(partial(self._profile_at, tolerance=0.0), delta, top, self._scale)
        guess = next((one for one in _GUESSES if delta >= one), _GUESSES[-1])

        def between(step: float) -> Bounds | None:
            pairs = self._sandwich(guess, step)
            if pairs is None:
                return None
            return certify(partial(pairs.at, mu=self.mu), delta, top, self._scale)

        def inverted(best: Bounds) -> Bounds:
            if not self._is_sampled:
                return self._epsilon_inverted(delta, best, tolerance)
            sides = self._sides(guess)
            if not sides:
                return best
            low, high = (
                one._epsilon_inverted(delta, Bounds(0.0, top), max(tolerance, _SIDES))
                for one in sides
            )
            return _common(best, Bounds(low.lower, high.upper))

        found = self._narrowed(Bounds(0.0, top), tolerance, inverted, between)
        return Bounds(0.0, found.upper) if self.upper_only else found

    def _epsilon_inverted(self, delta: float, best: Bounds, tolerance: float) -> Bounds:
        """The same by inversion, on finer and finer paths, where it is narrower than ``best``."""
        finite = max(delta - float(self.infinite.lower + self.infinite.upper) / 2, TINY)
        top = best.upper
        if not self._is_invertible or not self.infinite.upper < delta:
            return best
        near = paths.near_epsilon(self.cumulants, finite)
        for share in _SHARES:
            if best.width <= tolerance * best.upper:
                break
            near = near if 0.0 < near < top else top
            ratio = float(paths.TAUS[paths.saddle(self.cumulants, near)])  # about -d ln δ / dε
            path = self._characteristic(near, _relative(share * tolerance * near * ratio), finite)
            found = certify(partial(self._bounds, path), delta, top, self._scale, tolerance)
            best, near = _common(best, found), (found.lower + found.upper) / 2
        return best

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
        scale = float(np.sqrt(self.variance))
        return scale if 0.0 < scale < _LARGEST else 1.0

    def _profile_at(self, epsilon: float, tolerance: float) -> Bounds:
        bounds = self.profile(np.array(epsilon), tolerance)
        return Bounds(float(bounds.lower), float(bounds.upper))


def _missed(found: Bounds, width: float) -> float:
    """By how much the next path is to be finer for a relative width."""
    wide = found.width / found.upper if 0.0 < found.upper < inf else 1.0
    return float(min(max(0.25 * width / wide, 0.01), 1.0)) if wide > 0.0 else 1.0


class _Side(Product):
    """A product that is below or above another one: it is inverted, and has no sandwich."""

    def _between(self, epsilon: float, step: float) -> None:
        del epsilon, step


def _common(one: Bounds, other: Bounds) -> Bounds:
    """What two brackets have in common."""
    return Bounds(max(one.lower, other.lower), min(one.upper, other.upper))


def _relative(width: float) -> float:
    """A power of ten near a width of δ, so that few paths serve many questions."""
    return 10.0 ** min(-3, max(round(log10(max(1e-12, min(1.0, width)))), -11))


def _largest_loss_lower(factor: Factor) -> Fraction:
    """Largest finite loss of a factor, rounded down."""
    if not isinstance(factor, Finite):
        return Fraction(factor.largest_loss_lower)
    if not factor.losses.size:
        return Fraction(factor.largest_loss)
    return Fraction(factor.losses[-1]) - Fraction(factor.loss_error)


def _distance(factor: Factor) -> float:
    """δ(0) of a factor, rounded up: the distance of its laws."""
    return float(factor.profile(np.zeros(1)).upper[0])


class _Memo:
    """What is known of factors on paths: functions of their arguments alone, so it is shared."""

    def __init__(self) -> None:
        self.on_taus = lru_cache(2**11)(paths.on_taus)
        self.distance = lru_cache(2**11)(_distance)
        self.decay = lru_cache(2**9)(paths.decay)
        self._few = lru_cache(2**9)(power)

    def power(self, factor: Invertible, count: int, tau: float, step: float, nodes: int) -> Power:
        """As in ``inversion``; a long path is not remembered."""
        how = self._few if nodes <= _FEW_NODES else power
        return how(factor, count, tau, step, nodes)


_WORST: dict[Factor, int] = {worst(): 1}


# A product with few outcomes that loses at least as much as another, and is quick to evaluate.

_WIDTH = 1e-5  # of the bounds at the points


@lru_cache(maxsize=1024)
def with_few_outcomes(product: Product, most: int) -> Product:
    """The product itself if it has at most ``most`` outcomes; else the chords of its profile.

    :param product: with bounded losses and no Gaussian
    """
    if product.atoms is not None and len(product.atoms.losses) <= most:
        return product
    top = product.largest_loss
    even, near = np.linspace(0.0, top, most // 2), top * (1 - np.geomspace(1e-6, 1e-2, 8))
    return Product(0, {chords(product, np.unique(np.concatenate([even, near])), _WIDTH): 1})


def chords(product: Product, grid: Array, width: float, stands_for: str = "") -> Finite:
    """The pair whose profile goes through upper bounds on δ at some ε >= 0, in both directions."""
    forward, swapped = points(product, grid, width), product.swapped()
    backward = forward if swapped == product else points(swapped, grid, width)
    return from_vertices(forward, backward, stands_for)


def points(product: Product, grid: Array, width: float) -> list[tuple[float, float]]:
    """Pairs of ε and an upper bound on δ, to about the relative ``width``."""
    upper = np.asarray(product.profile(grid, width).upper)
    return list(zip(grid.tolist(), upper.tolist(), strict=True))


def exact_above(product: Product, most: int) -> Product | None:
    """A product with an exact profile that loses at least as much; None if none is known."""
    if product.is_exact:
        return product
    rest = Product(0, product.factors)
    if not rest.largest_loss < 600.0:
        return None
    if rest.pair_above is not None:
        return Product(product.squares, {rest.pair_above: 1})
    return Product(product.squares, with_few_outcomes(rest, most).factors)
