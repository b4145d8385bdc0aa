"""What a budget is about, as text, and whether two are about the same.

The text says in which form the budget is written, and its losses are written in the same form. A
budget stays in the form in which it was begun, because the first hash contains its terms. Terms of
form 1 do not say their form. They also have ``zero``, which follows from the measure.
"""

from __future__ import annotations

import json
from typing import Any

from .. import checks
from ..accounts.charge import Terms
from ..errors import InvalidTypeError, LedgerDamagedError, LedgerError, LedgerMismatchError
from ..fdp.function import TradeoffFunction, check_function
from . import measures
from .encoding import canonical, decode, encode, from_shape, to_shape
from .readable import UNREADABLE, is_text
from .wire import NEWEST

_FIELDS = ("measure", "accounting", "zero", "metric", "d_in", "d_out")
_KEYS = {"accumulator": "accounting", "d_in": "d_in", "d_out": "d_out"}


def write_terms(terms: Terms, form: int = NEWEST) -> str:
    """Write ``terms``.

    :raises InvalidTypeError: if one of them has no exact form
    """
    if form == 1:
        return canonical(
            {name: encode(_argument(name), getattr(terms, name), 1) for name in _FIELDS}
        )
    shape = {key: to_shape(key, getattr(terms, name), form) for key, name in _KEYS.items()}
    measure = measures.written(checks.text(output_measure=terms.measure))
    shape |= {"form": form, "measure": measure, "metric": checks.text(input_metric=terms.metric)}
    zero = to_shape("zero", terms.zero, form)
    if zero not in [to_shape("zero", one, form) for one in measures.read(measure)[1]]:
        shape["zero"] = zero  # of a measure that is not ours
    return canonical(shape)


def read_terms(text: str) -> tuple[Terms, int]:
    """Return the terms that :func:`write_terms` wrote, and the form.

    :raises LedgerDamagedError: if the text is not canonical
    :raises LedgerError: if a newer version wrote it
    :raises UnregisteredError: if it has a value whose class was not registered
    """
    try:
        shape = json.loads(text)
        form = shape.get("form", 1)
        if type(form) is int and form > NEWEST:
            raise LedgerError(
                f"the budget is kept in form {form}, this version of opendp_concurrent reads forms "
                f"up to {NEWEST}: use a newer one"
            )
        if type(form) is int and form in (1, NEWEST):
            terms = _terms_1(shape) if form == 1 else _terms(shape)
            if write_terms(terms, form) == text and _are_terms(terms):
                return terms, form
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the terms are unreadable")


def _terms_1(shape: Any) -> Terms:
    return Terms(**{name: decode(shape[name], 1) for name in _FIELDS})


def _terms(shape: Any) -> Terms:
    values = {name: from_shape(shape[key]) for key, name in _KEYS.items()}
    measure, zeros = measures.read(shape["measure"])
    zero = from_shape(shape["zero"]) if "zero" in shape else zeros[0]
    return Terms(measure=measure, zero=zero, metric=shape["metric"], **values)


def _are_terms(terms: Terms) -> bool:
    """Whether a budget can be kept under them; raises otherwise, too."""
    start = terms.empty_total()
    if isinstance(terms.zero, TradeoffFunction):
        check_function(zero=terms.zero)
        if terms.d_out is not None:
            check_function(d_out=terms.d_out)
    elif terms.d_out is not None:
        start.after(terms.d_out)  # a bound is a loss
    if isinstance(terms.d_in, (int, float)):
        checks.non_negative(d_in=terms.d_in)  # as a double: no integer of 5,000 digits
    names = (terms.measure, terms.metric)
    return all(type(one) is str and is_text(one) for one in names) and start.loss is not None


def first_record(terms: Terms) -> str:
    """Return the running total of no launch, as it is recorded.

    :raises InvalidTypeError: if the accumulator cannot be recorded
    """
    accounting = terms.accounting
    try:
        text = canonical(terms.empty_total().to_record())
        again = terms.read_total(json.loads(text)).to_record()
        if canonical(again) == text:
            return text
        reason = "its record is read as another one"
    except UNREADABLE as error:
        reason = f"its record cannot be written and read as JSON: {error}"
    raise InvalidTypeError(f"accumulator ({accounting!r}) cannot be kept in a ledger: {reason}")


def require_same(recorded: str, terms: Terms) -> None:
    """Raise unless ``terms`` are those that were recorded.

    :raises LedgerMismatchError: naming the first that differs
    """
    before, _ = read_terms(recorded)
    for name in ("measure", "metric", "accounting", "d_in", "d_out", "zero"):
        one, other = getattr(before, name), getattr(terms, name)
        if encode(name, one) != encode(name, other) and one != other:
            raise LedgerMismatchError(_argument(name), _shown(name, one), _shown(name, other))


def _argument(name: str) -> str:
    return {"measure": "output_measure", "metric": "input_metric", "accounting": "accumulator"}.get(
        name, name
    )


def _shown(name: str, value: Any) -> Any:
    return "no bound (an odometer)" if name == "d_out" and value is None else value
