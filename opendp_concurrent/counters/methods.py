"""Methods of counters: for each noise, the state before the first step, and the privacy loss."""

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
from .epochs import EpochsPrefix
from .factors.buffered import BufferedFactor, buffered, endless
from .factors.factor_prefix import FactorPrefix
from .node_noise import LARGEST_SUM, NodeNoise, is_laplace, noise_loss
from .spread import SpreadOf, accuracy_of_steps, of_digits, of_epochs, of_factor

EXACT_BITS = 53
ENDLESS_STEPS = 2**50  # rounding at each of them costs less than 1e-4 of the loss


@dataclass(frozen=True)
class Plan:
    """A method with its parameters.

    :ivar start: returns the state before the first step
    :ivar loss: from a number of events, and of counts that each of them moves, to the privacy loss
    :ivar horizon: largest number of steps; None if it is unlimited
    :ivar spread: from a number of steps to the noise in their sums
    """

    start: Callable[[], Any]
    loss: Callable[[int, int], Any]
    horizon: int | None
    spread: SpreadOf

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


def plan(horizon: int | None, scale: float, measure: Measure, *, shift: int, largest: int) -> Plan:
    """Return the method for the noise of a measure.

    :param shift: largest move of a count by one event
    :param largest: largest size of an item
    """
    if not is_laplace(measure):
        factor = endless(most_steps(largest)) if horizon is None else buffered(horizon)
        return factor_plan(factor, scale, measure, shift=shift, largest=largest)
    if horizon is None:
        return Plan(
            lambda: EpochsPrefix(scale),
            nodes_loss(shift, 1, scale, measure),
            LARGEST_SUM // largest,
            of_epochs(scale),
        )
    digits = best_digits(horizon)
    return Plan(
        lambda: DigitsPrefix(digits, NodeNoise(scale, laplace=True)),
        nodes_loss(shift, digits.height, scale, measure),
        horizon,
        of_digits(scale, digits),
    )


def factor_plan(
    factor: BufferedFactor,
    scale: float,
    measure: Measure,
    *,
    shift: int,
    largest: int,
    window: int | None = None,
    state: Callable[[FactorPrefix], Any] = lambda prefix: prefix,
) -> Plan:
    """Return a factorisation with its parameters.

    :param window: number of the last steps that are summed; all if left out
    :param state: from a noisy prefix sum to the state of the mechanism
    """
    bits = factor.grid_bits(scale, largest)
    noise_scale, moved = ldexp(scale, bits), factor.sensitivity(bits, shift)
    return Plan(
        lambda: state(FactorPrefix(factor, bits, NodeNoise(noise_scale, laplace=False))),
        lambda events, parts: factor_loss(events, moved, noise_scale, measure, parts),
        factor.horizon,
        of_factor(factor, scale, bits, window),
    )


def nodes_loss(
    shift: int, height: int, scale: float, measure: Measure
) -> Callable[[int, int], Any]:
    """Return the loss of a tree by events, and by the numbers that each moves by ``shift``.

    An event is in at most one node of each of ``height`` levels. Several events in one node move it
    by their sum, and ε is proportional to the shift.
    """

    def loss(events: int, parts: int) -> Any:
        if events == 0:
            return composed(measure, [])
        return noise_loss(scale, events * shift * height * parts, measure)

    return loss


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
