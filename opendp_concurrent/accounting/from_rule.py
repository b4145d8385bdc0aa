"""An accumulator from a continuation rule, by inversion: Lemma 2.19 of [HSTVVXZ23].

Distances must be totally ordered. Let F(.; d) be a family of rules, one for each bound d, and let
the accumulator G be the least d for which F still continues. Then F(.; d) continues exactly while
G is at most d, so odometer and filter cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .. import _checks as checks
from ..errors import InvalidTypeError, Json, Loss, State
from ..measures import AccumulatorState, CompositionMeasure, times
from ..numerics import largest_double, least_double


class RuleFamily(Protocol):
    """A continuation rule for every bound. Its state summarises the launches so far."""

    @property
    def start(self) -> State:
        """Return the state before the first launch; the rule continues on it at every bound."""

    def after(self, state: State, d_mid: float) -> State:
        """Return the state after one more launch, as a new value."""

    def continues(self, state: State, d_out: float) -> bool:
        """Return whether the launches so far are within ``d_out``; monotone in ``d_out``."""


@dataclass(frozen=True, slots=True)
class Inverted(AccumulatorState):
    """The least bound at which the rule continues."""

    rule: RuleFamily
    state: State

    @property
    def loss(self) -> float:
        """Return the least double at which the rule continues; infinity if there is none."""
        return least_double(self.within)

    def after(self, d_mid: Loss, count: int = 1) -> Inverted:
        """Add ``d_mid`` to the state ``count`` times, one at a time: a rule has no shortcut."""
        d_mid, state = checks.non_negative(d_mid=d_mid), self.state
        for _ in range(times(count)):
            state = self.rule.after(state, d_mid)
        return Inverted(self.rule, state)

    def within(self, d_out: float) -> bool:
        """Return whether the rule continues at ``d_out``."""
        return bool(self.rule.continues(self.state, d_out))

    def remaining(self, d_out: float) -> float:
        """Return the largest double that may still be launched, or 0 if there is none."""
        return largest_double(lambda d_mid: self.after(d_mid).within(d_out), near=d_out)

    def to_record(self) -> Json:
        """Refuse: the state is the rule's own."""
        raise InvalidTypeError("a rule of your own has no exact record")


@dataclass(frozen=True, slots=True)
class FromRule:
    """The accumulator of a continuation rule."""

    rule: RuleFamily

    made_for = "measures whose distance is one number"

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure's distance is one number."""
        return bool(measure.one_number)

    def start(self, measure: CompositionMeasure | None = None) -> Inverted:
        """Return the state before the first launch."""
        return Inverted(self.rule, self.rule.start)

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> Inverted:
        """Refuse: the state is the rule's own."""
        raise InvalidTypeError("a rule of your own has no exact record")

    def __repr__(self) -> str:
        return f"from_rule({self.rule!r})"


def from_rule(rule: RuleFamily) -> FromRule:
    """Make an accumulator from your own continuation rule, for measures with one-number distances.

    The loss is the least bound at which the rule continues [HSTVVXZ23, Lemma 2.19]. The accumulator
    is valid exactly when the rule is a valid filter at every bound. You must prove this.

    :param rule: has ``start``, a state; ``after(state, d_mid)``, the next state; and
        ``continues(state, d_out)``, monotone in ``d_out``, which stays false once it is false
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError: naming the argument

    :example:

    >>> from fractions import Fraction
    >>> class Sum:
    ...     start = Fraction(0)
    ...     def after(self, state, d_mid):
    ...         return state + Fraction(d_mid)
    ...     def continues(self, state, d_out):
    ...         return state <= d_out
    >>> oc.accumulators.from_rule(Sum()).start().after(0.25).after(0.5).loss
    0.75
    """
    for name in ("start", "after", "continues"):
        try:
            known = hasattr(rule, name)
        except Exception:  # raised by the user's rule
            known = False
        if not known:
            raise InvalidTypeError(
                f"rule must have start, after and continues; {type(rule).__name__} has no "
                f"{name}; define it"
            )
    return FromRule(rule)
