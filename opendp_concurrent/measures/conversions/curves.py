"""Rényi curves that are known at every order: immutable, a theorem's formula of one distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .products import zcdp_to_renyi
from .pure_to_renyi import pure_to_renyi


@dataclass(frozen=True, slots=True)
class KnownCurve:
    """The Rényi divergence at each order, converted from a distance of another measure."""

    formula: Callable[[float, float], float]
    distance: float

    def __call__(self, alpha: float) -> float:
        """Return the divergence at order ``alpha``."""
        return self.formula(self.distance, alpha)


def known(curve: object) -> KnownCurve | None:
    """Return an own copy of ``curve`` if it is a known curve, else None."""
    if type(curve) is KnownCurve and curve.formula in (pure_to_renyi, zcdp_to_renyi):
        return KnownCurve(curve.formula, float(curve.distance))
    return None
