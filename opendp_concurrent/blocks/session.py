"""The session of a block filter, and that of a launch on some of its blocks.

A launch on some blocks is a launch on a selection: a child account without a bound, on the records
of the blocks, which lifts each price to a cost of the named blocks. So an odometer may be launched
on blocks, too; its launches are charged to them. Launches may also be prepaid there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from opendp.mod import Domain, Metric

from .. import checks
from ..accounts.account import Account
from ..accounts.lifecycle import Lifecycle
from ..checks import is_a
from ..errors import InvalidTypeError
from ..measures import CompositionMeasure
from ..measures.sums.accumulator import Accumulator
from ..native import opendp as _native
from ..queryables.data import Sealed, seal_transformed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentOdometer, check_launch
from ..queryables.offer import MeasurementPrice
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


class SelectionSession(Session):
    """The session of launches on some blocks."""

    __slots__ = ()
    _asked = "measurement"

    def _launch(self, query: Any, charge: Callable[[MeasurementPrice], Lifecycle]) -> Any:
        answer = super()._launch(query, charge)
        if isinstance(answer, MachineQueryable) and answer.takes_updates:
            raise InvalidTypeError(f"measurement takes updates: {STREAMS}")
        return answer


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
        return self.on(blocks).launch(measurement)

    def on(self, blocks: Any) -> Session:
        """Return the session of launches on some blocks, each of which is charged to all of them.

        :raises InvalidTypeError, InvalidValueError: if one of them is not a block
        """
        places = self.records.keys.places(blocks)
        take = self.records.of(places)
        carrier_type = self._space[0].carrier_type
        token = seal_transformed(self._token, lambda _: _native.to_pointer(take(), carrier_type))
        selection = Selection(self.account, self._named(places), self._reason)
        child = SelectionSession(
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


def _pair(query: Any) -> tuple[Any, Any]:
    parts = list(tuple.__iter__(query)) if is_a(query, tuple) else []
    if len(parts) != 2:
        raise InvalidTypeError(
            f"the query must be blocks and a measurement, found {checks.shown(type(query))}; call "
            "for example root(['2026-W01'], measurement)"
        )
    return parts[0], parts[1]
