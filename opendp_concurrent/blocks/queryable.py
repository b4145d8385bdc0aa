"""The handle of a block filter, and the session behind it.

A launch on some blocks is a launch on a selection: a child account without a bound, on the records
of the blocks, which lifts each price to a cost of the named blocks. So an odometer may be launched
on blocks, too; its launches are charged to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from opendp.mod import Domain, Measurement, Metric, Queryable

from .. import checks
from ..accounts.account import Account
from ..checks import is_a
from ..errors import InvalidTypeError
from ..measures import CompositionMeasure
from ..measures.sums.accumulator import Accumulator
from ..native import opendp as _native
from ..queryables.data import Sealed, check_process, seal_transformed
from ..queryables.handle import Handle
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentOdometer, check_launch
from ..queryables.sequential import SequentialRunner
from ..queryables.session import Session
from .keys import Places
from .launches import PriceOnBlocks, Selection
from .records import Records

STREAMS = (
    "a block's records are fixed before it is queried: data that arrive while a mechanism runs are "
    "a stream, for make_concurrent_continual; records that arrive later go into a new block, by "
    "add_blocks"
)
LIMITS = (
    "each launch names its blocks anew, so the same label would open another limit each time; "
    "launch an odometer on the blocks, keep its handle, and open the limit on that handle"
)


class BlockSession(Session):
    """The session of a block filter, whose queries are pairs of blocks and a measurement.

    :param records: the records of each block
    :param sequential_reason: why a launch closes the older ones; None if it does not
    """

    __slots__ = ("_reason", "_space", "records")

    def __init__(
        self,
        account: Account,
        space: tuple[Domain, Metric],
        measure: CompositionMeasure,
        token: Sealed,
        runner: SequentialRunner | None,
        records: Records,
        sequential_reason: str | None,
        postprocessors: tuple[Any, ...],
    ) -> None:
        super().__init__(account, space, space[1], measure, token, runner, postprocessors)
        self.records, self._reason = records, sequential_reason
        self._space = space

    def launch(self, query: Any) -> Any:
        """Launch a measurement on some blocks: charge each of them, or none."""
        blocks, measurement = _pair(query)
        if is_a(measurement, ConcurrentOdometer) and getattr(measurement, "limit", None):
            raise InvalidTypeError(f"measurement is a limit: {LIMITS}")
        places = self.records.keys.places(blocks)
        answer = self._on(places).launch(measurement)
        if isinstance(answer, MachineQueryable) and answer.takes_updates:
            raise InvalidTypeError(
                f"measurement takes updates: {STREAMS}. This was known only when it had run, so "
                "its charge stays"
            )
        return answer

    def _on(self, places: Places) -> Session:
        take = self.records.of(places)
        carrier_type = self._space[0].carrier_type
        token = seal_transformed(self._token, lambda _: _native.to_pointer(take(), carrier_type))
        selection = Selection(self.account, self._named(places), self._reason)
        child = Session(
            selection,
            self._space,
            self._space[1],
            self.measure,
            token,
            self._runner,
            self._postprocessors,
        )
        child._offers, child._children = self._offers, self._children
        child.lock, child.native = self.lock, self.native
        return child

    def admits(self, blocks: Any, measurement: Any) -> bool:
        """Return whether a launch would be admitted now."""
        check_launch(measurement)
        places = self.records.keys.places(blocks)
        offer = self._offers.price(measurement, "measurement")
        price = PriceOnBlocks(offer, self._named(places))
        return self.account.refusal(price) is None

    @property
    def d_in(self) -> Any:
        """The distance at which losses are counted: one step."""
        return 1

    def block(self, block: Any) -> Accumulator:
        """Return the accumulator of a block."""
        (key,) = self.records.keys.at(np.array([self.records.keys.place(block)]))
        found: Accumulator = self.account.privacy_loss(self.d_in).of(key)
        return found

    def _named(self, places: Places) -> Any:
        """Return what names the blocks in a charge: places; in a ledger, keys."""
        if self.account.recorded:
            return tuple(self.records.keys.at(places))
        return places


class BlockFilterQueryable(Handle, Queryable):
    """Handle of a block filter. A launch names its blocks, each of which has its own budget."""

    query_type = "ExtrinsicObject"

    def __init__(self, session: BlockSession, description: str, d_out: Any) -> None:
        super().__init__(session, session.launch)
        self._blocks, self._description, self._d_out = session, description, d_out

    def __call__(self, blocks: Any, measurement: Any = None) -> Any:
        """Launch a measurement, interactive or not, on the records of some blocks.

        The launch is charged to every named block, or to none. A block that is named twice is
        charged once.

        :param blocks: a collection of keys, or a ``range`` or array of integers; a pair of these
            and the measurement, if ``measurement`` is left out
        :param measurement: on the space of the parts, under the filter's measure; or an odometer
            of this package, whose launches are then charged to the blocks
        :return: its answer, or a child
        :raises BlockExceededError: a block refuses; nothing was charged
        :raises InvalidTypeError, InvalidValueError: naming the argument; for a key that is not a
            block; for a limit (:func:`.make_limited`). If the function of a user's measurement
            returns a child that takes updates, this is known only after the function has run, so
            the launch stays charged
        """
        return super().__call__(blocks if measurement is None else (blocks, measurement))

    def invoke(self, blocks: Any, measurement: Any = None) -> Any:
        """Launch; the same as calling the handle."""
        return self(blocks, measurement)

    def admits(self, blocks: Any, measurement: Measurement) -> bool:
        """Return whether a launch would be admitted now; charges nothing.

        :param blocks: as in a launch
        :param measurement: as in a launch
        """
        check_process(self._blocks.token)
        return self._blocks.admits(blocks, measurement)

    def privacy_loss(self, block: Any) -> Any:
        """Return the privacy loss of the launches on a block so far; changes nothing.

        :param block: its key
        """
        return self._blocks.block(block).loss

    def remaining(self, block: Any) -> Any:
        """Return the largest privacy loss that one more launch on a block may have.

        :param block: its key
        """
        return self._blocks.block(block).remaining(self._d_out)

    def add_blocks(self, keys: Any, data: Any = None) -> None:
        """Add blocks with a full budget. For the owner of the data.

        The keys must be new and public: that a block exists must not depend on the records. No
        records are added to a block later. If there is a ledger, budgets continue from it.

        :param keys: a collection of keys, or a ``range``
        :param data: the records of the new blocks, a member of the filter's input domain; records
            with other keys are in no block. If left out, the data that the filter was invoked on
            have the records
        :raises InvalidTypeError, InvalidValueError: naming the argument; nothing is added
        """
        check_process(self._blocks.token)
        self._blocks.records.add(keys, data)

    def __len__(self) -> int:
        return len(self._blocks.records.keys)

    def __contains__(self, block: Any) -> bool:
        return block in self._blocks.records.keys

    __iter__ = None  # blocks may be many

    def __repr__(self) -> str:
        return (
            f"BlockFilterQueryable({self._description}, {len(self)} blocks, {self._launches()}, "
            f"{self._session.account.lifecycle.state.value})"
        )


def _pair(query: Any) -> tuple[Any, Any]:
    parts = list(tuple.__iter__(query)) if is_a(query, tuple) else []
    if len(parts) != 2:
        raise InvalidTypeError(
            f"the query must be blocks and a measurement, found {checks.shown(type(query))}; call "
            "for example root(['2026-W01'], measurement)"
        )
    return parts[0], parts[1]
