"""What OpenDP composes itself, and what its odometers, filters and compositors charge and trust."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
ZCDP = dp.zero_concentrated_divergence()
RENYI = dp.renyi_divergence()
COMPOSED = {
    "pure": (PURE, 0.25, 1.0),
    "approximate": (dp.approximate(PURE), (0.25, 0.125), (1.0, 0.5)),
    "zCDP": (ZCDP, 0.25, 1.0),
    "approximate zCDP": (dp.approximate(ZCDP), (0.25, 0.125), (1.0, 0.5)),
}


@pytest.fixture
def odometer(space):
    return dp.c.make_fully_adaptive_composition(*space, PURE)


# --- what is composed -------------------------------------------------------------------------


@pytest.mark.parametrize("measure", COMPOSED)
def test_native_composition_adds_losses(space, user, measure):
    measure, share, four_shares = COMPOSED[measure]
    query = user(len, share, measure)
    odometer = dp.c.make_fully_adaptive_composition(*space, measure)
    compositor = dp.c.make_adaptive_composition(*space, measure, 1, [share] * 4)
    filter_ = dp.c.make_privacy_filter(odometer, 1, four_shares)
    assert compositor.map(1) == filter_.map(1) == four_shares
    assert dp.c.make_composition([query] * 4).map(1) == four_shares
    for mechanism in (odometer, compositor, filter_):
        root = mechanism([1, 2])
        assert [root(query) for _ in range(4)] == [2] * 4
        if mechanism is not compositor:
            assert root.privacy_loss(1) == four_shares


def test_a_native_odometer_adds_renyi_curves_order_by_order(space):
    root = dp.c.make_fully_adaptive_composition(*space, RENYI)([1])
    for share in (1.0, 2.0):
        root(
            dp.m.make_user_measurement(
                *space, RENYI, len, lambda d_in, share=share: lambda alpha: share * alpha * d_in
            )
        )
    assert root.privacy_loss(1)(3.0) == 9.0
    assert root.privacy_loss(2)(3.0) == 18.0


def test_a_native_compositor_refuses_renyi_shares(space):
    with pytest.raises(OpenDPException, match="failed to parse type"):
        dp.c.make_adaptive_composition(*space, RENYI, 1, [lambda alpha: alpha])


def test_there_is_no_approximate_renyi_divergence():
    with pytest.raises(OpenDPException, match="No match"):
        dp.approximate(RENYI)


@pytest.mark.parametrize(
    "measure",
    [dp.smoothed_max_divergence, lambda: dp.user_divergence("mine", 1.0)],
    ids=["smoothed", "user"],
)
def test_native_composition_refuses_smoothed_and_user_measures(space, user, measure):
    measure = measure()
    with pytest.raises(OpenDPException, match="No match"):
        dp.c.make_fully_adaptive_composition(*space, measure)
    with pytest.raises(OpenDPException, match="No match"):
        dp.c.make_composition([user(len, 0.0, measure)])
    with pytest.raises((OpenDPException, TypeError)):
        dp.c.make_adaptive_composition(*space, measure, 1, [1.0])


def test_noise_is_never_measured_in_renyi_divergence(space):
    count = space >> dp.t.then_count()
    with pytest.raises(OpenDPException, match="No match"):
        count >> dp.m.then_gaussian(scale=1.0, MO="RenyiDivergence")
    with pytest.raises(OpenDPException, match="output_measure must be"):
        count >> dp.m.then_noise(output_measure=RENYI, scale=1.0)


def test_the_map_of_a_user_measurement_may_return_a_renyi_curve(space):
    measurement = dp.m.make_user_measurement(
        *space, RENYI, len, lambda d_in: lambda alpha: alpha * d_in
    )
    assert measurement.map(2)(3.0) == 6.0


# --- what the odometer charges and believes ---------------------------------------------------


def test_a_native_odometer_charges_after_the_mechanism_has_run(odometer, user):
    root, losses = odometer([1]), []

    def fail(rows):
        losses.append(len(losses))
        raise ValueError("depends on the data")

    for _ in range(3):
        with pytest.raises(OpenDPException, match="depends on the data"):
            root(user(fail, 1.0))
    assert len(losses) == 3
    assert root.privacy_loss(1) == 0.0


def test_a_native_odometer_believes_a_negative_loss(odometer, user):
    root = odometer([1])
    root(user(len, 0.5))
    root(user(len, -5.0))
    assert root.privacy_loss(1) == -4.5


@pytest.mark.parametrize("bound", [-1.0, math.nan])
def test_a_native_filter_accepts_a_bound_that_is_none(odometer, bound):
    assert repr(dp.c.make_privacy_filter(odometer, 1, bound).map(1)) == repr(bound)


def test_a_native_compositor_accepts_a_negative_share(space):
    assert dp.c.make_adaptive_composition(*space, PURE, 1, [1.0, -3.0]).map(1) == -2.0


def test_ten_native_charges_of_a_tenth_exceed_one(odometer, user):
    root = odometer([1])
    for _ in range(10):
        root(user(len, 0.1))
    assert root.privacy_loss(1) > 1.0


# --- native filters ---------------------------------------------------------------------------


def test_a_native_filter_maps_distances_up_to_its_own(odometer):
    filter_ = dp.c.make_privacy_filter(odometer, 2, 1.0)
    assert [filter_.map(d_in) for d_in in (0, 1, 2)] == [1.0] * 3
    with pytest.raises(OpenDPException, match="must not be greater"):
        filter_.map(3)


def test_a_native_filter_runs_the_mechanism_that_it_refuses(odometer, user):
    root, ran = dp.c.make_privacy_filter(odometer, 1, 1.0)([1]), []
    with pytest.raises(OpenDPException, match="exhausted"):
        root(user(lambda rows: ran.append(rows), 5.0))
    assert ran == [[1]]


def test_a_refusal_ends_a_native_filter_for_good(odometer, user):
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    root(user(len, 0.25))
    assert root.privacy_loss(1) == 0.25
    for loss in (5.0, 0.25, 0.0):
        with pytest.raises(OpenDPException, match="exhausted"):
            root(user(len, loss))
    with pytest.raises(OpenDPException, match="exhausted"):
        root.privacy_loss(1)


def test_the_children_of_an_exhausted_native_filter_still_answer(space, odometer, user):
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    child = root(dp.c.make_adaptive_composition(*space, PURE, 1, [0.5]))
    with pytest.raises(OpenDPException, match="exhausted"):
        root(user(len, 5.0))
    assert child(user(len, 0.5)) == 1


@pytest.mark.parametrize("k", [7, 10, 11, 49])
def test_a_native_filter_refuses_the_last_of_k_times_one_kth(odometer, user, k):
    """opendp#2131, opendp#2789."""
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    share = user(len, 1 / k)
    for _ in range(k - 1):
        root(share)
    with pytest.raises(OpenDPException, match="exhausted"):
        root(share)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_a_native_filter_admits_the_last_of_k_times_one_kth_if_that_is_a_double(odometer, user, k):
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    assert [root(user(len, 1 / k)) for _ in range(k)] == [1] * k


