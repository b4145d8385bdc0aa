"""Histograms: noisy counts of each category of a stream so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from opendp.mod import Domain, Measure, Metric

from ..arguments import checks
from ..arguments.checked import Count, Finite
from ..combinators.constructor import constructor
from ..continual.stream import (
    Categories,
    items_of,
    require_events,
)
from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import require, restore_exactly
from ..types import Answer, Item, ItemSequence, Json, Query
from .counter import Counter
from .methods import check_scale, plan


class _Histogram(Counter):
    """State machine of a histogram: one count per category."""

    def __init__(self, prefix: Any, categories: Categories) -> None:
        super().__init__(prefix)
        self._categories = categories

    def _one_hot(self, items: Sequence[Any]) -> Any:
        rows = np.zeros((len(items), self._categories.count), dtype=np.int64)
        place = self._categories.place
        places = [(row, place(item)) for row, item in enumerate(items) if item is not None]
        if places:
            rows[tuple(zip(*places, strict=True))] = 1
        return rows

    def update(self, item: Item) -> None:
        self.update_all([item])

    def update_all(self, items: ItemSequence) -> None:
        self._state.update_all(self._one_hot(items))

    def ask(self, query: Query) -> Answer:
        top = self._top(query)
        counts = np.broadcast_to(self._state.total(), self._categories.count).tolist()
        names = self._categories.names
        if top is None:
            return counts if names is None else dict(zip(names, counts, strict=True))
        order = sorted(range(len(counts)), key=lambda one: (-counts[one], one))[:top]
        return [(one if names is None else names[one], counts[one]) for one in order]

    def restore(self, record: Json) -> None:
        restore_exactly(self._state, record)
        require(self._state.shapes <= {(), (self._categories.count,)})

    def _top(self, query: Query) -> int | None:
        if query is None:
            return None
        if isinstance(query, tuple) and len(query) == 2 and query[0] == "top":
            return checks.count(top=query[1])
        raise InvalidTypeError(
            'the query must be None, for all counts, or ("top", k) for the k largest, '
            f"found {type(query).__name__}"
        )


@constructor
def make_histogram_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: Finite,
    *,
    horizon: Count | None = None,
) -> ConcurrentMeasurement:
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
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be oc.category_stream(categories); "
            "map the stream to categories first"
        )
    parts = 2 if require_events(input_metric) else 1
    scale = check_scale(scale, 1, horizon=horizon)
    made = plan(horizon, scale, output_measure, shift=1, largest=1)
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
