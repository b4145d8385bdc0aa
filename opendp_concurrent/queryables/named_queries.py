"""Named queries: methods of a handle that send a fixed message.

A method sends its message as ``handle(message)`` does, so it is the same query: it takes its turn,
counts towards a limit on messages, and is refused in the same cases. A handle has the methods of
the queries that its mechanism answers. A wrapper that passes messages on unchanged has the methods
too. A wrapper with another protocol, such as a postprocessor, has none. A native queryable, from
``dp.new_queryable``, has no methods: send it the message.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import expm1, log1p
from typing import Any, Protocol, TypeVar

from opendp.mod import Measurement

from .. import errors
from .._checks import Record, at_most, count, probability
from .child import MachineQueryable

SYNTHETIC = "synthetic"  # the message that requests the histogram from which answers are computed
Handle = TypeVar("Handle", bound=MachineQueryable)


class _Asked(Protocol):
    """A handle, which the classes below are mixed into."""

    def __call__(self, query: errors.Query) -> errors.Answer: ...


class Readable:
    """A handle that can be read: of a counter, an alarm, or a release."""

    def read(self: _Asked) -> Any:
        """Return the answer to ``handle(None)``: the mechanism's current output."""
        return self(None)


class WithSynthetic:
    """A handle of a mechanism that answers from a synthetic histogram."""

    def synthetic(self: _Asked) -> Any:
        """Return the answer to ``handle("synthetic")``: the synthetic histogram, at no charge."""
        return self(SYNTHETIC)


class WithParts:
    """A handle of several mechanisms, one for each key: parts of the data, or analysts."""

    __iter__ = None  # the handle does not list its keys

    def __getitem__(self: _Asked, key: errors.Key) -> Any:
        """Return the answer to ``handle(key)``: the handle, or the release, of one key."""
        return self(key)


KINDS: tuple[type[Any], ...] = (Readable, WithSynthetic, WithParts)
Queries = frozenset[type[Any]]
NONE: Queries = frozenset()
READ: Queries = frozenset({Readable})
SYNTHESISE: Queries = frozenset({WithSynthetic})
PARTS: Queries = frozenset({WithParts})


def answering(kind: type[Handle], queries: Queries) -> type[Handle]:
    """Return the class of handle ``kind``, with the methods of these queries added."""
    unchecked: Any = kind
    made: type[Handle] = _mixed(unchecked, queries)
    return made


@cache
def _mixed(kind: type[Any], queries: Queries) -> type[Any]:
    added = tuple(one for one in KINDS if one in queries)
    if not added:
        return kind
    return type(
        kind.__name__, (*added, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__}
    )


def queries_of(answer: errors.Answer) -> Queries:
    """Return the named queries of an answer; none if it is not a handle of this package."""
    return frozenset(one for one in KINDS if isinstance(answer, one))


# What a mechanism says of its error before it runs.

