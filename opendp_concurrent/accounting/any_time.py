"""The accumulator ``any_time``: a bound that holds at every time at once.

Let R be the sum of the children's ρ = ε tanh(ε/2), and L the log of the likelihood ratio of the
view. For each order 1 + t the exponential of t (L - (1 + t) R) has mean at most 1 at every stopping
time, because a run that stops at R can be padded to a fixed R [HSTVVXZ23, Theorem 4.11]. So has a
mixture over t that is chosen beforehand; for the half-normal density with scale 1/sqrt(g)

    m(L) = 2 sqrt(g/v) e^(z²/2) Φ(z),    v = 2 R + g,    z = (L - R)/sqrt(v).

The reading is U = sup {L + log(1 - δ' m(L)): δ' m(L) < 1}. Then (1 - e^(U - L))+ <= δ' m(L) for all
L, and its mean is at most δ'. The proof is in ``docs/proofs/rules.rst``.

L + log(1 - δ' m(L)) is concave, because log m is convex. So between two points where it rises and
falls, its maximum is at most the tangent at the first one, at the second one. Doubles choose the
points, brackets show the signs of the slopes and give the value: a bad choice is a larger bound.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache, partial
from math import exp, inf, log, sqrt

import scipy

from .. import _checks as checks
from ..errors import InvalidValueError
from ..numerics import Bracket, Digits, is_nonnegative, largest_double, mills, pi, upper
from .best_rule import Zcdp
from .epsilon_delta import EpsilonDeltaAccumulator, slack

LEAST, MOST = 2.0**-20, 2.0**10  # of the planned ε
_ENOUGH = 1e20  # a larger sum of ρ reads infinity
_LOG_ROOT_TWO_PI = 0.9189385332046727


@checks.tagged("any_time", "planned", slack="delta_slack")
@dataclass(frozen=True, slots=True, repr=False)
class AnyTime(EpsilonDeltaAccumulator):
    """Add up ρ_i = ε_i tanh(ε_i/2), and read the mixture."""

    delta_slack: float
    planned: float

    def cost(self, epsilon: float) -> int:
        """Return units of ε tanh(ε/2), rounded up to a double."""
        return Zcdp(self.delta_slack).cost(epsilon)

    def epsilon(self, spent: float) -> float:
        """Return the reading of a sum of ρ; a sum under zCDP may be read, too."""
        return _reading(checks.non_negative(spent=spent), self.delta_slack, self.scale)

    def largest(self, epsilon: float) -> float:
        """Return the largest double R whose reading is at most ``epsilon``."""
        return _largest(epsilon, self)

    @property
    def scale(self) -> float:
        """Return g, which is fixed by the arguments."""
        return _scale(self.delta_slack, self.planned)


@lru_cache(maxsize=256)
def _scale(delta_slack: float, planned: float) -> float:
    """Return the g that suits the R at which about ``planned`` is read.

    Any g is valid that is the same on all machines, so decimals find it.
    """
    with localcontext(Context(30, ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        log_inverse = -Decimal(delta_slack).ln()
        root = (log_inverse + Decimal(planned)).sqrt() - log_inverse.sqrt()
        width = 2 * log_inverse  # of the equation width = 2 log(1/δ') + log(1 + width)
        for _ in range(20):
            width = 2 * log_inverse + (1 + width).ln()
        return float(2 * root * root / width)


@lru_cache(maxsize=4096)
def _largest(epsilon: float, rule: AnyTime) -> float:
    return largest_double(lambda spent: rule.epsilon(spent) <= epsilon, max(epsilon, 1e-300))


@lru_cache(maxsize=65536)
def _reading(spent: float, delta_slack: float, scale: float) -> float:
    """Return an upper bound on U at R = ``spent``."""
    if spent == 0.0:
        return 0.0
    if not spent < _ENOUGH:
        return inf
    deviation = sqrt(2 * spent + scale)
    middle = spent + deviation * _slope_zero(deviation, delta_slack, scale)
    for step in (2.0**-36, 2.0**-26, 2.0**-13):
        aside = step * max(abs(middle), deviation)
        before, after = (
            _Mixture(point, spent, delta_slack, scale) for point in (middle - aside, middle + aside)
        )
        if is_nonnegative(before.rise) and is_nonnegative(after.fall):
            return max(0.0, upper(partial(before.tangent, loss=after.loss)))
    return inf  # valid, and never seen


def _slope_zero(deviation: float, delta_slack: float, scale: float) -> float:
    """Return z where the slope of L + log(1 - δ' m(L)) is nearly 0."""
    log_deviation = log(deviation)
    log_factor = log(2.0) + log(delta_slack) + log(scale) / 2 - log_deviation  # of e^(z²/2) Φ(z)

    def rises(z: float) -> bool:
        log_value = log_factor + float(scipy.special.log_ndtr(z)) + z * z / 2
        if log_value >= 0.0:
            return False
        slope = exp(log_factor - _LOG_ROOT_TWO_PI) + z * exp(log_value)
        return 1.0 - exp(log_value) >= slope / deviation

    low, high = -1e4, 200.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class _Mixture:
    """δ' m and its slope, at L = ``loss``."""

    loss: float
    spent: float
    delta_slack: float
    scale: float

    def _parts(self, real: Digits) -> tuple[Bracket, Bracket]:
        """Return 1 - δ' m(L), and the slope of δ' m there."""
        variance = 2 * real(self.spent) + real(self.scale)
        deviation = variance.sqrt()
        z = (real(self.loss) - real(self.spent)) / deviation
        density = 1 / (2 * real.between(*pi(real.number))).sqrt()  # φ(0)
        factor = 2 * real(self.delta_slack) * (real(self.scale) / variance).sqrt() * density
        ratio = mills(-z)  # Φ(z)/φ(z), with slope 1 + z Φ(z)/φ(z)
        return 1 - factor * ratio, factor * (1 + z * ratio) / deviation

    def rise(self, real: Digits) -> Bracket:
        """Return a number that is nonnegative only where the maximum is not further left."""
        rest, slope = self._parts(real)
        return rest - slope

    def fall(self, real: Digits) -> Bracket:
        """Return a number that is nonnegative only where the maximum is not further right."""
        return -self.rise(real)

    def tangent(self, real: Digits, loss: float) -> Bracket:
        """Return the tangent of L + log(1 - δ' m(L)), at ``loss``."""
        rest, slope = self._parts(real)
        return real(self.loss) + rest.ln() + (1 - slope / rest) * (real(loss) - real(self.loss))


@checks.sent(AnyTime)
def any_time(delta_slack: float, planned: float = 1.0) -> AnyTime:
    """Add up (ε, δ) losses to a bound that holds whenever one stops.

    The other accumulators with a slack read a loss that holds at a time which is fixed beforehand,
    such as after the 100th launch, or at the bound of a filter. This one holds also at a time that
    the answers choose, such as the first at which a result looks good: an odometer may be read
    after each launch, and stopped at any of them. After launches with (ε_i, δ_i) the loss is
    (U(R), δ' + sum of δ_i) with R = sum of ε_i tanh(ε_i/2) and δ' = ``delta_slack``, and (0, 0)
    before anything is spent. Combine it with ``basic()`` by ``either``, which costs nothing and
    holds at any time, too; with another rule the reading is one for a fixed time. The price, at
    launches of .01 and δ' = 1e-6: 431 launches until it reads 1, and 487 under ``zcdp``.

    It is valid for concurrent children with adaptively chosen losses, under finite communication:
    a mixture of e-values, derived from [HSTVVXZ23, Theorem 4.11] and [Ste24], with its proof in
    ``docs/proofs/rules.rst``. As a filter it may be stopped and read at any time. A sum of ρ under
    zCDP is read by ``any_time(...).epsilon(rho)``.

    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :param planned: the ε near which the reading is to be least, in [2^-20, 1024], fixed beforehand
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.any_time(delta_slack=1e-6)
    >>> oc.accumulators.either(oc.accumulators.basic(), rule).start().after((0.01, 0.0), 431).loss
    (0.99..., 1e-06)
    >>> rule.epsilon(0.02)
    0.96...
    """
    plan = checks.positive(planned=planned)
    if not LEAST <= plan <= MOST:
        raise InvalidValueError(
            f"planned ({plan}) must be between {LEAST} and {MOST:g}; pass the epsilon near which "
            "you plan to stop"
        )
    return AnyTime(slack(delta_slack), plan)
