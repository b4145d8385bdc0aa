"""What a query server needs beside a budget: answers by keys, handles by names, JSON.

Nothing here knows data or a budget. ``docs/examples/server.py`` uses all of it.
"""

from __future__ import annotations

from .answers import AnswerStore
from .handles import HandleStore
from .plain import as_json

__all__ = ["AnswerStore", "HandleStore", "as_json"]
