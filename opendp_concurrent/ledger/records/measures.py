"""Write a privacy measure as its tag and its parameters, and read it.

Terms contain the name of a measure. A measure of another package is written as its name.
"""

from __future__ import annotations

from typing import Any

from ...measures import by_tag, registered


def written(name: str) -> Any:
    """Return what is written of the measure with this name."""
    known = by_tag(name)
    if known is None or not known.tag:
        return name
    return {known.tag: {key: {"double": one.hex()} for key, one in known.parameters().items()}}


def read(shape: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the name of a measure, and a tuple: its zero loss, or nothing if the terms have it.

    :raises LookupError, TypeError, ValueError: if no measure is written like this
    """
    if isinstance(shape, str):
        return shape, ()
    ((tag, parameters),) = shape.items()
    (cls,) = (one for one in registered() if one.tag == tag)
    known = cls.of_parameters(
        **{key: float.fromhex(one["double"]) for key, one in parameters.items()}
    )
    return known.name, (None if known.needs_orders else known.zero,)
