"""Exact values between two doubles, and characteristic functions with their error."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers: TypeAlias = float | Array
ComplexArray = NDArray[np.complex128]

UNIT = 2.0**-53  # relative error of one rounding
ELEMENTARY = 8 * UNIT  # assumed of NumPy's exp, expm1, log, log1p, sin, cos; NumPy tests for 4 ulp
_PHASES = 64  # frequencies whose phases are tabulated
_PART = 256  # terms that are added up together
TINY = 1e-300  # below, doubles lose their relative accuracy


class Bounds(NamedTuple):
    """lower <= exact <= upper.

    :ivar lower: a double, or an array of them
    :ivar upper: of the same shape
    """

    lower: Any
    upper: Any

    @property
    def width(self) -> Any:
        """Distance between the two."""
        return self.upper - self.lower


class Transform(NamedTuple):
    """A characteristic function at the nodes of a contour, in units of its value at ω = 0.

    :ivar values: E_P[e^((τ+iω)L)] / E_P[e^(τL)]
    :ivar error: bound on the error of each value
    """

    values: ComplexArray
    error: float


class Lasting:
    """A factor whose |ρ| is not bounded below 1, because it comes near 1 again and again."""

    def log_decay(self, tau: float, omega: Array) -> Array:
        """0: a product is smoothed where no other factor decays."""
        del tau
        return np.zeros_like(omega)


class TwoSided(Lasting):
    """What factors share that are known from both sides."""

    slack = 0.0
    stands_for = unit = ""


def probabilities(lower: Any, upper: Any) -> Bounds:
    """Bounds on probabilities, cut to [0, 1]; NaN becomes 0 below and 1 above."""
    return Bounds(np.fmin(np.fmax(lower, 0.0), 1.0) + 0.0, np.fmax(np.fmin(upper, 1.0), 0.0) + 0.0)


def waves(losses: Array, weights: Array, step: float, count: int) -> ComplexArray:
    """The sum of weights times e^(iωL), at ω = 0, step, ..., (count - 1) step."""
    near = np.exp(1j * step * np.multiply.outer(np.arange(_PHASES), losses))
    rows = -(-count // _PHASES)
    values = np.zeros((rows, _PHASES), dtype=complex)
    far = np.arange(rows) * (step * _PHASES)
    for start in range(0, len(weights), _PART):  # short sums round less
        part = slice(start, start + _PART)
        some = np.exp(1j * np.multiply.outer(far, losses[part])) * weights[part]
        values += some @ near[:, part].T
    return values.ravel()[:count]


def waves_error(terms: int) -> float:
    """Bound on the error of such sums by their additions, if the weights add up to 1."""
    return 4 * UNIT * (_PART + terms / _PART)


def log1p_complex(z: ComplexArray) -> ComplexArray:
    """ln(1 + z), with an error of at most ``ELEMENTARY`` times 2 |z| / |1 + z|."""
    near = z.real * (2 + z.real) + z.imag * z.imag  # |1 + z|² - 1
    with np.errstate(divide="ignore"):
        size = np.where(
            np.abs(z) < 0.25, 0.5 * np.log1p(np.maximum(near, -0.5)), np.log(np.abs(1 + z))
        )
    value: ComplexArray = size + 1j * np.arctan2(z.imag, 1 + z.real)
    return value


# Searches over doubles; the least ε at a δ, from a profile that is known between bounds.

_PASSES, _POINTS = 18, 34  # a number of 2^-90 times the largest one is found
_STEPS = 64  # each four times the step before: enough to leave the doubles


def halved(
    low: float,
    high: float,
    holds: Callable[[float], bool],
    width: Callable[[float], float] = lambda high: 0.0,
    most: int = 100,
) -> tuple[float, float]:
    """Halve an interval, at whose high end alone ``holds`` is true.

    :param width: of the interval that is narrow enough, at its high end
    :param most: number of halvings
    """
    for _ in range(most):
        middle = (low + high) / 2
        if not high - low > width(high) or middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def narrowed(high: float, holds: Callable[[Array], NDArray[np.bool_]]) -> float:
    """About the least number in [0, ``high``] from which on ``holds`` is true; many at a time."""
    points = np.array([0.0, high])
    for _ in range(_PASSES):
        points = np.linspace(points[0], points[1], _POINTS)
        first = int(np.argmax(np.append(holds(points[1:-1]), True)))
        points = points[first : first + 2]
    return float(points[1])


def certify(
    profile: Callable[[float], Bounds],
    delta: float,
    near: float,
    scale: float,
    move: float = 0.0,
) -> Bounds:
    """Bounds on the least ε >= 0 with δ(ε) <= delta, by steps outward from ``near``.

    :param scale: unit of the steps if ``near`` is 0
    :param move: first step, where the width of the profile's bounds suggests one
    """
    if not near < inf:
        return Bounds(0.0, inf)
    at_near = profile(near)
    most = 1e6 * max(near, scale)

    def first(is_certain: Callable[[Bounds], bool], sign: int) -> float | None:
        """The first point at which the bounds decide, on one side of ``near``."""
        epsilon, found = near, at_near
        step = max(move, 4 * UNIT * max(near, UNIT * scale))
        for _ in range(_STEPS):
            if is_certain(found):
                return epsilon
            epsilon, step = near + sign * step, 4 * step
            if not (epsilon > 0.0 and step <= most):
                break
            found = profile(epsilon)
        return None

    lower = first(lambda bounds: bounds.lower > delta, -1)
    upper = first(lambda bounds: bounds.upper <= delta, 1)
    return Bounds(0.0 if lower is None else lower, inf if upper is None else upper)
