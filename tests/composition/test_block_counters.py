"""Counters in two limbs, against exact integers."""

from fractions import Fraction

import numpy as np
import pytest

from opendp_concurrent.composition.block_totals import BITS, Counters
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures.sums import ScalarSum, SquareSum

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


def test_what_is_no_loss_raises():
    counters = Counters(ScalarSum(), 1.0)
    for d_mid in (float("nan"), -0.5):
        with pytest.raises(InvalidValueError, match="d_mid"):
            launched(counters, [0], d_mid)
