"""What a row of a ledger can hold, whoever wrote it: anything. Checks of what is read.

A database takes what it is given: numbers where there should be text, text that nests 10,000 deep,
times of no year. It is refused by the name of its row, and no other exception comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import LedgerDamagedError

UNREADABLE = (  # what reading a value can raise, if somebody else wrote it
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
    """Name the row if it cannot be read.

    :raises LedgerDamagedError: then
    """
    try:
        yield
    except UNREADABLE as error:
        raise LedgerDamagedError(f"{what} is unreadable: {_short(error)}") from None


def require_text(what: str, **columns: Any) -> None:
    """Raise unless the columns are text.

    :raises LedgerDamagedError: naming the row and the column
    """
    for name, value in columns.items():
        if not isinstance(value, str):
            kind = type(value).__name__
            raise LedgerDamagedError(f"{what} is unreadable: its {name} is no text, but {kind}")
        if not is_text(value):
            raise LedgerDamagedError(f"{what} is unreadable: its {name} is no text")


def is_text(value: str) -> bool:
    """Whether a string can be shown and written: it has no NUL and no lone surrogate."""
    return "\0" not in value and not any("\ud800" <= one <= "\udfff" for one in value)


def require_count(what: str, **columns: Any) -> None:
    """Raise unless the columns are whole numbers.

    :raises LedgerDamagedError: naming the row and the column
    """
    for name, value in columns.items():
        if type(value) is not int or value < 0:
            raise LedgerDamagedError(f"{what} is unreadable: its {name} is no whole number")


def _short(error: BaseException) -> str:
    """What it says, in one line of printable characters that is not too long."""
    try:
        text = str(error) or type(error).__name__
    except UNREADABLE:
        text = type(error).__name__
    line = "".join(one if one.isprintable() else " " for one in text)
    return line if len(line) <= 300 else line[:297] + "..."
