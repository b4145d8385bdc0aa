"""Reading a budget from its first charge: whether it fits together, and what is spent.

All of it is read: the sequence has no gap, each hash follows from the one before, each d_mid is an
exact record, and what they add up to is the running total.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Connection

from ..accounts.charge import Terms
from ..accounts.rule import Within
from ..accumulators.accumulator import Accumulator
from ..accumulators.epsilon_delta_sum import EpsilonDeltaAccounting
from ..accumulators.residue import Residue
from ..errors import InvalidTypeError, InvalidValueError, LedgerDamagedError
from . import tables
from .chain import first_hash, next_hash
from .encoding import canonical, decode
from .entries import Entry
from .terms import read_terms

_TOLERANCE = 2.0**-30
_HASHED = ("dataset", "sequence", "time", "label", "mechanism", "d_mid")


@dataclass(frozen=True, slots=True)
class Summary:
    """A budget and where it stands.

    :ivar dataset: what the budget is for
    :ivar created: when the ledger was created, in UTC
    :ivar terms: what the budget is about; None before its first use
    :ivar launches: how many were charged
    :ivar spent: bound on the privacy loss so far; None before the first use
    :ivar remaining: the largest loss that one more launch may have; None for an odometer
    :ivar anchor: number and hash of the newest charge
    """

    dataset: str
    created: str
    terms: Terms | None
    launches: int
    spent: Any
    remaining: Any
    anchor: str


def audit(
    connection: Connection,
    dataset: str,
    anchor: str | None = None,
    tell: Callable[[Entry], object] | None = None,
) -> tuple[Summary, Accumulator | None]:
    """Read a budget whole, and check that all of it fits together.

    :param connection: all of whose statements see one state
    :param anchor: of an earlier summary: the ledger must go on from there
    :param tell: is told every entry, in order
    :raises LedgerDamagedError: naming what does not fit
    """
    row = connection.execute(tables.READ_BUDGET, {"of": dataset}).mappings().one_or_none()
    if row is None:
        raise LedgerDamagedError(f"the budget of {dataset!r} is gone")
    terms = None if row["terms"] is None else read_terms(row["terms"])
    head, total = first_hash(dataset, row["terms"]), _start(terms)
    anchored, sequence = _Anchor(anchor, head), 0
    for charge in _charges(connection, dataset):
        sequence += 1
        if charge["sequence"] != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        if total is None:
            raise LedgerDamagedError(f"charge {sequence} was made before there were terms")
        head = _follow(head, charge)
        if charge["hash"] != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        d_mid, total = _add(total, charge)
        anchored.see(sequence, head)
        if tell is not None:
            time = datetime.fromtimestamp(charge["time"] / 1e6, timezone.utc)
            texts = charge["label"], charge["mechanism"]
            tell(Entry(sequence, time, *texts, d_mid, total.loss, head))
    if (row["sequence"], row["head"]) != (sequence, head):
        raise LedgerDamagedError(
            f"there are {sequence} charges, where the newest is said to be number {row['sequence']}"
        )
    anchored.end(sequence)
    if terms is None or total is None:
        return Summary(dataset, row["created"], None, 0, None, None, f"0:{head}"), None
    total = _recorded(terms, row["record"], total)
    remaining = None if terms.d_out is None else Within(terms.d_out).remaining(total)
    place = f"{sequence}:{head}"
    return Summary(dataset, row["created"], terms, sequence, total.loss, remaining, place), total


def _charges(connection: Connection, dataset: str) -> Iterator[Any]:
    result = connection.execute(
        tables.READ_CHARGES, {"of": dataset}, execution_options={"yield_per": 1000}
    )
    return iter(result.mappings())


def _follow(head: str, charge: Any) -> str | None:
    try:
        return next_hash(head, tuple(charge[name] for name in _HASHED))
    except (TypeError, ValueError):  # not even text: SQLite keeps what it is given
        return None


def _start(terms: Terms | None) -> Any:
    return None if terms is None else terms.accounting.start(terms.zero)


def _add(total: Any, charge: Any) -> tuple[Any, Any]:
    try:
        d_mid = decode(charge["d_mid"])
        return d_mid, total.after(d_mid)
    except (InvalidTypeError, InvalidValueError) as error:
        raise LedgerDamagedError(f"charge {charge['sequence']} is unreadable: {error}") from None


def _recorded(terms: Terms, text: str, total: Any) -> Any:
    """The running total, if it is what the charges add up to.

    Where costs go through functions of the C library, these may differ in the last places between
    machines; each is rounded up, so that any of the totals is a bound.
    """
    if canonical(total.to_record()) == text:
        return total
    try:
        record = json.loads(text)
        recorded = terms.accounting.from_record(terms.zero, record)
    except (TypeError, ValueError, AttributeError):
        raise LedgerDamagedError("the running total is unreadable") from None
    inexact = isinstance(terms.accounting, (EpsilonDeltaAccounting, Residue))
    if not inexact or not _close(record, total.to_record()):
        raise LedgerDamagedError(
            f"the running total is {recorded.loss}, where the charges add up to {total.loss}"
        )
    return recorded


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if not isinstance(one, str) or not isinstance(other, str):
        return bool(one == other)
    first, second = _number(one), _number(other)
    return bool(abs(first - second) <= _TOLERANCE * max(abs(first), abs(second)))


def _number(text: str) -> Any:
    return float.fromhex(text) if "p" in text else int(text, 16)


class _Anchor:
    """A place that the ledger must have passed."""

    def __init__(self, anchor: str | None, first: str) -> None:
        self._anchor, self._sequence, self._hash = anchor, -1, ""
        if anchor is None:
            return
        number, _, self._hash = str(anchor).partition(":")
        if not number.isdigit() or len(self._hash) != len(first):
            raise InvalidValueError(f"anchor ({anchor}) must be number:hash, as a summary has it")
        self._sequence = int(number)
        if self._sequence:
            self.see(0, first)
        else:
            # terms are settled after the ledger was created, and change its first hash
            self._anchor = None

    def see(self, sequence: int, head: str) -> None:
        if sequence == self._sequence and head != self._hash:
            raise LedgerDamagedError(f"charge {sequence} is not the one of the anchor")

    def end(self, sequence: int) -> None:
        if self._anchor is not None and sequence < self._sequence:
            raise LedgerDamagedError(
                f"there are {sequence} charges, where the anchor is number {self._sequence}"
            )
