"""Integers out of tables: OpenDP's domains and metrics, and stability maps in units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opendp.domains import atom_domain, vector_domain
from opendp.metrics import absolute_distance, l1_distance, l2_distance, linf_distance
from opendp.mod import Domain, Metric, Transformation

from .. import _opendp as _native
from .._checks import one_of
from ..errors import InvalidValueError
from .domain import Norms, Tables, root_above, table_domain, units, units_in
from .engine import Rows
from .plan import Aggregate, Sums
from .schema import LARGEST
from .steps import table_given

INTEGER = "i64"
norm_of = one_of("l1", "l2", "linf")
Decode = Callable[[Rows], Any]


@dataclass(frozen=True, slots=True)
class Output:
    """The domain and the metric of an answer, and how far one unit moves it.

    :ivar per_unit: how far; its square, if ``squared``
    """

    domain: Domain
    metric: Metric
    per_unit: int
    squared: bool = False

    def map(self, d_in: int) -> int | float:
        """Return how far that many units move the answer: exact for integers, else rounded up."""
        if self.squared:
            return root_above(self.per_unit * d_in**2)
        found = d_in * self.per_unit
        if found > LARGEST:
            raise InvalidValueError(f"d_in ({d_in}) times {self.per_unit} must be within 64 bits")
        return found


def scalar(per_unit: int) -> Output:
    """Return the output of one integer."""
    return Output(atom_domain(T=INTEGER), absolute_distance(T=INTEGER), per_unit)


def vector(size: int, norm: str, of: Norms, per_row: Sequence[int] = (1,)) -> Output:
    """Return the output of integers, one or several for each group.

    :param of: norms of what one unit contributes
    :param per_row: largest absolute value that a row adds to each integer of its group
    """
    norms = Norms(sum(per_row), sum(one**2 for one in per_row), max(per_row))
    return combined(size * len(per_row), norm, of, norms)


def combined(size: int, norm: str, of: Norms, per_row: Norms) -> Output:
    """Return the output of so many integers, of which a row adds to those of its group only."""
    domain = vector_domain(atom_domain(T=INTEGER), size=size)
    if norm == "l1":
        return Output(domain, l1_distance(T=INTEGER), of.l1 * per_row.l1)
    if norm == "l2":
        squares = of.l2_squared * per_row.l2_squared
        return Output(domain, l2_distance(T=float), squares, squared=True)
    return Output(domain, linf_distance(T=INTEGER), of.linf * per_row.linf)


def make_answer(
    tables: Tables, aggregate: Aggregate, output: Output, decode: Decode
) -> Transformation:
    """Make a transformation that asks the engine for an aggregate."""

    def function(table: Any) -> Any:
        return decode(table_given(tables, table).ask(aggregate))

    return _native.make_user_transformation(
        table_domain(tables),
        units(),
        output.domain,
        output.metric,
        _native.carry(function),
        _native.carry(lambda d_in: output.map(units_in(d_in=d_in))),
    )


def saturated(value: int) -> int:
    """Return an integer within 64 bits. Clamping never increases distances."""
    return min(max(value, -LARGEST), LARGEST)


def one_integer(rows: Rows) -> int:
    """Return the only integer of a statement."""
    ((value,),) = rows
    return saturated(value)


def placed(size: int) -> Decode:
    """Return a function from pairs of a place and an integer to a list; others are 0."""

    def decode(rows: Rows) -> list[int]:
        found = [0] * size
        for place, value in rows:
            found[place] = saturated(value)
        return found

    return decode


def make_sums(
    tables: Tables,
    sums: Sums,
    norm: str,
    of: Norms,
    per_row: Sequence[int],
    read: Callable[..., Sequence[int]] = lambda *sums: sums,
) -> Transformation:
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
