"""Accounting rules for (ε, δ): published values, the choice among them, odometer and filter."""

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE

APPROXIMATE = dp.approximate(dp.max_divergence())
RULES = [
    oc.accumulators.basic(),
    oc.accumulators.advanced(1e-6),
    oc.accumulators.zcdp(1e-6),
    oc.accumulators.renyi(22.5, 1e-6),
    oc.accumulators.either(
        oc.accumulators.basic(), oc.accumulators.zcdp(5e-7), oc.accumulators.renyi(22.5, 4e-7)
    ),
]
every = pytest.mark.parametrize("rule", RULES, ids=repr)


class Unlimited:
    """A continuation rule that always continues."""

    start = 0

    def after(self, state, d_mid):
        return state

    def continues(self, state, d_out):
        return True


def launch_of(space, epsilon, delta=0.0):
    return dp.m.make_user_measurement(
        *space, APPROXIMATE, len, lambda d_in: (epsilon * d_in, delta * d_in)
    )


@pytest.mark.parametrize(
    ("rule", "d_out", "epsilon", "launches"),
    [
        (oc.accumulators.basic(), (1.0, 1e-6), 0.01, 99),  # a hundred doubles 0.01 exceed 1
        (oc.accumulators.advanced(1e-6), (1.0, 1e-6), 0.1, 3),
        (oc.accumulators.advanced(1e-6), (1.0, 1e-6), 0.01, 349),
        (oc.accumulators.zcdp(1e-6), (1.0, 1e-6), 0.01, 487),
        (oc.accumulators.renyi(22.2, 1e-6), (1.0, 1e-6), 0.01, 490),
        (oc.accumulators.best_rule((1.0, 1e-6), [(0.01, 0.0)]), (1.0, 1e-6), 0.01, 490),
    ],
    ids=repr,
)
def test_published_numbers_of_launches_are_admitted_for_real(space, rule, d_out, epsilon, launches):
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    root, one = oc.make_concurrent_filter(odometer, 1, d_out)([1, 2]), launch_of(space, epsilon)
    for _ in range(launches):
        assert root(one) == 2
    with pytest.raises(BudgetExceededError):
        root(one)
    assert oc.accumulators.launches_admitted(rule, d_out, [(epsilon, 0.0)]) == launches


def test_published_losses():
    empty = oc.accumulators.advanced(1e-6).start(None)
    assert empty.after((0.1, 0.0), 10).loss[0] == pytest.approx(1.7122581363, abs=1e-10)
    assert empty.after((0.1, 0.0), 100).loss[0] == pytest.approx(5.7565217698, abs=1e-10)
    assert oc.accumulators.advanced(1e-6).largest(1.0) == pytest.approx(0.0349378095, abs=1e-10)
    assert oc.accumulators.zcdp(1e-6).largest(1.0) == pytest.approx(0.0243559704, abs=1e-10)
    assert oc.accumulators.zcdp(1e-5).largest(1.0) == pytest.approx(0.0305565952, abs=1e-10)
    assert oc.accumulators.zcdp(1e-6).largest(3.0) == pytest.approx(0.1850698407, abs=1e-10)


