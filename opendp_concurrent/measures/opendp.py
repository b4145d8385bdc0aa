"""The one place of this room that knows OpenDP: it makes and recognises OpenDP's measures."""

from __future__ import annotations

from opendp import measures as _measures
from opendp.context import loss_of
from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    smoothed_max_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import ExtrinsicDivergence, Measure, OpenDPException

from ..arguments.checks import is_a
from ..interrupts import whole
from ..types import Argument, Loss

user_divergence = whole(_measures.user_divergence)  # as native/constructors.py says


def is_measure(value: Argument) -> bool:
    """Whether the value is a measure of OpenDP, and no null pointer."""
    return is_a(value, Measure) and bool(value)


def of_keywords(**given: Loss) -> tuple[Measure, Loss]:
    """Return the measure and the distance that OpenDP reads from keywords."""
    pair: tuple[Measure, Loss] = loss_of(**given)
    return pair


@whole
def descriptor(measure: Argument) -> Argument:
    """Return the descriptor of a measure that OpenDP lacks; None for OpenDP's own."""
    return measure.descriptor if isinstance(measure, ExtrinsicDivergence) else None


__all__ = [
    "Measure",
    "OpenDPException",
    "approximate",
    "descriptor",
    "is_measure",
    "max_divergence",
    "of_keywords",
    "renyi_divergence",
    "smoothed_max_divergence",
    "user_divergence",
    "zero_concentrated_divergence",
]
