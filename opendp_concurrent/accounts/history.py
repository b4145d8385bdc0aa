"""What keeps the charges of an account; and the keeper in memory, for this process only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from ..errors import BudgetExceededError
from ..interrupts import Lock
from .charge import Terms
from .price import Price

if TYPE_CHECKING:
    from .account import Account, Trial, Verdict
    from .lifecycle import Lifecycle
    from .on_ledger import OnLimit


class Keeper(Protocol):
    """What keeps the charges of an account.

    :cvar recorded: whether a ledger keeps them
    :cvar what: what an account is called whose loss is known at one d_in only
    """

    recorded: ClassVar[bool]
    what: ClassVar[str]

    @property
    def lock(self) -> Lock | None:
        """The lock of all trees that a budget in a ledger keeps; None if each has its own."""

    @property
    def dataset(self) -> str:
        """Name of the budget in a ledger; empty if it has none."""

    @property
    def launches(self) -> int:
        """Number of charges that this process knows of."""

    @property
    def prices(self) -> Sequence[Price]:
        """The prices of all launches, in order; none if other processes charge it, too."""

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened a ledger."""

    def refresh(self, account: Account) -> None:
        """Let an account take over what other processes have charged."""

    def keep(self, price: Price) -> None:
        """Note a launch that was charged. Call this under the lock."""


class Arbiter(Keeper, Protocol):
    """The keeper of a root, which decides on the launches of its tree."""

    def open_limit(self, at: Keeper, path: tuple[str, ...], terms: Terms) -> OnLimit | None:
        """Return what keeps a limit below an account of this tree; None for a history.

        :param at: the keeper of that account
        """

    def settle(self, trial: Trial) -> Lifecycle | None:
        """Charge a launch for good, or raise the refusal.

        :return: the lifecycle of the child; None if the launch must be planned again
        """


def refuse(chain: tuple[Account, ...], plans: list[Verdict]) -> None:
    """Raise the refusal of the first account that refuses."""
    for account, plan in zip(chain, plans, strict=True):
        if isinstance(plan, BudgetExceededError):
            account.refused()
            raise plan


class History:
    """The launches of one account, in the memory of this process."""

    __slots__ = ("prices",)
    lock: ClassVar[Lock | None] = None
    recorded: ClassVar[bool] = False
    what: ClassVar[str] = "compositor"
    dataset: ClassVar[str] = ""

    def __init__(self) -> None:
        self.prices: list[Price] = []

    @property
    def launches(self) -> int:
        """Number of launches."""
        return len(self.prices)

    def check_process(self) -> None:
        """Nothing: a forked process has a copy, and cannot use the data."""

    def refresh(self, account: Account) -> None:
        """Nothing: no other process charges the account."""

    def keep(self, price: Price) -> None:
        """Add a launch."""
        self.prices.append(price.settled())

    def open_limit(self, at: Keeper, path: tuple[str, ...], terms: Terms) -> None:
        """Return None: a limit has a history of its own."""

    def settle(self, trial: Trial) -> Lifecycle | None:
        """Charge the launch, or raise the refusal of the first account that refuses."""
        with trial.chain[0].lock:
            if not trial.stands():
                return None
            refuse(trial.chain, trial.plans)
            return trial.bind()
