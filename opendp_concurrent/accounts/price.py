"""What a launch costs, as a function of d_in, and how that reads further up the tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any, Protocol


class Price(Protocol):
    """Privacy loss of one launch at any d_in; equal prices are the same object."""

    @property
    def mechanism(self) -> str:
        """What is launched, in a few words, from its constructors."""

    def at(self, d_in: Any) -> Any:
        """Return the validated d_mid, or raise :class:`PrivacyMapError`."""


def distance_key(d_in: Any) -> Hashable:
    """Identify a d_in: equal keys only for distances at which every map says the same.

    Numbers, and all that can be hashed, by type and value; sequences, dictionaries and dataclasses
    by their parts; arrays by their bytes; anything else is known as the object that it is.
    """
    kind = d_in.__class__
    if isinstance(d_in, (int, float)):
        return kind, d_in
    if isinstance(d_in, (list, tuple)):
        return kind, tuple(map(distance_key, d_in))
    if isinstance(d_in, dict):
        return kind, tuple((distance_key(key), distance_key(d_in[key])) for key in d_in)
    try:
        hash(d_in)
    except TypeError:
        pass
    else:
        return kind, d_in  # held, so that its identity cannot be taken over
    if is_dataclass(d_in):
        return kind, tuple(distance_key(getattr(d_in, field.name)) for field in fields(d_in))
    try:
        view = memoryview(d_in)
    except TypeError:
        return kind, _Itself(d_in)
    if "O" in view.format:  # an array of objects: its bytes are addresses
        return kind, _Itself(d_in)
    return kind, view.format, view.shape, view.tobytes()


class _Itself:
    """An object that compares by identity, and is held so that this cannot be taken over."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)


class Inward:
    """A stability map from the d_in of an account to that of its queries, remembered."""

    __slots__ = ("_map", "_seen")

    def __init__(self, stability_map: Callable[[Any], Any]) -> None:
        self._map = stability_map
        self._seen: dict[Any, Any] = {}

    def __call__(self, d_in: Any) -> Any:
        """Map ``d_in``."""
        key = distance_key(d_in)
        if key not in self._seen:
            self._seen[key] = self._map(d_in)
        return self._seen[key]


class Lifted:
    """The price of a child's launch in units of its parent."""

    __slots__ = ("_inward", "_price")

    def __init__(self, price: Price, inward: Inward) -> None:
        self._price, self._inward = price, inward

    @property
    def mechanism(self) -> str:
        """What is launched."""
        return self._price.mechanism

    def at(self, d_in: Any) -> Any:
        """Return the d_mid at the parent's d_in."""
        return self._price.at(self._inward(d_in))
