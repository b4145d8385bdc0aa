"""Counters by factorisation: exact adaptive adversaries, errors of real answers, and records."""

import itertools
import json
import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.counters import methods
from opendp_concurrent.counters.factors.buffered import BufferedFactor, buffered, endless
from opendp_concurrent.counters.factors.factor_prefix import FactorPrefix, nearest
from opendp_concurrent.counters.factors.power import square_root
from opendp_concurrent.errors import InvalidValueError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
BITS, NOISE = 2, 6.0
PRESENCE = verify.events_differ(1)
FACTORS = {"buffered": buffered(4), "square root": square_root(4)}


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
    coder = factor.coder(BITS)
    return [coder.encode(int(step == 0) << BITS) for step in range(steps)]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("order", [1.5, 4.0])
def test_an_adversary_gains_no_more_than_the_norm_allows(factor, order):
    """Both streams are chosen adaptively, and everything that is released is seen."""
    factor, steps = FACTORS[factor], 2
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, steps, order)
    seen = sum(one * one for one in moves(factor, steps)) / (2 * NOISE**2)
    declared = methods.factor_loss(1, methods.sensitivity(factor, BITS, 1), NOISE, ZCDP, 1)
    assert 0.7 * order * seen < found <= order * seen + 1e-9
    assert found <= order * declared


def farthest(factor, steps):
    """The largest sum of squared moves, over all streams: floors fall differently on each."""
    largest = 0
    for items in itertools.product((0, 1), repeat=steps):
        for place in range(steps):
            streams = [[*items[:place], bit, *items[place + 1 :]] for bit in (0, 1)]
            coders = [factor.coder(BITS) for _ in streams]
            releases = [
                [coder.encode(item << BITS) for item in stream]
                for coder, stream in zip(coders, streams, strict=True)
            ]
            largest = max(largest, sum((a - b) ** 2 for a, b in zip(*releases, strict=True)))
    return largest


@pytest.mark.slow
def test_an_adversary_over_three_steps():
    """She chooses the other items such that floors fall as far apart as they can."""
    factor = FACTORS["buffered"]
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, 3, 2.0)
    worst = farthest(factor, 3) / (2 * NOISE**2)
    zeros = sum(one * one for one in moves(factor, 3)) / (2 * NOISE**2)
    assert 2 * zeros < found <= 2 * worst + 1e-9
    assert found <= 2 * methods.factor_loss(1, methods.sensitivity(factor, BITS, 1), NOISE, ZCDP, 1)


def test_a_norm_without_its_buffers_is_caught():
    """The exact check sees a column of C of which only the first entry is counted."""
    factor = BufferedFactor(((2**57, 2**60),), 2)  # c = 1, 1, 7/8, ...
    found = verify.continual_renyi([law(factor)], (None, 1), PRESENCE, 2, 2.0)
    first_only = (1 << BITS) ** 2 / (2 * NOISE**2)
    assert found > 2 * 1.4 * first_only


def test_gaussian_dp_on_the_grid():
    factor = FACTORS["buffered"]
    moved = methods.sensitivity(factor, BITS, 1)
    loss = methods.factor_loss(1, moved, NOISE, oc.gaussian_tradeoff(), 1)
    tight = math.sqrt(sum((one + 1) ** 2 for one in moves(factor, 2))) / NOISE
    for mu in (loss, tight):
        curve = oc.TradeoffFunction.gaussian(mu)
        for epsilon in (0.0, 0.5, 1.0):
            found = verify.continual_delta([law(factor)], (None, 1), PRESENCE, 2, epsilon)
            assert 0.0 < found <= curve.delta(epsilon) + 1e-9


@pytest.mark.parametrize(
    "options", [{"horizon": 1000}, {}, {"horizon": 99, "method": "square_root"}]
)
def test_losses_are_those_of_the_norm(options):
    """Of k events with L2 moves: k² ρ under zCDP, k μ under Gaussian DP, k ε nowhere."""
    space, scale = (oc.integer_stream(-3, 5), oc.event_change()), 40.0

    def loss(measure, d_in):
        return oc.m.make_counter(*space, measure, scale, **options).map(d_in)

    rho = loss(ZCDP, 1)
    squared = rho * 2 * (scale / 8) ** 2
    horizon = options.get("horizon")
    factor = {1000: buffered(1000), None: endless(2**50), 99: square_root(99)}[horizon]
    expected = factor.norm_squared(50) / 4**50
    assert squared == pytest.approx(expected, rel=1e-4)
    assert squared >= expected
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


