"""Guards for the arguments of trade-off functions: the keyword is the argument's name."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import expm1, inf, log, nextafter
from typing import Any, NamedTuple

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from ..numerics import double_up
from .bounds import ELEMENTARY, TINY, UNIT, Array
from .exact import Gaussian
from .finite import Finite, from_vertices, without_tiny_masses, worst
from .noise import Factor, Laplace, Subsampled
from .product import Product, chords, points

MOST_POINTS = 10**7
UNITS = ("removed", "added")


def numbers(**argument: Any) -> list[float]:
    """Return a nonempty sequence of finite doubles, or raise."""
    ((name, values),) = argument.items()
    if isinstance(values, np.ndarray) and values.size <= checks.MOST_ELEMENTS:
        values = values.tolist()
    given = checks.sequence("numbers", **{name: values})
    doubles = [checks.real(**{name: value}) for value in given]
    for double in doubles:
        if not abs(double) < inf:
            raise InvalidValueError(f"{name} must be finite, found {double}")
    return doubles


def array(**argument: Any) -> Array:
    """Return the argument as an array without NaN, or raise."""
    ((name, value),) = argument.items()
    if isinstance(value, (int, float)):
        return np.array(checks.real(**argument))
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidTypeError(f"{name} must be a number or an array of numbers, none masked")
    if isinstance(value, np.ndarray) and not value.size <= MOST_POINTS:
        raise InvalidValueError(f"{name} must have at most {MOST_POINTS:,} numbers")
    kinds = (np.ndarray, np.number, list, tuple)
    try:
        given = checks.array(value if isinstance(value, kinds) else None)
        points: Array = given.astype(float)
    except Exception:
        given = points = np.array("")
    if given.dtype.kind not in "iuf":
        raise InvalidTypeError(f"{name} must be a number or an array of numbers")
    if np.any(np.isnan(points)):
        raise InvalidValueError(f"{name} must not be NaN")
    if np.any(points != given):
        raise InvalidValueError(f"{name} has numbers without an exact double; pass floats")
    return points


def check_representable(name: str, masses: Iterable[float]) -> None:
    """Raise unless each mass is 0 or large enough for the relative accuracy of doubles."""
    for mass in masses:
        if 0.0 < mass < TINY:
            raise InvalidValueError(
                f"{name} must be 0 or at least {TINY}, where doubles are accurate; found {mass}"
            )


def distribution(**argument: Any) -> list[float]:
    """Return probabilities that add up to 1, or raise."""
    ((name, _),) = argument.items()
    masses = numbers(**argument)
    for mass in masses:
        if not 0.0 <= mass <= 1.0:
            raise InvalidValueError(f"{name} must be probabilities, in [0, 1]; found {mass}")
    check_representable(name, masses)
    if not abs(sum(masses) - 1.0) <= 1e-9:
        raise InvalidValueError(f"{name} must add up to 1, found {sum(masses)}")
    return masses


direction = checks.one_of(*UNITS)  # of neighbours

# Neighbours at a larger distance: 1 - (1 - f)^(∘k) of a finite pair [DRS22, Theorem 2.14].
#
# With f the trade-off function of (Q, P), g = 1 - f maps Q(L > ε) to P(L > ε). It increases, is
# concave, and is linear between the outcomes; so is g∘g. Each direction starts from its largest
# loss, so that all numbers are sums of positive ones. A mass within 10^-40 of the sum so far counts
# at the next larger loss.

MOST_CELLS = 2**15  # pieces of the function that is computed
_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SMALL = Decimal("1e-40")  # relative to the sum so far; less is within rounding
_LARGEST = 1e6  # largest loss that is accepted

Curve = tuple[list[Decimal], list[Decimal]]  # a concave function: where it bends, and its values


def iterate(pair: Finite, count: int, stands_for: str = "") -> Finite:
    """The pair for neighbours at distance ``count``."""
    cells = len(pair.losses) + 2
    if not count * cells <= MOST_CELLS:
        raise InvalidValueError(
            f"size ({count}) is too large for a function with {cells - 2} losses; "
            f"the product of the two must be at most {MOST_CELLS}"
        )
    if not pair.losses.size:
        return pair
    if not pair.largest_absolute <= _LARGEST:
        raise InvalidValueError(
            f"size ({count}) is only accepted for losses of at most {_LARGEST:g}; "
            f"the function has a loss of {pair.largest_absolute:g}"
        )
    law = _law(pair, count)
    swapped = law if pair.symmetric else _law(pair.swapped(), count)

    def made(one: Law, other: Law, back: Finite | None) -> Finite:
        size = max(1, one.losses.size)
        error = size * expm1(2 * count * (pair.mass_error + pair.loss_error + ELEMENTARY))
        return Finite(
            one.losses,
            one.masses,
            _more(one.infinite, error) if one.losses.size else 1.0,
            _more(other.infinite, error) if other.losses.size else 1.0,
            error,
            error + 4 * UNIT * float(np.max(np.abs(one.losses), initial=0.0)),
            pair.symmetric,
            slack=error + one.lost + other.lost + count * pair.slack,
            back=back,
            stands_for=stands_for,
        )

    return made(law, swapped, None if pair.symmetric else made(swapped, law, None))


def _more(probability: float, error: float) -> float:
    return min(1.0, nextafter(probability * (1 + error), inf)) if probability else 0.0


class Law(NamedTuple):
    """The distribution of the loss in one direction; ``lost`` is part of ``infinite``."""

    losses: Array
    masses: Array
    infinite: float
    lost: float


def _law(pair: Finite, count: int) -> Law:
    """The distribution of the loss under P."""
    with localcontext(_CONTEXT):
        power, squared = None, _curve(pair)
        for bit in range(count.bit_length()):
            if count >> bit & 1:
                power = squared if power is None else _after(power, squared)
            if count >> bit > 1:
                squared = _after(squared, squared)
        assert power is not None
        x, y = power
        losses, masses, jumps = [], [], y[0]
        for left, right, low, high in zip(x, x[1:], y, y[1:], strict=False):
            width, height = right - left, high - low
            if not height > _SMALL * high:
                continue
            if width > _SMALL * right:
                losses.append(float((height / width).ln()))
                masses.append(float(height))
            else:
                jumps += height
        kept, weights, lost = without_tiny_masses(np.array(losses), np.array(masses))
        infinite = min(1.0, double_up(Fraction(jumps) + Fraction(lost)))
        return Law(kept, weights, infinite, 2 * lost + float(jumps - y[0]))


def _curve(pair: Finite) -> Curve:
    """P(L > ε) over Q(L > ε), from 0 to 1; the errors of the pair allow for scaling."""
    x, y = [Decimal(0)], [Decimal(pair.infinite)]
    for loss, mass in zip(pair.losses[::-1].tolist(), pair.masses[::-1].tolist(), strict=True):
        p = Decimal(mass)
        if p > _SMALL * y[-1]:
            x.append(x[-1] + p / Decimal(loss).exp())
            y.append(y[-1] + p)
    y = [one / y[-1] for one in y]
    if x[-1] > 1:
        x = [one / x[-1] for one in x]
    elif x[-1] < 1:
        x.append(Decimal(1))
        y.append(Decimal(1))
    return x, y


def _after(one: Curve, other: Curve) -> Curve:
    """``one`` of ``other``: it bends where ``other`` does, and where ``other`` is a bend of one."""
    low, high = other[1][0], other[1][-1]
    back = [_interpolate(at, other[1], other[0]) for at in one[0] if low < at < high]
    grid = sorted({*other[0], *back})
    return grid, [_interpolate(_interpolate(at, *other), *one) for at in grid]


def _interpolate(value: Decimal, grid: list[Decimal], image: list[Decimal]) -> Decimal:
    at = bisect_right(grid, value)
    if at == 0:
        return image[0]
    if at == len(grid):
        return image[-1]
    part = (value - grid[at - 1]) / (grid[at] - grid[at - 1])
    return image[at - 1] + part * (image[at] - image[at - 1])


# Finite pairs from other descriptions, and pairs that are made of finite pairs.

_OUTCOMES = 512  # of a finite pair that stands for another product
_WIDTH = 1e-6  # of the bounds on δ that it is made of
_REACH = 600.0  # its largest loss
_LEAST_SHARE = Fraction(1e-290)  # of a mixture; a smaller share counts as an infinite loss


def pair(first: Sequence[float], second: Sequence[float]) -> Finite:
    """The pair of two distributions, in proportion to the numbers given."""
    p, q = np.array(first, dtype=float), np.array(second, dtype=float)
    p, q = p / np.sum(p), q / np.sum(q)
    both = (p > 0.0) & (q > 0.0)
    if not np.any(both):
        return worst()
    log_p, log_q, masses = np.log(p[both]), np.log(q[both]), p[both]
    losses = log_p - log_q
    order = np.argsort(losses, kind="stable")
    error = len(p) * UNIT + 2 * UNIT
    largest = float(np.max(np.abs(log_p) + np.abs(log_q)))
    return Finite(
        losses[order],
        masses[order],
        min(1.0, float(np.sum(p[q == 0.0])) * (1 + 2 * error)),
        min(1.0, float(np.sum(q[p == 0.0])) * (1 + 2 * error)),
        error,
        2 * error + 2 * ELEMENTARY * largest,
        slack=8 * error,
    )


def k_ary_response(prob: float, categories: int) -> Finite:
    """One of the categories, the true one with probability ``prob``."""
    lie = (1.0 - prob) / (categories - 1)
    loss = max(0.0, log(prob) - log(lie))
    error = 4 * ELEMENTARY * (1 + abs(log(lie)))
    losses, masses = [-loss, loss], [lie, prob]
    if categories > 2:
        losses, masses = [-loss, 0.0, loss], [lie, lie * (categories - 2), prob]
    return Finite(
        np.array(losses), np.array(masses), 0.0, 0.0, 8 * UNIT + ELEMENTARY, error, symmetric=True
    )


def from_losses(losses: Sequence[float], masses: Sequence[float], infinite: float) -> Finite:
    """From a privacy-loss distribution, whose Q-masses must add up to at most 1."""
    order = np.argsort(losses, kind="stable")
    values, weights = np.array(losses)[order], np.array(masses)[order]
    if not np.all(weights >= 0.0):
        raise InvalidValueError("probabilities must be at least 0")
    check_representable("probabilities", [*masses, infinite])
    whole = float(np.sum(weights)) + infinite
    if not abs(whole - 1.0) <= 1e-9:
        raise InvalidValueError(f"probabilities and infinite must add up to 1, found {whole}")
    weights, failing = weights / whole, min(1.0, infinite / whole * (1 + 4 * UNIT))
    if not np.any(weights):
        return worst()
    with np.errstate(over="ignore", invalid="ignore"):
        other = float(np.sum(np.where(weights > 0.0, weights * np.exp(-values), 0.0)))
    if not other <= 1.0 + 1e-9:
        raise InvalidValueError(
            f"losses: the mean of e^(-loss) must be at most 1, found {other}: "
            "no pair of distributions has this loss distribution"
        )
    keep = weights > 0.0
    error = (len(values) + 4) * UNIT
    slack = 2 * error + 2 * ELEMENTARY
    never = min(1.0, max(0.0, 1.0 - other) + slack)
    return Finite(values[keep], weights[keep], failing, never, error, slack=2 * slack)


def check_falling(name: str, epsilons: Sequence[float], deltas: Sequence[float]) -> None:
    """Raise unless δ does not increase in ε."""
    known = sorted(zip(epsilons, deltas, strict=True))
    for (one, high), (two, low) in pairwise(known):
        if one < two and not low <= high:
            raise InvalidValueError(
                f"{name} must not increase: {high} at epsilon {one}, {low} at epsilon {two}"
            )


def name(product: Product) -> str:
    """The product as it is printed."""
    parts = [f"gaussian(mu={product.mu!r})"] if product.squares else []
    for factor, count in product.factors.items():
        parts.append(_factor_name(factor) + (f"^{count}" if count > 1 else ""))
    return " ⊗ ".join(parts) or "identity"


def _factor_name(factor: Factor) -> str:
    if isinstance(factor, Laplace):
        steps = "" if factor.steps == inf else f", steps={factor.steps:g}"
        return f"laplace(epsilon={factor.epsilon!r}{steps})"
    if isinstance(factor, Gaussian):
        return f"gaussian(mu={factor.mu!r})"
    if isinstance(factor, Subsampled):
        size = f"{'mu' if factor.noise == 'gaussian' else 'epsilon'}={factor.size!r}"
        return f"subsampled_{factor.noise}({size}, rate={factor.rate!r}, unit={factor.unit!r})"
    losses = factor.losses
    if not len(losses):
        return "worst"
    if factor.response is not None and len(losses) == 2:
        delta = f", delta={factor.infinite!r}" if factor.infinite else ""
        return f"{'approximate' if delta else 'pure'}(epsilon={float(losses[1])!r}{delta})"
    return f"finite with {len(losses)} losses up to {float(losses[-1]):g}"


# --- made of finite pairs ------------------------------------------------------------------


def as_finite(product: Product) -> Finite:
    """A finite pair that loses at least as much as the product; the product itself if it is one."""
    if product.is_identity:
        return Finite(np.zeros(1), np.ones(1))
    if not product.squares and isinstance(product.single, Finite):
        return product.single
    made = chords(product, _grid(product), _WIDTH, described("finite", product))
    return made.one_way(unit_of(product))


def unit_of(*products: Product) -> str:
    """The direction of neighbours that products are bounds of; empty if they bound both.

    A bound of "removed" and one of "added" together bound nothing: neighbours have one direction.
    """
    units = sorted(frozenset().union(*(one.units for one in products)))
    if len(units) > 1:
        raise InvalidValueError(
            "functions that bound neighbours with a unit removed, and with a unit added, bound "
            "nothing together; compose each direction by itself, as oc.fdp.Session does, or pass "
            "f.both_directions() for one of them"
        )
    return units[0] if units else ""


def described(kind: str, *what: object) -> str:
    """A text that only equal things have in common."""
    return sha256(repr((kind, *(_plain(one) for one in what))).encode()).hexdigest()


def _plain(one: object) -> object:
    if isinstance(one, Product):
        return one.squares, sorted((repr(_plain(each)), n) for each, n in one.factors.items())
    return one.key if isinstance(one, Finite) else one


def _grid(product: Product) -> Array:
    """From 0 to the largest loss, or to where δ is about 1e-15."""
    atoms = product.all_atoms
    if atoms is not None and len(atoms.losses) <= _OUTCOMES:
        inner = np.abs(atoms.losses)
        every = np.concatenate([[0.0], inner - atoms.loss_error, inner + atoms.loss_error])
        return np.unique(every.clip(0.0, _REACH))
    top = product.largest_loss
    if not top < _REACH:
        top = min(_REACH, product.epsilon(1e-15, 1e-2).upper)
    return np.linspace(0.0, top, _OUTCOMES // 2)


def mixture(shares: Sequence[Fraction], pairs: Sequence[Finite]) -> Finite:
    """One of the pairs at random, in each direction: a share may be negligible in one only."""
    weighted = list(zip(shares, pairs, strict=True))
    stands_for = ""
    if any(one.stands_for for one in pairs):
        stands_for = described("mixture", *((str(share), one.key) for share, one in weighted))
    if not any(one.losses.size for one in pairs):
        return worst(stands_for)
    forward = replace(_mixed(weighted), stands_for=stands_for)
    if all(one.symmetric for one in pairs):
        return replace(forward, never=forward.infinite, symmetric=True)
    backward = _mixed([(share, one.swapped()) for share, one in weighted])
    back = replace(backward, never=forward.infinite, stands_for=stands_for)
    return replace(forward, never=back.infinite, back=back)


def _mixed(weighted: Sequence[tuple[Fraction, Finite]]) -> Finite:
    """The distribution of the loss under P; shares too small for doubles count as infinite loss."""
    kept = [(float(share), one) for share, one in weighted if share >= _LEAST_SHARE]
    missing = sum((share for share, _ in weighted if share < _LEAST_SHARE), Fraction(0))
    losses, masses, lost = without_tiny_masses(
        np.concatenate([one.losses for _, one in kept]),
        np.concatenate([share * one.masses for share, one in kept]),
    )
    least = sum((Fraction(share) * Fraction(one.infinite) for share, one in kept), Fraction(0))
    least *= 1 + Fraction(2 * UNIT)
    error = 6 * UNIT
    return Finite(
        losses,
        masses,
        min(1.0, double_up(least + missing + Fraction(lost))),
        0.0,
        max(one.mass_error for _, one in kept) + error,
        max(one.loss_error for _, one in kept),
        slack=max(one.slack for _, one in weighted) + 2 * (lost + float(missing)) + 8 * error,
    )


def joined(kind: str, product: Product, which: Callable[[float, float], float]) -> Finite:
    """The symmetric pair of chords between points of the smaller or the larger of both profiles.

    :param which: ``min`` for max(f, f⁻¹), or ``max`` for the convex hull of min(f, f⁻¹)
    """
    grid = _grid(product)
    forward, backward = (points(one, grid, _WIDTH) for one in (product, product.swapped()))
    both = [(epsilon, which(a, b)) for (epsilon, a), (_, b) in zip(forward, backward, strict=True)]
    return from_vertices(both, both, described(kind, product))


def group(product: Product, size: int) -> Finite:
    """Neighbours at distance ``size``."""
    pair = as_finite(product)
    made = iterate(pair, size, described("group", size, product) if pair.stands_for else "")
    return made.one_way(pair.unit)
