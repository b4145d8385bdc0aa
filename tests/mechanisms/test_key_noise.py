"""The δ of found keys against exact enumeration, and the law of what is drawn."""

from collections import Counter
from itertools import pairwise, product
from math import ceil, exp, log

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import binom, norm

from opendp_concurrent.mechanisms import keys as key_noise
from opendp_concurrent.mechanisms.keys import (
    TruncatedGeometric,
    WeightedGaussian,
    composed_geometric,
    gaussian_delta,
    one_key_delta,
    weight,
)
from opendp_concurrent.mechanisms.keys import key_noise as chosen

ODDS = 1e-11  # of a false alarm, of one of two sides


def hockey_stick(first, second, ratio):
    """The least δ of two laws at this ratio, the worse direction."""
    keys = set(first) | set(second)
    return max(
        sum(max(one.get(key, 0) - ratio * other.get(key, 0), 0) for key in keys)
        for one, other in ((first, second), (second, first))
    )


def released(units, scale, reach):
    """The law of a key's answer, exactly."""
    law = {x: mp.exp(-mpf(abs(x)) / mpf(scale)) for x in range(-reach, reach + 1)}
    total, found = sum(law.values()), Counter()
    for x, mass in law.items():
        found[units + x if units + x > reach else None] += mass / total
    return {None: mpf(1)} if units == 0 else found  # a key that nobody has is not looked at


@pytest.mark.parametrize("scale", [0.3, 1.0, 1 / log(2), 10.0])
@pytest.mark.parametrize("reach", [1, 2, 5, 12])
def test_delta_is_that_of_the_worst_pair_by_enumeration(scale, reach):
    with mp.workdps(40):
        ratio = mp.exp(1 / mpf(scale))
        laws = [released(units, scale, reach) for units in range(3 * reach + 3)]
        worst = max(hockey_stick(one, other, ratio) for one, other in pairwise(laws))
        found = mpf(one_key_delta(scale, reach))
        assert worst * (1 - mpf(10) ** -30) <= found <= worst * (1 + mpf(2) ** -52)


@pytest.mark.parametrize(
    ("loss", "users"), [((0.1, 1e-6), 110), ((1.0, 1e-6), 15), ((0.5, 1e-8), 36)]
)
def test_one_key_a_unit_needs_so_many_users(loss, users):
    noise, (epsilon, delta) = chosen(loss, 1), loss
    assert noise.users == users
    assert noise.loss[0] <= epsilon
    assert noise.loss[1] <= delta < one_key_delta(noise.scale, noise.reach - 1)
    assert users < 1 + log(1 / (2 * delta)) / epsilon + 2  # the threshold of Laplace noise, and 2
    law = released(users, noise.scale, noise.reach)
    assert law.get(None, 0) < 0.5 <= released(users - 1, noise.scale, noise.reach)[None]


def test_the_probability_of_release_is_the_largest_that_there_is():
    """The recursion of [DVGM22] at (ε, δ) of the noise."""
    with mp.workdps(40):
        laws = [released(units, 2.0, 6) for units in range(20)]
        delta, ratio, best = 1 - laws[1][None], mp.exp(mpf(1) / 2), mpf(0)
        for law in laws[1:]:
            best = min(ratio * best + delta, 1 - (1 - best - delta) / ratio, mpf(1))
            assert abs(1 - law.get(None, 0) - best) < mpf(10) ** -30


def test_what_is_released_has_the_law():
    noise, runs, units = TruncatedGeometric(1.5, 4, (1.0, 1.0)), 20_000, 5
    found = noise.release({key: {1: units} for key in range(runs)})
    drawn = Counter(found.get(key) for key in range(runs))
    law = released(units, 1.5, 4)
    assert set(drawn) <= set(law)
    for answer, mass in law.items():
        p = float(mass)
        assert binom.isf(1 - ODDS, runs, p) - 1 <= drawn[answer] <= binom.isf(ODDS, runs, p) + 1


def joint(laws):
    """The masses of all joint answers, in one order of each key's answers."""
    whole = np.ones(1)
    for law in laws:
        whole = np.outer(whole, law).ravel()
    return whole


def stick(first, second, ratio):
    return max(
        np.maximum(one - ratio * other, 0).sum()
        for one, other in ((first, second), (second, first))
    )


