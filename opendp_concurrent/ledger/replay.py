"""Replay charges: check that each follows from the charge before it, and add up their losses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import Any, NamedTuple

from ..accounting import Terms
from ..errors import InvalidValueError, LedgerDamagedError, Loss
from ..measures import AccumulatorState
from . import encoding
from .charges import LimitedCharge, Limits, Path, decode_charge

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=timezone.utc) - _START) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=timezone.utc) - _START) // _MICROSECOND


class Known(NamedTuple):
    """The state after a charge.

    Its number and hash, the sum so far, and the limits.
    """

    sequence: int
    head: str
    accumulator: AccumulatorState[Any]
    limits: Limits

    def holding(self, total: AccumulatorState[Any]) -> Known:
        """Return it with another sum."""
        return self._replace(accumulator=total)

    def copied(self) -> Known:
        """Return it with limits of its own."""
        return self._replace(limits=self.limits.copy())

    def settled(self) -> Known:
        """Return it, with the limits that it was a draft of brought to its state."""
        return self._replace(limits=self.limits.settled())


def replay(
    known: Known, rows: Iterable[Any], tell: Callable[[encoding.Entry], object] | None = None
) -> Known:
    """Return the state after ``known`` and the charges in ``rows``.

    :param rows: rows of the table ``charges``, with all columns
    :param tell: called with each entry
    :raises LedgerDamagedError: naming the charge that does not follow from the charge before it
    """
    sequence, head = known.sequence, known.head
    sums = _Sums(known)
    before: Any = None  # dataset, label and mechanism of the charge before
    last: Any = None  # its d_mid
    json = ""  # the JSON of that
    hash_after: Any = None
    for row in rows:
        dataset, number, microseconds, label, mechanism, text, written = row
        sequence += 1
        if type(number) is not int or number != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        same = dataset, label, mechanism
        timed = type(microseconds) is int and _FIRST <= microseconds <= _LAST
        equal = timed and text == last and same == before
        try:
            if same != before:
                hash_after = encoding.hasher(*same)
            if not equal:
                json = encoding.canonical(text)
            if type(microseconds) is int:
                head = hash_after(head, sequence, microseconds, json)
            else:
                head = encoding.next_hash(head, tuple(row[:-1]))
        except encoding.UNREADABLE:  # no charge was written with such values
            head = ""
        if not head or written != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        if equal:
            sums.again()
            continue
        if same != before or not encoding.is_plain(text):
            what = f"charge {sequence}"
            encoding.require_text(
                what, dataset=dataset, label=label, mechanism=mechanism, d_mid=text
            )
        try:
            if not timed:
                raise InvalidValueError(f"its time ({microseconds!r}) is not in years 1 to 9999")
            found = decode_charge(text)
            sums.add(found)
        except encoding.UNREADABLE as error:
            raise encoding.unreadable(f"charge {sequence}", error) from None
        if tell is None:
            before, last = same, text
            continue
        path: Path = ()
        losses: tuple[Loss, ...] = ()
        d_mid = found
        if isinstance(found, LimitedCharge):
            path, d_mid = sums.limits.path(found.limit), found.d_mid
            losses = sums.limits.losses(found.limit)
        loss, time = sums.total().loss, _START + timedelta(microseconds=microseconds)
        tell(encoding.Entry(sequence, time, label, mechanism, d_mid, loss, head, path, losses))
    sums.settle()
    return Known(sequence, head, sums.total(), sums.limits)


class _Sums:
    """Add up charges. Equal charges, and losses, that follow each other are added in one step.

    :ivar limits: the sums of the limits, without charges that were told by ``again``
    """

    def __init__(self, known: Known) -> None:
        self.limits, self._before = known.limits, known.limits
        self._total, self._newest = known.accumulator, known.sequence
        self._charge: Any = None  # the last one
        self._again = 0  # how often more it was charged
        self._d_mid: Loss | None = None  # its loss at the d_in of the budget
        self._waiting = 0  # how often more the total must have it

    def add(self, charge: Any) -> None:
        """Add a charge."""
        if self._again:
            self.settle()
        d_mid = charge
        if isinstance(charge, LimitedCharge):
            self._limit(charge, 1)
            d_mid = charge.d_mid
        if d_mid is self._d_mid:  # it was added without an error
            self._waiting += 1
        else:
            self._total = self.total().after(d_mid, 1)
            self._d_mid = d_mid
        self._charge = charge
        self._newest += 1

    def again(self) -> None:
        """Add the last charge once more."""
        self._again += 1
        self._newest += 1

    def settle(self) -> None:
        """Add the charges that were told by ``again`` to their limits.

        :raises LedgerDamagedError: naming the newest one, if they cannot be added up
        """
        if self._again:
            with encoding.reading(f"charge {self._newest}"):
                if isinstance(self._charge, LimitedCharge):
                    self._limit(self._charge, self._again)
            self._waiting += self._again
            self._again = 0

    def total(self) -> AccumulatorState[Any]:
        """Return the sum, without charges that were told by ``again`` since it was settled."""
        if self._waiting:
            with encoding.reading(f"charge {self._newest}"):
                self._total = self._total.after(self._d_mid, self._waiting)
            self._waiting = 0
        return self._total

    def _limit(self, charge: LimitedCharge, count: int) -> None:
        if self.limits is self._before:
            self.limits = self._before.draft()  # to which all are added
        self.limits.replay(charge, count)


# Write the state of a budget after a charge, so that whoever opens it reads later charges only.
#
# The digest covers the state, the first hash, and thus dataset and terms, and what the database
# says of the triggers that keep charges from being changed. It shows damage and careless edits. It
# is no signature: who may write to the database can compute it.


def can_keep(known: Known, terms: Terms) -> bool:
    """Return whether the records of all totals say what they are, without the charges."""
    kinds = [terms.accumulator, *(one.terms.accumulator for one in known.limits.all())]
    return not any(getattr(type(one), "follows_from_charges", False) for one in kinds)


def write_state(known: Known) -> str:
    """Write the state after a charge."""
    total, limits = known.accumulator.to_record(), known.limits.to_record()
    return encoding.canonical([known.sequence, known.head, total, limits])


def digest(first: str, guard: str, state: str) -> str:
    """Return the digest of a state.

    :param first: the hash before the first charge
    :param guard: what the database says of its triggers
    """
    return sha256(encoding.canonical([first, guard, state]).encode()).hexdigest()


def read_state(terms: Terms, state: str) -> Known | None:
    """Inverse of :func:`write_state`; None if it is none."""
    try:
        sequence, head, total, limits = json.loads(state)
        if type(sequence) is not int or type(head) is not str:
            return None
        known = Known(sequence, head, encoding.read_total(terms, total), Limits.from_record(limits))
        return known if write_state(known) == state else None
    except encoding.UNREADABLE:
        return None
