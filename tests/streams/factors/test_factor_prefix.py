"""Counters by factorisation: exact adaptive adversaries, errors of real answers, and records."""

import itertools
import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.streams import counter as methods
from opendp_concurrent.streams.factors import (
    BufferedFactor,
    FactorPrefix,
    buffered,
    endless,
    inverse_norm,
    squared_norm,
    variances,
    windowed,
)

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
BITS, NOISE = 2, 6.0
PRESENCE = verify.events_differ(1)
FACTORS = {"with a horizon": buffered(4), "endless": endless(4)}


class Bare:
    """A prefix whose answer tells all that was released, on the grid."""

    def __init__(self, factor, release):
        self.prefix = FactorPrefix(factor, BITS, self)
        self.releases, self._release = (), release

    def release(self, total):
        self.releases += (self._release(total, NOISE),)
        return self.releases[-1]

    def update(self, item):
        self.prefix.update(item or 0)

    def __call__(self, query):
        return self.releases


def law(factor):
    noise = verify.clamped_noise(-4, 9, gaussian=True)
    return verify.Replayed(lambda release: Bare(factor, release), noise)


def moves(factor, steps):
    """How far the releases of (1, 0, 0, ...) are from those of nothing."""
    return releases_of(factor, [int(step == 0) for step in range(steps)])


def releases_of(factor, items):
    norms = [length for length_, length in factor.blocks() for _ in range(length_)]
    coder = factor.coder()
    return [
        coder.encode(item * inverse_norm(factor, BITS, norms[step]))
        for step, item in enumerate(items)
    ]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("order", [1.5, 4.0])
def test_an_adversary_gains_no_more_than_the_norm_allows(factor, order):
    """Both streams are chosen adaptively, and everything that is released is seen."""
    factor, steps = FACTORS[factor], 2
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, steps, order)
    seen = sum(one * one for one in moves(factor, steps)) / (2 * NOISE**2)
    declared = methods.factor_loss(1, factor.sensitivity(BITS, 1), NOISE, ZCDP, 1)
    assert 0.7 * order * seen < found <= order * seen + 1e-9
    assert found <= order * declared


def farthest(factor, steps):
    """The largest sum of squared moves, over all streams: floors fall differently on each."""
    largest = 0
    for items in itertools.product((0, 1), repeat=steps):
        for place in range(steps):
            streams = [[*items[:place], bit, *items[place + 1 :]] for bit in (0, 1)]
            releases = [releases_of(factor, stream) for stream in streams]
            largest = max(largest, sum((a - b) ** 2 for a, b in zip(*releases, strict=True)))
    return largest


@pytest.mark.slow
def test_an_adversary_over_three_steps():
    """She chooses the other items such that floors fall as far apart as they can."""
    factor = FACTORS["with a horizon"]
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, 3, 2.0)
    worst = farthest(factor, 3) / (2 * NOISE**2)
    zeros = sum(one * one for one in moves(factor, 3)) / (2 * NOISE**2)
    assert 2 * zeros < found <= 2 * worst + 1e-9
    assert found <= 2 * methods.factor_loss(1, factor.sensitivity(BITS, 1), NOISE, ZCDP, 1)


def test_a_norm_without_its_buffers_is_caught(monkeypatch):
    """The exact check sees a column of C of which only the first entry is counted."""
    factor = BufferedFactor(((2**57, 2**60),), 2, cut=True)  # c = 1, 1, 7/8, ...
    monkeypatch.setattr(BufferedFactor, "norm_squared", lambda factor, length: 4**64)
    inverse_norm.cache_clear()
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, 2, 2.0)
    inverse_norm.cache_clear()
    first_only = (1 << BITS) ** 2 / (2 * NOISE**2)
    assert found > 2 * 1.4 * first_only


def test_gaussian_dp_on_the_grid():
    factor = FACTORS["with a horizon"]
    moved = factor.sensitivity(BITS, 1)
    loss = methods.factor_loss(1, moved, NOISE, oc.gaussian_tradeoff(), 1)
    tight = math.sqrt(sum((one + 1) ** 2 for one in moves(factor, 2))) / NOISE
    for mu in (loss, tight):
        curve = oc.TradeoffFunction.gaussian(mu)
        for epsilon in (0.0, 0.5, 1.0):
            found = verify.continual_delta([law(factor)], (None, 1), PRESENCE, 2, epsilon)
            assert 0.0 < found <= curve.delta(epsilon) + 1e-9


def rows(factor, steps):
    """The weights of the noise in each sum, A D C^-1, by integers."""
    norms = [length for many, length in factor.blocks() for _ in range(min(many, steps))][:steps]
    coder = factor.coder()
    inverse = [coder.decode(int(step == 0) << 60) / 2.0**60 for step in range(steps)]
    found = np.zeros((steps, steps))
    for step, length in enumerate(norms):
        found[step] = found[step - 1] if step else 0.0
        scale = math.sqrt(factor.norm_squared(length) / 4**64)
        found[step, : step + 1] += scale * np.array(inverse[: step + 1][::-1])
    return found


@pytest.mark.parametrize("steps", [1, 2, 3, 31, 70, 300])
@pytest.mark.parametrize("make", [buffered, endless, lambda steps: windowed(8, steps)])
def test_errors_are_those_of_the_rows(make, steps):
    for factor, first in ((make(steps), steps), (make(2 * steps), steps)):
        squares = np.square(rows(factor, first)).sum(axis=1)
        lengths, totals, bounds = variances(factor, first)
        ends = np.cumsum(lengths).astype(int)
        assert ends[-1] == first
        for end, length, total, bound in zip(ends, lengths, totals, bounds, strict=True):
            block = squares[end - int(length) : end]
            assert total == pytest.approx(block.sum(), rel=1e-9)
            assert block.max() <= bound * (1 + 1e-9)
        assert bounds.max() <= 1.02 * squares.max()


@pytest.mark.parametrize("horizon", [30, None])
def test_the_measured_error_is_that_of_a_row(horizon):
    """2,000 categories have counters with noise of their own; seven deviations of the mean."""
    runs, scale = 2000, 20.0
    space = oc.category_stream(runs), oc.event_presence()
    handle = oc.m.make_histogram_counter(*space, ZCDP, scale, horizon=horizon)([])
    squares = np.square(rows(endless(2**50) if horizon is None else buffered(30), 30)).sum(axis=1)
    before = 0
    for step in (1, 6, 30):
        handle.update_all([None] * (step - before))
        before = step
        found = np.mean(np.array(handle(None), dtype=float) ** 2)
        assert found == pytest.approx(scale**2 * squares[step - 1], rel=7 * math.sqrt(2 / runs))


@pytest.mark.parametrize(("largest", "steps"), [(1, 2**50), (2**32, 2**29)])
def test_a_factor_without_a_horizon_ends_where_its_norm_was_taken(largest, steps):
    made = methods.plan(None, 9.0, ZCDP, shift=1, largest=largest)
    assert made.horizon == steps


def test_the_norm_of_all_time_is_the_limit():
    delta, omega = np.array([0.25]), np.array([0.125])
    assert squared_norm(delta, omega) == pytest.approx(1 + 0.125**2 / (1 - 0.75**2), rel=1e-12)
