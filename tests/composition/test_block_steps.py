"""The budget of a block: its group privacy, and its composition over a unit, is within d_out."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.block_records import BlockSteps
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from opendp_concurrent.measures import composition_measure

dp.enable_features("contrib", "honest-but-curious")
PURE = composition_measure(dp.max_divergence())
ZCDP = composition_measure(dp.zero_concentrated_divergence())
GAUSSIAN = composition_measure(oc.gaussian_tradeoff())
APPROXIMATE_ZCDP = composition_measure(dp.approximate(dp.zero_concentrated_divergence()))


@pytest.mark.parametrize(
    ("measure", "factor", "units", "d_in", "share"),
    [
        (PURE, 1, False, 1, 1.0),
        (PURE, 2, False, 1, 0.5),
        (PURE, 1, False, 4, 0.25),
        (PURE, 4, True, 1, 0.25),
        (PURE, 2, True, 2, 0.25),
        (ZCDP, 2, False, 1, 0.25),
        (ZCDP, 2, True, 1, 0.5),
        (ZCDP, 2, True, 2, 0.125),
        (GAUSSIAN, 2, False, 2, 0.25),
        (GAUSSIAN, 4, True, 1, 0.5),
    ],
)
def test_a_share_and_its_loss(measure, factor, units, d_in, share):
    steps = BlockSteps(measure, factor, units)
    assert steps.share(d_in, 1.0) == share
    assert steps.loss(d_in, share) == 1.0
    assert steps.loss(0, share) == 0


def test_what_is_not_proven_is_refused():
    for d_in, error in (
        (0, InvalidValueError),
        (1.0, InvalidTypeError),
        (10**3, InvalidValueError),
    ):
        with pytest.raises(error, match="d_in|steps apart"):
            BlockSteps(PURE, 1, False).share(d_in, 1.0)
    with pytest.raises(UnsupportedMeasureError, match="2 steps apart"):
        BlockSteps(composition_measure(oc.fixed_renyi_divergence(4.0)), 1, False).share(2, 1.0)
    with pytest.raises(UnsupportedMeasureError, match="up to 2 blocks"):
        BlockSteps(APPROXIMATE_ZCDP, 2, True)
