"""Truncated concentrated DP: the distance is (ρ, ω), and smaller is a smaller ρ or a larger ω."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from opendp.measures import user_divergence
from opendp.mod import Measure

from .. import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.rounding import split
from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .distances import TruncatedConcentrated, omega_above_one

FAMILY = "TruncatedConcentratedDivergence"


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Truncated:
    """Descriptor: what makes two of these measures equal."""

    omega: float

    def __str__(self) -> str:
        return f"{FAMILY}(omega={self.omega!r})"


def truncated_concentrated_divergence(omega: float) -> Measure:
    """Truncated concentrated DP for orders up to ``omega`` at least; distances have ρ and their ω.

    A distance is a :class:`.TruncatedConcentrated`; a number ρ stands for (ρ, ``omega``). The ρ of
    launches add up, and the least of their ω counts [BDRS18, Lemma 8], [LW22, Corollary 1]; for
    adaptively chosen losses by [HSTVVXZ23, Theorem 4.6] at every order.

    Required features: `honest-but-curious`

    :param omega: above 1; infinite for zero-concentrated DP
    :return: a measure
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.TruncatedConcentrated(rho=0.1, omega=20.0) <= oc.TruncatedConcentrated(0.2, omega=10.0)
    True
    >>> oc.truncated_concentrated_divergence(omega=10.0)
    TruncatedConcentratedDivergence(omega=10.0)
    """
    descriptor = Truncated(omega_above_one(omega=omega))
    return user_divergence(str(descriptor), descriptor)


@lru_cache(maxsize=1024)
def from_descriptor(descriptor: Truncated) -> CompositionMeasure:
    """What is known about the measure with this descriptor."""
    omega = descriptor.omega

    def validate(name: str, value: Any) -> TruncatedConcentrated:
        if isinstance(value, (int, float)):
            return TruncatedConcentrated(checks.non_negative(**{name: value}), omega)
        if not isinstance(value, TruncatedConcentrated):
            raise InvalidTypeError(
                f"{name} must be a number rho or TruncatedConcentrated(rho, omega), "
                f"found {type(value).__name__}"
            )
        if not value.omega >= omega:
            raise InvalidValueError(
                f"{name}.omega ({value.omega}) must be at least the {omega} of the measure"
            )
        return TruncatedConcentrated(value.rho, value.omega)  # nobody else's to change

    def validate_budget(name: str, value: Any) -> TruncatedConcentrated:
        distance = validate(name, value)
        checks.finite(**{f"{name}.rho": distance.rho})
        return distance

    return CompositionMeasure(
        name=str(descriptor),
        family=FAMILY,
        opendp=lambda: truncated_concentrated_divergence(omega),
        zero=TruncatedConcentrated(0.0, inf),
        validate=validate,
        validate_budget=validate_budget,
        at_most=TruncatedConcentrated.__le__,
        split=_split,
        composability=Composability.CONCURRENT,
        reason=f"{cite('LW22', 'Corollary 1')} and {cite('HSTVVXZ23', 'Theorem 4.6')}",
        distance_form="TruncatedConcentrated(rho, omega)",
    )


def _split(d_out: TruncatedConcentrated, weights: list[Fraction]) -> list[Any]:
    return [TruncatedConcentrated(rho, d_out.omega) for rho in split(d_out.rho, weights)]
