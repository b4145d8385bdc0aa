"""The refusal of one block of the data."""

from __future__ import annotations

from ..shown import shown
from ..types import Distance, Key
from . import BudgetExceededError, public


@public
class BlockExceededError(BudgetExceededError):
    """The launch would take the privacy loss of a block of the data above its budget.

    No block was charged. ``spent`` and ``remaining`` are those of ``block``.

    :ivar block: key of the block; of several that refuse, the one that was added first
    """

    block: Key = None

    @classmethod
    def of(cls, refusal: BudgetExceededError, block: Key) -> BlockExceededError:
        """Return the refusal of one block."""
        found = cls(
            refusal.spent,
            refusal.asked,
            refusal.remaining,
            d_out=refusal.d_out,
        )
        found.block = block
        return found

    def with_account(
        self, account: tuple[str, ...], d_in: Distance, measure: str, accumulator: str
    ) -> BudgetExceededError:
        """Return this refusal with the account and the block that refused."""
        path = (*account, f"block {shown(self.block)}")
        return super().with_account(path, d_in, measure, accumulator)
