"""Noise on integers, with sums beyond 64 bits."""

import opendp.prelude as dp
import pytest

from opendp_concurrent.mechanisms.individual import LARGEST_SUM, IntegerNoise, noise_loss


@pytest.mark.parametrize("measure", [dp.max_divergence(), dp.zero_concentrated_divergence()])
def test_a_sum_is_clamped_and_noise_is_drawn_each_time(measure):
    sure = IntegerNoise(noise_loss(measure), 2.0**-10)
    found = [sure.add(total) for total in (0, -5, 2**70, -(2**70))]
    assert found == [0, -5, LARGEST_SUM, -LARGEST_SUM]
    noisy = IntegerNoise(noise_loss(measure), 2.0**40)
    assert len({noisy.add(7) for _ in range(5)}) == 5
