"""f-DP and Gaussian DP: the theorems that lead to them and from them, joins, Laplace noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import floor, inf, isinf, log, prod, sqrt
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from .. import _checks as checks
from .. import fdp, numerics
from ..errors import Argument, InvalidValueError, Loss, UnsupportedMeasureError
from . import opendp as native
from .conversion import Conversion, at_delta, at_epsilon, gaussian_to_zcdp, renyi_to_delta
from .measure import Accumulator, Composability, CompositionMeasure, singleton
from .renyi import curve_to_delta
from .shapes import NumberMeasure, SquareSum, divided_down
from .slots import AnyOrder, Products, Slots

# Conversion of μ-Gaussian DP to (ε, δ(ε))-DP for every ε, exactly [DRS22, Corollary 1].
#
# δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2). With a, b = ε/μ -+ μ/2 and Mills' ratio R this is
# φ(a) (R(a) - R(b)), since e^ε φ(b) = φ(a).

FAR = 40.0  # 1 - Φ(40) is less than 1e-349


@lru_cache(maxsize=65536)
def gaussian_to_delta(mu: float, epsilon: float) -> float:
    """Return the least double at or above δ(ε).

    :param mu: at least 0
    :param epsilon: at least 0
    """
    if mu == 0.0 or epsilon == inf:
        return 0.0
    if mu == inf:
        return 1.0

    def threshold(real: numerics.Digits) -> numerics.Bracket:
        return real(epsilon) / real(mu) - real(mu) / 2

    if numerics.upper(threshold) < -FAR:
        return 1.0
    if numerics.lower(threshold) > FAR:
        return 5e-324

    def delta(real: numerics.Digits) -> numerics.Bracket:
        m = real(mu)
        centre, half = real(epsilon) / m, m / 2
        a = centre - half
        return numerics.density(a) * (numerics.mills(a) - numerics.mills(centre + half))

    return min(1.0, numerics.upper(delta))


@lru_cache(maxsize=65536)
def gaussian_to_epsilon(mu: float, delta: float) -> float:
    """Return the least double ε with ``gaussian_to_delta(mu, ε) <= delta``, or infinity."""
    if mu == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or mu == inf:
        return inf
    if gaussian_to_delta(mu, 0.0) <= delta:
        return 0.0
    near = mu * mu / 2 + mu * sqrt(-2 * log(delta))
    return numerics.least_double(lambda epsilon: gaussian_to_delta(mu, epsilon) <= delta, near)


# Conversion of ε-DP to μ-Gaussian DP: Φ(μ/2) = e^ε / (1 + e^ε), the μ of randomized response.
#
# The trade-off function of ε-DP is linear between (0, 1), (v, v) and (1, 0), v = 1 / (1 + e^ε). G_μ
# is convex, so it lies below this function exactly when it does at these three points. G_μ(v) <= v
# holds exactly when v >= Φ(-μ/2). μ = ε is not valid.


def pure_to_gaussian(epsilon: float) -> float:
    """Return an upper bound on μ = 2 Φ^(-1)(e^ε / (1 + e^ε)), at most one ulp above.

    :param epsilon: at least 0; for large ones the relative error of the bound is at most 1e-12
    """
    return numerics.twice_quantile(epsilon)


# Gaussian DP: the distance is μ, and the trade-off function that of N(0, 1) and N(μ, 1).


@checks.recorded
def gaussian_tradeoff() -> native.Measure:
    """Gaussian differential privacy; the distance is a number μ.

    Telling neighbours apart is at least as hard as telling N(0, 1) from N(μ, 1) [DRS22, Definition
    2.6]. The squares of losses add up, for concurrent children with adaptively chosen losses
    [ST22, KTH22], [VZ23] and [HSTVVXZ23, Theorem 1.21], under finite communication.

    Required features: `honest-but-curious`

    :return: a measure, whose distances are numbers in [0, inf]

    :example:

    >>> oc.gaussian_tradeoff()
    GaussianTradeoff
    """
    return native.user_divergence(native.GAUSSIAN)


@dataclass(frozen=True, slots=True)
class GaussianTradeoff(NumberMeasure):
    """Gaussian DP: squares of losses add up."""

    kind = native.GAUSSIAN
    tag = "gdp"
    composability = Composability.CONCURRENT
    reason = (
        f"{checks.cite('ST22')}, {checks.cite('KTH22')} and {checks.cite('VZ23')}, under finite "
        "communication"
    )
    assumes_finite = True
    distance_form = "mu"
    total = SquareSum
    group_power = 1
    noise = native.Noise.GAUSSIAN
    keywords = MappingProxyType({"mu": checks.non_negative})
    why_not = "its loss may be unbounded, as that of Gaussian noise is"
    conversions_from = MappingProxyType(
        {native.PURE: Conversion(lambda d, ends: pure_to_gaussian(d))}
    )
    conversions_to = MappingProxyType(
        {
            native.ZCDP: Conversion(lambda d, ends: gaussian_to_zcdp(d)),
            native.APPROXIMATE: at_delta(lambda d, delta, ends: gaussian_to_epsilon(d, delta)),
            native.PROFILE: at_epsilon(lambda d, e, ends: gaussian_to_delta(d, e)),
        }
    )

    def opendp(self) -> native.Measure:
        return gaussian_tradeoff()

    def split(self, d_out: float, weights: list[Fraction]) -> list[float]:
        """Shares whose squares add up to at most that of ``d_out``."""
        return list(numerics.split_squares(d_out, weights))

    def gaussian_scale(self, sensitivity: float, loss: float) -> float:
        """Sensitivity over μ, in doubles."""
        return sensitivity / loss

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, float]:
        return gaussian_tradeoff(), given["mu"]

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> Any:
        return dp_event.GaussianDpEvent(numerics.reciprocal_down(d_mid))


GAUSSIAN_TRADEOFF = singleton(GaussianTradeoff)


# Trade-off functions that follow from other measures.


@lru_cache(maxsize=1024)
def renyi_to_tradeoff(alpha: float, divergence: float) -> fdp.TradeoffFunction:
    """Return a trade-off function that holds for every (α, divergence)-Rényi DP mechanism.

    It consists of chords of the privacy profile.
    """
    if divergence == 0.0:
        return fdp.TradeoffFunction.identity()
    if not divergence < 300.0:
        return fdp.TradeoffFunction.worst()
    return fdp.profile_to_tradeoff(lambda epsilon: renyi_to_delta(alpha, divergence, epsilon))


TO_TRADEOFF = MappingProxyType(
    {
        native.PURE: Conversion(lambda d, ends: fdp.TradeoffFunction.pure(d)),
        native.APPROXIMATE: Conversion(
            lambda d, ends: fdp.TradeoffFunction.approximate(d[0], min(d[1], 1.0))
        ),
        native.ZCDP: Conversion(lambda d, ends: fdp.zcdp_to_tradeoff(d, inf)),
        native.TRUNCATED: Conversion(lambda d, ends: fdp.zcdp_to_tradeoff(d.rho, d.omega)),
        native.FIXED: Conversion(lambda d, ends: renyi_to_tradeoff(ends.source.alpha, d)),
        native.RENYI: Conversion(
            lambda d, ends: fdp.profile_to_tradeoff(curve_to_delta(d, ends)), needs_orders=True
        ),
        native.GAUSSIAN: Conversion(lambda d, ends: fdp.TradeoffFunction.gaussian(d)),
        native.PROFILE: Conversion(lambda d, ends: fdp.profile_to_tradeoff(d.delta)),
    }
)


# The join of trade-off functions: the largest loss of the parallel parts of a composition.
#
# ``losses`` and ``parts`` are those of ``measures/shapes.py``.

_MOST_PRODUCTS = 64  # of trade-off functions, before those at one distance are joined
_SHOWN = 1 + 2.0**-32  # so far above, that rounding does not hide the order of functions
_LARGEST = 650.0  # e^ε is a double


def join_tradeoffs(
    losses: list[list[fdp.TradeoffFunction]], parts: Sequence[int]
) -> fdp.TradeoffFunction:
    """The join of all products of functions of different parts.

    If there are too many, of all products of the functions at each distance, of whatever parts.
    """
    total, places = len(losses), range(len(parts))
    distances = list(partitions(total, sum(parts), total))
    if sum(len(places) ** len(one) for one in distances) <= _MOST_PRODUCTS:
        ways = {
            tuple(sorted(zip(one, choice, strict=True)))
            for one in distances
            for choice in product(places, repeat=len(one))
            if all(choice.count(place) <= parts[place] for place in choice)
        }
        found = [[losses[j - 1][place] for j, place in way] for way in sorted(ways)]
    else:
        rows = [largest(row) for row in losses]
        if sum(prod(len(rows[j - 1]) for j in one) for one in distances) > _MOST_PRODUCTS:
            rows = [[join(row)] for row in rows]
        found = [list(w) for one in distances for w in product(*(rows[j - 1] for j in one))]
    return join([first.compose(*others) for first, *others in found])


def partitions(total: int, terms: int, most: int) -> Iterator[tuple[int, ...]]:
    """Sums of ``total``, of at most ``terms`` positive integers, each at most ``most``, falling."""
    if total == 0:
        yield ()
    elif terms:
        for first in range(min(total, most), 0, -1):
            for rest in partitions(total - first, terms - 1, first):
                yield first, *rest


def largest(functions: Iterable[fdp.TradeoffFunction]) -> list[fdp.TradeoffFunction]:
    """Those that are not shown to be at most another one."""
    kept: list[fdp.TradeoffFunction] = []
    # what costs less affinity is at most the others, or at none
    for one in sorted(dict.fromkeys(functions), key=lambda one: -one.affinity_cost):
        if not any(one <= other for other in kept):
            kept.append(one)
    return kept


def join(functions: Iterable[fdp.TradeoffFunction]) -> fdp.TradeoffFunction:
    """A trade-off function that is below all, close to the largest convex one that is."""
    kept = largest(functions)
    if len(kept) == 1:
        return kept[0]
    both = list(dict.fromkeys(one for each in kept for one in (each, each.inverse())))

    def delta(points: fdp.Array) -> fdp.Array:
        above: fdp.Array = np.max([one.delta(points) for one in both], axis=0) * _SHOWN
        return np.minimum(1.0, above)

    wide = np.geomspace(2.0**-10, _LARGEST, 120)
    on_wide = delta(wide)
    body, tail = (wide[on_wide <= max(on_wide[-1], rest)][0] for rest in (1e-12, 1e-30))
    kinks = [one.epsilon(0.0) for one in both]  # the largest loss
    grids = (
        np.linspace(0.0, body, 240),
        np.geomspace(body / 1e4, body, 60),
        np.linspace(body, tail, 30),
        [kink for kink in kinks if kink < tail],
    )
    points = np.unique(np.concatenate(grids))
    deltas = np.minimum.accumulate(delta(points))
    return fdp.TradeoffFunction.from_profile(points.tolist(), deltas.tolist())


# f-DP: the distance is a trade-off function, and smaller is above it everywhere.

_DRAWN_AT = 1e-6  # the δ at which a plot reads a function


@checks.recorded
def tradeoff() -> native.Measure:
    """f-DP; the distance is a :class:`.TradeoffFunction`.

    Telling neighbours apart is at least as hard as f says [DRS22, Definition 2.3], for all ordered
    pairs of neighbours. Losses that are fixed up front compose to their tensor product, also for
    concurrent children [VZ23], under finite communication. For losses that are chosen
    on the way that is *not* so: see :func:`.ladder` and :func:`.residue`. A function with a
    ``direction``, as of sampled noise, is refused: pass its ``both_directions()``.

    Required features: `honest-but-curious`

    :return: a measure, whose distances are trade-off functions

    :example:

    >>> oc.tradeoff()
    Tradeoff
    """
    return native.user_divergence(native.TRADEOFF)


def _epsilon(function: fdp.TradeoffFunction, delta: float) -> float:
    """ε at ``delta``: to the last digit for Gaussians, else a certified upper bound."""
    if function.mu is not None:
        return gaussian_to_epsilon(function.mu, delta)
    return function.epsilon(delta)


def _delta(function: fdp.TradeoffFunction, epsilon: float) -> float:
    """δ at ``epsilon``, likewise."""
    if function.mu is not None:
        return gaussian_to_delta(function.mu, epsilon)
    return float(function.delta(epsilon))


@dataclass(frozen=True, slots=True)
class TradeoffDivergence(CompositionMeasure[fdp.TradeoffFunction]):
    """f-DP: losses that are fixed up front multiply, others need an accumulator of their own."""

    kind = native.TRADEOFF
    tag = "fdp"
    zero = fdp.TradeoffFunction.identity()
    composability = Composability.CONCURRENT
    reason = f"{checks.cite('VZ23')}, under finite communication"
    assumes_finite = True
    distance_form = "TradeoffFunction"
    most_parallel = 4
    keywords = MappingProxyType({"tradeoff": fdp.check_both})
    why_not = (
        "its loss may be unbounded, and its Rényi divergences infinite; read it as "
        "(epsilon, delta), or as Gaussian DP"
    )
    conversions_from = TO_TRADEOFF
    conversions_to = MappingProxyType(
        {
            native.APPROXIMATE: at_delta(lambda d, delta, ends: _epsilon(d, delta)),
            native.PROFILE: at_epsilon(lambda d, e, ends: _delta(d, e)),
            native.GAUSSIAN: Conversion(lambda d, ends: d.gaussian_bound),
        }
    )

    def opendp(self) -> native.Measure:
        return tradeoff()

    def validate(self, name: str, value: Argument) -> fdp.TradeoffFunction:
        """Return a trade-off function that bounds both directions of neighbours, or raise."""
        return fdp.check_both(**{name: value})

    def validate_budget(self, name: str, value: Argument) -> fdp.TradeoffFunction:
        """Return a trade-off function that bounds anything, or raise."""
        function = self.validate(name, value)
        if function == fdp.TradeoffFunction.worst():
            raise InvalidValueError(
                f"{name} ({value}) must bound the loss; TradeoffFunction.worst() bounds nothing"
            )
        if function.upper_only:
            raise InvalidValueError(
                f"{name} ({value}) must be exact, and this function is only an upper bound; "
                "pass from_profile() at some of its points, or another function"
            )
        return function

    def at_most(self, left: fdp.TradeoffFunction, right: fdp.TradeoffFunction) -> bool:
        """Whether the order of functions is shown."""
        return left <= right

    def group_loss(self, loss: fdp.TradeoffFunction, size: int) -> fdp.TradeoffFunction:
        """1 - (1 - f)^(∘k) [DRS22, Theorem 2.14]."""
        return loss.group(size)

    def member_loss(self, d_out: fdp.TradeoffFunction, size: int) -> fdp.TradeoffFunction:
        """The same, backwards, for Gaussians only."""
        if size == 1:
            return d_out
        if d_out.mu is None:
            raise self._no_group(size)
        return fdp.TradeoffFunction.gaussian(divided_down(d_out.mu_down, size))

    def split(
        self, d_out: fdp.TradeoffFunction, weights: list[Fraction]
    ) -> list[fdp.TradeoffFunction]:
        """Shares of a power of one function, or of a Gaussian; others are not divisible."""
        whole = sum(weights)
        shares = [d_out.root(weight / whole) for weight in weights]
        found = [share for share in shares if share is not None]
        if len(found) == len(weights):
            return found
        if d_out.mu is not None:
            parts = numerics.split_squares(d_out.mu_down, weights)
            return [fdp.TradeoffFunction.gaussian(mu) for mu in parts]
        raise InvalidValueError(
            f"d_out ({d_out}) cannot be split in these proportions: "
            "pass a Gaussian trade-off function, or a power that the number of shares divides"
        )

    def sum(self) -> Accumulator:
        """Refuse: the product bounds nothing then."""
        raise UnsupportedMeasureError(
            "accumulator must be oc.accumulators.ladder(unit) or "
            "oc.accumulators.residue(mu) under Tradeoff: the product of adaptively chosen "
            "trade-off functions is not a bound [RHLMTL26], [TKRH26]; docs/refused.rst has "
            "analysts who exceed it. Gaussian DP has an odometer of its own: "
            "oc.gaussian_tradeoff()"
        )

    def fixed_sum(self) -> Accumulator:
        return Products()

    @property
    def total(self) -> Accumulator:
        """Refuse, as ``sum`` does."""
        return self.sum()

    def in_any_order(self, shares: tuple[fdp.TradeoffFunction, ...]) -> tuple[AnyOrder, Slots]:
        return AnyOrder(), Slots.of(shares)

    def join(
        self, losses: list[list[fdp.TradeoffFunction]], parts: Sequence[int]
    ) -> fdp.TradeoffFunction:
        """A function that is below all products."""
        return join_tradeoffs(losses, parts)

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, fdp.TradeoffFunction]:
        return tradeoff(), given["tradeoff"]

    def event(self, dp_event: ModuleType, d_mid: fdp.TradeoffFunction) -> Any:
        return fdp.function_event(dp_event, d_mid)

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, fdp.TradeoffFunction)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        """The ε at δ = 1e-6."""
        return fdp.check_function(**{of: loss}).epsilon(_DRAWN_AT)

    @classmethod
    def symbol(cls, loss: Loss | None, order: float | None) -> str:
        return f"ε at δ = {_DRAWN_AT:g}"


TRADEOFF_DIVERGENCE = singleton(TradeoffDivergence)


# The trade-off function of the Laplace mechanism on a grid, as OpenDP samples it.
#
# Consider a shift of d steps, which is ε scales. The profile equals that of the continuous
# mechanism, 1 - e^((x-ε)/2), at each loss x = ε, ε (d-2)/d, ..., and is linear in e^x between them:
# with α = e^(-ε/d), P(X <= n) = 1 - α^(n+1)/(1+α), and x = (d - 2n) ε/d gives δ(x) = 1 - (α^n + e^x
# α^(d+1-n)) / (1+α) = 1 - α^n. With more than 2^30 steps the two profiles differ by less than the
# margin for rounding. If d is rounded down at the same ε, the noise is narrower. The wider noise is
# the narrower one plus a geometric variable, so its loss is smaller.
#
# Among all shifts of a vector with a given L1 norm, the worst is in one coordinate. The most
# powerful tests are thresholds, and 1 - f maps P(X >= j) to P(X >= j - d). Thus 1 - f of a shift of
# d + e steps is that of d after that of e. It bounds a shift of d in one coordinate and e in
# another, by the triangle inequality of trade-off functions [DRS22, Theorem 2.14].

_FINE = 2.0**30
_LARGE = 1000.0  # for larger ε the margin for rounding would not cover the grid


@lru_cache(maxsize=4096)
def laplace_to_tradeoff(epsilon: float, step: float) -> fdp.TradeoffFunction:
    """Return the trade-off function of noise on a grid.

    :param epsilon: shift over scale
    :param step: step of the grid over scale; a shift is a whole number of steps
    """
    if epsilon == 0.0:
        return fdp.TradeoffFunction.identity()
    if isinf(epsilon):
        return fdp.TradeoffFunction.worst()
    if not step < epsilon or epsilon > _LARGE:
        return fdp.TradeoffFunction.pure(epsilon)
    steps = epsilon / step * (1 + 1e-12) if step > 0.0 else inf
    return fdp.TradeoffFunction.laplace(epsilon, inf if steps > _FINE else float(floor(steps)))
