"""Continuation rules (the papers' F), which decide whether a d_mid may be launched.

A filter's rule follows from its accumulator (Lemma 2.19 of [HSTVVXZ23]): admit a launch exactly if
the accumulator's loss after it is at most d_out. So no filter has a rule of its own.

``from_rule`` is the inverse. Let F(.; d) be a family of rules, one for each bound d, and let the
accumulator G be the least d for which F still continues. Then F(.; d) continues exactly while G is
at most d, so odometer and filter cannot disagree. There is a least d where distances are totally
ordered. Others are read along a family of distances that are, such as (ε, 1e-6) for all ε: on it, G
is the least one at which F continues. A filter asks F itself, at any d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, ulp
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from .. import _checks as checks
from ..errors import BudgetExceededError, D, InvalidTypeError, Json, shown
from ..measures import AccumulatorState, Composability, CompositionMeasure, Planned, times
from ..numerics import largest_double, least_double

A = TypeVar("A")  # the accumulators that a rule is made for


class ContinuationRule(Protocol[A]):
    """A rule that admits or refuses one launch, from public numbers only.

    :cvar kind: name of what enforces this rule
    """

    kind: ClassVar[str]

    def admits(self, accumulator: A, d_mid: Any) -> A | BudgetExceededError:
        """Return the accumulator after the launch, or the refusal with its values."""

    def remaining(self, accumulator: A) -> Any:
        """Return what may still be spent."""


@dataclass(frozen=True, slots=True)
class Unlimited:
    """The rule of an odometer: every launch is admitted."""

    kind: ClassVar[str] = "odometer"

    def admits(self, accumulator: AccumulatorState[D], d_mid: D) -> AccumulatorState[D]:
        """Admit every launch."""
        return accumulator.after(d_mid, 1)

    def remaining(self, accumulator: AccumulatorState[Any]) -> None:
        """Return None: nothing bounds an odometer."""


@dataclass(frozen=True, slots=True)
class Within(Generic[D]):
    """The rule of a filter: the loss after each launch is at most ``d_out``.

    :ivar exactly: the bound as it was typed, which ``d_out`` is rounded up from; None for a double
    """

    kind: ClassVar[str] = "filter"
    d_out: D
    exactly: D | None = None

    def admits(
        self, accumulator: AccumulatorState[D], d_mid: D, count: int = 1
    ) -> AccumulatorState[D] | BudgetExceededError:
        """Admit ``count`` launches when the loss afterwards is at most ``d_out``.

        It is then at most ``d_out`` after each of the launches: a loss never falls.
        """
        after = accumulator.after(d_mid, count)
        if after.within(self.d_out if self.exactly is None else self.exactly):
            return after
        asked, left = accumulator.read(d_mid), self.remaining(accumulator)
        return BudgetExceededError(accumulator.loss, asked, left, d_out=self.d_out)

    def remaining(self, accumulator: AccumulatorState[D]) -> Any:
        """Return the largest d_mid that would be admitted.

        What is below the last place of d_out is 0: so nothing remains after ten launches of a
        tenth, each of which was rounded down.
        """
        left = accumulator.remaining(self.d_out if self.exactly is None else self.exactly)
        return _without_dust(left, self.d_out)


def _without_dust(left: Any, d_out: Any) -> Any:
    if type(left) is tuple and type(d_out) is tuple:
        return tuple(map(_without_dust, left, d_out))
    numbers = type(left) is type(d_out) is float
    return 0.0 if numbers and left < ulp(d_out) < inf else left


@dataclass(frozen=True, slots=True)
class Shares(Generic[D]):
    """The rule of a compositor: each d_mid is at most the next share, all fixed in advance."""

    kind: ClassVar[str] = "compositor"
    at_most: Callable[[D, D], bool]

    def admits(self, accumulator: Planned[D], d_mid: D) -> Planned[D] | BudgetExceededError:
        """Admit when ``d_mid`` is at most the next share."""
        d_mid, used = accumulator.read(d_mid), accumulator.consumed
        shares = accumulator.d_mids
        if used < len(shares) and self.at_most(d_mid, shares[used]):
            return accumulator.after(d_mid)
        return BudgetExceededError(
            accumulator.loss, d_mid, accumulator.remaining(), shares=len(shares)
        )

    def remaining(self, accumulator: Planned[D]) -> tuple[D, ...]:
        """Return the shares that are left."""
        return accumulator.remaining()


# An accumulator from a rule, by inversion.

L = TypeVar("L", contravariant=True)  # the losses that it takes
S = TypeVar("S")  # the states of a rule


class RuleFamily(Protocol[S, L]):
    """A continuation rule for every bound. Its state summarises the launches so far."""

    @property
    def start(self) -> S:
        """Return the state before the first launch; the rule continues on it at every bound."""

    def after(self, state: S, d_mid: L) -> S:
        """Return the state after one more launch, as a new value."""

    def continues(self, state: S, d_out: L) -> bool:
        """Return whether the launches so far are within ``d_out``; monotone in ``d_out``."""


@dataclass(frozen=True, slots=True)
class Inverted(AccumulatorState[D]):
    """The least bound at which the rule continues.

    :ivar measure: of the distances; None for numbers
    :ivar along: distances along which the loss is read; None for numbers
    """

    rule: RuleFamily[Any, D]
    state: Any
    measure: CompositionMeasure[D] | None = None
    along: Callable[[float], D] | None = None

    def _distance(self, number: float) -> Any:
        if self.measure is None or self.along is None:
            return number
        return self.measure.validate("along", self.along(number))

    @property
    def loss(self) -> Any:
        """Return the least distance at which the rule continues; that of infinity if none is."""
        if self.measure is not None and self.within(self.measure.zero):
            return self.measure.zero
        return self._distance(least_double(lambda number: self.within(self._distance(number))))

    def after(self, d_mid: D, count: int = 1) -> Inverted[D]:
        """Add ``d_mid`` to the state ``count`` times, one at a time: a rule has no shortcut."""
        if self.measure is None:
            valid: Any = checks.non_negative(d_mid=d_mid)
        else:
            valid = self.measure.validate("d_mid", d_mid)
        state = self.state
        for _ in range(times(count)):
            state = self.rule.after(state, valid)
        return replace(self, state=state)

    def within(self, d_out: D) -> bool:
        """Return whether the rule continues at ``d_out``."""
        return bool(self.rule.continues(self.state, d_out))

    def remaining(self, d_out: D) -> Any:
        """Return the largest distance of the family that may still be launched, or its least one.

        For a pair, it is the largest one with δ = 0.
        """

        def at(number: float) -> Any:
            return (number, 0.0) if isinstance(d_out, tuple) else self._distance(number)

        near = d_out if isinstance(d_out, float) else 1.0
        return at(largest_double(lambda number: self.after(at(number)).within(d_out), near))

    def to_record(self) -> Json:
        """Refuse: the state is the rule's own."""
        raise InvalidTypeError("a rule of your own has no exact record")


