"""Schemas of tables: public names and types of the columns, and the column of the unit."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal as Exact
from fractions import Fraction
from itertools import islice, product
from math import isfinite
from typing import Any, TypeAlias, cast

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from ..numerics import typed

KINDS: dict[type, str] = {kind: kind.__name__ for kind in (int, float, str, bool, date, datetime)}
KEYS = tuple(kind for kind in KINDS if kind is not float)  # whose equality is exact
_OF_FLOATS = (
    ": floats that were computed are seldom equal to a key. Make keys of them: "
    "with_columns(key=col(...).cast(int)) of whole numbers, col(...).cut([0.5, 1.5]) of bins; or "
    "store decimals, and scan them as oc.tables.Decimal(2)"
)
UNITS = (int, str)
ROW = ()  # the unit of a table in which each row is a unit, and no column says to whom it belongs
DIGITS = checks.at_most(18, "64 bits have 18 digits", checks.whole)
LARGEST = 2**63 - 1  # of an integer in each engine


@dataclass(frozen=True, slots=True)
class Decimal:
    """A stored decimal number, DECIMAL(p, scale).

    Bounds, constants, keys and answers are in the unit of the column, exactly: a constant is an
    integer, a ``decimal.Decimal``, a ``Fraction`` or a float, which is read as the shortest decimal
    that is this float, and must have at most ``scale`` digits after the point. Answers are of
    ``decimal.Decimal``, or of integers if ``scale`` is 0. The engine has integers, multiples of
    10^-scale, such as cents for ``Decimal(2)``; so have the answers of transformations of ``oc.t``.

    :ivar scale: number of digits after the point, from 0 to 18; p is at most 18

    :example:

    >>> schema = {"person": int, "price": oc.tables.Decimal(2)}
    """

    scale: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", DIGITS(scale=self.scale))


checks.sent(Decimal, "decimal")(Decimal)


def exact_of(**argument: Any) -> Fraction:
    """Return a public number as a fraction; a float is read as its shortest decimal. Or raise."""
    ((name, given),) = argument.items()
    value = checks.own_number(given)
    found = typed(value) if isinstance(value, (Exact, Fraction)) else value
    if isinstance(found, int):
        return Fraction(checks.integer(**{name: found}))
    if not isinstance(found, Fraction):
        number = checks.real(**{name: found})
        if not isfinite(number):
            raise InvalidValueError(f"{name} ({checks.shown(given)}) must be finite")
        found = Fraction(Exact(repr(number)))
    return found


Type: TypeAlias = type | Decimal  # of a column
By: TypeAlias = str | Sequence[str]  # names of columns
Names: TypeAlias = By | Sequence[str | None] | None  # the same, of which some may be missing


def spelled(one: Type) -> str:
    """Return a type as a text."""
    return f"Decimal({one.scale})" if isinstance(one, Decimal) else KINDS[one]


def kind_of(one: Type) -> type:
    """Return the type that the engine's values of a column have."""
    return int if isinstance(one, Decimal) else one


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in their order, each with its type. Equal by value.

    :ivar columns: pairs of a name and a type
    :ivar unit: names of the columns that say to whom a row belongs: rows that are equal in all of
        them belong to one unit. If there are none, each row is a unit
    """

    columns: tuple[tuple[str, Type], ...]
    unit: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return tuple(name for name, _ in self.columns)

    def type_of(self, column: Hashable, name: str = "column") -> Type:
        """Return the type of a column, or raise naming the argument."""
        text = str.__str__(column) if isinstance(column, str) else None
        for known, kind in self.columns:
            if known == text:
                return kind
        raise InvalidValueError(
            f"{name} ({checks.shown(column)}) must be a column of the table; its columns are: "
            f"{', '.join(self.names)}"
        )

    def kind(self, column: Hashable, name: str = "column") -> type:
        """Return the type that the engine's values of a column have, or raise."""
        return kind_of(self.type_of(column, name))

    def keep(self, names: tuple[str, ...]) -> Schema:
        """Return the schema of some columns, in their order here, the unit's among them."""
        wanted = {*names, *self.unit}
        return replace(self, columns=tuple(one for one in self.columns if one[0] in wanted))

    def with_columns(self, columns: Mapping[str, Type]) -> Schema:
        """Return the schema with other columns; those of a known name stay in their places."""
        return replace(self, columns=tuple({**dict(self.columns), **columns}.items()))

    def __str__(self) -> str:
        told = (f"{json.dumps(name)}: {spelled(kind)}" for name, kind in self.columns)
        unit = ", ".join(map(json.dumps, self.unit))
        return f"{', '.join(told)}; " + (f"unit {unit}" if unit else "each row is a unit")


