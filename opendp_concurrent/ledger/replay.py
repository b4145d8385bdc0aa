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
from .charges import LimitedCharge, Limits, Path

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
    sequence, head, total, limits = known
    before: Any = None  # dataset, label and mechanism of the charge before
    hash_after: Any = None
    last: Any = None  # the d_mid of the charge before
    waiting = 0  # how often more the total must have it

    def settled(newest: int) -> AccumulatorState[Any]:
        with encoding.reading(f"charge {newest}"):
            return total.after(last, waiting) if waiting else total

    for row in rows:
        dataset, number, microseconds, label, mechanism, text, written = row
        sequence += 1
        if type(number) is not int or number != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        same = dataset, label, mechanism
        try:
            if same != before:
                hash_after = encoding.hasher(*same)
            if type(microseconds) is int:
                head = hash_after(head, sequence, microseconds, encoding.canonical(text))
            else:
                head = encoding.next_hash(head, tuple(row[:-1]))
        except encoding.UNREADABLE:  # no charge was written with such values
            head = ""
        if not head or written != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        if same != before or not encoding.is_plain(text):
            what = f"charge {sequence}"
            encoding.require_text(
                what, dataset=dataset, label=label, mechanism=mechanism, d_mid=text
            )
        before = same
        try:
            if not (type(microseconds) is int and _FIRST <= microseconds <= _LAST):
                raise InvalidValueError(f"its time ({microseconds!r}) is not in years 1 to 9999")
            d_mid = charge = encoding.decode(text)
            if isinstance(charge, LimitedCharge):
                if limits is known.limits:
                    limits = limits.draft()  # to which all are added
                limits.replay(charge)
                d_mid = charge.d_mid
            if d_mid is last and tell is None:
                waiting += 1  # it was added without an error; many are added in one step
            else:
                total = settled(sequence - 1).after(d_mid, 1)
                last, waiting = d_mid, 0
        except encoding.UNREADABLE as error:
            raise encoding.unreadable(f"charge {sequence}", error) from None
        if tell is not None:
            path: Path = ()
            losses: tuple[Loss, ...] = ()
            if isinstance(charge, LimitedCharge):
                path, losses = limits.path(charge.limit), limits.losses(charge.limit)
            loss, time = total.loss, _START + timedelta(microseconds=microseconds)
            tell(encoding.Entry(sequence, time, label, mechanism, d_mid, loss, head, path, losses))
    return Known(sequence, head, settled(sequence), limits)


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
