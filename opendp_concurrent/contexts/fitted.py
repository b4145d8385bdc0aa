"""The search for a query's missing parameter, given the privacy loss of the query."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from opendp.mod import ApproximateDivergence, Measure, Measurement

from ..arguments.checks import shown
from ..errors import InvalidTypeError, InvalidValueError
from ..measures import CompositionMeasure, composition_measure
from ..queryables.mechanism import read_map
from ..types import Distance, Loss
from .search import failure_at_one, nearest_passing


def fitted(
    make: Callable[[Any], Measurement],
    output_measure: Measure,
    d_in: Distance,
    d_out: Loss,
    bounds: tuple[float | None, float | None] | None = None,
    T: Any = None,  # noqa: N803 - OpenDP's name
) -> Measurement:
    """Return the measurement with the largest loss that is at most ``d_out``.

    The measurement's ``param`` is the number that was found. For pairs (ε, δ) the search uses ε
    alone, as OpenDP's does, because a cast fixes δ, or δ grows while ε falls. If ε is the same for
    all numbers, as for a threshold on keys, the search uses δ too.

    :param make: makes a measurement under ``output_measure`` from a number
    :param bounds: lower and upper bound of the search
    :param T: ``float`` or ``int``; inferred if left out
    :raises InvalidTypeError: if ``d_out`` is None
    :raises InvalidValueError: if the loss is above ``d_out`` for all numbers, or below for all
    """
    if d_out is None:
        raise neither_loss_nor_scale()
    known: CompositionMeasure = composition_measure(output_measure)
    made = cache(make)  # returns the same measurement that passed the check
    answers = set()

    def noted(answer: bool) -> bool:
        answers.add(answer)
        return answer

    def within(number: Any) -> bool:
        loss = known.validate("d_mid", read_map(made(number), d_in))
        return noted(known.at_most(loss, d_out))

    def epsilon_within(number: Any) -> bool:
        return noted(bool(read_map(made(number), d_in)[0] <= d_out[0]))

    pairs = isinstance(output_measure, ApproximateDivergence)
    try:
        number = nearest_passing([epsilon_within, within] if pairs else [within], bounds, T)
    except Exception as error:
        if not answers:  # no measurement could be made; at 0 only the scale would be blamed
            raise (failure_at_one(within, T) or error) from None
        if len(answers) != 1:
            raise  # a loss is unknown
        side, remedy = (
            ("below", "pass the parameter, or other bounds")
            if True in answers
            else ("above", "pass a larger privacy loss (epsilon, rho), or other bounds")
        )
        raise InvalidValueError(
            f"the loss at d_in ({shown(d_in)}) is {side} d_out ({shown(d_out)}) for every value of "
            f"the missing parameter that was tried; {remedy}"
        ) from error
    measurement = made(number)
    measurement.param = number
    return measurement


def neither_loss_nor_scale() -> InvalidTypeError:
    """Return the error for a query that has neither a privacy loss nor the parameter."""
    return InvalidTypeError(
        "the query has neither a privacy loss nor a scale: pass one, such as "
        "context.query(epsilon=0.5) or laplace(scale=2.0)"
    )
