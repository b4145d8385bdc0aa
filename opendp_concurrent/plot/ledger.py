"""The privacy loss recorded in a ledger, launch by launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..arguments.abilities import with_method
from ..arguments.checked import checked
from ..arguments.checks import one_of, shown
from ..blocks.totals import Totals
from ..ledger.records.measures import empty_total
from ..measures import by_tag
from .drawing import Ax, Axes, axes, curve, finish
from .losses import Under, height, name

if TYPE_CHECKING:
    from ..ledger import SqlLedger


@checked(
    ledger=with_method("to_dp_events", "be made by opendp_concurrent.ledger"),
    against=one_of("time", "launches"),
)
def plot_ledger(ledger: SqlLedger, *, against: str = "time", ax: Ax | None = None) -> Axes:
    """Draw the privacy loss after each launch, and the bound of a filter.

    The number drawn is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the value of a
    Rényi curve at its smallest order, and the ε of a trade-off function at δ = 1e-6.

    The ledger of a block filter has a line for each block. Of more than ten blocks, the ten with
    the largest losses are drawn, and the legend says so.

    :param ledger: made by ``opendp_concurrent.ledger``; all of it is read and checked
    :param against: the x axis: ``"time"``, or ``"launches"``
    :param ax: axes to draw on
    :raises LedgerError: if the ledger cannot be read, or is not consistent

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> with oc.ledger.create_ledger(Path(folder.name) / "budget.db", dataset="survey") as ledger:
    ...     ax = oc.plot.plot_ledger(ledger)
    >>> folder.cleanup()
    """
    summary, entries = ledger.read()
    x: list[Any] = [one.time if against == "time" else one.sequence for one in entries]
    ax = axes(ax)
    terms, title = summary.terms, ""
    under = None if terms is None else by_tag(terms.measure)
    start = None if terms is None else empty_total(terms)
    if isinstance(start, Totals):
        start = start.of(None)
        title = _blocks(ax, x, entries, summary.spent, under)
    else:
        losses = [height(one.loss, under=under) for one in entries]
        curve(ax, "spent", x, losses, drawstyle="steps-post", marker=".")
    label = "privacy loss"
    if terms is not None and start is not None:
        label = f"{name(start.loss, under=under)} under {terms.measure}"
        if terms.d_out is not None:
            bound = height(terms.d_out, under=under)
            ax.axhline(bound, color="0.5", linestyle=":", label="d_out")
    ax.set_ylim(bottom=0.0)
    ax = finish(ax, "time (UTC)" if against == "time" else "launches", label)
    if title:
        ax.legend(title=title)
    return ax


def _blocks(ax: Axes, x: list[Any], entries: Sequence[Any], spent: Totals, under: Under) -> str:
    """Draw the blocks with the largest losses, and return what the legend says of the others."""
    keys = dict.fromkeys(key for entry in entries for key in entry.d_mid.keys)
    final = {key: height(spent.of(key).loss, under=under) for key in keys}
    drawn = sorted(keys, key=final.__getitem__, reverse=True)[:_DRAWN]  # equal ones as charged
    points: dict[Any, tuple[list[Any], list[float]]] = {key: ([], []) for key in drawn}
    for at, entry in zip(x, entries, strict=True):
        for key in points.keys() & entry.d_mid.keys:
            points[key][0].append(at)
            points[key][1].append(height(entry.loss.of(key).loss, under=under))
    for key, (where, losses) in points.items():
        label = f"block {shown(key)}".replace("$", r"\$")  # no formula
        curve(ax, label, where, losses, drawstyle="steps-post", marker=".")
    return "" if len(keys) <= _DRAWN else f"{_DRAWN} of {len(keys)} blocks, the largest losses"


_DRAWN = 10  # blocks; there are as many colors
