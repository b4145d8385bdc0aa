"""Units with several items, some steps apart: exact adversaries, what is dropped, and errors."""

import logging
import math
from itertools import pairwise, product

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.counters import methods
from opendp_concurrent.counters.factors.buffered import buffered
from opendp_concurrent.counters.factors.factor_prefix import FactorPrefix
from opendp_concurrent.counters.factors.power import PowerFactor, square_root
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.errors.streams import StreamError
from opendp_concurrent.exact.participations import Participations

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
GRID, NOISE = 2, 6.0


def one_unit(most, apart):
    """Streams that differ by a unit's items, all in one of them."""

    def neighbouring(first, second):
        places = [
            step for step, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]
        ]
        sides = {first[step] is None for step in places}
        gaps = [after - one for one, after in pairwise(places)]
        return len(places) <= most and len(sides) <= 1 and all(gap >= apart for gap in gaps)

    return neighbouring


class Bare:
    """A prefix whose answer tells all that was released, on the grid."""

    def __init__(self, factor, release):
        self.prefix = FactorPrefix(factor, GRID, self)
        self.releases, self._release = (), release

    def release(self, total):
        self.releases += (self._release(total, NOISE),)
        return self.releases[-1]

    def update(self, item):
        self.prefix.update(item or 0)

    def __call__(self, query):
        return self.releases


def compared(factor, steps, unit, order):
    """The exact divergence, what the releases tell of zeros, and what is declared."""
    noise = verify.clamped_noise(-4, 13, gaussian=True)
    law = verify.Replayed(lambda release: Bare(factor, release), noise)
    streams = one_unit(unit.most, unit.apart)
    found = verify.continual_renyi([law], (None, 1), streams, steps, order)
    coder = factor.coder(GRID)
    places = range(0, min(steps, unit.most * unit.apart), unit.apart)
    moves = [coder.encode(int(step in places) << GRID) for step in range(steps)]
    seen = sum(one * one for one in moves) / (2 * NOISE**2)
    declared = methods.factor_loss(1, methods.sensitivity(factor, GRID, 1, unit), NOISE, ZCDP, 1)
    return found, order * seen, order * declared


FACTORS = {
    "buffered": buffered(3),
    "square root": square_root(3),
    "banded": PowerFactor(3, 40, 2),
    "one band": PowerFactor(3, 40, 1),
}


@pytest.mark.parametrize("name", FACTORS)
def test_an_adversary_with_two_items_gains_no_more_than_is_declared(name):
    found, seen, declared = compared(FACTORS[name], 2, Participations(2, 1), 2.0)
    once, _, _ = compared(FACTORS[name], 2, Participations(1, 1), 2.0)
    assert 0.7 * seen < found <= seen + 1e-9
    assert once < found <= declared


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("unit", [Participations(2, 2), Participations(2, 1), Participations(3, 1)])
def test_an_adversary_over_three_steps(name, unit):
    found, seen, declared = compared(FACTORS[name], 3, unit, 2.0)
    assert 0.5 * seen < found <= declared
    assert found <= 1.3 * seen  # floors fall as far apart as she can make them


def test_a_separation_that_is_not_kept_is_caught():
    """The exact check sees two items in steps one after the other, where two apart are claimed."""
    factor = PowerFactor(2, 60, 2)
    found, _, _ = compared(factor, 2, Participations(2, 1), 2.0)
    claimed = factor.norm_squared(GRID, Participations(1, 1)) / (2 * NOISE**2)
    assert found > 2 * 1.5 * claimed


def counter(measure=ZCDP, scale=10.0, **options):
    space = oc.integer_stream(0, 1), oc.user_presence()
    return oc.m.make_counter(*space, measure, scale, **options)


@pytest.mark.parametrize("options", [{}, {"method": "buffered"}, {"method": "square_root"}])
def test_losses_are_those_of_the_columns_together(options):
    """Of d units: d² ρ under zCDP, d μ under Gaussian DP."""
    steps, unit = 60, Participations(5, 7)
    spaced = {"horizon": steps, "participations": 5, "separation": 7}
    made = counter(**spaced, **options)
    factor = methods.factor_for(options.get("method", "banded"), steps, unit)
    coder, moved = factor.coder(40), []
    for step in range(steps):
        moved.append(coder.encode(int(step % 7 == 0 and step < 35) << 40))
    exact = sum(one * one for one in moved) / 4**40
    assert made.map(1) * 200 == pytest.approx(exact, rel=0.02 if options else 1e-6)
    assert made.map(1) * 200 >= exact
    assert made.map(3) == pytest.approx(9 * made.map(1))
    assert made.map(0) == 0.0
    once = counter(horizon=steps, participations=1)
    assert once.map(1) < made.map(1) < 25 * once.map(1)
    mu = counter(oc.gaussian_tradeoff(), **spaced, **options)
    assert mu.map(2) == pytest.approx(2 * math.sqrt(2 * made.map(1)), rel=1e-6)


