"""Guards of pairs of OpenDP's objects: a space, a unit of privacy, and a loss."""

from __future__ import annotations

from typing import Any

from opendp.mod import Domain, Measure, Metric

from ..arguments import checks
from ..arguments.checks import guard
from ..errors import InvalidTypeError
from ..types import Argument
from .guards import domain, measure, metric


@guard("nothing hostile", None, 1.0, (None, 1.0), [])
def privacy_loss(name: str, value: Argument) -> tuple[Measure, Any]:
    """Return a measure and a loss, or raise."""
    first, loss = _two("a measure and a loss", "dp.loss_of(epsilon=1.0)", name, value)
    return measure.check(f"{name}[0]", first), loss


@guard("nothing hostile", None, 1, (None, 1), [])
def privacy_unit(name: str, value: Argument) -> tuple[Metric, Any]:
    """Return a metric and a distance, or raise."""
    first, d_in = _two("a metric and a distance", "dp.unit_of(contributions=1)", name, value)
    return metric.check(f"{name}[0]", first), d_in


@guard("nothing hostile", None, (None, None), [])
def space(name: str, value: Argument) -> tuple[Domain, Metric]:
    """Return a domain and a metric, or raise."""
    example = "dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()"
    first, second = _two("a domain and a metric", example, name, value)
    return domain.check(f"{name}[0]", first), metric.check(f"{name}[1]", second)


def _two(what: str, example: str, name: str, value: Argument) -> tuple[Any, ...]:
    parts = checks.two(value)
    if not parts:
        raise InvalidTypeError(
            f"{name} must be {what}, found {checks.shown(value)}; pass for example {example}"
        )
    return parts
