"""Replay charges: check that each follows from the charge before it, and add up their losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ...errors import InvalidValueError, LedgerDamagedError
from ...measures.sums.accumulator import Accumulator
from .chain import hasher, next_hash
from .encoding import decode
from .entries import Entry
from .limited import Limited
from .limits import Limits, Path
from .readable import UNREADABLE, reading, require_text

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Known(NamedTuple):
    """The state after a charge.

    Its number and hash, the sum so far, the form of the records, and the limits.
    """

    sequence: int
    head: str
    accumulator: Accumulator
    form: int
    limits: Limits


def replay(
    known: Known, rows: Iterable[Any], tell: Callable[[Entry], object] | None = None
) -> Known:
    """Return the state after ``known`` and the charges in ``rows``.

    :param rows: rows of the table ``charges``, with all columns
    :param tell: called with each entry
    :raises LedgerDamagedError: naming the charge that does not follow from the charge before it
    """
    sequence, head, total, form, limits = known
    last: Any = None  # dataset, label, mechanism and d_mid of the charge before
    d_mid, equal = None, 0  # that d_mid, and how many charges of it are not added up yet
    for row in rows:
        dataset, number, microseconds, label, mechanism, text, written = row
        sequence += 1
        if type(number) is not int or number != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        alike = (dataset, label, mechanism, text) == last
        try:
            if not alike:
                hash_after = hasher(dataset, label, mechanism, text)
            if type(microseconds) is int:
                head = hash_after(head, sequence, microseconds)
            else:
                head = next_hash(head, tuple(row[:-1]))
        except UNREADABLE:  # no charge was written with such values
            head = ""
        if not head or written != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        what = f"charge {sequence}"
        if not alike:
            require_text(what, dataset=dataset, label=label, mechanism=mechanism, d_mid=text)
            total, equal = _added(total, d_mid, equal, sequence - 1), 0
            last = dataset, label, mechanism, text
        with reading(what):
            time = _time(microseconds)
            path: Path = ()
            if not alike:
                found = d_mid = decode(text, form)
            if isinstance(found, Limited):
                limits, path = limits.replayed(found)
                d_mid = found.d_mid
            if not alike or tell is not None:  # an invalid d_mid is found at its first charge
                total = total.after(d_mid)
            else:
                equal += 1
            if tell is not None:
                tell(Entry(sequence, time, label, mechanism, d_mid, total.loss, head, path))
    total = _added(total, d_mid, equal, sequence)
    return Known(sequence, head, total, form, limits)


def _added(total: Accumulator, d_mid: Any, count: int, newest: int) -> Accumulator:
    """Add up equal charges, of which the last one has the number ``newest``."""
    with reading(f"charge {newest}"):
        return total.after(d_mid, count) if count else total


def _time(microseconds: Any) -> datetime:
    """Return a time.

    :raises InvalidValueError: if the number is not the time of a year from 1 to 9999
    """
    if type(microseconds) is not int:
        raise InvalidValueError("its time is not an integer")
    try:
        return _START + timedelta(microseconds=microseconds)
    except OverflowError:
        raise InvalidValueError(f"its time ({microseconds}) is not in years 1 to 9999") from None
