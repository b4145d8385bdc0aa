"""Check a path or a URL of a ledger."""

from __future__ import annotations

import os
from typing import Any, cast

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError


def path_or_url(**argument: Any) -> str | os.PathLike[str]:
    """Check a path or a URL, and return it."""
    ((name, value),) = argument.items()
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidTypeError(
            f"{name} must be a path or a URL, found {type(value).__name__}; "
            "pass for example pathlib.Path('budget.db')"
        )
    try:
        plain = os.fspath(value)
        plain.encode()
        usable = type(plain) is not bytes and 0 < len(plain) <= 4096 and "\0" not in plain
    except Exception:
        usable = False
    if not usable:
        raise InvalidValueError(
            f"{name} ({checks.shown(value)}) must be a valid path or URL: 1 to 4,096 characters of "
            "Unicode, without NUL"
        )
    return str.__str__(plain) if isinstance(value, str) else cast("os.PathLike[str]", value)
