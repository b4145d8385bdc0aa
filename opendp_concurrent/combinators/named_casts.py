"""The casts by name, each one step of :func:`.cast`. Names are spelled as OpenDP spells its own."""

from __future__ import annotations

from collections.abc import Sequence

from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    smoothed_max_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import Measurement

from ..checks import probability
from ..errors import UnsupportedMeasureError
from ..measures import composition_measure
from ..measures.families import APPROXIMATE, FIXED, GAUSSIAN, PURE, RENYI, TRADEOFF, TRUNCATED, ZCDP
from ..measures.fixed_renyi_divergence import fixed_renyi_divergence
from ..measures.gaussian_tradeoff import gaussian_tradeoff
from ..measures.tradeoff import tradeoff
from ..measures.truncated_concentrated_divergence import truncated_concentrated_divergence
from ..queryables.mechanism import ConcurrentMeasurement
from .cast import cast
from .guards import check_measurement


def _under(measurement: Measurement, family: str) -> Measurement:
    check_measurement("measurement", measurement)
    found = composition_measure(measurement.output_measure).family
    if found != family:
        raise UnsupportedMeasureError(f"measurement must be under {family}, found {found}")
    return measurement


def make_pureDP_to_zCDP(measurement: Measurement) -> ConcurrentMeasurement:
    """ε-DP as ε tanh(ε/2)-zCDP [Ste24]; OpenDP's own of this name has ε²/2.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_laplace(*space, scale=1.0)
    >>> oc.c.make_pureDP_to_zCDP(mechanism).map(1.0)
    0.4621171572600098
    """
    return cast(_under(measurement, PURE), zero_concentrated_divergence())


def make_pureDP_to_RDP(measurement: Measurement) -> ConcurrentMeasurement:
    """ε-DP as Rényi DP, with the curve of randomized response [BS16, Lemma 1.4].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_laplace(*space, scale=1.0)
    >>> oc.c.make_pureDP_to_RDP(mechanism).map(1.0)(4.0)
    0.8958832596451839
    """
    return cast(_under(measurement, PURE), renyi_divergence())


def make_pureDP_to_fixedRDP(measurement: Measurement, alpha: float) -> ConcurrentMeasurement:
    """ε-DP as Rényi DP of the order ``alpha``, that of randomized response [BS16, Lemma 1.4].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP
    :param alpha: order, finite and above 1
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_laplace(*space, scale=1.0)
    >>> oc.c.make_pureDP_to_fixedRDP(mechanism, alpha=4.0).map(1.0)
    0.8958832596451839
    """
    return cast(_under(measurement, PURE), fixed_renyi_divergence(alpha))


def make_pureDP_to_tCDP(measurement: Measurement, omega: float) -> ConcurrentMeasurement:
    """ε-DP as (ε tanh(ε/2), ω)-tCDP, for every ω [Ste24].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP
    :param omega: end of the orders, above 1
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_laplace(*space, scale=1.0)
    >>> oc.c.make_pureDP_to_tCDP(mechanism, omega=16.0).map(1.0)
    TruncatedConcentrated(rho=0.4621171572600098, omega=16.0)
    """
    return cast(_under(measurement, PURE), truncated_concentrated_divergence(omega))


def make_pureDP_to_GDP(measurement: Measurement) -> ConcurrentMeasurement:
    """ε-DP as Gaussian DP with Φ(μ/2) = e^ε / (1 + e^ε), that of randomized response.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_laplace(*space, scale=1.0)
    >>> oc.c.make_pureDP_to_GDP(mechanism).map(1.0)
    1.232035385344901
    """
    return cast(_under(measurement, PURE), gaussian_tradeoff())


def make_zCDP_to_RDP(measurement: Measurement) -> ConcurrentMeasurement:
    """ρ-zCDP as Rényi DP with the curve ρ α [BS16, Definition 1.1].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ρ-zCDP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_gaussian(*space, scale=1.0)
    >>> oc.c.make_zCDP_to_RDP(mechanism).map(1.0)(4.0)
    2.0
    """
    return cast(_under(measurement, ZCDP), renyi_divergence())


