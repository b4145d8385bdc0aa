"""Measures whose distance is one number or a pair of numbers, and whose losses add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf
from types import ModuleType

from ..arguments import checks
from ..exact.decimals import down
from ..exact.rounding import split
from ..sums.accumulator import Accumulator
from ..sums.pair_sum import PairSum
from ..sums.scalar_sum import ScalarSum
from ..types import Argument, DpEvent, Json, Loss
from .joins import join_numbers
from .measure import CompositionMeasure


class NumberMeasure(CompositionMeasure):
    """A measure whose distance is one number in [0, inf], and whose losses add up.

    A class below it says ``kind``, ``reason``, ``distance_form`` and ``opendp``. The author has a
    proof that the sum of adaptively chosen losses bounds the loss of sequential children. With a
    proof for concurrent children, the class sets ``composability`` to ``Composability.CONCURRENT``.

    :example:

    >>> from opendp_concurrent.measures import NumberMeasure, composition_measure
    >>> isinstance(composition_measure(dp.max_divergence()), NumberMeasure)
    True
    """

    __slots__ = ()
    zero = 0.0
    one_number = True

    def validate(self, name: str, value: Argument) -> float:
        if type(value) is float and value >= 0.0:
            return value + 0.0  # -0.0 becomes 0.0
        return checks.non_negative(**{name: value})

    def validate_budget(self, name: str, value: Argument) -> float:
        if type(value) is float and 0.0 <= value < inf:
            return value + 0.0
        return checks.finite(**{name: down(value)})

    def at_most(self, left: float, right: float) -> bool:
        return left <= right

    def split(self, d_out: float, weights: list[Fraction]) -> list[Loss]:
        """Shares that add up to at most ``d_out``."""
        return list(split(d_out, weights))

    def line(self, d_out: float, delta: float) -> tuple[float, Callable[[float, Fraction], Loss]]:
        """All distances."""
        return d_out, _part

    def empty(self) -> Accumulator:
        return ScalarSum()

    def read_sum(self, record: Json) -> Accumulator:
        return ScalarSum.from_record(record)

    def join(self, losses: list[list[float]], parts: Sequence[int]) -> float:
        return join_numbers(losses, parts, self.empty())

    def event(self, dp_event: ModuleType, d_mid: Loss) -> DpEvent:
        """The event of an infinite loss; that of a finite one is ``finite_event``."""
        if d_mid == float("inf"):
            return dp_event.NonPrivateDpEvent()
        return dp_event.NoOpDpEvent() if d_mid == 0.0 else self.finite_event(dp_event, d_mid)

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> DpEvent:
        """The event of a loss above 0."""
        return dp_event.UnsupportedDpEvent()

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, (int, float))

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        return checks.non_negative(**{of: loss})


class PairMeasure(CompositionMeasure):
    """A measure whose distance is a loss and a probability of failure, each of which adds up."""

    __slots__ = ()
    zero = (0.0, 0.0)

    def validate(self, name: str, value: Argument) -> tuple[float, float]:
        """Two doubles in [0, inf]; a second one above 1 promises nothing, but is a bound."""
        first, second = checks.pair(**{name: value})
        return (
            checks.non_negative(**{f"{name}[0]": first}),
            checks.non_negative(**{f"{name}[1]": second}),
        )

    def validate_budget(self, name: str, value: Argument) -> tuple[float, float]:
        """A double in [0, inf) and a probability."""
        first, second = checks.pair(**{name: value})
        return (
            checks.finite(**{f"{name}[0]": down(first)}),
            checks.probability(**{f"{name}[1]": down(second)}),
        )

    def at_most(self, left: tuple[float, float], right: tuple[float, float]) -> bool:
        """The product order; pairs may be incomparable."""
        return left[0] <= right[0] and left[1] <= right[1]

    def split(self, d_out: tuple[float, float], weights: list[Fraction]) -> list[Loss]:
        """Shares that add up to at most ``d_out``, component by component."""
        return list(zip(*(split(part, weights) for part in d_out), strict=True))

    def line(
        self, d_out: tuple[float, float], delta: float
    ) -> tuple[float, Callable[[float, Fraction], Loss]]:
        """The distances that have this ``delta``."""
        return d_out[0], lambda top, part: (_part(top, part), delta)

    def empty(self) -> Accumulator:
        return PairSum()

    def read_sum(self, record: Json) -> Accumulator:
        return PairSum.from_record(record)

    def join(
        self, losses: list[list[tuple[float, float]]], parts: Sequence[int]
    ) -> tuple[float, float]:
        first = [[loss[0] for loss in row] for row in losses]
        second = [[loss[1] for loss in row] for row in losses]
        return join_numbers(first, parts), join_numbers(second, parts)

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, tuple)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        first, _ = checks.epsilon_delta(**{of: loss})
        return first

    @classmethod
    def symbol(cls, loss: Loss, order: float | None) -> str:
        return "ε"


def _part(top: float, part: Fraction) -> float:
    """Return a part of a number, rounded down."""
    first, _ = split(top, [part, 1 - part])
    return first
