"""Integers out of tables: OpenDP's domains and metrics, and stability maps in units."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _checks as checks
from .._opendp import carry, dp, make_user_transformation
from ..errors import InvalidTypeError, InvalidValueError
from . import plan as nodes
from . import schema as schemas
from .domain import Norms, Tables, root_above, table_domain, units, units_in
from .engine import Rows
from .table import table_given

INTEGER = "i64"
MOST_STEPS = 2**52  # of a quantised value, so that doubles hold it
norm_of = checks.one_of("l1", "l2", "linf")
Decode = Callable[[Rows], Any]


@dataclass(frozen=True, slots=True)
class Output:
    """The domain and the metric of an answer, and how far one unit moves it.

    :ivar per_unit: how far; its square, if ``squared``
    """

    domain: dp.Domain
    metric: dp.Metric
    per_unit: int
    squared: bool = False

    def map(self, d_in: int) -> int | float:
        """Return how far that many units move the answer: exact for integers, else rounded up."""
        if self.squared:
            return root_above(self.per_unit * d_in**2)
        found = d_in * self.per_unit
        if found > schemas.LARGEST:
            raise InvalidValueError(f"d_in ({d_in}) times {self.per_unit} must be within 64 bits")
        return found


def scalar(per_unit: int) -> Output:
    """Return the output of one integer."""
    return Output(dp.atom_domain(T=INTEGER), dp.absolute_distance(T=INTEGER), per_unit)


def vector(size: int, norm: str, of: Norms, per_row: Sequence[int] = (1,)) -> Output:
    """Return the output of integers, one or several for each group.

    :param of: norms of what one unit contributes
    :param per_row: largest absolute value that a row adds to each integer of its group
    """
    norms = Norms(sum(per_row), sum(one**2 for one in per_row), max(per_row))
    return combined(size * len(per_row), norm, of, norms)


def combined(size: int, norm: str, of: Norms, per_row: Norms) -> Output:
    """Return the output of so many integers, of which a row adds to those of its group only."""
    domain = dp.vector_domain(dp.atom_domain(T=INTEGER), size=size)
    if norm == "l1":
        return Output(domain, dp.l1_distance(T=INTEGER), of.l1 * per_row.l1)
    if norm == "l2":
        squares = of.l2_squared * per_row.l2_squared
        return Output(domain, dp.l2_distance(T=float), squares, squared=True)
    return Output(domain, dp.linf_distance(T=INTEGER), of.linf * per_row.linf)


def make_answer(
    tables: Tables, aggregate: nodes.Aggregate, output: Output, decode: Decode
) -> dp.Transformation:
    """Make a transformation that asks the engine for an aggregate."""

    def function(table: Any) -> Any:
        return decode(table_given(tables, table).ask(aggregate))

    return make_user_transformation(
        table_domain(tables),
        units(),
        output.domain,
        output.metric,
        carry(function),
        carry(lambda d_in: output.map(units_in(d_in=d_in))),
    )


def quantised(
    schema: schemas.Schema, column: str | None, bounds: Any, quantum: float | None
) -> nodes.Quantised:
    """Return what a row adds to a sum."""
    name = schemas.name_of("column", schema, column, (int, float))
    lower, upper = checks.pair(bounds=bounds)
    if schema.kind(name) is int:
        if quantum is not None:
            raise InvalidTypeError("quantum is for columns of floats; leave it out")
        own = schema.type_of(name)
        first, last = schemas.value_of(own, bounds=lower), schemas.value_of(own, bounds=upper)
        found = nodes.Quantised(name, first, last)
        most = "of at most 2^62 in absolute value, or as many times the last digit of a decimal"
        check_bounds(first <= last, found.largest <= 2**62, bounds, most)
        return found
    if quantum is None:
        raise InvalidTypeError(
            "quantum must be given for a column of floats, for example 0.01: sums of floats depend "
            "on the order in which the engine adds them"
        )
    if not 2.0**-500 <= quantum <= 2.0**500:
        raise InvalidValueError(f"quantum ({quantum}) must be from 2^-500 to 2^500")
    low, high = checks.real(bounds=lower), checks.real(bounds=upper)
    factor = 1.0 / quantum
    steps = max(abs(low), abs(high)) * factor
    check_bounds(low <= high, steps <= MOST_STEPS, bounds, f"of at most 2^52 quantum ({quantum})")
    return nodes.Quantised(name, low, high, factor)


def check_bounds(ordered: bool, small: bool, bounds: tuple[float, float] | None, most: str) -> None:
    """Raise unless bounds are in order, and not too large."""
    if not (ordered and small):
        raise InvalidValueError(
            f"bounds ({checks.shown(bounds)}) must be a lower and an upper bound, in this order, "
            f"{most}"
        )


def saturated(value: int) -> int:
    """Return an integer within 64 bits. Clamping never increases distances."""
    return min(max(value, -schemas.LARGEST), schemas.LARGEST)


def one_integer(rows: Rows) -> int:
    """Return the only integer of a statement."""
    ((value,),) = rows
    return saturated(value)


def make_sums(
    tables: Tables,
    sums: nodes.Sums,
    norm: str,
    of: Norms,
    per_row: Sequence[int],
    read: Callable[..., Sequence[int]] = lambda *sums: sums,
) -> dp.Transformation:
    """Make a transformation that asks for sums, of all rows or of groups.

    :param of: what one unit contributes to the groups
    :param per_row: largest absolute value that a row adds to each integer of its group
    :param read: returns the integers of a group from its sums
    """
    size = len(per_row)

    def decode(rows: Rows) -> list[int]:
        found = [0] * (size * len(sums.keys))
        for row in rows:
            place, values = (row[0], row[1:]) if sums.by else (0, row)
            found[size * place : size * (place + 1)] = map(saturated, read(*values))
        return found

    return make_answer(tables, sums, vector(len(sums.keys), norm, of, per_row), decode)
