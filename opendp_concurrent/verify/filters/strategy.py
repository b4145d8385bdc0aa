"""The strategy of an analyst, as a tree to read, draw and run.

Equal situations share one node, so the tree is as small as the table from which it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from ..mechanism import FiniteMechanism


@dataclass(frozen=True)
class Stop:
    """Stop launching.

    :ivar loss: log(P/Q) of all answers so far
    """

    loss: float

    def __str__(self) -> str:
        return f"stop at loss {self.loss:.4g}"


@dataclass(frozen=True, eq=False)
class Launch:
    """Launch an item, and continue as its answer says.

    :ivar name: of the item
    :ivar loss: log(P/Q) of all answers before the launch
    :ivar branches: for each answer P, Q and the strategy that follows
    """

    name: str
    loss: float
    branches: tuple[tuple[float, float, Strategy], ...]

    def lines(self, depth: int) -> list[str]:
        """The tree down to ``depth`` launches, one line for each node."""
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
        if isinstance(node, Launch):
            for _, _, onward in reversed(node.branches):
                visit(onward)
        order.append(node)

    visit(strategy)
    return order[::-1]
