"""Tools for truncated concentrated DP: subsampling and groups."""

from __future__ import annotations

from math import inf

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


def _loss(value: Argument) -> TruncatedConcentrated:
    if not isinstance(value, TruncatedConcentrated):
        raise InvalidTypeError(
            f"loss must be TruncatedConcentrated(rho, omega), found {type(value).__name__}"
        )
    return value
