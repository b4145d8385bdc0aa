"""The privacy loss that a ledger has recorded, launch by launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..checks import checked, one_of, optional
from ..errors import InvalidTypeError
from ..measures import by_tag
from .drawing import axes, curve, drawable, finish
from .losses import height, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..ledger import SqlLedger


def _read_whole(**argument: Any) -> Any:
    """Return what can be read as a ledger is, or raise."""
    ((given, value),) = argument.items()
    if not callable(getattr(type(value), "to_dp_events", None)):
        raise InvalidTypeError(
            f"{given} must be made by opendp_concurrent.ledger, found {type(value).__name__}"
        )
    return value


@checked(ledger=_read_whole, against=one_of("time", "launches"), ax=optional(drawable))
def plot_ledger(ledger: SqlLedger, *, against: str = "time", ax: Axes | None = None) -> Axes:
    """Draw the loss after each launch, and the bound of a filter.

    Of a pair (ε, δ) the ε is drawn, of truncated concentrated DP the ρ, of a Rényi curve its value
    at the least order, of a trade-off function the ε at δ = 1e-6.

    :param ledger: made by ``opendp_concurrent.ledger``; read whole, and checked
    :param against: ``"time"``, as the clock said, or ``"launches"``
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidValueError: naming the argument
    :raises LedgerError: if the ledger cannot be read, or does not fit together
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger
    >>> from opendp_concurrent.plot import plot_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> with create_ledger(Path(folder.name) / "budget.db", dataset="survey") as ledger:
    ...     ax = plot_ledger(ledger)
    >>> folder.cleanup()
    """
    summary, entries = ledger.read()
    x: list[Any] = [one.time if against == "time" else one.sequence for one in entries]
    ax = axes(ax)
    under = None if summary.terms is None else by_tag(summary.terms.measure)
    curve(ax, x, [height(one.loss, under=under) for one in entries], None, "spent")
    ax.get_lines()[-1].set_drawstyle("steps-post")
    ax.get_lines()[-1].set_marker(".")
    if summary.terms is not None and summary.terms.d_out is not None:
        ax.axhline(
            height(summary.terms.d_out, under=under), color="0.5", linestyle=":", label="d_out"
        )
    ax.set_ylim(bottom=0.0)
    label = "privacy loss"
    if summary.terms is not None:
        label = (
            f"{name(summary.terms.empty_total().loss, under=under)} under {summary.terms.measure}"
        )
    return finish(ax, "time (UTC)" if against == "time" else "launches", label)
