"""Composition of mechanisms whose privacy losses are chosen on the way, without a limit."""

from __future__ import annotations

from opendp.mod import Domain, Measure, Metric, assert_features

from .. import _native
from ..accumulators.accumulator import Accounting
from ..measures import composition_measure
from ..queryables.mechanism import ConcurrentOdometer
from ..queryables.spawn import spawn_odometer
from .accounting import accounting_for
from .space import check_space


def make_concurrent_odometer(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    *,
    accumulator: Accounting | None = None,
) -> ConcurrentOdometer:
    """Compose mechanisms, interactive or not, whose privacy losses are chosen on the way.

    Takes the arguments of :func:`~opendp.combinators.make_fully_adaptive_composition`. The returned
    odometer spawns a queryable that launches any measurement on the same space and measure, and
    says at any time how much privacy loss that amounts to. Children may be queried in any
    interleaving, except under approximate zCDP, where a launch closes the older ones. A launch is
    charged before it runs, and the charge stands whatever happens then.

    Guarantee: for every d_out fixed in advance, the interaction up to the last answer at which the
    loss was at most d_out is d_out-DP, against any adaptive analyst: [HSTVVXZ23, Theorems 1.20,
    4.6 and Lemma 2.19]; finite communication for (ε, δ)-DP. To stop at a bound, use
    :func:`make_concurrent_filter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param accumulator: how losses add up, part of the odometer's identity: ``oc.basic()`` if left
        out; for (ε, δ)-DP also ``oc.advanced``, ``oc.zcdp``, ``oc.renyi``, ``oc.either`` or
        ``oc.best_rule``; ``oc.from_rule`` where the distance is one number
    :return: an odometer that spawns a :class:`ConcurrentOdometerQueryable`
    :raises UnsupportedMeasureError: if no composition rule is known for ``output_measure``, or
        ``accumulator`` is for another one
    :raises InvalidTypeError: naming the argument

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2, 3])
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> releases = [root(count), root(count)]
    >>> root.privacy_loss(1)
    1.0
    """
    assert_features("contrib", "honest-but-curious")
    check_space(input_domain, input_metric)
    measure = composition_measure(output_measure)
    accounting = accounting_for(measure, accumulator)
    return ConcurrentOdometer((input_domain, input_metric), measure, accounting, spawn_odometer)


then_concurrent_odometer = _native.to_then(make_concurrent_odometer)
