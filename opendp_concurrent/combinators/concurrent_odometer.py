"""An odometer: composition of mechanisms with adaptively chosen privacy losses, without a bound."""

from __future__ import annotations

from opendp.mod import Domain, Measure, Metric

from ..accounts.price import own_distance
from ..accounts.store import Ledger
from ..errors import InvalidTypeError
from ..measures import composition_measure
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentOdometer
from ..queryables.root import check_ledger, spawn_odometer
from ..sums.accumulator import Accounting
from ..types import Distance
from .accounting import accounting_for
from .constructor import constructor


@constructor
def make_concurrent_odometer(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    *,
    accumulator: Accounting | None = None,
    ledger: Ledger | None = None,
    d_in: Distance = None,
    opaque_errors: bool = False,
) -> ConcurrentOdometer:
    """Compose mechanisms, interactive or not, whose privacy losses are chosen adaptively.

    The arguments are those of :func:`~opendp.combinators.make_fully_adaptive_composition`. The
    returned odometer spawns a queryable that launches any measurement on the same space and
    measure, and returns the privacy loss so far at any time. Children may be queried in any
    interleaving, except under approximate zCDP: there, each launch closes the older children. A
    launch is charged before it runs and is never refunded, even if the mechanism raises.

    Guarantee: for every d_out fixed in advance, the interaction up to the last answer at which the
    loss was at most d_out is d_out-DP, against any adaptive analyst: [HSTVVXZ23, Theorems 1.20,
    1.21, 4.6 and Lemma 2.19]; finite communication for (ε, δ)-DP, Gaussian DP and f-DP. To stop at
    a bound, use :func:`.make_concurrent_filter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param accumulator: how losses add up, part of the odometer's identity, from
        ``oc.accumulators``: ``basic()`` if left out; for (ε, δ)-DP also ``advanced``, ``zcdp``,
        ``renyi``, ``either`` or ``best_rule``; ``from_rule`` where the distance is one number
    :param ledger: made by ``opendp_concurrent.ledger``; stores every charge durably before its
        mechanism runs. All processes that have it open share the loss, and a later process
        continues from the stored charges. It is opened when the odometer is invoked on data
    :param d_in: with a ledger only: the distance between neighbouring inputs at which losses are
        recorded, in units of the input metric (of the first transformation, if chained)
    :param opaque_errors: hide errors of mechanisms from the analyst: each raises the same
        :class:`.MechanismError`, and the logger ``opendp_concurrent.measurements`` logs the
        original error
    :return: an odometer that spawns a :class:`.ConcurrentOdometerQueryable`
    :raises UnsupportedMeasureError: if no composition rule is known for ``output_measure``, or
        ``accumulator`` or ``ledger`` does not support it
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2, 3])
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> releases = [root(count), root(count)]
    >>> root.privacy_loss(1)
    1.0
    """
    measure = composition_measure(output_measure)
    accounting = accounting_for(measure, accumulator)
    if (ledger is None) != (d_in is None):
        raise InvalidTypeError(
            "ledger and d_in must be given together: a ledger records losses at one d_in; "
            "pass both or neither"
        )
    if ledger is not None:
        check_ledger(ledger, measure)
        if measure.needs_orders:
            raise InvalidTypeError(
                "ledger is not supported for an odometer under Rényi curves; pass it to "
                "make_concurrent_filter with orders, or build the odometer under "
                "oc.fixed_renyi_divergence"
            )
    record = None if ledger is None else (ledger, own_distance(d_in))
    return ConcurrentOdometer(
        (input_domain, input_metric),
        measure,
        accounting,
        spawn_odometer,
        record=record,
        opaque=opaque_errors,
    )


then_concurrent_odometer = _native.to_then(make_concurrent_odometer)
