"""Continual mechanisms as distributions: the answers, their probabilities, and the next states.

A distribution is either written by hand (:class:`ContinualLaw`), or computed from real code that
runs again for every outcome of a finite noise (:class:`Replayed`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from ...arguments.abilities import hashable, with_method
from ...arguments.checked import Integer, checked
from ...arguments.checks import each, function, read, shown
from ...errors import InvalidTypeError, InvalidValueError
from ...types import Item, Query, State
from .tape import Tape

Outcomes = list[tuple[int, float]]  # the values of a noisy number, with their probabilities
REACH = 60.0  # noise is cut at this many scales; about exp(-60) of its mass is beyond
MOST_QUERIES = 16
MOST_VALUES = 10**5


class ContinualLaw(Protocol):
    """A continual mechanism with finitely many answers. Its states are hidden and hashable."""

    @property
    def start(self) -> Hashable:
        """The state before the first message."""

    @property
    def queries(self) -> Sequence[Any]:
        """All queries."""

    def update(self, state: State, item: Item) -> Hashable:
        """The state after an update."""

    def answers(self, state: State, query: Query) -> Iterable[tuple[Hashable, float, Hashable]]:
        """For each answer to a query: the answer, its probability, and the next state."""


class Replayed:
    """The distribution of real code, which runs again for every outcome of its noise.

    :param make: maps ``release(total, scale)`` to a fresh handle with ``update(item)``. The handle
        calls ``release`` instead of adding noise of ``scale``, and is deterministic otherwise
    :param noise: maps a total and a scale to outcomes, such as ``clamped_noise(...)``
    :param queries: all queries, at most 16
    :param ask: sends a query to a handle
    """

    start: Hashable = ()

    def __init__(
        self,
        make: Callable[[Callable[[int, float], int]], Any],
        noise: Callable[[int, float], Outcomes],
        *,
        queries: Sequence[Any] = (None,),
        ask: Callable[[Any, Any], Hashable] = lambda handle, query: handle(query),
    ) -> None:
        function(make=make), function(noise=noise), function(ask=ask)
        self.queries = each("queries", hashable)(queries=queries)
        if not len(self.queries) <= MOST_QUERIES:
            raise InvalidValueError(
                f"queries must have at most {MOST_QUERIES} elements, found "
                f"{len(self.queries)}: each is asked after all others"
            )
        self._make, self._noise, self._ask = make, noise, ask
        self._tape = Tape()
        self._known: dict[Any, list[tuple[Hashable, float, Hashable]]] = {}

    def update(self, state: State, item: Item) -> Hashable:
        """The next state: all messages so far, each with the outcomes of its noise."""
        return (*state, ("update", item, ()))

    def answers(self, state: State, query: Query) -> Iterable[tuple[Hashable, float, Hashable]]:
        """Run the code for all outcomes. This draws the noise of earlier updates, too."""
        if (state, query) not in self._known:
            decided = tuple(outcome for message in state for outcome in message[2])
            explored = self._tape.explore(lambda: self._run(state, query), decided)
            self._known[state, query] = [
                (answer, float(chance), (*state, ("ask", query, chosen[len(decided) :])))
                for answer, chance, chosen in explored
            ]
        return self._known[state, query]

    def _run(self, state: State, query: Query) -> Hashable:
        def release(total: int, scale: float) -> int:
            pairs = read("pairs", **{"what noise returns": self._noise(int(total), scale)})
            try:
                outcomes, chances = zip(*pairs, strict=True)
            except (TypeError, ValueError) as error:
                raise InvalidTypeError(
                    "noise must return pairs of an outcome and its probability"
                ) from error
            chosen: int = outcomes[self._tape.draw(chances)]
            return chosen

        handle = self._make(release)
        with_method("update", "return a handle with update(item)")(make=handle)
        for kind, content, _ in state:
            if kind == "update":
                handle.update(content)
            else:
                self._ask(handle, content)
        return self._ask(handle, query)


@checked
def clamped_noise(
    low: Integer, high: Integer, *, gaussian: bool = False
) -> Callable[[int, float], Outcomes]:
    """Make discrete Laplace (or Gaussian) noise on integers, clamped to ``low``..``high``.

    Clamping is postprocessing. For Laplace noise it keeps the largest loss, which is reached at the
    ends.

    :param low: smallest value
    :param high: largest value
    :param gaussian: whether the noise is Gaussian, with ``scale`` its standard deviation
    :return: a function from a total and a scale to pairs of a value and its probability

    :example:

    >>> for value, probability in oc.verify.clamped_noise(0, 1)(0, 1.0):
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