@pytest.mark.parametrize(
    ("measure", "method", "power"),
    [(PURE, None, 1), (PURE, "tree", 1), (dp.approximate(PURE), None, 1), (ZCDP, "tree", 2)],
)
def test_separation_gains_nothing_where_nodes_have_the_noise(measure, method, power):
    near, far = (
        counter(measure, horizon=60, method=method, participations=5, separation=apart).map(1)
        for apart in (1, 7)
    )
    once = counter(measure, horizon=60, method=method, participations=1).map(1)
    assert near == far
    assert np.allclose(near, np.multiply(once, 5**power))
    # of the steps, at most 3 are so far apart
    few = counter(measure, horizon=60, method=method, participations=5, separation=20).map(1)
    assert np.allclose(few, np.multiply(once, 3**power))


def test_windows_and_histograms():
    spaced = {"participations": 5, "separation": 7}
    users, scale = oc.user_presence(), 10.0
    histogram = oc.m.make_histogram_counter(
        oc.category_stream(4), users, ZCDP, scale, horizon=60, **spaced
    )
    assert histogram.map(1) == counter(horizon=60, **spaced).map(1)
    bits = oc.integer_stream(0, 1)
    for method in ("banded", "buffered"):
        window = oc.m.make_window_counter(bits, users, ZCDP, scale, 14, method=method, **spaced)
        once = oc.m.make_window_counter(bits, oc.event_presence(), ZCDP, scale, 14, method=method)
        assert 0.5 * once.map(1) < window.map(1) < 25 * once.map(1)
        handle = window([])
        handle.update_all([1] * 40)
        assert abs(handle.read() - 14) < 200
    pure, once = (
        oc.m.make_window_counter(bits, users, PURE, scale, 14, participations=most, separation=7)
        for most in (5, 1)
    )
    assert pure.map(1) == pytest.approx(5 * once.map(1))


def test_errors_by_formula():
    """One error by its noise and its loss, for each method."""
    for method in ("banded", "buffered", "tree"):
        made = counter(horizon=60, method=method, participations=5, separation=7)
        rmse = oc.m.counter_rmse(60, method, participations=5, separation=7)
        alone = oc.m.counter_rmse(60, method)
        assert rmse < 5 * alone * (1 + 1e-9)
        assert made.map(1) > 0
    rmse = oc.m.counter_rmse(60, output_measure=PURE, participations=5, separation=7)
    assert rmse == pytest.approx(5 * oc.m.counter_rmse(60, output_measure=PURE))
    banded, plain = (
        oc.m.window_rmse(28, method, participations=52, separation=7) for method in (None, "trees")
    )
    assert banded < 21 < oc.m.window_rmse(28, "buffered", participations=52, separation=7) < plain


@pytest.mark.parametrize("method", ["banded", "square_root"])
def test_the_measured_error_is_that_of_a_row(method):
    """2,000 categories have counters with noise of their own; seven deviations of the mean."""
    runs, scale, unit = 2000, 20.0, Participations(5, 7)
    space = oc.category_stream(runs), oc.user_presence(5, 7)
    handle = oc.m.make_histogram_counter(*space, ZCDP, scale, horizon=30, method=method)([])
    coder = methods.factor_for(method, 30, unit).coder(40)
    sums = np.cumsum([coder.decode(int(k == 0) << 40) for k in range(30)]).astype(float) / 2.0**40
    for step in (1, 9, 20):
        handle.update_all([None] * step)
        at = {1: 1, 9: 10, 20: 30}[step]
        found = np.mean(np.array(handle(None), dtype=float) ** 2)
        expected = scale**2 * np.sum(sums[:at] ** 2)
        assert found == pytest.approx(expected, rel=7 * math.sqrt(2 / runs))


def pairs():
    return oc.record_stream("pairs", lambda pair: pair[1] in (0, 1)), oc.user_presence()


def bounded(most, apart):
    return oc.t.make_bounded_contributions(*pairs(), oc.integer_stream(0, 1), most, apart)


