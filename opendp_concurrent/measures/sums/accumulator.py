"""What an accumulator is, and the laws that every one obeys.

An accumulator (the papers' G) is a frozen value: an upper bound on the privacy loss of the
launches so far, for one d_in. ``after`` gives the next one and changes nothing. By Lemma 2.19 of
[HSTVVXZ23] a valid accumulator and a valid continuation rule are the same thing.

The laws are tested for all accumulators in ``tests/contracts``: a fresh one's loss is zero; the
loss never falls and is monotone in d_mid; ``after(d, n)`` equals n times ``after(d)``; what is not
a privacy loss raises and leaves everything as it was; the loss is at least the exact real number;
``within(d_out)`` says what ``loss`` would; a record continues identically.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any, Protocol

from ... import checks

_TOLERANCE = Fraction(1, 2**40)  # far above what C libraries differ by, far below a launch


def times(count: int) -> int:
    """Return how many launches are added, or raise: nothing is ever taken back."""
    return count if type(count) is int and count > 0 else checks.count(count=count)


class Accumulator(Protocol):
    """An upper bound on the privacy loss, kept exactly."""

    @property
    def loss(self) -> Any:
        """Privacy loss so far, rounded up once."""

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid`` as it is counted here, such as a curve at the orders that count."""

    def after(self, d_mid: Any, count: int = 1) -> Accumulator:
        """Return the accumulator after ``count`` more launches of ``d_mid``; O(1) in ``count``.

        :raises InvalidTypeError, InvalidValueError: if ``d_mid`` is not a privacy loss, or
            ``count`` is not at least 1
        """

    def within(self, d_out: Any) -> bool:
        """Whether the loss is at most ``d_out``, without computing it where that is dear."""

    def remaining(self, d_out: Any) -> Any:
        """Return the largest d_mid that may still be launched under ``d_out``."""

    def to_record(self) -> Any:
        """Return an exact, JSON-serialisable form."""


class Rounded(Accumulator, Protocol):
    """An accumulator whose sums depend on functions of the C library.

    The totals of the same launches may differ between two machines in the last digits. Each total
    is rounded up, so each is a bound. A ledger takes the larger total. For an accumulator without
    this method, the totals must be equal.
    """

    def merged(self, other: Any) -> Rounded | None:
        """Return the larger of two totals of the same launches; None if they differ by more."""


def nearly_equal(one: float, other: float) -> bool:
    """Whether two numbers differ by no more than two C libraries do."""
    if one == other:
        return True
    if not abs(one) < inf or not abs(other) < inf:  # NaN, too
        return False
    first, second = Fraction(one), Fraction(other)
    return abs(first - second) <= _TOLERANCE * max(abs(first), abs(second))


class Accounting(Protocol):
    """Which theorem adds up the losses, with which parameters. Frozen; knows no history.

    This is what the ``accumulator`` argument of ``make_concurrent_odometer`` takes. An object of
    your own is accepted if its class has these three methods; the author has a proof that the
    accumulators that it starts bound the loss of launches that are chosen on the way. Optional:

    * ``made_for``: for which measures it is, in a few words, for the message of a refusal;
    * ``check_budget(d_out)``: raises if no launch could ever be admitted under ``d_out``.

    To keep it in a ledger, register its class: ``oc.ledger.register``.
    """

    def supports(self, measure: Any) -> bool:
        """Whether it adds up losses of this measure, a :class:`.CompositionMeasure`."""

    def start(self, measure: Any) -> Accumulator:
        """Return the accumulator of no launch."""

    def from_record(self, measure: Any, record: Any) -> Accumulator:
        """Return the accumulator that ``to_record`` described."""
