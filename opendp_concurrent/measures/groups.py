"""Group privacy: the loss between the ends of a path of datasets, from the loss of each step.

All steps have the same loss. Pure DP: likelihood ratios multiply. zCDP: [BS16, Proposition 27]. (ε,
δ)-DP: each step adds δ and multiplies what came before by e^ε. Gaussian DP and f-DP: [DRS22,
Theorem 2.14], in the classes of these measures.
"""

from __future__ import annotations

from ..exact.bracket import Bracket, Digits, lower, upper
from ..exact.rounding import from_units_down, from_units_up, to_units


def times_up(loss: float, factor: int) -> float:
    """Return ``factor`` times the loss, rounded up."""
    return from_units_up(to_units(loss) * factor)


def divided_down(d_out: float, factor: int) -> float:
    """Return the largest double of which ``factor`` times is at most ``d_out``."""
    return from_units_down(to_units(d_out) // factor)


def approximate_group(loss: tuple[float, float], size: int) -> tuple[float, float]:
    """Return (k ε, δ (1 + e^ε + ... + e^((k-1) ε))), rounded up."""
    epsilon, delta = loss
    if size == 1:
        return loss
    if delta == 0.0:
        return times_up(epsilon, size), 0.0
    return times_up(epsilon, size), upper(
        lambda digits: digits(delta) * _sum(digits, epsilon, size)
    )


def approximate_member(d_out: tuple[float, float], size: int) -> tuple[float, float]:
    """Return (ε, δ) whose group of ``size`` is within ``d_out``, rounded down."""
    epsilon, delta = divided_down(d_out[0], size), d_out[1]
    if delta == 0.0 or size == 1:
        return epsilon, delta
    return epsilon, lower(lambda digits: digits(delta) / _sum(digits, epsilon, size))


def _sum(digits: Digits, epsilon: float, size: int) -> Bracket:
    """Return 1 + e^ε + ... + e^((size-1) ε)."""
    ratio = digits(epsilon).exp()
    found, power = digits(1.0), ratio  # of one term, and e^ε to the number of terms
    for bit in f"{size:b}"[1:]:  # doubled for each digit, since sizes may have 63 of them
        found, power = found * (power + 1.0), power * power
        if bit == "1":
            found, power = found * ratio + 1.0, power * ratio
    return found