@every
@given(
    losses=st.lists(st.tuples(st.floats(0.0, 0.5), st.sampled_from([0.0, 1e-9, 1e-8])), max_size=6),
    epsilon=st.floats(0.01, 3.0),
)
@settings(max_examples=4)
def test_odometer_and_filter_agree_at_the_boundary(rule, losses, epsilon):
    """Lemma 2.19: a filter admits a launch exactly if the odometer would say at most d_out."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    d_out = (epsilon, 2e-6)
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    told, limited = odometer([1]), oc.make_concurrent_filter(odometer, 1, d_out)([1])
    for loss in losses:
        one = launch_of(space, *loss)
        after = told.loss_after([one], 1)
        fits = after[0] <= d_out[0] and after[1] <= d_out[1]
        if fits:
            limited(one)
            told(one)
            assert limited.privacy_loss() == told.privacy_loss(1) == after
        else:
            with pytest.raises(BudgetExceededError) as refused:
                limited(one)
            assert refused.value.spent == told.privacy_loss(1)
            assert refused.value.asked == loss
    remaining = limited.remaining()
    if limited.privacy_loss() != (0.0, 0.0):
        limited(launch_of(space, *remaining))


@every
def test_losses_at_other_distances(space, rule):
    root = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)([1])
    assert root.privacy_loss(1) == root.privacy_loss(3) == (0.0, 0.0)
    for epsilon, delta in ((0.125, 0.0), (0.25, 1e-9), (0.125, 0.0)):
        root(launch_of(space, epsilon, delta))
    for d_in in (1, 2, 3):
        start = rule.start(APPROXIMATE_MAX_DIVERGENCE)
        expected = start.after((0.125 * d_in, 0.0), 2).after((0.25 * d_in, 1e-9 * d_in)).loss
        assert root.privacy_loss(d_in) == expected
    assert root.privacy_loss(2)[0] > root.privacy_loss(1)[0]


def test_a_child_odometer_is_charged_by_the_rule_of_each_ancestor(space):
    def odometer(rule):
        return oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)

    root = odometer(oc.accumulators.advanced(1e-6))([1, 2])
    child = root(odometer(oc.accumulators.basic()))
    for _ in range(10):
        child(launch_of(space, 0.125))
    assert child.privacy_loss(1) == (1.25, 0.0)
    assert (
        root.privacy_loss(1)
        == oc.accumulators.advanced(1e-6).start(None).after((0.125, 0.0), 10).loss
    )


@every
def test_the_rule_is_part_of_the_identity(space, rule):
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    assert repr(rule) in repr(odometer)
    assert repr(rule) in repr(oc.make_concurrent_filter(odometer, 1, (1.0, 1e-5)))
    assert repr(rule) in repr(odometer([1]))
    assert eval(repr(rule), vars(oc.accumulators)) == rule
    assert sum(rule == other for other in RULES) == 1


# --- bad input ----------------------------------------------------------------------------------


def test_rules_are_combined_with_rules_that_have_a_slack():
    either, own = oc.accumulators.either, oc.accumulators.from_rule(Unlimited())
    basic = oc.accumulators.basic()
    for rules in ((), (basic,), (basic, 3), (own, basic)):
        with pytest.raises(InvalidTypeError, match="^rules"):
            either(*rules)
    with pytest.raises(InvalidTypeError, match="^accumulator must be one of"):
        oc.accumulators.launches_admitted(3, (1.0, 0.1), [(0.1, 0.0)])
    with pytest.raises(InvalidTypeError, match="^rule must have"):
        oc.accumulators.from_rule(3)


def test_a_rule_for_another_measure_is_refused(space):
    for measure in (dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())):
        with pytest.raises(UnsupportedMeasureError, match="^accumulator .* supports Approximate"):
            oc.make_concurrent_odometer(*space, measure, accumulator=oc.accumulators.zcdp(1e-6))
    with pytest.raises(UnsupportedMeasureError, match="whose distance is one number"):
        oc.make_concurrent_odometer(
            *space, APPROXIMATE, accumulator=oc.accumulators.from_rule(Unlimited())
        )
    for wrong in (3, "zcdp", oc.accumulators.zcdp):
        with pytest.raises(InvalidTypeError, match="^accumulator must be one of oc.accumulators"):
            oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=wrong)


def test_a_bound_below_the_slack_is_refused(space):
    odometer = oc.make_concurrent_odometer(
        *space, APPROXIMATE, accumulator=oc.accumulators.zcdp(1e-6)
    )
    with pytest.raises(InvalidValueError, match=r"^d_out\[1\] .1e-07. must be at least the slack"):
        oc.make_concurrent_filter(odometer, 1, (1.0, 1e-7))
    oc.make_concurrent_filter(odometer, 1, (1.0, 1e-6))
