"""Several interactive mechanisms: the worst interleaving, the worst sequence, the theorem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import checks
from ...checks import checked, each, instance
from ...errors import InvalidTypeError
from ..mechanism import FiniteMechanism, excess, scale_of
from .interactive import FiniteInteractiveMechanism, History

_MECHANISMS = each("interactive mechanisms", instance(FiniteInteractiveMechanism))


@checked(mechanisms=_MECHANISMS)
def concurrent_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Largest δ at ``epsilon`` of an analyst who asks any mechanism at any time.

    Every next (mechanism, query) may depend on all answers so far, of all mechanisms.

    :param mechanisms: that are asked side by side
    :param epsilon: at which privacy is asked
    :return: δ, to the precision of doubles
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> pair = [verify.random_interactive(seed) for seed in (1, 2)]
    >>> verify.sequential_delta(pair, 0.5) <= verify.concurrent_delta(pair, 0.5)
    True
    >>> verify.concurrent_delta(pair, 0.5) <= verify.composition_delta(pair, 0.5) + 1e-12
    True
    """
    parts = _check(mechanisms)
    return max(_worst(parts, epsilon, order, False) for order in (0, 1))


@checked(mechanisms=_MECHANISMS)
def sequential_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Largest δ at ``epsilon`` of an analyst who ends one mechanism before he begins the next.

    Queries, and which mechanism is next, may depend on all answers so far.

    :param mechanisms: each is asked for all of its rounds, or not begun
    :param epsilon: at which privacy is asked
    :return: δ, to the precision of doubles
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> verify.sequential_delta([verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    parts = _check(mechanisms)
    return max(_worst(parts, epsilon, order, True) for order in (0, 1))


def _worst(
    parts: list[FiniteInteractiveMechanism],
    epsilon: float,
    order: int,
    sequential: bool,
) -> float:
    scale = scale_of(epsilon)
    known: dict[Any, float] = {}

    def stop(p: float, q: float) -> float:
        return excess(p, q, scale) if order == 0 else excess(q, p, scale)

    def value(histories: tuple[History, ...], p: float, q: float) -> float:
        """Probabilities are functions of the histories, which are therefore all that is to key."""
        found = known.get(histories)
        if found is not None:
            return found
        best = stop(p, q)
        for index in _next(parts, histories, sequential):
            history = histories[index]
            for query in range(parts[index].queries(len(history))):
                total = 0.0
                for answer, (one, other) in enumerate(parts[index].answers(history, query)):
                    after = (*history, (query, answer))
                    onward = (*histories[:index], after, *histories[index + 1 :])
                    total += value(onward, p * one, q * other)
                best = max(best, total)
        known[histories] = best
        return best

    return value(((),) * len(parts), 1.0, 1.0)


def _next(
    parts: list[FiniteInteractiveMechanism],
    histories: tuple[History, ...],
    sequential: bool,
) -> list[int]:
    """The mechanisms that may be asked now; one that was begun is ended first."""
    unfinished = [i for i, part in enumerate(parts) if len(histories[i]) < part.rounds]
    begun = [i for i in unfinished if histories[i]]
    return begun if sequential and begun else unfinished


@checked(mechanisms=_MECHANISMS)
def composition_pair(mechanisms: Sequence[FiniteInteractiveMechanism]) -> FiniteMechanism:
    """The product of the dominating pairs: what the composition theorem of [VZ23] allows.

    :param mechanisms: that are asked side by side
    :return: a noninteractive mechanism
    :raises InvalidTypeError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> pair = [verify.random_interactive(seed) for seed in (1, 2)]
    >>> verify.composition_pair(pair).delta(0.5) == verify.composition_delta(pair, 0.5)
    True
    """
    first, second = [1.0], [1.0]
    for part in _check(mechanisms):
        pair = part.dominating
        first = [p * one for p in first for one in pair.first]
        second = [q * other for q in second for other in pair.second]
    return FiniteMechanism(tuple(first), tuple(second))


@checked(mechanisms=_MECHANISMS)
def composition_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """δ at ``epsilon`` that the composition theorem for trade-off functions allows [VZ23].

    The noninteractive composition of the tight trade-off function of each mechanism.

    :param mechanisms: that are asked side by side
    :param epsilon: at which privacy is asked
    :return: δ, to the precision of doubles
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> verify.composition_delta([verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    return composition_pair(mechanisms).delta(epsilon)


def _check(mechanisms: Any) -> list[FiniteInteractiveMechanism]:
    checks.sequence("interactive mechanisms", mechanisms=mechanisms)
    for index, one in enumerate(mechanisms):
        if not isinstance(one, FiniteInteractiveMechanism):
            raise InvalidTypeError(
                f"mechanisms[{index}] must be a FiniteInteractiveMechanism, "
                f"found {type(one).__name__}"
            )
    return list(mechanisms)
