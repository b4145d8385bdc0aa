"""Tools for truncated concentrated DP: subsampling, groups, bad events, mutual information."""

from __future__ import annotations

from math import inf, log, sqrt

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.bracket import Bracket, Digits, lower, upper
from ..types import Argument
from .distances import TruncatedConcentrated


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
    loss = _loss(loss)
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
    loss, k = _loss(loss), checks.count(size=size)
    if not k < loss.omega:
        raise InvalidValueError(f"size ({k}) must be below loss.omega ({loss.omega})")
    rho = 0.0 if loss.rho == 0.0 else upper(lambda real: real(k * k) * real(loss.rho))
    if loss.omega == inf:
        return TruncatedConcentrated(rho, inf)
    return TruncatedConcentrated(rho, lower(lambda real: real(loss.omega) / real(k)))


def bad_event_probability(loss: TruncatedConcentrated, probability: float) -> float:
    """Bound an event's probability, given its ``probability`` on a neighbouring dataset.

    P(S) <= (e^(D_α(P||Q)) Q(S))^((α-1)/α) [Mir17, Proposition 10], with D_α <= ρ α and the best
    α < ω, which is sqrt(log(1/q)/ρ).

    :param loss: loss of the mechanism
    :param probability: q = Q(S), in [0, 1]
    :return: an upper bound on P(S), rounded up
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.measures.bad_event_probability(oc.TruncatedConcentrated(rho=0.5), 1e-10)
    5.37076436...e-08
    """
    loss, q = _loss(loss), checks.probability(probability=probability)
    if q in (0.0, 1.0) or loss.rho == 0.0:
        return q
    if loss.rho == inf:
        return 1.0
    alpha = min(sqrt(-log(q) / loss.rho), 1e150, loss.omega)
    if not alpha > 1.0:
        return 1.0

    def bound(real: Digits) -> Bracket:
        a = real(alpha)
        return ((a - 1) * real(loss.rho) + (1 - 1 / a) * real(q).ln()).exp()

    return min(1.0, upper(bound))


def mutual_information(
    loss: TruncatedConcentrated, records: int, *, independent: bool = False
) -> float:
    """Bound the mutual information of the data and the whole interaction, in nats.

    The bound is ρ n² for any distribution of the n records, if ω > n. It is ρ n for independent
    records, if ω > 1 [BS16, Proposition 1.8 and Theorem 1.9 for zCDP]. Divide by log(2) for bits.

    :param loss: loss of the mechanism
    :param records: n
    :param independent: whether the records are independent
    :return: an upper bound, rounded up
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> loss = oc.TruncatedConcentrated(rho=0.125)
    >>> oc.measures.mutual_information(loss, 10)
    12.5
    >>> oc.measures.mutual_information(loss, 10, independent=True)
    1.25
    """
    loss, n = _loss(loss), checks.count(records=records)
    checks.flag(independent=independent)
    if not independent and not loss.omega > n:
        raise InvalidValueError(
            f"loss.omega ({loss.omega}) must be above records ({n}) unless they are independent"
        )
    if loss.rho in (0.0, inf):
        return loss.rho
    return upper(lambda real: real(loss.rho) * real(n if independent else n * n))


def _loss(value: Argument) -> TruncatedConcentrated:
    if not isinstance(value, TruncatedConcentrated):
        raise InvalidTypeError(
            f"loss must be TruncatedConcentrated(rho, omega), found {type(value).__name__}"
        )
    return value
