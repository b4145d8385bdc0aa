"""Finite pairs from other descriptions, and what is made of finite pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log

import numpy as np

from ..errors import InvalidValueError
from .bounds import ELEMENTARY, UNIT, Array
from .coarse import chords, points
from .finite import Finite
from .gaussian import Gaussian
from .laplace import Laplace
from .product import Product
from .vertices import from_vertices, iterate

_OUTCOMES = 512  # of a finite pair that stands for something else
_WIDTH = 1e-6  # of the bounds that it is made of


def pair(first: Sequence[float], second: Sequence[float]) -> Finite:
    """The pair of two distributions, in proportion to the numbers given."""
    p, q = np.array(first, dtype=float), np.array(second, dtype=float)
    p, q = p / np.sum(p), q / np.sum(q)
    both = (p > 0.0) & (q > 0.0)
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
    whole = float(np.sum(weights)) + infinite
    if not abs(whole - 1.0) <= 1e-9:
        raise InvalidValueError(f"probabilities and infinite must add up to 1, found {whole}")
    weights, failing = weights / whole, min(1.0, infinite / whole * (1 + 4 * UNIT))
    other = float(np.sum(weights * np.exp(-values)))
    if not other <= 1.0 + 1e-9:
        raise InvalidValueError(
            f"losses: the mean of e^(-loss) is {other}, above 1: no pair has this loss distribution"
        )
    keep = weights > 0.0
    error = (len(values) + 4) * UNIT
    never = max(0.0, 1.0 - other) + 2 * error
    return Finite(values[keep], weights[keep], failing, never, error, slack=2 * error)


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
    slopes = np.diff(y) / np.diff(x)
    if not np.all(np.diff(slopes) >= -1e-12 * (1 + np.abs(slopes[1:]))):
        raise InvalidValueError("betas must be convex: tests can be mixed")
    # Q-mass moves along α, P-mass along 1 - β
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
    return chords(product, _grid(product), _WIDTH)


def _grid(product: Product) -> Array:
    """From 0 to the largest loss, or to where δ is about 1e-15."""
    atoms = product.atoms if not product.squares else None
    if atoms is not None and len(atoms.losses) <= _OUTCOMES:
        inner = np.abs(atoms.losses)
        return np.unique(
            np.concatenate([[0.0], inner - atoms.loss_error, inner + atoms.loss_error]).clip(0.0)
        )
    top = product.most
    if not top < 600.0:
        top = min(600.0, product.epsilon(1e-15, 1e-2).upper)
    return np.linspace(0.0, top, _OUTCOMES // 2)


def mixture(shares: Sequence[float], pairs: Sequence[Finite]) -> Finite:
    """One of the pairs at random."""
    losses = np.concatenate([one.losses for one in pairs])
    masses = np.concatenate([share * one.masses for share, one in zip(shares, pairs, strict=True)])
    order = np.argsort(losses, kind="stable")
    order = order[masses[order] > 0.0]
    weighted = list(zip(shares, pairs, strict=True))
    errors = (4 + len(pairs)) * UNIT
    return Finite(
        losses[order],
        masses[order],
        min(1.0, sum(share * one.infinite for share, one in weighted) * (1 + 2 * errors)),
        min(1.0, sum(share * one.never for share, one in weighted) * (1 + 2 * errors)),
        max(one.mass_error for one in pairs) + errors,
        max(one.loss_error for one in pairs),
        slack=max(one.slack for one in pairs) + 8 * errors,
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
    return from_vertices(both, both)


def group(product: Product, size: int) -> Finite:
    """Neighbours at distance ``size``."""
    return iterate(as_finite(product), size)
