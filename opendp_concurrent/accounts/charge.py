"""A charge: the fact that a launch was paid for, and where such facts are written.

A ledger is the arbiter of a budget that several processes share and that survives them. A launch
takes a turn at its book: it reads what was charged so far by anyone, decides, writes, and leaves
once the charge is durable. Only then does its mechanism run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from ..checks import shown, text
from ..errors import InvalidValueError
from ..measures import by_tag
from ..measures.sums.accumulator import Accounting, Accumulator

_LABEL: ContextVar[str] = ContextVar("_LABEL", default="")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a budget is about. A ledger refuses to go on with it under any others.

    :ivar measure: name of the privacy measure, with its parameters
    :ivar accounting: which theorem adds up the losses
    :ivar zero: the loss of nothing, under the measure; None where the accounting knows it
    :ivar metric: in whose units d_in is
    :ivar d_in: distance between neighbouring inputs
    :ivar d_out: bound on the whole; None for an odometer
    """

    measure: str
    accounting: Accounting
    zero: Any
    metric: str
    d_in: Any
    d_out: Any

    def empty_total(self) -> Accumulator:
        """Return the accumulator of no launch.

        A measure of another package may not be registered here; most accumulators can do without.
        """
        return self.accounting.start(by_tag(self.measure))

    def read_total(self, record: Any) -> Accumulator:
        """Return the accumulator that ``to_record`` described."""
        return self.accounting.from_record(by_tag(self.measure), record)


@dataclass(frozen=True, slots=True)
class Charge:
    """One launch, paid. Written before the mechanism runs.

    :ivar d_mid: privacy loss of the launch at the d_in of the terms
    :ivar mechanism: what was launched, as far as its constructor says
    :ivar label: what the one who launched it called it
    """

    d_mid: Any
    mechanism: str
    label: str


class Turn(Protocol):
    """A turn at a book: nobody else charges meanwhile."""

    @property
    def accumulator(self) -> Accumulator:
        """All charges so far, of every process."""

    def write(self, charge: Charge, after: Accumulator) -> None:
        """Add ``charge``, which makes ``after`` of the accumulator; durable when the turn ends."""


class Book(Protocol):
    """One budget, shared with everyone who has it open."""

    @property
    def dataset(self) -> str:
        """What the ledger calls the budget."""

    @property
    def launches(self) -> int:
        """How many charges were seen at the last turn or reading."""

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the book.

        :raises ForkedError: there; before any lock is taken, as others may have held it
        """

    def read(self) -> Accumulator:
        """All charges so far; never fewer than were read before.

        :raises LedgerError: if it cannot be read
        """

    def turn(self) -> AbstractContextManager[Turn]:
        """Take a turn; what was written is durable at its end. An exception undoes it.

        :raises LedgerError: if it could not be written; the mechanism must not run
        """


class Ledger(Protocol):
    """Where charges are written."""

    def book(self, terms: Terms) -> Book:
        """Open the budget under ``terms``; the first to come settles them.

        :raises LedgerError: if it was kept under others
        """


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Give launches in this block a label.

    A ledger records it with the charge. An odometer, filter or compositor that is made in the block
    has it as its name, which a refusal tells (:class:`.BudgetExceededError`). A label is plain
    text, and is read by whoever reads the ledger or the refusal: it must not depend on the data.

    It holds in this thread; a thread that is started inside has none.

    :param label: what the launches are for, such as ``"mean age, by Ada"``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> with oc.labelled("mean age, for the report"):
    ...     pass  # launch here
    """
    label = text(label=label)
    if "\0" in label or any("\ud800" <= one <= "\udfff" for one in label):
        raise InvalidValueError(
            f"label ({shown(label)}) must be text, without NUL and lone surrogates"
        )
    with under_label(label):
        yield


@contextmanager
def under_label(label: str) -> Iterator[None]:
    """Give launches in this block a label that was checked, or is told in a message only."""
    token = _LABEL.set(label)
    try:
        yield
    finally:
        _LABEL.reset(token)


def current_label() -> str:
    """Return the label of launches made here."""
    return _LABEL.get()
