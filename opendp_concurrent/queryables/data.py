"""Storage of the data, behind tokens that reveal nothing.

A handle holds a token. The converted data are in a table of this module, keyed by the token, until
the token is deleted. They cannot be reached from the token's attributes or referents. They cannot
be reached from the handle either, by OpenDP's records or by a copy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from opendp.mod import Domain, Measurement

from ..accounts.lifecycle import Lifecycle
from ..arguments.provenance import Unrecorded
from ..data.kind import kind_of
from ..errors import ForkedError, InvalidValueError, TableError
from ..failures import pass_interrupt
from ..interrupts import Lock
from ..native import opendp as _native
from ..types import Data


class Sealed:
    """A token for converted data. Cannot be pickled, copied or printed into data.

    :ivar files: those that the data are scanned from: when the mechanism runs, or later
    :ivar given: whether the data are as somebody has passed them to a measurement of this package;
        otherwise they may be the output of a transformation, or a part of other data
    """

    __slots__ = ("__weakref__", "files", "given")

    def __init__(self, content: Any, files: tuple[str, ...] = (), *, given: bool = False) -> None:
        self.files, self.given = files, given
        _CONTENTS[self] = content

    def __reduce__(self) -> Any:
        raise TypeError("sensitive data cannot be pickled or copied")

    def __repr__(self) -> str:
        return "Sealed(...)"


class SealedHandle:
    """A handle that can be neither pickled nor copied, and keeps no record of its calls."""

    @property
    def __opendp_dict__(self) -> dict[str, Any]:
        """Nothing: OpenDP would keep the arguments of its last call here, the data among them."""
        return Unrecorded()

    def __reduce__(self) -> Any:
        raise TypeError("a queryable holds sensitive data and cannot be pickled or copied")

    def _adopt_by(self, lifecycle: Lifecycle, lock: Lock | None) -> None:
        """Close with ``lifecycle``, and take turns on ``lock`` if there is one."""
        raise NotImplementedError


class _Pending:
    """Data that are computed when they are first needed."""

    __slots__ = ("_compute", "_lock")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute, self._lock = compute, Lock()

    def settle(self, token: Sealed) -> Any:
        with self._lock:
            if _CONTENTS[token] is self:
                _CONTENTS[token] = self._compute()
            return _CONTENTS[token]


_CONTENTS: WeakKeyDictionary[Sealed, Any] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # both processes would hold the same noise, and each would charge for itself
    os.register_at_fork(after_in_child=_CONTENTS.clear)


def seal(pointer: Any, source: Sealed | None = None) -> Sealed:
    """Store converted data and return their token.

    :param source: what they were computed from, if that is still to be read from files
    """
    return Sealed(pointer, () if source is None else source.files)


def take_in(data: Data, domain: Domain, carrier_type: Any) -> Sealed:
    """Convert data that are a member of ``domain``, store them, and return their token, or raise.

    A column of pandas, Polars, NumPy or PyArrow is taken for a list, a Polars DataFrame for a
    LazyFrame.
    """
    kind = kind_of(domain)
    data = kind.accepted(data, domain)
    return Sealed(_native.to_pointer(data, carrier_type), kind.sources(data), given=True)


def seal_transformed(source: Sealed, function: Callable[[Any], Any]) -> Sealed:
    """Store ``function`` of sealed data, which is computed when it is first needed.

    Whether a transformation fails can depend on the data. So it runs with the first mechanism that
    was charged.
    """
    return seal(_Pending(lambda: function(unseal(source))), source)


def seal_selected(
    source: Sealed, domain: Domain, select: Callable[[], Any], failure: str
) -> Sealed:
    """Store what ``select`` returns of data in Python, converted when it is first needed.

    :param domain: of what is returned
    :param failure: the message if it fails, whatever the data are
    """
    carrier_type = domain.carrier_type

    def selected() -> Any:
        try:
            return _native.to_pointer(select(), carrier_type)
        except TableError:  # the same, whatever the data are
            raise
        except BaseException as error:
            pass_interrupt(error)
        # raised outside the handler: the original error and its traceback's frames may hold data
        raise InvalidValueError(failure)

    return seal(_Pending(selected), source)


def check_process(token: Sealed) -> None:
    """Raise :class:`ForkedError` if this process was forked from the one that sealed the data."""
    if token not in _CONTENTS:
        raise ForkedError


def unseal(token: Sealed) -> Any:
    """Return the converted data, to run a mechanism after its charge."""
    content = _CONTENTS.get(token)
    if content is None:
        raise ForkedError
    return content.settle(token) if isinstance(content, _Pending) else content


def run(measurement: Measurement, token: Sealed) -> Any:
    """Run a measurement on sealed data, after its charge."""
    ours = vars(measurement).get("inside")
    if ours is not None:
        return ours.spawn(token)
    return _native.invoke(measurement, unseal(token))


def in_python(token: Sealed) -> Any:
    """Return the data as values of Python, to cut them after a charge."""
    return _native.to_python(unseal(token))
