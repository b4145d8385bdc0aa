"""Composition of mechanisms whose privacy losses are fixed up front, queried concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from opendp.mod import Domain, Measure, Measurement, Metric, OpenDPException

from .. import _checks as checks
from .. import _opendp as _native
from .. import errors, measures, numerics, queryables
from ..accounting import Bound, ContinuationRule, Shares
from .guards import check_inside, check_measurement_on, check_orders, constructor
from .interactive import Ask, as_answering, constant_map, make_measurement, wrap_queries

MOST_LAUNCHES = 10**5


@constructor
def make_concurrent_composition(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: errors.Distance,
    d_mids: Sequence[errors.Loss],
    *,
    orders: Sequence[float] | None = None,
    order: str = "given",
    delta: float | None = None,
    opaque_errors: bool = False,
) -> queryables.MeasurementOf[queryables.ConcurrentCompositionQueryable]:
    """Compose mechanisms, interactive or not, whose privacy losses are fixed up front.

    The arguments are those of :func:`~opendp.combinators.make_adaptive_composition`. The returned
    measurement spawns a queryable that launches one mechanism for each of ``d_mids``, in order. A
    launch consumes its whole share, even if its loss is smaller. Children may be queried in any
    interleaving. Under approximate zCDP, a child that is approximate only as a whole is closed by
    the next launch or answer of any other.

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
    measure = measures.composition_measure(output_measure)
    d_in = queryables.validate_d_in(input_metric, d_in)
    shares, accounting = _shares(measure, d_mids, orders)
    start = whole = accounting.start(measure)
    for share in shares:
        whole = whole.after(share)
    d_out = whole.loss if delta is None else measure.optimal(shares, delta)
    rule: ContinuationRule[Any] = Shares(measure.at_most)
    plan: measures.AccumulatorState[Any] = measures.Planned(shares, 0, start)
    if checks.one_of("given", "any")(order=order) == "any":
        rule, plan = measure.in_any_order(shares)
    bound = Bound(d_in, rule, plan, measure=measure.name, accumulator=repr(accounting))
    space = input_domain, input_metric
    made = make_measurement(
        space,
        measure.opendp(),
        lambda token: queryables.spawn_composition(space, measure, token, bound, opaque_errors),
        constant_map(input_metric, d_in, d_out),
        f"ConcurrentComposition({measure.name}, d_in={d_in}, {len(shares)} d_mids)",
        composes=True,
        live=True,
        bounded=measure.assumes_finite,  # then each child is pure or bounded
    )
    return cast("queryables.MeasurementOf[queryables.ConcurrentCompositionQueryable]", made)


def _shares(
    measure: measures.CompositionMeasure[Any], d_mids: errors.Argument, orders: errors.Argument
) -> tuple[tuple[Any, ...], measures.Accumulator]:
    listed = d_mids.tolist() if type(d_mids) is np.ndarray else d_mids  # as OpenDP's Sequential has
    given = [numerics.down(one) for one in checks.elements("losses", d_mids=listed)]
    if not given:
        raise errors.InvalidValueError("d_mids must have at least one element; pass one per launch")
    if not len(given) <= MOST_LAUNCHES:
        raise errors.InvalidValueError(
            f"d_mids must have at most {MOST_LAUNCHES:,} elements, found {len(given)}: all "
            "are kept in memory; a filter takes any number of launches"
        )
    shares = tuple(measure.validate(f"d_mids[{index}]", share) for index, share in enumerate(given))
    if (on_orders := check_orders(measure, orders)) is None:
        return shares, measure.fixed_sum()
    return tuple(
        measures.grid_curve(on_orders.orders, share, "d_mids") for share in shares
    ), on_orders


then_concurrent_composition = _native.to_then(make_concurrent_composition)


# The papers' protocol: several interactive mechanisms as one, whose messages name a mechanism.


