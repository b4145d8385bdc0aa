"""Counters by factorisation: exact adaptive adversaries, errors of real answers, and records."""

import itertools
import json
import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.streams import counter as methods
from opendp_concurrent.streams.digits import plain, unplain
from opendp_concurrent.streams.factors import (
    MORE,
    BufferedFactor,
    FactorPrefix,
    FactorWindow,
    buffered,
    endless,
    errors,
    inverse_norm,
    roots,
    squared_norm,
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


@pytest.mark.parametrize("horizon", [1, 99, 1000, None])
def test_losses_are_those_of_one_release(horizon):
    """Of k events with L2 moves: k² ρ under zCDP, k μ under Gaussian DP, k ε nowhere."""
    space, scale = (oc.integer_stream(-3, 5), oc.event_change()), 40.0

    def loss(measure, d_in):
        return oc.m.make_counter(*space, measure, scale, horizon=horizon).map(d_in)

    rho = loss(ZCDP, 1)
    assert rho == pytest.approx((8 / scale) ** 2 / 2, rel=1e-3)
    assert rho >= (8 / scale) ** 2 / 2
    for d_in in (0, 1, 2, 3, 10**9):
        assert loss(ZCDP, d_in) == pytest.approx(d_in**2 * rho, rel=1e-9)
        assert loss(oc.fixed_renyi_divergence(8.0), d_in) == pytest.approx(8 * d_in**2 * rho)
        assert loss(dp.renyi_divergence(), d_in)(5.0) == pytest.approx(5 * d_in**2 * rho)
        truncated = loss(oc.truncated_concentrated_divergence(4.0), d_in)
        assert truncated.rho == pytest.approx(d_in**2 * rho)
        mu = loss(oc.gaussian_tradeoff(), d_in)
        assert mu == pytest.approx(d_in * math.sqrt(2 * rho), rel=1e-9)
        assert mu >= d_in * math.sqrt(2 * rho) * (1 - 1e-15)


def test_a_changed_event_moves_two_categories():
    for metric, parts in ((oc.event_presence, 1), (oc.event_change, 2)):
        histogram = oc.m.make_histogram_counter(
            oc.category_stream(5), metric(), ZCDP, 20.0, horizon=1000
        )
        counter = oc.m.make_counter(
            oc.integer_stream(0, 1), oc.event_presence(), ZCDP, 20.0, horizon=1000
        )
        for d_in in (0, 1, 3):
            assert histogram.map(d_in) == pytest.approx(parts * counter.map(d_in), rel=1e-12)


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
        lengths, totals, bounds = errors(factor, first)
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


@pytest.mark.parametrize("horizon", [40, 99, None])
@pytest.mark.parametrize("categories", [None, 3])
def test_a_record_goes_on_with_the_same_state(horizon, categories):
    """A counter from a record answers as the first, if both get the same noise."""
    made = methods.plan(horizon, 1e-3, ZCDP, shift=1, largest=1)
    generator = np.random.default_rng(1)
    items = generator.integers(0, 2, 40 if categories is None else (40, categories))
    first, second = made.start(), made.start()
    first.update_all(items[:25])
    second.restore(json.loads(json.dumps(first.to_record())), categories)
    for prefix in (first, second):
        prefix.update_all(items[25:])
        assert np.all(prefix.total() == items.sum(axis=0))
    noisy = methods.plan(horizon, 9.0, ZCDP, shift=1, largest=1)
    first, second = noisy.start(), noisy.start()
    first.update_all(items[:25])
    record = json.loads(json.dumps(first.to_record()))
    second.restore(record, categories)
    assert np.all(first.total() == second.total())
    assert json.loads(json.dumps(second.to_record())) == record


def test_sums_are_rounded_to_the_nearest():
    prefix = FactorPrefix(endless(9), 2, None)
    quarters = [prefix.nearest(one << MORE) for one in (-7, -6, -5, -2, -1, 0, 1, 2, 5, 6)]
    assert quarters == [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize(("largest", "steps"), [(1, 2**50), (2**32, 2**29)])
def test_a_factor_without_a_horizon_ends_where_its_norm_was_taken(largest, steps):
    made = methods.plan(None, 9.0, ZCDP, shift=1, largest=largest)
    assert made.horizon == steps


def release_of_all_steps(answers):
    """The statistic that tells most of the first item: its releases, along its column of C."""
    steps = len(answers)
    norms = [length for many, length in buffered(steps).blocks() for _ in range(many)]
    norms = [math.sqrt(buffered(steps).norm_squared(one) / 4**64) for one in norms]
    first, second = (buffered(steps).coder() for _ in range(2))
    column = [first.encode(int(step == 0) << 30) / 2**30 / norms[0] for step in range(steps)]
    scaled = [
        int(one * 2**30 / norm) for one, norm in zip(np.diff([0, *answers]), norms, strict=True)
    ]
    return sum(one * second.encode(item) / 2**30 for one, item in zip(column, scaled, strict=True))


def asked(measurement):
    def run(stream):
        handle, answers = measurement([]), []
        for item in stream:
            handle.update(item)
            answers.append(handle(None))
        return answers

    return run


@pytest.mark.parametrize("largest", [100, 1])
def test_an_audit_flags_a_move_that_is_too_small(largest):
    """15 steps, items up to 100: the loss that is declared for them holds, that for 1 does not.

    The scores of the two streams are Gaussian, 6.5 deviations apart. All but 10^-13 of the audits
    bound ε by more than 0.12, which is declared for 1: a sum over the hits of all its events.
    """
    space = oc.integer_stream(0, 100), oc.event_presence()
    claimed = oc.integer_stream(0, largest), oc.event_presence()
    counter = oc.m.make_counter(*space, ZCDP, 20.0, horizon=15)
    rho = oc.m.make_counter(*claimed, ZCDP, 20.0, horizon=15).map(1)
    zeros, delta = [0] * 15, 1e-3
    found = verify.audit(
        asked(counter), [100, *zeros[1:]], zeros, release_of_all_steps, n=400, delta=delta
    )
    epsilon = oc.TradeoffFunction.gaussian(math.sqrt(2 * rho)).epsilon(delta)
    assert found.violates(epsilon) == (largest < 100)


def test_integers_are_written_as_they_are():
    for total in (0, -(2**200), np.array([3, -(2**99)], dtype=object)):
        assert np.all(unplain(json.loads(json.dumps(plain(total))), 2) == total)
    for wrong in (True, 1.0, "1", [1, None], [[1]], [1], [1, 2, 3]):
        with pytest.raises(InvalidValueError):
            unplain(wrong, 2)
    for wrong in ([], [1]):
        with pytest.raises(InvalidValueError):
            unplain(wrong, None)
    with pytest.raises(InvalidValueError):
        unplain(8, None, 7)


DELTA, OMEGA = np.array([0.25]), np.array([0.125])


@pytest.mark.parametrize("horizon", [1, 2, 7, 100])
def test_the_squared_norm_is_that_of_the_column(horizon):
    column = [1.0, *(0.125 * 0.75**k for k in range(horizon - 1))]
    assert squared_norm(DELTA, OMEGA, horizon) == pytest.approx(np.square(column).sum(), rel=1e-12)


def test_the_norm_of_all_time_is_the_limit():
    assert squared_norm(DELTA, OMEGA) == pytest.approx(1 + 0.125**2 / (1 - 0.75**2), rel=1e-12)


def test_the_root_solves_the_secular_equation():
    (root,), (excess,) = roots(DELTA, OMEGA)
    assert root == pytest.approx(0.25 + 0.125)  # 1 + ω / (δ - λ) = 0
    assert excess == pytest.approx(0.125)


class Prefix:
    """Exact prefix sums, in units of 2**-4."""

    def __init__(self):
        self.fine_total = self.steps = 0

    def update(self, item):
        self.fine_total += item << 4
        self.steps += 1

    def nearest(self, total):
        return total >> 4

    def to_record(self):
        return [self.fine_total, self.steps]

    def restore(self, record):
        self.fine_total, self.steps = record


def test_the_last_steps_are_summed_and_a_record_continues():
    items = [3, 0, 5, 2, 7, 1, 0, 4]
    whole, window = FactorWindow(3, Prefix()), FactorWindow(3, Prefix())
    for step, item in enumerate(items, 1):
        for one in (whole, window):
            one.update(item)
            assert one.total() == sum(items[max(0, step - 3) : step])
        record, window = window.to_record(), FactorWindow(3, Prefix())
        window.restore(record)