def schema_of(schema: Mapping[str, Type], unit: By | None) -> Schema:
    """Return a schema from a mapping of names to types and the unit's columns, or raise."""
    if unit is None:
        raise InvalidTypeError("unit must be given: the column that says to whom a row belongs")
    found = Schema(columns_of(schema), ROW)
    check_distinct("schema", found.names)
    if not found.columns:
        raise InvalidValueError("schema must have at least one column")
    if isinstance(unit, tuple) and not unit:  # ROW
        return found
    given = (unit,) if isinstance(unit, str) else checks.sequence("columns", unit=unit)
    names = tuple(column_name(unit=one) for one in given)
    if not names or found.kind(names[0], "unit") not in UNITS:
        raise InvalidTypeError(f"unit ({checks.shown(unit)}) must be a column of integers or texts")
    names = names_of("unit", found, names, KEYS)
    if any(isinstance(found.type_of(one), Decimal) for one in names):
        raise InvalidTypeError("unit must have no column of decimals, whose texts are not unique")
    return replace(found, unit=names)


def columns_of(schema: Mapping[str, Type]) -> tuple[tuple[str, Type], ...]:
    """Return names and types of columns, or raise."""
    given = checks.mapping("names of columns to types", schema=schema)
    return tuple((column_name(schema=name), _type(name, kind)) for name, kind in given.items())


def _type(name: str, kind: Any) -> Type:
    """Return the type of a column, or raise."""
    if type(kind) is Decimal or (type(kind) is type and kind in KINDS):
        return kind
    raise InvalidTypeError(
        f"schema[{checks.shown(name)}] must be int, float, str, bool, datetime.date, "
        f"datetime.datetime or oc.tables.Decimal(scale), "
        f"found {checks.shown(kind)}"
    )


def column_name(**argument: Any) -> str:
    """Return a name that each engine can quote, or raise."""
    ((place, name),) = argument.items()
    if not isinstance(name, str):
        raise InvalidTypeError(f"{place} must have texts as names, found {type(name).__name__}")
    text = str.__str__(name)
    if not (text and _storable(text)):
        raise InvalidValueError(
            f"{place} ({checks.shown(text)}) must be a nonempty name in valid Unicode without NUL"
        )
    return text


def check_distinct(place: str, names: tuple[str, ...]) -> None:
    """Raise if two names are equal but for case: engines compare names without it."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) != len(folded):
        raise InvalidValueError(
            f"{place} must have names that differ by more than case: engines fold it; rename one "
            f"of: {', '.join(names)}"
        )


def _storable(text: str) -> bool:
    """Whether each engine can store a text: valid Unicode without NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def value_of(kind: Type, **argument: Any) -> Any:
    """Return a public value as the engine has it, if it is one of a column's type, or raise.

    No rounding, and no conversion that differs between engines: integers of 64 bits, doubles other
    than NaN, texts in Unicode without NUL, Booleans, dates, timestamps without a zone or in UTC.
    """
    ((name, given),) = argument.items()
    value = checks.own_number(given)
    if isinstance(kind, Decimal):
        steps = exact_of(**argument) * 10**kind.scale
        if steps.denominator != 1:
            raise InvalidValueError(
                f"{name} ({checks.shown(value)}) must have at most {kind.scale} digits after the "
                "point, as the column has"
            )
        return value_of(int, **{name: int(steps)})
    if kind is float:
        return checks.real(**argument)
    if kind is int:
        whole = checks.integer(**{name: value})
        if not -LARGEST <= whole <= LARGEST:
            raise InvalidValueError(f"{name} ({whole}) must be within 64 bits")
        return whole
    if not isinstance(value, kind) or (kind is date and isinstance(value, datetime)):
        raise InvalidTypeError(
            f"{name} must be of the column's type, {KINDS[kind]}, found {type(value).__name__}"
        )
    if kind is str and not _storable(str.__str__(value)):
        raise InvalidValueError(f"{name} must be valid Unicode without NUL")
    value = cast("Any", value)
    if kind is date:
        return date(value.year, value.month, value.day)
    if kind is datetime:
        if value.utcoffset():
            raise InvalidValueError(f"{name} must be a timestamp without a time zone, or in UTC")
        parts = value.year, value.month, value.day, value.hour, value.minute, value.second
        return datetime(*parts, value.microsecond)
    return checks.plain(value)


