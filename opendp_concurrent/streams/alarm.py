"""The alarm: a sparse vector on a stream, which tells when a sum is above a threshold.

Let two streams be ``d_in`` events apart. At every step their sums differ by at most ``d_in`` times
the move of one event, whatever was answered before. The proof of the sparse vector needs only this
fact. So it also holds for data that arrive between queries and are chosen adaptively.

If no item is negative, or none is positive, and one event is present or absent, then one of the two
sums is at least the other at every step. Which one it is, answers may decide, but only until the
event. That is cheaper (``sparse_vector.py``), and d events cost what d such steps do: d times
the ε, d² times the ρ.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from opendp.mod import Domain, Measure, Metric

from .. import _opendp as _native
from .. import mechanisms
from .._checks import Integer, Positive, at_most, optional
from ..composition import constructor
from ..errors import Distance, ItemSequence, Query
from ..queryables import READ, Accuracy, ConcurrentMeasurement
from .counter import whole_numbers
from .mechanism import continual
from .stream import integers_of, require_events, whole_distance

STEPS = mechanisms.Steps(0, whole=True)


class _Alarm:
    """State machine of an alarm; a query is None, or a threshold of its own."""

    def __init__(
        self, noise: mechanisms.SparseVectorNoise, threshold: int, window: int | None
    ) -> None:
        self._comparison, self._threshold = mechanisms.NoisyComparison(noise), threshold
        self._items: deque[int] | None = None if window is None else deque([0] * window, window)
        self._sum = 0

    def update(self, item: int | None) -> None:
        number = int(item or 0)
        self._sum += number
        if self._items is not None:
            self._sum -= self._items[0]
            self._items.append(number)

    def update_all(self, items: ItemSequence) -> None:
        for item in whole_numbers(items).tolist():
            self.update(item)

    def ask(self, query: Query) -> mechanisms.SparseVectorAnswer:
        level = self._threshold
        if query is not None:
            level = STEPS.level("query", query)
        if self._comparison.exhausted:
            return mechanisms.EXHAUSTED
        return mechanisms.ABOVE if self._comparison.above(self._sum, level) else mechanisms.BELOW


_KEPT = at_most(2**24, "the items of the last steps are kept")


@constructor(max_hits=at_most(2**63 - 1, "no session has more"), window=optional(_KEPT))
def make_alarm(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: Positive,
    threshold: Integer,
    *,
    max_hits: int = 1,
    window: int | None = None,
    query_scale: Positive | None = None,
    refresh: bool = False,
) -> ConcurrentMeasurement:
    """Report whether the sum of a stream, or of its last steps, is above a threshold.

    This is :func:`.make_sparse_vector` on a stream. ``queryable.read()``, or ``queryable(None)``,
    compares the current sum with the threshold; ``queryable(number)`` compares it with ``number``.
    Queries are unlimited until ``max_hits`` answers are ABOVE. Updates return no answer.

    Guarantee: that of :func:`.make_sparse_vector`, against a strongly adaptive adversary [HSV25,
    Definition 3.3]. The proof needs only that, at every step, the sums differ by at most their
    sensitivity. As there, the noise is one-sided, at half the variance for the same loss. If the
    metric is ``oc.event_presence()`` and items have one sign, the loss is that of monotone queries.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param output_measure: how privacy is measured
    :param scale: scale of the threshold's noise
    :param threshold: an integer
    :param max_hits: largest number of answers ABOVE
    :param window: number of last steps to sum; all steps if left out
    :param query_scale: scale of each query's noise; as in :func:`.make_sparse_vector` if left out,
        for monotone queries if items have one sign and the metric is ``oc.event_presence()``
    :param refresh: give the threshold fresh noise after each hit
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> alarm = oc.m.make_alarm(
    ...     *space, dp.max_divergence(), scale=4.0, query_scale=8.0, threshold=400, window=1000
    ... )
    >>> alarm.map(1)
    0.375
    >>> queryable = alarm([])
    >>> queryable.update_all([0] * 1000)
    >>> queryable.read().outcome
    BELOW
    >>> queryable.update_all([1] * 800)
    >>> queryable.read().outcome
    ABOVE
    """
    items = integers_of(input_domain)
    changes = require_events(input_metric)
    shift = items.spread if changes else items.largest
    directed = not changes and (items.lower >= 0 or items.upper <= 0)
    own = STEPS.scale(scale=scale)
    if query_scale is None:
        query_scale = own * mechanisms.least_cost(1 if refresh else max_hits, directed)
    curves = mechanisms.reads_curves(output_measure)
    noise = mechanisms.SparseVectorNoise(
        threshold=own,
        query=STEPS.scale(query_scale=query_scale),
        answer=None,
        hits=max_hits,
        refresh=refresh,
        one_sided_threshold=not curves,
        one_sided_query=True,
    )

    def privacy_map(d_in: Distance) -> Any:
        events = whole_distance(input_metric, d_in)
        if events == 0:
            return mechanisms.composed(output_measure, [])
        moved = events * shift
        spread = moved if directed else None
        return noise.loss(moved, output_measure, spread=spread, decided=directed)

    def error(beta: float, answers: int) -> float:
        times = max_hits if refresh else 1
        return mechanisms.sparse_vector_accuracy(
            own, query_scale, answers, beta, thresholds=times, renyi=curves
        )

    privacy_map(1)  # raises for a measure that pure DP does not convert to
    return continual(
        (input_domain, input_metric),
        output_measure,
        lambda: _Alarm(noise, threshold, window),
        privacy_map,
        None,
        f"Alarm[scale={scale}, query_scale={query_scale}, {max_hits} hits, window={window}]",
        READ,
        Accuracy("one-sided", own, error),
    )


then_alarm = _native.to_then(make_alarm)
