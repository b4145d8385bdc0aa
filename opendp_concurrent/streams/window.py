"""What is built on counters: sliding windows, histograms, and the alarm.

A window by digits has a tree of odd degree for each block of steps. Time is cut into blocks of W
steps. After r steps of a block, the last W steps are these, and the previous block without its
first r steps. So the noise is that of the sum of r items in the current block, plus that of W items
in the previous one, minus that of r items in the previous one. An item is in the tree of its block
only. The state has the last W items, and the noise of both trees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from .. import _checks as checks
from .. import _opendp as _native
from .. import composition, errors, mechanisms, queryables
from .._opendp import dp
from . import counter
from .digits import DigitNoise, Digits, NodeNoise, best_digits, is_laplace
from .factors import ByItem, FactorWindow, buffered, mean_error, window_variance, windowed
from .factors import endless as endless_factor
from .mechanism import continual
from .stream import Categories, integers_of, items_of, require_events, whole_distance


class DigitsWindow(ByItem):
    """The window by a tree for each block."""

    def __init__(self, window: int, digits: Digits, noise: NodeNoise) -> None:
        self._window, self._digits, self._noise = window, digits, noise
        self._items: deque[int] = deque()
        self._sum, self._steps = 0, 0  # steps of the current block
        self._now = self._table()
        self._before: DigitNoise | None = None

    def _table(self) -> DigitNoise:
        return DigitNoise(self._digits, self._noise, passing=False)

    def update(self, item: int) -> None:
        """Take the item of the next step."""
        if self._steps == self._window:
            self._before, self._steps = self._now, 0
            self._now = self._table()
        if len(self._items) == self._window:
            self._sum -= self._items.popleft()
        self._items.append(item)
        self._sum += item
        self._steps += 1

    def _noises(self) -> Iterator[int]:
        yield self._now.total(self._steps)
        if self._before is not None and self._steps < self._window:
            yield self._before.total(self._window)
            yield -self._before.total(self._steps)

    def total(self) -> int:
        """Return the noisy sum of the window."""
        return self._sum + sum(self._noises())

    def to_record(self) -> errors.Json:
        """Return items, and the noise in use, as a JSON value."""
        self.total()  # draws the noise of all nodes in use
        return {
            "items": [int(one) for one in self._items],
            "steps": self._steps,
            "now": self._now.to_record(),
            "before": None if self._before is None else self._before.to_record(),
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        items, steps, now, before = queryables.fields(record, "items", "steps", "now", "before")
        for item in queryables.rows(items, most=self._window):
            queryables.require(type(item) is int)
        self._items, self._steps = (
            deque(items),
            queryables.bounded_integer(steps, most=self._window),
        )
        queryables.require(len(items) == (steps if before is None else self._window))
        self._sum = sum(self._items)
        self._now.restore(now)
        self._before = None
        if before is not None:
            self._before = self._table()
            self._before.restore(before)


# Sliding-window counters: the noisy sum of the last W steps.

MOST_STEPS = checks.at_most(2**62, "no stream has more steps")


@composition.constructor(window=MOST_STEPS)
def make_window_counter(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    scale: checks.Finite,
    window: int,
) -> queryables.ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of the last ``window`` steps.

    ``queryable.read()``, or ``queryable(None)``, returns the noisy sum at any time, and there is no
    horizon. The noise is that of :func:`.make_counter`.

    With Laplace noise there is a tree of odd degree k for each block of W steps [APT24]. An item is
    in h nodes, where (k^h - 1)/2 >= W, and a node has noise of ``scale``. With Gaussian noise, the
    answer is the difference of two prefix sums of a factorisation [DMPST24], and the loss of an
    item is that of one release with noise of ``scale``.

    Guarantee: as for :func:`.make_counter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: as in :func:`.make_counter`
    :param output_measure: how privacy is measured
    :param scale: scale of the noise, as above
    :param window: W, the number of steps in the window
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: as :func:`.make_counter`

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> recent = oc.m.make_window_counter(*space, dp.max_divergence(), scale=2.0, window=7)
    >>> recent.map(1)
    0.5
    >>> queryable = recent([])
    >>> queryable.update_all([1] * 100)
    >>> count = queryable.read()
    """
    shift, largest = counter.moves_of(input_domain, input_metric)
    scale = counter.check_scale(scale, largest, window=window)
    if is_laplace(output_measure):
        digits = best_digits(window, window=True)
        made = counter.Plan(
            lambda: DigitsWindow(window, digits, NodeNoise(scale, laplace=True)),
            counter.nodes_loss(shift, digits.height, scale, output_measure),
            None,
            counter.of_window_digits(scale, digits, window),
        )
    else:
        made = counter.factor_plan(
            windowed(window, counter.most_steps(largest)),
            scale,
            output_measure,
            shift=shift,
            largest=largest,
            window=window,
            state=lambda prefix: FactorWindow(window, prefix),
        )
    name = f"WindowCounter[scale={scale}, window={window}]"
    return made.measurement(
        (input_domain, input_metric), output_measure, counter.Counter, scale, name
    )