class Seen:
    """A machine that tells what it got, and may refuse."""

    def __init__(self):
        self.items = []

    def update(self, item):
        self.items.append(item)

    def update_all(self, items):
        self.items.extend(items)

    def ask(self, query):
        return list(self.items)

    def to_record(self):
        return self.items

    def restore(self, record):
        self.items = record


def seen(most, apart, horizon=None):
    return bounded(most, apart) >> oc.m.make_continual(
        oc.integer_stream(0, 1),
        oc.user_presence(most, apart),
        ZCDP,
        Seen,
        lambda d_in: 0.0,
        horizon=horizon,
    )


def kept(stream, most, apart):
    """The rule for each user alone."""
    found = [None] * len(stream)
    for user in {pair[0] for pair in stream if pair is not None}:
        last, count = -math.inf, 0
        for step, pair in enumerate(stream):
            if pair is not None and pair[0] == user and count < most and step - last >= apart:
                last, count, found[step] = step, count + 1, pair[1]
    return found


@pytest.mark.parametrize(("most", "apart"), [(2, 3), (4, 2), (3, 1)])
@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_kept_follows_from_the_users_items_alone(most, apart, at_once):
    generator = np.random.default_rng(most)
    for _ in range(20):
        users = generator.integers(0, 4, 30).tolist()
        stream = [None if user == 3 else ("abc"[user], 1) for user in users]
        handle = seen(most, apart)([])
        if at_once:
            handle.update_all(stream[:11])
            handle.update_all(stream[11:])
        else:
            for pair in stream:
                handle.update(pair)
        found = handle(None)
        assert found == kept(stream, most, apart)
        without = [pair if pair is None or pair[0] != "a" else None for pair in stream]
        places = [a != b for a, b in zip(found, kept(without, most, apart), strict=True)]
        steps = np.flatnonzero(places)
        assert len(steps) <= most
        assert (np.diff(steps) >= apart).all()


def test_the_owner_is_told_and_nobody_else(caplog):
    handle = seen(2, 3)([])
    with caplog.at_level(logging.INFO, logger="opendp_concurrent.continual"):
        handle.update_all([("secret", 1), ("secret", 1), None, ("other", 1)])
        assert [record.levelno for record in caplog.records] == [logging.INFO]
        assert "secret" not in caplog.text
        caplog.clear()
        handle.update(("other", 0))
        assert "an item was dropped" in caplog.text
    assert handle(None) == [1, None, None, 1, None]


def test_steps_that_are_refused_do_not_count():
    handle = seen(3, 2, horizon=4)([])
    handle.update_all([("a", 1), None, None])
    with pytest.raises(StreamError, match="would exceed the horizon"):
        handle.update_all([("b", 1), ("a", 1)])
    handle.update(("a", 1))
    assert handle(None)[0] == 1
    assert len(handle(None)) == 4
    # the rule may drop an item whose step was refused before, and never keeps one too many
    assert handle(None)[3] in (1, None)


def test_a_checkpoint_knows_the_steps():
    first = oc.c.Checkpoint()
    handle = oc.c.make_resumable(seen(3, 3), first)([])
    handle.update_all([("a", 1), ("b", 1), ("a", 1)])
    second = oc.c.Checkpoint(first.save())
    handle = oc.c.make_resumable(seen(3, 3), second)([])
    handle.update_all([("a", 1), ("b", 1), ("b", 1)])
    assert handle(None) == [1, 1, None, 1, 1, None]
    third = oc.c.Checkpoint(second.save())
    with pytest.raises(InvalidValueError, match="cannot be resumed by"):
        oc.c.make_resumable(seen(3, 2), third)([])


def test_a_banded_counter_is_resumed():
    made = bounded(4, 5) >> oc.m.then_counter(ZCDP, 9.0, horizon=40)
    first = oc.c.Checkpoint()
    handle = oc.c.make_resumable(made, first)([])
    handle.update_all([("a", 1), ("b", 1)] * 10)
    count, second = handle.read(), oc.c.Checkpoint(first.save())
    handle = oc.c.make_resumable(made, second)([])
    assert handle.read() == count
    handle.update_all([None] * 20)
    with pytest.raises(StreamError, match="would exceed the horizon"):
        handle.update(None)


def test_a_chain_has_the_loss_of_its_counter():
    made = bounded(4, 5) >> oc.m.then_counter(ZCDP, 9.0, horizon=40)
    alone = counter(scale=9.0, horizon=40, participations=4, separation=5)
    assert [made.map(d_in) for d_in in (1, 2)] == [alone.map(1), alone.map(2)]
    ones = oc.t.make_stream_filter(oc.integer_stream(0, 1), oc.user_presence(4, 5), bool)
    assert (bounded(4, 5) >> ones >> alone).map(1) == alone.map(1)
    with pytest.raises(dp.OpenDPException, match="[Mm]etric"):
        bounded(4, 4) >> alone


