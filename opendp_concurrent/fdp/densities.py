"""The pair of two densities on the line, with losses rounded outward cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from ..arguments import owned
from ..errors import InvalidTypeError, InvalidValueError
from .bounds import ELEMENTARY, Array
from .finite import Finite, without_tiny_masses

_NODES, _CHECK = 24, 16  # of two Gauss-Legendre rules
_PANELS = 16  # pieces of each cell that are integrated one by one

Density = Callable[[Any], Any]


def from_densities(
    first: Density, second: Density, breakpoints: Sequence[float], cells: int
) -> Finite:
    """Losses ln first/second, monotone between ``breakpoints``; each cell's mass goes to its ends.

    The mass outside the breakpoints counts as an infinite loss. The pair is an upper bound only, in
    both directions. No two of them are equal, because functions are only known at some points.
    """
    stands_for = uuid4().hex
    forward = _law(first, second, breakpoints, cells)
    backward = _law(second, first, breakpoints, cells)
    back = replace(backward, never=forward.infinite, stands_for=stands_for)
    return replace(forward, never=back.infinite, stands_for=stands_for, back=back)


def _law(first: Density, second: Density, breakpoints: Sequence[float], cells: int) -> Finite:
    """The distribution of the loss under ``first``."""
    losses: list[Array] = []
    masses: list[Array] = []
    whole = slack = 0.0
    for left, right in pairwise(breakpoints):
        ends = np.linspace(left, right, cells + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(_values(first, ends)) - np.log(_values(second, ends))
        if not np.all(np.isfinite(ratio)):
            raise InvalidValueError(
                f"the densities must be positive and finite between breakpoints ({left} to {right})"
            )
        moves = np.diff(ratio)
        if not (np.all(moves >= -1e-9) or np.all(moves <= 1e-9)):
            raise InvalidValueError(
                f"breakpoints: the ratio of the densities must be monotone from {left} to {right}; "
                "add breakpoints where it turns"
            )
        p, p_error = _masses(first, ends)
        q, q_error = _masses(second, ends)
        slack += p_error + q_error
        low, high = np.minimum(ratio[:-1], ratio[1:]), np.maximum(ratio[:-1], ratio[1:])
        # P-mass at the upper end, chosen so that P- and Q-mass are kept
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (p - q * np.exp(low)) / -np.expm1(np.minimum(low - high, -1e-300))
        upper = np.clip(np.where(high > low, share, p), 0.0, p)
        losses += [high, low]
        masses += [upper, p - upper]
        whole += float(np.sum(p))
    joined, weights, lost = without_tiny_masses(np.concatenate(losses), np.concatenate(masses))
    return Finite(
        joined,
        weights,
        min(1.0, max(0.0, 1.0 - whole) + slack + lost + ELEMENTARY),
        0.0,
        8 * ELEMENTARY,
        8 * ELEMENTARY * (1 + float(np.max(np.abs(joined), initial=0.0))),
    )


def _values(density: Density, at: Array) -> Array:
    found = density(at)
    try:
        values = owned.array(found, float)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"a density must return an array of numbers, found {type(found).__name__}"
        ) from error
    if values.shape != at.shape:
        raise InvalidValueError("a density must return an array of the same shape as its argument")
    return values


def _masses(density: Density, ends: Array) -> tuple[Array, float]:
    """Integrals over the cells, and ten times the difference of two rules."""
    results = []
    for nodes in (_NODES, _CHECK):
        points, weights = np.polynomial.legendre.leggauss(nodes)
        pieces = np.linspace(ends[:-1], ends[1:], _PANELS + 1)  # panels by cells
        middle, half = (pieces[1:] + pieces[:-1]) / 2, (pieces[1:] - pieces[:-1]) / 2
        at = middle[..., None] + half[..., None] * points
        values = _values(density, at.ravel()).reshape(at.shape)
        results.append(np.sum((values @ weights) * half, axis=0))
    return results[0], 10 * float(np.sum(np.abs(results[0] - results[1])))
