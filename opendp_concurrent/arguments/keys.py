"""Public keys: what may be looked up, and equals itself."""

from __future__ import annotations

from ..errors import InvalidTypeError, InvalidValueError
from ..types import Key
from .checks import shown


def check_key(name: str, key: Key) -> None:
    """Raise unless ``key`` can be looked up."""
    try:
        hash(key)
    except Exception:
        raise InvalidTypeError(
            f"{name} has {shown(key)}, which is not hashable ({type(key).__name__}); "
            "pass a string, a number or a tuple of these"
        ) from None
    if _has_nan(key):
        raise InvalidValueError(f"{name} has {shown(key)}, which does not equal itself")


def _has_nan(key: Key) -> bool:
    """Return whether a key, or a part of it, does not equal itself. Tuples hide this."""
    return any(map(_has_nan, key)) if isinstance(key, tuple) else bool(key != key)
