"""A conversion: the privacy loss under one measure as a loss under another."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isinf
from typing import Any

from .. import _checks as checks
from .. import errors, numerics


@dataclass(frozen=True, slots=True)
class Ends:
    """What a conversion may need to know, besides the distance.

    :ivar source: the measure that is converted from, with its parameters
    :ivar target: the measure that is converted to, with its parameters
    :ivar delta: for a target of (ε, δ)
    :ivar orders: at which a Rényi curve is read
    """

    source: Any
    target: Any
    delta: float | None = None
    orders: tuple[float, ...] | None = None

    @property
    def at_delta(self) -> float:
        """The δ of a conversion that needs one."""
        assert self.delta is not None
        return self.delta

    @property
    def at_orders(self) -> tuple[float, ...]:
        """The orders of a conversion that needs some."""
        assert self.orders is not None
        return self.orders


def no_check(ends: Ends) -> None:
    """Accept all ends."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """One theorem: how a loss under one measure reads under another.

    :ivar convert: from a distance and the ends to a distance; the ends have the measures ``source``
        and ``target`` with their parameters, and ``at_delta`` and ``at_orders``
    :ivar needs_delta: whether it needs a δ
    :ivar needs_orders: whether it needs orders
    :ivar check: raises for ends that no distance can be converted between

    :example:

    >>> doubled = oc.extend.Conversion(lambda epsilon, ends: 2 * epsilon)
    >>> doubled.convert(0.5, None)
    1.0
    """

    convert: Callable[[Any, Ends], Any]
    needs_delta: bool = False
    needs_orders: bool = False
    check: Callable[[Ends], None] = no_check

    def require(self, ends: Ends) -> None:
        """Raise if something is missing, or the ends do not fit."""
        self.check(ends)
        if self.needs_delta and ends.delta is None:
            raise errors.InvalidTypeError("delta must be given for a cast to (epsilon, delta)")
        if self.needs_orders and ends.orders is None:
            raise errors.InvalidTypeError(
                "orders must be given to convert a Rényi curve; pass a few orders"
            )


def at_delta(epsilon: Callable[[Any, float, Ends], float]) -> Conversion:
    """Return the conversion to (ε, δ), from ε as a function of a distance, the δ and the ends."""
    return Conversion(
        lambda d, ends: (epsilon(d, ends.at_delta, ends), ends.at_delta), needs_delta=True
    )


def at_epsilon(delta: Callable[[Any, float, Ends], float]) -> Conversion:
    """Return the conversion to a profile, from δ as a function of a distance, ε and the ends."""
    return Conversion(lambda d, ends: Profile(lambda epsilon: delta(d, epsilon, ends)))


class Profile:
    """δ as a function of ε, to become OpenDP's ``PrivacyProfile``."""

    def __init__(self, delta: Callable[[float], float]) -> None:
        self._delta = delta

    def __call__(self, epsilon: float) -> float:
        """Return δ at ``epsilon`` >= 0."""
        return self._delta(checks.non_negative(epsilon=epsilon))


# Conversion of ε-DP to ε tanh(ε/2)-zCDP: randomized response is the worst case [Ste24].


@lru_cache(maxsize=65536)
def pure_to_zcdp(epsilon: float) -> float:
    """Return the least double at or above ε tanh(ε/2).

    OpenDP uses the larger ε²/2 of [BS16, Proposition 1.4].

    :param epsilon: at least 0
    """

    def rho(real: numerics.Digits) -> numerics.Bracket:
        e = real(epsilon)
        decay = (-e).exp()
        return e * (1 - decay) / (1 + decay)

    return min(numerics.upper(rho), epsilon) if 0.0 < epsilon < 1e16 else epsilon


# Conversion of ε-DP to Rényi DP at every order, by randomized response [BS16].


