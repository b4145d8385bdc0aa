"""Postprocessing: of each answer, or by a state machine between an analyst and a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from opendp.mod import Measurement

from .. import _checks as checks
from .. import errors, queryables
from .._opendp import interruptible
from . import guards
from .guards import check_inside, constructor
from .interactive import Ask, unchanged, wrap, wrap_queries


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

Wrapped = TypeVar("Wrapped", Measurement, queryables.ConcurrentOdometer)
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
    found = interruptible(postprocessor, state, tag, message)
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
