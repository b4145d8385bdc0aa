"""Losses of a mechanism's parts, and their composition under one measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opendp.domains import atom_domain
from opendp.measures import max_divergence
from opendp.metrics import absolute_distance
from opendp.mod import Measure

from ..combinators.cast import conversion
from ..measures import composition_measure
from ..sums.scalar_sum import ScalarSum
from ..types import Loss
from .laplace import make_certified_laplace
from .noise import ATOM


def composed(measure: Measure, parts: Iterable[tuple[Any, int]]) -> Loss:
    """Return the loss of parts that run concurrently. Each is a loss and its number of uses."""
    known = composition_measure(measure)
    total = known.fixed_sum().start(known)
    for loss, count in parts:
        total = total.after(known.validate("d_mid", loss), count)
    return total.loss


def from_pure(epsilon: float, measure: Measure) -> Loss:
    """Return the loss under ``measure`` of an ε-DP mechanism."""
    return conversion(max_divergence(), measure)(epsilon)


def laplace_loss(scale: float, shift: int, measure: Measure) -> Loss:
    """Return the loss of Laplace noise on the integers."""
    space = atom_domain(T=ATOM), absolute_distance(T=ATOM)
    return make_certified_laplace(*space, scale, measure).map(shift)


def total(parts: Iterable[tuple[float, int]]) -> float:
    """Return the sum of value times count over ``parts``; exact, then rounded up once."""
    accumulator = ScalarSum()
    for value, count in parts:
        accumulator = accumulator.after(value, count)
    return accumulator.loss
