"""A tape of outcomes in place of noise: real code runs again for every outcome of its draws.

Code becomes an exact distribution if it calls :meth:`Tape.draw` where it would add noise, and is
deterministic otherwise. The tape raises no exception through the code, because native code may have
called it. After the decided draws, each draw returns its first outcome and is recorded. Then the
code runs again with the next outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import fsum, inf, log, prod
from typing import Any

import numpy as np
from scipy.stats import beta

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from .mechanism import TOLERANCE, Number

Chosen = tuple[int, ...]  # the outcome of each draw
MOST_RUNS = 200_000
DIFFERENT = "a run differs from the one before: it must be deterministic"


def _check_chances(table: tuple[Number, ...]) -> None:
    """Raise unless these are probabilities. Exact ones must add up to exactly 1."""
    if any(type(one) not in (int, float, Fraction) for one in table):
        raise InvalidTypeError(f"chances ({checks.shown(table)}) must be doubles or fractions")
    if float in map(type, table):
        valid = all(0 <= one <= 2 for one in table) and abs(fsum(table) - 1) <= TOLERANCE
    else:
        valid = all(one >= 0 for one in table) and sum(table, Fraction(0)) == 1
    if not valid:
        raise InvalidValueError(
            f"chances ({checks.shown(table)}) must be at least 0 and add up to 1"
        )


class Tape:
    """The draws of a run, and all their outcomes.

    :example:

    >>> from fractions import Fraction
    >>> tape, coin = oc.verify.Tape(), (Fraction(1, 3), Fraction(2, 3))
    >>> for answer, chance, _ in tape.explore(lambda: tape.draw(coin) + tape.draw(coin)):
    ...     print(answer, chance)
    0 1/9
    1 2/9
    1 2/9
    2 4/9
    """

    def __init__(self) -> None:
        self._decided: Chosen = ()
        self._drawn: list[tuple[tuple[Number, ...], int]] | None = None

    def draw(self, chances: Iterable[Number]) -> int:
        """Return the number of an outcome. Call it where noise would be drawn.

        :param chances: probabilities of the outcomes 0, 1, ...: doubles, or exact fractions
        :raises InvalidTypeError, InvalidValueError: if the chances are not probabilities, or if no
            run is explored
        """
        table = checks.read("probabilities", chances=chances)
        if self._drawn is None:
            raise InvalidValueError("draw is called while nothing is explored: use explore")
        _check_chances(table)
        place = len(self._drawn)
        first = next(index for index, one in enumerate(table) if one > 0)
        chosen = self._decided[place] if place < len(self._decided) else first
        if not (chosen < len(table) and table[chosen] > 0):
            raise InvalidValueError(DIFFERENT)
        self._drawn.append((table, chosen))
        return chosen

    @checks.checked(run=checks.function, decided=checks.each("numbers of outcomes", checks.whole))
    def explore(
        self, run: Callable[[], Hashable], decided: Chosen = (), *, most: checks.Count = MOST_RUNS
    ) -> list[tuple[Hashable, Number, Chosen]]:
        """Run code for all outcomes of its draws.

        :param run: starts from a fresh state; deterministic apart from its draws
        :param decided: given outcomes of the first draws
        :param most: largest number of runs
        :return: for each way to draw the other outcomes: the result of ``run``, the probability of
            these outcomes, and all outcomes
        :raises InvalidTypeError, InvalidValueError: naming the argument, or if two runs differ in
            their draws
        """
        found: list[tuple[Hashable, Number, Chosen]] = []
        onward: Chosen | None = tuple(decided)
        known: list[tuple[Number, ...]] = []
        while onward is not None:
            if len(found) == most:
                raise InvalidValueError(f"most ({most}) runs are used up; pass a larger number")
            answer, drawn = self._run(run, onward)
            if [table for table, _ in drawn][: len(known)] != known or len(drawn) < len(decided):
                raise InvalidValueError(DIFFERENT)
            chance = prod(table[chosen] for table, chosen in drawn[len(decided) :])
            found.append((answer, chance, tuple(chosen for _, chosen in drawn)))
            onward = None
            for place in reversed(range(len(decided), len(drawn))):
                table, chosen = drawn[place]
                later = [i for i in range(chosen + 1, len(table)) if table[i] > 0]
                if later:
                    onward = (*(one for _, one in drawn[:place]), later[0])
                    known = [one for one, _ in drawn[: place + 1]]
                    break
        return found

    def _run(
        self, run: Callable[[], Hashable], decided: Chosen
    ) -> tuple[Any, list[tuple[tuple[Number, ...], int]]]:
        if self._drawn is not None:
            raise InvalidValueError("a tape explores one thing at a time")
        self._decided, self._drawn = decided, []
        try:
            answer = run()
            return answer, self._drawn
        finally:
            self._decided, self._drawn = (), None


# A lower bound on the ε of a real pipeline, from runs of a scripted analyst.

Event = tuple[float, bool, int]  # threshold, whether scores are at most it, order of the datasets
GRID = np.linspace(0.0, 1.0, 201)  # quantiles of the scores that are tried as thresholds


@dataclass(frozen=True)
class Audit:
    """A confidence bound from the runs of a scripted analyst.

    :ivar epsilon_lower: lower bound on ε at ``delta``, with the stated confidence
    :ivar delta: at which ε is bounded
    :ivar confidence: probability that the bound holds, for any mechanism
    :ivar runs: number of runs on each dataset
    :ivar event: the event that was counted: scores at least (or at most) a threshold
    """

    epsilon_lower: float
    delta: float
    confidence: float
    runs: int
    event: str

    @checks.checked
    def violates(self, epsilon: checks.Real) -> bool:
        """Whether the runs refute a promise of ``epsilon``."""
        return self.epsilon_lower > epsilon


@checks.checked(
    measurement=checks.function,
    strategy=checks.function,
    n=checks.at_most(10**7, "each run is stored"),
)
def audit(
    measurement: Callable[[Any], Any],
    x: Any,
    x_prime: Any,
    strategy: Callable[[Any], float],
    n: int,
    *,
    delta: checks.Probability = 0.0,
    confidence: checks.Probability = 1 - 1e-9,
    progress: bool = False,
) -> Audit:
    """Run a scripted analyst on two neighbouring datasets, and bound ε from below.

    One half of the runs chooses an event, score >= t or score <= t, and an order of the datasets.
    The other half counts the event. The limits of Clopper and Pearson for its two probabilities
    give ε >= log((P - δ)/Q), with probability at least ``confidence`` if the runs are independent.
    The runs alternate between the datasets. The noise of OpenDP cannot be seeded; seed all other
    randomness of the strategy. Most events with a probability below 0.5 % are not tried.

    :param measurement: a measurement, filter or compositor, called with a dataset
    :param x: a dataset
    :param x_prime: a neighbouring dataset
    :param strategy: maps the result of the measurement, an answer or a queryable, to a score. A
        score is a number, possibly infinite; it is larger if ``x`` is more likely
    :param n: number of runs on each dataset, at least 4
    :param delta: at which ε is bounded
    :param confidence: of the bound
    :param progress: show a bar, if tqdm is installed (extra ``progress``)
    :return: the bound; 0 if the runs show nothing

    :example:

    >>> laplace = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    >>> found = oc.verify.audit(laplace, x=1, x_prime=0, strategy=float, n=2_000)
    >>> found.violates(1.0)
    False
    """
    if n < 4:
        raise InvalidValueError(f"n ({n}) must be at least 4: half of the runs choose an event")
    if not confidence < 1.0:
        raise InvalidValueError(f"confidence ({confidence}) must be below 1")
    runs = [
        [_score(strategy(measurement(data))) for data in (x, x_prime)]
        for _ in checks.counted(range(n), progress, n)
    ]
    scores = [np.array(column) for column in zip(*runs, strict=True)]
    if any(np.isnan(one).any() for one in scores):
        raise InvalidValueError("strategy must return numbers, found nan")
    first, second = [[one[: n // 2] for one in scores], [one[n // 2 :] for one in scores]]
    ranked = np.sort(np.concatenate(first))
    thresholds = np.unique(ranked[(GRID * (len(ranked) - 1)).astype(int)]).tolist()
    event: Event = max(
        product(thresholds, (False, True), (0, 1)),
        key=lambda event: _bound(first, event, delta, 1 - confidence),
    )
    bound = _bound(second, event, delta, 1 - confidence)
    threshold, below, order = event
    likelier = ("x", "x_prime")[order]
    words = f"score {'<=' if below else '>='} {threshold:g}, more likely on {likelier}"
    return Audit(max(0.0, bound), delta, confidence, n, words)


def _score(value: Any) -> float:
    try:
        return float(value)
    except Exception as error:
        raise InvalidTypeError(
            f"strategy must return a number for each result of measurement, found "
            f"{type(value).__name__}"
        ) from error


def _bound(scores: Sequence[Any], event: Event, delta: float, failure: float) -> float:
    """Lower bound on log((P - δ)/Q). Each of the two limits fails with half of ``failure``."""
    (threshold, below, order), runs = event, len(scores[0])
    hits, others = (
        int(np.count_nonzero(one <= threshold if below else one >= threshold))
        for one in (scores[order], scores[1 - order])
    )
    low = float(beta.ppf(failure / 2, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.isf(failure / 2, others + 1, runs - others)) if others < runs else 1.0
    return log((low - delta) / high) if low > delta else -inf
