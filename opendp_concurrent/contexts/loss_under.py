"""The largest loss under one measure that a conversion takes to a given loss under another."""

from __future__ import annotations

from opendp.mod import Measure, OpenDPException

from ..arguments.checks import shown
from ..combinators.cast import conversion
from ..errors import ConcurrentError, InvalidValueError
from ..measures import composition_measure
from ..types import Loss
from .search import nearest_passing


def loss_under(source: Measure, target: Measure, d_out: Loss, delta: float | None = None) -> float:
    """Return the largest loss under ``source`` that converts to at most ``d_out``.

    No measurement is made: the conversion is one of numbers.

    :param source: a measure whose losses are numbers
    :param target: the measure of ``d_out``
    :param delta: the δ of the conversion, if the target is (ε, δ)
    :raises UnsupportedMeasureError: if no conversion is known
    :raises InvalidValueError: if each positive loss converts to more than ``d_out``
    """
    convert = conversion(source, target, delta=delta)
    known = composition_measure(target)

    def fits(loss: float) -> bool:
        return known.at_most(known.validate("d_mid", convert(loss)), d_out)

    try:
        loss: float = nearest_passing([fits], T=float)
    except (ValueError, OpenDPException) as error:
        if isinstance(error, ConcurrentError):
            raise
        loss = 0.0
    if not loss > 0:
        raise InvalidValueError(
            f"d_out ({shown(d_out)}) under {target} is below what each loss under {source} "
            f"converts to; pass a larger loss, or compose under {target}"
        )
    return loss
