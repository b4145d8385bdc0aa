"""Several rules at once: go on while one of them would, with their slacks added.

Rules that are each valid at their own δ are together valid at the sum of these; at an undivided δ
they are not. The proof is in ``epsilon_delta_sum``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..checks import shown
from ..errors import InvalidTypeError
from ..exact.rounding import from_units_up, to_units
from .basic import Basic
from .epsilon_delta_sum import EpsilonDeltaAccounting, EpsilonRule


@dataclass(frozen=True, slots=True)
class PlainSum:
    """Basic composition as one of the rules: adds up ε, and needs no slack."""

    delta_slack: float = 0.0

    def cost(self, epsilon: float) -> int:
        """ε, exactly."""
        return to_units(epsilon)

    def spent(self, units: float) -> float:
        """Least double at or above the sum."""
        return from_units_up(int(units))

    def epsilon(self, spent: float) -> float:
        """The sum itself."""
        return spent

    def largest(self, epsilon: float) -> float:
        """The bound itself."""
        return epsilon


@dataclass(frozen=True, slots=True)
class Either(EpsilonDeltaAccounting):
    """The least ε of several rules."""

    rules: tuple[Any, ...]

    def parts(self) -> tuple[EpsilonRule, ...]:
        """All rules."""
        return _parts(self.rules)

    def __repr__(self) -> str:
        return f"either({', '.join(map(repr, self.rules))})"


@lru_cache(maxsize=1024)
def _parts(rules: tuple[Any, ...]) -> tuple[EpsilonRule, ...]:
    parts: list[EpsilonRule] = []
    for rule in rules:
        parts += [PlainSum()] if isinstance(rule, Basic) else rule.parts()
    return tuple(parts)


def either(*rules: Any) -> Either:
    """Account for (ε, δ)-DP by whichever of several rules is best in the end.

    The loss is the least ε of the rules, with δ the sum of all their slacks and of the δ of the
    launches; and (0, 0) before anything is spent. ``basic()`` has no slack, so adding it is free. A
    filter goes on while one of the rules would. Valid where each of the rules is: derived in
    ``accumulators/epsilon_delta_sum.py``. With the same slack counted once it would not be valid.

    :param rules: at least two accountings for (ε, δ)-DP, such as ``basic()`` and ``zcdp(1e-7)``
    :return: an accounting, for the ``accumulator`` argument of ``make_concurrent_odometer``
    :raises InvalidTypeError: naming the argument

    :example:

    >>> rules = oc.accumulators.basic(), oc.accumulators.zcdp(1e-6)
    >>> losses = oc.accumulators.either(*rules).start()
    >>> losses.after((0.125, 0.0), 4).loss
    (0.5, 1e-06)
    >>> losses.after((0.1, 0.0), 1000).loss
    (20.5..., 1e-06)
    """
    if len(rules) < 2:
        raise InvalidTypeError(f"rules must be at least two, found {len(rules)}")
    for index, rule in enumerate(rules):
        if not isinstance(rule, (Basic, EpsilonDeltaAccounting)):
            raise InvalidTypeError(
                f"rules[{index}] must be an accounting for (epsilon, delta) such as "
                f"oc.accumulators.basic() or oc.accumulators.zcdp(1e-7), found {shown(rule)}"
            )
    return Either(tuple(rules))
