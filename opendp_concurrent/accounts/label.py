"""Labels: what a launch is for. A ledger records them, and refusals show them."""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar, Token
from typing import Any

from ..arguments.checks import shown, text
from ..errors import InvalidValueError

_LABEL: ContextVar[str] = ContextVar("_LABEL", default="")


def label_text(**argument: Any) -> str:
    """Return a label, which a ledger and a message can contain.

    :raises InvalidTypeError, InvalidValueError: naming the argument
    """
    ((name, _),) = argument.items()
    label: str = text(**argument)
    if "\0" in label or any("\ud800" <= one <= "\udfff" for one in label):
        raise InvalidValueError(
            f"{name} ({shown(label)}) must be text, without NUL and lone surrogates"
        )
    return label


def labelled(label: str) -> AbstractContextManager[None]:
    """Give launches in this block a label.

    A ledger records the label with the charge. An odometer, filter or compositor that is made in
    the block has the label in its name, which a refusal shows (:class:`.BudgetExceededError`). A
    label is plain text. Readers of the ledger or the refusal see it: it must not depend on data.

    The label applies to this thread only, not to threads that are started in the block.

    :param label: purpose of the launches, such as ``"mean age, by Ada"``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> with oc.labelled("mean age, for the report"):
    ...     pass  # launch here
    """
    return under_label(label_text(label=label))


def under_label(label: str) -> AbstractContextManager[None]:
    """Give launches in this block a label that was checked, or is shown in messages only."""
    return _UnderLabel(label)


class _UnderLabel(AbstractContextManager[None], ContextDecorator):
    """No generator: one that an interrupt has suspended would reset the label when it is freed."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        self._tokens.append(_LABEL.set(self._label))

    def __exit__(self, *error: object) -> None:
        _LABEL.reset(self._tokens.pop())

    def _recreate_cm(self) -> _UnderLabel:
        return _UnderLabel(self._label)  # for each call of a function that it decorates


def current_label() -> str:
    """Return the label of launches in this context."""
    return _LABEL.get()
