"""Finite pairs from other descriptions, and what is made of finite pairs."""

from __future__ import annotations

from collections.abc import Sequence
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
from .finite import Finite, settled, worst
from .gaussian import Gaussian
from .group import iterate
from .laplace import Laplace
from .product import Product
from .vertices import from_vertices

_OUTCOMES = 512  # of a finite pair that stands for something else
_WIDTH = 1e-6  # of the bounds that it is made of
_REACH = 600.0  # largest loss of it
_LEAST_SHARE = Fraction(1e-290)  # of a mixture, that doubles keep beside a mass


def pair(first: Sequence[float], second: Sequence[float]) -> Finite:
    """The pair of two distributions, in proportion to the numbers given."""
    p, q = np.array(first, dtype=float), np.array(second, dtype=float)
    p, q = p / np.sum(p), q / np.sum(q)
    both = (p > 0.0) & (q > 0.0)
    if not np.any(both):
        return worst()
    losses = np.log(p[both]) - np.log(q[both])
    order = np.argsort(losses, kind="stable")
    errors = len(p) * UNIT + 2 * UNIT
    largest = float(np.max(np.abs(np.log(p[both])) + np.abs(np.log(q[both])), initial=0.0))
    return Finite(
        losses[order],
        p[both][order],
        min(1.0, float(np.sum(p[q == 0.0])) * (1 + 2 * errors)),
        min(1.0, float(np.sum(q[p == 0.0])) * (1 + 2 * errors)),
        errors,
        2 * errors + 2 * ELEMENTARY * largest,
        slack=8 * errors,
    )


def k_ary_response(prob: float, categories: int) -> Finite:
    """One of the categories, the truth with probability ``prob``."""
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
    arguments.check_kept("probabilities", [*masses, infinite])
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
            f"losses: the mean of e^(-loss) is {other}, above 1: no pair has this loss distribution"
        )
    keep = weights > 0.0
    error = (len(values) + 4) * UNIT
    slack = 2 * error + 2 * ELEMENTARY
    never = min(1.0, max(0.0, 1.0 - other) + slack)
    return Finite(values[keep], weights[keep], failing, never, error, slack=2 * slack)


def check_falling(name: str, epsilons: Sequence[float], deltas: Sequence[float]) -> None:
    """Raise unless δ falls in ε."""
    known = sorted(zip(epsilons, deltas, strict=True))
    for (one, high), (two, low) in pairwise(known):
        if one < two and not low <= high:
            raise InvalidValueError(
                f"{name} must not increase: {high} at epsilon {one}, {low} at epsilon {two}"
            )


def from_curve(alphas: Sequence[float], betas: Sequence[float]) -> Finite:
    """The pair (Q, P) whose T(P, Q) goes through points; raise unless there is one."""
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
        raise InvalidValueError("betas must be at most 1 - alpha; guessing reaches that")
    with np.errstate(over="ignore"):  # a step of α that is too small is refused below
        slopes = np.diff(y) / np.diff(x)
    if not np.all(np.diff(slopes) >= -1e-12 * (1 + np.abs(slopes[1:]))):
        raise InvalidValueError("betas must be convex: tests can be mixed")
    # Q-mass moves along α, P-mass along 1 - β
    arguments.check_kept("alphas and betas: differences", [*np.diff(x), *-np.diff(y)])
    return pair([*-np.diff(y), 1.0 - float(y[0])], [*np.diff(x), 0.0])


def name(product: Product) -> str:
    """As it is printed."""
    parts = [f"gaussian(mu={product.mu!r})"] if product.squares else []
    for factor, count in product.factors.items():
        parts.append(_factor_name(factor) + (f"^{count}" if count > 1 else ""))
    return " ⊗ ".join(parts) or "identity"


def _factor_name(factor: object) -> str:
    if isinstance(factor, Laplace):
        steps = "" if factor.steps == inf else f", steps={factor.steps:g}"
        return f"laplace(epsilon={factor.epsilon!r}{steps})"
    if isinstance(factor, Finite):
        losses = factor.losses
        if not len(losses):
            return "worst"
        is_response = len(losses) == 2 and losses[0] == -losses[1] and not factor.loss_error
        if is_response and factor.infinite == factor.never:
            delta = f", delta={factor.infinite!r}" if factor.infinite else ""
            return f"{'approximate' if delta else 'pure'}(epsilon={float(losses[1])!r}{delta})"
        return f"finite with {len(losses)} losses up to {float(losses[-1]):g}"
    assert isinstance(factor, Gaussian)
    return f"gaussian(mu={factor.mu!r})"


