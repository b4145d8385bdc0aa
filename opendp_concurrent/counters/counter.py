"""Counters: noisy sums of all items of a stream so far."""

from __future__ import annotations

from typing import Any

import numpy as np
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Count, Finite
from ..arguments.checks import one_of, optional
from ..combinators.constructor import constructor
from ..continual.stream import Contributed, changes_of, integers_of, unit_of, with_participations
from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import require, restore_exactly
from ..types import Argument, Item, ItemSequence, Json, Query
from .methods import METHODS, check_scale, plan
from .prefix import Prefix


class _Counter:
    """State machine of a counter; the only query is None."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: Prefix) -> None:
        self._prefix = prefix

    def update(self, item: Item) -> None:
        self._prefix.update(item or 0)

    def update_all(self, items: ItemSequence) -> None:
        self._prefix.update_all(whole_numbers(items))

    def ask(self, query: Query) -> int:
        if query is not None:
            raise InvalidTypeError(
                f"the query must be None, for the count so far, found {type(query).__name__}"
            )
        return int(self._prefix.total())

    def to_record(self) -> Json:
        return self._prefix.to_record()

    def restore(self, record: Json) -> None:
        restore_exactly(self._prefix, record)
        require(self._prefix.shapes <= {()})

    @property
    def steps(self) -> int | None:
        return self._prefix.steps


def whole_numbers(items: Argument) -> Any:
    """Return the items as an array, with 0 for None."""
    if isinstance(items, np.ndarray):
        return items
    return np.array([item or 0 for item in items], dtype=np.int64)


@constructor(method=optional(one_of(*METHODS)))
def make_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: Finite,
    *,
    horizon: Count | None = None,
    method: str | None = None,
    participations: Contributed | None = None,
    separation: Contributed = 1,
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of all items so far, at any time.

    The measurement spawns a :class:`.ContinualQueryable`. ``update(item)`` or ``update_all(items)``
    adds items. ``read()``, or the query None, returns the noisy sum so far, which stays the same
    until the next update. :func:`.counter_rmse` computes the error of each method.

    OpenDP draws the noise. Under pure and (ε, δ)-DP it is Laplace noise:

    * ``method="digits"``, the default: a tree of odd degree k with signed digits [APT24], with the
      best k for T. An item is in h nodes, where (k^h - 1)/2 >= T. Without a horizon: one tree per
      epoch, each about four times as long as the one before. The total loss is that of one release
      with noise of ``scale``, and a node of a tree of h levels has noise of h times the scale.

    Under zCDP, tCDP, Rényi and Gaussian DP it is discrete Gaussian noise, on a fine grid:

    * ``method="buffered"``, the default: a factorisation with a rational generating function
      [DMPST24], with O(log T) state. One release for each step has noise of ``scale``. With or
      without a horizon the sum of squares of an event's moves is bounded, by about 3 to 6.
    * ``method="banded"``: a power of the prefix sums with few bands, whose items are kept. The
      default with ``participations``, where its error is smaller.
    * ``method="square_root"``: the square root of the prefix sums [FHU23], with O(T) state. To
      compare; ``"buffered"`` has a smaller error.

    Two methods have Laplace or Gaussian noise, with noise of ``scale`` for each node:

    * ``method="tree"``: the binary tree [CSS11], [DNPR10]. With a horizon of T steps, an item is in
      at most h = floor(log2 T) + 1 nodes. The sum of t items has one node's noise per set bit of t.
      Without a horizon: one tree per epoch, each twice as long as the one before. The total loss is
      that of one release with noise of ``scale``.
    * ``method="smooth"``: the smooth binary mechanism [AP23], on leaves with half of their b bits
      set. An item is in at most b/2 nodes. A sum has at most b/2 nodes; empty ones get no noise.

    Trees draw the noise of a node at its first use. Factorisations draw noise at every step.

    With ``participations`` and ``separation``, distances are numbers of users. Each user has at
    most k items, at least b steps apart. Under zCDP, tCDP, Rényi and Gaussian DP this costs less
    than k times one item [KL24], [CGMMRTX23], also if users react to answers. With Laplace noise
    and for trees it costs k times one item, whatever the separation.
    :func:`.make_bounded_contributions` enforces both numbers.

    Guarantee: the map is a bound against a strongly adaptive adversary [HSV25, Definition 3.3].
    An added or removed event moves a sum by at most the largest item. A changed event moves it by
    at most the range of the items and 0.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()``, ``oc.event_change()``, or ``oc.user_presence()``
        with participations
    :param output_measure: how privacy is measured
    :param scale: scale of the noise of one node, or of one release of a factorisation
    :param horizon: largest number of steps; unlimited if left out
    :param method: one of the names above; the default for the noise if left out
    :param participations: k, the largest number of items per user; then distances are users
    :param separation: b, the least number of steps from one item of a user to the next
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
    input_metric = with_participations(input_metric, participations, separation)
    shift = items.spread if changes_of(input_metric) else items.largest
    largest, unit = max(items.spread, 1), unit_of(input_metric)
    scale = check_scale(scale, largest, horizon=horizon)
    made = plan(method, horizon, scale, output_measure, shift=shift, largest=largest, unit=unit)
    name = f"Counter[scale={scale}, horizon={horizon}, {made.method}]"
    return made.measurement((input_domain, input_metric), output_measure, _Counter, scale, name)


then_counter = _native.to_then(make_counter)
