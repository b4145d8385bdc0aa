"""How a native object was made: the constructors on each way from the data to an answer.

OpenDP keeps the constructor and its arguments in ``__opendp_dict__``. An object without that record
or with one of this package is not looked into: the maps of this package read those of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opendp.mod import Measurement

CHAINS = {"make_chain_mt": "measurement1", "make_chain_tt": "transformation1"}


class Step(NamedTuple):
    """One constructor, its arguments, and what it made."""

    name: str
    given: dict[str, Any]
    made: Any


Path = tuple[Step, ...]


def step(made: Any) -> Step | None:
    """Return the constructor of an object; None if OpenDP has no record of it."""
    record = getattr(made, "__opendp_dict__", None)
    if type(record) is not dict or type(record.get("__kwargs__")) is not dict:
        return None
    return Step(str(record.get("__function__")), record["__kwargs__"], made)


def measurements(given: dict[str, Any]) -> list[Measurement]:
    """Return the measurements among the arguments of a combinator."""
    several = [one for one in given.values() if isinstance(one, list | tuple)]
    return [
        one for part in (given.values(), *several) for one in part if isinstance(one, Measurement)
    ]


def paths(made: Any) -> Iterator[Path]:
    """Yield the constructors of each path from the data to an answer, in the order they run."""
    found = step(made)
    if found is None:  # what it launches is not seen
        yield (Step("", {}, made),) if isinstance(made, Measurement) else ()
    elif found.name in CHAINS:
        last = found.given.get(CHAINS[found.name])
        for first in paths(found.given.get("transformation0")):
            for rest in paths(last):
                yield first + rest
    elif inner := measurements(found.given):
        for one in inner:
            yield from paths(one)
    else:
        yield (found,)
