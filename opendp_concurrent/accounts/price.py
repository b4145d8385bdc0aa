"""What a launch costs, as a function of d_in, and how that reads further up the tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from pickle import dumps
from typing import Any, Protocol

from ..errors import InvalidTypeError

_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})


class Price(Protocol):
    """Privacy loss of one launch at any d_in; equal prices are the same object."""

    @property
    def mechanism(self) -> str:
        """What is launched, in a few words, from its constructors."""

    def at(self, d_in: Any) -> Any:
        """Return the validated d_mid, or raise :class:`PrivacyMapError`."""


def own_distance(d_in: Any) -> Any:
    """Return ``d_in`` as a value that nobody else can change: losses are read at it later."""
    if d_in.__class__ in _ATOMS:
        return d_in
    try:
        return deepcopy(d_in)
    except Exception as error:
        raise InvalidTypeError(
            f"d_in must be a value that can be copied, found {type(d_in).__name__}"
        ) from error


def distance_key(d_in: Any) -> Hashable:
    """Identify a d_in: equal keys for distances that nothing tells apart, by what is in them.

    Numbers and strings by type and value, lists and tuples by their parts, anything else by what it
    is pickled as; what cannot be pickled is known as the object that it is.
    """
    kind = d_in.__class__
    if kind in _ATOMS:
        return kind, d_in
    if kind is list or kind is tuple:
        return kind, tuple(map(distance_key, d_in))
    try:
        return kind, dumps(d_in, 5)
    except Exception:
        return kind, _Itself(d_in)


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
