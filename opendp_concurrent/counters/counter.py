"""Counters: noisy sums of all items of a stream so far."""

from __future__ import annotations

from typing import Any

import numpy as np
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Count, Finite
from ..combinators.constructor import constructor
from ..continual.stream import integers_of, require_events
from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import require, restore_exactly
from ..types import Answer, Argument, Item, ItemSequence, Json, Query
from .methods import check_scale, plan


class Counter:
    """State machine of noisy sums; the only query is None.

    :param state: a prefix, or a window: it has update, update_all, total, to_record, restore,
        shapes, the shapes of all sums and noise that it keeps, and perhaps steps
    """

    def __init__(self, state: Any) -> None:
        self._state = state

    def update(self, item: Item) -> None:
        """Take the item of the next step, or None."""
        self._state.update(item or 0)

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        self._state.update_all(whole_numbers(items))

    def ask(self, query: Query) -> Answer:
        """Return the noisy sum."""
        if query is not None:
            raise InvalidTypeError(
                f"the query must be None, for the noisy sum, found {type(query).__name__}"
            )
        return int(self._state.total())

    def to_record(self) -> Json:
        """Return the state as a JSON value."""
        return self._state.to_record()

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        restore_exactly(self._state, record)
        require(self._state.shapes <= {()})

    @property
    def steps(self) -> int | None:
        """Number of steps so far; None if the state does not have it."""
        return getattr(self._state, "steps", None)


def whole_numbers(items: Argument) -> Any:
    """Return the items as an array, with 0 for None."""
    if isinstance(items, np.ndarray):
        return items
    return np.array([item or 0 for item in items], dtype=np.int64)


@constructor
def make_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: Finite,
    *,
    horizon: Count | None = None,
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of all items so far, at any time.

    The measurement spawns a :class:`.ContinualQueryable`. ``update(item)`` or ``update_all(items)``
    adds items. ``read()``, or the query None, returns the noisy sum so far, which stays the same
    until the next update. :func:`.counter_rmse` computes the error.

    OpenDP draws the noise. Under pure and (ε, δ)-DP it is Laplace noise, in a tree of odd degree k
    with signed digits [APT24], with the best k for T. An item is in h nodes, where (k^h - 1)/2 >=
    T, and a node has noise of ``scale``. Without a horizon there is one tree per epoch, each about
    four times as long as the one before. Then the loss of an item is that of one release with noise
    of ``scale``, and a node of a tree of h levels has noise of h times the scale.

    Under zCDP, tCDP, Rényi and Gaussian DP it is discrete Gaussian noise, in a factorisation with
    O(log T) state [DMPST24], whose columns are normalised. The loss of an item is that of one
    release with noise of ``scale``, with or without a horizon. Noise is drawn at every step.

    Guarantee: the map is a bound against a strongly adaptive adversary [HSV25, Definition 3.3].
    An added or removed event moves a sum by at most the largest item. A changed event moves it by
    at most the range of the items and 0.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``; for users, chain with
        :func:`.make_bounded_contributions`
    :param output_measure: how privacy is measured
    :param scale: scale of the noise, as above
    :param horizon: largest number of steps; unlimited if left out
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and cast

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> counter.map(1)
    0.15000000000000002
    >>> queryable = counter([])
    >>> queryable.update_all([1, 0, 1, None] * 200)
    >>> count = queryable.read()
    >>> count == queryable.read()
    True
    """
    items = integers_of(input_domain)
    shift = items.spread if require_events(input_metric) else items.largest
    largest = max(items.spread, 1)
    scale = check_scale(scale, largest, horizon=horizon)
    made = plan(horizon, scale, output_measure, shift=shift, largest=largest)
    name = f"Counter[scale={scale}, horizon={horizon}]"
    return made.measurement((input_domain, input_metric), output_measure, Counter, scale, name)


then_counter = _native.to_then(make_counter)
