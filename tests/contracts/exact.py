"""Exact laws of real handles: randomness is read from a tape, and every tape is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.verify import FiniteMechanism

TOLERANCE = 1e-9
ALPHAS = (1.001, 1.5, 2.0, 4.0, 16.0)
EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.5, 3.0)


class Tape:
    """Choices of a run: those that are given, and then the likely one each time."""

    def __init__(self) -> None:
        self.rewind(())

    def rewind(self, given: tuple[bool, ...]) -> None:
        """Start a run with these choices."""
        self._given = given
        self.taken: list[bool] = []
        self.probability = 1.0

    def truth(self, epsilon: float) -> bool:
        """Whether randomized response tells the truth."""
        place = len(self.taken)
        choice = self._given[place] if place < len(self._given) else True
        self.taken.append(choice)
        self.probability *= 1 / (1 + exp(-epsilon if choice else epsilon))
        return choice


def law(tape: Tape, play: Callable[[], Any]) -> dict[Any, float]:
    """The distribution of what ``play`` returns."""
    found: dict[Any, float] = {}
    left: list[tuple[bool, ...]] = [()]
    while left:
        given = left.pop()
        tape.rewind(given)
        view = play()
        found[view] = found.get(view, 0.0) + tape.probability
        taken = tuple(tape.taken)
        left += [(*taken[:place], not taken[place]) for place in range(len(given), len(taken))]
    assert abs(sum(found.values()) - 1.0) < TOLERANCE
    return found


def pair_of(first: dict[Any, float], second: dict[Any, float]) -> FiniteMechanism:
    """Both laws as one finite mechanism."""
    views = list({**first, **second})
    return FiniteMechanism(
        tuple(first.get(one, 0.0) for one in views), tuple(second.get(one, 0.0) for one in views)
    )


def above(measure: Any, loss: Any, pair: FiniteMechanism) -> Iterator[str]:
    """Where the exact loss of a pair is above what was promised."""
    if measure == dp.max_divergence():
        if not pair.epsilon(0.0) <= loss + TOLERANCE:
            yield f"ε is {pair.epsilon(0.0)}, promised {loss}"
    elif measure == dp.approximate(dp.max_divergence()):
        epsilon, delta = loss
        if not pair.delta(epsilon) <= delta + TOLERANCE:
            yield f"δ({epsilon}) is {pair.delta(epsilon)}, promised {delta}"
    elif measure == dp.approximate(dp.zero_concentrated_divergence()):
        rho, delta = loss
        assert delta == 0.0
        yield from _renyi(pair, ALPHAS, lambda alpha: rho * alpha)
    elif measure == dp.zero_concentrated_divergence():
        yield from _renyi(pair, ALPHAS, lambda alpha: loss * alpha)
    elif measure == dp.renyi_divergence():
        yield from _renyi(pair, ALPHAS, loss)
    elif measure == oc.gaussian_tradeoff():
        yield from _profile(pair, oc.TradeoffFunction.gaussian(loss))
    elif measure == oc.tradeoff():
        yield from _profile(pair, loss)
    elif isinstance(loss, oc.TruncatedConcentrated):
        yield from _renyi(
            pair, [a for a in ALPHAS if a < loss.omega], lambda alpha: loss.rho * alpha
        )
    else:
        yield from _renyi(pair, [measure.descriptor.parameters[0]], lambda alpha: loss)


def _renyi(pair: FiniteMechanism, alphas: Any, bound: Callable[[float], float]) -> Iterator[str]:
    for alpha in alphas:
        if not pair.renyi(alpha) <= bound(alpha) * (1 + TOLERANCE) + TOLERANCE:
            yield f"the divergence of order {alpha} is {pair.renyi(alpha)}, not {bound(alpha)}"


def _profile(pair: FiniteMechanism, function: Any) -> Iterator[str]:
    for epsilon in EPSILONS:
        if not pair.delta(epsilon) <= float(function.delta(epsilon)) + TOLERANCE:
            yield f"δ({epsilon}) is {pair.delta(epsilon)}, not {float(function.delta(epsilon))}"


# --- finite mechanisms -----------------------------------------------------------------------


def zcdp_of(epsilon: float) -> float:
    """ρ of randomized response: ε tanh(ε/2) [Ste24]."""
    return epsilon * (exp(epsilon) - 1) / (exp(epsilon) + 1) * (1 + 1e-12)


def response(tape: Tape, space: Any, measure: Any, loss: Any, epsilon: float) -> Any:
    """Whether there are many rows, by randomized response."""
    return dp.m.make_user_measurement(
        *space,
        measure,
        lambda rows: (len(rows) % 2 == 1) == tape.truth(epsilon),
        lambda d_in: loss,
        TO="ExtrinsicObject",
    )


def answering(tape: Tape, space: Any, measure: Any, loss: Any, epsilon: float) -> Any:
    """A mechanism that answers two queries so, of half the loss each."""

    def function(rows: Any) -> Any:
        bit, answered = len(rows) % 2 == 1, []

        def answer(query: Any) -> Any:
            if len(answered) == 2:
                return "no more"
            answered.append(query)
            return bit == tape.truth(epsilon / 2)

        return dp.new_queryable(answer, Q="ExtrinsicObject", A="ExtrinsicObject")

    return dp.m.make_user_measurement(
        *space, measure, function, lambda d_in: loss, TO="ExtrinsicObject"
    )


class NoisyBits:
    """A continual mechanism: each step is counted by randomized response."""

    def __init__(self, tape: Tape, epsilon: float) -> None:
        self._tape, self._epsilon, self._count = tape, epsilon, 0

    def update(self, item: Any) -> None:
        self._count += (item is not None) == self._tape.truth(self._epsilon)

    def update_all(self, items: Any) -> None:
        for one in items:
            self.update(one)

    def ask(self, query: Any) -> Any:
        return self._count
