"""The kinds of data that are always known: this imports the files that register them.

Tables in an engine are registered by their own room.
"""

from __future__ import annotations

from . import frames, own, scalars, vectors

__all__ = ["frames", "own", "scalars", "vectors"]
