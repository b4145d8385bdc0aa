"""The kinds of data that are analysed here, one file and one class each.

Everything that differs between kinds is asked of the kind: see :class:`.Kind`. To add a kind, write
its class in one file that registers it, as :mod:`.vectors` does, and import this file.
"""

from __future__ import annotations

from .frames import Frames
from .kind import Cut, Kind, kind_of, kind_of_data, register
from .own import Own
from .vectors import Vectors

__all__ = ["Cut", "Frames", "Kind", "Own", "Vectors", "kind_of", "kind_of_data", "register"]
