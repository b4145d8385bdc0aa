"""Likelihood ratios as integer numbers of steps, so that equal ratios are recognised."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log

from ..mechanism import FiniteMechanism

Ratio = tuple[int, ...]
_DENOMINATORS = 60  # losses whose quotient has at most this denominator share a step
_EXACT = 1e-13  # relative error up to which a quotient counts as rational
_ZERO = 1e-14  # losses up to this count as 0
_ROUNDING = 4e-16  # absolute error of the logarithm of a quotient of probabilities


class Lattice:
    """A basis of steps for all losses log(P(a)/Q(a)) of some mechanisms.

    Losses with a rational quotient are multiples of one step; each other loss is its own step. A
    ratio is a count for each step, so it is exact and does not depend on the order of the launches.

    :ivar error: largest difference between the loss of one answer and its steps
    """

    def __init__(self, mechanisms: Sequence[FiniteMechanism]) -> None:
        losses = sorted(
            {abs(log(p / q)) for one in mechanisms for p, q in one.pairs if p > 0.0 < q}
        )
        self.steps: list[float] = []
        for loss in losses:
            if loss > _ZERO and self._multiple(loss) is None:
                self._add(loss)
        self.origin: Ratio = (0,) * len(self.steps)
        self.error = max((self._error(loss) for loss in losses), default=0.0)

    def _error(self, loss: float) -> float:
        found = self._multiple(loss) if loss > _ZERO else None
        rest = loss if found is None else abs(loss - found[1] * self.steps[found[0]])
        return rest + 2 * _ROUNDING * (1 + loss)

    def _add(self, loss: float) -> None:
        for index, step in enumerate(self.steps):
            quotient = Fraction(loss / step).limit_denominator(_DENOMINATORS)
            if quotient and abs(loss - float(quotient) * step) <= _EXACT * loss + _ROUNDING:
                self.steps[index] = step / quotient.denominator
                return
        self.steps.append(loss)

    def _multiple(self, loss: float) -> tuple[int, int] | None:
        """Index of a step that divides ``loss``, above 0, and the multiple; None if none does."""
        for index, step in enumerate(self.steps):
            number = round(loss / step)
            if number and abs(loss - number * step) <= _EXACT * loss + _ROUNDING:
                return index, number
        return None

    def answers(self, mechanism: FiniteMechanism) -> list[tuple[float, float, Ratio | None]]:
        """For each answer P, Q and the steps of log(P/Q).

        The steps are None if only Q is 0, and the origin if P is 0.
        """
        return [(p, q, None if q == 0.0 < p else self._steps(p, q)) for p, q in mechanism.pairs]

    def _steps(self, p: float, q: float) -> Ratio:
        steps = [0] * len(self.steps)
        loss = log(p / q) if p > 0.0 else 0.0
        if abs(loss) > _ZERO:
            found = self._multiple(abs(loss))
            assert found is not None
            index, number = found
            steps[index] = number if loss > 0 else -number
        return tuple(steps)

    def after(self, ratio: Ratio, steps: Ratio) -> Ratio:
        """The ratio after more steps."""
        return tuple(a + b for a, b in zip(ratio, steps, strict=True))

    def log(self, ratio: Ratio) -> float:
        """Logarithm of a ratio."""
        return sum(number * step for number, step in zip(ratio, self.steps, strict=True))
