"""Counters: noisy sums and histograms of all items of a stream so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from opendp.mod import Domain, Measure, Metric, assert_features

from .. import checks
from ..checks import checked, count, finite, is_a, one_of, optional
from ..combinators import guards
from ..continual.mechanism import continual
from ..continual.stream import Categories, integers_of, items_of, require_events, whole_distance
from ..errors import InvalidTypeError, InvalidValueError
from ..measurements.composed import composed
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import READ
from .dyadic import AllLeaves, BalancedLeaves, Leaves
from .node_noise import LARGEST_SUM, is_laplace, noise_loss
from .prefix import Prefix, make_prefix

METHODS: dict[str, Callable[[int], Leaves]] = {"tree": AllLeaves, "smooth": BalancedLeaves}


class _Counter:
    """State machine of a counter; the only query is None."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: Prefix) -> None:
        self._prefix = prefix

    def update(self, item: Any) -> None:
        self._prefix.update(item or 0)

    def update_all(self, items: Any) -> None:
        self._prefix.update_all(whole_numbers(items))

    def ask(self, query: Any) -> int:
        if query is not None:
            raise InvalidTypeError(
                f"the query must be None, for the count so far, found {type(query).__name__}"
            )
        return int(self._prefix.total())

    def to_record(self) -> Any:
        return self._prefix.to_record()

    def restore(self, record: Any) -> None:
        self._prefix.restore(record)


def whole_numbers(items: Any) -> Any:
    """Return the items as an array, with 0 for None."""
    if isinstance(items, np.ndarray):
        return items
    return np.array([item or 0 for item in items], dtype=np.int64)


def counter_loss(
    events: int, shift: int, height: int, scale: float, measure: Measure, parts: int = 1
) -> Any:
    """Return the privacy loss of ``events`` events, each moving ``parts`` numbers by ``shift``.

    An event is in at most one node of each of ``height`` levels. Several events in one node move it
    by their sum. Under every measure here, this costs at least as much as moving several nodes: ε
    is proportional to the shift, zCDP and Rényi divergences of Gaussian noise to its square, and
    for Gaussian DP, with a grid, (aD+1)² + (bD+1)² <= ((a+b)D+1)².
    """
    if events == 0:
        return composed(measure, [])
    if is_laplace(measure):
        return noise_loss(scale, events * shift * height * parts, measure)
    loss = noise_loss(scale, events * shift, measure)
    return composed(measure, [(loss, height * parts)])


def leaves_for(method: str, horizon: int | None) -> tuple[Callable[[int], Leaves], int]:
    """Return the order of leaves, and the nodes per item; 1 without a horizon (doubling)."""
    if method not in METHODS:
        raise InvalidValueError(f"method ({method!r}) must be one of {', '.join(METHODS)}")
    if horizon is None:
        if method != "tree":
            raise InvalidValueError(f"method ({method!r}) needs a horizon; pass horizon")
        return AllLeaves, 1
    return METHODS[method], METHODS[method](checks.count(horizon=horizon)).height


def check_scale(scale: Any, largest: int, **steps: int | None) -> float:
    """Return the scale, or raise unless sums and noise stay far from integer overflow.

    :param largest: largest move of an item
    :param steps: largest number of steps, by the argument's name; None if unlimited
    """
    ((name, count),) = steps.items()
    double = checks.finite(scale=scale)
    if not 0.0 < double <= 2.0**50:
        raise InvalidValueError(f"scale ({scale}) must be above 0 and at most 2**50")
    if count is not None and not count * largest <= LARGEST_SUM:
        raise InvalidValueError(f"{name} ({count}) times the largest item must be at most 2**61")
    return double


