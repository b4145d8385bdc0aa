"""Norms of a factorisation with one buffer, against sums over its columns."""

import numpy as np
import pytest

from opendp_concurrent.streams.factors import roots, squared_norm

DELTA, OMEGA = np.array([0.25]), np.array([0.125])


@pytest.mark.parametrize("horizon", [1, 2, 7, 100])
def test_the_squared_norm_is_that_of_the_column(horizon):
    column = [1.0, *(0.125 * 0.75**k for k in range(horizon - 1))]
    assert squared_norm(DELTA, OMEGA, horizon) == pytest.approx(np.square(column).sum(), rel=1e-12)


def test_the_norm_of_all_time_is_the_limit():
    assert squared_norm(DELTA, OMEGA) == pytest.approx(1 + 0.125**2 / (1 - 0.75**2), rel=1e-12)


def test_the_root_solves_the_secular_equation():
    (root,), (excess,) = roots(DELTA, OMEGA)
    assert root == pytest.approx(0.25 + 0.125)  # 1 + ω / (δ - λ) = 0
    assert excess == pytest.approx(0.125)