LEAST = 1e-300  # smaller probabilities have no double for their logarithm's argument
_MOST = at_most(2**62, "no mechanism releases more")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The error of a mechanism's answers, with confidence.

    :ivar noise: the distribution of the noise, such as ``"Laplace"``
    :ivar scale: its scale, in units of the answers; None if there are several
    :ivar bound: maps β and a number of answers to an error that all of them are within, with
        probability at least 1 - β
    :ivar answers: the number of answers that one release has; None if the caller must say
    """

    noise: str
    scale: float | None
    bound: Callable[[float, int], float]
    answers: int | None = None

    def at(self, beta: float, answers: int | None) -> float:
        """Return the bound, for arguments that are checked."""
        failing = probability(beta=beta)
        if not LEAST <= failing < 1.0:
            raise errors.InvalidValueError(f"beta ({beta}) must be at least 1e-300 and below 1")
        if answers is None:
            answers = self.answers
        if answers is None:
            raise errors.InvalidTypeError(
                "answers must be given: the number of answers that are all within the error, such "
                "as the number of queries, coordinates or steps"
            )
        return self.bound(failing, count(answers=_MOST(answers=answers)))


def of_one(bound: Callable[[float], float]) -> Callable[[float, int], float]:
    """Return the bound of independent answers, from that of one at the probability that it fails.

    All are within with probability 1 - β if each fails with probability 1 - (1-β)^(1/answers).
    """
    return lambda beta, answers: bound(-expm1(log1p(-beta) / answers))


# Descriptions: of a measurement, and of what a launch of it would return and cost.


@dataclass(frozen=True, slots=True)
class Description:
    """A launch as it would be now. It was not run, and nothing was charged.

    :ivar mechanism: constructors and their numbers, such as ``count >> laplace(scale=2.0)``
    :ivar interactive: whether it returns a queryable, not a release; None if that is not known,
        as for a measurement written in Python
    :ivar d_in: distance between neighbouring inputs that ``loss`` is for
    :ivar loss: privacy loss at ``d_in``, under the measure of the handle; None for an odometer,
        which costs nothing itself
    :ivar refusal: why a launch would be refused now; None if it would be admitted

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> root = (space >> oc.then_concurrent_odometer(dp.max_divergence()))([1, 2, 3])
    >>> root.describe(space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0), d_in=1)
    Description(mechanism='count >> laplace(scale=4.0)', interactive=False, d_in=1,
    loss=0.25, refusal=None)
    """

    mechanism: str
    interactive: bool | None
    d_in: errors.Distance
    loss: Any
    refusal: errors.RefusalError | None

    @property
    def admitted(self) -> bool:
        """Whether a launch would be admitted now."""
        return self.refusal is None


_LONGEST = 200


def describe(measurement: Measurement) -> str:
    """Describe a measurement by its constructors, such as ``count >> laplace(scale=2.0)``.

    A description has public values only: names of constructors, their numbers, and the names of a
    table's columns, such as ``table_count by carrier >> laplace(scale=10.0)``. Without a record of
    its constructor, a measurement is described by its type.
    """
    summary = getattr(measurement, "summary", None)  # of one of ours
    text = " ".join((summary if isinstance(summary, str) else _text(measurement)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text(one: errors.Argument) -> str:
    name: Any
    made = getattr(one, "__opendp_dict__", None)
    record = made if made is not None else {}
    name, arguments = record.get("__function__"), record.get("__kwargs__", {})
    if isinstance(made, Record):
        name, arguments = made.call
    if not isinstance(name, str):
        return type(one).__name__
    if name.startswith("make_chain_"):  # numbered from the end: measurement1, transformation0
        parts = [arguments[key] for key in sorted(arguments, key=lambda key: str(key)[-1:])]
        return " >> ".join(map(_text, parts))
    name = name.removeprefix("make_").removeprefix("new_")
    if "measurement" in arguments:
        return f"{name}({_text(arguments['measurement'])})"
    numbers = [
        f"{key}={(float if isinstance(value, float) else int).__repr__(value)}"
        for key, value in arguments.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    text = f"{name}({', '.join(numbers)})" if numbers else name
    of = arguments.get("column", arguments.get("columns"))
    for word, names in (("of", of), ("by", arguments.get("by"))):
        columns = [names] if isinstance(names, str) else names  # of a table
        named = isinstance(columns, (list, tuple)) and len(columns) > 0
        if named and all(isinstance(column, str) for column in columns):
            text += f" {word} {', '.join(columns)}"
    return text


# How the records of a stream's state are read: a record is of a stranger until it is checked.

MOST = 2**62  # steps, contributions
NOT_SAVED = "record must be what to_record returned"


def canonical(record: errors.Json) -> str:
    """Return the JSON text of a record; there is one."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def require(holds: bool) -> None:
    """Raise unless a condition on a record holds."""
    if not holds:
        raise errors.InvalidValueError(NOT_SAVED)


def bounded_integer(value: errors.Json, least: int = 0, most: int = MOST) -> int:
    """Return an integer between two bounds, or raise."""
    require(type(value) is int and least <= value <= most)
    number: int = value
    return number


def fields(record: errors.Json, *names: str) -> list[Any]:
    """Return the values of a record that has these names and no other, or raise."""
    require(type(record) is dict and record.keys() == set(names))
    return [record[name] for name in names]


def rows(record: errors.Json, least: int = 0, most: int = MOST) -> list[Any]:
    """Return a list whose length is between two bounds, or raise."""
    require(type(record) is list and least <= len(record) <= most)
    found: list[Any] = record
    return found


def restore_exactly(part: Any, record: errors.Json, *more: Any) -> None:
    """Restore a part of the state, or raise unless it then saves the same record.

    So a record has no value that is not used, lacks none, and has each in its own type: noise that
    is missing would be drawn.
    """
    part.restore(record, *more)
    require(canonical(part.to_record()) == canonical(record))
