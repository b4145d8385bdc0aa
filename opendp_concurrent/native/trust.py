"""Where a map of OpenDP is replaced before it is read: known faults are fenced here.

The room ``advisories`` sets the fence when this package is imported. This file does not know its
faults. Without a fence no map is read.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from opendp.mod import Measurement, Transformation

from ..errors import ConcurrentError
from ..types import Distance

Native = TypeVar("Native", Measurement, Transformation)


class Fence(Protocol):
    """What is asked before the map of an object of OpenDP is read."""

    def __call__(self, made: Native, d_in: Distance, *, flows: bool) -> Native:
        """Return an object whose map is right, or raise."""


def _none(made: Native, d_in: Distance, *, flows: bool) -> Native:
    """Refuse: nobody has set the fence."""
    raise ConcurrentError("no map of OpenDP is read before the fence of known faults is set")


_FENCE: list[Fence] = [_none]  # the last one


def set_fence(fence: Fence) -> None:
    """Ask ``fence`` before each map, from now on."""
    _FENCE[:] = [fence]


def trusted(made: Native, d_in: Distance, *, flows: bool = False) -> Native:
    """Return an object whose map is right: ``made``, or one with a corrected map.

    :param flows: whether the output of a transformation becomes the data of measurements
    :raises AdvisoryError: for a map that is known to be wrong and that cannot be corrected
    """
    return _FENCE[0](made, d_in, flows=flows)
