"""Sliding windows: exact sums without noise, few nodes for each item."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.counters import prefix, window
from opendp_concurrent.counters.factors.buffered import windowed
from opendp_concurrent.counters.factors.factor import grid_bits, sensitivity
from opendp_concurrent.counters.factors.factor_prefix import FactorPrefix
from opendp_concurrent.counters.factors.window_factor import FactorWindow
from opendp_concurrent.counters.window_trees import nodes_of
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, StreamHaltedError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3
SIZES = [1, 2, 7, 8, 13]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("method", [None, "trees"])
@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
def test_sums_are_exact_without_noise(size, measure, method):
    generator = np.random.default_rng(size)
    space = oc.integer_stream(-3, 5), oc.event_change()
    handle = oc.m.make_window_counter(*space, measure, TINY, size, method=method)([])
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


@pytest.mark.parametrize("size", [*SIZES, 3, 4, 5, 17, 31, 32, 33])
def test_an_item_is_in_no_more_nodes_than_declared(size, bits, monkeypatch):
    """A stream with one 1: nodes that hold it are those that release 1, over all times asked."""

    class Counting:
        def __init__(self, scale, laplace):
            pass

        def release(self, total):
            released.append(total)
            return total

    monkeypatch.setattr(window, "NodeNoise", Counting)
    monkeypatch.setattr(prefix, "NodeNoise", Counting)
    measurement = oc.m.make_window_counter(*bits, PURE, 1.0, size, method="trees")
    declared = round(measurement.map(1))
    most = 0
    for place in range(2 * size):
        handle, released = measurement([]), []
        for step in range(place + 2 * size + 1):
            handle.update(int(step == place))
            assert handle(None) == handle(None) == int(step - size < place <= step)
        assert set(released) <= {0, 1}
        most = max(most, sum(released))
    assert 0 < most == declared <= 2 * size.bit_length()


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_is_given_again_between_updates(size, bits):
    handle = oc.m.make_window_counter(*bits, PURE, 1e6, size)([])
    answers = []
    for _ in range(30):
        handle.update(1)
        answers.append(handle(None))
        assert handle(None) == answers[-1]
    assert len(set(answers)) > 25


def test_noise_is_forgotten_with_its_block(bits):
    """Memory does not grow, and no node is in two blocks."""
    handle = oc.m.make_window_counter(*bits, PURE, 1e6, 4)([])
    answers = set()
    for _ in range(12):
        handle.update_all([0] * 4)
        answers.add(handle(None))
    assert len(answers) == 12


@pytest.mark.parametrize("d_in", [0, 1, 2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_losses_are_those_of_the_declared_nodes(d_in, size):
    for metric, shift in ((oc.event_presence, 5), (oc.event_change, 8)):
        space = oc.integer_stream(-3, 5), metric()
        nodes = (
            round(oc.m.make_window_counter(*space, PURE, 1.0, size, method="trees").map(1)) / shift
        )
        assert nodes <= 2 * size.bit_length()
        pure = oc.m.make_window_counter(*space, PURE, 20.0, size, method="trees")
        assert pure.map(d_in) == pytest.approx(d_in * nodes * shift / 20)
        zcdp = oc.m.make_window_counter(*space, ZCDP, 20.0, size, method="trees")
        assert zcdp.map(d_in) == pytest.approx(nodes * (d_in * shift / 20) ** 2 / 2)


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (0, InvalidValueError),
        (1.5, InvalidTypeError),
        (True, InvalidTypeError),
        (2**62, InvalidValueError),
    ],
)
def test_bad_windows(bits, size, error):
    with pytest.raises(error, match="^window"):
        oc.m.make_window_counter(*bits, PURE, 1.0, size)


def test_bad_messages(bits):
    handle = oc.m.make_window_counter(*bits, PURE, TINY, 3)([])
    handle.update(1)
    with pytest.raises(InvalidTypeError, match="^the query must be None"):
        handle("sum")
    assert handle(None) == 1
    with pytest.raises(StreamHaltedError):
        handle.update_all([1, 2])
    with pytest.raises(StreamHaltedError):
        handle(None)
    with pytest.raises(InvalidTypeError, match="^input_domain"):
        oc.m.make_window_counter(oc.category_stream(2), oc.event_presence(), PURE, 1.0, 3)


@pytest.mark.parametrize(
    ("size", "nodes"), [(1, 1), (2, 2), (7, 6), (8, 4), (1023, 11), (1024, 11)]
)
def test_nodes_of_two_trees(size, nodes):
    declared = nodes_of(size)
    assert declared <= 2 * size.bit_length()
    if size & (size - 1) == 0:
        assert declared == nodes


@pytest.mark.parametrize("size", SIZES)
def test_the_buffered_loss_is_that_of_all_time(size):
    """The norm of a column that never ends, and the slack of 2^50 steps."""
    space = oc.integer_stream(-3, 5), oc.event_change()
    factor = windowed(size, 2**50)
    bits = grid_bits(factor, 20.0, 8)
    moved = sensitivity(factor, bits, 8) / 2.0**bits
    assert moved == pytest.approx(8 * (factor.norm_squared(50) / 4**50) ** 0.5, rel=1e-3)
    for d_in in (0, 1, 3):
        loss = oc.m.make_window_counter(*space, ZCDP, 20.0, size).map(d_in)
        assert loss == pytest.approx((d_in * moved / 20) ** 2 / 2, rel=1e-9)


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

    prefix = FactorPrefix(factor, bits, Once())
    state, squares = FactorWindow(size, prefix, bits), []
    for _ in range(60 * size):
        state.update(0)
        squares.append(((state._totals[-1] - state._totals[0]) / 2.0**bits) ** 2)
    norm = factor.norm_squared(50) / 4**50
    assert (sum(squares) * norm) ** 0.5 == pytest.approx(oc.m.window_rmse(size), rel=1e-4)


@pytest.mark.parametrize(
    ("measure", "method", "needs"), [(PURE, "buffered", "Gaussian"), (ZCDP, "digits", "Laplace")]
)
def test_methods_that_do_not_fit(bits, measure, method, needs):
    with pytest.raises(InvalidValueError, match=f"needs {needs} noise"):
        oc.m.make_window_counter(*bits, measure, 1.0, 5, method=method)
