"""Measurements with handles: how they are made, chained to transformations, and wrapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from .. import _opendp as _native
from .. import errors, queryables
from .._checks import Unrecorded, recorded
from .._opendp import dp
from ..accounting import Lifecycle, innermost_running, same_distance
from ..data import kind_of
from .guards import check_inside, check_measurement, check_odometer, constructor


def check_no_stream(transformation: dp.Transformation) -> None:
    """Raise if the transformation returns a stream: OpenDP's would not see later items."""
    if queryables.is_stream(transformation.output_domain):
        raise errors.InvalidTypeError(
            f"transformation returns a stream ({transformation.output_domain}), and would "
            "run only once, on the empty stream, before any item arrives; use "
            "make_stream_map, make_stream_filter, make_stream_clamp or "
            "make_bounded_contributions"
        )


@constructor(features=("contrib",))
def make_chain_ot(
    odometer: queryables.ConcurrentOdometer, transformation: dp.Transformation
) -> queryables.ConcurrentOdometer:
    """Return ``transformation >> odometer``.

    Mechanisms run on the transformed data. ``privacy_loss(d_in)`` takes d_in in units of the
    transformation's input metric, and applies the stability map.

    Required features: `contrib`

    :param odometer: made by :func:`.make_concurrent_odometer`
    :param transformation: maps to the odometer's input domain and metric
    :return: an odometer on the transformation's input space
    :raises InvalidTypeError: naming the argument
    :raises SpaceMismatchError: if domains or metrics do not match

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> clamp = space >> dp.t.then_clamp((0, 10))
    >>> chained = clamp >> oc.then_concurrent_odometer(dp.max_divergence())
    >>> chained.input_domain
    VectorDomain(AtomDomain(T=i32))
    """
    inner = check_odometer(odometer)
    check_no_stream(transformation)
    if transformation.output_domain != inner.input_domain:
        raise errors.SpaceMismatchError(
            "input_domain", inner.input_domain, transformation.output_domain
        )
    if transformation.output_metric != inner.input_metric:
        raise errors.SpaceMismatchError(
            "input_metric", inner.input_metric, transformation.output_metric
        )
    _native.refuse(transformation, flows=True)  # an odometer may read no map before it runs
    head = (
        transformation if inner.transformation is None else transformation >> inner.transformation
    )
    return replace(inner, transformation=head)


# Builds a measurement that OpenDP accepts from a spawn function.


