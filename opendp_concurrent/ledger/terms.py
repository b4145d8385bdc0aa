"""What a budget is about, as text, and whether two are about the same."""

from __future__ import annotations

import json
from typing import Any

from .. import checks
from ..accounts.charge import Terms
from ..errors import InvalidTypeError, LedgerDamagedError, LedgerMismatchError
from ..fdp.function import TradeoffFunction, check_function
from .encoding import canonical, decode, encode
from .readable import UNREADABLE

_FIELDS = ("measure", "accounting", "zero", "metric", "d_in", "d_out")


def write_terms(terms: Terms) -> str:
    """Write ``terms``.

    :raises InvalidTypeError: if one of them has no exact form
    """
    try:
        encode("accumulator", terms.accounting)
    except InvalidTypeError:
        raise InvalidTypeError(
            f"accumulator ({terms.accounting!r}) cannot be kept in a ledger: "
            "a rule of your own has no exact record"
        ) from None
    return canonical({name: encode(name, getattr(terms, name)) for name in _FIELDS})


def read_terms(text: str) -> Terms:
    """Inverse of :func:`write_terms`."""
    try:
        shape = json.loads(text)
        terms = Terms(**{name: decode(shape[name]) for name in _FIELDS})
        if write_terms(terms) == text and _are_terms(terms):
            return terms
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the terms are unreadable")


def _are_terms(terms: Terms) -> bool:
    """Whether a budget can be kept under them; raises otherwise, too."""
    start = terms.accounting.start(terms.zero)
    if isinstance(terms.zero, TradeoffFunction):
        check_function(zero=terms.zero)
        if terms.d_out is not None:
            check_function(d_out=terms.d_out)
    elif terms.d_out is not None:
        start.after(terms.d_out)  # a bound is a loss
    if isinstance(terms.d_in, (int, float)):
        checks.non_negative(d_in=terms.d_in)  # as a double: no integer of 5,000 digits
    names = isinstance(terms.measure, str) and isinstance(terms.metric, str)
    return names and start.loss is not None


def require_same(recorded: str, terms: Terms) -> None:
    """Raise unless ``terms`` are those that were recorded.

    :raises LedgerMismatchError: naming the first that differs
    """
    if recorded == write_terms(terms):
        return
    before = read_terms(recorded)
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