def make_zCDP_to_fixedRDP(measurement: Measurement, alpha: float) -> ConcurrentMeasurement:
    """ρ-zCDP as Rényi DP of the order ``alpha``, ρ α [BS16, Definition 1.1].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ρ-zCDP
    :param alpha: order, finite and above 1
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_gaussian(*space, scale=1.0)
    >>> oc.c.make_zCDP_to_fixedRDP(mechanism, alpha=4.0).map(1.0)
    2.0
    """
    return cast(_under(measurement, ZCDP), fixed_renyi_divergence(alpha))


def make_zCDP_to_tCDP(measurement: Measurement, omega: float) -> ConcurrentMeasurement:
    """ρ-zCDP as (ρ, ω)-tCDP, for every ω [BDRS18].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ρ-zCDP
    :param omega: end of the orders, above 1
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_gaussian(*space, scale=1.0)
    >>> oc.c.make_zCDP_to_tCDP(mechanism, omega=16.0).map(1.0)
    TruncatedConcentrated(rho=0.5, omega=16.0)
    """
    return cast(_under(measurement, ZCDP), truncated_concentrated_divergence(omega))


def make_GDP_to_zCDP(measurement: Measurement) -> ConcurrentMeasurement:
    """μ-Gaussian DP as μ²/2-zCDP [BS16, Proposition 1.6].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under μ-Gaussian DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, oc.gaussian_tradeoff())
    >>> oc.c.make_GDP_to_zCDP(mechanism).map(1.0)
    0.5000000000000003
    """
    return cast(_under(measurement, GAUSSIAN), zero_concentrated_divergence())


def make_GDP_to_approxDP(measurement: Measurement) -> ConcurrentMeasurement:
    """μ-Gaussian DP as its privacy profile, exactly [DRS22, Corollary 1]; then ``make_fix_delta``.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under μ-Gaussian DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, oc.gaussian_tradeoff())
    >>> oc.c.make_GDP_to_approxDP(mechanism).map(1.0).delta(4.0)
    4.7122412007931394e-05
    """
    return cast(_under(measurement, GAUSSIAN), smoothed_max_divergence())


def make_RDP_to_fixedRDP(measurement: Measurement, alpha: float) -> ConcurrentMeasurement:
    """Rényi DP as that of the order ``alpha``.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under Rényi DP
    :param alpha: order, finite and above 1
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, dp.renyi_divergence())
    >>> oc.c.make_RDP_to_fixedRDP(mechanism, alpha=4.0).map(1.0)
    2.0
    """
    return cast(_under(measurement, RENYI), fixed_renyi_divergence(alpha))


def make_RDP_to_approxDP(
    measurement: Measurement, orders: Sequence[float]
) -> ConcurrentMeasurement:
    """Rényi DP as a privacy profile, by the best of ``orders``; then ``make_fix_delta``.

    Each order by [CKS20, Proposition 12].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under Rényi DP
    :param orders: at which the curve is read
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, dp.renyi_divergence())
    >>> oc.c.make_RDP_to_approxDP(mechanism, orders=[2, 4, 8, 16]).map(1.0).delta(4.0)
    0.00026143089363278
    """
    return cast(_under(measurement, RENYI), smoothed_max_divergence(), orders=orders)


def make_fixedRDP_to_approxDP(measurement: Measurement) -> ConcurrentMeasurement:
    """Rényi DP of one order as a privacy profile [CKS20, Proposition 12]; then ``make_fix_delta``.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under Rényi DP of one order
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, oc.fixed_renyi_divergence(10.0))
    >>> oc.c.make_fixedRDP_to_approxDP(mechanism).map(1.0).delta(4.0)
    1.0
    """
    return cast(_under(measurement, FIXED), smoothed_max_divergence())


def make_tCDP_to_approxDP(measurement: Measurement) -> ConcurrentMeasurement:
    """(ρ, ω)-tCDP as a privacy profile, by orders up to ω; then ``make_fix_delta``.

    Each order by [CKS20, Proposition 12].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under tCDP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> measure = oc.truncated_concentrated_divergence(20.0)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, measure)
    >>> oc.c.make_tCDP_to_approxDP(mechanism).map(1.0).delta(4.0)
    0.00019579541695772162
    """
    return cast(_under(measurement, TRUNCATED), smoothed_max_divergence())