@constructor
def make_indexed_composition(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: errors.Distance,
    measurements: Sequence[Measurement],
    *,
    orders: Sequence[float] | None = None,
    delta: float | None = None,
) -> queryables.ConcurrentMeasurement:
    """Compose interactive mechanisms into one whose messages are pairs of an index and a query.

    This is Algorithm 1 of [HSTVVXZ23], ConComp. All mechanisms are launched at once, and the
    message ``(j, query)`` goes to the mechanism at index ``j``, from 0. On a stream each update
    reaches every mechanism, because all of them run on the same dataset; where each has updates of
    its own [HSV25, Algorithm 3], launch them on an odometer, filter or compositor, and send the
    update to mechanism j to its own handle.

    Guarantee: that of :func:`.make_concurrent_composition` with d_mids their losses at ``d_in``,
    and with ``delta``. On a stream, a mechanism with a δ, of Gaussian DP or f-DP needs a bound on
    its messages (:func:`.make_bounded_interactive`), as on any other composition.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data
    :param input_metric: metric of the data
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs
    :param measurements: interactive or not, on this space and measure
    :param orders: for Rényi curves only, as in :func:`.make_concurrent_composition`
    :param delta: for (ε, δ)-DP: the δ of the optimal composition; the plain sum if left out
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument, or if a message is not a pair
    :raises SpaceMismatchError: if a measurement is not on this space and measure
    :raises UnsupportedMeasureError: for two or more measurements under approximate zCDP, if one is
        approximate only as a whole, or on a stream
    :raises FiniteCommunicationError: when it is launched on a stream, nothing was charged: one of
        the measurements needs a bound on its messages

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> alarm = oc.m.make_above_threshold(*space, dp.max_divergence(), 1, scale=4.0, threshold=9)
    >>> both = oc.c.make_indexed_composition(*space, dp.max_divergence(), 1, [alarm, alarm])
    >>> both.map(1) == 2 * alarm.map(1)
    True
    >>> count = space >> dp.t.then_count()
    >>> queryable = both([1, 2, 3])
    >>> answers = queryable((0, count)), queryable((1, count)), queryable((0, count))
    """
    measure = measures.composition_measure(output_measure)
    d_in = queryables.validate_d_in(input_metric, d_in)
    parts = []
    for index, one in enumerate(checks.elements("measurements", measurements=measurements)):
        name = f"measurements[{index}]"
        part = check_measurement_on(name, one, input_domain, input_metric)
        if part.output_measure != output_measure:
            raise errors.SpaceMismatchError(
                f"{name}.output_measure", output_measure, part.output_measure
            )
        check_inside(name, part)
        parts.append(part)
    if not parts:
        raise errors.InvalidValueError("measurements must have at least one element")
    if len(parts) > 1 and queryables.is_stream(input_domain) and measure.exclusive_reason:
        raise errors.UnsupportedMeasureError(
            f"measurements must have only one element on a stream under {measure.name}, whose "
            "theorem is for static data"
        )
    try:
        d_mids = [queryables.read_map(one, d_in) for one in parts]
    except errors.PrivacyMapError:
        raise
    except OpenDPException as error:
        raise errors.PrivacyMapError(d_in, str(error).strip()) from error
    compositor = make_concurrent_composition(
        input_domain, input_metric, output_measure, d_in, d_mids, orders=orders, delta=delta
    )

    if len(parts) > 1 and any(
        queryables.MeasurementPrice(one, measure).excludes(d_in) for one in parts
    ):
        raise errors.UnsupportedMeasureError(
            f"{measure.name} composes one of these mechanisms at a time: {measure.reason}"
        )

    def make_machine(launch: Ask) -> Ask:
        children = [as_answering(launch(one)) for one in parts]

        def answer(message: errors.Query) -> errors.Answer:
            index, query = _pair(message, len(children))
            return children[index](query)

        return answer

    # all of its mechanisms are launched together with it
    made = wrap_queries(compositor, make_machine, "IndexedComposition", composes=False)
    made.inside = made.inside._replace(bounded=all(map(queryables.is_bounded, parts)))
    return made


def _pair(message: errors.Query, count: int) -> tuple[int, Any]:
    if not (isinstance(message, tuple) and len(message) == 2 and type(message[0]) is int):
        raise errors.InvalidTypeError(
            f"the message must be a pair (index, query), found {type(message).__name__}"
        )
    index, query = message
    if not 0 <= index < count:
        raise errors.InvalidValueError(
            f"the index ({checks.shown(index)}) must be from 0 to {count - 1}"
        )
    return index, query


then_indexed_composition = _native.to_then(make_indexed_composition)
