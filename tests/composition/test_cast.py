"""Casts: what exists is tight, what does not is refused by name, and functions stay the same."""

import itertools
import math
from inspect import signature

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.casts import conversions, recertify
from opendp_concurrent.composition.odometer import loss_of
from opendp_concurrent.errors import (
    BudgetExceededError,
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures.conversion import Profile

from ..build import APPROXIMATE, APPROXIMATE_ZCDP, PURE, RENYI, SPACE, ZCDP, costing

PROFILE, GDP, TRADEOFF = dp.smoothed_max_divergence(), oc.gaussian_tradeoff(), oc.tradeoff()
T = oc.TruncatedConcentrated
fixed, truncated = oc.fixed_renyi_divergence, oc.truncated_concentrated_divergence


def under(measure, loss):
    """A measurement that counts, with this loss at every d_in."""
    return costing(lambda d_in: loss, measure=measure)


MEASURES = {
    "MaxDivergence": (PURE, 0.5),
    "ZeroConcentratedDivergence": (ZCDP, 0.125),
    "RenyiDivergence": (RENYI, lambda alpha: 0.125 * alpha),
    "Approximate(MaxDivergence)": (APPROXIMATE, (0.5, 1e-9)),
    "FixedRenyiDivergence": (fixed(8.0), 1.0),
    "TruncatedConcentratedDivergence": (truncated(16.0), T(0.125, 16.0)),
    "GaussianTradeoff": (GDP, 0.5),
    "Tradeoff": (TRADEOFF, oc.TradeoffFunction.laplace(0.5)),
    "SmoothedMaxDivergence": (PROFILE, None),
    "Approximate(ZeroConcentratedDivergence)": (APPROXIMATE_ZCDP, (0.125, 1e-9)),
    "ApproximateRenyiDivergence": (oc.approximate_renyi_divergence(8.0), (1.0, 1e-9)),
}
CONVERSIONS = conversions()
SOURCES = [name for name in MEASURES if name != "SmoothedMaxDivergence"]
BY_ZCDP = {
    ("GaussianTradeoff", target)
    for target in (
        "ApproximateRenyiDivergence",
        "FixedRenyiDivergence",
        "RenyiDivergence",
        "TruncatedConcentratedDivergence",
    )
}
BY_ZCDP |= {
    (source, "Approximate(ZeroConcentratedDivergence)")
    for source in ("MaxDivergence", "GaussianTradeoff")
}
SAME = {(name, name) for name in SOURCES}


@pytest.mark.parametrize(("source", "target"), list(itertools.product(SOURCES, MEASURES)))
def test_a_cast_exists_exactly_where_a_theorem_does(source, target):
    measurement, wanted = under(*MEASURES[source]), MEASURES[target][0]
    options = {}
    if target == "Approximate(MaxDivergence)":
        options["delta"] = 1e-6
    if source == "RenyiDivergence":
        options["orders"] = [2, 4, 8, 16]
    if (source, target) in {*CONVERSIONS, *BY_ZCDP, *SAME}:
        result = oc.c.cast(measurement, wanted, **options)
        assert result.output_measure == wanted
        assert result.input_space == measurement.input_space
        assert result([1, 2, 3]) == 3
        result.map(1)
    else:
        with pytest.raises(
            UnsupportedMeasureError, match="no conversion|no composition"
        ) as refused:
            oc.c.cast(measurement, wanted, **options)
        assert source in str(refused.value) or "SmoothedMaxDivergence" in str(refused.value)


def test_values_of_approximate_zcdp():
    measure = APPROXIMATE_ZCDP
    assert oc.c.cast(under(ZCDP, 0.125), measure).map(1) == (0.125, 0.0)
    assert oc.c.cast(under(PURE, 1.0), measure).map(1) == (0.4621171572600098, 0.0)
    assert oc.c.cast(under(APPROXIMATE, (1.0, 1e-9)), measure).map(1) == (0.4621171572600098, 1e-9)
    mixed = under(measure, (0.5, 0.25))
    without = under(ZCDP, 0.5)
    epsilon, _ = oc.c.cast(mixed, APPROXIMATE, delta=0.625).map(1)
    assert epsilon == oc.c.cast(without, APPROXIMATE, delta=0.5).map(1)[0]
    profile = oc.c.cast(without, PROFILE).map(1).delta(1.0)
    assert oc.c.cast(mixed, PROFILE).map(1).delta(1.0) == pytest.approx(0.25 + 0.75 * profile)
    assert oc.c.cast(mixed, PROFILE).map(1).delta(1.0) >= 0.25 + 0.75 * profile
    with pytest.raises(InvalidValueError, match=r"delta .* must be at least the delta"):
        oc.c.cast(mixed, APPROXIMATE, delta=0.125).map(1)


def test_values_are_those_of_the_theorems():
    pure = under(PURE, 1.0)
    assert oc.c.cast(pure, ZCDP).map(1) == pytest.approx(0.4621171573, abs=1e-10)
    assert oc.c.cast(pure, fixed(4.0)).map(1) == pytest.approx(0.8958832596, abs=1e-10)
    assert oc.c.cast(pure, RENYI).map(1)(10.0) == pytest.approx(0.9651931465, abs=1e-10)
    assert oc.c.cast(pure, GDP).map(1) == pytest.approx(1.2320353853, abs=1e-10)
    assert oc.c.cast(pure, truncated(8.0)).map(1) == T(oc.c.cast(pure, ZCDP).map(1), 8.0)
    assert oc.c.cast(pure, APPROXIMATE).map(1) == (1.0, 0.0)
    zcdp = under(ZCDP, 0.5)
    assert oc.c.cast(zcdp, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(5.2215344445)
    gaussian = under(GDP, 1.0)
    assert oc.c.cast(gaussian, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(4.8865541175)
    assert oc.c.cast(gaussian, ZCDP).map(1) == 0.5
    assert oc.c.cast(gaussian, fixed(8.0)).map(1) == 4.0
    ten = under(fixed(10.0), 1.0)
    assert oc.c.cast(ten, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(2.1738534249)
    tcdp = under(truncated(4.0), T(0.5, 4.0))
    assert oc.c.cast(tcdp, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(5.8553899930)


def test_odd_ends_are_refused():
    with pytest.raises(InvalidValueError, match=r"^alpha \(9.0\) must be at most the order of"):
        oc.c.cast(under(fixed(8.0), 1.0), fixed(9.0))
    assert oc.c.cast(under(fixed(8.0), 1.0), fixed(2.0)).map(1) == 1.0
    tcdp = under(truncated(16.0), T(0.125, 16.0))
    with pytest.raises(InvalidValueError, match=r"^omega \(32.0\) must be at most the omega of"):
        oc.c.cast(tcdp, truncated(32.0)).map(1)
    assert oc.c.cast(tcdp, truncated(4.0)).map(1) == T(0.125, 4.0)
    with pytest.raises(InvalidValueError, match=r"^alpha \(16.0\) must be below omega"):
        oc.c.cast(tcdp, fixed(16.0)).map(1)
    assert oc.c.cast(tcdp, fixed(8.0)).map(1) == 1.0
    with pytest.raises(InvalidValueError, match=r"^delta \(1e-10\) must be at least the delta"):
        oc.c.cast(under(APPROXIMATE, (0.5, 1e-9)), APPROXIMATE, delta=1e-10).map(1)


def test_losses_in_words():
    assert loss_of(epsilon=1.0) == (PURE, 1.0)
    assert loss_of(epsilon=1.0, delta=1e-9) == (APPROXIMATE, (1.0, 1e-9))
    assert loss_of(rho=0.25) == (ZCDP, 0.25)
    assert loss_of(rho=0.25, delta=1e-9) == (APPROXIMATE_ZCDP, (0.25, 1e-9))
    assert loss_of(mu=1) == (GDP, 1.0)
    assert loss_of(0.5, alpha=2) == (fixed(2.0), 0.5)
    assert loss_of(rho=0.5, omega=2) == (truncated(2.0), T(0.5, 2.0))
    for wrong in ({}, {"mu": 1.0, "rho": 1.0}, {"omega": 2.0}, {"epsilon": 1.0, "omega": 2.0}):
        with pytest.raises(InvalidTypeError, match="^a privacy loss must have .*; found"):
            loss_of(**wrong)
    with pytest.raises(InvalidValueError, match="^mu"):
        loss_of(mu=-1.0)


# --- the same function under another guarantee ---------------------------------------------------


@pytest.mark.parametrize("loss", [-0.5, float("nan")])
def test_what_is_no_loss_is_not_converted(loss):
    made = recertify(under(PURE, loss), ZCDP, lambda loss: 0.0)
    with pytest.raises(ConcurrentError):
        made.map(1)


def test_a_profile_becomes_one_of_opendp():
    made = recertify(costing(1.0), PROFILE, lambda loss: Profile(lambda epsilon: loss / 4))
    assert made.map(2).delta(0.25) == 0.5
    again = recertify(made, PROFILE, lambda profile: Profile(profile.delta))
    assert again.map(2).delta(0.25) == 0.5  # a profile is not checked as a number


# --- from a filter back to its odometer ----------------------------------------------------------


def test_a_filter_tells_its_odometer():
    odometer = oc.make_concurrent_odometer(
        *SPACE, APPROXIMATE, accumulator=oc.accumulators.zcdp(1e-7)
    )
    limit = oc.make_concurrent_filter(odometer, 1, (1.0, 1e-6))
    assert oc.c.make_filter_to_odometer(limit) is odometer
    twice = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows * 2, lambda d: 2 * d)
    chained = oc.c.make_filter_to_odometer(twice >> limit)
    root = chained([1, 2, 3])
    assert root(costing((0.01, 0.0), measure=APPROXIMATE)) == 6
    assert root.privacy_loss(1) == oc.accumulators.zcdp(1e-7).start(None).after((0.02, 0.0)).loss
    for other in (
        oc.make_concurrent_composition(*SPACE, APPROXIMATE, 1, [(1.0, 0.0)]),
        odometer,
        3,
    ):
        with pytest.raises(InvalidTypeError, match=r"(?s)^measurement \(.*must be made by"):
            oc.c.make_filter_to_odometer(other)


# --- measures that OpenDP lacks, in every constructor, in ``check``, ``>>``, searches and con ----

SCALAR = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


@pytest.mark.skipif(
    "identifier" not in signature(dp.user_divergence).parameters,
    reason="OpenDP 0.14 keeps no descriptors",
)
def test_another_measure_is_refused_by_name():
    root = oc.make_concurrent_odometer(*SPACE, oc.fixed_renyi_divergence(8.0))([1])
    with pytest.raises(SpaceMismatchError, match="output_measure does not match"):
        root(under(oc.fixed_renyi_divergence(9.0), 1.0))
    with pytest.raises(UnsupportedMeasureError, match="GaussianTradeoff"):
        oc.make_concurrent_odometer(*SPACE, dp.user_divergence("mine", 8.0))


def test_a_launch_with_too_small_an_omega_is_refused():
    measure = oc.truncated_concentrated_divergence(8.0)
    root = oc.make_concurrent_odometer(*SPACE, measure)([1])
    root.privacy_loss(1)
    with pytest.raises(PrivacyMapError, match=r"omega \(4.0\) must be at least the 8.0"):
        root(under(measure, T(0.5, 4.0)))
    filter_ = oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*SPACE, measure), 1, T(1.0, 16.0)
    )([1])
    with pytest.raises(BudgetExceededError):
        filter_(under(measure, T(0.5, 12.0)))
    filter_(under(measure, T(0.5, 16.0)))
    assert filter_.remaining() == T(0.5, 16.0)


@pytest.mark.parametrize(
    ("measure", "d_out", "expected"),
    [(fixed(8.0), 1.0, 2.0), (truncated(4.0), T(0.5, 4.0), 1.0), (GDP, 1.0, 1.0)],
    ids=str,
)
def test_searches_for_a_scale(measure, d_out, expected):
    def make(scale):
        return oc.m.make_certified_gaussian(*SCALAR, scale, measure)

    scale = dp.binary_search_param(make, d_in=1.0, d_out=d_out, bounds=(0.1, 10.0))
    assert make(scale).check(1.0, d_out)
    assert not make(scale * (1 - 1e-9)).check(1.0, d_out)
    assert scale == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("bound", "asked"),
    [
        ({"epsilon": 1.0, "alpha": 8.0}, {"epsilon": 0.25, "alpha": 8.0}),
        ({"rho": 0.5, "omega": 16.0}, {"rho": 0.125, "omega": 16.0}),
        ({"mu": 2.0}, {"mu": 1.0}),
    ],
)
def test_in_a_context_with_losses_chosen_on_the_way(bound, asked):
    measure, d_out = oc.loss_of(**bound)
    context = oc.concurrent_context([1, 2, 3], dp.unit_of(contributions=1), (measure, d_out))
    assert isinstance(context.query(**asked).count().laplace().release(), int)
    assert context.current_privacy_loss() <= oc.loss_of(**asked)[1]
    again = context.query(**asked).count().certified_laplace(output_measure=measure)
    assert isinstance(again.release(), int)
    spent = context.current_privacy_loss()
    with pytest.raises(BudgetExceededError):
        context.query(**{**asked, next(iter(asked)): 1.99}).count().laplace().release()
    assert context.current_privacy_loss() == spent
    assert context.remaining_privacy_loss() <= d_out
    with pytest.raises(SpaceMismatchError, match="output_measure does not match"):
        context.query(epsilon=1.0)


def test_curves_are_checked_on_their_grid():
    def line(alpha):
        return 0.25 * alpha

    odometer = oc.make_concurrent_odometer(*SPACE, dp.renyi_divergence())
    limit = oc.make_concurrent_filter(odometer, 1, line, orders=[2, 4])
    assert limit.check(1, limit.map(1))
    twice = oc.make_concurrent_filter(odometer, 1, lambda alpha: 2 * line(alpha), orders=[2, 4])
    assert limit.check(1, twice.map(1))
    assert not twice.check(1, limit.map(1))


def test_incomparable_distances_are_not_within_each_other():
    measure = oc.truncated_concentrated_divergence(4.0)
    made = oc.make_concurrent_composition(*SPACE, measure, 1, [T(0.5, 8.0)])
    assert made.check(1, T(0.5, 8.0))
    assert not made.check(1, T(0.25, 4.0))
    assert not made.check(1, T(0.75, 16.0))
    assert not made.check(1, T(0.25, 8.0))
    native = under(measure, T(0.5, 8.0))
    assert native.check(1, T(0.75, 4.0))
    with pytest.raises(Exception, match="not comparable"):
        native.check(1, T(0.75, 16.0))


def test_gaussian_odometers_at_other_distances():
    """Independent values at d_in 2 and 3, never only 1."""
    root = oc.make_concurrent_odometer(*SCALAR, oc.gaussian_tradeoff())(0.0)
    for scale in (1.0, 2.0):
        root(oc.m.make_certified_gaussian(*SCALAR, scale, oc.gaussian_tradeoff()))
    for d_in in (1.0, 2.0, 3.0):
        expected = math.hypot(d_in, d_in / 2)
        assert expected <= root.privacy_loss(d_in) <= expected * (1 + 1e-14)
