"""Write the terms of a budget as text, read them, and compare two terms.

The text contains its form. The losses of the budget are written in the same form. A budget never
changes its form, because the first hash covers its terms. Terms of form 1 do not contain their
form. They contain ``zero``, the loss of no launch, although it follows from the measure. So do
terms under a measure of another package, which may not be registered where they are read.
"""

from __future__ import annotations

import json
from typing import Any

from ...accounts.charge import Terms
from ...accounts.limit import same_term
from ...arguments import checks
from ...errors import InvalidTypeError
from ...errors.ledger import LedgerDamagedError, LedgerError, LedgerMismatchError, UnregisteredError
from ...measures import by_tag
from ...types import Json
from . import measures
from .encoding import canonical, decode, encode, from_shape, to_shape
from .measures import empty_total, read_total
from .readable import UNREADABLE, is_text
from .wire import NEWEST

_FIELDS = ("measure", "accumulator", "metric", "d_in", "d_out")
_KEYS_1 = ("measure", "accounting", "metric", "d_in", "d_out")  # of the same fields, in form 1
_KEYS = ("accumulator", "d_in", "d_out")


def write_terms(terms: Terms, form: int = NEWEST) -> str:
    """Write ``terms``.

    :raises InvalidTypeError: if one of the values has no exact record
    """
    return _written(terms, form, measures.zero(terms.measure))


def _written(terms: Terms, form: int, zero: Any) -> str:
    if form == 1:
        fields = {
            key: encode(_argument(name), getattr(terms, name), 1)
            for key, name in zip(_KEYS_1, _FIELDS, strict=True)
        }
        return canonical(fields | {"zero": encode("zero", zero, 1)})
    shape = {name: to_shape(name, getattr(terms, name), form) for name in _KEYS}
    measure = measures.written(checks.text(output_measure=terms.measure))
    shape |= {"form": form, "measure": measure, "metric": checks.text(input_metric=terms.metric)}
    if measures.read(measure)[1]:
        shape["zero"] = to_shape("zero", zero, form)
    return canonical(shape)


def read_terms(text: str) -> tuple[Terms, int]:
    """Return the terms that :func:`write_terms` wrote, and their form.

    :raises LedgerDamagedError: if the text is not canonical
    :raises LedgerError: if a newer version wrote it
    :raises UnregisteredError: if the text has a value whose class is not registered
    """
    try:
        shape = json.loads(text)
        form = shape.get("form", 1)
        if type(form) is int and form > NEWEST:
            raise LedgerError(
                f"the budget is written in form {form}; this version of opendp_concurrent reads "
                f"forms up to {NEWEST}: use a newer version"
            )
        if type(form) is int and form in (1, NEWEST):
            terms, zero = _terms_1(shape) if form == 1 else _terms(shape)
            if _written(terms, form, zero) == text and _are_terms(terms):
                return terms, form
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the terms are unreadable")


def _terms_1(shape: Any) -> tuple[Terms, Any]:
    values = [decode(shape[key], 1) for key in _KEYS_1]
    terms = Terms(**dict(zip(_FIELDS, values, strict=True)))
    return terms, measures.zero(terms.measure, decode(shape["zero"], 1))


def _terms(shape: Any) -> tuple[Terms, Any]:
    values = {name: from_shape(shape[name]) for name in _KEYS}
    measure, outside = measures.read(shape["measure"])
    if by_tag(measure) is None and getattr(type(values["accumulator"]), "needs_measure", False):
        raise UnregisteredError(measure, "opendp_concurrent.measures.register")
    zero = from_shape(shape["zero"]) if outside else None
    return Terms(measure=measure, metric=shape["metric"], **values), measures.zero(measure, zero)


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
    before, _ = read_terms(recorded)
    for name in ("measure", "metric", "accumulator", "d_in", "d_out"):
        one, other = getattr(before, name), getattr(terms, name)
        if encode(name, one) != encode(name, other) and not same_term(name, one, other):
            raise LedgerMismatchError(_argument(name), _shown(name, one), _shown(name, other))


def _argument(name: str) -> str:
    return {"measure": "output_measure", "metric": "input_metric"}.get(name, name)


def _shown(name: str, value: Json) -> Any:
    return "no bound (an odometer)" if name == "d_out" and value is None else value
