"""What an account is called, so that a refusal can say whose bound it was.

A name is a kind, and what tells it from its siblings: the label under which it was launched, or
else its number among the children of its parent. All of a name is public. So a child has its number
from the analyst's launch, and whatever else a mechanism makes during that launch has the same one:
a count of what is made inside of mechanisms could depend on the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..shown import shown
from .charge import current_label, under_label

_KIND: ContextVar[str] = ContextVar("_KIND", default="")
_CHILD: ContextVar[tuple[object, int]] = ContextVar("_CHILD", default=(None, 0))


def name_of_account(kind: str, parent: object, ledger: str = "") -> str:
    """Return the name of an account that is made here.

    :param kind: a noun
    :param parent: the lifecycle of what it is launched from; None at top level
    :param ledger: the dataset of its ledger
    """
    label, (numbered, number) = current_label(), _CHILD.get()
    which = str(number) if number and numbered is parent else ""
    which = shown(label) if label else which
    where = f"of ledger {shown(ledger)}" if ledger else ""
    return " ".join(filter(None, (_KIND.get() or kind, which, where)))


@contextmanager
def as_child(parent: object, number: int) -> Iterator[None]:
    """Give what is made below ``parent`` in this block a number."""
    token = _CHILD.set((parent, number))
    try:
        yield
    finally:
        _CHILD.reset(token)


@contextmanager
def named(kind: str, label: str = "") -> Iterator[None]:
    """Let accounts that are made in this block be of another kind, and have a label if given."""
    token = _KIND.set(kind)
    try:
        with under_label(label or current_label()):
            yield
    finally:
        _KIND.reset(token)
