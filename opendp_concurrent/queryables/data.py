"""Storage of the data, behind tokens that reveal nothing.

A handle holds a token. The converted data are in a table of this module, keyed by the token, until
the token is deleted. They cannot be reached from the token's attributes or referents. They cannot
be reached from the handle either, by OpenDP's records or by a copy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from ..accounts.reentry import check_not_held
from ..errors import ForkedError
from ..native.opendp import Unrecorded


class Sealed:
    """A token for converted data. Cannot be pickled, copied or printed into data."""

    __slots__ = ("__weakref__",)

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

    def _adopt_by(self, lifecycle: Any, lock: Any) -> None:
        """Close with ``lifecycle``, and take turns on ``lock`` if there is one."""
        raise NotImplementedError


class _Pending:
    """Data that are computed when they are first needed."""

    __slots__ = ("_compute", "_lock")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute, self._lock = compute, RLock()

    def settle(self, token: Sealed) -> Any:
        check_not_held(self._lock)
        with self._lock:
            if _CONTENTS[token] is self:
                _CONTENTS[token] = self._compute()
            return _CONTENTS[token]


_CONTENTS: WeakKeyDictionary[Sealed, Any] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # both processes would hold the same noise, and each would charge for itself
    os.register_at_fork(after_in_child=_CONTENTS.clear)


def seal(pointer: Any) -> Sealed:
    """Store converted data and return their token."""
    token = Sealed()
    _CONTENTS[token] = pointer
    return token


def seal_transformed(source: Sealed, function: Callable[[Any], Any]) -> Sealed:
    """Store ``function`` of sealed data, which is computed when it is first needed.

    Whether a transformation fails can depend on the data. So it runs with the first mechanism that
    was charged.
    """
    return seal(_Pending(lambda: function(unseal(source))))


def check_process(token: Sealed) -> None:
    """Raise :class:`ForkedError` if this process was forked from the one that sealed the data."""
    if token not in _CONTENTS:
        raise ForkedError


def unseal(token: Sealed) -> Any:
    """Return the converted data, to run a mechanism after its charge."""
    check_process(token)
    content = _CONTENTS[token]
    return content.settle(token) if isinstance(content, _Pending) else content
