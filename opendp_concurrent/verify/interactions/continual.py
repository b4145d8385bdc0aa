"""Continual mechanisms against adversaries who choose both streams on the way, computed.

A strongly adaptive adversary sends pairs of updates and questions; an :class:`Identifier` forwards
one side of the pairs, as long as the two streams are neighbours [HSV25, Definitions 3.2 and 3.3].
How well can the adversary tell the sides apart? For mechanisms with finitely many answers this is
a dynamic programme over *all* adversaries. Mechanisms are laws (``continual_law.py``):

>>> from opendp_concurrent import verify
>>> class Running:                                       # noise for every sum, of a scale for one
...     def __init__(self, release):
...         self.total, self.release = 0, release
...     def update(self, item):
...         self.total += item or 0
...     def __call__(self, question):
...         return self.release(self.total, 2.0)
>>> law = verify.Replayed(Running, verify.clamped_noise(0, 2))
>>> neighbouring = verify.events_differ(1)
>>> [verify.continual_epsilon([law], (None, 1), neighbouring, horizon) for horizon in (1, 2, 3)]
[0.5, 1.0, 1.5]

How: what matters of the past is, for each side, with which probability the answers so far came
about and the mechanism is in which hidden state. The adversary sends a pair, or asks, or stops;
answers split these measures. Deterministic adversaries suffice [HSTVVXZ23, Lemma 2.3].
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from math import exp, inf, log
from typing import Any

from ... import checks
from ...checks import at_most as limited
from ...checks import checked, elements, flag, function, hashable, shown, whole
from ...errors import InvalidTypeError, InvalidValueError, StreamHaltedError
from ..mechanism import excess, scale_of
from .continual_law import ContinualLaw

Stream = tuple[Any, ...]
Neighbouring = Callable[[Sequence[Any], Sequence[Any]], bool]
Weights = dict[Any, float]  # by hidden state


def _items(**argument: Any) -> tuple[Any, ...]:
    """Return what may come in a step, to be looked up, or raise."""
    ((name, _),) = argument.items()
    found = elements("items", **argument)
    for index, one in enumerate(found):
        hashable(**{f"{name}[{index}]": one})
    return found


MOST_ORDER = 256.0  # powers of it are doubles


def _some_order(**argument: Any) -> float:
    """Return an order that can be computed with, or raise."""
    ((name, value),) = argument.items()
    found = checks.order(**argument)
    if not found <= MOST_ORDER:
        raise InvalidValueError(f"{name} ({shown(value)}) must be at most {MOST_ORDER}")
    return found


def _laws(**argument: Any) -> list[Any]:
    """Return laws of continual mechanisms, or raise."""
    ((name, _),) = argument.items()
    found = list(elements("laws", **argument))
    for index, one in enumerate(found):
        if not callable(getattr(type(one), "answers", None)):
            raise InvalidTypeError(
                f"{name}[{index}] must be a law with start, questions, update and answers, "
                f"found {type(one).__name__}"
            )
    return found


_PLAYED = limited(100, "all streams of so many steps are played")


@checked(at_most=whole, presence=flag)
def events_differ(at_most: int, *, presence: bool = True) -> Neighbouring:
    """Streams that differ at so many steps; with ``presence``, by an item or nothing there.

    Reflexive, so that it holds for prefixes from the start.

    :param at_most: number of steps
    :param presence: whether one of the two items must be None
    :return: a predicate of two streams of the same length
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> verify.events_differ(1)((0, 1), (0, None)), verify.events_differ(1)((0, 1), (0, 0))
    (True, False)
    """
    limit = checks.count(at_most=at_most)

    def neighbouring(first: Sequence[Any], second: Sequence[Any]) -> bool:
        pairs = [(one, other) for one, other in zip(first, second, strict=True) if one != other]
        return len(pairs) <= limit and not (presence and any(None not in pair for pair in pairs))

    return neighbouring


class Identifier:
    """Stands between a strongly adaptive adversary and a continual mechanism [HSV25, Algorithm 2].

    A proof device: a deployed mechanism receives single updates.

    :param handle: of a continual mechanism: has ``update(item)``, and is called with questions
    :param side: 0 or 1: which of each pair is forwarded
    :param neighbouring: whether two prefixes are neighbours; must be reflexive
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> class Total:
    ...     total = 0
    ...     def update(self, item):
    ...         self.total += item or 0
    ...     def __call__(self, question):
    ...         return self.total
    >>> identifier = verify.Identifier(Total(), 1, verify.events_differ(1))
    >>> identifier.update(5, 5)
    >>> identifier.update(None, 3)
    >>> identifier(None)
    8
    >>> identifier.update(2, None)
    Traceback (most recent call last):
    opendp_concurrent.errors.InvalidValueError: the streams are no longer neighbours: halted
    """

    __slots__ = ("_halted", "_handle", "_neighbouring", "_side", "_streams")

    def __init__(self, handle: Any, side: int, neighbouring: Neighbouring) -> None:
        if whole(side=side) not in (0, 1):
            raise InvalidValueError(f"side ({shown(side)}) must be 0 or 1")
        if not callable(neighbouring):
            raise InvalidTypeError(
                f"neighbouring must be callable, found {type(neighbouring).__name__}"
            )
        self._handle, self._side, self._neighbouring = handle, side, neighbouring
        self._streams: tuple[list[Any], list[Any]] = ([], [])
        self._halted = False

    def update(self, first: Any, second: Any) -> None:
        """Send a pair of updates, of which one goes on; halt if the streams are not neighbours."""
        self._check()
        for stream, item in zip(self._streams, (first, second), strict=True):
            stream.append(item)
        try:
            related = bool(self._neighbouring(*self._streams))
        except Exception as error:
            self._halted = True
            raise InvalidTypeError(
                f"first ({shown(first)}) and second ({shown(second)}) cannot be compared: halted"
            ) from error
        if not related:
            self._halted = True
            raise InvalidValueError("the streams are no longer neighbours: halted")
        self._handle.update((first, second)[self._side])

    def __call__(self, question: Any) -> Any:
        """Ask a question, which goes on as it is."""
        self._check()
        return self._handle(question)

    def _check(self) -> None:
        if self._halted:
            raise StreamHaltedError


@checked(
    mechanisms=_laws,
    items=_items,
    neighbouring=function,
    horizon=_PLAYED,
    asks=_PLAYED,
)
def continual_delta(
    mechanisms: Sequence[ContinualLaw],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    epsilon: float,
    *,
    asks: int = 1,
) -> float:
    """Least δ at ``epsilon`` against every strongly adaptive adversary.

    Several mechanisms get the same updates, and are asked in any order.

    :param mechanisms: at least one
    :param items: what may arrive at a step, None for nothing among them
    :param neighbouring: symmetric, reflexive, on pairs of prefixes
    :param horizon: how many steps there are
    :param epsilon: at which privacy is asked
    :param asks: how often each question may be asked between two updates
    :return: δ, to the precision of doubles
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> class Running:
    ...     def __init__(self, release):
    ...         self.total, self.release = 0, release
    ...     def update(self, item):
    ...         self.total += item or 0
    ...     def __call__(self, question):
    ...         return self.release(self.total, 2.0)
    >>> law = verify.Replayed(Running, verify.clamped_noise(0, 2))
    >>> verify.continual_delta([law], (None, 1), verify.events_differ(1), 2, epsilon=0.5)
    0.15245...
    """
    scale = scale_of(epsilon)
    return _solve(
        mechanisms, items, neighbouring, horizon, asks, sum, lambda p, q: excess(p, q, scale)
    )


@checked(
    mechanisms=_laws,
    items=_items,
    neighbouring=function,
    horizon=_PLAYED,
    asks=_PLAYED,
)
def continual_epsilon(
    mechanisms: Sequence[ContinualLaw],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    *,
    asks: int = 1,
) -> float:
    """Least ε at δ = 0 against every strongly adaptive adversary.

    The parameters are those of :func:`continual_delta`.

    :return: ε, rounded to 12 places; infinite if there is none
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> class Bit:
    ...     def __init__(self, release):
    ...         self.total, self.release = 0, release
    ...     def update(self, item):
    ...         self.total += item or 0
    ...     def __call__(self, question):
    ...         return self.release(self.total, 1.0)
    >>> law = verify.Replayed(Bit, verify.clamped_noise(0, 1))
    >>> verify.continual_epsilon([law], (None, 1), verify.events_differ(1), horizon=1)
    1.0
    """

    def ratio(p: float, q: float) -> float:
        return (log(p) - log(q) if q > 0.0 else inf) if p > 0.0 else -inf

    found = _solve(mechanisms, items, neighbouring, horizon, asks, max, ratio)
    return round(found, 12)


@checked(
    order=_some_order,
    mechanisms=_laws,
    items=_items,
    neighbouring=function,
    horizon=_PLAYED,
    asks=_PLAYED,
)
def continual_renyi(
    mechanisms: Sequence[ContinualLaw],
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    order: float,
    *,
    asks: int = 1,
) -> float:
    """Least Rényi divergence of ``order`` that all adversaries stay below.

    The parameters are those of :func:`continual_delta`.

    :param order: finite, above 1
    :return: the divergence, to the precision of doubles
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> class Bit:
    ...     def __init__(self, release):
    ...         self.total, self.release = 0, release
    ...     def update(self, item):
    ...         self.total += item or 0
    ...     def __call__(self, question):
    ...         return self.release(self.total, 1.0)
    >>> law = verify.Replayed(Bit, verify.clamped_noise(0, 1))
    >>> verify.continual_renyi([law], (None, 1), verify.events_differ(1), horizon=1, order=2.0)
    0.73532...
    """
    alpha = checks.order(order=order)

    def power(p: float, q: float) -> float:
        if p == 0.0:
            return 0.0
        return exp(alpha * log(p) + (1 - alpha) * log(q)) if q > 0.0 else inf

    found = _solve(mechanisms, items, neighbouring, horizon, asks, sum, power)
    return log(found) / (alpha - 1)


def _solve(
    mechanisms: Any,
    items: Sequence[Any],
    neighbouring: Neighbouring,
    horizon: int,
    asks: int,
    combine: Callable[[Iterable[float]], float],
    leaf: Callable[[float, float], float],
) -> float:
    checks.sequence("continual laws", mechanisms=mechanisms)
    pairs = list(product(tuple(items), repeat=2))
    steps, limit = checks.count(horizon=horizon), checks.count(asks=asks)
    questions = [(i, q) for i, one in enumerate(mechanisms) for q in one.questions]

    def related(first: Stream, second: Stream) -> bool:
        both = {bool(neighbouring(first, second)), bool(neighbouring(second, first))}
        if len(both) == 2:
            raise InvalidValueError("neighbouring must be symmetric")
        return both.pop()

    def told(weights: Weights, index: int, question: Any) -> dict[Hashable, Weights]:
        """Split by the answer."""
        split: dict[Hashable, Weights] = {}
        for state, weight in weights.items():
            for answer, probability, after in mechanisms[index].answers(state[index], question):
                onward = (*state[:index], after, *state[index + 1 :])
                part = split.setdefault(answer, {})
                part[onward] = part.get(onward, 0.0) + weight * probability
        return split

    def moved(weights: Weights, item: Any) -> Weights:
        after: Weights = {}
        for state, weight in weights.items():
            onward = tuple(
                one.update(part, item) for one, part in zip(mechanisms, state, strict=True)
            )
            after[onward] = after.get(onward, 0.0) + weight
        return after

    def value(p: Weights, q: Weights, streams: tuple[Stream, Stream], asked: Stream) -> float:
        best = leaf(sum(p.values()), sum(q.values()))
        for place, (index, question) in enumerate(questions):
            if asked[place] < limit:
                onward = (*asked[:place], asked[place] + 1, *asked[place + 1 :])
                first, second = told(p, index, question), told(q, index, question)
                total = combine(
                    [
                        value(first.get(answer, {}), second.get(answer, {}), streams, onward)
                        for answer in {**first, **second}
                    ]
                )
                best = max(best, total)
        if len(streams[0]) < steps:
            for one, other in pairs:
                longer = (*streams[0], one), (*streams[1], other)
                if related(*longer):
                    none = (0,) * len(questions)
                    best = max(best, value(moved(p, one), moved(q, other), longer, none))
        return best

    start = {tuple(one.start for one in mechanisms): 1.0}
    return value(start, start, ((), ()), (0,) * len(questions))
