"""The privacy loss recorded in a ledger: over time, and by limit, label or block."""

from __future__ import annotations

from datetime import datetime, timezone
from math import floor
from typing import TYPE_CHECKING

from ..arguments.abilities import with_method
from ..arguments.checked import checked
from ..arguments.checks import one_of, optional
from ..errors import InvalidValueError
from ..ledger.spending import BY, Line, has_blocks, height_of, spending
from ..ledger.words import in_words
from .drawing import Ax, Axes, axes, curve, finish

if TYPE_CHECKING:
    from ..ledger import SqlLedger

_DRAWN = 10  # lines; there are as many colors


@checked(
    ledger=with_method("to_dp_events", "be made by opendp_concurrent.ledger"),
    against=one_of("time", "launches"),
    by=optional(one_of(*BY)),
)
def plot_ledger(
    ledger: SqlLedger, *, against: str = "time", by: str | None = None, ax: Ax | None = None
) -> Axes:
    """Draw the privacy loss after each launch, and the bound of a filter.

    The number drawn is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the value of a
    Rényi curve at its smallest order, and the ε of a trade-off function at δ = 1e-6.

    :param ledger: made by ``opendp_concurrent.ledger``; all of it is read and checked
    :param against: the x axis: ``"time"``, in whole days of UTC, or ``"launches"``
    :param by: what has a line of its own: each ``"limit"`` (:func:`.make_limited`), that is what an
        analyst or a team has spent; each ``"label"`` (:func:`.labelled`), with what its launches
        would cost alone; each ``"block"`` (:func:`.make_block_filter`); ``"time"`` is one line for
        the whole budget, or for the block with the largest loss so far. Of more than ten lines,
        the ten with the largest losses are drawn, and the legend says so. The default is
        ``"block"`` for the ledger of a block filter, and ``"time"`` for any other
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
    summary, listed = ledger.read()
    entries = list(listed)
    terms = summary.terms
    of = by or ("block" if has_blocks(summary.spent) else "time")
    lines, number = spending(summary, entries, of, _DRAWN)
    if entries and not lines:
        raise InvalidValueError(
            f"by ({of!r}) must be something that the ledger has, such as 'time'"
        )
    ax = axes(ax)
    for line in lines if entries else [Line("spent", [], [], 0)]:
        x = [one.time if against == "time" else one.sequence for one in line.entries]
        label = line.name.replace("$", r"\$")  # no formula
        curve(ax, label, x, line.heights, drawstyle="steps-post", marker=".")
    if terms is not None and terms.d_out is not None:
        bound = height_of(terms.measure)(terms.d_out)
        ax.axhline(bound, color="0.5", linestyle=":", label="bound")
    ax.set_ylim(bottom=0.0)
    if against == "time" and entries:
        _in_days(ax, [one.time for one in entries])
    label = "privacy loss" if terms is None else f"privacy loss ({in_words(terms)})"
    ax = finish(ax, "day (UTC)" if against == "time" else "launches", label)
    title = f"{len(lines)} of {number} {of}s,\nthe largest losses" if number > len(lines) else ""
    if len(lines) > 1:  # beside the lines, which go anywhere
        ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax


def _in_days(ax: Axes, times: list[datetime]) -> None:
    """Show whole days: a session of some seconds is one step, not an axis of its own."""
    from matplotlib import dates

    first, last = (floor(dates.date2num(one)) for one in (min(times), max(times)))  # type: ignore[no-untyped-call]
    ax.set_xlim(first, last + 1)
    locator = dates.AutoDateLocator(tz=timezone.utc, maxticks=8)  # type: ignore[no-untyped-call]
    formatter = dates.ConciseDateFormatter(locator, tz=timezone.utc)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)
