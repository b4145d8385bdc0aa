"""A tape of outcomes in the place of noise: real code is run again on every outcome of its draws.

Code that calls :meth:`Tape.draw` where it would add noise, and is deterministic otherwise, becomes
an exact law. Nothing is raised through the code, which may be called from native calls: beyond what
was decided, a draw is answered with its first outcome and noted, and the code is run again with
the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from math import fsum
from typing import Any

from ... import checks
from ...checks import checked, count, function
from ...errors import InvalidTypeError, InvalidValueError
from ..mechanism import TOLERANCE, Number

Chosen = tuple[int, ...]  # which outcome each draw had
MOST_RUNS = 200_000


def numbers_of_outcomes(**argument: Any) -> Chosen:
    """Return the outcomes of the first draws, read once, or raise."""
    ((name, _),) = argument.items()
    found = checks.elements("numbers of outcomes", **argument)
    return tuple(checks.whole(**{f"{name}[{index}]": one}) for index, one in enumerate(found))


def _check_law(table: tuple[Number, ...]) -> None:
    """Raise unless these are probabilities; exact ones must add up to exactly 1."""
    if any(type(one) not in (int, float, Fraction) for one in table):
        raise InvalidTypeError(f"chances ({checks.shown(table)}) must be doubles or fractions")
    if float in map(type, table):
        whole = all(0 <= one <= 2 for one in table) and abs(fsum(table) - 1) <= TOLERANCE
    else:
        whole = all(one >= 0 for one in table) and sum(table, Fraction(0)) == 1
    if not whole:
        raise InvalidValueError(
            f"chances ({checks.shown(table)}) must be at least 0 and add up to 1"
        )


class Tape:
    """What is drawn in one run, and what might have been.

    :example:

    >>> from fractions import Fraction
    >>> from opendp_concurrent import verify
    >>> tape, coin = verify.Tape(), (Fraction(1, 3), Fraction(2, 3))
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
        """The number of an outcome; call it where noise would be drawn.

        :param chances: of the outcomes 0, 1, ...: doubles, or exact fractions
        :raises InvalidTypeError, InvalidValueError: if they are no probabilities, or if nothing is
            explored
        """
        table = checks.read("probabilities", chances=chances)
        if self._drawn is None:
            raise InvalidValueError("draw is called while nothing is explored: use explore")
        _check_law(table)
        place = len(self._drawn)
        first = next(index for index, one in enumerate(table) if one > 0)
        chosen = self._decided[place] if place < len(self._decided) else first
        if not (chosen < len(table) and table[chosen] > 0):
            raise InvalidValueError("a run differs from the one before: it must be deterministic")
        self._drawn.append((table, chosen))
        return chosen

    @checked(run=function, decided=numbers_of_outcomes, most=count)
    def explore(
        self, run: Callable[[], Hashable], decided: Chosen = (), *, most: int = MOST_RUNS
    ) -> list[tuple[Hashable, Number, Chosen]]:
        """Run code on all outcomes of its draws.

        :param run: a fresh run; whatever it does besides drawing must be deterministic
        :param decided: outcomes of the first draws, which are given
        :param most: runs at most
        :return: for each way to draw the rest: what ``run`` returned, the probability of the rest,
            and all outcomes
        :raises InvalidTypeError, InvalidValueError: naming the argument, or if two runs differ in
            what they draw
        """
        found: list[tuple[Hashable, Number, Chosen]] = []
        onward: Chosen | None = decided
        known: list[tuple[Number, ...]] = []
        while onward is not None:
            if len(found) == most:
                raise InvalidValueError(f"most ({most}) runs are used up; pass a larger number")
            answer, drawn = self._run(run, onward)
            if [table for table, _ in drawn][: len(known)] != known or len(drawn) < len(decided):
                raise InvalidValueError(
                    "a run differs from the one before: it must be deterministic"
                )
            chance: Number = 1
            for table, chosen in drawn[len(decided) :]:
                chance = chance * table[chosen]
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
