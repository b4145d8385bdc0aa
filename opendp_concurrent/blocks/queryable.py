"""The handle of a block filter."""

from __future__ import annotations

from collections.abc import Iterable

from opendp.mod import Measurement, Queryable

from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.data import check_process
from ..queryables.description import Description
from ..queryables.session import Handle
from ..types import Answer, Data, Key, Loss
from .session import BlockSession


class BlockFilterQueryable(Handle, Queryable):
    """Handle of a block filter. A launch names its blocks, each of which has its own budget.

    A limit (:func:`.make_limited`) is opened without blocks: ``alice = root(limit)`` is such a
    handle, too. Its launches are charged to their blocks in the limit and in the block filter.
    """

    query_type = "ExtrinsicObject"

    def __init__(self, session: BlockSession, description: str, d_out: Loss) -> None:
        super().__init__(session, session.launch_on_blocks)
        self._blocks, self._description, self._d_out = session, description, d_out

    def __call__(self, blocks: Iterable[Key], measurement: Measurement | None = None) -> Answer:
        """Launch a measurement, interactive or not, on the records of some blocks; or open a limit.

        The launch is charged to every named block, or to none. A block that is named twice is
        charged once.

        :param blocks: a collection of keys, or a ``range`` or array of integers; or, if
            ``measurement`` is left out, a pair of these and the measurement, or a limit
        :param measurement: on the space of the parts, under the filter's measure; or an odometer
            of this package, whose launches are then charged to the blocks
        :return: its answer, or a child
        :raises BlockExceededError: a block refuses; nothing was charged
        :raises InvalidTypeError, InvalidValueError: naming the argument; for a key that is not a
            block; for a limit with blocks. If the function of a user's measurement returns a child
            that takes updates, this is known only after the function has run, so the launch stays
            charged
        :raises LimitMismatchError: the limit was opened with other terms
        """
        return super().__call__(blocks if measurement is None else (blocks, measurement))

    def invoke(self, blocks: Iterable[Key], measurement: Measurement | None = None) -> Answer:
        """Launch; the same as calling the handle."""
        return self(blocks, measurement)

    def admits(self, blocks: Iterable[Key], measurement: Measurement) -> bool:
        """Return whether a launch would be admitted now; charges nothing.

        :param blocks: as in a launch
        :param measurement: as in a launch
        """
        check_process(self._blocks.token)
        session = self._blocks.on(blocks)
        return _native.call_native(session.refusal, measurement) is None

    def describe(self, blocks: Iterable[Key], measurement: Measurement) -> Description:
        """Describe a launch before it happens: its answer, its loss, whether it is admitted.

        The mechanism does not run, and nothing is charged. The privacy map is read. Another thread
        or process may launch in between, so ``admitted`` may be outdated when it arrives. A map
        that was written in Python may return another loss at the launch, which then counts.

        :param blocks: as in a launch
        :param measurement: as in a launch; an odometer costs nothing until something is launched on
            it
        :return: its ``loss`` is what each named block is charged, at distance 1
        :raises InvalidTypeError, InvalidValueError, SpaceMismatchError: naming the argument
        :raises PrivacyMapError: the measurement's privacy map cannot be used

        :example:

        >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
        >>> weeks = oc.c.by_key(lambda record: record // 100)
        >>> made = oc.c.make_block_filter(odometer, d_in=1, d_out=1.0, blocks=weeks, keys=[1, 2, 3])
        >>> root = made([101, 102, 201])
        >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=0.5)
        >>> found = root.describe([1, 2], count)
        >>> found.mechanism, found.interactive, found.loss, found.admitted
        ('count >> laplace(scale=0.5)', False, 2.0, False)
        >>> found.refusal.block
        1
        """
        check_process(self._blocks.token)
        session = self._blocks.on(blocks)
        found: Description = _native.call_native(session.describe, measurement, self._blocks.d_in)
        return found

    def privacy_loss(self, block: Key) -> Loss:
        """Return the privacy loss of the launches on a block so far; changes nothing.

        :param block: its key
        """
        return self._blocks.block(block).loss

    def remaining(self, block: Key) -> Loss:
        """Return the largest privacy loss that one more launch on a block may have.

        :param block: its key
        """
        return self._blocks.block(block).remaining(self._d_out)

    def add_blocks(self, keys: Iterable[Key], data: Data = None) -> None:
        """Add blocks with a full budget. For the owner of the data.

        The keys must be new and public: that a block exists must not depend on the records. No
        records are added to a block later. If there is a ledger, budgets continue from it. The
        ``d_in`` of the filter counts the records of a unit in all data that are ever added.

        :param keys: a collection of keys, or a ``range``
        :param data: the records of the new blocks, a member of the filter's input domain; records
            with other keys are in no block. If left out, the data that the filter was invoked on
            have the records
        :raises InvalidTypeError, InvalidValueError: naming the argument; nothing is added. For a
            table whose truncation bounds the blocks of a unit at one moment only (make the unit
            ``("person", "week")``); for data that are added behind a transformation; for files of a
            LazyFrame, which are read once
        :raises ReentrantLaunchError: in a mechanism below the filter, which has seen the records
        """
        check_process(self._blocks.token)
        self._blocks.account.lifecycle.check_not_running()
        if self._blocks.path:
            raise InvalidTypeError(
                "keys must be added on the handle of the block filter: this is the handle of a "
                "limit, which has the same blocks"
            )
        self._blocks.records.add(keys, data)

    def __len__(self) -> int:
        return len(self._blocks.records.keys)

    def __contains__(self, block: Key) -> bool:
        return block in self._blocks.records.keys

    __iter__ = None  # blocks may be many

    def __repr__(self) -> str:
        return (
            f"BlockFilterQueryable({self._description}, {len(self)} blocks, {self._launches()}, "
            f"{self._session.account.lifecycle.state.value})"
        )
