"""A limit on messages: the finite communication that some theorems assume."""

from __future__ import annotations

from opendp.mod import Measurement, assert_features

from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.stream import MESSAGES
from .guards import check_inside, check_measurement
from .wrap import unchanged, wrap_questions


def make_bounded_interactive(measurement: Measurement, max_messages: int) -> ConcurrentMeasurement:
    """Let an interactive measurement answer a limited number of messages.

    The theorems on concurrent composition for (ε, δ)-DP and f-DP [LW22], [VZ23] assume finite
    communication; with this the assumption is enforced, not hoped for. Answers are finite as they
    are on a machine. A message counts when it reaches the mechanism, also if the mechanism then
    raises. Further ones are refused and do not reach it. What an answer of ``measurement`` itself
    hands out, such as the child of a compositor, has no limit of its own.

    On a stream, questions and updates count together: finite communication [HSV25, Definition 6.1]
    is of both. An update counts as one message a step, whatever arrives at it, so that the count is
    a function of steps, which are public. One beyond the limit is refused to whoever sends it.

    Guarantee: that of ``measurement``; stopping after a fixed number of messages is postprocessing
    [HSTVVXZ23, Theorem 2.17].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive
    :param max_messages: how many, at least 1
    :return: a measurement that spawns a queryable, which raises ``MessageLimitError`` at the end
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
    assert_features("contrib", "honest-but-curious")
    limit = MESSAGES(max_messages=max_messages)
    check_inside("measurement", check_measurement("measurement", measurement))
    return wrap_questions(
        measurement,
        unchanged,
        "BoundedInteractive",
        limit=limit,
        carries_state=True,
        queries=None,
    )
