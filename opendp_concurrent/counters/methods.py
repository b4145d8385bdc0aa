"""Methods of counters: for each, its state before the first step, and its privacy loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ldexp, sqrt
from typing import Any

from opendp.mod import Domain, Measure, Metric

from ..arguments import checks
from ..continual.mechanism import ContinualMachine, continual
from ..continual.stream import whole_distance
from ..errors import InvalidValueError
from ..exact.participations import ONCE, Participations
from ..measurements.composed import composed
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import READ
from ..types import Distance, Loss
from .digits import DigitsPrefix, best_digits
from .dyadic import AllLeaves, BalancedLeaves, Leaves
from .epochs import EpochsPrefix
from .factors.buffered import BufferedFactor, buffered, endless
from .factors.factor import grid_bits, sensitivity
from .factors.factor_error import mean_square, parameters
from .factors.factor_prefix import FactorPrefix
from .factors.power import MOST_STEPS, PARTS, PowerFactor, square_root
from .factors.power_error import best_power, mean_row_square
from .node_noise import LARGEST_SUM, NodeNoise, is_laplace, noise_loss
from .prefix import make_prefix
from .spread import (
    SpreadOf,
    accuracy_of_steps,
    of_digits,
    of_doubling,
    of_epochs,
    of_factor,
    of_nodes,
    of_tree,
)

TREES: dict[str, Callable[[int], Leaves]] = {"tree": AllLeaves, "smooth": BalancedLeaves}
LAPLACE, GAUSSIAN = ("digits",), ("buffered", "square_root", "banded")
BANDED = GAUSSIAN[1:]
METHODS = (*TREES, *LAPLACE, *GAUSSIAN)
ENDLESS = ("tree", "digits", "buffered")  # methods that need no horizon
EXACT_BITS = 53
ENDLESS_STEPS = 2**50  # rounding at each of them costs less than 1e-4 of the loss


@dataclass(frozen=True)
class Plan:
    """A method with its parameters.

    :ivar method: its name
    :ivar start: returns the state before the first step
    :ivar loss: from a number of events, and of counts that each of them moves, to the privacy loss
    :ivar horizon: largest number of steps; None if it is unlimited
    :ivar spread: from a number of steps to the noise in their sums; None if no bound is known
    """

    method: str
    start: Callable[[], Any]
    loss: Callable[[int, int], Any]
    horizon: int | None
    spread: SpreadOf | None = None

    def measurement(
        self,
        space: tuple[Domain, Metric],
        output_measure: Measure,
        machine: Callable[[Any], ContinualMachine],
        scale: float,
        name: str,
        *,
        moved: int = 1,
        sums: int = 1,
    ) -> ConcurrentMeasurement:
        """Return the measurement that runs this method.

        :param machine: makes the state machine of a state
        :param moved: counts that each event moves
        :param sums: counts at each step
        """

        def privacy_map(d_in: Distance) -> Loss:
            return self.loss(whole_distance(space[1], d_in), moved)

        privacy_map(1)  # raises for an unsupported measure
        laplace = is_laplace(output_measure)
        accuracy = accuracy_of_steps(self.spread, laplace, scale, self.horizon, sums)
        return continual(
            space,
            output_measure,
            lambda: machine(self.start()),
            privacy_map,
            self.horizon,
            name,
            READ,
            accuracy,
        )


def most_steps(largest: int) -> int:
    """Return the largest number of steps of a factor without a horizon."""
    return min(ENDLESS_STEPS, LARGEST_SUM // largest)


def leaves_for(method: str, horizon: int | None) -> tuple[Callable[[int], Leaves], int]:
    """Return the order of leaves, and the nodes per item; 1 without a horizon (doubling)."""
    if horizon is None:
        return AllLeaves, 1
    return TREES[method], TREES[method](checks.count(horizon=horizon)).height


def method_for(
    method: str | None,
    horizon: int | None,
    measure: Measure,
    unit: Participations = ONCE,
) -> str:
    """Return the method, or the default for the noise of this measure; raise if they do not fit."""
    laplace = is_laplace(measure)
    if method is None:
        return "digits" if laplace else _with_less_error(horizon, unit)
    if method not in METHODS:
        raise InvalidValueError(f"method ({method!r}) must be one of {', '.join(METHODS)}")
    if method in (GAUSSIAN if laplace else LAPLACE):
        needs, instead = ("Gaussian", "zCDP") if laplace else ("Laplace", "pure DP")
        raise InvalidValueError(
            f"method ({method!r}) needs {needs} noise; build for {instead}, and use cast"
        )
    if horizon is None and method not in ENDLESS:
        raise InvalidValueError(f"method ({method!r}) needs a horizon; pass horizon")
    if horizon is not None and method in BANDED and not horizon <= MOST_STEPS:
        raise InvalidValueError(
            f"horizon ({horizon}) must be at most 2**20 for method {method!r}, whose time and "
            "memory grow with it; use 'buffered'"
        )
    return method


def _with_less_error(horizon: int | None, unit: Participations) -> str:
    """Return the method for Gaussian noise with the smaller error over the horizon."""
    if horizon is None or horizon > MOST_STEPS or unit.within(horizon) == 1:
        return "buffered"
    return min(
        ("buffered", "banded"),
        key=lambda name: mean_error(factor_for(name, horizon, unit), horizon, unit),
    )


def mean_error(factor: BufferedFactor | PowerFactor, steps: int, unit: Participations) -> float:
    """Return the root mean square error over the first steps, at ρ = 1/2 for a unit."""
    if isinstance(factor, PowerFactor):
        rows = mean_row_square(factor, steps)
    else:
        rows = mean_square(*parameters(factor.buffers), steps)
    return sqrt(factor.norm_squared(EXACT_BITS, unit) * rows) * 2.0**-EXACT_BITS


def plan(
    method: str | None,
    horizon: int | None,
    scale: float,
    measure: Measure,
    *,
    shift: int,
    largest: int,
    unit: Participations | None = None,
) -> Plan:
    """Return a method with its parameters.

    :param shift: largest move of a count by one event
    :param largest: largest size of an item
    :param unit: what a unit contributes, if distances are numbers of units and not of events
    """
    unit = ONCE if unit is None else unit
    method, laplace = method_for(method, horizon, measure, unit), is_laplace(measure)

    def tree_loss(height: int) -> Callable[[int, int], Any]:
        items = unit.most if horizon is None else unit.within(horizon)
        return nodes_loss(shift, height, scale, measure, items)

    if method in TREES:
        leaves, height = leaves_for(method, horizon)
        return Plan(
            method,
            lambda: make_prefix(leaves, horizon, scale, laplace),
            tree_loss(height),
            LARGEST_SUM // largest if horizon is None else horizon,
            of_doubling(scale, laplace)
            if horizon is None
            else of_tree(scale)
            if method == "tree"
            else of_nodes(scale, height),
        )
    if method == "digits" and horizon is None:
        return Plan(
            method,
            lambda: EpochsPrefix(scale),
            tree_loss(1),
            LARGEST_SUM // largest,
            of_epochs(scale),
        )
    if method == "digits":
        assert horizon is not None
        digits = best_digits(horizon)
        return Plan(
            method,
            lambda: DigitsPrefix(digits, NodeNoise(scale, laplace)),
            tree_loss(digits.height),
            horizon,
            of_digits(scale, digits),
        )
    steps = most_steps(largest) if horizon is None else horizon
    factor = endless(steps) if horizon is None else factor_for(method, steps, unit)
    return factor_plan(
        factor,
        method,
        scale,
        measure,
        shift=shift,
        largest=largest,
        unit=unit,
        state=lambda prefix, bits: prefix,
        spread=lambda bits: of_factor(factor, scale, bits),
    )


def factor_for(method: str, horizon: int, unit: Participations) -> BufferedFactor | PowerFactor:
    """Return the factor of a method, for a horizon."""
    if method == "buffered":
        return buffered(horizon)
    return best_power(horizon, unit) if method == "banded" else square_root(horizon)


def factor_plan(
    factor: BufferedFactor | PowerFactor,
    method: str,
    scale: float,
    measure: Measure,
    *,
    shift: int,
    largest: int,
    unit: Participations,
    state: Callable[[FactorPrefix, int], Any],
    spread: Callable[[int], SpreadOf],
) -> Plan:
    """Return a factorisation with its parameters.

    :param state: from a noisy prefix sum and the bits of its grid to the state of the mechanism
    :param spread: from the bits of the grid
    """
    bits = grid_bits(factor, scale, largest)
    noise_scale, moved = ldexp(scale, bits), sensitivity(factor, bits, shift, unit)
    if method == "banded":
        assert isinstance(factor, PowerFactor)
        method = f"banded, {factor.bands} bands of power {factor.power}/{PARTS}"
    return Plan(
        method,
        lambda: state(FactorPrefix(factor, bits, NodeNoise(noise_scale, laplace=False)), bits),
        lambda units, parts: factor_loss(units, moved, noise_scale, measure, parts),
        factor.horizon,
        spread(bits),
    )


def nodes_loss(
    shift: int, height: int, scale: float, measure: Measure, items: int
) -> Callable[[int, int], Any]:
    """Return the loss of nodes by units of so many items, and by the numbers that each moves."""
    return lambda units, parts: counter_loss(units * items, shift, height, scale, measure, parts)


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


def factor_loss(events: int, moved: int, scale: float, measure: Measure, parts: int) -> Any:
    """Return the privacy loss of ``events`` events, each moving all releases by ``moved`` in L2.

    The loss depends on the move over the scale only. Both are halved, and the move rounded up,
    until it is a double.
    """
    if events == 0:
        return composed(measure, [])
    far = events * moved
    halved = max(0, far.bit_length() - EXACT_BITS)
    loss = noise_loss(ldexp(scale, -halved), -(-far >> halved), measure)
    return composed(measure, [(loss, parts)])


def check_scale(scale: Any, largest: int, **steps: int | None) -> float:
    """Return the scale, or raise unless sums and noise stay far from integer overflow.

    :param largest: largest move of an item
    :param steps: largest number of steps, by the argument's name; None if unlimited
    """
    ((name, count),) = steps.items()
    double = checks.finite(scale=scale)
    if not 0.0 < double <= 2.0**50:
        raise InvalidValueError(
            f"scale ({scale}) must be above 0 and at most 2**50; pass a number in (0, 2**50]"
        )
    if count is not None and not count * largest <= LARGEST_SUM:
        raise InvalidValueError(f"{name} ({count}) times the largest item must be at most 2**61")
    return double
