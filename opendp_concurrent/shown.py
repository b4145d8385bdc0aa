"""How a value is written in a message, whatever its own ``repr`` does."""

from __future__ import annotations

from .types import Argument, Loss

SHOWN = 200  # characters of a value in a message


def shown(value: Argument) -> str:
    """Return the value for a message: short, and whatever its own ``repr`` does."""
    try:
        text = repr(value)
    except Exception:
        text = f"one {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def rounded(loss: Loss) -> str:
    """Return a privacy loss for people: numbers have six digits. ``privacy_loss()`` is exact."""
    if isinstance(loss, tuple):
        return f"({', '.join(map(rounded, loss))})"
    return f"{loss:.6g}" if isinstance(loss, float) else shown(loss)
