"""What is written of a privacy measure: its tag, and its parameter if it has one.

Terms have the measure by the name that is shown. A name that is none of ours is written as it is.
"""

from __future__ import annotations

from typing import Any

from ..errors import UnregisteredError, UnsupportedMeasureError
from ..measures import by_tag, registered


def written(name: str) -> Any:
    """Return what is written of the measure with this name."""
    try:
        known = by_tag(name)
    except UnsupportedMeasureError:
        return name
    if not known.tag:
        return name
    return {known.tag: {key: {"double": one.hex()} for key, one in known.parameters().items()}}


def read(shape: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the name of a measure, and the loss of nothing if that follows: one, or none.

    :raises UnregisteredError: if it belongs to another package and was not registered
    :raises LookupError, TypeError, ValueError: if nothing like it is written
    """
    if isinstance(shape, str):
        try:
            return by_tag(shape).name, ()
        except UnsupportedMeasureError:
            raise UnregisteredError(shape, "opendp_concurrent.measures.register") from None
    ((tag, parameters),) = shape.items()
    (cls,) = (one for one in registered() if one.tag == tag)
    known = cls.of_parameters(
        **{key: float.fromhex(one["double"]) for key, one in parameters.items()}
    )
    return known.name, (None if known.needs_orders else known.zero,)