@pytest.mark.parametrize("keys", [2, 3])
def test_several_keys_by_composition_stay_within_the_loss(keys):
    """By enumeration: a unit is the first of some keys, and one more of others."""
    noise = composed_geometric(1.0, 1e-2, keys)
    assert noise.loss[1] <= 1e-2
    answers = [None, *range(noise.reach + 1, 3 * noise.reach + 3)]
    laws = []
    for units in range(noise.reach + 3):
        exact = released(units, noise.scale, noise.reach)
        laws.append(np.array([float(exact.get(one, 0)) for one in answers]))
    worst = 0.0
    for before in product((0, 1, noise.reach, noise.reach + 1), repeat=keys):
        with_unit = joint(laws[one + 1] for one in before)
        worst = max(worst, stick(joint(laws[one] for one in before), with_unit, exp(1)))
    assert 0.999 * noise.loss[1] < worst <= noise.loss[1] * (1 + 1e-9)


def gaussians(means, scale, threshold, reach):
    """The joint law of released sets and noisy weights, on a grid; 0 is a key that nobody has."""
    law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    law, single = law / law.sum(), []
    for mean in means:
        own = np.zeros(3 * reach)
        own[0] = 1.0
        if mean:
            shown = np.maximum(np.arange(mean - reach, mean + reach + 1) - threshold, 0)
            own = np.bincount(shown, law, 3 * reach)
        single.append(own)
    return joint(single)


PAIRS = [
    (before, added) for before in product((0, 30, 80, 100), repeat=2) for added in ((1, 1), (1, 0))
]


@pytest.mark.parametrize(
    ("unit", "scale", "threshold"), [(8, 12.0, 24), (8, 20.0, 50), (64, 60.0, 250)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_delta_of_gaussian_noise_is_above_all_pairs(
    monkeypatch, unit, scale, threshold, epsilon
):
    monkeypatch.setattr(key_noise, "UNIT", unit)
    found = gaussian_delta(epsilon, scale, threshold, 2, 1e-3)
    worst = 0.0
    for before, added in PAIRS:
        before = [one * unit // 8 for one in before]
        more = [one * weight(sum(added)) for one in added]
        after = [one + two for one, two in zip(before, more, strict=True)]
        pair = [gaussians(one, scale, threshold, ceil(7 * scale)) for one in (before, after)]
        worst = max(worst, stick(*pair, exp(epsilon)))
    assert worst <= found
    if unit == 64:  # where the grid is fine enough
        assert found <= 1.2 * worst


def test_gaussian_noise_is_added_to_weights():
    noise = WeightedGaussian(1000.0, 40 * key_noise.UNIT, 4, (1.0, 1e-6))
    counts = {"many": {1: 41}, "few": {1: 39}, "several": {4: 82}, "weights": {4: 78, 2: 1}}
    assert noise.release(counts) == {"many": None, "several": None}
    assert noise.release({}) == {}


def test_weights_are_rounded_down():
    assert all(size * weight(size) ** 2 <= key_noise.UNIT**2 for size in range(1, 1001))
    assert weight(1) == key_noise.UNIT


def test_doubles_agree_with_the_certified_gaussian():
    for mu, epsilon in ((0.2, 1.0), (1.0, 0.5), (3.0, 2.0)):
        exact = norm.cdf(-epsilon / mu + mu / 2) - exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
        assert key_noise._gaussian(mu, epsilon) == pytest.approx(exact, rel=1e-9)


def test_several_keys_need_so_many_users():
    noise = chosen((1.0, 1e-6), 10)
    assert type(noise) is WeightedGaussian
    assert (noise.users, noise.loss[0]) == (75, 1.0)
    assert 0.99e-6 < noise.loss[1] <= 1e-6
    composed, gaussian = composed_geometric(1.0, 1e-6, 3), WeightedGaussian.of(1.0, 1e-6, 3)
    assert (composed.users, gaussian.users) == (41, 40)
    assert type(chosen((1.0, 1e-6), 2)) is TruncatedGeometric
    for scale, threshold in ((0.5, 10**9), (1e6, 1)):  # a loss that no noise has
        assert gaussian_delta(1.0, scale, threshold, 2, 1e-6) == float("inf")
