"""From a known charge to later ones: each must follow from the one before, and adds its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ..accumulators.accumulator import Accumulator
from ..errors import InvalidTypeError, InvalidValueError, LedgerDamagedError
from .chain import next_hash
from .encoding import decode
from .entries import Entry


class Known(NamedTuple):
    """A charge, and what it and all before it add up to."""

    sequence: int
    head: str
    accumulator: Accumulator


def follow(
    known: Known, rows: Iterable[Any], tell: Callable[[Entry], object] | None = None
) -> Known:
    """Go on from ``known`` along the rows of ``charges``, in the order of their columns.

    :param tell: is told every entry
    :raises LedgerDamagedError: naming the charge that does not follow
    """
    sequence, head, total = known
    for row in rows:
        *charge, written = row
        sequence += 1
        if charge[1] != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        try:
            head = next_hash(head, tuple(charge))
        except (TypeError, ValueError):  # what no charge has
            head = ""
        if not head or written != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        d_mid, total = _add(total, sequence, charge[5])
        if tell is not None:
            time = datetime.fromtimestamp(charge[2] / 1e6, timezone.utc)
            tell(Entry(sequence, time, charge[3], charge[4], d_mid, total.loss, head))
    return Known(sequence, head, total)


def _add(total: Any, sequence: int, text: str) -> tuple[Any, Any]:
    try:
        d_mid = decode(text)
        return d_mid, total.after(d_mid)
    except (InvalidTypeError, InvalidValueError) as error:
        raise LedgerDamagedError(f"charge {sequence} is unreadable: {error}") from None
