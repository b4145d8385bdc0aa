"""The exact law of a sparse vector, which knows nothing of the package.

Noise is discrete Laplace with tails in closed form, and outcomes are summed over the threshold's.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

import opendp_concurrent as oc

from ..build import SPACE


def center(scale):
    """The mean of one-sided noise, rounded."""
    q = math.exp(-1 / scale)
    return round(q / (1 - q))


@dataclass(frozen=True)
class Noise:
    """Scales in whole steps, and what is done with them."""

    threshold: float
    query: float
    hits: int = 1
    refresh: bool = False
    monotone: bool = False
    sides: str = "two two"  # of the threshold's noise, and of the queries'

    @property
    def one_sided(self):
        """Whether each of them is one-sided."""
        return [one == "one" for one in self.sides.split()]

    def map(self, measure, sensitivity=1, **more):
        return oc.m.make_sparse_vector(
            *SPACE,
            measure,
            1,
            self.threshold,
            0,
            self.hits,
            sensitivity=sensitivity,
            query_scale=self.query,
            refresh=self.refresh,
            monotone=self.monotone,
            one_sided=any(self.one_sided),
            **more,
        ).map(1)


def tail(scale, least, one_sided=False):
    """P(noise >= least), to the last digits on both sides."""
    q = math.exp(-1 / scale)
    if one_sided:
        return np.exp(-np.maximum(least, 0) / scale)
    far = np.exp(-np.maximum(least, 1 - least) / scale) / (1 + q)
    return np.where(least >= 1, far, 1 - far)


def below_tail(scale, most, one_sided=False):
    """P(noise <= most), likewise."""
    if one_sided:
        return np.where(most < 0, 0.0, -np.expm1(-(np.maximum(most, 0) + 1) / scale))
    return tail(scale, -most)


def threshold_noise(scale, one_sided=False):
    reach = int(60 * scale) + 20
    if one_sided:
        grid = np.arange(reach + 1)
        return grid, -math.expm1(-1 / scale) * np.exp(-grid / scale)
    grid = np.arange(-reach, reach + 1)
    q = math.exp(-1 / scale)
    return grid, (1 - q) / (1 + q) * np.exp(-np.abs(grid) / scale)


def leaves(noise, choose, length, value, best):
    """The best value, query by query, against all who ask adaptively.

    :param choose: from the outcomes so far, the pairs (q, q') of which one may be asked, as answers
        minus the threshold
    :param value: of an outcome, from its two probabilities and its string
    :param best: ``sum`` over outcomes where the best is looked for in what they add up to, or
        ``max`` where in one of them
    """
    one, other = noise.one_sided
    grid, prior = threshold_noise(noise.threshold, one)

    @cache
    def chances(answer):
        least = grid - answer
        return below_tail(noise.query, least - 1, other), tail(noise.query, least, other)

    def walk(string, weights, left):
        if len(string) == length or left == 0:
            return value(float(weights[0].sum()), float(weights[1].sum()), string)
        found = []
        for pair in choose(string):
            below, above = zip(
                *(
                    [weight * chance for chance in chances(answer)]
                    for weight, answer in zip(weights, pair, strict=True)
                ),
                strict=True,
            )
            if noise.refresh:
                above = [w.sum() * prior for w in above]
            found.append(
                best((walk(string + "B", below, left), walk(string + "A", above, left - 1)))
            )
        return max(found)

    return walk("", [prior, prior], noise.hits)


def long_loss(noise, below, above, count):
    """Loss of B, ``count`` times, then A until the end; in rounds if refreshed."""
    one, other = noise.one_sided
    grid, prior = threshold_noise(noise.threshold, one)
    hits, rounds = (1, noise.hits) if noise.refresh else (noise.hits, 1)
    logs = []
    for dataset in (0, 1):
        with np.errstate(divide="ignore"):  # one-sided noise cannot be below some thresholds
            under = np.log(below_tail(noise.query, grid - below[dataset] - 1, other))
        over = np.log(tail(noise.query, grid - above[dataset], other))
        logs.append(np.logaddexp.reduce(np.log(prior) + count * under + hits * over))
    return abs(rounds * (logs[0] - logs[1]))


def law(noise, answers):
    """Probabilities of the outcomes on one dataset, for queries fixed up front."""
    found = {}

    def keep(p, _, string):
        found[string] = p
        return 0.0

    leaves(noise, lambda string: [(answers[len(string)],) * 2], len(answers), keep, max)
    return found