def make_measurement(
    input_space: tuple[dp.Domain, dp.Metric],
    output_measure: dp.Measure,
    spawn: queryables.Spawn,
    privacy_map: Callable[[Any], Any],
    summary: str,
    odometer: queryables.ConcurrentOdometer | None = None,
    *,
    around: dp.Measurement | None = None,
    takes_updates: bool = False,
    composes: bool | None = None,
    accuracy: queryables.Accuracy | None = None,
    releases: bool = False,
    free: bool | None = None,
    live: bool | None = None,
    bounded: bool = False,
) -> queryables.ConcurrentMeasurement:
    """Make a measurement that is invoked on sealed data.

    :param spawn: returns a handle, or a release
    :param privacy_map: may return a ``PrivacyProfile``, a new one at each call
    :param odometer: the odometer, if the measurement is a filter
    :param around: the wrapped measurement; the result has its properties unless others are given
    :param takes_updates: whether it is a continual mechanism
    :param composes: whether it launches mechanisms; as ``around`` if left out
    :param accuracy: the error of its answers; None if it is not known
    :param releases: whether ``spawn`` returns what ``around`` returns, or a release without it
    :param free: whether a launch excludes no other; if left out, as ``around``, and without it
        whether it composes or releases
    :param live: whether it may see rows that arrive between its queries; as ``around`` if left out
    :param bounded: whether it bounds the number of its messages; otherwise as ``around``
    """
    if odometer is not None:
        carrier_type, distance_type = odometer.carrier_type, odometer.distance_type
        kind = odometer.kind
    else:
        carrier_type = str(input_space[0].carrier_type)
        distance_type = str(input_space[1].distance_type)
        kind = kind_of(input_space[0])

    def checked_map(d_in: errors.Distance) -> Any:
        d_in = queryables.validate_d_in(input_space[1], d_in, distance_type)
        try:
            return privacy_map(d_in)
        except errors.ConcurrentError:
            raise
        except dp.OpenDPException as error:  # from a map inside
            raise errors.PrivacyMapError(d_in, str(error).strip()) from error

    def native_map(d_in: errors.Distance) -> Any:
        return _native.curve_of(checked_map(d_in))

    measurement: Any = _native.make_user_measurement(
        *input_space,
        output_measure,
        function=_native.carry(
            lambda data: spawn(queryables.seal(_native.to_pointer(data, carrier_type)))
        ),
        privacy_map=_native.carry(native_map),
        TO="ExtrinsicObject",
    )
    many = False
    if isinstance(around, queryables.ConcurrentMeasurement):
        other = around.inside
        takes_updates |= other.takes_updates
        live = other.live if live is None else live
        composes = other.composes if composes is None else composes
        many = queryables.may_feed_many(around)
    elif around is not None and queryables.is_stream(input_space[0]):
        takes_updates |= queryables.takes_stream(around)
    if free is None:
        free = bool(composes) or releases if around is None else queryables.is_free(around)
    what = queryables.Inside(
        spawn,
        checked_map,
        odometer,
        carrier_type,
        kind,
        takes_updates,
        bool(composes),
        many,
        accuracy,
        interactive=not releases
        if around is None or not releases
        else queryables.interactive(around),
        free=free,
        live=bool(live),
        bounded=bounded or (around is not None and queryables.is_bounded(around)),
    )
    measurement.__class__ = queryables.ConcurrentMeasurement
    measurement.__opendp_dict__ = Unrecorded()
    measurement.made_on, measurement.summary = (*input_space, output_measure), summary
    measurement.inside = what
    return cast(queryables.ConcurrentMeasurement, measurement)


def constant_map(
    input_metric: dp.Metric, bound_d_in: Any, d_out: errors.Loss, distance_type: str = ""
) -> Callable[[Any], Any]:
    """Return the privacy map that is ``d_out`` for every d_in up to ``bound_d_in``.

    Numbers of one type have an order. OpenDP's own metrics convert numbers to one type, and a
    user's metric does not. Any other distance must be the one that was bounded, compared as
    accounts compare distances.
    """
    distance_type = distance_type or str(input_metric.distance_type)
    converted = distance_type != "ExtrinsicObject"

    def privacy_map(d_in: errors.Distance) -> Any:
        d_in = queryables.validate_d_in(input_metric, d_in, distance_type)
        kinds = {type(d_in), type(bound_d_in)}
        numbers = kinds <= {int, float} and (converted or len(kinds) == 1)
        if (d_in <= bound_d_in) if numbers else same_distance(d_in, bound_d_in):
            return d_out
        raise errors.InvalidValueError(
            f"d_in ({d_in}) must be at most {bound_d_in}, the d_in that this was built for; "
            "build the measurement for a larger one"
        )

    return privacy_map


