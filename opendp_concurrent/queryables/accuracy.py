"""What a mechanism says of its error before it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, log1p

from ..arguments.checks import at_most, count, probability
from ..errors import InvalidTypeError, InvalidValueError

LEAST = 1e-300  # smaller probabilities have no double for their logarithm's argument
_MOST = at_most(2**62, "no mechanism releases more")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The error of a mechanism's answers, with confidence.

    :ivar noise: the distribution of the noise, such as ``"Laplace"``
    :ivar scale: its scale, in units of the answers; None if there are several
    :ivar bound: maps β and a number of answers to an error that all of them are within, with
        probability at least 1 - β
    :ivar answers: the number of answers that one release has; None if the caller must say
    """

    noise: str
    scale: float | None
    bound: Callable[[float, int], float]
    answers: int | None = None

    def at(self, beta: float, answers: int | None) -> float:
        """Return the bound, for arguments that are checked."""
        failing = probability(beta=beta)
        if not LEAST <= failing < 1.0:
            raise InvalidValueError(f"beta ({beta}) must be at least 1e-300 and below 1")
        if answers is None:
            answers = self.answers
        if answers is None:
            raise InvalidTypeError(
                "answers must be given: the number of answers that are all within the error, such "
                "as the number of queries, coordinates or steps"
            )
        return self.bound(failing, count(answers=_MOST(answers=answers)))


def of_one(bound: Callable[[float], float]) -> Callable[[float, int], float]:
    """Return the bound of independent answers, from that of one at the probability that it fails.

    All are within with probability 1 - β if each fails with probability 1 - (1-β)^(1/answers).
    """
    return lambda beta, answers: bound(-expm1(log1p(-beta) / answers))
