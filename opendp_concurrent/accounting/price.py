"""Prices: the privacy loss of a launch at each d_in, for its account and for ancestors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from io import BytesIO
from pickle import Pickler
from struct import pack
from typing import Any, Protocol

from ..errors import Distance, InvalidTypeError, Key, Loss

_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})


class Price(Protocol):
    """Privacy loss of one launch at any d_in. Equal prices are the same object.

    :ivar free: whether what is launched excludes no other child of its tree, whatever it costs
    """

    free: bool

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism, from its constructors."""

    def at(self, d_in: Distance, key: Key = None) -> Any:
        """Return the validated d_mid, or raise :class:`PrivacyMapError`. Each is read once.

        :param key: of the d_in, from :func:`distance_key`, if it is known already
        """

    def excludes(self, d_in: Distance, key: Key = None) -> bool:
        """Whether what is launched excludes all others of its tree at ``d_in``."""

    def settled(self) -> Price:
        """Return the price to keep in the history: an earlier launch's price, if it is equal."""


def own_distance(d_in: Distance) -> Distance:
    """Return a copy of ``d_in`` that nobody else can change: losses are read at it later."""
    if type(d_in) in _ATOMS:
        return d_in
    distance_key(d_in)
    try:
        return deepcopy(d_in)
    except Exception as error:
        raise _not_a_value(d_in) from error


def _not_a_value(d_in: Distance) -> InvalidTypeError:
    return InvalidTypeError(
        f"d_in must be a value that can be copied and pickled, found {type(d_in).__name__}"
    )


def distance_key(d_in: Distance) -> Hashable:
    """Return a key of a d_in. Distances with the same content have equal keys.

    The key has the type and value of a number or string, the parts of a collection, the bytes of
    an array, and the pickle of anything else. So 1, 1.0 and True are three distances, and so are
    0.0 and -0.0: a map may tell them apart.

    :raises InvalidTypeError: if it cannot be pickled
    """
    kind = type(d_in)
    if kind is float and not d_in * d_in > 0.0:  # zeros have a sign, and NaN is not itself
        return kind, pack("d", d_in)
    if kind in _ATOMS:
        return kind, d_in
    if kind is list or kind is tuple:
        return kind, tuple(map(distance_key, d_in))
    if kind is set or kind is frozenset:
        return kind, frozenset(map(distance_key, d_in))
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and not d_in.dtype.hasobject:
        # dtypes that differ in their metadata are equal, and a map may read these
        return kind, distance_key(d_in.dtype), d_in.shape, d_in.tobytes()
    if kind is dict:
        return kind, frozenset((distance_key(key), distance_key(d_in[key])) for key in d_in)
    buffer = BytesIO()
    pickler = Pickler(buffer, 5)
    pickler.fast = True  # no memo, so that shared and equal parts give the same pickle
    try:
        pickler.dump(d_in)
    except Exception as error:
        raise _not_a_value(d_in) from error
    return kind, buffer.getvalue()


def same_distance(one: Distance, other: Distance) -> bool:
    """Whether two distances have the same content. No other comparison decides this.

    What compares equal may differ in what a map reads: dtypes in their metadata, numbers in their
    type.
    """
    return distance_key(one) == distance_key(other)


class StabilityMap:
    """A stability map from the d_in of an account to that of its queries.

    Each mapped distance is read once, and all accounts that are charged for a launch use it.
    """

    __slots__ = ("_map", "_seen")

    def __init__(self, stability_map: Callable[[Distance], Distance]) -> None:
        self._map = stability_map
        self._seen: dict[Key, Distance] = {}

    def __call__(self, d_in: Distance) -> Distance:
        """Map ``d_in``, or raise :class:`PrivacyMapError`."""
        key = distance_key(d_in)
        if key not in self._seen:
            mapped = own_distance(self._map(own_distance(d_in)))
            self._seen.setdefault(key, mapped)  # of two threads, the first one counts
        return self._seen[key]


class MappedPrice:
    """The price of a child's launch in units of its parent.

    :param known: lifted prices of earlier charges, by the id of the price that they lift
    """

    __slots__ = ("_inward", "_known", "_price", "_seen", "free")

    def __init__(
        self, price: Price, inward: StabilityMap, known: dict[int, tuple[Price, MappedPrice]]
    ) -> None:
        self._price, self._inward, self._known = price, inward, known
        self._seen: dict[Key, Loss] = {}
        self.free = price.free

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        return self._price.mechanism

    def at(self, d_in: Distance, key: Key = None) -> Any:
        """Return the d_mid at the parent's d_in."""
        key = distance_key(d_in) if key is None else key
        if key not in self._seen:
            self._seen[key] = self._price.at(self._inward(d_in))
        return self._seen[key]

    def excludes(self, d_in: Distance, key: Key = None) -> bool:
        """Whether what is launched excludes all others at the parent's d_in."""
        return self._price.excludes(self._inward(d_in))

    def settled(self) -> Price:
        """Return the lifted price of an earlier charge, if it is equal."""
        price = self._price.settled()
        before, lifted = self._known.get(id(price), (None, self))
        if before is not price or any(
            lifted._seen.get(key) != d_mid for key, d_mid in self._seen.items()
        ):
            self._known[id(price)] = price, self
            return self
        return lifted
