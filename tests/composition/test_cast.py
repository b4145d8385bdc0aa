"""Casts: what exists is tight, what does not is refused by name, and functions stay the same."""

import itertools
import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

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

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROXIMATE, PROFILE = dp.approximate(PURE), dp.smoothed_max_divergence()
RENYI = dp.renyi_divergence()


def fixed(alpha):
    dp.enable_features("honest-but-curious")
    return oc.fixed_renyi_divergence(alpha)


def truncated(omega):
    dp.enable_features("honest-but-curious")
    return oc.truncated_concentrated_divergence(omega)


def gdp():
    dp.enable_features("honest-but-curious")
    return oc.gaussian_tradeoff()


def tradeoff():
    dp.enable_features("honest-but-curious")
    return oc.tradeoff()


@pytest.fixture
def under(space):
    def make(measure, loss):
        """A measurement that counts, with loss ``loss`` per unit of d_in."""
        return dp.m.make_user_measurement(*space, measure, len, lambda d_in: loss)

    return make


MEASURES = {
    "MaxDivergence": (lambda: PURE, 0.5),
    "ZeroConcentratedDivergence": (lambda: ZCDP, 0.125),
    "RenyiDivergence": (lambda: RENYI, lambda alpha: 0.125 * alpha),
    "Approximate(MaxDivergence)": (lambda: APPROXIMATE, (0.5, 1e-9)),
    "FixedRenyiDivergence": (lambda: fixed(8.0), 1.0),
    "TruncatedConcentratedDivergence": (
        lambda: truncated(16.0),
        oc.TruncatedConcentrated(0.125, 16.0),
    ),
    "GaussianTradeoff": (gdp, 0.5),
    "Tradeoff": (tradeoff, oc.TradeoffFunction.laplace(0.5)),
    "SmoothedMaxDivergence": (lambda: PROFILE, None),
    "Approximate(ZeroConcentratedDivergence)": (
        lambda: dp.approximate(ZCDP),
        (0.125, 1e-9),
    ),
    "ApproximateRenyiDivergence": (lambda: oc.approximate_renyi_divergence(8.0), (1.0, 1e-9)),
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
def test_a_cast_exists_exactly_where_a_theorem_does(under, source, target):
    measure, loss = MEASURES[source]
    measurement, wanted = under(measure(), loss), MEASURES[target][0]()
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
            UnsupportedMeasureError, match="there is no conversion|no composition rule"
        ) as refused:
            oc.c.cast(measurement, wanted, **options)
        assert source in str(refused.value) or "SmoothedMaxDivergence" in str(refused.value)


def test_values_of_approximate_zcdp(under):
    measure = dp.approximate(ZCDP)
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


