"""Prices of queries: charges in whole units of a budget, never below the exact loss.

Every budget has ``UNITS`` units. ``UNITS`` is below 2^53, so a double holds every number of units
exactly. It is a multiple of 1 to 36, so a budget can be split evenly. A value of w steps has the
loss factor (|w|/s)^power, which is P |w|^power units for a rational number P. The charge is
computed in doubles and rounded up:

    |w|^power times the rate, rounded up to a whole number; at most the exact price of the bound.

Each product is at least (1 - 2^-53) times the exact one. A rate of at least (1 + 2^-50) P makes up
for two products. Rounding up and the minimum are exact. So a charge is at least the exact loss, and
at most one unit and 2^-49 of the loss above it. Values at the bound are charged the exact price,
rounded up to a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, lcm, ldexp, nextafter

from ..arguments.checked import Count, Finite, Positive, checked
from ..errors import InvalidValueError
from ..exact.rounding import least_double
from ..measures import composition_measure
from ..types import Argument, Loss
from .noise_loss import NoiseLoss, noise_loss
from .noisy_sum import NoisySum, scale_limits, step_exponent, whole_steps

UNITS = lcm(*range(1, 37)) * 2**5  # 2^52.04
MARGIN = 1 + Fraction(1, 2**50)  # for two products that are rounded down
LEAST_RATE = 2.0**-100  # far below one unit for the largest value, and far above underflow


@dataclass(frozen=True, slots=True)
class Price:
    """Public facts of one query.

    :ivar exponent: a step is 2^exponent; values are rounded to whole steps
    :ivar reach: values are clipped to this number of steps
    :ivar scale: scale of the noise, in steps
    :ivar power: exponent of the value in the loss
    :ivar rate: charge of a value of one step, in units, rounded up
    :ivar most: charge of a value at ``reach``, in units, rounded up
    """

    exponent: int
    reach: int
    scale: float
    power: int
    rate: float
    most: int

    @staticmethod
    def of(query: NoisySum, loss: NoiseLoss, d_out: float) -> Price:
        """Return a query's price, or raise if one release may cost a person above ``d_out``."""
        bound = float(query.bound)
        exponent = step_exponent(bound=bound)
        scale = ldexp(float(query.scale), -exponent)  # exact
        reach = whole_steps(bound, exponent)
        if not loss.of(Fraction(reach), scale) <= Fraction(d_out):
            raise InvalidValueError(
                f"scale ({query.scale}) must be at least "
                f"{least_scale(loss, d_out, bound, 1)} for bound ({query.bound}), so that "
                f"one query cannot cost a person more than d_out ({d_out}); nothing was run"
            )
        return Price.in_steps(reach, scale, loss, d_out, exponent)

    @staticmethod
    def in_steps(
        reach: int, scale: float, loss: NoiseLoss, d_out: float, exponent: int = 0
    ) -> Price:
        """Return the price of values up to ``reach`` at a noise scale, both in steps."""
        rate = loss.of(Fraction(1), scale) * UNITS / Fraction(d_out)
        most = ceil(rate * reach**loss.power)
        return Price(exponent, reach, scale, loss.power, double_up(rate * MARGIN), most)


def double_up(rate: Fraction) -> float:
    """Return a double that is at least ``rate`` and at least ``LEAST_RATE``."""
    double = max(float(rate), LEAST_RATE)
    return double if Fraction(double) >= rate else nextafter(double, inf)


def least_scale(loss: NoiseLoss, d_out: float, bound: float, launches: int) -> float:
    """Return the least scale at which each person's budget suffices for ``launches`` queries."""
    exponent = step_exponent(bound=bound)
    value = Fraction(whole_steps(bound, exponent)) * Fraction(2) ** exponent
    share = Fraction(UNITS // launches) * Fraction(d_out) / UNITS

    def fits(scale: float) -> bool:
        return scale > 0.0 and loss.of(value, scale) <= share

    return least_double(fits, near=bound)


@checked
def individual_scale(
    output_measure: Argument, d_out: Positive, bound: Finite, launches: Count = 1
) -> float:
    """Return the least noise scale at which nobody drops out before ``launches`` queries.

    Every charge is rounded up to whole units of the budget. The returned scale is the least one for
    which the exact price of a value at ``bound`` is at most one query's share of the budget, in
    whole units. People with smaller values can take part in more queries.

    :param output_measure: that of :func:`.make_individual_filter`
    :param d_out: budget of one person
    :param bound: bound of the queries
    :param launches: number of queries
    :return: the noise scale, in units of ``bound``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if :func:`.make_individual_filter` does not take the measure

    :example:

    >>> oc.m.individual_scale(dp.max_divergence(), d_out=1.0, bound=1, launches=10)
    10.0
    >>> oc.m.individual_scale(dp.zero_concentrated_divergence(), d_out=0.5, bound=2, launches=100)
    20.0
    """
    loss, budget = noise_loss(output_measure), individual_budget(output_measure, d_out)
    if not launches <= 2**40:
        raise InvalidValueError(f"launches ({launches}) must be at most 2**40")
    lowest, highest = scale_limits(bound=bound)
    scale = least_scale(loss, budget, float(bound), launches)
    if not scale <= highest:
        raise InvalidValueError(
            f"d_out ({d_out}) must be larger for {launches} launches with bound ({bound}): "
            f"the scale of the noise can be at most {highest}"
        )
    return max(scale, lowest)


def individual_budget(output_measure: Argument, d_out: Loss) -> float:
    """Return ``d_out`` as a budget above 0, or raise."""
    budget: float = composition_measure(output_measure).validate_budget("d_out", d_out)
    if not budget > 0.0:
        raise InvalidValueError(f"d_out ({d_out}) must be above 0")
    return budget
