"""Real interactive measurements against every analyst: their exact worst loss.

Filters, odometers, casts and wrappers are real code. Only the innermost mechanism is finite: a user
measurement whose function draws from a :class:`Tape`. So the distribution of a whole session is
exact, and so is the worst loss over all analysts who choose their moves from a list.
Deterministic analysts suffice [HSTVVXZ23, Lemma 2.3].
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, fsum, inf, isinf, log
from typing import Any

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from .mechanism import LARGEST_LOG, Leaf, Number, excesses
from .tape import MOST_RUNS, Chosen, Tape

History = tuple[tuple[str, Hashable], ...]  # the name of each move, and its answer
Weights = dict[Chosen, Number]  # probabilities of the outcomes of the draws
_ROUNDS = checks.at_most(100, "all histories are listed")


def _exceptions(**argument: Any) -> tuple[type[Exception], ...]:
    ((name, value),) = argument.items()
    found = tuple(value) if isinstance(value, tuple) else (None,)
    if not all(isinstance(one, type) and issubclass(one, Exception) for one in found):
        raise InvalidTypeError(
            f"{name} must be a tuple of classes of exceptions, found {checks.shown(value)}"
        )
    return found


@dataclass(frozen=True)
class Move:
    """One move of an analyst.

    :ivar name: moves with the same name are the same move
    :ivar play: maps a session to a hashable answer
    :ivar other: ``play`` on the second dataset, if it differs. Use it for an update of a stream,
        where the adversary chooses both sides
    """

    name: str
    play: Callable[[Any], Hashable]
    other: Callable[[Any], Hashable] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checks.text(name=self.name))
        checks.function(play=self.play)
        checks.optional(checks.function)(other=self.other)


def _of_moves(**argument: Any) -> tuple[Move, ...]:
    ((name, _),) = argument.items()
    found = checks.read("moves", **argument)
    return tuple(checks.instance(Move)(**{f"{name}[{i}]": one}) for i, one in enumerate(found))


@dataclass(frozen=True)
class Reached:
    """A session, and the ratio of its probabilities on the two datasets.

    :ivar ratio: the larger probability divided by the smaller one; infinite if one of them is 0
    :ivar history: moves and answers of the session
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
    """The exact distribution of real sessions on two neighbouring datasets.

    A test compares ``worst_loss``, ``delta`` or ``renyi`` with ``measurement.map(d_in)``.

    :param tape: the finite measurements draw from it
    :param begin: maps a side, 0 or 1, to a fresh session on that dataset: a handle, or whatever the
        moves need, such as a list of handles
    :param moves: a list of moves that are always allowed; or a function from the history so far to
        the allowed moves, such as updates that keep two streams neighbours
    :param refusals: exceptions that count as answers, by their types. Other exceptions are errors
        of the test, and are raised
    :param most: largest number of runs

    :example:

    >>> from fractions import Fraction
    >>> tape = oc.verify.Tape()
    >>> def session(side):  # a real test returns measurement(datasets[side])
    ...     truth, lie = Fraction(3, 4), Fraction(1, 4)
    ...     return lambda: tape.draw((truth, lie) if side == 0 else (lie, truth))
    >>> ask = oc.verify.Move("ask", lambda handle: handle())
    >>> law = oc.verify.Played(tape, session, [ask])
    >>> [law.worst_loss(rounds).ratio for rounds in (1, 2)]
    [Fraction(3, 1), Fraction(9, 1)]
    """

    @checks.checked(tape=checks.instance(Tape), begin=checks.function, refusals=_exceptions)
    def __init__(
        self,
        tape: Tape,
        begin: Callable[[int], Any],
        moves: Sequence[Move] | Callable[[History], Iterable[Move]],
        *,
        refusals: tuple[type[Exception], ...] = (),
        most: checks.Count = MOST_RUNS,
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
        """Find the session of at most ``rounds`` moves with the largest loss: ε at δ = 0.

        The result is exact if all chances are exact fractions.
        """
        return max(self.sessions(rounds), key=lambda reached: reached.ratio)

    def delta(self, epsilon: float, rounds: int) -> float:
        """Compute the smallest δ at ``epsilon`` against all analysts of at most ``rounds`` moves.

        :return: δ for the worse order of the datasets, to the precision of doubles
        """
        return max(self._best(leaf, rounds) for leaf in excesses(epsilon))

    def renyi(self, order: float, rounds: int) -> float:
        """Compute the largest Rényi divergence of ``order`` in sessions of up to ``rounds`` moves.

        :param order: finite, above 1
        :return: the divergence for the worse order of the datasets, to the precision of doubles;
            infinite where a moment overflows
        """
        alpha = checks.order(order=order)

        def power(p: float, q: float) -> float:
            if p == 0.0:
                return 0.0
            moment = alpha * log(p) + (1 - alpha) * log(q) if q > 0.0 else inf
            return exp(moment) if moment < LARGEST_LOG else inf

        both = self._best(power, rounds), self._best(lambda p, q: power(q, p), rounds)
        return log(max(both)) / (alpha - 1)

    def _best(self, leaf: Leaf, rounds: int) -> float:
        """Largest sum of a leaf over the answers, over all choices of moves."""
        limit = _ROUNDS(rounds=rounds)

        def value(history: History, played: tuple[Move, ...], p: Weights, q: Weights) -> float:
            best = leaf(float(sum(p.values())), float(sum(q.values())))
            if len(played) == limit:
                return best
            for move in self._moves(history):
                after, split = (*played, move), self._split(played, move, p, q)
                total = fsum(
                    value((*history, (move.name, answer)), after, *weights)
                    for answer, weights in split.items()
                )
                best = max(best, total)
            return best

        return value((), (), {(): 1}, {(): 1})

    def sessions(self, rounds: int) -> Iterator[Reached]:
        """Generate all sessions of at most ``rounds`` moves, with their ratios."""
        limit = _ROUNDS(rounds=rounds)
        onward: list[tuple[History, tuple[Move, ...], Weights, Weights]] = [
            ((), (), {(): 1}, {(): 1})
        ]
        while onward:
            history, played, p, q = onward.pop()
            yield Reached(_ratio(sum(p.values()), sum(q.values())), history)
            if len(played) < limit:
                for move in self._moves(history):
                    for answer, weights in self._split(played, move, p, q).items():
                        longer = (*history, (move.name, answer))
                        onward.append((longer, (*played, move), *weights))

    def _split(
        self, played: tuple[Move, ...], move: Move, p: Weights, q: Weights
    ) -> dict[Hashable, tuple[Weights, Weights]]:
        """Split the weights of both sides by the answer to a move."""
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
        """The answers to a move after given draws. Runs the session again from its start."""
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
