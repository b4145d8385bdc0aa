"""Write the terms of a budget as text, read them, and compare two terms.

The text contains its form.
"""

from __future__ import annotations

import json
from typing import Any

from ...accounts.store import Terms, same_term
from ...arguments import checks
from ...errors import (
    InvalidTypeError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
    UnregisteredError,
)
from ...measures import by_tag
from ...types import Json
from . import measures
from .encoding import canonical, encode, from_shape, to_shape
from .measures import empty_total, read_total
from .readable import UNREADABLE, is_text
from .wire import FORM

_KEYS = ("accumulator", "d_in", "d_out")


def write_terms(terms: Terms) -> str:
    """Write ``terms``.

    :raises InvalidTypeError: if one of the values has no exact record
    """
    shape = {name: to_shape(name, getattr(terms, name)) for name in _KEYS}
    measure = measures.written(checks.text(output_measure=terms.measure))
    shape |= {"form": FORM, "measure": measure, "metric": checks.text(input_metric=terms.metric)}
    return canonical(shape)


def read_terms(text: str) -> Terms:
    """Inverse of :func:`write_terms`.

    :raises LedgerDamagedError: if the text is not canonical
    :raises LedgerError: if a newer version wrote it
    :raises UnregisteredError: if the text has a value whose class is not registered
    """
    try:
        shape = json.loads(text)
        form = shape.get("form")
        if type(form) is int and form != FORM:
            raise LedgerError(
                f"the budget is written in form {form}; this version of opendp_concurrent reads "
                f"form {FORM}: use {'a newer' if form > FORM else 'an older'} version"
            )
        terms = _terms(shape)
        if write_terms(terms) == text and _are_terms(terms):
            return terms
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the terms are unreadable")


def _terms(shape: Any) -> Terms:
    values = {name: from_shape(shape[name]) for name in _KEYS}
    measure = measures.read(shape["measure"])
    if by_tag(measure) is None and getattr(type(values["accumulator"]), "needs_measure", False):
        raise UnregisteredError(measure, "opendp_concurrent.measures.register")
    return Terms(measure=measure, metric=shape["metric"], **values)


def _are_terms(terms: Terms) -> bool:
    """Return whether a ledger can keep a budget under these terms. This may also raise."""
    start, measure = empty_total(terms), by_tag(terms.measure)
    if terms.d_out is not None and measure is not None:
        measure.validate("d_out", terms.d_out)
    elif terms.d_out is not None:
        start.after(terms.d_out)  # raises unless the bound is a loss
    if isinstance(terms.d_in, (int, float)):
        checks.non_negative(d_in=terms.d_in)  # refuses integers that exceed a double
    names = (terms.measure, terms.metric)
    return all(type(one) is str and is_text(one) for one in names) and start.loss is not None


def first_record(terms: Terms) -> str:
    """Return the record of the running total before the first launch.

    :raises InvalidTypeError: if the ledger cannot record the accumulator
    """
    try:
        text = canonical(empty_total(terms).to_record())
        again = read_total(terms, json.loads(text)).to_record()
        if canonical(again) == text:
            return text
        reason = "its record, read again, gives another record"
    except UNREADABLE as error:
        reason = f"its record cannot be written and read as JSON: {error}"
    raise InvalidTypeError(
        f"accumulator ({terms.accumulator!r}) cannot be kept in a ledger: {reason}"
    )


def require_same(recorded: str, terms: Terms) -> None:
    """Check that ``terms`` are the recorded terms.

    :raises LedgerMismatchError: naming the first argument that differs
    """
    before = read_terms(recorded)
    for name in ("measure", "metric", "accumulator", "d_in", "d_out"):
        one, other = getattr(before, name), getattr(terms, name)
        if encode(name, one) != encode(name, other) and not same_term(name, one, other):
            raise LedgerMismatchError(_argument(name), _shown(name, one), _shown(name, other))


def _argument(name: str) -> str:
    return {"measure": "output_measure", "metric": "input_metric"}.get(name, name)


def _shown(name: str, value: Json) -> Any:
    return "no bound (an odometer)" if name == "d_out" and value is None else value
