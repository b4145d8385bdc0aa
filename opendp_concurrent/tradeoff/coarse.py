"""A product with few outcomes that loses at least as much as another, and is quick to ask."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .product import Product
from .vertices import from_vertices

_WIDTH = 1e-5  # of the bounds at the points


@lru_cache(maxsize=1024)
def outcomes(product: Product, most: int) -> Product:
    """The product itself if its outcomes are at most ``most``; else the chords of its profile.

    :param product: with bounded losses and no Gaussian
    """
    atoms = product.atoms
    if atoms is not None and len(atoms.losses) <= most:
        return product
    top = product.most
    even, near = np.linspace(0.0, top, most // 2), top * (1 - np.geomspace(1e-6, 1e-2, 8))
    grid = np.unique(np.concatenate([even, near]))

    def points(one: Product) -> list[tuple[float, float]]:
        upper = np.asarray(one.profile(grid, _WIDTH).upper)
        return list(zip(grid.tolist(), upper.tolist(), strict=True))

    forward, swapped = points(product), product.swapped()
    backward = forward if swapped == product else points(swapped)
    return Product(0, {from_vertices(forward, backward): 1})


def exact_above(product: Product, most: int) -> Product | None:
    """A product with an exact profile that loses at least as much; None if none is known."""
    if product.is_exact:
        return product
    rest = Product(0, product.factors)
    if not rest.most < 600.0:
        return None
    return Product(product.squares, outcomes(rest, most).factors)
