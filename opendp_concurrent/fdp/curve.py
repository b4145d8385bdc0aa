"""f(α) between two bounds: the largest of 1 - h(t) - t α over t = e^ε, for the profile h."""

from collections.abc import Callable
from math import exp, inf, log, nextafter

import numpy as np

from .atoms import Atoms
from .bounds import ELEMENTARY, TINY, UNIT, Bounds
from .product import Product

_STEPS = 80
_SCAN, _CELL = 48, 1.3  # points that are tried first, and their largest distance
_GOLDEN = (5**0.5 - 1) / 2
_COARSE, _FINE = 1e-3, 1e-7  # widths of δ, relative and absolute, where it is inverted
_WIDE, _RELATIVE = 1e-5, 1e-3  # of bounds on f(α), with which the search is repeated
_REACH = 700.0  # largest logarithm of t that is tried


def beta_bounds(product: Product, alpha: float) -> Bounds:
    """Bounds on f(α), where f = T(Q, P) has the profile of ``product``.

    Each t gives a lower bound. The function of t is concave. So three points, of which the middle
    one has the largest value, give an upper bound by the extensions of their chords.
    """
    if alpha == 1.0:
        return Bounds(0.0, 0.0)
    if alpha == 0.0:
        return _one_minus(product.infinite.lower, product.infinite.upper)
    if product.all_atoms is not None:
        found, back = _between_outcomes(product.all_atoms, alpha), product.swapped()
        if back.all_atoms is None:
            return found
        low, high = _from_below(back.all_atoms, alpha)
        return Bounds(max(found.lower, low), min(found.upper, high))
    found = _searched(product, alpha, 0.0 if product.is_exact else _COARSE)
    if (
        found.width > min(_WIDE, _RELATIVE * found.upper) and not product.is_exact
    ):  # the first points may have misled
        again = _searched(product, alpha, _FINE)
        found = Bounds(max(found.lower, again.lower), min(found.upper, again.upper))
    if product.upper_only:
        return Bounds(found.lower, _one_minus(alpha, 1.0).upper)
    return found


def _searched(product: Product, alpha: float, first: float) -> Bounds:
    """Bounds on f(α) from the profile.

    :param first: relative width of the bounds on δ at the points that are tried first
    """
    exact, width = product.is_exact, first
    near = 1e-9 if exact else 1e-4
    reaches = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1) if exact else (1e-3, 1e-2, 1e-1)

    swapped = product.swapped()

    def value(epsilon: float) -> Bounds:
        if epsilon < 0.0:  # t (1 - α - h'(1/t)), by the swapped pair: small values stay accurate
            bounds, t, rest = swapped.profile(np.array(-epsilon), width), exp(epsilon), 1.0 - alpha
            slack = 4 * UNIT * (rest + float(bounds.upper))
            low, high = rest - float(bounds.upper) - slack, rest - float(bounds.lower) + slack
            error = 2 * ELEMENTARY
            return Bounds(low * t * (1 - error), max(high, 0.0) * t * (1 + error))
        bounds, t = product.profile(np.array(epsilon), width), exp(min(epsilon, _REACH))
        slack = 4 * UNIT * (1 + t * alpha)
        return Bounds(
            1.0 - float(bounds.upper) - t * alpha - slack,
            1.0 - float(bounds.lower) - t * alpha + slack,
        )

    # the maximum is at least 0, so t is at most 1 / α; for t near 0 the value is at most t (1 - α)
    # the last kinks are at the largest losses of both directions
    least = max(-_REACH, -swapped.largest_loss)
    most = max(min(-log(alpha), product.largest_loss, _REACH), least)
    cell = min((most - least + 2e-6) / (_SCAN - 1), _CELL)
    ends, every = [most + 1e-6], [value(most + 1e-6)]
    while ends[-1] > least and exp(ends[-1]) * (1 - alpha) >= max(one.lower for one in every):
        ends.append(ends[-1] - cell)
        every.append(value(ends[-1]))
    top = int(np.argmax([one.lower for one in every]))
    low, high = ends[min(top + 1, len(ends) - 1)], ends[max(top - 1, 0)]
    if not exact:  # an absolute error of about _FINE is enough
        delta = float(product.profile(np.array(ends[top]), first).upper)
        width = min(first, _FINE / max(delta, _FINE))
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    best = max(0.0, every[top].lower, at_left.lower, at_right.lower)
    for _ in range(_STEPS):
        if at_left.lower + at_left.upper < at_right.lower + at_right.upper:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        best = max(best, at_left.lower, at_right.lower)
        if high - low <= near:
            break
    best = max(best, value(0.0).lower)
    upper = _one_minus(alpha, 1.0).upper
    for reach in reaches:
        upper = min(upper, _above(value, (low + high) / 2, reach))
    return Bounds(min(best, upper), max(best, upper))