def make_larger_delta(measurement: Measurement, delta: float) -> ConcurrentMeasurement:
    """(ε, δ)-DP with a larger δ, and the smaller ε that it allows [KOV15, Theorem 3.3].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under (ε, δ)-DP
    :param delta: at least the δ there is, at most 1
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.c.make_approximate(dp.m.make_laplace(*space, scale=1.0))
    >>> oc.c.make_larger_delta(mechanism, delta=1e-3).map(1.0)
    (0.9986311841577259, 0.001)
    """
    delta = probability(delta=delta)
    return cast(_under(measurement, APPROXIMATE), approximate(max_divergence()), delta=delta)


def make_pureDP_to_fDP(measurement: Measurement) -> ConcurrentMeasurement:
    """ε-DP as f-DP: randomized response [KOV15, Theorem 3.3].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_laplace(*space, scale=1.0)
    >>> oc.c.make_pureDP_to_fDP(mechanism).map(1.0)
    TradeoffFunction(pure(epsilon=1.0))
    """
    return cast(_under(measurement, PURE), tradeoff())


def make_approxDP_to_fDP(measurement: Measurement) -> ConcurrentMeasurement:
    """(ε, δ)-DP as f-DP [DRS22, Proposition 2.5].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under (ε, δ)-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.c.make_approximate(dp.m.make_laplace(*space, scale=1.0))
    >>> oc.c.make_approxDP_to_fDP(mechanism).map(1.0)
    TradeoffFunction(pure(epsilon=1.0))
    """
    return cast(_under(measurement, APPROXIMATE), tradeoff())


def make_GDP_to_fDP(measurement: Measurement) -> ConcurrentMeasurement:
    """μ-Gaussian DP as f-DP.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under μ-Gaussian DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_gaussian(*space, 1.0, oc.gaussian_tradeoff())
    >>> oc.c.make_GDP_to_fDP(mechanism).map(1.0)
    TradeoffFunction(gaussian(mu=1.0000000000000002))
    """
    return cast(_under(measurement, GAUSSIAN), tradeoff())


def make_zCDP_to_fDP(measurement: Measurement) -> ConcurrentMeasurement:
    """ρ-zCDP as f-DP, by chords of its privacy profile [CKS20, Proposition 12].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ρ-zCDP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.m.make_gaussian(*space, scale=1.0)
    >>> oc.c.make_zCDP_to_fDP(mechanism).map(1.0).delta(4.0)
    0.00019683...
    """
    return cast(_under(measurement, ZCDP), tradeoff())


def make_fDP_to_approxDP(measurement: Measurement) -> ConcurrentMeasurement:
    """f-DP as a privacy profile; then ``make_fix_delta``.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under f-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_laplace(*space, 1.0, oc.tradeoff())
    >>> oc.c.make_fDP_to_approxDP(mechanism).map(1.0).delta(0.5)
    0.22119921...
    """
    return cast(_under(measurement, TRADEOFF), smoothed_max_divergence())


def make_fDP_to_GDP(measurement: Measurement) -> ConcurrentMeasurement:
    """f-DP with a bounded loss as μ-Gaussian DP, by certified comparisons.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under f-DP
    :return: a measurement with the same function
    :raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = oc.m.make_certified_laplace(*space, 1.0, oc.tradeoff())
    >>> oc.c.make_fDP_to_GDP(mechanism).map(1.0)
    1.03006...
    """
    return cast(_under(measurement, TRADEOFF), gaussian_tradeoff())


def make_profile_to_fDP(measurement: Measurement) -> ConcurrentMeasurement:
    """Return a privacy profile as f-DP, by its chords at some 300 points [DRS22, Proposition 2.12].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ``dp.smoothed_max_divergence()``
    :return: a measurement with the same function
    :raises InvalidTypeError, UnsupportedMeasureError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> mechanism = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0))
    >>> oc.c.make_profile_to_fDP(mechanism).map(1.0).delta(4.0)
    0.00019683...
    """
    check_measurement("measurement", measurement)
    if measurement.output_measure != smoothed_max_divergence():
        raise UnsupportedMeasureError(
            "measurement must be under SmoothedMaxDivergence, "
            f"found {measurement.output_measure}; use cast"
        )
    return cast(measurement, tradeoff())
