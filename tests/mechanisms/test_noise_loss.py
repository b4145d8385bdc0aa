"""What one person and a group lose: exact, and never below what OpenDP's noise loses."""

from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, UnsupportedMeasureError
from opendp_concurrent.measures.opendp import NoiseLoss
from opendp_concurrent.mechanisms.individual import noise_loss

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def test_each_measure_has_its_noise():
    assert noise_loss(PURE) == NoiseLoss(1, Fraction(1))
    assert noise_loss(ZCDP) == NoiseLoss(2, Fraction(1, 2))
    assert noise_loss(oc.fixed_renyi_divergence(alpha=2.5)) == NoiseLoss(2, Fraction(5, 4))
    assert noise_loss(PURE).is_laplace
    assert not noise_loss(ZCDP).is_laplace


def test_check_values():
    third = Fraction(1, 3)
    assert noise_loss(PURE).of(third, 0.25) == Fraction(4, 3)
    assert noise_loss(PURE).of(-Fraction(0), 2.0) == 0
    assert noise_loss(ZCDP).of(Fraction(3), 2.0) == Fraction(9, 8)
    assert noise_loss(ZCDP).of(Fraction(1), 0.1) == 1 / (2 * Fraction(0.1) ** 2)
    assert noise_loss(oc.fixed_renyi_divergence(alpha=8.0)).of(Fraction(3), 2.0) == 9


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1.0, 7.7, 1e6])
@pytest.mark.parametrize("shift", [0, 1, 2, 1000])
def test_it_is_the_loss_of_opendp_s_noise(scale, shift):
    """OpenDP's map is rounded up from the same number."""
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    laplace = dp.m.make_laplace(*space, scale).map(shift)
    gaussian = dp.m.make_gaussian(*space, scale).map(shift)
    for found, measure in ((laplace, PURE), (gaussian, ZCDP)):
        exact = noise_loss(measure).of(Fraction(shift), scale)
        assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 2**45))


def test_a_group_is_never_below_the_exact_bound():
    loss = noise_loss(PURE)
    for d_out in (0.1, 1 / 3, 1.0, 5e-324, 1e300):
        for people in (0, 1, 2, 3, 10, 2**32 - 1):
            for one, power in ((loss, 1), (noise_loss(ZCDP), 2)):
                exact = Fraction(d_out) * people**power
                found = one.of_group(people, d_out)
                assert found >= exact
                assert found == float("inf") or Fraction(found) <= exact * (1 + Fraction(1, 2**52))
    assert loss.of_group(3, 0.1) == 0.30000000000000004
    assert noise_loss(ZCDP).of_group(3, 0.5) == 4.5


def test_other_measures_are_refused():
    for measure in (
        dp.renyi_divergence(),
        dp.approximate(PURE),
        dp.approximate(ZCDP),
        oc.gaussian_tradeoff(),
        oc.tradeoff(),
        oc.truncated_concentrated_divergence(omega=4.0),
    ):
        with pytest.raises(UnsupportedMeasureError, match="Gaussian noise; build for one of these"):
            noise_loss(measure)
    with pytest.raises(InvalidTypeError, match="^output_measure must be a measure"):
        noise_loss("pure")
