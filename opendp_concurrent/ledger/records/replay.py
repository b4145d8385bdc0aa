"""Replay charges: check that each follows from the charge before it, and add up their losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ...errors import InvalidValueError, LedgerDamagedError
from ...measures.sums.accumulator import Accumulator
from .chain import next_hash
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
    for row in rows:
        *charge, written = row
        dataset, number, microseconds, label, mechanism, text = charge
        sequence += 1
        if type(number) is not int or number != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        try:
            head = next_hash(head, tuple(charge))
        except UNREADABLE:  # no charge was written with such values
            head = ""
        if not head or written != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        what = f"charge {sequence}"
        require_text(what, dataset=dataset, label=label, mechanism=mechanism, d_mid=text)
        with reading(what):
            time = _time(microseconds)
            path: Path = ()
            d_mid = decode(text, form)
            if isinstance(d_mid, Limited):
                limits, path = limits.replayed(d_mid)
                d_mid = d_mid.d_mid
            total = total.after(d_mid)
            if tell is not None:
                tell(Entry(sequence, time, label, mechanism, d_mid, total.loss, head, path))
    return Known(sequence, head, total, form, limits)


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
