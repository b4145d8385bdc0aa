"""The privacy loss recorded in a ledger, launch by launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..checks import checked, one_of, optional, with_method
from ..measures import by_tag
from .drawing import Axes, axes, curve, drawable, finish
from .losses import height, name

if TYPE_CHECKING:
    from ..ledger import SqlLedger


@checked(
    ledger=with_method("to_dp_events", "be made by opendp_concurrent.ledger"),
    against=one_of("time", "launches"),
    ax=optional(drawable),
)
def plot_ledger(ledger: SqlLedger, *, against: str = "time", ax: Axes | None = None) -> Axes:
    """Draw the privacy loss after each launch, and the bound of a filter.

    The number drawn is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the value of a
    Rényi curve at its smallest order, and the ε of a trade-off function at δ = 1e-6.

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
    terms = summary.terms
    under = None if terms is None else by_tag(terms.measure)
    losses = [height(one.loss, under=under) for one in entries]
    curve(ax, "spent", x, losses, drawstyle="steps-post", marker=".")
    label = "privacy loss"
    if terms is not None:
        label = f"{name(terms.empty_total().loss, under=under)} under {terms.measure}"
        if terms.d_out is not None:
            bound = height(terms.d_out, under=under)
            ax.axhline(bound, color="0.5", linestyle=":", label="d_out")
    ax.set_ylim(bottom=0.0)
    return finish(ax, "time (UTC)" if against == "time" else "launches", label)
