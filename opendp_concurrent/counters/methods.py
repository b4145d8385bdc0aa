"""Methods of counters: for each, its state before the first step, and its privacy loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ldexp
from typing import Any

from opendp.mod import Domain, Measure, Metric

from ..arguments import checks
from ..continual.mechanism import ContinualMachine, continual
from ..continual.stream import whole_distance
from ..errors import InvalidValueError
from ..measurements.composed import composed
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import READ
from ..types import Distance, Loss
from .digits import DigitsPrefix, best_digits
from .dyadic import AllLeaves, BalancedLeaves, Leaves
from .epochs import EpochsPrefix
from .factors.buffered import BufferedFactor, buffered, endless
from .factors.factor import Factor, grid_bits, sensitivity
from .factors.factor_prefix import FactorPrefix
from .factors.square_root import MOST_STEPS, SquareRootFactor
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
)

TREES: dict[str, Callable[[int], Leaves]] = {"tree": AllLeaves, "smooth": BalancedLeaves}
LAPLACE, GAUSSIAN = ("digits",), ("buffered", "square_root")
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


def method_for(method: str | None, horizon: int | None, measure: Measure) -> str:
    """Return the method, or the default for the noise of this measure; raise if they do not fit."""
    laplace = is_laplace(measure)
    if method is None:
        if not laplace:
            return "buffered"
        return "digits"
    if method not in METHODS:
        raise InvalidValueError(f"method ({method!r}) must be one of {', '.join(METHODS)}")
    if method in (GAUSSIAN if laplace else LAPLACE):
        needs, instead = ("Gaussian", "zCDP") if laplace else ("Laplace", "pure DP")
        raise InvalidValueError(
            f"method ({method!r}) needs {needs} noise; build for {instead}, and use cast"
        )
    if horizon is None and method not in ENDLESS:
        raise InvalidValueError(f"method ({method!r}) needs a horizon; pass horizon")
    if horizon is not None and method == "square_root" and not horizon <= MOST_STEPS:
        raise InvalidValueError(
            f"horizon ({horizon}) must be at most 2**20 for method 'square_root', whose time and "
            "memory grow with it; use 'buffered'"
        )
    return method


def plan(
    method: str | None,
    horizon: int | None,
    scale: float,
    measure: Measure,
    *,
    shift: int,
    largest: int,
) -> Plan:
    """Return a method with its parameters.

    :param shift: largest move of a count by one event
    :param largest: largest size of an item
    """
    method, laplace = method_for(method, horizon, measure), is_laplace(measure)
    if method in TREES:
        leaves, height = leaves_for(method, horizon)
        return Plan(
            method,
            lambda: make_prefix(leaves, horizon, scale, laplace),
            lambda events, parts: counter_loss(events, shift, height, scale, measure, parts),
            LARGEST_SUM // largest if horizon is None else horizon,
            of_doubling(scale, laplace)
            if horizon is None
            else of_nodes(scale, lambda answers: min(height, answers.bit_length()))
            if method == "tree"
            else of_nodes(scale, lambda _: height),
        )
    if method == "digits" and horizon is None:
        return Plan(
            method,
            lambda: EpochsPrefix(scale),
            lambda events, parts: counter_loss(events, shift, 1, scale, measure, parts),
            LARGEST_SUM // largest,
            of_epochs(scale),
        )
    if method == "digits":
        assert horizon is not None
        digits = best_digits(horizon)
        return Plan(
            method,
            lambda: DigitsPrefix(digits, NodeNoise(scale, laplace)),
            lambda events, parts: counter_loss(events, shift, digits.height, scale, measure, parts),
            horizon,
            of_nodes(scale, lambda _: of_digits(digits)),
        )
    factor: Factor
    if horizon is None:
        factor = endless(most_steps(largest))
    elif method == "buffered":
        factor = buffered(horizon)
    else:
        factor = SquareRootFactor(horizon, largest)
    bits = grid_bits(factor, scale, largest)
    noise_scale = ldexp(scale, bits)
    moved = sensitivity(factor, bits, shift)
    return Plan(
        method,
        lambda: FactorPrefix(factor, bits, NodeNoise(noise_scale, laplace)),
        lambda events, parts: factor_loss(events, moved, noise_scale, measure, parts),
        factor.horizon,
        of_factor(factor.buffers, scale, bits) if isinstance(factor, BufferedFactor) else None,
    )


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
