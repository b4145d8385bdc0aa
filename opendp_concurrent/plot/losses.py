"""A privacy loss of any measure as one number that can be drawn."""

from __future__ import annotations

from typing import Any

from .. import checks
from ..errors import InvalidTypeError
from ..fdp.function import TradeoffFunction, check_function
from ..measures.distances import TruncatedConcentrated
from ..measures.sums.orders_sum import GridCurve

DELTA = 1e-6


def height(loss: Any, order: float | None = None, *, of: str = "losses") -> float:
    """Return the number that is drawn for a loss, or raise naming the argument ``of``.

    Of a pair (ε, δ) it is the ε, of truncated concentrated DP the ρ, of a Rényi curve its value at
    ``order`` (at the least order of its grid, if left out), of a trade-off function the ε at
    δ = 1e-6.
    """
    if isinstance(loss, tuple):
        epsilon, _ = checks.epsilon_delta(**{of: loss})
        return epsilon
    if isinstance(loss, TruncatedConcentrated):
        return loss.rho
    if isinstance(loss, GridCurve) and order is None:
        return loss.values[0]
    if isinstance(loss, TradeoffFunction):
        return check_function(**{of: loss}).epsilon(DELTA)
    if callable(loss):
        if order is None:
            raise InvalidTypeError("order must be given for Rényi curves that have no grid")
        return float(loss(order))
    return checks.non_negative(**{of: loss})


def name(loss: Any, order: float | None = None) -> str:
    """Return what :func:`height` of such a loss is."""
    if isinstance(loss, tuple):
        return "ε"
    if isinstance(loss, TruncatedConcentrated):
        return "ρ"
    if isinstance(loss, TradeoffFunction):
        return f"ε at δ = {DELTA:g}"
    if order is None and isinstance(loss, GridCurve):
        order = loss.orders[0]
    return "loss" if order is None else f"loss at order {order:g}"
