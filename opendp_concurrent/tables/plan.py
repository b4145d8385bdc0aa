"""Plans: what is asked of an engine, as frozen relational nodes. They hold no data.

A relation node is a table that is derived from a scan, row by row or within a unit. An aggregate
maps a relation to integers. ``render.py`` makes a statement of both; the meaning of each
node is its docstring, which the proofs refer to, and which the tests interpret in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Any, TypeAlias

from .schema import Schema, Type
from .typed import Node

KEY = "fair"  # of hashes, unless another one is given; any text that is not from the data will do


Rows: TypeAlias = tuple[tuple[Any, ...], ...]  # public tuples


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a stored table whose unit is not NULL, or all rows if each is a unit.

    NaN is read as NULL.

    :ivar reference: where the engine finds it: ``"table"`` and the parts of its name, or
        ``"parquet"`` and paths
    :ivar fixed: whether its rows, their types and what it is no longer change: decimals are stored
        as integers then
    """

    reference: tuple[str, ...]
    schema: Schema
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """The rows for which a predicate holds. It holds or does not, also on NULL."""

    of: Relation
    predicate: Node


@dataclass(frozen=True, slots=True)
class WithColumns:
    """All rows, each with new columns, and others in place of old ones of the same names.

    :ivar columns: names and values, which are of the row as it was before
    """

    of: Relation
    columns: tuple[tuple[str, Node], ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Select:
    """All rows, with some of the columns."""

    of: Relation
    schema: Schema


@dataclass(frozen=True, slots=True)
class Truncate:
    """Some rows of each unit; or of each unit in each of some of its groups.

    The rows of a unit, or of a group, are numbered in ascending order of all columns, NULL first;
    rows that are equal in all columns are interchangeable. A hash is the MD5 of the key, the
    numbers of the group and the row, and the unit. Kept are the first rows in the order of
    ``order_by`` and then of hashes. A group is all rows of a unit with the same values in the
    columns ``by``; NULL is one of the values. Groups are numbered in ascending order, too, and
    those with the least hashes are kept.

    :ivar rows: of each unit, or of each group
    :ivar key: public text
    :ivar descending: whether the order of ``order_by`` is reversed, so that NULL is last
    :ivar by: columns of the groups; empty if there are none
    :ivar groups: of each unit, if there are any
    """

    of: Relation
    rows: int
    key: str = KEY
    order_by: tuple[str, ...] = ()
    descending: bool = False
    by: tuple[str, ...] = ()
    groups: int = 0


@dataclass(frozen=True, slots=True)
class PublicJoin:
    """Each pair of a row and a public row whose key it has in ``on``, with the columns of both.

    :ivar on: names of columns
    :ivar added: names of the columns that the join adds
    :ivar keys: values of ``on`` for each public row
    :ivar rows: values of the added columns for each public row; None is NULL
    :ivar how: ``"inner"``; or ``"left"``, which also has each row without a public one, with NULL
    """

    of: Relation
    on: tuple[str, ...]
    added: tuple[str, ...]
    keys: Rows
    rows: Rows
    how: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class PrivateJoin:
    """Each pair of a row and a row of another relation that have one unit and are equal in ``on``.

    NULL in a column of ``on`` equals nothing. Units are compared column by column, in their order.

    :ivar other: the other relation
    :ivar on: names of columns of both
    :ivar added: names of new columns, and those of the other relation whose values they have
    :ivar how: ``"inner"``; ``"left"``, which also has each row without a partner, with NULL in the
        new columns; ``"semi"``, each row with a partner, once; ``"anti"``, each row without one
    """

    of: Relation
    other: Relation
    on: tuple[str, ...]
    added: tuple[tuple[str, str], ...]
    how: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class OfUnit:
    """What the rows of one unit are made into.

    The number of rows, or of different values; the smallest or the largest value, NULL if there is
    none; or the sum of values, clamped to the bounds. NULL is no value. Of floats, each value is
    quantised as by :class:`Quantised`, clamped to 2^51 quanta, and the sum in quanta, which the
    bounds are in, is multiplied by the quantum.

    :ivar statistic: ``"count"``, ``"count_distinct"``, ``"sum"``, ``"min"`` or ``"max"``
    :ivar kind: its type
    """

    statistic: str
    kind: Type
    column: str = ""
    bounds: tuple[int, int] = (0, 0)
    quantum: float | None = None


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit that has a row: the unit's columns, and what its rows are made into."""

    of: Relation
    columns: tuple[tuple[str, OfUnit], ...]
    schema: Schema


Relation: TypeAlias = (
    Scan | Where | WithColumns | Select | Truncate | PublicJoin | PrivateJoin | PerUnit
)


def moving(relation: Relation) -> tuple[Scan, ...]:
    """Return what a relation scans and may still change."""
    if isinstance(relation, Scan):
        return () if relation.fixed else (relation,)
    other = moving(relation.other) if isinstance(relation, PrivateJoin) else ()
    return moving(relation.of) + other


@dataclass(frozen=True, slots=True)
class Quantised:
    """The integer that a row adds to a sum: 0 for NULL.

    Of a column of integers, the value clamped to ``[lower, upper]``. Of a column of floats,
    ``floor(x * factor + 0.5)``, where x is the value clamped to ``[lower, upper]``, in doubles.

    :ivar factor: number of steps in 1; None for integers
    """

    column: str
    lower: int | float
    upper: int | float
    factor: float | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest integer, as the engine computes them: both are monotone."""
        if self.factor is None:
            return int(self.lower), int(self.upper)
        first, last = (floor(one * self.factor + 0.5) for one in (self.lower, self.upper))
        return first, last

    @property
    def largest(self) -> int:
        """The largest absolute value."""
        return max(map(abs, self.ends))


@dataclass(frozen=True, slots=True)
class Term:
    """An integer of each row, which is added up: a power of a value, or 1 of each row.

    :ivar value: None is 1 of each row
    :ivar power: 0, 1 or 2; at 0 it is 1 of each row that has a value
    """

    value: Quantised | None = None
    power: int = 1


ROW = Term()


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of terms over all rows; or for each public key, over its rows.

    A row whose values in ``by`` are no key is in no group. None in a key is NULL.

    :ivar by: columns of the keys; empty for all rows
    :ivar distinct: of rows of a group that are equal in these columns, only one is taken, and none
        if one of them is NULL; empty for all rows
    """

    of: tuple[Term, ...]
    by: tuple[str, ...] = ()
    keys: Rows = ((),)
    distinct: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """For each key of the data and each j, the number of units that have rows of it and j keys.

    A key is the values of a row in the columns ``by``, none of which is NULL. Dates are those of
    Python, and timestamps are texts. A row of the answer has the values of the key, j, and the
    number.
    """

    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bins:
    """The number of rows in each bin between edges; NULL is in no bin.

    For each public key, as in :class:`Sums`; for all rows if ``by`` is empty. Bin i is below
    edge i and at least the edge before.

    :ivar edges: increasing
    """

    column: str
    edges: tuple[int | float, ...]
    by: tuple[str, ...] = ()
    keys: Rows = ((),)


Aggregate: TypeAlias = Sums | FoundKeys | Bins