@lru_cache(maxsize=65536)
def pure_to_renyi(epsilon: float, order: float) -> float:
    """Return the least double at or above the Rényi divergence of randomized response.

    1/(α-1) log((e^(αε) + e^(ε-αε)) / (1 + e^ε)) [BS16, Lemma 1.4 and the proof of Proposition 1.4],
    written as ε - 1/(α-1) log((1 + e^(-ε)) / (1 + e^(-(2α-1)ε))).

    :param epsilon: at least 0
    :param order: finite, above 1
    """

    def divergence(real: numerics.Digits) -> numerics.Bracket:
        e, a = real(epsilon), real(order)
        saved = ((1 + (-e).exp()) / (1 + (-((2 * a - 1) * e)).exp())).ln() / (a - 1)
        return e - saved

    return min(numerics.upper(divergence), epsilon) if 0.0 < epsilon < 1e16 else epsilon


# Conversions that are one product or root, rounded up.
#
# ρ-zCDP has Rényi divergence ρ α at order α [BS16, Definition 1.1]. μ-Gaussian DP implies
# μ²/2-zCDP: this is the loss of N(0, 1) and N(μ, 1) [BS16, Proposition 1.6], and the mechanism is a
# postprocessing of these [DRS22, Theorem 2.10].


def zcdp_to_renyi(rho: float, order: float) -> float:
    """Return the least double at or above ρ α."""
    if rho == 0.0 or isinf(rho):
        return rho
    return numerics.upper(lambda real: real(rho) * real(order))


def gaussian_to_zcdp(mu: float) -> float:
    """Return the least double at or above μ²/2."""
    if isinf(mu):
        return inf
    # squares are in units of 2**-(2 * SMALLEST); the half is rounded up once
    return numerics.from_units_up(-(-(numerics.to_units(mu) ** 2) >> (numerics.SMALLEST + 1)))


def zcdp_to_gaussian(rho: float, extra: float = 0.0) -> float:
    """Return the least double at or above sqrt(2 ρ) + ``extra``: the μ of Gaussian noise at ρ.

    This is not a conversion: a ρ-zCDP mechanism without Gaussian noise need not be Gaussian DP.
    """

    def mu(real: numerics.Digits) -> numerics.Bracket:
        return (2 * real(rho)).sqrt() + real(extra)

    return rho if rho == 0.0 or isinf(rho) else numerics.upper(mu)


# Rényi curves that are known at every order: immutable, a theorem's formula of one distance.


@dataclass(frozen=True, slots=True)
class KnownCurve:
    """The Rényi divergence at each order, converted from a distance of another measure."""

    formula: Callable[[float, float], float]
    distance: float

    def __call__(self, alpha: float) -> float:
        """Return the divergence at order ``alpha``."""
        return self.formula(self.distance, alpha)


def known(curve: object) -> KnownCurve | None:
    """Return an own copy of ``curve`` if it is a known curve, else None."""
    if type(curve) is KnownCurve and curve.formula in (pure_to_renyi, zcdp_to_renyi):
        return KnownCurve(curve.formula, float(curve.distance))
    return None


# Conversion of (ε, δ)-DP to (ε', δ') with a smaller ε' or a larger δ', by randomized response.
#
# Every (ε, δ)-DP mechanism is, for two neighbours, a postprocessing of randomized response that
# fails with probability δ [KOV15, Theorem 3.3]. Its δ at ε' <= ε is therefore at most
#
#     1 - (1 - δ) (1 + e^ε') / (1 + e^ε).


@lru_cache(maxsize=65536)
def approximate_to_delta(epsilon: float, delta: float, smaller: float) -> float:
    """Return the least double at or above the δ at ``smaller``.

    :param epsilon: at least 0
    :param delta: in [0, 1]
    :param smaller: ε', at least 0; if it is at least ``epsilon``, the result is ``delta``
    """
    if smaller >= epsilon or delta >= 1.0:
        return min(delta, 1.0)
    if epsilon == inf:
        return 1.0

    def at_smaller(real: numerics.Digits) -> numerics.Bracket:
        e, s = real(epsilon), real(smaller)
        return 1 - (1 - real(delta)) * ((-e).exp() + (s - e).exp()) / (1 + (-e).exp())

    return min(1.0, numerics.double_up(numerics.evaluate(at_smaller).upper))


