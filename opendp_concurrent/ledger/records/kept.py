"""Write the state of a budget after a charge, so that whoever opens it reads later charges only.

The digest covers the state, the first hash, and thus dataset and terms, and what the database says
of the triggers that keep charges from being changed. It shows damage and careless edits. It is no
signature: who may write to the database can compute it.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from ...accounts.store import Terms
from .encoding import canonical
from .limits import Limits
from .measures import read_total
from .readable import UNREADABLE
from .replay import Known


def can_keep(known: Known, terms: Terms) -> bool:
    """Return whether the records of all totals say what they are, without the charges."""
    kinds = [terms.accumulator, *(one.terms.accumulator for one in known.limits.all())]
    return not any(getattr(type(one), "follows_from_charges", False) for one in kinds)


def write_state(known: Known) -> str:
    """Write the state after a charge."""
    total, limits = known.accumulator.to_record(), known.limits.to_record()
    return canonical([known.sequence, known.head, total, limits])


def digest(first: str, guard: str, state: str) -> str:
    """Return the digest of a state.

    :param first: the hash before the first charge
    :param guard: what the database says of its triggers
    """
    return sha256(canonical([first, guard, state]).encode()).hexdigest()


def read_state(terms: Terms, state: Any) -> Known | None:
    """Inverse of :func:`write_state`; None if it is none."""
    try:
        sequence, head, total, limits = json.loads(state)
        if type(sequence) is not int or type(head) is not str:
            return None
        known = Known(sequence, head, read_total(terms, total), Limits.from_record(limits))
        return known if write_state(known) == state else None
    except UNREADABLE:
        return None
