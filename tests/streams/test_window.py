"""Sliding windows: exact sums without noise, few nodes for each item."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.streams.digits import best_digits
from opendp_concurrent.streams.factors import MORE, FactorPrefix, FactorWindow, windowed

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3
SIZES = [1, 2, 7, 8, 13]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
def test_sums_are_exact_without_noise(size, measure):
    generator = np.random.default_rng(size)
    space = oc.integer_stream(-3, 5), oc.event_change()
    handle = oc.m.make_window_counter(*space, measure, TINY, size)([])
    stream = [None if one == 6 else one for one in generator.integers(-3, 7, size=90).tolist()]
    taken = 0
    assert handle(None) == 0
    while taken < 90:
        step = int(generator.integers(0, 4))
        now = stream[taken : taken + step]
        if len(now) == 1:
            handle.update(now[0])
        else:
            handle.update_all(now)
        taken += len(now)
        if generator.integers(3):
            expected = sum(one or 0 for one in stream[max(0, taken - size) : taken])
            assert handle(None) == expected


def test_integers_of_numpy_do_not_wrap():
    space = oc.integer_stream(0, 200), oc.event_presence()
    handle = oc.m.make_window_counter(*space, PURE, TINY, 5)([])
    for _ in range(7):
        handle.update(np.int8(100))
    assert handle(None) == 500
    handle.update_all(np.array([200, 200], dtype=np.uint8))
    assert handle(None) == 700


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_is_given_again_between_updates(size, bits):
    handle = oc.m.make_window_counter(*bits, PURE, 1e6, size)([])
    answers = []
    for _ in range(30):
        handle.update(1)
        answers.append(handle(None))
        assert handle(None) == answers[-1]
    assert len(set(answers)) > 25


@pytest.mark.parametrize("d_in", [0, 1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_losses_are_those_of_nodes_and_of_one_release(d_in, size):
    for metric, shift in ((oc.event_presence, 5), (oc.event_change, 8)):
        space = oc.integer_stream(-3, 5), metric()
        nodes = best_digits(size, window=True).height
        pure = oc.m.make_window_counter(*space, PURE, 20.0, size)
        assert pure.map(d_in) == pytest.approx(d_in * nodes * shift / 20)
        zcdp = oc.m.make_window_counter(*space, ZCDP, 20.0, size).map(d_in)
        assert zcdp == pytest.approx((d_in * shift / 20) ** 2 / 2, rel=2e-3)
        assert zcdp >= (d_in * shift / 20) ** 2 / 2


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_the_error_late_in_a_stream_is_the_formula(size):
    """The noise of one release, followed through the window: its squares add up."""
    factor, bits = windowed(size, 2**20), 40

    class Once:
        def __init__(self):
            self.noise = 1 << bits

        def release(self, total):
            noise, self.noise = self.noise, 0
            return total + noise

    state, squares = FactorWindow(size, FactorPrefix(factor, bits, Once())), []
    for _ in range(60 * size):
        state.update(0)
        squares.append(((state._totals[-1] - state._totals[0]) / 2.0 ** (bits + MORE)) ** 2)
    assert sum(squares) ** 0.5 == pytest.approx(oc.streams.window_rmse(size), rel=1e-4)
