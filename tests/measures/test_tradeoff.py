"""f-DP as a measure: compositor, filters, casts, and a pipeline against OpenDP's own accounting."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    UnsupportedMeasureError,
)

T = oc.TradeoffFunction
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
DATA = [1, 2, 3, 4]


def count(scale, measure=None):
    measure = oc.tradeoff() if measure is None else measure
    return (
        SPACE
        >> dp.t.then_count()
        >> oc.m.then_certified_laplace(scale=scale, output_measure=measure)
    )


def compositor(d_mids, **kwargs):
    return oc.make_concurrent_composition(*SPACE, oc.tradeoff(), 1, d_mids, **kwargs)


# --- the measure ---------------------------------------------------------------------------


def test_binary_search_finds_the_scale_of_a_trade_off_function():
    scale = dp.binary_search_param(count, d_in=1, d_out=T.gaussian(1.0))
    assert count(scale).map(1) <= T.gaussian(1.0)
    assert not count(scale * 0.999).map(1) <= T.gaussian(1.0)


def test_a_map_that_returns_no_function_is_refused_and_charges_nothing():
    domain, metric = SPACE
    liar = dp.m.make_user_measurement(
        domain, metric, oc.tradeoff(), lambda data: 0, lambda d_in: 0.5, TO=int
    )
    root = compositor([T.pure(1.0)])(DATA)
    with pytest.raises(PrivacyMapError, match="must be a TradeoffFunction, found float"):
        root(liar)
    assert root.remaining() == (T.pure(1.0),)


# --- the compositor ------------------------------------------------------------------------


def test_the_loss_of_a_compositor_is_the_tensor_product():
    measurement = compositor([T.pure(0.1), T.gaussian(0.5), T.pure(0.1)])
    assert measurement.map(1) == T.pure(0.1).power(2).compose(T.gaussian(0.5))
    root = measurement(DATA)
    first = root(compositor([T.pure(0.05)] * 2))
    assert root.remaining() == (T.gaussian(0.5), T.pure(0.1))
    assert isinstance(first(count(20.0)), int)
    assert isinstance(root(count(10.0)), int)
    assert isinstance(first(count(20.0)), int)  # interleaved
    with pytest.raises(BudgetExceededError):
        root(count(5.0))


def test_any_order_is_for_trade_off_functions():
    with pytest.raises(UnsupportedMeasureError, match="make_concurrent_filter"):
        oc.make_concurrent_composition(*SPACE, dp.max_divergence(), 1, [0.5], order="any")
    with pytest.raises(InvalidValueError, match="order"):
        compositor([T.pure(0.5)], order="none")


# --- losses chosen on the way --------------------------------------------------------------


@pytest.mark.parametrize(
    "accumulator",
    [
        None,
        oc.accumulators.basic(),
        oc.accumulators.advanced(1e-6),
        oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.zcdp(1e-6)),
    ],
)
def test_an_odometer_needs_a_rule_that_is_valid(accumulator):
    with pytest.raises(UnsupportedMeasureError, match=r"is not a bound .*docs/refused.rst"):
        oc.make_concurrent_odometer(*SPACE, oc.tradeoff(), accumulator=accumulator)


@pytest.mark.parametrize(
    "accumulator", [oc.accumulators.ladder(T.pure(0.1)), oc.accumulators.residue(1.0)]
)
def test_rules_for_functions_are_for_no_other_measure(accumulator):
    with pytest.raises(UnsupportedMeasureError, match="supports Tradeoff, but output_measure is"):
        oc.make_concurrent_odometer(*SPACE, dp.max_divergence(), accumulator=accumulator)


# --- casts ---------------------------------------------------------------------------------


def test_casts_to_functions_are_exact_where_the_measure_is_a_family():
    pure = dp.m.make_laplace(*REAL, scale=2.0)
    assert oc.c.cast(pure, oc.tradeoff()).map(1.0) == T.pure(0.5)
    approximate = dp.c.make_approximate(pure)
    assert oc.c.cast(approximate, oc.tradeoff()).map(1.0) == T.pure(0.5)
    gaussian = oc.m.make_certified_gaussian(*REAL, 2.0, oc.gaussian_tradeoff())
    assert oc.c.cast(gaussian, oc.tradeoff()).map(1.0) == T.gaussian(gaussian.map(1.0))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0])
def test_chords_of_a_profile_are_close_to_it_and_above_the_mechanism(epsilon):
    """They may be below it: a bound that is not convex in e^ε is better than it says."""
    gaussian = dp.m.make_gaussian(*REAL, scale=2.0)
    smoothed = oc.c.cast(gaussian, dp.smoothed_max_divergence())
    truth = T.gaussian(0.5).delta_bounds(epsilon).lower
    for under in (gaussian, smoothed):
        delta = oc.c.cast(under, oc.tradeoff()).map(1.0).delta(epsilon)
        assert truth <= delta <= smoothed.map(1.0).delta(epsilon) * 1.02


def test_renyi_and_truncated_losses_have_functions():
    for measure, orders in (
        (oc.fixed_renyi_divergence(8.0), None),
        (oc.truncated_concentrated_divergence(30.0), None),
        (dp.renyi_divergence(), [2, 4, 8, 16]),
    ):
        mechanism = oc.m.make_certified_gaussian(*REAL, 2.0, measure)
        function = oc.c.cast(mechanism, oc.tradeoff(), orders=orders).map(1.0)
        profile = oc.c.cast(mechanism, dp.smoothed_max_divergence(), orders=orders).map(1.0)
        for epsilon in (0.5, 2.0, 5.0):
            assert T.gaussian(0.5).delta_bounds(epsilon).lower <= function.delta(epsilon)
            assert function.delta(epsilon) <= profile.delta(epsilon) * 1.05 + 1e-9


def test_a_function_is_read_as_epsilon_and_delta():
    mechanism = oc.m.make_certified_laplace(*REAL, 1.0, oc.tradeoff())
    approximate = oc.c.cast(mechanism, dp.approximate(dp.max_divergence()), delta=1e-3)
    epsilon, delta = approximate.map(1.0)
    assert delta == 1e-3
    assert epsilon == pytest.approx(1.0 + 2 * math.log(1 - 1e-3), rel=1e-9)
    fixed = dp.c.make_fix_delta(oc.c.cast(mechanism, dp.smoothed_max_divergence()), 1e-3)
    assert fixed.map(1.0)[0] == pytest.approx(epsilon, rel=1e-6)


def test_a_bounded_function_is_read_as_gaussian():
    mechanism = oc.m.make_certified_laplace(*REAL, 1.0, oc.tradeoff())
    mu = oc.c.cast(mechanism, oc.gaussian_tradeoff()).map(1.0)
    assert T.laplace(1.0) <= T.gaussian(mu)
    assert 1.0 < mu < oc.c.cast(dp.m.make_laplace(*REAL, 1.0), oc.gaussian_tradeoff()).map(1.0)


# --- context -------------------------------------------------------------------------------


def test_a_context_splits_a_gaussian_function():
    context = oc.concurrent_context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=oc.loss_of(tradeoff=T.gaussian(1.0)),
        split_evenly_over=2,
    )
    for _ in range(2):
        assert isinstance(context.query().count().laplace().release(), int)
    assert context.remaining_privacy_loss() == []


def test_a_context_splits_a_power():
    measure = oc.tradeoff()
    context = oc.concurrent_context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=(measure, T.pure(0.1).power(6)),
        split_by_weights=[1, 2],
    )
    assert context.remaining_privacy_loss() == [T.pure(0.1).power(2), T.pure(0.1).power(4)]


def test_a_function_that_cannot_be_split_is_refused():
    with pytest.raises(InvalidValueError, match="cannot be split"):
        oc.concurrent_context(
            data=DATA,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=oc.loss_of(tradeoff=T.pure(1.0)),
            split_evenly_over=2,
        )


def test_a_budget_must_bound_something():
    odometer = oc.make_concurrent_odometer(
        *SPACE, oc.tradeoff(), accumulator=oc.accumulators.ladder(T.pure(0.1))
    )
    with pytest.raises(InvalidValueError, match="d_out .* must bound the loss"):
        oc.make_concurrent_filter(odometer, 1, T.worst())
    with pytest.raises(InvalidTypeError, match="d_out must be a TradeoffFunction"):
        oc.make_concurrent_filter(odometer, 1, 1.0)


# --- the pipeline of the docs --------------------------------------------------------------


def test_the_pipeline_beats_the_best_of_opendp():
    """100 counts behind a clamp, by Laplace noise of scale 10 on floats, at δ = 1e-6."""
    launches, scale, delta = 100, 10.0, 1e-6
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    space = domain, dp.symmetric_distance()
    total = space >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum()
    ours = total >> oc.m.then_certified_laplace(scale=scale, output_measure=oc.tradeoff())
    whole = oc.make_concurrent_composition(*space, oc.tradeoff(), 1, [ours.map(1)] * launches)
    fixed = dp.c.make_fix_delta(oc.c.cast(whole, dp.smoothed_max_divergence()), delta)
    root = fixed([0.25, 0.5, 0.75])
    assert all(isinstance(root(ours), float) for _ in range(3))
    epsilon = fixed.map(1)[0]

    native = total >> dp.m.then_laplace(scale=scale)
    added_up = dp.c.make_adaptive_composition(
        *space, dp.max_divergence(), 1, [native.map(1)] * launches
    )
    zcdp = dp.c.make_pureDP_to_zCDP(native)
    concentrated = dp.c.make_adaptive_composition(
        *space, dp.zero_concentrated_divergence(), 1, [zcdp.map(1)] * launches
    )
    through_zcdp = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(concentrated), delta).map(1)[0]
    best = min(added_up.map(1), through_zcdp)
    assert epsilon == pytest.approx(4.6926, abs=1e-3)
    assert best / epsilon == pytest.approx(FACTOR, abs=5e-3)


FACTOR = 1.11  # printed in docs/tradeoff.rst
