"""Charges that a ledger keeps: launches are decided in a turn, on the charges of all processes.

The ledger overrides the accounts. A launch is decided on its state, in an exclusive turn, and is
charged when it is durable. The accounts then take over that state. The ledger keeps the root and
the limits below it, which are charged together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..errors import InvalidTypeError
from ..interrupts import Lock
from ..sums.accumulator import Accumulator
from .charge import Book, Charge, Kept, LimitBook, LimitCharge, Terms
from .history import Keeper
from .label import current_label
from .price import Price

if TYPE_CHECKING:
    from .account import Account, Trial
    from .lifecycle import Lifecycle


class _Kept:
    """What the keepers of a budget and of a limit below it share.

    :param book: of the budget or limit
    """

    recorded: ClassVar[bool] = True
    what: ClassVar[str] = "budget in a ledger"
    prices: ClassVar[tuple[Price, ...]] = ()  # other processes charge it too

    def __init__(self, book: Kept) -> None:
        self._kept = book
        self.lock: Lock | None = None

    @property
    def dataset(self) -> str:
        """Name of the budget in the ledger; empty for a limit."""
        return self._kept.dataset

    @property
    def launches(self) -> int:
        """Number of charges at the last turn or read."""
        return self._kept.launches

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the ledger."""
        self._kept.check_process()

    def read(self) -> Accumulator:
        """Return the accumulator of all charges so far, of every process."""
        return self._kept.read()

    def refresh(self, account: Account) -> None:
        """Read the ledger, and let the account follow it."""
        self.check_process()
        with account.lock:
            account.follow(self.read())

    def keep(self, price: Price) -> None:
        """Nothing: the turn has written the charge."""


class OnLimit(_Kept):
    """The charges below a limit. They are decided in turns of the budget."""

    def __init__(self, book: LimitBook) -> None:
        super().__init__(book)
        self.path, self.terms = book.path, book.terms


class OnLedger(_Kept):
    """The charges of a budget, for the root of a tree of accounts."""

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self._book = book
        self.lock = Lock()  # whoever leads a turn charges the accounts of all trees

    def open_limit(self, at: Keeper, path: tuple[str, ...], terms: Terms) -> OnLimit:
        """Open a limit on the budget, or on another limit."""
        if not at.recorded:
            raise InvalidTypeError(
                "a limit in a ledger must be opened on the handle with the ledger, or on that of "
                "another limit: a child odometer has no name by which a later process finds it"
            )
        return OnLimit(self._book.limit(path, terms))

    def settle(self, trial: Trial) -> Lifecycle | None:
        """Charge the launch in a turn of the ledger, or raise."""
        chain, prices = trial.chain, trial.prices  # untrusted maps are read here, before locks
        limits = tuple(
            LimitCharge(keeper.path, keeper.terms, chain[place].counted(prices[place]))
            for place, keeper in limits_of(chain)
        )
        d_mid = chain[-1].counted(prices[-1])
        charge = Charge(d_mid, prices[-1].mechanism, current_label(), limits)
        return self._book.settle(trial, charge)


def limits_of(chain: tuple[Account, ...]) -> list[tuple[int, OnLimit]]:
    """Return the places and keepers of limits, from the outermost one to the innermost."""
    keepers = [(place, one.keeper) for place, one in enumerate(chain)]
    return [(place, one) for place, one in reversed(keepers) if isinstance(one, OnLimit)]