then_window_counter = _native.to_then(make_window_counter)


# Histograms: noisy counts of each category of a stream so far.


class _Histogram(counter.Counter):
    """State machine of a histogram: one count per category."""

    def __init__(self, prefix: Any, categories: Categories) -> None:
        super().__init__(prefix)
        self._categories = categories

    def _one_hot(self, items: errors.ItemSequence) -> Any:
        rows = np.zeros((len(items), self._categories.count), dtype=np.int64)
        place = self._categories.place
        places = [(row, place(item)) for row, item in enumerate(items) if item is not None]
        if places:
            rows[tuple(zip(*places, strict=True))] = 1
        return rows

    def update(self, item: errors.Item) -> None:
        self.update_all([item])

    def update_all(self, items: errors.ItemSequence) -> None:
        self._state.update_all(self._one_hot(items))

    def ask(self, query: errors.Query) -> errors.Answer:
        top = self._top(query)
        counts = np.broadcast_to(self._state.total(), self._categories.count).tolist()
        names = self._categories.names
        if top is None:
            return counts if names is None else dict(zip(names, counts, strict=True))
        order = sorted(range(len(counts)), key=lambda one: (-counts[one], one))[:top]
        return [(one if names is None else names[one], counts[one]) for one in order]

    def restore(self, record: dict[str, Any]) -> None:
        queryables.restore_exactly(self._state, record, self._categories.count)

    def _top(self, query: errors.Query) -> int | None:
        if query is None:
            return None
        if isinstance(query, tuple) and len(query) == 2 and query[0] == "top":
            return checks.count(top=query[1])
        raise errors.InvalidTypeError(
            'the query must be None, for all counts, or ("top", k) for the k largest, '
            f"found {type(query).__name__}"
        )


@composition.constructor
def make_histogram_counter(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    scale: checks.Finite,
    *,
    horizon: checks.Count | None = None,
) -> queryables.ConcurrentMeasurement:
    """Make a measurement that returns the noisy count of each category so far, at any time.

    Each category has its own :func:`.make_counter`. All of them cost as much as one: an event is in
    one category, and a changed event is in two. ``queryable.read()``, or ``queryable(None)``,
    returns the noisy counts: a list, or a dict if the categories have names.
    ``queryable(("top", k))`` returns the k largest counts with their categories, which is
    postprocessing. Negative counts are not corrected.

    Under pure and (ε, δ)-DP, noise is drawn when a query needs it. Under the other measures it is
    drawn for each category at each step.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.category_stream(categories)``, of a number or of names
    :param input_metric: as in :func:`.make_counter`
    :param output_measure: how privacy is measured
    :param scale: scale of the noise, as in :func:`.make_counter`
    :param horizon: largest number of steps; unlimited if left out
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: as :func:`.make_counter`

    :example:

    >>> space = oc.category_stream(["red", "green", "blue"]), oc.event_presence()
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> histogram = oc.m.make_histogram_counter(*space, zcdp, scale=10.0, horizon=1023)
    >>> round(histogram.map(1), 6)
    0.005
    >>> queryable = histogram([])
    >>> queryable.update_all(["blue"] * 900 + ["red"] * 100)
    >>> len(queryable.read())
    3
    >>> [category for category, count in queryable(("top", 1))]
    ['blue']
    """
    items = items_of(input_domain)
    if not isinstance(items, Categories):
        raise errors.InvalidTypeError(
            f"input_domain ({input_domain}) must be oc.category_stream(categories); "
            "map the stream to categories first"
        )
    parts = 2 if require_events(input_metric) else 1
    scale = counter.check_scale(scale, 1, horizon=horizon)
    made = counter.plan(horizon, scale, output_measure, shift=1, largest=1)
    return made.measurement(
        (input_domain, input_metric),
        output_measure,
        lambda prefix: _Histogram(prefix, items),
        scale,
        f"HistogramCounter[scale={scale}, horizon={horizon}]",
        moved=parts,
        sums=items.count,
    )


then_histogram_counter = _native.to_then(make_histogram_counter)


# Errors of counters, computed before they run.