@lru_cache(maxsize=65536)
def approximate_to_epsilon(epsilon: float, delta: float, larger: float) -> float:
    """Return an upper bound on the ε at ``larger``, at least 0; infinity below ``delta``.

    :param epsilon: at least 0
    :param delta: in [0, 1]
    :param larger: δ'
    """
    if not larger >= delta:
        return inf  # no bound is known at a smaller δ
    if epsilon == 0.0 or larger == delta:
        return epsilon
    if larger >= 1.0 or approximate_to_delta(epsilon, delta, 0.0) <= larger:
        return 0.0
    if epsilon == inf:
        return inf

    def at_larger(real: numerics.Digits) -> numerics.Bracket:
        e = real(epsilon)
        scaled = (1 - real(larger)) / (1 - real(delta)) * (1 + (-e).exp()) - (-e).exp()
        return e + scaled.ln()  # e^ε' = scaled e^ε

    return min(epsilon, max(0.0, numerics.double_up(numerics.evaluate(at_larger).upper)))


def larger_delta(loss: tuple[float, float], ends: Ends) -> tuple[float, float]:
    """Return the loss at the target's δ, or the loss itself if the target has no δ."""
    epsilon, delta = loss
    if ends.delta is None or epsilon == 0.0:
        return loss
    if not ends.delta >= delta:
        raise errors.InvalidValueError(
            f"delta ({ends.delta}) must be at least the delta of the measurement ({delta})"
        )
    return approximate_to_epsilon(epsilon, delta, ends.delta), ends.delta


# Rényi divergence and zCDP of the Laplace mechanism on a grid, as OpenDP samples it.
#
# Noise on a grid of step s with scale b, at a shift of D, has ε = D/b and g = s/b. With
# A = (1 + tanh(g/2) / tanh((α - 1/2) g)) / 2 its Rényi divergence of order α is
#
#     1/(α-1) log(A e^((α-1)ε) + (1-A) e^(-αε)).
#
# For g -> 0 this is the Laplace distribution, A = α/(2α-1) [Mir17, Table II]. For g = ε, a shift of
# one step, it is randomized response. A increases in g, and so does the divergence: a shift of D on
# integers costs more than the formula of the continuous Laplace distribution.
#
# The divergence is convex in ε and 0 at 0. Among all shifts of a vector with a given L1 norm, the
# worst shift is therefore in one coordinate.
#
# zCDP: the divergence divided by α is largest for α -> 1, so ρ is the Kullback-Leibler divergence ε
# - (1 - e^(-ε)) g / sinh(g); for g -> 0 it is ε + e^(-ε) - 1. Both are in [HM25]. Proof for a shift
# of d steps: let u = α - 1/2. Then e^((α-1) D_α) is proportional to a sum of cosh(ℓ u) over losses
# ℓ. Its zeros in u are imaginary: as a polynomial in y = e^(2ug), times y - 1, it vanishes where
# y^d = (1 - q y)/(y - q), q = e^(-g), hence for |y| = 1 only. By Hadamard's product its logarithm
# is concave in u², and so lies below its tangent at u² = 1/4, which is ρ (u² - 1/4) = ρ α (α-1).

FINEST = 1e-20  # finer grids are rounded up to this; the divergence grows by less than 1e-39


def _step(epsilon: float, step: float) -> float:
    """Return the step for the formulas: at most ``epsilon``, at which one step is the shift."""
    return min(max(step, FINEST * min(1.0, epsilon)), epsilon)


@lru_cache(maxsize=65536)
def laplace_to_renyi(epsilon: float, order: float, step: float = 0.0) -> float:
    """Return the least double at or above the Rényi divergence of the Laplace mechanism.

    :param epsilon: shift over scale
    :param order: finite, above 1
    :param step: step of the grid over scale; 0 for the continuous distribution, ``epsilon`` or more
        if the shift is one step
    """
    if not 0.0 < epsilon < 1e16:
        return epsilon
    if step >= epsilon:
        return pure_to_renyi(epsilon, order)

    def divergence(real: numerics.Digits) -> numerics.Bracket:
        e, a = real(epsilon), real(order)
        if step == 0.0:
            high = a / (2 * a - 1)
        else:
            g = real(_step(epsilon, step))
            high = (1 + _tanh(g / 2) / _tanh((a - 0.5) * g)) / 2
        return e + (high + (1 - high) * (-((2 * a - 1) * e)).exp()).ln() / (a - 1)

    return min(numerics.upper(divergence), epsilon)


