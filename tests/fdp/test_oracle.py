"""Products of every family against exact laws in 60 digits, in both directions: 0 below the truth.

Each part is a bound of the package beside the law of a mechanism that it bounds: outcomes with P-
and Q-masses, or at most one noise on the line, whose δ is a closed form or an integral. The δ of
the product is a sum over all outcomes of the δ of the noise. Where the package knows both sides,
the exact δ is between both ends; elsewhere it is at most the bound.
"""

from math import inf

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.mechanisms.selection import RandomRuns, function_selection

from ..some import slow
from . import conftest as closed

T = oc.TradeoffFunction
ONE = [(mpf(1), mpf(1))]
BLUR = mpf("1e-13")  # of what finite pairs stand for: masses in proportion to doubles
BEYOND = mpf("1e-298")  # what discrete Gaussians lack below


class Part:
    """A bound, and the law of a mechanism within it.

    :ivar removed: the bound if P is the first law; ``added`` if it is the second one
    :ivar pairs: P- and Q-masses of outcomes
    :ivar noise: from a direction and ε to δ of the noise beside them; None for none
    :ivar both_sides: whether the bound is the law itself
    """

    def __init__(self, removed, pairs=None, *, added=None, noise=None, both_sides=False):
        self.removed, self.added = removed, removed if added is None else added
        self.pairs, self.noise, self.both_sides = pairs or ONE, noise, both_sides


def swapped(pairs):
    return [(q, p) for p, q in pairs]


# --- known from both sides -----------------------------------------------------------------------


def finite(draw):
    size = int(draw.integers(2, 5))
    first, second = draw.dirichlet(np.ones(size), 2)
    if draw.random() < 0.3:
        second[int(draw.integers(size))] *= draw.choice([0.0, 1e-30, 1e-6])
        second /= second.sum()
    f = T.finite(first.tolist(), second.tolist())
    pairs = closed.finite(first.tolist(), second.tolist())
    return Part(f, pairs, added=f.inverse(), both_sides=True)


def approximate(draw):
    loss, failure = float(np.exp(draw.uniform(-6, 1))), float(draw.choice([0.0, 1e-12, 1e-3]))
    f = T.approximate(loss, failure)
    return Part(f, closed.response(loss, failure), both_sides=True)


def response(draw):
    truth, number = float(draw.uniform(0.5, 0.99)), int(draw.integers(2, 6))
    f = T.randomized_response(truth, number)
    return Part(f, closed.k_ary(truth, number), both_sides=True)


def discrete_laplace(draw):
    loss, steps = float(np.exp(draw.uniform(-3, 1))), int(draw.integers(1, 5))
    return Part(T.laplace(loss, steps), closed.laplace_steps(loss, steps), both_sides=True)


def discrete_gaussian(draw):
    scale, shift = float(draw.uniform(0.4, 3.0)), int(draw.integers(1, 3))
    pairs = closed.discrete_gaussian(scale, shift)
    return Part(T.discrete_gaussian(scale, shift), pairs, both_sides=True)


def sampled(draw):
    kind = str(draw.choice(["gaussian", "laplace"]))
    size, rate = float(np.exp(draw.uniform(-2, 1))), float(10 ** draw.uniform(-6, -0.1))
    make = {"gaussian": lambda: (1 / size, T.subsampled_gaussian)}.get(
        kind, lambda: (size, T.subsampled_laplace)
    )
    given, made = make()
    f = made(given, rate, unit="removed")
    exact = f.product.single.size  # rounded up

    def noise(unit, epsilon):
        return closed.subsampled_delta(kind, exact, rate, unit, epsilon)

    return Part(f, added=f.inverse(), noise=noise, both_sides=True)


# --- known from above ----------------------------------------------------------------------------


def transferred(draw):
    """A discrete Gaussian below its Gaussian."""
    scale, shift = float(draw.uniform(0.5, 3.0)), int(draw.integers(1, 3))
    bound = T.discrete_gaussian(scale, shift).product.single.gaussian
    return Part(T.gaussian(bound), closed.discrete_gaussian(scale, shift))


