"""What an account is called, so that a refusal can say whose bound it was.

A name has a kind, and one of these: the label that the launch has, the key of a part, or which one
of its kind it is below its parent. Names are public: labels and keys do not depend on the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from ..shown import shown
from .charge import current_label, under_label

_KIND: ContextVar[str] = ContextVar("_KIND", default="")


class Name:
    """A name below another one.

    :param kind: a noun
    :param which: what tells it from others of its kind; a number if left out
    :param ledger: the dataset of its ledger
    """

    __slots__ = ("_counts", "text")

    def __init__(
        self, kind: str, parent: Name | None = None, *, which: str = "", ledger: str = ""
    ) -> None:
        self._counts: dict[str, Iterator[int]] = {}
        number = "" if parent is None else str(parent._next(kind))
        where = f"of ledger {shown(ledger)}" if ledger else ""
        self.text = " ".join(filter(None, (kind, which or number, where)))

    def _next(self, kind: str) -> int:
        return next(self._counts.setdefault(kind, count(1)))  # atomic: two get two numbers


def name_of_account(kind: str, parent: Name | None, ledger: str = "") -> Name:
    """Return the name of an account that is made here, below ``parent``."""
    label = current_label()
    return Name(_KIND.get() or kind, parent, which=shown(label) if label else "", ledger=ledger)


@contextmanager
def named(kind: str, label: str = "") -> Iterator[None]:
    """Let accounts that are made in this block be of another kind, and have a label if given."""
    token = _KIND.set(kind)
    try:
        with under_label(label or current_label()):
            yield
    finally:
        _KIND.reset(token)
