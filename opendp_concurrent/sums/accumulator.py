"""The protocols of accumulators, and the laws that every accumulator obeys.

An accumulator (G in the papers) is a frozen value: an upper bound on the privacy loss of the
launches so far, for one d_in. ``after`` returns the next accumulator and changes nothing. By Lemma
2.19 of [HSTVVXZ23] valid accumulators and valid continuation rules are equivalent.

The laws are tested for all accumulators in ``tests/contracts``: the loss starts at zero, never
falls and is monotone in d_mid; ``after(d, n)`` equals n times ``after(d)``; a d_mid that is not a
privacy loss raises and changes nothing; the loss is at least the exact real number;
``within(d_out)`` agrees with ``loss``; an accumulator read from a record continues identically.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Protocol

from ..arguments import checks
from ..types import Json, Loss

if TYPE_CHECKING:
    from ..measures.measure import CompositionMeasure

_TOLERANCE = Fraction(1, 2**40)  # far above differences of C libraries, far below a launch


def times(count: int) -> int:
    """Return the number of launches to add, or raise. A charge is never refunded."""
    return count if type(count) is int and count > 0 else checks.count(count=count)


class Accumulator(Protocol):
    """An upper bound on the privacy loss, stored exactly."""

    @property
    def loss(self) -> Loss:
        """Return the privacy loss so far, rounded up once."""

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid`` in the form that is added, such as a curve at certain orders."""

    def after(self, d_mid: Loss, count: int = 1) -> Accumulator:
        """Return the accumulator after ``count`` more launches of ``d_mid``; O(1) in ``count``.

        :raises InvalidTypeError, InvalidValueError: if ``d_mid`` is not a privacy loss, or
            ``count`` is not at least 1
        """

    def within(self, d_out: Loss) -> bool:
        """Return whether the loss is at most ``d_out``, without an expensive loss computation."""

    def remaining(self, d_out: Loss) -> Loss:
        """Return the largest d_mid that may still be launched under ``d_out``."""

    def to_record(self) -> Json:
        """Return an exact, JSON-serialisable form."""


class Rounded(Accumulator, Protocol):
    """An accumulator whose sums depend on functions of the C library.

    The totals of the same launches may differ between two machines in the last digits. Each total
    is rounded up, so each is a bound. A ledger takes the larger total. For an accumulator without
    this method, the totals must be equal.
    """

    def merged(self, other: Rounded) -> Rounded | None:
        """Return the larger of two totals of the same launches, or None if they differ too much."""


class Divided:
    """Accountings under which the measure's own shares of a bound compose to at most the bound."""

    __slots__ = ()

    def shares(
        self, measure: CompositionMeasure, d_out: Loss, weights: list[Fraction]
    ) -> list[Loss]:
        """Return the shares of ``d_out`` that the measure makes."""
        found: list[Loss] = measure.split(d_out, weights)
        return found


def nearly_equal(one: float, other: float) -> bool:
    """Return whether two numbers differ at most by the rounding of two C libraries."""
    if one == other:
        return True
    if not abs(one) < inf or not abs(other) < inf:  # NaN, too
        return False
    first, second = Fraction(one), Fraction(other)
    return abs(first - second) <= _TOLERANCE * max(abs(first), abs(second))


class Accounting(Protocol):
    """A theorem that adds up losses, with its parameters. Frozen; it stores no history.

    This is the type of the ``accumulator`` argument of ``make_concurrent_odometer``. An object of
    your own is accepted if its class has these three methods. You must prove that the accumulators
    that it starts bound the loss of adaptively chosen launches. Optional attributes:

    * ``made_for``: the supported measures, in a few words, for the message of a refusal;
    * ``check_budget(d_out)``: raises if no launch could ever be admitted under ``d_out``;
    * ``shares(measure, d_out, weights)``: returns losses in proportion to weights, the largest of
      which launches are admitted under ``d_out``. Without it, ``largest_share`` searches for them;
    * ``parts()``: for (ε, δ), the rules that ``either`` combines with those of others;
    * ``needs_measure``: True if ``start`` must be given the measure. A ledger then refuses to open
      a budget under a measure that is not registered;
    * ``why_no_events``: why its launches are no list of events of dp-accounting, if that is so.

    To use it with a ledger, register its class: ``oc.ledger.register``.
    """

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether it adds up losses of this measure, a :class:`.CompositionMeasure`."""

    def start(self, measure: CompositionMeasure | None) -> Accumulator:
        """Return the accumulator before the first launch."""

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> Accumulator:
        """Return the accumulator that ``to_record`` described."""
