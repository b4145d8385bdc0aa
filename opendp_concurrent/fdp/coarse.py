"""A product with few outcomes that loses at least as much as another, and is quick to evaluate."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .bounds import Array
from .finite import Finite
from .product import Product
from .vertices import from_vertices

_WIDTH = 1e-5  # of the bounds at the points


@lru_cache(maxsize=1024)
def with_few_outcomes(product: Product, most: int) -> Product:
    """The product itself if it has at most ``most`` outcomes; else the chords of its profile.

    :param product: with bounded losses and no Gaussian
    """
    if product.atoms is not None and len(product.atoms.losses) <= most:
        return product
    top = product.largest_loss
    even, near = np.linspace(0.0, top, most // 2), top * (1 - np.geomspace(1e-6, 1e-2, 8))
    return Product(0, {chords(product, np.unique(np.concatenate([even, near])), _WIDTH): 1})


def chords(product: Product, grid: Array, width: float, stands_for: str = "") -> Finite:
    """The pair whose profile goes through upper bounds on δ at some ε >= 0, in both directions."""
    forward, swapped = points(product, grid, width), product.swapped()
    backward = forward if swapped == product else points(swapped, grid, width)
    return from_vertices(forward, backward, stands_for)


def points(product: Product, grid: Array, width: float) -> list[tuple[float, float]]:
    """Pairs of ε and an upper bound on δ, to about the relative ``width``."""
    upper = np.asarray(product.profile(grid, width).upper)
    return list(zip(grid.tolist(), upper.tolist(), strict=True))


def exact_above(product: Product, most: int) -> Product | None:
    """A product with an exact profile that loses at least as much; None if none is known."""
    if product.is_exact:
        return product
    rest = Product(0, product.factors)
    if not rest.largest_loss < 600.0:
        return None
    if rest.pair_above is not None:
        return Product(product.squares, {rest.pair_above: 1})
    return Product(product.squares, with_few_outcomes(rest, most).factors)