@recorded
def chain(
    measurement: queryables.ConcurrentMeasurement, transformation: dp.Transformation
) -> queryables.ConcurrentMeasurement:
    """Return ``transformation >> measurement``; OpenDP checks that domains and metrics match.

    The chain has the measurement's other properties, such as its plan.

    :raises InvalidTypeError: if the measurement is a filter with a ledger, or on a stream
    """
    what = measurement.inside
    spawn, privacy_map, odometer = what.spawn, what.privacy_map, what.odometer
    check_no_stream(transformation)
    if odometer is not None and odometer.record is not None:
        raise errors.InvalidTypeError(
            "a filter with a ledger cannot be chained: the d_in in its ledger would be "
            "measured on the transformed data; chain the odometer instead: "
            "make_concurrent_filter(transformation >> odometer, d_in, d_out, ledger=ledger)"
        )
    _native.make_chain_mt(measurement, transformation)  # OpenDP checks that they fit
    _native.refuse(transformation, flows=True)  # a root reads no map before it runs
    transform = partial(_native.transform, transformation)

    def spawn_chained(token: queryables.Sealed) -> Any:
        if token.live:
            return spawn(queryables.seal_transformed(token, transform))
        return spawn(queryables.seal(transform(queryables.unseal(token)), token))

    # not OpenDP's own chain: what is around it would read the stability map and refuse nothing
    chained = make_measurement(
        (transformation.input_domain, transformation.input_metric),
        measurement.output_measure,
        spawn_chained,
        lambda d_in: privacy_map(_native.transformation_map(transformation, d_in)),
        f"{transformation} >> {measurement.summary}",
        None if odometer is None else make_chain_ot(odometer, transformation),
        around=measurement,
        accuracy=what.accuracy,
        releases=True,
    )
    chained.__dict__.update({**vars(measurement), **vars(chained)})
    chained.__class__ = type(measurement)
    return chained


# Wrap a measurement or an odometer so that it answers other queries; the privacy map is unchanged.
#
# Only queries are wrapped. Updates of a stream are data: the wrapped measurement is launched on the
# stream itself and receives the updates from there.

Ask = Callable[[errors.Query], errors.Answer]


def unchanged(answer: Ask) -> Ask:
    """Return the answer function unchanged: every message is passed on."""
    return answer


def wrap(
    measurement: dp.Measurement,
    make_machine: Callable[[Ask], Ask],
    name: str,
    *,
    queries: queryables.Queries = queryables.NONE,
    accuracy: queryables.Accuracy | None = None,
) -> queryables.ConcurrentMeasurement:
    """Return ``measurement`` with its queryable behind a machine; the privacy map is unchanged.

    The machine receives queries.

    :param make_machine: takes the measurement's answer function and returns another one
    :param queries: the named queries that the machine answers
    :param accuracy: the error of the machine's answers
    """
    if not isinstance(measurement, queryables.ConcurrentOdometer):
        check_inside("measurement", check_measurement("measurement", measurement))
    return wrap_queries(measurement, make_machine, name, queries=queries, accuracy=accuracy)


def wrap_queries(
    measurement: dp.Measurement,
    make_machine: Callable[[Ask], Ask],
    name: str,
    *,
    limit: int | None = None,
    composes: bool | None = None,
    queries: queryables.Queries | None = queryables.NONE,
    accuracy: queryables.Accuracy | None = None,
) -> queryables.ConcurrentMeasurement:
    """Wrap the queries of a measurement, or of an odometer, that was checked before.

    :param limit: the largest number of messages that are passed on in all
    :param composes: whether it launches mechanisms; as the measurement if left out
    :param queries: the named queries that the machine answers; None for those of the measurement,
        if messages are passed on unchanged
    :param accuracy: the error of the machine's answers; that of the measurement if messages are
        passed on unchanged
    """
    if isinstance(measurement, queryables.ConcurrentOdometer):
        wrapped: Any = _wrap_odometer(measurement, make_machine, name, limit)
        return wrapped  # type: ignore[no-any-return]
    if queries is None:
        accuracy = queryables.known_accuracy(measurement)
    fed, many = (
        queryables.is_stream(measurement.input_domain),
        queryables.may_feed_many(measurement),
    )
    carrier_type = measurement.input_domain.carrier_type

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        meter = None if limit is None else queryables.Meter(limit)
        outer = queryables.start_of(token) if fed else None
        inner = outer
        if fed and (outer is None or meter is not None):
            inner = queryables.Stream(many=many, meter=meter, upstream=outer)
            token = inner.token(carrier_type)
        answer = queryables.adopt(
            queryables.run(measurement, token), Lifecycle(innermost_running()), None
        )
        machine = make_machine(_metered(as_answering(answer), meter, deep=fed))
        named = _queries_of(answer) if queries is None else queries
        handle: queryables.MachineQueryable
        if inner is not None and outer is None:
            handle = queryables.answering(queryables.OwnStreamQueryable, named)(
                machine, name, inner
            )
        else:
            handle = queryables.answering(queryables.QueryOnlyQueryable, named)(machine, name)
            handle.stream = inner  # the stream's subscribers hold it weakly
        handle.passes_on = True
        return handle

    return make_measurement(
        measurement.input_space,
        measurement.output_measure,
        spawn,
        lambda d_in: queryables.read_map(measurement, d_in),
        f"{name}({measurement.output_measure})",
        around=measurement,
        takes_updates=fed,
        composes=composes,
        accuracy=accuracy,
        live=None if make_machine is unchanged else False,  # it may launch when it is made
        bounded=limit is not None,
    )


