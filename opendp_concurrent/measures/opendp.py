"""The one place of this room that knows OpenDP: it makes and recognises OpenDP's measures."""

from __future__ import annotations

from inspect import signature

from opendp import measures as _measures
from opendp.context import loss_of
from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    smoothed_max_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import Measure, OpenDPException

from ..interrupts import whole
from ..types import Argument, Loss

_DESCRIBED: dict[str, Argument] = {}  # descriptors by identifier, for OpenDP that keeps none
_KEEPS_DESCRIPTORS = "identifier" in signature(_measures.user_divergence).parameters  # since 0.15


@whole  # as native/constructors.py says
def user_divergence(identifier: str, described: Argument) -> Measure:
    """Return the measure with a descriptor of its own."""
    if _KEEPS_DESCRIPTORS:
        return _measures.user_divergence(identifier, described)
    measure = _measures.user_divergence(identifier)
    _DESCRIBED[repr(measure)] = described
    return measure


def is_measure(value: Argument) -> bool:
    """Whether the value is a measure of OpenDP, and no null pointer."""
    return isinstance(value, Measure) and bool(value)


def of_keywords(**given: Loss) -> tuple[Measure, Loss]:
    """Return the measure and the distance that OpenDP reads from keywords."""
    pair: tuple[Measure, Loss] = loss_of(**given)
    return pair


@whole
def descriptor(measure: Argument) -> Argument:
    """Return the descriptor of a measure that OpenDP lacks; None for OpenDP's own."""
    if not is_extrinsic(measure):
        return None
    return measure.descriptor if _KEEPS_DESCRIPTORS else _DESCRIBED.get(repr(measure))


def is_extrinsic(measure: Argument) -> bool:
    """Whether OpenDP knows the measure by name alone."""
    return isinstance(measure, Measure) and measure.type == "ExtrinsicDivergence"