def in_unit(kind: Type, value: Any) -> Any:
    """Return a value that the engine has in the unit of the column: the inverse of value_of."""
    if not isinstance(kind, Decimal) or kind.scale == 0 or value is None:
        return value
    return Exact((int(value < 0), tuple(map(int, str(abs(value)))), -kind.scale))


def row_of(kinds: Sequence[Type], *, null: bool = False, **argument: Any) -> tuple[Any, ...]:
    """Return public values of columns as a tuple, or raise; of one column, a value is enough.

    :param null: whether None stands for a missing value
    """
    ((name, row),) = argument.items()
    wanted = f"{len(kinds)} values, one for each column"
    parts = (row,) if len(kinds) == 1 else tuple(checks.elements(wanted, **argument))
    if len(parts) != len(kinds):
        raise InvalidValueError(f"{name} has {checks.shown(row)}, which must have {wanted}")
    return tuple(
        None if null and one is None else value_of(kind, **{name: one})
        for kind, one in zip(kinds, parts, strict=True)
    )


Keys: TypeAlias = Iterable[object] | None  # a list, an array, a Series, a frame, or a mapping


def groups_of(
    schema: Schema, by: By | None, keys: Any
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return names of columns and their public keys; without them, no name and one empty key.

    Keys are distinct tuples with a value for each column, in which None stands for a missing value.
    """
    if by is None and keys is None:
        return (), ((),)
    columns: Any = None
    if isinstance(keys, Mapping):
        columns = checks.mapping("names of columns to values", keys=keys)
    elif hasattr(keys, "columns"):  # a frame of pandas or Polars
        columns = {name: keys[name] for name in keys.columns}
    if by is None and columns is None:
        raise InvalidTypeError("by must be given together with keys: the columns that they are of")
    names = names_of("by", schema, list(columns or ()) if by is None else by, KEYS)
    if keys is None:
        raise InvalidTypeError(
            "keys must be given together with by: public values of its columns, not from the data; "
            "a query of keys(by) finds those of the data under (ε, δ)"
        )
    found = listed(keys)
    if columns is not None:
        if not set(names) <= set(columns) or len(columns) > len(names):
            raise InvalidValueError(
                f"keys must have the columns of by ({', '.join(names)}), found "
                f"{', '.join(map(str, columns))}; pass list(keys) for keys that a query has found"
            )
        lists = [listed(columns[name]) for name in names]
        rows = product(*lists) if isinstance(keys, Mapping) else zip(*lists, strict=True)
        some = islice(rows, checks.MOST_ELEMENTS + 1)
        found = [row if len(names) > 1 else row[0] for row in some]
    kinds, given = list(map(schema.type_of, names)), checks.sequence("keys", keys=found)
    public = tuple(row_of(kinds, null=True, keys=one) for one in given)
    if len(set(public)) != len(public):
        raise InvalidValueError("keys must have distinct keys")
    return names, public


def listed(values: Any) -> Any:
    """Return the values of an array or a Series as a list, None for NaN; others as they are."""
    read = getattr(values, "tolist", getattr(values, "to_list", None))
    found = None if read is None else read()
    if not isinstance(found, list):
        return values
    return [None if (one != one) is True else one for one in found]


def names_of(
    place: str, schema: Schema, names: Names, kinds: tuple[type, ...], *, none: bool = False
) -> tuple[str, ...]:
    """Return names of distinct columns whose types are among ``kinds``, or raise.

    :param none: whether there may be no name
    """
    many = checks.elements if none else checks.sequence
    given = (names,) if isinstance(names, str) else many("columns", **{place: names})
    found = []
    for each in given:
        one = str.__str__(each) if isinstance(each, str) else each
        kind = schema.kind(one, place)
        if kind not in kinds:
            advice = _OF_FLOATS if kind is float and kinds is KEYS else ""
            raise InvalidTypeError(
                f"{place} ({checks.shown(one)}) must be a column of type "
                f"{', '.join(KINDS[one] for one in kinds)}, found {KINDS[kind]}{advice}"
            )
        found.append(one)
    if len(set(found)) != len(found):
        raise InvalidValueError(f"{place} must name each column once")
    return tuple(found)


def name_of(place: str, schema: Schema, name: str | None, kinds: tuple[type, ...]) -> str:
    """Return the name of a column whose type is among ``kinds``, or raise."""
    found = names_of(place, schema, name, kinds)
    if len(found) != 1:
        raise InvalidTypeError(f"{place} must be one column, found {len(found)}")
    return found[0]
