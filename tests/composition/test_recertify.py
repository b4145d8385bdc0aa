"""The same function under another guarantee."""

import opendp.prelude as dp
import pytest

from opendp_concurrent.composition.casts import recertify
from opendp_concurrent.errors import ConcurrentError, InvalidValueError
from opendp_concurrent.measures.conversion import Profile

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def answering(space, loss):
    return dp.m.make_user_measurement(*space, PURE, len, loss, TO=int)


def test_the_function_stays_and_the_map_is_converted(space):
    made = recertify(answering(space, lambda d_in: 0.5 * d_in), ZCDP, lambda loss: 3 * loss)
    assert made.output_measure == ZCDP
    assert [made.map(d_in) for d_in in (0, 1, 2)] == [0.0, 1.5, 3.0]
    assert made([7, 8, 9]) == 3


@pytest.mark.parametrize("loss", [-0.5, float("nan")])
def test_what_is_no_loss_is_not_converted(space, loss):
    made = recertify(answering(space, lambda d_in: loss), ZCDP, lambda loss: 0.0)
    with pytest.raises(ConcurrentError):
        made.map(1)


def test_a_profile_becomes_one_of_opendp(space):
    measure = dp.smoothed_max_divergence()
    made = recertify(
        answering(space, float), measure, lambda loss: Profile(lambda epsilon: loss / 4)
    )
    assert made.map(2).delta(0.25) == 0.5
    again = recertify(made, measure, lambda profile: Profile(profile.delta))
    assert again.map(2).delta(0.25) == 0.5  # a profile is not checked as a number


def test_a_profile_is_asked_at_no_negative_epsilon():
    with pytest.raises(InvalidValueError, match="^epsilon"):
        Profile(lambda epsilon: 0.5)(-0.1)
