"""Prices: the privacy loss of a launch at each d_in, for its account and for ancestors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from copy import deepcopy
from io import BytesIO
from pickle import Pickler
from struct import pack
from typing import Protocol

from ..errors import InvalidTypeError, InvalidValueError, PrivacyMapError
from ..shown import shown
from ..types import Answer, Distance, Key, Loss

CHANGED = (
    "the map has changed since the launch, so the cost of that launch at another d_in is "
    "unknown; query the loss at each d_in before the first launch"
)
_MOVED = (
    "the stability map of the transformation has changed since it was read, so what it returns is "
    "not the stability of the data that mechanisms run on"
)
_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})


class Price(Protocol):
    """Privacy loss of one launch at any d_in. Equal prices are the same object."""

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism, from its constructors."""

    def at(self, d_in: Distance) -> Loss:
        """Return the validated d_mid, or raise :class:`PrivacyMapError`. Each is read once."""

    def later(self, d_in: Distance) -> Loss:
        """Return the d_mid at ``d_in`` after the launch, even if it was not read there before.

        Raise :class:`PrivacyMapError` if a d_mid that was read before has changed since.
        """

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


def is_number(loss: Loss) -> bool:
    """Whether a loss is a number or a tuple, so that two losses can be compared."""
    return isinstance(loss, float | int | tuple)


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


class Inward:
    """A stability map from the d_in of an account to that of its queries, and its function.

    The function runs once, and its output is kept. Each mapped distance is read once, and all
    accounts that are charged for a launch use it. So both must be of one moment: the function runs,
    and a distance is added, only while the map returns what was read before.

    :param stability_map: returns the mapped distance, and whether it can never change
    """

    __slots__ = ("_map", "_ran", "_read_at", "_seen")

    def __init__(self, stability_map: Callable[[Distance], tuple[Distance, bool]]) -> None:
        self._map, self._ran = stability_map, False
        self._seen: dict[Key, Distance] = {}
        self._read_at: dict[Key, tuple[Distance, Distance]] = {}  # of a map that may change, by key

    def __call__(self, d_in: Distance) -> Distance:
        """Map ``d_in``.

        :raises PrivacyMapError: if the map fails, or has changed since another d_in was read
        """
        key = distance_key(d_in)
        if key in self._seen:
            return self._seen[key]
        mapped, fixed = self._read(d_in)
        if not fixed:
            for moved in self._moved():
                raise PrivacyMapError(moved, _MOVED)
            _, mapped = self._read_at.setdefault(key, (own_distance(d_in), mapped))
        return self._seen.setdefault(key, mapped)  # of two threads, the first one counts

    def check(self) -> None:
        """Raise before a charge if the function has not run yet, and can no longer run.

        :raises PrivacyMapError: if the map has changed
        """
        if not self._ran:
            for d_in in self._moved():
                raise PrivacyMapError(d_in, f"{_MOVED}; open another odometer or limit")

    def run(self, function: Callable[[], Answer]) -> Answer:
        """Return ``function()``. The map is read before it and after it.

        :raises InvalidValueError: if the map has changed; a launch may have been charged
        """
        if not self._seen:
            with suppress(PrivacyMapError):  # no loss was read there
                self(1)
        self._check_still()
        output = function()
        self._check_still()
        self._ran = True
        return output

    def _check_still(self) -> None:
        try:
            moved = [(d_in, _MOVED) for d_in in self._moved()]
        except PrivacyMapError as error:  # which says that nothing was charged
            moved = [(error.d_in, error.reason)]
        for d_in, reason in moved:
            raise InvalidValueError(
                f"the transformation did not run to its end at d_in ({shown(d_in)}): {reason}"
            )

    def _moved(self) -> Iterator[Distance]:
        """Yield each d_in at which the map returns another value than it did."""
        for d_in, mapped in tuple(self._read_at.values()):
            if not same_distance(self._read(d_in)[0], mapped):
                yield d_in

    def _read(self, d_in: Distance) -> tuple[Distance, bool]:
        mapped, fixed = self._map(own_distance(d_in))
        return own_distance(mapped), fixed


class Lifted:
    """The price of a child's launch in units of its parent.

    :param known: lifted prices of earlier charges, by the id of the price that they lift
    """

    __slots__ = ("_inward", "_known", "_price", "_read_at", "_seen")

    def __init__(
        self, price: Price, inward: Inward, known: dict[int, tuple[Price, Lifted]]
    ) -> None:
        self._price, self._inward, self._known = price, inward, known
        self._seen: dict[Key, Distance] = {}  # each d_in is mapped once for a launch
        self._read_at: list[tuple[Distance, Loss]] = []  # d_in and d_mid

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        return self._price.mechanism

    def at(self, d_in: Distance) -> Loss:
        """Return the d_mid at the parent's d_in."""
        key = distance_key(d_in)
        if key not in self._seen:
            self._keep(key, d_in, self._price.at(self._inward(d_in)))
        return self._seen[key]

    def later(self, d_in: Distance) -> Loss:
        """Return the d_mid after the launch, if the price and the map have not changed."""
        key = distance_key(d_in)
        if key not in self._seen:
            for known, d_mid in tuple(self._read_at):
                if is_number(d_mid) and self._price.later(self._inward(known)) != d_mid:
                    raise PrivacyMapError(known, CHANGED)
            self._keep(key, d_in, self._price.later(self._inward(d_in)))
        return self._seen[key]

    def _keep(self, key: Key, d_in: Distance, d_mid: Loss) -> None:
        self._seen[key] = d_mid
        self._read_at.append((own_distance(d_in), d_mid))

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
