"""Roundings in a stated direction."""

from math import nan

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.bounds import (
    ELEMENTARY,
    TINY,
    UNIT,
    probabilities,
    waves,
    waves_error,
)
from opendp_concurrent.fdp.finite import without_tiny_masses


def test_what_is_no_number_says_nothing():
    assert probabilities(nan, nan) == (0.0, 1.0)
    low, high = probabilities(np.array([nan, -1.0, 0.3]), np.array([0.5, nan, 2.0]))
    assert low.tolist() == [0.0, 0.0, 0.3]
    assert high.tolist() == [0.5, 1.0, 1.0]


def test_small_masses_count_at_a_larger_loss_or_as_infinite():
    losses = np.array([3.0, -2.0, 1.0, 2.0])
    kept, masses, lost = without_tiny_masses(losses, np.array([1e-310, 0.0, 0.5, 1e-305]))
    assert kept.tolist() == [1.0]  # -2 counts at 1
    assert masses.tolist() == [0.5]
    assert lost >= 2 * TINY  # 2 and 3 have nothing above
    assert without_tiny_masses(losses, np.full(4, 0.25))[2] == 0.0


def test_a_small_mass_below_another_small_one_is_not_dropped():
    _, masses, lost = without_tiny_masses(np.array([0.0, 1.0]), np.array([1e-305, 1e-299]))
    assert masses.tolist() == [1e-299]
    assert lost >= 1e-305


@pytest.mark.parametrize(("terms", "count"), [(3, 200), (700, 130), (1000, 1)])
def test_sums_of_waves_are_within_their_error(terms, count):
    draw = np.random.default_rng(terms)
    losses, weights = draw.normal(0.0, 2.0, terms), draw.dirichlet(np.ones(terms))
    for step in (0.37, -0.05):
        found = waves(losses, weights, step, count)
        assert found.shape == (count,)
        phase = abs(step) * count * float(np.max(np.abs(losses)))
        error = waves_error(terms) + 3 * ELEMENTARY + 4 * UNIT * phase
        with mp.workdps(30):
            for k in {0, 1, count // 2, count - 1} & set(range(count)):
                turns = [mp.expj(mpf(step) * k * mpf(one)) for one in losses.tolist()]
                exact = mp.fsum(mpf(w) * t for w, t in zip(weights.tolist(), turns, strict=True))
                assert abs(exact - mp.mpc(complex(found[k]))) <= error
