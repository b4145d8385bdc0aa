"""The strategy of an analyst as a tree: launches, answers with two probabilities, and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..arguments.checked import Count, NonNegative, checked
from ..errors import InvalidTypeError, InvalidValueError
from .drawing import Ax, Axes, axes, require_matplotlib

ROW = 0.36  # inches, as all lengths here
SMALL, SMALLER = 8.5, 7.5  # font sizes of nodes and of answers, in points
PAD, GAP = 0.06, 0.14  # beside the text of a node; between a box and the text of an answer
MOST_LEAVES = 200
RED, GREY, BLUE = "#f6c9c0", "0.93", "#cfe0f3"  # leaves above ε, other leaves, launches


@checked
def plot_strategy(
    strategy: Any, *, epsilon: NonNegative | None = None, depth: Count = 4, ax: Ax | None = None
) -> Axes:
    """Draw a strategy of ``opendp_concurrent.verify``, as a picture of its printed tree.

    The first launch is on the left. Each branch is an answer, with its probabilities on the first
    and on the second dataset. Each leaf has the loss, log(P/Q) of all answers on its path.

    :param strategy: such as ``worst_analyst(...).strategy``
    :param epsilon: leaves with a larger loss are red; δ at ε counts only these
    :param depth: number of launches after which the tree is cut, as in print
    :param ax: axes to draw on; a new figure is as large as the tree

    :example:

    >>> from opendp_concurrent.accounts.rule import Within
    >>> measure = oc.measures.composition_measure(dp.approximate(dp.max_divergence()))
    >>> start, menu = oc.accumulators.basic().start(measure), oc.verify.response_menu(0.5, 1.0)
    >>> worst = oc.verify.worst_analyst(menu, start, Within((1.5, 0.0)), epsilon=1.0)
    >>> ax = oc.plot.plot_strategy(worst.strategy, epsilon=1.0)
    >>> [text.get_text() for text in ax.texts if "loss" in text.get_text()]
    ['loss 1.5', 'loss -0.5', 'loss -0.5']
    """
    if "loss" not in getattr(type(strategy), "__dataclass_fields__", ()):  # verify is not imported
        raise InvalidTypeError(
            f"strategy must be made by opendp_concurrent.verify, found {type(strategy).__name__}; "
            "pass for example worst_analyst(...).strategy"
        )
    require_matplotlib()  # which measures the texts
    nodes = _laid_out(strategy, depth)
    right = max(node.right for node in nodes)
    rows = max(node.row for node in nodes) + 1
    ax = axes(ax, (right + 0.2, ROW * rows + 0.2))
    for node in nodes:
        _draw(ax, node, epsilon)
    ax.set_xlim(-0.05, right + 0.05)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.set_axis_off()
    return ax


@dataclass
class _Node:
    """A launch or a leaf, and its position.

    :ivar left: where its box begins
    :ivar row: counted from above; a launch is in the middle of its answers
    """

    text: str
    loss: float | None
    column: int
    left: float = 0.0
    row: float = 0.0
    answers: list[tuple[str, _Node]] = field(default_factory=list)

    @property
    def right(self) -> float:
        """Where its box ends."""
        return self.left + _width(self.text, SMALL) + 2 * PAD

    @property
    def middle(self) -> float:
        """The middle of its box."""
        return (self.left + self.right) / 2

    def all(self) -> Iterator[_Node]:
        """The node and all nodes below it."""
        yield self
        for _, onward in self.answers:
            yield from onward.all()


def _width(text: str, size: float) -> float:
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) / 72


def _laid_out(strategy: Any, depth: int) -> list[_Node]:
    """The nodes down to ``depth`` launches; equal situations have a node each."""
    ends = 0

    def place(strategy: Any, column: int) -> _Node:
        nonlocal ends
        if not hasattr(strategy, "branches"):
            node = _Node(f"loss {strategy.loss:.4g}", strategy.loss, column)
        elif column == depth:
            node = _Node(f"launch {strategy.name} ...", None, column)
        else:
            node = _Node(f"launch {strategy.name}", None, column)
            for first, second, onward in strategy.branches:
                answer = f"{first:.4g} | {second:.4g}"
                node.answers.append((answer, place(onward, column + 1)))
        if node.answers:
            node.row = (node.answers[0][1].row + node.answers[-1][1].row) / 2
        else:
            node.row = float(ends)
            ends += 1
            if ends > MOST_LEAVES:
                raise InvalidValueError(
                    f"depth ({depth}) must be smaller: the tree has more than {MOST_LEAVES} leaves"
                )
        return node

    nodes = list(place(strategy, 0).all())
    left = 0.0
    for column in range(max(node.column for node in nodes) + 1):
        here = [node for node in nodes if node.column == column]
        for node in here:
            node.left = left
        answers = [_width(answer, SMALLER) for node in here for answer, _ in node.answers]
        left = max(node.right for node in here) + max(answers, default=0.0) + 2 * GAP
    return nodes


def _draw(ax: Axes, node: _Node, epsilon: float | None) -> None:
    red = epsilon is not None and node.loss is not None and node.loss > epsilon
    color = BLUE if node.loss is None else RED if red else GREY
    text: dict[str, Any] = {"ha": "center", "va": "center"}
    box = {"boxstyle": "round,pad=0.3", "facecolor": color, "edgecolor": "0.6", "linewidth": 0.8}
    ax.text(node.middle, node.row, node.text, fontsize=SMALL, zorder=3, bbox=box, **text)
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    for answer, onward in node.answers:
        # lines go to the middles of the boxes, which cover their ends
        start, end = node.middle, onward.middle
        ax.plot([start, end], [node.row, onward.row], color="0.6", linewidth=1.0, zorder=1)
        x = onward.left - GAP - _width(answer, SMALLER) / 2
        y = node.row + (x - start) / (end - start) * (onward.row - node.row)
        ax.text(x, y, answer, fontsize=SMALLER, zorder=2, bbox=box, **text)
