"""The privacy loss that a ledger has recorded, launch by launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..accumulators.orders_sum import GridCurve
from ..distances import TruncatedConcentrated
from ..errors import InvalidValueError
from ..tradeoff.function import TradeoffFunction
from .drawing import axes, curve, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..ledger import SqlLedger

_DELTA = 1e-6


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
    if against not in ("time", "launches"):
        raise InvalidValueError(f"against ({against!r}) must be 'time' or 'launches'")
    summary, entries = ledger.read()
    x: list[Any] = [one.time if against == "time" else one.sequence for one in entries]
    ax = axes(ax)
    curve(ax, x, [_number(one.loss) for one in entries], None, "spent")
    ax.get_lines()[-1].set_drawstyle("steps-post")
    ax.get_lines()[-1].set_marker(".")
    if summary.terms is not None and summary.terms.d_out is not None:
        ax.axhline(_number(summary.terms.d_out), color="0.5", linestyle=":", label="d_out")
    ax.set_ylim(bottom=0.0)
    name = "privacy loss" if summary.terms is None else _name(summary.terms)
    return finish(ax, "time (UTC)" if against == "time" else "launches", name)


def _number(loss: Any) -> float:
    if isinstance(loss, tuple):
        return float(loss[0])
    if isinstance(loss, TruncatedConcentrated):
        return loss.rho
    if isinstance(loss, GridCurve):
        return loss.values[0]
    if isinstance(loss, TradeoffFunction):
        return loss.epsilon(_DELTA)
    return float(loss)


def _name(terms: Any) -> str:
    zero = terms.zero
    if isinstance(zero, tuple):
        part = "ε"
    elif isinstance(zero, TruncatedConcentrated):
        part = "ρ"
    elif isinstance(zero, TradeoffFunction):
        part = f"ε at δ = {_DELTA:g}"
    else:
        part = "loss" if zero is not None else f"loss at order {terms.accounting.orders[0]:g}"
    return f"{part} under {terms.measure}"
