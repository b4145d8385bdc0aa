"""Conversion of (ε, δ)-DP to (ε', δ') with a smaller ε' or a larger δ', by randomized response.

Every (ε, δ)-DP mechanism is, for two neighbours, a postprocessing of randomized response that
fails with probability δ [KOV15, Theorem 3.3]. Its δ at ε' <= ε is therefore at most

    1 - (1 - δ) (1 + e^ε') / (1 + e^ε).
"""

from __future__ import annotations

from functools import lru_cache
from math import inf

from ...errors import InvalidValueError
from ...exact.bracket import Bracket, Digits, double_up, evaluate
from ..conversion import Ends


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

    def at_smaller(real: Digits) -> Bracket:
        e, s = real(epsilon), real(smaller)
        return 1 - (1 - real(delta)) * ((-e).exp() + (s - e).exp()) / (1 + (-e).exp())

    return min(1.0, double_up(evaluate(at_smaller).upper))


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

    def at_larger(real: Digits) -> Bracket:
        e = real(epsilon)
        scaled = (1 - real(larger)) / (1 - real(delta)) * (1 + (-e).exp()) - (-e).exp()
        return e + scaled.ln()  # e^ε' = scaled e^ε

    return min(epsilon, max(0.0, double_up(evaluate(at_larger).upper)))


def larger_delta(loss: tuple[float, float], ends: Ends) -> tuple[float, float]:
    """Return the loss at the target's δ, or the loss itself if the target has no δ."""
    epsilon, delta = loss
    if ends.delta is None or epsilon == 0.0:
        return loss
    if not ends.delta >= delta:
        raise InvalidValueError(
            f"delta ({ends.delta}) must be at least the delta of the measurement ({delta})"
        )
    return approximate_to_epsilon(epsilon, delta, ends.delta), ends.delta
