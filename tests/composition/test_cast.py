"""Casts: what exists is tight, what does not is refused by name, and functions stay the same."""

import itertools

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.casts import conversions, recertify
from opendp_concurrent.composition.odometer import loss_of
from opendp_concurrent.errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
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
