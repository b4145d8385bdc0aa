"""What a launch on some blocks costs, and the rule that admits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..accounts.account import Account
from ..accounts.lifecycle import Lifecycle, named
from ..accounts.price import Price
from ..errors import BudgetExceededError
from ..sums.accumulator import Accumulator
from ..types import Distance, Key, Loss
from .keys import Places
from .totals import OnBlocks, OnKeys, Totals


@dataclass(frozen=True, slots=True)
class WithinBlocks:
    """The rule of a block filter: each block that is named stays within its budget.

    A launch is admitted by all of its blocks, and then charged to each, or charged to none.

    :ivar d_out: the budget of each block
    """

    kind: ClassVar[str] = "filter"
    d_out: Loss

    def admits(self, accumulator: Totals, d_mid: OnBlocks | OnKeys) -> Totals | BudgetExceededError:
        """Admit when all named blocks do."""
        return accumulator.admitted(accumulator.read(d_mid))

    def remaining(self, accumulator: Totals) -> Totals:
        """Return the totals, from which that of a block is read."""
        return accumulator


class PriceOnBlocks:
    """The price of a launch on some blocks.

    :param on: places of the blocks; with a ledger, their keys
    """

    def __init__(self, price: Price, on: Places | tuple[Any, ...]) -> None:
        self._price, self._on = price, on
        # the last d_in, and what it costs
        self._known: tuple[Any, OnBlocks | OnKeys | None] = None, None
        self.settled = price.settled  # without the blocks: a history of blocks would be long

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        return self._price.mechanism

    def at(self, d_in: Distance, key: Key = None) -> OnBlocks | OnKeys:
        """Return the blocks and the d_mid."""
        known, cost = self._known
        if cost is not None and known is d_in:  # one number for all accounts, which is read once
            return cost
        new = self._cost(self._price.at(d_in, key))
        self._known = d_in, new
        return new

    def _cost(self, d_mid: Loss) -> OnBlocks | OnKeys:
        if isinstance(self._on, tuple):
            return OnKeys(self._on, d_mid)
        return OnBlocks(self._on, d_mid)


class Selection(Account):
    """Some blocks, which pay for what is launched on them. It has no bound of its own.

    :param root: the account of the block filter
    """

    def __init__(
        self, root: Account, on: Places | tuple[Any, ...], sequential_reason: str | None
    ) -> None:
        with named("blocks"):
            super().__init__(None, parent=root, sequential_reason=sequential_reason)
        self._on = on
        # what takes updates is a stream, and which block they change may be chosen by the analyst
        self.lifecycle = Lifecycle(root.lifecycle, static=True, name=self.lifecycle.path[-1])

    @property
    def initial(self) -> Accumulator:
        """The accumulator of the block filter, in whose form d_mids are added."""
        return self._chain[-1].initial

    def _lift(self, price: Price) -> Price:
        return PriceOnBlocks(price, self._on)
