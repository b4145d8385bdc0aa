"""A mechanism is certified by its own bound where it has one, else by a conversion."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedMeasureError
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.zero_concentrated import ZERO_CONCENTRATED_DIVERGENCE
from opendp_concurrent.mechanisms.noise import best_known, certify
from opendp_concurrent.queryables.named_queries import Accuracy, of_one

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SPACE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ACCURACY = Accuracy("Laplace", 2.0, of_one(lambda beta: 2.0))


@pytest.fixture
def noise():
    dp.enable_features("contrib", "honest-but-curious")
    return dp.m.make_laplace(*SPACE, 2.0)


def halved():
    return lambda loss: loss / 2


def test_its_own_bound_goes_first(noise):
    certified = certify(noise, ZCDP, {ZERO_CONCENTRATED_DIVERGENCE: halved}, ACCURACY)
    assert certified.map(1) == 0.25
    assert certified.output_measure == ZCDP


def test_without_a_bound_of_its_own_it_is_converted(noise):
    assert certify(noise, ZCDP, {}, ACCURACY).map(1) == oc.c.cast(noise, ZCDP).map(1)
    with pytest.raises(UnsupportedMeasureError):
        certify(oc.c.cast(noise, ZCDP), PURE, {}, ACCURACY)


def test_a_bound_under_another_measure_is_used_only_where_nothing_is_lost():
    losses = {ZERO_CONCENTRATED_DIVERGENCE: halved}
    assert best_known(PURE, losses) is None
    assert best_known(oc.gaussian_tradeoff(), {MAX_DIVERGENCE: halved}) is None
    assert best_known(ZCDP, losses)(1.0) == 0.5
