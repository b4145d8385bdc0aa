"""What the record of a charge contains if the launch was below limits.

Such a charge has, in place of its d_mid, the d_mid, the number of the innermost limit, and what the
launch costs each limit. Limits have numbers from 1, in the order of their first charges. The first
charge of a limit contains its label and its terms. So one row has the charges of all accounts, and
the hash of the row covers them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from .. import _checks as checks
from .. import errors
from ..accounting import LimitCharge, Terms, require_same_terms, same_term
from ..measures import AccumulatorState, by_tag
from . import encoding


@checks.tagged("limit", "above", "label", "terms")
class Opened(NamedTuple):
    """A limit, in its first charge.

    :ivar above: number of the limit that it is below; 0 if it is below none
    :ivar label: its label
    :ivar terms: its terms, as the text of terms
    """

    above: int
    label: str
    terms: str


@checks.tagged("limited", "d_mid", "limit", "d_mids", "opened")
class LimitedCharge(NamedTuple):
    """The charge of a launch below limits.

    :ivar d_mid: privacy loss of the launch at the d_in of the budget
    :ivar limit: number of the innermost limit
    :ivar d_mids: privacy loss at the d_in of each limit, from the outermost one to the innermost
    :ivar opened: limits whose first charge this is, from the outermost one to the innermost
    """

    d_mid: errors.Loss
    limit: int
    d_mids: tuple[Any, ...]
    opened: tuple[Opened, ...]


# Write the terms of a budget as text, read them, and compare two terms.
#
# The text contains its form.

_KEYS = ("accumulator", "d_in", "d_out")


def write_terms(terms: Terms) -> str:
    """Write ``terms``.

    :raises InvalidTypeError: if one of the values has no exact record
    """
    shape = {name: encoding.to_shape(name, getattr(terms, name)) for name in _KEYS}
    measure = encoding.written(checks.text(output_measure=terms.measure))
    shape |= {
        "form": encoding.FORM,
        "measure": measure,
        "metric": checks.text(input_metric=terms.metric),
    }
    return encoding.canonical(shape)


def read_terms(text: str) -> Terms:
    """Inverse of :func:`write_terms`.

    :raises LedgerDamagedError: if the text is not canonical
    :raises LedgerError: if a newer version wrote it
    :raises UnregisteredError: if the text has a value whose class is not registered
    """
    try:
        shape = json.loads(text)
        form = shape.get("form")
        if type(form) is int and form != encoding.FORM:
            raise errors.LedgerError(
                f"the budget is written in form {form}; this version of opendp_concurrent reads "
                f"form {encoding.FORM}: use {'a newer' if form > encoding.FORM else 'an older'} "
                "version"
            )
        terms = _accumulator_terms(shape)
        if write_terms(terms) == text and _are_terms(terms):
            return terms
    except encoding.UNREADABLE:
        pass
    raise errors.LedgerDamagedError("the terms are unreadable")


def _accumulator_terms(shape: Any) -> Terms:
    values = {name: encoding.from_shape(shape[name]) for name in _KEYS}
    measure = encoding.read(shape["measure"])
    if by_tag(measure) is None and getattr(type(values["accumulator"]), "needs_measure", False):
        raise errors.UnregisteredError(measure)
    return Terms(measure=measure, metric=shape["metric"], **values)


def _are_terms(terms: Terms) -> bool:
    """Return whether a ledger can keep a budget under these terms. This may also raise."""
    start, measure = encoding.empty_total(terms), by_tag(terms.measure)
    if terms.d_out is not None and measure is not None:
        measure.validate("d_out", terms.d_out)
    elif terms.d_out is not None:
        start.after(terms.d_out)  # raises unless the bound is a loss
    if isinstance(terms.d_in, (int, float)):
        checks.non_negative(d_in=terms.d_in)  # refuses integers that exceed a double
    names = (terms.measure, terms.metric)
    return all(type(one) is str and checks.is_text(one) for one in names) and start.loss is not None


def first_record(terms: Terms) -> str:
    """Return the record of the running total before the first launch.

    :raises InvalidTypeError: if the ledger cannot record the accumulator
    """
    try:
        text = encoding.canonical(encoding.empty_total(terms).to_record())
        again = encoding.read_total(terms, json.loads(text)).to_record()
        if encoding.canonical(again) == text:
            return text
        reason = "its record, read again, gives another record"
    except encoding.UNREADABLE as error:
        reason = f"its record cannot be written and read as JSON: {error}"
    raise errors.InvalidTypeError(
        f"accumulator ({terms.accumulator!r}) cannot be kept in a ledger: {reason}"
    )


def require_same(recorded: str, terms: Terms) -> None:
    """Check that ``terms`` are the recorded terms.

    :raises LedgerMismatchError: naming the first argument that differs
    """
    before = read_terms(recorded)
    for name in ("measure", "metric", "accumulator", "d_in", "d_out"):
        one, other = getattr(before, name), getattr(terms, name)
        if encoding.encode(name, one) != encoding.encode(name, other) and not same_term(
            name, one, other
        ):
            argument = {"measure": "output_measure", "metric": "input_metric"}.get(name, name)
            told = ("no bound (an odometer)" if value is None else value for value in (one, other))
            raise errors.LedgerMismatchError(argument, *told)


# The limits of a budget, and what was spent in each, from the charges of the budget.
#
# The totals of limits are not written: they follow from the charges. A process adds the charges of
# the other processes to its totals whenever it takes a turn, so it decides on the newest totals.

Path = tuple[str, ...]

_UNKNOWN, _LOSSES = "its limit is not known", "it has not one loss for each limit"


class LimitTotal(NamedTuple):
    """One limit.

    :ivar number: its number in records
    :ivar above: number of the limit that it is below; 0 if it is below none
    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: its terms
    :ivar launches: number of launches below it
    :ivar accumulator: the sum of their losses
    """

    number: int
    above: int
    path: Path
    terms: Terms
    launches: int
    accumulator: AccumulatorState[Any]


class Limits:
    """All limits of a budget.

    Charges are added to a draft, which only has what differs, so that a charge costs the same
    whether it is one of ten limits or of 10^4. ``settled`` brings the limits to the state of their
    draft. A draft that is not settled is dropped, and changes nothing.

    :param of: the limits that this is a draft of
    """

    def __init__(self, of: Limits | None = None) -> None:
        self._of = of
        self._size: int = 0 if of is None else of._size
        self._numbers: dict[Path, int] = {}
        self._totals: dict[int, LimitTotal] = {}

    def draft(self) -> Limits:
        """Return a draft in the same state, to which charges are added."""
        return Limits(self) if self._of is None else Limits(self._of)._moved_to(self)

    def settled(self) -> Limits:
        """Return the limits that this is a draft of, now in its state."""
        return self if self._of is None else self._of._moved_to(self)

    def copy(self) -> Limits:
        """Return limits in the same state, which nobody else has."""
        found = Limits() if self._of is None else Limits()._moved_to(self._of)
        return found._moved_to(self)

    def _moved_to(self, draft: Limits) -> Limits:
        self._totals.update(draft._totals)  # first: others may read these limits meanwhile
        self._numbers.update(draft._numbers)
        self._size = draft._size
        return self

    def all(self) -> tuple[LimitTotal, ...]:
        """Return the limits in the order of their first charges."""
        return tuple(self._known(number + 1) for number in range(self._size))

    def _number(self, path: Path) -> int | None:
        found = self._numbers.get(path)
        return self._of._number(path) if found is None and self._of is not None else found

    def to_record(self) -> list[Any]:
        """Return all limits as JSON: the terms, each once, and a row for each limit."""
        terms: dict[str, int] = {}
        rows = []
        for one in self.all():
            place = terms.setdefault(_written(one.terms), len(terms))
            total = one.accumulator.to_record()
            rows.append([one.above, one.path[-1], place, one.launches, total])
        return [list(terms), rows]

    @classmethod
    def from_record(cls, record: list[Any]) -> Limits:
        """Inverse of :meth:`to_record`."""
        limits, (terms, rows) = cls(), record
        for above, label, place, launches, total in rows:
            text = terms[place]
            one = _read(text)[0]
            limits._open(Opened(above, label, text), one, launches, encoding.read_total(one, total))
        return limits

    def launches(self, path: Path) -> int:
        """Return the number of launches below a limit."""
        number = self._number(path)
        return 0 if number is None else self._known(number).launches

    def total(self, path: Path, terms: Terms) -> AccumulatorState[Any]:
        """Return the sum of a limit's charges.

        :raises LimitMismatchError: if its terms in the ledger are not ``terms``
        """
        number = self._number(path)
        if number is None:
            return encoding.empty_total(terms)
        known = self._known(number)
        require_same_terms(path, known.terms, terms)
        return known.accumulator

    def charged(
        self,
        d_mid: errors.Loss,
        charges: tuple[LimitCharge, ...],
        after: tuple[AccumulatorState[Any], ...],
    ) -> tuple[LimitedCharge, Limits]:
        """Return the record of a charge below limits, and a draft with it.

        :param charges: what it costs each limit, from the outermost one to the innermost
        :param after: the sums of the limits after it, in the same order
        """
        draft, opened, number = self.draft(), [], 0
        for charge, total in zip(charges, after, strict=True):
            found = self._number(charge.path)
            if found is None:
                new = Opened(number, charge.path[-1], write_terms(charge.terms))
                opened.append(new)
                number = draft._open(new, _read(new.terms)[0], 1, total)
            else:
                number = found
                draft._put(self._known(number), 1, total)
        d_mids = tuple(charge.d_mid for charge in charges)
        return LimitedCharge(d_mid, number, d_mids, tuple(opened)), draft

    def path(self, number: int) -> Path:
        """Return the path of a limit from its number."""
        return self._known(number).path

    def losses(self, number: int) -> tuple[errors.Loss, ...]:
        """Return the losses of a limit and of those that it is below, from the outermost one."""
        found: list[errors.Loss] = []
        while number:
            one = self._known(number)
            found.append(one.accumulator.loss)
            number = one.above
        return tuple(reversed(found))

    def replay(self, charge: LimitedCharge) -> None:
        """Add a charge. Call this on a draft.

        :raises InvalidValueError: if the charge does not follow from the charges before it
        """
        d_mids, opened = charge.d_mids, charge.opened
        before = len(d_mids) - len(opened)  # the outer limits were opened before
        if before < 0 or not d_mids:
            raise errors.InvalidValueError(_LOSSES)
        number = newest = opened[0].above if opened else charge.limit
        for one, d_mid in zip(opened, d_mids[before:], strict=True):
            if one.above != newest:
                raise errors.InvalidValueError(_UNKNOWN)
            terms, none = _read(one.terms)
            newest = self._open(one, terms, 1, none.after(d_mid, 1))
        if newest != charge.limit or type(charge.limit) is not int:
            raise errors.InvalidValueError(_UNKNOWN)
        for d_mid in reversed(d_mids[:before]):
            known = self._known(number)
            self._put(known, 1, known.accumulator.after(d_mid, 1))
            number = known.above
        if number != 0:
            raise errors.InvalidValueError(_LOSSES)

    def _known(self, number: int) -> LimitTotal:
        known = self._totals.get(number) if type(number) is int else None
        if known is not None:
            return known
        if self._of is None:
            raise errors.InvalidValueError(_UNKNOWN)
        return self._of._known(number)

    def _put(self, known: LimitTotal, count: int, total: AccumulatorState[Any]) -> None:
        """Add launches to a limit, with its new sum."""
        number, above, path, terms, launches, _ = known
        self._totals[number] = LimitTotal(number, above, path, terms, launches + count, total)

    def _open(self, new: Opened, terms: Terms, launches: int, total: AccumulatorState[Any]) -> int:
        """Add a limit that has launches, with their sum, and return its number."""
        above, label, number = new.above, new.label, self._size + 1
        if type(above) is not int or not 0 <= above < number:
            raise errors.InvalidValueError("the limit above its limit is not known")
        if type(label) is not str or not label or not checks.is_text(label):
            raise errors.InvalidValueError("the label of its limit is not text")
        path = (*self.path(above), label) if above else (label,)
        if terms.d_out is None or self._number(path) is not None:
            raise errors.InvalidValueError("its limit was opened before, or has no bound")
        self._numbers[path] = self._size = number
        self._totals[number] = LimitTotal(number, above, path, terms, launches, total)
        return number


@lru_cache(maxsize=256)  # terms are immutable, and few are distinct
def _written(terms: Terms) -> str:
    return write_terms(terms)


@lru_cache(maxsize=256)  # both are immutable, and few terms are distinct
def _read(text: str) -> tuple[Terms, AccumulatorState[Any]]:
    terms = read_terms(text)
    return terms, encoding.empty_total(terms)


# Compare the recorded running total with the sum of the charges.
#
# Some accumulators call functions of the C library, whose last digits differ between machines. Each
# machine rounds up, so each total is an upper bound, and the accumulator's ``merged`` takes the
# larger. Totals of exact accumulators must be equal.


def agreed_total(terms: Terms, text: str, added: AccumulatorState[Any]) -> AccumulatorState[Any]:
    """Return the running total.

    :param text: the recorded total
    :param added: the sum of the charges
    :raises LedgerDamagedError: if they do not agree
    """
    if encoding.canonical(added.to_record()) == text:
        return added
    recorded = _read_total(terms, text)
    merge = getattr(type(added), "merged", None)
    merged: AccumulatorState[Any] | None = None if merge is None else merge(added, recorded)
    if merged is None:
        raise errors.LedgerDamagedError(
            f"the running total is {recorded.loss}, but the charges add up to {added.loss}"
        )
    return merged


def _read_total(terms: Terms, text: str) -> Any:
    try:
        total = encoding.read_total(terms, json.loads(text))
        if encoding.canonical(total.to_record()) == text and total.loss is not None:
            return total
    except encoding.UNREADABLE:
        pass
    raise errors.LedgerDamagedError("the running total is unreadable")
