"""The limits that were opened on one handle, by label: opening one again gives the same handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..accounts.store import Limit, require_same_terms
from ..errors import InvalidValueError
from ..shown import shown
from .mechanism import ConcurrentOdometer


class _Opened(NamedTuple):
    odometer: ConcurrentOdometer
    handle: Any


class Limits:
    """The limits of one handle. A label names one limit, which several threads may open at once.

    :ivar path: labels of the limits from the outermost one to this handle
    :ivar shared: what the shared releases of this handle have in common, by their room
    """

    __slots__ = ("_known", "path", "shared")

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self.path = path
        self._known: dict[str, _Opened] = {}
        self.shared: dict[str, Any] = {}

    def opened(self, odometer: ConcurrentOdometer, make: Callable[[Limit], Any]) -> Any:
        """Return the handle of a limit: the one that it was first opened with, or a new one.

        :raises LimitMismatchError: if it was opened with other terms
        :raises InvalidValueError: if it was opened with another transformation or postprocessor
        """
        limit = odometer.limit
        assert limit is not None
        known = self._known.get(limit.label)
        if known is None:  # if another thread stores one first, this one was never used
            known = self._known.setdefault(limit.label, _Opened(odometer, make(limit)))
        before = known.odometer
        if before is odometer:
            return known.handle
        assert before.limit is not None
        require_same_terms((*self.path, limit.label), before.limit.terms, limit.terms)
        for name in ("transformation", "postprocessors", "opaque"):
            if getattr(before, name) != getattr(odometer, name):
                raise InvalidValueError(
                    f"odometer has another {name} than the limit {shown(limit.label)} had when it "
                    "was opened; keep the handle, or open a limit with another label"
                )
        return known.handle
