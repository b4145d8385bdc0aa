"""The grid on which OpenDP samples noise."""

from __future__ import annotations

from decimal import Decimal
from math import inf
from typing import Annotated

from opendp.mod import Domain

from ..arguments.checks import integer
from ..exact.bracket import Bracket, Digits, upper

FINEST = {"f64": -1074, "f32": -149}


# the exponent k of a grid of multiples of 2^k that are doubles
grid_exponent = integer.narrowed(
    lambda one: -1074 <= one <= 1023,
    "be from -1074 to 1023, the exponents of doubles",
    *(-1075, 1024),
)
Exponent = Annotated[int, grid_exponent]


def atom_type(input_domain: Domain) -> str:
    """Return the name of the number type of a scalar or vector domain, such as ``f64``."""
    return str(input_domain.carrier_type).removeprefix("Vec<").removesuffix(">")


def is_vector(input_domain: Domain) -> bool:
    """Whether the domain is of vectors."""
    return str(input_domain.carrier_type).startswith("Vec<")


def grid_step(input_domain: Domain, scale: float, k: int | None) -> float:
    """Return the step of the grid divided by the scale of the noise, rounded up.

    The grid is the integers, or the multiples of 2^k. By default, 2^k is the least positive float.
    """
    finest = FINEST.get(atom_type(input_domain))
    step = 0 if finest is None else finest if k is None else k
    if scale == 0.0:
        return inf

    def ratio(real: Digits) -> Bracket:
        power = real(Decimal(2 ** abs(step)))
        return (1 / power if step < 0 else power) / real(scale)

    return upper(ratio)


def known_size(input_domain: Domain) -> int | None:
    """The number of records, if the domain fixes it."""
    size: int | None = getattr(input_domain, "size", None)
    return size
