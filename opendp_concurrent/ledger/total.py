"""The running total: as it is recorded beside the newest charge, and as the charges add up.

Where costs go through functions of the C library, machines may differ in the last places. Each is
rounded up, so each total is a bound; the larger is taken. What is exact must be the same.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from ..accounts.charge import Terms
from ..accumulators.epsilon_delta_sum import EpsilonDeltaAccounting
from ..accumulators.residue import Residue
from ..errors import LedgerDamagedError
from ..measures.sums.accumulator import Accumulator
from .encoding import canonical
from .readable import UNREADABLE

_TOLERANCE = Fraction(1, 2**40)


def agreed_total(terms: Terms, text: str, added: Any) -> Accumulator:
    """Return the total, if what is recorded as ``text`` is what the charges ``added`` up to.

    :raises LedgerDamagedError: if it is not
    """
    record = added.to_record()
    if canonical(record) == text:
        total: Accumulator = added
        return total
    recorded = _read(terms, text)
    try:
        if isinstance(terms.accounting, EpsilonDeltaAccounting):
            (costs, delta), (others, other) = record, recorded.to_record()
            if delta == other and len(costs) == len(others):
                larger = [_either(*pair, max) for pair in zip(costs, others, strict=True)]
                return terms.accounting.from_record(terms.zero, [larger, delta])
        if isinstance(terms.accounting, Residue):
            (left, squares), (left_there, squares_there) = record, recorded.to_record()
            both = [_either(left, left_there, min), _either(squares, squares_there, max)]
            return terms.accounting.from_record(terms.zero, both)
    except ArithmeticError:  # they differ by more than the C library may
        pass
    raise LedgerDamagedError(
        f"the running total is {recorded.loss}, where the charges add up to {added.loss}"
    )


def _read(terms: Terms, text: str) -> Any:
    try:
        total = terms.accounting.from_record(terms.zero, json.loads(text))
        if canonical(total.to_record()) == text and total.loss is not None:
            return total
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the running total is unreadable")


def _either(one: Any, other: Any, which: Any) -> Any:
    """The one of two numbers, as text, that bounds more; raise unless they are about the same."""
    if one == other:
        return one
    if one is None or other is None:
        raise ArithmeticError
    first, second = _number(one), _number(other)
    if abs(first - second) > _TOLERANCE * max(abs(first), abs(second)):
        raise ArithmeticError
    return one if which(first, second) == first else other


def _number(text: str) -> Fraction:
    return Fraction(float.fromhex(text) if "p" in text else int(text, 16))