def test_values_are_those_of_the_theorems(under):
    pure = under(PURE, 1.0)
    assert oc.c.cast(pure, ZCDP).map(1) == pytest.approx(0.4621171573, abs=1e-10)
    assert oc.c.cast(pure, fixed(4.0)).map(1) == pytest.approx(0.8958832596, abs=1e-10)
    assert oc.c.cast(pure, RENYI).map(1)(10.0) == pytest.approx(0.9651931465, abs=1e-10)
    assert oc.c.cast(pure, gdp()).map(1) == pytest.approx(1.2320353853, abs=1e-10)
    assert oc.c.cast(pure, truncated(8.0)).map(1) == oc.TruncatedConcentrated(
        oc.c.cast(pure, ZCDP).map(1), 8.0
    )
    assert oc.c.cast(pure, APPROXIMATE).map(1) == (1.0, 0.0)
    zcdp = under(ZCDP, 0.5)
    assert oc.c.cast(zcdp, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(5.2215344445)
    gaussian = under(gdp(), 1.0)
    assert oc.c.cast(gaussian, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(4.8865541175)
    assert oc.c.cast(gaussian, ZCDP).map(1) == 0.5
    assert oc.c.cast(gaussian, fixed(8.0)).map(1) == 4.0
    ten = under(fixed(10.0), 1.0)
    assert oc.c.cast(ten, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(2.1738534249)
    tcdp = under(truncated(4.0), oc.TruncatedConcentrated(0.5, 4.0))
    assert oc.c.cast(tcdp, APPROXIMATE, delta=1e-6).map(1)[0] == pytest.approx(5.8553899930)


@pytest.mark.parametrize("name", ["GaussianTradeoff", "ZeroConcentratedDivergence"])
def test_opendps_fix_delta_works_on_a_profile(under, name):
    measure, loss = MEASURES[name]
    measurement = under(measure(), loss)
    fixed_delta = dp.c.make_fix_delta(oc.c.cast(measurement, PROFILE), 1e-6)
    epsilon, delta = fixed_delta.map(1)
    direct = oc.c.cast(measurement, APPROXIMATE, delta=1e-6).map(1)
    assert delta == 1e-6
    assert direct[0] <= epsilon <= direct[0] * (1 + 1e-9)
    assert fixed_delta([1, 2]) == 2


def test_odd_ends_are_refused(under):
    with pytest.raises(
        InvalidValueError,
        match=r"^alpha \(9.0\) must be at most the order of the measurement \(8.0\)",
    ):
        oc.c.cast(under(fixed(8.0), 1.0), fixed(9.0))
    assert oc.c.cast(under(fixed(8.0), 1.0), fixed(2.0)).map(1) == 1.0
    tcdp = under(truncated(16.0), oc.TruncatedConcentrated(0.125, 16.0))
    with pytest.raises(
        InvalidValueError,
        match=r"^omega \(32.0\) must be at most the omega of the measurement \(16.0\)",
    ):
        oc.c.cast(tcdp, truncated(32.0)).map(1)
    assert oc.c.cast(tcdp, truncated(4.0)).map(1) == oc.TruncatedConcentrated(0.125, 4.0)
    with pytest.raises(InvalidValueError, match=r"^alpha \(16.0\) must be below omega"):
        oc.c.cast(tcdp, fixed(16.0)).map(1)
    assert oc.c.cast(tcdp, fixed(8.0)).map(1) == 1.0
    with pytest.raises(
        InvalidValueError,
        match=r"^delta \(1e-10\) must be at least the delta of the measurement .1e-09",
    ):
        oc.c.cast(under(APPROXIMATE, (0.5, 1e-9)), APPROXIMATE, delta=1e-10).map(1)


def test_losses_in_words():
    assert loss_of(epsilon=1.0) == (PURE, 1.0)
    assert loss_of(epsilon=1.0, delta=1e-9) == (APPROXIMATE, (1.0, 1e-9))
    assert loss_of(rho=0.25) == (ZCDP, 0.25)
    assert loss_of(rho=0.25, delta=1e-9) == (dp.approximate(ZCDP), (0.25, 1e-9))
    assert loss_of(mu=1) == (gdp(), 1.0)
    assert loss_of(0.5, alpha=2) == (fixed(2.0), 0.5)
    assert loss_of(rho=0.5, omega=2) == (truncated(2.0), oc.TruncatedConcentrated(0.5, 2.0))
    for wrong in ({}, {"mu": 1.0, "rho": 1.0}, {"omega": 2.0}, {"epsilon": 1.0, "omega": 2.0}):
        with pytest.raises(InvalidTypeError, match="^a privacy loss must have .*; found"):
            loss_of(**wrong)
    with pytest.raises(InvalidValueError, match="^mu"):
        loss_of(mu=-1.0)


# --- the same function under another guarantee ---------------------------------------------------


def answering(space, loss):
    return dp.m.make_user_measurement(*space, PURE, len, loss, TO=int)


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


# --- from a filter back to its odometer ----------------------------------------------------------


PAIRS = dp.approximate(dp.max_divergence())


def launch_of(space, epsilon, delta=0.0):
    return dp.m.make_user_measurement(
        *space, PAIRS, len, lambda d_in: (epsilon * d_in, delta * d_in)
    )


def test_a_filter_tells_its_odometer(space):
    odometer = oc.make_concurrent_odometer(*space, PAIRS, accumulator=oc.accumulators.zcdp(1e-7))
    limit = oc.make_concurrent_filter(odometer, 1, (1.0, 1e-6))
    assert oc.c.make_filter_to_odometer(limit) is odometer
    twice = dp.t.make_user_transformation(*space, *space, lambda rows: rows * 2, lambda d: 2 * d)
    chained = oc.c.make_filter_to_odometer(twice >> limit)
    root = chained([1, 2, 3])
    assert root(launch_of(space, 0.01)) == 6
    assert root.privacy_loss(1) == oc.accumulators.zcdp(1e-7).start(None).after((0.02, 0.0)).loss
    for other in (
        oc.make_concurrent_composition(*space, PAIRS, 1, [(1.0, 0.0)]),
        dp.c.make_privacy_filter(
            dp.c.make_fully_adaptive_composition(*space, PAIRS), 1, (1.0, 1e-6)
        ),
        odometer,
        3,
    ):
        with pytest.raises(InvalidTypeError, match=r"(?s)^measurement \(.*must be made by"):
            oc.c.make_filter_to_odometer(other)


# --- measures that OpenDP lacks, in every constructor, in ``check``, ``>>``, searches and con ----

T = oc.TruncatedConcentrated
SCALAR = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


@dataclass
class Case:
    """A measure, two losses, what they compose to, and a loss that is too large after them."""

    measure: Any
    losses: tuple[Any, Any]
    total: Any
    more: Any


CASES = {
    "renyi": Case(lambda: oc.fixed_renyi_divergence(8.0), (0.25, 0.5), 0.75, 0.125),
    "tcdp": Case(
        lambda: oc.truncated_concentrated_divergence(4.0),
        (T(0.25, 8.0), T(0.5, 16.0)),
        T(0.75, 8.0),
        T(0.125, 8.0),
    ),
    "gdp": Case(oc.gaussian_tradeoff, (3.0, 4.0), 5.0, 0.5),
}
every = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def case(name):
    return CASES[name]


def measurement(space, measure, loss):
    return dp.m.make_user_measurement(*space, measure, len, lambda d_in: loss)


KEEPS_NONE = "identifier" not in signature(dp.user_divergence).parameters
with_descriptors = pytest.mark.skipif(KEEPS_NONE, reason="OpenDP 0.14 keeps no descriptors")


@with_descriptors
def test_another_measure_is_refused_by_name(space):
    root = oc.make_concurrent_odometer(*space, oc.fixed_renyi_divergence(8.0))([1])
    with pytest.raises(SpaceMismatchError, match="output_measure does not match"):
        root(measurement(space, oc.fixed_renyi_divergence(9.0), 1.0))
    with pytest.raises(UnsupportedMeasureError, match="GaussianTradeoff"):
        oc.make_concurrent_odometer(*space, dp.user_divergence("mine", 8.0))


def test_a_launch_with_too_small_an_omega_is_refused(space):
    measure = oc.truncated_concentrated_divergence(8.0)
    root = oc.make_concurrent_odometer(*space, measure)([1])
    root.privacy_loss(1)
    with pytest.raises(PrivacyMapError, match=r"omega \(4.0\) must be at least the 8.0"):
        root(measurement(space, measure, T(0.5, 4.0)))
    filter_ = oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*space, measure), 1, T(1.0, 16.0)
    )([1])
    with pytest.raises(BudgetExceededError):
        filter_(measurement(space, measure, T(0.5, 12.0)))
    filter_(measurement(space, measure, T(0.5, 16.0)))
    assert filter_.remaining() == T(0.5, 16.0)


@pytest.mark.parametrize("name", CASES)
def test_searches_for_a_scale(case):
    def make(scale):
        return oc.m.make_certified_gaussian(*SCALAR, scale, case.measure())

    d_out = {"renyi": 1.0, "tcdp": T(0.5, 4.0), "gdp": 1.0}[
        next(key for key in CASES if CASES[key] is case)
    ]
    scale = dp.binary_search_param(make, d_in=1.0, d_out=d_out, bounds=(0.1, 10.0))
    assert make(scale).check(1.0, d_out)
    assert not make(scale * (1 - 1e-9)).check(1.0, d_out)
    expected = {"renyi": 2.0, "tcdp": 1.0, "gdp": 1.0}
    assert scale == pytest.approx(
        expected[next(key for key in CASES if CASES[key] is case)], rel=1e-9
    )


LOSSES = {
    "renyi": lambda: oc.loss_of(epsilon=1.0, alpha=8.0),
    "tcdp": lambda: oc.loss_of(rho=0.5, omega=16.0),
    "gdp": lambda: oc.loss_of(mu=2.0),
}


ASKS = {
    "renyi": {"epsilon": 0.25, "alpha": 8.0},
    "tcdp": {"rho": 0.125, "omega": 16.0},
    "gdp": {"mu": 1.0},
}


@every
def test_in_a_context_with_losses_chosen_on_the_way(name):
    measure, d_out = LOSSES[name]()
    context = oc.concurrent_context([1, 2, 3], dp.unit_of(contributions=1), (measure, d_out))
    _, share = oc.loss_of(**ASKS[name])
    assert isinstance(context.query(**ASKS[name]).count().laplace().release(), int)
    assert context.current_privacy_loss() <= share
    again = context.query(**ASKS[name]).count().certified_laplace(output_measure=measure)
    assert isinstance(again.release(), int)
    spent = context.current_privacy_loss()
    with pytest.raises(BudgetExceededError):
        context.query(**{**ASKS[name], next(iter(ASKS[name])): 1.99}).count().laplace().release()
    assert context.current_privacy_loss() == spent
    assert context.remaining_privacy_loss() <= d_out
    with pytest.raises(SpaceMismatchError, match="output_measure does not match"):
        context.query(epsilon=1.0)


def test_curves_are_checked_on_their_grid(space):
    def line(alpha):
        return 0.25 * alpha

    odometer = oc.make_concurrent_odometer(*space, dp.renyi_divergence())
    limit = oc.make_concurrent_filter(odometer, 1, line, orders=[2, 4])
    assert limit.check(1, limit.map(1))
    twice = oc.make_concurrent_filter(odometer, 1, lambda alpha: 2 * line(alpha), orders=[2, 4])
    assert limit.check(1, twice.map(1))
    assert not twice.check(1, limit.map(1))


def test_incomparable_distances_are_not_within_each_other(space):
    measure = oc.truncated_concentrated_divergence(4.0)
    made = oc.make_concurrent_composition(*space, measure, 1, [T(0.5, 8.0)])
    assert made.check(1, T(0.5, 8.0))
    assert not made.check(1, T(0.25, 4.0))
    assert not made.check(1, T(0.75, 16.0))
    assert not made.check(1, T(0.25, 8.0))
    native = measurement(space, measure, T(0.5, 8.0))
    assert native.check(1, T(0.75, 4.0))
    with pytest.raises(Exception, match="not comparable"):
        native.check(1, T(0.75, 16.0))


def test_gaussian_odometers_at_other_distances(space):
    """Independent values at d_in 2 and 3, never only 1."""
    root = oc.make_concurrent_odometer(*SCALAR, oc.gaussian_tradeoff())(0.0)
    for scale in (1.0, 2.0):
        root(oc.m.make_certified_gaussian(*SCALAR, scale, oc.gaussian_tradeoff()))
    for d_in in (1.0, 2.0, 3.0):
        expected = math.hypot(d_in, d_in / 2)
        assert expected <= root.privacy_loss(d_in) <= expected * (1 + 1e-14)
