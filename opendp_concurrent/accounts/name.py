"""Names of accounts, so that a refusal can name the account whose bound refused.

A name is a kind, and the label under which the account was launched, or else its number among the
children of its parent. All of a name is public. So the analyst's launch gives a child its number,
and all accounts that a mechanism makes during that launch have the same number. A count of these
accounts could depend on the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..shown import shown
from .label import current_label, under_label

_KIND: ContextVar[str] = ContextVar("_KIND", default="")
_CHILD: ContextVar[tuple[object, int]] = ContextVar("_CHILD", default=(None, 0))


def name_of_account(kind: str, parent: object, ledger: str = "") -> str:
    """Return the name of an account that is made in this context.

    :param kind: a noun
    :param parent: lifecycle that the account is launched from; None at top level
    :param ledger: dataset name in its ledger
    """
    label, (numbered, number) = current_label(), _CHILD.get()
    which = str(number) if number and numbered is parent else ""
    which = shown(label) if label else which
    where = f"of ledger {shown(ledger)}" if ledger else ""
    return " ".join(filter(None, (_KIND.get() or kind, which, where)))


@contextmanager
def as_child(parent: object, number: int) -> Iterator[None]:
    """Give a number to accounts that are made below ``parent`` in this block."""
    token = _CHILD.set((parent, number))
    try:
        yield
    finally:
        _CHILD.reset(token)


@contextmanager
def named(kind: str, label: str = "") -> Iterator[None]:
    """Give another kind, and a label if given, to accounts that are made in this block."""
    token = _KIND.set(kind)
    try:
        with under_label(label or current_label()):
            yield
    finally:
        _KIND.reset(token)
