"""Epochs of digit trees: their lengths, their noise, exact adversaries across epochs."""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.streams import digits as epochs
from opendp_concurrent.streams.digits import Digits, Epoch, EpochsPrefix, epoch

from ..some import slow
from .test_digits import modular as modular

dp.enable_features("contrib", "honest-but-curious")
PURE = dp.max_divergence()
SHORT = [Epoch(1, Digits(3, 1)), Epoch(3, Digits(3, 2)), Epoch(2, Digits(5, 1))]


@pytest.fixture
def short(monkeypatch):
    """Epochs of one, three and two steps."""
    monkeypatch.setattr(epochs, "epoch", SHORT.__getitem__)


def test_each_epoch_is_in_its_tree_and_ends_with_few_nodes():
    for number in range(epochs.MOST_EPOCHS):
        one = epoch(number)
        assert one.length <= (one.digits.base**one.digits.height - 1) // 2
        assert one.digits.nodes(one.length) <= 3
        assert 0.6 <= Fraction(one.length, 13 * 4**number) <= 1.7
    assert sum(epoch(number).length for number in range(epochs.MOST_EPOCHS)) > 2**61


def test_the_first_epochs_are_those_of_the_theory():
    found = [(one.length, one.digits.height, one.digits.base) for one in map(epoch, range(10))]
    assert found == [
        *((11, 2, 11), (49, 3, 7), (169, 3, 13), (686, 4, 7), (2197, 4, 13), (13122, 5, 9)),
        *((57122, 5, 13), (130321, 5, 19), (742586, 6, 13), (2476099, 6, 19)),
    ]


@pytest.mark.parametrize(("number", "degree"), [(1, 1), (2, 1), (13, 2), (832, 2), (2**70, 5)])
def test_roots_are_rounded_to_the_nearest(number, degree):
    found = epochs._rounded_root(number, degree)
    assert (2 * found - 1) ** degree <= number * 2**degree < (2 * found + 1) ** degree


def test_errors_are_those_of_the_nodes():
    """Each step by itself."""
    variances, before, steps = [], 0, 300
    for one in map(epoch, range(4)):
        node = 2 * one.digits.height**2
        variances += [before + node * one.digits.nodes(at) for at in range(1, one.length + 1)]
        before = variances[-1]
    found = oc.streams.counter_rmse(steps, PURE, endless=True)
    assert found == pytest.approx(math.sqrt(np.mean(variances[:steps])), rel=1e-12)


def test_the_noise_of_a_node_grows_with_the_levels(monkeypatch):
    scales = []

    class Kept:
        def __init__(self, scale, laplace):
            assert laplace
            scales.append(scale)

        def draw(self):
            return 0

    monkeypatch.setattr(epochs, "NodeNoise", Kept)
    prefix = EpochsPrefix(0.1)
    prefix.update_all(np.ones(300, dtype=np.int64))
    assert prefix.total() == 300
    for scale, number in zip(scales, range(4), strict=True):
        height = epoch(number).digits.height
        assert height * Fraction(0.1) <= Fraction(scale) < height * Fraction(0.1) * (1 + 2**-50)


@pytest.mark.parametrize("ask", [1, 3, 1000])
def test_items_come_one_by_one_or_together(monkeypatch, ask):
    """The same nodes are released, whenever sums are asked for."""

    class Nothing:
        def __init__(self, scale, laplace):
            pass

        def draw(self):
            return 0

    monkeypatch.setattr(epochs, "NodeNoise", Nothing)
    items = np.arange(400) % 7
    one_by_one, together = EpochsPrefix(1.0), EpochsPrefix(1.0)
    for place, total in enumerate(accumulate(items.tolist()), 1):
        one_by_one.update(int(items[place - 1]))
        if place % ask == 0:
            assert one_by_one.total() == total
    together.update_all(items[:123])
    together.update_all(items[123:])
    assert together.total() == one_by_one.total() == items.sum()
    assert together.steps == one_by_one.steps == 400


@pytest.mark.parametrize("skipped", [0, *slow([1, 3])])
def test_an_adversary_gains_what_one_release_loses(bits, modular, short, skipped):
    """All adversaries who choose both streams adaptively, within and across epochs."""
    counter = oc.m.make_counter(*bits, PURE, scale=0.5)

    def spawn():
        handle = counter([])
        handle.update_all([None] * skipped)
        return handle

    found = verify.continual_epsilon([modular(spawn)], (None, 1), verify.events_differ(1), 2)
    assert 0.45 * counter.map(1) < found <= counter.map(1) + 1e-9


def test_noise_that_is_drawn_anew_for_a_finished_epoch_is_caught(bits, modular, short, monkeypatch):
    counter = oc.m.make_counter(*bits, PURE, scale=0.5)

    def forgetful(self):
        if not self._left:
            self._before, number = self._before + self._tree._sum, self._number
            for _ in range(epoch(number).digits.nodes(epoch(number).length)):
                self._before += self._tree._noise._draw()
            self._open(number + 1)

    monkeypatch.setattr(EpochsPrefix, "_next", forgetful)
    law = modular(lambda: counter([]))
    assert verify.continual_epsilon([law], (None, 1), verify.events_differ(1), 2) > 2.5
