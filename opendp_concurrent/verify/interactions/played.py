"""Real interactive measurements, played against every analyst: their exact worst loss.

Whatever composes (filters, odometers, casts, wrappers) is real code; only what is launched at the
end is finite: a user measurement whose function draws from a :class:`Tape`. The law of a whole
session is then exact, and so is the worst of all analysts who choose their moves from a list:

>>> from fractions import Fraction
>>> from opendp_concurrent import verify
>>> tape = verify.Tape()
>>> def session(side):                             # instead of: measurement(datasets[side])
...     truth, lie = Fraction(3, 4), Fraction(1, 4)
...     return lambda: tape.draw((truth, lie) if side == 0 else (lie, truth))
>>> ask = verify.Move("ask", lambda handle: handle())
>>> law = verify.Played(tape, session, [ask])
>>> [law.worst_loss(rounds).ratio for rounds in (1, 2)]
[Fraction(3, 1), Fraction(9, 1)]

A test holds ``worst_loss`` (or ``delta``, or ``renyi``) against ``measurement.map(d_in)``.
Deterministic analysts suffice [HSTVVXZ23, Lemma 2.3].
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, fsum, inf, isinf, log
from typing import Any

from ... import checks
from ...checks import at_most, checked, function, instance
from ...errors import InvalidTypeError, InvalidValueError
from ..mechanism import LARGEST_LOG, Number, excess, scale_of
from .tape import MOST_RUNS, Chosen, Tape

History = tuple[tuple[str, Hashable], ...]  # name of each move, and its answer
Weights = dict[Chosen, Number]  # by what was drawn
_ROUNDS = at_most(100, "all histories are listed")


def _exceptions(**argument: Any) -> tuple[type[Exception], ...]:
    """Return a tuple of classes of exceptions, or raise."""
    ((name, value),) = argument.items()
    found = tuple(tuple.__iter__(value)) if checks.is_a(value, tuple) else (None,)
    if not all(checks.is_a(one, type) and issubclass(one, Exception) for one in found):
        raise InvalidTypeError(
            f"{name} must be a tuple of classes of exceptions, found {checks.shown(value)}"
        )
    return found


@dataclass(frozen=True)
class Move:
    """What an analyst may do.

    :ivar name: of the move; moves of one name are the same
    :ivar play: from a session to a hashable answer
    :ivar other: the same on the second dataset, where it differs: an update of a stream, of which
        the adversary chooses both sides
    """

    name: str
    play: Callable[[Any], Hashable]
    other: Callable[[Any], Hashable] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checks.text(name=self.name))
        function(play=self.play)
        checks.optional(function)(other=self.other)


def _of_moves(**argument: Any) -> tuple[Move, ...]:
    """Return moves, read once, or raise."""
    ((name, _),) = argument.items()
    found = checks.read("moves", **argument)
    return tuple(instance(Move)(**{f"{name}[{i}]": one}) for i, one in enumerate(found))


@dataclass(frozen=True)
class Reached:
    """A session, and what it tells.

    :ivar ratio: of its probabilities, the larger over the smaller; infinite if one of them is 0
    :ivar history: its moves and answers
    """

    ratio: Number
    history: History

    @property
    def loss(self) -> float:
        """Logarithm of the ratio: ε at δ = 0."""
        if isinf(self.ratio):
            return inf
        exact = Fraction(self.ratio)
        return log(exact.numerator) - log(exact.denominator)


class Played:
    """The law of real sessions on two neighbouring datasets.

    :param tape: from which the finite measurements draw
    :param begin: from a side, 0 or 1, to a fresh session on that dataset: a handle, or whatever
        moves need, such as a list of handles
    :param moves: what the analyst may do, always; or a function of the history so far that returns
        it, such as only such updates as keep streams neighbours
    :param refusals: exceptions that are answers: their types are told. Any other one is an error of
        the test, and raised
    :param most: runs at most
    :raises InvalidTypeError, InvalidValueError: naming the argument
    """

    @checked(tape=instance(Tape), begin=function, refusals=_exceptions, most=checks.count)
    def __init__(
        self,
        tape: Tape,
        begin: Callable[[int], Any],
        moves: Sequence[Move] | Callable[[History], Iterable[Move]],
        *,
        refusals: tuple[type[Exception], ...] = (),
        most: int = MOST_RUNS,
    ) -> None:
        if not callable(moves):
            listed = _of_moves(moves=checks.sequence("moves", moves=moves))
            self._moves: Callable[[History], Iterable[Move]] = lambda history: listed
        else:
            chosen = moves
            self._moves = lambda history: _of_moves(moves=chosen(history))
        self._tape, self._begin, self._refusals = tape, begin, refusals
        self._most, self._runs = most, 0
        self._known: dict[Any, list[tuple[Hashable, Number, Chosen]]] = {}

    def worst_loss(self, rounds: int) -> Reached:
        """Find the most revealing session of ``rounds`` moves: ε at δ = 0.

        Exact, if all chances are exact fractions.

        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        best = Reached(1, ())
        for reached in self.sessions(rounds):
            if reached.ratio > best.ratio:
                best = reached
        return best

    def delta(self, epsilon: float, rounds: int) -> float:
        """Least δ at ``epsilon`` against all analysts of at most ``rounds`` moves.

        :return: δ, for the worse order of the datasets, to the precision of doubles
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        scale = scale_of(epsilon)
        return max(
            self._best(lambda p, q: excess(p, q, scale), rounds),
            self._best(lambda p, q: excess(q, p, scale), rounds),
        )

    def renyi(self, order: float, rounds: int) -> float:
        """Rényi divergence of ``order`` that all analysts of at most ``rounds`` moves stay below.

        :param order: finite, above 1
        :return: the divergence, for the worse order of the datasets, to the precision of doubles;
            infinite where a moment is beyond them
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        alpha = checks.order(order=order)

        def power(p: float, q: float) -> float:
            if p == 0.0:
                return 0.0
            moment = alpha * log(p) + (1 - alpha) * log(q) if q > 0.0 else inf
            return exp(moment) if moment < LARGEST_LOG else inf

        both = self._best(power, rounds), self._best(lambda p, q: power(q, p), rounds)
        return log(max(both)) / (alpha - 1)

    def _best(self, leaf: Callable[[float, float], float], rounds: int) -> float:
        """Largest sum of a leaf's value over the answers, over all ways to choose moves."""
        limit = _ROUNDS(rounds=rounds)

        def value(history: History, played: tuple[Move, ...], p: Weights, q: Weights) -> float:
            best = leaf(float(sum(p.values())), float(sum(q.values())))
            if len(played) == limit:
                return best
            for move in self._moves(history):
                onward = self._told(played, move, p, q)
                after = (*played, move)
                best = max(
                    best,
                    fsum(
                        value((*history, (move.name, answer)), after, first, second)
                        for answer, (first, second) in onward.items()
                    ),
                )
            return best

        return value((), (), {(): 1}, {(): 1})

    def sessions(self, rounds: int) -> Iterator[Reached]:
        """All sessions of at most so many moves, and what each tells.

        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        limit = _ROUNDS(rounds=rounds)
        onward: list[tuple[History, tuple[Move, ...], Weights, Weights]] = [
            ((), (), {(): 1}, {(): 1})
        ]
        while onward:
            history, played, p, q = onward.pop()
            first, second = sum(p.values()), sum(q.values())
            yield Reached(_ratio(first, second), history)
            if len(played) < limit:
                for move in self._moves(history):
                    for answer, weights in self._told(played, move, p, q).items():
                        longer = (*history, (move.name, answer))
                        onward.append((longer, (*played, move), *weights))

    def _told(
        self, played: tuple[Move, ...], move: Move, p: Weights, q: Weights
    ) -> dict[Hashable, tuple[Weights, Weights]]:
        """Split both sides by the answer to a move."""
        split: dict[Hashable, tuple[Weights, Weights]] = {}
        for side, weights in enumerate((p, q)):
            for chosen, weight in weights.items():
                for answer, chance, after in self._answers(side, played, chosen, move):
                    part = split.setdefault(answer, ({}, {}))[side]
                    part[after] = part.get(after, 0) + weight * chance
        return split

    def _answers(
        self, side: int, played: tuple[Move, ...], chosen: Chosen, move: Move
    ) -> list[tuple[Hashable, Number, Chosen]]:
        """What a move is answered after what was drawn; runs the session again from its start."""
        key = side, tuple(one.name for one in played), chosen, move.name
        if key not in self._known:

            def run() -> Hashable:
                self._runs += 1
                if self._runs > self._most:
                    raise InvalidValueError(
                        f"most ({self._most}) runs are used up; pass a larger number, fewer rounds "
                        "or fewer moves"
                    )
                session, answer = self._begin(side), None
                for one in (*played, move):
                    answer = self._play(one, side, session)
                return answer

            self._known[key] = self._tape.explore(run, chosen, most=self._most)
        return self._known[key]

    def _play(self, move: Move, side: int, session: Any) -> Hashable:
        play = move.other if side and move.other is not None else move.play
        try:
            return play(session)
        except self._refusals as refusal:
            return "refused", type(refusal).__name__


def _ratio(p: Number, q: Number) -> Number:
    return inf if 0 in (p, q) else max(p / q, q / p)
