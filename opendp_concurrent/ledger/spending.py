"""Who spent what: the privacy loss over time, as a whole, or by limit, label or block."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from ..arguments.checks import shown
from ..measures import by_tag
from ..measures.heights import height
from ..sums.accumulator import Accumulator, repeated
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
    parts, loss_of, name = _PARTS[by](summary, entries)
    keys: Iterable[Hashable] = dict.fromkeys(key for one in entries for key in parts(one))
    if by == "block":  # each launch has many, and few are drawn
        keys = sorted(keys, key=lambda key: number_of(summary.spent.of(key).loss), reverse=True)
    number = len(list(keys))
    charges: dict[Hashable, list[Entry]] = {
        key: [] for key in (list(keys)[:most] if by == "block" else keys)
    }
    for one in entries:
        for key in parts(one):
            if key in charges:
                charges[key].append(one)
    lines = [
        _line(name(key), [(one, loss_of(one, key)) for one in found], number_of)
        for key, found in charges.items()
    ]
    return sorted(lines, key=lambda line: line.heights[-1], reverse=True)[:most], number


def _line(name: str, charges: list[tuple[Entry, Loss]], number_of: Height) -> Line:
    if has_blocks(charges[-1][1]):
        top, heights = 0.0, []
        for one, total in charges:
            top = max(top, *(number_of(total.of(key).loss) for key in one.d_mid.keys))
            heights.append(top)
        drawn = _some(list(zip(charges, heights, strict=True)))
        points = [(one, high) for (one, _), high in drawn]
    else:
        points = [(one, number_of(loss)) for one, loss in _some(charges)]
    return Line(name, [one for one, _ in points], [high for _, high in points], len(charges))


def _some(items: list[Any]) -> list[Any]:
    """Return at most about a thousand of many items, with the last one."""
    return items[:: -(-len(items) // _POINTS) or 1][:-1] + items[-1:]


# by what -> the keys of a charge, the loss of a key after a charge, and the name of a key
_Parts = tuple[Callable[[Entry], Iterable[Any]], Callable[[Entry, Any], Loss], Callable[[Any], str]]


def _whole(summary: Summary, entries: Sequence[Entry]) -> _Parts:
    del summary, entries
    return lambda one: ((),), lambda one, _: one.loss, lambda _: "spent"


def _limits(summary: Summary, entries: Sequence[Entry]) -> _Parts:
    del summary, entries
    return (
        lambda one: [one.limit[: n + 1] for n in range(len(one.limit))],
        lambda one, path: one.limit_losses[len(path) - 1],
        " > ".join,
    )


def _labels(summary: Summary, entries: Sequence[Entry]) -> _Parts:
    """What the launches of each label would cost without the others."""
    totals: dict[str, Accumulator] = {}
    losses: dict[int, Loss] = {}
    for one in entries:
        if one.label not in totals and summary.terms is not None:
            totals[one.label] = empty_total(summary.terms)
        totals[one.label] = repeated(totals[one.label], one.d_mid, 1)
        losses[one.sequence] = totals[one.label].loss
    return (
        lambda one: (one.label,),
        lambda one, _: losses[one.sequence],
        lambda label: label or "no label",
    )


def _blocks(summary: Summary, entries: Sequence[Entry]) -> _Parts:
    if not has_blocks(summary.spent):
        return lambda _: (), lambda one, _: one.loss, str
    del entries
    return (
        lambda one: one.d_mid.keys,
        lambda one, key: one.loss.of(key).loss,
        lambda key: f"block {shown(key)}",
    )


_PARTS = {"time": _whole, "limit": _limits, "label": _labels, "block": _blocks}
