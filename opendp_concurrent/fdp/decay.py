"""Bounds on characteristic functions from the density of the loss.

Let g >= 0 have the integral w and the total variation V. Then

    |∫ g(L) e^(iωL) dL| <= 2D sin(w / 2D),   D = w / 2π + V / 2ω.

For the phase ωL modulo 2π has a density of at most D: with T = 2π/ω, a value g(t) is above the mean
of g over [t - T/2, t + T/2] by at most half the variation there, so Σ g(t + nT) T <= w + TV/2. Of
all densities up to D, the one on a single arc has the largest sum of phases. The bound falls in ω
and rises in w and V. The density is cut in two, where that helps most, because the triangle
inequality then loses little: one part is narrow and high, the other one wide and low.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, pi, sqrt

import numpy as np

from .bounds import ELEMENTARY, TINY, UNIT, Array
from .quadrature import Masses, gaussian_losses, gaussian_window, laplace_losses

_MOST_PANELS = 2**14
_NODES = 12  # with ρ = 8, relative errors of the panels below are under 1e-12
_CUTS = 64
_ROUNDING = 1e-11  # relative; that of masses and densities is far below


@dataclass(frozen=True, eq=False)
class Pieces:
    """A density cut in two at several places; the last cut has all on one side.

    :ivar masses: upper bounds, two rows
    :ivar variations: upper bounds on total variations, two rows
    :ivar rest: upper bound on the mass without this density
    :ivar cells: right ends of cells and their masses
    """

    masses: Array
    variations: Array
    rest: float
    cells: Masses

    def log_bound(self, omega: Array) -> Array:
        """The logarithm of a bound on |ρ| for all frequencies from ω on."""
        highest = self.masses / (2 * pi) + np.multiply.outer(0.5 / omega, self.variations)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            parts = 2 * highest * np.sin(self.masses / (2 * highest))
            parts = np.where(self.masses > 0.0, np.minimum(parts, self.masses), 0.0)
            least = np.min(parts.sum(axis=1), axis=-1)
            bound: Array = np.log((self.rest + least) * (1 + 16 * ELEMENTARY))
        return np.fmin(bound, 0.0)  # 0 also for NaN, where densities leave the doubles


def gaussian_pieces(mu: float, rate: float, power: float, cumulant: float) -> Pieces | None:
    """For Gaussian noise and the density in proportion to φ r^a; None if it has too many panels.

    :param cumulant: a lower bound on ln E_Q[r^a]
    """
    left, right = gaussian_window(mu, rate, power, power)
    slope = max(-left, right) + abs(power) * mu
    half = min(0.125, 0.5 / (mu * sqrt(1 + max(0.0, -power))), 0.75 / slope)
    half = min(half, 0.5 / sqrt(1 + abs(power + 1) * mu * mu / 4))
    if not (right - left) / (2 * half) <= _MOST_PANELS:
        return None
    edges = np.linspace(left, right, ceil((right - left) / (2 * half)) + 1)
    middle, length, points, weights = _panels(edges)

    def logs(x: Array) -> tuple[Array, Array, Array]:
        values, errors, w = gaussian_losses(mu, rate, x)
        level = power * values - x * x / 2 - log(2 * pi) / 2 - cumulant
        # an error of x moves the loss by μ times as much, and the exponent by |x|
        wrong = abs(power) * (errors + 8 * UNIT * mu * np.abs(x)) + 16 * UNIT * (1 + x * x)
        return level, wrong + 8 * UNIT * np.abs(level), mu * w

    level, wrong, derivative = logs(edges)
    density = _densities(level + wrong, derivative)
    turn = power + 1  # of ln density by x: -x - μ + (a + 1) μw
    slopes = -edges - mu + turn * derivative
    inner, inner_wrong, _ = logs((middle[:, None] + np.outer(length, points)).ravel())
    masses = np.exp(inner + inner_wrong).reshape(len(length), -1) @ weights * length
    outside = float(np.exp(level + wrong)[0] + np.exp(level + wrong)[-1]) / 9.0
    return _pieces(density, slopes, 1 + abs(turn) * mu * mu / 4, edges, masses, outside)


def laplace_pieces(epsilon: float, rate: float, power: float, cumulant: float) -> Pieces | None:
    """As :func:`gaussian_pieces`, for Laplace noise."""
    half = min(0.1, 0.25 / sqrt(1 + max(0.0, -power)), 0.75 / (1 + 2 * abs(power)))
    if not epsilon / (2 * half) <= _MOST_PANELS:
        return None
    edges = np.linspace(0.0, epsilon, ceil(epsilon / (2 * half)) + 1)
    middle, length, points, weights = _panels(edges)

    def logs(x: Array) -> tuple[Array, Array, Array]:
        values, errors, w = laplace_losses(epsilon, rate, x)
        level = power * values - x - log(2.0) - cumulant
        wrong = abs(power) * errors + 16 * UNIT * (1 + epsilon) + 8 * UNIT * np.abs(level)
        return level, wrong, 2 * w

    level, wrong, derivative = logs(edges)
    density, turn = _densities(level + wrong, derivative), power + 1
    slopes = -3 + turn * derivative
    inner, inner_wrong, _ = logs((middle[:, None] + np.outer(length, points)).ravel())
    masses = np.exp(inner + inner_wrong).reshape(len(length), -1) @ weights * length
    # the atoms have the masses 1/2 r^a and e^-ε/2 r^a: those of the density by x at the ends
    atoms = sum(exp(float(at)) for at in (level[0], level[-1])) * (1 + 2 * float(np.max(wrong)))
    return _pieces(density, slopes, abs(turn), edges, masses, atoms)


def _densities(level: Array, derivative: Array) -> Array:
    """Densities of the loss; infinite where they leave the doubles."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(level < -700.0, TINY, np.exp(level)) / derivative


