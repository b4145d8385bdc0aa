"""What a launch costs, as a function of d_in, and how that reads further up the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Price(Protocol):
    """Privacy loss of one launch at any d_in; equal prices are the same object."""

    @property
    def mechanism(self) -> str:
        """What is launched, in a few words, from its constructors."""

    def at(self, d_in: Any) -> Any:
        """Return the validated d_mid, or raise :class:`PrivacyMapError`."""


def distance_key(d_in: Any) -> Any:
    """Identify a d_in: numbers by type and value, anything else by what it prints."""
    if isinstance(d_in, (int, float)):
        return d_in.__class__, d_in
    return repr(d_in)


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
