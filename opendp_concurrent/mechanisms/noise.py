"""Laplace noise on all integers, sampled by OpenDP in batches.

OpenDP's integers saturate. But the distribution is memoryless: the excess of a draw over the edge
is distributed as another draw, given that it is not negative. So a draw is any integer k, with
probability exactly proportional to exp(-|k|/scale), and a proof may shift noise by any amount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, exp, expm1, frexp, inf, ldexp, log, log1p
from numbers import Number
from operator import index
from typing import Annotated, Any, cast

import scipy

from .. import _checks as checks
from .. import _opendp as _native
from .._opendp import dp
from ..composition import conversion, recertify
from ..errors import Argument, InvalidTypeError, InvalidValueError, NativeConstructorError, shown
from ..measures import CompositionMeasure, composition_measure
from ..numerics import Bracket, Digits, upper
from ..queryables import Accuracy, ConcurrentMeasurement, of_one

ATOM = "i64"
EDGES = -(2**63), 2**63 - 1
AHEAD = 64
FIRST_AHEAD = 16


class IntegerDraws:
    """OpenDP's noise of one scale on 64-bit integers, drawn ahead of use. Not thread-safe.

    Holds noise that must stay secret.

    :param laplace: draw Laplace noise if true, else Gaussian
    :param most: number of draws per batch; the first batches are smaller
    """

    def __init__(self, scale: float, laplace: bool, most: int) -> None:
        self._scale, self._laplace, self._most, self._ahead = scale, laplace, most, 0
        self._sample: Any = None
        self._zeros: Any = None
        self._drawn: list[int] = []

    def _prepare(self, ahead: int) -> None:
        domain = dp.vector_domain(dp.atom_domain(T=ATOM), size=ahead)
        if self._laplace:
            self._sample = dp.m.make_laplace(domain, dp.l1_distance(T=ATOM), self._scale)
        else:
            self._sample = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), self._scale)
        self._zeros = _native.to_pointer([0] * ahead, self._sample.input_carrier_type)
        self._ahead = ahead

    def _next(self) -> int:
        """Return the next draw, which saturates at the edges."""
        if not self._drawn:
            if self._ahead < self._most:
                self._prepare(min(max(FIRST_AHEAD, 4 * self._ahead), self._most))
            self._drawn = _native.invoke(self._sample, self._zeros)
        return self._drawn.pop()

    def draw(self) -> int:
        """Return the next draw of Laplace noise, on all integers."""
        noise = self._next()
        lowest, highest = EDGES
        if lowest < noise < highest:
            return noise
        excess = -1
        while excess < 0:  # a draw, given that it is not negative
            excess = self.draw()
        return noise + excess if noise > 0 else noise - excess


class LaplaceNoise(IntegerDraws):
    """Draw Laplace noise of one scale. Not thread-safe. Holds noise that must stay secret.

    :param scale: scale in steps of the grid of integers
    :param ahead: number of draws per batch
    """

    def __init__(self, scale: float, ahead: int = AHEAD) -> None:
        super().__init__(scale, True, ahead)
        self._prepare(ahead)  # a scale that OpenDP refuses is refused here


class OneSidedNoise(LaplaceNoise):
    """Noise on 0, 1, 2, ...: Laplace noise, given that it is not negative. Not thread-safe.

    Its probabilities are exactly proportional to exp(-k/scale), so a shift up by one step costs as
    much as for Laplace noise. A shift down leaves its range.
    """

    def draw(self) -> int:
        """Return the next draw."""
        while (noise := super().draw()) < 0:
            pass
        return noise


def one_sided_mean(scale: float) -> float:
    """Return the mean of one-sided noise."""
    return exp(-1 / scale) / -expm1(-1 / scale)


# Certify a mechanism under a measure: by its own bound there if known, else by a conversion.

Reading = Callable[[Any], Any]
Losses = Mapping[CompositionMeasure[Any], Callable[[], Reading]]


def built(constructor: Callable[..., Any], **arguments: Any) -> Any:
    """Return the result of an OpenDP constructor, or raise an error that names the arguments."""
    try:
        return constructor(**arguments)
    except Exception as error:
        given = ", ".join(f"{name} ({shown(one)})" for name, one in arguments.items())
        raise NativeConstructorError(constructor.__name__, given, str(error).strip()) from error


def certify(
    measurement: dp.Measurement,
    output_measure: dp.Measure,
    losses: Losses,
    accuracy: Accuracy,
) -> ConcurrentMeasurement:
    """Return the measurement under ``output_measure``.

    :param losses: for each measure with a bound tighter than conversions, a function that returns
        the reading: a map from the loss of ``measurement`` to its loss under that measure
    :param accuracy: the error of its answers
    """
    reading = best_known(output_measure, losses)
    if reading is None:
        reading = conversion(measurement.output_measure, output_measure)
    return recertify(measurement, output_measure, reading, accuracy)


def best_known(output_measure: dp.Measure, losses: Losses) -> Reading | None:
    """Return the reading for ``output_measure``, or one that converts to it; None without any."""
    target = composition_measure(output_measure)
    for kind in (target.kind, *target.read_from):
        for source, make in losses.items():
            if source.kind == kind:
                reading, convert = make(), conversion(source.opendp(), output_measure)
                return lambda loss: convert(reading(loss))
    return None


# The grid on which OpenDP samples noise.

FINEST = {"f64": -1074, "f32": -149}


# the exponent k of a grid of multiples of 2^k that are doubles
grid_exponent = checks.integer.narrowed(
    lambda one: -1074 <= one <= 1023,
    "be from -1074 to 1023, the exponents of doubles",
    *(-1075, 1024),
)
Exponent = Annotated[int, grid_exponent]


def atom_type(input_domain: dp.Domain) -> str:
    """Return the name of the number type of a scalar or vector domain, such as ``f64``."""
    return str(input_domain.carrier_type).removeprefix("Vec<").removesuffix(">")


def is_vector(input_domain: dp.Domain) -> bool:
    """Whether the domain is of vectors."""
    return str(input_domain.carrier_type).startswith("Vec<")


def grid_step(input_domain: dp.Domain, scale: float, k: int | None) -> float:
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


def known_size(input_domain: dp.Domain) -> int | None:
    """The number of records, if the domain fixes it."""
    size: int | None = getattr(input_domain, "size", None)
    return size


# Numbers as whole steps of a grid, so that comparisons under noise are exact.
#
# A proof that shifts noise holds for reals. On floats, rounding breaks it. Here a query's answer is
# rounded down to a whole step, which keeps the proof valid: answers that differ by at most d steps,
# d an integer, still differ by at most d steps after rounding.

LARGEST = 2**1024
FINE = 30  # a sensitivity is at least 2^FINE steps, unless it is an integer


@dataclass(frozen=True, slots=True)
class Steps:
    """A grid of multiples of 2^k.

    :ivar k: exponent of the step
    :ivar whole: whether numbers are integers, in and out
    """

    k: int
    whole: bool

    @staticmethod
    def for_sensitivity(sensitivity: Argument) -> Steps:
        """Return the grid: the integers for an integer sensitivity, else a grid of tiny steps."""
        sensitivity = checks.plain(sensitivity)
        if isinstance(sensitivity, int) and not isinstance(sensitivity, bool):
            size = checks.count(sensitivity=sensitivity)
            if size > 2**53:
                raise InvalidValueError(f"sensitivity ({shown(sensitivity)}) must be at most 2**53")
            return Steps(0, whole=True)
        real = checks.number(sensitivity=sensitivity)
        if not 1e-200 <= real <= 1e200:
            raise InvalidValueError(
                f"sensitivity ({shown(sensitivity)}) must be from 1e-200 to 1e200"
            )
        return Steps(frexp(real)[1] - 1 - FINE, whole=False)

    def up(self, value: float) -> int:
        """Return the least number of steps that is at least ``value``."""
        return ceil(ldexp(value, -self.k))

    def of(self, name: str, value: Argument) -> int:
        """Return whole steps in ``value``, rounded down. Errors have ``name``, never the value."""
        if not isinstance(value, Number):
            raise InvalidTypeError(f"{name} must be a number, found {type(value).__name__}")
        with suppress(TypeError):  # an integer, of NumPy's too
            value = index(cast("Any", value))
        if self.whole and isinstance(value, int):
            return value
        as_ratio = getattr(value, "as_integer_ratio", None)
        if not callable(as_ratio):
            raise InvalidTypeError(f"{name} must be a number, found {type(value).__name__}")
        try:
            numerator, denominator = as_ratio()
        except (ValueError, ArithmeticError):  # not a number, or infinite
            denominator = 0
        if denominator == 0:  # outside of the handler, whose error contains the value
            raise InvalidValueError(f"{name} must be finite")
        if not abs(numerator) < LARGEST * denominator:
            raise InvalidValueError(
                f"{name} must be in the range of doubles, at most about 1.8e308"
            )
        if self.k <= 0:
            return int((numerator << -self.k) // denominator)
        return int(numerator // (denominator << self.k))

    def level(self, name: str, value: Argument) -> int:
        """Return whole steps in a threshold, rounded up: the least whole answer that is above."""
        if isinstance(value, bool) or not isinstance(value, Number):
            raise InvalidTypeError(f"{name} must be a number, found {type(value).__name__}")
        try:
            down = -cast("Any", value)
        except ArithmeticError as error:
            raise InvalidValueError(f"{name} must be finite") from error
        return -self.of(name, down)

    def scale(self, **argument: Any) -> float:
        """Return a noise scale in steps, or raise an error with its name."""
        ((name, value),) = argument.items()
        finite = checks.finite(**argument)
        try:
            steps = ldexp(finite, -self.k)
        except OverflowError:
            steps = inf
        if not 0.0 < steps <= 2.0**62:
            raise InvalidValueError(
                f"{name} ({shown(value)}) must be above 0, and at most about 2**31 sensitivities"
            )
        return steps

    def value(self, steps: int) -> int | float:
        """Return the number of this many steps, rounded to a double."""
        if self.whole:
            return steps
        try:
            return ldexp(float(steps), self.k)
        except OverflowError:
            return float("inf") if steps > 0 else float("-inf")


# The error of one noisy number: quantiles of noise on a grid.
#
# On the grid of multiples of a step, Laplace noise of scale s steps exceeds m >= 1 steps to either
# side with probability 2 exp(-m/s) / (1 + exp(-1/s)), at least m that is. For Gaussian noise it is
# at most 2 Φ(-(m - 1)/s), see ``certified.py``. On the finest grid of floats these are the tails of
# the distributions on the reals, up to rounding. OpenDP rounds a float to the grid first, by at
# most half a step.

UP = 1 + 2.0**-30  # above the errors of the quantiles in doubles


def laplace_accuracy(input_domain: dp.Domain, scale: float, k: int | None) -> Accuracy:
    """Return the accuracy of Laplace noise."""
    return _accuracy(input_domain, "Laplace", scale, k, lambda p: log(1 / p), _laplace_steps)


def _laplace_steps(failing: float, scale: float) -> int:
    """Return the least m with P(|noise| >= m + 1) <= failing, for a scale in steps."""
    tail = log(2 / failing) - log1p(exp(-1 / scale))
    return max(0, ceil(scale * tail * UP) - 1)


def released(scale: float, steps: Steps, beta: float, answers: int) -> float:
    """Return the error of so many answers that are rounded down to steps and get Laplace noise.

    :param scale: in steps
    """
    largest = of_one(lambda failing: _laplace_steps(failing, scale))(beta, answers)
    return steps.value(int(largest) + (0 if steps.whole else 1))


def gaussian_accuracy(input_domain: dp.Domain, scale: float, k: int | None) -> Accuracy:
    """Return the accuracy of Gaussian noise."""

    def quantile(failing: float) -> float:
        return -float(scipy.special.ndtri_exp(log(failing) - log(2)))

    def least(failing: float, steps: float) -> int:
        return ceil(steps * quantile(failing) * UP) if failing < 1.0 else 0

    return _accuracy(input_domain, "Gaussian", scale, k, quantile, least)


def _accuracy(
    input_domain: dp.Domain,
    noise: str,
    scale: float,
    k: int | None,
    quantile: Callable[[float], float],
    least: Callable[[float, float], int],
) -> Accuracy:
    finest = FINEST.get(atom_type(input_domain))

    def one(failing: float) -> float:
        if scale == 0.0:
            return 0.0 if finest is None else _step(k)
        if finest is None:
            return float(least(failing, scale))
        step = _step(k)
        if step == 0.0:
            return scale * quantile(failing) * UP
        steps = scale / step
        return (least(failing, steps) + 1) * step if steps < inf else inf

    answers = known_size(input_domain) if is_vector(input_domain) else 1
    return Accuracy(noise, scale, of_one(one), answers)


def _step(k: int | None) -> float:
    return 0.0 if k is None else 2.0**k
