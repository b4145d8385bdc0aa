"""Composition of mechanisms whose privacy losses are fixed up front, queried concurrently."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from opendp.mod import Domain, Measure, Metric

from ..accounts.account import Bound
from ..accounts.rule import ContinuationRule, Shares
from ..arguments import checks
from ..errors import InvalidValueError
from ..exact.decimals import down
from ..measures import CompositionMeasure, composition_measure
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.root import spawn_composition
from ..queryables.session import validate_d_in
from ..sums.accumulator import Accumulator
from ..sums.orders_sum import grid_curve
from ..sums.planned import Planned
from ..types import Argument, Distance, Loss
from .constructor import constructor
from .guards import check_orders
from .interactive_measurement import constant_map, make_measurement

MOST_LAUNCHES = 10**5


@constructor
def make_concurrent_composition(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    d_mids: Sequence[Loss],
    *,
    orders: Sequence[float] | None = None,
    order: str = "given",
    delta: float | None = None,
    opaque_errors: bool = False,
) -> ConcurrentMeasurement:
    """Compose mechanisms, interactive or not, whose privacy losses are fixed up front.

    The arguments are those of :func:`~opendp.combinators.make_adaptive_composition`. The returned
    measurement spawns a queryable that launches one mechanism for each of ``d_mids``, in order. A
    launch consumes its whole share, even if its loss is smaller. Children may be queried in any
    interleaving, except under approximate zCDP: there, each launch closes the older children.

    Guarantee: the sum of ``d_mids``, exact and then rounded up once, against any adaptive analyst.
    [VW21, Theorem 1.5] for pure DP; [LW22, Theorem 1] and [VZ23] for (ε, δ)-DP, under finite
    communication; [LW22, Theorem 2 and Corollary 1] for Rényi DP, zCDP and tCDP (with the least
    ω). For Gaussian DP the root of the sum of squares, for f-DP the tensor product [VZ23], under
    finite communication. For (ε, δ)-DP with ``delta``: the optimal ε at that δ [KOV15], [MV16],
    which holds for concurrent children by [LW22, Theorem 1].

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param d_mids: privacy loss of each launch, at most 10^5, in units of ``output_measure``:
        numbers, pairs (ε, δ) or (ρ, δ), Rényi curves, or :class:`.TruncatedConcentrated`. A
        ``Decimal``, a ``Fraction`` or a text such as ``"0.1"`` is rounded down to a double
    :param orders: for Rényi curves only, the orders at which they are compared and summed
    :param order: ``"given"``; or ``"any"``, for f-DP only: a launch takes the cheapest unused
        d_mids that it finds whose product covers its loss
    :param delta: for (ε, δ)-DP: the δ of the optimal composition; the plain sum if left out
    :param opaque_errors: hide errors of mechanisms from the analyst: each raises the same
        :class:`.MechanismError`, and the logger ``opendp_concurrent.measurements`` logs the
        original error
    :return: a measurement that spawns a :class:`.ConcurrentCompositionQueryable`
    :raises UnsupportedMeasureError: if no composition rule is known for ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> compositor = oc.make_concurrent_composition(
    ...     *space, dp.max_divergence(), d_in=1, d_mids=[0.5, 0.25]
    ... )
    >>> compositor.map(1)
    0.75
    >>> root = compositor([1, 2, 3])
    >>> release = root(space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0))
    >>> root.remaining()
    (0.25,)
    """
    measure = composition_measure(output_measure)
    d_in = validate_d_in(input_metric, d_in)
    shares, accounting = _shares(measure, d_mids, orders)
    start = whole = accounting.start(measure)
    for share in shares:
        whole = whole.after(share)
    d_out = whole.loss if delta is None else measure.optimal(shares, delta)
    rule: ContinuationRule = Shares(measure.at_most)
    plan: Accumulator = Planned(shares, 0, start)
    if checks.one_of("given", "any")(order=order) == "any":
        rule, plan = measure.in_any_order(shares)
    bound = Bound(d_in, rule, plan, measure=measure.name, accumulator=repr(accounting))
    space = input_domain, input_metric
    return make_measurement(
        space,
        measure.opendp(),
        lambda token: spawn_composition(space, measure, token, bound, opaque_errors),
        constant_map(input_metric, d_in, d_out),
        f"ConcurrentComposition({measure.name}, d_in={d_in}, {len(shares)} d_mids)",
        composes=True,
    )


def _shares(
    measure: CompositionMeasure, d_mids: Argument, orders: Argument
) -> tuple[tuple[Loss, ...], Loss]:
    listed = d_mids.tolist() if type(d_mids) is np.ndarray else d_mids  # as OpenDP's Sequential has
    given = [down(one) for one in checks.elements("losses", d_mids=listed)]
    if not given:
        raise InvalidValueError("d_mids must have at least one element; pass one per launch")
    if not len(given) <= MOST_LAUNCHES:
        raise InvalidValueError(
            f"d_mids must have at most {MOST_LAUNCHES:,} elements, found {len(given)}: all "
            "are kept in memory; a filter takes any number of launches"
        )
    shares = tuple(measure.validate(f"d_mids[{index}]", share) for index, share in enumerate(given))
    if (on_orders := check_orders(measure, orders)) is None:
        return shares, measure.fixed_sum()
    return tuple(grid_curve(on_orders.orders, share, "d_mids") for share in shares), on_orders


then_concurrent_composition = _native.to_then(make_concurrent_composition)
