"""Check the values that are read from a ledger, whoever wrote them.

Other programs can write anything to a database: numbers in place of text, JSON that nests 10,000
levels deep, a time of no year. Such a value raises ``LedgerDamagedError``, which names the row. It
raises no other exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import LedgerDamagedError
from ...types import Json

UNREADABLE = (  # what reading a hostile value can raise
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Name the row ``what`` if the block cannot read it.

    :raises LedgerDamagedError: if the block raises one of ``UNREADABLE``
    """
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(what, error) from None


def unreadable(what: str, error: BaseException) -> LedgerDamagedError:
    """Return the error of a row that cannot be read."""
    return LedgerDamagedError(f"{what} is unreadable: {_short(error)}")


def require_text(what: str, **columns: Any) -> None:
    """Check that the columns are text.

    :raises LedgerDamagedError: naming the row and the column
    """
    for name, value in columns.items():
        if is_plain(value):
            continue
        if not isinstance(value, str):
            kind = type(value).__name__
            raise LedgerDamagedError(f"{what} is unreadable: its {name} is not text, but {kind}")
        if not is_text(value):
            raise LedgerDamagedError(f"{what} is unreadable: its {name} is not text")


def is_plain(value: Json) -> bool:
    """Return whether a value is text of ASCII characters, as most is."""
    return type(value) is str and value.isascii() and "\0" not in value


def is_text(value: str) -> bool:
    """Return whether a string can be shown and written: it has no NUL and no lone surrogate."""
    if "\0" in value:
        return False
    return value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value)


def require_count(what: str, **columns: Any) -> None:
    """Check that the columns are integers, and at least 0.

    :raises LedgerDamagedError: naming the row and the column
    """
    for name, value in columns.items():
        if type(value) is not int or value < 0:
            raise LedgerDamagedError(
                f"{what} is unreadable: its {name} is not a non-negative integer"
            )


def _short(error: BaseException) -> str:
    """Return the message as one line of at most 300 printable characters."""
    try:
        text = str(error) or type(error).__name__
    except UNREADABLE:
        text = type(error).__name__
    line = "".join(one if one.isprintable() else " " for one in text)
    return line if len(line) <= 300 else line[:297] + "..."
