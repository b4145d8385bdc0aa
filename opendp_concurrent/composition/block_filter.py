"""The constructor of block filters; and a limit on one, which has budgets of its own below it.

A launch below the limit is charged to its blocks in the limit and in each ancestor. So the limit
has the guarantee of a block filter, on what was launched below it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .. import data, errors, measures, queryables
from ..accounting import Account, Bound, Ledger, Limit, Terms, named
from ..accounting import open_limit as open_limit_in_ledger
from .block_keys import Keys, keys_of
from .block_records import MOMENT, TRANSFORM_FIRST, BlockSteps, Records, check_keys, check_partition
from .block_session import BlockFilterQueryable, BlockSession, Whole, WithinBlocks
from .block_totals import OnEachBlock, Totals
from .guards import check_budget, check_orders, check_unbounded, constructor
from .interactive import make_measurement
from .parallel import check_no_updates


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
