"""The limits of a budget, and what was spent in each, from the charges of the budget.

The totals of limits are not written: they follow from the charges. A process adds the charges of
the other processes to its totals whenever it takes a turn, so it decides on the newest totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...accounts.charge import LimitCharge, Terms
from ...accounts.limit import require_same_terms
from ...errors import InvalidValueError
from ...sums.accumulator import Accumulator, repeated
from .limited import Limited, Opened
from .measures import empty_total
from .readable import is_text
from .shelves import Shelves
from .terms import first_record, read_terms, write_terms

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LimitTotal:
    """One limit.

    :ivar number: its number in records
    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: its terms
    :ivar launches: number of launches below it
    :ivar accumulator: the sum of their losses
    """

    number: int
    path: Path
    terms: Terms
    launches: int
    accumulator: Accumulator

    def after(self, count: int, total: Accumulator) -> LimitTotal:
        """Return it after ``count`` more launches, with a new sum."""
        return LimitTotal(self.number, self.path, self.terms, self.launches + count, total)


class Limits:
    """All limits of a budget. What was handed out does not change: a charge makes a copy.

    :param of: the limits to copy
    """

    __slots__ = ("_by_path", "_paths")

    def __init__(self, of: Limits | None = None) -> None:
        self._by_path: Shelves[Path, LimitTotal] = Shelves(None if of is None else of._by_path)
        self._paths: Shelves[int, Path] = Shelves(None if of is None else of._paths)

    def all(self) -> tuple[LimitTotal, ...]:
        """Return the limits in the order of their first charges."""
        return tuple(self._known(self.path(number + 1)) for number in range(len(self._paths)))

    def launches(self, path: Path) -> int:
        """Return the number of launches below a limit."""
        known = self._by_path.get(path)
        return 0 if known is None else known.launches

    def total(self, path: Path, terms: Terms) -> Accumulator:
        """Return the sum of a limit's charges.

        :raises LimitMismatchError: if its terms in the ledger are not ``terms``
        """
        known = self._by_path.get(path)
        if known is None:
            return empty_total(terms)
        require_same_terms(path, known.terms, terms)
        return known.accumulator

    def charged(
        self,
        d_mid: Any,
        charges: tuple[LimitCharge, ...],
        after: tuple[Accumulator, ...],
        count: int = 1,
    ) -> tuple[list[Limited], Limits]:
        """Return the records of equal charges below limits, and the limits after them.

        :param charges: what each costs each limit, from the outermost one to the innermost
        :param after: the sums of the limits after all of them, in the same order
        :param count: number of charges
        """
        copy, opened, number = Limits(self), [], 0
        for charge, total in zip(charges, after, strict=True):
            known = copy._by_path.get(charge.path)
            if known is None:
                new = Opened(number, charge.path[-1], write_terms(charge.terms))
                opened.append(new)
                known = copy._open(new)
            number = known.number
            copy._put(known.after(count, total))
        d_mids = tuple(charge.d_mid for charge in charges)
        first = Limited(d_mid, number, d_mids, tuple(opened))
        return [first, *[Limited(d_mid, number, d_mids, ())] * (count - 1)], copy

    def path(self, number: int) -> Path:
        """Return the path of a limit from its number."""
        path = self._paths.get(number)
        if path is None:
            raise InvalidValueError("its limit is not known")
        return path

    def replay(self, charge: Limited, count: int = 1) -> None:
        """Add ``count`` charges that are all ``charge``. Call this on a copy of one's own.

        :raises InvalidValueError: if the charge does not follow from the charges before it
        """
        for one in charge.opened:
            self._open(one)
        if type(charge.limit) is not int:
            raise InvalidValueError("its limit is not known")
        path = self.path(charge.limit)
        for depth, d_mid in zip(range(1, len(path) + 1), charge.d_mids, strict=True):
            known = self._known(path[:depth])
            total = repeated(known.accumulator, d_mid, count)
            self._put(known.after(count, total))

    def _known(self, path: Path) -> LimitTotal:
        known = self._by_path.get(path)
        assert known is not None  # it was opened with its path
        return known

    def _put(self, total: LimitTotal) -> None:
        self._by_path.put(total.path, total)

    def _open(self, new: Opened) -> LimitTotal:
        above, label, number = new.above, new.label, len(self._paths) + 1
        if type(above) is not int or not 0 <= above < number:
            raise InvalidValueError("the limit above its limit is not known")
        if type(label) is not str or not label or not is_text(label):
            raise InvalidValueError("the label of its limit is not text")
        path = (*(self.path(above) if above else ()), label)
        terms, none = _read(new.terms)
        if self._by_path.get(path) is not None or terms.d_out is None:
            raise InvalidValueError("its limit was opened before, or has no bound")
        self._paths.put(number, path)
        total = LimitTotal(number, path, terms, 0, none)
        self._put(total)
        return total


@lru_cache(maxsize=256)  # both are immutable, and few terms are distinct
def _read(text: str) -> tuple[Terms, Accumulator]:
    terms, _ = read_terms(text)
    return terms, empty_total(terms)


def check_kept(terms: Terms) -> None:
    """Check that a ledger can keep a limit under these terms.

    :raises InvalidTypeError: if one of the values has no exact record
    """
    write_terms(terms)
    first_record(terms)