def _between_outcomes(atoms: Atoms, alpha: float) -> Bounds:
    """1 - g(α); g is concave, not negative, and linear between the sums of Q- and P-masses."""
    p, q = atoms.above
    error = 2 * (atoms.mass_error + atoms.loss_error + (len(p) + 8) * UNIT) + 4 * ELEMENTARY
    error += atoms.infinite_error

    def power(at: float) -> float:
        return float(atoms.infinite + (np.interp(at, q, p) if at > 0.0 else 0.0))

    # a relative error of α or of g moves g by at most that error; masses below TINY are not counted
    high = power(alpha * (1 + error) + TINY) * (1 + error) + atoms.omitted + TINY
    low = power(max(0.0, alpha * (1 - error) - TINY)) * (1 - error) - atoms.slack - TINY
    return _one_minus(max(alpha, low), min(1.0, high))


def _from_below(swapped: Atoms, alpha: float) -> Bounds:
    """The same from the least loss up, where small values stay accurate: P- over Q-masses."""
    q, p = swapped.above
    error = 2 * (swapped.mass_error + swapped.loss_error + (len(p) + 8) * UNIT) + 4 * ELEMENTARY
    error, rest = error + swapped.infinite_error, 1.0 - alpha
    moved = swapped.omitted + 2 * TINY
    high = np.interp(rest * (1 + error) + moved + swapped.slack, swapped.infinite + q, p, right=1.0)
    low = np.interp(rest * (1 - error) - moved, swapped.infinite + q, p)
    return Bounds(float(low) * (1 - error) - TINY, float(high) * (1 + error) + moved)


def _one_minus(low: float, high: float) -> Bounds:
    """Bounds on 1 - x for x in [low, high], rounded outward; exact where x is 0."""
    below = nextafter(1.0 - high, 0.0) if high else 1.0
    above = nextafter(1.0 - low, inf) if low else 1.0
    return Bounds(max(0.0, below), min(1.0, max(0.0, above)))


def _above(value: Callable[[float], Bounds], middle: float, reach: float) -> float:
    """Upper bound from points around ``middle``; infinite if they do not enclose the maximum."""
    points = [middle - 2 * reach, middle - reach, middle + reach, middle + 2 * reach]
    t, g = [exp(point) for point in points], [value(point) for point in points]
    if not (g[0].upper < g[1].lower and g[3].upper < g[2].lower):
        return inf
    before, inner, behind = t[1] - t[0], t[2] - t[1], t[3] - t[2]
    first = g[1].upper + max(0.0, g[1].upper - g[2].lower) * before / inner
    last = g[2].upper + max(0.0, g[2].upper - g[1].lower) * behind / inner
    rise = g[1].upper + (g[1].upper - g[0].lower) * inner / before
    fall = g[2].upper + (g[2].upper - g[3].lower) * inner / behind
    return float(max(first, last, min(rise, fall))) * (1 + 16 * UNIT)
