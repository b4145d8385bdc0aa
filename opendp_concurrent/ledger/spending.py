"""Who spent what: the privacy loss over time, as a whole, or by limit, label or block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..arguments.checks import shown
from ..measures import by_tag
from ..measures.heights import height
from ..sums.accumulator import Accumulator
from ..types import Loss
from .audit import Summary
from .records.entries import Entry
from .records.measures import empty_total

BY = ("time", "limit", "label", "block")
_POINTS = 1000  # of a line: there are no more pixels

Height = Callable[[Loss], float]


class Line(NamedTuple):
    """What one limit, label or block has spent, or the whole budget.

    :ivar name: for people, of any characters
    :ivar entries: charges, at most about a thousand of them, with the newest one
    :ivar heights: the number that is drawn for the loss after each of these
    :ivar launches: number of charges
    """

    name: str
    entries: list[Entry]
    heights: list[float]
    launches: int


def height_of(measure: str) -> Height:
    """Return the function that gives the number which is drawn for a loss under a measure.

    :param measure: name of the measure in the terms of a ledger
    """
    known = by_tag(measure)
    return lambda loss: height(loss, under=known)


def has_blocks(total: Accumulator | Loss) -> bool:
    """Whether a total, or its loss, has one for each block."""
    return hasattr(type(total), "of")


def spending(
    summary: Summary, entries: Sequence[Entry], by: str, most: int = 10
) -> tuple[list[Line], int]:
    """Return the lines with the largest losses, and how many lines there are.

    The loss of several blocks is that of the block with the largest one.

    :param by: one of ``BY``; ``"time"`` is one line, of the whole budget
    :param most: number of lines to return
    """
    if summary.terms is None:
        return [], 0
    number_of = height_of(summary.terms.measure)
    keys: dict[Any, None] = {}
    if by == "block" and has_blocks(summary.spent):  # a launch has many, and few are drawn
        keys = dict.fromkeys(key for one in entries for key in one.d_mid.keys)
    top = sorted(keys, key=lambda key: number_of(summary.spent.of(key).loss), reverse=True)[:most]
    charges: dict[Any, list[tuple[Entry, Loss]]] = {}
    for key, one, loss in _charges(entries, by, empty_total(summary.terms), set(top)):
        if has_blocks(loss):
            losses = [loss.of(block).loss for block in one.d_mid.keys]
            losses += [before for _, before in charges.get(key, ())[-1:]]
            loss = max(losses, key=number_of)
        charges.setdefault(key, []).append((one, loss))
    lines = []
    for key, found in charges.items():
        step = len(found) // _POINTS + 1
        drawn = found[:-1:step] + found[-1:]
        heights = [number_of(loss) for _, loss in drawn]
        lines.append(Line(_NAMES[by](key), [one for one, _ in drawn], heights, len(found)))
    lines.sort(key=lambda line: line.heights[-1], reverse=True)
    return lines[:most], len(keys) or len(lines)


def _charges(
    entries: Sequence[Entry], by: str, start: Accumulator, blocks: set[Any]
) -> Iterator[tuple[Any, Entry, Loss]]:
    """Yield what each charge belongs to, the charge, and the loss of that after it."""
    totals: dict[str, Accumulator] = {}
    for one in entries:
        if by == "time":
            yield "spent", one, one.loss
        elif by == "limit":
            for depth, loss in enumerate(one.limit_losses, start=1):
                yield one.limit[:depth], one, loss
        elif by == "label":  # what its launches would cost without the others
            totals[one.label] = totals.get(one.label, start).after(one.d_mid, 1)
            yield one.label, one, totals[one.label].loss
        else:
            for key in blocks.intersection(one.d_mid.keys) if blocks else ():
                yield key, one, one.loss.of(key).loss


_NAMES: dict[str, Callable[[Any], str]] = {
    "time": str,
    "limit": " > ".join,
    "label": lambda label: label or "no label",
    "block": lambda key: f"block {shown(key)}",
}
