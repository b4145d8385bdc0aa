"""A limit on a block filter: a block filter with budgets of its own, below another one.

A launch below the limit is charged to its blocks in the limit and in each ancestor. So the limit
has the guarantee of a block filter, on what was launched below it.
"""

from __future__ import annotations

from ..accounts.account import Account, Bound
from ..accounts.lifecycle import named
from ..accounts.store import Limit, Terms
from ..accounts.store import open_limit as open_limit_in_ledger
from ..combinators.accounting import check_budget
from ..errors import InvalidTypeError
from ..queryables.mechanism import ConcurrentOdometer
from ..shown import shown
from .launches import WithinBlocks
from .queryable import BlockFilterQueryable
from .recorded import OnEachBlock
from .session import BlockSession
from .totals import Totals


def check_no_transformation(odometer: ConcurrentOdometer) -> None:
    """Raise if the odometer has a transformation."""
    if odometer.transformation is not None:
        raise InvalidTypeError(
            "odometer must have no transformation: blocks are cut from the data as they are; "
            "transform in what is launched, transformation >> measurement"
        )


def open_limit(
    parent: BlockSession, odometer: ConcurrentOdometer, limit: Limit
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
            sequential_reason=parent.reason,
            opaque=odometer.opaque,
        )
    session = parent.below(account, path, odometer.postprocessors)
    what = f"{measure.name}, limit {shown(limit.label)}"
    return BlockFilterQueryable(session, what, share)