@checked(
    input_domain=guards.domain,
    input_metric=guards.metric,
    output_measure=guards.measure,
    scale=finite,
    horizon=optional(count),
    method=one_of(*METHODS),
)
def make_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    horizon: int | None = None,
    method: str = "tree",
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of all items so far, at any time.

    The measurement spawns a :class:`.ContinualQueryable`. ``update(item)`` or ``update_all(items)``
    adds items. ``read()``, or the query None, returns the noisy sum so far, which stays the same
    until the next update. State is O(log T). The noise of a node is drawn at its first use.

    * ``method="tree"``: the binary tree [CSS11], [DNPR10]. With a horizon of T steps, an item is in
      at most h = floor(log2 T) + 1 nodes. The sum of t items has one node's noise per set bit of t.
    * ``method="smooth"``: the smooth binary mechanism [AP23], on leaves with half of their b bits
      set. An item is in at most b/2 nodes. A sum has at most b/2 nodes; empty ones get no noise.
    * without a horizon: one tree per epoch; each epoch is twice as long. The total loss is that of
      one release with noise of ``scale``, for any number of steps. A node of the epoch of 2^j steps
      has 2j times the variance (Laplace noise: 2j times the scale).

    OpenDP draws the noise: Laplace under pure and (ε, δ)-DP, discrete Gaussian under zCDP, tCDP,
    Rényi and Gaussian DP.

    Guarantee: the composition of one release per node that contains an item, against a strongly
    adaptive adversary [HSV25, Definition 3.3]: it holds for every node given all earlier releases.
    An added or removed event moves a sum by at most the largest item. A changed event moves it by
    at most the range of the items and 0.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param output_measure: how privacy is measured
    :param scale: scale of the noise of one node
    :param horizon: largest number of steps; unlimited if left out
    :param method: ``"tree"`` or ``"smooth"``
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and cast

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> counter.map(1)
    0.5
    >>> queryable = counter([])
    >>> queryable.update_all([1, 0, 1, None] * 200)
    >>> count = queryable.read()
    >>> count == queryable.read()
    True
    """
    assert_features("contrib", "honest-but-curious")
    items = integers_of(input_domain)
    shift = items.spread if require_events(input_metric) else items.largest
    laplace = is_laplace(output_measure)
    leaves, height = leaves_for(method, horizon)
    scale = check_scale(scale, max(items.spread, 1), horizon=horizon)

    def privacy_map(d_in: Any) -> Any:
        events = whole_distance(input_metric, d_in)
        return counter_loss(events, shift, height, scale, output_measure)

    privacy_map(1)  # raises for an unsupported measure
    return continual(
        (input_domain, input_metric),
        output_measure,
        lambda: _Counter(make_prefix(leaves, horizon, scale, laplace)),
        privacy_map,
        LARGEST_SUM // max(items.spread, 1) if horizon is None else horizon,
        f"Counter[scale={scale}, horizon={horizon}, {method}]",
        READ,
    )


class _Histogram:
    """State machine of a histogram: one count per category."""

    __slots__ = ("_categories", "_prefix")

    def __init__(self, prefix: Prefix, categories: int) -> None:
        self._prefix, self._categories = prefix, categories

    def _one_hot(self, items: Sequence[Any]) -> Any:
        rows = np.zeros((len(items), self._categories), dtype=np.int64)
        places = [(row, item) for row, item in enumerate(items) if item is not None]
        if places:
            rows[tuple(zip(*places, strict=True))] = 1
        return rows

    def update(self, item: Any) -> None:
        self.update_all([item])

    def update_all(self, items: Any) -> None:
        self._prefix.update_all(self._one_hot(items))

    def ask(self, query: Any) -> Any:
        top = self._top(query)
        counts = np.broadcast_to(self._prefix.total(), self._categories).tolist()
        if top is None:
            return counts
        order = sorted(range(self._categories), key=lambda one: (-counts[one], one))
        return [(category, counts[category]) for category in order[:top]]

    def to_record(self) -> Any:
        return self._prefix.to_record()

    def restore(self, record: Any) -> None:
        self._prefix.restore(record)

    def _top(self, query: Any) -> int | None:
        if query is None:
            return None
        if is_a(query, tuple) and len(query) == 2 and query[0] == "top":
            return checks.count(top=query[1])
        raise InvalidTypeError(
            'the query must be None, for all counts, or ("top", k) for the k largest, '
            f"found {type(query).__name__}"
        )


@checked(
    input_domain=guards.domain,
    input_metric=guards.metric,
    output_measure=guards.measure,
    scale=finite,
    horizon=optional(count),
    method=one_of(*METHODS),
)
def make_histogram_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    *,
    horizon: int | None = None,
    method: str = "tree",
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count of each category so far, at any time.

    Each category has its own :func:`.make_counter`. All of them cost as much as one: an event is in
    one category, and a changed event is in two. ``queryable.read()``, or ``queryable(None)``,
    returns the noisy counts. ``queryable(("top", k))`` returns the k largest counts with their
    categories, which is postprocessing. Negative counts are not corrected.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.category_stream(categories)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param output_measure: how privacy is measured
    :param scale: scale of the noise of one node
    :param horizon: largest number of steps; unlimited if left out
    :param method: ``"tree"`` or ``"smooth"``
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: as :func:`.make_counter`

    :example:

    >>> space = oc.category_stream(3), oc.event_presence()
    >>> histogram = oc.m.make_histogram_counter(
    ...     *space, dp.zero_concentrated_divergence(), scale=10.0, horizon=1023
    ... )
    >>> histogram.map(1)
    0.05
    >>> queryable = histogram([])
    >>> queryable.update_all([2] * 900 + [0] * 100)
    >>> len(queryable.read())
    3
    >>> [category for category, count in queryable(("top", 1))]
    [2]
    """
    assert_features("contrib", "honest-but-curious")
    items = items_of(input_domain)
    if not isinstance(items, Categories):
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be oc.category_stream(categories); "
            "map the stream to categories first"
        )
    parts = 2 if require_events(input_metric) else 1
    laplace = is_laplace(output_measure)
    leaves, height = leaves_for(method, horizon)
    scale = check_scale(scale, 1, horizon=horizon)

    def privacy_map(d_in: Any) -> Any:
        events = whole_distance(input_metric, d_in)
        return counter_loss(events, 1, height, scale, output_measure, parts)

    privacy_map(1)  # raises for an unsupported measure
    return continual(
        (input_domain, input_metric),
        output_measure,
        lambda: _Histogram(make_prefix(leaves, horizon, scale, laplace), items.count),
        privacy_map,
        LARGEST_SUM if horizon is None else horizon,
        f"HistogramCounter[scale={scale}, horizon={horizon}, {method}]",
        READ,
    )


then_counter = _native.to_then(make_counter)
then_histogram_counter = _native.to_then(make_histogram_counter)
