"""A training loop of jax_privacy: its events are read, and agree with its own accountant."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedEventError

pytest.importorskip("jax_privacy", reason="run by hand, in an environment with jax-privacy")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

import dp_accounting
from dp_accounting.pld import PLDAccountant
from jax_privacy.experimental import accounting, execution_plan

EPSILON, DELTA, STEPS = 1.0, 1e-5, 60
SPECIAL = dp_accounting.NeighboringRelation.REPLACE_SPECIAL  # of plans: a record becomes empty


def configure(bands, **options):
    return execution_plan.BandMFExecutionPlanConfig.default(
        num_bands=bands, iterations=STEPS, sampling_prob=0.1 * bands, **options
    )


@pytest.mark.parametrize("bands", [1, 2, 4])
def test_a_plan_has_the_epsilon_that_it_was_calibrated_for(bands):
    plan = configure(bands, epsilon=EPSILON, delta=DELTA).plan
    ours = oc.fdp.from_dp_event(plan.dp_event, SPECIAL)
    theirs = PLDAccountant(SPECIAL).compose(plan.dp_event).get_epsilon(DELTA)
    assert theirs == pytest.approx(EPSILON, rel=1e-2)
    assert ours.epsilon(DELTA) == pytest.approx(theirs, rel=1e-2)


EVENTS = {
    "DP-SGD": lambda: accounting.dpsgd_event(1.1, STEPS, sampling_prob=0.02),
    "banded": lambda: accounting.amplified_bandmf_event(2.0, STEPS, sampling_prob=0.1, num_bands=4),
}


@pytest.mark.parametrize("name", EVENTS)
def test_events_agree_with_the_accountant_of_dp_accounting(name):
    event = EVENTS[name]()
    theirs = PLDAccountant().compose(event).get_epsilon(DELTA)
    assert oc.fdp.from_dp_event(event).epsilon(DELTA) == pytest.approx(theirs, rel=1e-2)


def test_an_event_that_is_not_known_is_refused():
    event = accounting.truncated_dpsgd_event(
        1.1, STEPS, sampling_prob=0.02, num_examples=1_000, truncated_batch_size=40
    )
    with pytest.raises(UnsupportedEventError):
        oc.fdp.from_dp_event(event)


def test_a_training_and_counts_share_a_budget():
    """One bound for all, below the sum of two."""
    event = configure(2, epsilon=EPSILON, delta=DELTA).plan.dp_event
    counts = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(10.0), 20)
    whole = dp_accounting.ComposedDpEvent([event, counts])
    trained, asked, both = (oc.fdp.from_dp_event(one, SPECIAL) for one in (event, counts, whole))
    assert trained.epsilon(DELTA) < both.epsilon(DELTA)
    assert both.epsilon(DELTA) < trained.epsilon(DELTA / 2) + asked.epsilon(DELTA / 2)
