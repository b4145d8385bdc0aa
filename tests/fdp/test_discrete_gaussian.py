"""The discrete Gaussian against itself, shifted: its outcomes are those of its definition."""

import math

import mpmath as mp
import numpy as np
import pytest

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.vertices import MOST, discrete_gaussian


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.5, 1), (2.0, 3), (4.0, 1)])
def test_masses_and_losses_are_those_of_the_definition(scale, sensitivity):
    pair = discrete_gaussian(scale, sensitivity)
    with mp.workdps(40):
        s, d = mp.mpf(scale), sensitivity
        reach = 40 * int(scale + 1) + d
        weights = {x: mp.exp(-(mp.mpf(x) ** 2) / (2 * s * s)) for x in range(-reach, reach + 1)}
        whole = mp.fsum(weights.values())
        exact = {(d - 2 * x) * d / (2 * s * s): one / whole for x, one in weights.items()}
        assert 0 < len(pair.losses) <= len(exact)
        for loss, mass in zip(pair.losses.tolist(), pair.masses.tolist(), strict=True):
            nearest = min(exact, key=lambda one, loss=loss: abs(one - loss))
            assert abs(nearest - loss) <= pair.loss_error
            assert abs(exact[nearest] - mass) <= pair.mass_error * exact[nearest]
        missing = 1 - mp.fsum(pair.masses.tolist())
        assert missing <= pair.infinite + 2 * pair.mass_error


def test_it_is_its_own_swap_and_increases():
    pair = discrete_gaussian(3.0, 2)
    assert pair.symmetric
    assert np.all(np.diff(pair.losses) > 0)


def test_a_gaussian_that_loses_as_much_is_known_for_scales_of_at_least_a_half():
    assert 1.0 <= discrete_gaussian(2.0, 1).gaussian <= 1.0 * (1 + 1e-15)
    assert discrete_gaussian(0.49, 1).gaussian == math.inf


def test_too_many_outcomes_are_refused_and_too_little_noise_is_none():
    with pytest.raises(InvalidValueError, match="too large for a list of outcomes"):
        discrete_gaussian(MOST / 60, 1)
    nothing = discrete_gaussian(1e-101, 1)
    assert (nothing.infinite, nothing.never) == (1.0, 1.0)
