"""Prices of queries on tables: charges in whole units of a budget, as integers of an engine.

A budget has ``BUDGET`` units, about 2^122. A number of w steps has the loss factor (|w|/s)^power,
which is P |w|^power units for a rational number P. Its charge is R |w|^power, where R is P rounded
up to a whole number, and P |w|^power rounded up to a whole unit if |w| is the bound. So no charge
is below the exact loss, all arithmetic of the engine is on integers, and nothing is rounded there.

The bound is at most 2^40 steps and costs at most the budget. So a charge is at most BUDGET + 2^80,
and what was spent before and a charge are together below 2^124: 128 bits and 38 digits hold them. A
charge is at most 2^80 units, 2^-42 of the budget, above the exact loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ..errors import InvalidValueError
from .noise_loss import NoiseLoss
from .price import UNITS

BUDGET = UNITS << 70


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Public facts of one query; see :class:`.Charge`.

    :ivar reach: largest number of steps
    :ivar power: exponent of the number in the loss
    :ivar rate: charge of one step, in units of the budget, rounded up
    :ivar most: charge of ``reach`` steps, rounded up
    """

    reach: int
    power: int
    rate: int
    most: int

    @staticmethod
    def of(reach: int, scale: float, loss: NoiseLoss, d_out: float) -> UnitPrice:
        """Return the price at a scale in steps, or raise if a query may cost above ``d_out``."""
        if not loss.of(Fraction(reach), scale) <= Fraction(d_out):
            raise InvalidValueError(
                f"scale must be larger, or bound smaller: one query could cost a unit more than "
                f"d_out ({d_out}); nothing was run. See individual_scale"
            )
        exact = loss.of(Fraction(1), scale) * BUDGET / Fraction(d_out)
        return UnitPrice(reach, loss.power, ceil(exact), ceil(exact * reach**loss.power))


def terms_of(loss: NoiseLoss, d_out: float) -> str:
    """Return what the numbers of a table of budgets stand for, as a text that is kept with them."""
    noise = "Laplace" if loss.is_laplace else "Gaussian"
    return f"{noise} noise, factor {loss.factor}, d_out {d_out!r}, in {BUDGET} units"
