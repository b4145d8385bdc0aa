"""What an analyst does, as a tree: launches, answers with their two probabilities, losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import checks
from ..checks import checked, non_negative, optional
from ..errors import InvalidTypeError, InvalidValueError
from .drawing import axes, drawable, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.36  # inches, as all lengths here
SMALL, SMALLER = 8.5, 7.5  # of the texts of nodes and of answers, in points
PAD, GAP = 0.06, 0.14  # beside the text of a node, and between boxes and the text of an answer
MOST_LEAVES = 200
COUNTS, CALM, LAUNCH = "#f6c9c0", "0.93", "#cfe0f3"


@checked(epsilon=optional(non_negative), ax=optional(drawable))
def plot_strategy(
    strategy: Any, *, epsilon: float | None = None, depth: int = 4, ax: Axes | None = None
) -> Axes:
    """Draw a strategy of ``opendp_concurrent.verify``: the same as it prints, as a picture.

    The first launch is at the left. A branch is an answer, with its probability on the first
    dataset and on the second; at the ends are the losses, log P/Q of all that was seen.

    :param strategy: such as ``worst_analyst(...).strategy``
    :param epsilon: ends with a larger loss are in red: they are what δ at ε counts
    :param depth: launches after which the tree is cut, as when it is printed
    :param ax: axes to draw on; those of a new figure, as large as it needs, if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent import verify
    >>> from opendp_concurrent.accounts.rule import Within
    >>> from opendp_concurrent.plot import plot_strategy
    >>> measure = oc.measures.composition_measure(dp.approximate(dp.max_divergence()))
    >>> start, rule = oc.accumulators.basic().start(measure), Within((1.5, 0.0))
    >>> worst = verify.worst_analyst(verify.response_menu(0.5, 1.0), start, rule, epsilon=1.0)
    >>> ax = plot_strategy(worst.strategy, epsilon=1.0)
    >>> [text.get_text() for text in ax.texts if "loss" in text.get_text()]
    ['loss 1.5', 'loss -0.5', 'loss -0.5']
    """
    _check(strategy)
    levels = checks.count(depth=depth)
    bound = None if epsilon is None else checks.real(epsilon=epsilon)
    require_matplotlib()  # which measures the texts
    root = _laid_out(strategy, levels)
    nodes = list(root.all())
    right = max(node.right for node in nodes)
    rows = max(node.row for node in nodes) + 1
    ax = axes(ax, (right + 0.2, ROW * rows + 0.2))
    for node in nodes:
        _draw(ax, node, bound)
    ax.set_xlim(-0.05, right + 0.05)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.set_axis_off()
    return ax


@dataclass
class _Node:
    """Something to draw, and where.

    :ivar left: where its box begins
    :ivar row: from above; that of a launch is in the middle of its answers'
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

    def all(self) -> Iterator[_Node]:
        """It and what is below it."""
        yield self
        for _, onward in self.answers:
            yield from onward.all()


def _width(text: str, size: float) -> float:
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) / 72


def _laid_out(strategy: Any, depth: int) -> _Node:
    """The nodes down to ``depth`` launches; equal situations are drawn each for itself."""
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
                    f"depth ({depth}) makes more than {MOST_LEAVES} ends; pass a smaller one"
                )
        return node

    root = place(strategy, 0)
    _align(list(root.all()))
    return root


def _align(nodes: list[_Node]) -> None:
    """Begin each column where the one before has ended, with the texts of the answers between."""
    left = 0.0
    for column in range(max(node.column for node in nodes) + 1):
        here = [node for node in nodes if node.column == column]
        for node in here:
            node.left = left
        answers = [_width(answer, SMALLER) for node in here for answer, _ in node.answers]
        left = max(node.right for node in here) + max(answers, default=0.0) + 2 * GAP


def _draw(ax: Axes, node: _Node, epsilon: float | None) -> None:
    counts = epsilon is not None and node.loss is not None and node.loss > epsilon
    color = LAUNCH if node.loss is None else COUNTS if counts else CALM
    ax.text(
        (node.left + node.right) / 2,
        node.row,
        node.text,
        ha="center",
        va="center",
        fontsize=SMALL,
        zorder=3,
        bbox={
            "boxstyle": "round,pad=0.3",
            "facecolor": color,
            "edgecolor": "0.6",
            "linewidth": 0.8,
        },
    )
    for answer, onward in node.answers:
        # drawn to the middles, which the boxes hide
        start, end = (node.left + node.right) / 2, (onward.left + onward.right) / 2
        ax.plot([start, end], [node.row, onward.row], color="0.6", linewidth=1.0, zorder=1)
        middle = onward.left - GAP - _width(answer, SMALLER) / 2
        share = (middle - start) / (end - start)
        ax.text(
            middle,
            node.row + share * (onward.row - node.row),
            answer,
            ha="center",
            va="center",
            fontsize=SMALLER,
            zorder=2,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
        )


def _check(strategy: Any) -> None:
    """Duck-typed: the tools of ``verify`` are imported by nobody."""
    if not hasattr(strategy, "loss"):
        raise InvalidTypeError(
            f"strategy must be one of opendp_concurrent.verify, found {type(strategy).__name__}; "
            "pass for example worst_analyst(...).strategy"
        )
