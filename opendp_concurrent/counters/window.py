"""Sliding-window counters: the noisy sum of the last W steps."""

from __future__ import annotations

from math import ldexp, sqrt
from typing import Protocol

from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Finite
from ..arguments.checks import at_most, one_of, optional
from ..combinators.constructor import constructor
from ..continual.stream import Contributed, changes_of, integers_of, unit_of, with_participations
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.participations import ONCE, Participations
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import restore_exactly
from ..types import Item, ItemSequence, Json, Query
from .counter import whole_numbers
from .factors.buffered import BufferedFactor, windowed
from .factors.power import PowerFactor
from .factors.power_error import best_power
from .factors.window_factor import FactorWindow
from .methods import (
    ENDLESS_STEPS,
    EXACT_BITS,
    Plan,
    check_scale,
    factor_plan,
    most_steps,
    nodes_loss,
)
from .node_noise import NodeNoise, is_laplace
from .spread import of_factor, of_window_digits, of_window_trees, squared_row
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


def _trees(steps: int, scale: float, measure: Measure, shift: int, unit: Participations) -> Plan:
    height, laplace = nodes_of(steps), is_laplace(measure)
    return Plan(
        "trees",
        lambda: TreesWindow(steps, NodeNoise(scale, laplace)),
        nodes_loss(shift, height, scale, measure, unit.most),
        None,
        of_window_trees(scale, steps),
    )


def _digits(steps: int, scale: float, measure: Measure, shift: int, unit: Participations) -> Plan:
    digits = best_window_digits(steps)
    return Plan(
        "digits",
        lambda: DigitsWindow(steps, digits, NodeNoise(scale, True)),
        nodes_loss(shift, digits.height, scale, measure, unit.most),
        None,
        of_window_digits(scale, digits, steps),
    )


PLANS = {"trees": _trees, "digits": _digits}
METHODS = (*PLANS, "buffered", "banded")


def factor_of_window(
    method: str, window: int, steps: int, unit: Participations
) -> BufferedFactor | PowerFactor:
    """Return the factor of a method, for streams of so many steps."""
    return windowed(window, steps) if method == "buffered" else best_power(steps, unit, window)


def method_for_window(
    method: str | None, window: int, laplace: bool, unit: Participations = ONCE
) -> str:
    """Return the method, or the default for the noise; raise if they do not fit."""
    if method is None and not laplace:
        names = ("buffered", "banded") if unit.most > 1 else ("buffered",)
        return min(names, key=lambda name: window_error(name, window, unit))
    if method not in (None, "trees") and (method == "digits") != laplace:
        needs, instead = ("Gaussian", "zCDP") if laplace else ("Laplace", "pure DP")
        raise InvalidValueError(
            f"method ({method!r}) needs {needs} noise; build for {instead}, and use cast"
        )
    return "digits" if method is None else method


def window_error(method: str, window: int, unit: Participations) -> float:
    """Return the root mean square error late in a stream, at ρ = 1/2 for a unit."""
    factor = factor_of_window(method, window, ENDLESS_STEPS, unit)
    norm = ldexp(sqrt(factor.norm_squared(EXACT_BITS, unit)), -EXACT_BITS)
    return norm * sqrt(squared_row(factor, window, window))


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
    participations: Contributed | None = None,
    separation: Contributed = 1,
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of the last ``window`` steps.

    ``queryable.read()``, or ``queryable(None)``, returns the noisy sum at any time, and there is no
    horizon. The noise is that of :func:`.make_counter`.

    * ``method="digits"``, the default for Laplace noise: a tree of odd degree for each block of W
      steps [APT24]. An item is in h nodes, where (k^h - 1)/2 >= W.
    * ``method="buffered"``, the default for Gaussian noise: the difference of two prefix sums of a
      factorisation [DMPST24]. One release for each step has noise of ``scale``.
    * ``method="banded"``: the same with a power of the prefix sums, with few bands. The default
      with ``participations``, where its error is smaller.
    * ``method="trees"``: two binary trees for each block. An item is in at most log2 W + 1 nodes if
      W is a power of two, and in at most 2 (floor(log2 W) + 1) nodes for any W. It has either
      noise, and draws it only when a query needs it.

    Guarantee: as for :func:`.make_counter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: as in :func:`.make_counter`
    :param output_measure: how privacy is measured
    :param scale: scale of the noise of one node, or of one release of a factorisation
    :param window: W, the number of steps in the window
    :param method: one of the names above; the default for the noise if left out
    :param participations: as in :func:`.make_counter`
    :param separation: as in :func:`.make_counter`
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
    input_metric = with_participations(input_metric, participations, separation)
    shift = items.spread if changes_of(input_metric) else items.largest
    largest, unit = max(items.spread, 1), unit_of(input_metric) or ONCE
    scale = check_scale(scale, largest, window=window)
    method = method_for_window(method, window, is_laplace(output_measure), unit)
    if method in PLANS:
        made = PLANS[method](window, scale, output_measure, shift, unit)
    else:
        factor = factor_of_window(method, window, most_steps(largest), unit)
        made = factor_plan(
            factor,
            method,
            scale,
            output_measure,
            shift=shift,
            largest=largest,
            unit=unit,
            state=lambda prefix, bits: FactorWindow(window, prefix, bits),
            spread=lambda bits: of_factor(factor, scale, bits, window),
        )
    described = "" if method == "trees" else f", {made.method}"
    name = f"WindowCounter[scale={scale}, window={window}{described}]"
    return made.measurement((input_domain, input_metric), output_measure, _Window, scale, name)


then_window_counter = _native.to_then(make_window_counter)
