"""A tape of outcomes in place of noise: real code runs again for every outcome of its draws.

Code becomes an exact distribution if it calls :meth:`Tape.draw` where it would add noise, and is
deterministic otherwise. The tape raises no exception through the code, because native code may have
called it. After the decided draws, each draw returns its first outcome and is recorded. Then the
code runs again with the next outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from math import fsum, prod
from typing import Any

from ...arguments import checks
from ...arguments.checked import Count, checked
from ...arguments.checks import each, function, whole
from ...errors import InvalidTypeError, InvalidValueError
from ..mechanism import TOLERANCE, Number

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

    @checked(run=function, decided=each("numbers of outcomes", whole))
    def explore(
        self, run: Callable[[], Hashable], decided: Chosen = (), *, most: Count = MOST_RUNS
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
