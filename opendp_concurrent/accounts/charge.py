"""A charge, which records that a launch was paid for, and the ledger that charges are written to.

A ledger keeps a budget that several processes share, and that outlives them. A launch takes a turn
at its book: it reads all charges so far, of every process, decides, and writes its own charge. The
turn ends when the charge is durable. Only then does the mechanism run.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Protocol

from ..arguments.checks import shown, text
from ..errors import InvalidValueError
from ..sums.accumulator import Accounting, Accumulator

_LABEL: ContextVar[str] = ContextVar("_LABEL", default="")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a budget. A ledger refuses to continue a budget under other terms.

    :ivar measure: name of the privacy measure, with its parameters
    :ivar accumulator: the kind of accumulator that adds up the losses
    :ivar metric: metric that d_in is a distance of
    :ivar d_in: distance between neighbouring inputs
    :ivar d_out: bound on the total loss; None for an odometer
    """

    measure: str
    accumulator: Accounting
    metric: str
    d_in: Any
    d_out: Any


@dataclass(frozen=True, slots=True)
class LimitCharge:
    """What a launch costs a limit that it is below.

    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: the terms of the limit
    :ivar d_mid: privacy loss of the launch at the d_in of the limit
    """

    path: tuple[str, ...]
    terms: Terms
    d_mid: Any


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of one launch. It is written before the mechanism runs.

    :ivar d_mid: privacy loss of the launch at the d_in of the terms
    :ivar mechanism: description of the mechanism, from its constructor
    :ivar label: label that the analyst gave to the launch
    :ivar limits: what it costs the limits that it is below, from the outermost to the innermost
    """

    d_mid: Any
    mechanism: str
    label: str
    limits: tuple[LimitCharge, ...] = ()


class Turn(Protocol):
    """A turn at a book. No other launch is charged during the turn."""

    @property
    def accumulator(self) -> Accumulator:
        """The accumulator of all charges so far, of every process."""

    def total(self, limit: LimitCharge) -> Accumulator:
        """Return the accumulator of all charges so far below a limit.

        :raises LimitMismatchError: if another process opened it under other terms
        """

    def write(
        self,
        charge: Charge,
        after: Accumulator,
        count: int = 1,
        limits: tuple[Accumulator, ...] = (),
    ) -> None:
        """Add ``count`` equal charges, after which the accumulator is ``after``.

        All of them are durable at turn's end, or none.

        :param limits: the accumulators of its limits after them, in their order
        """


class Kept(Protocol):
    """A total that all processes share: that of a budget, or of a limit below it."""

    @property
    def dataset(self) -> str:
        """Name of the budget in the ledger."""

    @property
    def launches(self) -> int:
        """Number of charges at the last turn or read."""

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the book.

        :raises ForkedError: there; call before taking a lock, which a fork may have left held
        """

    def read(self) -> Accumulator:
        """Return the accumulator of all charges so far, never fewer than were read before.

        :raises LedgerError: if it cannot be read
        """


class LimitBook(Kept, Protocol):
    """A limit, shared by all processes that have it open.

    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: its terms
    """

    path: tuple[str, ...]
    terms: Terms


class Book(Kept, Protocol):
    """One budget, shared by all processes that have it open."""

    def limit(self, path: tuple[str, ...], terms: Terms) -> LimitBook:
        """Open a limit below the budget. Its first charge fixes its terms."""

    def turn(self) -> AbstractContextManager[Turn]:
        """Take a turn. What it writes is durable at its end. An exception undoes it.

        :raises LedgerError: if it could not be written; the mechanism must not run
        """


class Ledger(Protocol):
    """Where charges are written."""

    def book(self, terms: Terms) -> Book:
        """Open the budget under ``terms``. The first process to open it fixes its terms.

        :raises LedgerError: if the budget has other terms
        """


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
