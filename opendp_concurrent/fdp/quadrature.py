"""Expectations of r^z for a subsampled mechanism, by quadrature with proven errors.

Q is the law without the unit, P₀ the law with it, and r = 1 - q + q e^u, where u is the loss of P₀
against Q at x, and q is the rate. With z = a + iω, the integrand d(x) r(x)^z is analytic where the
imaginary part of u is below π: for Gaussian noise u = μx - μ²/2, for Laplace noise u = 2x - ε.
Let x + iy be such a point and θ = u'y. Then r(x + iy) = (1 - q) + q e^u e^(iθ) has an argument
between 0 and θ, and r(x) cos(θ/2) <= |r(x + iy)| <= r(x). So

    |r(x + iy)^z| <= r(x)^a e^(|ω||θ|) cos(θ/2)^min(a, 0).

* *Gaussian noise.* |φ(x + iy)| = φ(x) e^(y²/2). By [TW14, Theorem 5.1] the trapezoidal rule with
  step h errs by at most 2 e^(y²/2 + |ω|μy) cos(μy/2)^min(a, 0) / (e^(2πy/h) - 1), relative to
  E_Q[r^a], for every y below π/μ. The terms that are left out are bounded by geometric series: the
  derivative of ln φ r^a is -x + aμw with w = q e^u / r in (0, 1).
* *Laplace noise.* Two atoms, and an integral over (0, ε) by Gauss-Legendre rules on panels. A rule
  with n nodes on [-1, 1] errs by at most 8 M ρ^(1-2n) / (ρ - 1), where M bounds the integrand on
  the Bernstein ellipse of ρ: the coefficients of its Chebyshev series are at most 2 M ρ^-k, and the
  rule is exact up to the degree 2n - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, frexp, ldexp, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bounds import ELEMENTARY, TINY, UNIT, Array, ComplexArray, waves, waves_error

_REACH = 10.0  # standard deviations beyond the modes of the integrand
MOST_NODES, _FEW_NODES = 2**15, 2**12  # the latter for E_Q[r^a] alone, at many a
_BLOCK = 2**20  # elements that are worked on together
_LARGE = 300.0  # losses whose exponential is a double
_MARGIN = 44.0  # the logarithm of the accuracy of the rules
_HEIGHTS = np.geomspace(1e-5, 1.0, 80)  # of strips, in units of the largest
_NODES, _RHO = 20, 8.0  # of a Gauss-Legendre rule, and of its ellipse
_LONG, _SHORT = (_RHO + 1 / _RHO) / 2, (_RHO - 1 / _RHO) / 2  # semi-axes of the ellipse
_RULE, _WEIGHT = 64 * UNIT, 2.0**-43  # error of NumPy's nodes, and relative error of its weights


@dataclass(frozen=True, eq=False)
class Nodes:
    """A quadrature rule, for all a in an interval and all ω up to a bound.

    :ivar losses: ln r at the nodes
    :ivar loss_errors: bounds on their errors
    :ivar logs: logarithms of weight times density of Q
    :ivar log_errors: bounds on their errors
    :ivar relative: error of the rule, relative to E_Q[r^a]
    :ivar tail: what is left out, in units of the first and the last term together
    """

    losses: Array
    loss_errors: Array
    logs: Array
    log_errors: Array
    relative: float
    tail: float = 0.0

    def moments(self, powers: Array) -> tuple[Array, Array]:
        """The logarithm of E_Q[r^a] for each a, and bounds on the errors."""
        rows = max(1, _BLOCK // len(self.losses))
        parts = [self._moments(powers[i : i + rows]) for i in range(0, len(powers), rows)]
        value, error = (np.concatenate(part) for part in zip(*parts, strict=True))
        return value, error

    def _moments(self, powers: Array) -> tuple[Array, Array]:
        exponents = np.multiply.outer(powers, self.losses) + self.logs
        largest = np.max(exponents, axis=1)
        terms = np.exp(exponents - largest[:, None])
        whole = terms @ np.ones(len(self.losses))
        error = self._error(powers, terms, whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(error < 0.5, -np.log1p(-np.minimum(error, 0.5)), np.inf)
        value = largest + np.log(whole)
        return value, bound + ELEMENTARY * np.abs(np.log(whole)) + 4 * UNIT * np.abs(value)

    def _error(self, powers: Array, terms: Array, whole: Array) -> Array:
        """Relative errors of sums of terms."""
        by_loss = (terms @ self._loss_rounding) / whole
        by_log = (terms @ (self.log_errors + 4 * UNIT * np.abs(self.logs))) / whole
        cut = self.tail * (terms[:, 0] + terms[:, -1]) / whole
        rounding = ELEMENTARY + UNIT * len(self.losses)
        found: Array = 1.01 * (by_log + np.abs(powers) * by_loss + cut + rounding + self.relative)
        return found

    @property
    def _loss_rounding(self) -> Array:
        return self.loss_errors + 4 * UNIT * np.abs(self.losses)

    def transform(
        self, power: float, sign: int, step: float, count: int
    ) -> tuple[ComplexArray, float]:
        """E_Q[r^(a ± iω)] / E_Q[r^a] at ω = 0, step, ..., (count - 1) step, and the error."""
        exponents = power * self.losses + self.logs
        terms = np.exp(exponents - np.max(exponents))
        whole = float(np.sum(terms))
        weights = terms / whole
        values = waves(self.losses, weights, sign * step, count)
        one = np.array([power])
        error = 2 * float(self._error(one, terms[None, :], np.array([whole]))[0])
        by_phase = float(weights @ self._loss_rounding)
        error += step * count * by_phase + 3 * ELEMENTARY + waves_error(len(weights))
        return values, 1.01 * error


def losses(u: Array, u_error: Array, rate: float) -> tuple[Array, Array, Array]:
    """L = ln(1 - q + q e^u), bounds on the errors, and its derivative w by u."""
    small = np.minimum(u, _LARGE)
    y = rate * np.expm1(small)
    with np.errstate(divide="ignore"):
        direct = np.log((1.0 - rate) + rate * np.exp(small))
        near = np.log1p(np.maximum(y, -0.5))
        far = u + np.log(rate + (1.0 - rate) * np.exp(-np.maximum(u, _LARGE)))
    value = np.where(u > _LARGE, far, np.where(y > -0.5, near, direct))
    w = np.minimum(1.0, rate * np.exp(np.minimum(u - value, -log(rate))))
    coarse = (u > _LARGE) | (y <= -0.5)
    error = 4 * ELEMENTARY * (np.abs(value) + np.where(coarse, 1 + np.abs(u) - log(rate), 0.0))
    return value, error + 1.01 * w * u_error + TINY, w  # a small rate underflows


def gaussian_losses(mu: float, rate: float, x: NDArray[Any]) -> tuple[Array, Array, Array]:
    """As :func:`losses`, for Gaussian noise at the points x, which are exact."""
    return losses(mu * (x - mu / 2), 4 * UNIT * mu * (np.abs(x) + mu), rate)


def laplace_losses(epsilon: float, rate: float, x: Array) -> tuple[Array, Array, Array]:
    """As :func:`losses`, for Laplace noise at the points x of (0, ε)."""
    wrong = np.full(len(x), (2 * _RULE + 8 * UNIT) * (1 + epsilon))
    return losses(2 * x - epsilon, wrong, rate)


def gaussian_window(mu: float, rate: float, low: float, high: float) -> tuple[float, float]:
    """Points beyond which φ r^a falls at the rate ``_REACH`` at least, for a in [low, high]."""
    right = max(high, 0.0) * mu + _REACH
    if low >= 0.0:
        return -_REACH, right
    odds = log(rate) - log(1.0 - rate)
    left, middle = low * mu, 0.0  # where x - aμw is at most 0, and at least 0
    for _ in range(60):
        x = (left + middle) / 2
        w = 1 / (1 + exp(min(-(mu * x - mu * mu / 2 + odds), 700.0)))
        left, middle = (x, middle) if x - low * mu * w <= 0.0 else (left, x)
    return left - 1e-6 - _REACH, right


def strip_step(mu: float, rate: float, low: float, omega: float) -> tuple[float, float]:
    """The step of the trapezoidal rule, and the bound on its error relative to E_Q[r^a]."""
    y: Array = _HEIGHTS * min(0.98 * pi / mu, 40.0)
    theta = mu * y
    cost = y * y / 2 - max(0.0, -low) * np.log(np.cos(theta / 2)) + omega * theta
    steps = 2 * pi * y / (cost + _MARGIN)
    best = int(np.argmax(steps))
    mantissa, exponent = frexp(min(float(steps[best]), 1.0))
    h = ldexp(int(mantissa * 256), exponent - 8)  # few bits, so that multiples are exact
    exact = float(cost[best]) * (1 + 1e-9) + 1e-9 * (1 + omega * float(theta[best]))
    return h, 2.02 * exp(min(exact - 2 * pi * float(y[best]) / h, 700.0))  # no bound, if that large


def gaussian_nodes(mu: float, rate: float, low: float, high: float, omega: float) -> Nodes | None:
    """The trapezoidal rule for a in [low, high], |ω| <= omega; None if it has too many nodes."""
    left, right = gaussian_window(mu, rate, low, high)
    most = MOST_NODES if omega else _FEW_NODES
    if right - left > most:  # steps are at most 1
        return None
    h, relative = strip_step(mu, rate, low, omega)
    if not (right - left) / h <= most:
        return None
    x = h * np.arange(int(left / h) - 1, ceil(right / h) + 2)
    values, errors, _ = gaussian_losses(mu, rate, x)
    logs = log(h / sqrt(2 * pi)) - x * x / 2
    return Nodes(
        values, errors, logs, np.full(len(x), 2 * ELEMENTARY), relative, 1.01 / (_REACH * h)
    )


def laplace_half(epsilon: float, rate: float, low: float, high: float, omega: float) -> float:
    """Half of a panel: the integrand on its ellipse is at most e^26 times that in its middle."""
    largest = max(abs(low), abs(high))
    most = min(0.75 / _SHORT, 1.0 / (_SHORT * sqrt(1 + max(0.0, -low))))  # 2y is at most 1.5
    best = 0.0
    for half in most * 2.0 ** np.arange(0, -24, -1):
        # arg r / θ is at most w / (1 - w (1 - cos θ)), with the largest w on the ellipse
        beyond = np.array([epsilon + 2 * _LONG * half])
        w = float(losses(beyond, np.zeros(1), rate)[2][0]) * (1 + 1e-9)
        turn = min(1.0, w / (1 - 0.93 * w))
        wanted = 25.0 / (_LONG * (1 + 2 * largest) + 2 * _SHORT * omega * turn)
        best = max(best, min(float(half), wanted))
        if wanted >= half:
            break
    return best


def laplace_nodes(
    epsilon: float, rate: float, low: float, high: float, omega: float
) -> Nodes | None:
    """Atoms and Gauss-Legendre panels for a in [low, high]; None if there are too many nodes."""
    half = laplace_half(epsilon, rate, low, high, omega)
    panels = ceil(epsilon / (2 * half)) if epsilon / half < MOST_NODES else MOST_NODES
    if panels * _NODES > MOST_NODES:
        return None
    half = epsilon / (2 * panels)
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    x = ((2 * np.arange(panels)[:, None] + 1 + points) * half).ravel()
    inner, inner_errors, _ = laplace_losses(epsilon, rate, x)
    ends = np.array([-epsilon, epsilon])
    atoms, atom_errors, _ = losses(ends, np.zeros(2), rate)
    logs = np.concatenate(
        [np.array([0.0, -epsilon]) - log(2.0), np.tile(np.log(weights * half / 2), panels) - x]
    )
    errors = np.full(len(logs), _WEIGHT + 4 * _RULE * (1 + epsilon) + 2 * ELEMENTARY)
    return Nodes(
        np.concatenate([atoms, inner]),
        np.concatenate([atom_errors, inner_errors]),
        logs,
        errors,
        _RHO ** (1 - 2 * _NODES) * exp(34.0),
    )
