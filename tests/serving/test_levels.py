"""What is launched for a level, and how levels of Gaussian noise are added up."""

import math
from itertools import pairwise

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.queryables.data import seal
from opendp_concurrent.serving.levels import GaussianLevels, LaplaceLevels, units_of

from ..build import PURE, ZCDP

WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)


def levels_of(kind, measure, space=WHOLE):
    levels = kind(space, composition_measure(measure))
    return levels, seal(levels)


def test_steps_of_laplace_levels_add_up_to_the_finest_one_exactly():
    for measure in (PURE, dp.approximate(PURE)):
        levels, own = levels_of(LaplaceLevels, measure)
        total = 0.0
        for level in (0.1, 0.25, 1 / 3, 0.9, 7.7):
            step = levels.launch(units_of(level), own).map(3)
            if measure != PURE:
                step, delta = step
                assert delta == 0.0
            total += step
            levels.keep(units_of(level), None)
            assert total == 3 * units_of(level) * 2.0**-30


def gaussian(answers, shares=(0.05, 0.1, 0.35), measure=ZCDP, space=WHOLE):
    """Levels that launched, and the prices of their launches."""
    levels, own = levels_of(GaussianLevels, measure, space)
    prices, level = [], 0.0
    for answer, share in zip(answers, shares, strict=True):
        level += share
        prices.append(levels.launch(units_of(level), own).map(1))
        levels.keep(units_of(level), answer)
    return levels, prices


def test_gaussian_levels_cost_at_most_their_steps():
    _, prices = gaussian([0, 0, 0])
    before = 0
    for level, price in zip((0.05, 0.15, 0.5), prices, strict=True):
        step = (units_of(level) - before) * 2.0**-30
        assert step * (1 - 1e-11) < price <= step
        before = units_of(level)


def test_gaussian_answers_are_means_weighted_by_precision():
    levels, _ = gaussian([10, 40, 20])
    assert levels.at(units_of(0.05)) == 10
    assert levels.at(units_of(0.16)) == pytest.approx((10 * 1 + 40 * 2) / 3)
    assert levels.at(units_of(0.5)) == pytest.approx((10 * 1 + 40 * 2 + 20 * 7) / 10)
    assert levels.at(units_of(0.1)) == 10  # the coarser one of two
    with pytest.raises(InvalidValueError, match="below that of the first .* level 0.04"):
        levels.check(units_of(0.01))
    vectors, _ = gaussian([[10, 0], [40, 0], [20, 1]], space=ROWS)
    assert vectors.at(units_of(0.5)) == [pytest.approx(23), pytest.approx(0.7)]


def test_a_mean_has_the_variance_of_one_release_at_the_sum():
    """Of each of 2,000 coordinates of one release."""
    release = oc.m.make_shared_release(*ROWS, ZCDP)([0] * 2000)
    for level in (0.05, 0.125, 0.5):
        variance = sum(one**2 for one in release(level)) / 2000
        assert variance == pytest.approx(1 / (2 * level), rel=0.2)


def test_errors_are_within_the_accuracy():
    levels, _ = levels_of(GaussianLevels, ZCDP)
    bounds = [levels.accuracy(WHOLE[0], units_of(0.5)).at(beta, 1) for beta in (0.5, 0.05, 1e-9)]
    for beta, bound in zip((0.5, 0.05, 1e-9), bounds, strict=True):
        assert bound == pytest.approx(math.sqrt(2 * math.log(2 / beta)))
    assert all(one < other for one, other in pairwise(bounds))
    laplace, _ = levels_of(LaplaceLevels, PURE)
    assert laplace.accuracy(WHOLE[0], units_of(0.5)).at(0.05, 1) == 6.0
