"""Losses of a mechanism's parts: exact sums of what each part loses."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError
from opendp_concurrent.mechanisms.certified import composed, from_pure, laplace_loss, total

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
PARTS = [(0.1, 3), (0.25, 1), (1e-9, 10**9)]
EXACT = sum(Fraction(loss) * count for loss, count in PARTS)


def test_parts_add_up_and_are_rounded_up_once():
    measures = [PURE, ZCDP, oc.fixed_renyi_divergence(4.0)]
    for found in (total(PARTS), *(composed(measure, PARTS) for measure in measures)):
        assert Fraction(found) >= EXACT
        assert Fraction(math.nextafter(found, 0.0)) < EXACT


def test_parts_under_gaussian_dp_are_a_root_of_squares():
    assert composed(oc.gaussian_tradeoff(), [(3.0, 1), (1.0, 16)]) == 5.0


def test_no_parts_lose_nothing():
    assert composed(PURE, []) == total([]) == 0.0


def test_what_is_no_loss_is_refused():
    with pytest.raises(ConcurrentError):
        composed(PURE, [(-0.1, 1)])


def test_pure_losses_are_converted():
    assert from_pure(0.5, PURE) == 0.5
    assert from_pure(0.5, dp.approximate(PURE)) == (0.5, 0.0)
    assert from_pure(0.5, ZCDP) == pytest.approx(0.5 * math.tanh(0.25), rel=1e-14)


def test_laplace_noise_loses_its_shift_over_its_scale():
    assert laplace_loss(8.0, 3, PURE) == 0.375
    assert laplace_loss(8.0, 1, oc.tradeoff()) == oc.TradeoffFunction.pure(0.125)
