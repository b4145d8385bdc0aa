"""Laws of continual mechanisms: written down, or found by running them."""

from math import exp

import pytest

from opendp_concurrent import verify


def test_noise_is_that_of_the_clamped_distribution():
    q, law = exp(-1 / 2.0), verify.clamped_noise(0, 4)
    for value in (0, 1, 3):
        inner = [(1 - q) / (1 + q) * q ** abs(j - value) for j in range(1, 4)]
        exact = [q**value / (1 + q), *inner, q ** (4 - value) / (1 + q)]
        assert [p for _, p in law(value, 2.0)] == pytest.approx(exact, rel=1e-9)
