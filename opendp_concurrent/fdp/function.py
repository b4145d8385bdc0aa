"""Trade-off functions as users see them: immutable values with a certified order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import inf, isinf
from typing import Any

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from ..numerics import double_up, sqrt_down, to_units
from . import order, shapes
from .bounds import Array, Bounds
from .finite import Finite, discrete_gaussian, from_vertices, response
from .noise import Factor, Laplace, Subsampled, laplace
from .product import Product

_MOST_STEPS = checks.at_most(2**53, "steps are exact in doubles")
_MOST_COPIES = checks.at_most(2**53, "counts are exact in doubles", checks.whole)
_LARGEST = 1e150  # μ whose square is a double
_MOST_CATEGORIES = 2**53
_MOST_SIGMA, _LEAST_EPSILON = 1e6, 1e-6  # of subsampled noise
_FAR = 1e6  # largest |ε| that is evaluated; beyond, δ is as there, or 1


class TradeoffFunction:
    """A trade-off function f = T(P, Q): the least type II error at each type I error [DRS22].

    As a privacy loss, f is ordered the other way: ``f <= g`` says that f is above g everywhere, so
    that what is f-DP is also g-DP. ``<=`` is ``True`` if that is proven, with all rounding outward;
    ``False`` means that it was not shown. Use the class methods to make one:

    * :meth:`pure`, :meth:`approximate`, :meth:`gaussian`, :meth:`laplace`,
      :meth:`randomized_response`, :meth:`discrete_laplace`, :meth:`discrete_gaussian`,
      :meth:`subsampled_gaussian`, :meth:`subsampled_laplace`, :meth:`finite`,
      :meth:`identity`, :meth:`worst`: exact families;
    * :meth:`from_profile`, :meth:`from_loss_distribution`, :meth:`mixture`.

    Every value is known between two bounds, unless :attr:`upper_only` says that there is one only.
    ``delta`` and ``epsilon`` return the upper bound and ``beta`` the lower one, which are valid
    privacy guarantees; ``delta_bounds``, ``epsilon_bounds`` and ``beta_bounds`` return both.

    A mechanism is f-DP if T(M(x), M(x')) >= f for all ordered pairs of neighbours. If the neighbour
    relation is symmetric and f is not, :meth:`symmetrised` gives a better guarantee. A function
    with a :attr:`direction`, such as that of sampled noise, says so of half of these pairs only.
    :class:`.Session` composes both halves, and :meth:`both_directions` is valid for all pairs.

    All methods raise InvalidTypeError or InvalidValueError for an invalid argument, and name it.

    :example:

    >>> f = oc.TradeoffFunction.laplace(0.1).power(100)
    >>> f.epsilon(1e-6)
    4.69266...
    >>> f.epsilon_bounds(1e-6).width < 1e-5
    True
    >>> oc.TradeoffFunction.laplace(0.1) <= oc.TradeoffFunction.pure(0.1)
    True
    """

    product: Product

    def __init__(self) -> None:
        raise InvalidTypeError(
            "TradeoffFunction has no constructor of its own; "
            "use for example TradeoffFunction.gaussian(mu=1.0)"
        )

    @classmethod
    def _of(cls, product: Product) -> TradeoffFunction:
        made = object.__new__(cls)
        made.product = product
        return made

    @classmethod
    def _single(cls, factor: Factor) -> TradeoffFunction:
        return cls._of(Product(0, {factor: 1}))

    # --- exact families --------------------------------------------------------------------

    @classmethod
    def identity(cls) -> TradeoffFunction:
        """The function f(α) = 1 - α: no privacy loss."""
        return cls._of(Product(0, {}))

    @classmethod
    def worst(cls) -> TradeoffFunction:
        """The function f = 0: no privacy."""
        return cls._single(response(0.0, 1.0))

    @classmethod
    def pure(cls, epsilon: float) -> TradeoffFunction:
        """The worst of ε-DP: randomized response [KOV15].

        100 at ε = 0.1 have ε = 4.775 at δ = 10^-6, as by PLD; zCDP says 5.222.

        :param epsilon: at least 0
        """
        return cls.approximate(epsilon, 0.0)

    @classmethod
    def approximate(cls, epsilon: float, delta: float) -> TradeoffFunction:
        """The worst of (ε, δ)-DP: max(0, 1 - δ - e^ε α, e^-ε (1 - δ - α)) [DRS22], [KOV15].

        100 at (0.1, 10^-9) have ε = 4.788 at δ = 10^-6, as by PLD; zCDP has no bound.

        :param epsilon: at least 0
        :param delta: in [0, 1]
        """
        loss = checks.non_negative(epsilon=epsilon)
        failure = checks.probability(delta=delta)
        if failure == 1.0 or isinf(loss):
            return cls.worst()
        return cls._single(response(loss, failure)) if loss or failure else cls.identity()

    @classmethod
    def gaussian(cls, mu: float) -> TradeoffFunction:
        """N(0, 1) against N(μ, 1) [DRS22, Definition 2.6].

        100 at μ = 0.1 have ε = 4.887 at δ = 10^-6, as by PLD; zCDP and RDP say 5.222.

        :param mu: at least 0
        """
        shift = checks.non_negative(mu=mu)
        return cls._of(Product(to_units(shift) ** 2, {})) if shift < _LARGEST else cls.worst()

    @classmethod
    def laplace(cls, epsilon: float, steps: float = inf) -> TradeoffFunction:
        """Laplace noise at a shift of ``epsilon`` scales.

        100 at ε = 0.1 have ε = 4.693 at δ = 10^-6, as by PLD; RDP says 4.984, zCDP 5.222.

        :param epsilon: at least 0
        :param steps: shift over step of the grid, for noise on a grid; infinite if continuous
        """
        loss = checks.non_negative(epsilon=epsilon)
        whole = checks.number(steps=steps)
        if not whole >= 1.0 or (not isinf(whole) and whole != float(int(whole))):
            raise InvalidValueError(
                f"steps ({checks.shown(steps)}) must be an integer, at least 1, or infinite"
            )
        if isinf(loss):
            return cls.worst()
        return cls._single(laplace(loss, whole)) if loss else cls.identity()

    @classmethod
    def discrete_laplace(cls, scale: float, sensitivity: int = 1) -> TradeoffFunction:
        """Two-sided geometric noise on the integers at a shift of ``sensitivity``.

        As :meth:`laplace` with ε = sensitivity/scale, rounded up to a double.

        100 at scale 10 have ε = 4.775 at δ = 10^-6, as by PLD; zCDP says 5.222.

        :param scale: above 0
        :param sensitivity: at least 1
        """
        width = checks.positive(scale=scale)
        shift = _MOST_STEPS(sensitivity=sensitivity)
        return cls.laplace(double_up(Fraction(shift) / Fraction(width)), float(shift))

    @classmethod
    def discrete_gaussian(cls, scale: float, sensitivity: int = 1) -> TradeoffFunction:
        """Discrete Gaussian noise at a shift of ``sensitivity`` [CKS20].

        Outcomes beyond 38 standard deviations count as an infinite loss of probability 1e-300.

        100 at scale 10 have ε = 4.887 at δ = 10^-6, as by PLD; zCDP says 5.222.

        :param scale: above 0, at most about 13,000
        :param sensitivity: at least 1
        """
        width = checks.positive(scale=scale)
        shift = _MOST_STEPS(sensitivity=sensitivity)
        return cls._single(discrete_gaussian(width, shift))

    @classmethod
    def randomized_response(cls, prob: float, categories: int = 2) -> TradeoffFunction:
        """One of ``categories`` answers, the true one with probability ``prob``.

        100 with 4 categories and odds e^0.1 have ε = 3.317 at δ = 10^-6, by PLD 3.318; as
        0.1-DP 4.775.

        :param prob: in [1/categories, 1]
        :param categories: at least 2
        """
        truth = checks.probability(prob=prob)
        number = checks.count(categories=categories)
        if not 2 <= number <= _MOST_CATEGORIES:
            raise InvalidValueError(
                f"categories ({categories}) must be at least 2, at most {_MOST_CATEGORIES}"
            )
        if not truth >= 1.0 / number:
            raise InvalidValueError(f"prob ({prob}) must be at least 1/{number}")
        if truth == 1.0:
            return cls.worst()
        if Fraction(truth) * number == 1:
            return cls.identity()
        return cls._single(shapes.k_ary_response(truth, number))

    @classmethod
    def finite(cls, first: Sequence[float], second: Sequence[float]) -> TradeoffFunction:
        """T(P, Q) of two distributions on the same outcomes.

        100 of ([.5, .3, .2], [.45, .33, .22]) have ε = 4.728 at δ = 10^-6; by their largest
        loss 5.052.

        :param first: the probabilities of P, which add up to 1
        :param second: the probabilities of Q
        """
        p, q = shapes.distribution(first=first), shapes.distribution(second=second)
        if len(p) != len(q):
            raise InvalidValueError(f"second has {len(q)} outcomes, first has {len(p)}")
        return cls._single(shapes.pair(q, p))

    @classmethod
    def subsampled_gaussian(cls, sigma: float, rate: float, *, unit: str) -> TradeoffFunction:
        """Gaussian noise on Poisson-sampled units, in one :attr:`direction` of neighbours [ZDW22].

        Each unit takes part with probability ``rate``, independently. ``oc.fdp.Session`` keeps both
        directions of a session apart. As with μ = 1/sigma, rounded up to a double.

        1,000 at sigma 1 and rate 0.01 have ε = 2.127 at δ = 10^-6; PLD says 2.125, RDP 2.437.

        :param sigma: standard deviation of the noise over sensitivity; in (0, 10^6]. Below about
            1/25, bounds on compositions are those of Rényi divergences
        :param rate: in [0, 1]
        :param unit: "removed" for δ of the law with the unit against the law without, or "added"
        """
        noise = checks.positive(sigma=sigma)
        share, direction = checks.probability(rate=rate), shapes.direction(unit=unit)
        if not noise <= _MOST_SIGMA:
            raise InvalidValueError(f"sigma ({sigma}) must be at most {_MOST_SIGMA:g}")
        mu = double_up(1 / Fraction(noise))
        if share in (0.0, 1.0):
            return cls.gaussian(mu) if share else cls.identity()
        if not mu < _LARGEST:
            return cls.approximate(0.0, share)
        return cls._single(Subsampled("gaussian", mu, share, direction))

    @classmethod
    def subsampled_laplace(cls, epsilon: float, rate: float, *, unit: str) -> TradeoffFunction:
        """Continuous Laplace noise on Poisson-sampled units, in one direction of neighbours.

        1,000 at ε = 1 and rate 0.01 have ε = 1.288 at δ = 10^-6; PLD says 1.286; by their
        largest loss 2.443.

        :param epsilon: shift over scale; 0, or at least 10^-6
        :param rate: in [0, 1]
        :param unit: "removed" for δ of the law with the unit against the law without, or "added"
        """
        loss = checks.non_negative(epsilon=epsilon)
        share, direction = checks.probability(rate=rate), shapes.direction(unit=unit)
        if share in (0.0, 1.0) or loss == 0.0:
            return cls.laplace(loss) if share else cls.identity()
        if not _LEAST_EPSILON <= loss:
            raise InvalidValueError(
                f"epsilon ({epsilon}) must be 0, or at least {_LEAST_EPSILON:g}"
            )
        if not loss < _LARGEST:
            return cls.approximate(0.0, share)
        return cls._single(Subsampled("laplace", loss, share, direction))

    # --- from other descriptions -----------------------------------------------------------

    @classmethod
    def from_profile(
        cls,
        epsilons: Sequence[float],
        deltas: Sequence[float],
        other_deltas: Sequence[float] | None = None,
    ) -> TradeoffFunction:
        """The best f that follows from (ε, δ)-DP at several points.

        20 that are (0.1, 10^-2), (0.3, 10^-4) and (0.5, 10^-9)-DP have ε = 2.734 at δ =
        10^-6; by the best of the three 9.987.

        :param epsilons: at least 0
        :param deltas: δ at each of them; of T(P, Q), that of Q against P
        :param other_deltas: δ in the other direction; by default the same
        """
        points = shapes.numbers(epsilons=epsilons)
        forward = shapes.numbers(deltas=deltas)
        backward = forward if other_deltas is None else shapes.numbers(other_deltas=other_deltas)
        for name, values in (("deltas", forward), ("other_deltas", backward)):
            if len(values) != len(points):
                raise InvalidValueError(f"{name} must have as many elements as epsilons")
            if not all(0.0 <= value <= 1.0 for value in values):
                raise InvalidValueError(f"{name} must be in [0, 1]")
            shapes.check_falling(name, points, values)
        if not all(0.0 <= point < 700.0 for point in points):
            raise InvalidValueError("epsilons must be in [0, 700)")
        return cls._single(
            from_vertices(zip(points, forward, strict=True), zip(points, backward, strict=True))
        )

    @classmethod
    def from_loss_distribution(
        cls, losses: Sequence[float], probabilities: Sequence[float], infinite: float = 0.0
    ) -> TradeoffFunction:
        """From a privacy-loss distribution: δ(ε) = infinite + Σ p (1 - e^(ε - loss))₊.

        As tight as the constructor of the same pair: 100 answers of randomized response with 4
        categories and odds e^0.1 have ε = 3.317 at δ = 10^-6; as 0.1-DP 4.775.

        :param losses: finite
        :param probabilities: of the losses; with ``infinite`` they add up to 1
        :param infinite: probability of an infinite loss
        """
        values = shapes.numbers(losses=losses)
        failure = checks.probability(infinite=infinite)
        masses = shapes.numbers(probabilities=probabilities)
        if len(masses) != len(values):
            raise InvalidValueError("probabilities must have as many elements as losses")
        return cls._single(shapes.from_losses(values, masses, failure))

    @classmethod
    def mixture(
        cls, weights: Sequence[float], functions: Sequence[TradeoffFunction]
    ) -> TradeoffFunction:
        """A mechanism chosen at random, where the choice is public: δ is the average of the δ.

        Exact for finite pairs. Other functions are first rounded outward to finite pairs, and the
        result is an upper bound only.

        100 that are 0.1-DP with probability 0.9, else 1-DP, have ε = 21.251 at δ = 10^-6;
        as 1-DP 83.531.

        :param weights: at least 0, not all 0; in proportion to the probabilities
        :param functions: as many
        """
        parts = checks.weights(weights=weights)
        listed = checks.elements("trade-off functions", functions=functions)
        given = [check_function(functions=one) for one in listed]
        if len(given) != len(parts):
            raise InvalidValueError(f"functions has {len(given)} elements, weights {len(parts)}")
        used = [(part, one) for part, one in zip(parts, given, strict=True) if part]
        shares = [part / sum(parts) for part, _ in used]
        pairs = [shapes.as_finite(one.product) for _, one in used]
        unit = shapes.unit_of(*(one.product for _, one in used))
        return cls._single(shapes.mixture(shares, pairs).one_way(unit))

    # --- its values ------------------------------------------------------------------------

    def delta(self, epsilon: float | Array) -> Any:
        """Least δ with (ε, δ)-DP, rounded up: 1 + f*(-e^ε) [DRS22, Proposition 2.13].

        :param epsilon: any real number, or an array of them
        :return: of the same shape
        """
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: float | Array, width: float = 1e-6) -> Bounds:
        """Bounds on δ, to the relative ``width`` where that can be reached; 1 % on sampled noise.

        :param epsilon: any real number, or an array of them
        :param width: at least 0
        :return: bounds of the same shape
        """
        points = shapes.array(epsilon=epsilon)
        most, infinite = self.product.largest_loss, self.product.infinite
        far = _FAR if most == inf else max(_FAR, most)
        found = self.product.profile(np.clip(points, -_FAR, far), checks.non_negative(width=width))
        beyond = points >= max(most, 0.0)  # all finite losses are below
        bounds = Bounds(
            np.where(points > far, infinite.lower, found.lower),
            np.where(points < -_FAR, 1.0, np.where(beyond, infinite.upper, found.upper)),
        )
        if points.ndim == 0:
            return Bounds(float(bounds.lower), float(bounds.upper))
        return bounds

    def epsilon(self, delta: float) -> float:
        """Least ε >= 0 with (ε, δ)-DP, rounded up; infinite if there is none.

        :param delta: in [0, 1]
        """
        return float(self.epsilon_bounds(delta).upper)

    def epsilon_bounds(self, delta: float, width: float = 1e-6) -> Bounds:
        """Bounds on ε, to the relative ``width`` where that can be reached; 1 % on sampled noise.

        :param delta: in [0, 1]
        :param width: at least 0
        """
        failure = checks.probability(delta=delta)
        if failure == 0.0:
            infinite = self.product.infinite
            return Bounds(
                inf if infinite.lower > 0.0 else self.product.largest_loss_lower,
                inf if infinite.upper > 0.0 else max(0.0, self.product.largest_loss),
            )
        bounds = self.product.epsilon(failure, checks.non_negative(width=width))
        return Bounds(float(bounds.lower), float(bounds.upper))

    def beta(self, alpha: float) -> float:
        """f(α), rounded down: the least type II error at a type I error of ``alpha``.

        :param alpha: in [0, 1]
        """
        return float(self.beta_bounds(alpha).lower)

    def beta_bounds(self, alpha: float) -> Bounds:
        """Bounds on f(α).

        :param alpha: in [0, 1]
        """
        return order.beta_bounds(self.product, checks.probability(alpha=alpha))

    # --- new functions ---------------------------------------------------------------------

    def compose(self, *others: TradeoffFunction) -> TradeoffFunction:
        """The tensor product f ⊗ g ⊗ ... [DRS22, Definition 3.1]: independent, run together.

        Gaussians merge and equal factors are counted; nothing is computed yet.

        :param others: any number of trade-off functions
        """
        product = self.product
        for index, other in enumerate(others):
            more = check_function(**{f"others[{index}]": other}).product
            shapes.unit_of(product, more)
            product = product.times(more)
        return TradeoffFunction._of(product)

    def power(self, count: int) -> TradeoffFunction:
        """The tensor product of f with itself, ``count`` times.

        :param count: at least 0, at most 2^53
        """
        return TradeoffFunction._of(self.product.power(_MOST_COPIES(count=count)))

    def inverse(self) -> TradeoffFunction:
        """T(Q, P): the other direction."""
        return TradeoffFunction._of(self.product.swapped())

    def symmetrised(self) -> TradeoffFunction:
        """max(f, f⁻¹), for a symmetric relation of neighbours [DRS22, Proposition 2.4].

        It holds for an f-DP mechanism: f bounds all ordered pairs of neighbours. If f was computed
        for one order of the two, use :meth:`both_directions`. A function that is not symmetric is
        rounded outward to a finite pair: an upper bound only.

        :raises InvalidValueError: if the function has a :attr:`direction`
        """
        if order.is_symmetric(self.product):
            return self
        return TradeoffFunction._single(
            shapes.joined("symmetrised", check_both(function=self).product, min)
        )

    def both_directions(self) -> TradeoffFunction:
        """The convex hull of min(f, f⁻¹): for neighbours in either order [DRS22, Section 4].

        Use it where f bounds T(M(x), M(x')) for one order only, as for sampled noise. A
        composition of such functions is valid, but looser than :class:`.Session`, because each
        mechanism may be in the order that is worse for it. A function that is not symmetric is
        rounded outward to a finite pair: an upper bound only.

        :example:

        >>> one = oc.TradeoffFunction.subsampled_gaussian(1.0, 0.1, unit="added")
        >>> round(one.delta(0.1), 4), round(one.both_directions().delta(0.1), 4)
        (0.0, 0.0185)
        """
        if order.is_symmetric(self.product):
            return self
        return TradeoffFunction._single(shapes.joined("of both", self.product, max))

    def one_way(self, unit: str) -> TradeoffFunction:
        """The same function, as the bound of neighbours in one order; as it is if it is symmetric.

        :param unit: "removed" or "added", as for :attr:`direction`
        """
        direction = shapes.direction(unit=unit)
        if self.direction not in (None, direction):
            raise InvalidValueError(
                f"{direction} ({self}) must bound the direction {direction!r}, and it bounds "
                f"{self.direction!r}; pass its inverse(), or both_directions()"
            )
        factors: Counter[Factor] = Counter()
        for factor, n in self.product.factors.items():
            factors[factor.one_way(direction) if isinstance(factor, Finite) else factor] += n
        return TradeoffFunction._of(Product(self.product.squares, factors))

    @property
    def direction(self) -> str | None:
        """The only order of neighbours that this bounds: "removed" or "added"; None for both.

        "removed" if the second dataset lacks the unit, and "added" if the first one does. It stays
        with compositions, powers, mixtures and groups; ``inverse()`` turns it around.
        """
        return " and ".join(sorted(self.product.units)) or None

    def group(self, size: int) -> TradeoffFunction:
        """1 - (1 - f)^(∘size): for neighbours at distance ``size`` [DRS22, Theorem 2.14].

        Exact for Gaussians, one Laplace mechanism (with a shift that is rounded up to a double),
        and finite pairs. Other functions are first rounded outward to finite pairs, and the result
        is an upper bound only.

        :param size: at least 1, at most 2^53; less for a function with many losses
        """
        k, product = _MOST_COPIES(size=size), self.product
        checks.count(size=size)
        if k == 1 or product.is_identity:
            return self
        if not product.factors:
            return TradeoffFunction._of(Product(product.squares * k * k, {}))
        noise = None if product.squares else product.single
        if isinstance(noise, Laplace):
            return TradeoffFunction.laplace(double_up(Fraction(noise.epsilon) * k), noise.steps * k)
        return TradeoffFunction._single(shapes.group(product, k))

    # --- order -----------------------------------------------------------------------------

    def __le__(self, other: TradeoffFunction) -> bool:
        if not isinstance(other, TradeoffFunction):
            return NotImplemented
        return order.is_at_most(self.product, other.product)

    def __lt__(self, other: TradeoffFunction) -> bool:
        at_most = self.__le__(other)
        return at_most if at_most is NotImplemented else at_most and self != other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TradeoffFunction) and self.product == other.product

    def __hash__(self) -> int:
        return hash(self.product)

    def __reduce__(self) -> Any:
        return TradeoffFunction._of, (self.product,)

    def __repr__(self) -> str:
        return f"TradeoffFunction({shapes.name(self.product)})"

    def root(self, part: Fraction) -> TradeoffFunction | None:
        """The function whose power 1/``part`` this is, by its factors; None if there is none."""
        product = self.product
        part = Fraction(checks.instance(Fraction, int)(part=part))
        shares = {factor: part * n for factor, n in product.factors.items()}
        squares = part * product.squares
        if any(share.denominator != 1 for share in (squares, *shares.values())):
            return None
        counts = {factor: int(share) for factor, share in shares.items() if share}
        return TradeoffFunction._of(Product(int(squares), counts))

    def units(self, unit: TradeoffFunction) -> int | None:
        """Least k for which f <= unit^k is shown; None if there is none up to 2^22.

        :param unit: not the identity
        """
        return order.least_power(_unit(unit), self.product)

    def admits(self, unit: TradeoffFunction) -> int:
        """Largest k for which unit^k <= f is shown.

        :param unit: not the identity
        """
        return order.largest_power(_unit(unit), self.product)

    def residual(self, child: TradeoffFunction) -> float | None:
        """Largest s found with child ⊗ G_s <= f, for a Gaussian f; None if there is none.

        :param child: any trade-off function
        """
        if self.mu is None:
            raise InvalidValueError(
                f"only a Gaussian trade-off function has a residual, not {self}; "
                "use TradeoffFunction.gaussian(mu)"
            )
        return order.residual(self.mu_down, check_function(child=child).product)

    @cached_property
    def affinity_cost(self) -> float:
        """-ln ∫ sqrt(PQ), approximately: adds up over products, falls under postprocessing."""
        return -sum(
            n * float(factor.log_mgf(np.array([-0.5]))[0]) if factor.infinite < 1.0 else -inf
            for factor, n in self.product.counted
        )

    @property
    def upper_only(self) -> bool:
        """Whether this is an upper bound only: what it stands for may lose less.

        So are the results of :meth:`mixture`, :meth:`group` and :meth:`symmetrised` if they round
        to finite pairs; and compositions with any of these.
        ``delta``, ``epsilon`` and ``beta`` are guarantees all the same. But the other ends of the
        brackets are trivial, only the function itself is shown to be at most this one, and this one
        is refused as a budget.
        """
        return self.product.upper_only

    @property
    def gaussian_bound(self) -> float:
        """μ with f <= G_μ, rounded up; infinite if none is known."""
        return order.gaussian_bound(self.product)

    @property
    def mu_down(self) -> float:
        """μ of the Gaussians alone, rounded down."""
        return sqrt_down(self.product.squares)

    @property
    def mu(self) -> float | None:
        """μ, rounded up, if this is a Gaussian trade-off function; else None."""
        return None if self.product.factors else self.product.mu


def _unit(unit: TradeoffFunction) -> Product:
    product = check_function(unit=unit).product
    if product.is_identity:
        raise InvalidValueError("unit must not be the identity, which has no privacy loss")
    return product


def check_both(**argument: Any) -> TradeoffFunction:
    """Return the argument, a trade-off function for neighbours in either order, or raise."""
    ((name, _),) = argument.items()
    function = check_function(**argument)
    if function.direction is not None:
        raise InvalidValueError(
            f"{name} ({function}) must bound neighbours in both directions, and this bounds the "
            f"direction {function.direction!r} only; pass {name}.both_directions(), or compose "
            "sessions: oc.fdp.Session"
        )
    return function


of_product, of_factor = TradeoffFunction._of, TradeoffFunction._single


def check_function(**argument: Any) -> TradeoffFunction:
    """Return the argument, a trade-off function, or raise."""
    ((name, value),) = argument.items()
    if not isinstance(value, TradeoffFunction):
        raise InvalidTypeError(
            f"{name} must be a TradeoffFunction, found {type(value).__name__}; "
            "pass for example TradeoffFunction.gaussian(mu=1.0)"
        )
    return value
