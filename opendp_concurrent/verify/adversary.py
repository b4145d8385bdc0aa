"""The worst analyst against a filter: likelihood ratios, menus, strategies and the search."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import exp, expm1, inf, isinf, log
from operator import add, mul
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, Union

import numpy as np

from .. import _checks as checks
from .. import errors
from .mechanism import (
    FiniteInteractiveMechanism,
    FiniteMechanism,
    History,
    Number,
    one_way,
    randomized_response,
)

Ratio = tuple[int, ...]
_DENOMINATORS = 60  # losses whose quotient has at most this denominator share a step
_EXACT = 1e-13  # relative error up to which a quotient counts as rational
_ZERO = 1e-14  # losses up to this count as 0
_ROUNDING = 4e-16  # absolute error of the logarithm of a quotient of probabilities


class Lattice:
    """A basis of steps for the losses log(P/Q) of some pairs of probabilities.

    Losses with a rational quotient are multiples of one step; each other loss is its own step. A
    ratio is a count for each step, so it is exact and does not depend on the order of the launches.

    :ivar error: largest difference between the loss of one answer and its steps
    """

    def __init__(self, pairs: Iterable[tuple[float, float]]) -> None:
        losses = sorted({abs(log(p / q)) for p, q in pairs if p > 0.0 < q})
        self.steps: list[float] = []
        for loss in losses:
            if loss > _ZERO and self._multiple(loss) is None:
                self._add(loss)
        self.origin: Ratio = (0,) * len(self.steps)
        self.error = max((self._error(loss) for loss in losses), default=0.0)

    def _error(self, loss: float) -> float:
        found = self._multiple(loss) if loss > _ZERO else None
        rest = loss if found is None else abs(loss - found[1] * self.steps[found[0]])
        return rest + 2 * _ROUNDING * (1 + loss)

    def _add(self, loss: float) -> None:
        for index, step in enumerate(self.steps):
            quotient = Fraction(loss / step).limit_denominator(_DENOMINATORS)
            if quotient and abs(loss - float(quotient) * step) <= _EXACT * loss + _ROUNDING:
                self.steps[index] = step / quotient.denominator
                return
        self.steps.append(loss)

    def _multiple(self, loss: float) -> tuple[int, int] | None:
        """Index of a step that divides ``loss``, above 0, and the multiple; None if none does."""
        for index, step in enumerate(self.steps):
            number = round(loss / step)
            if number and abs(loss - number * step) <= _EXACT * loss + _ROUNDING:
                return index, number
        return None

    def steps_of(self, p: float, q: float) -> Ratio | None:
        """The steps of log(p/q): None if only q is 0, and the origin if p is 0."""
        if q == 0.0 < p:
            return None
        steps = [0] * len(self.steps)
        loss = log(p / q) if p > 0.0 else 0.0
        if abs(loss) > _ZERO:
            found = self._multiple(abs(loss))
            assert found is not None
            index, number = found
            steps[index] = number if loss > 0 else -number
        return tuple(steps)

    def after(self, ratio: Ratio, steps: Ratio) -> Ratio:
        """The ratio after more steps."""
        return tuple(map(add, ratio, steps))

    def log(self, ratio: Ratio) -> float:
        """Logarithm of a ratio."""
        return float(sum(map(mul, ratio, self.steps)))


# The menu of an analyst, and the rule that admits launches from it.


S = TypeVar("S")  # the states of a rule, such as accumulators


class Item(NamedTuple):
    """A mechanism to launch: its name, the loss that it declares, and its distributions.

    A noninteractive mechanism is launched and answers. An interactive one is launched, and takes
    its queries later, interleaved with those of others.
    """

    name: str
    d_mid: errors.Loss
    mechanism: FiniteMechanism | FiniteInteractiveMechanism


class Rule(Protocol[S]):
    """A continuation rule, such as ``Within(d_out)``."""

    def admits(self, accumulator: S, d_mid: Any) -> S | errors.BudgetExceededError:
        """Return the next accumulator, or a ``BudgetExceededError``."""


def response_menu(*epsilons: float) -> list[Item]:
    """Randomized responses that declare (ε, 0).

    :param epsilons: one item for each

    :example:

    >>> [(item.name, item.d_mid) for item in oc.verify.response_menu(0.5, 1.0)]
    [('0.5', (0.5, 0.0)), ('1', (1.0, 0.0))]
    """
    numbers = [
        checks.non_negative(**{f"epsilons[{index}]": one}) for index, one in enumerate(epsilons)
    ]
    return [Item(f"{one:g}", (one, 0.0), randomized_response(one)) for one in numbers]


class Limited:
    """A rule that also limits the number of launches.

    Its states are pairs: an accumulator, and the number of launches that remain.
    """

    def __init__(self, rule: Rule[Any]) -> None:
        self._rule = rule

    def admits(self, state: tuple[Any, int], d_mid: errors.Loss) -> Any:
        """Return the next state, or a refusal."""
        accumulator, left = state
        if left == 0:
            return errors.BudgetExceededError(accumulator, d_mid, None)
        after = self._rule.admits(accumulator, d_mid)
        return after if isinstance(after, errors.BudgetExceededError) else (after, left - 1)


def _menu(**argument: Any) -> list[Item]:
    ((name, _),) = argument.items()
    items = list(checks.sequence("Item(name, d_mid, mechanism)", **argument))
    for index, item in enumerate(items):
        finite = FiniteMechanism, FiniteInteractiveMechanism
        if not isinstance(item, Item) or not isinstance(item.mechanism, finite):
            raise errors.InvalidTypeError(
                f"{name}[{index}] must be Item(name, d_mid, mechanism), with a FiniteMechanism or "
                "a FiniteInteractiveMechanism"
            )
    return items


on_a_menu = checks.checked(
    menu=_menu,
    accumulator=checks.hashable,
    rule=checks.with_method("admits", "have a method admits(accumulator, d_mid)"),
    most=checks.at_most(500, "each is a level of recursion"),
)


def next_state(rule: Rule[S], state: S, item: Item) -> S | None:
    """State after a launch; None if it is refused, or if it costs nothing and reveals nothing."""
    try:
        after = rule.admits(state, item.d_mid)
    except errors.ConcurrentError:
        raise
    except Exception as error:
        raise errors.InvalidTypeError(
            f"accumulator ({errors.shown(state)}) must be a state of the rule, such as "
            f"accumulator.start(measure); launch of {errors.shown(item.d_mid)} failed: {error}"
        ) from error
    if isinstance(after, errors.BudgetExceededError):
        return None
    if after == state:
        if all(np.array_equal(*table) for table in item.mechanism.tables):
            return None
        raise errors.InvalidValueError(
            f"menu item {item.name!r} is admitted at no cost, so without limit: {item.d_mid} "
            "does not change the state of the rule; pass Limited(rule) and (state, launches)"
        )
    return after


def check_depth(depth: int, most: int) -> None:
    """Raise if an analyst sends more than ``most`` launches and queries."""
    if depth > most:
        raise errors.InvalidValueError(
            f"most ({most}) launches are too few, since the filter admits more; pass a larger "
            "number, or a smaller bound"
        )


# The strategy of an analyst, as a tree to read, draw and run.
#
# Equal situations share one node, so the tree is as small as the table from which it is made.


@dataclass(frozen=True)
class Stop:
    """Stop launching.

    :ivar loss: log(P/Q) of all answers so far
    """

    loss: float

    def __str__(self) -> str:
        return f"stop at loss {self.loss:.4g}"


@dataclass(frozen=True, eq=False)
class Send:
    """Send a launch, or a query to a child, and continue as the answer says.

    :ivar what: is sent, such as "launch coin", or "query 1 of svt after (0, 2)": to the child of
        the item "svt" that was asked query 0 before, and answered 2
    :ivar loss: log(P/Q) of all answers so far
    :ivar branches: for each answer P, Q and the strategy that follows. The launch of an interactive
        mechanism has one answer
    """

    what: str
    loss: float
    branches: tuple[tuple[float, float, Strategy], ...]

    def lines(self, depth: int) -> list[str]:
        """The tree down to ``depth`` messages, one line for each node."""
        result = [self.what]
        for index, (first, second, onward) in enumerate(self.branches):
            head = f"  answer {index} ({first:.4g} | {second:.4g}): "
            if isinstance(onward, Stop):
                result.append(f"{head}{onward}")
            elif depth <= 1:
                result.append(f"{head}{onward.what} ...")
            else:
                below = onward.lines(depth - 1)
                result += [head + below[0], *(f"  {line}" for line in below[1:])]
        return result

    def __str__(self) -> str:
        return "\n".join(self.lines(4))


Strategy: TypeAlias = Union[Stop, Send]  # noqa: UP007 (evaluated on Python 3.10)


def view_of(strategy: Strategy) -> FiniteMechanism:
    """Distributions of what the analyst sees; views of one likelihood ratio are one answer."""
    masses = {id(strategy): (1.0, 1.0)}
    seen: dict[float, tuple[float, float]] = {}
    for node in _from_the_root(strategy):
        first, second = masses.pop(id(node))
        if isinstance(node, Stop):
            p, q = seen.get(node.loss, (0.0, 0.0))
            seen[node.loss] = (p + first, q + second)
            continue
        for p, q, onward in node.branches:
            before = masses.get(id(onward), (0.0, 0.0))
            masses[id(onward)] = (before[0] + first * p, before[1] + second * q)
    firsts, seconds = zip(*seen.values(), strict=True)
    return FiniteMechanism(firsts, seconds)


def _from_the_root(strategy: Strategy) -> list[Strategy]:
    """All nodes, each after all nodes that lead to it."""
    order: list[Strategy] = []
    done: set[int] = set()

    def visit(node: Strategy) -> None:
        if id(node) in done:
            return
        done.add(id(node))
        if isinstance(node, Send):
            for _, _, onward in reversed(node.branches):
                visit(onward)
        order.append(node)

    visit(strategy)
    return order[::-1]


# The worst analyst against a filter. Start reading here.
#
# An analyst has a menu of mechanisms, each with its declared privacy loss. The analyst launches a
# mechanism, sends queries to all that is open, in any order, and launches the next one, as long as
# the filter admits it. How well can the analyst distinguish two neighbouring datasets? For finite
# mechanisms this is computed exactly, over *all* analysts, with the rule and the accumulator of the
# filter itself.
#
# The future depends on the past only through the state of the accumulator, the histories of the
# open children and the likelihood ratio x = P/Q of the answers so far. The largest value of the sum
# of (P - e^ε Q)+ over all futures is, per unit of P, a function g(state, children, x), and a
# dynamic programme computes it:
#
#     g(state, children, x) = max(stop: (1 - e^ε/x)+,
#                                 launch an admitted item, or query a child:
#                                 sum over answers a of P(a) g(state', children', x P(a)/Q(a)))
#
# Deterministic analysts suffice [HSTVVXZ23, Lemma 2.3]. The logarithm of a ratio is stored as
# integer multiples of common steps, so that equal ratios are recognised. A mechanism that answers
# once is launched with its only query, and is never open. The strategy omits messages that gain
# less than 1e-15, so ``delta`` omits them, too. ``delta_upper`` includes them and all rounding: no
# analyst exceeds it. For pure DP use :func:`worst_loss`, because the probability of a violation may
# be too small for doubles.

SMALLEST_GAIN = 1e-15  # per unit of P, of a message that is part of a strategy
ULP = 2.0**-52


@dataclass(frozen=True)
class Worst:
    """The largest δ that an analyst reaches, and the strategy that reaches it.

    :ivar delta: sum over answers of (P - e^ε Q)+ under the strategy, for the worse order of the
        datasets
    :ivar swapped: whether the worse order is (second, first); strategy and view keep the order of
        the menu
    :ivar strategy: a tree of launches and queries
    :ivar view: distributions of all that the analyst sees, on both datasets
    :ivar delta_upper: bound for all analysts: includes all rounding, and the launches that the
        strategy omits for their small gain
    """

    delta: float
    swapped: bool
    strategy: Strategy
    view: FiniteMechanism
    delta_upper: float


@on_a_menu
def worst_analyst(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule[Any], epsilon: float, *, most: int = 300
) -> Worst:
    """Find the analyst who reaches the largest δ at ``epsilon`` against a filter.

    The analyst also interleaves the queries of interactive mechanisms.

    :param menu: mechanisms that may be launched, any number of times. Your own menu is a list
        of ``Item(name, d_mid, mechanism)``
    :param accumulator: before the first launch; frozen and hashable, such as
        ``oc.accumulators.zcdp(1e-6).start()``
    :param rule: admits launches, such as ``Within(d_out)``
    :param epsilon: at which δ is computed
    :param most: largest number of launches, and of queries to interactive mechanisms; raises if
        the rule admits more
    :return: the strategy, its δ, and an upper bound for all analysts

    :example:

    >>> menu = oc.verify.response_menu(0.5, 1.0)  # randomized responses that declare (ε, 0)
    >>> measure = oc.extend.composition_measure(dp.approximate(dp.max_divergence()))
    >>> start = oc.accumulators.basic().start(measure)
    >>> worst = oc.verify.worst_analyst(menu, start, oc.verify.Within((1.5, 0.0)), epsilon=1.0)
    >>> worst.delta
    0.17904988921...
    >>> print(worst.strategy)
    launch 0.5
      answer 0 (0.6225 | 0.3775): launch 1
        answer 0 (0.7311 | 0.2689): stop at loss 1.5
        answer 1 (0.2689 | 0.7311): stop at loss -0.5
      answer 1 (0.3775 | 0.6225): stop at loss -0.5

    Two interactive mechanisms, with a bound that admits each of them once:

    >>> machines = [oc.verify.random_interactive(seed) for seed in (1, 2)]
    >>> menu = [oc.verify.Item(f"{e.epsilon():.2f}", (e.epsilon(), 0.0), e) for e in machines]
    >>> both = sum(item.d_mid[0] for item in menu)
    >>> worst = oc.verify.worst_analyst(menu, start, oc.verify.Within((both, 0.0)), epsilon=1.0)
    >>> worst.delta
    0.71202...
    """
    bound = checks.real(epsilon=epsilon)
    after = cache(lambda state: [next_state(rule, state, item) for item in menu])
    solvers = [_Solver(menu, after, bound, most, swapped) for swapped in (False, True)]
    best = [solver.best(accumulator, (), solver.lattice.origin) for solver in solvers]
    upper = max(solver.upper(one) for solver, one in zip(solvers, best, strict=True))
    swapped = best[1].value > best[0].value
    value, _, strategy = best[swapped]
    view = view_of(strategy)
    return Worst(min(value, view.delta(bound)), swapped, strategy, view, upper)


class _Best(NamedTuple):
    """The largest value in a situation, per unit of P."""

    value: float
    messages: int  # the largest number that may follow
    strategy: Strategy


Child: TypeAlias = tuple[int, History]  # index of the item, and what was asked and answered
Children: TypeAlias = tuple[Child, ...]  # sorted, since equal ones are interchangeable
_Answered = tuple[float, float, Union[Ratio, None], Union[Child, None]]  # noqa: UP007
_Move = tuple[str, list[_Answered], Any, Children]


class _Solver:
    """The dynamic programme for one order of the two datasets."""

    def __init__(
        self,
        items: Sequence[Item],
        after: Callable[[Any], list[Any]],
        epsilon: float,
        most: int,
        swapped: bool,
    ) -> None:
        self._items, self._after, self._epsilon, self._most = items, after, epsilon, most
        self._swapped, self._sign = swapped, -1.0 if swapped else 1.0
        self._machines = [FiniteInteractiveMechanism(item.mechanism.tables) for item in items]
        tables = [
            table[::-1] if swapped else table for one in self._machines for table in one.tables
        ]
        self.lattice = Lattice(
            pair for table in tables for pair in zip(*table.reshape(2, -1).tolist(), strict=True)
        )
        self._terms = 2 + max((table.shape[-1] for table in tables), default=0)
        self._best: dict[Any, _Best] = {}
        self._largest = 0.0
        self._queries = cache(self._list_queries)

    def upper(self, best: _Best) -> float:
        """A bound for all analysts, from the computed value: adds the error of rounding.

        The error of a leaf is at most that of its loss; a sum of positive terms adds its relative
        error of rounding.
        """
        error = best.messages * self.lattice.error + 4 * ULP * (self._largest + abs(self._epsilon))
        return min(1.0, best.value * (1 + best.messages * self._terms * ULP) + error)

    def best(self, state: Hashable, children: Children, ratio: Ratio, depth: int = 0) -> _Best:
        """The largest value over all futures of a situation; equal situations share one result."""
        if (state, children, ratio) in self._best:
            return self._best[state, children, ratio]
        check_depth(depth, self._most)
        loss = self.lattice.log(ratio)
        self._largest = max(self._largest, abs(loss))
        best = chosen = -expm1(self._epsilon - loss) if loss > self._epsilon else 0.0
        strategy: Strategy = Stop(self._sign * loss)
        messages = 0
        for what, answers, after, left in self._moves(state, children):
            value, branches = 0.0, []
            for first, second, steps, child in answers:
                if steps is None:  # impossible on the other dataset: distinguishes for certain
                    value += first
                    onward: Strategy = Stop(self._sign * inf)
                elif first == 0.0:
                    onward = Stop(-self._sign * inf)
                else:
                    opened = left if child is None else tuple(sorted((*left, child)))
                    told = self.lattice.after(ratio, steps)
                    below = self.best(after, opened, told, depth + 1)
                    value += first * below.value
                    messages = max(messages, 1 + below.messages)
                    onward = below.strategy
                pair = (second, first) if self._swapped else (first, second)
                branches.append((*pair, onward))
            if value > chosen + SMALLEST_GAIN:
                chosen, strategy = value, Send(what, self._sign * loss, tuple(branches))
            best = max(best, value)
        self._best[state, children, ratio] = found = _Best(best, messages, strategy)
        return found

    def _moves(self, state: Hashable, children: Children) -> Iterator[_Move]:
        """What may be sent: its name and its answers; then the state, and all other children."""
        for index, after in enumerate(self._after(state)):
            if after is None:  # refused, or of no use
                continue
            name = f"launch {self._items[index].name}"
            if isinstance(self._items[index].mechanism, FiniteMechanism):
                for _, answers in self._queries((index, ())):
                    yield name, answers, after, children
            else:
                yield name, [(1.0, 1.0, self.lattice.origin, (index, ()))], after, children
        for place, child in enumerate(children):
            if child not in children[:place]:  # equal children are asked alike
                for name, answers in self._queries(child):
                    yield name, answers, state, children[:place] + children[place + 1 :]

    def _list_queries(self, child: Child) -> list[tuple[str, list[_Answered]]]:
        """Each query of a child, and its answers, each with the child after it; None at the end."""
        (index, history), (machine, found) = child, (self._machines[child[0]], [])
        for query in range(machine.queries(len(history))):
            answers: list[_Answered] = []
            for answer, pair in enumerate(machine.answers(history, query)):
                p, q = pair[::-1] if self._swapped else pair
                told = (*history, (query, answer))
                onward = None if len(told) == machine.rounds else (index, told)
                answers.append((p, q, self.lattice.steps_of(p, q), onward))
            after = f" after {', '.join(map(str, history))}" if history else ""
            found.append((f"query {query} of {self._items[index].name}{after}", answers))
        return found


# The analyst who stops at the worst time: what a reading of an odometer promises then.
#
# The launches are randomized responses to one bit, with the same ε. After n of them the log of the
# likelihood ratio is L = (2j - n) ε for the number j of answers that speak for the first dataset.
# Stopping there with a reading U shows a divergence of (1 - e^(U - L))+ per probability of the
# first dataset. The best time to stop is found backwards from the last launch.


@checks.checked
def worst_stopping(readings: Sequence[float], epsilon: checks.Positive) -> float:
    """Return the largest δ of a reading over all times to stop.

    This is the largest P(S) - the integral of e^U over S under Q, over all rules when to stop and
    all sets S of what is seen, where U is the reading at the time of stopping. A reading that holds
    at any time keeps it at most at its δ.

    :param readings: the ε that is read after the first launch, after the second, and so on
    :param epsilon: of each launch, a randomized response
    :return: the largest δ, in doubles

    :example:

    >>> rule = oc.accumulators.any_time(1e-2)
    >>> launches = [rule.start().after((0.1, 0.0), n).loss[0] for n in range(1, 201)]
    >>> oc.verify.worst_stopping(launches, 0.1) < 1e-2
    True
    """
    bounds = [
        checks.non_negative(**{f"readings[{index}]": reading})
        for index, reading in enumerate(checks.sequence("numbers", readings=readings))
    ]
    up = 1 / (1 + exp(-epsilon))
    value = np.zeros(len(bounds) + 2)  # nobody goes on after the last launch
    for n in range(len(bounds), 0, -1):
        losses = epsilon * (2 * np.arange(n + 1) - n)
        stopped = -np.expm1(np.minimum(bounds[n - 1] - losses, 0.0))
        value = np.maximum(stopped, up * value[1:] + (1 - up) * value[:-1])
    return float(up * value[1] + (1 - up) * value[0])


# The largest total that an analyst reaches, for losses that add up over launches.
#
# These are the largest loss (pure DP), the mean loss (Kullback-Leibler divergence), and the Rényi
# divergence of each order. They need no likelihood ratios, and no launch is omitted.


def _loss_of_item(**argument: Any) -> Number:
    ((name, value),) = argument.items()
    if type(value) is not Fraction:
        return checks.non_negative(**argument)
    if not value >= 0:
        raise errors.InvalidValueError(f"{name} ({checks.shown(value)}) must be at least 0")
    return value


@on_a_menu
@checks.checked(losses=checks.optional(checks.each("losses", _loss_of_item)))
def worst_loss(
    menu: Sequence[Item],
    accumulator: Hashable,
    rule: Rule[Any],
    *,
    losses: Sequence[Number] | None = None,
    most: int = 300,
) -> Number:
    """Compute the largest privacy loss against a filter, exactly: ε at δ = 0.

    Use it for pure DP: it finds a violation however small its probability is. The other parameters
    are those of :func:`worst_analyst`.

    :param losses: the exact largest loss of each item. By default they are computed in doubles from
        the probabilities, with an error of a few units in the last place
    :return: the exact sum, as a Fraction; infinite if some answer is impossible on one dataset

    :example:

    >>> from fractions import Fraction
    >>> menu = [oc.verify.Item("response", 0.1, oc.verify.randomized_response(0.1))]
    >>> measure = oc.extend.composition_measure(dp.max_divergence())
    >>> start = oc.accumulators.basic().start(measure)
    >>> worst = oc.verify.worst_loss(menu, start, oc.verify.Within(0.3), losses=[Fraction(0.1)])
    >>> worst == 2 * Fraction(0.1)  # three times the double 0.1 is more than the double 0.3
    True
    """
    if losses is not None and len(losses) != len(menu):
        raise errors.InvalidValueError(
            f"losses ({len(losses)}) must have one element for each of the {len(menu)} items"
        )
    sides = _one_way(menu, inf) if losses is None else [losses]
    exact = [[one if isinf(one) else Fraction(one) for one in side] for side in sides]
    return max(_largest_total(one, menu, accumulator, rule, most) for one in exact)


@on_a_menu
def worst_renyi(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule[Any], order: float, *, most: int = 300
) -> float:
    """Compute the largest Rényi divergence of ``order`` against a filter.

    The divergences of interleaved mechanisms add up [LW22, Theorem 2], so no interleavings are
    listed. The other parameters are those of :func:`worst_analyst`.

    :param order: finite, at least 1. At 1 it is the mean of the privacy loss, which is the
        Kullback-Leibler divergence
    :return: the divergence, for the worse order of the datasets

    :example:

    >>> menu = [oc.verify.Item("response", 0.5, oc.verify.randomized_response(0.5))]
    >>> measure = oc.extend.composition_measure(dp.max_divergence())
    >>> start = oc.accumulators.basic().start(measure)
    >>> oc.verify.worst_renyi(menu, start, oc.verify.Within(1.0), order=2.0)
    0.45467...
    >>> 2 * oc.verify.randomized_response(0.5).renyi(2.0)
    0.45467...
    >>> oc.verify.worst_renyi(menu, start, oc.verify.Within(1.0), order=1.0)  # 2 * 0.5 * tanh(0.25)
    0.24491...
    """
    if not 1.0 <= checks.real(order=order) < inf:
        raise errors.InvalidValueError(f"order ({order}) must be finite and at least 1")
    sides = _one_way(menu, order)
    return max(float(_largest_total(one, menu, accumulator, rule, most)) for one in sides)


def _one_way(menu: Sequence[Item], order: float) -> list[list[float]]:
    """For each order of the datasets, the divergence of each item."""
    return [[one_way(item.mechanism.tables, order, side) for item in menu] for side in (0, 1)]


def _largest_total(
    values: Sequence[Number], items: Sequence[Item], accumulator: S, rule: Rule[S], most: int
) -> Number:
    """Largest sum of the values of the items, over all sequences of launches that a rule admits."""
    known: dict[Any, Number] = {}

    def largest(state: S, depth: int) -> Number:
        if state not in known:
            check_depth(depth, most)
            best: Number = 0
            for item, value in zip(items, values, strict=True):
                after = next_state(rule, state, item)
                if after is not None:
                    best = max(best, value + largest(after, depth + 1))
            known[state] = best
        return known[state]

    return largest(accumulator, 0)
