"""Exact values between two doubles, and characteristic functions with their error."""

from collections.abc import Callable
from functools import lru_cache, partial
from math import inf, log
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy
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

_STEPS = 300  # of a search; each is four times the step before: enough to leave the doubles
_LEAST = 5e-324  # the least double


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


def certify(
    profile: Callable[[float], Bounds], delta: float, top: float, scale: float, width: float = 0.0
) -> Bounds:
    """Bounds on the least ε >= 0 with δ(ε) <= delta.

    About where each bound on δ crosses ``delta``, steps outward until it certainly has.

    :param top: about the largest ε that may be the answer
    :param scale: unit of the steps where ε is 0
    :param width: of the bounds, relative: this much is of no matter
    """
    known, accuracy = lru_cache(maxsize=None)(profile), max(8 * UNIT, 0.01 * width)
    ends = [0.0, inf]
    for side, sign in ((1, 1), (0, -1)):  # the lower end is below what is found for the upper one
        excess = partial(_excess, known, side, delta)
        near = 0.0 if excess(0.0) <= 0.0 else top
        if near and excess(top) < 0.0:
            ends_at = {"xtol": _LEAST, "rtol": accuracy, "maxiter": _STEPS, "disp": False}
            near = top = scipy.optimize.brentq(excess, 0.0, top, **ends_at)
        step, most = accuracy / 2 * max(near, UNIT * scale), 1e6 * max(near, scale)
        for _ in range(_STEPS):
            found = known(near)
            if found.upper <= delta if side else found.lower > delta:
                ends[side] = near
                break
            near, step = near + sign * step, 4 * step
            if not (near > 0.0 and step <= most):
                break
    return Bounds(*ends)


def _excess(profile: Callable[[float], Bounds], side: int, delta: float, epsilon: float) -> float:
    """Logarithm of a bound on δ over ``delta``; of the upper one where the lower one is useless."""
    found = profile(epsilon)
    bound = found[side] if found.upper < 2 * found.lower else found.upper
    return log(max(bound, _LEAST)) - log(max(delta, _LEAST))
