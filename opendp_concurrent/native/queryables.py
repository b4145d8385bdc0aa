"""Native queryables."""

from __future__ import annotations

from collections.abc import Callable

from opendp import core
from opendp.mod import Queryable

from ..interrupts import whole
from ..types import Answer, Query
from .calls import carry


def evaluate(queryable: Queryable, query: Query) -> Answer:
    """Query a native queryable."""
    return core.queryable_eval(queryable, query)


def evaluate_odometer(queryable: Queryable, query: Query) -> Answer:
    """Launch on a native odometer queryable."""
    return core.odometer_queryable_invoke(queryable, query)


@whole
def python_queryable(transition: Callable[[Query], Answer]) -> Queryable:
    """Make a native queryable from Python, so that OpenDP's wrappers apply to it.

    The object that OpenDP returns has the transition in ``__opendp_dict__``, from where its closure
    could be read. So only the pointer leaves this function.
    """
    made = core.new_queryable(carry(transition), Q="ExtrinsicObject", A="ExtrinsicObject")
    return made.value
