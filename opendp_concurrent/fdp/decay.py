"""Bounds on characteristic functions from the density of the loss.

Let g >= 0 have the integral w and the total variation V. Then

    |∫ g(L) e^(iωL) dL| <= 2D sin(w / 2D),   D = w / 2π + V / 2ω.

For the phase ωL modulo 2π has a density of at most D: with T = 2π/ω, a value g(t) is above the mean
of g over [t - T/2, t + T/2] by at most half the variation there, so Σ g(t + nT) T <= w + TV/2. Of
all densities up to D, the one on a single arc has the largest sum of phases. The bound falls in ω
and rises in w and V.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log, pi, sqrt

import numpy as np

from .bounds import ELEMENTARY, TINY, UNIT, Array
from .quadrature import gaussian_losses, gaussian_window, laplace_losses

_MOST_PANELS = 2**14
_ROUNDING = 1e-11  # relative; that of densities is far below


@dataclass(frozen=True)
class Density:
    """What bounds the characteristic function of a loss.

    :ivar mass: upper bound on the integral of the density
    :ivar variation: upper bound on its total variation
    :ivar rest: upper bound on the mass without this density
    """

    mass: float
    variation: float
    rest: float

    def log_bound(self, omega: Array) -> Array:
        """The logarithm of a bound on |ρ| for all frequencies from ω on."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            highest = self.mass / (2 * pi) + 0.5 / omega * self.variation
            most = np.minimum(2 * highest * np.sin(self.mass / (2 * highest)), self.mass)
            bound: Array = np.log((self.rest + most) * (1 + 16 * ELEMENTARY))
        return np.fmin(bound, 0.0)  # 0 also for NaN, where densities leave the doubles


def gaussian_density(mu: float, rate: float, power: float, cumulant: float) -> Density | None:
    """For Gaussian noise and the density in proportion to φ r^a; None if it has too many panels.

    :param cumulant: a lower bound on ln E_Q[r^a]
    """
    left, right = gaussian_window(mu, rate, power, power)
    turn = power + 1
    curvature = 1 + abs(turn) * mu * mu / 4
    half = min(0.125, 0.5 / sqrt(curvature))
    if not (right - left) / (2 * half) <= _MOST_PANELS:
        return None
    x = np.linspace(left, right, ceil((right - left) / (2 * half)) + 1)
    values, errors, w = gaussian_losses(mu, rate, x)
    level = power * values - x * x / 2 - log(2 * pi) / 2 - cumulant
    # an error of x moves the loss by μ times as much, and the exponent by |x|
    wrong = abs(power) * (errors + 8 * UNIT * mu * np.abs(x)) + 16 * UNIT * (1 + x * x)
    level = level + wrong + 8 * UNIT * np.abs(level)
    slopes = -x - mu + turn * mu * w  # of ln density by x
    variation = _variation(_densities(level, mu * w), slopes, curvature, np.diff(x))
    outside = (exp(min(float(level[0]), 700.0)) + exp(min(float(level[-1]), 700.0))) / 9.0
    return Density(1.0, variation, outside * (1 + _ROUNDING))


def laplace_density(
    epsilon: float, rate: float, power: float, cumulant: float, error: float
) -> Density | None:
    """As :func:`gaussian_density`, for Laplace noise.

    :param error: of the lower bound on ln E_Q[r^a], which is at most this much too small
    """
    curvature = abs(power + 1)
    half = min(0.1, 0.25 / sqrt(1 + curvature))
    if not epsilon / (2 * half) <= _MOST_PANELS:
        return None
    x = np.linspace(0.0, epsilon, ceil(epsilon / (2 * half)) + 1)
    values, errors, w = laplace_losses(epsilon, rate, x)
    level = power * values - x - log(2.0) - cumulant
    wrong = abs(power) * errors + 16 * UNIT * (1 + epsilon) + 8 * UNIT * np.abs(level)
    slopes = -3 + 2 * (power + 1) * w
    variation = _variation(_densities(level + wrong, 2 * w), slopes, curvature, np.diff(x))
    # the atoms have the masses 1/2 r^a and e^-ε/2 r^a: those of the density by x at the ends
    ends = (level[0], wrong[0]), (level[-1], wrong[-1])
    most = sum(exp(min(float(at + off), 700.0)) for at, off in ends) * (1 + _ROUNDING)
    least = sum(exp(min(float(at - off) - error, 700.0)) for at, off in ends) * (1 - _ROUNDING)
    return Density(max(0.0, 1.0 - least) * (1 + _ROUNDING), variation, most)


def _densities(level: Array, derivative: Array) -> Array:
    """Densities of the loss; infinite where they leave the doubles."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(level < -700.0, TINY, np.exp(level)) / derivative


def _variation(density: Array, slopes: Array, curvature: float, width: Array) -> float:
    """A bound on the total variation; infinite where densities leave the doubles.

    :param slopes: derivatives of the logarithm of the density, at the ends of panels
    :param curvature: bound on its second derivative
    """
    if not np.all(np.isfinite(density)):
        return inf
    low, high = np.minimum(density[:-1], density[1:]), np.maximum(density[:-1], density[1:])
    # where the slope may vanish inside, the density goes beyond the ends by this factor at most
    turns = np.minimum(np.abs(slopes[:-1]), np.abs(slopes[1:])) <= curvature * width * (1 + 1e-9)
    beyond = np.where(turns, np.expm1(curvature * width * width / 8), 0.0)
    each = high - low + 2 * high * 1.01 * beyond
    whole = density[0] + np.sum(each) + density[-1]
    return float(whole) * (1 + _ROUNDING + 4 * UNIT * len(density))
