"""Continual mechanisms as distributions: the answers, their probabilities, and the next states.

A distribution is either written by hand (:class:`ContinualLaw`), or computed from real code that
runs again for every outcome of a finite noise (:class:`Replayed`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from itertools import product
from math import exp, inf, log
from typing import Any, Protocol

import numpy as np

from .. import _checks as checks
from .. import errors
from .mechanism import Leaf, excesses
from .played import Tape

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

    def update(self, state: Any, item: errors.Item) -> Hashable:
        """The state after an update."""

    def answers(
        self, state: Any, query: errors.Query
    ) -> Iterable[tuple[Hashable, float, Hashable]]:
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
        checks.function(make=make), checks.function(noise=noise), checks.function(ask=ask)
        self.queries = checks.each("queries", checks.hashable)(queries=queries)
        if not len(self.queries) <= MOST_QUERIES:
            raise errors.InvalidValueError(
                f"queries must have at most {MOST_QUERIES} elements, found "
                f"{len(self.queries)}: each is asked after all others"
            )
        self._make, self._noise, self._ask = make, noise, ask
        self._tape = Tape()
        self._known: dict[Any, list[tuple[Hashable, float, Hashable]]] = {}

    def update(self, state: tuple[Any, ...], item: errors.Item) -> Hashable:
        """The next state: all messages so far, each with the outcomes of its noise."""
        return (*state, ("update", item, ()))

    def answers(
        self, state: tuple[Any, ...], query: errors.Query
    ) -> Iterable[tuple[Hashable, float, Hashable]]:
        """Run the code for all outcomes. This draws the noise of earlier updates, too."""
        if (state, query) not in self._known:
            decided = tuple(outcome for message in state for outcome in message[2])
            explored = self._tape.explore(lambda: self._run(state, query), decided)
            self._known[state, query] = [
                (answer, float(chance), (*state, ("ask", query, chosen[len(decided) :])))
                for answer, chance, chosen in explored
            ]
        return self._known[state, query]

    def _run(self, state: tuple[Any, ...], query: errors.Query) -> Hashable:
        def release(total: int, scale: float) -> int:
            pairs = checks.read("pairs", **{"what noise returns": self._noise(int(total), scale)})
            try:
                outcomes, chances = zip(*pairs, strict=True)
            except (TypeError, ValueError) as error:
                raise errors.InvalidTypeError(
                    "noise must return pairs of an outcome and its probability"
                ) from error
            chosen: int = outcomes[self._tape.draw(chances)]
            return chosen

        handle = self._make(release)
        checks.with_method("update", "return a handle with update(item)")(make=handle)
        for kind, content, _ in state:
            if kind == "update":
                handle.update(content)
            else:
                self._ask(handle, content)
        return self._ask(handle, query)


@checks.checked
def clamped_noise(
    low: checks.Integer, high: checks.Integer, *, gaussian: bool = False
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
        raise errors.InvalidValueError(
            f"low ({errors.shown(low)}) must be below high ({errors.shown(high)})"
        )
    if not max(abs(low), abs(high)) <= MOST_VALUES:
        raise errors.InvalidValueError(
            f"low ({errors.shown(low)}) and high ({errors.shown(high)}) must be within "
            f"{MOST_VALUES:,} of 0: each value is listed"
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


# Continual mechanisms against adversaries who choose both streams adaptively.
#
# A strongly adaptive adversary sends pairs of updates, and queries. An :class:`Identifier` forwards
# one side of each pair, as long as the two streams are neighbours [HSV25, Definitions 3.2 and 3.3].
# How well can the adversary distinguish the sides? For mechanisms with finitely many answers
# (:class:`ContinualLaw`) a dynamic programme computes it, over *all* adversaries.
#
# The future depends on the past only through two measures, one for each side. A measure is, for
# each hidden state, the probability that the answers so far were given and the mechanism is in this
# state. The adversary sends a pair, sends a query, or stops. An answer splits the measures.
# Deterministic adversaries suffice [HSTVVXZ23, Lemma 2.3].

Stream = tuple[Any, ...]
Neighbouring = Callable[[Sequence[Any], Sequence[Any]], bool]
Weights = dict[Any, float]  # probabilities of hidden states

_STEPS = checks.at_most(100, "all streams of this length are played")
_on_streams = checks.checked(
    mechanisms=checks.each(
        "continual laws",
        checks.with_method("answers", "be a law with start, queries, update and answers"),
        empty=False,
    ),
    items=checks.each("items", checks.hashable),
    neighbouring=checks.function,
    horizon=_STEPS,
    asks=_STEPS,
)


@checks.checked
def events_differ(at_most: checks.Count, *, presence: bool = True) -> Neighbouring:
    """Make the relation of streams that differ in at most ``at_most`` steps.

    The relation is reflexive, so it holds for all prefixes of neighbouring streams.

    :param at_most: number of steps
    :param presence: whether one of the two items at such a step must be None, for no item
    :return: a predicate of two streams of the same length

    :example:

    >>> neighbouring = oc.verify.events_differ(1)
    >>> neighbouring((0, 1), (0, None)), neighbouring((0, 1), (0, 0))
    (True, False)
    """

    def neighbouring(first: Sequence[Any], second: Sequence[Any]) -> bool:
        pairs = [(one, other) for one, other in zip(first, second, strict=True) if one != other]
        return len(pairs) <= at_most and not (presence and any(None not in pair for pair in pairs))

    return neighbouring


class Identifier:
    """Stands between a strongly adaptive adversary and a continual mechanism [HSV25, Algorithm 2].

    It is a device for proofs and tests: a deployed mechanism receives single updates.

    :param handle: of a continual mechanism; has ``update(item)`` and is called with queries
    :param side: 0 or 1: the side of each pair that is forwarded
    :param neighbouring: whether two prefixes are neighbours; must be reflexive

    :example:

    >>> class Handle(list):  # a list of the updates that it receives
    ...     update = list.append
    >>> handle = Handle()
    >>> identifier = oc.verify.Identifier(handle, 1, oc.verify.events_differ(1))
    >>> identifier.update(5, 5)
    >>> identifier.update(None, 3)
    >>> handle
    [5, 3]
    >>> identifier.update(2, None)
    Traceback (most recent call last):
    opendp_concurrent.errors.InvalidValueError: the streams are no longer neighbours: halted
    """

    def __init__(self, handle: Any, side: int, neighbouring: Neighbouring) -> None:
        if checks.whole(side=side) not in (0, 1):
            raise errors.InvalidValueError(f"side ({errors.shown(side)}) must be 0 or 1")
        self._handle, self._side = handle, side
        self._neighbouring: Neighbouring = checks.function(neighbouring=neighbouring)
        self._streams: tuple[list[Any], list[Any]] = ([], [])
        self._halted = False

    def update(self, first: Any, second: Any) -> None:
        """Send two updates and forward one of them; halt if the streams are not neighbours."""
        self._check()
        for stream, item in zip(self._streams, (first, second), strict=True):
            stream.append(item)
        try:
            related = bool(self._neighbouring(*self._streams))
        except Exception as error:
            self._halted = True
            raise errors.InvalidTypeError(
                f"first ({errors.shown(first)}) and second ({errors.shown(second)}) cannot be "
                "compared: halted"
            ) from error
        if not related:
            self._halted = True
            raise errors.InvalidValueError("the streams are no longer neighbours: halted")
        self._handle.update((first, second)[self._side])

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Forward a query."""
        self._check()
        return self._handle(query)

    def _check(self) -> None:
        if self._halted:
            raise errors.StreamHaltedError


