"""A charge, which records that a launch was paid for, and the ledger that charges are written to.

A ledger keeps a budget that several processes share, and that outlives them. A launch takes a turn
at its book: it reads all charges so far, of every process, decides, and writes its own charge. The
turn ends when the charge is durable. Only then does the mechanism run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..sums.accumulator import Accounting, Accumulator
from ..types import Distance, Loss

if TYPE_CHECKING:
    from .account import Trial
    from .lifecycle import Lifecycle


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
    d_in: Distance
    d_out: Loss


@dataclass(frozen=True, slots=True)
class LimitCharge:
    """What a launch costs a limit that it is below.

    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: the terms of the limit
    :ivar d_mid: privacy loss of the launch at the d_in of the limit
    """

    path: tuple[str, ...]
    terms: Terms
    d_mid: Loss


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of one launch. It is written before the mechanism runs.

    :ivar d_mid: privacy loss of the launch at the d_in of the terms
    :ivar mechanism: description of the mechanism, from its constructor
    :ivar label: label that the analyst gave to the launch
    :ivar limits: what it costs the limits that it is below, from the outermost to the innermost
    """

    d_mid: Loss
    mechanism: str
    label: str
    limits: tuple[LimitCharge, ...] = ()


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

    def settle(self, trial: Trial, charge: Charge) -> Lifecycle | None:
        """Decide on launches in a turn, and charge them when their charges are durable.

        :return: the lifecycle of the child; None if the launches must be planned again
        :raises BudgetExceededError: if an account refuses
        :raises LedgerError: if the charge could not be written; the mechanism must not run
        """


class Ledger(Protocol):
    """Where charges are written."""

    def book(self, terms: Terms) -> Book:
        """Open the budget under ``terms``. The first process to open it fixes its terms.

        :raises LedgerError: if the budget has other terms
        """