@checks.checked(steps=MOST_STEPS)
def counter_rmse(
    steps: int, output_measure: dp.Measure | None = None, *, endless: bool = False
) -> float:
    """Return the root mean square error of a counter over its steps, by formula.

    The error is for items from 0 to 1, and for one event: at ρ = 1/2 for Gaussian noise, at ε = 1
    for Laplace noise. For a larger range of the items, it grows in proportion. For other losses,
    divide by sqrt(2ρ), or by ε.

    :param steps: T, the number of steps, at most 2^62
    :param output_measure: tells the kind of noise; zCDP if left out
    :param endless: of the counter without a horizon, over its first T steps; else T is the horizon
    :return: the root mean square error
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if the measure has no noise of its own here

    :example:

    >>> round(oc.streams.counter_rmse(1023), 3)
    2.992
    >>> round(oc.streams.counter_rmse(1023, endless=True), 3)
    3.956
    >>> round(oc.streams.counter_rmse(1023, dp.max_divergence()), 3)
    13.058
    """
    measure = dp.zero_concentrated_divergence() if output_measure is None else output_measure
    if not is_laplace(measure):
        return mean_error(
            endless_factor(max(steps, counter.ENDLESS_STEPS)) if endless else buffered(steps), steps
        )
    if endless:
        return _mean_error(counter.of_epochs(1.0)(steps), 1)
    digits = best_digits(steps)
    return _mean_error(counter.of_digits(1.0, digits)(steps), digits.height)


def _mean_error(found: counter.Spread, height: int) -> float:
    """Return the root mean square error of sums whose Laplace noise has scale 1.

    :param height: number of nodes of an item
    """
    return height * sqrt(2 * float(found.sums @ found.squares) / float(found.sums.sum()))


@checks.checked(window=MOST_STEPS)
def window_rmse(window: int, output_measure: dp.Measure | None = None) -> float:
    """Return the root mean square error of a window counter, late in a stream, by formula.

    The error is for items from 0 to 1, and for one event, as in :func:`.counter_rmse`: at ρ = 1/2
    for Gaussian noise, at ε = 1 for Laplace noise.

    :param window: W, the number of steps in the window, at most 2^62, or 2^16 for Laplace noise
    :param output_measure: tells the kind of noise; zCDP if left out
    :return: the root mean square error
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if the measure has no noise of its own here

    :example:

    >>> round(oc.streams.window_rmse(1023), 3)
    4.123
    >>> round(oc.streams.window_rmse(1023, dp.max_divergence()), 3)
    20.722
    """
    measure = dp.zero_concentrated_divergence() if output_measure is None else output_measure
    if not is_laplace(measure):
        return sqrt(window_variance(windowed(window, max(window, counter.ENDLESS_STEPS)), window))
    steps = checks.at_most(2**16, "each step is computed; pass a smaller one")(window=window)
    digits = best_digits(steps, window=True)
    twice = 2 * steps  # of two blocks, as if each had one before
    return _mean_error(counter.of_window_digits(1.0, digits, steps)(twice), digits.height)


# The alarm: a sparse vector on a stream, which tells when a sum is above a threshold.
#
# Let two streams be ``d_in`` events apart. At every step their sums differ by at most ``d_in``
# times the move of one event, whatever was answered before. The proof of the sparse vector needs
# only this fact. So it also holds for data that arrive between queries and are chosen adaptively.
#
# If no item is negative, or none is positive, and one event is present or absent, then one of the
# two sums is at least the other at every step. Which one it is, answers may decide, but only until
# the event. That is cheaper (``mechanisms/sparse_vector.py``), and d events cost what d such steps
# do: d times the ε, d² times the ρ.

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

    def update_all(self, items: errors.ItemSequence) -> None:
        for item in counter.whole_numbers(items).tolist():
            self.update(item)

    def ask(self, query: errors.Query) -> mechanisms.SparseVectorAnswer:
        level = self._threshold
        if query is not None:
            level = STEPS.level("query", query)
        if self._comparison.exhausted:
            return mechanisms.EXHAUSTED
        return mechanisms.ABOVE if self._comparison.above(self._sum, level) else mechanisms.BELOW


_KEPT = checks.at_most(2**24, "the items of the last steps are kept")


@composition.constructor(
    max_hits=checks.at_most(2**63 - 1, "no session has more"), window=checks.optional(_KEPT)
)
def make_alarm(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    scale: checks.Positive,
    threshold: checks.Integer,
    *,
    max_hits: int = 1,
    window: int | None = None,
    query_scale: checks.Positive | None = None,
    refresh: bool = False,
) -> queryables.ConcurrentMeasurement:
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

    def privacy_map(d_in: errors.Distance) -> Any:
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
        queryables.READ,
        queryables.Accuracy("one-sided", own, error),
    )


then_alarm = _native.to_then(make_alarm)
