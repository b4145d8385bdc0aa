"""What each strategy promises for a batch of linear queries, and the choice by these promises.

Noisy answers are y = Q x + σ E w for the batch Q and the histogram x, with w noise of scale 1 and E
the matrix that the answers follow by. Let z = Q h be the projection of y onto the answers of the
histograms that are allowed, x among them. It is returned only if it is proven to be at most as far
from Q x as y is.

* No answer of y is off by more than t with probability 1 - β. z is returned only if it is within u
  of y, else y is. So no answer that is returned is off by more than t + u. Of z alone, no
  such bound holds: it is near Q x on average, not in each query.
* If the size n is known, |z - Q x|² <= σ <E w, z - Q x> = σ Σ (h_j - x_j) <w, Eᵀ (Q_j - c)> for
  any c, as h and x have the same sum. This is at most 2 n σ max_j |<w, Eᵀ (Q_j - c)>|, after
  [NTZ13]. Here c is the mean of the columns. Where this is less than the noise, z is always
  returned if it is proven to be no worse.

A gap G of the projection, as in ``nearest.py``, adds at most sqrt(G) noise scales to its norm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from ...errors import InvalidTypeError, InvalidValueError
from ...queryables.saved import canonical
from ...types import Argument
from .histogram import FRACTION, Array
from .strategy import PLAN, Matrices, Strategy
from .tails import Tails

CRITERIA = ("root_mean_square", "largest")
ROUNDING = 1 / FRACTION  # of answers up to 2^32 to doubles
VERSION = 1  # of saved plans
CLOSE = 1.005  # a simpler strategy is chosen up to so many times the least promise
RARE = 1e-4  # how often a projection is rejected only because it is far from the noisy answers


@dataclass(frozen=True)
class Promise:
    """The error that a mechanism promises for a batch.

    :ivar method: the strategy: ``"histogram"``, ``"queries"``, ``"tree"``, ``"p-identity"`` or
        ``"optimum"``
    :ivar root_mean_square: bound on the root of the expected mean of the squared errors, in
        records; exact for noise that is not projected
    :ivar largest: bound on the largest error, in records, with probability at least 1 - β
    :ivar within: how far projected answers may be from the noisy ones; infinite if at all
    """

    method: str
    root_mean_square: float
    largest: float
    within: float = inf


@dataclass(frozen=True)
class LinearPlan:
    """Which strategy was chosen for a batch, and what each one promises.

    :ivar method: the strategy that answers
    :ivar minimize: the error that was compared: ``"root_mean_square"`` or ``"largest"``
    :ivar beta: probability that a promise of the largest error fails
    :ivar promises: one for each strategy
    :ivar errors: standard deviation of each answer before projection, in records
    :ivar scale: of the noise that is added to the combinations of counts
    :ivar key: a digest of the queries, and of how neighbours differ
    :ivar matrices: what was found: the matrix of the combinations, or one for each factor
    """

    method: str
    minimize: str
    beta: float
    promises: tuple[Promise, ...]
    errors: Array
    scale: float
    key: str
    matrices: Matrices = ()

    def save(self) -> str:
        """Return the plan as text, which :func:`.make_linear_queries` takes as ``plan``."""
        steps = [
            None if one is None else np.rint(one * FRACTION).astype(int).tolist()
            for one in self.matrices
        ]
        record = {"method": self.method, "scale": self.scale.hex(), "matrices": steps}
        return canonical({"version": VERSION, "queries": self.key, **record})

    @property
    def promise(self) -> Promise:
        """What the chosen strategy promises."""
        return next(one for one in self.promises if one.method == self.method)

    def __repr__(self) -> str:
        lines = [("", "root mean square", f"largest ({1 - self.beta:g})")]
        for one in self.promises:
            name = f"{one.method} (chosen)" if one.method == self.method else one.method
            lines.append((name, f"{one.root_mean_square:.4g}", f"{one.largest:.4g}"))
        wide = max(len(name) for name, _, _ in lines)
        least, most = self.errors.min(), self.errors.max()
        return "\n".join(
            [
                *(f"{a:<{wide}}{b:>18}{c:>18}".rstrip() for a, b, c in lines),
                f"errors of the queries: {least:.4g} to {most:.4g}",
            ]
        )


@dataclass(frozen=True, eq=False, slots=True)
class SavedPlan:
    """What is read from a saved plan. Privacy does not depend on whether it is true."""

    method: str
    scale: str
    matrices: Matrices


def read_plan(plan: Argument, key: str, methods: tuple[str, ...]) -> SavedPlan:
    """Return a saved plan, or raise unless it is for queries with this digest."""
    if not isinstance(plan, str):
        raise InvalidTypeError(f"{PLAN}, found {type(plan).__name__}")
    try:
        record = json.loads(plan)
        version, queries = record["version"], record["queries"]
        method, scale = record["method"], record["scale"]
        matrices = tuple(None if one is None else np.array(one) for one in record["matrices"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InvalidValueError(PLAN) from None
    if version != VERSION:
        raise InvalidValueError(f"plan is of version {version}, not {VERSION}; plan again")
    if queries != key:
        raise InvalidValueError(
            "plan is for other queries, or for other neighbours; pass the arguments that it was "
            "made with, or plan again"
        )
    whole = all(one is None or one.dtype.kind == "i" for one in matrices)
    if not whole or method not in methods:
        raise InvalidValueError(PLAN)
    return SavedPlan(
        method, scale, tuple(None if one is None else one / FRACTION for one in matrices)
    )


def promise(
    strategy: Strategy,
    tails: Tails,
    scale: float,
    beta: float,
    size: int | None = None,
    *,
    projects: bool = False,
) -> Promise:
    """Return what a strategy promises with noise of this scale.

    :param size: the number of records, if it is known
    :param projects: whether answers are projected
    """
    shape, spread = strategy.shape, strategy.spread
    mean = scale * sqrt(tails.variance * shape.trace / shape.rows)
    largest, within = scale * tails.largest(shape, beta), inf
    if projects:
        within = scale * tails.largest(shape, RARE)
        largest += within
        if size is not None and spread is not None:
            projected = sqrt(2 * size * scale * tails.expected(spread) / shape.rows)
            if projected < mean:
                mean, within = projected, inf
                largest = sqrt(2 * size * scale * tails.largest(spread, beta))
    return Promise(strategy.name, mean + ROUNDING, largest + ROUNDING, within)


def errors_of(strategy: Strategy, tails: Tails, scale: float) -> Array:
    """Return the standard deviation of each answer."""
    norms = np.repeat(strategy.shape.norms, strategy.shape.repeated)
    return scale * sqrt(tails.variance) * norms


def choose(promises: tuple[Promise, ...], minimize: str) -> str:
    """Return the first strategy, from simple to complex, whose promise is close to the least."""
    least = min(getattr(one, minimize) for one in promises)
    return next(one.method for one in promises if getattr(one, minimize) <= CLOSE * least)
