"""Write a privacy measure as its tag and its parameters, and read it.

Terms contain the name of a measure. A measure of another package is written as its name.
"""

from __future__ import annotations

from typing import Any

from ...accounts.store import Terms
from ...errors import UnregisteredError
from ...measures import by_tag, registered
from ...sums.accumulator import Accumulator
from ...types import Json
from .wire import is_outside


def written(name: str) -> Json:
    """Return what is written of the measure with this name."""
    known = by_tag(name)
    if known is None or not known.tag:
        return name
    return {known.tag: {key: {"double": one.hex()} for key, one in known.parameters().items()}}


def read(shape: Any) -> str:
    """Return the name of a measure.

    :raises LookupError, TypeError, ValueError: if no measure is written like this
    """
    if isinstance(shape, str):
        return shape
    ((tag, parameters),) = shape.items()
    cls = next((one for one in registered() if one.tag == tag), None)  # those of ours come first
    if cls is None:
        if is_outside(tag):
            raise UnregisteredError(tag, "opendp_concurrent.measures.register")
        raise LookupError(tag)
    known = cls.of_parameters(
        **{key: float.fromhex(one["double"]) for key, one in parameters.items()}
    )
    return known.name


def empty_total(terms: Terms) -> Accumulator:
    """Return the accumulator of no launch.

    The measure of another package may not be registered here. Most accumulators do not need it.
    """
    return terms.accumulator.start(by_tag(terms.measure))


def read_total(terms: Terms, record: Json) -> Accumulator:
    """Return the accumulator that ``to_record`` wrote as ``record``."""
    return terms.accumulator.from_record(by_tag(terms.measure), record)
