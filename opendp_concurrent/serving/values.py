"""Values in messages, beside what constructors return: how each is written, and read back.

Those of accumulators and distances say so where they are defined (``_checks.py``).

A value that is read is built by public functions, which check it, so that a message can say nothing
that a caller in Python could not. Partitions by a Python function are written as the call that made
them; ``dp.serialize`` then refuses the function by its name.

The domain of a step is written as such: OpenDP writes it as the output domain of all steps before,
and so three times as much for each step of a chain.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal as Exact
from functools import cache
from inspect import Signature, signature
from typing import Any

import numpy as np
from opendp import combinators, core, domains, measurements, measures, metrics, transformations

from .. import _checks as checks
from .. import _opendp as _native
from .. import tables
from .._checks import CONSTRUCTORS, MODULE, PLAINER, READ, VALUES
from .._opendp import dp
from ..data import ByRecord, BySplit, Partition, by_column, by_values, itself
from ..errors import InvalidTypeError, InvalidValueError, Json
from ..numerics import typed
from .kinds import BY_ANNOTATION, BY_NAME, MESSAGE_KINDS, OF_OPENDP

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_DTYPES = frozenset({"bool", "float32", "float64", *_INTEGERS})
_TYPES = {name: kind for kind, name in tables.KINDS.items()}


# --- how they are read ---------------------------------------------------------------------------


def mapping(items: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a dict, whose keys may be of any type that has a hash."""
    return dict(items)


