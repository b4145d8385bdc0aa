"""Sliding-window counters: the noisy sum of the last W steps."""

from __future__ import annotations

from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Finite
from ..arguments.checks import at_most
from ..combinators.constructor import constructor
from ..continual.stream import integers_of, require_events
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import restore_exactly
from ..types import ItemSequence, Json
from .counter import Counter, whole_numbers
from .factors.buffered import windowed
from .factors.window_factor import FactorWindow
from .methods import Plan, check_scale, factor_plan, most_steps, nodes_loss
from .node_noise import NodeNoise, is_laplace
from .spread import of_window_digits
from .window_digits import DigitsWindow, best_window_digits


class _Window(Counter):
    """State machine of a window."""

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        for item in whole_numbers(items).tolist():
            self.update(item)

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        restore_exactly(self._state, record)


MOST_STEPS = at_most(2**62, "no stream has more steps")


def _plan(window: int, scale: float, measure: Measure, shift: int, largest: int) -> Plan:
    if is_laplace(measure):
        digits = best_window_digits(window)
        return Plan(
            lambda: DigitsWindow(window, digits, NodeNoise(scale, laplace=True)),
            nodes_loss(shift, digits.height, scale, measure),
            None,
            of_window_digits(scale, digits, window),
        )
    return factor_plan(
        windowed(window, most_steps(largest)),
        scale,
        measure,
        shift=shift,
        largest=largest,
        window=window,
        state=lambda prefix: FactorWindow(window, prefix),
    )


@constructor(window=MOST_STEPS)
def make_window_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: Finite,
    window: int,
) -> ConcurrentMeasurement:
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
    items = integers_of(input_domain)
    shift = items.spread if require_events(input_metric) else items.largest
    largest = max(items.spread, 1)
    scale = check_scale(scale, largest, window=window)
    made = _plan(window, scale, output_measure, shift, largest)
    name = f"WindowCounter[scale={scale}, window={window}]"
    return made.measurement((input_domain, input_metric), output_measure, _Window, scale, name)


then_window_counter = _native.to_then(make_window_counter)
