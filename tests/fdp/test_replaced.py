"""Poisson samples with a replaced record, against laws of small datasets with 60 digits."""

from itertools import pairwise
from itertools import product as all_of
from math import inf

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp import replaced as module
from opendp_concurrent.fdp.replaced import replaced

from ..some import slow

NOISES = ("gaussian", "laplace")


# --- exact δ of two mixtures of noise on the line ----------------------------------------------


def density(noise, x):
    return mp.npdf(x) if noise == "gaussian" else mp.exp(-abs(x)) / 2


def distribution(noise, x):
    if noise == "gaussian":
        return mp.ncdf(x)
    return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2


def mixed(how, noise, law, x):
    return mp.fsum(weight * how(noise, x - at) for at, weight in law.items())


def delta_of(noise, first, second, epsilon):
    """The largest P(S) - e^ε Q(S): masses between the zeros of p - e^ε q, found on a fine grid."""
    t = mp.exp(mpf(epsilon))

    def excess(x):
        return mixed(density, noise, first, x) - t * mixed(density, noise, second, x)

    ends = sorted([*first, *second])
    grid = [mpf(x) for x in np.linspace(float(ends[0]) - 14, float(ends[-1]) + 14, 101)]
    grid = sorted({*grid, *(mpf(end) for end in ends)})
    values = [excess(x) for x in grid]
    cuts = [mpf(-inf)]
    for left, right, a, b in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True):
        if (a > 0) != (b > 0):
            low, high = left, right
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (middle, high) if (excess(middle) > 0) == (a > 0) else (low, middle)
            cuts.append(low)
    cuts.append(mpf(inf))
    total = mpf(0)
    for left, right in pairwise(cuts):
        p, q = (
            mixed(distribution, noise, law, right) - mixed(distribution, noise, law, left)
            if right < inf
            else 1 - (mixed(distribution, noise, law, left) if left > -inf else 0)
            for law in (first, second)
        )
        total += max(p - t * q, mpf(0))
    return total


def law_of(samples):
    """Sums of samples, with their probabilities."""
    found = {}
    for values, weight in samples:
        at = mp.fsum(values)
        found[at] = found.get(at, mpf(0)) + weight
    return found


def poisson(records, rate):
    samples = []
    for kept in all_of((False, True), repeat=len(records)):
        weight = mp.fprod(mpf(rate) if one else 1 - mpf(rate) for one in kept)
        samples.append(([r for r, one in zip(records, kept, strict=True) if one], weight))
    return law_of(samples)


def records_of(draw, size, number, extreme):
    """Numbers in [-size, size]; at its ends where the loss is largest."""
    if extreme:
        return [mpf(size), mpf(-size), *[mpf(draw.choice([-size, size]))] * (number - 1)]
    return [mpf(float(one)) for one in draw.uniform(-size, size, number + 1)]


def check_samples(seed):
    """The exact δ of both orders of neighbours is at most the bound."""
    draw = np.random.default_rng(seed)
    noise = NOISES[seed % 2]
    size = float(np.exp(draw.uniform(-1.5, 0.6)))
    number = int(draw.integers(3, 5))
    first, other, *rest = records_of(draw, size, number, seed % 3 == 0)
    rate = float(draw.uniform(0.01, 0.6))
    bound = replaced(noise, size, rate)
    with mp.workdps(60):
        one, two = (poisson([record, *rest], rate) for record in (first, other))
        for epsilon in (0.0, float(draw.uniform(0.0, 2 * size)), float(draw.uniform(0, 1))):
            exact = max(delta_of(noise, one, two, epsilon), delta_of(noise, two, one, epsilon))
            assert exact <= mpf(bound.delta(epsilon)), (seed, epsilon)


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 200))])
def test_samples_of_small_datasets_are_within_their_bound(seed):
    check_samples(seed)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("size", "rate"), [(0.5, 0.25), (2.0, 0.01), (1e-3, 0.5)])
def test_a_replaced_record_of_a_poisson_sample_attains_the_bound(noise, size, rate):
    found = replaced(noise, size, rate)
    losses = found.product.single.losses
    with mp.workdps(60):
        laws = [{mpf(0): 1 - mpf(rate), mpf(side * size): mpf(rate)} for side in (1, -1)]
        for index in np.linspace(len(losses) // 2, len(losses) - 2, 6).astype(int):
            epsilon = float(losses[index])
            exact = delta_of(noise, *laws, epsilon)
            assert exact <= mpf(found.delta(epsilon))  # a point through which the bound goes
            assert mpf(found.delta(epsilon)) <= exact * (1 + mpf("1e-6")) + mpf("1e-20")


def test_a_record_between_others_is_no_worse_in_several_dimensions():
    """The half lines of one dimension are the worst sets, wherever the two records are."""
    draw, size, rate = np.random.default_rng(5), 1.0, 0.2
    found = replaced("gaussian", size, rate)
    points = draw.normal(0.0, 1.0, (40_000, 2))
    for _ in range(20):
        b, c = (size * one / np.linalg.norm(one) for one in draw.normal(0.0, 1.0, (2, 2)))
        which = draw.random(len(points)) < rate
        at = points + np.where(which[:, None], b, 0.0)
        p, q = (1 - rate + rate * np.exp(at @ one - one @ one / 2) for one in (b, c))
        for epsilon in (0.0, 0.1, 0.3):
            mean = np.maximum(1 - np.exp(epsilon) * q / p, 0.0)
            assert np.mean(mean) - 5 * np.std(mean) / 200 <= found.delta(epsilon)


def test_bounds_fall_and_nothing_is_lost_at_the_ends():
    tiny = replaced("gaussian", 1.0, 1e-9)
    assert 1e-9 * 0.68 < tiny.delta(0.0) < 1e-9 * 0.683
    bounded = replaced("laplace", 1.0, 0.1)
    most = np.log((0.9 + 0.1 * np.e) / (0.9 + 0.1 / np.e))
    assert most <= bounded.epsilon(0.0) <= most * (1 + 1e-12)


def test_chords_of_many_uses_are_near_finer_ones(monkeypatch):
    coarse = replaced("gaussian", 1.0, 1e-3).power(3000).epsilon(1e-6)
    replaced.cache_clear()
    monkeypatch.setattr(module, "_NEAR", 1200)
    fine = replaced("gaussian", 1.0, 1e-3).power(3000).epsilon_bounds(1e-6)
    replaced.cache_clear()
    assert fine.lower <= coarse <= 1.003 * fine.upper
