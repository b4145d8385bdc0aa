"""Replay charges: check that each follows from the charge before it, and add up their losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ...errors import InvalidValueError
from ...errors.ledger import LedgerDamagedError
from ...sums.accumulator import Accumulator, repeated
from .chain import hasher, next_hash
from .encoding import decode
from .entries import Entry
from .limited import Limited
from .limits import Limits, Path
from .readable import UNREADABLE, reading, require_text

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=timezone.utc) - _START) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=timezone.utc) - _START) // _MICROSECOND


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
    hash_after: Any = None  # from them, what maps a sequence and a time to a hash
    found, equal = None, 0  # that d_mid, and how many charges of it are not added up yet
    for row in rows:
        dataset, number, microseconds, label, mechanism, text, written = row
        sequence += 1
        if type(number) is not int or number != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        same = dataset, label, mechanism, text
        if same == last and type(microseconds) is int and _FIRST <= microseconds <= _LAST:
            head = hash_after(head, sequence, microseconds)
            if written != head:
                raise _unrelated(sequence)
            equal += 1
            continue
        total, limits = _added(known, total, limits, found, equal, sequence - 1)
        try:
            hash_after = hasher(*same)
            if type(microseconds) is int:
                head = hash_after(head, sequence, microseconds)
            else:
                head = next_hash(head, tuple(row[:-1]))
        except UNREADABLE:  # no charge was written with such values
            head = ""
        if not head or written != head:
            raise _unrelated(sequence)
        what = f"charge {sequence}"
        require_text(what, dataset=dataset, label=label, mechanism=mechanism, d_mid=text)
        with reading(what):
            time = _time(microseconds)
            found = decode(text, form)
        total, limits = _added(known, total, limits, found, 1, sequence)
        last, equal = same if tell is None else None, 0
        if tell is not None:
            path: Path = ()
            d_mid = found
            if isinstance(found, Limited):
                path, d_mid = limits.path(found.limit), found.d_mid
            tell(Entry(sequence, time, label, mechanism, d_mid, total.loss, head, path))
    total, limits = _added(known, total, limits, found, equal, sequence)
    return Known(sequence, head, total, form, limits)


def _unrelated(sequence: int) -> LedgerDamagedError:
    return LedgerDamagedError(f"charge {sequence} does not follow from those before it")


def _added(
    known: Known, total: Accumulator, limits: Limits, found: Any, count: int, newest: int
) -> tuple[Accumulator, Limits]:
    """Add up equal charges, of which the last one has the number ``newest``."""
    if not count:
        return total, limits
    with reading(f"charge {newest}"):
        if isinstance(found, Limited):
            if limits is known.limits:
                limits = Limits(limits)  # the only copy, to which all charges are added
            limits.replay(found, count)
            found = found.d_mid
        return repeated(total, found, count), limits


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