@lru_cache(maxsize=65536)
def laplace_to_zcdp(epsilon: float, step: float = 0.0) -> float:
    """Return the least double at or above the Laplace mechanism's ρ; parameters as above."""
    if not 0.0 < epsilon < 1e16:
        return epsilon
    if step >= epsilon:
        return pure_to_zcdp(epsilon)

    def rho(real: numerics.Digits) -> numerics.Bracket:
        e = real(epsilon)
        if step == 0.0:
            return e + (-e).exp() - 1
        g = real(_step(epsilon, step))
        sinh = (g.exp() - (-g).exp()) / 2
        return e - (1 - (-e).exp()) * g / sinh

    return min(numerics.upper(rho), epsilon)


def _tanh(x: numerics.Bracket) -> numerics.Bracket:
    decay = (-(2 * x)).exp()
    return (1 - decay) / (1 + decay)


# The exact Rényi divergence of randomized response over any number of categories.


@lru_cache(maxsize=65536)
def response_to_renyi(prob: float, categories: int, order: float) -> float:
    """Return the least double at or above the divergence.

    Let p be the probability of the truth and r = (1-p)/(k-1) that of each other category. Then it
    is 1/(α-1) log(p^α r^(1-α) + r^α p^(1-α) + (k-2) r). The terms are for the true answer, the
    neighbour's, and all others, which are equally likely under both. For k = 2: [Mir17, Table II].

    :param prob: p, in [1/k, 1)
    :param categories: k, at least 2
    :param order: α, finite, above 1
    """

    def divergence(real: numerics.Digits) -> numerics.Bracket:
        p, a = real(prob), real(order)
        r = (1 - p) / (categories - 1)
        loss = (p / r).ln()
        decay = (-((a - 1) * loss)).exp()  # the moment is e^((α-1) loss) times the next expression
        return loss + (p + r * decay * decay + (categories - 2) * r * decay).ln() / (a - 1)

    return max(0.0, numerics.upper(divergence))


# Conversion of Rényi DP to (ε, δ)-DP: [CKS20, Proposition 12], also [BBGHS20, Theorem 21].


@lru_cache(maxsize=65536)
def renyi_to_epsilon(order: float, divergence: float, delta: float) -> float:
    """Return an upper bound on ε: t + log((α-1)/α) - (log δ + log α)/(α-1), at least 0.

    :param order: α, finite, above 1
    :param divergence: t, the Rényi divergence of that order, at least 0
    :param delta: in [0, 1]
    """
    if divergence == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or divergence == inf:
        return inf

    def epsilon(real: numerics.Digits) -> numerics.Bracket:
        a, d = real(order), real(delta)
        return real(divergence) + ((a - 1) / a).ln() - (d.ln() + a.ln()) / (a - 1)

    return max(0.0, numerics.double_up(numerics.evaluate(epsilon).upper))


@lru_cache(maxsize=65536)
def renyi_to_delta(order: float, divergence: float, epsilon: float) -> float:
    """Return an upper bound on δ: e^((α-1)(t-ε)) / (α-1) (1-1/α)^α, at most 1; see above."""
    if divergence == 0.0 or epsilon == inf:
        return 0.0
    if divergence == inf:
        return 1.0

    def delta(real: numerics.Digits) -> numerics.Bracket:
        a = real(order)
        exponent = (a - 1) * (real(divergence) - real(epsilon)) + a * ((a - 1) / a).ln()
        return exponent.exp() / (a - 1)

    return min(1.0, numerics.upper(delta))


@lru_cache(maxsize=4096)
def largest_divergence(order: float, epsilon: float, delta: float) -> float:
    """Return the largest double t with ``renyi_to_epsilon(order, t, delta) <= epsilon``, or 0."""
    return numerics.largest_double(
        lambda t: renyi_to_epsilon(order, t, delta) <= epsilon, max(epsilon, 1e-300)
    )
