"""Several interactive mechanisms: the worst interleaving, the worst sequence, and the theorem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arguments.abilities import instance
from ...arguments.checked import checked
from ...arguments.checks import each
from ..mechanism import FiniteMechanism, Leaf, excesses
from .interactive import FiniteInteractiveMechanism, History

_on_mechanisms = checked(
    mechanisms=each("interactive mechanisms", instance(FiniteInteractiveMechanism), empty=False)
)


@_on_mechanisms
def concurrent_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the largest δ at ``epsilon`` of an analyst who queries any mechanism at any time.

    Each choice of a mechanism and a query may depend on all earlier answers of all mechanisms.

    :param mechanisms: the interleaved mechanisms
    :param epsilon: at which δ is computed
    :return: δ, to the precision of doubles

    :example:

    >>> pair = [oc.verify.random_interactive(seed) for seed in (1, 2)]
    >>> oc.verify.sequential_delta(pair, 0.5) <= oc.verify.concurrent_delta(pair, 0.5)
    True
    >>> oc.verify.concurrent_delta(pair, 0.5) <= oc.verify.composition_delta(pair, 0.5) + 1e-12
    True
    """
    return max(_worst(mechanisms, leaf, sequential=False) for leaf in excesses(epsilon))


@_on_mechanisms
def sequential_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the largest δ at ``epsilon`` of an analyst who uses one mechanism after the other.

    Queries, and the next mechanism, may depend on all earlier answers. Each mechanism is queried in
    all of its rounds, or not at all. The parameters are those of :func:`concurrent_delta`.

    :example:

    >>> oc.verify.sequential_delta([oc.verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    return max(_worst(mechanisms, leaf, sequential=True) for leaf in excesses(epsilon))


def _worst(parts: Sequence[FiniteInteractiveMechanism], leaf: Leaf, *, sequential: bool) -> float:
    """Largest sum of a leaf over the views of one analyst, who may stop at any time."""
    known: dict[Any, float] = {}

    def value(histories: tuple[History, ...], p: float, q: float) -> float:
        if histories in known:  # they determine p and q
            return known[histories]
        best = leaf(p, q)
        unfinished = [i for i, part in enumerate(parts) if len(histories[i]) < part.rounds]
        begun = [i for i in unfinished if histories[i]] if sequential else []
        for index in begun or unfinished:
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


@_on_mechanisms
def composition_pair(mechanisms: Sequence[FiniteInteractiveMechanism]) -> FiniteMechanism:
    """Compute the product of the dominating pairs, the bound of the composition theorem [VZ23].

    :param mechanisms: the interleaved mechanisms
    :return: a noninteractive mechanism

    :example:

    >>> pair = [oc.verify.random_interactive(seed) for seed in (1, 2)]
    >>> oc.verify.composition_pair(pair).delta(0.5) == oc.verify.composition_delta(pair, 0.5)
    True
    """
    first, second = [1.0], [1.0]
    for part in mechanisms:
        pair = part.dominating
        first = [p * one for p in first for one in pair.first]
        second = [q * other for q in second for other in pair.second]
    return FiniteMechanism(tuple(first), tuple(second))


def composition_delta(mechanisms: Sequence[FiniteInteractiveMechanism], epsilon: float) -> float:
    """Compute the δ at ``epsilon`` that the composition theorem for f-DP allows [VZ23].

    This is the noninteractive composition of the tight trade-off functions of the mechanisms. The
    parameters are those of :func:`concurrent_delta`.

    :example:

    >>> oc.verify.composition_delta([oc.verify.random_interactive(seed) for seed in (1, 2)], 0.5)
    0.72966...
    """
    return composition_pair(mechanisms).delta(epsilon)