def _panels(edges: Array) -> tuple[Array, Array, Array, Array]:
    """Middles and half lengths of the panels, and nodes and weights on [-1, 1]."""
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    return (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2, points, weights


def _pieces(
    density: Array, slopes: Array, curvature: float, edges: Array, masses: Array, rest: float
) -> Pieces | None:
    """Cut at some edges, and bound the variations.

    :param slopes: derivatives of the logarithm of the density, at the edges
    :param curvature: bound on its second derivative
    """
    width = np.diff(edges)
    low, high = np.minimum(density[:-1], density[1:]), np.maximum(density[:-1], density[1:])
    if not np.all(np.isfinite(density)):
        return None
    # where the slope may vanish inside, the density goes beyond the ends by this factor at most
    turns = np.minimum(np.abs(slopes[:-1]), np.abs(slopes[1:])) <= curvature * width * (1 + 1e-9)
    beyond = np.where(turns, np.expm1(curvature * width * width / 8), 0.0)
    each = high - low + 2 * high * 1.01 * beyond
    up = np.concatenate([[0.0], np.cumsum(each)])
    mass = np.concatenate([[0.0], np.cumsum(masses)])
    more = 1 + _ROUNDING + 4 * UNIT * len(edges)
    cuts = np.unique(np.linspace(0, len(edges) - 1, _CUTS).astype(int))
    left = np.stack([mass[cuts], density[0] + up[cuts] + density[cuts]])
    right = np.stack([mass[-1] - mass[cuts], density[cuts] + up[-1] - up[cuts] + density[-1]])
    # sums are subtracted, so their error is that of the whole
    slack = np.array([[mass[-1]], [up[-1]]]) * (4 * UNIT * len(edges))
    both = np.maximum(np.stack([left, right], axis=1) * more + slack[:, :, None], 0.0)
    found = both[0], both[1]
    return Pieces(found[0], found[1], rest * more, (edges[1:], masses * more, rest * more))
