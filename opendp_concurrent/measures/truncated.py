"""Truncated concentrated DP: its distance (ρ, ω), the sum of losses, the measure, and tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nan
from types import MappingProxyType
from typing import Any

from .. import _checks as checks
from ..errors import Argument, InvalidTypeError, InvalidValueError, Loss
from ..numerics import Bracket, Digits, lower, split, upper, zcdp_to_delta, zcdp_to_epsilon
from . import opendp as native
from .conversion import Conversion, Ends, at_delta, at_epsilon, pure_to_zcdp, zcdp_to_renyi
from .measure import AccumulatorState, Composability, CompositionMeasure, Parametrised
from .shapes import ScalarSum, join_numbers

above_one = checks.number.narrowed(
    lambda omega: omega > 1.0, "be above 1; it is the end of the orders", 1.0, -inf, nan
)


@checks.tagged("tcdp", "rho", "omega")
@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class TruncatedConcentrated:
    """A distance: Rényi divergence at most ρ α for every order α in (1, ω).

    Partially ordered: at most another one if ρ is at most, and ω at least, the other's.

    :ivar rho: at least 0
    :ivar omega: above 1; infinite for zero-concentrated DP
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> loss = oc.TruncatedConcentrated(rho=0.1, omega=20.0)
    >>> loss <= oc.TruncatedConcentrated(rho=0.2, omega=10.0)
    True
    >>> loss <= oc.TruncatedConcentrated(rho=0.2, omega=30.0)
    False
    """

    rho: float
    omega: float = inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.non_negative(rho=self.rho))
        object.__setattr__(self, "omega", above_one(omega=self.omega))

    def __le__(self, other: TruncatedConcentrated) -> bool:
        if not isinstance(other, TruncatedConcentrated):
            return NotImplemented
        return self.rho <= other.rho and self.omega >= other.omega

    def __lt__(self, other: TruncatedConcentrated) -> bool:
        at_most = self.__le__(other)
        return at_most if at_most is NotImplemented else at_most and self != other


checks.sent(TruncatedConcentrated, "TruncatedConcentrated")(TruncatedConcentrated)


# The sum of the ρ and the least of the ω, for truncated concentrated DP.
#
# Fixed parameters: [LW22, Corollary 1] is for equal ω. With the least ω of all, each child is
# (ρ_i, ω)-tCDP. Adaptive: for each order α in (1, ω) the sum of the ρ_i α is a valid accumulator
# [HSTVVXZ23, Theorem 4.6], so a filter on ρ is valid for children whose ω is large enough.


@dataclass(frozen=True, slots=True)
class TruncatedSum(AccumulatorState[TruncatedConcentrated]):
    """Exact sum of ρ, and least ω."""

    rho: ScalarSum = field(default_factory=ScalarSum)
    omega: float = inf

    @property
    def loss(self) -> TruncatedConcentrated:
        """The sum, rounded up once, with the least ω."""
        return TruncatedConcentrated(self.rho.loss, self.omega)

    def after(self, d_mid: TruncatedConcentrated, count: int = 1) -> TruncatedSum:
        """Add ``count`` times the ρ of ``d_mid``; its ω counts once."""
        if not isinstance(d_mid, TruncatedConcentrated):
            raise InvalidTypeError(
                f"d_mid must be TruncatedConcentrated(rho, omega), found {d_mid!r}"
            )
        return TruncatedSum(self.rho.after(d_mid.rho, count), min(self.omega, d_mid.omega))

    def within(self, d_out: TruncatedConcentrated) -> bool:
        """Return whether the sum is at most the ρ of ``d_out``, and ω at least its ω."""
        return self.rho.within(d_out.rho) and self.omega >= d_out.omega

    def remaining(self, d_out: TruncatedConcentrated) -> TruncatedConcentrated:
        """Return the largest distance that can still be spent."""
        return TruncatedConcentrated(self.rho.remaining(d_out.rho), d_out.omega)

    def to_record(self) -> list[str | None]:
        """The exact sum, and ω in hexadecimal."""
        return [self.rho.to_record(), self.omega.hex()]

    @classmethod
    def from_record(cls, record: list[str | None]) -> TruncatedSum:
        """Inverse of :meth:`to_record`."""
        rho, omega = record
        return cls(ScalarSum.from_record(rho), float.fromhex(str(omega)))


# Truncated concentrated DP: the distance is (ρ, ω), and smaller is a smaller ρ or a larger ω.


@checks.recorded
def truncated_concentrated_divergence(omega: float) -> native.Measure:
    """Truncated concentrated DP for orders up to ``omega`` at least; distances have ρ and their ω.

    A distance is a :class:`.TruncatedConcentrated`; a number ρ stands for (ρ, ``omega``). The ρ of
    launches add up, and the least of their ω counts [BDRS18, Lemma 8], [LW22, Corollary 1]; for
    adaptively chosen losses by [HSTVVXZ23, Theorem 4.6] at every order.

    Required features: `honest-but-curious`

    :param omega: above 1; infinite for zero-concentrated DP
    :return: a measure
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.TruncatedConcentrated(rho=0.1, omega=20.0) <= oc.TruncatedConcentrated(0.2, omega=10.0)
    True
    >>> oc.truncated_concentrated_divergence(omega=10.0)
    TruncatedConcentratedDivergence(omega=10.0)
    """
    return native.user_divergence(native.TRUNCATED, omega=above_one(omega=omega))


def _below(omega: float, ends: Ends) -> float:
    alpha: float = ends.target.alpha
    if not alpha < omega:
        raise InvalidValueError(f"alpha ({alpha}) must be below omega ({omega})")
    return alpha


def _truncate(loss: TruncatedConcentrated, ends: Ends) -> TruncatedConcentrated:
    if not loss.omega >= ends.target.omega:
        raise InvalidValueError(
            f"omega ({ends.target.omega}) must be at most the omega of the measurement "
            f"({loss.omega})"
        )
    return TruncatedConcentrated(loss.rho, ends.target.omega)


@dataclass(frozen=True, slots=True)
class TruncatedConcentratedDivergence(
    Parametrised[TruncatedConcentrated], CompositionMeasure[TruncatedConcentrated]
):
    """Truncated concentrated DP: ρ adds up, and the least ω counts."""

    omega: float

    kind = native.TRUNCATED
    tag = "tcdp"
    parameter, guard, written = "omega", above_one, "omega"
    zero = TruncatedConcentrated(0.0, inf)
    total = TruncatedSum
    composability = Composability.CONCURRENT
    reason = f"{checks.cite('LW22', 'Corollary 1')} and {checks.cite('HSTVVXZ23', 'Theorem 4.6')}"
    distance_form = "TruncatedConcentrated(rho, omega)"
    noise = native.Noise.GAUSSIAN
    keywords = MappingProxyType({"rho": checks.non_negative, "omega": above_one})
    why_not = "its orders end at omega"
    read_from = (native.ZCDP,)
    conversions_from = MappingProxyType(
        {
            native.PURE: Conversion(
                lambda d, ends: TruncatedConcentrated(pure_to_zcdp(d), ends.target.omega)
            ),
            native.ZCDP: Conversion(lambda d, ends: TruncatedConcentrated(d, ends.target.omega)),
        }
    )
    conversions_to = MappingProxyType(
        {
            native.TRUNCATED: Conversion(_truncate),
            native.FIXED: Conversion(lambda d, ends: zcdp_to_renyi(d.rho, _below(d.omega, ends))),
            native.APPROXIMATE: at_delta(
                lambda d, delta, ends: zcdp_to_epsilon(d.rho, delta, d.omega)
            ),
            native.PROFILE: at_epsilon(lambda d, e, ends: zcdp_to_delta(d.rho, e, d.omega)),
        }
    )

    def opendp(self) -> native.Measure:
        return truncated_concentrated_divergence(self.omega)

    def validate(self, name: str, value: Argument) -> TruncatedConcentrated:
        """Return a distance whose ω is large enough; a number is a ρ."""
        if isinstance(value, (int, float)):
            return TruncatedConcentrated(checks.non_negative(**{name: value}), self.omega)
        if not isinstance(value, TruncatedConcentrated):
            raise InvalidTypeError(
                f"{name} must be a number rho or TruncatedConcentrated(rho, omega), "
                f"found {type(value).__name__}"
            )
        if not value.omega >= self.omega:
            raise InvalidValueError(
                f"{name}.omega ({value.omega}) must be at least the {self.omega} of the measure"
            )
        return TruncatedConcentrated(value.rho, value.omega)  # a copy that nobody else can change

    def validate_budget(self, name: str, value: Argument) -> TruncatedConcentrated:
        """As ``validate``, with a finite ρ."""
        distance = self.validate(name, value)
        checks.finite(**{f"{name}.rho": distance.rho})
        return distance

    def at_most(self, left: TruncatedConcentrated, right: TruncatedConcentrated) -> bool:
        """A smaller ρ and a larger ω."""
        return left <= right

    def split(
        self, d_out: TruncatedConcentrated, weights: list[Fraction]
    ) -> list[TruncatedConcentrated]:
        """Shares of ρ."""
        return [TruncatedConcentrated(rho, d_out.omega) for rho in split(d_out.rho, weights)]

    def join(
        self, losses: list[list[TruncatedConcentrated]], parts: Sequence[int]
    ) -> TruncatedConcentrated:
        """The largest sum of ρ, with the least ω."""
        rho = join_numbers([[loss.rho for loss in row] for row in losses], parts)
        return TruncatedConcentrated(rho, min(loss.omega for row in losses for loss in row))

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, TruncatedConcentrated]:
        measure = truncated_concentrated_divergence(given["omega"])
        return measure, TruncatedConcentrated(given["rho"], given["omega"])

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, TruncatedConcentrated)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        rho: float = checks.instance(TruncatedConcentrated)(**{of: loss}).rho
        return rho

    @classmethod
    def symbol(cls, loss: Loss | None, order: float | None) -> str:
        return "ρ"


# Tools for truncated concentrated DP: subsampling and groups.

_AS_LOSS = checks.instance(TruncatedConcentrated)


def subsampled_tcdp(
    loss: TruncatedConcentrated, sample_size: int, population: int
) -> TruncatedConcentrated:
    """Return the loss of a tCDP mechanism on a uniform sample: subsampling [BDRS18].

    Let ρ and s = n/N be in (0, 1/10], and let a mechanism be (ρ, ω')-tCDP with
    ω' >= log(1/s)/(2ρ) >= 3. Run on n of N records, chosen uniformly without replacement, it is
    (13 s² ρ, log(1/s)/(4ρ))-tCDP. Neighbours differ in one record that is replaced by another. Each
    condition is checked. The constants 13 and 4 are those of the source; the tests compare them
    with exact subsampled Gaussians. Both log(1/s)/(2ρ) >= 3 and
    log(1/s) >= 3 ρ (2 + log2(1/ρ)) hold for all such ρ and s.

    :param loss: loss of the mechanism on samples
    :param sample_size: n
    :param population: N
    :return: the loss of the mechanism on a random sample
    :raises InvalidTypeError, InvalidValueError: naming the argument or the condition

    :example:

    >>> oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(rho=0.1), 1_000, 1_000_000)
    TruncatedConcentrated(rho=1.3...e-06, omega=17.26...)
    """
    loss = _AS_LOSS(loss=loss)
    n, whole = checks.count(sample_size=sample_size), checks.count(population=population)
    if not 10 * n <= whole:
        raise InvalidValueError(
            f"sample_size ({n}) must be at most a tenth of population ({whole})"
        )
    if not 0.0 < loss.rho <= 0.1:
        raise InvalidValueError(f"loss.rho ({loss.rho}) must be above 0 and at most 0.1")

    def log_inverse(real: Digits) -> Bracket:
        return (real(whole) / real(n)).ln()

    needed = upper(lambda real: log_inverse(real) / (2 * real(loss.rho)))
    if not loss.omega >= needed:
        raise InvalidValueError(
            f"loss.omega ({loss.omega}) must be at least log(1/s)/(2 rho) = {needed}"
        )

    def amplified(real: Digits) -> Bracket:
        s = real(n) / real(whole)
        return 13 * s * s * real(loss.rho)

    omega = lower(lambda real: log_inverse(real) / (4 * real(loss.rho)))
    return TruncatedConcentrated(upper(amplified), omega)


def group_tcdp(loss: TruncatedConcentrated, size: int) -> TruncatedConcentrated:
    """Return the loss for groups of ``size`` records: (k² ρ, ω/k) [BDRS18].

    The proof is by induction with D_α(P||Q) <= kα/(kα-1) D_((kα-1)/(k-1))(P||R) + D_(kα)(R||Q).

    :param loss: loss for one record
    :param size: k, at least 1 and below ω
    :return: the loss for a group
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.measures.group_tcdp(oc.TruncatedConcentrated(rho=0.25, omega=32.0), 4)
    TruncatedConcentrated(rho=4.0, omega=8.0)
    """
    loss, k = _AS_LOSS(loss=loss), checks.count(size=size)
    if not k < loss.omega:
        raise InvalidValueError(f"size ({k}) must be below loss.omega ({loss.omega})")
    rho = 0.0 if loss.rho == 0.0 else upper(lambda real: real(k * k) * real(loss.rho))
    if loss.omega == inf:
        return TruncatedConcentrated(rho, inf)
    return TruncatedConcentrated(rho, lower(lambda real: real(loss.omega) / real(k)))
