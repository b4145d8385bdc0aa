"""Noise for the nodes of a tree: of the right kind, clamped, and drawn ahead."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedMeasureError
from opendp_concurrent.streams.digits import (
    LARGEST_RELEASE,
    NodeNoise,
    is_laplace,
    noise_loss,
)

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3  # noise is 0 but once in e^1000


@pytest.mark.parametrize("laplace", [True, False])
def test_releases_are_clamped(laplace):
    noise = NodeNoise(TINY, laplace)
    assert noise.release(LARGEST_RELEASE + 1) == LARGEST_RELEASE
    assert noise.release(-LARGEST_RELEASE - 1) == -LARGEST_RELEASE


def test_draws_come_in_growing_batches_and_each_is_used_once(monkeypatch):
    sizes = []

    def invoke(measurement, pointer):
        size = measurement.input_domain.size
        sizes.append(size)
        return [1000 * len(sizes) + number for number in range(size)]

    monkeypatch.setattr("opendp_concurrent.mechanisms.noise._native.invoke", invoke)
    noise = NodeNoise(1.0, True)
    released = [noise.release(0) for _ in range(16 + 64 + 256 + 1)]
    assert sizes == [16, 64, 256, 256]
    assert len(set(released)) == len(released)


@pytest.mark.parametrize(("laplace", "variance"), [(True, 200.0), (False, 100.0)])
def test_noise_has_the_variance_of_its_kind(laplace, variance):
    """Seven deviations of the mean of 4,000 squares."""
    noise = NodeNoise(10.0, laplace)
    squares = [noise.release(0) ** 2 for _ in range(4000)]
    kurtosis = 6.0 if laplace else 3.0
    assert sum(squares) / 4000 == pytest.approx(variance, rel=7 * ((kurtosis - 1) / 4000) ** 0.5)


def test_the_kind_of_noise_is_that_of_the_measure():
    assert [is_laplace(one) for one in (PURE, dp.approximate(PURE))] == [True, True]
    gaussian = (ZCDP, dp.renyi_divergence(), oc.fixed_renyi_divergence(4.0), oc.gaussian_tradeoff())
    assert not any(is_laplace(one) for one in gaussian)
    for measure in (oc.tradeoff(), dp.approximate(ZCDP)):
        with pytest.raises(UnsupportedMeasureError, match="no noise of its own here"):
            is_laplace(measure)


def test_the_loss_is_that_of_a_shift():
    assert noise_loss(8.0, 2, PURE) == 0.25
    assert noise_loss(8.0, 2, ZCDP) == 4 / 128
    one_step_more = noise_loss(8.0, 1, oc.gaussian_tradeoff())
    assert 0.25 <= one_step_more <= 0.25 * (1 + 1e-14)
