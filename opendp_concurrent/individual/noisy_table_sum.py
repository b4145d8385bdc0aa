"""Queries of the individual filter on tables: noisy sums of one bounded number per unit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.rounding import least_double
from ..tables.expression import Expression
from ..tables.plan import Quantised
from ..tables.schema import Schema, column_name, names_of
from ..tables.typed import Node
from ..tables.typed import checked as checked_condition
from .noisy_sum import COARSEST_NOISE, FINEST_NOISE

MOST_STEPS = 2**40  # of a bound


@dataclass(
    frozen=True, eq=False
)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class NoisyTableSum:
    """A noisy sum of one number per unit of a table.

    The number of a unit is the sum of a column over those of its rows for which ``where`` holds,
    or the number of these rows. It is clipped to ``[-bound, bound]``. So no truncation is needed
    before. Each row is clipped in the same way before it is added. Missing values add 0. Floats are
    rounded to whole quanta, as in :func:`.make_table_sum`.

    :ivar column: name of a column of integers or floats; None counts rows. With ``bound=1`` the
        count is of units that have such a row
    :ivar bound: largest absolute value of one unit's number, above 0; of integers and counts an
        integer. At most 2^40, or 2^40 quanta
    :ivar scale: scale of the noise, in units of the column; public
    :ivar quantum: for floats only: what is added is a whole number of quanta, such as 0.01
    :ivar where: predicate on rows, made of :func:`.column`; all rows if left out
    :raises InvalidTypeError, InvalidValueError: naming the argument; what depends on the columns
        is checked when it is asked, before anything is charged

    :example:

    >>> spent = oc.m.NoisyTableSum("eur", bound=50.0, scale=200.0, quantum=0.01)
    >>> adults = oc.m.NoisyTableSum(None, bound=1, scale=5.0, where=oc.tables.column("age") >= 18)
    """

    column: str | None
    bound: float
    scale: float
    quantum: float | None = None
    where: Expression | None = None

    def __eq__(self, other: object) -> bool:  # expressions have no truth value
        return type(other) is NoisyTableSum and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __post_init__(self) -> None:
        given: dict[str, Any] = {
            "column": None if self.column is None else column_name(column=self.column),
            "bound": checks.positive(bound=self.bound),
            "scale": checks.positive(scale=self.scale),
            "quantum": None if self.quantum is None else checks.positive(quantum=self.quantum),
        }
        if self.where is not None and not isinstance(self.where, Expression):
            raise InvalidTypeError(
                f"where must be made of oc.tables.column(...), found {type(self.where).__name__}"
            )
        for name, value in given.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class SumInSteps:
    """A query in whole steps: quanta, or integers.

    :ivar value: what a row adds; None counts rows
    :ivar reach: the number of a unit is clipped to this many steps
    :ivar scale: scale of the noise, in steps, rounded up
    :ivar step: one step in units of the column
    :ivar where: predicate on rows; None keeps all
    """

    value: Quantised | None
    reach: int
    scale: float
    step: float
    where: Node | None


def steps_of(query: NoisyTableSum, schema: Schema) -> SumInSteps:
    """Return a query of tables with this schema in whole steps, or raise naming the argument."""
    where = None if query.where is None else checked_condition(schema, query.where, "where")
    bound, factor, value = query.bound, 1.0, None
    floats = False
    if query.column is not None:
        (name,) = names_of("column", schema, query.column, (int, float))
        floats = schema.kind(name) is float
    if floats:
        if query.quantum is None:
            raise InvalidTypeError(
                "quantum must be given for a column of floats, for example 0.01: sums of floats "
                "depend on the order in which the engine adds them"
            )
        if not 2.0**-500 <= query.quantum <= 2.0**500:
            raise InvalidValueError(f"quantum ({query.quantum}) must be from 2^-500 to 2^500")
        factor = 1.0 / query.quantum
        value = Quantised(name, -bound, bound, factor)
    elif query.quantum is not None:
        raise InvalidTypeError("quantum is for columns of floats; leave it out")
    elif not bound.is_integer():
        raise InvalidValueError(
            f"bound ({bound}) must be a whole number for a count or a column of integers"
        )
    in_steps = bound * factor
    if not 1.0 <= in_steps <= MOST_STEPS:
        raise InvalidValueError(
            f"bound ({bound}) must be from 1 to 2^40 steps of {query.quantum or 1}"
        )
    if query.column is not None and not floats:
        value = Quantised(name, -int(bound), int(bound))
    exact = Fraction(query.scale) * Fraction(factor)
    if not FINEST_NOISE <= exact <= COARSEST_NOISE:
        raise InvalidValueError(
            f"scale ({query.scale}) must be from 2^-30 to 2^62 steps of {query.quantum or 1}"
        )
    scale = least_double(lambda one: one >= exact, near=float(exact))
    return SumInSteps(value, floor(in_steps + 0.5), scale, query.quantum or 1.0, where)
