"""Sliding-window counters: the noisy sum of the last W steps.

Time is cut into blocks of W steps. The last W steps are the end of the previous block and the
beginning of the current one. The current block gives a prefix of its tree. The previous block gives
a prefix of its mirrored tree, which loses one item per step. An item is in nodes of both trees.
The counter keeps the last W items, as any window must, and the noise of O(log W) nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from opendp.mod import Domain, Measure, Metric, assert_features

from .. import checks
from ..checks import at_most, checked, finite
from ..combinators import guards
from ..continual.mechanism import continual
from ..continual.stream import integers_of, require_events, whole_distance
from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import READ
from .counter import check_scale, counter_loss, whole_numbers
from .dyadic import AllLeaves
from .node_noise import NodeNoise, is_laplace
from .prefix import TreePrefix

MOST_PLACES = 2**18  # up to this window, nodes_of examines every position


class _Shrinking:
    """Noisy sums of the last items of a finished block; the number of items shrinks."""

    __slots__ = ("_noise", "_noisy", "_suffix", "length")

    def __init__(self, items: list[int], noise: NodeNoise) -> None:
        self._suffix = np.concatenate([[0], np.cumsum(items[::-1])]).tolist()
        self._noise, self.length = noise, len(items)
        self._noisy: dict[tuple[int, int], int] = {}

    def total(self, left: int) -> int:
        """Return the noisy sum of the last ``left`` items."""
        nodes = {}
        low = 0
        for bit in reversed(range(left.bit_length())):
            if left >> bit & 1:
                node = (low, bit)
                known = self._noisy.get(node)
                if known is None:
                    exact = self._suffix[low + (1 << bit)] - self._suffix[low]
                    known = self._noise.release(exact)
                nodes[node] = known
                low += 1 << bit
        self._noisy = nodes
        return sum(nodes.values())

    def to_record(self) -> Any:
        noisy = [[low, bit, value] for (low, bit), value in self._noisy.items()]
        return {"suffix": self._suffix, "noisy": noisy}

    def restore(self, record: Any) -> None:
        self._suffix, self.length = record["suffix"], len(record["suffix"]) - 1
        self._noisy = {(low, bit): value for low, bit, value in record["noisy"]}


class _Window:
    """State machine of a window; the only query is None."""

    __slots__ = ("_before", "_block", "_noise", "_now", "_window")

    def __init__(self, window: int, noise: NodeNoise) -> None:
        self._window, self._noise = window, noise
        self._before = _Shrinking([], noise)
        self._block: list[int] = []
        self._now = TreePrefix(AllLeaves(window), noise)

    def update(self, item: Any) -> None:
        if len(self._block) == self._window:
            self._before = _Shrinking(self._block, self._noise)
            self._block, self._now = [], TreePrefix(AllLeaves(self._window), self._noise)
        self._block.append(int(item or 0))
        self._now.update(int(item or 0))

    def update_all(self, items: Any) -> None:
        for item in whole_numbers(items).tolist():
            self.update(item)

    def ask(self, query: Any) -> int:
        if query is not None:
            raise InvalidTypeError(
                f"the query must be None, for the sum of the window, found {type(query).__name__}"
            )
        left = max(0, self._before.length - len(self._block))
        return int(self._now.total()) + self._before.total(left)

    def to_record(self) -> Any:
        self.ask(None)  # draws the noise of all nodes in use
        parts = self._before.to_record(), self._now.to_record()
        return {"before": parts[0], "now": parts[1], "block": [int(one) for one in self._block]}

    def restore(self, record: Any) -> None:
        self._before.restore(record["before"])
        self._now.restore(record["now"])
        self._block = record["block"]


def nodes_of(window: int) -> int:
    """Return the largest number of nodes that an item is in, over its places in a block.

    At level p, an item is in a node of its own tree if bit p of its place is not set and the node
    is within the block. The same holds in the mirrored tree, of which queries use one leaf less.
    """
    if window > MOST_PLACES:
        return window.bit_length() + (window - 1).bit_length()
    forward = np.arange(window)
    nodes = np.zeros(window, dtype=np.int64)
    for place, leaves in ((forward, window), (forward[::-1], window - 1)):
        for bit in range(window.bit_length()):
            low = place >> bit << bit
            nodes += ((place >> bit & 1) == 0) & (low + (1 << bit) <= leaves)
    return int(nodes.max())


MOST_STEPS = at_most(2**62, "no stream has more steps")


@checked(
    input_domain=guards.domain,
    input_metric=guards.metric,
    output_measure=guards.measure,
    scale=finite,
    window=MOST_STEPS,
)
def make_window_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: float,
    window: int,
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of the last ``window`` steps.

    ``queryable.read()``, or ``queryable(None)``, returns the noisy sum at any time, and there is no
    horizon. An item is in nodes of two trees: the tree of its block of W steps, and the
    mirrored tree, from which it leaves the window. It is in at most log2 W + 1 nodes in all if W is
    a power of two, and in at most 2 (floor(log2 W) + 1) nodes for any W.

    Guarantee: the composition of one release per node that contains an item, as in
    :func:`.make_counter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param output_measure: how privacy is measured
    :param scale: scale of the noise of one node
    :param window: W, the number of steps in the window
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: as :func:`.make_counter`

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> recent = oc.m.make_window_counter(*space, dp.max_divergence(), scale=8.0, window=7)
    >>> recent.map(1)
    0.5
    >>> queryable = recent([])
    >>> queryable.update_all([1] * 100)
    >>> count = queryable.read()
    """
    assert_features("contrib", "honest-but-curious")
    items = integers_of(input_domain)
    steps = checks.count(window=window)
    shift = items.spread if require_events(input_metric) else items.largest
    laplace = is_laplace(output_measure)
    scale = check_scale(scale, max(items.spread, 1), window=steps)
    height = nodes_of(steps)
    return continual(
        (input_domain, input_metric),
        output_measure,
        lambda: _Window(steps, NodeNoise(scale, laplace)),
        lambda d_in: counter_loss(
            whole_distance(input_metric, d_in), shift, height, scale, output_measure
        ),
        None,
        f"WindowCounter[scale={scale}, window={steps}]",
        READ,
    )


then_window_counter = _native.to_then(make_window_counter)
