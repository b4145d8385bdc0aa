"""What a privacy measure must tell before its losses can be composed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from opendp.mod import Measure


class Composability(Enum):
    """How interactive children may be queried: the values are what is shown to users."""

    CONCURRENT = "concurrent"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class CompositionMeasure:
    """One privacy measure. Knows its distances and its theorem, not how losses add up.

    :ivar name: as OpenDP prints it
    :ivar family: the name without parameters
    :ivar opendp: makes OpenDP's measure object; measures are compared as objects, never by name
    :ivar zero: the distance of no privacy loss
    :ivar validate: return ``value`` as a distance, or raise naming ``name``
    :ivar validate_budget: as ``validate``, for a bound that a filter can enforce
    :ivar at_most: the partial order of distances
    :ivar split: shares of a distance in proportion to weights, which compose to at most that
    :ivar composability: whether interactive children may be interleaved
    :ivar reason: the theorem that says so, or the open question that forbids it
    :ivar distance_form: what a distance looks like, for messages
    """

    name: str
    family: str
    opendp: Callable[[], Measure]
    zero: Any
    validate: Callable[[str, Any], Any]
    validate_budget: Callable[[str, Any], Any]
    at_most: Callable[[Any, Any], bool]
    split: Callable[[Any, list[Fraction]], list[Any]]
    composability: Composability
    reason: str
    distance_form: str
