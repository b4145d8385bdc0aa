"""Pairs that were written down as outcomes are computed by the formulas that they came from."""

import numpy as np
import pytest

from opendp_concurrent.fdp.discrete_gaussian import discrete_gaussian
from opendp_concurrent.fdp.finite import Finite, response
from opendp_concurrent.fdp.forms import recognised
from opendp_concurrent.fdp.laplace import laplace


def written(pair):
    """What is read from a ledger: the fields of a pair."""
    names = ("infinite", "never", "mass_error", "loss_error", "symmetric", "limit", "slack")
    fields = {name: getattr(pair, name) for name in (*names, "gaussian")}
    read = Finite(pair.losses.copy(), pair.masses.copy(), **fields)
    assert read == pair
    assert read.form is None
    return read


@pytest.mark.parametrize("seed", range(5))
def test_discrete_gaussians_and_laplace_noise_on_grids_are_recognised(seed):
    generator = np.random.default_rng(seed)
    for _ in range(8):
        scale, shift = float(generator.uniform(1.0, 60.0)), int(generator.integers(1, 6))
        pair = discrete_gaussian(scale, shift)
        assert recognised(written(pair)).form == pair.form
        pair = laplace(float(generator.uniform(0.01, 5.0)), float(generator.integers(2, 60)))
        assert recognised(written(pair)).form == pair.form


@pytest.mark.parametrize("scale", [1.5, 3.0, 6.75, 7.75])  # roots that are rounded the other way
def test_a_scale_is_found_to_the_last_bit(scale):
    assert recognised(written(discrete_gaussian(scale, 1))).form.scale == scale


def test_other_pairs_stay_as_they_are():
    for pair in (
        response(0.5),
        discrete_gaussian(0.7, 1),
        Finite(np.array([-0.5, 0.0, 0.5]), np.array([0.2, 0.3, 0.5]), symmetric=True, limit=0.5),
        Finite(np.zeros(3), np.full(3, 1 / 3), symmetric=True),
    ):
        assert recognised(pair) == pair
        assert recognised(pair).form is None
    made = discrete_gaussian(4.0, 1)
    masses = made.masses.copy()
    masses[3] *= 1 + 1e-15
    other = Finite(
        made.losses,
        masses,
        **{
            name: getattr(made, name)
            for name in (
                "infinite",
                "never",
                "mass_error",
                "loss_error",
                "symmetric",
                "slack",
                "gaussian",
            )
        },
    )
    assert recognised(other).form is None
