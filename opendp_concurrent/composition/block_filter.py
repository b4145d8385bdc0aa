"""Block filters: what launches on blocks cost, the rule that admits them, session and handle.

A limit on a block filter has budgets of its own below it. A launch below the limit is charged to
its blocks in the limit and in each ancestor. So the limit has the guarantee of a block filter, on
what was launched below it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
from opendp.mod import Domain, Measurement, Metric, Odometer, Queryable

from .. import _checks as checks
from .. import _opendp as _native
from .. import data, errors, measures, queryables
from ..accounting import Account, Bound, Ledger, Lifecycle, Limit, Price, Terms, named
from ..accounting import open_limit as open_limit_in_ledger
from .block_keys import Keys, Places, keys_of
from .block_records import MOMENT, TRANSFORM_FIRST, BlockSteps, Records, check_keys, check_partition
from .block_totals import OnBlocks, OnEachBlock, OnKeys, Totals
from .guards import check_budget, check_orders, check_unbounded, constructor
from .interactive import make_measurement
from .parallel import check_no_updates


@dataclass(frozen=True, slots=True)
class WithinBlocks:
    """The rule of a block filter: each block that is named stays within its budget.

    A launch is admitted by all of its blocks, and then charged to each, or charged to none.

    :ivar d_out: the budget of each block
    """

    kind: ClassVar[str] = "filter"
    d_out: errors.Loss

    def admits(
        self, accumulator: Totals, d_mid: OnBlocks | OnKeys
    ) -> Totals | errors.BudgetExceededError:
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
        self.free = price.free
        self.settled = price.settled  # without the blocks: a history of blocks would be long

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        return self._price.mechanism

    def at(self, d_in: errors.Distance, key: errors.Key = None) -> OnBlocks | OnKeys:
        """Return the blocks and the d_mid."""
        known, cost = self._known
        if cost is not None and known is d_in:  # one number for all accounts, which is read once
            return cost
        new = self._cost(self._price.at(d_in, key))
        self._known = d_in, new
        return new

    def excludes(self, d_in: errors.Distance, key: errors.Key = None) -> bool:
        """Whether what is launched excludes all others, whatever blocks it names."""
        return self._price.excludes(d_in, key)

    def _cost(self, d_mid: errors.Loss) -> OnBlocks | OnKeys:
        if isinstance(self._on, tuple):
            return OnKeys(self._on, d_mid)
        return OnBlocks(self._on, d_mid)


class Selection(Account):
    """Some blocks, which pay for what is launched on them. It has no bound of its own.

    :param root: the account of the block filter
    """

    def __init__(
        self, root: Account, on: Places | tuple[Any, ...], exclusive_reason: str | None
    ) -> None:
        with named("blocks"):
            super().__init__(None, parent=root, exclusive_reason=exclusive_reason)
        self._on = on
        # what takes updates is a stream, and which block they change may be chosen by the analyst
        self.lifecycle = Lifecycle(root.lifecycle, static=True, name=self.lifecycle.path[-1])

    @property
    def initial(self) -> measures.AccumulatorState[Any]:
        """The accumulator of the block filter, in whose form d_mids are added."""
        return self._chain[-1].initial

    def _lift(self, price: Price) -> Price:
        return PriceOnBlocks(price, self._on)


# The session of a block filter, and that of a launch on some of its blocks.
#
# A launch on some blocks is a launch on a selection: a child account without a bound, on the
# records of the blocks, which lifts each price to a cost of the named blocks. So an odometer may be
# launched on blocks, too; its launches are charged to them.

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
    open_limit: Callable[[BlockSession, queryables.ConcurrentOdometer, Limit], Any]


class SelectionSession(queryables.RootSession):
    """The session of launches on some blocks."""

    _asked = "measurement"
    _static = STREAMS

    def _check_odometer(self, odometer: Odometer) -> None:
        super()._check_odometer(odometer)
        if getattr(odometer, "limit", None):
            raise errors.InvalidTypeError(f"measurement is a limit: {LIMITS}")


class BlockSession(queryables.Session):
    """The session of a block filter, whose queries are pairs of blocks and a measurement.

    :ivar records: the records of each block
    :ivar whole: what the blocks are cut from
    :ivar reason: why children may exclude all others; None if they do not
    """

    _asked, _static = "measurement", STREAMS

    def __init__(
        self,
        account: Account,
        space: tuple[Domain, Metric],
        measure: measures.CompositionMeasure[Any],
        token: queryables.Sealed,
        records: Records,
        whole: Whole,
        reason: str | None,
        postprocessors: tuple[Any, ...],
    ) -> None:
        super().__init__(account, space, space[1], measure, token, postprocessors)
        self.records, self.whole = records, whole
        self._space, self.reason = space, reason
        self._by_key = account.recorded  # places differ between processes

    @property
    def metric(self) -> Metric:
        """The metric of the records of some blocks."""
        return self._space[1]

    def launch_on_blocks(self, query: errors.Query) -> errors.Answer:
        """Launch a measurement on some blocks: charge each of them, or none. Or open a limit."""
        if isinstance(query, queryables.ConcurrentOdometer):
            return errors.uncharged(self._open, query)
        measurement, on, token = errors.uncharged(self._named_in, query)
        if isinstance(measurement, Odometer):
            return self._selection(on, token).launch(measurement)
        account = self.account

        def charge(price: Price) -> Lifecycle:
            # what takes updates is a stream, and which block they change may be chosen
            return account.launch(PriceOnBlocks(price, on)).for_static("blocks")

        return self.launch(measurement, charge, token)

    def _named_in(self, query: errors.Query) -> tuple[Any, Any, queryables.Sealed]:
        blocks, measurement = _pair(query)
        return measurement, *self._chosen(blocks)

    def _open(self, odometer: Odometer) -> Any:
        """Open a limit on all blocks, or return the one that was opened under its label."""
        if (
            type(odometer) is not queryables.ConcurrentOdometer
            or not vars(odometer)
            or not odometer.limit
        ):
            raise errors.InvalidTypeError(
                "the query is an odometer without blocks; name its blocks, root(blocks, odometer), "
                "or bound it, root(oc.c.make_limited(odometer, d_in, d_out, label=...))"
            )
        queryables.check_space(self.whole.space, self.measure, odometer)
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

    def on(self, blocks: Iterable[errors.Key]) -> queryables.Session:
        """Return the session of launches on some blocks, each of which is charged to all of them.

        :raises InvalidTypeError, InvalidValueError: if one of them is not a block
        """
        return self._selection(*self._chosen(blocks))

    def _chosen(self, blocks: Iterable[errors.Key]) -> tuple[Any, queryables.Sealed]:
        """Return what names some blocks in a charge, and the records of these blocks."""
        places = self.records.keys.places(blocks)
        token = self.records.of(places)
        return tuple(self.records.keys.at(places)) if self._by_key else places, token

    def _selection(self, on: Any, token: queryables.Sealed) -> queryables.Session:
        selection = Selection(self.account, on, self.reason)
        child = SelectionSession(
            selection,
            self._space,
            self._space[1],
            self.measure,
            token,
            self._postprocessors,
        )
        child._prices, child._children = self._prices, self._children
        child.lock, child.native = self.lock, self.native
        return child

    @property
    def d_in(self) -> Any:
        """The distance at which losses are counted: one step."""
        return 1

    def block(self, block: errors.Key) -> measures.AccumulatorState[Any]:
        """Return the accumulator of a block."""
        (key,) = self.records.keys.at(np.array([self.records.keys.place(block)]))
        found: measures.AccumulatorState[Any] = self.account.privacy_loss(self.d_in).of(key)
        return found


def _pair(query: errors.Query) -> tuple[Any, Any]:
    parts = list(query) if isinstance(query, tuple) else []
    if len(parts) != 2:
        raise errors.InvalidTypeError(
            f"the query must be blocks and a measurement, found {checks.shown(type(query))}; call "
            "for example root(['2026-W01'], measurement)"
        )
    return parts[0], parts[1]


# The handle of a block filter.


class BlockFilterQueryable(queryables.Handle, Queryable):
    """Handle of a block filter. A launch names its blocks, each of which has its own budget.

    A limit (:func:`.make_limited`) is opened without blocks: ``alice = root(limit)`` is such a
    handle, too. Its launches are charged to their blocks in the limit and in the block filter.
    """

    query_type = "ExtrinsicObject"

    def __init__(self, session: BlockSession, description: str, d_out: errors.Loss) -> None:
        super().__init__(session, session.launch_on_blocks)
        self._blocks, self._description, self._d_out = session, description, d_out

    def __call__(
        self, blocks: Iterable[errors.Key], measurement: Measurement | None = None
    ) -> errors.Answer:
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

    def invoke(
        self, blocks: Iterable[errors.Key], measurement: Measurement | None = None
    ) -> errors.Answer:
        """Launch; the same as calling the handle."""
        return self(blocks, measurement)

    def admits(self, blocks: Iterable[errors.Key], measurement: Measurement) -> bool:
        """Return whether a launch would be admitted now; charges nothing.

        :param blocks: as in a launch
        :param measurement: as in a launch
        """
        queryables.check_process(self._blocks.token)
        session = self._blocks.on(blocks)
        return _native.call_native(session.refusal, measurement) is None

    def describe(
        self, blocks: Iterable[errors.Key], measurement: Measurement
    ) -> queryables.Description:
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
        queryables.check_process(self._blocks.token)
        session = self._blocks.on(blocks)
        found: queryables.Description = _native.call_native(
            session.describe, measurement, self._blocks.d_in
        )
        return found

    def privacy_loss(self, block: errors.Key) -> Any:
        """Return the privacy loss of the launches on a block so far; changes nothing.

        :param block: its key
        """
        return self._blocks.block(block).loss

    def remaining(self, block: errors.Key) -> Any:
        """Return the largest privacy loss that one more launch on a block may have.

        :param block: its key
        """
        return self._blocks.block(block).remaining(self._d_out)

    def add_blocks(self, keys: Iterable[errors.Key], data: errors.Data = None) -> None:
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
        queryables.check_process(self._blocks.token)
        self._blocks.account.lifecycle.check_not_running()
        if self._blocks.path:
            raise errors.InvalidTypeError(
                "keys must be added on the handle of the block filter: this is the handle of a "
                "limit, which has the same blocks"
            )
        self._blocks.records.add(keys, data)

    def __len__(self) -> int:
        return len(self._blocks.records.keys)

    def __contains__(self, block: errors.Key) -> bool:
        return block in self._blocks.records.keys

    __iter__ = None  # blocks may be many

    def __repr__(self) -> str:
        return (
            f"BlockFilterQueryable({self._description}, {len(self)} blocks, {self._launches()}, "
            f"{self._session.account.lifecycle.state.value})"
        )


def check_no_transformation(odometer: queryables.ConcurrentOdometer) -> None:
    """Raise if the odometer has a transformation."""
    if odometer.transformation is not None:
        raise errors.InvalidTypeError(
            "odometer must have no transformation: blocks are cut from the data as they are; "
            "transform in what is launched, transformation >> measurement"
        )


def open_limit(
    parent: BlockSession, odometer: queryables.ConcurrentOdometer, limit: Limit
) -> BlockFilterQueryable:
    """Return the handle of a limit on all blocks.

    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: if it cannot be one
    """
    check_no_transformation(odometer)
    measure, accounting = odometer.measure, limit.terms.accumulator
    share = parent.whole.steps.share(limit.terms.d_in, limit.terms.d_out)
    check_budget(accounting, share)
    of_blocks = OnEachBlock(accounting, share)
    terms = Terms(measure.name, of_blocks, str(parent.metric), 1, share)
    path = (*parent.path, limit.label)
    store = open_limit_in_ledger(parent.account, path, terms)
    none = Totals(parent.records.keys, accounting.start(measure), share)
    start = none if store is None else store.read()
    bound = Bound(1, WithinBlocks(share), start, False, store, measure.name, repr(accounting))
    with named("limit", limit.label):
        account = Account(
            None,
            bound=bound,
            parent=parent.account,
            exclusive_reason=parent.reason,
            opaque=odometer.opaque,
        )
    session = parent.below(account, path, odometer.postprocessors)
    what = f"{measure.name}, limit {errors.shown(limit.label)}"
    return BlockFilterQueryable(session, what, share)


# The constructor of block filters, and its privacy map.


@constructor(blocks=data.partitioned)
def make_block_filter(
    odometer: queryables.ConcurrentOdometer,
    d_in: errors.Distance,
    d_out: errors.Loss,
    *,
    blocks: data.Partition,
    keys: Collection[Any] | None = None,
    orders: Sequence[float] | None = None,
    halt: bool = False,
    ledger: Ledger | None = None,
    opaque_errors: bool = False,
) -> queryables.ConcurrentMeasurement:
    """Give each block of the data its own budget.

    A block is the records with one public key, such as a week. The returned measurement spawns a
    queryable whose launches name blocks: ``root(["W01", "W02"], measurement)`` runs the
    measurement, interactive or not, on the records of these blocks. The launch is charged to each
    of them, or refused by one of them and charged to none, before it runs. So queries on other
    blocks cost a block nothing. Children may be queried in any interleaving. New blocks are added
    by ``add_blocks``.

    Guarantee: ``d_out`` for neighbours at distance ``d_in``, against any adaptive analyst. If
    neighbours differ in the records of one block, all launches that do not name it can be
    simulated, and those that name it compose below its filter [HSTVVXZ23, Theorems 1.20, 1.21, 4.6
    and Lemma 2.19]. Neighbours that are k records apart, in any blocks, are the ends of a path of k
    steps. So the budget of a block is the loss whose group of size k is within ``d_out``: ``d_out
    / k`` for pure DP and Gaussian DP, ``d_out / k²`` for zCDP [BS16, Proposition 27], (ε / k, δ /
    Σ e^(i ε / k)) for (ε, δ)-DP. k is ``d_in`` under symmetric and insert-delete distance, and 2
    ``d_in`` under change-one and Hamming distance, where ``d_in`` counts records of all data, also
    of those that are added later. Finite communication for (ε, δ)-DP, Gaussian DP and f-DP.

    In tables, ``d_in`` counts units. If the columns of the blocks are among those of the unit, such
    as ``("person", "week")``, a unit is in one block. Otherwise, a truncation bounds the blocks of
    a unit by g at one moment: the table is stored at the first launch, blocks cannot be added, and
    g filters compose, so the budget is also split in g.

    Required features: `contrib`, `honest-but-curious`

    :param odometer: made by :func:`.make_concurrent_odometer`, without a transformation
    :param d_in: distance between neighbouring inputs, an integer
    :param d_out: bound on the privacy loss, finite, in units of the odometer's measure
    :param blocks: made by :func:`.by_key`, :func:`.by_column`, :func:`.by_values` or
        :func:`.by_entry`; the functions' promises are those of a parallel composition
    :param keys: public keys of the first blocks; if left out, those of :func:`.by_values`, or none.
        A ``range`` is not listed, for millions of blocks. Keys that are equal, such as 1, 1.0 and
        True, name one block
    :param orders: for Rényi curves only: the orders at which ``d_out`` is enforced
    :param halt: close the whole interaction, children too, at the first message that is no admitted
        launch
    :param ledger: made by ``opendp_concurrent.ledger``; stores every charge, with the keys of its
        blocks, durably before its mechanism runs. Keys are then text, integers, or tuples of these.
        All processes that have the ledger open share the budgets, and a later process continues
        from the stored charges
    :param opaque_errors: hide errors of mechanisms from the analyst
    :return: a measurement that spawns a :class:`.BlockFilterQueryable`
    :raises UnsupportedMeasureError: if neighbours are several steps apart and no group privacy is
        known for the measure
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> weeks = oc.c.by_key(lambda record: record // 100)  # 203 is a record of week 2
    >>> root = oc.c.make_block_filter(odometer, d_in=1, d_out=1.0, blocks=weeks, keys=[1, 2, 3])(
    ...     [101, 102, 201, 203, 301]
    ... )
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> answers = [root([1, 2], count), root([2, 3], count)]
    >>> root.privacy_loss(1), root.privacy_loss(2)
    (0.5, 1.0)
    >>> root([2], count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BlockExceededError: block 2 of the filter refuses: spent 1 of 1, ...
    >>> root.add_blocks([4], [401, 402])
    >>> root.remaining(4)
    1.0
    """
    odometer = check_unbounded(odometer, "the block filter", opaque=opaque_errors)
    check_no_transformation(odometer)
    input_domain, input_metric = odometer.input_space
    check_no_updates(input_domain)
    metric, factor = blocks.metric_of_parts(input_metric, input_domain)
    kind = data.kind_of(input_domain)
    space = kind.domain_of_parts(input_domain), metric
    check_partition(blocks, input_domain)
    measure, accounting = odometer.measure, odometer.accumulator
    # a unit whose rows arrive over time is a path of blocks, since each may depend on answers
    static = not kind.bounds_over_time(input_domain, blocks.of)
    steps = BlockSteps(measure, factor, static)
    d_in = queryables.validate_d_in(input_metric, d_in)
    budget = measure.validate_budget("d_out", d_out)
    on_orders = check_orders(measure, orders)
    if on_orders is not None:
        accounting, budget = on_orders, measures.grid_curve(on_orders.orders, budget, "d_out")
    share = steps.share(d_in, budget)
    check_budget(accounting, share)
    rule = WithinBlocks(share)
    first = _first(blocks, keys)
    Keys().add(first)  # raises if they are not keys
    check_keys(blocks, input_domain, first)
    book, start = None, None
    if ledger is not None:
        queryables.check_ledger(ledger, measure, halt=halt)
        if static:
            raise errors.InvalidTypeError(
                f"ledger cannot keep the budgets of these blocks, as the table may change before "
                f"it is opened again: {MOMENT}"
            )
        terms = Terms(measure.name, OnEachBlock(accounting, share), str(metric), 1, share)
        book, start = queryables.open_book(ledger, terms)
    reason = measure.exclusive_reason

    def spawn(token: queryables.Sealed) -> BlockFilterQueryable:
        own = Keys()
        own.add(first)
        totals: Any = start or Totals(own, accounting.start(measure), share)
        bound = Bound(1, rule, totals, halt, book, measure.name, repr(accounting))
        queryables.unseal(token)
        if book is not None and not kind.in_engine and not token.given:
            raise errors.InvalidTypeError(
                "ledger cannot keep the budgets of blocks of data that come from a transformation, "
                "whose bounds hold for each of its outputs, not for those of all processes "
                f"together; {TRANSFORM_FIRST}"
            )
        account = Account(None, bound=bound, exclusive_reason=reason, opaque=odometer.opaque)
        session = BlockSession(
            account,
            space,
            measure,
            token,
            Records(own, blocks, input_domain, token),
            Whole(odometer.input_space, steps, open_limit),
            reason,
            odometer.postprocessors,
        )
        return BlockFilterQueryable(session, measure.name, share)

    def privacy_map(d: Any) -> Any:
        return budget if d == d_in else steps.loss(d, share)

    return make_measurement(
        odometer.input_space,
        measure.opendp(),
        spawn,
        privacy_map,
        f"BlockFilter({measure.name}, {accounting}, {blocks}, d_in={d_in}, d_out={budget})",
        composes=True,
    )


def _first(blocks: data.Partition, keys: Collection[Any] | None) -> Any:
    """Return the first keys, read once."""
    if keys is None:
        return blocks.keys() or ()
    return keys if type(keys) is range else keys_of(keys)
