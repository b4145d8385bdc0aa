"""The number that is drawn for a privacy loss; the measure chooses it."""

from __future__ import annotations

from ..arguments.checks import shown
from ..errors import InvalidTypeError
from ..types import Loss
from . import CompositionMeasure, registered

Under = CompositionMeasure | type[CompositionMeasure] | None


def height(
    loss: Loss, order: float | None = None, *, of: str = "losses", under: Under = None
) -> float:
    """Return the number that is drawn for a loss, or raise.

    It is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the ε of a trade-off function
    at δ = 1e-6, and the value of a Rényi curve at ``order``, or at the smallest order of its grid.

    :param of: name of the argument, for the message
    :param under: the measure, if it is known
    """
    measure = under or _measure_of(loss)
    if measure is None:
        raise InvalidTypeError(f"{of} must be privacy losses, found {shown(loss)}")
    return measure.height(loss, order, of)


def name(loss: Loss, order: float | None = None, *, under: Under = None) -> str:
    """Return the name of the number that :func:`height` returns for a loss."""
    measure = under or _measure_of(loss)
    return "loss" if measure is None else measure.symbol(loss, order)


def _measure_of(loss: Loss) -> type[CompositionMeasure] | None:
    """Return a measure under which the value would be a loss; those of this package come first."""
    for one in registered():
        try:
            if one.is_loss(loss):
                return one
        except Exception:  # of a class of another package
            continue
    return None