# --- made of finite pairs ------------------------------------------------------------------


def as_finite(product: Product) -> Finite:
    """A finite pair that loses at least as much; the same if it is one."""
    if not product.squares and sum(product.factors.values()) == 1:
        (factor,) = product.factors
        if isinstance(factor, Finite):
            return factor
    if not product.squares and not product.factors:
        return Finite(np.zeros(1), np.ones(1))
    return chords(product, _grid(product), _WIDTH, described("finite", product))


def described(kind: str, *what: object) -> str:
    """A text that is the same for the same things only."""
    return sha256(repr((kind, *(_plain(one) for one in what))).encode()).hexdigest()


def _plain(one: object) -> object:
    if isinstance(one, Product):
        return one.squares, sorted((repr(_plain(each)), n) for each, n in one.factors.items())
    return one.key if isinstance(one, Finite) else one


def _grid(product: Product) -> Array:
    """From 0 to the largest loss, or to where δ is about 1e-15."""
    atoms = product.atoms if not product.squares else None
    if atoms is not None and len(atoms.losses) <= _OUTCOMES:
        inner = np.abs(atoms.losses)
        every = np.concatenate([[0.0], inner - atoms.loss_error, inner + atoms.loss_error])
        return np.unique(every.clip(0.0, _REACH))
    top = product.most
    if not top < _REACH:
        top = min(_REACH, product.epsilon(1e-15, 1e-2).upper)
    return np.linspace(0.0, top, _OUTCOMES // 2)


def mixture(shares: Sequence[Fraction], pairs: Sequence[Finite]) -> Finite:
    """One of the pairs at random, each direction by itself: what is rare in one may not be so."""
    weighted = list(zip(shares, pairs, strict=True))
    bounds = [one.stands_for for one in pairs]
    stands_for = described("mixture", *weighted_keys(weighted)) if any(bounds) else ""
    if not any(one.losses.size for one in pairs):
        return worst(stands_for)
    forward = _mixed(weighted)
    if all(one.symmetric for one in pairs):
        return replace(forward, never=forward.infinite, symmetric=True, stands_for=stands_for)
    backward = _mixed([(share, one.swapped()) for share, one in weighted])
    back = replace(backward, never=forward.infinite, stands_for=stands_for)
    return replace(forward, never=back.infinite, back=back, stands_for=stands_for)


def weighted_keys(weighted: Sequence[tuple[Fraction, Finite]]) -> list[object]:
    """What a mixture is made of."""
    return [(str(share), one.key) for share, one in weighted]


def _mixed(weighted: Sequence[tuple[Fraction, Finite]]) -> Finite:
    """The law of the loss under P; what doubles do not keep counts as an infinite loss."""
    kept = [(float(share), one) for share, one in weighted if share >= _LEAST_SHARE]
    missing = sum((share for share, _ in weighted if share < _LEAST_SHARE), Fraction(0))
    losses, masses, lost = settled(
        np.concatenate([one.losses for _, one in kept]),
        np.concatenate([share * one.masses for share, one in kept]),
    )
    least = sum((Fraction(share) * Fraction(one.infinite) for share, one in kept), Fraction(0))
    least *= 1 + Fraction(2 * UNIT)
    errors = 6 * UNIT
    return Finite(
        losses,
        masses,
        min(1.0, rounded_up(least + missing + Fraction(lost))),
        0.0,
        max(one.mass_error for _, one in kept) + errors,
        max(one.loss_error for _, one in kept),
        slack=max(one.slack for _, one in weighted) + 2 * (lost + float(missing)) + 8 * errors,
    )


def symmetrised(product: Product) -> Finite:
    """The largest convex function below both profiles: that of max(f, f⁻¹)."""
    grid = _grid(product)
    other = product.swapped()
    both = [
        (epsilon, min(one, two))
        for (epsilon, one), (_, two) in zip(
            points(product, grid, _WIDTH), points(other, grid, _WIDTH), strict=True
        )
    ]
    return from_vertices(both, both, described("symmetrised", product))


def group(product: Product, size: int) -> Finite:
    """Neighbours at distance ``size``."""
    pair = as_finite(product)
    return iterate(pair, size, described("group", size, product) if pair.stands_for else "")
