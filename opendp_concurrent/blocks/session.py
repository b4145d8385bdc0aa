"""The session of a block filter, and that of a launch on some of its blocks.

A launch on some blocks is a launch on a selection: a child account without a bound, on the records
of the blocks, which lifts each price to a cost of the named blocks. So an odometer may be launched
on blocks, too; its launches are charged to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from opendp.mod import Domain, Metric, Odometer

from ..accounts.account import Account
from ..accounts.lifecycle import Lifecycle
from ..accounts.price import Price
from ..accounts.store import Limit
from ..arguments import checks
from ..errors import InvalidTypeError, uncharged
from ..measures import CompositionMeasure
from ..queryables.data import Sealed
from ..queryables.mechanism import ConcurrentOdometer
from ..queryables.session import Session, check_space
from ..queryables.turn import SequentialRunner
from ..sums.accumulator import Accumulator
from ..types import Answer, Key, Query
from .launches import PriceOnBlocks, Selection
from .records import Records
from .steps import BlockSteps

STREAMS = (
    "measurement takes updates: a block's records are fixed before it is queried: data that arrive "
    "while a mechanism runs are a stream, for make_concurrent_continual; records that arrive later "
    "go into a new block, by add_blocks. This was known only when it had run, so its charge stays"
)
LIMITS = (
    "it bounds each block, and its launches name their blocks: open it without blocks, as "
    "alice = root(limit), and launch alice(blocks, measurement)"
)


class Whole(NamedTuple):
    """The data that the blocks are cut from.

    :ivar space: domain and metric of all records
    :ivar steps: from a distance of all records to one step in one block
    :ivar open_limit: returns the handle of a limit below a session
    """

    space: tuple[Domain, Metric]
    steps: BlockSteps
    open_limit: Callable[[BlockSession, ConcurrentOdometer, Limit], Any]


class SelectionSession(Session):
    """The session of launches on some blocks."""

    _asked = "measurement"
    _static = STREAMS

    def _check_odometer(self, odometer: Odometer) -> None:
        super()._check_odometer(odometer)
        if getattr(odometer, "limit", None):
            raise InvalidTypeError(f"measurement is a limit: {LIMITS}")


class BlockSession(Session):
    """The session of a block filter, whose queries are pairs of blocks and a measurement.

    :ivar records: the records of each block
    :ivar whole: what the blocks are cut from
    :ivar reason: why a launch closes the older ones; None if it does not
    """

    _asked, _static = "measurement", STREAMS

    def __init__(
        self,
        account: Account,
        space: tuple[Domain, Metric],
        measure: CompositionMeasure,
        token: Sealed,
        runner: SequentialRunner | None,
        records: Records,
        whole: Whole,
        reason: str | None,
        postprocessors: tuple[Any, ...],
    ) -> None:
        super().__init__(account, space, space[1], measure, token, runner, postprocessors)
        self.records, self.whole = records, whole
        self._space, self.reason = space, reason
        self._by_key = account.recorded  # places differ between processes

    @property
    def metric(self) -> Metric:
        """The metric of the records of some blocks."""
        return self._space[1]

    def launch_on_blocks(self, query: Query) -> Answer:
        """Launch a measurement on some blocks: charge each of them, or none. Or open a limit."""
        if isinstance(query, ConcurrentOdometer):
            return uncharged(self._open, query)
        measurement, on, token = uncharged(self._named_in, query)
        if isinstance(measurement, Odometer):
            return self._selection(on, token).launch(measurement)
        account = self.account

        def charge(price: Price) -> Lifecycle:
            # what takes updates is a stream, and which block they change may be chosen
            permit = account.launch(PriceOnBlocks(price, on))
            return Lifecycle(permit, static=True, name="blocks")

        return self.launch(measurement, charge, token)

    def _named_in(self, query: Query) -> tuple[Any, Any, Sealed]:
        blocks, measurement = _pair(query)
        return measurement, *self._chosen(blocks)

    def _open(self, odometer: Odometer) -> Any:
        """Open a limit on all blocks, or return the one that was opened under its label."""
        if type(odometer) is not ConcurrentOdometer or not vars(odometer) or not odometer.limit:
            raise InvalidTypeError(
                "the query is an odometer without blocks; name its blocks, root(blocks, odometer), "
                "or bound it, root(oc.c.make_limited(odometer, d_in, d_out, label=...))"
            )
        check_space(self.whole.space, self.measure, odometer)
        self.account.lifecycle.check_not_running()
        self.account.lifecycle.check()
        handle = self.open_once(odometer, partial(self.whole.open_limit, self, odometer))
        return self._postprocess(handle)

    def below(
        self, account: Account, path: tuple[str, ...], postprocessors: tuple[Any, ...]
    ) -> BlockSession:
        """Return the session of a limit, whose account is below this one.

        :param path: labels of the limits from the outermost one to this one
        """
        session = copy(self)
        session.account, session.path, session._limits, session.shared = account, path, {}, {}
        session._postprocessors, session._children = postprocessors, count(1)
        return session

    def on(self, blocks: Iterable[Key]) -> Session:
        """Return the session of launches on some blocks, each of which is charged to all of them.

        :raises InvalidTypeError, InvalidValueError: if one of them is not a block
        """
        return self._selection(*self._chosen(blocks))

    def _chosen(self, blocks: Iterable[Key]) -> tuple[Any, Sealed]:
        """Return what names some blocks in a charge, and the records of these blocks."""
        places = self.records.keys.places(blocks)
        token = self.records.of(places)
        return tuple(self.records.keys.at(places)) if self._by_key else places, token

    def _selection(self, on: Any, token: Sealed) -> Session:
        selection = Selection(self.account, on, self.reason)
        child = SelectionSession(
            selection,
            self._space,
            self._space[1],
            self.measure,
            token,
            self.runner,
            self._postprocessors,
        )
        child._prices, child._children = self._prices, self._children
        child.lock, child.native = self.lock, self.native
        return child

    @property
    def d_in(self) -> Any:
        """The distance at which losses are counted: one step."""
        return 1

    def block(self, block: Key) -> Accumulator:
        """Return the accumulator of a block."""
        (key,) = self.records.keys.at(np.array([self.records.keys.place(block)]))
        found: Accumulator = self.account.privacy_loss(self.d_in).of(key)
        return found


def _pair(query: Query) -> tuple[Any, Any]:
    parts = list(query) if isinstance(query, tuple) else []
    if len(parts) != 2:
        raise InvalidTypeError(
            f"the query must be blocks and a measurement, found {checks.shown(type(query))}; call "
            "for example root(['2026-W01'], measurement)"
        )
    return parts[0], parts[1]
