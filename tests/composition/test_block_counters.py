"""Counters in two limbs, against exact integers."""

from fractions import Fraction

import numpy as np
import pytest

from opendp_concurrent.composition.block_totals import BITS, Counters
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures.sums import PairSum, ScalarSum, SquareSum

RNG = np.random.default_rng(5)


def launched(counters, places, d_mid):
    counters.grow(max(places) + 1)
    after = counters.after(counters.read(places), d_mid)
    if not isinstance(after, tuple):
        counters.write(places, after)
    return after


@pytest.mark.parametrize("start", [ScalarSum(), SquareSum()], ids=["sum", "squares"])
@pytest.mark.parametrize("d_out", [1.0, 0.7, 1e-200, 3e300, 5e-324, 0.0])
def test_totals_are_those_of_the_accumulator(start, d_out):
    counters, exact = Counters(start, d_out), [start] * 8
    for _ in range(200):
        places = np.unique(RNG.integers(0, 8, size=3))
        d_mid = float(d_out * RNG.integers(1, 2**20) / 2**24)
        refused = [at for at, p in enumerate(places) if not exact[p].after(d_mid).within(d_out)]
        found = launched(counters, places, d_mid)
        if refused:
            assert found[0] == refused[0]
            assert found[1].spent == exact[places[refused[0]]].loss
            assert found[1].remaining == exact[places[refused[0]]].remaining(d_out)
        else:
            for place in places:
                exact[place] = exact[place].after(d_mid)
    for row, one in zip(counters.read(range(8)), exact, strict=True):
        found = counters.accumulator(row)
        if type(start) is ScalarSum:
            assert found == one
        else:  # squares have twice the digits: each was rounded up by less than a quantum
            assert one.units <= found.units
            assert (
                found.units - one.units
                <= 200 * Fraction(1, 2 ** (BITS - 1)) * Fraction(d_out) ** 2 * 4**1074
            )


def test_pairs_are_refused_by_either_component():
    counters = Counters(PairSum(), (1.0, 2.0**-20))
    assert not isinstance(launched(counters, [0], (0.75, 0.0)), tuple)
    assert not isinstance(launched(counters, [1], (0.0, 0.75 * 2.0**-20)), tuple)
    assert launched(counters, [0, 1], (0.5, 0.0))[0] == 0
    assert launched(counters, [0, 1], (0.0, 0.5 * 2.0**-20))[0] == 1
    assert not isinstance(launched(counters, [0, 1], (0.25, 0.25 * 2.0**-20)), tuple)
    assert launched(counters, [0], (0.0, 0.0)) is not None
    assert counters.accumulator(counters.read([0])[0]).loss == (1.0, 0.25 * 2.0**-20)


def test_losses_are_exact_from_2_to_the_minus_68_and_rounded_up_below():
    counters = Counters(ScalarSum(), 1.0)
    launched(counters, [0], 2.0**-68 * (1 + 2.0**-52))
    assert (
        counters.accumulator(counters.read([0])[0]).units
        == ScalarSum().after(2.0**-68 * (1 + 2.0**-52)).units
    )
    tiny = 2.0**-130
    for _ in range(5):
        launched(counters, [1], tiny)
    loss = Fraction(counters.accumulator(counters.read([1])[0]).loss)
    assert 5 * Fraction(tiny) <= loss <= 5 * Fraction(2) ** -(BITS - 1)


def test_carries_cross_the_limbs():
    counters = Counters(ScalarSum(), 1.0)
    step = 2.0**-60 - 2.0**-113  # all ones in the low limb
    exact = ScalarSum()
    for _ in range(100):
        launched(counters, [0], step)
        exact = exact.after(step)
    assert counters.accumulator(counters.read([0])[0]) == exact


@pytest.mark.parametrize("d_out", [1.0, 0.7])
def test_a_full_budget_admits_not_even_a_tiny_loss(d_out):
    counters = Counters(ScalarSum(), d_out)
    launched(counters, [0], d_out)
    for tiny in (2.0**-70, 5e-324):
        assert isinstance(launched(counters, [0], tiny), tuple)
    assert not isinstance(launched(counters, [0], 0.0), tuple)


@pytest.mark.parametrize("d_mid", [float("inf"), 1.5, 1e308])
def test_a_loss_above_the_bound_is_refused_by_the_first(d_mid):
    counters = Counters(ScalarSum(), 1.0)
    position, refusal = launched(counters, [2, 5], d_mid)
    assert (position, refusal.asked, refusal.remaining) == (0, d_mid, 1.0)


def test_what_is_no_loss_raises():
    counters = Counters(ScalarSum(), 1.0)
    for d_mid in (float("nan"), -0.5):
        with pytest.raises(InvalidValueError, match="d_mid"):
            launched(counters, [0], d_mid)
