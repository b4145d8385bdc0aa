"""Continual mechanisms as laws: which answers, with which probability, and what follows.

Written down (:class:`ContinualLaw`), or found by running real code again and again with a finite
noise in the place of its own (:class:`Replayed`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from ...checks import checked, elements, flag, function, hashable, integer, read, shown
from ...errors import InvalidTypeError, InvalidValueError
from .tape import Tape

Outcomes = list[tuple[int, float]]  # what a noisy value may be, with which probability
REACH = 60.0  # noise is cut at so many scales, with exp(-60) of its mass beyond


class ContinualLaw(Protocol):
    """A continual mechanism with finitely many answers. States are hidden, and hashable."""

    @property
    def start(self) -> Hashable:
        """The state before the first message."""

    @property
    def questions(self) -> Sequence[Any]:
        """What may be asked."""

    def update(self, state: Any, item: Any) -> Hashable:
        """The state after an update."""

    def answers(self, state: Any, question: Any) -> Iterable[tuple[Hashable, float, Hashable]]:
        """Each answer there may be, its probability, and the state after it."""


MOST_QUESTIONS = 16


class Replayed:
    """The law of real code, from running it again and again on every outcome of its noise.

    :param make: from ``release(total, scale)``, to be called instead of adding noise of ``scale``,
        to a fresh handle, with ``update(item)``; whatever else it does must be deterministic
    :param noise: such as ``clamped_noise(...)``: from total and scale to outcomes
    :param questions: what may be asked, at most 16
    :param ask: asks a handle
    """

    start: Hashable = ()

    def __init__(
        self,
        make: Callable[[Callable[[int, float], int]], Any],
        noise: Callable[[int, float], Outcomes],
        *,
        questions: Sequence[Any] = (None,),
        ask: Callable[[Any, Any], Hashable] = lambda handle, question: handle(question),
    ) -> None:
        function(make=make), function(noise=noise), function(ask=ask)
        self.questions = elements("what may be asked", questions=questions)
        if not len(self.questions) <= MOST_QUESTIONS:
            raise InvalidValueError(
                f"questions must have at most {MOST_QUESTIONS} elements, found "
                f"{len(self.questions)}: each is asked after all others"
            )
        for question in self.questions:
            hashable(questions=question)
        self._make, self._noise, self._ask = make, noise, ask
        self._tape = Tape()
        self._known: dict[Any, list[tuple[Hashable, float, Hashable]]] = {}

    def update(self, state: Any, item: Any) -> Hashable:
        """The state is the list of messages, with the noise that each got."""
        return (*state, ("update", item, ()))

    def answers(self, state: Any, question: Any) -> Iterable[tuple[Hashable, float, Hashable]]:
        """Run it on all outcomes; an update's own noise is drawn here too, when it is replayed."""
        found = self._known.get((state, question))
        if found is None:
            decided = tuple(outcome for message in state for outcome in message[2])
            explored = self._tape.explore(lambda: self._run(state, question), decided)
            found = self._known[state, question] = [
                (answer, float(chance), (*state, ("ask", question, chosen[len(decided) :])))
                for answer, chance, chosen in explored
            ]
        return found

    def _run(self, state: Any, question: Any) -> Hashable:
        def release(total: int, scale: float) -> int:
            outcomes = read("pairs", **{"what noise returns": self._noise(int(total), scale)})
            chosen: int = outcomes[self._tape.draw(chance for _, chance in outcomes)][0]
            return chosen

        handle = self._make(release)

        if not callable(getattr(handle, "update", None)):
            raise InvalidTypeError(
                f"make must return a handle with update(item), found {type(handle).__name__}"
            )
        for kind, content, _ in state:
            if kind == "update":
                handle.update(content)
            else:
                self._ask(handle, content)
        return self._ask(handle, question)


MOST_VALUES = 10**5


@checked(low=integer, high=integer, gaussian=flag)
def clamped_noise(
    low: int, high: int, *, gaussian: bool = False
) -> Callable[[int, float], Outcomes]:
    """Discrete Laplace (or Gaussian) noise on integers, clamped to ``low``..``high``.

    Clamping is postprocessing; for Laplace noise it keeps the largest loss, which the ends have.

    :param low: least value
    :param high: largest value
    :param gaussian: whether the noise is Gaussian, with ``scale`` its standard deviation
    :return: from a total and a scale to pairs of a value and its probability
    :raises InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> for value, probability in verify.clamped_noise(0, 1)(0, 1.0):
    ...     print(value, round(probability, 6))
    0 0.731059
    1 0.268941
    """
    if not low < high:
        raise InvalidValueError(f"low ({shown(low)}) must be below high ({shown(high)})")
    if not max(abs(low), abs(high)) <= MOST_VALUES:
        raise InvalidValueError(
            f"low ({shown(low)}) and high ({shown(high)}) must be within {MOST_VALUES:,} of 0: "
            "each value is listed"
        )

    @cache
    def noise(total: int, scale: float) -> Outcomes:
        reach = int(REACH * scale) + abs(total) + max(abs(low), abs(high)) + 2
        grid = np.arange(-reach, reach + 1)
        away = np.abs(grid) / scale
        mass = np.exp(-(away**2) / 2 if gaussian else -away)
        value = np.clip(total + grid, low, high)
        chances = np.bincount(value - low, weights=mass / mass.sum(), minlength=high - low + 1)
        return list(zip(range(low, high + 1), chances.tolist(), strict=True))

    return noise
