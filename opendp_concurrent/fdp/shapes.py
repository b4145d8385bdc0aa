"""Finite pairs from other descriptions, and pairs that are made of finite pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import inf, log

import numpy as np

from ..errors import InvalidValueError
from . import arguments
from .bounds import ELEMENTARY, UNIT, Array, rounded_up
from .coarse import chords, points
from .factor import Factor
from .finite import Finite, without_tiny_masses, worst
from .gaussian import Gaussian
from .group import iterate
from .laplace import Laplace
from .product import Product
from .subsampled import Subsampled
from .vertices import from_vertices

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
    arguments.check_representable("probabilities", [*masses, infinite])
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


def from_curve(alphas: Sequence[float], betas: Sequence[float]) -> Finite:
    """The pair (Q, P) whose T(P, Q) goes through the points; raise unless there is one."""
    x, y = np.array(alphas), np.array(betas)
    if len(x) != len(y) or len(x) < 2:
        raise InvalidValueError("betas must have as many elements as alphas, at least two")
    if not (x[0] == 0.0 and x[-1] == 1.0 and np.all(np.diff(x) > 0.0)):
        raise InvalidValueError("alphas must increase from 0 to 1")
    if not np.all((0.0 <= y) & (y <= 1.0)):
        raise InvalidValueError("betas must be in [0, 1]")
    if not np.all(np.diff(y) <= 0.0):
        raise InvalidValueError("betas must not increase: a larger type I error never hurts")
    if not np.all(y <= 1.0 - x):
        raise InvalidValueError("betas must be at most 1 - alpha, which guessing reaches")
    with np.errstate(over="ignore"):  # steps of α that are too small are refused below
        slopes = np.diff(y) / np.diff(x)
    if not np.all(np.diff(slopes) >= -1e-12 * (1 + np.abs(slopes[1:]))):
        raise InvalidValueError("betas must be convex: tests can be mixed")
    # Q-mass moves along α, P-mass along 1 - β
    arguments.check_representable("alphas and betas: differences", [*np.diff(x), *-np.diff(y)])
    return pair([*-np.diff(y), 1.0 - float(y[0])], [*np.diff(x), 0.0])


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
    is_response = len(losses) == 2 and losses[0] == -losses[1] and not factor.loss_error
    if is_response and factor.infinite == factor.never:
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
        min(1.0, rounded_up(least + missing + Fraction(lost))),
        0.0,
        max(one.mass_error for _, one in kept) + error,
        max(one.loss_error for _, one in kept),
        slack=max(one.slack for _, one in weighted) + 2 * (lost + float(missing)) + 8 * error,
    )


def symmetrised(product: Product) -> Finite:
    """The pair of the largest convex function below both profiles: that of max(f, f⁻¹)."""
    return _joined("symmetrised", product, min)


def of_both(product: Product) -> Finite:
    """The pair of chords above both profiles: that of the convex hull of min(f, f⁻¹)."""
    return _joined("of both", product, max)


def _joined(kind: str, product: Product, which: Callable[[float, float], float]) -> Finite:
    """The symmetric pair through the smaller or the larger of two profiles, at some points."""
    grid = _grid(product)
    forward, backward = (points(one, grid, _WIDTH) for one in (product, product.swapped()))
    both = [(epsilon, which(a, b)) for (epsilon, a), (_, b) in zip(forward, backward, strict=True)]
    return from_vertices(both, both, described(kind, product))


def group(product: Product, size: int) -> Finite:
    """Neighbours at distance ``size``."""
    pair = as_finite(product)
    made = iterate(pair, size, described("group", size, product) if pair.stands_for else "")
    return made.one_way(pair.unit)
