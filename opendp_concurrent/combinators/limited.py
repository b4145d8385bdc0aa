"""A limit: an odometer with a bound of its own, below an account that is charged as well."""

from __future__ import annotations

from collections.abc import Sequence

from ..accounts.lifecycle import label_text
from ..accounts.store import Limit
from ..errors import InvalidValueError
from ..queryables.mechanism import ConcurrentOdometer, replace
from ..queryables.root import spawn_limited
from ..types import Distance, Loss
from .accounting import bounded
from .constructor import constructor
from .guards import check_unbounded


@constructor
def make_limited(
    odometer: ConcurrentOdometer,
    d_in: Distance,
    d_out: Loss,
    *,
    label: str,
    orders: Sequence[float] | None = None,
) -> ConcurrentOdometer:
    """Bound the privacy loss of what one analyst, team or project launches below a filter.

    Launch what is returned on the handle of a filter, odometer or compositor: ``alice =
    root(oc.c.make_limited(...))``. This opens the limit and costs nothing. A launch on ``alice`` is
    charged to the limit and to each of its ancestors, before it runs. If one of them refuses, none
    is charged, and the refusal names the one that refused. Limits may nest, such as a person's in a
    team's, and their bounds may add up to more than what they share.

    A label names one limit below a handle. Opening it again returns the same handle. On a handle
    with a ledger, a launch is charged to all accounts in one transaction, and a limit that a later
    process opens under the same labels continues with what was spent.

    On a block filter, a limit bounds each block, and is a :class:`.BlockFilterQueryable`: ``alice``
    is opened without blocks, and ``alice(blocks, measurement)`` is charged to these blocks in the
    limit and in each ancestor. The guarantee is that of :func:`.make_block_filter`. ``d_in`` is
    then in units of the metric of the whole data, as it is there.

    Guarantee: everything that mechanisms launched below the limit answer is ``d_out``-DP under the
    odometer's measure, for inputs at distance ``d_in``, as if the limit were a filter and nothing
    else were answered (:func:`.make_concurrent_filter`). What several analysts learn together is
    bounded by the ancestor of their limits only, not by a limit. The guarantee of a limit ends
    where answers to other analysts shape the data that arrive, or choose the launches
    [TCCCG25]. Every ancestor's guarantee is unchanged: each launch is charged there too.

    Required features: `contrib`, `honest-but-curious`

    :param odometer: made by :func:`.make_concurrent_odometer`, possibly chained; its accumulator
        adds up what is launched below the limit, and may differ from that of the ancestors
    :param d_in: distance between neighbouring inputs, in units of the odometer's input metric,
        which is the metric of the queries of the handle that it is launched on
    :param d_out: bound on the privacy loss, finite, in units of its measure
    :param label: names the limit; plain text that does not depend on data, not empty
    :param orders: for Rényi curves only: the orders at which ``d_out`` is enforced
    :return: an odometer that is launched on a handle, and gives a
        :class:`.ConcurrentFilterQueryable`; on a block filter, a :class:`.BlockFilterQueryable`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> alice, bob, carol = (
    ...     root(oc.c.make_limited(odometer, d_in=1, d_out=0.5, label=name))
    ...     for name in ("alice", "bob", "carol")
    ... )
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> release = alice(count)
    >>> alice(count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: limit 'alice' of the filter refuses: spent 0.5 ...
    >>> release = bob(count)
    >>> carol(count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: the filter refuses: spent 1 of 1, asked 0.5, ...
    >>> carol.remaining(), root.remaining()
    (0.5, 0.0)
    """
    odometer = check_unbounded(odometer, "what the limit is launched on")
    label = label_text(label=label)
    if not label:
        raise InvalidValueError("label must not be empty; pass the name of an analyst or a team")
    limit = Limit(label, bounded(odometer, d_in, d_out, orders))
    return replace(odometer, spawn=spawn_limited, limit=limit)
