"""A tape of outcomes in place of noise: real code runs again for every outcome of its draws.

Code becomes an exact distribution if it calls :meth:`Tape.draw` where it would add noise, and is
deterministic otherwise. The tape raises no exception through the code, because native code may have
called it. After the decided draws, each draw returns its first outcome and is recorded. Then the
code runs again with the next outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, fsum, inf, isinf, log, prod
from typing import Any

import numpy as np
from scipy.stats import beta

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from .mechanism import LARGEST_LOG, TOLERANCE, Leaf, Number, excesses

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


# Real interactive measurements against every analyst: their exact worst loss.
#
# Filters, odometers, casts and wrappers are real code. Only the innermost mechanism is finite: a
# user measurement whose function draws from a :class:`Tape`. So the distribution of a whole session
# is exact, and so is the worst loss over all analysts who choose their moves from a list.
# Deterministic analysts suffice [HSTVVXZ23, Lemma 2.3].

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