def by_part(measurements: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a dict from the keys of parts to measurements."""
    return dict(measurements)


def array(values: Json, dtype: str) -> Any:
    """Return an array of numbers."""
    if dtype not in _DTYPES:
        raise InvalidValueError(f"dtype ({checks.shown(dtype)}) must be one of numbers")
    given = np.asarray(values)
    if given.dtype.kind not in "biuf":
        raise InvalidValueError("values must be numbers")
    with np.errstate(all="ignore"):
        found = given.astype(dtype)
    if not np.array_equal(found, given):  # also if a float is too large for the dtype
        raise InvalidValueError(f"values must be numbers that {dtype} has")
    return found


def integers(start: int, stop: int, step: int) -> range:
    """Return a range of integers."""
    return range(start, stop, step)


def day(year: int, month: int, day: int) -> date:
    """Return a date."""
    return date(year, month, day)


def moment(text: str) -> datetime:
    """Return a timestamp."""
    try:
        return datetime.fromisoformat(checks.text(text=text))
    except ValueError:
        raise InvalidValueError("text must be a timestamp of ISO 8601") from None


def exact(text: str) -> Exact:
    """Return a decimal number."""
    if typed(checks.text(text=text)) is text:
        raise InvalidValueError("text must be a decimal number")
    return Exact(text)


def columns(kinds: Mapping[str, str]) -> dict[str, type]:
    """Return names of columns with their types."""
    given = checks.mapping("names of columns to names of types", kinds=kinds)
    for kind in given.values():
        if checks.text(kinds=kind) not in _TYPES:
            raise InvalidValueError(f"kinds must be {', '.join(_TYPES)}")
    return {name: _TYPES[kind] for name, kind in given.items()}


def by_columns(names: Any) -> Partition:
    """Return the partition by the values of some columns."""
    return by_column(*checks.elements("names", names=names))


def by_groups(groups: Any, of: str | None) -> Partition:
    """Return the partition by groups of values, of a column if it is named."""
    return by_values(groups, None if of is None else checks.text(of=of))


_OPERANDS = checks.each("expressions", checks.instance(tables.Expression))


def expression(operation: str, operands: Json, given: Json) -> tables.Expression:
    """Return an expression; a step checks it against the columns of a table."""
    of = _OPERANDS(operands=operands)
    if operation == "cast" and not isinstance(given, tables.Decimal):
        given = _TYPES.get(given)
    return tables.Expression(checks.text(operation=operation), tuple(of), _fixed(given))


def _fixed(given: Json) -> Any:
    """Return lists as tuples, which an expression keeps."""
    return tuple(map(_fixed, given)) if isinstance(given, list) else given


READ |= {one.__name__: one for one in (array, by_columns, by_groups, by_part, columns, day)}
READ |= {one.__name__: one for one in (exact, expression, integers, mapping, moment)}
READ |= {"column": tables.col, "table_domain": tables.domain_of_record}
READ["table_metric"] = tables.units


# --- how they are written ------------------------------------------------------------------------


def _by_record(one: ByRecord) -> tuple[str, Mapping[str, Any]]:
    if one.owners is None:
        if isinstance(one.of, tuple):
            return "by_columns", {"names": one.of}
        return "by_key", {"function": one.of}
    groups: dict[Any, list[Any]] = {}
    for value, key in one.owners.items():
        groups.setdefault(key, []).append(value)
    of = one.of[0] if isinstance(one.of, tuple) else one.of
    return "by_groups", {"groups": groups, "of": None if of is itself else of}


def _written(one: tables.Expression) -> tuple[str, Mapping[str, Any]]:
    if one.operation == "column":
        return "column", {"name": one.given}
    given: Any = one.given
    given = tables.KINDS.get(given, given) if one.operation == "cast" else given
    return "expression", {"operation": one.operation, "operands": one.operands, "given": given}


VALUES.update(
    {
        ByRecord: _by_record,
        BySplit: lambda one: ("by_split", {"function": one.function}),
        tables.Expression: _written,
        tables.Then: _written,
        Exact: lambda one: ("exact", {"text": str(one)}),
        date: lambda one: ("day", {"year": one.year, "month": one.month, "day": one.day}),
        datetime: lambda one: ("moment", {"text": one.isoformat()}),
        range: lambda one: ("integers", {"start": one.start, "stop": one.stop, "step": one.step}),
    }
)


# --- domains, metrics and measures of the steps of a chain ---------------------------------------

_METRICS = {one.replace("_", ""): getattr(metrics, one) for one in OF_OPENDP["metrics"]}
_MEASURES = (
    dp.max_divergence,
    dp.zero_concentrated_divergence,
    lambda: dp.approximate(dp.max_divergence()),
    lambda: dp.approximate(dp.zero_concentrated_divergence()),
    dp.renyi_divergence,
    dp.smoothed_max_divergence,
)


def _domain(one: Any) -> dp.Domain | None:
    """Return a domain that is made by itself, as ``one`` may be; None if there is none."""
    found = _native.descriptor(one)
    if type(found) is tables.Tables:
        return tables.table_domain(found)
    if isinstance(one, dp.VectorDomain):
        element = _domain(one.element_domain)
        return None if element is None else dp.vector_domain(element, size=one.size)
    if not isinstance(one, dp.AtomDomain):
        return None
    kind = str(one.carrier_type)
    if kind in ("bool", "String"):  # they have no bounds
        return dp.atom_domain(T=kind)
    nan = one.nan if kind in ("f32", "f64") else None
    return dp.atom_domain(bounds=one.bounds, nan=nan, T=kind)


def _metric(one: Any) -> Any:
    name, _, rest = str(one.type).partition("<")
    if one == tables.units():
        return tables.units()
    make = _METRICS.get(name.rpartition("::")[2].lower())
    return None if make is None else make(T=rest.rstrip(">")) if rest else make()


def _measure(one: Any) -> Any:
    return next((made for make in _MEASURES if (made := make()) == one), None)


def _equal(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def made(one: Any) -> Any:
        """Return what equals ``one``, by OpenDP's comparison; None if it was not found."""
        try:
            found = make(one)
            return found if found is not None and found == one else None
        except Exception:  # OpenDP knows no bounds, or no comparison, of some types
            return None

    return made


PLAINER.update(
    {
        f"{kind}_{place}_{what}": _equal(make)
        for kind in ("transformation", "measurement", "odometer")
        for place in ("input", "output")
        for what, make in (("domain", _domain), ("metric", _metric), ("measure", _measure))
    }
)


# Calls that a message may make: constructors in a table, and the kinds of their arguments.
#
# A name is looked up in the table. Nothing is imported or read by name.
# Constructors that take Python functions or Polars plans are not in the table, nor are those whose
# loss rests on a promise of the caller.

_SHOWN = 300
EXCLUDED = frozenset(  # what can be called in a message is not made for what these need
    {
        "make_chain_po",
        "make_continual",
        "make_frame_count",
        "make_interactive_postprocessing",
        "make_parallel_continual",
        "make_stream_filter",
        "make_stream_map",
        "record_stream",
    }
)
_MODULES = (combinators, core, domains, measurements, measures, metrics, transformations)
Key = tuple[str, str]  # of a message: module, name


@cache
def table() -> Mapping[Key, Callable[..., Any]]:
    """Return what a message may call, by its key; all constructors are known when one is read."""
    modules = {one.__name__.rpartition(".")[2]: one for one in _MODULES}
    known: dict[Key, Callable[..., Any]] = {}
    for module, names in OF_OPENDP.items():
        found = modules[module]
        known |= {(module, name): getattr(found, name) for name in names}
    known |= {(MODULE, name): made for name, made in READ.items()}
    known |= {(MODULE, name): made for name, made in CONSTRUCTORS.items() if name not in EXCLUDED}
    return known


def key_of(one: dict[str, Any]) -> Key:
    """Return the module and the name that a call has, or raise."""
    module, name = one["__module__"], one["__function__"]
    if not (isinstance(module, str) and isinstance(name, str)):
        raise InvalidValueError("message calls a constructor whose name is no string")
    return module, name


@cache
def signature_of(key: Key) -> Signature:
    """Return what a constructor of the table takes."""
    return signature(table()[key])


def call(key: Key, given: dict[str, Any]) -> Any:
    """Call a constructor of the table, or raise an error that names it."""
    try:
        signature_of(key).bind(**given)
        _check_kinds(key, given)
        return table()[key](**given)
    except Exception as error:
        raise InvalidValueError(
            f"message: {key[1]} refuses its arguments: {str(error).strip()[:_SHOWN]}"
        ) from None


def _check_kinds(key: Key, given: dict[str, Any]) -> None:
    """Raise for an argument of another kind than the constructor takes.

    OpenDP passes pointers on as they are, and a wrong one ends the process. Constructors of this
    package check their arguments themselves. But they take a Python function for a Rényi curve, and
    measurements and transformations can be called, too: a noisy curve is no bound.
    """
    if key[0] == MODULE:
        for name, value in given.items():
            if name not in _WITH_CALLS and _is_called(value):
                raise InvalidTypeError(f"{name} must have no mechanism in it")
    if key[0] == MODULE and key[1] not in ("chain", "chain_stream"):
        return
    for name, value in given.items():
        kind = kind_of(key, name)
        if not MESSAGE_KINDS[kind](value):
            raise InvalidTypeError(
                f"{name} must be {kind}, found {'a ' * (value is not None)}{type(value).__name__}"
            )


_WITH_CALLS = (  # mechanisms, and types of columns
    *("composition", "measurement", "measurements", "odometer", "schema", "transformation"),
)


def _is_called(value: Json) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_called, value))
    if isinstance(value, dict):
        return any(map(_is_called, (*value, *value.values())))
    return callable(value)


def kind_of(key: Key, name: str) -> str:
    """Return the kind of an argument, a key of ``KINDS``."""
    taken = signature_of(key).parameters[name].annotation
    written = getattr(taken, "__name__", str(taken)).rpartition(".")[2]
    found = BY_ANNOTATION.get(written) or BY_NAME.get(name)
    return found or ("a type" if "GenericAlias" in str(taken) else "a value")


def rebuild(record: dict[str, Any]) -> Any:
    """Call the constructor of this package that a record in ``dp.deserialize`` names."""
    key = key_of(record)
    if key not in table():
        raise InvalidValueError(
            f"message calls {checks.shown(key[1])}, which opendp_concurrent does not deserialise"
        )
    return call(key, record.get("__kwargs__", {}))
