"""Descriptions: of a measurement, and of what a launch of it would return and cost."""

from __future__ import annotations

from dataclasses import dataclass

from opendp.mod import Measurement

from ..errors import RefusalError
from ..types import Argument, Distance, Loss


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
    d_in: Distance
    loss: Loss
    refusal: RefusalError | None

    @property
    def admitted(self) -> bool:
        """Whether a launch would be admitted now."""
        return self.refusal is None


_LONGEST = 200


def describe(measurement: Measurement) -> str:
    """Describe a measurement by its constructors, such as ``count >> laplace(scale=2.0)``.

    A description has public values only: names of constructors and their numbers. A measurement
    without a record of its constructor is described by its type.
    """
    summary = getattr(measurement, "summary", None)  # of one of ours
    text = " ".join((summary if isinstance(summary, str) else _text(measurement)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text(one: Argument) -> str:
    made = getattr(one, "__opendp_dict__", None) or {}
    name, arguments = made.get("__function__"), made.get("__kwargs__", {})
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
    return f"{name}({', '.join(numbers)})" if numbers else name
