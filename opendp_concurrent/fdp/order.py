"""What is asked of products: f(α) between two bounds, and whether one is certainly at most another.

One product is at most another if it has at most as large a δ at every ε. ``False`` means that this
was not shown. With this order one counts the units that a function is worth, and finds the residual
of a Gaussian budget.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from math import exp, inf, log, nextafter
from statistics import NormalDist

import numpy as np

from ..numerics import sqrt_down, sqrt_up, to_units, twice_quantile
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, halved
from .exact import Atoms, gaussian_profile
from .finite import response_of
from .noise import Factor, Laplace
from .product import Product, exact_above, with_few_outcomes

# f(α) between two bounds: the largest of 1 - h(t) - t α over t = e^ε, for the profile h.

_STEPS = 80
_SCAN, _CELL = 48, 1.3  # points that are tried first, and their largest distance
_GOLDEN = (5**0.5 - 1) / 2
_COARSE, _FINE = 1e-3, 1e-7  # widths of δ, relative and absolute, where it is inverted
_WIDE, _WIDE_RELATIVE = 1e-5, 1e-3  # of bounds on f(α), with which the search is repeated
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
        found.width > min(_WIDE, _WIDE_RELATIVE * found.upper) and not product.is_exact
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


# The order of products.
#
# h is convex in t = e^ε. To show h <= H on a cell, the convex h is compared with a piecewise linear
# function below the convex H, at its kinks: H is above the extensions of its chords from both
# sides. Cells that fail are divided. Beyond the last point, h is 0 or at most the limit of H; or h
# is a mixture of G_s shifted by at most B, and H is that of G_r with s < r: then h/H falls from
# there on.
#
# The reason is that d ln δ/dε of G_μ is -1 / (R(a)/R(a+μ) - 1), a = ε/μ - μ/2, with Mills' ratio R.
# And ln R(a)/R(a+μ) is the integral of m = 1/R - x from a to a + μ, where x/(x²+2) < m < 1/x
# [NIST DLMF, 7.8]. With σ = s²/2, ρ = r²/2 and X = ε - B > σ it suffices that
#
#     (ε (ρ - σ) - B ρ) (ε - σ ρ / X) >= 2 r² σ,
#
# and if that holds with both factors positive, it holds for all larger ε and smaller B.

Profile = Callable[[Array], Bounds]
_POINTS, _SLOW_POINTS = 400, 60  # first cells, for closed forms and for inversions
_FEW_POINTS = 4
_PARTS, _DEPTH = 8, 4  # into how many parts a cell is divided, and how often
_LEAST_CELL = 1e-9  # narrower cells are within rounding
_MOST_KINKS, _MOST_REACH = 6000, 600.0
_MOST_STEPS = 4000  # each 1 % further, to the end of a tail
_OUTCOMES = 240  # of a pair that stands for a product whose profile is not exact
_WIDTH = 1e-5  # of the bounds on a profile that is not exact


def is_at_most(one: Product, other: Product) -> bool:
    """Whether ``one`` is certainly at most ``other``."""
    if other.is_worst:
        return True
    whole = one, other
    one, other = without_common(one, other)
    if one.is_identity or _is_matched(one, other):
        return True
    if not other.squares and other.single is not None and _is_bounded_by(one, other.single):
        return True
    response = None if one.squares else response_of(one.single)
    if response is not None and is_symmetric(other):
        covered = _is_above_response(one, other)
        if covered or whole == (one, other):  # taking away what is common may decide otherwise
            return covered
    if _is_below_both_ways(one, other):
        return True
    # or leave an unbounded loss against a bounded one
    gaussian = Product(whole[1].squares, {})
    if whole[0].squares and gaussian.squares and _is_below_both_ways(whole[0], gaussian):
        return True
    larger = with_gaussians(one)
    return larger != one and is_at_most(larger, other)


def with_gaussians(product: Product) -> Product:
    """A product that loses at least as much: factors become Gaussians that bound them."""
    squares, rest = product.squares, dict(product.factors)
    for factor, n in product.factors.items():
        if factor.gaussian < inf:
            squares += n * to_units(factor.gaussian) ** 2
            del rest[factor]
    return Product(squares, rest)


def without_common(one: Product, other: Product) -> tuple[Product, Product]:
    """What is left when equal factors are taken from both."""
    squares = min(one.squares, other.squares)
    common = Counter(one.factors) & Counter(other.factors)
    return (
        Product(one.squares - squares, Counter(one.factors) - common),
        Product(other.squares - squares, Counter(other.factors) - common),
    )


def is_symmetric(product: Product) -> bool:
    """Whether every factor is its own swapped pair."""
    return all(factor.symmetric for factor in product.factors)


# --- by the parameters of factors ----------------------------------------------------------


def _is_matched(one: Product, other: Product) -> bool:
    """Whether each factor of ``one`` has a larger factor of ``other`` to itself."""
    if one.squares > other.squares:
        return False
    free = Counter(other.factors)
    for factor, count in sorted(one.factors.items(), key=lambda item: -item[0].largest_loss):
        alone = Product(0, {factor: 1})
        for candidate in sorted(free, key=lambda each: each.largest_loss):
            used = min(count, free[candidate])
            if used and (factor == candidate or _is_bounded_by(alone, candidate)):
                free[candidate] -= used
                count -= used
        if count:
            return False
    return True


def _is_bounded_by(one: Product, factor: Factor) -> bool:
    """Whether the losses of ``one`` are within those of a randomized response [KOV15].

    Or the shifts of Laplace noise are within that of one coordinate (``measures/tradeoffs.py``).
    """
    if isinstance(factor, Laplace) and factor.steps == inf:
        smooth = all(isinstance(each, Laplace) and each.steps == inf for each in one.factors)
        return smooth and one.largest_loss <= factor.epsilon
    pair = response_of(factor)
    if pair is None:
        return False
    epsilon, delta = pair
    both = (one, one.swapped())
    return all(each.largest_loss <= epsilon and each.infinite.upper <= delta for each in both)


def _is_above_response(one: Product, other: Product) -> bool:
    """Whether h <= H for a randomized response and a symmetric product: exact.

    Its trade-off function consists of two chords from (v, v), and vanishes from 1 - δ on. A convex
    one is below if it is so at v, 0 and 1 - δ. If it is symmetric, α + f(α) is least at its fixed
    point, where it is 1 - H(1): the fixed point is at most v exactly if H is at least h at ε = 0.
    """
    zero = np.zeros(1)
    above = one.profile(zero).upper[0] <= other.profile(zero, _WIDTH).lower[0]
    return bool(above and one.infinite.upper <= other.infinite.lower)


# --- by their profiles ---------------------------------------------------------------------


def _is_below_both_ways(one: Product, other: Product) -> bool:
    """Whether h <= H for all ε >= 0, and so for the swapped pairs."""
    symmetric = is_symmetric(one) and is_symmetric(other)
    return _is_below_one_way(one, other) and (
        symmetric or _is_below_one_way(one.swapped(), other.swapped())
    )


def _is_below_one_way(one: Product, other: Product) -> bool:
    """Whether h <= H for all ε >= 0."""
    exact = exact_above(one, _OUTCOMES)
    reach = None if exact is None else _reach(exact, other)
    if exact is None or reach is None or not reach < _MOST_REACH:
        return False
    if reach == 0.0:
        zero = np.zeros(1)
        return bool(exact.profile(zero).upper[0] <= other.profile(zero).lower[0])
    atoms = other.all_atoms
    if atoms is None or len(atoms.losses) > _MOST_KINKS:
        points, depth = (_POINTS, _DEPTH) if other.is_exact else (_SLOW_POINTS, 0)
        profile = partial(other.profile, tolerance=_WIDTH)
        return is_below(exact.profile, profile, reach, points, depth)
    # H is linear in e^ε between 0 and its losses above: h, which is convex, is compared there.
    # A loss is known up to an error: h is taken just before it, and H just after it
    error = atoms.loss_error + 2 * UNIT * reach
    kinks = atoms.losses[(atoms.losses > 0.0) & (atoms.losses <= reach + error)]
    kinks = np.concatenate([[0.0], kinks, [reach]])
    return bool(np.all(exact.profile(kinks - error).upper <= other.profile(kinks + error).lower))


def _reach(one: Product, other: Product) -> float | None:
    """ε from which on h <= H is clear, if it holds there; None if there is none."""
    if one.infinite.upper > other.infinite.lower:
        return None
    if one.largest_loss < inf:
        return max(one.largest_loss, 0.0)
    if one.infinite.upper < other.infinite.lower:
        return float(one.epsilon(other.infinite.lower, 1e-3).upper)
    bounded = Product(0, one.factors).largest_loss
    if other.factors or bounded == inf or not one.squares < other.squares:
        return None
    if max(one.infinite.upper, one.swapped().infinite.upper) > 0.0:
        return None
    return tail_from(bounded, one.mu, other.mu)


def tail_from(shift: float, s: float, r: float) -> float | None:
    """ε from which on the ratio of G_s, shifted by at most ``shift``, to G_r falls; s < r."""
    sigma, rho = s * s / 2, r * r / 2 * (1 - 4 * UNIT)
    if not rho > sigma * (1 + 4 * UNIT):
        return None
    epsilon = max(shift * rho / (rho - sigma), shift + sigma, rho) * (1 + 1e-9) + 1e-9
    for _ in range(_MOST_STEPS):
        if not epsilon < _MOST_REACH:
            break
        first = epsilon * (rho - sigma) - shift * rho
        x = epsilon - shift
        if x > sigma and first > 0 and epsilon > rho:
            second = epsilon - sigma * rho / x
            if second > 0 and first * second >= 2 * r * r * sigma * (1 + 1e-9):
                return epsilon
        epsilon = epsilon * 1.01 + 1e-6
    return None


def is_below(one: Profile, other: Profile, reach: float, points: int, depth: int) -> bool:
    """Whether h <= H from 0 to ``reach``; few points show most failures."""
    few = np.linspace(0.0, reach, _FEW_POINTS)[:-1]
    if not np.all(one(few).upper <= other(few).upper):
        return False
    cell = max(reach / points, _LEAST_CELL)
    return _is_below(one, other, np.linspace(-2 * cell, reach + 2 * cell, points + 5), depth)


def _is_below(one: Profile, other: Profile, grid: Array, depth: int) -> bool:
    """Whether h <= H on the cells of ``grid``, without the first two and the last two."""
    bounds = other(grid)
    kinks, below = lower_kinks(grid, bounds.lower, bounds.upper)
    own = one(grid[2:-2])
    if not np.all(own.upper <= bounds.lower[2:-2]):
        return False  # h > H, or within rounding of it
    fails = ~(one(kinks[2:-2]).upper <= below[2:-2])
    if depth == 0 or not np.any(fails):
        return not np.any(fails)
    cell = (grid[1] - grid[0]) / _PARTS
    for first, last in _runs(fails):
        left, right = grid[first + 2], grid[last + 3]
        parts = round((right - left) / cell)
        finer = np.linspace(left - 2 * cell, right + 2 * cell, parts + 5)
        if not _is_below(one, other, finer, depth - 1):
            return False
    return True


def _runs(marks: Array) -> list[tuple[int, int]]:
    """First and last index of each run of marks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def lower_kinks(grid: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """One point in each cell, and a lower bound there on a convex function in [``low``, ``high``].

    A function with kinks there and at the grid is below the convex function: in each cell that one
    is above the extensions of the neighbouring chords, and those cross there. It never rises.
    """
    t = np.exp(grid)
    left, right = np.full(len(t) - 1, -inf), np.zeros(len(t) - 1)
    left[1:] = (low[1:-1] - high[:-2]) / (t[1:-1] - t[:-2])
    left[0] = (low[0] - 1.0) / t[0]  # from 1 at t = 0
    right[:-1] = np.minimum(0.0, (high[2:] - low[1:-1]) / (t[2:] - t[1:-1]))
    start, end, here, there = t[:-1], t[1:], low[:-1], low[1:]
    gap = there - right * end - here + left * start
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = np.where(left < right, gap / (left - right), (start + end) / 2)
    cross = np.clip(cross, start, end)
    one, two = here + left * (cross - start), there - right * (end - cross)
    slack = 16 * UNIT * (here + np.abs(left) * (cross + start) + np.abs(right) * (end + cross))
    kinks = np.log(cross)
    return kinks - 4 * UNIT * (1 + np.abs(kinks)), np.minimum(one, two) - slack


# How many units of one trade-off function another is worth: powers of one are totally ordered.

MOST = 2**22  # units
_NORMAL = NormalDist()


@lru_cache(maxsize=65536)
def least_power(unit: Product, child: Product) -> int | None:
    """Least k found with child <= unit^k; None if none is found up to ``MOST``."""
    if child.is_identity:
        return 0
    known = _exact(unit, child, up=True)
    if known is not None:
        return known
    larger = with_gaussians(child)
    if unit.squares and larger != child:
        return least_power(unit, larger)
    if unit.infinite.upper == 0.0 < child.infinite.upper:
        return None
    found = _last(lambda k: not is_at_most(child, unit.power(k)), _guess(unit, child))
    return found + 1 if found < MOST else None


def _guess(unit: Product, child: Product) -> int:
    """About the number of units with the δ at ε = 0 of the child, if both were Gaussian."""
    delta = float(child.profile(np.zeros(1), 1e-3).upper[0])
    squares = (2 * _NORMAL.inv_cdf(min((1 + delta) / 2, 1 - 2.0**-53))) ** 2
    return int(min(max(1.0, squares / max(unit.variance, 1e-200)), MOST))


@lru_cache(maxsize=4096)
def largest_power(unit: Product, budget: Product) -> int:
    """Largest k found with unit^k <= budget, at most ``MOST``."""
    known = _exact(unit, budget, up=False)
    if known is not None:
        return known
    return _last(lambda k: is_at_most(unit.power(k), budget), _guess(unit, budget))


def _last(holds: Callable[[int], bool], at: int) -> int:
    """Last integer up to ``MOST`` for which a predicate holds that is true at 0, and false later.

    :param at: where the search starts: outward, until it has both answers
    """
    low, high, step = 0, MOST + 1, 1
    while high - low > 1:
        low, high = (at, high) if holds(at) else (low, at)
        at = low + step if high > MOST else high - step if low == 0 else (low + high) // 2
        at, step = min(max(at, low + 1), high - 1), 2 * step
    return low


def _exact(unit: Product, other: Product, *, up: bool) -> int | None:
    """How many units another product of the same factors has, without a comparison."""
    if not unit.factors and not other.factors:  # Gaussians
        return -(-other.squares // unit.squares) if up else other.squares // unit.squares
    if set(unit.factors) != set(other.factors) or bool(unit.squares) != bool(other.squares):
        return None
    times = {other.factors[factor] // n for factor, n in unit.factors.items()}
    if len(times) != 1:
        return None
    (count,) = times
    return count if unit.power(count) == other else None


# The residual of a Gaussian budget after a child: the largest s with f (x) G_s >= G_r.
#
# Every continuation from s is s-GDP whatever the answer was. So the whole is f (x) G_s, and that is
# at least G_r [RHLMTL26]; derived in docs/tradeoff.rst. The residual is found by a search over s,
# with a certified comparison at each s: ``is_below`` up to where both tails diverge.

_RESIDUE_POINTS, _RESIDUE_DEPTH = 400, 4
_RESIDUE_OUTCOMES = 96  # of the finite pair that stands for a child
_RELATIVE = 1e-9  # accuracy of the residual, downward


def residual(budget: float, child: Product) -> float | None:
    """Largest double found with child (x) G_s >= G_budget, rounded down; None if there is none."""
    child = with_gaussians(child)
    left = to_units(budget) ** 2 - child.squares
    if left < 0:
        return None
    rest = sqrt_down(left)
    return _residual(rest, Product(0, child.factors)) if child.factors else rest


@lru_cache(maxsize=4096)
def _residual(budget: float, child: Product) -> float | None:
    both = [child] if is_symmetric(child) else [child, child.swapped()]
    bound = max(one.largest_loss for one in both)
    if any(one.infinite.upper > 0.0 for one in both) or not bound < 600.0 or budget == 0.0:
        return None
    pairs = [with_few_outcomes(one, _RESIDUE_OUTCOMES) for one in both]
    target = partial(gaussian_profile, budget)

    def fits(s: float) -> bool:
        reach = bound if s == 0.0 else tail_from(bound, s, budget)
        if reach is None:
            return False
        squares = to_units(s) ** 2
        both = (Product(squares, pair.factors).profile for pair in pairs)
        return all(
            is_below(profile, target, reach, _RESIDUE_POINTS, _RESIDUE_DEPTH) for profile in both
        )

    # the residual by the sum of squares: a loss of at most ε is μ-GDP with μ = 2 Φ⁻¹(e^ε/(1+e^ε))
    low, mu = 0.0, twice_quantile(bound)
    if mu < budget:
        low = sqrt_down(to_units(budget) ** 2 - to_units(mu) ** 2)
    elif not fits(0.0):
        return None
    return halved(low, budget, lambda s: not fits(s), lambda _: _RELATIVE * budget)[0]


@lru_cache(maxsize=65536)
def gaussian_bound(child: Product) -> float:
    """A μ with child <= G_μ: by the largest loss, or smaller by certified comparisons."""
    child = with_gaussians(child)
    rest = Product(0, child.factors)
    if not rest.factors:
        return child.mu
    both = (rest, rest.swapped())
    if any(one.infinite.upper > 0.0 or not one.largest_loss < inf for one in both):
        return inf
    most = twice_quantile(max(one.largest_loss for one in both))
    _, high = halved(
        0.0,
        most,
        lambda mu: is_at_most(rest, Product(to_units(mu) ** 2, {})),
        lambda high: 1e-6 * high,
    )
    return sqrt_up(child.squares + to_units(high) ** 2)
