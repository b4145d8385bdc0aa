"""What an analyst does, as a tree that can be read, drawn and run.

Equal situations share one node, so a strategy is as small as the table that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from ..mechanism import FiniteMechanism


@dataclass(frozen=True)
class Stop:
    """Ask no more.

    :ivar loss: log P/Q of all that was seen
    """

    loss: float

    def __str__(self) -> str:
        return f"stop at loss {self.loss:.4g}"


@dataclass(frozen=True, eq=False)
class Launch:
    """Launch an item, and go on according to its answer.

    :ivar name: of the item
    :ivar loss: log P/Q of what was seen before
    :ivar branches: for each answer P, Q and what follows
    """

    name: str
    loss: float
    branches: tuple[tuple[float, float, Strategy], ...]

    def lines(self, depth: int) -> list[str]:
        """The tree down to ``depth`` launches, a line for each node."""
        result = [f"launch {self.name}"]
        for index, (first, second, onward) in enumerate(self.branches):
            head = f"  answer {index} ({first:.4g} | {second:.4g}): "
            if isinstance(onward, Stop):
                result.append(f"{head}{onward}")
            elif depth <= 1:
                result.append(f"{head}launch {onward.name} ...")
            else:
                below = onward.lines(depth - 1)
                result += [head + below[0], *(f"  {line}" for line in below[1:])]
        return result

    def __str__(self) -> str:
        return "\n".join(self.lines(4))


Strategy: TypeAlias = Union[Stop, Launch]  # noqa: UP007 (evaluated on Python 3.10)


def view_of(strategy: Strategy) -> FiniteMechanism:
    """Law of all that the analyst sees; views with the same likelihood ratio are one answer."""
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
    return FiniteMechanism(
        tuple(first for first, _ in seen.values()), tuple(second for _, second in seen.values())
    )


def _from_the_root(strategy: Strategy) -> list[Strategy]:
    """All nodes, each after those that lead to it."""
    order: list[Strategy] = []
    done: set[int] = set()
    stack: list[tuple[Strategy, bool]] = [(strategy, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            order.append(node)
        elif id(node) not in done:
            done.add(id(node))
            stack.append((node, True))
            if isinstance(node, Launch):
                stack += [(onward, False) for _, _, onward in node.branches]
    return order[::-1]