@_on_streams
def continual_delta(
    mechanisms: Sequence[ContinualLaw],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    epsilon: float,
    *,
    asks: int = 1,
) -> float:
    """Compute the smallest δ at ``epsilon`` against every strongly adaptive adversary.

    Several mechanisms receive the same updates. The adversary queries them in any order.

    :param mechanisms: at least one
    :param items: the possible items of a step, with None for no item
    :param neighbouring: a symmetric, reflexive relation of pairs of prefixes
    :param horizon: number of steps
    :param epsilon: at which δ is computed
    :param asks: number of times that each query may be sent between two updates
    :return: δ, to the precision of doubles

    :example:

    >>> class Sum:  # adds noise to every sum, with the scale for one sum
    ...     def __init__(self, release): self.items, self.release = [], release
    ...     def update(self, item): self.items.append(item)
    ...     def __call__(self, query): return self.release(self.items.count(1), 2.0)
    >>> law = oc.verify.Replayed(Sum, oc.verify.clamped_noise(0, 2))
    >>> oc.verify.continual_delta([law], (None, 1), oc.verify.events_differ(1), 2, epsilon=0.5)
    0.15245...
    """
    leaf, _ = excesses(epsilon)
    return _solve(mechanisms, items, neighbouring, horizon, asks, sum, leaf)


