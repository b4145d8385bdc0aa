"""A limit on the number of messages. Some theorems assume such a limit."""

from __future__ import annotations

from opendp.mod import Measurement

from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.stream_domain import MESSAGES
from .constructor import constructor
from .inside import check_inside
from .wrap import unchanged, wrap_queries


@constructor
def make_bounded_interactive(measurement: Measurement, max_messages: int) -> ConcurrentMeasurement:
    """Limit the number of messages that an interactive measurement answers.

    The theorems on concurrent composition for (ε, δ)-DP and f-DP [LW22], [VZ23] assume finite
    communication. This limit enforces the assumption: answers on a machine are finite already.
    A message counts when it reaches the mechanism, even if the mechanism then raises. Messages
    beyond the limit are refused and do not reach the mechanism. If an answer is itself a queryable,
    such as the child of a compositor, messages to it do not count.

    On a stream, queries and updates count together, because finite communication covers both
    [HSV25, Definition 6.1]. Each step counts as one message, whatever arrives at it. The count
    therefore depends only on public steps. A message beyond the limit is refused to its sender.

    Guarantee: that of ``measurement``; stopping after a fixed number of messages is postprocessing
    [HSTVVXZ23, Theorem 2.17].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive
    :param max_messages: the largest number of messages, at least 1
    :return: a measurement whose queryable raises ``MessageLimitError`` beyond the limit
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
    limit = MESSAGES(max_messages=max_messages)
    check_inside("measurement", measurement)
    return wrap_queries(
        measurement,
        unchanged,
        "BoundedInteractive",
        limit=limit,
        queries=None,
    )
