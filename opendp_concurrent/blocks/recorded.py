"""What a ledger keeps of a block filter: each charge with the keys of its blocks.

The charges are the state: opening a ledger replays them, each on all of its blocks. So the budget
of a block is found again by its key, whatever the order in which a process adds blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arguments.written import written
from ..measures.measure import CompositionMeasure
from ..shown import shown
from ..sums.accumulator import Accounting
from ..types import Json, Loss
from .keys import Keys
from .totals import Totals


@written("on-each-block", "d_out", of="accounting")
@dataclass(frozen=True, slots=True)
class OnEachBlock:
    """The accumulator of a block filter in a ledger: one accumulator for each block.

    :ivar accounting: the accumulator of each block
    :ivar d_out: the budget of each block
    """

    accounting: Accounting
    d_out: Loss
    made_for: ClassVar[str] = "the measures of its blocks"
    needs_measure: ClassVar[bool] = True
    follows_from_charges: ClassVar[bool] = True  # a record has not the totals
    why_no_events: ClassVar[str] = (
        "the ledger is of a block filter, where each block has losses of its own, and no list of "
        "events is a bound for all of them"
    )

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the accumulator of a block supports the measure."""
        return self.accounting.supports(measure)

    def start(self, measure: CompositionMeasure | None) -> Totals:
        """Return the totals of no launch."""
        return Totals(Keys(), self.accounting.start(measure), self.d_out)

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> Totals:
        """Return totals with the number of launches: what they are follows from the charges."""
        found = self.start(measure)
        found.launches = int(record["launches"])
        return found

    def __repr__(self) -> str:
        # the bound is said here, too: it tells two of them from each other where terms differ
        return f"{self.accounting!r} on each block, at most {shown(self.d_out)}"