def test_exact_sums_mend_some_of_the_last_queries_and_rounding_down_the_rest():
    over = [k for k in range(2, 101) if k * Fraction(1 / k) > 1]
    assert len(over) == 33
    assert {10, 11} <= set(over)
    assert not {7, 49} & set(over)


# --- native compositors -----------------------------------------------------------------------


def test_a_native_compositor_needs_a_share(space):
    with pytest.raises(OpenDPException, match="at least one element"):
        dp.c.make_adaptive_composition(*space, PURE, 1, [])


def test_a_native_compositor_consumes_nothing_at_a_refusal_and_ends_with_its_shares(space, user):
    root, ran = dp.c.make_adaptive_composition(*space, PURE, 1, [0.25])([1]), []
    for _ in range(2):
        with pytest.raises(OpenDPException, match="insufficient budget for query"):
            root(user(lambda rows: ran.append(rows), 0.5))
    assert ran == []
    assert root(user(len, 0.25)) == 1
    with pytest.raises(OpenDPException, match="out of queries"):
        root(user(len, 0.0))


def test_a_native_compositor_refuses_a_loss_that_is_larger_in_one_part_only(space, user):
    measure = dp.approximate(PURE)
    root = dp.c.make_adaptive_composition(*space, measure, 1, [(0.5, 1e-6)])([1])
    with pytest.raises(OpenDPException, match="unknown ordering"):
        root(user(len, (1.0, 0.0), measure))
    assert root(user(len, (0.5, 0.0), measure)) == 1


def test_a_native_filter_is_ended_by_a_loss_that_is_larger_in_one_part_only(space, user):
    measure = dp.approximate(PURE)
    odometer = dp.c.make_fully_adaptive_composition(*space, measure)
    root = dp.c.make_privacy_filter(odometer, 1, (0.5, 1e-6))([1])
    for loss in ((1.0, 0.0), (0.0, 0.0)):
        with pytest.raises(OpenDPException, match="unknown ordering"):
            root(user(len, loss, measure))


def test_native_composition_admits_no_loss_that_is_not_a_number(odometer, space, user):
    filter_ = dp.c.make_privacy_filter(odometer, 1, math.nan)
    compositor = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0])
    for mechanism, loss in ((filter_, 0.0), (compositor, math.nan)):
        with pytest.raises(OpenDPException, match="null"):
            mechanism([1])(user(len, loss))


def test_a_native_compositor_names_a_query_on_another_domain(space):
    root = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0])([1])
    with pytest.raises(OpenDPException, match="domains don't match"):
        root(dp.m.make_randomized_response_bool(0.6))