def selected(draw):
    """The best of a few runs: outcomes are ordered by their score."""
    size, most = int(draw.integers(2, 5)), int(draw.integers(1, 9))
    first, second = draw.dirichlet(2 * np.ones(size), 2)
    scale, eta = float(draw.uniform(0.3, 3.0)), float(draw.choice([0.0, 0.3, 1.0]))
    f = T.finite(first.tolist(), second.tolist())
    bound = function_selection(RandomRuns(scale, eta, most), f.both_directions())
    gamma = -mp.expm1(-1 / mpf(scale))
    chances, ways = [], mpf(1)
    for k in range(1, most + 1):
        chances.append((1 - gamma) ** k * ways)
        ways *= (k + mpf(eta)) / (k + 1)
    whole = mp.fsum(chances)

    def best(masses):
        sums = [mp.fsum(masses[: i + 1]) for i in range(size)]
        at = [mp.fsum(c * s**k for k, c in enumerate(chances, 1)) / whole for s in sums]
        return [b - a for a, b in zip([mpf(0), *at], at, strict=False)]

    pairs = closed.finite(first.tolist(), second.tolist())
    ps, qs = (best([pair[side] for pair in pairs]) for side in (0, 1))
    return Part(bound, list(zip(ps, qs, strict=True)))


LISTED = (finite, approximate, response, discrete_laplace)
LONG = (discrete_gaussian, transferred)  # of many outcomes

EVERY = (*LISTED, selected, *LONG, sampled)


def parts_of(seed):
    """A few parts with counts: the first one of each family in turn."""
    draw = np.random.default_rng(seed)
    made = EVERY[seed % len(EVERY)]
    parts = [(made(draw), 1)]
    if made in LISTED:
        few = draw.choice([1, 2, 3, 40 if len(parts[0][0].pairs) == 2 else 5])
        parts = [(parts[0][0], int(few))]
        parts.append((sampled(draw), 1))
    elif made is selected:
        parts = [(parts[0][0], int(draw.integers(1, 5)))]
    for _ in range(0 if made in LONG else int(draw.integers(0, 2))):
        other = (*LISTED, selected)[int(draw.integers(5))](draw)
        parts.append((other, int(draw.integers(1, 3))))
    if made in LONG:
        parts.append((approximate(draw), 1))
    return parts, draw


def exact_delta(parts, unit):
    """The exact δ of the product, as a function of ε."""
    outcomes = ONE
    for part, count in parts:
        powers = closed.power(part.pairs, count)
        outcomes = closed.times(outcomes, powers)
    outcomes = outcomes if unit == "removed" else swapped(outcomes)
    (noise,) = [part.noise for part, _ in parts if part.noise] or [None]

    def delta(epsilon):
        e, scale = mpf(epsilon), mp.exp(mpf(epsilon))
        if noise is None:
            return mp.fsum(max(p - scale * q, mpf(0)) for p, q in outcomes)
        return mp.fsum(
            p * max(noise(unit, e - mp.log(p / q)), mpf(0)) if q else p for p, q in outcomes if p
        )

    return delta


def check(seed):
    """Both directions: no δ below the exact one, and no lower end above it."""
    with mp.workdps(60):
        parts, draw = parts_of(seed)
        both_sides = all(part.both_sides for part, _ in parts)
        for unit in ("removed", "added"):
            whole = T.identity().compose(*(getattr(p, unit).power(n) for p, n in parts))
            delta = exact_delta(parts, unit)
            failure = float(10 ** draw.uniform(-9, -2))
            low, high = whole.epsilon_bounds(failure, float(draw.choice([1e-6, 1e-2])))
            for epsilon in {0.0, high, low, float(draw.uniform(-0.5, 2.0))} - {inf}:
                value = delta(epsilon)
                bounds = whole.delta_bounds(epsilon, float(draw.choice([1e-6, 1e-2, 0.5])))
                blur = BLUR * value + BEYOND
                assert value - blur <= mpf(bounds.upper), (seed, unit, epsilon)
                if both_sides:
                    assert mpf(bounds.lower) <= value + blur, (seed, unit, epsilon)
            assert high == inf or delta(high) <= mpf(failure) * (1 + BLUR), (seed, unit)
            if both_sides and 0.0 < low < inf:
                assert delta(low) >= mpf(failure) * (1 - BLUR), (seed, unit)


SEEDS = [range(seed, seed + 1) for seed in range(len(EVERY))]
MORE = [range(seed, seed + 100) for seed in range(len(EVERY), 5000, 100)]


@pytest.mark.parametrize("seeds", [*SEEDS, *slow(MORE)], ids=str)
def test_no_product_is_below_the_truth(seeds):
    for seed in seeds:
        check(seed)
