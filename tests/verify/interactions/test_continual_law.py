"""Laws of continual mechanisms: written down, or found by running them."""

import pytest

from opendp_concurrent import verify


def test_noise_is_that_of_the_clamped_distribution():
    for value in (0, 1, 3):
        geometric = verify.truncated_geometric(2.0, 3, 5)
        law = verify.clamped_noise(0, 4)
        assert [p for _, p in law(0, 2.0)] == pytest.approx(geometric.first, rel=1e-9)
        assert [p for _, p in law(3, 2.0)] == pytest.approx(geometric.second, rel=1e-9)
        assert sum(p for _, p in law(value, 2.0)) == pytest.approx(1.0)