@_on_streams
def continual_epsilon(
    mechanisms: Sequence[ContinualLaw],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    *,
    asks: int = 1,
) -> float:
    """Compute the smallest ε at δ = 0 against every strongly adaptive adversary.

    The parameters are those of :func:`continual_delta`.

    :return: ε, rounded to 12 decimal places; infinite if there is none

    :example:

    >>> class Sum:  # adds noise to every sum, with the scale for one sum
    ...     def __init__(self, release): self.items, self.release = [], release
    ...     def update(self, item): self.items.append(item)
    ...     def __call__(self, query): return self.release(self.items.count(1), 2.0)
    >>> law = oc.verify.Replayed(Sum, oc.verify.clamped_noise(0, 2))
    >>> space = (None, 1), oc.verify.events_differ(1)
    >>> [oc.verify.continual_epsilon([law], *space, horizon) for horizon in (1, 2, 3)]
    [0.5, 1.0, 1.5]
    """

    def ratio(p: float, q: float) -> float:
        return (log(p) - log(q) if q > 0.0 else inf) if p > 0.0 else -inf

    return round(_solve(mechanisms, items, neighbouring, horizon, asks, max, ratio), 12)


@_on_streams
@checks.checked(order=checks.at_most(256, "powers of this order are doubles", checks.order))
def continual_renyi(
    mechanisms: Sequence[ContinualLaw],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    order: float,
    *,
    asks: int = 1,
) -> float:
    """Compute the smallest Rényi divergence of ``order`` against every strongly adaptive adversary.

    The parameters are those of :func:`continual_delta`.

    :param order: above 1, at most 256
    :return: the divergence, to the precision of doubles

    :example:

    >>> class Sum:  # adds noise to every sum, with the scale for one sum
    ...     def __init__(self, release): self.items, self.release = [], release
    ...     def update(self, item): self.items.append(item)
    ...     def __call__(self, query): return self.release(self.items.count(1), 1.0)
    >>> law = oc.verify.Replayed(Sum, oc.verify.clamped_noise(0, 1))
    >>> oc.verify.continual_renyi([law], (None, 1), oc.verify.events_differ(1), 1, order=2.0)
    0.73532...
    """

    def power(p: float, q: float) -> float:
        if p == 0.0:
            return 0.0
        return exp(order * log(p) + (1 - order) * log(q)) if q > 0.0 else inf

    found = _solve(mechanisms, items, neighbouring, horizon, asks, sum, power)
    return log(found) / (order - 1)


def _solve(
    mechanisms: Sequence[Any],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    asks: int,
    combine: Callable[[Iterable[float]], float],
    leaf: Leaf,
) -> float:
    """The largest value over all adversaries, of a leaf combined over all answers."""
    pairs = list(product(items, repeat=2))
    queries = [(i, q) for i, one in enumerate(mechanisms) for q in one.queries]

    def related(first: Stream, second: Stream) -> bool:
        one, other = bool(neighbouring(first, second)), bool(neighbouring(second, first))
        if one is not other:
            raise errors.InvalidValueError("neighbouring must be symmetric")
        return one

    def split(weights: Weights, index: int, query: errors.Query) -> dict[Hashable, Weights]:
        """Split the weights by the answer."""
        parts: dict[Hashable, Weights] = {}
        for state, weight in weights.items():
            for answer, probability, after in mechanisms[index].answers(state[index], query):
                onward = (*state[:index], after, *state[index + 1 :])
                part = parts.setdefault(answer, {})
                part[onward] = part.get(onward, 0.0) + weight * probability
        return parts

    def updated(weights: Weights, item: errors.Item) -> Weights:
        after: Weights = {}
        for state, weight in weights.items():
            onward = tuple(
                one.update(part, item) for one, part in zip(mechanisms, state, strict=True)
            )
            after[onward] = after.get(onward, 0.0) + weight
        return after

    def value(p: Weights, q: Weights, streams: tuple[Stream, Stream], asked: Stream) -> float:
        best = leaf(sum(p.values()), sum(q.values()))
        for place, (index, query) in enumerate(queries):
            if asked[place] < asks:
                onward = (*asked[:place], asked[place] + 1, *asked[place + 1 :])
                first, second = split(p, index, query), split(q, index, query)
                total = combine(
                    [
                        value(first.get(answer, {}), second.get(answer, {}), streams, onward)
                        for answer in {**first, **second}
                    ]
                )
                best = max(best, total)
        if len(streams[0]) < horizon:
            for one, other in pairs:
                longer = (*streams[0], one), (*streams[1], other)
                if related(*longer):
                    none = (0,) * len(queries)
                    best = max(best, value(updated(p, one), updated(q, other), longer, none))
        return best

    start = {tuple(one.start for one in mechanisms): 1.0}
    return value(start, start, ((), ()), (0,) * len(queries))
