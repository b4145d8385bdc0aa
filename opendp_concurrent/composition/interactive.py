"""Measurements with handles: how they are made, chained, wrapped and postprocessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, TypeVar, cast

from .. import _checks as checks
from .. import _opendp as _native
from .. import errors, queryables
from .._opendp import dp
from ..accounting import Lifecycle, innermost_running, same_distance
from ..data import kind_of
from . import guards
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
    measurement.__opendp_dict__ = checks.Unrecorded()
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


@checks.recorded
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


# Postprocessing: of each answer, or by a state machine between an analyst and a mechanism.


class Tag(Enum):
    """The kind of a message: a query to the mechanism, or an answer to the analyst.

    :example:

    A postprocessor that passes on every message:

    >>> def identity(state, tag, message):
    ...     return state, tag, message
    >>> identity(None, oc.c.QUERY, "how many?")
    (None, QUERY, 'how many?')
    """

    QUERY = "query"
    ANSWER = "answer"

    def __repr__(self) -> str:
        return self.name


QUERY, ANSWER = Tag.QUERY, Tag.ANSWER

Wrapped = TypeVar("Wrapped", dp.Measurement, queryables.ConcurrentOdometer)
Postprocessor = Callable[[Any, Tag, Any], tuple[Any, Tag, Any]]


@constructor(measurement=guards.interactive, postprocessor=checks.function, max_asks=checks.count)
def make_interactive_postprocessing(
    measurement: Wrapped,
    postprocessor: Postprocessor,
    *,
    initial_state: Any = None,
    max_asks: int = 1000,
) -> Wrapped:
    """Put a postprocessor between the analyst and an interactive measurement, or an odometer.

    ``postprocessor(state, tag, message)`` returns the next state, a tag and a message. It is called
    with each of the analyst's messages, tagged ``QUERY``. When it returns ``QUERY``, its message
    goes to the measurement, and it is called again with the reply, tagged ``ANSWER``. When it
    returns ``ANSWER``, its message is the answer to the analyst. It may therefore query the
    measurement several times, or not at all. This is Algorithm 7 of [HSTVVXZ23], the person in the
    middle, in the corrected form: the postprocessor sees the query first.

    The postprocessor may use other handles, as whoever queries it may.

    If the postprocessor raises or exceeds ``max_asks``, its state returns to the state before the
    analyst's message. The measurement may have answered already, and it stays open.

    On a stream the postprocessor gets queries and answers. It neither gets nor sends updates:
    these are data and go directly to the mechanism.

    For an odometer, the postprocessor's queries are launches. ``privacy_loss`` of the handle is the
    loss of all of them, whatever the analyst was answered. Launched as a child, it charges them to
    its ancestors.

    Guarantee: that of ``measurement`` [HSTVVXZ23, Theorem 2.17], under every measure. The
    postprocessor must know the data only through the measurement; it may be randomized.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive, or noninteractive and wrapped by :func:`.make_interactive`; or
        an odometer, whose data are no stream
    :param postprocessor: the state machine; returns the next state and must not mutate ``state``
    :param initial_state: the state before the first message
    :param max_asks: the largest number of queries it may make for one message of the analyst
    :return: a measurement that spawns a queryable; or an odometer that spawns a
        :class:`.WrappedOdometerQueryable`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    Query two counts, and return their mean:

    >>> def mean(first, tag, message):
    ...     if tag is oc.c.QUERY:
    ...         return None, oc.c.QUERY, (0, None)
    ...     if first is None:
    ...         return message, oc.c.QUERY, (1, None)
    ...     return None, oc.c.ANSWER, (first + message) / 2
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> counts = oc.c.make_indexed_composition(*space, dp.max_divergence(), 1, [count, count])
    >>> means = oc.c.make_interactive_postprocessing(counts, mean)
    >>> means.map(1)
    1.0
    >>> answer = means([1, 2, 3])("the mean, please")

    An odometer whose analyst names a scale, and never sees the measurement:

    >>> def by_scale(state, tag, message):
    ...     if tag is oc.c.ANSWER:
    ...         return state, oc.c.ANSWER, message
    ...     return state, oc.c.QUERY, space >> dp.t.then_count() >> dp.m.then_laplace(message)
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.c.make_interactive_postprocessing(odometer, by_scale)([1, 2, 3])
    >>> answers = root(2.0), root(4.0)
    >>> root.privacy_loss(1)
    0.75
    """
    made: Wrapped = postprocessing(measurement, postprocessor, initial_state, max_asks)
    return made


def postprocessing(
    measurement: Wrapped,
    postprocessor: Postprocessor,
    initial_state: Any,
    limit: int = 1000,
    queries: queryables.Queries = queryables.NONE,
    accuracy: queryables.Accuracy | None = None,
) -> Any:
    """Put a postprocessor in the middle; its protocol may have named queries."""

    def make_machine(ask: Ask) -> Ask:
        state = initial_state

        def answer(message: errors.Query) -> errors.Answer:
            nonlocal state
            after, tag, message = _step(postprocessor, state, QUERY, message)
            asks = 0
            while tag is QUERY:
                if asks >= limit:
                    raise errors.PostprocessorError(
                        f"it sent {limit} queries for one message; check that its loop "
                        "ends, or pass a larger max_asks"
                    )
                asks += 1
                after, tag, message = _step(postprocessor, after, ANSWER, ask(message))
            state = after
            return message

        return answer

    return wrap(
        measurement, make_machine, "InteractivePostprocessing", queries=queries, accuracy=accuracy
    )


def _step(
    postprocessor: Postprocessor, state: Any, tag: Tag, message: errors.Query
) -> tuple[Any, Tag, Any]:
    found = _native.interruptible(postprocessor, state, tag, message)
    parts = tuple(found) if isinstance(found, tuple) else ()
    if len(parts) != 3 or not isinstance(parts[1], Tag):
        raise errors.PostprocessorError(
            "it must return a state, oc.c.QUERY or oc.c.ANSWER, and a message, "
            f"found {type(found).__name__}"
        )
    return parts


@constructor(features=("contrib",))
def make_chain_po(
    postprocessor: errors.Argument, odometer: queryables.ConcurrentOdometer
) -> queryables.ConcurrentOdometer:
    """Return ``odometer >> postprocessor``: every answer is postprocessed, losses are the same.

    Required features: `contrib`

    :param postprocessor: applied to each answer of a launch: a callable, an OpenDP function, or
        the function of a transformation
    :param odometer: made by :func:`.make_concurrent_odometer`
    :return: an odometer with the same space and measure
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = space >> oc.then_concurrent_odometer(dp.max_divergence())
    >>> root = (odometer >> str)([1, 2, 3])
    >>> type(root(space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)))
    <class 'str'>
    """
    return queryables.postprocess(guards.odometer(odometer=odometer), postprocessor)


# A limit on the number of messages. Some theorems assume such a limit.


@constructor(measurement=guards.interactive, max_messages=queryables.MESSAGES)
def make_bounded_interactive(measurement: Wrapped, max_messages: int) -> Wrapped:
    """Limit the number of messages that an interactive measurement, or an odometer, answers.

    The theorems on concurrent composition for (ε, δ)-DP and f-DP [LW22], [VZ23] assume finite
    communication. This limit enforces the assumption: answers on a machine are finite already.
    A message counts when it reaches the mechanism, even if the mechanism then raises. Messages
    beyond the limit are refused and do not reach the mechanism. If an answer is itself a queryable,
    such as the child of a compositor, messages to it count on a stream only.

    The messages of an odometer are launches: ``privacy_loss`` is answered always.

    On a stream, queries and updates count together, because finite communication covers both
    [HSV25, Definition 6.1]; a launch there requires it for losses that need it. Each step counts as
    one message, whatever arrives at it. The count therefore depends only on public steps. A message
    beyond the limit is refused to its sender.

    Guarantee: that of ``measurement``; stopping after a fixed number of messages is postprocessing
    [HSTVVXZ23, Theorem 2.17].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive; or an odometer, whose data are no stream
    :param max_messages: the largest number of messages, at least 1
    :return: a measurement or an odometer whose queryable raises ``MessageLimitError`` beyond the
        limit
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> queryable = oc.c.make_bounded_interactive(oc.c.make_interactive(count), 1)([1, 2, 3])
    >>> release = queryable.read()
    >>> queryable.read()
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.MessageLimitError: the mechanism has answered 1 of 1 messages; ...
    """
    if not isinstance(measurement, queryables.ConcurrentOdometer):
        check_inside("measurement", measurement)
    bounded: Any = wrap_queries(
        measurement, unchanged, "BoundedInteractive", limit=max_messages, queries=None
    )
    made: Wrapped = bounded
    return made
