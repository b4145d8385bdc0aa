"""Loss of one person when a sum is released with noise: a power of the value over the scale.

Sums are of whole steps and noise is on the integers, so no floating-point error enters:

* Laplace: a shift of d steps has a divergence of |d|/s, for pure DP;
* Gaussian: α d²/(2 s²) at every order α, so ρ = d²/(2 s²) for zCDP [CKS20, Theorem 14].

A group of k people shifts the sum by at most the sum of their values. For Laplace noise, their
losses add up. For Gaussian noise, the square of a sum of k numbers is at most k times the sum of
their squares [Cauchy and Schwarz]. So over all queries the divergence is at most k times the sum of
k people's losses, k² times the budget of one. This holds at each order, so at one fixed order, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, frexp, lcm, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _checks as checks
from .. import _opendp as _native
from .. import composition, data, errors, measures
from .._checks import Count, Finite, Positive, checked, plain
from .._opendp import dp
from ..numerics import double_up, least_double
from ..queryables import ConcurrentMeasurement, MachineQueryable, Sealed, in_python, validate_d_in


def noise_loss(output_measure: errors.Argument) -> measures.NoiseLoss:
    """Return the loss of the noise that belongs to a measure.

    :raises UnsupportedMeasureError: for measures whose losses are not such a power
    """
    measure = measures.composition_measure(output_measure)
    if measure.noise_loss is not None:
        return measure.noise_loss
    raise errors.UnsupportedMeasureError(
        f"output_measure ({measure.name}) must be pure DP, for Laplace noise, or zero-concentrated "
        "DP or Rényi DP of a fixed order, for Gaussian noise; build for one of these, and use cast"
    )


# Queries of the individual filter: noisy sums of one bounded number per person.

FINE = 30  # a bound is from 2^(FINE - 1) to 2^FINE steps
SMALLEST_BOUND, LARGEST_BOUND = 1e-200, 1e200
FINEST_NOISE, COARSEST_NOISE = 2.0**-30, 2.0**62  # scales, in steps
NOT_ON_ROWS = (
    dp.Function,
    dp.Measurement,
    dp.Odometer,
    dp.Queryable,
    dp.Transformation,
    _native.PARTIAL_CONSTRUCTOR,
    type,
)


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class NoisySum:
    """A noisy sum of one number per person.

    ``per_row`` takes some rows of the data and returns a NumPy array with one number per row. Its
    author promises that the number of a row depends on that row only: not on other rows, on its
    position, on earlier queries, or on chance. The author also promises that ``per_row`` never
    changes the rows, and never raises because of them. Numbers are clipped to ``[-bound, bound]``
    and rounded to multiples of a power of two, at most 2^-29 of ``bound``; NaN counts as 0.

    :ivar per_row: function of rows, which returns booleans, integers or floats
    :ivar bound: largest absolute value of one person's number, above 0
    :ivar scale: scale of the noise, in units of the numbers; public
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import numpy as np
    >>> oc.handles.NoisySum(lambda rows: rows[:, 0] > 40, bound=1, scale=10.0).bound
    1
    """

    per_row: Callable[[Any], Any]
    bound: float
    scale: float

    def __post_init__(self) -> None:
        if not callable(self.per_row) or isinstance(self.per_row, NOT_ON_ROWS):
            raise errors.InvalidTypeError(
                "per_row must be a function of rows that returns one number for each, "
                f"found {type(self.per_row).__name__}"
            )
        for name in ("bound", "scale"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        lowest, highest = scale_limits(bound=self.bound)
        scale = checks.number(scale=self.scale)
        if not lowest <= scale <= highest:
            raise errors.InvalidValueError(
                f"scale ({self.scale}) must be from {lowest:.3g} to {highest:.3g} for "
                f"bound ({self.bound})"
            )


def step_exponent(**argument: Any) -> int:
    """Return k such that values with this bound are rounded to multiples of 2^k."""
    ((name, bound),) = argument.items()
    real = checks.number(**argument)
    if not SMALLEST_BOUND <= real <= LARGEST_BOUND:
        raise errors.InvalidValueError(
            f"{name} ({bound}) must be from {SMALLEST_BOUND} to {LARGEST_BOUND}"
        )
    return frexp(real)[1] - FINE


def scale_limits(**argument: Any) -> tuple[float, float]:
    """Return the smallest and the largest noise scale for this bound; exact."""
    exponent = step_exponent(**argument)
    return ldexp(FINEST_NOISE, exponent), ldexp(COARSEST_NOISE, exponent)


def whole_steps(bound: float, exponent: int) -> int:
    """Return the bound in whole steps, rounded down; values are clipped to it. Exact."""
    return floor(ldexp(bound, -exponent))


# Prices of queries: charges in whole units of a budget, never below the exact loss.
#
# Every budget has ``UNITS`` units. ``UNITS`` is below 2^53, so a double holds every number of units
# exactly. It is a multiple of 1 to 36, so a budget can be split evenly. A value of w steps has the
# loss factor (|w|/s)^power, which is P |w|^power units for a rational number P. The charge is
# computed in doubles and rounded up:
#
#     |w|^power times the rate, rounded up to a whole number; at most the exact price of the bound.
#
# Each product is at least (1 - 2^-53) times the exact one. A rate of at least (1 + 2^-50) P makes
# up for two products. Rounding up and the minimum are exact. So a charge is at least the exact
# loss, and at most one unit and 2^-49 of the loss above it. Values at the bound are charged the
# exact price, rounded up to a unit.

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
    def of(query: NoisySum, loss: measures.NoiseLoss, d_out: float) -> Price:
        """Return a query's price, or raise if one release may cost a person above ``d_out``."""
        bound = float(query.bound)
        exponent = step_exponent(bound=bound)
        scale = ldexp(float(query.scale), -exponent)  # exact
        reach = whole_steps(bound, exponent)
        if not loss.of(Fraction(reach), scale) <= Fraction(d_out):
            raise errors.InvalidValueError(
                f"scale ({query.scale}) must be at least "
                f"{least_scale(loss, d_out, bound, 1)} for bound ({query.bound}), so that "
                f"one query cannot cost a person more than d_out ({d_out}); nothing was run"
            )
        return Price.in_steps(reach, scale, loss, d_out, exponent)

    @staticmethod
    def in_steps(
        reach: int, scale: float, loss: measures.NoiseLoss, d_out: float, exponent: int = 0
    ) -> Price:
        """Return the price of values up to ``reach`` at a noise scale, both in steps."""
        rate = loss.of(Fraction(1), scale) * UNITS / Fraction(d_out)
        most = ceil(rate * reach**loss.power)
        return Price(
            exponent, reach, scale, loss.power, max(double_up(rate * MARGIN), LEAST_RATE), most
        )


