"""The accumulator ``either``: several rules at once, with their slacks added.

Rules that are each valid at their own δ are jointly valid at the sum of these δ. They are not
jointly valid at an undivided δ. The proof is in ``epsilon_delta_sum``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..arguments.checks import elements, shown
from ..arguments.written import sent, written
from ..errors import InvalidTypeError
from .epsilon_delta_sum import EpsilonDeltaAccounting, EpsilonRule


@written("either", "rules")
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
        parts += rule.parts()
    return tuple(parts)


def either(*rules: Any) -> Either:
    """Add up (ε, δ) losses under several rules, and use the rule with the least ε.

    The loss is the least ε of the rules. Its δ is the sum of all slacks and of the δ of the
    launches. Before anything is spent the loss is (0, 0). ``basic()`` has no slack, so adding it is
    free. A filter admits a launch if one of the rules does. ``either`` is valid where every rule is
    valid; ``accumulators/epsilon_delta_sum.py`` has the proof. One shared slack is not valid.

    :param rules: at least two accumulators for (ε, δ)-DP, such as ``basic()`` and ``zcdp(1e-7)``
    :return: an accumulator for ``make_concurrent_odometer``
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
        if not callable(getattr(type(rule), "parts", None)):
            raise InvalidTypeError(
                f"rules[{index}] must be an accumulator for (epsilon, delta) such as "
                f"oc.accumulators.basic() or oc.accumulators.zcdp(1e-7), found {shown(rule)}"
            )
    return Either(tuple(rules))


@sent(Either)
def either_of(rules: Any) -> Either:
    """Return the accumulator that combines several rules, as a message names them."""
    return either(*elements("accumulators", rules=rules))
