"""Short descriptions of measurements, from the names and numbers of their constructors."""

from __future__ import annotations

from opendp.mod import Measurement

from ..types import Argument

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
