"""A privacy loss of any measure as one number that can be drawn; the measure says which."""

from __future__ import annotations

from typing import Any

from ..checks import shown
from ..errors import InvalidTypeError
from ..measures import CompositionMeasure, measure_of_loss

Under = CompositionMeasure | type[CompositionMeasure] | None


def height(
    loss: Any, order: float | None = None, *, of: str = "losses", under: Under = None
) -> float:
    """Return the number that is drawn for a loss, or raise naming the argument ``of``.

    Of a pair (ε, δ) it is the ε, of truncated concentrated DP the ρ, of a Rényi curve its value at
    ``order`` (at the least order of its grid, if left out), of a trade-off function the ε at
    δ = 1e-6.

    :param under: the measure, if it is known
    """
    measure = under or measure_of_loss(loss)
    if measure is None:
        raise InvalidTypeError(f"{of} must be privacy losses, found {shown(loss)}")
    return measure.height(loss, order, of)


def name(loss: Any, order: float | None = None, *, under: Under = None) -> str:
    """Return what :func:`height` of such a loss is."""
    measure = under or measure_of_loss(loss)
    return "loss" if measure is None else measure.symbol(loss, order)
