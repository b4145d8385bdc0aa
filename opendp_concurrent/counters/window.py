"""Sliding-window counters: the noisy sum of the last W steps."""

from __future__ import annotations

from math import ldexp
from typing import Protocol

from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Finite
from ..arguments.checks import at_most, one_of, optional
from ..combinators.constructor import constructor
from ..continual.stream import integers_of, require_events
from ..errors import InvalidTypeError, InvalidValueError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import restore_exactly
from ..types import Item, ItemSequence, Json, Query
from .counter import whole_numbers
from .factors.buffered import windowed
from .factors.factor import grid_bits, sensitivity
from .factors.factor_prefix import FactorPrefix
from .factors.window_factor import FactorWindow
from .methods import Plan, check_scale, counter_loss, factor_loss, most_steps
from .node_noise import NodeNoise, is_laplace
from .spread import of_digits, of_nodes, of_window_factor
from .window_digits import DigitsWindow, best_window_digits
from .window_trees import TreesWindow, nodes_of


class WindowState(Protocol):
    """The noisy sum of the last steps."""

    def update(self, item: int) -> None:
        """Take the item of the next step."""

    def total(self) -> int:
        """Return the noisy sum of the window."""

    def to_record(self) -> Json:
        """Return the state as a JSON value."""

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""


class _Window:
    """State machine of a window; the only query is None."""

    __slots__ = ("_state",)

    def __init__(self, state: WindowState) -> None:
        self._state = state

    def update(self, item: Item) -> None:
        self._state.update(int(item or 0))

    def update_all(self, items: ItemSequence) -> None:
        for item in whole_numbers(items).tolist():
            self._state.update(item)

    def ask(self, query: Query) -> int:
        if query is not None:
            raise InvalidTypeError(
                f"the query must be None, for the sum of the window, found {type(query).__name__}"
            )
        return self._state.total()

    def to_record(self) -> Json:
        return self._state.to_record()

    def restore(self, record: Json) -> None:
        restore_exactly(self._state, record)


def _trees(steps: int, scale: float, measure: Measure, shift: int, largest: int) -> Plan:
    del largest
    height, laplace = nodes_of(steps), is_laplace(measure)
    return Plan(
        "trees",
        lambda: TreesWindow(steps, NodeNoise(scale, laplace)),
        lambda events, parts: counter_loss(events, shift, height, scale, measure, parts),
        None,
        of_nodes(scale, lambda _: 2 * steps.bit_length()),
    )


def _digits(steps: int, scale: float, measure: Measure, shift: int, largest: int) -> Plan:
    del largest
    digits = best_window_digits(steps)
    return Plan(
        "digits",
        lambda: DigitsWindow(steps, digits, NodeNoise(scale, True)),
        lambda events, parts: counter_loss(events, shift, digits.height, scale, measure, parts),
        None,
        # three prefixes; a node of two of them counts twice, with a square of 4
        of_nodes(scale, lambda _: 5 * of_digits(digits), most=2.0),
    )


def _buffered(steps: int, scale: float, measure: Measure, shift: int, largest: int) -> Plan:
    factor = windowed(steps, most_steps(largest))
    bits = grid_bits(factor, scale, largest)
    noise_scale, moved = ldexp(scale, bits), sensitivity(factor, bits, shift)
    return Plan(
        "buffered",
        lambda: FactorWindow(
            steps, FactorPrefix(factor, bits, NodeNoise(noise_scale, False)), bits
        ),
        lambda events, parts: factor_loss(events, moved, noise_scale, measure, parts),
        factor.horizon,
        of_window_factor(factor.buffers, steps, scale, bits),
    )


PLANS = {"trees": _trees, "digits": _digits, "buffered": _buffered}
METHODS = tuple(PLANS)


def method_for_window(method: str | None, laplace: bool) -> str:
    """Return the method, or the default for the noise; raise if they do not fit."""
    own, other = ("digits", "buffered") if laplace else ("buffered", "digits")
    if method == other:
        needs, instead = ("Gaussian", "zCDP") if laplace else ("Laplace", "pure DP")
        raise InvalidValueError(
            f"method ({method!r}) needs {needs} noise; build for {instead}, and use cast"
        )
    return own if method is None else method


MOST_STEPS = at_most(2**62, "no stream has more steps")


@constructor(window=MOST_STEPS, method=optional(one_of(*METHODS)))
def make_window_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: Finite,
    window: int,
    *,
    method: str | None = None,
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of the last ``window`` steps.

    ``queryable.read()``, or ``queryable(None)``, returns the noisy sum at any time, and there is no
    horizon. The noise is that of :func:`.make_counter`.

    * ``method="digits"``, the default for Laplace noise: a tree of odd degree for each block of W
      steps [APT24]. An item is in h nodes, where (k^h - 1)/2 >= W.
    * ``method="buffered"``, the default for Gaussian noise: the difference of two prefix sums of a
      factorisation [DMPST24]. One release for each step has noise of ``scale``.
    * ``method="trees"``: two binary trees for each block. An item is in at most log2 W + 1 nodes if
      W is a power of two, and in at most 2 (floor(log2 W) + 1) nodes for any W. It has either
      noise, and draws it only when a query needs it.

    Guarantee: as for :func:`.make_counter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param output_measure: how privacy is measured
    :param scale: scale of the noise of one node, or of one release of a factorisation
    :param window: W, the number of steps in the window
    :param method: one of the names above; the default for the noise if left out
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
    items = integers_of(input_domain)
    shift = items.spread if require_events(input_metric) else items.largest
    largest = max(items.spread, 1)
    scale = check_scale(scale, largest, window=window)
    method = method_for_window(method, is_laplace(output_measure))
    made = PLANS[method](window, scale, output_measure, shift, largest)
    described = "" if method == "trees" else f", {method}"
    name = f"WindowCounter[scale={scale}, window={window}{described}]"
    return made.measurement((input_domain, input_metric), output_measure, _Window, scale, name)


then_window_counter = _native.to_then(make_window_counter)