@dataclass(frozen=True, slots=True)
class FromRule:
    """The accumulator of a continuation rule."""

    rule: RuleFamily[Any, Any]
    along: Callable[[float], Any] | None = None

    made_for = (
        "measures whose distance is one number, and with along=... all whose children are "
        "concurrent, but Rényi divergence as a curve"
    )

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return whether the measure's distance is one number, or is read along a family."""
        if measure.one_number:
            return True
        # under approximate zCDP only sums are proven for children: docs/proofs/approximate-zcdp.rst
        concurrent = measure.composability is Composability.CONCURRENT
        return self.along is not None and concurrent and not measure.needs_orders

    def start(self, measure: CompositionMeasure[Any] | None = None) -> Inverted[Any]:
        """Return the state before the first launch."""
        if self.along is None:
            return Inverted(self.rule, self.rule.start)
        if not isinstance(measure, CompositionMeasure):
            raise InvalidTypeError(
                f"measure must be a composition measure, found {shown(measure)}: along returns "
                "distances of one; pass for example oc.extend.composition_measure(...)"
            )
        return Inverted(self.rule, self.rule.start, measure, self.along)

    def from_record(self, measure: CompositionMeasure[Any] | None, record: Json) -> Inverted[Any]:
        """Refuse: the state is the rule's own."""
        raise InvalidTypeError("a rule of your own has no exact record")

    def __repr__(self) -> str:
        return f"from_rule({self.rule!r})"


def from_rule(rule: RuleFamily[S, D], *, along: Callable[[float], D] | None = None) -> FromRule:
    """Make an accumulator from your own continuation rule.

    The loss is the least bound at which the rule continues [HSTVVXZ23, Lemma 2.19]. The accumulator
    is valid exactly when the rule is a valid filter at every bound. You must prove this. A rule
    that is valid for noninteractive mechanisms is valid for concurrent ones [HSTVVXZ23, Theorems
    1.20, 1.21], under finite communication for (ε, δ)-DP and f-DP.

    Where the distance is one number, the bounds are the numbers. Elsewhere two bounds may be
    incomparable: ``along`` then says at which of them the loss is read, one for each number. A
    filter asks the rule at its own ``d_out``, which need not be one of these.

    :param rule: has ``start``, a state; ``after(state, d_mid)``, the next state; and
        ``continues(state, d_out)``, monotone in ``d_out``, which stays false once it is false
    :param along: maps each number from 0 to infinity to a distance of the measure, and larger
        numbers to larger distances, such as ``lambda epsilon: (epsilon, 1e-6)``
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

    A rule for truncated concentrated DP, whose loss is read at ω = 8:

    >>> class Both:
    ...     start = Fraction(0), float("inf")
    ...     def after(self, state, d_mid):
    ...         return state[0] + Fraction(d_mid.rho), min(state[1], d_mid.omega)
    ...     def continues(self, state, d_out):
    ...         return state[0] <= d_out.rho and state[1] >= d_out.omega
    >>> measure = oc.truncated_concentrated_divergence(8.0)
    >>> accumulator = oc.accumulators.from_rule(
    ...     Both(), along=lambda rho: oc.TruncatedConcentrated(rho, 8.0)
    ... )
    >>> state = accumulator.start(oc.extend.composition_measure(measure))
    >>> state.after(oc.TruncatedConcentrated(0.25, 16.0)).loss
    TruncatedConcentrated(rho=0.25, omega=8.0)
    """
    for name in ("start", "after", "continues"):
        if not hasattr(rule, name):
            raise InvalidTypeError(
                f"rule must have start, after and continues; {type(rule).__name__} has no "
                f"{name}; define it"
            )
    if along is not None and not callable(along):
        raise InvalidTypeError(
            f"along must be a function from a number to a distance, found {shown(along)}; pass for "
            "example lambda epsilon: (epsilon, 1e-6)"
        )
    return FromRule(rule, along)