@pytest.mark.slow
def test_users_against_all_their_streams(replayed):
    """Whole streams of pairs of users: the chain with real trees loses what it declares."""
    made = bounded(2, 2) >> oc.m.then_counter(PURE, scale=8.0, horizon=3, method="tree")

    def one_user(first, second):
        return any(
            all(a == b or (b is None and a[0] == user) for a, b in zip(more, less, strict=True))
            and not any(b is not None and b[0] == user for b in less)
            for more, less in ((first, second), (second, first))
            for user in ("a", "b")
        )

    law = replayed(lambda: made([]))
    items = (None, ("a", 1), ("b", 1))
    found = verify.continual_epsilon([law], items, one_user, 3)
    assert found <= made.map(1) + 1e-9
    assert made.map(1) == 0.5
    assert found == pytest.approx(0.375, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"participations": 10**5000}, InvalidValueError, "^participations .* at most"),
        ({"participations": 2, "separation": 2**63}, InvalidValueError, "^separation .* at most"),
        ({"participations": 0}, InvalidValueError, "^participations"),
        ({"participations": True}, InvalidTypeError, "^participations"),
        ({"participations": 2, "separation": 0}, InvalidValueError, "^separation"),
        ({"separation": 3}, InvalidValueError, "^separation"),
        ({"participations": 1.5}, InvalidTypeError, "^participations"),
        ({}, InvalidTypeError, "^input_metric"),
    ],
)
def test_bad_participations(options, error, match):
    with pytest.raises(error, match=match):
        counter(horizon=9, **options)
    with pytest.raises(error, match=match):
        oc.m.make_window_counter(
            oc.integer_stream(0, 1), oc.user_presence(), ZCDP, 9.0, 3, **options
        )


def test_participations_fit_the_metric():
    space = oc.integer_stream(0, 1), oc.user_presence(2, 3)
    made = oc.m.make_counter(*space, ZCDP, 9.0, horizon=9)
    assert made.input_metric == oc.user_presence(2, 3) != oc.user_presence(2, 4)
    same = oc.m.make_counter(*space, ZCDP, 9.0, horizon=9, participations=2, separation=3)
    assert same.map(1) == made.map(1)
    for metric in (oc.user_presence(2, 4), oc.event_presence()):
        with pytest.raises(InvalidValueError, match="need input_metric"):
            oc.m.make_counter(space[0], metric, ZCDP, 9.0, participations=2, separation=3)
    forged = dp.user_distance("UserPresence(participations=2, separation=3)")
    with pytest.raises(InvalidTypeError, match="^input_metric"):
        oc.m.make_counter(space[0], forged, ZCDP, 9.0)
    other = dp.user_distance("Other", Participations(2, 3))
    with pytest.raises(InvalidTypeError, match="^input_metric"):
        oc.m.make_counter(space[0], other, ZCDP, 9.0)


def test_a_factor_that_might_rise_has_the_bound_of_any(monkeypatch):
    """Buffers with c_1 above 1: k² times the norm of a column."""
    from opendp_concurrent.counters.factors.buffered import BufferedFactor

    for omega in (2**60, 2**60 + 1):
        factor = BufferedFactor(((2**57, omega),), 50)
        found = factor.norm_squared(30, Participations(3, 9))
        assert (found == 9 * factor.norm_squared(30)) == (omega > 2**60)


@pytest.mark.parametrize(
    "unit", [Participations(3, 4), Participations(9, 1), Participations(2, 30)]
)
def test_buffered_bounds_are_above_the_columns(unit):
    factor = buffered(40)
    entries = []
    coder = factor.coder(60)
    for step in range(40):
        entries.append(coder.encode(int(step == 0) << 60) / 2**60)
    exact = 0.0
    sums = np.zeros(40)
    for item in range(unit.within(40)):
        sums[item * unit.apart :] += entries[: 40 - item * unit.apart]
    exact = float(sums @ sums)
    found = factor.norm_squared(60, unit) / 4**60
    assert exact * (1 - 1e-12) <= found <= 1.5 * exact
    assert found <= unit.within(40) ** 2 * factor.norm_squared(60) / 4**60


def test_many_participations_end():
    for most, apart in product((2, 5000, 10**9), (1, 10**6)):
        found = buffered(2**50).norm_squared(30, Participations(most, apart))
        assert found >= most * buffered(2**50).norm_squared(30)