def _wrap_odometer(
    odometer: queryables.ConcurrentOdometer,
    make_machine: Callable[[Ask], Ask],
    name: str,
    limit: int | None,
) -> queryables.ConcurrentOdometer:
    inside = odometer.spawn

    def spawn(
        outer: queryables.ConcurrentOdometer, token: queryables.Sealed, parent: Any
    ) -> queryables.WrappedOdometerQueryable:
        handle = inside(outer, token, parent)  # with what the outer one was chained to since
        meter = None if limit is None else queryables.Meter(limit)
        machine = make_machine(_metered(handle, meter, deep=False))
        return queryables.WrappedOdometerQueryable(machine, name, handle)

    return replace(odometer, spawn=spawn, wrapped=True)


def _metered(answer: Ask, meter: queryables.Meter | None, *, deep: bool) -> Ask:
    """Return an answer function whose messages count.

    :param deep: whether messages to the handles that it returns count, too
    """
    if meter is None:
        return answer

    def counted(message: errors.Query) -> errors.Answer:
        meter.spend(1)
        found = answer(message)
        return with_handles(found, lambda ask: _metered(ask, meter, deep=True)) if deep else found

    return counted


def with_handles(answer: errors.Answer, wrapped: Callable[[Ask], Ask]) -> Any:
    """Return an answer with each handle in it wrapped, for queries only.

    :param wrapped: returns the function that answers in place of a handle
    """
    if isinstance(answer, (list, tuple)):
        parts = [with_handles(one, wrapped) for one in answer]
        return parts if isinstance(answer, list) else tuple(parts)
    if not isinstance(answer, (dp.Queryable, dp.OdometerQueryable)):
        return answer
    machine = wrapped(queryables.query_side(answer))
    if isinstance(answer, dp.OdometerQueryable):
        return queryables.WrappedOdometerQueryable(machine, "Subscriber", answer)
    handle = queryables.answering(queryables.QueryOnlyQueryable, queryables.queries_of(answer))(
        machine, "Subscriber"
    )
    handle.passes_on = True
    return handle


def _queries_of(answer: errors.Answer) -> queryables.Queries:
    """Return the named queries; a release has the query ``read``."""
    queryable = isinstance(answer, (dp.Queryable, dp.OdometerQueryable))
    return queryables.queries_of(answer) if queryable else queryables.READ


def as_answering(answer: errors.Answer) -> Ask:
    """Return a queryable as it is, or a function that returns the release at each query."""
    if isinstance(answer, (dp.Queryable, dp.OdometerQueryable)):
        return queryables.query_side(answer)
    return lambda _: answer


@constructor
def make_interactive(measurement: dp.Measurement) -> queryables.ConcurrentMeasurement:
    """Return a measurement as an interactive mechanism.

    A noninteractive measurement is released once, when it is launched. ``read()`` returns this
    release, and so does every message; its content is ignored. An interactive measurement answers
    as before.

    Guarantee: that of ``measurement``; reading a release again is postprocessing.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive or not
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError: if it is not a measurement; or if it is a composition on a stream

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> queryable = oc.c.make_interactive(count)([1, 2, 3])
    >>> queryable.read() == queryable("again")
    True
    """
    check_inside("measurement", measurement)
    return wrap_queries(measurement, unchanged, "Interactive", queries=None)