@pytest.mark.parametrize("options", [{"horizon": 30}, {}, {"horizon": 30, "method": "square_root"}])
def test_the_measured_error_is_that_of_a_row(options):
    """2,000 categories have counters with noise of their own; seven deviations of the mean."""
    runs, scale = 2000, 20.0
    space = oc.category_stream(runs), oc.event_presence()
    handle = oc.m.make_histogram_counter(*space, ZCDP, scale, **options)([])
    if options.get("method"):
        coder = square_root(30).coder(40)
    else:
        coder = (
            methods.plan(None, options.get("horizon"), scale, ZCDP, shift=1, largest=1)
            .start()
            ._decoded
        )
    row, sums, before = [], np.cumsum([coder.decode(int(k == 0) << 40) for k in range(30)]), 0
    for step in (1, 6, 30):
        handle.update_all([None] * (step - before))
        before = step
        row = sums[:step].astype(float) / 2.0**40  # A C^-1 in its last row
        found = np.mean(np.array(handle(None), dtype=float) ** 2)
        expected = scale**2 * np.sum(row**2)
        assert found == pytest.approx(expected, rel=7 * math.sqrt(2 / runs))


@pytest.mark.parametrize("options", [{"horizon": 99}, {}, {"horizon": 99, "method": "square_root"}])
@pytest.mark.parametrize("categories", [None, 3])
def test_a_record_goes_on_with_the_same_state(options, categories):
    """A counter from a record answers as the first, if both get the same noise."""
    made = methods.plan(
        options.get("method"), options.get("horizon"), 1e-3, ZCDP, shift=1, largest=1
    )
    generator = np.random.default_rng(1)
    items = generator.integers(0, 2, 40 if categories is None else (40, categories))
    first, second = made.start(), made.start()
    first.update_all(items[:25])
    second.restore(json.loads(json.dumps(first.to_record())))
    for prefix in (first, second):
        prefix.update_all(items[25:])
        assert np.all(prefix.total() == items.sum(axis=0))
    noisy = methods.plan(
        options.get("method"), options.get("horizon"), 9.0, ZCDP, shift=1, largest=1
    )
    first, second = noisy.start(), noisy.start()
    first.update_all(items[:25])
    record = json.loads(json.dumps(first.to_record()))
    second.restore(record)
    assert np.all(first.total() == second.total())
    assert json.loads(json.dumps(second.to_record())) == record


def test_sums_are_rounded_to_the_nearest():
    assert [nearest(one, 2) for one in (-7, -6, -5, -2, -1, 0, 1, 2, 5, 6)] == [
        -2, -1, -1, 0, 0, 0, 0, 1, 1, 2,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "method", "horizon", "match"),
    [
        (PURE, "buffered", 9, "needs Gaussian noise"),
        (PURE, "square_root", 9, "needs Gaussian noise"),
        (ZCDP, "digits", 9, "needs Laplace noise"),
        (PURE, "smooth", None, "needs a horizon"),
        (ZCDP, "square_root", None, "needs a horizon"),
        (ZCDP, "square_root", 2**20 + 1, "use 'buffered'"),
    ],
)
def test_methods_that_do_not_fit(bits, measure, method, horizon, match):
    with pytest.raises(InvalidValueError, match=match):
        oc.m.make_counter(*bits, measure, 1.0, horizon=horizon, method=method)


@pytest.mark.parametrize(
    ("measure", "horizon", "method"),
    [
        (PURE, 9, "digits"),
        (PURE, None, "digits"),
        (dp.approximate(PURE), 9, "digits"),
        (ZCDP, 9, "buffered"),
        (ZCDP, None, "buffered"),
        (dp.renyi_divergence(), None, "buffered"),
    ],
)
def test_defaults(bits, measure, horizon, method):
    assert methods.method_for(None, horizon, measure) == method


def test_a_cast_to_approximate_dp(bits):
    counter = oc.m.make_counter(*bits, ZCDP, 20.0, horizon=1000)
    epsilon, delta = oc.c.cast(counter, dp.approximate(PURE), delta=1e-6).map(1)
    assert 0 < epsilon < 0.6
    assert delta == 1e-6


@pytest.mark.parametrize(("largest", "steps"), [(1, 2**50), (2**32, 2**29)])
def test_a_factor_without_a_horizon_ends_where_its_norm_was_taken(largest, steps):
    made = methods.plan(None, None, 9.0, ZCDP, shift=1, largest=largest)
    assert made.horizon == steps


def release_of_all_steps(answers):
    """The statistic that tells most of the first item: what is released, along its column of C."""
    first, second = (buffered(len(answers)).coder(30) for _ in range(2))
    column = [first.encode(int(step == 0) << 30) for step in range(len(answers))]
    steps = np.diff([0, *answers]).tolist()
    releases = [second.encode(item << 30) for item in steps]
    return sum(one * other for one, other in zip(column, releases, strict=True)) / 4**30


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
