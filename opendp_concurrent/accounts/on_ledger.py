"""Charges that a ledger keeps: launches are decided in a turn, on the charges of all processes.

The ledger overrides the accounts. A launch is decided on its state, in an exclusive turn, and is
charged when it is durable. The accounts then take over that state. The ledger keeps the root and
the limits below it, which are charged together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..errors import BudgetExceededError, InvalidTypeError
from ..sums.accumulator import Accumulator
from .charge import Book, Charge, Kept, LimitBook, LimitCharge, Terms
from .history import Keeper, refuse
from .label import current_label
from .price import Price
from .reentry import check_not_held

if TYPE_CHECKING:
    from .account import Account, Plan


class _FewerError(Exception):
    """The ledger does not admit as many launches as were planned, but may admit fewer."""


class _Kept:
    """What the keepers of a budget and of a limit below it share.

    :param book: of the budget or limit
    """

    recorded: ClassVar[bool] = True
    what: ClassVar[str] = "budget in a ledger"
    prices: ClassVar[tuple[Price, ...]] = ()  # other processes charge it too

    def __init__(self, book: Kept) -> None:
        self._kept = book

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
        check_not_held(account.lock)
        with account.lock:
            account.follow(self.read())

    def keep(self, price: Price, count: int) -> None:
        """Nothing: the turn has written the charges."""


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

    def open_limit(self, at: Keeper, path: tuple[str, ...], terms: Terms) -> OnLimit:
        """Open a limit on the budget, or on another limit."""
        if not at.recorded:
            raise InvalidTypeError(
                "a limit in a ledger must be opened on the handle with the ledger, or on that of "
                "another limit: a child odometer has no name by which a later process finds it"
            )
        return OnLimit(self._book.limit(path, terms))

    def charge(self, chain: tuple[Account, ...], prices: list[Price]) -> Charge:
        """Return the charge to write, with the d_mids as they are counted."""
        limits = tuple(
            LimitCharge(keeper.path, keeper.terms, chain[place].counted(prices[place]))
            for place, keeper in _limits(chain)
        )
        price, d_mid = prices[-1], chain[-1].counted(prices[-1])
        return Charge(d_mid, price.mechanism, current_label(), limits)

    def decide(
        self, chain: tuple[Account, ...], plans: list[Plan], charge: Charge, count: int, least: int
    ) -> bool:
        """Take a turn, decide on what the ledger has now, and write the charge."""
        places, root = [place for place, _ in _limits(chain)], chain[-1]
        try:
            with self._book.turn() as turn:
                for place, limit in zip(places, charge.limits, strict=True):
                    total, plan = turn.total(limit), plans[place]
                    plans[place] = chain[place].plan_on(total, limit.d_mid, plan, count)
                plans[-1] = root.plan_on(turn.accumulator, charge.d_mid, plans[-1], count)
                if count > least and any(isinstance(one, BudgetExceededError) for one in plans):
                    raise _FewerError  # it undoes the turn
                refuse(chain, plans)
                limits = tuple(chain[place].planned(plans[place]) for place in places)
                turn.write(charge, root.planned(plans[-1]), count, limits)
        except _FewerError:
            return False
        return True


def _limits(chain: tuple[Account, ...]) -> list[tuple[int, OnLimit]]:
    """Return the places and keepers of limits, from the outermost one to the innermost."""
    keepers = [(place, one.keeper) for place, one in enumerate(chain)]
    return [(place, one) for place, one in reversed(keepers) if isinstance(one, OnLimit)]