def least_scale(loss: measures.NoiseLoss, d_out: float, bound: float, launches: int) -> float:
    """Return the least scale at which each person's budget suffices for ``launches`` queries."""
    exponent = step_exponent(bound=bound)
    value = Fraction(whole_steps(bound, exponent)) * Fraction(2) ** exponent
    share = Fraction(UNITS // launches) * Fraction(d_out) / UNITS

    def fits(scale: float) -> bool:
        return scale > 0.0 and loss.of(value, scale) <= share

    return least_double(fits, near=bound)


@checked
def individual_scale(
    output_measure: errors.Argument, d_out: Positive, bound: Finite, launches: Count = 1
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

    >>> oc.mechanisms.individual_scale(dp.max_divergence(), d_out=1.0, bound=1, launches=10)
    10.0
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> oc.mechanisms.individual_scale(zcdp, d_out=0.5, bound=2, launches=100)
    20.0
    """
    loss, budget = noise_loss(output_measure), individual_budget(output_measure, d_out)
    if not launches <= 2**40:
        raise errors.InvalidValueError(f"launches ({launches}) must be at most 2**40")
    lowest, highest = scale_limits(bound=bound)
    scale = least_scale(loss, budget, float(bound), launches)
    if not scale <= highest:
        raise errors.InvalidValueError(
            f"d_out ({d_out}) must be larger for {launches} launches with bound ({bound}): "
            f"the scale of the noise can be at most {highest}"
        )
    return max(scale, lowest)


def individual_budget(output_measure: errors.Argument, d_out: errors.Loss) -> float:
    """Return ``d_out`` as a budget above 0, or raise."""
    budget: float = measures.composition_measure(output_measure).validate_budget("d_out", d_out)
    if not budget > 0.0:
        raise errors.InvalidValueError(f"d_out ({d_out}) must be above 0")
    return budget


# The bank: remaining budgets of millions of people, charged for each query.
#
# Each person's remaining budget is one double, a whole number of units below 2^53. So sums,
# differences and comparisons are exact. A query makes one pass: it reads the remaining budgets from
# one array, and writes those after the charge to another. So a query that fails on the way changes
# nothing, and a charge is one rebinding.
#
# Every person goes through the same operations, with masks instead of branches. Nothing is skipped
# for people without remaining budget.

CHUNK = 2**16  # people at a time: arrays fit in the cache, and few calls of Python are needed


class Bank:
    """Remaining budget of each person. Secret, and not thread-safe.

    :param people: number of people
    """

    def __init__(self, people: int) -> None:
        self._left: NDArray[np.float64] = np.full(people, float(UNITS))
        self._charging = False

    def charge(self, values: Callable[[slice], NDArray[Any]], price: Price) -> int:
        """Charge each person who can pay for their value; return the exact sum of these, in steps.

        A person whose charge is above their remaining budget is left out and is not charged. A
        remaining budget depends only on the person's own values and on the prices.

        :param values: returns one number per person in a slice; if it raises, nothing is charged
        """
        if self._charging:  # called from within ``values``
            raise errors.ReentrantLaunchError
        left, after, total = self._left, np.empty_like(self._left), 0
        self._charging = True
        try:
            with np.errstate(all="ignore"):  # a warning would reveal a value
                for start in range(0, max(1, len(left)), CHUNK):  # values is called for nobody, too
                    part = slice(start, min(start + CHUNK, len(left)))
                    steps, charges = _paid(values(part), left[part], price)
                    np.subtract(left[part], charges, out=after[part])
                    total += int(np.add.reduce(steps))  # exact: at most 2^16 people of 2^30 steps
        finally:
            self._charging = False
        self._left = after
        return total


def _paid(
    values: NDArray[Any], left: NDArray[np.float64], price: Price
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return steps and charges of the people who can pay; 0 and 0 for all others."""
    steps = np.multiply(values, 2.0**-price.exponent, dtype=np.float64, casting="same_kind")
    steps = np.clip(np.rint(steps), -float(price.reach), float(price.reach))
    sizes = np.abs(steps) if price.power == 1 else steps * steps
    charges = np.minimum(np.ceil(sizes * price.rate), float(price.most))
    pays = charges <= left  # false for NaN, which adds and costs nothing
    return np.where(pays, steps, 0.0), np.where(pays, charges, 0.0)


# OpenDP's noise on the sum of whole steps.

ATOM = "i64"
LARGEST_SUM = 2**62


class IntegerNoise:
    """Noise of one scale on integers. Made before a charge, drawn after it."""

    def __init__(self, loss: measures.NoiseLoss, scale: float) -> None:
        make = dp.m.make_laplace if loss.is_laplace else dp.m.make_gaussian
        self._release = make(dp.atom_domain(T=ATOM), dp.absolute_distance(T=ATOM), scale)

    def add(self, total: int) -> int:
        """Return a noisy sum. Saturation is clamping, and clamping increases no distance."""
        clamped = max(-LARGEST_SUM, min(LARGEST_SUM, total))  # of 2^32 people or more
        noisy: Any = _native.invoke(self._release, _native.to_pointer(clamped, ATOM))
        return int(noisy)


# Data as NumPy arrays with one row per person.


def check_people(input_domain: dp.Domain, input_metric: dp.Metric) -> None:
    """Raise unless neighbours differ by added or removed rows, one row per person."""
    if not data.kind_of(input_domain).has_rows:
        raise errors.InvalidTypeError(
            f"input_domain ({input_domain}) must be of vectors, or a user's own of NumPy arrays "
            "such as dp.numpy.array2_domain(T=float), with a row for each person"
        )
    if input_metric not in (dp.symmetric_distance(), dp.insert_delete_distance()):
        raise errors.InvalidValueError(
            f"input_metric ({input_metric}) must be the symmetric or the insert-delete distance, "
            "where people are added or removed: if one row may change into another, what a person "
            "loses depends on both, and no budget can be kept by looking at one"
        )


def values_of(rows: NDArray[Any], per_row: Callable[[Any], Any]) -> Callable[[slice], NDArray[Any]]:
    """Return a function from a slice of rows to its numbers; its error messages show no value."""

    def values(part: slice) -> NDArray[Any]:
        returned = per_row(rows[part])
        numbers = np.asarray(returned)  # as NumPy's own class, not a subclass
        if (
            not isinstance(returned, np.ndarray)
            or isinstance(returned, np.ma.MaskedArray)
            or numbers.dtype.kind not in "biuf"
            or numbers.shape != (part.stop - part.start,)
        ):
            raise errors.InvalidTypeError(
                "per_row must return a NumPy array of one dimension and without a mask, with one "
                "boolean, integer or float for each row that it is given; nothing was charged"
            )
        return numbers

    return values


# The individual filter: noisy sums that charge each person's own budget for their own value.
#
# This is [FZ21] with noise on sums. The proof: let x' be x without the people of a group G of k.
#
# * Whether a person takes part, and their remaining budget, depend only on their own row and on the
#   queries so far. So on the same history, the same people outside G take part on x as on x'.
# * So the sum of query t differs by the sum of ±v over the people in G who take part. Given the
#   history, its release has a divergence of factor (|sum|/s)^power.
# * A person who takes part is charged at least factor (|v|/s)^power; others are not in the sum. All
#   charges of a person add up to at most d_out. So on every history the divergences of all queries
#   add up to at most d_out for k = 1, and to at most k^power d_out for any k, as shown above.
# * Let ℓ_t be the divergence of query t, a function of the history. The likelihood ratio to the
#   power α times exp(-(α-1) Σ ℓ_t) is a supermartingale on x' of mean at most 1. On every history Σ
#   ℓ_t is at most B. So the moment is at most exp((α-1) B), which is a divergence of at most B at
#   order α [FZ21], [HSTVVXZ23, Theorem 4.6]. For pure DP the ratio itself is at most exp(Σ ℓ_t).
#
# The proof does not need that a person who was left out once stays out. It needs only that a person
# is charged for each sum that they are in. So they may take part in a cheaper query later.


class _IndividualFilter:
    """State machine of the filter: the rows, and the remaining budget of each."""

    def __init__(self, rows: NDArray[Any], loss: measures.NoiseLoss, d_out: float) -> None:
        self._rows, self._loss, self._d_out = rows, loss, d_out
        self._bank = Bank(len(rows))

    def check(self, query: errors.Query) -> tuple[NoisySum, Price]:
        """Return a copy of the query, checked again, and its price; a handle calls it first."""
        if not isinstance(query, NoisySum):
            raise errors.InvalidTypeError(
                f"the query must be a NoisySum, found {type(query).__name__}"
            )
        query = NoisySum(query.per_row, query.bound, query.scale)
        return query, Price.of(query, self._loss, self._d_out)

    def __call__(self, query: errors.Query) -> float:
        query, price = self.check(query)
        noise = IntegerNoise(self._loss, price.scale)
        total = self._bank.charge(values_of(self._rows, query.per_row), price)
        return ldexp(float(noise.add(total)), price.exponent)


@composition.constructor
def make_individual_filter(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_out: float,
) -> ConcurrentMeasurement:
    """Release noisy sums, where each person has a budget of their own.

    The returned measurement spawns a queryable that takes any number of queries, each a
    :class:`.NoisySum`. A query charges each person the loss of their own number, which for most
    people is far below the loss of ``bound``. A person whose remaining budget is too small is left
    out of the sum and is not charged; a cheaper query may include them again. So sums are biased
    once people drop out. Who dropped out, how many, and each remaining budget are secret. To
    estimate how many people can pay for a query of value 1, query the sum of 1 for each row.

    All privacy is charged at launch, whatever the queries. Each query charges people first; then
    OpenDP draws its noise on integers: Laplace for pure DP, Gaussian for zCDP and Rényi DP.

    Guarantee: a person loses at most ``d_out``. A group of k people loses at most k ``d_out`` for
    pure DP, and at most k² ``d_out`` for zCDP and Rényi DP [FZ21]. The proof is in
    ``mechanisms/individual.py``. It assumes the promise about
    ``per_row`` in :class:`.NoisySum`. Charges are exact, rounded up to 2^-52 of the budget.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: NumPy arrays such as ``dp.numpy.array2_domain``, or vectors, with one row
        per person
    :param input_metric: symmetric or insert-delete distance: people are added or removed
    :param output_measure: pure DP, zero-concentrated DP, or Rényi DP of a fixed order
    :param d_out: budget of each person
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; use :func:`.cast` on what is returned

    :example:

    >>> import numpy as np
    >>> space = dp.numpy.array2_domain(T=float, num_columns=2), dp.symmetric_distance()
    >>> measurement = oc.m.make_individual_filter(
    ...     *space, dp.zero_concentrated_divergence(), d_out=0.5
    ... )
    >>> measurement.map(1), measurement.map(2)
    (0.5, 2.0)
    >>> queryable = measurement(np.tile([[1.0, 20.0]], (10_000, 1)))
    >>> visits = oc.handles.NoisySum(lambda rows: rows[:, 0], bound=100.0, scale=100.0)
    >>> round(queryable(visits), -4)
    10000.0
    """
    check_people(input_domain, input_metric)
    loss, budget = noise_loss(output_measure), individual_budget(output_measure, d_out)

    def spawn(token: Sealed) -> MachineQueryable:
        rows = data.kind_of(input_domain).rows(in_python(token), input_domain)
        return MachineQueryable(_IndividualFilter(rows, loss, budget), "IndividualFilter")

    def privacy_map(d_in: errors.Distance) -> float:
        return loss.of_group(validate_d_in(input_metric, d_in), budget)

    return composition.make_measurement(
        (input_domain, input_metric),
        output_measure,
        spawn,
        privacy_map,
        f"IndividualFilter({output_measure}, d_out={budget})",
    )


then_individual_filter = _native.to_then(make_individual_filter)
