"""The constructor: which noise under which measure, ceilings, and what is refused."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    NativeConstructorError,
    UnsupportedMeasureError,
)

from ..build import PURE, ZCDP, opened

WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
INTEGERS = dp.vector_domain(dp.atom_domain(T=int))


def count(space, *arguments):
    return space >> dp.t.then_count() >> oc.m.then_shared_release(*arguments)


@pytest.mark.parametrize(
    ("measure", "loss"),
    [
        (PURE, 0.75),
        (dp.approximate(PURE), (0.75, 0.0)),
        (ZCDP, 0.75 * math.tanh(0.375)),
    ],
    ids=str,
)
def test_a_ceiling_is_paid_once(space, measure, loss):
    made = count(space, measure, 0.75)
    assert made.map(1) == pytest.approx(loss)
    root = opened(made.map(1), measure)
    release = root(made)
    answers = {level: release(level) for level in (0.25, 0.75, 0.5)}
    assert {level: release(level) for level in answers} == answers
    assert root.privacy_loss() == made.map(1)
    with pytest.raises(InvalidValueError, match="at most 0.75, the ceiling"):
        release(0.8)
    assert release(0.75) == answers[0.75]


def test_a_ceiling_costs_what_laplace_noise_of_its_scale_costs(space):
    for measure in (ZCDP, oc.tradeoff(), dp.renyi_divergence()):
        ours = oc.m.make_shared_release(*WHOLE, measure, 0.5).map(3)
        noise = oc.m.make_certified_laplace(*WHOLE, 2.0, measure).map(3)
        if measure == dp.renyi_divergence():
            ours, noise = ours(4.0), noise(4.0)
        assert ours == noise
    assert oc.m.make_shared_release(*WHOLE, PURE, 0.5).accuracy(0.05) == 6.0


@pytest.mark.parametrize(
    ("measure", "levels"),
    [
        (oc.gaussian_tradeoff(), (0.5, 2.0)),
        (oc.fixed_renyi_divergence(4.0), (0.25, 1.0)),
        (oc.truncated_concentrated_divergence(8.0), (0.25, 1.0)),
        (dp.renyi_divergence(), (0.25, 1.0)),
    ],
    ids=str,
)
def test_gaussian_noise_under_the_relatives_of_zcdp(space, measure, levels):
    root = oc.make_concurrent_odometer(*space, measure)([1, 2, 3])
    release = root(count(space, measure))
    coarse, fine = map(release, levels)
    assert release(levels[0]) == coarse != "an answer"
    assert release(levels[1]) == fine
    both = root.privacy_loss(1)
    one = oc.m.make_certified_gaussian(*WHOLE, (0.5 / levels[1]) ** 0.5, measure).map(1)
    if measure == dp.renyi_divergence():
        both, one = both(4.0), one(4.0)
    if isinstance(both, oc.TruncatedConcentrated):
        both, one = both.rho, one.rho
    assert both == pytest.approx(one)


def test_what_is_refused(space):
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with pytest.raises(InvalidTypeError, match="input_domain .* must be of integers"):
        oc.m.make_shared_release(*floats, PURE)
    with pytest.raises(NativeConstructorError):
        oc.m.make_shared_release(INTEGERS, dp.l2_distance(T=int), PURE)
    with pytest.raises(NativeConstructorError):
        oc.m.make_shared_release(*space, PURE)  # rows are no query
    with pytest.raises(UnsupportedMeasureError, match="ceiling must be given under f-DP"):
        oc.m.make_shared_release(*WHOLE, oc.tradeoff())
    with pytest.raises(UnsupportedMeasureError, match="not offered for vectors of integers"):
        oc.m.make_shared_release(INTEGERS, dp.l2_distance(T=float), oc.gaussian_tradeoff())
    for ceiling in (2.0**-31, 2.0**21):
        with pytest.raises(InvalidValueError, match="ceiling .* 2\\^-30"):
            oc.m.make_shared_release(*WHOLE, PURE, ceiling)
    for ceiling in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidValueError, match="ceiling"):
            oc.m.make_shared_release(*WHOLE, PURE, ceiling)


def test_a_release_has_no_bound_of_its_own(space):
    made = count(space, PURE)
    for bound in (
        lambda: oc.make_concurrent_filter(made, 1, 1.0),
        lambda: oc.c.make_limited(made, 1, 1.0, label="a"),
    ):
        with pytest.raises(InvalidTypeError, match="shared release"):
            bound()
