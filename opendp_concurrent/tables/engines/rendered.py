"""The rendering of plans, which needs the extra, so the import of this package leaves it out.

It is imported once, when a table is scanned. An interrupt during the import would leave modules of
sqlglot behind that are imported in part, with which each launch of the process would fail after its
charge. So the import is a section, and no launch imports anything.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from ...interrupts import whole


@lru_cache(maxsize=1)
@whole
def rendering() -> Any:
    """Return the module that renders plans."""
    return import_module("opendp_concurrent.tables.rendering.render")
