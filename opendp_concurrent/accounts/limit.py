"""A limit: the bound of an odometer below another account, under a label that names it.

A limit is identified by its path: its label, after the labels of the limits that it is below. Its
terms are fixed when it is opened. Whoever opens it again must give the same terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LimitMismatchError
from ..shown import rounded, shown
from .charge import Terms
from .price import same_distance

_FIELDS = (  # of the terms, and the argument that each of them comes from
    ("measure", "output_measure"),
    ("metric", "input_metric"),
    ("accumulator", "accumulator"),
    ("d_in", "d_in"),
    ("d_out", "d_out"),
)


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound below another account.

    :ivar label: names it among the limits below the same account
    :ivar terms: what it bounds, at which d_in, and how losses add up
    """

    label: str
    terms: Terms

    def __str__(self) -> str:
        return f"{shown(self.label)}, {rounded(self.terms.d_out)} at d_in={shown(self.terms.d_in)}"


def require_same_terms(path: tuple[str, ...], before: Terms, now: Terms) -> None:
    """Check that a limit that was opened before is opened again under its own terms.

    :raises LimitMismatchError: naming the limit and the first argument that differs
    """
    for field, argument in _FIELDS:
        one, other = getattr(before, field), getattr(now, field)
        if not same_term(field, one, other):
            raise LimitMismatchError(path, argument, shown(one), shown(other))


def same_term(field: str, one: Any, other: Any) -> bool:
    """Return whether a field of terms has the same value in both.

    Distances are compared as accounts compare them, except that 1 and 1.0 are the same number.
    """
    if field == "d_in" and not {type(one), type(other)} <= {int, float}:
        return same_distance(one, other)
    try:
        return bool(one == other)
    except ValueError:  # of arrays
        return same_distance(one, other)
